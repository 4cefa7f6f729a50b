"""The compiled scan at the borders of its steps, and the names it learns on the way."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from blizzard.worker.ndjson.compiled import columns
from blizzard.worker.ndjson.compiled import scan as known
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.compiled.syntax import MAX_DEPTH
from blizzard.worker.ndjson.compiled.vector import WIDTH
from blizzard.worker.ndjson.exact import ExactPath
from blizzard.worker.ndjson.lines import BadLine, Block, Decoded
from lakebed.columns.schema import Field, Schema
from lakebed.types import FieldType

LIMIT = 1 << 20
TEXT = Schema((Field(name="s", type=FieldType.STRING), Field(name="j", type=FieldType.JSON)))


def block(*lines: bytes) -> Block:
    return Block(text=b"".join(line + b"\n" for line in lines), first_line=1, lines=len(lines))


def read(schema: Schema, *lines: bytes) -> Decoded | None:
    return FastPath(schema, max_line_bytes=LIMIT).read(block(*lines))


def rows(decoded: Decoded | None) -> list[dict[str, Any]]:
    assert decoded is not None
    decoded.batch.validate(full=True)
    return decoded.batch.to_pylist()


@pytest.mark.parametrize("length", range(2 * WIDTH + 3))
def test_a_string_of_any_length_ends_at_its_quote(length: int):
    text = "x" * length
    assert rows(read(TEXT, json.dumps({"s": text, "j": text}).encode())) == [
        {"s": text, "j": f'"{text}"'}
    ]


@pytest.mark.parametrize("character", ["\\", '"', "\n", "\u00e9", "\u20ac", "\U0001f427", "\x7f"])
@pytest.mark.parametrize("at", range(WIDTH + 2))
def test_an_escape_is_found_and_resolved_wherever_it_stands(at: int, character: str):
    text = "x" * at + character + "y" * (WIDTH - at % 7)
    for as_ascii in (True, False):
        line = json.dumps({"s": text, "j": [text]}, ensure_ascii=as_ascii).encode()
        (row,) = rows(read(TEXT, line))
        assert row["s"] == text
        assert json.loads(row["j"]) == [text]


@pytest.mark.parametrize("at", range(WIDTH + 2))
def test_a_control_character_in_a_string_is_refused_wherever_it_stands(at: int):
    for control in range(0x20):
        data = b'{"s":"' + b"x" * at + bytes([control]) + b'y"}\n'
        one = Block(text=data, first_line=1, lines=data.count(b"\n"))
        assert FastPath(TEXT, max_line_bytes=LIMIT).read(one) is None


@pytest.mark.parametrize("space", [b"", b" ", b"\t", b"  ", b" \r", b" " * (WIDTH + 1)])
@pytest.mark.parametrize("other", [b"", b" ", b"\t ", b" " * WIDTH])
def test_what_stands_before_a_value_may_be_written_otherwise_in_each_line(
    space: bytes, other: bytes
):
    lines = [
        b'{%b"s"%b:%b"a"%b,%b"j"%b:%b1}' % ((one,) * 7) for one in (space, other, space, space)
    ]
    assert rows(read(TEXT, *lines)) == [{"s": "a", "j": "1"}] * 4


@pytest.mark.parametrize(
    "line",
    [
        b'{"j": 1, "s": "a"}',
        b'{"j": 1}',
        b'{"s": "a"}',
        b"{}",
        b'{"s": "a", "other": 2, "j": 1}',
        b'{"sj": 3, "s": "a", "j": 1}',
    ],
)
def test_other_members_than_in_the_line_before_are_those_of_the_line(line: bytes):
    usual = b'{"s": "b", "j": 2}'
    expected = {"s": None, "j": None} | json.loads(line)
    want = {"s": expected["s"], "j": None if expected["j"] is None else str(expected["j"])}
    first = {"s": "b", "j": "2"}
    assert rows(read(TEXT, usual, usual, line, usual, line)) == [first, first, want, first, want]


@pytest.mark.parametrize(
    "line",
    [
        b'{"s": "b", "j": 2',
        b'{"s": "b", "j": }',
        b'{"s": "b", "j": 2,}',
        b'{"s": "b" "j": 2}',
        b'{, "s": "b", "j": 2}',
        b'{"s": "b", "s": "c"}',
        b'{"s": "b", "j"  2}',
        b'{"s": , "j": 2}',
    ],
)
def test_a_line_that_is_hardly_unlike_the_one_before_is_refused_all_the_same(line: bytes):
    usual = b'{"s": "b", "j": 2}'
    assert read(TEXT, usual, usual, line, usual) is None


@pytest.mark.parametrize("seed", range(4))
def test_texts_with_many_escapes_are_what_json_makes_of_them(seed: int):
    """Two and more in a step, next to each other, across its border, and before the last quote."""
    chance = random.Random(seed)
    pieces = [
        "x",
        "abc",
        "\\",
        '"',
        "\n",
        "\t",
        "\u00e9",
        "\u65e5",
        "\U0001f427",
        " " * 7,
        "z" * WIDTH,
    ]
    texts = ["".join(chance.choices(pieces, k=chance.randrange(40))) for _ in range(500)]
    lines = [
        json.dumps({"s": text, "j": {text: text}}, ensure_ascii=chance.random() < 0.5).encode()
        for text in texts
    ]
    found = rows(read(TEXT, *lines))
    assert [row["s"] for row in found] == texts
    assert [json.loads(row["j"]) for row in found] == [{text: text} for text in texts]


@pytest.mark.parametrize("length", [1, WIDTH - 3, WIDTH - 2, WIDTH - 1, WIDTH, 2 * WIDTH - 2, 200])
def test_names_that_begin_alike_are_told_apart(length: int):
    name = "n" * length
    schema = Schema(tuple(Field(name=name + end, type=FieldType.INT64) for end in ("", "a", "b")))
    lines = [
        json.dumps({name + "b": 1, name: 2, name + "a": 3}).encode(),
        json.dumps({name + "a": 4, name + "c": 5, name: 6}).encode(),
        json.dumps({name[1:] + "b": 7}).encode(),
    ]
    decoded = read(schema, *lines)
    assert [tuple(row.values()) for row in rows(decoded)] == [
        (2, 3, 1), (6, 4, None), (None, None, None),
    ]  # fmt: skip
    assert decoded is not None
    assert decoded.dropped == {name + "c": 1, name[1:] + "b": 1}


def test_a_declared_name_with_quotes_and_control_characters_is_known():
    name = 'a "\\\n\x01'
    schema = Schema((Field(name=name, type=FieldType.INT64),))
    assert rows(read(schema, json.dumps({name: 1}).encode())) == [{name: 1}]


def test_very_many_names_are_learned_over_some_blocks_and_forgotten_in_the_end():
    path = FastPath(TEXT, max_line_bytes=LIMIT)
    many = block(json.dumps({f"name {number}": 1 for number in range(350)}).encode())
    answers = [path.read(many) for _ in range(5)]
    assert answers[0] is None
    assert answers[-1] is not None
    assert len(answers[-1].dropped) == 350
    for first in range(0, 3000, 50):
        names = {f"other {number}": 1 for number in range(first, first + 50)}
        decoded = path.read(block(json.dumps(names).encode()))
        assert decoded is not None
        assert set(decoded.dropped) == set(names)
    assert path._level is not None
    assert path._level.members.names.slot_count < known.MAX_REMEMBERED + 100


def test_more_members_than_places_are_remembered_for_are_read():
    names = [f"n{number}" for number in range(known.MAX_PLACES + 10)]
    schema = Schema(tuple(Field(name=name, type=FieldType.INT32) for name in names))
    line = json.dumps(dict.fromkeys(names, 7)).encode()
    assert rows(read(schema, line, line)) == [dict.fromkeys(names, 7)] * 2


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_is_followed_as_deep_as_there_is_room_for(opening: bytes):
    closing = b"]" if opening == b"[" else b"}"

    def nested(depth: int) -> bytes:
        return b'{"j":' + opening * depth + b"1" + closing * depth + b"}"

    assert rows(read(TEXT, nested(MAX_DEPTH)))[0]["j"] is not None
    assert read(TEXT, nested(MAX_DEPTH + 1)) is None
    exact = ExactPath(TEXT, max_line_bytes=LIMIT).read(block(nested(MAX_DEPTH + 1)))
    assert exact.batch.num_rows == 1


@pytest.mark.parametrize("literal", ["null", "true", "false"])
def test_a_literal_is_known_by_all_of_its_letters(literal: str):
    flags = Schema((Field(name="b", type=FieldType.BOOLEAN),))
    assert read(flags, f'{{"b":{literal},"x":[{literal}]}}'.encode()) is not None
    for at in range(len(literal)):
        other = literal[:at] + "x" + literal[at + 1 :]
        assert read(flags, f'{{"b":{other}}}'.encode()) is None
        assert read(flags, f'{{"x":[{other}]}}'.encode()) is None


def test_what_stood_in_memory_before_is_not_taken_for_text(monkeypatch: pytest.MonkeyPatch):
    """Arrow takes a time of hours alone; a colon behind it does not make it one of minutes."""
    colons = SimpleNamespace(**vars(np))
    colons.empty = lambda shape, dtype: np.full(shape, ord(":"), dtype)
    monkeypatch.setattr(columns, "np", colons)
    schema = Schema((Field(name="t", type=FieldType.TIMESTAMP),))
    assert read(schema, rb'{"t":"2024-01-02T0\u0033"}') is None


@pytest.mark.parametrize(("data", "lines"), [(b"", 0), (b"{}\n{}\n{}", 2), (b"{}\n", 2)])
def test_a_block_that_has_other_lines_than_it_says_is_not_read(data: bytes, lines: int):
    """There is room for so many rows as it says; nothing is written beyond."""
    path = FastPath(TEXT, max_line_bytes=LIMIT)
    assert path.read(Block(text=data, first_line=1, lines=lines)) is None


def test_two_fields_of_one_name_are_refused():
    """Their values would be written beyond the room for one."""
    twice = Field(name="a", type=FieldType.INT64)
    with pytest.raises(ValueError, match="two fields of one name"):
        FastPath(Schema((twice, twice)), max_line_bytes=LIMIT)


COMPILE = """
import sys
sys.path.insert(0, sys.argv[1])
import doubled
print(doubled.double(21))
"""


def ran(code: str, *flags: str, **environment: str) -> str:
    """Run a program in a process of its own, and return what it prints."""
    return subprocess.run(
        [sys.executable, *flags, "-c", code, environment.pop("folder", "")],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout


def test_what_was_compiled_is_compiled_anew_where_its_file_is_cut_short(tmp_path: Path):
    """A worker that cannot start stops everything; a cache is never worth that."""
    (tmp_path / "doubled.py").write_text(
        "from numba import int64\n"
        "from blizzard.worker.ndjson.compiled.vector import compiled\n\n"
        "@compiled(int64(int64))\n"
        "def double(number):\n"
        "    return number * 2\n"
    )
    kept = tmp_path / "kept"
    given = {"folder": str(tmp_path), "NUMBA_CACHE_DIR": str(kept)}
    assert ran(COMPILE, **given) == "42\n"
    files = [file for file in kept.rglob("*") if file.is_file()]
    assert len(files) == 2
    for file, left in zip(files, (0.5, 0), strict=True):
        whole = file.read_bytes()
        file.write_bytes(whole[: int(len(whole) * left)])
        assert ran(COMPILE, **given) == "42\n"


def test_what_was_compiled_is_compiled_anew_where_a_part_of_it_has_changed(tmp_path: Path):
    """Numba itself looks at the file of the function alone."""
    part = "from blizzard.worker.ndjson.compiled.vector import part\n\n@part\ndef some(number):\n"
    (tmp_path / "doubled.py").write_text(
        "from numba import int64\n"
        "from blizzard.worker.ndjson.compiled.vector import compiled\n"
        "from piece import some\n\n"
        "@compiled(int64(int64))\n"
        "def double(number):\n"
        "    return some(number)\n"
    )
    given = {"folder": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    for factor in (2, 3):
        (tmp_path / "piece.py").write_text(f"{part}    return number * {factor}\n")
        assert ran(COMPILE, "-B", **given) == f"{21 * factor}\n"


def test_a_user_who_wants_nothing_compiled_means_code_of_his_own():
    code = (
        "from blizzard.worker.ndjson.compiled.fast import FastPath\n"
        "from blizzard.worker.ndjson.lines import Block\n"
        "from lakebed.columns.schema import Field, Schema\n"
        "from lakebed.types import FieldType\n"
        "schema = Schema((Field(name='v', type=FieldType.INT64),))\n"
        "block = Block(text=b'{\"v\":7}', first_line=1, lines=1)\n"
        "print(FastPath(schema, max_line_bytes=99).read(block).batch.to_pylist())\n"
    )
    assert ran(code, NUMBA_DISABLE_JIT="1") == "[{'v': 7}]\n"


@pytest.mark.parametrize("number", ["1e99999999999999999999", "-1e-99999999999999999999"])
def test_an_exponent_that_no_decimal_has_is_a_bad_value_of_its_line(number: str):
    schema = Schema((Field(name="v", type=FieldType.DECIMAL, precision=9, scale=2),))
    line = f'{{"v":{number}}}'.encode()
    assert read(schema, line) is None
    with pytest.raises(BadLine) as raised:
        ExactPath(schema, max_line_bytes=LIMIT).read(block(line))
    assert raised.value.code == "out_of_range"
