"""What can go wrong between a journal and the Delta log."""

from lakebed.errors import LakeError, Whose


class TableExists(LakeError):
    """Somebody else created the table first."""

    code = "table_exists"
    whose = Whose.EXTERNAL
    retryable = True


class LogRolledBack(LakeError):
    """The Delta log does not know of entries that were committed to it."""

    code = "log_rolled_back"
    whose = Whose.USER


class JournalBroken(LakeError):
    """The entries of a journal are not the unbroken chain that blizzard wrote."""

    code = "journal_broken"
    whose = Whose.USER


class SchemaRefused(LakeError):
    """An entry's columns do not fit the table's, for each of these reasons."""

    code = "schema_refused"
    whose = Whose.USER

    def __init__(self, entry: int, reasons: tuple[str, ...], **facts: object) -> None:
        super().__init__(f"entry {entry} does not fit the table: {'; '.join(reasons)}", **facts)
        self.reasons = reasons


class EntryInvalid(LakeError):
    """An entry names something that must not be committed."""

    code = "entry_invalid"
    whose = Whose.INTERNAL


class FileUnfit(LakeError):
    """A file that another program wrote cannot be committed."""

    code = "file_unfit"
    whose = Whose.USER


class FolderUnfit(LakeError):
    """A folder cannot become a table as it is."""

    code = "folder_unfit"
    whose = Whose.USER


class FileReleased(LakeError):
    """An entry reads the sources of a file again that is in the table."""

    code = "file_released"
    whose = Whose.USER
