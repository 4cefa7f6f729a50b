"""The JSON Schema of configurations, for editors. It is made with `make config-schema`."""

from importlib.resources import files

FILE = "configuration.schema.json"


def schema_text() -> str:
    """Return the JSON Schema by which an editor completes and checks a configuration."""
    return (files(__package__) / FILE).read_text(encoding="utf-8")
