import json
from typing import Any

import pytest

from lakebed.documents.pending_meta import EntryName, Meta, decode_meta, encode_meta, entry_named_by
from lakebed.errors import DocumentUnreadable

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
