"""Connections that are cut before and after a request took effect, and stores that slow down."""

import contextlib
import os
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest

from lakebed.errors import LakeError, StoreUnavailable
from lakebed.storage.store import AlreadyThere, Created, Store
from lakebed.types import Handoff
from tests.support.dying import Fate
from tests.support.faulty import Cut, Drop, Fault, LoseAnswer, Proxy, Refuse, Request, times
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant

pytestmark = pytest.mark.stores

BEFORE = (Drop(), Refuse(503), Refuse(429))
AFTER = (LoseAnswer(None), LoseAnswer(500))
MB = 1 << 20


def is_write(request: Request) -> bool:
    return request.method == "PUT"


def is_read(request: Request) -> bool:
    return request.method == "GET"


@pytest.mark.parametrize("fault", BEFORE, ids=str)
def test_a_create_that_never_arrived_is_made_once(
    troubled: Store, proxy: Proxy, fault: Fault
) -> None:
    """W01."""
    proxy.rule = times(2, fault, is_write)
    assert troubled.create("a", b"1") == Created()
    assert troubled.create("a", b"2") == AlreadyThere()
    assert troubled.get("a") == b"1"


@pytest.mark.parametrize("fault", AFTER, ids=str)
def test_a_create_whose_answer_is_lost_is_there_with_its_bytes(
    troubled: Store, proxy: Proxy, fault: Fault
) -> None:
    """L24: whoever asks again is told that it is there, and knows it by its bytes."""
    proxy.rule = times(1, fault, is_write)
    with contextlib.suppress(StoreUnavailable):
        assert troubled.create("a", b"1") == AlreadyThere()
    assert troubled.get("a") == b"1"
    assert troubled.create("a", b"2") == AlreadyThere()


@pytest.mark.parametrize("fault", [*BEFORE, *AFTER], ids=str)
def test_moves_and_deletions_end_as_they_were_meant(
    troubled: Store, proxy: Proxy, fault: Fault
) -> None:
    """D02."""
    troubled.create("outbox/a", b"12")
    proxy.rule = times(1, fault, lambda r: r.method in ("PUT", "DELETE"))
    with contextlib.suppress(StoreUnavailable):
        troubled.move("outbox/a", "a", size=2)
    troubled.move("outbox/a", "a", size=2)
    assert [facts.path for facts in troubled.objects()] == ["a"]
    proxy.rule = times(1, fault, lambda r: r.method == "DELETE")
    troubled.delete("a")
    assert list(troubled.objects()) == []


def test_a_body_that_breaks_off_is_read_to_its_end_and_never_short(
    troubled: Store, proxy: Proxy
) -> None:
    """L14."""
    body = os.urandom(3 * MB)
    troubled.create("a", body)
    facts = troubled.head("a")
    assert facts is not None
    proxy.rule = times(1, Cut(after=MB + 7), is_read)
    assert b"".join(troubled.stream("a", size=len(body), etag=facts.etag)) == body
    proxy.rule = lambda request: Cut(after=1000) if is_read(request) else None
    with pytest.raises(LakeError):
        b"".join(troubled.stream("a", size=len(body), etag=facts.etag))


def test_a_listing_that_breaks_off_is_an_error_and_never_short(
    troubled: Store, proxy: Proxy
) -> None:
    """L10."""
    for name in ("a", "b", "c"):
        troubled.create(name, b"1")
    faults: tuple[Fault, ...] = (Refuse(500), Drop(), Cut(after=200))
    for fault in faults:
        proxy.rule = times(100, fault, is_read)
        with pytest.raises(LakeError):
            list(troubled.objects())


def every(number: int, faults: Sequence[Fault]) -> Callable[[Request], Fault | None]:
    """Let one thing after the other go wrong, with every so manieth request."""
    seen = count(1)

    def rule(_request: Request) -> Fault | None:
        at = next(seen)
        return faults[at // number % len(faults)] if at % number == 0 else None

    return rule


@pytest.mark.parametrize("handoff", Handoff)
def test_the_programs_go_on_through_a_bad_connection(
    remote: Contestant, proxy: Proxy, tmp_path: Path, handoff: Handoff
) -> None:
    """W01, L24: throttled, cut before and cut after; every row is in the table once."""
    lake = Lake(remote, tmp_path, handoff, address=proxy.address)
    proxy.rule = every(13, (Refuse(503), Drop(), LoseAnswer(None)))
    lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
    for _attempt in range(3):
        with contextlib.suppress(StoreUnavailable):
            lake.life(Fate.none())
            break
    proxy.rule = lambda _request: None
    lake.life(Fate.none())
    lake.balances()
