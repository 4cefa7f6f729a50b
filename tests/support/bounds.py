"""Settings under which a batch ends early, and what its journal names then."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blizzard.model.settings import PipelineSettings, RollingPolicy
from blizzard.worker import unit as worker
from blizzard.worker.ndjson import decoder, lines
from tests.support.builders import pipeline_settings

BAD = b'{"id": "no number"}\n'
FOR_EVER = 10**9


def read_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read short files one by one, and call those with more than some lines large."""
    monkeypatch.setattr(decoder, "MOST_TOGETHER", 1)
    monkeypatch.setattr(decoder, "SHORT_BYTES", 600)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 700)
    monkeypatch.setattr(worker, "DECODED_BUDGET", 2_000)


def settings_of(folder: Path, *, rollover: float = 300, **given: Any) -> PipelineSettings:
    usual = pipeline_settings(folder / "in", folder / "table", **given)
    # By itself no batch starts: nothing has come for a long time only in the far future.
    policy = RollingPolicy(rollover=rollover, inactivity=FOR_EVER)
    return replace(usual, sink=replace(usual.sink, rolling=policy))
