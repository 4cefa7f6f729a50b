"""Completion of configured names in the shell; typer completes commands and options."""

from collections.abc import Callable
from pathlib import Path

import typer

DEFAULT = "default"
"""Name of the pipeline of a configuration in the single form."""
SINGLE_FORM = frozenset({"source", "sink"})
"""Keys at the top of such a configuration. The models define them too; importing them is slow."""


def names_in(section: str) -> Callable[[typer.Context], list[str]]:
    """Return a completer for the names in a section of the configuration: pipelines or tables."""

    def complete(ctx: typer.Context) -> list[str]:
        found: list[str] = []
        for file in _configured(ctx):
            found += _keys(Path(file), section)
        return sorted(set(found))

    return complete


def _configured(ctx: typer.Context) -> list[str]:
    """Return the configuration files named so far on the command line."""
    return [str(file) for file in ctx.params.get("files") or ()]


def _keys(file: Path, section: str) -> list[str]:
    """Return the names in a section of a file; none if it cannot be read: Tab prints no errors."""
    import yaml  # noqa: PLC0415 - only where a name is completed

    try:
        document = yaml.safe_load(file.read_bytes())
    except (OSError, ValueError, yaml.YAMLError):
        return []
    if not isinstance(document, dict):
        return []
    found = document.get(section)
    named = [str(name) for name in found] if isinstance(found, dict) else []
    is_single = section == "pipelines" and not SINGLE_FORM.isdisjoint(document)
    return [*named, DEFAULT] if is_single else named
