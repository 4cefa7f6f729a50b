"""What a start would refuse: a lost journal, sources of another pipeline, a schema. Read-only."""

from collections.abc import Callable

from blizzard.journal.checks import admit
from blizzard.journal.protocol import require_handoff
from blizzard.journal.state import History
from blizzard.model.locations import source_uris_of
from blizzard.model.settings import PipelineSettings
from lakebed.errors import JournalLost, LakeError, ProtocolConflict, SourceContested
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
