"""A field that is promoted later reads as it would have, had it been declared from the start."""

import json

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from blizzard.model.columns import kept_exact
from blizzard.model.rewriting import FillTarget
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import Block
from blizzard.worker.transform import Filling
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import RESCUED, FieldType, OnMismatch, UnknownFields

NAMES = st.sampled_from(["a", "b", "a.b", "`", "ü", "[0]"])
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=3),
        st.sampled_from(["2024-01-31", "2024-01-31T00:00:00Z", "7", "-"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
RECORDS = st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=5)
LEAVES = st.sampled_from(
    [
        FieldType.INT64,
        FieldType.INT8,
        FieldType.FLOAT64,
        FieldType.STRING,
        FieldType.BOOLEAN,
        FieldType.DATE,
        FieldType.TIMESTAMP,
        FieldType.JSON,
    ]
)
ELEMENT = LEAVES.map(lambda kind: Field(name="element", type=kind))
KINDS = st.one_of(
    LEAVES.map(lambda kind: Field(name="x", type=kind)),
    ELEMENT.map(lambda items: Field(name="x", type=FieldType.LIST, items=items)),
    ELEMENT.map(lambda items: Field(name="x", type=FieldType.MAP, items=items)),
    LEAVES.map(
        lambda kind: Field(name="x", type=FieldType.STRUCT, fields=(Field(name="b", type=kind),))
    ),
)


@st.composite
def fields(draw):
    kind = draw(KINDS)
    path = tuple(draw(st.lists(NAMES, min_size=1, max_size=2)))
    coerce = not kind.is_nested and draw(st.booleans())
    return Field(
        name="x",
        type=kind.type,
        fields=kind.fields,
        items=kind.items,
        reading=Reading(path=path, coerce=coerce, null_values=("-",) if coerce else ()),
    )


def decoded(schema, body, lines):
    path = ExactPath(
        schema, max_line_bytes=1 << 20, unknown=UnknownFields.RESCUE, on_mismatch=OnMismatch.RESCUE
    )
    return path.read(Block(text=body, first_line=1, lines=lines)).batch


def members(text):
    return {} if text is None else json.loads(text, parse_float=str, parse_int=str)


@settings(deadline=None)
@given(field=fields(), records=RECORDS)
def test_promoting_is_as_good_as_declaring(field, records):
    body = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records).encode()
    known = Field(name="id", type=FieldType.INT64)
    before = decoded(Schema((known,)), body, len(records))
    schema = Schema((known, field))
    wanted = decoded(kept_exact(schema, schema, OnMismatch.RESCUE), body, len(records))
    found = Filling(FillTarget(field)).fill(pa.Table.from_batches([before]))
    assert found["x"].to_pylist() == wanted["x"].to_pylist()
    for left, expected in zip(found[RESCUED].to_pylist(), wanted[RESCUED].to_pylist(), strict=True):
        assert flat(members(left)) == flat(members(expected))


def flat(found, above=""):
    """Take objects apart: one that nothing was taken out of may be kept whole, or by its parts."""
    leaves: dict[str, object] = {}
    for name, value in found.items():
        if isinstance(value, dict) and value:
            quoted = {
                f"`{key.replace('`', '``')}`" if set(key) & set(".[]`") else key: one
                for key, one in value.items()
                if one is not None
            }
            leaves |= flat(quoted, f"{above}{name}.")
        else:
            leaves[f"{above}{name}"] = value
    return leaves
