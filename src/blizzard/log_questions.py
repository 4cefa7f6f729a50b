"""What is asked of a table's log, and of a pipeline's journal with it. Nothing here writes.

Delta is loaded with the first question, and Spark not at all.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from blizzard.answers.asked import Asked
from blizzard.answers.progress import StillOut
from blizzard.answers.refusal import refusal_of
from blizzard.answers.report import Reconciler
from blizzard.answers.table_log import LogEntry, LogFile, LogVersion, TableLog
from blizzard.config.columns import columns_from
from blizzard.handoff.held_rows import CameBack, Fates, passed_over
from blizzard.handoff.publish import IsCommitted
from blizzard.handoff.switch import LastCommitted
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.identity import identity_of
from blizzard.journal.ledger import Ledger
from blizzard.journal.source_names import KnownSources
from blizzard.journal.standings import PassedOver
from blizzard.model.files import Location
from blizzard.model.locations import OpenReader, sink_location
from blizzard.model.settings import PipelineSettings, SinkSettings
from lakebed.clock import Clock
from lakebed.columns.schema import Schema
from lakebed.deltalog import tables
from lakebed.documents.entry import Entry
from lakebed.errors import ConfigInvalid, LakeError, ObjectMissing, ProtocolConflict
from lakebed.storage.store import Reader
from lakebed.types import Commit
from penguin import inline
from penguin.model.settings import TableSettings

if TYPE_CHECKING:
    from lakebed.deltalog.search import FileInLog
    from lakebed.deltalog.versions import Commit as LogCommit

TableOf = Callable[[str], TableSettings | None]
"""Returns the settings of a pipeline's inline commits; None if it has none of its own."""


def open_reader(location: Location) -> Reader:
    """Open a store that can only be read."""
    return Reader(location.uri, location.options)


def asks_last_committed(sink: SinkSettings) -> LastCommitted:
    """Return a function that asks the log for the last committed entry of a journal."""
    return partial(tables.last_committed, sink.table_uri, sink.storage_options)


def asks_for_entry(settings: PipelineSettings) -> IsCommitted:
    """Return a function that asks the log whether an entry is committed."""
    last_committed = asks_last_committed(settings.sink)

    def ask(entry: Entry) -> bool:
        last = last_committed(entry.pipeline, entry.journal)
        return last is not None and last >= entry.sequence

    return ask


def asks_fates(settings: PipelineSettings) -> Fates:
    """Return a function that asks the log what has become of held files."""
    sink = settings.sink
    return lambda names: tables.fates(sink.table_uri, sink.storage_options, names)


def asks_passed_over(settings: PipelineSettings) -> PassedOver:
    """Return a function that asks the log which retractions had no effect."""
    last_committed = partial(asks_last_committed(settings.sink), settings.name)
    return passed_over(asks_fates(settings), last_committed)


def asks_still_out(settings: PipelineSettings) -> StillOut:
    """Return a function that asks the log which files a repair took out and nothing put back."""
    return lambda paths: table_log(settings).still_out(paths)


def asks_came_back(settings: PipelineSettings) -> CameBack:
    """Return a function that asks the log which files that were given up are in the table again."""
    sink = settings.sink
    return lambda names: inline.came_back(sink.table_uri, sink.storage_options, names)


def asks_the_log(settings: PipelineSettings) -> Callable[[], bool]:
    """Return a function that asks the log whether it knows a pipeline."""
    return lambda: tables.pipeline_known(
        settings.sink.table_uri, settings.sink.storage_options, settings.name
    )


def asks_retention(settings: PipelineSettings) -> Callable[[], timedelta]:
    """Return the question to the log how long the table keeps files that it does not name."""
    sink = settings.sink
    return lambda: tables.file_retention(sink.table_uri, sink.storage_options)


def asks_columns(settings: PipelineSettings) -> Callable[[], Schema | None]:
    """Return the question to the log which columns the table has; None where it cannot tell."""
    sink = settings.sink

    def ask() -> Schema | None:
        try:
            found = tables.look_at(sink.table_uri, sink.storage_options)
        except LakeError:
            return None
        return None if found is None else columns_from(found.facts.schema)

    return ask


def table_entry(settings: PipelineSettings, table_of: TableOf) -> TableSettings | None:
    """Return the `tables:` entry of a pipeline; if it is invalid and penguin's, that is None."""
    try:
        return table_of(settings.name)
    except ConfigInvalid:
        if settings.sink.commit is Commit.INLINE:
            raise
        return None


def table_rules(
    settings: PipelineSettings, table: TableSettings | None
) -> tuple[TableSettings, bool]:
    """Return how penguin treats a pipeline's table, and whether its schema evolution is known."""
    sink = settings.sink
    unknown = TableSettings(
        name=settings.name, table_uri=sink.table_uri, storage_options=sink.storage_options
    )
    return table or unknown, table is not None or sink.commit is Commit.INLINE


def checks_schema(settings: PipelineSettings, table_of: TableOf) -> Callable[[], None]:
    """Return the check of a pipeline and its declared fields against its table, by penguin's rules.

    A log that cannot be read, or settings of penguin's that it would refuse, are penguin's to tell:
    they keep nobody from writing files that wait for it.
    """
    identity = identity_of(settings, run_id="")

    def check() -> None:
        rules, mode_is_known = table_rules(settings, table_entry(settings, table_of))
        try:
            tables.require_writable(rules.table_uri, rules.storage_options)
            if settings.infer:
                return  # What is found in the data fits the table, or is rescued.
            inline.check_schema(
                rules,
                identity.table_schema,
                identity.partition_columns,
                mode_is_known=mode_is_known,
            )
        except ProtocolConflict:
            raise
        except LakeError as unread:
            if unread.retryable:
                raise

    return check


def asked_of(
    settings: PipelineSettings,
    clock: Clock,
    table_of: TableOf = lambda _pipeline: None,
    *,
    opening: OpenReader = open_reader,
) -> Asked:
    """Open what questions about the files of a pipeline are answered from."""
    store = None
    try:
        store = opening(sink_location(settings))
        history = read_ledger(store, settings.name, passed_over=asks_passed_over(settings))
    except ObjectMissing:
        history = Ledger()  # The table's folder does not exist yet, so neither does a journal.
    return Asked(
        settings=settings,
        store=store,
        known=KnownSources(history),
        log=table_log(settings),
        open_reader=opening,
        clock=clock,
        parallelism=os.cpu_count() or 1,
        refusal=lambda: (
            None
            if store is None
            else refusal_of(
                settings, store, history, asks_the_log(settings), checks_schema(settings, table_of)
            )
        ),
    )


def reconciler_of(settings: PipelineSettings, open_reader: OpenReader, clock: Clock) -> Reconciler:
    """Return what counts the source files of a pipeline against its table."""
    return Reconciler(
        settings,
        open_reader,
        clock,
        fates=asks_fates(settings),
        still_out=asks_still_out(settings),
        refusal=asks_refusal(settings),
    )


def asks_refusal(settings: PipelineSettings) -> Callable[[Reader, Ledger], LakeError | None]:
    """Return the question why a start would be refused; a journal that can go on is not asked.

    A pipeline whose name was changed has none: that of its old name is still there.
    """

    def ask(store: Reader, history: Ledger) -> LakeError | None:
        if history.sequence >= 0 and history.heir is None:
            return None
        return refusal_of(settings, store, history, asks_the_log(settings), lambda: None)

    return ask


def table_log(settings: PipelineSettings) -> TableLog:
    """Return what is asked of the table's log; Delta is loaded with the first question."""
    sink = settings.sink
    search = cache(lambda: tables.log_search(sink.table_uri, sink.storage_options))

    def entry(pipeline: str, journal: str, sequence: int) -> LogEntry:
        found = search().entry(pipeline, journal, sequence)
        return LogEntry(
            committed=found.committed,
            version=_version(found.commit),
            held=found.held,
            reasons_against=found.reasons_against,
        )

    return TableLog(
        entry=cache(entry),
        files=lambda paths: {
            path: _log_file(found) for path, found in search().files(paths).items()
        },
        fates=lambda names: search().fates(names),
        retention=lambda: tables.file_retention(sink.table_uri, sink.storage_options),
    )


def _version(commit: "LogCommit | None") -> LogVersion | None:
    if commit is None:
        return None
    return LogVersion(
        version=commit.version,
        at=_moment(commit.at_ms),
        operation=commit.operation,
        writer=commit.writer,
        entries={one.pipeline: (one.first, one.last) for one in commit.entries},
    )


def _log_file(found: "FileInLog") -> LogFile:
    return LogFile(
        in_table=found.standing == "in_table",
        removed=found.standing == "removed",
        added_by=_version(found.added),
        removed_by=_version(found.removed),
        removed_at=_moment(found.removed_at_ms),
        rows_moved=found.rows_moved,
        rewritten=found.may_have_moved and _is_rewrite(found),
    )


def _is_rewrite(found: "FileInLog") -> bool:
    """Whether the version that removed a file may have written some of its rows anew.

    What penguin writes anew in the place of a file that the journal names, the journal tells.
    """
    commit = found.removed
    if commit is None or not commit.files_added:
        return False
    return found.followed or not commit.is_penguins


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
