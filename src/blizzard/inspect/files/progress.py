"""What has become of files that were read: committed, held, discarded, or taken out again.

`blizzard files` and the live page ask here, so that they give the same answer. Read-only.
"""

from collections.abc import Iterable, Iterator

from blizzard.handoff.held_rows import Fates, passed_over, read_aside
from blizzard.inspect.files.repairs import StillOut, taken_out
from blizzard.inspect.files.standing import Progress
from blizzard.inspect.status import committed_entry
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import PipelineSettings
from lakebed.documents.pending_meta import HeldMeta
from lakebed.errors import LakeError
from lakebed.locations import written_out
from lakebed.storage.store import Reader


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
