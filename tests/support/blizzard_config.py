"""Configuration documents of blizzard, and the settings or the faults that they give."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from blizzard.config.load import load
from lakebed.errors import ConfigInvalid


def source(settings: Any) -> Any:
    return settings.pipelines[0].sources[0]


def sink(settings: Any) -> Any:
    return settings.pipelines[0].sink


def minimal(**changes: Any) -> dict[str, Any]:
    """Build the smallest document, changed by `section__key=value`."""
    document: dict[str, dict[str, Any]] = {
        "source": {"path": "/in"},
        "sink": {"path": "/table"},
        "schema": {"fields": [{"name": "id", "type": "string"}]},
    }
    for key, value in changes.items():
        section, _, name = key.partition("__")
        document.setdefault(section, {})[name] = value
    return document


def changed(key: str, value: Any) -> dict[str, Any]:
    """Change one key of the smallest document."""
    document = minimal()
    if key == "sink.table_uri":
        del document["sink"]["path"]
    if key == "source.sweep_horizon":
        document["sink"]["partition_by"] = {"prefix_template": "date=%Y-%m-%d/hour=%H"}
    if key.startswith("sink.partition_by."):
        document["sink"]["partition_by"] = {"prefix_template": "date=%Y-%m-%d"}
        document["schema"]["fields"].append({"name": "at", "type": "timestamp"})
    place: Any = document
    *above, last = key.split(".")
    for part in above:
        place = place.setdefault(part, {})
    place[last] = value
    return document


def settings_of(tmp_path: Path, document: Any, environment: dict[str, str] | None = None) -> Any:
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return load([file], [], environment or {})


def faults_of(tmp_path: Path, document: Any) -> list[str]:
    with pytest.raises(ConfigInvalid) as invalid:
        settings_of(tmp_path, document)
    return [fault.partition("  (")[0] for fault in invalid.value.faults]
