"""What both programs know of themselves, and whether they answer."""

from collections.abc import Callable

from liveview.lake import Lake, ProgramName
from liveview.looks.desk import Busy, Desk
from liveview.looks.other import Unreachable, ask
from liveview.model import Program
from liveview.parts import Process

MAX_AGE_SECS = 1.0
UNREACHABLE_SECS = 5.0
"""After how long a program is asked again that has not answered."""


class Programs:
    """The program that answers here, and the other one of the same configuration."""

    def __init__(
        self,
        lake: Lake,
        own: ProgramName,
        process: Callable[[], Process],
        desk: Desk,
        patience: float,
    ) -> None:
        self._lake = lake
        self._other: ProgramName = "penguin" if own == "blizzard" else "blizzard"
        self._process = process
        self._desk = desk
        self._patience = patience

    def heard(self) -> tuple[list[Process], list[Program]]:
        """Return the processes that answer, this one first, and both programs by name."""
        own = self._process()
        address = self._lake.addresses.get(self._other)
        other, note = self._heard_of_other(address)
        there = (
            Program(name=self._other, version=None, reachable=False, address=address, note=note)
            if other is None
            else _reachable(other, address)
        )
        programs = [_reachable(own, self._lake.addresses.get(own.program)), there]
        found = [own] if other is None else [own, other]
        return found, sorted(programs, key=lambda one: one.name)

    def _heard_of_other(self, address: str | None) -> tuple[Process | None, str | None]:
        """Return what the other program says, or why it is not heard."""
        note = self._lake.notes.get(self._other)
        if address is None or note is not None:
            return None, note
        question = ("process", self._other)
        is_away = isinstance(self._desk.last(question), Unreachable)
        try:
            heard = self._desk.ask(
                question,
                lambda: ask(address, self._lake.guard, timeout=self._patience),
                max_age=UNREACHABLE_SECS if is_away else MAX_AGE_SECS,
                # Connecting and answering may each take as long.
                wait=2 * self._patience,
            )
        except Busy:
            heard = Unreachable(f"nobody answers at {address}")
        if isinstance(heard, Unreachable):
            return None, heard.note
        if heard.program != self._other:
            return None, f"another program answers at {address}"
        return heard, None


def _reachable(process: Process, address: str | None) -> Program:
    return Program(
        name=process.program,
        version=process.version,
        reachable=True,
        started_at=process.started_at,
        address=address,
    )
