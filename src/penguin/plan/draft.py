"""The next commit of a table, drafted: the plan, asked for with the settings' rules.

What the plan names is looked at once more, and planned again without what is not there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakebed.deltalog.delta_types import DeltaSchema, TableFacts, features_needed
from lakebed.documents.data_file import FinishedFile
from lakebed.documents.entry import Entry
from lakebed.layout import held_transaction
from lakebed.partition import Template
from lakebed.storage.store import Reader
from lakebed.types import Evolution
from penguin.committer import MissingFiles, missing_files
from penguin.foreign.join import Joined, JoinRules, join
from penguin.foreign.search import ForeignFiles, still_there
from penguin.model.backlog import Backlog, Transactions, Waiting
from penguin.model.commit import CommitPlan, Planned, Releasable
from penguin.model.settings import TableSettings
from penguin.model.table import Decision, Evolves, Fits, Refused
from penguin.plan import evolution, stats
from penguin.plan.commit import Rules, plan_commit, without

CREATED_WITH = {
    # penguin writes checkpoints itself, as a step of its own. This keeps the hooks of other
    # writers from doing so at every tenth commit, and still bounds the log if penguin is away.
    "delta.checkpointInterval": "100",
    # A file may wait this long for its commit before a VACUUM may delete it.
    "delta.deletedFileRetentionDuration": "interval 14 days",
}


NO_TABLE = "there is no table whose files could be replaced"


def draft_commit(
    settings: TableSettings,
    facts: TableFacts | None,
    backlogs: tuple[Backlog, ...],
    store: Reader,
    releasable: tuple[Releasable, ...] = (),
    *,
    transactions: Transactions = lambda _app_id: None,
    asked: bool = False,
    unused: Callable[[], bool] = lambda: False,
    why_not_replaced: Callable[[Sequence[FinishedFile]], str | None] = lambda _files: NO_TABLE,
    came_back: Callable[[frozenset[str]], Mapping[str, str]] = lambda _names: {},
    put_back: Callable[[Entry], str | None] = lambda _entry: None,
    looked: Callable[[int, int], None] = lambda _done, _files: None,
) -> Planned:
    """Plan the next commit of files that are all there.

    With `asked` an operator wants what was set aside to go in, also where that changes the schema.
    `unused` says whether no row was ever written to the table: the first files say what it is then.
    `why_not_replaced` says why files of the table cannot be replaced; None where they can.
    `came_back` says how rows of superseded files came into the table again, and `put_back` what
    may have put them back since an entry was planned.
    """
    rules = Rules(
        decide=lambda table, entry: decide(table, entry, settings),
        new_table=lambda entry: new_table(entry, settings),
        statistics=file_statistics,
        partition_columns=settings.partition_columns,
        max_files=settings.max_files_per_commit,
        held_state=lambda name: transactions(held_transaction(name)),
        may_release=lambda decision: may_release(decision, settings, asked=asked),
        replacement=lambda table, entry: replacement(
            table, entry.table_schema, entry.partition_columns, settings, unused
        ),
        why_not_replaced=why_not_replaced,
        came_back=came_back,
        put_back=put_back,
    )
    lacking: dict[str, str] = {}
    waiting: tuple[Waiting, ...] = ()
    while True:
        planned = plan_commit(facts, backlogs, rules, releasable=releasable, lacking=lacking)
        commit = planned.commit
        found = MissingFiles() if commit is None else missing_files(store, commit, looked)
        if not found.gone and not found.waiting:
            return replace(planned, waiting=waiting)
        lacking |= found.gone
        # What an earlier entry waits for comes before whatever was found of a later one.
        cut = {one.pipeline for one in found.waiting}
        waiting = (*(one for one in waiting if one.pipeline not in cut), *found.waiting)
        backlogs = without(backlogs, found.waiting)


def join_others(
    settings: TableSettings,
    facts: TableFacts | None,
    commit: CommitPlan | None,
    others: ForeignFiles,
    store: Reader,
    *,
    unused: Callable[[], bool] = lambda: False,
) -> Joined:
    """Let files of other programs join a commit, those that are still as they were looked at."""
    if commit is not None and commit.rearranges:
        return Joined(commit=commit)  # They come with the next version: this one changes no row.
    template = settings.partition_template
    terms = JoinRules(
        decide=lambda table, schema: decide_on(
            table, schema, table.partition_columns, settings, floats=False
        ),
        new_table=lambda schema, apart: created_as(schema, apart, settings, floats=False),
        statistics=statistics_for,
        template=None if template is None else Template.parse(template),
        max_files=settings.max_files_per_commit,
        replacement=lambda table, schema, apart: replacement(
            table, schema, apart, settings, unused, floats=False
        ),
    )
    there, gone = still_there(store, others)
    joined = join(
        facts,
        commit,
        there,
        others.scan,
        terms,
        scanned=others.scanned,
        removals=others.removals,
    )
    return replace(joined, left_out=(*joined.left_out, *gone))


def may_release(decision: Decision, settings: TableSettings, *, asked: bool) -> bool:
    """Whether a file that was set aside goes in.

    Where newer files replace the schema, an old one does not put the old schema back by itself.
    """
    if settings.evolution is Evolution.OVERWRITE and not asked:
        return isinstance(decision, Fits)
    return not isinstance(decision, Refused)


def new_table(entry: Entry, settings: TableSettings) -> TableFacts:
    """Return what a table is created as, from its first entry and the settings."""
    return created_as(entry.table_schema, entry.partition_columns, settings)


def created_as(
    schema: DeltaSchema,
    partition_columns: tuple[str, ...],
    settings: TableSettings,
    *,
    floats: bool = True,
) -> TableFacts:
    """Return what a table with these columns is created as; `floats` as in `ListedColumns`."""
    bounded = stats.ListedColumns(settings.skipping, floats).of(schema, partition_columns)
    return TableFacts(
        version=None,
        schema=schema,
        partition_columns=partition_columns,
        configuration={
            **CREATED_WITH,
            stats.SKIPPING_PROPERTY: stats.format_columns(bounded),
            **settings.properties,
        },
        features=features_needed(schema),
    )


def replacement(
    table: TableFacts,
    schema: DeltaSchema,
    partition_columns: tuple[str, ...],
    settings: TableSettings,
    unused: Callable[[], bool],
    *,
    floats: bool = True,
) -> Evolves | None:
    """Return what a table becomes for its first files; None where it may not be replaced."""
    found = evolution.replaced(table, schema, partition_columns)
    if found is None or not unused():
        return None
    name = stats.SKIPPING_PROPERTY
    bounded = stats.ListedColumns(settings.skipping, floats).of(schema, partition_columns)
    listed = {name: settings.properties.get(name, stats.format_columns(bounded))}
    after = replace(found.table, configuration={**found.table.configuration, **listed})
    return replace(found, table=after)


def decide(table: TableFacts, entry: Entry, settings: TableSettings) -> Decision:
    """Whether a table can hold an entry's files, and what it must be for that."""
    return decide_on(table, entry.table_schema, entry.partition_columns, settings)


def decide_on(
    table: TableFacts,
    schema: DeltaSchema,
    partition_columns: tuple[str, ...],
    settings: TableSettings,
    *,
    floats: bool = True,
) -> Decision:
    """Whether a table can hold files with these columns, and what it must be for that."""
    found = evolution.decide(settings.evolution, table, schema, partition_columns)
    if not isinstance(found, Evolves):
        return found
    listed = stats.ListedColumns(settings.skipping, floats).after(table, found.table)
    return replace(found, table=replace(found.table, configuration=listed))


def file_statistics(file: FinishedFile, entry: Entry, table: TableFacts) -> str:
    """Write a file's statistics for the fields that its table lists."""
    return statistics_for(file, entry.table_schema, table)


def statistics_for(file: FinishedFile, written: DeltaSchema, table: TableFacts) -> str:
    """Write a file's statistics, if it has this schema, for the fields that its table lists."""
    return stats.delta_statistics(file, written=written, table=table)
