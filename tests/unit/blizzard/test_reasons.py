"""Why a file is not taken: each file has one reason, and no file goes without."""

from datetime import timedelta

import pytest

from blizzard.discovery import decide, is_source_file
from blizzard.reasons import FEW, IN_WORDS, Reason, passed_over, summed_up
from tests.support.builders import NOON, facts, failure, known, record, source_settings

BOOKS = known(
    record("done.ndjson"),
    record("new-content.ndjson", etag="other"),
    record("bad.ndjson", failure=failure()),
    record("away.ndjson", failure=failure(retryable=True)),
)


def looked(*paths, now=NOON, **limits):
    listed = sorted((facts(path) for path in paths), key=lambda one: one.path)
    found = decide(
        [one for one in listed if is_source_file(one.path)],
        source=source_settings(**limits),
        template=None,
        partition_fields={},
        known=BOOKS.get,
        tried=frozenset(),
        now=now,
    )
    return found, tuple(passed_over(listed, found, source="default", known=BOOKS.get))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("done.ndjson", Reason.INGESTED),
        ("new-content.ndjson", Reason.CHANGED),
        ("bad.ndjson", Reason.FAILED),
        ("away.ndjson", Reason.RESTING),
        ("notes.txt", Reason.NOT_NDJSON),
        ("_tmp/a.ndjson", Reason.NOT_NDJSON),
        ("z.ndjson", Reason.BEYOND_BATCH),
    ],
)
def test_each_file_has_its_reason(path, reason):
    _found, (one,) = looked("a.ndjson", path, max_files_per_batch=1)
    assert (one.path, one.reason) == (path, reason)


def test_a_file_that_rests_says_until_when_and_what_was_wrong():
    _found, (one,) = looked("away.ndjson")
    assert one.until == NOON + timedelta(seconds=30)
    assert one.detail == "it went wrong"
    found, passed = looked("away.ndjson", now=one.until)
    assert [file.path for file in found.take] == ["away.ndjson"]
    assert passed == ()


def test_no_file_is_left_without_a_word():
    paths = [*(f"{number:03}.ndjson" for number in range(40)), "x.txt", "done.ndjson", "bad.ndjson"]
    found, passed = looked(*paths, max_files_per_batch=10)
    assert sorted([file.path for file in found.take] + [one.path for one in passed]) == sorted(
        paths
    )
    summed = summed_up(passed)
    assert sum(one.files for one in summed) == len(passed)
    (beyond,) = (one for one in summed if one.reason is Reason.BEYOND_BATCH)
    assert (beyond.files, len(beyond.some)) == (30, FEW)


def test_every_reason_can_be_said_to_a_person():
    assert set(IN_WORDS) == set(Reason)
