"""Version 0 of an adopted table: put together on the machine's own disk, and read back."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakebed.documents.reading import parse_json
from lakebed.errors import ObjectMissing
from lakebed.layout import ADOPTION_STEP, log_version
from lakebed.storage.store import Reader
from penguin.delta.version import added, encoded
from penguin.model.adoption import Totals
from penguin.model.commit import Add

PART = 8 << 20
FIRST_LINE = 64 * 1024
"""Bytes that are sure to hold the first line of a version that adopts a folder."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """Files of one attempt."""

    folder: Path

    @property
    def adds(self) -> Path:
        """Return where the actions go that add files."""
        return self.folder / "adds"

    @property
    def body(self) -> Path:
        """Return where the whole version goes."""
        return self.folder / "version"

    @property
    def checkpoint(self) -> Path:
        """Return where its checkpoint goes."""
        return self.folder / "checkpoint"

    def put_together(self, begin: bytes) -> Path:
        """Put the first actions before those that add files."""
        with self.body.open("wb") as whole, self.adds.open("rb") as adds:
            whole.write(begin)
            shutil.copyfileobj(adds, whole, PART)
        return self.body

    def fetch(self, store: Reader) -> Path:
        """Read version 0 from the store, some megabytes at a time."""
        path = log_version(0)
        facts = store.head(path)
        if facts is None:
            raise ObjectMissing("version 0 of the log is gone", path=store.describe(path))
        with self.body.open("wb") as whole:
            for start in range(0, facts.size, PART):
                end = min(start + PART, facts.size)
                whole.write(store.part(path, start, end, etag=facts.etag))
        return self.body


def add_line(add: Add) -> bytes:
    """Return the line of a version that adds a file."""
    return encoded([added(add)])


def told_of(token: str, totals: Totals) -> dict[str, object]:
    """Return what the version says of itself, for whoever reads the log."""
    return {
        "step": ADOPTION_STEP,
        "token": token,
        "entries": {},
        "others": {"files": totals.files},
        "adopted": {"files": totals.files, "rows": totals.rows, "bytes": totals.bytes},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstVersion:
    """What version 0 of a table says of its adoption."""

    token: str
    totals: Totals


def read_first_version(store: Reader) -> FirstVersion | None:
    """Read by its first line how a table was adopted; None where it was not, or does not say."""
    facts = store.head(log_version(0))
    if facts is None:
        return None
    end = min(facts.size, FIRST_LINE)
    line, _, _ = store.part(facts.path, 0, end, etag=facts.etag).partition(b"\n")
    try:
        told = parse_json(line)
    except ValueError:
        return None
    match told:
        case {"commitInfo": {"penguin": {"step": step, "token": str(token), "adopted": totals}}}:
            first = FirstVersion(token=token, totals=_totals(totals))
            return first if step == ADOPTION_STEP else None
    return None


def _totals(told: Mapping[str, Any]) -> Totals:
    return Totals(
        files=int(told.get("files", 0)),
        rows=int(told.get("rows", 0)),
        bytes=int(told.get("bytes", 0)),
    )
