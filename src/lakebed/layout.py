"""All object names in a table directory are built and parsed here.

The folder of a partition is `key=value` with the value escaped as Hive and Spark escape it; a null
(and an empty string, which Delta treats as null) is `__HIVE_DEFAULT_PARTITION__`.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import NewType
from urllib.parse import unquote
from uuid import UUID

TablePath = NewType("TablePath", str)
"""A path relative to the table's root, distinct from a URI."""

PartitionValues = Mapping[str, str | None]
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(0x20)}

OURS = "_blizzard"
PROTOCOL = f"{OURS}/protocol"
ACCEPTED = f"{OURS}/_accepted"
"""Accepted losses. No pipeline can have this name."""
REPAIRED = f"{OURS}/_repaired"
"""Files that `penguin fsck --repair` removed from the table."""
STAGING = "_staging"
PENDING = f"{STAGING}/pending"
HELD = f"{STAGING}/held"
DISCARDED = f"{STAGING}/discarded"
ADOPTION_STEP = "adopt"
"""The step in the commit metadata of an adoption."""
DELTA_LOG = "_delta_log"
CREATE_ONLY_PROOF = TablePath(".penguin-create-only")
"""The hidden object that is written and removed again to check create-only writes."""
LAST_CHECKPOINT = TablePath(f"{DELTA_LOG}/_last_checkpoint")

PIPELINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
ENTRY_NAME = re.compile(r"(\d{20})\.json")
STARTED_NAME = re.compile(r"(\d{20})\.started\.json")
PROTOCOL_NAME = re.compile(r"(\d+)\.json")
FILE_NAME = re.compile(
    r"([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})\.parquet"
)
TIMED_NAME = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})\.parquet")
"""A UUIDv7 of any variant: some writers fill those bits at random."""
PARQUET_SUFFIX = ".parquet"
META_SUFFIX = ".meta.json"
DEAD_LETTERS_NAME = re.compile(r"failures-\d{8}-\d{6}-[0-9a-f-]{36}\.ndjson")


def escape(value: str | None) -> str:
    """Escape a value so that it is one folder name."""
    if not value:
        return NULL_FOLDER
    return "".join(f"%{ord(char):02X}" if char in ESCAPED else char for char in value)


def unescape(name: str) -> str | None:
    """Parse a value of a folder name."""
    return None if name in ("", NULL_FOLDER) else unquote(name, errors="strict")


def folder(values: PartitionValues) -> str:
    """Name the folder of a partition, in the order of its keys; empty for the table's root."""
    return "/".join(f"{escape(key)}={escape(value)}" for key, value in values.items())


def data_file(values: PartitionValues, fresh_id: UUID) -> TablePath:
    """Name a data file: `{partition}/{uuidv7}.parquet`."""
    name = f"{fresh_id}.parquet"
    return TablePath(f"{folder(values)}/{name}" if values else name)


def file_id(path: str) -> str | None:
    """Return the UUIDv7 in a data file's name; None for anything else in a table."""
    return _named_by(FILE_NAME, path)


def timed_id(path: str) -> str | None:
    """Return the id with the time in a data file's name, also of another variant."""
    return _named_by(TIMED_NAME, path)


def _named_by(pattern: re.Pattern[str], path: str) -> str | None:
    first, _, _ = path.partition("/")
    found = pattern.fullmatch(path.rpartition("/")[2])
    return found[1] if found and not is_hidden(first) else None


def is_hidden(part: str) -> bool:
    """Whether a folder or file of this name holds no data: Delta and VACUUM ignore it, too.

    A partition folder is not hidden, even if its column's name begins with one of these.
    """
    return part.startswith(("_", ".")) and "=" not in part


def is_parquet(path: str) -> bool:
    """Whether a path has the suffix of a Parquet file."""
    return path.lower().endswith(PARQUET_SUFFIX)


def why_unreadable(path: str) -> str | None:
    """Return why readers could not read a file of this name from a log; None if they can.

    A log writes paths as URIs. Spark and deltalake treat the text before a colon in the first part
    as a scheme, and one such file makes the whole table unreadable; Spark opens no file with a
    colon in its name; polars treats a star as a pattern.
    """
    parts = path.split("/")
    if ":" in parts[0] or ":" in parts[-1]:
        where = "the first folder" if ":" in parts[0] and len(parts) > 1 else "the name"
        return f"{where} has a colon, which Spark and deltalake take for part of a URI"
    return "its path has a star, which polars takes for a pattern" if "*" in path else None


def outbox(pipeline: str, file: TablePath) -> TablePath:
    """Name the object under which a file waits, unseen, until its entry is in the journal."""
    return TablePath(f"{OURS}/{pipeline}/outbox/{file}")


def outbox_file(pipeline: str, path: str) -> TablePath | None:
    """Return the final name of a file in a pipeline's outbox; None for anything else."""
    folder = f"{OURS}/{pipeline}/outbox/"
    name = path.removeprefix(folder)
    return TablePath(name) if path.startswith(folder) and file_id(name) is not None else None


def started_sequence(pipeline: str, path: str) -> int | None:
    """Return N for the start count of batch N; None for anything else."""
    folder, _, name = path.rpartition("/")
    found = STARTED_NAME.fullmatch(name)
    return int(found[1]) if found and folder == journal_folder(pipeline) else None


def pending_meta(file: TablePath) -> TablePath:
    """Name the meta that hands a data file off, by the file's UUID."""
    return TablePath(f"{PENDING}/{file_name(file)}{META_SUFFIX}")


def held_meta(name: str) -> TablePath:
    """Name the meta of a held file, by the file's UUID."""
    return TablePath(f"{HELD}/{name}{META_SUFFIX}")


def discarded_meta(name: str) -> TablePath:
    """Name the meta of a discarded file, by the file's UUID."""
    return TablePath(f"{DISCARDED}/{name}{META_SUFFIX}")


def is_meta(path: str, folder: str = PENDING) -> bool:
    """Whether an object is a meta in the folder, of any writer."""
    stands_in, _, name = path.rpartition("/")
    return stands_in == folder and name.endswith(META_SUFFIX)


def file_name(path: str) -> str:
    """Return a data file's name without folder and suffix: usually its UUID."""
    return path.rpartition("/")[2].removesuffix(".parquet")


def protocol(number: int) -> TablePath:
    """Name the k-th protocol document; the highest one counts."""
    return TablePath(f"{PROTOCOL}/{number}.json")


def protocol_number(path: str) -> int | None:
    """Return k for the k-th protocol document; None for anything else."""
    found = PROTOCOL_NAME.fullmatch(path.rpartition("/")[2])
    return int(found[1]) if found else None


def journal_folder(pipeline: str) -> str:
    """Name the folder of a pipeline's journal."""
    return f"{OURS}/{pipeline}/journal"


def replaced_journal(pipeline: str, journal: str) -> str:
    """Name the folder of a replaced journal."""
    return f"{OURS}/{pipeline}/journal-{journal}"


def is_replaced_journal(folder: str) -> bool:
    """Whether a folder of a pipeline is that of a replaced journal."""
    return folder.rstrip("/").rpartition("/")[2].startswith("journal-")


def journal_entry(pipeline: str, sequence: int) -> TablePath:
    """Name entry N of a pipeline's journal."""
    return entry_in(journal_folder(pipeline), sequence)


def entry_in(folder: str, sequence: int) -> TablePath:
    """Name entry N of the journal in a folder, current or replaced."""
    return TablePath(f"{folder}/{sequence:020d}.json")


def batch_started(pipeline: str, sequence: int) -> TablePath:
    """Name the start count of batch N."""
    return TablePath(f"{journal_folder(pipeline)}/{sequence:020d}.started.json")


def snapshot(pipeline: str) -> TablePath:
    """Name the snapshot of a journal's state."""
    return TablePath(f"{journal_folder(pipeline)}/snapshot.json")


def known_folder(pipeline: str) -> str:
    """Name the folder of a journal's derived data: ingested names, and its books."""
    return f"{OURS}/{pipeline}/known"


def known_segment(pipeline: str, path: str) -> str | None:
    """Return the segment of an object; None for anything else."""
    folder, _, name = path.rpartition("/")
    return name.partition(".")[0] if folder == known_folder(pipeline) else None


def known_names(pipeline: str, segment: str) -> TablePath:
    """Name a segment of ingested names."""
    return TablePath(f"{known_folder(pipeline)}/{segment}.names")


def known_index(pipeline: str, segment: str) -> TablePath:
    """Name the index of a segment of ingested names."""
    return TablePath(f"{known_folder(pipeline)}/{segment}.index.json")


def entry_sequence(path: str) -> int | None:
    """Return N for entry N; None for anything else in a journal's folder."""
    found = ENTRY_NAME.fullmatch(path.rpartition("/")[2])
    return int(found[1]) if found else None


def dead_letter_folder(pipeline: str) -> str:
    """Name the default folder of a pipeline's dead letter queue."""
    return f"{OURS}/{pipeline}/dlq"


def dead_letters(at: datetime, fresh_id: UUID) -> str:
    """Name an object of a dead letter queue: `failures-{YYYYMMDD}-{HHMMSS}-{uuidv7}.ndjson`."""
    return f"failures-{at:%Y%m%d-%H%M%S}-{fresh_id}.ndjson"


def is_dead_letters(path: str) -> bool:
    """Whether a name is that of an object of a dead letter queue."""
    return DEAD_LETTERS_NAME.fullmatch(path.rpartition("/")[2]) is not None


def quarantine_folder(pipeline: str) -> str:
    """Name the folder of a pipeline's quarantine files."""
    return f"{OURS}/{pipeline}/quarantine"


def quarantine_file(pipeline: str, fresh_id: UUID) -> TablePath:
    """Name a quarantine file: `_blizzard/{pipeline}/quarantine/{uuidv7}.parquet`."""
    return TablePath(f"{quarantine_folder(pipeline)}/{fresh_id}.parquet")


def is_quarantine_file(pipeline: str, path: str) -> bool:
    """Whether a name is that of a quarantine file of a pipeline."""
    folder, _, name = path.rpartition("/")
    return folder == quarantine_folder(pipeline) and FILE_NAME.fullmatch(name) is not None


def receipt(pipeline: str) -> TablePath:
    """Name the receipt of a pipeline's last commit."""
    return TablePath(f"{OURS}/{pipeline}/receipt.json")


def writer(pipeline: str) -> TablePath:
    """Name the lease of a pipeline."""
    return TablePath(f"{OURS}/{pipeline}/writer.json")


def belongs_to(pipeline: str, path: str) -> bool:
    """Whether a name may be that of an object of a pipeline, or of the shared table."""
    shared = (
        f"{PROTOCOL}/",
        f"{ACCEPTED}/",
        f"{REPAIRED}/",
        f"{PENDING}/",
        f"{HELD}/",
        f"{DELTA_LOG}/",
    )
    return file_id(path) is not None or path.startswith((f"{OURS}/{pipeline}/", *shared))


def pipelines(folders: list[str]) -> list[str]:
    """Return the pipelines among the folders below `_blizzard/`."""
    names = (name.rstrip("/").rpartition("/")[2] for name in folders)
    return sorted(name for name in names if name != "protocol" and PIPELINE_NAME.fullmatch(name))


def accepted(version: int) -> TablePath:
    """Name the document that accepts the loss by a version of the Delta log."""
    return TablePath(f"{ACCEPTED}/{version:020d}.json")


def repaired(version: int) -> TablePath:
    """Name the document of the missing files that a version of the Delta log removed."""
    return TablePath(f"{REPAIRED}/{version:020d}.json")


def log_version(version: int) -> TablePath:
    """Name a version of the Delta log."""
    return TablePath(f"{DELTA_LOG}/{version:020d}.json")


def log_version_number(path: str) -> int | None:
    """Return the number of a version of the Delta log; None for anything else."""
    return entry_sequence(path)


def journal_transaction(pipeline: str, journal: str) -> str:
    """Name the app transaction whose version is the last committed entry of a journal."""
    return f"blizzard/{pipeline}/{journal}"


def digest_transaction(pipeline: str, journal: str) -> str:
    """Name the app transaction with the digest of the last committed entry."""
    return f"blizzard/{pipeline}/{journal}/digest"


def pipeline_transaction(pipeline: str) -> str:
    """Name the app transaction that records that a pipeline was ever committed to this table.

    The other two carry the journal's id, which is unknown once the journal is lost.
    """
    return f"blizzard/{pipeline}"


def held_transaction(name: str) -> str:
    """Name the app transaction with the mark of a held file."""
    return f"{HELD_TRANSACTIONS}{name}"


def taken_out_transaction(name: str) -> str:
    """Name the app transaction that counts removals of a file that came back."""
    return f"{OUR_TRANSACTIONS}taken-out/{name}"


OUR_TRANSACTIONS = "penguin/"
"""The prefix of penguin's own app transactions, such as those of foreign files."""
HELD_TRANSACTIONS = f"{OUR_TRANSACTIONS}held/"
SCAN_TRANSACTION = f"{OUR_TRANSACTIONS}scan"
"""Counts commits with foreign files, so that of two concurrent ones one conflicts."""
SCANNED_TRANSACTION = f"{OUR_TRANSACTIONS}scanned"
"""Its version is the highest time, in milliseconds, in the name of a scanned file."""


def foreign_transaction(path: str) -> str:
    """Name the app transaction that records the commit of a foreign file.

    A UUIDv7 identifies a file in any folder; any other name counts with its folders.
    """
    return f"{OUR_TRANSACTIONS}{file_id(path) or f'file/{path}'}"


def is_foreign_transaction(app_id: str) -> bool:
    """Whether an app transaction records the commit of one foreign file."""
    name = app_id.removeprefix(OUR_TRANSACTIONS)
    if name == app_id:
        return False
    is_id = "/" not in name and file_id(f"{name}{PARQUET_SUFFIX}") is not None
    return is_id or name.startswith("file/")
