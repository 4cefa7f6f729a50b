"""Object names, built and parsed in one place, and spellings of one location."""

from pathlib import Path

import pytest

from lakebed import layout
from lakebed.clock import uuid7
from lakebed.locations import ByPlace, place_of, written_out

NAME = uuid7(1_704_067_200_000, bytes(10))


@pytest.mark.parametrize(
    "name",
    [
        "snapshot.json",
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
        (layout.foreign_transaction("date=1/part-0.parquet"), True),
        (layout.foreign_transaction("01a1e666-cabe-77d5-8bf2-6709e0ac6c6c.parquet"), True),
        (layout.held_transaction("01a1e666-cabe-77d5-8bf2-6709e0ac6c6c.parquet"), False),
        (layout.SCAN_TRANSACTION, False),
        (layout.pipeline_transaction("file"), False),
        ("somebody/else", False),
    ],
)
def test_transactions_of_single_files_are_told_from_others(path, single):
    assert layout.is_foreign_transaction(path) is single


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/x", "/x/"),
        ("/x", "file:///x"),
        ("/x y", "file:///x%20y/"),
        ("/x", "file://localhost/x"),
        ("/x#1", "file:///x#1"),
        ("/x", "/y/../x/./"),
        ("~/x", str(Path("~/x").expanduser())),
        ("s3://b/in", "s3://b/in/"),
        ("s3://b", "S3://b/"),
        ("s3://b/a b", "s3://b/a%20b"),
        ("abfs://c@acc.dfs.core.windows.net/in", "abfss://c@acc.dfs.core.windows.net/in/"),
        ("az://c/in", "abfss://c@acc.dfs.core.windows.net/in"),
        ("az://c/in", "https://acc.blob.core.windows.net/c/in"),
        ("wasbs://c@acc.blob.core.windows.net/in", "abfss://c@acc.dfs.core.windows.net/in"),
    ],
)
def test_spellings_of_one_place_are_the_same(one: str, other: str) -> None:
    """HOLES L26, D19: a spelling is no other folder."""
    assert place_of(one).same(place_of(other))
    assert place_of(other).meets(place_of(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/x", "/xy"),
        ("/x", "s3://x"),
        ("s3://b/in", "s3://b2/in"),
        ("s3://b/in", "gs://b/in"),
        ("s3://b/in", "s3://b/input"),
        ("s3://b/a", "s3://b/A"),
        ("https://one.blob.core.windows.net/c/in", "abfss://c@two.dfs.core.windows.net/in"),
        ("abfss://c@one.dfs.core.windows.net/in", "abfss://c@two.dfs.core.windows.net/in"),
    ],
)
def test_other_places_have_nothing_in_common(one: str, other: str) -> None:
    """HOLES D19: a common beginning of names is no common folder."""
    assert not place_of(one).meets(place_of(other))
    assert not place_of(other).meets(place_of(one))


def test_a_folder_holds_itself_and_what_lies_in_it() -> None:
    """HOLES D19: nested folders share files; neighbours do not."""
    outer, inner = place_of("s3://b/in"), place_of("s3a://b/in/2024/")
    assert outer.holds(inner)
    assert outer.holds(outer)
    assert not inner.holds(outer)
    assert inner.meets(outer)
    assert place_of("s3://b").holds(outer)
    assert place_of("/").holds(place_of("/x"))


def test_a_link_and_a_relative_path_are_the_folder_that_they_lead_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOLES L26: the same folder, reached another way."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    assert place_of("link").same(place_of(str(tmp_path / "real")))
    assert place_of("./real").same(place_of(f"file://{tmp_path}/link/"))
    assert written_out("real") == str(tmp_path / "real")
    assert written_out("s3://b/in") == "s3://b/in"
    assert written_out("/x/../y") == "/x/../y"


def test_values_by_place_know_one_place_by_all_its_names() -> None:
    held: ByPlace[str] = ByPlace()
    assert held.setdefault(place_of("az://c/in", account="lake"), "first") == "first"
    assert held.setdefault(place_of("abfss://c@lake.dfs.core.windows.net/in"), "x") == "first"
    assert held.setdefault(place_of("az://c/in", account="other"), "second") == "second"
    assert held.get(place_of("https://other.blob.core.windows.net/c/in")) == "second"
    assert held.get(place_of("az://d/in")) is None
    assert list(held.values()) == ["first", "second"]
