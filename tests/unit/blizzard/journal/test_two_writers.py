"""Two writers of one pipeline, an operator's entry beside a run, and a renamed pipeline."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from blizzard.handoff.publish import HandoffResult, Publisher
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.fence import TRIES, append_planned
from blizzard.journal.journal import Journal
from lakebed.documents.entry import Entry, digest, encode
from lakebed.errors import JournalConflict, JournalLost, ProtocolConflict
from lakebed.storage.store import AlreadyThere, Created, Store
from tests.support.builders import (
    Bench,
    Hands,
    entries,
    identity,
    ndjson,
    no_options,
    pipeline_settings,
    put,
    record,
    rows,
)
from tests.support.runner import InProcessRunner, Meanwhile
from tests.support.stores import local
from tests.support.writers import lease, machine


@dataclass(frozen=True)
class Remembers(Publisher):
    """A publisher that remembers what it was given."""

    published: list[int] = field(default_factory=list)

    def publish(self, store: Store, last: Entry, *, redo: bool) -> HandoffResult:
        self.published.append(last.sequence)
        return HandoffResult()


@pytest.fixture
def first(tmp_path: Path) -> Bench:
    put(tmp_path / "in", "a.ndjson", ndjson(rows(3)))
    put(tmp_path / "in", "bad.ndjson", b"{oops\n")
    return Bench(
        pipeline_settings(tmp_path / "in", tmp_path / "table"),
        publisher=Remembers(),
        lease=lease("run-1", on=machine("db7")),
    )


def second_of(first: Bench, **given: object) -> Bench:
    """Return another blizzard on the same pipeline, which finds the first one gone."""
    return first.again(
        run_id="run-2",
        lease=lease("run-2", on=machine("db7", alive=False)),
        publisher=Remembers(),
        runner=InProcessRunner(),
        **given,
    )


def runs(bench: Bench) -> list[str]:
    return [entry.run for entry in bench.entries()]


@pytest.mark.parametrize("whole", [True, False], ids=["after the second's batch", "before it"])
def test_a_first_that_wakes_in_its_batch_writes_nothing_more(first: Bench, whole: bool) -> None:
    """Also where it could still append the entry: it was taken over from (HOLES D07)."""
    second = second_of(first).pipeline()
    local(first.table)

    def take_over() -> None:
        if whole:
            assert second.step()
        else:
            assert second._open_journal() is not None

    first.runner = Meanwhile(take_over)
    with pytest.raises(JournalConflict, match="has taken over this pipeline"):
        first.pipeline().step()

    letters = list(first.table.glob("_blizzard/default/dlq/*"))
    assert len(letters) == int(whole), "the first has written no dead letters"
    assert whole or second.step()
    assert runs(first) == ["run-1", "run-2"]
    assert isinstance(first.publisher, Remembers)
    assert first.publisher.published == [0], "only what was there before it slept"


class TakenOverAfterEntry(Store):
    """As soon as entry 1 is written, another run takes over."""

    take_over: Callable[[], object] = lambda: None

    def create(self, path: str, body: bytes) -> Created | AlreadyThere:
        done = super().create(path, body)
        if path.endswith("00001.json"):
            TakenOverAfterEntry.take_over()
        return done


def test_a_first_that_wakes_after_its_entry_does_not_hand_it_off(first: Bench) -> None:
    """The second has handed it off; to move files again may be wrong by then (HOLES D07)."""
    second = second_of(first)
    TakenOverAfterEntry.take_over = staticmethod(lambda: second.pipeline().step())
    first.store = TakenOverAfterEntry
    pipeline = first.pipeline()
    with pytest.raises(JournalConflict, match="has taken over"):
        pipeline.step()
    with pytest.raises(JournalConflict, match="has taken over"):
        pipeline.step()

    assert isinstance(first.publisher, Remembers)
    assert isinstance(second.publisher, Remembers)
    assert first.publisher.published == [0]
    assert second.publisher.published == [1]
    assert runs(first) == ["run-1", "run-1"]


def test_a_configuration_that_is_refused_leaves_no_note(first: Bench, tmp_path: Path) -> None:
    """A hand-off that contradicts the table's is refused before anything is written."""
    first.pipeline().step()
    store = local(first.table)
    store.replace("_blizzard/protocol/2.json", b'{"format":1,"handoff":"staging"}\n')
    other = pipeline_settings(tmp_path / "in", tmp_path / "table", name="other")
    with pytest.raises(ProtocolConflict):
        Bench(other, lease=lease(pipeline="other")).pipeline().step()
    assert not (first.table / "_blizzard/other").exists()


class Operator:
    """Looks at a journal, to which batches are appended before the operator's entry is there."""

    def __init__(self, root, batches):
        self.store = Store(str(root), no_options())
        history = read_ledger(self.store, "default")
        self.journal = Journal(self.store, identity(), history, Hands().clock)
        self.journal.open_with(lambda: False)
        self.last = self.journal.append((record("a"),), ())
        self.batches = batches
        self.looks = 0

    def look(self):
        self.looks += 1
        entry = self.last.successor(
            "redo", previous=digest(encode(self.last)), run="r", created=self.last.created
        )
        if self.batches:
            self.batches -= 1
            self.last = self.journal.append((record(f"b{self.looks}"),), ())
        return self.looks, entry

    def append(self):
        return append_planned(self.store, "default", self.look)


def test_batches_that_come_too_fast_end_in_an_error_and_nothing_is_written(tmp_path):
    operator = Operator(tmp_path, batches=TRIES)
    with pytest.raises(JournalConflict, match="nothing was done, try again"):
        operator.append()
    assert [each.kind for each in entries(tmp_path)] == ["open", *["batch"] * (TRIES + 1)]


def test_a_renamed_pipeline_is_noticed_before_it_ingests_anything_twice(tmp_path: Path) -> None:
    """L21: the message names the old name, which is the way out."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(2)))
    settings = pipeline_settings(tmp_path / "in", tmp_path / "table")
    Bench(settings).pipeline().step()
    renamed = Bench(replace(settings, name="other"))

    with pytest.raises(JournalLost, match="'default' of this table already reads"):
        renamed.pipeline().step()
    assert renamed.entries() == []
