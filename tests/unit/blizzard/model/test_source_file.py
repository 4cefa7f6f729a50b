"""Values that pass between the driver and its tasks."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from blizzard.model.source.file import ByteRange, SourceFile
from blizzard.model.source.partly_read import record_with
from lakebed.documents.records import SourceRecord, Unread
from lakebed.types import Codec

FILE = SourceFile(
    source="logs",
    path="2024/one.ndjson",
    size=99,
    etag='"1"',
    codec=Codec.NONE,
    partition_values={"day": "1"},
    modified=datetime(2024, 1, 1, tzinfo=UTC),
    part=ByteRange(10, 20),
    unread=(Unread(start=10, end=20, lines_before=3),),
)
RECORD = replace(record_with(FILE, lines=3, rows=2, blank=1, unit="u.0"), rescued={"x": 1})


@pytest.mark.parametrize("value", [FILE, RECORD], ids=["file", "record"])
def test_a_file_comes_back_from_a_task_as_it_was_sent(value: SourceFile | SourceRecord) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize("value", [FILE, RECORD], ids=["file", "record"])
def test_a_file_is_sent_without_a_search_for_its_fields(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one for each of many small files, and the search would be most of its time."""

    def searched(_self: object, *_state: object) -> None:
        raise AssertionError("the fields of the class were searched for")

    monkeypatch.setattr(type(value), "__getstate__", searched)
    monkeypatch.setattr(type(value), "__setstate__", searched)
    assert pickle.loads(pickle.dumps(value)) == value
