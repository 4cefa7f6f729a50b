"""The live page of a program: a package above both of them, which is loaded by its name.

Neither program depends on it. It listens from the start of a run, and does nothing else until
somebody looks.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from lakebed.telemetry.events import Emit, Event
from lakebed.telemetry.health import Part
from lakebed.telemetry.http import Answer, Request


class LivePage(Protocol):
    """What is served beside metrics and health."""

    def emit(self, event: Event) -> None:
        """Take in what happens."""

    def log_to(self, log: Emit) -> None:
        """Tell faults of the page there."""

    def __call__(self, request: Request, /) -> Answer | None:
        """Answer a request; None where there is nothing."""

    def close(self) -> None:
        """End what is still being sent."""


def live_page(
    program: Literal["blizzard", "penguin"],
    settings: Any,  # noqa: ANN401 - those of either program
    files: Sequence[Path] | None,
    folders: Sequence[Path] | None,
    parts: Sequence[Part],
) -> LivePage | None:
    """Return the live page of a run; None where it is not to be served."""
    if settings.metrics_address is None or not settings.metrics_page:
        return None
    page: LivePage = import_module("liveview.site").LiveSite(
        program,
        settings,
        files=files or (),
        folders=folders or (),
        environment=os.environ,
        parts=parts,
    )
    return page
