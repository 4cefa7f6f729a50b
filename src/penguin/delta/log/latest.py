"""The latest version of a table, read without the library and without its data files.

Of the checkpoint only the columns are read that are not about files, so that this costs the same
however many files the table has. A checkpoint of any kind keeps those in its own file or parts; the
sidecars of a V2 checkpoint hold nothing else than data files.

Where anything is not as it must be, nothing is concluded: the library reads the log then, and says
what is wrong with it.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lakebed.dataclass import dataclass
from lakebed.documents.reading import parse_json
from lakebed.errors import ObjectChanged, ObjectMissing
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version, log_version_number
from lakebed.storage.store import ObjectFacts, Reader
from penguin.delta.expiry import Checkpoint, checkpoints
from penguin.delta.log.cache import MOST_ANSWERS, CachedVersion, joined
from penguin.delta.log.table_actions import KINDS, TableActions
from penguin.model.errors import TableUnreadable
from penguin.model.table import TableFacts

CONCURRENT = 16
V2_CHECKPOINT = re.compile(r"(?P<version>\d{20})\.checkpoint\.[0-9a-fA-F-]{36}\.(?:parquet|json)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Where a log is read from: a checkpoint, if there is one, and the versions after it."""

    version: int
    """The last version."""
    checkpoint: Checkpoint | None
    missing: int | None
    """The first version that should be there, and is not."""

    @property
    def first(self) -> int:
        """Return the first version that is not in the checkpoint."""
        return 0 if self.checkpoint is None else self.checkpoint.version + 1


def find_tail(store: Reader) -> Tail | None:
    """Find the last version and what it is read from, by one note and one listing."""
    base = noted_checkpoint(store).version
    start = None if base < 0 else f"{DELTA_LOG}/{base:020d}"
    # What is in folders below is no part of the log: sidecars, or copies that somebody put there.
    found = store.objects(DELTA_LOG, after=start)
    listed = [one for one in found if one.path.rpartition("/")[0] == DELTA_LOG]
    versions = {number for one in listed if (number := log_version_number(one.path)) is not None}
    if not versions:
        return None
    last = max(versions)
    there = (one for one in _checkpoints(listed) if one.version <= last)
    checkpoint = max(there, key=lambda one: one.version, default=None)
    first = 0 if checkpoint is None else checkpoint.version + 1
    missing = next((number for number in range(first, last) if number not in versions), None)
    return Tail(version=last, checkpoint=checkpoint, missing=missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What the note of the last checkpoint says."""

    version: int = -1
    """-1 where there is none."""
    actions: int = 0


def noted_checkpoint(store: Reader) -> Note:
    """Read the note of the last checkpoint; one that is torn counts as none.

    It only helps readers to start; a new checkpoint repairs it.
    """
    body = store.get(LAST_CHECKPOINT)
    try:
        match None if body is None else parse_json(body):
            case {"version": int(version), "size": int(actions)}:
                return Note(version=version, actions=actions)
            case {"version": int(version)}:
                return Note(version=version)
    except ValueError:
        pass
    return Note()


def read_latest(store: Reader) -> CachedVersion | None:
    """Read what the latest version of a table is; None where that is not sure, or there is none."""
    tail = find_tail(store)
    if tail is None or tail.missing is not None:
        return None
    # First the last version, and its object again in the end: what is read in between is of the
    # same log, and not of another that has taken its place.
    newest = store.fetch(log_version(tail.version))
    if newest is None or newest[1].etag is None:
        return None
    actions = TableActions()
    try:
        if tail.checkpoint is not None:
            for part in tail.checkpoint.parts:
                _take_checkpoint(store, part, actions)
        for body in _bodies(store, range(tail.first, tail.version)):
            actions.take_version(body)
        if tail.first > tail.version:
            actions.take_timestamp(newest[0])  # The rest of it is in the checkpoint.
        else:
            actions.take_version(newest[0])
        found = _as_known(actions, tail.version, newest[1])
    except (ObjectChanged, ObjectMissing):
        return None  # Another penguin writes the same checkpoint at this moment, or cleans up.
    except (ValueError, KeyError, TypeError, AttributeError, TableUnreadable):
        return None
    return found if store.head(log_version(tail.version)) == newest[1] else None


def _as_known(actions: TableActions, version: int, last: ObjectFacts) -> CachedVersion | None:
    """Put together what was read; None where it is not a whole table."""
    protocol, metadata = actions.protocol, actions.metadata
    if protocol is None or metadata is None:
        return None
    schema: dict[str, Any] = parse_json(metadata["schemaString"])
    if schema.get("type") != "struct" or not isinstance(schema.get("fields"), list):
        return None
    few = len(actions.transactions) <= MOST_ANSWERS
    return CachedVersion(
        version=version,
        id=str(metadata["id"]),
        facts=TableFacts(
            version=version,
            schema=schema,
            partition_columns=tuple(metadata.get("partitionColumns") or ()),
            configuration=dict(metadata.get("configuration") or {}),
            features=protocol.features,
        ),
        protocol=protocol,
        metadata=metadata,
        answers=dict(actions.transactions) if few else {},
        complete=few,
        domains=joined({}, actions.domains),
        in_commit_timestamp=actions.in_commit_timestamp,
        last=last,
    )


def _checkpoints(listed: list[ObjectFacts]) -> list[Checkpoint]:
    """Return the checkpoints of all kinds; one named by a UUID is a file with its sidecars."""
    v2 = (
        Checkpoint(version=int(named["version"]), parts=(one,))
        for one in listed
        if (named := V2_CHECKPOINT.fullmatch(one.path.removeprefix(f"{DELTA_LOG}/"))) and one.size
    )
    return [*checkpoints(listed), *v2]


def _take_checkpoint(store: Reader, part: ObjectFacts, actions: TableActions) -> None:
    if part.path.endswith(".json"):
        found = store.fetch(part.path)
        if found is None:
            raise TableUnreadable("a checkpoint of the Delta log is gone", path=part.path)
        actions.take_version(found[0])
        return
    # Only here is Arrow needed: a log without checkpoints is read without it.
    from penguin.delta.log.checkpoint import read_columns  # noqa: PLC0415

    for batch in read_columns(store, part, KINDS):
        for kind in batch.schema.names:
            column = batch.column(kind)
            for said in column.filter(column.is_valid()).to_pylist():
                actions.take({kind: _plain(kind, said or {})})


def _plain(kind: str, said: dict[str, Any]) -> dict[str, Any]:
    """Return an action as a version writes it: Arrow has pairs for maps, and null for absent."""
    if kind == "metaData":
        form = said.get("format") or {}
        said = {
            **said,
            "format": {**form, "options": dict(form.get("options") or ())},
            "configuration": dict(said.get("configuration") or ()),
        }
    return {name: value for name, value in said.items() if value is not None}


def _bodies(store: Reader, numbers: range) -> Iterator[bytes]:
    """Read versions, several at a time."""
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="log") as pool:
        for body in pool.map(lambda number: store.get(log_version(number)), numbers):
            if body is None:
                raise ValueError("a version of the Delta log is gone")
            yield body
