"""blizzard from Python: `blizzard.run(config)` in a notebook, an Airflow job or a script.

It does what the command does, including traces and lineage, but without metrics and the live page.
It logs to the logger `blizzard`.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from blizzard.config import load as config_file
from blizzard.execute.runner import MakeRunner
from blizzard.execute.spark.jvm import require_java
from blizzard.execute.spark.runner import SparkRunner, checked, on_lent_session
from blizzard.listeners import BatchDisplay, exporting
from blizzard.service import Result, Service
from blizzard.table_rules import tables_of
from lakebed.clock import Clock
from lakebed.config.files import Given
from lakebed.errors import LakeError
from lakebed.polling import Stop, finished
from lakebed.telemetry.events import Emit, shared
from lakebed.telemetry.logs import log_to

Config = str | Path | Mapping[str, Any]
"""A YAML file, or a mapping with the same content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """What one pipeline did; `error` is None if it finished."""

    pipeline: str
    table_uri: str
    files_processed: int
    """Source files that were read to their end."""
    records_processed: int
    """Rows that were written."""
    lines_quarantined: int
    """Bad lines that were quarantined, with `error_handling.on_bad_record: quarantine`."""
    bytes_written: int
    parquet_files_written: int
    files_failed: int
    """Source files that this run could not read; the journal says why."""
    files_still_failed: int
    """The same, including those of earlier runs."""
    delta_commits: int
    """Versions of the table, where `sink.commit` is `inline`."""
    error: BaseException | None = None


class PipelinesFailed(LakeError, code="pipelines_failed"):
    """At least one pipeline could not finish; `results` has all pipelines."""

    def __init__(self, results: Sequence[PipelineResult]) -> None:
        self.results = tuple(results)
        failed = [each for each in results if each.error is not None]
        super().__init__("; ".join(f"{each.pipeline}: {each.error}" for each in failed))


def run(
    config: Config | Sequence[Config],
    *,
    spark: Any = None,  # noqa: ANN401 - a SparkSession, which need not be installed to import this
    once: bool = True,
    pipeline: str | None = None,
    stop: Stop | None = None,
    progress: bool | None = None,
) -> list[PipelineResult]:
    """Read what is new and write it to the tables, exactly once; return what each pipeline did.

    `config` is a YAML file, a mapping with the same keys, or several of them. With `spark` the
    tasks run on that session, which stays open; without it, Spark is started and stopped. With
    `once=False` it runs until another thread calls `stop.request()`, or Ctrl-C. Bars show the
    `progress` in a notebook or on a terminal, unless it is False.

    ConfigInvalid has every fault of the configuration; PipelinesFailed has all results, with the
    errors of the failed pipelines. Unreadable source files are not an error: they are counted,
    and `blizzard dlq list` names them.
    """
    given = _given(config)
    settings = config_file.load(given, [], os.environ, master=_master(spark)).only(pipeline)
    make_runner = _runner(spark)
    stop = stop or Stop()
    with exporting(settings, _emitter(progress=progress), os.environ) as emit:
        service = Service(
            settings=settings,
            emit=emit,
            stop=stop,
            once=once,
            table_of=tables_of(settings, given, ()),
            clock=Clock(),
            make_runner=make_runner,
        )
        results = [_result(each) for each in finished(service.run, stop)]
    if any(each.error is not None for each in results):
        raise PipelinesFailed(results)
    return results


def _given(config: Config | Sequence[Config]) -> list[Given]:
    if isinstance(config, Mapping):
        return [config]
    if isinstance(config, str | Path):
        return [Path(config)]
    return [one for each in config for one in _given(each)]


def _master(spark: Any) -> str | None:  # noqa: ANN401 - any session object
    """Return the master of a session, which determines where stores must be reachable from."""
    if spark is None:
        return None
    return str(checked(spark).sparkContext.master)


def _runner(spark: Any) -> MakeRunner:  # noqa: ANN401
    if spark is None:
        require_java(os.environ)
        return SparkRunner
    return on_lent_session(spark)


def _emitter(*, progress: bool | None) -> Emit:
    log = log_to(logging.getLogger("blizzard"))
    to = Console(stderr=True)
    if progress is False or not (progress or to.is_terminal or to.is_jupyter):
        return log
    return shared(log, BatchDisplay(to).emit)


def _result(result: Result) -> PipelineResult:
    done = asdict(result.statistics)
    del done["checkpoints_saved"]
    return PipelineResult(
        pipeline=result.settings.name,
        table_uri=result.settings.sink.table_uri,
        **done,
        error=result.error,
    )
