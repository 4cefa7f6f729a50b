"""Uploads in parts, cut at each of their requests, before and after it took effect.

On S3 and Google an upload is begun, gets its parts and is completed; on Azure, blocks are put and
then listed. Nobody sees a file before it is complete, and a batch that could not complete one
writes another.
"""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lakebed.storage.store import Unseen
from lakebed.types import Handoff
from tests.support.faulty import Drop, Fault, LoseAnswer, Proxy, Request
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant
from tests.support.servers_steady import Steady

pytestmark = pytest.mark.stores

MB = 1 << 20
SIZE = 5 * MB + MB // 4
"""A whole part, and a bit of another."""
TRIES = 5
STEPS = {"s3": ("begin", "part", "complete"), "gs": ("begin", "part", "complete")}
STEPS_ON_AZURE = ("part", "complete")


def in_parts(remote: Contestant, proxy: Proxy, folder: Path) -> tuple[Lake, Steady]:
    """Start both programs with a sink that uploads whatever has more than one part in parts."""
    sink = {"part_size_mb": 5, "min_multipart_size_mb": 1}
    lake = Lake(remote, folder, Handoff.JOURNAL, address=proxy.address, sink=sink)
    return lake, Steady(lake)


def first(
    times: int, fault: Fault, *kinds: str, met: list[Request]
) -> Callable[[Request], Fault | None]:
    """Let the first requests of some kinds go wrong."""
    lock = threading.Lock()

    def rule(request: Request) -> Fault | None:
        with lock:
            if request.kind not in kinds or len(met) >= times:
                return None
            met.append(request)
            return fault

    return rule


def test_every_row_is_in_the_table_once_whichever_step_of_an_upload_is_cut(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W01, L24: cut once, so that the client goes on, and until the program has to."""
    lake, steady = in_parts(remote, proxy, tmp_path)
    for kind in STEPS.get(remote.scheme, STEPS_ON_AZURE):
        for times, fault in ((TRIES, Drop()), (1, LoseAnswer(None)), (TRIES, LoseAnswer(None))):
            met: list[Request] = []
            proxy.rule = first(times, fault, kind, met=met)
            lake.land_large(f"date=2024-01-01/{len(lake.landed)}.ndjson", SIZE)
            steady.settle()
            proxy.rule = lambda _request: None
            steady.settle()
            assert len(met) == times, (kind, fault)
            assert lake.rows() == len(lake.landed), (kind, times, fault)
    lake.balances()


def test_an_upload_that_cannot_even_be_aborted_is_left_to_gc(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W46: the parts stay in the bucket, under no name that anybody reads."""
    lake, steady = in_parts(remote, proxy, tmp_path)
    met: list[Request] = []
    proxy.rule = first(4 * TRIES, Drop(), "part", "abort", met=met)
    lake.land_large("date=2024-01-01/a.ndjson", SIZE)
    steady.settle()
    proxy.rule = lambda _request: None
    steady.settle()
    assert {"part"} <= {request.kind for request in met}
    lake.balances()
    if remote.scheme == "s3":
        left = lake.store("table").open_uploads()
        assert not isinstance(left, Unseen)
        assert left
