"""Types may be written as Spark and SQL name them; what is no type is told with what is meant."""

from pathlib import Path

import pytest

from lakebed.config.loader import load_document
from lakebed.config.schema import DeclaredField
from lakebed.errors import ConfigInvalid


def declared(folder: Path, field: str) -> DeclaredField:
    file = folder / "a.yaml"
    places = "source: {path: /in}\nsink: {path: /table}\n"
    file.write_text(f"{places}schema: {{fields: [{field}]}}\n")
    schema = load_document([file], [], {}, lambda _document: ()).schema_
    assert schema is not None
    return schema.fields_[0]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("long", "int64"),
        ("BIGINT", "int64"),
        ("Integer", "int32"),
        ("bool", "boolean"),
        ("double", "float64"),
        ("varchar", "string"),
        ("numeric(10, 2)", "decimal(10,2)"),
        ("timestamp_ltz", "timestamp"),
    ],
)
def test_a_name_of_spark_is_the_type_that_it_means(tmp_path: Path, short: str, long: str) -> None:
    assert declared(tmp_path, f'{{name: a, type: "{short}"}}') == declared(
        tmp_path, f'{{name: a, type: "{long}"}}'
    )


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("array<string>", "type: list, items: string"),
        ("list<json>", "type: list, items: json"),
        ("map<string, double>", "type: map, values: float64"),
        (
            "array<struct<id: long NOT NULL, tags: array<string>>>",
            (
                "type: list, items: {type: struct, fields: [{name: id, type: int64, "
                "nullable: false}, {name: tags, type: list, items: string}]}"
            ),
        ),
    ],
)
def test_a_type_with_its_parts_in_it_is_the_one_with_them_beside_it(
    tmp_path: Path, short: str, long: str
) -> None:
    found = declared(tmp_path, f'{{name: a, type: "{short}", nullable: false}}')
    assert found == declared(tmp_path, f"{{name: a, {long}, nullable: false}}")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("integer64", ".type: integer64 is not a type; did you mean int64?"),
        ("integr", ".type: integr is not a type; did you mean int32?"),
        ("str", ".type: str is not a type; did you mean string?"),
        ("number", ".type: number is not a type; did you mean float64, or decimal(p,s)"),
        ("datetime", ".type: datetime is not a type; did you mean timestamp?"),
        ("uint64", ".type: uint64 is not a type; did you mean decimal(20,0)?"),
        ("array", ".type: array is not a type; did you mean array<string>, say"),
        ("wibble", ".type: wibble is not a type; known types are string, int8, "),
        ("array<strin>", ".type: []: the type strin is not known; did you mean string?"),
        ("array<string", ".type: expected > at its end"),
        ("array<string> x", ".type: expected the end at 'x'"),
        ("map<int, string>", ".type: the keys of a map are strings in JSON; write map<string, …>"),
        ("decimal", ".type: a decimal needs its digits, as in decimal(18,2)"),
        ("array<string>, items: string", ": items is in the type already, which is array<string>"),
    ],
)
def test_what_is_no_type_is_told_with_what_is_meant(
    tmp_path: Path, written: str, told: str
) -> None:
    kind, _, rest = written.partition(", items")
    with pytest.raises(ConfigInvalid) as invalid:
        declared(tmp_path, f'{{name: a, type: "{kind}"{", items" + rest if rest else ""}}}')
    (fault,) = invalid.value.faults
    assert fault.startswith(f"schema.fields[0]{told}"), fault
