"""Which files of a table are named: by entries of all journals, by metas, and by their own mark.

What cannot be read is an error: a file that an unread document names is never taken for unnamed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakebed import layout
from lakebed.documents.pending_meta import decode_meta
from lakebed.errors import JournalLost
from lakebed.journal import JournalReader, StoredEntry, entries_in, journals_aside
from lakebed.storage.store import ObjectFacts, Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What all journals of a table say: which files are named, which are given up."""

    named: frozenset[str] = frozenset()
    """Data and quarantine files by their names, and dead letters by the last part of theirs.

    A table may be reached by several URIs; a name with a UUID in it is the same in all of them.
    """
    promoted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The new files of each promotion or retraction, by the name that the log marks if it gave them
    up: they are named, too, unless it did."""
    deleted: frozenset[str] = frozenset()
    """What `gc` entries of this pipeline have named."""
    journals: frozenset[str] = frozenset()
    """The journals of this pipeline that are here, whole."""
    last: StoredEntry | None = None


def read_references(store: Reader, pipeline: str) -> References:
    """Read every entry of every journal of a table, also of those that were replaced."""
    named: set[str] = set()
    promoted: dict[str, frozenset[str]] = {}
    deleted: set[str] = set()
    journals: set[str] = set()
    last: StoredEntry | None = None
    digests: list[str] = []
    # The receipt first: the journal only grows, so what is in the receipt must be in it.
    receipt = JournalReader(store, pipeline).receipt()
    for other in layout.pipelines(store.folders(layout.OURS)):
        for folder in (*journals_aside(store, other), layout.journal_folder(other)):
            for stored in entries_in(store, other, folder):
                entry = stored.entry
                files = frozenset(file.filename for file in entry.data_files)
                if entry.replaces:
                    promoted[entry.replacement_mark] = files
                else:
                    named |= files
                named |= {last_part(uri) for uri in entry.dlq}
                named |= {file.filename for file in entry.quarantine_files}
                named -= {one.old for one in entry.resolved}
                if other != pipeline:
                    continue
                journals.add(entry.journal)
                deleted |= set(entry.deleted)
                if folder == layout.journal_folder(pipeline):
                    last = stored
                    digests.append(stored.digest)
    if receipt is not None and receipt.digest not in digests[receipt.sequence :][:1]:
        raise JournalLost(
            f"entry {receipt.sequence} is committed, but the journal does not have that exact "
            "entry, so it is not known which files are referenced",
            path=store.describe(layout.journal_folder(pipeline)),
        )
    return References(
        named=frozenset(named),
        promoted=promoted,
        deleted=frozenset(deleted),
        journals=frozenset(journals),
        last=last,
    )


def named_by_metas(store: Reader, listed: Iterable[ObjectFacts]) -> frozenset[str]:
    """Name the files that metas name, waiting or held; one that cannot be read is an error."""
    names = set()
    for facts in listed:
        folder = facts.path.rpartition("/")[0]
        if folder in (layout.PENDING, layout.HELD) and facts.path.endswith(layout.META_SUFFIX):
            body = store.get(facts.path)
            # One that is gone was committed meanwhile; its file is in the log, which is read later.
            if body is not None:
                names.add(decode_meta(body, store.describe(facts.path)).filename)
    return frozenset(names)


def last_part(path: str) -> str:
    """Return the name of an object without its folders. Pure."""
    return path.rpartition("/")[2]
