"""What can go wrong between a journal and the Delta log."""

from lakebed.errors import LakeError, Whose


class TableExists(LakeError, code="table_exists", whose=Whose.EXTERNAL, retryable=True):
    """Somebody else created the table first."""


class LogRolledBack(LakeError, code="log_rolled_back", whose=Whose.USER):
    """The Delta log does not know of entries that were committed to it."""


class JournalBroken(LakeError, code="journal_broken", whose=Whose.USER):
    """The entries of a journal are not the unbroken chain that blizzard wrote."""


class SchemaRefused(LakeError, code="schema_refused", whose=Whose.USER):
    """An entry's columns do not fit the table's, for each of these reasons."""

    def __init__(self, entry: int, reasons: tuple[str, ...], **facts: object) -> None:
        super().__init__(f"entry {entry} does not fit the table: {'; '.join(reasons)}", **facts)
        self.reasons = reasons


class EntryInvalid(LakeError, code="entry_invalid", whose=Whose.INTERNAL):
    """An entry names something that must not be committed."""


class FileUnfit(LakeError, code="file_unfit", whose=Whose.USER):
    """A file that another program wrote cannot be committed."""


class FolderUnfit(LakeError, code="folder_unfit", whose=Whose.USER):
    """A folder cannot become a table as it is."""


class FileReleased(LakeError, code="file_released", whose=Whose.USER):
    """An entry reads the sources of a file again that is in the table."""
