"""Settings under which a batch ends early, and what its journal names then."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from blizzard.model.settings import DecodeLimits, PipelineSettings, RollingPolicy, Sizing
from tests.support.builders import pipeline_settings

BAD = b'{"id": "no number"}\n'
FOR_EVER = 10**9


SMALL_PIECES = Sizing(
    decoded_budget=2_000, decoding=DecodeLimits(max_combined=1, short_bytes=600, block_bytes=700)
)
"""Short files are read one by one, and those with more than some lines are called large."""


def settings_of(folder: Path, *, rollover: float = 300, **given: Any) -> PipelineSettings:
    given = {"sizing": SMALL_PIECES} | given
    usual = pipeline_settings(folder / "in", folder / "table", **given)
    # By itself no batch starts: nothing has come for a long time only in the far future.
    policy = RollingPolicy(rollover=rollover, inactivity=FOR_EVER)
    return replace(usual, sink=replace(usual.sink, rolling=policy))
