"""Intervals of a table's properties as Spark's Delta reads them, and how long files are kept. Pure.

Every engine reads them in its own way, and some take what they cannot read for the default. So
what is decided by an interval is decided by this reading, and by no other default.
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
"""Months and years are refused by Delta: they have no length of their own."""
PREFIX = "interval "
BLANK = "".join(map(chr, range(0x21)))
"""What Java trims: control characters, too."""
SPACE = r"[ \t-\r\x1c-\x1f]"
PART = re.compile(
    rf"(?P<sign>[+-]?){SPACE}*(?P<number>\d{{1,18}}\.?\d{{0,9}}|\.\d{{1,9}})"
    rf"{SPACE}+(?P<unit>{'|'.join(MICROSECONDS)})s?(?:{SPACE}+|$)",
    re.ASCII,
)
FOR_EVER = timedelta(days=365_000)
"""What a longer interval counts as: a time so long ago can still be written down."""
RETENTION_PROPERTY = "delta.deletedFileRetentionDuration"
DELTA_DEFAULT = timedelta(days=7)
READ_BY_ALL = re.compile(rf"interval \d+ ({'|'.join(MICROSECONDS)})s?")
"""The form that every engine reads. Some take any other for the default, and delete by it."""


def retention(configuration: Mapping[str, str]) -> timedelta:
    """Return how long a table keeps files that its log does not name, for any VACUUM.

    An engine that cannot read the value takes the default, and so does this if none can.
    """
    text = configuration.get(RETENTION_PROPERTY, "")
    keeps = parse_interval(text)
    if keeps is None:
        return DELTA_DEFAULT
    return keeps if READ_BY_ALL.fullmatch(text) else min(keeps, DELTA_DEFAULT)


def parse_interval(text: str) -> timedelta | None:
    """Return how long an interval is; None for what Delta refuses, a negative one included.

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
