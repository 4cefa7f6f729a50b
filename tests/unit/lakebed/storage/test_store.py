"""The door to the object stores, over a real local folder."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.exceptions import GenericError, PermissionDeniedError, UnauthenticatedError

from lakebed.errors import (
    ConfigInvalid,
    ObjectChanged,
    ObjectMissing,
    StoreDenied,
    StoreFull,
    StoreUnavailable,
)
from lakebed.storage import objects
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import AlreadyThere, Created, ObjectFacts, Reader, Store, local_path
from tests.support.builders import no_options, put
from tests.support.stores import local


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return local(tmp_path / "table")


@pytest.fixture
def root(store: Store) -> Path:
    assert store.local_root is not None
    return store.local_root


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
    with pytest.raises(ValueError, match="illegal"):
        store.head("../secret")


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


def test_folders_right_below_a_prefix_are_listed(store):
    for path in ("_blizzard/a/journal/1", "_blizzard/b/x", "_blizzard/top", "other/c/x"):
        store.create(path, b"")
    assert sorted(store.folders("_blizzard")) == ["_blizzard/a", "_blizzard/b"]
    assert store.folders("nowhere") == []


# ------------------------------------------------------------------------------ streaming


def listed_object(store: Reader, path: str) -> dict[str, Any]:
    facts = store.head(path)
    assert facts is not None
    return {"size": facts.size, "etag": facts.etag}


def test_an_object_is_streamed_as_it_was_listed(store, monkeypatch):
    monkeypatch.setattr(objects, "DOWNLOAD_CHUNK", 1000)
    body = os.urandom(25_000)
    store.create("a.ndjson", body)
    pieces = list(store.stream("a.ndjson", **listed_object(store, "a.ndjson")))
    assert b"".join(pieces) == body
    assert len(pieces) > 1


def replaced(path: Path) -> None:
    new = path.with_name("new")
    new.write_bytes(b"B" * path.stat().st_size)
    new.rename(path)


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def shortened(path: Path) -> None:
    os.truncate(path, 3)


@pytest.mark.parametrize("change", [replaced, grown, shortened])
def test_an_object_that_is_not_the_listed_one_is_refused(store, root, change):
    """D17."""
    put(root, "a.ndjson", b"A" * 10)
    before = listed_object(store, "a.ndjson")
    change(root / "a.ndjson")
    with pytest.raises(ObjectChanged, match=r"a\.ndjson"):
        list(store.stream("a.ndjson", **before))


def test_an_object_that_is_gone_is_missing_by_name(store, root):
    """L05."""
    put(root, "a.ndjson", b"A" * 10)
    before = listed_object(store, "a.ndjson")
    (root / "a.ndjson").unlink()
    with pytest.raises(ObjectMissing, match=r"a\.ndjson"):
        list(store.stream("a.ndjson", **before))


@pytest.mark.parametrize("change", [replaced, grown, Path.unlink])
def test_an_object_that_changes_while_it_is_read_is_refused_at_the_end(
    store, root, change, monkeypatch
):
    """D17: a part of a file is never taken for the whole."""
    monkeypatch.setattr(objects, "DOWNLOAD_CHUNK", 1000)
    put(root, "a.ndjson", b"A" * 100_000)
    pieces = store.stream("a.ndjson", **listed_object(store, "a.ndjson"))
    next(pieces)
    change(root / "a.ndjson")
    with pytest.raises((ObjectChanged, ObjectMissing), match=r"later batch|has disappeared"):
        list(pieces)


class Pieces:
    """An answer of a store whose connection ends early without an error."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    def stream(self, min_chunk_size: int) -> Any:
        return iter(self.pieces)


@pytest.mark.parametrize("pieces", [(b"12345",), (b"12345", b"6789012"), ()])
def test_a_connection_that_ends_early_or_gives_too_much_is_no_success(
    store, root, monkeypatch, pieces
):
    """L14."""
    put(root, "a.ndjson", b"1234567890")
    before = listed_object(store, "a.ndjson")
    monkeypatch.setattr(obstore, "get", lambda *_given, **_named: Pieces(*pieces))
    with pytest.raises(ObjectChanged):
        list(remote(store).stream("a.ndjson", **before))


def test_a_read_says_which_object_it_means(store, root, monkeypatch):
    """D17: remote stores check the e-tag themselves, if they are told it."""
    put(root, "a.ndjson", b"1234567890")
    before = listed_object(store, "a.ndjson")
    asked: list[object] = []

    def get(_store: object, _path: str, *, options: dict[str, object]) -> Pieces:
        asked.append(options.get("if_match"))
        return Pieces(b"1234567890")

    monkeypatch.setattr(obstore, "get", get)
    list(remote(store).stream("a.ndjson", **before))
    assert asked == [before["etag"]]


# ------------------------------------------------------------------------------ listing


def test_everything_below_a_prefix_is_listed_and_nothing_beside_it(store):
    for path in ("a/1", "a/b/2", "ab/3", "c"):
        store.create(path, b"x")
    assert sorted(facts.path for facts in store.objects("a")) == ["a/1", "a/b/2"]
    assert len(list(store.objects())) == 4


def test_a_listing_can_begin_after_a_name(store):
    for path in ("a/1", "a/2", "a/3"):
        store.create(path, b"x")
    assert sorted(facts.path for facts in store.objects("a", after="a/1")) == ["a/2", "a/3"]


def test_a_root_that_is_not_there_is_an_error_and_not_empty(tmp_path):
    """L10."""
    with pytest.raises(ObjectMissing, match="nowhere"):
        Reader(str(tmp_path / "nowhere"), no_options())


def test_a_root_that_vanishes_later_is_an_error_and_not_empty(tmp_path):
    """L10: an unmounted disk must not look like an empty one."""
    reader = local(tmp_path / "mount")
    (tmp_path / "mount").rmdir()
    with pytest.raises(ObjectMissing, match="mount"):
        list(reader.objects())


def test_a_root_that_is_a_file_is_an_error_that_says_how_to_name_it(tmp_path):
    """HOLES L10: the pattern means just this file."""
    (tmp_path / "f.log").write_bytes(b"")
    with pytest.raises(ObjectMissing, match="a file, not a folder") as refused:
        Reader(str(tmp_path / "f.log"), no_options())
    assert f"such as {tmp_path}/[f].log" in str(refused.value)


@pytest.mark.parametrize("trouble", [GenericError("503 Slow Down"), FileNotFoundError("vanished")])
def test_a_listing_that_breaks_off_is_an_error_and_never_short(store, monkeypatch, trouble):
    """L10."""
    store.create("a", b"x")
    page = next(iter(obstore.list(store._store)))

    def list_some(*_given: object, **_named: object) -> Any:
        yield page
        raise trouble

    monkeypatch.setattr(obstore, "list", list_some)
    with pytest.raises(StoreUnavailable) as caught:
        list(store.objects())
    assert caught.value.retryable


# ------------------------------------------------------------------------------ trouble


def remote(store: Store) -> Store:
    """Take a local store for a remote one, which is read through obstore."""
    store.local_root = None
    return store


TROUBLES = [
    (GenericError("Unable to open: Permission denied (os error 13)"), StoreDenied),
    (PermissionDeniedError("403"), StoreDenied),
    (UnauthenticatedError("401"), StoreDenied),
    (PermissionError(13, "Permission denied"), StoreDenied),
    (GenericError("Unable to copy data to file: No space left (os error 28)"), StoreFull),
    (OSError(28, "No space left on device"), StoreFull),
    (GenericError("Unable to create file: Read-only file system (os error 30)"), StoreDenied),
    (GenericError("503 Slow Down"), StoreUnavailable),
    (OSError("connection reset"), StoreUnavailable),
]

WAYS: dict[str, tuple[str, Callable[[Store, Path], object]]] = {
    "get": ("get", lambda store, _: store.get("x")),
    "head": ("head", lambda store, _: remote(store).head("x")),
    "fetch": ("get", lambda store, _: store.fetch("x")),
    "stream": ("get", lambda store, _: list(remote(store).stream("x", size=1, etag="e"))),
    "list": ("list", lambda store, _: list(store.objects())),
    "folders": ("list_with_delimiter", lambda store, _: store.folders("x")),
    "create": ("put", lambda store, _: store.create("x", b"1")),
    "replace": ("put", lambda store, _: store.replace("x", b"1")),
    "delete": ("delete", lambda store, _: store.delete("x")),
    "move": ("rename", lambda store, _: store.move("x", "y", size=1)),
    "upload": (
        "put",
        lambda store, file: store.upload("x", file, part_size=9, multipart=True, max_parts=1),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("trouble", "error"), TROUBLES)
def test_the_librarys_trouble_becomes_ours_on_every_way(
    store, tmp_path, monkeypatch, way, trouble, error
):
    """W16."""
    call, use = WAYS[way]

    def fail(*_given: object, **_named: object) -> Any:
        raise trouble

    monkeypatch.setattr(obstore, call, fail)
    (tmp_path / "file").write_bytes(b"1")
    with pytest.raises(error) as caught:
        use(store, tmp_path / "file")
    assert type(caught.value) is error
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_that_a_library_quotes_never_leaves_the_door(tmp_path, monkeypatch, way):
    """W17."""
    options = StorageOptions({"AWS_SECRET_ACCESS_KEY": "hunter2-very-secret", "token": "t0ken-xyz"})
    store = Store(str(tmp_path), options)
    call, use = WAYS[way]

    def fail(*_given: object, **_named: object) -> Any:
        raise GenericError(
            "GET http://h/?sig=hunter2-very-secret&t=t0ken-xyz failed\nDebug: hunter2"
        )

    monkeypatch.setattr(obstore, call, fail)
    (tmp_path / "file").write_bytes(b"1")
    with pytest.raises(StoreUnavailable) as caught:
        use(store, tmp_path / "file")
    shown = f"{caught.value} {store!r} {options!r} {caught.value.facts}"
    assert "hunter2" not in shown
    assert "t0ken" not in shown
    assert "failed" in shown


def test_a_full_disk_can_be_tried_again_and_a_refusal_cannot():
    """W16."""
    assert StoreFull.retryable
    assert not StoreDenied.retryable


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


# ------------------------------------------------------------------------------ in order

ODD = ["a/x", "a/y", "a.b", "a-1", "b/c/d", "b/c.d", "z", "ü/ü", "a b", "a%2Fb", "q?", "x*[1]"]


def test_a_local_disk_is_listed_in_the_order_in_which_stores_list(store):
    for path in ODD:
        store.create(path, b"x")
    assert [facts.path for facts in store.in_order()] == sorted(ODD)
    assert list(store.in_order()) == sorted(store.objects(), key=lambda facts: facts.path)


@pytest.mark.parametrize("after", [*ODD, "a", "b/", "b/c", "b/c/\U0010ffff", "zz"])
def test_a_listing_in_order_can_begin_after_any_name(store, after):
    for path in ODD:
        store.create(path, b"x")
    expected = sorted(path for path in ODD if path > after)
    assert [facts.path for facts in store.in_order(after=after)] == expected
    below = [facts.path for facts in store.in_order("b", after=after)]
    assert below == [path for path in expected if path.startswith("b/")]


def test_what_the_library_is_still_writing_is_not_listed_and_neither_is_a_link_to_nowhere(
    store, root
):
    store.create("a", b"x")
    (root / "b#1").write_bytes(b"x")
    (root / "c").symlink_to(root / "nowhere")
    assert [facts.path for facts in store.in_order()] == ["a"]


def test_a_named_pipe_is_not_waited_for(store, root):
    """Whoever opens one waits for its writer, in a folder of files perhaps for ever."""
    store.create("a", b"x")
    os.mkfifo(root / "b")
    (root / "c").symlink_to(root / "b")
    found: list[str] = []
    look = threading.Thread(
        target=lambda: found.extend(facts.path for facts in store.in_order()), daemon=True
    )
    look.start()
    look.join(60)
    assert not look.is_alive()
    assert found == ["a"]


def test_a_folder_that_is_not_there_is_empty_and_a_root_that_is_gone_is_an_error(store, root):
    """L10."""
    assert list(store.in_order("nowhere")) == []
    root.rmdir()
    with pytest.raises(ObjectMissing):
        list(store.in_order())


def test_a_folder_that_vanishes_while_it_is_listed_fails_the_listing(store, root):
    """L10."""
    for path in ("a/1", "b/1"):
        store.create(path, b"x")
    listing = store.in_order()
    next(listing)
    (root / "b" / "1").unlink()
    (root / "b").rmdir()
    with pytest.raises(StoreUnavailable, match="vanished"):
        list(listing)


def test_a_folder_that_cannot_be_read_fails_the_listing(store, root, monkeypatch):
    """L10."""
    store.create("a/1", b"x")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("a"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(StoreDenied):
        list(store.in_order())


def test_a_range_of_an_object_is_read_and_a_missing_one_is_none(store):
    store.create("a", b"0123456789")
    assert store.get_range("a", start=3, length=4) == b"3456"
    assert store.get_range("b", start=3, length=4) is None
