"""`blizzard gc`: it takes what nobody will ever name, and nothing else."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from blizzard.journal.fence import append_beside
from blizzard.model.settings import SinkSettings
from blizzard.model.work import UnitOutcome
from blizzard.repair.gc import Garbage, GarbageKind, collect, find_garbage, gc_entry
from lakebed.clock import Clock
from lakebed.deltalog import tables
from lakebed.deltalog.files import named_files
from lakebed.documents.entry import encode
from lakebed.errors import FilesCollected, JournalConflict, LakeError
from lakebed.journal import JournalReader
from lakebed.layout import batch_started, journal_entry
from lakebed.storage.parquet_tail import mark_of
from lakebed.storage.store import Store
from lakebed.types import Handoff
from tests.support.builders import Bench, Hands, ndjson, no_options, put, rows, tree
from tests.support.commands import Desk, told
from tests.support.runner import InProcessRunner

AT_ONCE = timedelta(0)
NAME = "018cc4e5-2200-7000-8000-0000000000{:02d}.parquet"


@dataclass
class Meanwhile(InProcessRunner):
    """Does something once a batch has uploaded its files, before they are journaled."""

    act: Callable[[], object] = lambda: None

    def run(self, units, work) -> list[UnitOutcome]:
        outcomes = super().run(units, work)
        act, self.act = self.act, lambda: None
        act()
        return outcomes


def log_of(desk: Desk) -> Callable[[], frozenset[str]]:
    return lambda: named_files(str(desk.table), no_options())


def found_at(desk: Desk, older_than=AT_ONCE, **given) -> Garbage:
    return find_garbage(
        desk.store, "default", given.get("log", log_of(desk)), now=Clock().now(),
        older_than=older_than,
    )  # fmt: skip


def collected(desk: Desk, store: Store | None = None):
    return collect(store or desk.store, "default", log_of(desk), clock=Clock(), older_than=AT_ONCE)


def a_batch(desk: Desk, number: int = 0, **given) -> Bench:
    put(desk.landing, f"{number}.ndjson", ndjson(rows(2, number * 2)))
    bench = desk.bench().again(run_id=f"run-{number}", hands=Hands(at=1.7e9 + number), **given)
    assert bench.pipeline().step()
    return bench


def a_dead_attempt(desk: Desk, number: int = 1) -> str:
    """Leave a file as an attempt does that dies between its upload and the entry."""
    (file,) = desk.bench().entries()[1].files
    (desk.table / NAME.format(number)).write_bytes((desk.table / file.filename).read_bytes())
    return NAME.format(number)


def test_it_shows_what_a_dead_attempt_left_and_deletes_it_only_when_told(desk):
    a_batch(desk)
    left = a_dead_attempt(desk)
    put(desk.table, batch_started("default", 1), b"{}")
    before = tree(desk.table)
    shown = desk.run("gc", "--older-than", "0s")
    assert shown.exit_code == 0
    assert "2 files" in shown.stdout
    assert left in shown.stdout
    assert tree(desk.table) == before

    (done,) = told(desk.run("gc", "--older-than", "0s", "--delete", "--output", "json"))
    assert (done["deleted"], done["files"], done["entry"]) == (True, 2, 2)
    assert done["bytes"] == before[left][0] + 2
    assert not (desk.table / left).exists()
    entry = desk.bench().entries()[-1]
    assert (entry.kind, entry.files, entry.sources) == ("gc", (), ())
    assert set(entry.deleted) == {left, batch_started("default", 1)}
    assert "no garbage" in desk.run("gc").stdout
    shown = desk.run("journal", "2").stdout
    assert "entry 2 (gc)" in shown
    assert f"deleted:\n- {left}\n" in shown


def test_what_is_young_is_left_alone_by_default(desk):
    """HOLES W20: a batch may still be at work on it."""
    a_batch(desk)
    left = a_dead_attempt(desk)
    done = desk.run("gc", "--delete")
    assert "kept because it is too recent to delete" in done.stdout
    assert (desk.table / left).exists()
    assert len(desk.bench().entries()) == 2


def test_it_touches_only_what_carries_the_mark_of_this_pipeline_and_nobody_names(desk):
    a_batch(desk)
    named = {file.filename for entry in desk.bench().entries() for file in entry.files}
    left = a_dead_attempt(desk)
    marked = (desk.table / left).read_bytes()
    table = pq.read_table(desk.table / left)
    pq.write_table(table.replace_schema_metadata(None), desk.table / NAME.format(2))
    marks = {"blizzard.pipeline": "default", "blizzard.journal": "a lost one"}
    pq.write_table(table.replace_schema_metadata(marks), desk.table / NAME.format(3))
    put(desk.table, NAME.format(4), b"no Parquet")
    put(desk.table, f"other/{NAME.format(5).replace('018c', '018d')}", marked)
    put(desk.table, "notes.txt", b"x")
    put(desk.table, f"_mine/{NAME.format(6)}", marked)

    found = found_at(desk)
    assert {piece.path for piece in found.garbage} == {
        left,
        f"other/{NAME.format(5).replace('018c', '018d')}",
    }
    assert found.left_alone == 3
    assert not named & {piece.path for piece in found.garbage}


def test_a_file_that_a_meta_names_is_no_garbage_and_an_unreadable_meta_stops_it(desk):
    a_batch(desk)
    left = a_dead_attempt(desk)
    facts = {"size": 1, "record_count": 1, "partition_values": {}, "source_file": None}
    for folder in ("pending", "held"):
        meta = f"_staging/{folder}/x.meta.json"
        put(desk.table, meta, json.dumps({"filename": left, **facts}).encode())
        assert found_at(desk).garbage == ()
        put(desk.table, meta, b"{torn")
        done = desk.run("gc", "--delete", "--older-than", "0s")
        assert done.exit_code == 1
        assert "this meta cannot be read" in done.stderr
        assert (desk.table / left).exists()
        (desk.table / meta).unlink()


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.unbalanced("entry_missing", "file_unnamed", "rows_removed")
def test_a_file_that_the_log_adds_or_has_removed_is_no_garbage(desk, checkpoint):
    """The journal that named it may be gone; the log still says that it is somebody's."""
    a_batch(desk)
    a_batch(desk, 1)
    desk.commit()
    table = DeltaTable(str(desk.table))
    table.delete("id < 2")
    if checkpoint:
        table.create_checkpoint()
        (desk.table / "_delta_log" / f"{0:020d}.json").unlink()
    bench = desk.bench()
    kept = [replace(entry, files=(), sources=()) for entry in bench.entries()[:1]]
    folder = desk.table / "_blizzard/default"
    for path in (folder / "journal").iterdir():
        path.unlink()
    (folder / "receipt.json").unlink()
    put(desk.table, journal_entry("default", 0), encode(kept[0]))

    assert len(found_at(desk, log=frozenset).garbage) == 2
    assert found_at(desk).garbage == ()


@pytest.mark.parametrize("trouble", ["gap", "torn", "other", "rolled back", "log"])
@pytest.mark.unbalanced("log_version_missing", "entry_missing", "entry_unreadable", "file_unnamed")
def test_a_journal_that_cannot_be_read_whole_stops_it(desk, trouble):
    """HOLES L21: what a missing entry, or version of the log, names is not known."""
    for number in range(3):
        a_batch(desk, number)
    desk.commit()
    path = desk.table / journal_entry("default", 2)
    match trouble:
        case "gap":
            path.unlink()
        case "torn":
            path.write_bytes(path.read_bytes()[:50])
        case "other":
            put(desk.table, journal_entry("other", 0), b"{torn")
        case "rolled back":
            (desk.table / journal_entry("default", 3)).unlink()
        case "log":
            (desk.table / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(LakeError):
        found_at(desk)
    assert desk.run("gc", "--delete", "--older-than", "0s").exit_code == 1


def test_a_batch_that_was_slow_never_names_what_was_deleted_and_loses_nothing(desk):
    """HOLES W20: gc runs between the uploads of a batch and its entry."""
    a_batch(desk)
    put(desk.landing, "slow.ndjson", ndjson(rows(2, 50)))
    runner = Meanwhile(act=lambda: collected(desk))
    bench = desk.bench().again(run_id="slow", runner=runner, hands=Hands(at=1.7e9 + 9))
    pipeline = bench.pipeline()
    with pytest.raises(FilesCollected) as told_so:
        pipeline.step()
    assert told_so.value.retryable
    entries = bench.entries()
    assert [entry.kind for entry in entries] == ["open", "batch", "gc"]
    (deleted,) = entries[2].deleted
    assert not (desk.table / deleted).exists()

    assert pipeline.step()
    entries = bench.entries()
    assert [entry.kind for entry in entries] == ["open", "batch", "gc", "batch"]
    named = {file.filename for entry in entries for file in entry.files}
    assert all((desk.table / name).exists() for name in named)
    desk.commit()
    assert desk.ids() == [0, 1, 50, 51]


def test_a_batch_goes_on_after_a_gc_that_took_nothing_of_it(desk):
    """HOLES W20."""
    a_batch(desk)
    left = a_dead_attempt(desk)
    put(desk.landing, "b.ndjson", ndjson(rows(2, 50)))

    young = Meanwhile()
    bench = desk.bench().again(run_id="b", runner=young, hands=Hands(at=1.7e9 + 9))

    def gc_spares_the_batch() -> None:
        (piece,) = (one for one in found_at(desk).garbage if one.path == left)
        last = JournalReader(desk.store, "default").listed(1)
        assert append_beside(desk.store, gc_entry(last, (piece,), Clock()))

    young.act = gc_spares_the_batch
    assert bench.pipeline().step()
    assert [entry.kind for entry in bench.entries()] == ["open", "batch", "gc", "batch"]
    desk.commit()
    assert desk.ids() == [0, 1, 50, 51]
    assert [piece.path for piece in collected(desk).pieces] == [left]


def test_a_batch_that_was_first_keeps_its_files(desk):
    """HOLES W20: gc looked before the entry and writes after it."""
    a_batch(desk)
    put(desk.landing, "b.ndjson", ndjson(rows(2, 50)))
    bench = desk.bench().again(run_id="b", hands=Hands(at=1.7e9 + 9))

    class Late(Store):
        def create(self, path, body):
            if path == journal_entry("default", 2) and len(bench.entries()) == 2:
                bench.pipeline().step()
            return super().create(path, body)

    left = a_dead_attempt(desk)
    done = collected(desk, Late(str(desk.table), no_options()))
    assert [piece.path for piece in done.pieces] == [left]
    assert [entry.kind for entry in bench.entries()] == ["open", "batch", "batch", "gc"]
    assert done.entry == 3
    desk.commit()
    assert desk.ids() == [0, 1, 50, 51]


def test_another_blizzard_is_still_another_blizzard(desk):
    """A gc entry is stepped over; a batch of another run is not."""
    put(desk.landing, "a.ndjson", ndjson(rows(2)))
    other = desk.bench().again(run_id="other")
    runner = Meanwhile(act=lambda: (collected(desk), other.pipeline().step()))
    with pytest.raises((JournalConflict, FilesCollected)):
        desk.bench().again(runner=runner).pipeline().step()
    assert [entry.run for entry in desk.bench().entries() if entry.kind == "batch"] == ["other"]


def test_after_a_crash_between_the_entry_and_the_deletes_the_next_one_finishes_them(desk):
    class Dies(Store):
        def delete(self, path):
            raise KeyboardInterrupt

    a_batch(desk)
    left = a_dead_attempt(desk)
    with pytest.raises(KeyboardInterrupt):
        collected(desk, Dies(str(desk.table), no_options()))
    assert (desk.table / left).exists()
    assert desk.bench().entries()[-1].kind == "gc"

    done = collected(desk)
    assert ([piece.path for piece in done.pieces], done.entry) == ([left], None)
    assert not (desk.table / left).exists()
    assert len(desk.bench().entries()) == 3


@pytest.mark.parametrize("handoff", list(Handoff))
def test_penguin_steps_over_a_gc_entry_in_every_hand_off(desk, handoff):
    desk.sink = f"handoff: {handoff.value}"
    sink = SinkSettings(table_uri=str(desk.table), handoff=handoff)
    for number in range(2):
        put(desk.landing, f"{number}.ndjson", ndjson(rows(2, number * 2)))
        bench = desk.bench(sink=sink).again(run_id=f"run-{number}")
        bench = replace(bench, hands=Hands(at=1.7e9 + number))
        assert bench.pipeline().step()
        folder = "_blizzard/default/outbox/" if handoff is Handoff.DIRECT else ""
        (file,) = bench.entries()[1].files
        left = f"{folder}{NAME.format(number)}"
        put(desk.table, left, (desk.table / file.filename).read_bytes())
        (piece,) = found_at(desk).garbage
        assert piece.kind is (GarbageKind.OUTBOX if folder else GarbageKind.DATA)
        assert collected(desk).pieces == (piece,)
    assert [entry.kind for entry in bench.entries()] == ["open", "batch", "gc", "batch", "gc"]
    assert desk.commit() >= 1
    assert desk.ids() == [0, 1, 2, 3]
    assert tables.last_committed(
        str(desk.table), no_options(), "default", bench.entries()[0].journal
    ) == 4  # fmt: skip
    assert desk.commit() == 0


def test_dead_letters_that_no_entry_names_go_and_those_that_one_names_stay(desk):
    put(desk.landing, "bad.ndjson", b"{nope\n")
    bench = a_batch(desk)
    (named,) = bench.entries()[-1].dlq
    copy = named.replace("00000000000", "00000000009")
    assert copy != named
    Path(copy).write_bytes(b"{}\n")
    (piece,) = found_at(desk).garbage
    assert (piece.kind, desk.table / piece.path) == (GarbageKind.DEAD_LETTERS, Path(copy))
    collected(desk)
    assert Path(named).exists()
    assert not Path(copy).exists()


def test_the_mark_is_read_from_the_end_of_a_file(desk):
    a_batch(desk)
    bench = desk.bench()
    (file,) = bench.entries()[1].files
    store = desk.store
    (facts,) = (one for one in store.objects() if one.path == file.filename)
    assert mark_of(store, facts) == ("default", bench.entries()[0].journal)


def test_where_there_is_nothing_it_says_so_and_an_age_that_is_no_duration_is_refused(desk):
    done = desk.run("gc", "--delete")
    assert (done.exit_code, done.stdout) == (0, "pipeline default: no garbage\n")
    assert not desk.table.exists()
    assert desk.run("gc", "--older-than", "9999999999d").exit_code == 2
    done = desk.run("gc", "--older-than", "5")
    assert done.exit_code == 2
    assert "--older-than '5' is not a duration; use for example 90m, 24h or 7d" in done.output
