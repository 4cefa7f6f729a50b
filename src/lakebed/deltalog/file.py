"""Reading one version of a Delta log. A checkpoint is read by another module, which loads Arrow."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from lakebed.deltalog.file_names import Naming
from lakebed.deltalog.removals import RemovalNote, moment
from lakebed.documents.reading import parse_json
from lakebed.errors import TableUnreadable
from lakebed.layout import OUR_TRANSACTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """What one file of a log says of data files, and the transactions that it carries."""

    paths: frozenset[str]
    """The files that it names, by their names in the store: data, and the change data feed's."""
    transactions: Mapping[str, int]
    at: datetime | None = None
    """When it was written, by the clock of whoever did; None where it does not say."""
    removed_at: frozenset[datetime | None] = frozenset()
    """When its removals say that they were made; None among them for one that does not say."""
    changes_metadata: bool = False
    note: RemovalNote | None = None
    """What a commit of penguin's says of the removals before it."""


@contextmanager
def lines_of(path: str) -> Iterator[None]:
    """Raise an error that names a file of a log if what is done with its lines stumbles over them.

    A line may be torn, nested too deep, or have a number where an object belongs.
    """
    try:
        yield
    except (ValueError, AttributeError, KeyError, TypeError) as torn:
        raise TableUnreadable("a line of the Delta log cannot be read", path=path) from torn


def read_version(body: bytes, path: str, named: Naming = str) -> Actions:
    """Read one version of a log; one that cannot be read is an error, never an empty one."""
    paths: set[str] = set()
    transactions: dict[str, int] = {}
    removed_at: set[datetime | None] = set()
    changes_metadata = False
    info: dict[str, Any] = {}
    for line in body.splitlines():
        if not line.strip():
            continue
        with lines_of(path):
            match parse_json(line):
                case {"add": {"path": str(name)}} | {"cdc": {"path": str(name)}}:
                    paths.add(named(unquote(name)))
                case {"remove": {"path": str(name)} as removal}:
                    paths.add(named(unquote(name)))
                    removed_at.add(moment(removal.get("deletionTimestamp")))
                case {"metaData": _}:
                    changes_metadata = True
                case {"txn": {"appId": str(app_id), "version": int(number)}}:
                    if app_id.startswith(OUR_TRANSACTIONS):
                        transactions[app_id] = number
                case {"commitInfo": dict(info)}:
                    pass
    return Actions(
        paths=frozenset(paths),
        transactions=transactions,
        at=moment(info.get("timestamp")),
        removed_at=frozenset(removed_at),
        changes_metadata=changes_metadata,
        note=RemovalNote.of(info),
    )
