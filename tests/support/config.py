"""Configuration documents of either program, and the settings or the faults that they give."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakebed.errors import ConfigInvalid

Load = Callable[..., Any]


def set_key(document: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Set one key of a document, such as `source.path`, and return the document."""
    place = document
    *above, last = key.split(".")
    for part in above:
        place = place.setdefault(part, {})
    place[last] = value
    return document


def settings_from(
    load: Load, folder: Path, document: Any, environment: dict[str, str] | None = None
) -> Any:
    """Load a document with the loader of a program."""
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return load([file], [], environment or {})


def faults_from(load: Load, folder: Path, document: Any) -> list[str]:
    """Return what is wrong with a document, each fault without the file that it is in."""
    with pytest.raises(ConfigInvalid) as invalid:
        settings_from(load, folder, document)
    return [fault.partition("  (")[0] for fault in invalid.value.faults]
