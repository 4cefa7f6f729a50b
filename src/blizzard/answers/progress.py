"""What has become of files that were read: committed, held, discarded, or taken out again.

`blizzard files` and the live page ask here, so that they give the same answer. Read-only.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import takewhile

from blizzard.answers.entry_rows import MOST_PARTS
from blizzard.answers.lifecycle import Progress
from blizzard.answers.status import committed_entry
from blizzard.handoff.held_rows import Fates, passed_over, read_aside
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import PipelineSettings
from lakebed import layout
from lakebed.documents.entry import Entry
from lakebed.documents.losses import TakenOut, decode_repair
from lakebed.documents.pending_meta import HeldMeta
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.locations import written_out
from lakebed.storage.store import Reader

StillOut = Callable[[Iterable[str]], Collection[str]]
"""Answers which of some data files that a repair took out have not come back since."""


def taken_out(store: Reader, pipeline: str, still_out: StillOut) -> dict[str, int]:
    """Return the source files with rows in files that a repair took out, by key.

    The number is the last entry whose rows are gone: a file that a later entry has read is in the
    table. Where nothing was ever repaired, this costs one listing.
    """
    files = [one for one in repaired(store) if one.pipeline == pipeline]
    out = still_out([one.path for one in files]) if files else ()
    journal = JournalReader(store, pipeline)
    entries: dict[int, Entry | None] = {}
    found: dict[str, int] = {}
    for one in files:
        if one.path not in out:
            continue
        if one.entry not in entries:
            entries[one.entry] = journal.entry(one.entry)
        entry = entries[one.entry]
        for file in () if entry is None else entry.data_files:
            if file.filename == (one.written or one.path):
                for key in file.source_files:
                    last = _last_part(journal, entry, key) if entry is not None else one.entry
                    found[key] = max(last, found.get(key, 0))
    return found


def _last_part(journal: JournalReader, first: Entry, key: str) -> int:
    """Return the entry up to which a file was read on that an entry has read in part."""
    last, entry, until = first.sequence, first, first.sequence + MOST_PARTS
    while any(one.key == key and not one.complete for one in entry.readings):
        following = (journal.entry(number) for number in range(last + 1, until))
        parts = (one for one in takewhile(bool, following) if one is not None and one.has_read(key))
        later = next(parts, None)
        if later is None or not any(one.key == key and one.skipped for one in later.readings):
            break
        last, entry = later.sequence, later
    return last


def repaired(store: Reader) -> list[TakenOut]:
    """Return all files that repairs took out, in their order."""
    listed = sorted(one.path for one in store.objects(layout.REPAIRED))
    bodies = ((path, store.get(path)) for path in listed)
    return [
        file
        for path, body in bodies
        if body is not None
        for file in decode_repair(body, path).files
    ]


def progress_of(
    settings: PipelineSettings,
    store: Reader | None,
    history: Ledger,
    *,
    fates: Fates,
    still_out: StillOut,
) -> tuple[Progress, tuple[str, ...]]:
    """Return how far files that were read have come, and why that is not known for sure."""
    committed, fits = committed_entry(store, settings.name, history)
    if history.awaits and fits:
        # What a journal inherits was committed by the earlier one, or it would not be here.
        committed = max(committed or 0, history.awaits)
    if store is None or committed is None:
        return Progress(committed=None), ()
    aside = read_aside(store, settings.name, fates)
    error = _settled(history, fates, committed)
    removed, unknown = _removed(store, settings.name, still_out)
    errors = [aside.error, error, unknown]
    if not fits:
        errors.append(f"entry {committed} is committed, but the journal does not have it as it was")
    keys = _Keys(settings, history)
    progress = Progress(
        committed=committed,
        held=keys.of(aside.held),
        discarded=keys.of(aside.discarded),
        passed_over=frozenset(one.entry for one in history.undecided.passed_over),
        removed=removed,
    )
    return progress, tuple(one for one in errors if one is not None)


def _settled(history: Ledger, fates: Fates, committed: int) -> str | None:
    """Learn which retractions were passed over; return why that is not known, where it is not."""
    try:
        history.settle(passed_over(fates, lambda _journal: committed))
    except LakeError as trouble:
        return str(trouble)
    return None


def _removed(
    store: Reader, pipeline: str, still_out: StillOut
) -> tuple[dict[str, int], str | None]:
    """Return the files whose rows a repair took out, by the last entries that had them."""
    try:
        return taken_out(store, pipeline, still_out), None
    except LakeError as trouble:
        return {}, str(trouble)


class _Keys:
    """Finds the keys of source files by what notes have: a URI, or the key itself."""

    def __init__(self, settings: PipelineSettings, history: Ledger) -> None:
        roots = dict(history.source_names)
        roots |= {uri: name for name, uri in history.source_uris.items()}
        roots |= {source.uri: source.name for source in settings.sources}
        self._roots = {f"{root.rstrip('/')}/": name for root, name in roots.items()}
        self._roots |= {f"{written_out(root).rstrip('/')}/": name for root, name in roots.items()}

    def of(self, metas: Iterable[HeldMeta]) -> frozenset[str]:
        """Return the keys of all source files with rows in some data files.

        penguin notes them as the entry names them; of a file that several share that is all there
        is. Of a file with one source there is its URI as well.
        """
        named = {name for meta in metas for name in (*meta.source_files, meta.source_file) if name}
        return frozenset(key for name in named for key in self._keys(name))

    def _keys(self, name: str) -> Iterator[str]:
        below = [root for root in self._roots if name.startswith(root)]
        yield from (f"{self._roots[root]}:{name.removeprefix(root)}" for root in below)
        if not below:
            yield name
