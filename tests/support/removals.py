"""Directories of other programs' files, and what other engines commit to their logs."""

import json
import os
import re
import time
from typing import Any

from deltalake.transaction import AddAction, RemoveAction

from lakebed.layout import DELTA_LOG, log_version
from penguin.events.backlog import FilesIgnored, FilesLeftOut
from tests.support.foreign import Directory, Visitor

HOUR = 3600.0
A_DAY = 24 * HOUR
RETENTION = "delta.deletedFileRetentionDuration"


def aged(table: Directory, number: int, days: float, **options: Any) -> str:
    """Write a file that was named and written some days ago."""
    ago = days * A_DAY
    return table.file(number, age=ago, modified=time.time() - ago, **options)


def add(table: Directory, path: str, *, name: str | None = None) -> None:
    """Commit a file as another engine does."""
    size = (table.root / path).stat().st_size
    action = AddAction(name or path, size, {"date": "2024-01-01"}, 0, True, "{}")
    commit(table, [action])


def remove(table: Directory, path: str, *, days_ago: float = 0.0) -> None:
    at = int((time.time() - days_ago * A_DAY) * 1000)
    commit(table, [RemoveAction(path, data_change=True, deletion_timestamp=at)])


def commit(table: Directory, found: list[Any]) -> None:
    delta = table.delta()
    delta.create_write_transaction(found, "append", delta.schema(), partition_by=["date"])


def write_version(table: Directory, *lines: dict[str, Any]) -> None:
    """Write the next version as it is."""
    version = table.delta().version() + 1
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (table.root / log_version(version)).write_text(text)


def checkpoint(table: Directory, *, clean: bool, days_old: float = 0.0) -> None:
    """Write a checkpoint, and remove the versions before it as somebody's clean-up does."""
    ms = int((time.time() - days_old * A_DAY) * 1000)
    write_version(table, {"commitInfo": {"timestamp": ms, "operation": "WRITE"}})
    table.delta().create_checkpoint()
    log = table.root / DELTA_LOG
    last = table.delta().version()
    for version in range(last) if clean else ():
        (table.root / log_version(version)).unlink(missing_ok=True)
    at = time.time() - days_old * A_DAY
    for file in log.iterdir():
        os.utime(file, (at, at))


def date_last(table: Directory, hours_ago: float, *, versions: int = 1) -> None:
    """Let the last versions be from some hours ago, by the store and by what they say."""
    at, last = time.time() - hours_ago * HOUR, table.delta().version()
    for version in range(last - versions + 1, last + 1):
        file = table.root / log_version(version)
        said = f'"commitInfo":{{"timestamp":{int(at * 1000)}'
        file.write_text(re.sub(r'"commitInfo": ?\{"timestamp": ?\d+', said, file.read_text()))
        os.utime(file, (at, at))


def scan(table: Directory, number: int, *, hours_ago: float, versions: int = 1) -> None:
    """Let a penguin commit a new file some hours ago."""
    table.hands.at = time.time() - hours_ago * HOUR
    table.file(number, modified=table.hands.at)
    table.penguin().drain()
    date_last(table, hours_ago, versions=versions)


def take_out(table: Directory, path: str, said: float | None, *, hours_ago: float) -> None:
    """Let another engine add and remove a file; the removal says a time, or none."""
    add(table, path)
    at = None if said is None else int((time.time() - said * HOUR) * 1000)
    if at is None:
        write_version(table, {"remove": {"path": path, "dataChange": True}})
    else:
        commit(table, [RemoveAction(path, data_change=True, deletion_timestamp=at)])
    date_last(table, hours_ago, versions=2)


def trim(table: Directory) -> None:
    """Leave a checkpoint and its version, and nothing else, of a log."""
    table.delta().create_checkpoint()
    log, last = table.root / DELTA_LOG, f"{table.delta().version():020d}"
    for file in log.glob("0*"):
        if not file.name.startswith(last):
            file.unlink()


def begin(table: Directory, retention: str = "interval 14 days") -> None:
    table.file(1)
    table.penguin(properties={RETENTION: retention}).drain()


IGNORED = "ignored"


def left_out(penguin: Visitor) -> dict[str, str]:
    """Return the files that are not committed: each with its code, or that a scan passed it."""
    passed = (path for told in penguin.told(FilesIgnored) for path in told.some)
    left = {path: told.code for told in penguin.told(FilesLeftOut) for path in told.paths}
    return {**dict.fromkeys(passed, IGNORED), **left}


def reason(penguin: Visitor) -> str:
    (told,) = penguin.told(FilesLeftOut)
    return str(told.reason)
