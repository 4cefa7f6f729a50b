"""NDJSON in, Parquet out."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blizzard.api import PipelineResult, PipelinesFailed, run
    from lakebed.errors import ConfigInvalid
    from lakebed.polling import Stop

    __version__: str

__all__ = ["ConfigInvalid", "PipelineResult", "PipelinesFailed", "Stop", "__version__", "run"]

_HOMES = {
    "PipelineResult": "blizzard.api",
    "PipelinesFailed": "blizzard.api",
    "run": "blizzard.api",
    "ConfigInvalid": "lakebed.errors",
    "Stop": "lakebed.polling",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module has attributes of any type
    # Spark's workers import this package for every task, so load on demand what only callers need.
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("blizzard-penguin")
    if name in _HOMES:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
