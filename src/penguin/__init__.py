"""Parquet in, Delta commits out. No Spark, no JVM."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakebed.errors import ConfigInvalid
    from lakebed.polling import Stop
    from penguin.service import CommitFailed, CommitResult, commit

    __version__: str

__all__ = ["CommitFailed", "CommitResult", "ConfigInvalid", "Stop", "__version__", "commit"]

_HOMES = {
    "CommitFailed": "penguin.service",
    "CommitResult": "penguin.service",
    "commit": "penguin.service",
    "ConfigInvalid": "lakebed.errors",
    "Stop": "lakebed.polling",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module has attributes of any type
    # Every command imports this package, so names for Python callers alone are loaded on demand.
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415

        return version("blizzard-penguin")
    if name in _HOMES:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
