"""Which source files can be taken back."""

from dataclasses import replace

import pytest

from blizzard.journal.ledger import Before
from blizzard.model.files import IngestedFile, UnfinishedFile
from blizzard.rewrite.source_rows import RetractedSource, why_not
from tests.support.builders import NOON, failure, record

DONE = IngestedFile(key="in:a", size=3, etag="e")


def left(**changes):
    return UnfinishedFile(record=replace(record("a"), **changes), at=NOON)


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (Before(finished=DONE), None),
        (Before(unfinished=left(complete=False, lines=4)), "read up to line 4 only"),
        (Before(unfinished=left(redo=True, failure=failure())), "to be read again"),
        (Before(unfinished=left(lines=0, failure=failure())), "no row of it is in the table"),
        (Before(unfinished=left(lines=0, skipped=4, failure=failure())), None),
        (Before(unfinished=left(lines=0, failure=failure()), finished=DONE), None),
    ],
    ids=["done", "part", "redo", "failed", "failed after a part", "failed as another object"],
)
def test_only_what_is_settled_can_be_taken_back(before, why):
    found = why_not(before, "penguin")
    assert found is None if why is None else why in (found or "")


def test_what_the_journal_does_not_know_cannot_be_named():
    assert RetractedSource.of("in:a", Before()) is None
    named = RetractedSource.of("in:x/a:b", Before(finished=DONE))
    assert named is not None
    assert (named.source, named.path, named.size, named.etag) == ("in", "x/a:b", 3, "e")
