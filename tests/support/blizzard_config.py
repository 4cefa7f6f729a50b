"""Configuration documents of blizzard, and the settings or the faults that they give."""

from functools import partial
from typing import Any

from blizzard.config.load import load
from tests.support.config import faults_from, set_key, settings_from

settings_of = partial(settings_from, load)
faults_of = partial(faults_from, load)


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


def noticed(queue: Any, path: str, **more: Any) -> dict[str, Any]:
    """Build a document whose source has a queue, with options of its `own`."""
    own = more.pop("own", {})
    notifications = {"queue": queue, **({"storage_options": own} if own else {})}
    return minimal(source__path=path, source__notifications=notifications, **more)


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
    return set_key(document, key, value)
