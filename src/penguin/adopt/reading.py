"""What one file of a folder is, by its footer: at most two ranged reads."""

from lakebed.storage.store import Reader
from penguin.adopt.working_state import schema_key
from penguin.foreign.columns import as_the_table_sees_it
from penguin.foreign.inspect import BlizzardFile, verdict_on
from penguin.foreign.rules import OF_BLIZZARD, UNFIT
from penguin.model.adoption import FileRecord, Trouble
from penguin.model.foreign_file import Candidate, ForeignFile, LeftOut

WHY_OF_BLIZZARD = (
    "blizzard wrote it, and only the journal of its table says whether its rows count; adopt a "
    "folder without such files"
)


def read_record(store: Reader, one: Candidate) -> FileRecord | None:
    """Return what a file is; None where it changes or goes while it is looked at."""
    verdict = verdict_on(store, one)
    match verdict:
        case None:
            return None
        case BlizzardFile():
            trouble = Trouble(file=one.path, code=OF_BLIZZARD, reason=WHY_OF_BLIZZARD)
            return FileRecord(found=one, trouble=trouble)
        case LeftOut(code=code, reason=reason):
            # No table can hold some of its columns, or it is no whole Parquet file.
            trouble = Trouble(file=one.path, code=code, reason=reason, skippable=code == UNFIT)
            return FileRecord(found=one, trouble=trouble)
        case ForeignFile():
            # A table of files that are there already requires nothing of them.
            schema = as_the_table_sees_it(verdict.schema, {}, None, ())
            file = ForeignFile(
                found=one, rows=verdict.rows, schema=schema, statistics=verdict.statistics
            )
            return FileRecord(found=one, file=file, schema_key=schema_key(schema))
