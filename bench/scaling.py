"""The tables of docs/scaling.md, computed from what was measured.

Run it from the root of the checkout:

    .venv/bin/python -m bench.scaling [--write]

It reads bench/growth.json, bench/sizes.json and, if it is there, bench/results.json; prices and all
that was not measured are the defaults of `bench.figures.Prices` and `Assumptions`.
"""

import argparse
import math
from dataclasses import fields
from pathlib import Path

from bench.arithmetic import (
    DAY,
    GB,
    PB,
    ROLLING,
    TB,
    YEAR_DAYS,
    Load,
    advised,
    alone_seconds,
    batches_of,
    checkpoints_kept,
    cores_for,
    growth_of,
    price_of,
    requests_of,
    strain_of,
    total,
)
from bench.figures import SUPPOSED_BYTES_PER_CORE, Asked, Assumptions, Costs, Prices, read_costs
from bench.limits import breaks, default_size, rebuild_seconds
from bench.writing import dollars, duration, number, rows, three, weight

PAGE = Path(__file__).parent.parent / "docs" / "scaling.md"
DAILY = {"10 GB": 10 * GB, "1 TB": TB, "100 TB": 100 * TB, "1 PB": PB}
FILE_SIZES = {"1 MB": 10**6, "16 MB": 16 * 10**6, "128 MB": 128 * 10**6}
USUAL = "16 MB"


def measured_table(costs: Costs) -> str:
    """Show what is computed from."""
    commit, poll = costs.requests["penguin_commit"], costs.requests["penguin_poll"]
    micro = 1e6
    supposed = ", supposed" if costs.bytes_per_core == SUPPOSED_BYTES_PER_CORE else ""
    cells = [
        (f"plain NDJSON a core and second{supposed}", weight(costs.bytes_per_core)),
        ("CPU to find a new source file", f"{costs.first_look * micro:.0f} µs"),
        ("CPU to compare a known source file in a sweep", f"{costs.sweep * micro:.0f} µs"),
        ("CPU to plan a source file, and to write its record",
         f"{costs.plan * micro:.0f} µs, {costs.encode * micro:.0f} µs"),
        ("CPU to bring a known name into another segment", f"{costs.merge * micro:.0f} µs"),
        ("journal entry: itself, a source file, a data file",
         ", ".join(weight(each) for each in (
             costs.entry_fixed, costs.entry_per_source, costs.entry_per_data_file))),
        ("known name, with its share of the index", weight(costs.name_bytes)),
        ("Delta log: an add in a commit, in a checkpoint",
         f"{weight(costs.commit_bytes)}, {weight(costs.checkpoint_bytes)}"),
        ("penguin's memory beside its libraries: itself, an active file",
         f"{weight(costs.memory_fixed)}, {weight(costs.memory_per_active)}"),
        ("penguin's CPU for an active file: commit, checkpoint",
         ", ".join(f"{each * micro:.0f} µs" for each in (
             costs.commit_per_active, costs.checkpoint_per_active))),
        ("penguin's CPU of a poll that finds nothing", duration(costs.poll)),
        ("penguin's CPU for a file that it commits", f"{costs.commit_per_file * micro:.0f} µs"),
        ("requests of a batch beside its files", _kinds(costs.requests["batch"])),
        ("requests of a snapshot with its names", _kinds(costs.requests["keep"])),
        ("requests of a source file", _kinds(costs.requests["source_file"])),
        ("requests of a data file of three parts",
         _kinds(costs.requests["data_file_of_three_parts"])),
        ("requests of a commit, on average between checkpoints", _kinds(commit)),
        ("requests of a commit for each file", _kinds(costs.requests["penguin_file"])),
        ("requests of a poll of penguin's that finds nothing", _kinds(poll)),
        ("requests of a start of blizzard", number(costs.start_requests)),
    ]  # fmt: skip
    return rows(["measured", ""], [list(cell) for cell in cells])


def assumed_table(prices: Prices, given: Assumptions) -> str:
    """Show what is not measured."""
    cells = [
        [f"`{type(some).__name__}.{one.name}`", f"{getattr(some, one.name):,}"]
        for some in (prices, given)
        for one in fields(some)
    ]
    return rows(["assumed", ""], cells)


def _kinds(asked: Asked) -> str:
    kinds = sorted(asked.items(), key=lambda each: -each[1])
    return ", ".join(f"{three(count)} {kind}" for kind, count in kinds)


def loads() -> list[tuple[str, str, Load]]:
    """Return every scenario: a day's bytes in files of a size."""
    return [
        (day, size, Load(plain=plain, file_size=file_size))
        for day, plain in DAILY.items()
        for size, file_size in FILE_SIZES.items()
    ]


def work_table(costs: Costs, given: Assumptions) -> str:
    """Show cores, batches and data files."""
    body = []
    for day, size, load in loads():
        cores = cores_for(load, costs, given)
        limits = advised(load, cores, given)
        found = batches_of(load, cores, limits, given)
        body.append(
            [
                f"{day} in {size}",
                f"{cores:,}",
                f"{math.ceil(cores / given.cores_per_executor):,}",
                number(load.files(given)),
                number(found.a_day),
                number(found.files),
                f"{duration(DAY / found.a_day)}, {duration(alone_seconds(found, costs, given))}",
                weight(limits.max_bytes),
                number(found.data_files),
                weight(found.data_file_size),
                weight(default_size(load, costs, given)),
            ]
        )
    head = ["a day", "cores", "executors", "source files", "batches", "source files a batch",
            "a batch every, driver alone", "`max_bytes_per_batch`", "data files", "of",
            "of, with nothing set"]  # fmt: skip
    return rows(head, body)


def request_table(costs: Costs, prices: Prices, given: Assumptions) -> str:
    """Show a day's requests, what they are for, and what a day costs."""
    body = []
    for day, size, load in loads():
        cores = cores_for(load, costs, given)
        found = batches_of(load, cores, advised(load, cores, given), given)
        asked = requests_of(load, found, costs, given)
        both = total(*asked.values())
        kinds = [number(both.get(kind, 0)) for kind in ("list", "get", "head", "put", "part")]
        money = [price_of(each, prices) for each in asked.values()]
        compute = cores * 24 * prices.core_hour
        body.append(
            [
                f"{day} in {size}",
                *kinds,
                *map(dollars, money),
                dollars(sum(money)),
                dollars(compute),
            ]
        )
    head = ["a day", "LIST", "GET", "HEAD", "PUT", "parts", "find $", "read $", "upload $",
            "journal $", "penguin $", "requests $", "cores $"]  # fmt: skip
    return rows(head, body)


def growth_table(costs: Costs, prices: Prices, given: Assumptions) -> str:
    """Show what is left behind: journal, names, log, and what it costs to keep."""
    body = []
    for day, size, load in loads():
        cores = cores_for(load, costs, given)
        found = batches_of(load, cores, advised(load, cores, given), given)
        left = growth_of(load, found, costs, given)
        kept = (left.journal_a_day + left.names_a_day) * YEAR_DAYS
        body.append(
            [
                f"{day} in {size}",
                weight(left.entry_bytes),
                weight(left.journal_a_day),
                weight(left.journal_a_day * YEAR_DAYS),
                weight(left.names_a_day * YEAR_DAYS),
                dollars(kept / GB * prices.storage_per_gb_month),
                duration(rebuild_seconds(load, found, costs, given)),
                number(left.commits_a_day),
                weight(left.log_a_day),
            ]
        )
    head = ["a day", "an entry", "journal a day", "journal a year", "known names a year",
            "both kept, $ a month", "a year's journal read again",
            "commits a day", "log a day"]  # fmt: skip
    return rows(head, body)


def table_table(costs: Costs, prices: Prices, given: Assumptions) -> str:
    """Show the Delta table after a month, as it is and with OPTIMIZE."""
    body = []
    for day, plain in DAILY.items():
        load = Load(plain=plain, file_size=FILE_SIZES[USUAL])
        cores = cores_for(load, costs, given)
        found = batches_of(load, cores, advised(load, cores, given), given)
        left = growth_of(load, found, costs, given)
        stored = plain * given.parquet_ratio
        for words, active in (("as written", left.active), ("OPTIMIZE", left.active_optimized)):
            strain = strain_of(active, found.data_files / left.commits_a_day, costs)
            # What comes while a commit is made shares the next one.
            every = max(DAY / left.commits_a_day, strain.commit)
            body.append(
                [
                    f"{day}, {words}",
                    number(active),
                    weight(strain.checkpoint_bytes),
                    weight(strain.memory),
                    duration(strain.commit),
                    duration(every),
                    weight(checkpoints_kept(active, DAY / every, costs)),
                    dollars(stored / GB * prices.storage_per_gb_month),
                ]
            )
    head = ["a day", "active files", "a checkpoint", "penguin's memory", "CPU a commit",
            "a commit every", "a month's checkpoints", "a day's data, $ a month"]  # fmt: skip
    return rows(head, body)


def break_table(costs: Costs, given: Assumptions) -> str:
    """Show what breaks, the least load first."""
    by_size = {size: breaks(value, costs, given) for size, value in FILE_SIZES.items()}
    loads_of = {
        size: {one.what: weight(one.load) for one in found} for size, found in by_size.items()
    }
    body = [
        [one.what, f"{number(one.at)} {one.unit}", one.within]
        + [loads_of[size][one.what] for size in FILE_SIZES]
        for one in by_size[USUAL]
    ]
    large = ROLLING.rollover * costs.bytes_per_core / given.gz_ratio
    body.append(
        [
            "one gzipped file keeps its core busy for longer than `rollover_timeout_secs`",
            f"{weight(large)} of gz",
            "at once",
            *("any" for _size in FILE_SIZES),
        ]
    )
    return rows(["what", "at", "within", *(f"a day in {size}" for size in FILE_SIZES)], body)


def tables(costs: Costs, prices: Prices, given: Assumptions) -> dict[str, str]:
    """Compute all tables, by the names of their places in the page."""
    return {
        "measured": measured_table(costs),
        "assumed": assumed_table(prices, given),
        "work": work_table(costs, given),
        "requests": request_table(costs, prices, given),
        "growth": growth_table(costs, prices, given),
        "table": table_table(costs, prices, given),
        "breaks": break_table(costs, given),
    }


def filled(page: str, found: dict[str, str]) -> str:
    """Put tables into their places in a page; a place that is missing is an error."""
    for name, table in found.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, rest = page.split(begin)
        _old, tail = rest.split(end)
        page = f"{head}{begin}\n{table}\n{end}{tail}"
    return page


def main() -> None:
    """Compute the tables, and show them or write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found = tables(read_costs(), Prices(), Assumptions())
    if given.write:
        PAGE.write_text(filled(PAGE.read_text(), found))
    else:
        print("\n\n".join(found.values()))


if __name__ == "__main__":
    main()
