"""A server that is killed in the middle of a batch, and started again: the programs go on."""

import threading
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

from lakebed.clock import Clock
from lakebed.types import Handoff
from tests.support.faulty import Request, in_front_of
from tests.support.servers import MORTAL
from tests.support.servers_lake import Lake
from tests.support.servers_reached import REACHED
from tests.support.servers_steady import Steady

pytestmark = pytest.mark.stores

DAY_SECS = 24 * 3600
PAUSE_SECS = 0.5
"""Between a step that failed and the next one, as a service waits."""


@pytest.mark.parametrize("name", MORTAL)
def test_a_server_that_is_killed_in_mid_batch_and_started_again_costs_time_alone(
    name: str, tmp_path: Path
) -> None:
    """W01: with SIGKILL, when the first data file is being uploaded; it starts again at once."""
    killing = threading.Lock()
    deaths: list[str] = []
    later = [0.0]
    with MORTAL[name]() as server, in_front_of(server.address) as proxy:
        second_life = threading.Thread(target=server.start)

        def kill(request: Request) -> None:
            with killing:
                if not deaths and request.method == "PUT" and ".parquet" in unquote(request.path):
                    server.kill()
                    deaths.append(request.path)
                    second_life.start()

        lake = Lake(REACHED[name](server.address), tmp_path, Handoff.STAGING, proxy.address)
        lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
        clock = Clock(seconds=lambda: time.time() + later[0], sleep=lambda _seconds: None)
        steady = Steady(lake, clock=clock, on_failure=lambda: time.sleep(PAUSE_SECS))
        proxy.hold = kill
        steady.settle()
        second_life.join()
        # What failed for good meanwhile is read again by then.
        later[0] = DAY_SECS
        steady.settle()
        tries = [request for request in proxy.record if request.path in deaths]
        assert len(tries) > 1, "the upload was tried again"
        lake.balances()
