"""Documents are delivered beside the work: it never waits for them, and never fails with them."""

import json
import threading
from collections.abc import Sequence

import pytest

from lakebed.telemetry.events import Event, ExportFailed, ExportResumed, Level
from lakebed.telemetry.export.courier import Courier, CourierLimits, DeliveryRefused, post
from lakebed.telemetry.export.targets import ExportTarget
from tests.support.ports import reserved_port
from tests.support.receiver import Receiver, receiving
from tests.support.waits import until

LONG = 300.0
QUICK = CourierLimits(pause_secs=0.01, tries=2, end_secs=LONG)


def encode(items: Sequence[int]) -> bytes:
    return json.dumps({"items": list(items)}).encode()


def courier_to(
    receiver: Receiver, told: list[Event], limits: CourierLimits = QUICK
) -> Courier[int]:
    target = ExportTarget(
        what="traces", url=f"{receiver.url}/here?key=hidden", headers={"x-key": "secret"}
    )
    return Courier(target, encode, told.append, limits=limits)


def test_what_is_handed_in_arrives_together_with_the_headers():
    with receiving() as receiver:
        courier = courier_to(receiver, [], CourierLimits(pause_secs=LONG, end_secs=LONG))
        for number in range(5):
            courier.put(number)
        courier.close()
    (request,) = receiver.received
    assert request.document == {"items": [0, 1, 2, 3, 4]}
    assert request.path.startswith("/here")
    assert request.headers["X-Key"] == "secret"
    assert request.headers["Content-Type"] == "application/json"


def test_whoever_hands_in_never_waits_and_what_is_too_much_is_dropped():
    """Neither the run nor its end: nothing has been delivered by then."""
    came, let_go = threading.Event(), threading.Event()
    delivered: list[bytes] = []

    def slow(_target: ExportTarget, body: bytes) -> None:
        came.set()
        assert let_go.wait(LONG)
        delivered.append(body)

    limits = CourierLimits(waiting=10, together=1, pause_secs=0.0, end_secs=0.1)
    courier = Courier(
        ExportTarget(what="traces", url="http://nowhere"), encode, print, limits=limits, send=slow
    )
    courier.put(0)
    assert came.wait(LONG)
    for number in range(1, 10_000):
        courier.put(number)
    courier.close()
    assert delivered == []
    let_go.set()
    until(lambda: len(delivered) >= 11)
    courier._thread.join(LONG)
    assert delivered == [encode([number]) for number in range(11)], "in hand, and what may wait"


def test_a_server_that_is_away_is_told_once_and_again_when_it_is_back():
    told: list[Event] = []
    with receiving(status=503) as receiver:
        courier = courier_to(receiver, told)
        for number in range(3):
            courier.put(number)
            until(lambda wanted=2 * number + 2: len(receiver.received) >= wanted)  # type: ignore[misc]
        until(lambda: told)
        receiver.status = 200
        courier.put(9)
        until(lambda: len(told) == 2)
        courier.close()
    assert told[0] == ExportFailed(what="traces", reason="HTTP 503")
    assert isinstance(told[1], ExportResumed)
    assert told[1].lost == 3
    assert told[0].level is Level.WARN


@pytest.mark.parametrize("status", [302, 400, 401])
def test_a_refusal_is_final_and_no_redirect_is_followed(status: int):
    told: list[Event] = []
    with receiving(status=status) as receiver:
        courier = courier_to(receiver, told)
        courier.put(1)
        until(lambda: told)
        courier.close()
    assert len(receiver.received) == 1
    assert told == [ExportFailed(what="traces", reason=f"HTTP {status}")]


def test_nobody_listening_is_told_without_the_address_or_a_secret():
    told: list[Event] = []
    with reserved_port() as port:
        target = ExportTarget(
            what="traces", url=f"http://127.0.0.1:{port}/?key=hidden", headers={"x-key": "secret"}
        )
        courier = Courier(target, encode, told.append, limits=QUICK)
        courier.put(1)
        until(lambda: told)
        courier.close()
    assert told == [ExportFailed(what="traces", reason="Connection refused")]


def test_a_server_that_is_slow_takes_no_longer_than_it_may():
    with (
        receiving(holds=threading.Event()) as receiver,
        pytest.raises(OSError, match="timed out"),
    ):
        post(ExportTarget(what="traces", url=receiver.url), b"{}", seconds=0.1)
    with receiving(status=500) as receiver, pytest.raises(DeliveryRefused, match="HTTP 500"):
        post(ExportTarget(what="traces", url=receiver.url), b"{}")
