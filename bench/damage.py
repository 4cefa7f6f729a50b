"""What bad lines cost: the CPU time of parsing files of which a few lines are damaged.

    .venv/bin/python -m bench.damage [--records 100000] [--share 0.01] [--rounds 5]

Lines are cut short, have a value of another kind, or one or the other. All files are read in turn,
round after round, and of each the best round counts. With `--most` it fails where damage makes the
reading take more than so many times what the whole file takes.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Mapping

from bench.workloads import EVENTS, SHOP, Lines, events, shop
from blizzard.worker.ndjson.decoder import Decoder
from lakebed.columns.schema import Schema
from lakebed.types import OnBadRecord, OnMismatch, UnknownFields

Damage = Callable[[str], str]

PIECE = 1 << 20


def cut_short(line: str) -> str:
    """Return the first half of a line."""
    return line[: len(line) // 2]


def mismatched(line: str) -> str:
    """Return a line in which a time is no time, and a flag is a number."""
    return line.replace('Z"', 'Z, or so"', 1).replace(": true", ": 1", 1)


def either(line: str) -> str:
    """Return a line that is damaged in one way or the other."""
    return cut_short(line) if len(line) % 2 else mismatched(line)


FILES: Mapping[str, tuple[Schema, Lines]] = {
    "flat": (SHOP, shop),
    "nested": (EVENTS, events),
}
DAMAGE: Mapping[str, Damage] = {
    "none": str,
    "syntax errors": cut_short,
    "type mismatches": mismatched,
    "both": either,
}
MODES: Mapping[str, Mapping[str, object]] = {
    "fail": {},
    "quarantine": {"on_bad_record": OnBadRecord.QUARANTINE},
    "rescue": {
        "on_bad_record": OnBadRecord.QUARANTINE,
        "on_mismatch": OnMismatch.RESCUE,
        "unknown": UnknownFields.RESCUE,
    },
}


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=float)
    options = parser.parse_args()
    worst = 0.0
    for name in FILES:
        records = options.records if name == "flat" else options.records // 10
        worst = max(worst, measure(name, records, options.share, options.rounds))
    if options.most is not None and worst > options.most:
        sys.exit(f"damage makes a file take {worst:.2f} times as long, more than {options.most}")


def measure(name: str, records: int, share: float, rounds: int) -> float:
    """Measure one kind of file in all modes, and return the worst ratio."""
    schema, _ = FILES[name]
    texts = {damage: text(name, records, share, damage) for damage in DAMAGE}
    runs = [
        (mode, damage) for mode in MODES for damage in DAMAGE if mode != "fail" or damage == "none"
    ]
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for mode, damage in runs:
            seconds = cpu_seconds(schema, texts[damage], MODES[mode])
            best[mode, damage] = min(best[mode, damage], seconds)
    worst = 0.0
    for mode, damage in runs:
        ratio = best[mode, damage] / best["fail" if damage == "none" else mode, "none"]
        worst = max(worst, ratio)
        each = best[mode, damage] / records * 1e9
        print(f"{name:8} {mode:12} {damage:16} {each:8.0f} ns a line  {ratio:5.2f} times")
    return worst


def text(name: str, records: int, share: float, damage: str) -> bytes:
    """Return a file of which some lines are damaged."""
    chance, where = random.Random(1), random.Random(2)
    lines = (
        DAMAGE[damage](line) if where.random() < share else line
        for line in FILES[name][1](chance, 0, records)
    )
    return "".join(line + "\n" for line in lines).encode()


def cpu_seconds(schema: Schema, data: bytes, mode: Mapping[str, object]) -> float:
    """Return the CPU time of parsing a file that is in memory."""
    pieces = [data[at : at + PIECE] for at in range(0, len(data), PIECE)]
    decoder = Decoder(schema, **mode)  # type: ignore[arg-type]
    began = time.process_time()
    for _ in decoder.decode(pieces):
        pass
    return time.process_time() - began


if __name__ == "__main__":
    main()
