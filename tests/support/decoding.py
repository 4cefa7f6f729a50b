"""Files read by a decoder, and all that is known of them then."""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import Any

from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.lines import BadLine, BadRecord, CombinedFiles, Decoded


def decode_all(
    decoder: Decoder, files: Iterable[tuple[Any, Generator[bytes] | bytes]], **how: Any
) -> Iterator[tuple[Any, Iterator[Decoded]]]:
    """Yield the rows of each file, those of files that were read as one, too."""
    for found in decoder.decode_files(files, **how):
        if isinstance(found, CombinedFiles):
            yield from found.each()
        else:
            yield found


def outcome(batches: Iterable[Decoded]) -> tuple[object, ...]:
    """Return all that is known of a file's lines, or its first bad one."""
    rows: list[str] = []
    counts: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    rescued: Counter[str] = Counter()
    bad: list[BadRecord] = []
    schemas: list[Any] = []
    try:
        for each in batches:
            each.batch.validate(full=True)
            assert each.lines == each.batch.num_rows + each.blank + each.filtered + len(each.bad)
            schemas += [] if each.batch.schema in schemas else [each.batch.schema]
            rows += map(repr, each.batch.to_pylist())
            counts.update({"lines": each.lines, "blank": each.blank})
            dropped.update(each.dropped)
            rescued.update(each.rescued)
            bad += each.bad
    except BadLine as first:
        return first.code, first.line, first.field, str(first), first.value
    return rows, counts, dropped, rescued, bad, schemas
