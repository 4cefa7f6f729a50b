"""Reading a journal: what is missing is normal, what cannot be read stops the run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakebed import layout
from lakebed.documents.entry import DirectoryProtocol, Receipt, decode, encode
from lakebed.errors import DocumentUnreadable, StoreUnavailable
from lakebed.journal import JournalReader
from lakebed.storage.options import ObjectFacts, StorageOptions
from lakebed.storage.store import Store
from tests.support.builders import entry_body as body_of
from tests.support.stores import Forgets


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path), StorageOptions())


def write(store: Store, *sequences: int, pipeline: str = "events") -> JournalReader:
    for sequence in sequences:
        store.create(layout.journal_entry(pipeline, sequence), body_of(sequence))
    return JournalReader(store, pipeline)


def numbers(entries: object) -> list[int]:
    return [entry.sequence for entry in entries]  # type: ignore[attr-defined]


def test_a_journal_that_is_not_there_has_nothing_and_is_no_error(store: Store) -> None:
    journal = JournalReader(store, "events")
    assert journal.entry(0) is None
    assert journal.stored(0) is None
    assert journal.body(0) is None
    assert journal.last() is None
    assert journal.receipt() is None
    assert journal.numbers() == []
    assert list(journal.entries()) == []
    assert list(journal.until_missing(-1)) == []


def test_entries_come_in_their_order_and_past_a_number(store: Store) -> None:
    journal = write(store, *reversed(range(12)))
    assert numbers(journal.entries()) == list(range(12))
    assert numbers(journal.entries(8)) == [9, 10, 11]
    assert numbers(journal.until_missing(8)) == [9, 10, 11]
    assert journal.numbers() == list(range(12))
    assert journal.numbers(after=9) == [10, 11]
    assert [one.body for one in journal.stored_entries(10)] == [body_of(11)]
    last = journal.last()
    assert last is not None
    assert last.sequence == 11


def test_what_else_stands_in_the_folder_is_no_entry(store: Store) -> None:
    journal = write(store, 0)
    store.create(layout.batch_started("events", 1), b"{}")
    store.create(layout.snapshot("events"), b"{}")
    assert journal.numbers() == [0]
    assert numbers(journal.entries()) == [0]


def test_a_gap_is_an_error_after_what_comes_before_it(store: Store) -> None:
    """What cannot be known is never taken for the end of the journal."""
    journal = write(store, 0, 2, 3)
    entries = journal.entries()
    assert next(entries).sequence == 0
    with pytest.raises(DocumentUnreadable) as gap:
        next(entries)
    assert gap.value.message == (
        "entry 1 is missing, but this one exists; restore the missing one from a backup, or "
        "start a new journal with blizzard journal new"
    )
    assert gap.value.facts == {"path": layout.journal_entry("events", 2)}
    assert numbers(journal.until_missing(-1)) == [0]


def test_an_entry_that_is_written_between_the_read_and_the_listing_is_read(tmp_path: Path) -> None:
    class OthersWrite(Store):
        def objects(self, *given: Any, **named: Any) -> Iterator[ObjectFacts]:
            write(self, 1, 2)
            return super().objects(*given, **named)

    journal = write(OthersWrite(str(tmp_path), StorageOptions()), 0)
    assert numbers(journal.entries()) == [0, 1, 2]


def test_an_entry_that_is_listed_and_not_there_is_worth_another_try(tmp_path: Path) -> None:
    journal = write(Forgets(str(tmp_path), StorageOptions()), 0)
    path = layout.journal_entry("events", 0)
    for ask in (journal.last, lambda: list(journal.entries()), lambda: journal.listed(0)):
        with pytest.raises(StoreUnavailable, match="was listed cannot be read") as trouble:
            ask()
        assert trouble.value.facts == {"path": path}


def test_an_entry_that_cannot_be_read_is_an_error_to_whoever_needs_it(store: Store) -> None:
    """Only its bytes can be had."""
    journal = write(store, 0)
    store.create(layout.journal_entry("events", 1), body_of(1)[:-9])
    for ask in (
        lambda: journal.entry(1),
        lambda: journal.stored(1),
        lambda: journal.listed(1),
        journal.last,
        lambda: list(journal.entries()),
        lambda: list(journal.until_missing(0)),
    ):
        with pytest.raises(DocumentUnreadable) as damaged:
            ask()
        assert damaged.value.facts == {"path": layout.journal_entry("events", 1)}
    assert journal.listed_body(1) == journal.body(1) == body_of(1)[:-9]


def test_the_receipt_is_read_and_a_damaged_one_is_an_error(store: Store) -> None:
    receipt = Receipt(journal="j", sequence=3, digest="d")
    store.replace(layout.receipt("events"), encode(receipt))
    assert JournalReader(store, "events").receipt() == receipt
    store.replace(layout.receipt("events"), b"{")
    with pytest.raises(DocumentUnreadable) as damaged:
        JournalReader(store, "events").receipt()
    assert damaged.value.facts == {"path": layout.receipt("events")}


def test_whoever_asks_for_full_paths_is_told_the_uri_of_what_is_damaged(store: Store) -> None:
    journal = JournalReader(store, "events", full_paths=True)
    path = layout.journal_entry("events", 0)
    store.create(path, b"{")
    store.create(layout.receipt("events"), b"{")
    assert journal.where(0) == store.describe(path)
    for ask, damaged in ((lambda: journal.entry(0), path), (journal.receipt, None)):
        with pytest.raises(DocumentUnreadable) as trouble:
            ask()
        named = store.describe(damaged or layout.receipt("events"))
        assert trouble.value.facts == {"path": named}


@pytest.mark.parametrize("kind", [Receipt, DirectoryProtocol])
def test_an_empty_document_that_a_start_writes_anew_may_be_deleted(kind: type[Any]) -> None:
    """L01: an older power cut has left its name alone."""
    with pytest.raises(DocumentUnreadable, match="delete it, and the next start recreates it"):
        decode(kind, b"", "_blizzard/x.json")
