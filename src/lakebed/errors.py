"""The errors of both programs: each has an owner, and says whether retrying can help.

The `code` is stable: it is in the journal, in logs and in the documentation, so operators can
search for it. Facts are fields and are shown after the message.

Object names may contain line breaks, control characters that a terminal obeys, and marks that
change the direction of text, so that `gpj.nosjdn` seems to end in `.ndjson`. All of these are
escaped wherever text is printed, as Python and JSON do.
"""

import errno
import os
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

_MISLEADING = (
    r"\x00-\x1f\x7f-\x9f"  # control characters
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks of text direction
    r"\u200b\u2028\u2029\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # invisible characters
    r"\ud800-\udfff"  # surrogates
)
HIDDEN = re.compile(f"[{_MISLEADING}]")
"""Characters that mislead a reader or a terminal."""


def printable(text: object, *, keep: str = "") -> str:
    """Return a text with the characters escaped that mislead a reader or a terminal."""
    return HIDDEN.sub(
        lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], str(text)
    )


class Whose(StrEnum):
    """Who can fix an error."""

    USER = "user"
    EXTERNAL = "external"
    INTERNAL = "internal"


class LakeError(Exception):
    """An error with a stable code, an owner, and a hint whether to retry.

    A subclass sets those that differ from its base as keywords of its `class` statement.
    """

    code: ClassVar[str] = "internal_error"
    whose: ClassVar[Whose] = Whose.INTERNAL
    retryable: ClassVar[bool] = False

    def __init_subclass__(
        cls, *, code: str = "", whose: Whose | None = None, retryable: bool = False
    ) -> None:
        super().__init_subclass__()
        cls.code, cls.whose = code or cls.code, whose or cls.whose
        cls.retryable = retryable or cls.retryable

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __str__(self) -> str:
        # A file name must neither look like another line nor control a terminal.
        return self._with({name: printable(value) for name, value in self.facts.items()})

    def after(self, prefix: str) -> str:
        """Return the text with only those facts that neither it nor `prefix` contains."""
        before = f"{prefix} {self.message}"
        facts = {name: printable(value) for name, value in self.facts.items()}
        # A short fact may be part of another word.
        new = {name: text for name, text in facts.items() if len(text) < 4 or text not in before}
        return self._with(new)

    def _with(self, facts: Mapping[str, str]) -> str:
        shown = ", ".join(f"{name}: {text}" for name, text in facts.items())
        return f"{self.message} ({shown})" if shown else self.message


class ConfigInvalid(LakeError, code="config_invalid", whose=Whose.USER):
    """The configuration cannot be used; every fault is one line of `faults`."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class ArgumentInvalid(LakeError, whose=Whose.USER):
    """Base of errors about command line arguments; each has a code of its own."""


class ProtocolConflict(LakeError, code="protocol_conflict", whose=Whose.USER):
    """The configuration contradicts the table directory."""


class SourceMoved(ProtocolConflict, code="source_moved"):
    """A source is at another location than its journal says."""


class SchemaConflict(ProtocolConflict, code="schema_conflict"):
    """The declared fields do not fit the table: every file with them would be held."""


class StoreUnavailable(LakeError, code="store_unavailable", whose=Whose.EXTERNAL, retryable=True):
    """The store did not answer, or is unavailable."""


class ListingUnordered(LakeError, code="listing_unordered", whose=Whose.EXTERNAL):
    """The store does not list objects in the order of their names."""


class NameUnusable(LakeError, code="name_unusable", whose=Whose.USER, retryable=True):
    """The store has an object whose name the library cannot handle, so a listing fails."""

    key = ""
    """The raw name in the store, relative to the root."""


class StoreDenied(LakeError, code="store_denied", whose=Whose.EXTERNAL):
    """The store denied access: credentials or permissions."""


class StoreMisconfigured(LakeError, code="store_misconfigured", whose=Whose.EXTERNAL):
    """The store cannot be used as configured: a key, a region or a bucket is wrong.

    It affects every object there, so no single one is to blame. It may be fixed while we wait.
    """


class StoreFull(LakeError, code="store_full", whose=Whose.EXTERNAL, retryable=True):
    """There is no space left to write."""


class ObjectMissing(LakeError, code="object_missing", whose=Whose.EXTERNAL):
    """A required object is missing."""


class ObjectChanged(LakeError, code="object_changed", whose=Whose.EXTERNAL, retryable=True):
    """An object differs from the one that was listed: it was replaced or is still being written."""


class NoExclusiveCreate(LakeError, code="no_exclusive_create", whose=Whose.USER):
    """The store has no create-only writes; exactly-once is impossible on it."""


class DocumentUnreadable(LakeError, code="document_unreadable", whose=Whose.USER):
    """A stored document cannot be read. It is never treated as missing."""


class JournalConflict(LakeError, code="journal_conflict", whose=Whose.USER):
    """Another run has appended to this journal; this run must publish nothing more."""


class FilesCollected(LakeError, code="files_collected", whose=Whose.EXTERNAL, retryable=True):
    """A clean-up took files of a batch before it was journaled; its sources are read again."""


class ColumnsPromoted(LakeError, code="columns_promoted", whose=Whose.EXTERNAL, retryable=True):
    """A column was promoted while a batch ran without it; the batch's sources are read again."""


class SourcesReplaced(LakeError, code="sources_replaced", whose=Whose.EXTERNAL, retryable=True):
    """A command read a source file while a batch did; the batch's others are read again."""


class JournalLost(LakeError, code="journal_lost", whose=Whose.USER):
    """The table knows of batches that the journal does not have."""


class LibraryPanicked(LakeError, code="library_panicked", whose=Whose.INTERNAL, retryable=True):
    """A library failed internally; see its message."""


class MachineTrouble(LakeError, code="machine_trouble", whose=Whose.EXTERNAL, retryable=True):
    """The machine lacks a resource: memory, file handles, threads, its own disk."""


_FULL = "no space is left on the machine's own disk; free some, or point TMPDIR to a larger one"
_OUT_OF_MEMORY = (
    "there was not enough memory; give the process more, or have it do less at once: fewer "
    "cores in spark.master, a smaller row_group_size_bytes"
)
_WAYS_OUT: Mapping[int, tuple[type[LakeError], str]] = {
    errno.ENOSPC: (StoreFull, _FULL),
    errno.EDQUOT: (StoreFull, "the disk quota is used up; free some space or raise the quota"),
    errno.EMFILE: (
        MachineTrouble,
        "too many open files; raise the limit (ulimit -n)",
    ),
    errno.ENFILE: (MachineTrouble, "the whole machine has too many open files; raise fs.file-max"),
    errno.EIO: (
        MachineTrouble,
        "the machine's own disk reported an I/O error; see the kernel's log",
    ),
    errno.EROFS: (MachineTrouble, "the file system is read-only; remount it, or set TMPDIR"),
    errno.ENOMEM: (MachineTrouble, _OUT_OF_MEMORY),
}
_NO_THREAD = "can't start new thread"


def machine_trouble(error: BaseException) -> LakeError | None:
    """Return a problem of the machine itself as one of our errors; None for any other error.

    It says nothing about the file being read or written, and may pass or be fixed: the work can be
    retried. Errors of a store are already ours at this point.
    """
    if isinstance(error, LakeError):
        return None
    if isinstance(error, MemoryError):
        return MachineTrouble(_OUT_OF_MEMORY)
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return MachineTrouble("no more threads can be started; raise the limit (ulimit -u)")
    if not isinstance(error, OSError):
        return None
    for number, (kind, message) in _WAYS_OUT.items():
        # Libraries raise errors with the system's message but not its number.
        if error.errno == number or os.strerror(number) in str(error):
            return kind(message)
    return MachineTrouble(f"the operating system refused: {error.strerror or error}")


class TableUnreadable(LakeError, code="table_unreadable", whose=Whose.EXTERNAL):
    """There is a Delta log that cannot be read. It is never treated as missing."""


class TableUnsupported(ProtocolConflict, code="table_unsupported"):
    """The table requires something that penguin does not support."""


class CommitUnconfirmed(LakeError, code="commit_failed", whose=Whose.EXTERNAL, retryable=True):
    """A commit raised an error; only the log can say whether it was made."""


def codes_in(names: Mapping[str, object]) -> tuple[str, ...]:
    """Return the codes of all errors in a module, sorted."""
    errors = (name for name in names.values() if isinstance(name, type))
    return tuple(sorted({error.code for error in errors if issubclass(error, LakeError)}))


def panic_as_error(error: BaseException) -> BaseException:
    """Return a panic of a Rust library as one of our errors, and anything else as it is.

    A panic derives from BaseException and has no importable name, so it would escape `except
    Exception` where one file's failure must not affect the others.
    """
    if type(error).__name__ != "PanicException":
        return error
    ours = LibraryPanicked(f"a library panicked: {error}")
    ours.__cause__ = error
    return ours
