"""What a program says of itself and of its machine: its version, and the room that is left."""

import math
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from lakebed.telemetry.events import PROGRAM
from lakebed.telemetry.health import Part, PartKind
from lakebed.telemetry.measures import Measure, Reading, Sampled


class Usage(Protocol):
    """How large a disk is, and how much of it is free, in bytes."""

    @property
    def total(self) -> int:
        """The size."""

    @property
    def free(self) -> int:
        """What is left."""


UsageOf = Callable[[Path], Usage]


def build_info(kind: PartKind, *libraries: str) -> Reading:
    """Return which program this is, and which versions it is made of."""
    labels = {"version": version("blizzard-penguin"), "python": platform.python_version()}
    labels |= {library: version(library) for library in libraries}
    return Reading(f"{PROGRAM[kind]}_build_info", 1, labels)


def room(
    folders: Iterable[tuple[Part, Path | None]], usage_of: UsageOf = shutil.disk_usage
) -> Iterator[Measure]:
    """Yield the room on the disk of each table that lies in a folder; a bucket has no such end."""
    for part, folder in folders:
        if folder is None:
            continue
        labels = {part.kind.value: part.name}
        for what, size in (("free", _free), ("size", _total)):
            name = f"{PROGRAM[part.kind]}_disk_{what}_bytes"
            yield Sampled(name, _asked(folder, usage_of, size), labels)


def _asked(folder: Path, usage_of: UsageOf, amount: Callable[[Usage], int]) -> Callable[[], float]:
    def ask() -> float:
        # A table that is yet to be made will be where its nearest folder is.
        there = next((each for each in (folder, *folder.parents) if each.exists()), None)
        try:
            return math.nan if there is None else float(amount(usage_of(there)))
        except OSError:
            return math.nan  # A disk that is gone has no room to tell of, and fails steps.

    return ask


def _free(usage: Usage) -> int:
    return usage.free


def _total(usage: Usage) -> int:
    return usage.total
