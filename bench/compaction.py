"""A day of small arrivals, and how many files a table has after it: `python -m bench.compaction`.

Simulated: batches come every five minutes and write small files; once an hour what is worth it is
put together, by the very decision that `blizzard compact` makes. No byte is written and no clock is
asked, so the figures are the same everywhere.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from blizzard.plan.trigger import Policy, SmallFile, groups_of
from lakebed.layout import TablePath
from lakebed.units import mebibytes

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
ROW = 256
"""Bytes of a row in a data file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """What comes in a day."""

    name: str
    mean: int
    """Bytes of the file that a batch writes into a partition, on average."""
    every: int = 5 * MINUTE
    partition: int = DAY
    """How long a partition takes: a day, an hour."""
    late: float = 0.0
    """The part of the batches that also writes a little into an earlier partition."""
    packed: float = 0.9
    """How many bytes are left of each that is written again: larger files compress better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a day has come to."""

    bytes: int
    written: int
    """Files that batches wrote."""
    files: int
    """Files in the table in the end."""
    ideal: int
    """Files if each partition had been written at once."""
    rewritten: int
    """Bytes that were read to be put together."""

    @property
    def per_gb(self) -> float:
        """Return how many files there are per GB in the end."""
        return self.files / (self.bytes / 1e9)

    @property
    def per_gb_before(self) -> float:
        """Return how many there would be if nothing was put together."""
        return self.written / (self.bytes / 1e9)

    @property
    def amplification(self) -> float:
        """Return how often a byte was written again, on average."""
        return self.rewritten / self.bytes


DAYS = (
    Arrivals(name="partitions of a day, 1 MB every 5 minutes", mean=mebibytes(1)),
    Arrivals(name="partitions of a day, 20 MB every 5 minutes", mean=mebibytes(20)),
    Arrivals(
        name="partitions of an hour, 20 MB every minute, a tenth late",
        mean=mebibytes(20),
        every=MINUTE,
        partition=60 * MINUTE,
        late=0.1,
    ),
    Arrivals(name="no partitions, 5 MB every minute", mean=mebibytes(5), every=MINUTE),
)


def simulated(arrivals: Arrivals, policy: Policy, *, compact_every: int = 60 * MINUTE) -> Result:
    """Let a day go by, and an hour after it."""
    chance = random.Random(7)
    there: list[SmallFile] = []
    sizes: dict[int, int] = {}
    written = rewritten = 0
    for at in range(0, DAY + 2 * compact_every, arrivals.every):
        if at < DAY:
            parts = [at // arrivals.partition]
            if parts[0] and chance.random() < arrivals.late:
                parts.append(chance.randrange(parts[0]))
            for place, part in enumerate(parts):
                size = max(ROW, int(chance.uniform(0.2, 1.8) * arrivals.mean / (1 + 9 * place)))
                written += 1
                sizes[part] = sizes.get(part, 0) + size
                there.append(_file(written, size, max(1, size // ROW), part, at))
        if at and at % compact_every == 0:
            for group in groups_of(there, policy, at):
                gone = {file.path for file in group.files}
                there = [file for file in there if file.path not in gone]
                rewritten += group.size
                part = int(group.files[0].partition[0][1] or 0)
                size = int(group.size * arrivals.packed)
                there.append(_file(1_000_000 + rewritten, size, group.rows, part, at))
    return Result(
        bytes=sum(sizes.values()),
        written=written,
        files=len(there),
        ideal=sum(-(-size // policy.file_size) for size in sizes.values()),
        rewritten=rewritten,
    )


def _file(name: int, size: int, rows: int, part: int, at: int) -> SmallFile:
    return SmallFile(
        path=TablePath(f"{name:020}.parquet"),
        size=size,
        rows=rows,
        partition=(("part", str(part)),),
        written=at,
    )


def results(days: Sequence[Arrivals] = DAYS) -> list[tuple[Arrivals, Result]]:
    """Return what each day comes to."""
    policy = Policy(file_size=mebibytes(128))
    return [(day, simulated(day, policy)) for day in days]


def main() -> None:
    """Print the table of docs/performance.md."""
    print("| a day of | files written | per GB | after compaction | per GB | ideal | rewritten |")
    print("|---|---|---|---|---|---|---|")
    for day, kept in results():
        print(
            f"| {day.name} | {kept.written:,} | {kept.per_gb_before:,.0f} | {kept.files:,} | "
            f"{kept.per_gb:,.1f} | {kept.ideal:,} | {kept.amplification:.1f} times |"
        )


if __name__ == "__main__":
    main()
