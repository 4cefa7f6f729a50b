"""Every surface gives a source file the same state, and counts it by that state."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

from blizzard.answers.answer import LANDED
from blizzard.answers.file_counts import Reconciliation
from blizzard.answers.report import Question, Reconciler
from blizzard.model.stores import open_reader
from tests.support.erasures import FIELDS, Forgetful
from tests.support.live_files import on_the_page

NAME = "a.ndjson"
GOOD, MORE, BAD = {"id": 1, "user": "x"}, {"id": 2, "user": "y"}, {"id": "x", "user": "z"}


@dataclass(frozen=True)
class Case:
    """How a file comes into a state, and what each surface says of it then."""

    make: Callable[[Forgetful], object]
    state: str
    reason: str | None = None
    rows: int = 0
    """Rows of the file's day, as `blizzard files` counts them."""
    bad_lines: int = 0
    """Bad lines of the file that wait in quarantine."""
    day: dict[str, int] = field(default_factory=dict)
    """How `blizzard files` counts the objects that had the name, where that is not one file."""
    source: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    on_page: bool = True
    """Whether the search of the page knows enough for the state: it does not compare objects."""
    unbalanced: str | None = None
    """The difference that `blizzard audit` reports."""


def wait(desk: Forgetful) -> None:
    desk.land(NAME, GOOD, MORE)


def read(desk: Forgetful) -> None:
    wait(desk)
    desk.blizzard()


def commit(desk: Forgetful) -> None:
    read(desk)
    desk.penguin()


def fail(desk: Forgetful) -> None:
    desk.land(NAME, GOOD, BAD)
    desk.ingest()


def mend(desk: Forgetful) -> None:
    fail(desk)
    commit(desk)


def lose(desk: Forgetful) -> None:
    fail(desk)
    (desk.landing.folder / NAME).unlink()
    desk.blizzard()


def give_up(desk: Forgetful) -> None:
    lose(desk)
    done = desk.cli("dlq", "discard", NAME, "--yes")
    assert done.exit_code == 0, done.output


def replay(desk: Forgetful) -> None:
    desk.land(NAME, GOOD, {"id": "2", "user": "y"})
    desk.ingest()
    desk.configure({**FIELDS, "coerce": True})
    done = desk.cli("dlq", "replay", "--all", "--yes")
    assert done.exit_code == 0, done.output
    desk.penguin()


def discard_lines(desk: Forgetful) -> None:
    fail(desk)
    done = desk.cli("dlq", "discard", "--all", "--yes")
    assert done.exit_code == 0, done.output


def retract(desk: Forgetful) -> None:
    commit(desk)
    desk.retract(NAME)


def take_back(desk: Forgetful) -> None:
    retract(desk)
    desk.penguin()


def replace(desk: Forgetful) -> None:
    commit(desk)
    desk.land(NAME, {"id": 9, "user": "n"})
    desk.replace(NAME, by=NAME)


def replace_and_commit(desk: Forgetful) -> None:
    replace(desk)
    desk.penguin()


def erase(desk: Forgetful) -> None:
    commit(desk)
    desk.forget("user = 'x'")


def hold(desk: Forgetful) -> str:
    desk.land("first.ndjson", {"id": 0, "user": "f"})
    desk.ingest()
    schema = {"fields": [{"name": "id", "type": "string"}, FIELDS["fields"][1]]}
    desk.configure(schema)
    known = desk.active
    desk.land(NAME, {"id": "1", "user": "x"})
    desk.ingest()
    desk.configure(FIELDS)
    (held,) = {path.name for path in desk.table.glob("*.parquet")} - known
    return str(held).removesuffix(".parquet")


def discard_held(desk: Forgetful) -> None:
    done = desk.order("discard", hold(desk), "--yes")
    assert done.exit_code == 0, done.output


def redo_held(desk: Forgetful) -> None:
    done = desk.cli("redo", "--held", hold(desk), "--yes")
    assert done.exit_code == 0, done.output


def leave(desk: Forgetful) -> None:
    commit(desk)
    (desk.landing.folder / NAME).unlink()


def change(desk: Forgetful) -> None:
    commit(desk)
    desk.land(NAME, {"id": 3, "user": "changed"})


def repair(desk: Forgetful) -> None:
    commit(desk)
    Path(DeltaTable(str(desk.table)).file_uris()[0]).unlink()
    desk.land("other.ndjson", {"id": 5, "user": "o"})
    desk.ingest()
    done = desk.order("fsck", "--repair", "--yes")
    assert done.exit_code == 0, done.output


def redo_repaired(desk: Forgetful) -> None:
    repair(desk)
    done = desk.cli("redo", "--file", NAME, "--yes")
    assert done.exit_code == 0, done.output


def rewrite(desk: Forgetful) -> None:
    commit(desk)
    desk.land("other.ndjson", {"id": 5, "user": "o"})
    desk.ingest()
    desk.optimize()


def delete(desk: Forgetful, where: str | None = None) -> None:
    """Delete rows as another engine does: all of the table, or those that a condition names."""
    commit(desk)
    DeltaTable(str(desk.table)).delete(where)


def delete_moved(desk: Forgetful) -> None:
    rewrite(desk)
    DeltaTable(str(desk.table)).delete()


def lose_a_version(desk: Forgetful) -> None:
    """Lose the newest version of the log, which penguin's receipt still names."""
    desk.land("other.ndjson", {"id": 5, "user": "o"})
    desk.ingest()
    commit(desk)
    max((desk.table / "_delta_log").glob("*.json")).unlink()


def move(desk: Forgetful) -> None:
    commit(desk)
    new = desk.landing.folder.with_name("moved")
    desk.landing.folder.rename(new)
    desk.landing.folder = new
    document = yaml.safe_load(desk.file.read_text())
    document["pipelines"]["default"]["sources"]["in"]["path"] = str(new)
    desk.file.write_text(yaml.safe_dump(document))
    desk.ends_well()
    done = desk.cli("source", "set", "in", "--same-files", "--yes")
    assert done.exit_code == 0, done.output


REMOVED = "rows_removed"
QUARANTINE = {"error_handling": {"on_bad_record": "quarantine"}}
CASES = {
    "waiting to be read": Case(wait, "waiting"),
    "too young": Case(wait, "waiting", "too_young", source={"min_age_secs": 3600}, on_page=False),
    "read and uncommitted": Case(read, "journaled", rows=2),
    "committed": Case(commit, "in_table", rows=2),
    "failed": Case(fail, "failed", "wrong_type"),
    "failed, then mended": Case(mend, "in_table", rows=2),
    "failed, then deleted": Case(lose, "failed", "wrong_type"),
    "given up": Case(give_up, "discarded", "wrong_type"),
    "bad lines in quarantine": Case(fail, "in_table", rows=1, bad_lines=1, more=QUARANTINE),
    "bad lines replayed": Case(replay, "in_table", rows=2, more=QUARANTINE),
    "bad lines discarded": Case(discard_lines, "in_table", rows=1, more=QUARANTINE),
    "retraction waits": Case(retract, "in_table", rows=2),
    "retracted": Case(take_back, "retracted"),
    "replacement waits": Case(replace, "journaled", rows=3, day={"in_table": 1, "journaled": 1}),
    "replaced": Case(replace_and_commit, "in_table", rows=1),
    "erased": Case(erase, "in_table", rows=2),
    "held": Case(hold, "held", rows=1),
    "held, then discarded": Case(discard_held, "discarded", rows=1),
    "held, then redone": Case(redo_held, "waiting", "redo"),
    "gone from the source": Case(leave, "in_table", rows=2),
    "changed since": Case(
        change, "changed", "changed", rows=2, day={"in_table": 1, "changed": 1}, on_page=False
    ),
    "changed, to be read too": Case(
        change,
        "waiting",
        "changed",
        rows=2,
        day={"in_table": 1, "waiting": 1},
        source={"on_change": "reingest"},
        on_page=False,
    ),
    "after fsck --repair": Case(repair, "removed"),
    "after fsck --repair and redo": Case(redo_repaired, "waiting", "redo"),
    "rewritten by OPTIMIZE": Case(rewrite, "in_table", rows=2),
    "deleted by another engine": Case(delete, "removed", unbalanced=REMOVED),
    "moved, then deleted by another engine": Case(delete_moved, "removed", unbalanced=REMOVED),
    "altered by another engine": Case(
        lambda desk: delete(desk, "id = 1"), "altered", rows=2, unbalanced=REMOVED
    ),
    "the version of the log is lost": Case(
        lose_a_version, "journaled", rows=2, unbalanced="receipt_ahead"
    ),
    "under a moved source": Case(move, "in_table", rows=2),
}


PARAMS = [
    pytest.param(case, marks=pytest.mark.unbalanced(case.unbalanced) if case.unbalanced else ())
    for case in CASES.values()
]


def told(desk: Forgetful, *arguments: str) -> list[dict[str, Any]]:
    output = desk.cli(*arguments, "--output", "json").stdout
    return [json.loads(line) for line in output.splitlines()]


def reconciled(desk: Forgetful) -> Reconciliation:
    reconciler = Reconciler(desk.settings, open_reader, desk.clock)
    return reconciler.reconcile(Question(prefix=NAME))


@pytest.mark.parametrize("case", PARAMS, ids=CASES)
def test_every_surface_gives_the_same_state_and_counts(tmp_path: Path, case: Case) -> None:
    desk = Forgetful(tmp_path, FIELDS, source=case.source, more=case.more)
    case.make(desk)

    (why,) = told(desk, "why", NAME)
    assert why["state"] == case.state, why["answer"]
    assert case.reason in (None, why["reason"])  # It asks the log, which may say more.
    *_, row = told(desk, "files", NAME)
    assert (row["state"], row["reason"]) == (case.state, case.reason)
    assert row["quarantined_lines"] == case.bad_lines
    expected = case.day or {case.state: 1}
    (group,) = reconciled(desk).groups
    assert {state.value: group.states[state] for state in LANDED if group.states[state]} == expected
    assert (group.rows, group.quarantined_lines) == (case.rows, case.bad_lines)

    (status,) = told(desk, "status")
    (source,) = status["sources"]
    is_failed = case.state == "failed"
    assert source["failed_files"] + source["lost_files"] == is_failed
    assert source["changed_files"] == (case.state == "changed")
    is_taken = case.state == "waiting" and case.reason != "too_young"
    assert source["pending_files"] == is_taken
    assert status["quarantine"]["waiting"] == case.bad_lines
    assert bool(status["held_files"]) is (case.state == "held")

    letters = [one for one in told(desk, "dlq", "list") if "lost" in one or "error" in one]
    assert len(letters) == is_failed
    if case.on_page:
        (found,) = on_the_page(desk, NAME)
        assert found.state == case.state


@pytest.mark.parametrize("name", [".hidden.ndjson", "a.ndjson.tmp"])
def test_a_name_that_is_never_read_is_skipped_by_all(tmp_path: Path, name: str) -> None:
    desk = Forgetful(tmp_path, FIELDS)
    desk.land("other.ndjson", GOOD)
    desk.ingest()
    desk.land(name, GOOD)
    (why,) = told(desk, "why", name)
    (found,) = on_the_page(desk, name)
    assert (found.state, found.reason) == (why["state"], why["reason"])
    assert why["state"] == "skipped"
    assert told(desk, "files", name) == []
    (status,) = told(desk, "status")
    assert status["sources"][0]["pending_files"] == 0


def damaged(folder: Path) -> Forgetful:
    """Two pipelines on two tables; the journal of the second cannot be read."""
    desk = Forgetful(folder, FIELDS)
    commit(desk)
    document = yaml.safe_load(desk.file.read_text())
    other = {**document["pipelines"]["default"], "sink": {"path": str(folder / "other")}}
    other["sources"] = {"in": {"path": str(folder / "elsewhere")}}
    (folder / "elsewhere").mkdir()
    document["pipelines"]["broken"] = other
    desk.file.write_text(yaml.safe_dump(document))
    journal = folder / "other/_blizzard/broken/journal"
    journal.mkdir(parents=True)
    (journal / f"{0:020d}.json").write_text("{")
    return desk


@pytest.mark.unbalanced("entry_unreadable")
def test_a_pipeline_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """`why` failed since another pipeline's journal could not be read."""
    desk = damaged(tmp_path)
    done = desk.cli("why", NAME)
    assert done.exit_code == 0, done.output
    assert "in_table" in done.stdout
    assert "pipeline broken was not searched" in done.stderr
    unknown = desk.cli("why", "nothing-like-it")
    assert unknown.exit_code == 1
    assert "pipeline broken" in unknown.output or "cannot be" in unknown.output
