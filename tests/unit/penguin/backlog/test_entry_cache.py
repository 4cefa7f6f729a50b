"""Entries that were read a moment ago."""

import pytest

from lakebed.documents.entry import Entry, decode_entry, digest, encode
from lakebed.errors import DocumentUnreadable
from lakebed.types import Handoff
from penguin.backlog import entry_cache
from penguin.backlog.entry_cache import EntryCache


def body(sequence: int) -> bytes:
    return encode(
        Entry(
            kind="batch",
            pipeline="events",
            journal="j",
            sequence=sequence,
            run="run",
            created="2026-01-01T00:00:00+00:00",
            previous=None,
            handoff=Handoff.JOURNAL,
            source_uris={},
            table_schema={},
            partition_columns=(),
        )
    )


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The entries that were worked out."""
    seen: list[int] = []
    decode = decode_entry

    def spy(given: bytes, where: str) -> Entry:
        entry = decode(given, where)
        seen.append(entry.sequence)
        return entry

    monkeypatch.setattr(entry_cache, "decode_entry", spy)
    return seen


def test_the_very_same_body_is_worked_out_once(decoded: list[int]) -> None:
    kept = EntryCache()
    for sequence in (1, 2, 1, 1, 2):
        entry, fingerprint = kept.entry(body(sequence), "here")
        assert (entry.sequence, fingerprint) == (sequence, digest(body(sequence)))
    assert decoded == [1, 2]


def test_what_was_read_longest_ago_makes_room(decoded: list[int]) -> None:
    kept = EntryCache(most_bytes=2 * len(body(1)))
    for sequence in (1, 2, 1, 3, 1, 2):
        kept.entry(body(sequence), "here")
    assert decoded == [1, 2, 3, 2]


def test_one_that_is_too_large_is_not_kept_and_is_read_all_the_same(decoded: list[int]) -> None:
    kept = EntryCache(most_bytes=1)
    assert [kept.entry(body(1), "here")[0].sequence for _ in range(2)] == [1, 1]
    assert decoded == [1, 1]


def test_what_cannot_be_read_is_an_error_each_time() -> None:
    """D05."""
    kept = EntryCache()
    for _ in range(2):
        with pytest.raises(DocumentUnreadable, match="there"):
            kept.entry(body(1)[:-9], "there")
