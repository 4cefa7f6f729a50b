"""Page, API and commands say the same of a pipeline in every state."""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from blizzard.answers.answer import Answer
from blizzard.config import load as blizzard_config
from blizzard.journal.lease import LeaseRecord, encode_lease, this_machine
from lakebed.clock import Clock
from lakebed.errors import StoreUnavailable
from lakebed.layout import journal_entry, writer
from lakebed.storage.store import Reader
from lakebed.telemetry.health import PartKind
from liveview.answers import Answers
from liveview.lake import joined
from liveview.live import Live
from liveview.model import Overview, PipelineSummary
from liveview.observer import Observer
from liveview.terminal.screen import View, screen
from penguin.config import load as penguin_config
from tests.integration.blizzard import test_one_lifecycle as files
from tests.integration.blizzard.test_one_lifecycle import GOOD, NAME, QUARANTINE, told
from tests.support.erasures import FIELDS, Forgetful
from tests.support.live_lake import PATIENT

QUICK = {"poll_interval_secs": 0.001}
SOON = {"late_after_secs": 0.001}
"""Everything that waits is late."""


@dataclass(frozen=True)
class Case:
    """How a pipeline comes into a state, and what every surface says of it then."""

    make: Callable[[Forgetful], object]
    state: str
    health: str = "ok"
    problems: tuple[str, ...] = ()
    more: dict[str, Any] | None = None
    unbalanced: tuple[str, ...] = ()
    """The differences that `blizzard audit` reports."""


def edit(desk: Forgetful, change: Callable[[dict[str, Any]], object]) -> None:
    document = yaml.safe_load(desk.file.read_text())
    change(document)
    desk.file.write_text(yaml.safe_dump(document))


def impatient(make: Callable[[Forgetful], object]) -> Callable[[Forgetful], None]:
    """Call everything late that waits."""

    def made(desk: Forgetful) -> None:
        make(desk)
        edit(desk, lambda found: found["pipelines"]["default"]["sink"].update(SOON))
        time.sleep(0.01)

    return made


def one_more(desk: Forgetful) -> None:
    files.commit(desk)
    desk.land("b.ndjson", GOOD)
    desk.blizzard()


def catching_up(desk: Forgetful) -> None:
    """One entry was just committed, and another has waited for longer than penguin's polls."""
    one_more(desk)
    edit(desk, lambda found: found["tables"]["t"].update(poll_interval_secs=0.001))
    time.sleep(0.01)


def read_on(desk: Forgetful) -> None:
    """One file was just read, and another has waited for longer than blizzard's polls."""
    desk.land("b.ndjson", GOOD)
    desk.ingest()
    desk.land(NAME, GOOD)
    rolling = {"rollover_timeout_secs": 0.001, "inactivity_timeout_secs": 0.001}
    edit(desk, lambda found: found["pipelines"]["default"]["sink"].update(rolling))
    edit(desk, lambda found: found["pipelines"]["default"]["sources"]["in"].update(QUICK))
    time.sleep(0.01)


def died(desk: Forgetful) -> None:
    files.commit(desk)
    kill(desk)


def killed_while_reading(desk: Forgetful) -> None:
    """A batch was just read, others wait for long, and the process is gone."""
    read_on(desk)
    kill(desk)


def kill(desk: Forgetful) -> None:
    """Leave the note of a process that is gone."""
    machine = this_machine()
    note = LeaseRecord(
        run="r",
        turn=1,
        host=machine.host,
        process=os.getpid(),
        machine=machine.id,
        born="another process",
        since="2024-01-01T00:00:00+00:00",
        every=10.0,
    )
    (desk.table / writer("default")).write_bytes(encode_lease(note))


def rename(desk: Forgetful) -> None:
    files.commit(desk)
    desk.file.write_text(
        re.sub(r"^  default:", "  sales:", desk.file.read_text(), flags=re.MULTILINE)
    )


def rename_late(desk: Forgetful) -> None:
    impatient(nothing)(desk)
    rename(desk)


def damage(desk: Forgetful) -> None:
    files.commit(desk)
    (desk.table / journal_entry("default", 1)).write_bytes(b"{")


def lose_the_source(desk: Forgetful) -> None:
    files.commit(desk)
    (desk.landing.folder / NAME).unlink()
    desk.landing.folder.rmdir()
    desk.landing.folder.write_text("no folder any more")


def move_without_a_word(desk: Forgetful) -> None:
    files.commit(desk)
    other = desk.landing.folder.with_name("other")
    other.mkdir()
    edit(desk, lambda found: found["pipelines"]["default"]["sources"]["in"].update(path=str(other)))


def nothing(_desk: Forgetful) -> None:
    """Leave everything as it was configured."""


def opened(desk: Forgetful) -> None:
    desk.blizzard()


def commits_itself(desk: Forgetful) -> None:
    edit(desk, lambda found: found["pipelines"]["default"]["sink"].update(commit="inline"))
    files.wait(desk)


CASES = {
    "never started": Case(nothing, "idle"),
    "never started, files are there": Case(files.wait, "to_read"),
    "blizzard is dead, and files are late": Case(
        impatient(files.wait), "to_read", "failing", ("files_late",)
    ),
    "nothing to read yet": Case(opened, "idle"),
    "penguin was never started": Case(files.read, "to_commit"),
    "penguin was never started, and entries are late": Case(
        impatient(files.read), "to_commit", "failing", ("commit_late",)
    ),
    "penguin has died, and entries are late": Case(
        impatient(one_more), "to_commit", "failing", ("commit_late",)
    ),
    "penguin is catching up": Case(catching_up, "to_commit", "warning", ("commit_behind",)),
    "blizzard is catching up": Case(read_on, "to_read", "warning", ("files_behind",)),
    "blizzard was killed, and files are late": Case(
        killed_while_reading, "to_read", "warning", ("files_late", "writer_died")
    ),
    "blizzard has died": Case(died, "idle", "warning", ("writer_died",)),
    "fresh": Case(files.commit, "idle"),
    "blizzard commits, and has not run": Case(commits_itself, "to_read"),
    "held": Case(files.hold, "idle", "failing", ("schema_refused",)),
    "held, then discarded": Case(files.discard_held, "idle"),
    "a file failed": Case(files.fail, "idle", "warning", ("wrong_type",)),
    "a failed file is gone": Case(files.lose, "to_commit", "warning", ("files_lost",)),
    "a failed file was given up": Case(files.give_up, "to_commit"),
    "bad lines": Case(files.fail, "idle", "warning", ("bad_lines_waiting",), QUARANTINE),
    "bad lines replayed": Case(files.replay, "idle", more=QUARANTINE),
    "bad lines discarded": Case(files.discard_lines, "to_commit", more=QUARANTINE),
    "a retraction waits": Case(files.retract, "to_commit"),
    "retracted": Case(files.take_back, "idle"),
    "a file changed": Case(files.change, "idle", "warning", ("changed",)),
    "rows were deleted by another engine": Case(files.delete, "idle", unbalanced=(files.REMOVED,)),
    "a version of the log is lost": Case(
        impatient(files.lose_a_version),
        "to_commit",
        "failing",
        ("log_rolled_back",),
        unbalanced=("receipt_ahead",),
    ),
    "renamed": Case(rename, "to_read", "failing", ("journal_lost",)),
    "renamed, and files are late": Case(rename_late, "to_read", "failing", ("journal_lost",)),
    "an entry is damaged": Case(
        damage,
        "idle",
        "failing",
        ("document_unreadable",),
        unbalanced=("entry_unreadable", "file_unnamed"),
    ),
    "the source does not answer": Case(lose_the_source, "idle", "failing", ("source_moved",)),
    "the source was moved": Case(move_without_a_word, "idle", "failing", ("source_moved",)),
    "under a moved source": Case(files.move, "to_commit"),
}
PARAMS = [
    pytest.param(case, marks=pytest.mark.unbalanced(*case.unbalanced)) for case in CASES.values()
]


@contextmanager
def looking(desk: Forgetful) -> Iterator[Answers]:
    """Answer as the page's server does in a program that runs and has nothing to do."""
    lake = joined(
        blizzard_config.load([desk.file], [], {}), penguin_config.load([desk.file], [], {})
    )
    clock = Clock()
    live = Live("blizzard", version="0", seconds=clock.seconds)
    for name in lake.pipelines:
        live.expect(PartKind.PIPELINE, name)
    observer = Observer(lake, live, "blizzard", clock=clock, patience=PATIENT)
    observer.overview()
    observer.settle(PATIENT.first)
    try:
        yield Answers(observer)
    finally:
        observer.close()


def drawn(overview: Overview) -> str:
    """Return the screen of `blizzard top`."""
    console = Console(width=200, markup=False, highlight=False, emoji=False)
    view = View(chosen=overview.pipelines[0].name)
    with console.capture() as captured:
        console.print(screen(overview, view, now=datetime.now(UTC), width=200))
    return captured.get()


def counts_of(status: dict[str, Any]) -> dict[str, int]:
    sources = status["sources"]
    return {
        "waiting_files": sum(one["pending_files"] or 0 for one in sources),
        "uncommitted_entries": status["uncommitted_entries"],
        "failed_files": sum(one["failed_files"] for one in sources),
        "changed_files": sum(one["changed_files"] or 0 for one in sources),
        "quarantined_lines": status["quarantine"]["waiting"],
    }


def page_agrees_with_status(page: PipelineSummary, status: dict[str, Any]) -> None:
    codes = {one.code for one in page.problems}
    if status["error"] is not None:
        assert status["code"] in codes
        return
    late = [(one.code, one.severity, one.message) for one in page.problems if _is_late(one.code)]
    assert late == [(one["code"], one["severity"], one["message"]) for one in status["late"]]
    shown = {key: getattr(page, key) or 0 for key in counts_of(status)}
    assert shown == counts_of(status)
    assert bool(page.held_entries) is bool(status["held_files"])
    assert any(one["error"] for one in status["sources"]) is ("source_unlisted" in codes)


def _is_late(code: str) -> bool:
    return code.endswith(("_late", "_behind"))


@pytest.mark.parametrize("case", PARAMS, ids=CASES)
def test_every_surface_says_the_same_of_a_pipeline(tmp_path: Path, case: Case) -> None:
    desk = Forgetful(tmp_path, FIELDS, more=case.more or {})
    case.make(desk)
    with looking(desk) as answers:
        overview = answers.overview()
        (page,) = overview.pipelines
        codes = tuple(one.code for one in page.problems)
        assert (page.state, page.health, codes) == (case.state, case.health, case.problems)
        causes = Counter(one.problem.code for one in overview.problems)
        assert set(causes.values()) <= {1}, "a cause is one problem"
        top = drawn(overview)
        assert all(f"{one.code}: " in top for one in page.problems)
        (status,) = told(desk, "status")
        page_agrees_with_status(page, status)
        if status["error"] is not None:
            return
        (reported,) = told(desk, "files")
        days = {one["name"]: (one["landed"], one["standing"]) for one in reported["groups"]}
        known = {
            one.name: (one.landed, one.standing) for one in answers.days(page.name, limit=31).days
        }
        assert known == days
        if known and page.name == "default":
            journey: Answer = answers.journey(page.name, path=f"in:{NAME}")
            (why,) = told(desk, "why", NAME)
            assert (journey.state, journey.reason) == (why["state"], why["reason"])


def test_the_verdict_on_yesterday_is_that_of_the_days(tmp_path: Path) -> None:
    desk = Forgetful(tmp_path, FIELDS)
    files.wait(desk)
    yesterday = time.time() - 86_400
    os.utime(desk.landing.folder / NAME, (yesterday, yesterday))
    desk.ingest()
    with looking(desk) as answers:
        before = answers.overview().pipelines[0].yesterday
        files.fail(desk)
        os.utime(desk.landing.folder / NAME, (yesterday, yesterday))
        days = answers.days("default", limit=31).days
        day = next(one for one in days if one.name == before.day)
        after = answers.overview().pipelines[0].yesterday
    assert (before.standing, after.standing) == ("complete", day.standing)
    assert json.dumps(after.sentence) == json.dumps(day.sentence)


def test_a_store_that_does_not_answer_leaves_a_pipeline_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_reader: Reader, path: str) -> None:
        raise StoreUnavailable("no answer", path=path)

    desk = Forgetful(tmp_path, FIELDS)
    files.commit(desk)
    with monkeypatch.context() as broken:
        broken.setattr(Reader, "get", silent)
        broken.setattr(Reader, "fetch", silent)
        with looking(desk) as answers:
            (page,) = answers.overview().pipelines
        (status,) = told(desk, "status")
    assert (page.state, page.health) == ("idle", "failing")
    page_agrees_with_status(page, status)


def test_without_a_pipeline_nothing_is_said_to_be_well(tmp_path: Path) -> None:
    desk = Forgetful(tmp_path, FIELDS)
    files.commit(desk)
    lake = joined(None, penguin_config.load([desk.file], [], {}))
    clock = Clock()
    observer = Observer(
        lake, Live("penguin", version="0", seconds=clock.seconds), "penguin", clock=clock
    )
    found = observer.overview()
    observer.close()
    assert found.pipelines == []
    assert "blizzard audit" in (found.headline.covers or "")
