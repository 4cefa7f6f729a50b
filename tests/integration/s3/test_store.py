"""The door to the object stores, over S3, with requests on record and with trouble on the way."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.journal import Journal
from blizzard.model.settings import UploadSettings
from blizzard.worker.output.upload import Uploads
from lakebed.errors import (
    JournalConflict,
    LakeError,
    ObjectChanged,
    ObjectMissing,
    StoreDenied,
    StoreMisconfigured,
    StoreUnavailable,
)
from lakebed.storage import remote
from lakebed.storage.store import AlreadyThere, Created
from tests.support.builders import Hands, closed_file, finished_file, identity, record
from tests.support.faulty import Cut, Drop, LoseAnswer, Refuse, Request, Stall, times
from tests.support.s3 import open_uploads, store
from tests.support.waits import at_once

MB = 1024 * 1024
BOUNDED = 100
"""Seconds; six are enough for the tries, and the library's own limit would be three minutes."""


@pytest.fixture
def opened(proxy, bucket):
    return store(proxy.address, f"s3://{bucket}/table")


TRIES = remote.RETRY["max_retries"] + 1


# ------------------------------------------------------------------------------ plain use


def test_create_makes_an_object_once_and_says_so(opened):
    assert opened.create("a/b.json", b"first") == Created()
    assert opened.create("a/b.json", b"second") == AlreadyThere()
    assert opened.get("a/b.json") == b"first"


def test_every_page_of_a_listing_is_read(opened, proxy):
    names = [f"in/{number:05d}" for number in range(1203)]
    for name in names[::100]:
        opened.create(name, b"x")
    assert [facts.path for facts in opened.objects("in")] == names[::100]
    assert [facts.path for facts in opened.objects("in", after=names[1000])] == names[1100::100]


def test_an_object_that_was_replaced_since_it_was_listed_is_refused_by_its_etag(opened):
    """D17."""
    opened.create("a", b"A" * 10)
    before = opened.head("a")
    opened.replace("a", b"B" * 10)
    with pytest.raises(ObjectChanged):
        list(opened.stream("a", size=10, etag=before.etag))


def test_a_part_of_an_object_is_read_from_its_byte_on(opened):
    opened.create("a", b"0123456789")
    facts = opened.head("a")
    assert b"".join(opened.stream("a", size=10, etag=facts.etag, start=7)) == b"789"


# ------------------------------------------------------------------------------ uploads


def upload_all(opened, folder: Path, sizes: list[int], settings: UploadSettings) -> None:
    files = [
        closed_file(folder, body=os.urandom(size), number=number)
        for number, size in enumerate(sizes, start=1)
    ]
    with Uploads(opened, settings, pause=at_once) as uploads:
        answers = [uploads.hand_in(file, unit="0.0", source_file=None) for file in files]
        for answer in answers:
            answer.result(300)


def settings(**given: float) -> UploadSettings:
    return UploadSettings(
        part_size=int(given.get("part_size_mb", 5) * MB),
        min_multipart_size=int(given.get("min_multipart_size_mb", 5) * MB),
        max_concurrent_parts=int(given.get("max_concurrent_parts", 8)),
        max_concurrent_uploads=int(given.get("max_concurrent_uploads", 4)),
    )


def test_a_file_of_one_part_is_one_put_and_a_larger_one_goes_in_parts(opened, proxy, tmp_path):
    upload_all(opened, tmp_path, [5 * MB], settings())
    assert [r.kind for r in proxy.record] == ["put", "head"]
    upload_all(opened, tmp_path, [5 * MB + 1], settings())
    assert {(r.kind, r.length) for r in proxy.kinds("put", "part")} == {
        ("put", 5 * MB),
        ("part", 5 * MB),
        ("part", 1),
    }


@pytest.mark.parametrize("least", [1, 12, 13])
def test_where_parts_begin_is_a_setting(opened, proxy, tmp_path, least):
    upload_all(opened, tmp_path, [12 * MB], settings(min_multipart_size_mb=least))
    assert {r.kind for r in proxy.kinds("put", "part")} == {"put" if least > 12 else "part"}


@pytest.mark.parametrize(("size", "lengths"), [(5, [5, 5, 3]), (6, [6, 6, 1]), (12, [12, 1])])
def test_the_size_of_a_part_is_a_setting(opened, proxy, tmp_path, size, lengths):
    upload_all(opened, tmp_path, [13 * MB], settings(part_size_mb=size))
    parts = sorted(proxy.kinds("part"), key=lambda r: int(r.query["partNumber"][0]))
    assert [r.length for r in parts] == [length * MB for length in lengths]
    assert len(proxy.kinds("complete")) == 1


def together(kind: str, most: int) -> Callable[[Request], None]:
    """Keep requests of a kind under way until so many have met, and a moment for one too many."""
    met = threading.Barrier(most, timeout=300)

    def hold(request: Request) -> None:
        if request.kind == kind:
            met.wait()
            time.sleep(0.1)

    return hold


@pytest.mark.parametrize("most", [1, 3])
def test_how_many_parts_travel_at_once_is_a_setting(opened, proxy, tmp_path, most):
    proxy.hold = together("part", most)
    upload_all(opened, tmp_path, [30 * MB], settings(max_concurrent_parts=most))
    assert len(proxy.kinds("part")) == 6
    assert proxy.most("part") == most


@pytest.mark.parametrize("most", [1, 3])
def test_how_many_files_travel_at_once_is_a_setting(opened, proxy, tmp_path, most):
    proxy.hold = together("put", most)
    upload_all(opened, tmp_path, [1000] * 6, settings(max_concurrent_uploads=most))
    assert proxy.most("put") == most


def test_an_upload_that_fails_leaves_no_parts_behind_and_no_object(
    opened, proxy, tmp_path, s3, bucket
):
    """W16: parts of an upload that was given up cost money and show nowhere."""
    proxy.rule = lambda r: Refuse(403) if r.query.get("partNumber") == ["2"] else None
    with pytest.raises(StoreDenied):
        upload_all(opened, tmp_path, [13 * MB], settings(max_concurrent_parts=1))
    assert list(opened.objects()) == []
    assert open_uploads(s3, bucket) == 0


def test_a_part_that_fails_in_passing_is_sent_again(opened, proxy, tmp_path):
    """W01."""
    proxy.rule = times(2, Refuse(503), lambda r: r.query.get("partNumber") == ["2"])
    upload_all(opened, tmp_path, [13 * MB], settings())
    assert len(proxy.kinds("part")) == 5
    assert len(proxy.kinds("begin")) == 1
    (facts,) = opened.objects()
    assert facts.size == 13 * MB


# ------------------------------------------------------------------------------ trouble


PASSING = [Refuse(429), Refuse(500), Refuse(502), Refuse(503), Drop()]


@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_trouble_that_passes_is_not_noticed(opened, proxy, fault):
    """W01."""
    opened.create("a", b"1234567890")
    facts = opened.head("a")
    for use in (
        lambda: opened.get("a"),
        lambda: opened.head("a"),
        lambda: list(opened.objects()),
        lambda: list(opened.stream("a", size=10, etag=facts.etag)),
        lambda: opened.replace("b", b"1"),
    ):
        proxy.record.clear()
        proxy.rule = times(2, fault)
        use()
        assert len(proxy.record) == 3


@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_trouble_that_lasts_is_an_error_after_a_bounded_time(opened, proxy, fault):
    """W01."""
    proxy.rule = lambda _request: fault
    started = time.monotonic()
    with pytest.raises(StoreUnavailable) as caught:
        opened.get("a")
    assert caught.value.retryable
    assert len(proxy.record) == TRIES
    assert time.monotonic() - started < BOUNDED


def test_a_store_that_does_not_answer_is_an_error_after_a_bounded_time(proxy, bucket):
    """W01: without its timeouts a client would wait for ever."""
    opened = store(proxy.address, f"s3://{bucket}/table", READ_TIMEOUT="500ms")
    proxy.rule = lambda _request: Stall()
    with pytest.raises(StoreUnavailable):
        opened.get("a")
    # The client is gone by now, and the last of its requests may yet have to be read.
    deadline = time.monotonic() + 300
    while len(proxy.record) < TRIES and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(proxy.record) == TRIES


def test_an_address_where_nobody_listens_is_an_error(bucket, proxy):
    opened = store("http://127.0.0.1:1", f"s3://{bucket}/table")
    with pytest.raises(StoreUnavailable):
        opened.get("a")


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_told_at_once(opened, proxy, status):
    proxy.rule = lambda _request: Refuse(status)
    for use in (
        lambda: opened.get("a"),
        lambda: opened.head("a"),
        lambda: list(opened.objects()),
        lambda: opened.folders("x"),
        lambda: list(opened.stream("a", size=1, etag="e")),
        lambda: opened.create("a", b"1"),
        lambda: opened.replace("a", b"1"),
        lambda: opened.delete("a"),
    ):
        proxy.record.clear()
        with pytest.raises(StoreDenied) as caught:
            use()
        assert not caught.value.retryable
        assert len(proxy.record) == 1


def test_what_is_not_there_is_told_at_once(opened, proxy):
    """L05."""
    with pytest.raises(ObjectMissing):
        list(opened.stream("a", size=1, etag="e"))
    assert opened.get("a") is None
    assert opened.head("a") is None
    assert len(proxy.record) == 3


def test_a_bucket_that_is_not_there_is_an_error_and_not_an_empty_one(proxy):
    """L10."""
    opened = store(proxy.address, "s3://no-such-bucket/table")
    for use in (
        lambda: list(opened.objects()),
        lambda: opened.create("a", b"1"),
        lambda: opened.get("a"),
    ):
        with pytest.raises(StoreMisconfigured, match="has no bucket no-such-bucket"):
            use()


def test_a_listing_that_breaks_off_partly_read_fails_whole(proxy, bucket, s3):
    """L10."""
    opened = store(proxy.address, f"s3://{bucket}/table")
    filling = store(s3, f"s3://{bucket}/table")
    for number in range(3):
        filling.create(f"{number}", b"x")
    for fault in (Refuse(500), Refuse(403), Drop(), Cut(after=200)):
        proxy.rule = lambda r, fault=fault: fault if r.kind == "list" else None
        with pytest.raises(LakeError):
            list(opened.objects())


@pytest.mark.parametrize("fault", [Cut(after=1000), Cut(after=0)], ids=str)
def test_a_body_that_breaks_off_each_time_is_an_error_and_never_a_short_success(
    opened, proxy, fault
):
    """L14."""
    body = os.urandom(300_000)
    opened.create("a", body)
    facts = opened.head("a")
    proxy.rule = lambda r: fault if r.method == "GET" else None
    with pytest.raises(LakeError) as caught:
        b"".join(opened.stream("a", size=len(body), etag=facts.etag))
    assert caught.value.retryable
    with pytest.raises(LakeError):
        opened.get("a")


def test_a_body_that_breaks_off_once_is_read_to_its_end(opened, proxy):
    """L14."""
    body = os.urandom(3 * MB)
    opened.create("a", body)
    facts = opened.head("a")
    proxy.rule = times(1, Cut(after=MB + 7), lambda r: r.method == "GET")
    assert b"".join(opened.stream("a", size=len(body), etag=facts.etag)) == body


# ------------------------------------------------------------------------------ the journal


def journal_on(opened, run: str = "run-1") -> Journal:
    hands = Hands()
    journal = Journal(
        opened, identity(run=run), read_ledger(opened, "default"), hands.clock, lambda _secs: None
    )
    journal.open_with(lambda: False)
    return journal


@pytest.mark.parametrize("answer", [500, 503, None])
@pytest.mark.unbalanced("books_differ", "file_gone")
def test_the_lost_answer_of_an_entry_is_taken_for_our_own_write(opened, proxy, answer):
    """L24: the entry was written, the answer said otherwise."""
    journal = journal_on(opened)
    proxy.rule = times(1, LoseAnswer(answer), lambda r: r.method == "PUT")
    entry = journal.append((record("a"),), (finished_file(),))
    assert entry.sequence == 1
    assert read_ledger(opened, "default").sequence == 1
    assert journal.append((record("b"),), ()).sequence == 2


@pytest.mark.unbalanced("books_differ")
def test_an_entry_of_another_run_is_not_taken_for_ours(opened, proxy):
    """D07: also where our own write had no answer."""
    mine, theirs = journal_on(opened), journal_on(opened, run="run-2")
    theirs.append((record("a"),), ())
    proxy.rule = times(1, Refuse(500), lambda r: r.method == "PUT")
    with pytest.raises(JournalConflict, match="run-2"):
        mine.append((record("a"),), ())


@pytest.mark.unbalanced("books_differ")
def test_an_entry_whose_store_stays_away_is_in_doubt_until_it_is_back(opened, proxy):
    """L24."""
    journal = journal_on(opened)
    proxy.rule = lambda r: LoseAnswer(500) if r.method == "PUT" else Refuse(503)
    with pytest.raises(StoreUnavailable):
        journal.append((record("a"),), ())
    proxy.rule = lambda _request: None
    settled = journal.settle()
    assert settled is not None
    assert settled.sequence == 1
