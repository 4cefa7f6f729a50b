"""Parse the intervals of table properties as Spark's Delta does, and the file retention. Pure.

Engines parse them differently, and some use the default for what they cannot parse. Every decision
that depends on an interval uses this parser.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal

MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""Delta rejects months and years, whose lengths vary."""
PREFIX = "interval "
BLANK = "".join(map(chr, range(0x21)))
"""The characters that Java trims, control characters included."""
SPACE = r"[ \t-\r\x1c-\x1f]"
PART = re.compile(
    rf"(?P<sign>[+-]?){SPACE}*(?P<number>\d{{1,18}}\.?\d{{0,9}}|\.\d{{1,9}})"
    rf"{SPACE}+(?P<unit>{'|'.join(MICROSECONDS)})s?(?:{SPACE}+|$)",
    re.ASCII,
)
FOR_EVER = timedelta(days=365_000)
"""The cap of an interval: a time that long ago is still representable."""
RETENTION_PROPERTY = "delta.deletedFileRetentionDuration"
DELTA_DEFAULT = timedelta(days=7)
READ_BY_ALL = re.compile(rf"interval \d+ ({'|'.join(MICROSECONDS)})s?")
"""The form that every engine parses. Some use the default for any other, and delete files by it."""


def retention(configuration: Mapping[str, str]) -> timedelta:
    """Return the retention of files that a log does not name, valid for VACUUM by any engine.

    An engine that cannot parse the value uses the default, so the shorter of both counts.
    """
    text = configuration.get(RETENTION_PROPERTY, "")
    keeps = parse_interval(text)
    if keeps is None:
        return DELTA_DEFAULT
    return keeps if READ_BY_ALL.fullmatch(text) else min(keeps, DELTA_DEFAULT)


def parse_interval(text: str) -> timedelta | None:
    """Parse an interval; None if Delta rejects it, or it is negative.

    `interval 30 days`, `30 days`, `INTERVAL 1 week 2 days`, `1 day -12 hours`, `1.5 seconds`.
    """
    rest = text.strip(BLANK).lower()
    if rest.startswith(PREFIX):
        rest = rest.removeprefix(PREFIX).lstrip(BLANK)
    total = at = 0
    while part := PART.match(rest, at):
        number, unit = part["number"], part["unit"]
        if "." in number and unit != "second":
            return None
        length = int(Decimal(number) * MICROSECONDS[unit])
        total += -length if part["sign"] == "-" else length
        at = part.end()
    if at == 0 or at < len(rest) or total < 0:
        return None
    return timedelta(microseconds=min(total, FOR_EVER // timedelta(microseconds=1)))
