"""The page on configuration says of every key what the programs do with it."""

import re
from pathlib import Path

import pytest

import blizzard.config.load
import penguin.config.load
from lakebed.config import models
from lakebed.config.schema import DeclaredField, DeclaredSchema
from lakebed.config.section import Section

PAGE = (Path(__file__).parents[4] / "docs" / "configuration.md").read_text()

SECTIONS: dict[str, type[Section]] = {
    "source": models.Source,
    "source.notifications": models.Notifications,
    "sink": models.Sink,
    "sink.compact": models.Compact,
    "partition_by": models.PartitionBy,
    "partition_filter": models.PartitionFilter,
    "schema": DeclaredSchema,
    "schema.fields": DeclaredField,
    "error_handling": models.ErrorHandling,
    "global": models.Global,
    "spark": models.Spark,
    "tables": models.Table,
    "metrics": models.Metrics,
    "storage": models.StorageProfile,
}
REQUIRED_BY_A_CHECK = {"sink.path"}


def rows(section: str) -> dict[str, tuple[str, str, str]]:
    """Return the rows of a section's table: key, type, default, meaning, acted on."""
    chapter = re.split(r"^##+ ", PAGE.partition(f"\n### `{section}`\n")[2], flags=re.MULTILINE)[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in chapter.splitlines()
        if line.startswith("| `")
    ]
    return {key.strip("`"): (kind, default, acted) for key, kind, default, _, acted in cells}


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


@pytest.mark.parametrize("section", sorted(set(SECTIONS) - {"partition_by", "partition_filter"}))
def test_the_page_says_what_is_refused(section: str) -> None:
    prefix = "tables.*" if section == "tables" else section
    program = penguin.config.load if section == "tables" else blizzard.config.load

    for key, (_, _, acted) in rows(section).items():
        refused = getattr(program, "NOT_AVAILABLE", {})
        assert ("refused" in acted) == (f"{prefix}.{key}" in refused), key


def test_the_examples_can_be_used(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    programs = [
        [blizzard.config.load],
        [penguin.config.load],
        [blizzard.config.load, penguin.config.load],
        [blizzard.config.load, penguin.config.load],
    ]

    for example, users in zip(examples, programs, strict=True):
        file = tmp_path / "example.yaml"
        file.write_text(example)
        for program in users:
            assert program.load([file], [], {"LAKE_KEY": "key", "LAKE_SECRET": "secret"})
