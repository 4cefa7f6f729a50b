"""What a start would refuse: a lost journal, sources of another pipeline, a schema. Read-only."""

from collections.abc import Callable

from blizzard.journal.checks import admit, redirected, refuse_moved
from blizzard.journal.protocol import require_handoff
from blizzard.journal.state import History
from blizzard.model.locations import source_uris_of
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.errors import JournalLost, LakeError, ProtocolConflict, SourceContested
from lakebed.locations import written_out
from lakebed.storage.store import Reader


def refusal_of(
    settings: PipelineSettings,
    store: Reader,
    history: History,
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


def refuse_elsewhere(
    store: Reader | None, pipeline: str, source: SourceSettings, history: History
) -> None:
    """Refuse to look at a source that is at another place than the journal knows its files by.

    Nothing there is known to wait: a start would not read it.
    """
    if store is not None:
        at = {source.name: written_out(source.uri)}
        if not redirected(at, history):
            refuse_moved(store, pipeline, at, history.source_uris)
