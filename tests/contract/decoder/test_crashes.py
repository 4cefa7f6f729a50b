"""Whatever the bytes are, the process lives and both paths agree.

Compiled code can kill the process on bytes it does not expect, so thousands of damaged blocks are
read in a process of their own: a crash is then a failing test.
"""

import pytest

from tests.support.processes import printed

SCRIPT = """
import faulthandler, json
from random import Random
from blizzard.worker.ndjson.compiled import columns, fast, leftovers, page, peel, scan
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import Block, blocks
from lakebed.columns.schema import Schema
from lakebed.types import OnMismatch, UnknownFields
from tests.support.damage import LIMIT, SCHEMA, cut_short, damaged, damaged_lines, outcome
from tests.support.edge import EdgeNumpy
from tests.support.nested import Lines, some_fields

faulthandler.enable()


def each_alone():
    random = Random(20240102)
    quick = good = 0
    for number in range(1500):
        data = damaged(random)
        exact = ExactPath(SCHEMA, max_line_bytes=LIMIT)
        truth = outcome(exact.read(block) for block in blocks([data], max_line_bytes=LIMIT))
        found = outcome(Decoder(SCHEMA, max_line_bytes=LIMIT).decode([data]))
        assert found == truth, (data, found, truth)
        good += isinstance(truth, str)
        path = fast.FastPath(SCHEMA, max_line_bytes=LIMIT)
        quick += all(path.read(block) for block in blocks([data], max_line_bytes=LIMIT))
    return good, good, quick


def to_the_edge(at_end):
    for module in (columns, fast, leftovers, page, peel, scan):
        module.np = EdgeNumpy(at_end=at_end)


class Both:
    # Both paths together, and of each third block the fast one by itself.
    def __init__(self):
        self.read = self.good = self.asked = self.quick = 0

    def agree(self, block, path, exact):
        truth = outcome(exact.read(block) for _ in range(1))
        mixed = fast.MixedPath(path, exact)
        assert outcome(mixed.read(block) for _ in range(1)) == truth, (block, truth)
        self.read += 1
        self.good += isinstance(truth, str)
        if self.read % 3 == 0:
            answer = path.read(block)
            assert answer is None or outcome([answer]) == truth, (block, outcome([answer]), truth)
            self.asked += isinstance(truth, str)
            self.quick += answer is not None

    def counts(self):
        return self.good, self.asked, self.quick


def at_the_edge():
    scan.MAX_PLACES = 3  # so that lines have more members, and what was learned is forgotten
    scan.MAX_REMEMBERED = 60
    random, both = Random(20240103), Both()
    exact = ExactPath(SCHEMA, max_line_bytes=LIMIT)
    to_the_edge(at_end=True)
    path = fast.FastPath(SCHEMA, max_line_bytes=LIMIT)
    assert path.read(Block(text=b'{"int64":1}\\n' * 99, first_line=1, lines=1)) is None
    for number in range(2000):
        to_the_edge(at_end=number % 3 > 0)
        for block in blocks([cut_short(random)], max_line_bytes=LIMIT):
            both.agree(block, path, exact)
    return both.counts()


def nested_at_the_edge():
    scan.MAX_PLACES = 2
    random, both = Random(20240104), Both()
    for number in range(150):
        schema = Schema(some_fields(random, random.randrange(1, 4), clashing=number % 5 == 0))
        how = {
            "unknown": random.choice(list(UnknownFields)),
            "on_mismatch": random.choice(list(OnMismatch)),
        }
        exact = ExactPath(schema, max_line_bytes=LIMIT, **how)
        to_the_edge(at_end=number % 3 > 0)
        path = fast.FastPath(schema, max_line_bytes=LIMIT, **how)
        lines = Lines(random, unknown=0.3)
        for _ in range(12):
            drawn = [lines.line(schema.fields).encode() for _ in range(random.randrange(1, 3))]
            for block in blocks([damaged_lines(random, drawn)], max_line_bytes=LIMIT):
                both.agree(block, path, exact)
    return both.counts()


for read in (each_alone, at_the_edge, nested_at_the_edge):
    print(json.dumps([read.__name__, *read()]))
"""


@pytest.fixture(scope="module")
def counts() -> dict[str, tuple[int, int, int]]:
    """Return how many blocks were good, and how many of some good ones the fast path has read."""
    return {name: tuple(found) for name, *found in printed(SCRIPT)}


def test_damaged_blocks_never_kill_the_process_and_never_mean_two_things(counts):
    good, asked, fast = counts["each_alone"]
    assert good > 300
    assert fast > asked * 0.6


@pytest.mark.parametrize("name", ["at_the_edge", "nested_at_the_edge"])
def test_nothing_is_read_or_written_outside_of_any_array(counts, name):
    """Each array ends or begins where memory does, and one path reads all blocks, names and all."""
    good, asked, fast = counts[name]
    assert good > 400
    assert fast > asked * 0.6
