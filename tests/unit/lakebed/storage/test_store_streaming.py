"""An object is streamed as it was listed, or refused."""

import os
from pathlib import Path
from typing import Any

import obstore
import pytest

from lakebed.errors import ObjectChanged, ObjectMissing
from lakebed.storage import objects
from lakebed.storage.store import Reader
from tests.support.builders import put
from tests.support.stores import remote


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
