"""What to do about a source file that is not tried again by itself. Pure."""

from collections.abc import Iterable

from blizzard.model.settings import PipelineSettings
from lakebed.units import plural

FOR_GOOD = (
    "not tried again: fix the file or the schema, it is taken when either changes; blizzard dlq "
    "retry has it read right away"
)
PART_WAY = (
    "not tried again: a part of it is in the table. Fix the schema, or the file behind that part, "
    "then run blizzard dlq retry --file PATH --same-lines"
)
WAYS_OUT = {
    "changed_part_way": "not read on: a part of it is in the table, and it is another object now, "
    "or one that is read otherwise; "
    "see blizzard dlq list for the ways out",
    "decompress_failed": "not tried again: upload it again, complete, it is taken when it changes; "
    "blizzard dlq retry has it read right away",
    "gone_part_way": "not read on: a part of it is in the table, and it is gone from its source; "
    "it is read on when it is put back as it was; blizzard dlq discard PATH gives up the rest",
    "lines_miscounted": "not tried again: blizzard or the machine is at fault, not the file; "
    "blizzard dlq retry has it read again",
    "partition_unknown": "not tried again here: move it into the folders of its partition, where "
    "it is taken",
    "too_many_bad_lines": "not tried again: fix the file or the schema, or raise "
    "error_handling.max_bad_records or max_bad_ratio, it is taken when one of them changes; "
    "blizzard dlq retry has it read right away",
}
"""What to do about a failure, by its code; of every other code it is the same."""


BAD_LINES = (
    "; error_handling.on_bad_record: quarantine would set bad lines aside and take the others"
)
"""What else can be done about a file that a bad line keeps out."""


def quarantine_hint(settings: PipelineSettings, lines: Iterable[int | None]) -> str | None:
    """Name quarantine where bad lines keep whole files out; None where it would not help.

    `lines` are those that failed files, None where a file failed as a whole. Pure.
    """
    count = sum(line is not None for line in lines)
    if not count or settings.quarantine is not None:
        return None
    return f"{plural(count, 'file')} failed by a bad line{BAD_LINES}"


def way_out(code: str, *, part_way: bool, bad_line: bool = False) -> str:
    """Return what to do about a failure; `part_way`: whether lines of it are in the table.

    `bad_line`: whether one line failed the file, so that it could have been set aside alone.
    """
    way = WAYS_OUT.get(code, PART_WAY if part_way else FOR_GOOD)
    return f"{way}{BAD_LINES}" if bad_line and code not in WAYS_OUT else way
