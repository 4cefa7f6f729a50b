"""Why a file is not taken: each file has one reason, and no file goes without."""

from datetime import timedelta

import pytest

from blizzard.discover.filter import FileFilter
from blizzard.discover.skip_reason import FEW, IN_WORDS, Reason
from blizzard.journal.ledger import Before
from blizzard.model.files import IngestedFile
from tests.support.builders import NOON, facts, failure, known, record, source_settings

FAILED = known(
    record("bad.ndjson", failure=failure()), record("away.ndjson", failure=failure(retryable=True))
)
BOOKS = {
    **{key: Before(unfinished=each) for key, each in FAILED.items()},
    "default:done.ndjson": Before(finished=IngestedFile(key="", size=10, etag="e1")),
    "default:new-content.ndjson": Before(finished=IngestedFile(key="", size=10, etag="other")),
}


def looked(*paths, now=NOON, **limits):
    file_filter = FileFilter(
        source=source_settings(**limits), template=None, partition_fields={}, now=now
    )
    for one in sorted((facts(path) for path in paths), key=lambda one: one.path):
        if file_filter.is_ours(one):
            file_filter.consider(one, BOOKS.get(f"default:{one.path}", Before()))
    return file_filter.finding(late=frozenset(), swept=True)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("done.ndjson", Reason.INGESTED),
        ("new-content.ndjson", Reason.CHANGED),
        ("bad.ndjson", Reason.FAILED),
        ("away.ndjson", Reason.RESTING),
        ("notes.txt", Reason.NOT_NDJSON),
        ("_tmp/a.ndjson", Reason.HIDDEN),
        ("a.ndjson.tmp", Reason.TEMPORARY),
        ("z.ndjson", Reason.BEYOND_BATCH),
    ],
)
def test_each_file_has_its_reason(path, reason):
    (one,) = looked("a.ndjson", path, max_files_per_batch=1).not_taken
    assert (one.some, one.reason) == ((path,), reason)


def test_a_file_that_rests_says_until_when_and_what_was_wrong():
    (one,) = looked("away.ndjson").passed
    assert one.until == NOON + timedelta(seconds=30)
    assert one.detail == "it went wrong"
    found = looked("away.ndjson", now=one.until)
    assert [file.path for file in found.take] == ["away.ndjson"]
    assert found.passed == ()


def test_no_file_is_left_without_a_word():
    paths = [*(f"{number:03}.ndjson" for number in range(40)), "x.txt", "done.ndjson", "bad.ndjson"]
    found = looked(*paths, max_files_per_batch=10)
    told = [file.path for file in found.take] + [one.path for one in found.passed]
    assert sorted([*told, "done.ndjson"]) == sorted(paths)
    assert sum(one.files for one in found.not_taken) + len(found.take) == len(paths)
    (beyond,) = (one for one in found.not_taken if one.reason is Reason.BEYOND_BATCH)
    assert (beyond.files, len(beyond.some)) == (30, FEW)


def test_every_reason_can_be_said_to_a_person():
    assert set(IN_WORDS) == set(Reason)
