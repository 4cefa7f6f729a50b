"""The documents of the journal, and metas that announce files."""

import hashlib
import json
from dataclasses import fields, replace
from typing import Any

import pytest

from lakebed.documents.entry import (
    DirectoryProtocol,
    Entry,
    Inheritance,
    Receipt,
    decode,
    decode_entry,
    digest,
    digest_number,
    encode,
)
from lakebed.documents.pending_meta import EntryName, Meta, decode_meta, encode_meta, entry_named_by
from lakebed.documents.records import ColumnStatistics, Run
from lakebed.errors import DocumentUnreadable
from lakebed.types import Handoff
from tests.support.builders import ID_AND_NAME, failure, finished_file, record

PATH = "_blizzard/default/journal/00000000000000000001.json"

ENTRY = Entry(
    kind="batch",
    pipeline="default",
    journal="j-1",
    sequence=1,
    run="run-1",
    created="2024-01-01T12:00:00+00:00",
    previous="ab" * 32,
    handoff=Handoff.JOURNAL,
    source_uris={"default": "s3://bucket/in"},
    table_schema=ID_AND_NAME.delta(),
    partition_columns=("date",),
    sources=(
        replace(record("ü/a b.ndjson"), lines=3, blank=1, rows=2, dropped={"x.y": 2}, unit="0.0"),
        record("bad.ndjson", failure=failure(retryable=True, attempts=3)),
    ),
    files=(finished_file("date=2024-01-01/x.parquet"),),
    dlq=("s3://bucket/dlq/failures-20240101-120000-0.ndjson",),
)


def test_an_entry_is_read_as_it_was_written():
    assert decode_entry(encode(ENTRY), PATH) == ENTRY


def test_the_same_entry_is_always_the_same_bytes():
    """L24: a write is known again by its bytes."""
    body = encode(ENTRY)
    assert encode(decode_entry(body, PATH)) == body
    assert body.count(b"\n") == 1
    assert body.endswith(b"}\n")


def test_an_entry_is_plain_json_with_the_names_of_the_books():
    document = json.loads(encode(ENTRY))
    assert document["format"] == 1
    assert document["sources"][0]["path"] == "ü/a b.ndjson"
    assert document["sources"][1]["failure"]["code"] == "bad_json"
    assert document["files"][0]["statistics"]["id"] == {"null_count": 0, "minimum": 1, "maximum": 3}
    assert document["files"][0]["partition_values"] == {"date": "2024-01-01", "region": None}


def test_the_digest_is_the_sha256_of_the_stored_bytes():
    body = encode(ENTRY)
    assert digest(body) == hashlib.sha256(body).hexdigest()


def test_the_number_of_a_digest_is_its_first_63_bits():
    bits = format(int(digest(b"x"), 16), "0256b")
    assert digest_number(digest(b"x")) == int(bits[:63], 2)
    assert digest_number("f" * 64) == 2**63 - 1


TORN = [
    b"",
    b"\n",
    b"null",
    b"[]",
    b"{}",
    encode(ENTRY)[: len(encode(ENTRY)) // 2],
    encode(ENTRY).replace(b'"sequence":1', b'"sequence":"one"'),
    encode(ENTRY).replace(b'"kind":"batch"', b'"kind":"surprise"'),
    b"\x00" * 100,
    b"\xff\xfe",
]


@pytest.mark.parametrize("body", TORN)
def test_a_torn_document_stops_the_run_and_names_the_object(body):
    """D05."""
    with pytest.raises(DocumentUnreadable) as caught:
        decode_entry(body, PATH)
    assert PATH in str(caught.value)
    assert not caught.value.retryable


@pytest.mark.parametrize("body", TORN[:5])
def test_a_torn_protocol_or_receipt_stops_the_run_and_names_the_object(body):
    """D05."""
    with pytest.raises(DocumentUnreadable, match="the/path"):
        decode(DirectoryProtocol, body, "the/path")
    with pytest.raises(DocumentUnreadable, match="the/path"):
        decode(Receipt, body, "the/path")


def test_a_newer_format_is_refused_by_its_number():
    """D05: what a newer program wrote is not guessed at."""
    with pytest.raises(DocumentUnreadable, match="format 7, but this program reads format 1"):
        decode_entry(encode(ENTRY).replace(b'"format":1', b'"format":7'), PATH)
    with pytest.raises(DocumentUnreadable, match="format 2"):
        decode(DirectoryProtocol, encode(DirectoryProtocol(format=2, handoff=Handoff.JOURNAL)), "p")


def test_what_says_something_is_written_whatever_it_is():
    """Zero is no default of a statistic, nor is a text without characters."""
    zeros = {
        "id": ColumnStatistics(null_count=0, minimum=0, maximum=0),
        "name": ColumnStatistics(null_count=0, minimum="", maximum=""),
    }
    file = replace(ENTRY.files[0], statistics=zeros)
    read = decode_entry(encode(replace(ENTRY, files=(file,))), PATH)
    assert read.files[0].statistics == zeros


def test_a_successor_goes_on_with_the_journal_and_repeats_nothing_that_was_done():
    """HOLES D27: whatever an entry says that it does, the one after it does not say again."""
    full = replace(
        ENTRY,
        deleted=("x.parquet",),
        redone=("0190",),
        inherits=Inheritance(pipeline="old", journal="j-0", sequence=3, digest="cd", entries=1),
        heir="later",
        moved="default",
        follows=2,
    )
    after = full.successor("gc", previous="ef" * 32, run="run-2", created=ENTRY.created)
    assert (after.kind, after.sequence, after.previous) == ("gc", 2, "ef" * 32)
    goes_on = {"format", "pipeline", "journal", "handoff", "source_uris", "table_schema"}
    goes_on |= {"partition_columns", "created"}
    says = {"kind", "sequence", "run", "previous"}
    for each in fields(Entry):
        if each.name in goes_on:
            assert getattr(after, each.name) == getattr(full, each.name), each.name
        elif each.name not in says:
            assert not getattr(after, each.name), f"{each.name} is carried on"


def test_runs_are_short_in_an_entry_and_older_entries_have_none() -> None:
    runs = (Run(0, 1, 3, 3), Run(0, None, 2, 5, 700, 1))
    entry = replace(ENTRY, files=(replace(ENTRY.files[0], runs=runs),))
    body = encode(entry)
    assert b'"runs":[[0,1,3,3],[0,null,2,5,700,1]]' in body
    assert decode_entry(body, "x").files[0].runs == runs
    older = body.replace(b'"runs":[[0,1,3,3],[0,null,2,5,700,1]],', b"")
    assert decode_entry(older, "x").files[0].runs == ()


BARE: dict[str, Any] = {
    "filename": "date=2024-01-01/019234ab-cdef-7890.parquet",
    "size": 134217728,
    "record_count": 1000000,
    "partition_values": {"date": "2024-01-01"},
    "source_file": "s3://bucket/input/events.ndjson.gz",
}


def test_a_meta_of_ours_is_read_back_and_names_its_entry():
    meta = Meta(**BARE, source_files=("s3://b/ü",), pipeline="p", journal="j", entry=3)
    body = encode_meta(meta)
    assert decode_meta(body, "m") == meta
    assert entry_named_by(meta) == EntryName("p", "j", 3)
    assert body == encode_meta(decode_meta(body, "m"))


def test_the_keys_of_the_protocol_come_first_and_are_spelled_as_it_spells_them():
    written = json.loads(encode_meta(Meta(**BARE)))
    assert list(written)[:5] == list(BARE)
    assert {key: written[key] for key in BARE} == BARE


def test_a_meta_with_only_the_keys_of_the_protocol_is_another_programs():
    meta = decode_meta(json.dumps(BARE | {"more": 1}).encode(), "m")
    assert entry_named_by(meta) is None
    assert meta.partition_values == {"date": "2024-01-01"}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", json.dumps(BARE | {"size": "x"}).encode()]
)
def test_a_meta_that_cannot_be_read_is_named(body):
    with pytest.raises(DocumentUnreadable, match="_staging/m"):
        decode_meta(body, "_staging/m")
