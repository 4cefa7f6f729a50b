"""Every piece of configuration on the pages is one that the programs take, or is marked as wrong.

A piece is put into a small whole configuration, as a reader would. A block that begins with the
comment `# wrong` must be refused.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import blizzard.config.load
import penguin.config.load
from lakebed.errors import ConfigInvalid

ROOT = Path(__file__).parents[2]
FILES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^( *)```ya?ml[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OF_OTHERS = {"apiVersion", "livenessProbe", "readinessProbe", "rule_files", "services"}
"""The first keys of what is configuration of other programs."""

PATHS: dict[str, dict[str, Any]] = {
    "source": {"path": "s3://landing-bucket/files"},
    "sink": {"path": "s3://tables-bucket/table"},
}
TABLE = {"table_uri": "s3://tables-bucket/table"}


def blocks() -> dict[str, str]:
    return {
        f"{file.relative_to(ROOT)}, {number}": body
        for file in FILES
        for number, (_, body) in enumerate(BLOCK.findall(file.read_text()), 1)
    }


BLOCKS = blocks()


def whole(piece: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with a piece in it."""
    paths = {} if "pipelines" in piece else PATHS
    tables = piece.get("tables") or {"events": {}}
    return {
        **piece,
        **{key: {**needed, **(piece.get(key) or {})} for key, needed in paths.items()},
        "tables": {name: {**TABLE, **each} for name, each in tables.items()},
    }


def load(body: str) -> None:
    """Raise what either program has to say of a piece."""
    piece = yaml.safe_load(body)
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", body), "x" * 40)
    blizzard.config.load.load([whole(piece)], [], variables)
    penguin.config.load.load([whole(piece)], [], variables)


@pytest.mark.parametrize("body", BLOCKS.values(), ids=BLOCKS)
def test_configuration_on_a_page_can_be_used(body: str) -> None:
    piece = yaml.safe_load(body)
    if next(iter(piece)) in OF_OTHERS:
        return
    if body.startswith("# wrong"):
        with pytest.raises(ConfigInvalid):
            load(body)
    else:
        load(body)


def test_there_is_configuration_on_the_pages() -> None:
    assert len(BLOCKS) > 30


@pytest.mark.parametrize(
    "body",
    [
        "sink: {file_sze_mb: 1}",
        "tables: {a: {chekpoint_interval: 1}}",
        "metric: {enabled: true}",
        "pipelines: {a: {source: {path: /in}}}",
        "schema: {fields: [{name: a, type: integr}]}",
    ],
)
def test_a_piece_that_the_programs_refuse_is_noticed(body: str) -> None:
    with pytest.raises(ConfigInvalid):
        load(body)
