"""What is set in the configuration is what the executors are told."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from blizzard.flow import UnitOutcome, Work, WorkUnit
from blizzard.settings import Codec, PipelineSettings, RollingPolicy, UploadSettings
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows, source_settings
from tests.support.runner import InProcessRunner

ROLLING = RollingPolicy(file_size=7, row_group_size=6, rollover=5, inactivity=4, codec=Codec.ZSTD)
UPLOAD = UploadSettings(
    part_size=9, min_multipart_size=10**9, max_concurrent_parts=3, max_concurrent_uploads=2
)


@dataclass
class Listening:
    """A runner that remembers what it was told, and runs it."""

    told: list[Work] = field(default_factory=list)
    parallelism: int = 2

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.told.append(work)
        return InProcessRunner().run(units, work)


def told(root: Path, settings: PipelineSettings) -> Work:
    put(root / "in", "a.ndjson", ndjson(rows(3)))
    runner = Listening()
    assert Bench(settings, runner=runner).pipeline().step()
    return runner.told[0]


def test_the_settings_of_a_source_reach_the_executors(tmp_path: Path) -> None:
    source = source_settings(tmp_path / "in", max_concurrent_files=3, batch_size=2)
    settings = replace(pipeline_settings(tmp_path / "in", tmp_path / "table"), sources=(source,))
    work = told(tmp_path, settings)

    assert (work.max_concurrent_files, work.batch_size) == (3, 2)


def test_the_settings_of_the_sink_reach_the_executors(tmp_path: Path) -> None:
    settings = pipeline_settings(tmp_path / "in", tmp_path / "table")
    sink = replace(settings.sink, rolling=ROLLING, upload=UPLOAD)
    work = told(tmp_path, replace(settings, sink=sink))

    assert (work.rolling, work.upload) == (ROLLING, UPLOAD)
    assert work.marks["pipeline"] == settings.name
