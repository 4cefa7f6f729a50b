"""Which source files are named to have their rows taken back, and whether they can be. Pure.

A file is known by its place; what the journal says last of it decides.
"""

from dataclasses import dataclass

from blizzard.journal.ledger import Before


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A source file whose rows are to be taken back, as the object that it was."""

    key: str
    size: int
    etag: str | None

    @property
    def source(self) -> str:
        """Return the name of its source."""
        return self.key.partition(":")[0]

    @property
    def path(self) -> str:
        """Return its path below the source."""
        return self.key.partition(":")[2]

    @classmethod
    def of(cls, key: str, before: Before) -> "Named | None":
        """Return a file as the journal knows it; None where it does not."""
        done = before.finished
        if done is not None:
            return cls(key=key, size=done.size, etag=done.etag)
        left = before.unfinished
        return None if left is None else cls(key=key, size=left.record.size, etag=left.record.etag)


def why_not(before: Before, committer: str) -> str | None:
    """Return why the rows of a file cannot be taken back, by what the journal knows of it."""
    and_commit = "" if committer == "blizzard" else f" and {committer}"
    left = before.unfinished
    if left is None:
        return None
    record = left.record
    if record.redo:
        return f"is to be read again, as blizzard redo asked; run blizzard{and_commit} first"
    if record.failure is None:
        return (
            f"is read up to line {record.records_read} only; run blizzard{and_commit} first, until "
            "it is read to its end"
        )
    if not record.records_read and before.finished is None:
        return "failed, and no row of it is in the table"
    return None


def has_rows(before: Before) -> bool:
    """Whether rows of a file may be in the table, by what the journal knows of it."""
    left = before.unfinished
    return before.finished is not None or (left is not None and left.record.records_read > 0)
