"""What a start would refuse: a lost journal, sources of another pipeline, a schema. Read-only."""

from collections.abc import Callable

from blizzard.journal.checks import (
    admit,
    redirected,
    refuse_moved,
    refuse_other_names,
    require_handoff,
)
from blizzard.journal.ledger import Ledger
from blizzard.model.locations import source_uris_of
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.errors import JournalLost, LakeError, ProtocolConflict, SourceContested
from lakebed.storage.store import Reader


def refusal_of(
    settings: PipelineSettings,
    store: Reader,
    history: Ledger,
    log_knows_pipeline: Callable[[], bool],
    check_schema: Callable[[], None],
) -> LakeError | None:
    """Return why a start of the pipeline would be refused; None where it would not."""
    try:
        require_handoff(store, settings.sink.handoff)
        check_schema()
        admit(
            store,
            pipeline=settings.name,
            source_uris=source_uris_of(settings),
            history=history,
            log_knows_pipeline=log_knows_pipeline,
        )
    except (JournalLost, ProtocolConflict, SourceContested) as refusal:
        return refusal
    return None


def refuse_other_source(
    store: Reader | None, settings: PipelineSettings, source: SourceSettings, history: Ledger
) -> None:
    """Refuse to look at a source whose files the journal knows at another place, or by other names.

    Nothing there is known to wait: a start would not read it.
    """
    if store is None:
        return
    uris = source_uris_of(settings)
    at, elsewhere = {source.name: uris[source.name]}, redirected(uris, history)
    known_as = {uri: name for uri, name in history.source_names.items() if name not in elsewhere}
    refuse_other_names(store, settings.name, at, known_as)
    if source.name not in elsewhere:
        refuse_moved(store, settings.name, at, history.source_uris)
