"""The page on configuration and its JSON Schema say what the programs do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

import blizzard.config.load
import penguin.config.load
from lakebed import types
from lakebed.config.loader import schema_text
from tests.support.config_schema import FILE, PAGE, ROOT, SECTIONS, config_schema, rows

SCHEMA = json.loads(schema_text())
EXAMPLES = {
    f"{page.name}, {number}": text
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL), 1)
}


def faults(document: Any) -> list[str]:
    return [each.message for each in Draft202012Validator(SCHEMA).iter_errors(document)]


def test_bounds_are_written_as_editors_read_them() -> None:
    assert not [word for word in ("gt", "ge", "lt", "le") if f'"{word}":' in FILE.read_text()]


def test_it_is_made_from_the_models_and_the_page_as_they_are() -> None:
    assert FILE.read_text() == config_schema(), "run make config-schema"
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_the_examples_of_the_pages_have_no_fault(text: str) -> None:
    document = yaml.safe_load(text)
    if isinstance(document, dict) and {"source", "sink", "pipelines"} & document.keys():
        assert faults(document) == []


def test_closed_sets_are_those_of_the_code() -> None:
    assert SCHEMA["$defs"]["Compression"]["anyOf"][0]["enum"] == [*types.Compression]
    assert '"enum": []' not in schema_text()
    names = SCHEMA["$defs"]["TypeName"]["anyOf"][0]["enum"]
    assert set(types.FieldType) - {"decimal"} <= set(names)


def test_every_key_is_explained() -> None:
    for section, kind in SECTIONS.items():
        node = SCHEMA["$defs"][kind.__name__]
        for key, each in node["properties"].items():
            assert each.get("description"), f"{section}.{key}"


@pytest.mark.parametrize(
    "text",
    [
        "sink: {file_sze_mb: 1}",
        "sink: {file_size_mb: large}",
        "sink: {compression: zip}",
        "schema: {fields: [{name: a}]}",
        "schema: {fields: [{name: a, type: integr}]}",
        "tables: {a: {}}",
        "metrics: {enabled: maybe}",
    ],
)
def test_what_the_programs_refuse_an_editor_marks(text: str) -> None:
    assert faults(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "sink: {file_size_mb: '${SIZE:-128}', commit: '${WHO:-inline}'}",
        "metrics: {enabled: '${METRICS}'}",
        "source: {path: /in, storage_options: {AWS_ALLOW_HTTP: true, AWS_REGION: 1}}",
        "schema: {fields: [{name: a, type: 'array<long>'}, {name: b, type: 'decimal(4,2)'}]}",
        "schema: {fields: [{name: a, type: list, items: long}]}",
        "schema: {fields: [{name: a, type: map, values: {type: string, nullable: false}}]}",
        "schema: {fields: [{name: a, type: timestamp, format: epoch_ms, from: meta.ts}]}",
        "schema: {fields: [{name: a, type: timestamp, format: [iso, epoch_s], from: [x, y]}]}",
        "source:\nsink: {path: /t, file_size_mb: }",
    ],
)
def test_what_the_programs_take_an_editor_takes(text: str) -> None:
    assert faults(yaml.safe_load(text)) == []


REQUIRED_BY_A_CHECK = {"sink.path"}


def default_of(section: str, key: str) -> str:
    field = SECTIONS[section].model_fields[SECTIONS[section].attributes()[key]]
    if field.is_required() or f"{section}.{key}" in REQUIRED_BY_A_CHECK:
        return "required"
    if field.default is None or field.default == {}:
        return "none"
    text = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    return f"`{text}`"


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_documented_with_its_default(section: str) -> None:
    documented = {key: default for key, (_, default, _) in rows(section).items()}

    assert documented == {key: default_of(section, key) for key in SECTIONS[section].attributes()}


def test_the_examples_can_be_used(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        (tmp_path / "example.yaml").write_text(example)
        for program in (blizzard.config.load, penguin.config.load):
            variables = {"LAKE_KEY": "key", "LAKE_SECRET": "secret"}
            assert program.load([tmp_path / "example.yaml"], [], variables)
