"""What has become of files that were read: committed, held, discarded, or taken out again.

`blizzard files` and the live page ask here, so that they give the same answer. Read-only.
"""

from collections.abc import Iterable, Iterator

from blizzard.handoff.held_rows import GONE, Fates, passed_over, read_aside
from blizzard.inspect.files.repairs import StillOut, taken_out
from blizzard.inspect.files.standing import Progress
from blizzard.inspect.files.undone import Undone, read_before, undone
from blizzard.inspect.status import committed_entry
from blizzard.journal.state import History
from blizzard.model.settings import PipelineSettings
from lakebed.documents.pending_meta import HeldMeta
from lakebed.errors import LakeError
from lakebed.journal import JournalReader
from lakebed.locations import written_out
from lakebed.storage.store import Reader


def progress_of(
    settings: PipelineSettings,
    store: Reader | None,
    history: History,
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
    retracted, without_effect, error = _retracted(store, settings.name, history, committed, fates)
    removed, unknown = _removed(store, settings.name, still_out)
    errors = [aside.error, error, unknown]
    if not fits:
        errors.append(f"entry {committed} is committed, but the journal does not have it as it was")
    keys = _Keys(settings, history)
    progress = Progress(
        committed=committed,
        held=keys.of(aside.held),
        discarded=keys.of(aside.discarded),
        retracted=retracted,
        undone=without_effect,
        removed=removed,
    )
    return progress, tuple(one for one in errors if one is not None)


def _retracted(
    store: Reader, pipeline: str, history: History, committed: int, fates: Fates
) -> tuple[dict[str, int], dict[str, Undone], str | None]:
    """Return the files whose rows were taken out, and those of retractions without effect."""
    made = {
        int(entry): one.mark
        for entry, one in history.books.retractions.items()
        if not one.erased and int(entry) <= committed
    }
    if not made:
        return {}, {}, None
    try:
        decided = fates(made.values())
    except LakeError as trouble:
        return {}, {}, str(trouble)
    history.settle(passed_over(lambda _marks: decided, committed))
    journal = JournalReader(store, pipeline)
    found: dict[str, int] = {}
    for number in sorted(entry for entry, mark in made.items() if decided.get(mark) != GONE):
        entry = journal.entry(number)
        for record in () if entry is None else entry.sources:
            if record.retracted and entry is not None and not entry.has_read(record.key):
                found[record.key] = number
    passed = frozenset(entry for entry, mark in made.items() if decided.get(mark) == GONE)
    entries = filter(None, map(journal.entry, sorted(passed)))
    return found, undone(entries, read_before(journal, passed)), None


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

    def __init__(self, settings: PipelineSettings, history: History) -> None:
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
