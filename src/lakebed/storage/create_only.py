"""Checks that a store has create-only writes, which both programs depend on."""

from uuid import uuid4

from lakebed.errors import NoExclusiveCreate
from lakebed.layout import TablePath
from lakebed.storage.store import Created, Store


def prove(store: Store, path: TablePath) -> None:
    """Check that the store has create-only writes, with an object that is removed again.

    An object left by a crash, or by a concurrent process, serves as well. If that process removes
    it in between, the result is inconclusive: then a unique name decides.
    """
    try:
        _prove_by(store, path)
    except NoExclusiveCreate:
        _prove_by(store, TablePath(f"{path}-{uuid4().hex}"))


def _prove_by(store: Store, path: TablePath) -> None:
    store.create(path, b"{}")
    try:
        probe(store, path)
    finally:
        store.delete(path)


def probe(store: Store, path: TablePath) -> bool:
    """Check that the store has create-only writes, by one that must be refused; False if unknown.

    It writes the existing content, so nothing changes if it is not refused.
    """
    body = store.get(path)
    if body is None:
        return False
    if isinstance(store.create(path, body), Created):
        raise NoExclusiveCreate(
            "this store overwrites on a create-only write, so nothing could be committed "
            "exactly once; use one that supports conditional writes",
            path=store.uri,
        )
    return True
