"""A server that is killed in the middle of a batch, and started again: the programs go on."""

import threading
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

from lakebed.types import Handoff
from tests.support.faulty import Request, in_front_of
from tests.support.servers import MORTAL
from tests.support.servers_lake import Lake
from tests.support.servers_reached import REACHED
from tests.support.servers_steady import Steady

pytestmark = pytest.mark.stores

PAUSE_SECS = 0.3
"""Between a failure and the next step."""


@pytest.mark.parametrize("name", MORTAL)
def test_a_server_that_is_killed_in_mid_batch_and_started_again_costs_time_alone(
    name: str, tmp_path: Path
) -> None:
    """W01: with SIGKILL, while the first data file is being uploaded; it starts again later."""
    killing = threading.Lock()
    deaths: list[Request] = []
    lives: list[str] = []
    with MORTAL[name]() as server, in_front_of(server.address) as proxy:

        def kill(request: Request) -> None:
            with killing:
                if not deaths and request.method == "PUT" and ".parquet" in unquote(request.path):
                    server.kill()
                    deaths.append(request)

        def start_again() -> None:
            """Begin the second life; the server needs a while, and a service would wait."""
            if not lives:
                server.start()
                lives.append(name)
            time.sleep(PAUSE_SECS)

        lake = Lake(REACHED[name](server.address), tmp_path, Handoff.STAGING, proxy.address)
        lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
        steady = Steady(lake, on_failure=start_again)
        proxy.hold = kill
        steady.settle()
        steady.close()
        assert deaths
        assert lives
        assert steady.failures
        lake.balances()
