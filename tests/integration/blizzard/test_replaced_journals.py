"""A journal is replaced while somebody who knows the old one sleeps; the new one stays whole."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.fence import append_beside
from blizzard.journal.journal import Journal
from blizzard.repair.gc import collect
from lakebed.clock import Clock
from lakebed.documents.entry import Inheritance, digest, encode
from lakebed.errors import JournalConflict, JournalLost, StoreUnavailable
from lakebed.layout import dead_letter_folder, dead_letters, journal_entry, journal_folder
from lakebed.storage.store import AlreadyThere, Created, Store
from tests.support.builders import (
    Bench,
    Hands,
    entries,
    identity,
    ndjson,
    no_options,
    put,
    record,
    rows,
)
from tests.support.commands import Desk
from tests.support.runner import InProcessRunner
from tests.support.waits import hurried
from tests.support.writers import lease, machine


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A pipeline of one batch; to watch whether another run is alive takes no time."""
    put(tmp_path / "in", "0.ndjson", ndjson(rows(2)))
    found = Desk(tmp_path)
    assert elsewhere(found, "run-0").pipeline().step()
    return found


def elsewhere(desk: Desk, run: str, **given) -> Bench:
    """Return a run on another machine, of which only the beat tells whether it lives."""
    return replace(
        desk.bench(), run_id=run, lease=lease(run, on=machine("db7", alive=False)), **given
    )


def replaced(desk: Desk, clock: Clock | None = None) -> None:
    """Lose the journal, and begin a new one in its place."""
    for path in (desk.table / journal_folder("default")).iterdir():
        path.unlink()
    desk.store.replace(
        "_blizzard/default/receipt.json", b'{"journal": "gone", "sequence": 1, "digest": "ab"}\n'
    )
    done = desk.run("journal", "new", "--empty", "--yes", clock=clock)
    assert done.exit_code == 0, done.output


def is_whole(desk: Desk) -> None:
    """See that the new journal is as it was begun, and that a run goes on with it."""
    (first,) = entries(desk.table)
    assert first.kind == "open"
    assert elsewhere(desk, "run-9").pipeline().step()
    assert [entry.journal for entry in entries(desk.table)] == [first.journal] * 2


@dataclass
class Sleeps(InProcessRunner):
    """A runner that sleeps at the end of its units, while something happens."""

    meanwhile: Callable[[], object] = lambda: None

    def run(self, units, work):
        outcomes = super().run(units, work)
        self.meanwhile()
        return outcomes


def sleeps_in_create(meanwhile: list[Callable[[], object]]) -> type[Store]:
    """Return a store in which the request for an entry is on its way while things happen, once."""

    class SleepsInCreate(Store):
        def create(self, path: str, body: bytes) -> Created | AlreadyThere:
            if path == journal_entry("default", 2):
                while meanwhile:
                    meanwhile.pop()()
            return super().create(path, body)

    return SleepsInCreate


def test_a_run_that_wakes_after_its_journal_was_replaced_appends_nothing(desk):
    """HOLES D26: `journal new` takes the pipeline over, as a second run would."""
    put(desk.landing, "1.ndjson", ndjson(rows(2, 2)))
    runner = Sleeps(meanwhile=lambda: replaced(desk))
    with pytest.raises(JournalConflict, match="has taken over this pipeline"):
        elsewhere(desk, "run-1", runner=runner).pipeline().step()
    is_whole(desk)


def test_an_entry_that_was_on_its_way_meanwhile_is_taken_back(desk):
    """HOLES D26: between its last look at who writes, and the write."""
    put(desk.landing, "1.ndjson", ndjson(rows(2, 2)))
    meanwhile: list[Callable[[], object]] = [lambda: replaced(desk)]
    with pytest.raises(JournalConflict, match="has taken over this pipeline"):
        elsewhere(desk, "run-1", store=sleeps_in_create(meanwhile)).pipeline().step()
    assert not meanwhile
    is_whole(desk)


def test_an_entry_in_doubt_is_not_written_into_another_journal(desk):
    """HOLES D26: it is written again to learn its fate, and only into its own journal."""
    put(desk.landing, "1.ndjson", ndjson(rows(2, 2)))

    class Unanswered(Store):
        def create(self, path: str, body: bytes) -> Created | AlreadyThere:
            if path == journal_entry("default", 2):
                raise StoreUnavailable("no answer")
            return super().create(path, body)

    bench = elsewhere(desk, "run-1", store=Unanswered)
    running = bench.pipeline()
    running.pause = lambda _seconds: None
    with pytest.raises(StoreUnavailable):
        running.step()
    replaced(desk)
    with pytest.raises(JournalConflict, match="has taken over this pipeline"):
        running.step()
    is_whole(desk)


def test_a_clean_up_that_slept_meanwhile_takes_its_entry_back(desk):
    """HOLES D26: a command that appends beside a run has no claim, and looks back."""
    clock = Clock()
    letters = f"{dead_letter_folder('default')}/{dead_letters(clock.now(), clock.fresh_id())}"
    put(desk.table, letters, b"{}\n")
    slow = sleeps_in_create([lambda: replaced(desk)])
    with pytest.raises(JournalConflict, match="was replaced while this command was running"):
        collect(
            slow(str(desk.table), no_options()),
            "default",
            frozenset,
            clock=clock,
            older_than=timedelta(0),
        )
    assert (desk.table / letters).exists()
    is_whole(desk)


@pytest.mark.unbalanced("books_differ")
def test_an_operator_s_entry_that_follows_is_kept_and_one_that_does_not_is_not(tmp_path):
    """HOLES D26: `redo` and `gc` append through one door."""
    store = Store(str(tmp_path), no_options())
    journal = Journal(store, identity(), read_ledger(store, "default"), Hands().clock)
    journal.open_with(lambda: False)
    last = journal.append((record("a"),), ())
    good = last.successor("redo", previous=digest(encode(last)), run="r", created=last.created)
    assert append_beside(store, good)
    assert append_beside(store, good), "our own, whose answer was lost"
    assert not append_beside(store, replace(good, run="another"))
    stray = good.successor("gc", previous="ab", run="r", created=last.created)
    with pytest.raises(JournalConflict):
        append_beside(store, stray)
    assert [entry.kind for entry in entries(tmp_path)] == ["open", "batch", "redo"]


def test_nothing_is_appended_to_a_journal_that_is_half_begun(desk):
    """HOLES D26: an entry of a clean-up would be counted as one of those that are to come."""
    clock, store = Clock(), desk.store
    letters = f"{dead_letter_folder('default')}/{dead_letters(clock.now(), clock.fresh_id())}"
    put(desk.table, letters, b"{}\n")
    first = entries(desk.table)[0]
    for path in (desk.table / journal_folder("default")).iterdir():
        path.unlink()
    begun = Inheritance(pipeline="default", journal="old", sequence=1, digest="ab", entries=2)
    store.create(journal_entry("default", 0), encode(replace(first, inherits=begun)))
    with pytest.raises(JournalLost, match="run the same"):
        collect(store, "default", frozenset, clock=clock, older_than=timedelta(0))
    assert len(entries(desk.table)) == 1


def test_while_a_journal_is_replaced_a_start_is_told_who_writes(desk):
    """HOLES D26: the command is a writer like a run."""
    seen: list[str] = []
    writer = desk.table / "_blizzard/default/writer.json"

    def starting_another(size: int) -> bytes:
        """Draw what the new journal's name is made of; meanwhile another one starts."""
        if writer.exists() and not seen:
            other = elsewhere(desk, "run-8")
            with pytest.raises(JournalConflict) as told:
                replace(other, lease=lease("run-8", wait=beating)).pipeline().step()
            seen.append(str(told.value))
        return os.urandom(size)

    def beating(_seconds: float) -> bool:
        writer.write_text(writer.read_text().replace('"beat":0', '"beat":1'))
        return False

    writer.unlink()
    replaced(desk, replace(hurried(), randomness=starting_another))
    assert "another blizzard is running this pipeline and is alive" in seen[0]
