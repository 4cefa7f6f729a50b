"""The one thing that both programs need of a store: a write that fails if the object exists."""

from uuid import uuid4

from lakebed.errors import NoExclusiveCreate
from lakebed.layout import TablePath
from lakebed.storage.store import Created, Store


def prove(store: Store, path: TablePath) -> None:
    """Check that the store has create-only writes, with an object of our own, which is removed.

    One that a crash has left, or another process is just writing, serves as well. What that other
    process removes in between says nothing of the store: then a name of its own decides.
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

    It writes what is there already, so that nothing changes where it is not refused.
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
