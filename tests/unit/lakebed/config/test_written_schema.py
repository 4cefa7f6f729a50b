"""Schemas that are written as DDL or in a file, and types as Spark and SQL name them."""

import json
from pathlib import Path

import pytest

from lakebed.config.schema import DeclaredField, DeclaredSchema
from lakebed.errors import ConfigInvalid
from tests.unit.lakebed.config.test_loader import faults, load

STRUCT = '{"type": "struct", "fields": '
PLACES = "source: {path: /in}\nsink: {path: /table}\n"


@pytest.mark.parametrize(
    ("ddl", "told"),
    [
        ("`a b` INT", "a b: Delta column names cannot have spaces"),
        ("u STRUCT<x: INT, `a b`: INT>", "u.a b: Delta column names cannot have spaces"),
        ("l ARRAY<STRUCT<`a b`: INT>>", "l.a b: Delta column names cannot have spaces"),
        ("a INT, A INT", "a and A"),
        ("d DECIMAL(99)", "d: a decimal has 1 to 38 digits"),
    ],
)
def test_faults_of_fields_stand_under_the_key_that_was_written(
    folder: Path, ddl: str, told: str
) -> None:
    (fault,) = faults(folder, f'{PLACES}schema: {{ddl: "{ddl}"}}\n')
    assert fault.startswith(f"schema.ddl: {told}"), fault
    (folder / "schema.txt").write_text(ddl)
    (fault,) = faults(folder, f"{PLACES}schema: {{file: schema.txt}}\n")
    assert fault.startswith(f"schema.file: {told}"), fault


@pytest.mark.parametrize("key", ["ddl", "file"])
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("[id STRING NOT NULL, v STRING]", "must be text, not a list"),
        ("[]", "must be text, not a list"),
        ("{id: BIGINT}", "must be text, not a section"),
        ("''", "must not be empty"),
    ],
)
def test_columns_that_are_no_text_are_refused(
    folder: Path, key: str, value: str, told: str
) -> None:
    found = faults(folder, f"{PLACES}schema: {{{key}: {value}}}\n")
    assert found == [f"schema.{key}: {told}  (a.yaml:3)"]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("id INT,\n\nd DECIMAL(40,2)", "d: a decimal has"),
        ("id INT,\nu STRUCT<\n  x: INT,\n  `a b`: INT>", "u.a b: Delta column names"),
        ("id INT,\nat tim,\nc INT", "at: the type tim is not known"),
        ("id INT,\nm MAP<INT,\nSTRING>", "m: the keys of a map are strings"),
        ("id INT\n\nc INT", "expected a comma or the end at 'c INT'"),
        ("id INT,\nc\n\n", "expected a type at its end"),
        ('{"type": "struct",\n"fields": [}', "is not JSON: Expecting value at line 2 column 12"),
        (
            f'{STRUCT}[\n{{"name": "a", "type": {STRUCT}[\n{{"name": "b", "type": "tim"}}]}}}}]}}',
            "b: the type tim is not known",
        ),
        (
            '{"type": "struct", "fields": [\n{"name": "d", "type": "decimal(40,2)"}]}',
            "d: a decimal has",
        ),
    ],
)
def test_a_fault_names_the_text_of_the_columns_wherever_it_is_written(
    folder: Path, schema: str, told: str
) -> None:
    (folder / "s.txt").write_text(schema)
    (fault,) = faults(folder, f"{PLACES}schema: {{file: s.txt}}\n")
    assert fault.startswith(f"schema.file: {told}"), fault
    assert fault.endswith("  (s.txt, named in a.yaml:3)"), fault

    (fault,) = faults(folder, f"{PLACES}schema:\n  ddl: {json.dumps(schema)}\n")
    assert fault.startswith(f"schema.ddl: {told}"), fault
    assert fault.endswith("  (a.yaml:4)"), fault


def test_a_file_is_named_as_it_is_written(folder: Path) -> None:
    (folder / "s.txt").write_text("id strin")
    (fault,) = faults(
        folder, f"{PLACES}schema: {{file: '${{NAME}}.txt'}}\n", environment={"NAME": "s"}
    )
    assert fault.endswith("did you mean string?  (${NAME}.txt, named in a.yaml:3)"), fault
    (fault,) = faults(
        folder, f"{PLACES}schema: {{file: '${{NAME}}.txt'}}\n", environment={"NAME": "canary"}
    )
    assert fault == "schema.file: file cannot be read, with its variables  (a.yaml:3)"


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ('{"type": "struct"}', "declares no column"),
        ('{"type": "struct", "fields": []}', "declares no column"),
        ('{"type": "struct", "fields": null}', "has fields that are not a list"),
        (" \n", "declares no column"),
    ],
)
def test_a_schema_without_columns_is_refused(folder: Path, schema: str, told: str) -> None:
    (folder / "s.json").write_text(schema)
    found = faults(folder, f"{PLACES}schema: {{file: s.json}}\n")
    assert found == [f"schema.file: {told}  (s.json, named in a.yaml:3)"]


_DEEP = 2000


@pytest.mark.parametrize(
    "schema",
    [
        "a " + "ARRAY<" * _DEEP + "INT" + ">" * _DEEP,
        "a " + "STRUCT<x: " * _DEEP + "INT" + ">" * _DEEP,
        "a " + "MAP<STRING, " * 31 + "INT" + ">" * 31,
        '{"type": "struct", "fields": [{"name": "a", "type": '
        + '{"type": "array", "elementType": ' * _DEEP + '"long"' + "}" * (_DEEP + 2) + "]}",
        '{"type": "struct", "fields": [{"name": "a", "type": '
        + '{"type": "array", "elementType": ' * 300 + '"long"' + "}" * 301 + "]}",
    ],
)  # fmt: skip
def test_types_that_are_nested_too_deep_are_refused(folder: Path, schema: str) -> None:
    (folder / "schema").write_text(schema)
    with pytest.raises(ConfigInvalid, match="is nested deeper than 30 levels"):
        load(folder, "schema: {file: schema}")


def declared(folder: Path, field: str) -> DeclaredField:
    found: DeclaredSchema = load(folder, f"{PLACES}schema: {{fields: [{field}]}}\n").schema_
    return found.fields_[0]


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
def test_a_name_of_spark_is_the_type_that_it_means(folder: Path, short: str, long: str) -> None:
    assert declared(folder, f'{{name: a, type: "{short}"}}') == declared(
        folder, f'{{name: a, type: "{long}"}}'
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
    folder: Path, short: str, long: str
) -> None:
    found = declared(folder, f'{{name: a, type: "{short}", nullable: false}}')
    assert found == declared(folder, f"{{name: a, {long}, nullable: false}}")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("integr", ".type: integr is not a type; did you mean integer?"),
        ("BIGNT", ".type: BIGNT is not a type; did you mean bigint?"),
        ("array<bignt>", ".type: []: the type bignt is not known; did you mean bigint?"),
        ("ARRAY<BIGNT>", ".type: []: the type BIGNT is not known; did you mean bigint?"),
        ("wibble", ".type: wibble is not a type; known types are string, int8, "),
        ("array<strin>", ".type: []: the type strin is not known; did you mean string?"),
        ("array<string", ".type: expected > at its end"),
        ("array<string> x", ".type: expected the end at 'x'"),
        ("map<int, string>", ".type: the keys of a map are strings in JSON; write map<string, …>"),
        ("decimal", ".type: a decimal needs its digits, as in decimal(18,2)"),
        ("array<string>, items: string", ": items is in the type already, which is array<string>"),
    ],
)
def test_what_is_no_type_is_told_with_what_is_meant(folder: Path, written: str, told: str) -> None:
    kind, _, rest = written.partition(", items")
    with pytest.raises(ConfigInvalid) as invalid:
        declared(folder, f'{{name: a, type: "{kind}"{", items" + rest if rest else ""}}}')
    (fault,) = invalid.value.faults
    assert fault.startswith(f"schema.fields[0]{told}"), fault
