"""A process that runs one contestant over whatever it is told, and says how long each took.

A line of JSON in (`workload`, `source`, `table`), a line of JSON out (`seconds`, or `error`). It is
started by `bench.race`; what it needs once is done before it says that it is ready.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from bench import ours, peers
from bench.workloads import HARD, WORKLOADS, Workload


class Contestant(Protocol):
    """Whoever turns the files of a folder into Parquet in another."""

    def run(self, workload: Workload, source: Path, table: Path) -> None:
        """Do it, whole."""


CONTESTANTS: Mapping[str, Callable[[], Contestant]] = {
    "blizzard": ours.on_spark,
    "blizzard, 4 slots": lambda: ours.on_spark(4),
    "blizzard, 8 slots": lambda: ours.on_spark(8),
    "bare processes": ours.without_spark,
    "Spark": peers.Spark,
    "Spark stream": peers.SparkStream,
    "DuckDB": peers.DuckDB,
    "Polars": peers.Polars,
    "blizzard, cold": ours.FromTheCommandLine,
    "Spark, cold": peers.SparkFromTheCommandLine,
}


def main() -> None:
    """Answer line by line until there are no more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    contestant = CONTESTANTS[sys.argv[1]]()
    answers.write("{}\n")
    for line in sys.stdin:
        job = json.loads(line)
        began = time.perf_counter()
        try:
            workload = HARD if job["workload"] == HARD.key else WORKLOADS[job["workload"]]
            contestant.run(workload, Path(job["source"]), Path(job["table"]))
        except Exception as error:  # noqa: BLE001 - that it cannot do it is a result, too
            words = " ".join(str(error).split())
            answers.write(json.dumps({"error": f"{type(error).__name__}: {words[:300]}"}) + "\n")
        else:
            answers.write(json.dumps({"seconds": time.perf_counter() - began}) + "\n")


if __name__ == "__main__":
    main()
