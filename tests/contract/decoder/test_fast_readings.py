"""Good lines never leave the fast path, however their values are written."""

import pytest

from blizzard.config.columns import schema_of
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.lines import Block
from lakebed.config.schema import DeclaredSchema
from lakebed.types import RESCUED, OnMismatch, UnknownFields
from tests.contract.decoder.nested_cases import CASES, Bad, Nested
from tests.contract.decoder.test_nested_contract import plain

GOOD = [case for case in CASES if not isinstance(case.expected, Bad)]


@pytest.mark.parametrize("case", GOOD, ids=[case.name for case in GOOD])
def test_the_fast_path_reads_what_is_good(case: Nested):
    schema = schema_of(DeclaredSchema(fields=case.fields))
    path = FastPath(
        schema, max_line_bytes=1 << 20, unknown=UnknownFields.RESCUE, on_mismatch=OnMismatch.RESCUE
    )
    lines = [case.line, "{}", case.line]
    data = "".join(line + "\n" for line in lines).encode()
    decoded = path.read(Block(text=data, first_line=1, lines=len(lines)))
    assert decoded is not None, "the exact path would have to read it"
    first, _, last = decoded.batch.to_pylist()
    assert plain(first) == plain(last) == {**case.expected, RESCUED: case.rescued}
