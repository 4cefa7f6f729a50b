"""What must hold before a pipeline goes on with its journal, or begins one. It looks only.

A start and a dry run ask the same questions here, so that no dry run promises a batch that a start
would refuse.
"""

from collections.abc import Callable, Mapping

from blizzard.history import History
from lake import layout
from lake.entry import Receipt, decode_entry, digest
from lake.errors import JournalLost
from lake.storage import Reader

NEW_JOURNAL = "or begin a new journal with blizzard journal new"


def admit(
    store: Reader,
    *,
    pipeline: str,
    source_uris: Mapping[str, str],
    history: History,
    log_knows_pipeline: Callable[[], bool],
) -> None:
    """Refuse a journal that was lost, rolled back or left behind by a rename.

    A journal is begun only where nothing says that there has been one: otherwise every source
    file would be ingested a second time.
    """
    _refuse_rolled_back(store, pipeline, history)
    refuse_closed(store, pipeline, heir=history.heir)
    refuse_half_begun(store, pipeline, sequence=history.sequence, awaits=history.awaits)
    refuse_renamed_sources(store, pipeline, source_uris, history.source_names)
    if history.sequence >= 0:
        return
    if log_knows_pipeline():
        raise JournalLost(
            "the Delta log holds commits of this pipeline, but its journal is gone; put the "
            f"folder back from a backup, write to a new table, {NEW_JOURNAL}",
            path=store.describe(layout.journal_folder(pipeline)),
        )
    _refuse_another_name(store, pipeline, source_uris)


def has(store: Reader, pipeline: str, history: History, receipt: Receipt) -> bool:
    """Say whether a journal has the entry that a receipt names, as it was."""
    if history.journal != receipt.journal or receipt.sequence > history.sequence:
        return False
    if receipt.sequence == history.sequence:
        return history.digest == receipt.digest
    body = store.get(layout.journal_entry(pipeline, receipt.sequence))
    return body is not None and digest(body) == receipt.digest


def _refuse_rolled_back(store: Reader, pipeline: str, history: History) -> None:
    receipt = history.receipt
    if receipt is not None and not has(store, pipeline, history, receipt):
        raise JournalLost(
            f"entry {receipt.sequence} of journal {receipt.journal} is committed to the "
            "table, but the journal does not have it as it was; put the folder back from a "
            f"backup, {NEW_JOURNAL}",
            path=store.describe(layout.journal_folder(pipeline)),
        )


def refuse_closed(store: Reader, pipeline: str, *, heir: str | None) -> None:
    """Notice a journal that another pipeline has taken over."""
    if heir is not None:
        raise JournalLost(
            f"pipeline {heir!r} has taken this journal over; call the pipeline {heir!r}",
            path=store.describe(layout.journal_folder(pipeline)),
        )


def refuse_half_begun(store: Reader, pipeline: str, *, sequence: int, awaits: int) -> None:
    """Notice a journal that is not wholly begun: what it knows is in entries that are to come."""
    if 0 <= sequence < awaits:
        raise JournalLost(
            "a new journal was begun and does not know yet what it takes over; run the same "
            "blizzard journal new again, it finishes that",
            path=store.describe(layout.journal_folder(pipeline)),
        )


def refuse_renamed_sources(
    store: Reader, pipeline: str, source_uris: Mapping[str, str], known_as: Mapping[str, str]
) -> None:
    """Notice a source that was renamed: files are known by their source's name."""
    for name, uri in source_uris.items():
        before = known_as.get(uri, name)
        if before != name:
            raise JournalLost(
                f"the source {uri} has been read as {before!r} and is now called {name!r}, "
                f"so it would be ingested a second time; call it {before!r}",
                path=store.describe(layout.journal_folder(pipeline)),
            )


def _refuse_another_name(store: Reader, pipeline: str, source_uris: Mapping[str, str]) -> None:
    """Notice a pipeline that was renamed: its sources are in this table under the old name."""
    ours = set(source_uris.values())
    for other in layout.pipelines(store.folders(layout.OURS)):
        if other == pipeline:
            continue
        path = layout.journal_entry(other, 0)
        body = store.get(path)
        if body is None:
            continue
        taken = ours & set(decode_entry(body, path).source_uris.values())
        if taken:
            raise JournalLost(
                f"pipeline {other!r} of this table reads {min(taken)} already, so {pipeline!r} "
                f"would ingest it a second time; call the pipeline {other!r}, write to another "
                f"table, or take its journal over with blizzard journal new --from {other}",
                path=store.describe(path),
            )
