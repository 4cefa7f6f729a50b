"""The door to the object stores, over a real local folder."""

import errno
import os
from pathlib import Path
from typing import Any

import obstore
import pytest

from lakebed.errors import (
    ConfigInvalid,
    LakeError,
    ObjectChanged,
    ObjectMissing,
    StoreDenied,
    StoreUnavailable,
)
from lakebed.storage.options import ObjectFacts
from lakebed.storage.remote import local_path
from lakebed.storage.store import AlreadyThere, Created, Reader, Store
from tests.support.builders import no_options, put
from tests.support.stores import local

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


def test_create_makes_an_object_once_and_says_so(store):
    assert store.create("a/b.json", b"first") == Created()
    assert store.create("a/b.json", b"second") == AlreadyThere()
    assert store.get("a/b.json") == b"first"


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


# ------------------------------------------------------------------------------ durability


Calls = list[tuple[str, ...]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, root: Path) -> Calls:
    """Record what reaches the disk, with names relative to the root of the store."""
    made: Calls = []

    def watch(name: str) -> None:
        real = getattr(os, name)

        def call(*given: Any, **named: Any) -> Any:
            where = [
                Path(f"/proc/self/fd/{g}").readlink() if g.__class__ is int else g for g in given
            ]
            made.append((name, *(os.path.relpath(path, root) for path in where)))
            return real(*given, **named)

        monkeypatch.setattr(os, name, call)

    for name in ("fsync", "link", "replace"):
        watch(name)
    return made


FOLDERS = [("fsync", "a/b"), ("fsync", "a"), ("fsync", ".")]


def test_bytes_are_synced_before_their_name_and_every_folder_after_it(store, tmp_path, calls):
    """L01: a power cut leaves every object whole or absent, and none after its write is done."""
    (tmp_path / "f").write_bytes(b"3")
    store.create("a/b/c", b"1")
    assert calls == [("fsync", "a/b/c#1"), ("link", "a/b/c#1", "a/b/c"), *FOLDERS]
    renamed = [("fsync", "a/b/c#1"), ("replace", "a/b/c#1", "a/b/c"), *FOLDERS]
    calls.clear()
    store.replace("a/b/c", b"2")
    assert calls == renamed
    calls.clear()
    store.upload("a/b/c", tmp_path / "f", part_size=9, multipart=False, max_parts=1)
    assert calls == renamed
    store.create("x/y", b"4")
    calls.clear()
    store.move("x/y", "a/b/c", size=1)
    assert calls == [("fsync", "x/y"), ("replace", "x/y", "a/b/c"), *FOLDERS]
    calls.clear()
    store.move("x/y", "a/b/c", size=1)
    assert calls == [("fsync", "a/b/c"), *FOLDERS], "an earlier move may have died before its sync"
    assert [one.name for one in (tmp_path / "table/a/b").iterdir()] == ["c"]


@pytest.mark.parametrize("write", ["create", "replace"])
def test_a_write_takes_away_no_temporary_file_of_another_writer(store, root, monkeypatch, write):
    """Once a name is given, another process may have opened a file by the temporary one."""
    theirs = root / "a.json#1"
    named = {"create": "link", "replace": "replace"}[write]
    give = getattr(os, named)

    def then_another_begins(part: Any, target: Any, **given: Any) -> None:
        give(part, target, **given)
        if write == "replace":
            theirs.write_bytes(b"theirs")

    monkeypatch.setattr(os, named, then_another_begins)
    getattr(store, write)("a.json", b"ours")
    assert (root / "a.json").read_bytes() == b"ours"
    assert theirs.exists() is (write == "replace")


def test_a_move_that_fails_leaves_the_object(store, root):
    store.create("a", b"1")
    (root / "b").mkdir()
    (root / "b/in").write_bytes(b"")
    with pytest.raises(LakeError):
        store.move("a", "b", size=1)
    assert store.get("a") == b"1"


def test_the_folder_of_a_new_store_is_synced_with_those_above_it(tmp_path, calls, root):
    local(tmp_path / "new/er")
    made = [os.path.relpath(folder, root) for folder in (tmp_path / "new", tmp_path)]
    assert calls == [("fsync", folder) for folder in made]


def failing_once(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the next fsync of a name fail; like the kernel, report that once."""
    real, left = os.fsync, [name]

    def fsync(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().name in left:
            left.clear()
            raise OSError(errno.EIO, "Input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)


def test_bytes_that_could_not_be_synced_get_no_name_and_are_written_anew(store, monkeypatch):
    failing_once(monkeypatch, "c#1")
    with pytest.raises(StoreUnavailable):
        store.create("a/c", b"1")
    assert store.get("a/c") is None
    assert store.create("a/c", b"1") == Created()


@pytest.mark.parametrize("again", ["create", "sync", "move"])
def test_a_name_that_could_not_be_synced_is_written_anew(store, root, monkeypatch, calls, again):
    """A second fsync would report success without having written anything."""
    failing_once(monkeypatch, "a")
    if again == "move":
        store.create("b/c", b"1")
    with pytest.raises(StoreUnavailable):
        store.move("b/c", "a/c", size=1) if again == "move" else store.create("a/c", b"1")
    before = (root / "a/c").stat()
    calls.clear()
    if again == "create":
        assert store.create("a/c", b"other") == AlreadyThere()
    elif again == "sync":
        store.sync("a/c")
    else:
        assert not store.move("b/c", "a/c", size=1)
    assert ("replace", "a/c#1", "a/c") in calls
    after = (root / "a/c").stat()
    assert (after.st_ino != before.st_ino, after.st_mtime_ns) == (True, before.st_mtime_ns)
    assert store.get("a/c") == b"1"
    calls.clear()
    store.sync("a/c")
    assert calls == [("fsync", "a/c"), ("fsync", "a"), ("fsync", ".")], "it is on disk now"


def test_a_strangers_file_that_could_not_be_synced_is_written_anew(store, root, monkeypatch, calls):
    (root / "v.json").write_bytes(b"1")
    failing_once(monkeypatch, "v.json")
    with pytest.raises(StoreUnavailable, match="dmesg"):
        store.sync("v.json")
    store.sync("v.json")
    assert ("replace", "v.json#1", "v.json") in calls


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


def test_a_reader_has_no_way_to_write():
    writes = {"create", "replace", "upload", "move", "delete", "sync"}
    assert writes <= set(dir(Store))
    assert not writes & set(dir(Reader))
