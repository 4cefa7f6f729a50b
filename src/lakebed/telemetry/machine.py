"""What a program says of itself and of its machine: its version, and the room that is left."""

import math
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lakebed.telemetry.events import PROGRAM
from lakebed.telemetry.health import Part, PartKind
from lakebed.telemetry.measures import Measure, Reading, Sampled

UsageOf = Callable[[Path], Any]
"""Returns how large a disk is (`total`), and how much of it is free (`free`), in bytes."""


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
        for what, amount in (("free", "free"), ("size", "total")):
            name = f"{PROGRAM[part.kind]}_disk_{what}_bytes"
            yield Sampled(name, partial(_asked, folder, usage_of, amount), labels)


def _asked(folder: Path, usage_of: UsageOf, amount: str) -> float:
    # A table that is yet to be made will be where its nearest folder is.
    there = next((each for each in (folder, *folder.parents) if each.exists()), None)
    try:
        return math.nan if there is None else float(getattr(usage_of(there), amount))
    except OSError:
        return math.nan  # The steps on a disk that is gone fail.
