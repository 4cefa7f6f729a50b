"""The lease of a pipeline: the record that a run renews to keep a second run out.

The lease is advisory and correctness never depends on it: two runs cannot both append entry N, with
or without it. It names the writer, lets a start proceed at once if the previous run has ended, and
stops a run that another one took over from. Heartbeats are compared for change, never by the clocks
of two machines.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from blizzard.events import OtherWriterWatched, RenewFailed, TakenOver
from lakebed import layout
from lakebed.clock import Clock
from lakebed.errors import DocumentUnreadable, JournalConflict, LakeError
from lakebed.storage.store import AlreadyThere, Reader, Store
from lakebed.telemetry.events import Emit


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The stored record of a run that writes a pipeline."""

    run: str
    turn: int
    """The number of runs that have held the lease, including this one; the highest is the owner."""
    host: str
    process: int
    machine: str | None
    """The boot and the process namespace that the process id belongs to; None where unknown."""
    born: str | None
    """The start time of the process in machine ticks, since process ids are reused."""
    since: str
    every: float
    """Seconds between two beats."""
    beat: int = 0
    ended: bool = False

    def who(self) -> str:
        """Describe the run in words."""
        return f"run {self.run} on {self.host}, process {self.process}, since {moment(self.since)}"


def moment(text: str) -> str:
    """Format an ISO 8601 time in UTC; return any other text unchanged."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """This machine, with a lookup of its processes."""

    host: str
    id: str | None
    born: Callable[[int], str | None]
    """Returns the start time of a live process; None for a dead one."""


class Life(StrEnum):
    """The state of a run, as far as known without waiting for its heartbeat."""

    ENDED = "ended"
    """It has recorded its end."""
    GONE = "gone"
    """It ran on this machine, and its process is gone."""
    ALIVE = "alive"
    """Its process runs on this machine."""
    UNKNOWN = "unknown"
    """It ran elsewhere and has not ended; only its heartbeat shows whether it is alive."""


def read_lease(store: Reader, pipeline: str) -> LeaseRecord | None:
    """Read the current or last lease of a pipeline; None if there never was one."""
    path = layout.writer(pipeline)
    body = store.get(path)
    if body is None:
        return None
    try:
        return _LEASE.validate_json(body)
    except ValidationError as invalid:
        raise DocumentUnreadable(
            "the lease of this pipeline cannot be read; delete it once you are sure that no "
            "other blizzard is running this pipeline",
            path=store.describe(path),
        ) from invalid


def encode_lease(writer: LeaseRecord) -> bytes:
    """Encode the record as one line of JSON."""
    return _LEASE.dump_json(writer) + b"\n"


_LEASE = TypeAdapter(LeaseRecord)


def this_machine() -> Machine:
    """Return the machine that this process runs on."""
    return Machine(host=socket.gethostname(), id=_machine_id(), born=_born)


def life_of(writer: LeaseRecord, machine: Machine) -> Life:
    """Return the state of a run; UNKNOWN on another machine, boot or container."""
    if writer.ended:
        return Life.ENDED
    if not _is_here(writer, machine):
        return Life.UNKNOWN
    return Life.ALIVE if machine.born(writer.process) == writer.born else Life.GONE


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterStatus:
    """The current or last writer of a pipeline, for operators."""

    run: str
    host: str
    process: int
    since: str
    state: Life
    seen: datetime | None = None
    """Its last heartbeat by the store's clock, if it neither ended nor is known to be alive."""


def writer_status(store: Reader, pipeline: str, machine: Machine) -> WriterStatus | None:
    """Return the writer of a pipeline; None if there never was one."""
    found = read_lease(store, pipeline)
    if found is None:
        return None
    state = life_of(found, machine)
    # The last heartbeat shows when a dead run was last alive.
    facts = store.head(layout.writer(pipeline)) if state in (Life.GONE, Life.UNKNOWN) else None
    return WriterStatus(
        run=found.run,
        host=found.host,
        process=found.process,
        since=found.since,
        state=state,
        seen=None if facts is None else facts.modified,
    )


def _is_here(writer: LeaseRecord, machine: Machine) -> bool:
    return (
        writer.machine is not None
        and writer.born is not None
        and (writer.machine, writer.host) == (machine.id, machine.host)
    )


def is_lost(mine: LeaseRecord, found: LeaseRecord | None) -> bool:
    """Whether the stored record means that another run has taken over. Pure.

    A record with a lower turn is from a run that we took over from and that woke up. One with ours
    is from a run that started at the same moment.
    """
    if found is None or found.run == mine.run or found.turn < mine.turn:
        return False
    return found.turn > mine.turn or not found.ended


def _machine_id() -> str | None:
    """Return the ids of this boot and its process namespace; None if not on Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _born(process: int) -> str | None:
    """Return a process's start in ticks since boot; None if it is dead or a zombie."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    # The program's name, in parentheses, may contain anything; the fields follow it.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else fields[18]


BEAT_SECS = 10.0
"""Seconds between two renewals of the lease: a GET and a PUT for each running pipeline."""
CHECKS = 7
"""Number of checks of a lease that may be alive, half a beat apart: 3.5 beats in all."""
LONGEST_BEAT_SECS = 60.0
"""Upper bound on the beat interval when waiting for a lease."""


class Lease:
    """A run's right to write a pipeline: taken once, renewed while it lasts, given back."""

    def __init__(
        self,
        pipeline: str,
        run: str,
        *,
        machine: Machine,
        clock: Clock,
        emit: Emit,
        wait: Callable[[float], bool],
        every: float | None = None,
    ) -> None:
        self.every = BEAT_SECS if every is None else every
        self._pipeline = pipeline
        self._run = run
        self._machine = machine
        self._clock = clock
        self._emit = emit
        self._wait = wait
        self._path = layout.writer(pipeline)
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._note: LeaseRecord | None = None
        self._lost_to: LeaseRecord | None = None
        self._wrote: datetime | None = None

    def take(self, store: Store) -> bool:
        """Take the lease; return False if a stop was requested while waiting.

        Raise JournalConflict if another run is alive. Idempotent.
        """
        while self._note is None:
            found = read_lease(store, self._pipeline)
            if found is not None and not found.ended and found.run != self._run:
                if not self._is_free(store, found):
                    return False
                watched, found = found, read_lease(store, self._pipeline)
                if found is not None and found.run != watched.run:
                    continue  # Another run was quicker.
            mine = self._new_record(found)
            wrote = self._clock.now()
            if found is None:
                if isinstance(store.create(self._path, encode_lease(mine)), AlreadyThere):
                    continue  # Another run took it just now: check again.
            else:
                store.replace(self._path, encode_lease(mine))
            if not is_lost(mine, read_lease(store, self._pipeline)):
                with self._lock:
                    self._store, self._note, self._wrote = store, mine, wrote
        return True

    def ahead(self) -> timedelta:
        """Return by how much our clock is ahead of the store's, or zero."""
        with self._lock:
            if self._store is None or self._wrote is None:
                return timedelta(0)
            found = self._store.head(self._path)
            if found is None:
                return timedelta(0)
            return max(timedelta(0), self._wrote - found.modified)

    def check(self) -> None:
        """Raise if another run has taken over, before anything becomes visible.

        An unreadable record is ignored, since the journal decides anyway.
        """
        store, note = self._store, self._note
        if store is None or note is None:
            return
        if self._lost_to is None:
            with contextlib.suppress(LakeError):
                self._is_lost(note, read_lease(store, self._pipeline))
        if self._lost_to is not None:
            raise JournalConflict(
                f"another blizzard has taken over this pipeline ({self._lost_to.who()}) while "
                "this one sent no heartbeat; this one stops and publishes nothing. "
                "Run one blizzard per pipeline",
                path=store.describe(self._path),
            )

    def beat(self) -> None:
        """Renew the lease, unless another run has taken over."""
        with self._lock:
            if self._store is None or self._note is None or self._lost_to is not None:
                return
            try:
                found = read_lease(self._store, self._pipeline)
                if not self._is_lost(self._note, found):
                    renewed = replace(self._note, beat=self._note.beat + 1)
                    wrote = self._clock.now()
                    self._store.replace(self._path, encode_lease(renewed))
                    self._note, self._wrote = renewed, wrote
            except LakeError as error:
                self._emit(RenewFailed(pipeline=self._pipeline, code=error.code, error=str(error)))

    def give_back(self, *, keep: bool) -> None:
        """Mark the lease as ended, or remove it unless `keep`."""
        with self._lock:
            store, note = self._store, self._note
            self._store = self._note = None
            if store is None or note is None or self._lost_to is not None:
                return
            # A stale record only makes the next start wait.
            with contextlib.suppress(LakeError):
                found = read_lease(store, self._pipeline)
                if found is None or found.run != self._run:
                    return
                if keep:
                    store.replace(self._path, encode_lease(replace(note, ended=True)))
                else:
                    store.delete(self._path)

    def _is_free(self, store: Store, found: LeaseRecord) -> bool:
        """Wait to see whether a run that has not ended is alive; False if stopped meanwhile."""
        if life_of(found, self._machine) is Life.GONE:
            self._emit_takeover(found, "its process is gone")
            return True
        every = min(found.every, LONGEST_BEAT_SECS)
        self._emit(
            OtherWriterWatched(
                pipeline=self._pipeline, other=found.who(), seconds=CHECKS * every / 2
            )
        )
        for _ in range(CHECKS):
            if self._wait(every / 2):
                return False
            now = read_lease(store, self._pipeline)
            if now is None or now.ended:
                return True
            if (now.run, now.beat) != (found.run, found.beat):
                raise JournalConflict(
                    f"another blizzard is running this pipeline and is alive: {now.who()}; this "
                    "one stops and publishes nothing. Run one blizzard per pipeline, or stop "
                    "the other one first",
                    path=store.describe(self._path),
                )
        self._emit_takeover(found, f"it sent no heartbeat for {CHECKS * every / 2:.0f} s")
        return True

    def _emit_takeover(self, other: LeaseRecord, why: str) -> None:
        self._emit(TakenOver(pipeline=self._pipeline, other=other.who(), why=why))

    def _new_record(self, found: LeaseRecord | None) -> LeaseRecord:
        process = os.getpid()
        return LeaseRecord(
            run=self._run,
            turn=1 if found is None else found.turn + 1,
            host=self._machine.host,
            process=process,
            machine=self._machine.id,
            born=self._machine.born(process),
            since=self._clock.now().isoformat(timespec="seconds"),
            every=self.every,
        )

    def _is_lost(self, note: LeaseRecord, found: LeaseRecord | None) -> bool:
        """Whether another run has taken over; a lost lease stays lost."""
        if is_lost(note, found):
            self._lost_to = found
        return self._lost_to is not None


def refuse_while_alive_here(store: Reader, pipeline: str, machine: Machine) -> None:
    """Raise if the pipeline's run is alive on this machine, even if suspended. Read-only.

    A suspended run sends no heartbeat, but its process exists.
    """
    found = read_lease(store, pipeline)
    if found is not None and life_of(found, machine) is Life.ALIVE:
        raise JournalConflict(
            f"a blizzard is running pipeline {pipeline} and is alive: {found.who()}; stop it "
            "first. Nothing was done",
            path=store.describe(layout.writer(pipeline)),
        )


@contextmanager
def turn_of(store: Store, pipeline: str, run: str, *, clock: Clock, emit: Emit) -> Iterator[None]:
    """Hold the lease of a pipeline while a command changes it.

    Raise JournalConflict if a run is alive. A suspended run notices the takeover when it wakes, and
    writes nothing more.
    """
    machine = this_machine()
    refuse_while_alive_here(store, pipeline, machine)

    def waits(seconds: float) -> bool:
        clock.sleep(seconds)
        return False  # A command ends only by a signal.

    lease = Lease(pipeline, run, machine=machine, clock=clock, emit=emit, wait=waits)
    lease.take(store)
    with renewed(lease, keep=lambda: True):
        yield


@contextmanager
def renewed(lease: Lease, *, keep: Callable[[], bool]) -> Iterator[None]:
    """Renew a lease while the block runs, and release it at the end."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(lease.every):
            lease.beat()

    thread = threading.Thread(target=beat, name="beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        lease.give_back(keep=keep())
