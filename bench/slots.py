"""What more slots than cores cost: the same files with two, four and eight tasks at once.

Two cores cannot tell how fast four or eight would be. They tell what each further slot costs: its
CPU time, its memory, and how much the tasks wait for each other. Each number of slots has a warm
Spark of its own, and they run in turns, so that a busy machine disturbs all alike.

    python -m bench.slots --rounds 5 --write
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from bench.race import DATA, Field, Race, machine, run_race
from bench.section import Section
from bench.workloads import WORKLOADS

FIGURES = Path(__file__).with_suffix(".json")
SECTION = Section("bench/README.md", "slots")
WHO = {2: "blizzard", 4: "blizzard, 4 slots", 8: "blizzard, 8 slots"}

Figures = dict[str, Any]


def measured(rounds: int, scale: float) -> Figures:
    """Run all numbers of slots in turns; give what each took, round by round."""
    race = Race(
        workload=WORKLOADS["a"], scale=scale, rounds=rounds, contestants=tuple(WHO.values())
    )
    results: Figures = {}
    DATA.mkdir(parents=True, exist_ok=True)
    with Field() as field:
        run_race(race, field, results)
    (found,) = results.values()
    return dict(found)


def table_of(found: Figures) -> str:
    """Write the figures as a table, as multiples of those of two slots."""
    lines = ["| slots | time | CPU | MiB |", "|---:|---:|---:|---:|"]
    base = found["contestants"][WHO[2]]
    for slots, name in WHO.items():
        one = found["contestants"][name]
        time, cpu = (
            statistics.median(a / b for a, b in zip(one[key], base[key], strict=True))
            for key in ("seconds", "cpu")
        )
        lines.append(f"| {slots} | {time:.2f} | {cpu:.2f} | {one['whole_mib']:,} |")
    rounds = len(base["cpu"])
    return "\n".join([*lines, "", f"Medians of {rounds} rounds of {found['rows']:,} records."])


def main() -> None:
    """Measure, show, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found = measured(given.rounds, given.scale)
    print(table_of(found))
    if given.write:
        FIGURES.write_text(json.dumps({"machine": machine(), **found}, indent=1) + "\n")
        SECTION.write(table_of(found))


if __name__ == "__main__":
    main()
