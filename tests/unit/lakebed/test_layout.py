"""Object names, built and parsed in one place."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from lakebed import layout
from lakebed.clock import uuid7

NAME = uuid7(1_704_067_200_000, bytes(10))


def test_a_data_file_stands_in_its_partition_folder():
    path = layout.data_file({"date": "2024-01-01", "region": "a/b"}, NAME)
    assert path == f"date=2024-01-01/region=a%2Fb/{NAME}.parquet"


def test_a_data_file_of_a_table_without_partitions_stands_at_the_root():
    assert layout.data_file({}, NAME) == f"{NAME}.parquet"


@pytest.mark.parametrize("sequence", [0, 7, 10**19])
def test_the_number_of_an_entry_is_read_back_from_its_name(sequence):
    path = layout.journal_entry("events", sequence)
    assert path.startswith(layout.journal_folder("events") + "/")
    assert layout.entry_sequence(path) == sequence


def test_entries_sort_by_their_number():
    paths = [layout.journal_entry("p", number) for number in (2, 10, 9, 100)]
    assert [layout.entry_sequence(path) for path in sorted(paths)] == [2, 9, 10, 100]


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


def test_pipelines_are_told_from_the_protocol_folder():
    folders = ["_blizzard/protocol", "_blizzard/b/", "_blizzard/a"]
    assert layout.pipelines(folders) == ["a", "b"]


@pytest.mark.parametrize("name", ["default", "a.b-c_1", "9", "x" * 100])
def test_a_pipeline_name_that_is_one_plain_folder_is_taken(name):
    assert layout.PIPELINE_NAME.fullmatch(name)


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


def test_a_meta_and_a_place_in_the_outbox_are_named_after_the_data_file():
    file = layout.data_file({"date": "2024-01-01"}, UUID(ID))
    assert layout.pending_meta(file) == f"_staging/pending/{ID}.meta.json"
    assert layout.outbox("p", file) == f"_blizzard/p/outbox/date=2024-01-01/{ID}.parquet"
    assert layout.is_meta(layout.pending_meta(file))


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


@pytest.mark.parametrize("folder", ["", "date=2024-01-01/", "a=1/b=2/"])
def test_the_id_of_a_data_file_is_read_back_from_its_name(folder):
    assert layout.file_id(f"{folder}{ID}.parquet") == ID


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


def test_the_number_of_a_protocol_is_read_back_from_its_name():
    assert layout.protocol_number(layout.protocol(12)) == 12
    assert layout.protocol_number("_blizzard/protocol/notes.json") is None


def test_dead_letters_are_named_by_time_and_a_fresh_id():
    name = layout.dead_letters(datetime(2024, 1, 31, 9, 5, 7, tzinfo=UTC), NAME)
    assert name == f"failures-20240131-090507-{NAME}.ndjson"
    assert layout.is_dead_letters(f"{layout.dead_letter_folder('events')}/{name}")


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


def test_a_note_of_a_start_is_told_from_an_entry_and_from_another_journal_s():
    assert layout.started_sequence("a", layout.batch_started("a", 7)) == 7
    assert layout.started_sequence("b", layout.batch_started("a", 7)) is None
    assert layout.started_sequence("a", layout.journal_entry("a", 7)) is None


def test_a_journal_that_is_kept_aside_is_known_by_its_folder():
    assert layout.is_journal_aside(f"{layout.journal_aside('a', 'j-1')}/")
    assert not layout.is_journal_aside(layout.journal_folder("a"))


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
