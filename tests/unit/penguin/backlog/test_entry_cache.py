"""Entries that were read a moment ago."""

from dataclasses import dataclass, field

import pytest

from lakebed.documents.entry import Entry, decode_entry, digest
from lakebed.errors import DocumentUnreadable
from penguin.backlog.journals import EntryCache
from tests.support.builders import entry_body as body


@dataclass
class Decoder:
    """Works entries out, and remembers which."""

    seen: list[int] = field(default_factory=list)

    def __call__(self, given: bytes, where: str) -> Entry:
        entry = decode_entry(given, where)
        self.seen.append(entry.sequence)
        return entry


def test_the_very_same_body_is_worked_out_once() -> None:
    kept = EntryCache(decode=(decoded := Decoder()))
    for sequence in (1, 2, 1, 1, 2):
        entry, fingerprint = kept.entry(body(sequence), "here")
        assert (entry.sequence, fingerprint) == (sequence, digest(body(sequence)))
    assert decoded.seen == [1, 2]


def test_what_was_read_longest_ago_makes_room() -> None:
    kept = EntryCache(most_bytes=2 * len(body(1)), decode=(decoded := Decoder()))
    for sequence in (1, 2, 1, 3, 1, 2):
        kept.entry(body(sequence), "here")
    assert decoded.seen == [1, 2, 3, 2]


def test_one_that_is_too_large_is_not_kept_and_is_read_all_the_same() -> None:
    kept = EntryCache(most_bytes=1, decode=(decoded := Decoder()))
    assert [kept.entry(body(1), "here")[0].sequence for _ in range(2)] == [1, 1]
    assert decoded.seen == [1, 1]


def test_what_cannot_be_read_is_an_error_each_time() -> None:
    """D05."""
    kept = EntryCache()
    for _ in range(2):
        with pytest.raises(DocumentUnreadable, match="there"):
            kept.entry(body(1)[:-9], "there")
