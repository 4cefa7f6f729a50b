"""What a program says of itself and of its machine."""

import math
import platform
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from blizzard.metrics import METRICS
from lakebed.telemetry.events import StepFinished
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.measures import Sampled
from lakebed.telemetry.observed import UsageOf, build_info, disk_room, observed
from penguin.metrics import METRICS as PENGUIN
from tests.support.scrape import Pages

EVENTS = HealthPart(PartKind.PIPELINE, "events")


class Usage(NamedTuple):
    total: int
    free: int


def values(*measures: Sampled) -> dict[str, float]:
    return {measure.name: measure.read() for measure in measures}


def sampled(folder: Path | None, usage_of: UsageOf) -> dict[str, float]:
    return values(
        *(
            measure
            for measure in disk_room([(EVENTS, folder)], usage_of)
            if isinstance(measure, Sampled)
        )
    )


def test_the_versions_are_those_that_run():
    info = build_info(PartKind.PIPELINE, "pyspark")
    assert (info.name, info.value) == ("blizzard_build_info", 1)
    assert info.labels == {
        "version": version("blizzard-penguin"),
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
    }
    assert set(build_info(PartKind.TABLE).labels) == {"version", "python"}


def test_the_room_is_that_of_the_nearest_folder_and_read_when_asked(tmp_path: Path):
    asked: list[Path] = []

    def usage_of(folder: Path) -> Usage:
        asked.append(folder)
        return Usage(100, 40 - len(asked))

    folder = tmp_path / "not" / "yet"
    assert sampled(folder, usage_of) == {
        "blizzard_disk_free_bytes": 39,
        "blizzard_disk_size_bytes": 100,
    }
    assert asked == [tmp_path, tmp_path]
    folder.mkdir(parents=True)
    assert sampled(folder, usage_of)["blizzard_disk_free_bytes"] == 37
    assert asked[-1] == folder


def test_a_bucket_has_no_room_to_tell_of_and_a_broken_disk_tells_nothing(tmp_path: Path):
    def broken(_folder: Path) -> Usage:
        raise OSError("gone")

    assert sampled(None, broken) == {}
    assert all(math.isnan(value) for value in sampled(tmp_path, broken).values())


def test_what_is_known_is_served_from_the_start_and_a_step_shows_when_it_was(tmp_path: Path):
    pages, now = Pages(), [1000.0]
    info = build_info(PartKind.PIPELINE, "pyspark")
    with observed(
        pages.log,
        address="127.0.0.1:0",
        specs=METRICS + PENGUIN,
        parts={EVENTS: 10.0},
        known=lambda: (info, *disk_room([(EVENTS, tmp_path)])),
        seconds=lambda: now[0],
    ) as emit:
        assert pages.value("blizzard_build_info", **info.labels) == 1
        assert (pages.value("blizzard_disk_free_bytes", pipeline="events") or 0) > 0
        assert pages.value("blizzard_last_step_timestamp_seconds", pipeline="events") == 1000
        assert (pages.value("process_resident_memory_bytes") or 0) > 1e6
        now[0] = 1060.0
        emit(StepFinished(who="events", found=False))
        assert pages.value("blizzard_last_step_timestamp_seconds", pipeline="events") == 1060
