"""A store that dies at a chosen call and answers nothing from then on."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakebed.storage.store import Store

READS = ("get", "fetch", "head", "part", "objects", "folders", "level")
CHANGES = ("create", "replace", "upload", "move", "delete", "abort", "sync")


class Died(BaseException):
    """The process is gone. No `except Exception` may outlive it."""


@dataclass
class Fate:
    """Which call is the last, counted over all stores of one life."""

    call: int
    after: bool = False
    """Whether the call still reaches the store, and only its answer is lost."""
    changes_only: bool = False
    """Whether only calls that change the store count.

    Who dies at a call that only reads leaves what a death at the change before or after it leaves.
    So these are all the states that there are, for a fraction of the lives. Where something is
    written past the store, every call counts.
    """
    calls: int = 0
    died: bool = False

    @classmethod
    def none(cls) -> "Fate":
        return cls(call=0)

    @classmethod
    def at_change(cls, number: int) -> "Fate":
        """Return the n-th death around changes: before the first, after it, before the second …"""
        return cls((number + 1) // 2, after=number % 2 == 0, changes_only=True)


def dying(store: Store, fate: Fate) -> Store:
    """Wrap every call of a store, so that the fated one is the last."""

    def wrap(name: str) -> Any:
        original = getattr(store, name)
        counts = name in CHANGES or not fate.changes_only

        def call(*arguments: Any, **named: Any) -> Any:
            if fate.died:
                raise Died
            fate.calls += counts
            if counts and fate.calls == fate.call:
                fate.died = True
                if fate.after:
                    original(*arguments, **named)
                raise Died
            return original(*arguments, **named)

        return call

    for name in (*READS, *CHANGES):
        setattr(store, name, wrap(name))
    return store


def lives(folder: Path, most: int = 200, *, after: bool | None = None) -> Iterator[Fate]:
    """Yield a death at each call until a life makes fewer calls; by turns, they are after it.

    Each life begins with the files as they are now, at the same place, with the same times.
    """
    kept = folder.with_name(f"{folder.name}.kept")
    shutil.copytree(folder, kept, copy_function=_same)
    before = _files(kept)
    for number in range(1, most):
        fate = Fate(number, after=bool(number % 2) if after is None else after)
        yield fate
        assert _files(kept) == before, "a file was written to in its place"
        if not fate.died:
            return
        shutil.rmtree(folder)
        shutil.copytree(kept, folder, copy_function=_same)
    pytest.fail(f"a life makes more than {most} calls")


def _same(source: str, target: str) -> None:
    """Link a file: both programs write whole files only. A test may edit its configuration."""
    if source.endswith(".yaml"):
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (facts.st_size, facts.st_mtime_ns) for path, facts in found.items()}
