"""The lease of a pipeline: a record that a running blizzard renews, to keep a second one out.

The note is advisory and correctness never depends on it: two runs cannot both append entry N, with
or without it. It is there to say who writes, to let one start at once where the other is gone, and
to stop one that was taken over from as soon as it wakes. Beats are compared by whether they change,
never by the clocks of two machines.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum, auto
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from lakebed import layout
from lakebed.errors import DocumentUnreadable
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The note of a run that writes a pipeline."""

    run: str
    turn: int
    """How many runs have held this lease, this one included: a higher turn took over."""
    host: str
    process: int
    machine: str | None
    """The boot and the process namespace that the process id belongs to; None where unknown."""
    born: str | None
    """When the process started, by its machine's count: a process id may be reused."""
    since: str
    every: float
    """Seconds between two beats."""
    beat: int = 0
    ended: bool = False

    def who(self) -> str:
        """Name the run for a person."""
        return f"run {self.run} on {self.host}, process {self.process}, since {moment(self.since)}"


def moment(text: str) -> str:
    """Format a time for people; return any other text unchanged."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """This machine, and what it knows of its processes."""

    host: str
    id: str | None
    born: Callable[[int], str | None]
    """Returns when a living process started; None for one that is not alive."""


class Life(StrEnum):
    """What is known of the run of a note without waiting for its beat."""

    ENDED = "ended"
    """It has recorded its end."""
    GONE = "gone"
    """It ran on this machine, and its process is gone."""
    ALIVE = "alive"
    """Its process runs on this machine."""
    UNKNOWN = "unknown"
    """It ran elsewhere and has not ended: only its beat shows whether it is alive."""


class Standing(Enum):
    """What the stored note means to the run that looks at it."""

    OURS = auto()
    """The lease is ours."""
    TIED = auto()
    """Another started at the same moment: the next journal entry decides between us."""
    LOST = auto()
    """Another has taken over."""


def read_lease(store: Reader, pipeline: str) -> LeaseRecord | None:
    """Read the lease of a pipeline, or its last one; None if there never was one."""
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
    """Write the note, a line of JSON that ends in a newline."""
    return _LEASE.dump_json(writer) + b"\n"


_LEASE = TypeAdapter(LeaseRecord)


def this_machine() -> Machine:
    """Describe the machine that this process runs on."""
    return Machine(host=socket.gethostname(), id=_machine_id(), born=_born)


def life_of(writer: LeaseRecord, machine: Machine) -> Life:
    """Return what is known of a run right now.

    Of another machine, another boot or another container nothing is known.
    """
    if writer.ended:
        return Life.ENDED
    if not _is_here(writer, machine):
        return Life.UNKNOWN
    return Life.ALIVE if machine.born(writer.process) == writer.born else Life.GONE


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterStatus:
    """The run that writes a pipeline, or wrote it last, as an operator sees it."""

    run: str
    host: str
    process: int
    since: str
    state: Life
    seen: datetime | None = None
    """When it last renewed its note, by the store's clock, where it neither ended nor is alive."""


def writer_status(store: Reader, pipeline: str, machine: Machine) -> WriterStatus | None:
    """Return the writer of a pipeline; None if there never was one."""
    found = read_lease(store, pipeline)
    if found is None:
        return None
    state = life_of(found, machine)
    # Its last beat is the last sign of a run that died.
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


def standing(mine: LeaseRecord, found: LeaseRecord | None) -> Standing:
    """Return what a stored note means to us. Pure.

    One with a lower turn was written by a run that we took over from, in the moment it woke.
    """
    if found is None or found.run == mine.run or found.turn < mine.turn:
        return Standing.OURS
    if found.turn > mine.turn:
        return Standing.LOST
    return Standing.OURS if found.ended else Standing.TIED


def _machine_id() -> str | None:
    """Name this boot of this machine and the namespace of its process ids, where Linux tells."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _born(process: int) -> str | None:
    """Return when a process began, in ticks since the boot; a dead one that lingers is dead."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    # The name of the program, in parentheses, may hold anything; the fields come after it.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else fields[18]
