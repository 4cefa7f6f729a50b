"""A bench run to its end, the rows that its journal names, and a look at its hand-off."""

from collections.abc import Callable
from typing import Any

from blizzard.handoff.publish import Publisher
from tests.support.builders import Bench
from tests.support.readers import parquet_ids


def ids(bench: Bench) -> list[Any]:
    """Read the rows that the journal names."""
    return parquet_ids(bench.entries(), bench.table)


def noting(seen: list[Any], look: Callable[[], object]) -> Publisher:
    """Hand on by noting what an onlooker would see at that moment."""

    def commit() -> int:
        seen.append(look())
        return 1

    return Publisher(commit=commit)


def drain(bench: Bench) -> list[bool]:
    pipeline = bench.pipeline()
    steps = [pipeline.step()]
    while steps[-1]:
        steps.append(pipeline.step())
    return steps
