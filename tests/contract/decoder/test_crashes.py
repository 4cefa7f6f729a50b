"""Whatever the bytes are, the process lives and both paths agree.

Compiled code can kill the process on bytes it does not expect, so thousands of damaged blocks are
read in a process of their own: a crash is then a failing test.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

EACH_ALONE = """
from random import Random
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.lines import blocks
from tests.support.damage import LIMIT, SCHEMA, damaged, outcome

random = Random(20240102)
fast = good = 0
for number in range(1500):
    data = damaged(random)
    exact = ExactPath(SCHEMA, max_line_bytes=LIMIT)
    truth = outcome(exact.read(block) for block in blocks([data], max_line_bytes=LIMIT))
    found = outcome(Decoder(SCHEMA, max_line_bytes=LIMIT).decode([data]))
    assert found == truth, (data, found, truth)
    good += isinstance(truth, str)
    quick = FastPath(SCHEMA, max_line_bytes=LIMIT)
    fast += all(quick.read(block) for block in blocks([data], max_line_bytes=LIMIT))
print(good, fast)
"""

AT_THE_EDGE = """
from random import Random
from blizzard.worker.ndjson.compiled import columns, fast, leftovers, page, peel, scan
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import Block, blocks
from tests.support.damage import LIMIT, SCHEMA, cut_short, outcome
from tests.support.edge import EdgeNumpy

scan.MAX_PLACES = 3  # so that lines have more members, and what was learned is forgotten
scan.MAX_REMEMBERED = 60
random = Random(20240103)
exact = ExactPath(SCHEMA, max_line_bytes=LIMIT)


def to_the_edge(at_end):
    for module in (columns, fast, leftovers, page, peel, scan):
        module.np = EdgeNumpy(at_end=at_end)


to_the_edge(at_end=True)
path = fast.FastPath(SCHEMA, max_line_bytes=LIMIT)
assert path.read(Block(text=b'{"int64":1}\\n' * 99, first_line=1, lines=1)) is None
read = good = 0
for number in range(2000):
    to_the_edge(at_end=number % 3 > 0)
    for block in blocks([cut_short(random)], max_line_bytes=LIMIT):
        truth = outcome(exact.read(block) for _ in range(1))
        answer = path.read(block)
        assert answer is None or outcome([answer]) == truth, (block, outcome([answer]), truth)
        both = fast.MixedPath(path, exact)
        assert outcome(both.read(block) for _ in range(1)) == truth, (block, truth)
        good += isinstance(truth, str)
        read += answer is not None
print(good, read)
"""

NESTED_AT_THE_EDGE = """
from random import Random
from blizzard.worker.ndjson.compiled import columns, fast, leftovers, page, peel, scan
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import blocks
from lakebed.columns.schema import Schema
from lakebed.types import OnMismatch, UnknownFields
from tests.support.damage import LIMIT, damaged_lines, outcome
from tests.support.edge import EdgeNumpy
from tests.support.nested import Lines, some_fields

scan.MAX_PLACES = 2
random = Random(20240104)
read = good = 0
for number in range(150):
    schema = Schema(some_fields(random, random.randrange(1, 4), clashing=number % 5 == 0))
    how = {
        "unknown": random.choice(list(UnknownFields)),
        "on_mismatch": random.choice(list(OnMismatch)),
    }
    exact = ExactPath(schema, max_line_bytes=LIMIT, **how)
    for module in (columns, fast, leftovers, page, peel, scan):
        module.np = EdgeNumpy(at_end=number % 3 > 0)
    path = fast.FastPath(schema, max_line_bytes=LIMIT, **how)
    lines = Lines(random, unknown=0.3)
    for _ in range(12):
        drawn = [lines.line(schema.fields).encode() for _ in range(random.randrange(1, 3))]
        for block in blocks([damaged_lines(random, drawn)], max_line_bytes=LIMIT):
            truth = outcome(exact.read(block) for _ in range(1))
            answer = path.read(block)
            assert answer is None or outcome([answer]) == truth, (block, outcome([answer]), truth)
            both = fast.MixedPath(path, exact)
            assert outcome(both.read(block) for _ in range(1)) == truth, (block, truth)
            good += isinstance(truth, str)
            read += answer is not None
print(good, read)
"""


def run(script: str) -> tuple[int, int]:
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    good, fast = map(int, ended.stdout.split())
    return good, fast


def test_damaged_blocks_never_kill_the_process_and_never_mean_two_things():
    good, fast = run(EACH_ALONE)
    assert good > 300
    assert fast > good * 0.6


def test_nothing_is_read_or_written_outside_of_any_array():
    """Each array ends or begins where memory does, and one path reads all blocks, names and all."""
    good, fast = run(AT_THE_EDGE)
    assert good > 400
    assert fast > good * 0.6


def test_nested_values_are_read_within_the_bounds_of_every_array():
    good, fast = run(NESTED_AT_THE_EDGE)
    assert good > 400
    assert fast > good * 0.6
