"""Trouble of the library becomes an error of ours, without its secrets."""

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.exceptions import GenericError, PermissionDeniedError, UnauthenticatedError

from lakebed.errors import NoExclusiveCreate, StoreDenied, StoreFull, StoreUnavailable
from lakebed.layout import CREATE_ONLY_PROOF
from lakebed.storage.objects import facts_of
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store, prove
from tests.support.stores import remote

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
    "create": ("put", lambda store, _: remote(store).create("x", b"1")),
    "replace": ("put", lambda store, _: remote(store).replace("x", b"1")),
    "delete": ("delete", lambda store, _: store.delete("x")),
    "move": ("rename", lambda store, _: remote(store).move("x", "y", size=1)),
    "upload": (
        "put",
        lambda store, file: remote(store).upload(
            "x", file, part_size=9, multipart=True, max_parts=1
        ),
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


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [
        (errno.ENOSPC, StoreFull, "free some"),
        (errno.EACCES, StoreDenied, "permission denied"),
        (errno.EROFS, StoreDenied, "read-only"),
        (errno.EIO, StoreUnavailable, "check it with dmesg"),
    ],
)
@pytest.mark.parametrize("way", ["create", "replace", "move", "upload"])
def test_trouble_of_a_local_disk_becomes_ours_on_every_way_to_write(
    store, tmp_path, monkeypatch, way, number, error, words
):
    """W16."""

    def fail(_handle: int) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "file").write_bytes(b"1")
    store.create("x/a", b"1")
    monkeypatch.setattr(os, "fsync", fail)
    writes: dict[str, Callable[[], object]] = {
        "create": lambda: store.create("x/b", b"1"),
        "replace": lambda: store.replace("x/b", b"1"),
        "move": lambda: store.move("x/a", "x/b", size=1),
        "upload": lambda: store.upload(
            "x/b", tmp_path / "file", part_size=9, multipart=True, max_parts=1
        ),
    }
    with pytest.raises(error, match=words) as caught:
        writes[way]()
    assert type(caught.value) is error
    assert "/table/x/" in str(caught.value)
    left = [one.name for one in (tmp_path / "table/x").iterdir()]
    assert left == ["a"], "nothing half-written has a name"


def test_a_file_system_without_hard_links_is_named_with_the_way_out(store, monkeypatch):
    def refuse(_source: object, _target: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(NoExclusiveCreate, match=r"no hard links .* ext4, XFS") as caught:
        store.create("x", b"1")
    assert str(store.local_root) in str(caught.value)


class OthersProveToo(Store):
    """Another process removes the object of its own proof right after ours was read."""

    def get(self, path: str) -> bytes | None:
        body = super().get(path)
        if path == CREATE_ONLY_PROOF:
            self.delete(path)
        return body


def left(root):
    return [each.name for each in root.iterdir()]


def test_a_store_is_not_blamed_for_what_another_process_removes(tmp_path):
    prove(OthersProveToo(str(tmp_path), StorageOptions()), CREATE_ONLY_PROOF)
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('"0x8DC1A2B3C4D5E6F"', "0x8DC1A2B3C4D5E6F"),
        ("0x8DC1A2B3C4D5E6F", "0x8DC1A2B3C4D5E6F"),
        ('"9b2cf535f27731c974343645a3985328-2"', '"9b2cf535f27731c974343645a3985328-2"'),
        ('"0f343b0931126a20f133d67c2b018a3b"', '"0f343b0931126a20f133d67c2b018a3b"'),
        (None, None),
    ],
)
def test_only_the_quotes_of_azure_are_left_out(given, kept):
    when = datetime(2024, 1, 1, tzinfo=UTC)
    meta = {"path": "a", "size": 1, "e_tag": given, "last_modified": when}
    assert facts_of(meta).etag == kept
