"""What retractions make of source files, in whatever order the log decides on them."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from blizzard.journal.ledger import Ledger
from blizzard.model.source.file import Recorded
from lakebed.documents.entry import Kind, encode
from lakebed.documents.records import SourceRecord
from tests.support.builders import NOON, failure, identity, record

KEY = "default:a.ndjson"
FIRST, SECOND, THIRD = (record(size=size, etag=f"e{size}") for size in (10, 20, 30))


def out(one: SourceRecord) -> SourceRecord:
    """Return a file as a retraction names it."""
    return replace(one, retracted=True)


class Story:
    """A journal that is told entry by entry, and its log."""

    def __init__(self) -> None:
        self.history = Ledger()
        self.rejected: dict[int, bool] = {}
        self.asked: list[Mapping[int, str]] = []

    def tell(self, kind: Kind, *records: SourceRecord) -> int:
        number = self.history.sequence + 1
        entry = identity(
            kind=kind,
            journal="j",
            sequence=number,
            run=f"run-{number}",
            created=NOON.isoformat(),
            previous=self.history.digest,
            sources=records,
        )
        self.history.learn(entry, encode(entry))
        return number

    def settle(self) -> None:
        def ask(_journal: str, marks: Mapping[int, str]) -> Mapping[int, bool]:
            self.asked.append(marks)
            return {one: self.rejected[one] for one in marks if one in self.rejected}

        self.history.settle(ask)

    @property
    def known(self) -> Recorded:
        return self.history.lookup()(KEY)

    def object(self) -> tuple[int, int | None]:
        """Return the size of the object that is done, and its entry."""
        done = self.known.finished
        assert done is not None
        return done.size, done.entry


@pytest.fixture
def story() -> Story:
    story = Story()
    story.tell("batch", FIRST)
    return story


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        (False, False, (30, 2)),
        (False, True, (20, 1)),
        (True, False, (30, 2)),
        (True, True, (10, 0)),
        (True, None, (30, 2)),
        (False, None, (30, 2)),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_file_is_what_the_last_retraction_with_an_effect_made_of_it(
    story: Story, first: bool, second: bool | None, left: tuple[int, int], at_once: bool
) -> None:
    """A journal that is read from its first entry is told of both at once."""
    one = story.tell("retract", out(FIRST), SECOND)
    story.rejected[one] = first
    if not at_once:
        story.settle()
    two = story.tell("retract", out(SECOND), THIRD)
    if second is not None:
        story.rejected[two] = second
    story.settle()
    story.settle()

    assert story.object() == left
    undecided = story.history.undecided.of(KEY)
    assert (undecided is not None and undecided.not_applied) == (second is True)
    assert len(story.asked) <= 3


@pytest.mark.parametrize(("present", "rejected"), [(SECOND, True), (THIRD, False), (THIRD, None)])
@pytest.mark.parametrize("at_once", [True, False])
def test_the_present_content_is_another_object_after_a_move(
    story: Story, present: SourceRecord, rejected: bool | None, at_once: bool
) -> None:
    """It was read with the entry with which it was read, and nothing is left beside it."""
    one = story.tell("retract", out(FIRST), SECOND)
    two = story.tell("retract", out(SECOND), THIRD)
    story.rejected |= {one: False} | ({} if rejected is None else {two: rejected})
    if not at_once:
        story.settle()
    story.tell("moved", replace(present, etag="moved"))
    story.settle()

    done = story.known.finished
    assert done is not None
    entry = one if present is SECOND else two
    assert (done.size, done.etag, done.entry) == (present.size, "moved", entry)
    assert not story.history.earlier


def test_what_fails_after_a_retraction_stays_failed_however_it_is_decided(story: Story) -> None:
    number = story.tell("retract", out(FIRST), SECOND)
    story.tell("batch", replace(THIRD, lines=0, rows=0, failure=failure()))
    story.rejected[number] = True
    story.settle()

    left = story.known.unfinished
    assert left is not None
    assert left.record.size == 30
    assert story.object() == (10, 0)
