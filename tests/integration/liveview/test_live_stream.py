"""The stream of the live page: once, whenever something changes, and not for ever."""

import json
import urllib.error
import urllib.request
from contextlib import closing

import pytest

from lakebed.telemetry.events import StepFailed
from liveview.api import Frame, Streams
from tests.support.live_lake import LiveLake


def frames(answer):
    """Yield the overviews that a stream sends."""
    for line in answer:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def test_the_overview_comes_at_once_and_when_it_changes(tmp_path):
    lake = LiveLake(tmp_path)
    with lake.served() as (pages, _site, emit):
        request = urllib.request.Request(f"{pages.url}/api/v1/live")
        with urllib.request.urlopen(request, timeout=300) as answer:
            assert answer.headers["Content-Type"] == "text/event-stream"
            assert answer.headers["Cache-Control"] == "no-store"
            seen = frames(answer)
            assert {one["name"] for one in next(seen)["pipelines"]} == {"orders", "clicks"}
            emit(StepFailed(who="orders", code="store_full", error="no space", next_try_secs=9.0))
            changed = next(one for one in seen if one["pipelines"][0]["problems"])
            assert changed["pipelines"][0]["problems"][0]["code"] == "store_full"


def test_no_more_than_eight_streams_are_open_and_all_end_with_the_program(tmp_path):
    lake = LiveLake(tmp_path)
    url = ""
    opened = []
    with lake.served() as (pages, _site, _emit):
        url = f"{pages.url}/api/v1/live"
        try:
            for _ in range(8):
                answer = urllib.request.urlopen(url, timeout=300)
                opened.append(answer)
                next(frames(answer))
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url, timeout=300)
            with refused.value:
                assert refused.value.code == 503
                assert refused.value.headers["Retry-After"] == "30"
            assert pages.get("/api/v1/live", method="HEAD")[0] == 503
            assert pages.get("/metrics")[0] == 200
        finally:
            for answer in opened[1:]:
                answer.close()
    with closing(opened[0]) as last:
        last.read()  # It ends.


class Time:
    """Seconds that pass when they are asked for."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_a_stream_beats_while_nothing_changes_and_ends_after_its_time():
    streams = Streams(
        lambda: Frame("same", b"{}"), every=0.0, beat=5.0, longest=60.0, seconds=Time()
    )
    pieces = list(streams.pieces())
    assert pieces[0] == b"event: overview\ndata: {}\n\n"
    assert set(pieces[1:]) == {b": still here\n\n"}
    assert 2 <= len(pieces) <= 15
    assert not streams.full


def test_a_client_that_goes_away_frees_its_place():
    streams = Streams(lambda: Frame("same", b"{}"), every=0.0, most=1)
    pieces = streams.pieces()
    next(pieces)
    assert streams.full
    assert list(streams.pieces()) == []
    pieces.close()
    assert not streams.full


def test_a_fault_ends_a_stream_and_is_logged():
    def broken():
        raise RuntimeError

    told: list[BaseException] = []
    streams = Streams(broken, failed=told.append)
    assert list(streams.pieces()) == []
    assert isinstance(told[0], RuntimeError)
    assert not streams.full
