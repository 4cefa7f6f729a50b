"""An outage of two minutes in the middle of a batch: the programs go on when it is over."""

import time
from pathlib import Path
from urllib.parse import unquote

import pytest

from lakebed.clock import Clock
from lakebed.types import Handoff
from tests.support.faulty import Drop, Fault, Proxy, Request
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant
from tests.support.servers_steady import Steady

pytestmark = pytest.mark.stores

OUTAGE_SECS = 120
STEP_SECS = 30
"""How far the clock moves with each failure: the wait that a service would take."""


def test_an_outage_of_two_minutes_in_mid_batch_costs_time_alone(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W01: it begins with the first data file that is uploaded; the clock is handed in."""
    passed = [0.0]
    began: list[float] = []

    def rule(request: Request) -> Fault | None:
        if not began and request.method == "PUT" and ".parquet" in unquote(request.path):
            began.append(passed[0])
        return Drop() if began and passed[0] < began[0] + OUTAGE_SECS else None

    def wait() -> None:
        passed[0] += STEP_SECS

    lake = Lake(remote, tmp_path, Handoff.STAGING, address=proxy.address)
    clock = Clock(seconds=lambda: time.time() + passed[0], sleep=lambda _seconds: None)
    steady = Steady(lake, clock=clock, on_failure=wait)
    proxy.rule = rule
    lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
    steady.settle()
    proxy.rule = lambda _request: None
    assert began
    assert passed[0] >= OUTAGE_SECS
    passed[0] += 24 * 3600
    steady.settle()
    lake.balances()
