"""What a process and everything it started use: CPU seconds, and memory at most."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def processes(root: int) -> list[int]:
    """Name a process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            parent = int(_stat(int(folder.name))[1])
            children.setdefault(parent, []).append(int(folder.name))
    found = [root]
    for each in found:
        found += children.get(each, [])
    return found


def cpu_seconds(root: int) -> float:
    """Return what the tree has used so far, those of its processes included that have ended."""
    total = 0
    for each in processes(root):
        with suppress(OSError):
            total += sum(map(int, _stat(each)[11:15]))
    return total / TICKS


@dataclass(slots=True)
class Memory:
    """Resident bytes of a tree over a time: of its Python workers, and of all of it."""

    worker: list[int] = field(default_factory=list)
    """The largest Python process below the root, at each look."""
    whole: list[int] = field(default_factory=list)


@contextmanager
def watched(root: int, every: float = 0.25) -> Iterator[Memory]:
    """Look at the memory of a tree until the block ends."""
    memory, done = Memory(), threading.Event()

    def look() -> None:
        while not done.wait(every):
            sizes = {each: _resident(each) for each in processes(root)}
            python = [size for each, size in sizes.items() if each != root and _is_python(each)]
            memory.whole.append(sum(sizes.values()))
            memory.worker.append(max(python, default=0))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        done.set()
        thread.join()


def _stat(process: int) -> list[str]:
    """Return the numbers that follow the name, which may hold spaces."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()


def _resident(process: int) -> int:
    with suppress(OSError):
        return int(_stat(process)[21]) * PAGE
    return 0


def _is_python(process: int) -> bool:
    with suppress(OSError):
        return b"python" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]
    return False
