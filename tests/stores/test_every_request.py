"""Connections that are cut at every kind of request, before and after it took effect.

A kind is a method and what it is about: an entry of the journal, a data file, a version of the
Delta log. A write is cut as often as the client sends it, so that the program itself has to go on;
a read is cut at first.
"""

import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pytest

from lakebed.types import Handoff
from tests.support.faulty import Cut, Drop, Fault, LoseAnswer, Proxy, Refuse, Request
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant
from tests.support.servers_steady import Steady

pytestmark = pytest.mark.stores

TRIES = 5
READS = ("get", "head", "list")
BEFORE: tuple[Fault, ...] = (Drop(),) * TRIES
AFTER: tuple[Fault, ...] = (LoseAnswer(None),) * TRIES
READ: tuple[Fault, ...] = (Drop(), Cut(after=10))
THROTTLED: tuple[Fault, ...] = (Refuse(503), Refuse(429), Refuse(503))
ABOUT = (
    (r"/in/", "source"),
    (r"/journal/\d", "entry"),
    (r"/outbox/", "outbox"),
    (r"/_delta_log/\d", "version"),
    (r"/_delta_log", "log"),
    (r"/pending/", "meta"),
    (r"\.parquet", "data"),
)


def kind_of(request: Request) -> tuple[str, str]:
    """Return what a request does, and to what."""
    where = " ".join([unquote(request.path), *request.query.get("prefix", [])])
    method = "list" if "list" in request.query.get("comp", []) else request.kind
    return method, next((what for sign, what in ABOUT if re.search(sign, where)), "other")


def is_kind(kind: tuple[str, str], request: Request) -> bool:
    return kind_of(request) == kind


def one_after_the_other(
    faults: tuple[Fault, ...], fits: Callable[[Request], bool], met: list[Request]
) -> Callable[[Request], Fault | None]:
    """Let the first requests that fit go wrong, each in its way."""
    lock = threading.Lock()

    def rule(request: Request) -> Fault | None:
        with lock:
            if not fits(request) or len(met) >= len(faults):
                return None
            met.append(request)
            return faults[len(met) - 1]

    return rule


def kinds_of_a_batch(steady: Steady, proxy: Proxy) -> list[tuple[str, str]]:
    """Run a batch and its commit, and return the kinds of its requests."""
    steady.lake.land("date=2024-01-01/0.ndjson")
    steady.settle()
    proxy.record.clear()
    steady.lake.land("date=2024-01-01/1.ndjson")
    steady.settle()
    return sorted({kind_of(request) for request in proxy.record})


def test_every_row_is_in_the_table_once_whichever_request_is_cut(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W01, L24, L10, L14: the oracle is asked after each. This hand-off has every kind."""
    lake = Lake(remote, tmp_path, Handoff.STAGING, address=proxy.address)
    steady = Steady(lake)
    kinds = kinds_of_a_batch(steady, proxy)
    assert {("put", "entry"), ("put", "version"), ("list", "source")} <= set(kinds)
    for number, kind in enumerate(kinds):
        for faults in (READ,) if kind[0] in READS else (BEFORE, AFTER):
            met: list[Request] = []
            proxy.rule = one_after_the_other(faults, partial(is_kind, kind), met)
            lake.land(f"date=2024-01-0{1 + number % 3}/{len(lake.landed)}.ndjson")
            steady.settle()
            proxy.rule = lambda _request: None
            steady.settle()
            assert met, kind
            assert lake.rows() == len(lake.landed), (kind, faults[0])
    lake.balances()


def test_a_store_that_throttles_every_kind_of_request_slows_down_and_fails_nothing(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W01: 503 and 429 are answers to wait for; no step fails, and no file."""
    lake = Lake(remote, tmp_path, Handoff.STAGING, address=proxy.address)
    steady = Steady(lake)
    kinds = kinds_of_a_batch(steady, proxy)
    met = {kind: list[Request]() for kind in kinds}
    rules = [one_after_the_other(THROTTLED, partial(is_kind, kind), met[kind]) for kind in kinds]
    proxy.rule = lambda request: next((f for f in (r(request) for r in rules) if f), None)
    lake.land("date=2024-01-02/a.ndjson")
    steady.settle()
    assert steady.failures == []
    assert all(len(each) == len(THROTTLED) for each in met.values())
    lake.balances()
