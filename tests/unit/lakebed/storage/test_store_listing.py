"""Listings and streams of a local folder are whole, or an error."""

import os
import threading
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.exceptions import GenericError

from lakebed.errors import ObjectChanged, ObjectMissing, StoreDenied, StoreUnavailable
from lakebed.storage import objects
from lakebed.storage.store import Reader
from tests.support.builders import no_options, put
from tests.support.stores import local, remote

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
    """HOLES L10."""
    (tmp_path / "f.log").write_bytes(b"")
    with pytest.raises(ObjectMissing, match=r"a file, not a folder; use .* a pattern"):
        Reader(str(tmp_path / "f.log"), no_options())


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
    look.join(300)
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


def listed_object(store: Reader, path: str) -> dict[str, Any]:
    facts = store.head(path)
    assert facts is not None
    return {"size": facts.size, "etag": facts.etag}


def test_an_object_is_streamed_as_it_was_listed(store):
    body = os.urandom(3 * objects.DOWNLOAD_CHUNK)
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
def test_an_object_that_changes_while_it_is_read_is_refused_at_the_end(store, root, change):
    """D17: a part of a file is never taken for the whole."""
    put(root, "a.ndjson", b"A" * (3 * objects.DOWNLOAD_CHUNK))
    pieces = store.stream("a.ndjson", **listed_object(store, "a.ndjson"))
    next(pieces)
    change(root / "a.ndjson")
    with pytest.raises(
        (ObjectChanged, ObjectMissing), match=r"left for a later batch|has disappeared"
    ):
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


def test_a_small_file_is_read_at_once_as_it_would_be_streamed(store, root):
    for body in (b"", b"a", b"line\n" * 100):
        (root / "a.ndjson").write_bytes(body)
        assert store.at_once("a.ndjson", **listed_object(store, "a.ndjson")) == body


@pytest.mark.parametrize("change", [replaced, grown, shortened, Path.unlink])
@pytest.mark.parametrize("moment", ["before", "while"])
def test_a_file_that_is_not_the_listed_one_is_not_read_at_once(
    store, root, change, moment, monkeypatch
):
    put(root, "a.ndjson", b"A" * 100)
    path, facts = root / "a.ndjson", listed_object(store, "a.ndjson")
    if moment == "before":
        change(path)
    else:
        read = os.read

        def reads_and_it_changes(descriptor: int, size: int) -> bytes:
            body = read(descriptor, size)
            change(path)
            return body

        monkeypatch.setattr(os, "read", reads_and_it_changes)
    assert store.at_once("a.ndjson", **facts) is None


def test_what_is_no_file_or_lies_elsewhere_is_not_read_at_once(store, root):
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    put(root.parent, "beside.ndjson", b"{}\n")
    beside = listed_object(Reader(str(root.parent), store.options), "beside.ndjson")
    for name in ("pipe", "folder", "none", "../beside.ndjson", "/etc/passwd", "a//b"):
        assert store.at_once(name, **beside) is None
    assert store.at_once("pipe", size=0, etag=None) is None


def test_a_remote_object_is_not_read_at_once(store, root):
    put(root, "a.ndjson", b"{}\n")
    facts = listed_object(store, "a.ndjson")
    assert remote(store).at_once("a.ndjson", **facts) is None
