"""Who writes a pipeline: a second one is told, a dead one is taken over from, a woken one stops."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from blizzard.events import OtherWriterWatched, RenewFailed, TakenOver
from blizzard.journal.lease import (
    BEAT_SECS,
    Lease,
    LeaseRecord,
    Life,
    is_lost,
    life_of,
    read_lease,
    refuse_while_alive_here,
    renewed,
    this_machine,
)
from lakebed.errors import DocumentUnreadable, JournalConflict, StoreUnavailable
from lakebed.storage.store import AlreadyThere, Created, Store
from lakebed.telemetry.events import Event
from tests.support.builders import Hands, no_options
from tests.support.stores import local
from tests.support.writers import Waits, lease, machine

NOTE = "_blizzard/default/writer.json"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return local(tmp_path)


def note(store: Store) -> LeaseRecord:
    found = read_lease(store, "default")
    assert found is not None
    return found


def test_the_note_says_who_writes_where_since_when(store: Store) -> None:
    """It is a plain JSON document below the pipeline's folder."""
    assert lease("run-1", on=machine("db7")).take(store)

    body = store.get(NOTE)
    assert body is not None
    assert json.loads(body) == {
        "run": "run-1",
        "turn": 1,
        "host": "db7",
        "process": os.getpid(),
        "machine": "boot-1",
        "born": "tick 7",
        "since": "2024-01-01T12:00:00+00:00",
        "every": BEAT_SECS,
        "beat": 0,
        "ended": False,
    }


@pytest.mark.parametrize(
    "there",
    [machine("elsewhere", alive=False), machine(alive=False, boot="boot-2"), machine()],
    ids=["another host", "another boot or container", "alive"],
)
def test_a_silent_writer_of_which_nothing_is_known_is_watched_for_three_beats(store: Store, there):
    """Beats are compared by change: the clocks of two machines are never compared."""
    lease("run-1").take(store)
    waits = Waits()
    assert lease("run-2", on=there, wait=waits, emit=waits.events.append).take(store)

    assert sum(waits.seconds) >= 3 * BEAT_SECS
    assert note(store).run == "run-2"
    assert [type(each) for each in waits.events] == [OtherWriterWatched, TakenOver]
    assert "no heartbeat" in waits.events[1].sentence()


def test_a_writer_that_ended_is_not_waited_for(store: Store) -> None:
    first = lease("run-1")
    first.take(store)
    first.give_back(keep=True)
    waits = Waits()

    assert note(store).ended
    assert lease("run-2", on=machine("elsewhere"), wait=waits).take(store)
    assert waits.seconds == []
    assert note(store).turn == 2


def test_a_writer_that_ends_while_it_is_watched_makes_room(store: Store) -> None:
    first = lease("run-1")
    first.take(store)
    waits = Waits(meanwhile=lambda: first.give_back(keep=True), events=[])
    second = lease("run-2", wait=waits, emit=waits.events.append)

    assert second.take(store)
    assert len(waits.seconds) == 1
    assert not [each for each in waits.events if isinstance(each, TakenOver)]


def test_the_one_that_was_taken_over_from_stops_although_the_other_has_ended(store: Store) -> None:
    first = lease("run-1")
    first.take(store)
    second = lease("run-2")
    second.take(store)
    second.give_back(keep=True)
    with pytest.raises(JournalConflict):
        first.check()


def test_a_late_write_of_the_one_that_was_taken_over_from_is_mended(store: Store) -> None:
    """Asleep between its look and its write, it overwrites the note; the winner goes on."""
    lease("run-1").take(store)
    late = store.get(NOTE)
    assert late is not None
    second = lease("run-2")
    second.take(store)
    store.replace(NOTE, late)
    second.beat()

    second.check()
    assert (note(store).run, note(store).turn) == ("run-2", 2)


def writer(**given: object) -> LeaseRecord:
    usual = LeaseRecord(
        run="mine", turn=3, host="h", process=1, machine="m", born="b", since="s", every=10.0
    )
    return replace(usual, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, False),
        (writer(beat=7), False),
        (writer(run="other", turn=2), False),
        (writer(run="other", turn=3), True),
        (writer(run="other", turn=3, ended=True), False),
        (writer(run="other", turn=4), True),
        (writer(run="other", turn=4, ended=True), True),
    ],
)
def test_what_a_stored_note_means(found: LeaseRecord | None, expected: bool) -> None:
    assert is_lost(writer(), found) is expected


def test_of_two_that_begin_in_the_same_moment_the_one_of_the_stored_note_goes_on(store: Store):
    first, second = lease("run-1"), lease("run-2")
    first.take(store)
    second.take(store)
    store.replace(NOTE, store.get(NOTE).replace(b'"turn":2', b'"turn":1'))  # type: ignore[union-attr]
    second._note = replace(note(store))
    first.beat()
    second.check()
    assert note(store).run == "run-2"
    with pytest.raises(JournalConflict, match="has taken over"):
        first.check()


class AnotherBegins(Store):
    """Right before the first create-only write of a note, somebody else makes one."""

    other: Lease | None = None

    def create(self, path: str, body: bytes) -> Created | AlreadyThere:
        if self.other is not None:
            other, self.other = self.other, None
            other.take(self)
        return super().create(path, body)


def test_of_two_that_begin_where_there_was_no_note_one_is_told(tmp_path: Path) -> None:
    store = AnotherBegins(str(tmp_path), no_options(), make_folder=True)
    first = store.other = lease("run-1")
    with pytest.raises(JournalConflict):
        lease("run-2", wait=Waits(meanwhile=first.beat)).take(store)
    assert note(store).run == "run-1"


class NotNow(Store):
    """Answers nothing while it is told not to."""

    away = False

    def get(self, path: str) -> bytes | None:
        if self.away:
            raise StoreUnavailable("no answer", path=path)
        return super().get(path)


def test_a_note_that_cannot_be_reached_stops_nobody_and_is_told(tmp_path: Path) -> None:
    """The journal decides anyway, so a beat that fails costs nothing but a line in the log."""
    store = NotNow(str(tmp_path), no_options(), make_folder=True)
    events: list[Event] = []
    first = lease("run-1", emit=events.append)
    first.take(store)
    store.away = True
    first.beat()
    first.check()
    store.away = False
    first.beat()

    assert [type(each) for each in events] == [RenewFailed]
    assert note(store).beat == 1


def test_a_note_that_cannot_be_read_stops_the_start_and_names_the_way_out(store: Store) -> None:
    """Unknown is never taken for nobody."""
    store.replace(NOTE, b"{")
    with pytest.raises(DocumentUnreadable, match="delete it once you are sure") as stopped:
        lease().take(store)
    assert NOTE in str(stopped.value)


def test_a_claim_beats_while_the_block_runs_and_says_it_ended_after_an_error(store: Store) -> None:
    beaten = threading.Event()

    class Beating(Lease):
        def beat(self) -> None:
            super().beat()
            beaten.set()

    lease = Beating(
        "default",
        "run-1",
        machine=machine(),
        clock=Hands().clock,
        emit=lambda _event: None,
        wait=lambda _seconds: False,
        every=0.001,
    )
    lease.take(store)

    def run() -> None:
        with renewed(lease, keep=lambda: True):
            assert beaten.wait(300)
            raise KeyError

    with pytest.raises(KeyError):
        run()
    assert note(store).ended
    ended = store.get(NOTE)
    lease.beat()
    assert store.get(NOTE) == ended


def test_this_machine_tells_its_living_processes_from_those_that_are_gone() -> None:
    """Also from one that is dead and not yet buried by its parent."""
    here = this_machine()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    born = here.born(process.pid)
    alive = writer(host=here.host, machine=here.id, process=process.pid, born=born)

    assert born is not None
    assert born == here.born(process.pid)
    assert here.id is not None
    assert life_of(alive, here) is Life.ALIVE
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert life_of(alive, here) is Life.GONE, "a zombie is gone"
    process.communicate()
    assert life_of(alive, here) is Life.GONE
    assert life_of(replace(alive, born=None), here) is Life.UNKNOWN
    assert life_of(replace(alive, machine=None), here) is Life.UNKNOWN


def test_nothing_is_done_to_a_pipeline_whose_writer_lives_on_this_machine(store: Store) -> None:
    """It is known at once, beat or no beat (HOLES D07)."""
    lease("run-1").take(store)
    assert life_of(note(store), machine()) is Life.ALIVE
    with pytest.raises(JournalConflict, match=r"run-1 on here.*stop it first"):
        refuse_while_alive_here(store, "default", machine())


def test_a_writer_that_ended_or_is_gone_keeps_nobody_from_anything(store: Store) -> None:
    refuse_while_alive_here(store, "default", machine())
    first = lease("run-1")
    first.take(store)
    assert life_of(note(store), machine(alive=False)) is Life.GONE
    refuse_while_alive_here(store, "default", machine(alive=False))
    first.give_back(keep=True)
    assert life_of(note(store), machine()) is Life.ENDED
    refuse_while_alive_here(store, "default", machine("elsewhere"))
