"""Where the time of a work unit goes: each stage alone, in one process, one after the other.

    .venv/bin/python -m bench.stages [workload] [--scale 0.1] [--rounds 5]

Of several rounds the best counts, as neighbours on the machine can only make one slower.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench.race import DATA
from bench.workloads import WORKLOADS, Workload, generated
from blizzard.model.settings import RollingPolicy
from blizzard.model.source.form import codec_of
from blizzard.worker.compression import decompress
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.lines import Decoded, blocks
from blizzard.worker.output.parquet import RollingWriter
from blizzard.worker.position import LineCount
from lakebed.clock import Clock

Result = TypeVar("Result")


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", nargs="?", default="a", choices=WORKLOADS)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    workload = WORKLOADS[options.workload]
    files = sorted(generated(workload, options.scale, DATA).iterdir())
    measure(workload.at(options.scale), files, options.rounds)


def measure(workload: Workload, files: list[Path], rounds: int) -> None:
    """Run each stage on what the one before it gave."""
    unpack, pieces = best(rounds, lambda: [list(unpacked(file)) for file in files])
    count, _ = best(rounds, lambda: [passed(each) for each in pieces])
    cut, _ = best(rounds, lambda: [list(blocks(each)) for each in pieces])
    decoder = Decoder(workload.schema)
    decode, rows = best(rounds, lambda: [list(decoder.decode(each)) for each in pieces])
    write, _ = best(rounds, lambda: written(workload, rows))
    whole = unpack + count + decode + write
    for name, seconds in (
        ("decompress", unpack),
        ("count lines", count),
        ("cut into blocks of lines", cut),
        ("parse", decode - cut),
        ("write Parquet", write),
    ):
        nanoseconds = seconds / workload.rows * 1e9
        print(f"{name:26} {nanoseconds:8.0f} ns a row  {seconds / whole:6.0%}")


def best(rounds: int, stage: Callable[[], Result]) -> tuple[float, Result]:
    """Return the CPU seconds of the best round, and what the stage gave."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        result = stage()
        times.append(time.process_time() - began)
    return min(times), result


def unpacked(path: Path) -> Iterator[bytes]:
    """Yield the plain bytes of a file."""
    with path.open("rb") as file:
        yield from decompress(iter(partial(file.read, 1 << 20), b""), codec_of(path.name))


def passed(pieces: list[bytes]) -> int:
    """Count the lines of a file, as a unit does before they are parsed."""
    count = LineCount()
    for _piece in count.of(iter(pieces)):
        pass
    return count.lines


def written(workload: Workload, rows: list[list[Decoded]]) -> None:
    """Write all rows, as one task would."""
    with tempfile.TemporaryDirectory() as folder:
        writer = RollingWriter(
            schema=workload.schema.arrow(),
            policy=RollingPolicy(),
            marks={},
            folder=Path(folder),
            clock=Clock(),
        )
        for each in rows:
            for decoded in each:
                for _file in writer.write(decoded.batch, "file"):
                    pass
        for _file in writer.close():
            pass


if __name__ == "__main__":
    main()
