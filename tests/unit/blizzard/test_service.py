"""A run of blizzard: pipelines side by side, of which none stops another."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from blizzard.journal.lease import read_lease
from blizzard.model.settings import BlizzardSettings, PipelineSettings, RollingPolicy
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.service import Service
from lakebed.errors import DocumentUnreadable, ObjectMissing
from lakebed.polling import Stop
from lakebed.telemetry.events import Event, StepFailed
from tests.support.builders import ndjson, pipeline_settings, put, rows
from tests.support.runner import InsideService
from tests.support.stores import local


@dataclass
class Inside(InsideService):
    """Runs units in this process, and remembers what they were told."""

    told: list[Work] = field(default_factory=list)
    panics: str = ""

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        self.told.append(work)
        if work.marks["pipeline"] == self.panics:
            raise Panic
        return super().run(units, work)


class Panic(BaseException):
    """What a library does that is beyond itself."""


def pipeline(root: Path, name: str, files: int = 1, **given: Any) -> PipelineSettings:
    for number in range(files):
        put(root / name, f"{number}.ndjson", ndjson(rows(3)))
    return pipeline_settings(root / name, root / f"{name}-table", name=name, **given)


def run_of(
    *pipelines: PipelineSettings, once: bool = True, on: Inside | None = None, **given: Any
) -> Service:
    runner = on or Inside()
    usual: dict[str, Any] = {
        "emit": lambda _event: None,
        "stop": Stop(),
        "make_runner": lambda _spark, **_told: runner,
    }
    settings = BlizzardSettings(pipelines=pipelines, **given.pop("settings", {}))
    return Service(settings=settings, once=once, **(usual | given))


def test_however_one_ends_the_others_are_done_and_the_results_tell_the_truth(tmp_path: Path):
    """A missing folder, a corrupt journal and a failed file, beside two that are well."""
    put(tmp_path / "corrupt-table/_blizzard/corrupt/journal", f"{0:020d}.json", b"{")
    put(tmp_path / "limited", "bad.ndjson", b"{oops\n")
    results = run_of(
        pipeline(tmp_path, "missing", 0),
        pipeline(tmp_path, "corrupt"),
        pipeline(tmp_path, "limited", max_failures=1),
        pipeline(tmp_path, "one"),
        pipeline(tmp_path, "two", 2),
    ).run()
    found = {each.settings.name: each for each in results}

    assert isinstance(found["missing"].error, ObjectMissing)
    assert isinstance(found["corrupt"].error, DocumentUnreadable)
    assert "max_failures" in str(found["limited"].error)
    assert found["limited"].statistics.files_processed == 1
    assert [found[name].error for name in ("one", "two")] == [None, None]
    assert found["two"].statistics.files_processed == 2


def test_one_stop_wakes_everybody_who_waits(tmp_path: Path) -> None:
    """A poll, a wait after a failure and a jittered first look, each of an hour (HOLES L02)."""
    stop = Stop()
    failed, waits = threading.Event(), []

    def emit(event: Event) -> None:
        waits.append(event)
        if isinstance(event, StepFailed):
            failed.set()

    hour = {"poll_jitter": 3600.0}
    polls = pipeline(tmp_path, "polls", 0)
    (tmp_path / "polls").mkdir()
    missing = pipeline(tmp_path, "missing", 0)
    jittered = run_of(polls, once=False, stop=stop, settings=hour, chance=lambda: 1.0)
    both = run_of(polls, missing, once=False, stop=stop, emit=emit)
    threads = [threading.Thread(target=each.run) for each in (jittered, both)]
    for thread in threads:
        thread.start()
    assert failed.wait(300)
    stop.request()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()


def test_the_note_says_that_a_run_has_ended_also_where_it_ended_in_an_error(tmp_path: Path) -> None:
    """So the next start waits for nobody."""
    put(tmp_path / "limited", "bad.ndjson", b"{oops\n")
    run_of(pipeline(tmp_path, "limited", max_failures=1)).run()
    found = read_lease(local(tmp_path / "limited-table"), "limited")

    assert found is not None
    assert found.ended


def test_a_wait_for_the_store_ends_with_a_stop(tmp_path: Path) -> None:
    """The journal's tries are not slept through."""
    stop = Stop()
    rolling = RollingPolicy(inactivity=0.0)
    settings = pipeline(tmp_path, "one")
    settings = replace(settings, sink=replace(settings.sink, rolling=rolling))
    made = run_of(settings, stop=stop)
    built = made._pipeline(settings, Inside(), lambda _event: None, "run-1")
    stop.request()

    assert built.pause(3600.0) is True
