"""Whatever is read, the decoder says what the exact path says, value for value."""

import json
from collections import Counter
from collections.abc import Iterable

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from blizzard.model.limits import DecodeLimits
from blizzard.worker.ndjson.decoder import BadLine, Decoded, Decoder
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import blocks
from lakebed.columns.arrow_types import ARROW
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType
from tests.support.decoding import decode_all

LIMIT = 1 << 20
KINDS = list(ARROW)
SCHEMA = Schema(tuple(Field(name=kind, type=kind) for kind in KINDS))
REQUIRED = Schema(tuple(Field(name=kind, type=kind, nullable=False) for kind in KINDS[:3]))

numbers = st.one_of(
    st.integers().map(str),
    st.integers(-(2**64), 2**64).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,25})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
)
clock = st.from_regex(r"[0-2][0-9](:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,9})?)?)?", fullmatch=True)
zone = st.from_regex(r"(Z|z|[+-][0-2][0-9](:?[0-6][0-9])?)?", fullmatch=True)
days = st.one_of(
    st.dates().map(str), st.from_regex(r"[0-9]{4}-[01][0-9]-[0-3][0-9]", fullmatch=True)
)
moments = st.one_of(
    days,
    st.builds("{}{}{}{}".format, days, st.sampled_from(["T", " ", "t", ""]), clock, zone),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
)
texts = st.one_of(
    st.text(st.characters(exclude_categories=[])).map(json.dumps),
    st.text().map(lambda text: json.dumps(text, ensure_ascii=False)),
    moments.map(json.dumps),
    st.binary().map(lambda data: json.dumps(data.hex())),
    st.sampled_from(['"aGk="', '"aGk"', r'"\ud800"', r'"2024-01-02\u005403:04Z"']),
)
plain = st.one_of(numbers, texts, st.sampled_from(["null", "true", "false", "NaN", "-Inf"]))
values = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]"),
        st.dictionaries(st.sampled_from(["a", "b", ""]), inner, max_size=3).map(
            lambda items: "{" + ",".join(f'"{name}":{item}' for name, item in items.items()) + "}"
        ),
    ),
    max_leaves=4,
)
fitting: dict[str, st.SearchStrategy[str]] = {
    FieldType.STRING: texts,
    FieldType.INT8: st.integers(-(2**7), 2**7 - 1).map(str),
    FieldType.INT16: st.integers(-(2**15), 2**15 - 1).map(str),
    FieldType.INT32: st.integers(-(2**31), 2**31 - 1).map(str),
    FieldType.INT64: st.integers(-(2**63), 2**63 - 1).map(str),
    FieldType.FLOAT32: numbers,
    FieldType.FLOAT64: numbers,
    FieldType.BOOLEAN: st.sampled_from(["true", "false"]),
    FieldType.TIMESTAMP: moments.map(json.dumps),
    FieldType.TIMESTAMP_NTZ: moments.map(json.dumps),
    FieldType.DATE: days.map(json.dumps),
    FieldType.JSON: values,
    FieldType.BINARY: st.sampled_from(['"aGk="', '""', '"AAAA"']),
}


@st.composite
def records(draw: st.DrawFn) -> str:
    """One record: mostly values that fit, sometimes any value, sometimes undeclared fields."""
    names = draw(st.lists(st.sampled_from(KINDS), max_size=4, unique=True))
    members = [
        f'"{name}":{draw(values if draw(st.integers(0, 9)) == 0 else fitting[name])}'
        for name in names
    ]
    extra = draw(st.lists(st.sampled_from(["x", "y", "X", "int\\u00364", ""]), max_size=2))
    members += [f'"{name}":{draw(values)}' for name in extra]
    gap = draw(st.sampled_from(["", "", " ", "\t", "\r"]))
    return gap + "{" + f"{gap},{gap}".join(members) + "}" + gap


lines = st.lists(st.one_of(records(), records(), records(), st.just("")), min_size=1, max_size=8)
tricky = st.sampled_from(
    [
        *(b"null", b"\n", b"\r", b"}{", b"}\n{", b"NaN", b"Infinity", b"\0", b"\xff", b"\\", b'"'),
        *(b"\xef\xbb\xbf", b"\\ud800", b"1e400", b"[", b"{", b"}", b"]", b"0", b".", b"T12Z", b","),
    ]
)
damage = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 3), st.one_of(tricky, st.binary(max_size=2))),
    max_size=2,
)


def damaged(text: str, cuts: list[tuple[float, int, bytes]]) -> bytes:
    data = text.encode()
    for place, length, put in cuts:
        at = int(place * len(data))
        data = data[:at] + put + data[at + length :]
    return data


def outcome(batches: Iterable[Decoded]) -> tuple[object, ...]:
    rows: list[str] = []
    counted: Counter[str] = Counter()
    try:
        for decoded in batches:
            assert decoded.batch.num_rows == decoded.lines - decoded.blank
            rows += map(repr, decoded.batch.to_pylist())
            counted.update(decoded.dropped)
    except BadLine as bad:
        return bad.code, bad.line, bad.field, str(bad)
    return tuple(rows), dict(counted)


def exactly(schema: Schema, data: bytes) -> tuple[object, ...]:
    path = ExactPath(schema, max_line_bytes=LIMIT)
    return outcome(path.read(block) for block in blocks([data], max_line_bytes=LIMIT))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([SCHEMA, REQUIRED]), lines, damage, st.integers(1, 400))
@example(SCHEMA, ['{"float32":3.4028235677973366e38}'], [], 400)
@example(SCHEMA, ['{"timestamp":"0000-12-31T23:59:59-01:00"}'], [], 400)
@example(SCHEMA, ['{"float64":-0}', '{"json":-0}'], [], 400)
@example(SCHEMA, ['{"json":{"a":1},"json":2}'], [], 400)
@example(SCHEMA, ['{"json":1}{"json":2}'], [], 400)
@example(SCHEMA, [r'{"string":null,"string":"\u0022\u0022"}'], [], 400)
@example(SCHEMA, [r'{"string":"a\"b","json":"\""}'], [], 400)
def test_the_decoder_and_the_exact_path_agree(
    schema: Schema, drawn: list[str], cuts: list[tuple[float, int, bytes]], step: int
):
    data = damaged("\n".join(drawn) + "\n", cuts)
    chunks = [data[at : at + step] for at in range(0, len(data), step)]
    decoder = Decoder(schema, max_line_bytes=LIMIT)
    assert outcome(decoder.decode(chunks)) == exactly(schema, data)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([SCHEMA, REQUIRED]),
    st.lists(
        st.tuples(st.lists(records(), max_size=4), st.one_of(st.just([]), damage)), max_size=6
    ),
    st.sampled_from(["", "\n"]),
    st.integers(1, 5),
    st.sampled_from([20, 100, 1000]),
)
def test_files_that_are_read_together_are_what_they_are_alone(
    schema: Schema,
    drawn: list[tuple[list[str], list[tuple[float, int, bytes]]]],
    ending: str,
    most: int,
    short: int,
):
    files = [damaged("\n".join(texts) + ending, cuts) for texts, cuts in drawn]
    opened = ((place, (piece for piece in [file])) for place, file in enumerate(files))
    limits = DecodeLimits(most_together=most, short_bytes=short)
    found = decode_all(Decoder(schema, max_line_bytes=LIMIT, limits=limits), opened)
    assert [(place, outcome(batches)) for place, batches in found] == [
        (place, exactly(schema, file)) for place, file in enumerate(files)
    ]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([FieldType.FLOAT32, FieldType.FLOAT64]), st.lists(numbers, min_size=1))
def test_both_paths_round_every_number_alike(kind: FieldType, tokens: list[str]):
    schema = Schema((Field(name="v", type=kind),))
    data = "".join(f'{{"v":{token}}}\n' for token in tokens).encode()
    assert outcome(Decoder(schema).decode([data])) == exactly(schema, data)


@settings(max_examples=60, deadline=None)
@given(st.lists(moments, min_size=1, max_size=20))
def test_both_paths_take_the_same_moments(drawn: list[str]):
    schema = Schema((Field(name="v", type=FieldType.TIMESTAMP),))
    for moment in drawn:
        data = f'{{"v":{json.dumps(moment)}}}\n'.encode()
        assert outcome(Decoder(schema).decode([data])) == exactly(schema, data)
