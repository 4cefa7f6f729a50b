"""The JSON Schema of the configuration, for editors: from the models, explained as the page does.

Closed sets are empty in the file: `schema_text` fills them in from the code.

Every scalar of a configuration is read as text and may have variables in it, so wherever the
models want a number, a flag or a word of a closed set, a text with `${VAR}` is as good.
"""

import json
import re
from pathlib import Path
from typing import Any

from lakebed.config import models
from lakebed.config.loader import FILE as NAME
from lakebed.config.models import Telemetry
from lakebed.config.schema import DeclaredField, DeclaredItems, DeclaredSchema
from lakebed.config.section import Section

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "configuration.md"
FILE = ROOT / "src" / "lakebed" / "config" / NAME

SECTIONS: dict[str, type[Section]] = {
    "source": models.Source,
    "source.skip_records": models.SkipRecords,
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
    "tables": models.TableSection,
    "metrics": models.Metrics,
    "telemetry": Telemetry,
    "storage": models.StorageProfile,
}
"""The sections as the page heads them."""

VARIABLE = {"type": "string", "pattern": r"\$\{"}
TYPE = {
    "anyOf": [{"enum": []}, {"type": "string", "pattern": r"^(decimal|dec|numeric) *\(|<|\$\{"}]
}
WRITTEN_IN_SHORT = {"DeclaredItems"}
"""Sections for which a plain type may stand."""
ONE_OR_MANY = {"format", "from"}

Node = dict[str, Any]


def rows(section: str) -> dict[str, tuple[str, str, str]]:
    """Return the table of a section by its keys: type, default, meaning."""
    chapter = PAGE.read_text().partition(f"\n### `{section}`\n")[2]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in re.split(r"^##+ ", chapter, flags=re.MULTILINE)[0].splitlines()
        if line.startswith("| `")
    ]
    return {key.strip("`"): (kind, default, meaning) for key, kind, default, meaning in cells}


def config_schema() -> str:
    """Write the schema."""
    made = models.Document.model_json_schema()
    definitions: Node = made.pop("$defs")
    definitions["TypeName"] = TYPE
    explained = {kind.__name__: rows(section) for section, kind in SECTIONS.items()}
    explained[DeclaredItems.__name__] = explained[DeclaredField.__name__]
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of blizzard and penguin",
        **_section(made, {}),
        "$defs": {
            name: _definition(name, each, explained.get(name, {}))
            for name, each in sorted(definitions.items())
            if name != "FieldType"
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _definition(name: str, node: Node, meanings: dict[str, tuple[str, str, str]]) -> Node:
    if "enum" in node:
        return {"anyOf": [{"enum": []}, VARIABLE]}
    if "properties" not in node:
        return node
    section = _section(node, meanings)
    return (
        {"anyOf": [{"$ref": "#/$defs/TypeName"}, section]} if name in WRITTEN_IN_SHORT else section
    )


def _section(node: Node, meanings: dict[str, tuple[str, str, str]]) -> Node:
    required = node.get("required", [])
    properties = {
        key: _described(_value(key, each, optional=key not in required), meanings.get(key))
        for key, each in node["properties"].items()
    }
    found: Node = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**found, "required": required} if required else found


def _value(key: str, node: Node, *, optional: bool) -> Node:
    """Return what may stand under a key; nothing at all counts as not given."""
    ways = [_plain(each) for each in node.get("anyOf", [node]) if each.get("type") != "null"]
    if key in ONE_OR_MANY:
        ways.append({"type": "string"})
    texts = any(way.get("type") in ("integer", "number", "boolean") for way in ways)
    ways += [VARIABLE] if texts else []
    ways += [{"type": "null"}] if optional else []
    return ways[0] if len(ways) == 1 else {"anyOf": ways}


def _plain(node: Node) -> Node:
    """Return a value without what only says again what its key does."""
    kept = {
        key: each
        for key, each in node.items()
        if key not in ("title", "description", "default", "format", "writeOnly")
    }
    if "ge" in kept:
        kept["minimum"] = kept.pop("ge")
    if kept.get("type") == "array" and "items" in kept:
        kept["items"] = _plain(kept["items"])
    values = kept.get("additionalProperties")
    if isinstance(values, dict):
        # Options and properties are texts, whatever YAML takes them for.
        scalar = {"type": ["string", "number", "boolean"]}
        kept["additionalProperties"] = scalar if values.get("type") == "string" else values
    return kept


def _described(node: Node, meaning: tuple[str, str, str] | None) -> Node:
    if meaning is None:
        return node
    _type, default, text = meaning
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    stated = "Required." if default == "required" else f"Default: {default}."
    return {"description": f"{text[0].upper()}{text[1:]}. {stated}", **node}


if __name__ == "__main__":
    FILE.write_text(config_schema())
