"""The latest version of a table, read without the library and without its data files.

Of the checkpoint only the columns are read that are not about files, so that this costs the same
however many files the table has. A checkpoint of any kind keeps those in its own file or parts; the
sidecars of a V2 checkpoint hold nothing else than data files.

Where anything is not as it must be, nothing is concluded: the library reads the log then, and says
what is wrong with it.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lakebed.deltalog.cache import MOST_ANSWERS, CachedVersion, joined
from lakebed.deltalog.segment import Checkpoint, find_segment
from lakebed.deltalog.table_actions import KINDS, TableActions
from lakebed.deltalog.table_facts import TableFacts
from lakebed.documents.reading import parse_json
from lakebed.errors import ObjectChanged, ObjectMissing, TableUnreadable
from lakebed.layout import log_version
from lakebed.storage.store import ObjectFacts, Reader

CONCURRENT = 16


def read_latest(store: Reader) -> CachedVersion | None:
    """Read what the latest version of a table is; None where that is not sure, or there is none."""
    tail = find_segment(store)
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
            _take_checkpoint(store, tail.checkpoint, actions)
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


def _take_checkpoint(store: Reader, checkpoint: Checkpoint, actions: TableActions) -> None:
    # Only here is Arrow needed: a log without checkpoints is read without it.
    from lakebed.deltalog.checkpoint import checkpoint_batches, rows_of  # noqa: PLC0415

    for batch in checkpoint_batches(store, checkpoint, KINDS, sidecars=False):
        for kind in KINDS:
            for action in rows_of(batch, kind):
                actions.take({kind: _plain(kind, action)})


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
