"""The page on configuration says of every key what the programs do with it."""

import re
from pathlib import Path

import pytest

import blizzard.config.load
import penguin.config.load
from tests.support.config_schema import PAGE, SECTIONS, rows

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
    documented = {key: default for key, (_, default, _, _) in rows(section).items()}

    assert documented == {key: default_of(section, key) for key in SECTIONS[section].attributes()}


@pytest.mark.parametrize("section", sorted(set(SECTIONS) - {"partition_by", "partition_filter"}))
def test_the_page_says_what_is_refused(section: str) -> None:
    prefix = "tables.*" if section == "tables" else section
    program = penguin.config.load if section == "tables" else blizzard.config.load

    for key, (_, _, _, acted) in rows(section).items():
        refused = getattr(program, "NOT_AVAILABLE", {})
        assert ("refused" in acted) == (f"{prefix}.{key}" in refused), key


def test_the_examples_can_be_used(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
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
