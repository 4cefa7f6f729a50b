"""Checks of a journal before it is continued. Read-only.

Starts and dry runs share them, so no dry run promises a batch that a start would refuse.
"""

from collections.abc import Mapping

from blizzard.journal.ledger import Ledger
from blizzard.model.settings import PipelineSettings
from lakebed import layout
from lakebed.documents.entry import DirectoryProtocol, Receipt, digest, encode
from lakebed.errors import (
    JournalLost,
    ProtocolConflict,
    SourceMoved,
    StoreUnavailable,
)
from lakebed.journal import StoredEntry, latest_protocol
from lakebed.locations import place_of, written_out
from lakebed.storage.store import Reader, Store, probe
from lakebed.types import Handoff

NEW_JOURNAL = "or start a new journal with blizzard journal new"


def last_entry(history: Ledger) -> StoredEntry:
    """Return the last entry of a journal; raise if no operator's entry may follow it."""
    last = history.reader.listed(history.sequence)
    refuse_unfinished(history)
    return last


def unread(source_uris: Mapping[str, str], history: Ledger) -> dict[str, str]:
    """Return the sources unknown to the journal at their locations. Pure except for links."""
    fresh = {name: uri for name, uri in source_uris.items() if name not in history.source_uris}
    return fresh | redirected(source_uris, history)


def redirected(source_uris: Mapping[str, str], history: Ledger) -> dict[str, str]:
    """Return the sources that moved and of which no file is known.

    No file there can be mistaken for one that was read. Pure except for links.
    """
    return {
        name: uri
        for name, uri in source_uris.items()
        if is_elsewhere(uri, history.source_uris.get(name, uri)) and not history.has_files(name)
    }


def is_elsewhere(uri: str, before: str) -> bool:
    """Whether a source is at another location than before, regardless of spelling."""
    return before != uri and not place_of(before).same(place_of(uri))


def has(history: Ledger, receipt: Receipt) -> bool:
    """Whether a journal has the exact entry that a receipt names."""
    if history.journal != receipt.journal or receipt.sequence > history.sequence:
        return False
    if receipt.sequence == history.sequence:
        return history.digest == receipt.digest
    body = history.reader.body(receipt.sequence)
    return body is not None and digest(body) == receipt.digest


def refuse_rolled_back(history: Ledger) -> None:
    """Refuse a journal that lacks committed entries."""
    receipt = history.receipt
    if receipt is not None and not has(history, receipt):
        raise JournalLost(
            f"entry {receipt.sequence} of journal {receipt.journal} is committed to the table, "
            "but the journal does not have that exact entry; restore the folder from a backup, "
            f"{NEW_JOURNAL}",
            path=history.place,
        )


def refuse_unfinished(history: Ledger, *, finishes: str | None = None) -> None:
    """Refuse a journal that was taken over, or waits for entries of a command.

    The caller is about to write those for the source `finishes`.
    """
    if history.heir is not None:
        why = f"pipeline {history.heir!r} has taken over this journal; rename the pipeline to "
        raise JournalLost(f"{why}{history.heir!r}", path=history.place)
    moving = history.moving
    if not 0 <= history.sequence < history.awaits or (moving is not None and moving == finishes):
        return
    if moving is not None:
        raise JournalLost(
            f"the move of source {moving!r} is not completely recorded in the journal; run "
            f"blizzard source set {moving} --same-files --yes again to finish it",
            path=history.place,
        )
    raise JournalLost(
        "a new journal was started and has not taken over all knowledge yet; run the same "
        "blizzard journal new again to finish it",
        path=history.place,
    )


def refuse_other_names(
    path: str, source_uris: Mapping[str, str], known_as: Mapping[str, str]
) -> None:
    """Refuse files that a journal knows under another source's name; `path` is its folder."""
    known = [(place_of(uri), uri, name) for uri, name in known_as.items()]
    for name, uri in source_uris.items():
        place = place_of(uri)
        if any(name == before and place.same(there) for there, _uri, before in known):
            continue
        for there, read, before in known:
            if name == before or not place.meets(there):
                continue
            if place.same(there):
                raise JournalLost(
                    f"the source {uri} has been read as {before!r} and is now called {name!r}, "
                    f"so it would be ingested a second time; change its name back to {before!r}",
                    path=path,
                )
            raise JournalLost(
                f"the source {name!r} is {uri}, and {read} has been read as {before!r}: files in "
                f"both would be ingested a second time; {_how_to_read_other_folders(read)}",
                path=path,
            )


def refuse_moved(path: str, source_uris: Mapping[str, str], known_at: Mapping[str, str]) -> None:
    """Refuse a source that moved, by the journal in folder `path`.

    Its files are known by their old names.
    """
    for name, uri in source_uris.items():
        before = known_at.get(name, uri)
        if not is_elsewhere(uri, before):
            continue
        if place_of(before).meets(place_of(uri)):
            raise SourceMoved(
                f"source {name!r} has been read from {before} and is now {uri}: the same files "
                "would have other names and be ingested a second time; "
                f"{_how_to_read_part(before, uri)}",
                path=path,
            )
        raise SourceMoved(
            f"source {name!r} has been read from {before} and is now {uri}: a file there would "
            "be mistaken for the one of the same name in the table. If the same files are there "
            f"now, confirm it with blizzard source set {name} --same-files; if they are other "
            f"files, give the source a name other than {name!r} under sources:",
            path=path,
        )


def _how_to_read_part(before: str, now: str) -> str:
    """Return how to continue a source with a narrower or wider path. Pure except for links."""
    outer, inner = place_of(before), place_of(now)
    if not outer.holds(inner):
        return _how_to_read_other_folders(before)
    first, *rest = inner.folders[len(outer.folders) :]
    pattern = "/".join([f"{first[:-1]}[{first[-1]}]", *rest, "**"])
    return (
        "to read only that folder, keep the outer one and select it with a pattern: "
        f"{before.rstrip('/')}/{pattern}"
    )


def _how_to_read_other_folders(before: str) -> str:
    return (
        f"keep {before} as it is, and add each other folder under sources: with a name of its own"
    )


def uris_of(key: str, settings: PipelineSettings, history: Ledger) -> frozenset[str]:
    """Return every URI by which rows, or entries of other journals, may name a source file."""
    source, _, path = key.partition(":")
    roots = {uri for uri, name in history.source_names.items() if name == source}
    roots |= {one.uri for one in settings.sources if one.name == source}
    roots |= {uri for name, uri in history.source_uris.items() if name == source}
    # Lines of a source that is no longer configured were replayed under this name.
    roots |= {written_out(uri) for uri in roots} | {f"{source}:"}
    return frozenset(f"{root.rstrip('/')}/{path}" for root in roots)


def agree_on_protocol(store: Store, handoff: Handoff) -> None:
    """Record the table's hand-off before the first data file, or check the recorded one."""
    if latest_protocol(store) is None:
        store.create(layout.protocol(1), encode(DirectoryProtocol(handoff=handoff)))
    latest = latest_protocol(store)
    if latest is None:
        raise StoreUnavailable("the protocol that was written cannot be read", path=store.uri)
    probe(store, layout.protocol(1))
    _refuse_other_handoff(latest, handoff, store)


def require_handoff(store: Reader, handoff: Handoff) -> None:
    """Refuse a hand-off other than the table's recorded one."""
    latest = latest_protocol(store)
    if latest is not None:
        _refuse_other_handoff(latest, handoff, store)


def _refuse_other_handoff(latest: DirectoryProtocol, handoff: Handoff, store: Reader) -> None:
    if latest.handoff is not handoff:
        raise ProtocolConflict(
            f"this table's hand-off is {latest.handoff.value!r}, but the configuration says "
            f"{handoff.value!r}; set sink.handoff: {latest.handoff.value}, or change the table's "
            "hand-off with blizzard handoff set",
            path=store.uri,
        )
