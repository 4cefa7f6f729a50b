"""The door to the object stores, over a real local folder."""

import os
from pathlib import Path

import obstore
import pytest

from lakebed.errors import ConfigInvalid, ObjectChanged, ObjectMissing, StoreDenied
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, ObjectFacts, Reader, Store, local_path
from tests.support.builders import no_options, put

# ------------------------------------------------------------------------------ one object


@pytest.mark.parametrize(
    "name", ["a", "x y", "ü#?.json", "a%20b", 'q"*[b]{c}|<d>', "sub/folder/~", "a\\b`^", "link"]
)
@pytest.mark.parametrize("nanoseconds", [1_700_000_000_123_456_789, 1_999, 0, -1_500, 1 << 62])
def test_a_look_at_a_local_file_says_what_the_library_says(
    store: Store, root: Path, name: str, nanoseconds: int
):
    """Its e-tags are in journals that are years old, and in what the library lists today."""
    if name == "link":
        (root / "far.ndjson").write_bytes(b"abc")
        (root / name).symlink_to("far.ndjson")
    else:
        put(root, name, b"abcd")
    os.utime(root / name, ns=(0, nanoseconds))
    theirs = obstore.head(store._store, name)
    (listed,) = [facts for facts in store.objects() if facts.path == name]

    assert store.head(name) == listed
    assert listed == ObjectFacts(
        path=theirs["path"],
        size=theirs["size"],
        etag=theirs["e_tag"],
        modified=theirs["last_modified"],
    )


def test_what_is_no_file_is_not_there(store: Store, root: Path):
    put(root, "folder/file", b"x")
    os.mkfifo(root / "pipe")
    (root / "nowhere").symlink_to("gone")
    for path in ("folder", "none", "folder/file/below", "pipe", "nowhere"):
        assert store.head(path) is None


def test_no_look_leads_out_of_the_store(store: Store, root: Path):
    put(root.parent, "secret", b"x")
    assert store.head("../secret") is None


def test_a_file_that_may_not_be_looked_at_is_an_error_and_not_missing(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.stat", refuse)
    with pytest.raises(StoreDenied):
        store.head("a")


def test_an_object_is_fetched_with_the_facts_that_a_look_at_it_gives(store):
    assert store.fetch("a/b.json") is None
    store.replace("a/b.json", b"12")
    first = store.fetch("a/b.json")
    assert first == (b"12", store.head("a/b.json"))
    store.replace("a/b.json", b"34")
    assert store.fetch("a/b.json") == (b"34", store.head("a/b.json"))
    assert first[1] != store.head("a/b.json")


def test_a_part_of_an_object_is_read_by_its_bytes(store):
    store.replace("a.parquet", b"0123456789")
    facts = store.head("a.parquet")
    assert store.part("a.parquet", 6, 10, etag=facts.etag) == b"6789"
    assert store.part("a.parquet", 0, 2, etag=None) == b"01"


def test_a_range_of_an_object_is_read_and_a_missing_one_is_none(store):
    store.create("a", b"0123456789")
    assert store.get_range("a", start=3, length=4) == b"3456"
    assert store.get_range("b", start=3, length=4) is None


def test_a_part_of_an_object_that_was_replaced_is_refused(store, root):
    store.replace("a.parquet", b"0123456789")
    seen = store.head("a.parquet").etag
    store.replace("a.parquet", b"abcdefghijkl")
    with pytest.raises(ObjectChanged):
        store.part("a.parquet", 6, 10, etag=seen)
    with pytest.raises(ObjectChanged):
        store.part("a.parquet", 6, 13, etag=None)  # shorter than it was said to be
    (root / "a.parquet").unlink()
    with pytest.raises(ObjectMissing):
        store.part("a.parquet", 6, 10, etag=seen)


def test_a_missing_object_is_none_and_no_error(store):
    assert store.get("no/such.json") is None
    assert store.head("no/such.json") is None


def test_create_makes_an_object_once_and_says_so(store):
    assert store.create("a/b.json", b"first") == Created()
    assert store.create("a/b.json", b"second") == AlreadyThere()
    assert store.get("a/b.json") == b"first"


def test_replace_writes_whatever_stood_there_before(store):
    store.replace("receipt.json", b"1")
    store.replace("receipt.json", b"22")
    assert store.get("receipt.json") == b"22"
    facts = store.head("receipt.json")
    assert facts is not None
    assert (facts.path, facts.size) == ("receipt.json", 2)


def test_a_moved_object_has_the_new_name_only_and_moving_it_again_changes_nothing(store):
    """D02."""
    store.create("outbox/date=1/x", b"12")
    assert store.move("outbox/date=1/x", "date=1/x", size=2) is True
    assert (store.get("outbox/date=1/x"), store.get("date=1/x")) == (None, b"12")
    assert store.move("outbox/date=1/x", "date=1/x", size=2) is False
    assert store.get("date=1/x") == b"12"


def test_a_copy_that_was_made_before_its_source_was_deleted_is_made_again(store):
    """D02: stores that cannot rename copy and delete, and may die in between."""
    store.create("outbox/x", b"12")
    store.create("x", b"12")
    assert store.move("outbox/x", "x", size=2) is True
    assert (store.get("outbox/x"), store.get("x")) == (None, b"12")


@pytest.mark.parametrize("there", [None, b"1"])
def test_an_object_that_is_in_neither_place_whole_is_missing_by_name(store, there):
    if there is not None:
        store.create("x", there)
    with pytest.raises(ObjectMissing, match="outbox/x"):
        store.move("outbox/x", "x", size=2)


def test_deleting_what_is_gone_is_no_error(store):
    store.create("x", b"1")
    store.delete("x")
    store.delete("x")
    assert store.get("x") is None


@pytest.mark.parametrize("multipart", [True, False])
def test_an_upload_brings_the_whole_file_and_gives_the_stores_facts(store, tmp_path, multipart):
    body = os.urandom(100_000)
    (tmp_path / "f").write_bytes(body)
    facts = store.upload(
        "date=1/f.parquet", tmp_path / "f", part_size=10_000, multipart=multipart, max_parts=2
    )
    assert store.get("date=1/f.parquet") == body
    assert facts == store.head("date=1/f.parquet")
    assert facts.size == 100_000


@pytest.mark.parametrize(("part_size", "parts"), [(1 << 20, 3), (1_500_000, 2), (4 << 20, 1)])
def test_each_part_of_an_upload_is_told_once_however_it_is_read(store, tmp_path, part_size, parts):
    body = os.urandom((5 << 20) // 2)
    (tmp_path / "f").write_bytes(body)
    taken: list[int] = []
    store.upload(
        "f",
        tmp_path / "f",
        part_size=part_size,
        multipart=True,
        max_parts=2,
        part_taken=lambda: taken.append(1),
    )
    assert store.get("f") == body
    assert len(taken) == parts


def test_folders_right_below_a_prefix_are_listed(store):
    for path in ("_blizzard/a/journal/1", "_blizzard/b/x", "_blizzard/top", "other/c/x"):
        store.create(path, b"")
    assert sorted(store.folders("_blizzard")) == ["_blizzard/a", "_blizzard/b"]
    assert store.folders("nowhere") == []


# ------------------------------------------------------------------------------ durability


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    real = os.fsync
    paths: list[str] = []

    def fsync(handle: int) -> None:
        paths.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return paths


def test_every_write_to_a_local_disk_is_synced_file_first_then_every_folder(
    store, root, tmp_path, synced
):
    """L01: a power cut after a write does not take it back."""
    expected = [str(root / part) for part in ("a/b/c", "a/b", "a", "")]
    expected[-1] = str(root)
    store.create("a/b/c", b"1")
    assert synced == expected
    synced.clear()
    store.replace("a/b/c", b"2")
    assert synced == expected
    synced.clear()
    (tmp_path / "f").write_bytes(b"3")
    store.upload("a/b/c", tmp_path / "f", part_size=9, multipart=False, max_parts=1)
    assert synced == expected
    store.create("x/y", b"4")
    synced.clear()
    store.move("x/y", "a/b/c", size=1)
    assert synced == expected
    synced.clear()
    store.move("x/y", "a/b/c", size=1)
    assert synced == expected, "an earlier move may have died before it was synced"


# ------------------------------------------------------------------------------ places


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/data/in", Path("/data/in")),
        ("file:///data/in", Path("/data/in")),
        ("file:///data/a%20b/%C3%BC%25", Path("/data/a b/ü%")),
        ("relative/in", Path("relative/in")),
        ("s3://bucket/in", None),
        ("gs://bucket", None),
    ],
)
def test_a_uri_means_a_local_folder_or_a_remote_store(uri, path):
    assert local_path(uri) == path


def test_a_local_path_may_begin_at_home(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert local_path("~/in") == Path("/home/me/in")


def test_a_file_uri_with_escapes_reads_and_writes_the_folder_it_means(tmp_path):
    uri = (tmp_path / "a b%ü").as_uri()
    store = Store(uri, no_options(), make_folder=True)
    store.create("k=1/x", b"1")
    assert (tmp_path / "a b%ü" / "k=1" / "x").read_bytes() == b"1"
    assert store.describe("k=1/x") == f"{uri}/k=1/x"


def test_an_unknown_scheme_is_refused_with_the_ones_that_work():
    with pytest.raises(ConfigInvalid, match="s3://, gs:// or az://"):
        Reader("ftp://host/in", no_options())


def test_plain_http_to_s3_is_a_switch_and_not_a_panic():
    store = Reader("s3://bucket/in", StorageOptions({"AWS_ALLOW_HTTP": "TRUE", "AWS_REGION": "x"}))
    assert store.local_root is None


def test_a_reader_has_no_way_to_write():
    writes = {"create", "replace", "upload", "move", "delete", "sync"}
    assert writes <= set(dir(Store))
    assert not writes & set(dir(Reader))
