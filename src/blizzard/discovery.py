"""Which source files are there, and which of them are new. Lists, then decides purely."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from blizzard.compression import Codec, codec_of
from blizzard.flow import Known, SourceFile
from blizzard.settings import Compression, SourceSettings
from lake.entry import Failure, SourceRecord, Stage
from lake.errors import LakeError
from lake.partition import Template, check_value
from lake.retry import Backoff
from lake.schema import Field
from lake.storage import ObjectFacts, Reader

RECORDS = (".ndjson", ".jsonl", ".json")
PACKED = ("", ".gz", ".zst")
SUFFIXES = tuple(record + packed for record in RECORDS for packed in PACKED)

RETRY = Backoff(first_secs=30, limit_secs=3600)
"""How long a file rests that failed in a way that trying again can help."""


class PartitionUnknown(LakeError):
    """A source file's path does not give the partition values that the template asks for."""

    code = "partition_unknown"


def is_source_file(path: str) -> bool:
    """Take NDJSON by its suffix; names that begin with `_` or `.` are somebody's bookkeeping."""
    return path.endswith(SUFFIXES) and not any(part[:1] in "_." for part in path.split("/"))


def list_source(store: Reader) -> list[ObjectFacts]:
    """List the source files, in the order of their paths. A listing that fails, fails whole."""
    return sorted(
        (facts for facts in store.objects() if is_source_file(facts.path)),
        key=lambda facts: facts.path,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One look at a source: what to take now, and what not, sorted by the reason."""

    take: tuple[SourceFile, ...]
    overwritten: tuple[ObjectFacts, ...]
    """Ingested before, and another object now."""
    resting: tuple[SourceRecord, ...]
    """Failed before, and not to be tried again yet."""
    misplaced: tuple[SourceRecord, ...]
    """New, and failed already: their path does not give their partition."""
    left_over: int
    """New files beyond the limits of one batch."""


def decide(
    listed: Iterable[ObjectFacts],
    *,
    source: SourceSettings,
    template: Template | None,
    partition_fields: Mapping[str, Field],
    known: Callable[[str], Known | None],
    tried: frozenset[str],
    now: datetime,
) -> Finding:
    """Say which of the listed files are to be read now, and why the others are not. Pure.

    `tried` are keys that have failed in this run and must not be tried again (with `--once`).
    """
    take: list[SourceFile] = []
    overwritten, resting, misplaced = [], [], []
    taken_bytes, left_over = 0, 0
    for facts in listed:
        key = f"{source.name}:{facts.path}"
        before = known(key)
        if before is not None and is_in_table(before.record):
            if not same_object(before.record, facts):
                overwritten.append(facts)
                continue
            if before.record.complete and before.record.failure is None:
                continue
        if before is not None and (
            key in tried or (same_object(before.record, facts) and not is_due(before, now))
        ):
            resting.append(before.record)
            continue
        try:
            values = partition_of(facts.path, template, partition_fields)
        except PartitionUnknown as unknown:
            misplaced.append(_failed(source.name, facts, unknown))
            continue
        if len(take) >= source.max_files_per_batch or (
            take and taken_bytes + facts.size > source.max_bytes_per_batch
        ):
            left_over += 1
            continue
        taken_bytes += facts.size
        take.append(
            SourceFile(
                source=source.name,
                path=facts.path,
                size=facts.size,
                etag=facts.etag,
                codec=codec_for(facts.path, source.compression),
                partition_values=values,
                modified=facts.modified,
                skip=before.record.records_read if before is not None else 0,
            )
        )
    return Finding(
        take=tuple(take),
        overwritten=tuple(overwritten),
        resting=tuple(resting),
        misplaced=tuple(misplaced),
        left_over=left_over,
    )


def _failed(source: str, facts: ObjectFacts, error: LakeError) -> SourceRecord:
    return SourceRecord(
        source=source,
        path=facts.path,
        size=facts.size,
        etag=facts.etag,
        failure=Failure(stage=Stage.DISCOVER, code=error.code, message=error.message),
    )


def is_in_table(record: SourceRecord) -> bool:
    """Say whether rows of a file are in the table: all of them or, after a stop, the first ones."""
    return record.failure is None or record.records_read > 0


def same_object(record: SourceRecord, facts: ObjectFacts) -> bool:
    """Say whether a listed object is the one that was read: size and e-tag."""
    return (record.size, record.etag) == (facts.size, facts.etag)


def is_due(known: Known, now: datetime) -> bool:
    """Say whether a file may be tried again: its rest is unread, or it failed and has rested."""
    at = next_try(known)
    return at is not None and now >= at


def next_try(known: Known) -> datetime | None:
    """Say when a file is read again as it is; None where it has to change first. Pure."""
    failure = known.record.failure
    if failure is None:
        return None if known.record.complete else known.at
    if not failure.retryable:
        return None
    return known.at + timedelta(seconds=RETRY.wait(failure.attempts, lambda: 1.0))


def codec_for(path: str, compression: Compression) -> Codec:
    """Go by the file's suffix unless the configuration says how the files are compressed."""
    return codec_of(path) if compression is Compression.AUTO else Codec(compression.value)


def partition_of(
    path: str, template: Template | None, fields: Mapping[str, Field]
) -> dict[str, str | None]:
    """Take the partition values from a source path, checked against their columns."""
    if template is None:
        return {}
    try:
        values = template.values(path)
    except KeyError as missing:
        raise PartitionUnknown(f"no folder {missing.args[0]}=… stands in its path") from missing
    except ValueError as broken:
        raise PartitionUnknown(f"a folder of its path cannot be decoded: {broken}") from broken
    for key, value in values.items():
        try:
            check_value(fields[key], value)
        except ValueError as wrong:
            raise PartitionUnknown(f"partition {key}: {wrong}") from wrong
    return values
