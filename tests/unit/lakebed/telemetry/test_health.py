"""Whether a pipeline or table is well, and what a program says of its machine."""

import platform
from importlib.metadata import version
from typing import Any

import pytest

from blizzard.metrics import METRICS
from lakebed.telemetry.events import StepFailed, StepFinished
from lakebed.telemetry.health import (
    STUCK_AFTER_POLLS,
    STUCK_AFTER_SECS,
    Health,
    HealthChange,
    HealthPart,
    Mark,
    PartKind,
)
from lakebed.telemetry.metrics_server import build_info, observed
from penguin.telemetry import METRICS as PENGUIN
from tests.support.scrape import Pages

EVENTS = HealthPart(PartKind.PIPELINE, "events")
TABLE = HealthPart(PartKind.TABLE, "orders")
WELL = StepFinished(who="events", found=False)


class Watched(Health):
    """A health whose clock a test moves, and that hears events."""

    def __init__(self, interval: float = 10.0) -> None:
        self.now = 1_704_110_400.0
        super().__init__(lambda: self.now)
        self.expect(EVENTS, interval=interval)

    def hears(self, *events) -> "Watched":
        for event in events:
            for sign in event.health_changes():
                self.note(sign)
        return self

    def after(self, seconds: float) -> "Watched":
        self.now += seconds
        return self

    def events(self) -> Any:
        return self.report()["pipelines"]["events"]


def failed(**given) -> StepFailed:
    usual: dict[str, Any] = {"code": "store_denied", "error": "no", "next_try_secs": 1.0}
    return StepFailed(who="events", **(usual | given))


def test_a_pipeline_is_well_while_it_starts_and_after_a_step():
    health = Watched()
    assert (health.report()["status"], health.events()["status"]) == ("ok", "starting")
    health.hears(WELL)
    assert (health.report()["status"], health.events()["status"]) == ("ok", "ok")
    assert health.events()["last_step"] == "2024-01-01T12:00:00+00:00"


def test_a_failed_step_is_told_with_its_reason_and_the_time_of_the_first_failure():
    health = (
        Watched().hears(WELL).after(5).hears(failed()).after(60).hears(failed(error="still no"))
    )
    assert health.report()["status"] == "failing"
    assert health.events() == {
        "status": "failing",
        "last_step": "2024-01-01T12:00:00+00:00",
        "code": "store_denied",
        "reason": "still no",
        "since": "2024-01-01T12:00:05+00:00",
    }


def test_an_error_that_ended_it_is_never_forgotten():
    health = Watched().hears(failed(next_try_secs=None)).after(1e6)
    assert (health.report()["status"], health.events()["status"]) == ("failing", "ended")


@pytest.mark.parametrize(
    ("interval", "patience"), [(10.0, STUCK_AFTER_POLLS * 10.0), (0.1, STUCK_AFTER_SECS)]
)
def test_it_is_stuck_when_no_step_ends_for_many_polls_but_never_before_a_minute(interval, patience):
    health = Watched(interval).hears(WELL).after(patience)
    assert health.report()["status"] == "ok"
    health.after(1)
    assert health.report()["status"] == "failing"
    assert health.events()["status"] == "stuck"
    assert health.hears(WELL).report()["status"] == "ok"


def test_a_batch_may_take_as_long_as_it_takes():
    health = Watched().hears(WELL)
    health.note(HealthChange(Mark.WORKING, EVENTS))
    assert health.after(1e6).report()["status"] == "ok"
    health.hears(WELL).after(1e6)
    assert health.events()["status"] == "stuck"


def test_the_text_of_an_error_that_nobody_foresaw_is_not_shown():
    health = Watched().hears(failed(code="internal_error", error="https://user:hunter2@host"))
    assert "hunter2" not in str(health.report())


def test_what_only_makes_a_pipeline_slower_is_told_and_leaves_it_healthy():
    health = Watched().hears(WELL)
    health.note(HealthChange(Mark.DEGRADED, EVENTS, "notifications", "queue_denied", "refused"))
    health.after(60).note(
        HealthChange(Mark.DEGRADED, EVENTS, "notifications", "queue_unavailable", "no answer")
    )
    assert health.report()["status"] == "ok"
    assert health.events()["status"] == "ok"
    assert health.events()["degraded"] == {
        "notifications": {
            "code": "queue_unavailable",
            "reason": "no answer",
            "since": "2024-01-01T12:00:00+00:00",
        }
    }
    health.hears(WELL)
    assert "degraded" in health.events(), "a good step says nothing of it"
    health.note(HealthChange(Mark.MENDED, EVENTS, "notifications"))
    assert "degraded" not in health.events()


def test_the_versions_are_those_that_run():
    info = build_info(PartKind.PIPELINE, "pyspark")
    assert (info.name, info.value) == ("blizzard_build_info", 1)
    assert info.labels == {
        "version": version("blizzard-penguin"),
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
    }
    assert set(build_info(PartKind.TABLE).labels) == {"version", "python"}


def test_what_is_known_is_served_from_the_start_and_a_step_shows_when_it_was():
    pages, now = Pages(), [1000.0]
    info = build_info(PartKind.PIPELINE, "pyspark")
    with observed(
        pages.log,
        address="127.0.0.1:0",
        specs=METRICS + PENGUIN,
        parts={EVENTS: 10.0},
        known=lambda: [info],
        seconds=lambda: now[0],
    ) as emit:
        assert pages.value("blizzard_build_info", **info.labels) == 1
        assert pages.value("blizzard_last_step_timestamp_seconds", pipeline="events") == 1000
        assert (pages.value("process_resident_memory_bytes") or 0) > 1e6
        now[0] = 1060.0
        emit(StepFinished(who="events", found=False))
        assert pages.value("blizzard_last_step_timestamp_seconds", pipeline="events") == 1060
