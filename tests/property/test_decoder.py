"""The decoder says what the exact path says, and integers beyond a float are never rounded."""

import json
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from blizzard.model.columns import kept_exact
from blizzard.model.seen import Integers, Seen, column_of
from blizzard.model.settings import DecodeLimits
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import BadLine, Block, blocks
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.types import RESCUED, FieldType, OnMismatch, UnknownFields
from tests.support.decoding import decode_all, outcome

LIMIT = 1 << 20
KINDS = [kind for kind in FieldType if kind.delta]
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
    limits = DecodeLimits(max_combined=most, short_bytes=short)
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


FLOATS = st.sampled_from([FieldType.FLOAT32, FieldType.FLOAT64])
NEAR = st.builds(
    lambda sign, power, off: sign * (2**power + off),
    st.sampled_from([1, -1]),
    st.integers(0, 130),
    st.integers(-3, 3),
)
INTEGERS = st.one_of(NEAR, st.integers(), st.integers(-(10**40), 10**40))
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False, width=32)
NUMBERS = st.lists(st.one_of(INTEGERS, INTEGERS.map(str), FRACTIONS), min_size=1, max_size=12)


def found(kind: FieldType, *, coerce: bool = False) -> Field:
    return Field(name="v", type=kind, reading=Reading(coerce=coerce, exact=True))


@settings(deadline=None)
@given(NUMBERS, FLOATS, st.booleans(), st.booleans())
def test_an_integer_is_exactly_in_the_column_or_rescued_as_it_is_written(
    numbers, kind, coerce, is_alone
):
    column = found(kind, coerce=coerce)
    if not is_alone:
        column = Field(name="v", type=FieldType.LIST, items=column)
    values = [{"v": one if is_alone else [one]} for one in numbers]
    data = "".join(json.dumps(value) + "\n" for value in values).encode()
    decoder = Decoder(Schema((column,)), on_mismatch=OnMismatch.RESCUE)
    read = [row for part in decoder.decode([data]) for row in part.batch.to_pylist()]
    for number, row in zip(numbers, read, strict=True):
        (cell,) = [row["v"]] if is_alone else row["v"]
        path = "v" if is_alone else "v[0]"
        if cell is None:
            kept = json.loads(row[RESCUED])[path]
            assert (kept, type(kept)) == (number, type(number))
        else:
            assert row[RESCUED] is None
            if not isinstance(number, float):
                assert int(number) == Decimal(cell)


@settings(deadline=None)
@given(NUMBERS, FLOATS, st.booleans(), st.sampled_from(list(OnMismatch)))
def test_the_fast_path_takes_what_is_exact_and_nothing_else(numbers, kind, coerce, policy):
    schema = Schema((found(kind, coerce=coerce),))
    data = "".join(json.dumps({"v": one}) + "\n" for one in numbers).encode()
    block = Block(text=data, first_line=1, lines=len(numbers))
    options = {"max_line_bytes": LIMIT, "unknown": UnknownFields.DROP, "on_mismatch": policy}
    fast = FastPath(schema, **options).read(block)
    try:
        exact = ExactPath(schema, **options).read(block)
    except BadLine:
        assert fast is None
        return
    assert (fast is None) == bool(exact.rescued)
    assert fast is None or fast.batch.equals(exact.batch)


@given(st.lists(st.one_of(INTEGERS, st.just(0.5)), min_size=1))
def test_what_was_seen_together_fits_the_column_that_is_found(numbers):
    seen = Seen()
    for one in numbers:
        look = Seen(fractions=True) if isinstance(one, float) else Seen(integers=Integers(one, one))
        seen = seen.join(look)
    column = column_of("v", seen)
    assert column is not None
    schema = kept_exact(Schema((column,)), Schema(()), OnMismatch.RESCUE)
    data = "".join(json.dumps({"v": one}) + "\n" for one in numbers).encode()
    decoder = Decoder(schema, on_mismatch=OnMismatch.RESCUE)
    for part in decoder.decode([data]):
        assert part.rescued == {}
        assert part.batch.column("v").null_count == 0


def test_a_file_that_fails_for_it_says_why_and_what_to_do():
    decoder = Decoder(Schema((found(FieldType.FLOAT64),)), on_mismatch=OnMismatch.FAIL)
    with pytest.raises(BadLine) as bad:
        list(decoder.decode([b'{"v":1.5}\n{"v":9007199254740993}\n']))
    assert (bad.value.code, bad.value.line, bad.value.field) == ("out_of_range", 2, "v")
    assert "an integer that float64 cannot hold exactly" in str(bad.value)
    assert "on_mismatch: rescue" in str(bad.value)
    assert "declare" in str(bad.value)
