"""The compiled look finds the columns that a look at each value finds."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from blizzard.model.seen import columns_of, joined
from blizzard.worker.ndjson.inference import infer, parse
from blizzard.worker.ndjson.lines import Block
from blizzard.worker.ndjson.sampling import ColumnSampler, FastInference
from lakebed.columns.schema import Field
from tests.support.json_values import records


def block_of(some: list[Any]) -> Block:
    data = "".join(json.dumps(record) + "\n" for record in some).encode()
    return Block(text=data, first_line=1, lines=len(some))


def columns(members: Any) -> dict[str, Field]:
    return {one.name: unordered(one) for one in columns_of(members)}


def unordered(one: Field) -> Any:
    inner = sorted(str(unordered(each)) for each in one.fields)
    return (one.name, one.type, one.precision, inner, one.items and unordered(one.items))


@given(st.lists(records, min_size=1, max_size=3))
@example([[{"a": None, "A": False}], [{"a": False}]])
@settings(deadline=None)
def test_both_looks_find_the_same_columns(blocks):
    fast = FastInference()
    found = [fast.infer(block_of(some)) for some in blocks]
    every = [parse(json.dumps(record)) for some in blocks for record in some]
    exact = infer(every).objects
    assert exact is not None
    if None not in found:
        assert columns(joined(one for one in found if one)) == columns(exact.members)


def test_plain_records_take_the_compiled_look():
    record = {"a": 1, "b": [1.5, {"c": "x"}], "d": {"e": {"f": True}, "g": "2024-01-01"}}
    assert FastInference().infer(block_of([record] * 100)) is not None


def test_names_that_are_data_are_looked_at_together():
    sampler = ColumnSampler()
    for start in range(0, 5000, 500):
        sampler.sample_block(block_of([{"m": {f"k{n}": n}} for n in range(start, start + 500)]))
    (column,) = columns_of(sampler.seen)
    assert column.shown == "map<string, int64>"


def test_lines_that_are_no_records_are_skipped():
    sampler = ColumnSampler()
    data = b'{"a":1}\n{nope\n[1]\n\n{"a":2,"b":"x"}\n'
    sampler.sample_block(Block(text=data, first_line=1, lines=5))
    assert [one.shown for one in columns_of(sampler.seen)] == ["int64", "string"]
