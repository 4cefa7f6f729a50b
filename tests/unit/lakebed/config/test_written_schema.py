"""Schemas that are written as DDL or in a file: their faults stand under that key."""

from pathlib import Path

import pytest

from lakebed.config.loader import load_document
from lakebed.errors import ConfigInvalid


def faults(folder: Path, text: str) -> list[str]:
    file = folder / "a.yaml"
    file.write_text(text)
    with pytest.raises(ConfigInvalid) as invalid:
        load_document([file], [], {}, lambda _document: ())
    return invalid.value.faults


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
    tmp_path: Path, ddl: str, told: str
) -> None:
    (fault,) = faults(tmp_path, f'{PLACES}schema: {{ddl: "{ddl}"}}\n')
    assert fault.startswith(f"schema.ddl: {told}"), fault
    (tmp_path / "schema.txt").write_text(ddl)
    (fault,) = faults(tmp_path, f"{PLACES}schema: {{file: schema.txt}}\n")
    assert fault.startswith(f"schema.file: {told}"), fault


def test_faults_of_fields_of_a_named_pipeline_stand_under_its_key(tmp_path: Path) -> None:
    (fault,) = faults(
        tmp_path,
        "pipelines:\n  one:\n    source: {path: /in}\n    sink: {path: /table}\n"
        '    schema: {ddl: "`a b` INT"}\n',
    )
    assert fault.startswith("pipelines.one.schema.ddl: a b: Delta column names"), fault
