"""penguin from Python: `penguin.commit(table_uri)`. It does what `penguin --once` does.

Traces are sent as the command sends them; metrics and the live page are the command's alone.
What it logs goes to the logger `penguin`.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lakebed.clock import Clock
from lakebed.errors import LakeError
from lakebed.polling import Stop, finished
from lakebed.telemetry.logs import log_to
from penguin.config import load as config_file
from penguin.delta.table import refused_properties
from penguin.service import TableOutcome, commit_tables, tracing

NAME = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """What was committed to a table."""

    table_uri: str
    version: int | None
    """The table's version now; None where there is no table yet."""
    commits: int
    entries: int
    """Batches of blizzard that were committed."""
    files: int
    rows: int
    held_files: int
    """Files that do not fit the table; `penguin held` says why."""
    held_rows: int


class CommitFailed(LakeError, code="commit_failed"):
    """A table could not be committed to; `result` is what was done before."""

    def __init__(self, result: CommitResult, why: BaseException) -> None:
        self.result = result
        super().__init__(str(why) or type(why).__name__, path=result.table_uri)


def commit(
    table_uri: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    telemetry: Mapping[str, Any] | None = None,
    stop: Stop | None = None,
    **settings: Any,  # noqa: ANN401 - the keys of `tables` in a configuration
) -> CommitResult:
    """Commit everything that waits for a table, exactly once, and return what was done.

    `settings` are further keys of an entry of `tables`: `schema_evolution="strict"`, say.
    `telemetry` is the section of that name: where traces go, unless OpenTelemetry's variables say.
    ConfigInvalid has every fault of them; CommitFailed says what kept the table from being
    committed to. Files that do not fit the table are held, and no error.
    """
    table = {"table_uri": table_uri, "storage_options": dict(storage_options or {}), **settings}
    given = {"tables": {NAME: table}, "telemetry": dict(telemetry or {})}
    loaded = config_file.load([given], [], os.environ, refused_properties)
    stop = stop or Stop()
    with tracing(loaded, log_to(logging.getLogger("penguin"))) as emit:
        (done,) = finished(
            lambda: commit_tables(loaded, emit, stop, once=True, clock=Clock()), stop
        )
    result = _result(done)
    if done.error is not None:
        raise CommitFailed(result, done.error) from done.error
    return result


def _result(done: TableOutcome) -> CommitResult:
    return CommitResult(
        table_uri=done.settings.table_uri,
        held_files=done.held_files,
        held_rows=done.held_rows,
        **asdict(done.totals),
    )
