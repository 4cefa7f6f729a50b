"""The decoder takes the fast path where it can, stays within its limits, and reports well."""

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from blizzard.model.settings import BLOCK_BYTES, DecodeLimits
from blizzard.worker.ndjson.compiled.fast import FastPath, MixedPath
from blizzard.worker.ndjson.compiled.page import Refusals
from blizzard.worker.ndjson.decoder import USUAL_LIMITS, Decoder
from blizzard.worker.ndjson.exact import ExactPath, Span
from blizzard.worker.ndjson.lines import BadLine, Block, CombinedRows, Decoded, blocks
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.errors import LakeError, Whose
from lakebed.types import FieldType, OnBadRecord, OnMismatch, UnknownFields
from tests.support.decoding import decode_all
from tests.support.growth import AT_MOST, growth

ID = Schema((Field(name="id", type=FieldType.INT64),))
ALL = Schema(tuple(Field(name=kind, type=kind) for kind in FieldType if kind.delta))
RECORD = {
    "string": "ünï {[]}",
    "int8": 3,
    "int16": 4,
    "int32": 1,
    "int64": 2,
    "float32": 0.5,
    "float64": 0.25,
    "boolean": True,
    "timestamp": "2024-01-02T03:04:05.678Z",
    "timestamp_ntz": "2024-01-02T03:04:05.678",
    "date": "2024-01-02",
    "binary": "aGk=",
    "json": {"a": [1, {"b": '\\ " \u00fc'}]},
}


def ndjson(*records: Mapping[str, object]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def decode(schema: Schema, data: bytes, **options: Any) -> list[Decoded]:
    return list(Decoder(schema, **options).decode([data]))


class Watched(Decoder):
    """Notes which lines are read one by one, and how many blocks are read together each time."""

    def __init__(self, schema: Schema, **options: Any) -> None:
        super().__init__(schema, **options)
        self.slow: list[int] = []
        self.together: list[int] = []
        fast = _NotedFast(self._path._fast, self.together)
        self._path = MixedPath(fast, _NotedExact(self._path._exact, self.slow))  # type: ignore[arg-type]


@dataclass
class _NotedExact:
    path: ExactPath
    seen: list[int]

    def read(self, block: Block) -> Decoded:
        self.seen.extend(block.first_line + number for number in range(block.lines))
        return self.path.read(block)

    def read_some(self, block: Block, lines: Iterable[Span]) -> Decoded:
        spans = list(lines)
        self.seen.extend(number for number, _, _ in spans)
        return self.path.read_some(block, spans)


@dataclass
class _NotedFast:
    path: FastPath
    seen: list[int]

    def read(self, block: Block, refused: Refusals | None = None) -> Decoded | None:
        self.seen.append(1)
        return self.path.read(block, refused)

    def read_combined(self, found: Sequence[Block]) -> CombinedRows | None:
        self.seen.append(len(found))
        return self.path.read_combined(found)


@pytest.mark.parametrize(
    "extra",
    [
        {"x": 1},
        {"x": None},
        {"x": "Information, Infinity: NaN"},
        {"x": {"a": [1, 2.5]}, "y": "z"},
        {"x": "2024-01-01T00:00:00Z"},
        {"": []},
    ],
)
def test_undeclared_fields_are_counted_on_the_fast_path(extra: dict[str, object]):
    data = ndjson(*[RECORD, RECORD | extra] * 6000)
    decoder = Watched(ALL)
    batches = list(decoder.decode([data]))
    dropped = sum((Counter(batch.dropped) for batch in batches), Counter())
    assert dropped == {name or "``": 6000 for name, value in extra.items() if value is not None}
    assert len(batches) > 2
    assert decoder.slow == []


def test_the_unknown_names_of_earlier_files_do_not_slow_later_ones_down():
    decoder = Watched(ID)
    for file in range(5):
        data = ndjson({"id": 1} | {f"name {file}.{number}": 1 for number in range(60)})
        (decoded,) = decoder.decode([data])
        assert len(decoded.dropped) == 60
    assert decoder.slow == []


def again(kind: FieldType, *path: str) -> Field:
    return Field(name="again", type=kind, reading=Reading(path=path))


STRUCT = Field(name="n", type=FieldType.STRUCT, fields=(Field(name="a", type=FieldType.INT64),))
LIST = Field(name="n", type=FieldType.LIST, items=Field(name="element", type=FieldType.INT64))


@pytest.mark.parametrize(
    ("one", "second", "value", "rescued"),
    [
        (Field(name="n", type=FieldType.INT64), again(FieldType.STRING, "n"), '"x"', None),
        (Field(name="n", type=FieldType.INT64), again(FieldType.JSON, "n"), "[1]", None),
        (Field(name="n", type=FieldType.INT64), again(FieldType.STRING, "n"), "[1]", '{"n":[1]}'),
        (STRUCT, again(FieldType.STRING, "n", "a"), '{"a":"x"}', None),
        (STRUCT, again(FieldType.JSON, "n"), '{"a":"x"}', None),
        (STRUCT, again(FieldType.STRING, "n", "b"), '{"a":"x"}', '{"n.a":"x"}'),
        (LIST, again(FieldType.JSON, "n"), '["x"]', None),
        (STRUCT, again(FieldType.STRING, "n"), '"x"', None),
        (STRUCT, replace(LIST, name="again", reading=Reading(path=("n",))), "[7]", None),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_value_that_some_column_takes_is_not_rescued_for_another(
    one: Field, second: Field, value: str, rescued: str | None, turned: bool
):
    schema = Schema((second, one) if turned else (one, second))
    (decoded,) = decode(
        schema,
        f'{{"n":{value}}}\n'.encode(),
        unknown=UnknownFields.RESCUE,
        on_mismatch=OnMismatch.RESCUE,
    )
    assert decoded.batch["_rescued"].to_pylist() == [rescued]
    assert sum(decoded.rescued.values()) == (rescued is not None)


def from_path(name: str, *path: str) -> Field:
    return Field(name=name, type=FieldType.INT64, reading=Reading(path=path))


def struct(name: str, *fields: Field) -> Field:
    return Field(name=name, type=FieldType.STRUCT, fields=fields)


@pytest.mark.parametrize("unknown", [UnknownFields.RESCUE, UnknownFields.DROP])
@pytest.mark.parametrize(
    ("declared", "line", "rest"),
    [
        ((), '{"x":{"q":{"b":5,"k":2}}}', "x.q.k"),
        ((struct("x", from_path("c")),), '{"x":{"q":{"b":5,"k":2}}}', "x.q.k"),
        ((struct("x", struct("q", from_path("c"))),), '{"x":{"q":{"c":1,"b":5,"k":2}}}', "x.q.k"),
        ((struct("x", struct("q", from_path("b"))),), '{"x":{"q":{"b":5},"k":2}}', "x.k"),
    ],
)
def test_a_member_that_a_field_takes_at_any_depth_is_not_left_over(
    declared: tuple[Field, ...], line: str, rest: str, unknown: UnknownFields
):
    schema = Schema((*declared, from_path("z", "x", "q", "b")))
    (decoded,) = decode(schema, f"{line}\n".encode(), unknown=unknown)
    assert decoded.batch["z"].to_pylist() == [5]
    if unknown is UnknownFields.DROP:
        assert dict(decoded.dropped) == {rest: 1}
    else:
        assert decoded.batch["_rescued"].to_pylist() == [f'{{"{rest}":2}}']


def test_record_separators_in_a_row_are_as_good_as_one():
    """RFC 7464: there is no empty element between them."""
    (decoded,) = decode(ID, b'\x1e\x1e{"id":1}\n\x1e\n\x1e \x1e\x1e{"id":2}\n')
    assert decoded.batch["id"].to_pylist() == [1, 2]


FLOAT, SINGLE = FieldType.FLOAT64, FieldType.FLOAT32


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (FieldType.INT64, "0e99999", 0),
        (FieldType.INT64, "-0.0E-99999", 0),
        (FieldType.INT64, "1e00003", 1000),
        (FieldType.INT64, "1e99999", None),
        (FLOAT, "0e99999", 0.0),
        (FLOAT, "0.1", 0.1),
        (FLOAT, "0.30000000000000004", 0.30000000000000004),
        (FLOAT, "12345678901234567.89", None),
        (FLOAT, "9007199254740993", None),
        (FLOAT, "9007199254740992", 9007199254740992.0),
        (FLOAT, "0.1234567890123456789", None),
        (FLOAT, "0.1000000000000000055511151231257827021181583404541015625", 0.1),
        (FLOAT, "1e-400", None),
        (FLOAT, "1e-99999999999999999999", None),
        (FLOAT, "5e-324", 5e-324),
        (FLOAT, "1e5", 1e5),
        (SINGLE, "0.5", 0.5),
        (SINGLE, "16777217", None),
        (SINGLE, "16777216", 16777216.0),
    ],
)
@pytest.mark.parametrize("beside", ["", '{"v":1}\n{"v":"2"}\n'])
def test_a_number_in_a_string_is_taken_if_its_column_holds_every_digit(
    kind: FieldType, text: str, value: object, beside: str
):
    schema = Schema((Field(name="v", type=kind, reading=Reading(coerce=True)),))
    data = f'{{"v":"{text}"}}\n{beside}'.encode()
    (decoded,) = decode(schema, data, on_mismatch=OnMismatch.RESCUE)
    exact = ExactPath(schema, max_line_bytes=1 << 20, on_mismatch=OnMismatch.RESCUE)
    truth = exact.read(Block(text=data, first_line=1, lines=data.count(b"\n")))
    assert decoded.batch["v"].to_pylist() == truth.batch["v"].to_pylist()
    assert decoded.batch["v"][0].as_py() == value
    assert (decoded.batch["_rescued"][0].as_py() is None) == (value is not None)


def test_batches_before_the_bad_line_are_given_and_its_number_is_right():
    data = ndjson(*[{"id": number} for number in range(100_000)]) + b'{"id":"x"}\n'
    batches = Decoder(ID).decode([data])
    assert next(batches).batch.num_rows > 50_000
    with pytest.raises(BadLine) as bad:
        list(batches)
    assert bad.value.line == 100_001


def test_a_bad_line_says_what_was_found_and_expected():
    with pytest.raises(BadLine) as bad:
        decode(ID, b'{"id":"' + b"\\u0007\x7f" + b"y" * 500 + b'"}\n')
    error = bad.value
    assert isinstance(error, LakeError)
    assert (error.code, error.line, error.field) == ("wrong_type", 1, "id")
    assert error.whose is Whose.USER
    assert not error.retryable
    assert "expected an integer (int64)" in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 200


def test_not_json_says_in_which_column_it_stopped():
    with pytest.raises(BadLine, match="column 7, expected a JSON value"):
        decode(ID, b'{"id":nope}\n')
    with pytest.raises(BadLine, match="a value with Infinity in it at column 13"):
        decode(ID, b'{"id":1,"x":[Infinity]}\n')


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_line_beyond_the_limit_is_found_without_reading_on(step: int):
    def chunks() -> Iterator[bytes]:
        yield b'{"id":1}\n\n'
        for _ in range(2000 // step):
            yield b"x" * step
        pytest.fail("the rest of the line was asked for")

    batches = Decoder(ID, max_line_bytes=500).decode(chunks())
    assert next(batches).batch.num_rows == 1
    with pytest.raises(BadLine) as bad:
        next(batches)
    assert (bad.value.code, bad.value.line) == ("line_too_long", 3)


@pytest.mark.parametrize("step", [1, 10, 100, 10_000])
def test_the_limit_of_a_line_does_not_depend_on_how_it_is_cut(step: int):
    def outcome(length: int) -> int | str:
        line = b'{"id":1' + b" " * (length - 8) + b"}"
        data = b'{"id":1}\n' + line + b'\n{"id":3}\n'
        try:
            batches = Decoder(ID, max_line_bytes=300).decode(
                data[at : at + step] for at in range(0, len(data), step)
            )
            return sum(batch.batch.num_rows for batch in batches)
        except BadLine as bad:
            return f"{bad.code} {bad.line}"

    assert outcome(300) == 3
    assert outcome(301) == "line_too_long 2"


def test_an_earlier_bad_line_is_named_before_a_line_that_is_too_long():
    with pytest.raises(BadLine) as bad:
        decode(ID, b'{"id":1}\nx\n' + b"y" * 1000, max_line_bytes=500)
    assert (bad.value.code, bad.value.line) == ("not_json", 2)


def test_blocks_are_about_a_mebibyte_and_end_with_a_line():
    data = b'{"id":1,"pad":"xxxxxxxxxxxxxxxxxxxxx"}\n' * 100_000
    found = list(blocks([data]))
    assert b"".join(block.data for block in found) == data
    assert all(block.data.endswith(b"\n") for block in found)
    assert all(len(block.data) <= 2 * BLOCK_BYTES for block in found)
    assert sum(block.lines for block in found) == 100_000


def test_a_wide_schema_is_read_in_short_batches():
    """W18: 1,000 columns and lines of two bytes do not become a batch of gigabytes."""
    wide = Schema(tuple(Field(name=f"c{n}", type=FieldType.INT64) for n in range(1000)))
    batches = decode(wide, b"{}\n" * 10_000)
    assert sum(batch.batch.num_rows for batch in batches) == 10_000
    assert max(batch.batch.num_rows for batch in batches) * 1000 <= USUAL_LIMITS.max_cells


def test_fields_of_structs_and_lists_count_as_columns():
    inner = tuple(Field(name=f"c{n}", type=FieldType.INT64) for n in range(40))
    nested = Schema((Field(name="inner", type=FieldType.STRUCT, fields=inner),))
    limits = DecodeLimits(block_bytes=500, short_bytes=1)
    batches = decode(nested, b'{"inner":{"c1":1}}\n' * 1000, limits=limits)
    assert all(batch.lines >= 2 * 500 // 19 for batch in batches[:-1])


def test_the_limit_of_names_holds_for_the_whole_file():
    data = ndjson(*[{f"name {number // 20_000}": 1, "pad": "x" * 50} for number in range(80_000)])
    more = ndjson(*[{f"other {number}": 1} for number in range(500)])
    names = {name for batch in decode(ID, data + more) for name in batch.dropped}
    assert len(names) == USUAL_LIMITS.max_names + 1


def test_a_new_name_on_every_line_leaves_the_fast_path():
    """W18: each unknown name is remembered; thousands of them are not."""
    path = FastPath(ID, max_line_bytes=1 << 20)
    data = ndjson(*[{f"name {number}": 1} for number in range(60_000)])
    assert [path.read(block) for block in blocks([data])] == [None, None]


def opened(*files: bytes) -> Iterator[tuple[int, Generator[bytes]]]:
    return ((place, (piece for piece in [file])) for place, file in enumerate(files))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (DecodeLimits(max_combined=4), [4, 4, 2]),
        (DecodeLimits(block_bytes=50), [5, 5]),
        (DecodeLimits(max_cells=3), [3, 3, 3, 1]),
    ],
)
def test_no_more_is_read_together_than_allowed(limits: DecodeLimits, expected: list[int]):
    """By number, by bytes, and by cells in memory."""
    decoder = Watched(ID, limits=limits)
    found = decode_all(decoder, opened(*[b'{"id": 1}\n'] * 10))
    assert sum(each.batch.num_rows for _, of in found for each in of) == 10
    assert decoder.together == expected


def test_a_file_that_is_not_short_is_read_by_itself_in_its_place():
    long = b'{"id":1}\n' * (USUAL_LIMITS.short_bytes // 9 + 1)
    decoder = Watched(ID)
    found = decode_all(decoder, opened(b'{"id":2}', b'{"id":3}', long, b'{"id":4}'))
    assert [(place, sum(each.lines for each in of)) for place, of in found] == [
        (0, 1), (1, 1), (2, len(long) // 9), (3, 1),
    ]  # fmt: skip
    assert decoder.together == [2, 1, 1]


def test_a_fault_of_our_own_in_one_file_is_not_that_of_the_others():
    class Faulty(_NotedFast):
        def read(self, block: Block, refused: Refusals | None = None) -> Decoded | None:
            if b"7" in block.data:
                raise RuntimeError("a bug")
            return super().read(block, refused)

        def read_combined(self, found: Sequence[Block]) -> CombinedRows | None:
            if any(b"7" in block.data for block in found):
                raise RuntimeError("a bug")
            return super().read_combined(found)

    decoder = Decoder(ID)
    fast: Any = Faulty(decoder._path._fast, [])
    decoder._path = MixedPath(fast, decoder._path._exact)
    seen: dict[int, object] = {}
    for place, of in decode_all(decoder, opened(b'{"id":1}', b'{"id":7}', b'{"id":3}')):
        try:
            seen[place] = [each.batch["id"].to_pylist() for each in of]
        except RuntimeError as error:
            seen[place] = str(error)
    assert seen == {0: [[1]], 1: "a bug", 2: [[3]]}


def test_trouble_with_the_bytes_of_a_file_comes_in_its_place_after_its_own_bad_lines():
    """L05: what could be read before is looked at first, and the other files go on."""

    def breaks(data: bytes) -> Generator[bytes]:
        yield data
        raise OSError("the line went dead")

    whole = b'{"id":1}\n' * BLOCK_BYTES
    files = [
        (0, (piece for piece in [b'{"id":1}'])),
        (1, breaks(b'{"id":2}\n')),
        (2, breaks(b"{\n" + whole)),
        (3, (piece for piece in [b'{"id":4}'])),
    ]
    seen: dict[int, object] = {}
    for place, of in decode_all(Decoder(ID), files):
        try:
            seen[place] = [each.batch["id"].to_pylist() for each in of]
        except (BadLine, OSError) as error:
            seen[place] = type(error)
    assert seen == {0: [[1]], 1: OSError, 2: BadLine, 3: [[4]]}


def test_a_file_that_is_left_early_is_closed_before_the_next_is_opened():
    closed: list[int] = []

    def pieces(place: int) -> Generator[bytes]:
        try:
            while True:
                assert closed == list(range(place))
                yield b'{"id":1}\n' * BLOCK_BYTES
        finally:
            closed.append(place)

    for _place, of in decode_all(Decoder(ID), ((place, pieces(place)) for place in range(3))):
        next(of)
    assert closed == [0, 1, 2]


_MANY = (
    lambda keys: {"id": 1, **keys},
    lambda keys: {"id": "no number", **keys},
    lambda keys: {"s": {"x": 1, **keys}},
    lambda keys: {"m": dict.fromkeys(keys, "no number")},
)
_NESTED = (
    Field(name="s", type=FieldType.STRUCT, fields=ID.fields),
    Field(name="m", type=FieldType.MAP, items=Field(name="value", type=FieldType.INT64)),
)


@pytest.mark.parametrize("record", _MANY)
@pytest.mark.parametrize("unknown", set(UnknownFields) - {UnknownFields.ADD})
def test_a_line_of_many_undeclared_keys_costs_what_its_keys_cost(
    record: Callable[[Mapping[str, int]], Mapping[str, object]], unknown: UnknownFields
) -> None:
    decoder = Decoder(
        Schema((*ID.fields, *_NESTED)),
        unknown=unknown,
        on_mismatch=OnMismatch.RESCUE,
        on_bad_record=OnBadRecord.QUARANTINE,
    )

    def decoding(keys: int) -> Callable[[], object]:
        line = ndjson(record({f"key_{n}": n for n in range(keys)}))
        return lambda: list(decoder.decode([line]))

    assert growth(decoding, 500) < AT_MOST
