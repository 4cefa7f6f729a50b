"""An operator accepts that another writer has removed rows: one document for one version.

It is no entry of a journal. The rows may be of several pipelines, and a journal that is replaced
must not take along what was accepted of the table.
"""

from lakebed import layout
from lakebed.documents.losses import Accepted
from lakebed.documents.reading import encode_document
from lakebed.errors import LakeError, Whose
from lakebed.storage.store import AlreadyThere, Store


class NothingToAccept(LakeError):
    """The version has removed no rows that an audit misses."""

    code = "nothing_to_accept"
    whose = Whose.USER


def accept(store: Store, document: Accepted) -> None:
    """Write down what is accepted of a version; what was written before is left alone."""
    path, body = layout.accepted(document.version), encode_document(document)
    # One that is there may be our own, whose answer was lost inside of the store's client.
    if isinstance(store.create(path, body), AlreadyThere) and store.get(path) != body:
        raise NothingToAccept(
            f"version {document.version} was accepted before, with other rows or files; if that "
            "no longer holds, delete the document and accept the version again",
            path=store.describe(path),
        )
