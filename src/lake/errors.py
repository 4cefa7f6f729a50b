"""One family of errors: each says whose it is, and whether trying again can help.

The `code` is stable: it stands in the journal, in logs and in documentation, so an operator can
search for it. Facts travel as fields and are shown after the message.
"""

from enum import StrEnum
from typing import ClassVar


class Whose(StrEnum):
    """Who can mend it."""

    USER = "user"
    EXTERNAL = "external"
    INTERNAL = "internal"


class LakeError(Exception):
    """An error with a stable code, an owner, and a hint whether to try again."""

    code: ClassVar[str] = "internal_error"
    whose: ClassVar[Whose] = Whose.INTERNAL
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __str__(self) -> str:
        shown = ", ".join(f"{name}: {value}" for name, value in self.facts.items())
        return f"{self.message} ({shown})" if shown else self.message


class ConfigInvalid(LakeError):
    """The configuration cannot be used; every fault is one line of `faults`."""

    code = "config_invalid"
    whose = Whose.USER

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class ProtocolConflict(LakeError):
    """The configuration contradicts what the table directory already says of itself."""

    code = "protocol_conflict"
    whose = Whose.USER


class SchemaConflict(ProtocolConflict):
    """The declared fields do not fit the table: every file with them would be held."""

    code = "schema_conflict"


class StoreUnavailable(LakeError):
    """The store did not answer, or answered that it cannot now."""

    code = "store_unavailable"
    whose = Whose.EXTERNAL
    retryable = True


class ListingUnordered(LakeError):
    """The store lists objects in another order than that of their names."""

    code = "listing_unordered"
    whose = Whose.EXTERNAL


class StoreDenied(LakeError):
    """The store refused us: credentials or permissions."""

    code = "store_denied"
    whose = Whose.EXTERNAL


class StoreFull(LakeError):
    """There is no room left where we write."""

    code = "store_full"
    whose = Whose.EXTERNAL
    retryable = True


class ObjectMissing(LakeError):
    """An object that must be there is not."""

    code = "object_missing"
    whose = Whose.EXTERNAL


class ObjectChanged(LakeError):
    """An object is not the one that was listed: it was replaced or is still being written."""

    code = "object_changed"
    whose = Whose.EXTERNAL
    retryable = True


class NoExclusiveCreate(LakeError):
    """The store has no create-only writes; exactly-once is impossible on it."""

    code = "no_exclusive_create"
    whose = Whose.USER


class DocumentUnreadable(LakeError):
    """A stored document is there but cannot be read. It is never taken for missing."""

    code = "document_unreadable"
    whose = Whose.USER


class JournalConflict(LakeError):
    """Another run has appended to this journal; this run must publish nothing more."""

    code = "journal_conflict"
    whose = Whose.USER


class FilesCollected(LakeError):
    """A clean-up took files of a batch before it was journaled; its sources are read again."""

    code = "files_collected"
    whose = Whose.EXTERNAL
    retryable = True


class JournalLost(LakeError):
    """The table knows of batches that the journal does not have."""

    code = "journal_lost"
    whose = Whose.USER


class LibraryPanicked(LakeError):
    """A library ran into a fault of its own that it did not expect; see its words."""

    code = "library_panicked"
    whose = Whose.INTERNAL
    retryable = True


def panic_as_error(error: BaseException) -> BaseException:
    """Give a panic of a Rust library as one of our errors, and anything else as it is.

    A panic derives from BaseException and has no importable name; where one file's trouble must
    not be everybody's, it would pass every `except Exception`.
    """
    if type(error).__name__ != "PanicException":
        return error
    ours = LibraryPanicked(f"a library panicked: {error}")
    ours.__cause__ = error
    return ours
