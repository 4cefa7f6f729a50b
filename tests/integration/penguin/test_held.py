"""Files that are held: once, whoever dies when, and whatever an operator orders."""

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from deltalake import Field as DeltaField
from deltalake.schema import PrimitiveType
from typer.testing import CliRunner

from lakebed.clock import Clock
from lakebed.errors import CommitUnconfirmed
from lakebed.layout import TablePath, held_meta, held_transaction, outbox
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.types import Evolution, Handoff
from penguin.cli.app import app
from penguin.committer import NOT_MOVED
from penguin.delta.table import Log
from penguin.events.backlog import FilesAtRisk
from penguin.operate.release import HeldFileOperations, NotHeld
from penguin.pipeline import TableRun
from tests.support import penguin_commands
from tests.support.dying import Died, dying, lives
from tests.support.tables import (
    EVENTS,
    WIDER,
    Penguin,
    TableDirectory,
    after_opening,
    opened,
    rows_of,
)

STRICT, MERGE = Evolution.STRICT, Evolution.MERGE


def penguin(table, mode=STRICT, **more):
    return Penguin(table, options={"evolution": mode}, **more)


def order(table, mode=STRICT):
    return HeldFileOperations(
        settings=table.settings(evolution=mode),
        store=table.store,
        clock=Clock(),
        pause=lambda _seconds: None,
    )


def with_held(table, *ids):
    """Commit one row, then have one file per id held."""
    journal = table.journal()
    journal.batch(rows_of(1))
    penguin(table).drain()
    journal.schema = WIDER
    entry = journal.batch(*(rows_of(number) for number in ids))
    penguin(table).drain()
    journal.schema = EVENTS
    return [one.filename.rpartition("/")[2].removesuffix(".parquet") for one in entry.files]


def mark(table, name):
    return opened(Log(table.store)).transaction(held_transaction(name))


def test_a_held_file_that_a_twin_took_and_compacted_is_not_released_again(table):
    """D18: the mark in the log decides, not the meta nor the active files."""
    (name,) = with_held(table, 2)
    meta = table.store.get(held_meta(name))
    penguin(table, MERGE).drain()
    table.delta().optimize.compact()
    table.store.replace(held_meta(name), meta)
    with pytest.raises(NotHeld):
        order(table, MERGE).release(frozenset({name}))
    penguin(table, MERGE).drain()
    assert table.ids() == [1, 2]
    assert table.store.head(held_meta(name)) is None


def test_a_held_meta_whose_commit_was_never_made_means_nothing(table):
    """The process died between the meta and the commit, and a twin commits the entry whole."""
    table.journal().batch(rows_of(1))
    penguin(table).drain()
    table.journal().schema = WIDER
    table.journal().batch(rows_of(2))

    class Gone(Log):
        def open(self):
            if list((table.root / "_staging").glob("held/*")):
                raise Died
            return super().open()

    with pytest.raises(Died):
        Penguin(table, options={"evolution": STRICT}, log=Gone).step()
    assert len(list((table.root / "_staging/held").iterdir())) == 1
    penguin(table, MERGE).drain()
    assert table.ids() == [1, 2]
    penguin(table, STRICT).drain()
    assert list((table.root / "_staging/held").iterdir()) == []


def run(table, mode, fate):
    store = dying(Store(str(table.root), StorageOptions()), fate)
    return TableRun(
        settings=replace(table.settings(), evolution=mode),
        emit=lambda _event: None,
        clock=Clock(),
        open_store=lambda: store,
        pause=lambda _seconds: None,
    )


def test_two_releases_at_once_make_one_commit(table):
    """D08: the second finds the mark moved, and adds nothing."""
    (name,) = with_held(table, 2)
    overtaken = after_opening(lambda: order(table, MERGE).release(None))
    done = replace(order(table, MERGE), open_log=overtaken).release(None)
    assert done.done == () or done.version is not None
    assert table.ids() == [1, 2]
    assert mark(table, name) == 1


def test_with_a_file_that_is_gone_its_unit_stays_held_until_it_is_put_back(table):
    """W21."""
    journal = table.journal()
    entry = journal.batch(rows_of(1), rows_of(2))
    file = table.root / entry.files[0].filename
    body = file.read_bytes()
    file.unlink()
    running = penguin(table, MERGE).drain()
    assert len(running.held) == 2
    assert len(order(table, MERGE).release(None).left) == 2
    assert table.ids() == []
    file.write_bytes(body)
    assert len(order(table, MERGE).release(None).done) == 2
    assert table.ids() == [1, 2]


def test_an_unreadable_held_meta_stops_nobody_and_is_shown(table):
    (name,) = with_held(table, 2)
    table.store.replace(held_meta(name), b"{")
    table.journal().batch(rows_of(3))
    running = penguin(table, MERGE).drain()
    assert table.ids() == [1, 3]
    assert running.held == {f"{name}.parquet": "document_unreadable"}


def test_death_at_any_call_while_a_file_is_held_and_released_adds_it_once(tmp_path):
    """D11, D18: whatever was written when the process died, the next one ends with every row."""
    deaths = 0
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1))
    penguin(table).drain()
    table.journal().schema = WIDER
    table.journal().batch(rows_of(2), rows_of(3))
    table.journal().schema = EVENTS
    table.journal().batch(rows_of(4))
    for fate in lives(table.root):
        for mode in (STRICT, MERGE):
            try:
                life = run(table, mode, fate)
                while life.step():
                    pass
            except Died:
                deaths += 1
                break
        penguin(table, STRICT).drain()
        assert set(table.ids()) >= {1, 4}, f"died at call {fate.call}"
        penguin(table, MERGE).drain()
        assert table.ids() == [1, 2, 3, 4], f"died at call {fate.call}"
        assert not list((table.root / "_staging").glob("held/*")), f"died at call {fate.call}"
    assert deaths >= 9, "the store really died, at many places"


def test_held_files_of_several_units_go_in_over_several_commits(table):
    journal = table.journal()
    journal.batch(rows_of(1))
    penguin(table).drain()
    journal.schema = WIDER
    for number in (2, 3, 4):
        journal.batch(rows_of(number))
    penguin(table).drain()
    options = {"evolution": MERGE, "max_files_per_commit": 1}
    assert Penguin(table, options=options).drain().run.totals.commits == 3
    assert table.ids() == [1, 2, 3, 4]


def test_an_entry_is_not_held_before_blizzard_has_moved_its_files(tmp_path):
    """W15: blizzard moves nothing of a settled entry, so what is held must have its final name."""
    table = TableDirectory(tmp_path / "table", handoff=Handoff.DIRECT)
    (name, moved) = with_unmoved(table)
    waiting = penguin(table).drain()
    assert [(one.sequence, one.reason) for one in waiting.run.waiting] == [(2, NOT_MOVED)]
    assert waiting.held == {}
    moved()
    assert list(penguin(table).drain().held.values()) == ["schema_refused"]
    assert order(table, MERGE).release(frozenset({name})).left == ()
    assert table.ids() == [1, 2]


def test_a_held_file_that_was_never_moved_does_not_wedge_its_table(tmp_path):
    """W01: it stays held; what comes after it is committed."""
    table = TableDirectory(tmp_path / "table", handoff=Handoff.DIRECT)
    (name, moved) = with_unmoved(table)
    moved()
    penguin(table).drain()
    file = next(table.root.glob(f"date=*/{name}.parquet"))
    unmoved = table.root / outbox("events", TablePath(str(file.relative_to(table.root))))
    file.rename(unmoved)
    table.journal().batch(rows_of(3))
    running = penguin(table, MERGE)
    assert running.step()
    assert not running.step()
    assert (table.ids(), len(running.held)) == ([1, 3], 1)


def with_unmoved(table):
    """Commit one row, then journal an entry the table refuses; give its file and how to move it."""
    table.journal().batch(rows_of(1))
    penguin(table).drain()
    table.journal().schema = WIDER
    (file,) = table.journal().batch(rows_of(2)).files
    waiting = table.root / outbox("events", file.filename)
    waiting.parent.mkdir(parents=True)
    (table.root / file.filename).rename(waiting)
    name = file.filename.rpartition("/")[2].removesuffix(".parquet")
    return name, lambda: waiting.rename(table.root / file.filename)


def widen(table):
    table.delta().alter.add_columns([DeltaField("extra", PrimitiveType("string"), nullable=True)])


def test_held_files_that_a_full_commit_had_no_room_for_go_in_with_the_next(table):
    with_held(table, 2)
    running = Penguin(table, options={"evolution": STRICT, "max_files_per_commit": 1}).drain()
    widen(table)
    table.journal().schema = WIDER
    table.journal().batch(rows_of(3))
    running.drain()
    assert table.ids() == [1, 2, 3]


def test_held_files_whose_commit_failed_are_tried_again(table):
    """L06."""
    with_held(table, 2)

    class Failing(Log):
        fails = False

        def open(self):
            if Failing.fails:
                raise CommitUnconfirmed("the store is away", table="events")
            return super().open()

    class Planned(Failing):
        """Fails once the plan is made: its first look at the log is a good one."""

        looks = 0

        def open(self):
            Planned.looks += 1
            Failing.fails = Failing.fails or Planned.looks == 2
            return super().open()

    running = Penguin(table, options={"evolution": STRICT}, log=Planned)
    widen(table)
    with pytest.raises(CommitUnconfirmed):
        running.step()
    Failing.fails = False
    running.drain()
    assert table.ids() == [1, 2]


def test_a_held_meta_with_a_time_that_nobody_can_read_stops_nobody(table):
    for told in ("yesterday", "", "2026-01-01T00:00:00"):
        (name,) = with_held(table, 2)
        meta = json.loads(table.store.get(held_meta(name)))
        table.store.replace(held_meta(name), json.dumps({**meta, "held_at": told}).encode())
        assert not penguin(table).step()


def test_the_alarm_stays_while_a_pipeline_that_stopped_hides_what_waits(table):
    """W15."""
    table.journal().batch(rows_of(1))
    running = Penguin(table, options={"partition_columns": ("name",)}, clock=Later())
    running.step()
    table.journal().write(table.journal().entry(previous="0" * 64))
    running.step()
    kinds = [type(event).__name__ for event in running.events]
    assert (running.codes, kinds.count("FilesAtRisk")) == ({"events": "journal_broken"}, 1)
    assert "FilesNoLongerAtRisk" not in kinds


def test_files_that_wait_too_long_raise_one_alarm_until_they_are_in(table):
    """W15: held files are not named by the log, so a VACUUM FULL would take them."""
    with_held(table, 2)
    running = penguin(table, clock=Later())
    for _ in range(3):
        running.step()
    kinds = [type(event).__name__ for event in running.events]
    assert kinds.count("FilesAtRisk") == 1
    (alarm,) = (event for event in running.events if isinstance(event, FilesAtRisk))
    assert "14 days" in alarm.sentence()
    widen(table)
    running.drain()
    assert [type(event).__name__ for event in running.events].count("FilesNoLongerAtRisk") == 1


class Later(Clock):
    """A clock eight days ahead."""

    def now(self):
        return super().now() + timedelta(days=8)


def test_a_table_that_cannot_be_read_keeps_nobody_from_releasing_in_another(table, tmp_path):
    """W01: the exit code says that not all was well."""
    (name,) = with_held(table, 2)
    torn = tmp_path / "torn/_delta_log/00000000000000000000.json"
    torn.parent.mkdir(parents=True)
    torn.write_text("{torn")
    file = tmp_path / "penguin.yaml"
    file.write_text(
        f"tables:\n  torn:\n    table_uri: {tmp_path / 'torn'}\n"
        f"  events:\n    table_uri: {table.root}\n    schema_evolution: merge\n"
    )
    done = CliRunner().invoke(app, ["release", name, "-c", str(file)])
    assert (done.exit_code, table.ids()) == (1, [1, 2])
    assert "error: torn:" in done.stderr


def test_release_and_discard_as_a_user_gives_them(table):
    cli = partial(penguin_commands.penguin, table.root)
    first, second = with_held(table, 2, 3)
    assert cli("release").exit_code == 2
    assert "not held: nonsense" in cli("release", "nonsense").stderr
    refused = cli("release", "--all", schema_evolution="strict")
    assert (refused.exit_code, table.ids()) == (1, [1])
    assert f"held: {first}" in refused.stdout
    assert "extra: the table does not have it" in refused.stdout
    assert "add --yes" in cli("discard", second).stderr
    assert cli("discard", second, "--yes").exit_code == 0
    assert (mark(table, first), mark(table, second)) == (0, 2)
    done = cli("release", first)
    assert (done.exit_code, table.ids()) == (0, [1, 2])
    assert f"released in version {table.versions() - 1}: {first}, 1 row" in done.stdout
    assert (mark(table, first), table.store.head(held_meta(first))) == (1, None)
    assert cli("held").stdout == "nothing is held\n"
    for words in (("release", first), ("discard", second, "--yes")):
        assert "not held" in cli(*words).stderr
    assert penguin(table, MERGE).drain().run.totals.commits == 0
    assert table.ids() == [1, 2]


def test_a_note_of_a_held_file_that_is_put_back_is_read_by_a_penguin_that_runs(table):
    """HOLES W36: the way out of `document_unreadable`."""
    with_held(table, 2)
    (note,) = (table.root / "_staging/held").iterdir()
    body = note.read_bytes()
    note.write_bytes(body[:20])
    running = penguin(table, MERGE)
    assert running.step() is False
    assert table.ids() == [1]
    note.write_bytes(body)
    running.drain()
    assert table.ids() == [1, 2]
