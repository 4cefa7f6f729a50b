"""Files read ahead, by so many threads, through queues that have an end."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.source.file import SourceFile
from blizzard.worker.download import (
    BUNDLE_BYTES,
    BUNDLES_PER_THREAD,
    DECOMPRESSED_AHEAD,
    MOST_IN_A_BUNDLE,
    PIECES_OF_A_FILE,
    Downloads,
    bundles,
    in_advance,
)
from lakebed.errors import StoreDenied, StoreUnavailable
from tests.support.builders import source_file

LONG = 120.0
"""Seconds after which a test that hangs is over; a test that works never waits so long."""


def files(number: int) -> list[SourceFile]:
    return [source_file(f"{index:03}.ndjson") for index in range(number)]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("download")]


def test_an_error_is_raised_in_its_place_and_the_other_files_go_on():
    """L05."""
    listed = files(3)

    def open_file(file: SourceFile, _place: int) -> Iterator[bytes]:
        yield b"first"
        if file is listed[1]:
            raise StoreDenied("access was refused")
        yield b"second"

    with Downloads(listed, open_file, ahead={"default": 3}) as downloads:
        assert list(downloads.pieces(listed[0])) == [b"first", b"second"]
        broken = downloads.pieces(listed[1])
        assert next(broken) == b"first"
        with pytest.raises(StoreDenied, match="refused"):
            next(broken)
        assert list(downloads.pieces(listed[2])) == [b"first", b"second"]


@pytest.mark.parametrize("ahead", [1, 3, 100])
def test_no_more_files_are_open_at_once_than_allowed(ahead):
    listed = files(30)
    lock = threading.Lock()
    now: Counter[str] = Counter()
    most = 0

    def open_file(_file: SourceFile, _place: int) -> Iterator[bytes]:
        nonlocal most
        with lock:
            now["open"] += 1
            most = max(most, now["open"])
        try:
            yield from [b"x"] * 5
        finally:
            with lock:
                now["open"] -= 1

    with Downloads(listed, open_file, ahead={"default": ahead}) as downloads:
        for file in listed:
            list(downloads.pieces(file))
    assert 1 <= most <= ahead


@pytest.mark.parametrize("limits", [{"a": 1, "b": 5}, {"a": 5, "b": 1}, {"a": 2, "b": 2}])
def test_each_source_has_as_many_downloads_at_a_time_as_it_may(limits):
    """HOLES W32: a source that bears one reader is not read by as many as another bears."""
    listed = [
        source_file(f"{number}.ndjson", source=name, size=BUNDLE_BYTES)
        for name in limits
        for number in range(8)
    ]
    seen: list[dict[str, int]] = []
    with Downloads(listed, lambda _file, _place: iter([b"x"]), ahead=limits) as downloads:
        for file in listed:
            seen.append(+downloads._running)
            assert list(downloads.pieces(file)) == [b"x"]
    assert {name: max(each.get(name, 0) for each in seen) for name in limits} == limits
    assert max(sum(each.values()) for each in seen) == max(limits.values())


def test_a_reader_that_stalls_stops_the_download_of_a_large_file():
    """W18: memory is bounded by settings, never by the size of a file."""
    (file,) = files(1)
    made = 0
    at_the_limit, beyond = threading.Event(), threading.Event()

    def open_file(_file: SourceFile, _place: int) -> Iterator[bytes]:
        nonlocal made
        while True:
            made += 1
            if made == PIECES_OF_A_FILE + 1:
                at_the_limit.set()
            if made > PIECES_OF_A_FILE + 1:
                beyond.set()
            yield b"x"

    with Downloads([file], open_file, ahead={"default": 1}):
        assert at_the_limit.wait(LONG)
        # The queue is full and one piece is in the thread's hand; another would come at once.
        assert not beyond.wait(0.2)
    assert threads() == []


def test_leaving_a_file_early_lets_its_download_go():
    """D04: what is left of a bad file does not keep the next one waiting."""
    listed = files(2)
    let_go = threading.Event()

    def open_file(file: SourceFile, _place: int) -> Iterator[bytes]:
        if file is listed[1]:
            yield b"next"
            return
        try:
            while True:
                yield b"endless"
        finally:
            let_go.set()

    with Downloads(listed, open_file, ahead={"default": 1}) as downloads:
        pieces = downloads.pieces(listed[0])
        next(pieces)
        pieces.close()
        assert let_go.wait(LONG)
        assert list(downloads.pieces(listed[1])) == [b"next"]
    assert threads() == []


def test_leaving_with_an_error_ends_every_download():
    listed = files(50)

    def open_file(_file: SourceFile, _place: int) -> Iterator[bytes]:
        while True:
            yield b"endless"

    def work() -> None:
        with Downloads(listed, open_file, ahead={"default": 8}) as downloads:
            next(downloads.pieces(listed[0]))
            raise RuntimeError("worker")

    with pytest.raises(RuntimeError, match="worker"):
        work()
    assert threads() == []


def test_a_connection_that_breaks_is_gone_on_with_from_the_byte_where_it_broke():
    """Every byte comes once, and in order, whatever the number of breaks (L14)."""
    (file,) = files(1)
    body = bytes(range(100))
    waits: list[float] = []

    def open_at(_file: SourceFile, place: int) -> Iterator[bytes]:
        yield body[place : place + 40]
        if place < 60:
            raise StoreUnavailable("the connection was reset")

    with Downloads([file], open_at, ahead={"default": 1}, pause=waits.append) as downloads:
        assert b"".join(downloads.pieces(file)) == body
    assert len(waits) == 2


def test_a_connection_that_breaks_every_time_is_given_up():
    (file,) = files(1)
    waits: list[float] = []

    def open_at(_file: SourceFile, _place: int) -> Iterator[bytes]:
        raise StoreUnavailable("no answer")

    with (
        Downloads([file], open_at, ahead={"default": 1}, pause=waits.append) as downloads,
        pytest.raises(StoreUnavailable),
    ):
        list(downloads.pieces(file))
    assert len(waits) == 3


def test_many_small_files_do_not_pile_up_behind_a_stalled_reader():
    """W18: the window is a number of bundles, and each of them has a limit."""
    begun: list[str] = []

    def open_at(file: SourceFile, _place: int) -> Iterator[bytes]:
        begun.append(file.path)
        yield b"x"

    listed = files(1000)
    with Downloads(listed, open_at, ahead={"default": 3}) as downloads:
        list(downloads.pieces(listed[0]))
        next(downloads.pieces(listed[1]))
    assert len(begun) <= 3 * MOST_IN_A_BUNDLE


@given(
    st.lists(st.sampled_from([0, 10, BUNDLE_BYTES // 3, BUNDLE_BYTES, 5 * BUNDLE_BYTES])),
    st.integers(1, 16),
)
def test_bundles_hold_every_file_in_order_within_limits_and_leave_no_thread_idle(
    sizes: list[int], threads: int
):
    listed = [source_file(f"{place}", size=size) for place, size in enumerate(sizes)]
    found = list(bundles(listed, threads))

    assert [file for bundle in found for file in bundle] == listed
    assert all(0 < len(bundle) <= MOST_IN_A_BUNDLE for bundle in found)
    assert all(
        len(bundle) == 1 or sum(file.size for file in bundle) <= BUNDLE_BYTES for bundle in found
    )
    assert len(found) >= min(len(listed), threads * BUNDLES_PER_THREAD)


def test_an_error_in_a_bundle_is_raised_for_its_file_alone():
    """L05."""
    listed = files(100)

    def open_file(file: SourceFile, _place: int) -> Iterator[bytes]:
        if file is listed[7]:
            raise StoreDenied("access was refused")
        yield file.path.encode()

    with Downloads(listed, open_file, ahead={"default": 1}) as downloads:
        for file in listed:
            if file is listed[7]:
                with pytest.raises(StoreDenied, match="refused"):
                    list(downloads.pieces(file))
            else:
                assert list(downloads.pieces(file)) == [file.path.encode()]


def test_the_end_does_not_wait_for_the_rest_of_a_bundle():
    listed = files(100)
    begun: list[str] = []
    second, ended = threading.Event(), threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            ended.set()
            super().shutdown(wait, cancel_futures=cancel_futures)

    def open_file(file: SourceFile, _place: int) -> Iterator[bytes]:
        begun.append(file.path)
        if file is listed[1]:
            second.set()
            assert ended.wait(LONG)
        yield b"x"

    with Downloads(listed, open_file, ahead={"default": 1}, pool=Pool):
        assert second.wait(LONG)

    assert begun == [file.path for file in listed[:2]]


def test_pieces_made_in_advance_are_few_and_in_their_order():
    made: list[int] = []
    enough, beyond = threading.Event(), threading.Event()

    def pieces() -> Iterator[bytes]:
        for number in range(100):
            made.append(number)
            if number == DECOMPRESSED_AHEAD:
                enough.set()
            if number > DECOMPRESSED_AHEAD + 1:
                beyond.set()
            yield b"%d" % number

    with closing(in_advance(pieces())) as advance:
        assert next(advance) == b"0"
        assert enough.wait(LONG)
        assert not beyond.wait(0.2)
        assert [*advance] == [b"%d" % number for number in range(1, 100)]
    assert [each for each in threading.enumerate() if each.name == "decompress"] == []


def test_trouble_in_pieces_made_in_advance_comes_after_those_before_it():
    def pieces() -> Iterator[bytes]:
        yield b"first"
        raise ValueError("trouble")

    advance = in_advance(pieces())
    assert next(advance) == b"first"
    with pytest.raises(ValueError, match="trouble"):
        next(advance)


def test_whoever_leaves_pieces_made_in_advance_leaves_no_thread():
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x"

    advance = in_advance(endless())
    next(advance)
    advance.close()
    assert [each for each in threading.enumerate() if each.name == "decompress"] == []


class AtOnce:
    """Files that are had at once, but for those that are not, by a clock that is told how long."""

    def __init__(self, *, not_so: frozenset[str] = frozenset(), seconds: float = 0.0) -> None:
        self.asked: list[str] = []
        self._not_so = not_so
        self._seconds = seconds
        self._now = 0.0

    def read(self, file: SourceFile) -> bytes | None:
        self.asked.append(file.path)
        self._now += self._seconds
        return None if file.path in self._not_so else file.path.encode()

    def timer(self) -> float:
        return self._now

    def of(self, listed: Sequence[SourceFile], ahead: int = 4) -> Downloads:
        return Downloads(
            listed,
            lambda file, _place: iter([b"piece of ", file.path.encode()]),
            ahead={"default": ahead},
            at_once=self.read,
            timer=self.timer,
        )


def all_of(downloads: Downloads, listed: Sequence[SourceFile]) -> list[bytes]:
    """Return every file: at once where it comes so, else by its pieces."""
    found = []
    for file in listed:
        body = downloads.at_once(file)
        found.append(b"".join(downloads.pieces(file)) if body is None else body)
    return found


def test_small_files_are_read_where_they_are_wanted_and_no_thread_is_begun():
    listed, source = files(100), AtOnce()
    with source.of(listed) as downloads:
        assert all_of(downloads, listed) == [file.path.encode() for file in listed]
        assert threads() == []
    assert source.asked == [file.path for file in listed]


@pytest.mark.parametrize("number", [0, 1, 17, 99])
def test_a_file_that_is_not_had_at_once_leaves_all_that_follow_to_the_threads(number: int):
    listed = files(100)
    source = AtOnce(not_so=frozenset({listed[number].path}))
    with source.of(listed) as downloads:
        found = all_of(downloads, listed)
    assert source.asked == [file.path for file in listed[: number + 1]]
    assert found == [
        file.path.encode() if place < number else b"piece of " + file.path.encode()
        for place, file in enumerate(listed)
    ]


def test_a_disk_that_is_waited_for_is_read_by_many_threads():
    listed, source = files(100), AtOnce(seconds=0.02)
    with source.of(listed) as downloads:
        found = all_of(downloads, listed)
    assert source.asked == [file.path for file in listed[:3]]
    assert found[2:4] == [b"002.ndjson", b"piece of 003.ndjson"]


def test_large_files_are_read_ahead_between_small_ones():
    listed = [
        source_file(f"{index:03}.ndjson", size=1 << 30 if index in (3, 4, 9) else 100)
        for index in range(12)
    ]
    source = AtOnce()
    with source.of(listed, ahead=2) as downloads:
        found = all_of(downloads, listed)
    large = [place for place, body in enumerate(found) if body.startswith(b"piece of")]
    assert large == [3, 4, 9]
    assert len(source.asked) == 9


def test_files_that_are_asked_for_in_pieces_come_in_pieces_small_or_not():
    listed, source = files(20), AtOnce()
    with source.of(listed) as downloads:
        found = [b"".join(downloads.pieces(file)) for file in listed]
    assert found == [b"piece of " + file.path.encode() for file in listed]
    assert source.asked == []
