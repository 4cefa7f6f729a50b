"""Object names, built and parsed in one place."""

import pytest

from lakebed import layout
from lakebed.clock import uuid7

NAME = uuid7(1_704_067_200_000, bytes(10))


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000001.snapshot.json",
        "00000000000000000001.started.json",
        "00000000000000000001.json#1",
        "00000000000000000001.json.tmp",
        "1.json",
        "000000000000000000001.json",
        "readme.json",
    ],
)
def test_whatever_else_stands_in_a_journal_folder_is_no_entry(name):
    assert layout.entry_sequence(f"_blizzard/p/journal/{name}") is None


@pytest.mark.parametrize("name", ["", "_x", ".x", "a/b", "a b", "ü", "x" * 101, "a\n", ".."])
def test_a_pipeline_name_that_could_leave_its_folder_is_refused(name):
    assert not layout.PIPELINE_NAME.fullmatch(name)


def test_documents_have_the_names_that_both_programs_know():
    assert layout.protocol(3) == "_blizzard/protocol/3.json"
    assert layout.receipt("p") == "_blizzard/p/receipt.json"
    assert layout.journal_entry("p", 3) == "_blizzard/p/journal/00000000000000000003.json"
    assert layout.log_version(3) == "_delta_log/00000000000000000003.json"


def test_transactions_of_two_journals_or_pipelines_never_share_a_name():
    names = {
        name
        for pipeline in ("a", "b")
        for journal in ("1", "2")
        for name in (
            layout.journal_transaction(pipeline, journal),
            layout.digest_transaction(pipeline, journal),
        )
    } | {layout.pipeline_transaction("a"), layout.pipeline_transaction("b")}
    assert len(names) == 10


ID = "0190b4f3-1234-7abc-8def-001122334455"


@pytest.mark.parametrize(
    "path",
    [
        f"_staging/held/{ID}.meta.json",
        f"_staging/pending/{ID}.json",
        f"_staging/pending/deep/{ID}.meta.json",
        f"{ID}.meta.json",
    ],
)
def test_whatever_else_stands_around_is_no_waiting_meta(path):
    assert not layout.is_meta(path)


@pytest.mark.parametrize(
    "path",
    [
        f"_blizzard/p/outbox/{ID}.parquet",
        f"_delta_log/{ID}.parquet",
        f".hidden/{ID}.parquet",
        "part-00000-0190b4f3-1234-7abc-8def-001122334455-c000.snappy.parquet",
        "0190b4f3-1234-4abc-8def-001122334455.parquet",
        f"{ID}.parquet.tmp",
    ],
)
def test_whatever_else_stands_in_a_table_is_no_data_file_of_ours(path):
    assert layout.file_id(path) is None


@pytest.mark.parametrize(
    "name", ["failures-20240131-090507.ndjson", "x.ndjson", f"failures-1-2-{NAME}.ndjson", ""]
)
def test_whatever_else_stands_in_a_dead_letter_folder_is_no_queue(name):
    assert not layout.is_dead_letters(f"_blizzard/p/dlq/{name}")


def test_only_the_outbox_of_the_pipeline_itself_gives_final_names():
    file = layout.data_file({"date": "2024-01-01"}, NAME)
    assert layout.outbox_file("a", layout.outbox("a", file)) == file
    assert layout.outbox_file("b", layout.outbox("a", file)) is None
    assert layout.outbox_file("a", "_blizzard/a/outbox/notes.txt") is None
    assert layout.outbox_file("a", file) is None


@pytest.mark.parametrize(
    ("path", "single"),
    [
        (layout.stranger_transaction("date=1/part-0.parquet"), True),
        (layout.stranger_transaction("01a1e666-cabe-77d5-8bf2-6709e0ac6c6c.parquet"), True),
        (layout.held_transaction("01a1e666-cabe-77d5-8bf2-6709e0ac6c6c.parquet"), False),
        (layout.SCAN_TRANSACTION, False),
        (layout.pipeline_transaction("file"), False),
        ("somebody/else", False),
    ],
)
def test_transactions_of_single_files_are_told_from_others(path, single):
    assert layout.is_stranger_transaction(path) is single
