"""`blizzard journal new`: begin a new journal, or show the consequences."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from blizzard.cli.call import PipelineCall, report_event
from blizzard.handoff.held_rows import Fates
from blizzard.handoff.publish import LastCommitted
from blizzard.journal.admission import admit
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.fence import identity_of
from blizzard.journal.lease import refuse_while_alive_here, this_machine, turn_of
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import open_reader, sink_location
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.new_journal import StartedJournal, begin_empty, take_over
from blizzard.repair.old_journal import check_past, past_of
from lakebed.documents.entry import Entry
from lakebed.errors import DocumentUnreadable, JournalLost
from lakebed.journal import JournalReader
from lakebed.storage.store import Reader, Store
from lakebed.terminal.console import fields_of
from lakebed.units import plural

AGAIN = (
    "EVERYTHING in the source is ingested AGAIN: rows that are already in the table are then in "
    "it twice"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJournalPlan:
    """The consequences of a new journal."""

    sentence: str
    doubles: bool
    """Whether rows may be added to the table a second time."""


def begin_anew(
    call: PipelineCall, settings: PipelineSettings, old: str | None, *, yes: bool
) -> None:
    """Begin a new journal for a pipeline, or show the consequences."""
    clock = call.around.clock
    identity = identity_of(settings, str(clock.fresh_id()))
    place = sink_location(settings)
    names = tuple(dict.fromkeys((settings.name, old or settings.name)))
    reader = open_reader(place)
    for name in names:
        refuse_while_alive_here(reader, name, this_machine())
    # Check before anything is written, and again once no other process can write.
    ahead = _checked(reader, settings, identity, old)
    if not yes:
        lines = (
            f"pipeline {settings.name}: {ahead.sentence}",
            "nothing was done. Stop every blizzard of this pipeline, then add --yes to do it",
        )
        call.show(lines, {"pipeline": settings.name, "done": False, **fields_of(ahead)})
        call.fail_if(True)
        return
    store = Store(place.uri, place.options)
    with ExitStack() as turns:
        for name in names:
            turn = turn_of(store, name, identity.run, clock=clock, emit=report_event)
            turns.enter_context(turn)
        _checked(reader, settings, identity, old)
        log = PipelineLog(settings)
        done = (
            begin_empty(store, identity, log.committed, clock)
            if old is None
            else take_over(store, identity, old, log.committed, clock, fates=log.fates)
        )
    document = {"pipeline": settings.name, "done": True, **fields_of(done)}
    call.show(_text(settings.name, done), document)


def _text(pipeline: str, done: StartedJournal) -> Iterator[str]:
    files = plural(done.files, "source file")
    yield f"pipeline {pipeline}: the new journal {done.journal} knows {files}"
    if done.kept is not None:
        yield f"  the old journal is kept at {done.kept}"


def _checked(
    store: Reader, settings: PipelineSettings, identity: Entry, old: str | None
) -> NewJournalPlan:
    """Return the consequences of a new journal; raise if it must not be started."""
    if old not in (None, settings.name) and not JournalReader(store, old).numbers():
        raise JournalLost(
            f"--from {old}: no pipeline of this name has a journal at this table",
            table=settings.sink.table_uri,
        )
    _refuse_whole(store, settings, identity, old)
    log = PipelineLog(settings)
    return prospect(store, identity, old, log.committed, log.fates)


def prospect(
    store: Reader,
    identity: Entry,
    old: str | None,
    last_committed: LastCommitted,
    fates: Fates,
) -> NewJournalPlan:
    """Describe what a new journal would know, and what would be ingested a second time."""
    if old is None:
        return NewJournalPlan(sentence=f"the new journal knows nothing. {AGAIN}", doubles=True)
    past = past_of(store, identity.pipeline, old, fates)
    check_past(store, identity, old, past, last_committed)
    sentence = (
        f"the new journal takes over what entries 0 to {past.last.sequence} of pipeline {old} "
        f"know: {plural(past.in_table, 'source file')} in the table, which are not ingested again"
    )
    receipt = JournalReader(store, old).receipt()
    lost = 0
    if receipt is not None and receipt.journal == past.last.journal and old == identity.pipeline:
        lost = receipt.sequence - past.last.sequence
    if lost > 0:
        sentence = (
            f"{sentence}. The {plural(lost, 'entry', 'entries')} after it are committed and lost: "
            "whatever THOSE entries read is ingested AGAIN and is then in the table twice"
        )
    return NewJournalPlan(sentence=sentence, doubles=lost > 0)


def _refuse_whole(
    store: Reader, settings: PipelineSettings, identity: Entry, old: str | None
) -> None:
    """Refuse to replace an intact journal, which a start would accept."""
    try:
        history = read_ledger(store, settings.name)
        admit(history, identity.source_uris, PipelineLog(settings).knows_pipeline)
    except (JournalLost, DocumentUnreadable):
        return
    if _is_wanted_again(history, old):
        return
    if history.sequence < 0:
        raise JournalLost(
            "nothing was ever journaled here, and no other pipeline reads these sources: the "
            "first start begins a journal",
            table=settings.sink.table_uri,
        )
    raise JournalLost("the journal is intact, so no new one is needed", journal=history.journal)


def _is_wanted_again(history: Ledger, old: str | None) -> bool:
    """Whether a journal is the requested one, begun by an earlier attempt. Pure."""
    begun = history.receipt is None or history.receipt.sequence == 0
    if old is None:
        return begun and history.receipt is not None and history.sequence == 0
    return begun and history.sequence == history.awaits > 0
