"""Intervals as people and engines write them, each with its length as Spark's Delta reads it."""

import random
from datetime import timedelta

SECOND = 1_000_000
MINUTE, HOUR, DAY, WEEK = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND, 604_800 * SECOND

INTERVALS: list[tuple[str, int | None]] = [
    ("interval 30 days", 30 * DAY),
    ("interval 1 day", DAY),
    ("30 days", 30 * DAY),
    ("365 days", 365 * DAY),
    ("INTERVAL 365 DAYS", 365 * DAY),
    ("Interval 3 Days", 3 * DAY),
    ("  interval   3   days  ", 3 * DAY),
    ("interval\t3 days", None),
    ("interval 3\tdays\n", 3 * DAY),
    ("interval 1 week 2 days", WEEK + 2 * DAY),
    (
        "1 weeks 2 day 3 hours 4 minute 5 seconds",
        WEEK + 2 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND,
    ),
    ("6 milliseconds 7 microsecond", 6_007),
    ("interval 2 weeks -1 day", 2 * WEEK - DAY),
    ("interval +2 days", 2 * DAY),
    ("interval + 2 days", 2 * DAY),
    ("interval 1 day 1 day", 2 * DAY),
    ("interval 0 days", 0),
    ("interval 0 hours", 0),
    ("interval 007 days", 7 * DAY),
    ("interval 1.5 seconds", 1_500_000),
    ("interval .5 seconds", 500_000),
    ("interval -.5 seconds 1 minute", 59_500_000),
    ("interval 5. seconds", 5 * SECOND),
    ("interval 1.123456789 seconds", 1_123_456),
    ("interval 1.1234567891 seconds", None),
    ("interval . seconds", None),
    ("interval 1.5 days", None),
    ("interval 1.5 milliseconds", None),
    ("interval -3 days", None),
    ("interval 1 day -2 days", None),
    ("interval 1 month", None),
    ("interval 1 year", None),
    ("interval 12 months 3 days", None),
    ("interval 3 dayss", None),
    ("interval 3 d", None),
    ("interval 3days", None),
    ("interval 3 days2 hours", None),
    ("interval 3", None),
    ("interval days", None),
    ("interval", None),
    ("interval ", None),
    ("interval interval 3 days", None),
    ("intervals 3 days", None),
    ("3 days ago", None),
    ("P30D", None),
    ("interval 'P30D'", None),
    ("interval '30' day", None),
    ("30", None),
    ("soon", None),
    ("", None),
    ("interval 3 nanoseconds", None),
    ("interval 3 decades", None),
    ("interval 3 days,", None),
    ("interval 3 days, 2 hours", None),
    ("interval 1_000 days", None),
    ("interval ٣ days", None),
    ("interval 3\u00a0days", None),
]

PIECES = [
    "interval", "INTERVAL", " ", "  ", "\t", "1", "30", "+", "-", ".", "5.25", ".5", "day", "days",
    "DAYS", "week", "weeks", "hour", "hours", "minute", "minutes", "second", "seconds", "s",
    "millisecond", "microseconds", "month", "years", "x", ",",
]  # fmt: skip


def strange(count: int, seed: int) -> list[str]:
    """Put pieces of intervals together, most of them wrongly."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        if chance.random() < 0.5:
            parts = chance.choices(PIECES, k=chance.randint(1, 8))
            found.append((" " if chance.random() < 0.7 else "").join(parts))
            continue
        words = ["interval"] if chance.random() < 0.5 else []
        for _ in range(chance.randint(1, 3)):
            sign, unit = chance.choice(["", "", "+", "-", "- "]), chance.choice(PIECES[12:-4])
            words += [f"{sign}{chance.choice(['1', '30', '5.25', '.5', '7.'])}", unit]
        found.append(" ".join(words))
    return found


def length(microseconds: int | None) -> timedelta | None:
    return None if microseconds is None else timedelta(microseconds=microseconds)
