"""Every file that a Delta log names, added or removed, as far back as the log goes."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from lake.layout import DELTA_LOG, log_version
from lake.storage import Reader
from penguin.errors import TableUnreadable

VERSION_NAME = re.compile(r"(\d{20})\.json")
CHECKPOINT_NAME = re.compile(r"(\d{20})\.checkpoint\.parquet")
OTHER_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")


def named_files(store: Reader) -> frozenset[str]:
    """Name every file that the log adds or removes; a log that cannot be read whole is an error."""
    versions: set[int] = set()
    checkpoints: dict[int, str] = {}
    others: set[int] = set()
    for facts in store.objects(DELTA_LOG):
        name = facts.path.rpartition("/")[2]
        if found := VERSION_NAME.fullmatch(name):
            versions.add(int(found[1]))
        elif found := CHECKPOINT_NAME.fullmatch(name):
            checkpoints[int(found[1])] = facts.path
        elif found := OTHER_CHECKPOINT.fullmatch(name):
            others.add(int(found[1]))
    if not versions and not checkpoints and not others:
        return frozenset()
    last = max(versions | checkpoints.keys() | others)
    base = max(checkpoints, default=-1)
    missing = [number for number in range(base + 1, last + 1) if number not in versions]
    if missing:
        raise TableUnreadable(
            f"version {missing[0]} of the Delta log is not there, and no checkpoint that can be "
            "read stands for it, so which files are in the table is not known",
            table=store.uri,
        )
    names: set[str] = set()
    if base >= 0:
        names.update(_from_checkpoint(store, checkpoints[base]))
    for number in range(base + 1, last + 1):
        names.update(_from_version(store, number))
    return frozenset(map(unquote, names))


def _from_version(store: Reader, number: int) -> Iterator[str]:
    path = log_version(number)
    body = _read(store, path)
    for line in body.splitlines():
        try:
            action: object = json.loads(line) if line.strip() else {}
        except ValueError as torn:
            raise _unreadable(store, path) from torn
        match action:
            case {"add": {"path": str(name)}} | {"remove": {"path": str(name)}}:
                yield name


def _from_checkpoint(store: Reader, path: str) -> Iterator[str]:
    try:
        file = pq.ParquetFile(pa.BufferReader(_read(store, path)))
        table = file.read(columns=["add.path", "remove.path"])
        for kind in table.column_names:
            actions: list[Mapping[str, Any] | None] = table.column(kind).to_pylist()
            yield from (one["path"] for one in actions if one is not None and one["path"])
    except (pa.ArrowException, OSError, KeyError) as cause:
        raise _unreadable(store, path) from cause


def _read(store: Reader, path: str) -> bytes:
    body = store.get(path)
    if body is None:
        raise _unreadable(store, path)
    return body


def _unreadable(store: Reader, path: str) -> TableUnreadable:
    return TableUnreadable("a part of the Delta log cannot be read", path=store.describe(path))
