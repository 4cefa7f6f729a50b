"""Every command that rewrites files, beside other writers: all of it is done or nothing."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from blizzard.pipeline_log import PipelineLog
from blizzard.repair.gc import find_garbage
from lakebed.deltalog.files import named_files
from lakebed.errors import TableUnsupported
from penguin.delta.table import Log, WritableTable
from penguin.events.commits import EntryRejected
from tests.support.builders import entries
from tests.support.compactions import Crowded, crowded
from tests.support.erasures import USER
from tests.support.pipelines import pipeline_of
from tests.support.promotions import ID
from tests.support.runner import InProcessRunner, RewriteRace

PRICE = {"name": "price", "type": "int64"}
SCHEMA = {"fields": [ID, USER], "provenance": ["file"]}
BEFORE: list[tuple[int, int | None]] = [(1, None), (2, None), (3, None), (4, None)]
AT_ONCE, A_DAY = timedelta(0), timedelta(days=1)


def lands_new_content(desk: Crowded) -> None:
    desk.land("b.ndjson", {"id": 20, "user": "y"})


def replaces_what_changes(desk: Crowded) -> None:
    desk.source["on_change"] = "replace"
    desk.configure(SCHEMA)
    lands_new_content(desk)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A command on a table with rows 1 and 2 in one file, 3 and 4 in another."""

    run: Callable[[Crowded, InProcessRunner], Any]
    after: list[tuple[int, int | None]]
    """The ids and prices of the rows once it is committed."""
    says: str
    """What penguin says of one that it rejects."""
    shown: str = "rejected: nothing in the table was changed"
    """What the journal says of it."""
    kind: str = "retract"
    """The kind of its entry."""
    prepare: Callable[[Crowded], None] = lambda _desk: None


OPERATIONS = {
    "retract": Operation(
        run=lambda desk, runner: desk.retract("b.ndjson", runner=runner),
        after=[(1, None), (3, None), (4, None)],
        says="run blizzard retract",
    ),
    "replace": Operation(
        prepare=lands_new_content,
        run=lambda desk, runner: desk.replace("b.ndjson", by="b.ndjson", runner=runner),
        after=[(1, None), (3, None), (4, None), (20, None)],
        says="run blizzard retract",
    ),
    "on_change": Operation(
        prepare=replaces_what_changes,
        run=lambda desk, runner: desk.blizzard(runner=runner),
        after=[(1, None), (3, None), (4, None), (20, None)],
        says="run blizzard retract",
    ),
    "erase": Operation(
        run=lambda desk, runner: desk.erase("id = 2", runner=runner),
        after=[(1, None), (3, None), (4, None)],
        says="run blizzard erase again",
        kind="erase",
    ),
    "compact": Operation(
        run=lambda desk, runner: desk.compact(runner=runner),
        after=BEFORE,
        says="was not applied",
        kind="compact",
        shown="rejected in favour of another writer",
    ),
    "promote": Operation(
        prepare=lambda desk: desk.configure({**SCHEMA, "fields": [ID, USER, PRICE]}),
        run=lambda desk, runner: desk.promote("price", runner=runner),
        after=[(1, 10), (2, 20), (3, 30), (4, 40)],
        says="run blizzard schema promote again",
        kind="promote",
    ),
}
each_operation = pytest.mark.parametrize("name", OPERATIONS)
each_command = pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "on_change"])


def begun(folder: Path, name: str, **sink: Any) -> tuple[Crowded, Operation]:
    operation = OPERATIONS[name]
    desk = crowded(folder, SCHEMA, files=0, compact={"min_files": 2}, **sink)
    for number, file in enumerate("abcd", start=1):
        desk.land(f"{file}.ndjson", {"id": number, "user": "x", "price": 10 * number})
        if file in "bd":
            desk.ingest()
    operation.prepare(desk)
    return desk, operation


def seen(desk: Crowded) -> list[tuple[int, int | None]]:
    return [(row["id"], row.get("price")) for row in desk.rows()]


def optimize(desk: Crowded) -> None:
    DeltaTable(str(desk.table)).optimize.compact()


def delete(desk: Crowded) -> None:
    DeltaTable(str(desk.table)).delete("id = 1")


def becomes_append_only(desk: Crowded) -> None:
    DeltaTable(str(desk.table)).alter.set_table_properties({"delta.appendOnly": "true"})


def garbage(desk: Crowded, older_than: timedelta = AT_ONCE) -> tuple[set[str], set[str]]:
    sink = desk.settings.sink
    found = find_garbage(
        desk.store,
        "default",
        lambda: named_files(sink.table_uri, sink.storage_options),
        now=desk.clock.now(),
        older_than=older_than,
        fates=PipelineLog(desk.settings).fates,
    )
    return {one.path for one in found.garbage}, {one.path for one in found.young}


def shown(desk: Crowded, *words: str) -> Any:
    return json.loads(desk.cli("journal", *words, "--output", "json").stdout.splitlines()[0])


def and_of_commands(first: Any, *others: Any) -> Any:
    """Every operation with the first circumstance, every command with the others.

    `on_change` writes the entry that replacing by hand does.
    """
    return pytest.mark.parametrize(
        ("name", "given"),
        [
            (name, one)
            for one in (first, *others)
            for name in OPERATIONS
            if one is first or name != "on_change"
        ],
    )


@and_of_commands("journal", "staging", "direct")
def test_every_hand_off_takes_it(tmp_path: Path, name: str, given: str) -> None:
    desk, operation = begun(tmp_path, name, handoff=given)
    operation.run(desk, InProcessRunner())
    assert seen(desk) == BEFORE
    assert "waits" in desk.cli("journal", "list").stdout
    assert garbage(desk) == (set(), set()), "what waits for its commit is kept"
    desk.penguin()
    assert seen(desk) == operation.after
    assert len(desk.active) == 1 or name != "compact"
    assert shown(desk, "list")["rejected"] is False
    assert "rejected" not in desk.cli("journal", "list").stdout
    assert garbage(desk) == (set(), set())


@each_command
def test_a_table_from_which_nothing_may_be_removed_is_refused(tmp_path: Path, name: str) -> None:
    desk, operation = begun(tmp_path, name)
    becomes_append_only(desk)
    with pytest.raises(TableUnsupported, match=r"delta\.appendOnly"):
        operation.run(desk, InProcessRunner())


@and_of_commands(optimize, delete, becomes_append_only)
@pytest.mark.unbalanced("rows_removed")
def test_another_program_that_comes_before_penguin_wins(
    tmp_path: Path, name: str, given: Callable[[Crowded], None]
) -> None:
    """The table stays as it is, the new files are garbage, and the command can be run again."""
    desk, operation = begun(tmp_path, name)
    operation.run(desk, InProcessRunner())
    *_others, entry = entries(desk.table)
    number, files = str(entry.sequence), {file.filename for file in entry.data_files}
    given(desk)
    left = seen(desk)
    assert garbage(desk) == (set(), set()), "penguin has yet to decide"
    (told,) = desk.events_of_penguin(EntryRejected)
    assert operation.says in told.sentence()
    assert seen(desk) == left
    assert desk.events_of_penguin(EntryRejected) == []

    document = shown(desk, "show", number)
    assert (document["committed"], document["rejected"]) == (True, True)
    assert shown(desk, "list")["rejected"] is True
    assert "rejected" in desk.cli("journal", "list").stdout
    said = desk.cli("journal", "show", number).stdout
    assert operation.shown in " ".join(said.split())
    assert shown(desk, "show", "1")["rejected"] is False
    assert garbage(desk, A_DAY) == (set(), files)
    assert garbage(desk) == (files, set())
    done = desk.cli("gc", "--delete", "--older-than", "0s", "--output", "json")
    assert {one["path"] for one in json.loads(done.stdout)["pieces"]} == files
    assert not any((desk.table / one).exists() for one in files)
    if given is not becomes_append_only:
        operation.run(desk, InProcessRunner())
        desk.penguin()
        assert seen(desk) == [row for row in operation.after if row[0] != 1 or given is optimize]


@each_operation
def test_another_program_that_comes_between_plan_and_commit_is_noticed(
    tmp_path: Path, name: str
) -> None:
    desk, operation = begun(tmp_path, name)
    operation.run(desk, InProcessRunner())
    tries: list[object] = []

    class Late(WritableTable):
        def commit(self, *given: Any, **named: Any) -> None:
            if named["removes"]:
                if not tries:
                    optimize(desk)
                tries.append(given)
            super().commit(*given, **named)

    class LateLog(Log):
        opened = Late

    assert len(desk.events_of_penguin(EntryRejected, LateLog)) == 1
    assert len(tries) == 1
    assert seen(desk) == BEFORE


def lands(desk: Crowded) -> None:
    desk.land("e.ndjson", {"id": 5, "user": "x", "price": 50})


def kinds(desk: Crowded) -> list[str]:
    return [entry.kind for entry in entries(desk.table)]


@each_command
@pytest.mark.parametrize("first", ["batch", "command"])
def test_a_batch_that_runs_meanwhile_does_no_harm_whichever_is_journaled_first(
    tmp_path: Path, name: str, first: str
) -> None:
    desk, operation = begun(tmp_path, name)
    lands(desk)
    if first == "batch":
        operation.run(desk, RewriteRace(after=desk.blizzard, times=1))
    else:

        class Beside(InProcessRunner):
            def run(self, *given: Any) -> Any:
                done = super().run(*given)
                operation.run(desk, InProcessRunner())
                return done

        desk.ends_well()
        assert pipeline_of(desk.settings, Beside()).step()
    expected = ["batch", operation.kind]
    assert kinds(desk)[-2:] == (expected if first == "batch" else expected[::-1])
    assert desk.events_of_penguin(EntryRejected) == []
    price = 50 if name == "promote" else None
    assert seen(desk) == sorted([*operation.after, (5, price)])
    assert len(desk.active) == 2 or name != "compact"


@pytest.mark.parametrize("name", ["retract", "replace", "erase", "promote"])
def test_files_that_another_program_rewrites_meanwhile_are_rewritten_again(
    tmp_path: Path, name: str
) -> None:
    desk, operation = begun(tmp_path, name)
    operation.run(desk, RewriteRace(after=lambda: optimize(desk), times=1))
    assert seen(desk) == BEFORE
    assert desk.events_of_penguin(EntryRejected) == []
    assert seen(desk) == operation.after


@pytest.mark.parametrize("name", ["retract", "erase"])
@pytest.mark.unbalanced("rows_back")
def test_an_audit_finds_rows_that_have_come_back(tmp_path: Path, name: str) -> None:
    desk, operation = begun(tmp_path, name)
    before = desk.version
    operation.run(desk, InProcessRunner())
    desk.penguin()
    DeltaTable(str(desk.table)).restore(before)
    (found,) = [one for one in desk.audited().differences if one.kind == "rows_back"]
    assert "took 1 row" in found.message
