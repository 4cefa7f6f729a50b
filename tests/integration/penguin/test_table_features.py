"""Tables with features that ask something of an append: what is written, what is refused."""

import json
import os
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakebed.clock import Clock
from lakebed.columns.schema import Field as LakeField
from lakebed.columns.schema import Schema
from lakebed.deltalog.table_features import BY_NAME
from lakebed.errors import ObjectChanged, ObjectMissing, TableUnreadable, TableUnsupported
from lakebed.layout import DELTA_LOG, log_version
from lakebed.polling import Stop
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.telemetry.events import StepFailed
from lakebed.types import Evolution, FieldType
from penguin.delta.table import Log
from penguin.events.commits import EntriesCommitted
from penguin.model.settings import PenguinSettings
from penguin.service import commit_tables
from tests.support.first_version import FIELDS, MAPPED, NOW, add, latest, protocol_of, write_first
from tests.support.tables import EVENTS, WIDER, Numbered, Penguin, opened, rows_of

LATER = int((NOW + timedelta(days=1)).timestamp() * 1000)
ROWS = "delta.rowTracking"


def make(table, *features, reader=(), fields=FIELDS, domains=(), at=None, **properties):
    """Write version 0 as some other engine would."""
    protocol = protocol_of("invariants", "appendOnly", *features, reader=reader)
    configuration = {f"delta.{name}": value for name, value in properties.items()}
    info = {"operation": "CREATE TABLE"} | ({} if at is None else {"inCommitTimestamp": at})
    write_first(table.store, protocol, fields, configuration, info=info, domains=domains)


def row(number):
    return {"id": number, "name": f"n{number}", "date": date(2026, 1, 1)}


def actions(table, version, kind):
    lines = map(json.loads, table.commit_text(version).splitlines())
    return [line[kind] for line in lines if kind in line]


def tracked(table, last=None):
    domains = [] if last is None else [(ROWS, json.dumps({"rowIdHighWaterMark": last}))]
    make(table, "domainMetadata", "rowTracking", domains=domains, enableRowTracking="true")


# ---------------------------------------------------------------------- row tracking


@pytest.mark.parametrize(("before", "first"), [(None, 0), (41, 42)])
def test_rows_get_ids_that_no_row_had_before(table, before, first):
    tracked(table, before)
    latest(table).commit((add("a.parquet", 3), add("b.parquet", 2)), (("a", 1),), {}, NOW)
    latest(table).commit((add("c.parquet", 1),), (("a", 2),), {}, NOW)
    assert [
        (one["baseRowId"], one["defaultRowCommitVersion"])
        for version in (1, 2)
        for one in actions(table, version, "add")
    ] == [(first, 1), (first + 3, 1), (first + 5, 2)]
    (domain,) = actions(table, 2, "domainMetadata")
    assert domain["domain"] == ROWS
    assert json.loads(domain["configuration"])["rowIdHighWaterMark"] == first + 5


def test_row_ids_are_given_out_anew_after_what_others_committed(table):
    """Two that append at the same moment give out different ids, and each its own version."""
    tracked(table, 9)
    first, second = latest(table), latest(table)
    first.commit((add("a.parquet", 5),), (("a", 1),), {}, NOW)
    second.commit((add("b.parquet", 5),), (("b", 1),), {}, NOW)
    found = [actions(table, version, "add")[0] for version in (1, 2)]
    assert [(one["baseRowId"], one["defaultRowCommitVersion"]) for one in found] == [
        (10, 1),
        (15, 2),
    ]


def test_a_commit_without_files_gives_out_no_row_ids(table):
    tracked(table, 9)
    latest(table).commit((), (("a", 1),), {}, NOW)
    assert actions(table, 1, "domainMetadata") == []


def test_row_ids_are_known_from_a_checkpoint_too(table):
    """And the library's checkpoint keeps the ids of files and the highest of all."""
    tracked(table, 9)
    latest(table).commit((add("a.parquet", 5),), (("a", 1),), {}, NOW)
    latest(table).checkpoint()
    (file,) = (table.root / DELTA_LOG).glob("*.checkpoint.parquet")
    rows = pq.read_table(file)
    (kept,) = [one for one in rows["add"].to_pylist() if one]
    assert (kept["baseRowId"], kept["defaultRowCommitVersion"]) == (10, 1)
    (table.root / log_version(0)).unlink()
    latest(table).commit((add("b.parquet", 1),), (("a", 2),), {}, NOW)
    assert actions(table, 2, "add")[0]["baseRowId"] == 15


@pytest.mark.parametrize("trouble", [ObjectChanged, ObjectMissing])
def test_a_checkpoint_that_another_penguin_writes_anew_stops_nobody(table, trouble):
    """Several penguins find at the same time that a checkpoint is due, and write the same one."""
    tracked(table, 9)
    latest(table).commit((add("a.parquet", 5),), (("a", 1),), {}, NOW)
    latest(table).checkpoint()

    once = [True]

    class Replaced(Store):
        def part(self, path, start, end, *, etag=None):
            if ".checkpoint." in path and once and once.pop():
                raise trouble("it is another one now", path=path)
            return super().part(path, start, end, etag=etag)

    assert opened(Log(Replaced(str(table.root), StorageOptions()))).version == 1


def test_files_of_a_table_that_tracks_rows_are_not_taken_out(table):
    tracked(table, 9)
    assert "tracks its rows" in str(latest(table).why_no_removal())


def test_row_ids_that_cannot_be_read_are_an_error_and_never_given_out_again(table):
    make(table, "domainMetadata", "rowTracking", domains=[(ROWS, "{}")])
    with pytest.raises(TableUnreadable, match=ROWS):
        latest(table).commit((add("a.parquet"),), (("a", 1),), {}, NOW)
    assert table.versions() == 1


# ---------------------------------------------------------------------- in-commit timestamps


def stamped(table, at):
    make(table, "inCommitTimestamp", at=at, enableInCommitTimestamps="true")


@pytest.mark.parametrize("before", [1000, LATER])
def test_every_commit_is_later_than_the_one_before(table, before):
    """Also where the clock of whoever wrote that is ahead of ours."""
    stamped(table, before)
    latest(table).commit((), (("a", 1),), {}, NOW)
    latest(table).commit((), (("a", 2),), {}, NOW)
    now = int(NOW.timestamp() * 1000)
    found = [actions(table, version, "commitInfo")[0] for version in (1, 2)]
    first = max(now, before + 1)
    assert [one["inCommitTimestamp"] for one in found] == [first, first + 1]
    for version in (1, 2):
        assert table.commit_text(version).startswith('{"commitInfo"')


def test_a_commit_after_others_is_later_than_theirs(table):
    stamped(table, LATER)
    first, second = latest(table), latest(table)
    first.commit((), (("a", 1),), {}, NOW)
    second.commit((), (("b", 1),), {}, NOW)
    assert actions(table, 2, "commitInfo")[0]["inCommitTimestamp"] == LATER + 2


def test_a_commit_after_a_checkpoint_is_later_than_its_version(table):
    stamped(table, LATER)
    latest(table).commit((add("a.parquet"),), (("a", 1),), {}, NOW)
    latest(table).checkpoint()
    latest(table).commit((), (("a", 2),), {}, NOW)
    assert actions(table, 2, "commitInfo")[0]["inCommitTimestamp"] == LATER + 2


def test_a_change_of_columns_is_later_than_the_version_before(table):
    stamped(table, LATER)
    now = latest(table)
    column = {"name": "new", "type": "string", "nullable": True, "metadata": {}}
    schema = {**now.facts.schema, "fields": [*now.facts.schema["fields"], column]}
    now.evolve(replace(now.facts, schema=schema), (), {}, NOW)
    assert actions(table, 1, "commitInfo")[0]["inCommitTimestamp"] == LATER + 1


def test_a_version_without_the_timestamp_that_it_must_have_is_an_error(table):
    stamped(table, None)
    with pytest.raises(TableUnreadable, match="timestamp"):
        latest(table).commit((), (("a", 1),), {}, NOW)


def test_no_timestamps_are_written_before_they_are_enabled(table):
    make(table, "inCommitTimestamp")
    latest(table).commit((), (("a", 1),), {}, NOW)
    assert "inCommitTimestamp" not in actions(table, 1, "commitInfo")[0]


# ---------------------------------------------------------------------- the others

WIDENED = [
    {**FIELDS[0], "metadata": {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}},
    *FIELDS[1:],
]
TABLES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "clustering": (
        ("domainMetadata", "clustering"),
        {"domains": [("delta.clustering", '{"clusteringColumns":[["id"]]}')]},
    ),
    "domainMetadata": (("domainMetadata",), {"domains": [("mine", "{}")]}),
    "typeWidening": ((), {"reader": ["typeWidening"], "fields": WIDENED}),
    "columnMapping": ((), {"reader": ["columnMapping"], "fields": MAPPED,
                           "columnMapping.mode": "name", "columnMapping.maxColumnId": "3"}),
    "typeWidening-preview": ((), {"reader": ["typeWidening-preview"], "fields": WIDENED}),
    "checkpointProtection": (("checkpointProtection",),
                             {"requireCheckpointProtectionBeforeVersion": "1"}),
    "vacuumProtocolCheck": ((), {"reader": ["vacuumProtocolCheck"]}),
    "allowColumnDefaults": (("allowColumnDefaults",), {}),
    "v2Checkpoint": ((), {"reader": ["v2Checkpoint"], "checkpointPolicy": "v2"}),
    "rowTracking": (("domainMetadata", "rowTracking"), {"enableRowTracking": "true"}),
    "inCommitTimestamp": (("inCommitTimestamp",), {"at": 1, "enableInCommitTimestamps": "true"}),
}  # fmt: skip


@pytest.mark.parametrize("feature", TABLES)
def test_entries_are_committed_to_a_table_with_a_feature(table, feature):
    """And everything that the table had before is still there after a checkpoint."""
    names, options = TABLES[feature]
    make(table, *names, **options)
    before = latest(table)
    for number in (1, 2):
        table.journal(partitions=(), schema=Numbered(EVENTS.fields)).batch([row(number)])
        assert Penguin(table, options={"checkpoint_interval": 3}).drain().codes == {}
    assert table.versions() == 3
    (file,) = (table.root / DELTA_LOG).glob("*.checkpoint*.parquet")
    kept = pq.read_table(file)
    assert len([one for one in kept["add"].to_pylist() if one]) == 2
    (table.root / log_version(0)).unlink()
    after = latest(table)
    assert after.facts == replace(before.facts, version=2)
    assert after.protocol == before.protocol
    domains = {name: said for name, said in after.domains.items() if name != ROWS}
    assert domains == before.domains
    if BY_NAME[feature].reads:
        assert table.ids() == [1, 2]


@pytest.mark.parametrize(("feature", "left"), [("domainMetadata", 2), ("checkpointProtection", 3)])
def test_versions_that_are_protected_are_left_to_the_engine_that_protects_them(
    table, feature, left
):
    names, options = TABLES[feature]
    make(table, *names, **options)
    for number in (1, 2):
        for file in (table.root / DELTA_LOG).glob("*"):
            os.utime(file, (0, 0))
        table.journal(partitions=(), schema=Numbered(EVENTS.fields)).batch([row(number)])
        Penguin(table, options={"checkpoint_interval": 2}).drain()
    assert table.versions() == left


NARROW = [{**FIELDS[0], "type": "integer"}, *FIELDS[1:]]
NARROW = [{**FIELDS[0], "type": "integer"}, *FIELDS[1:]]
CHANGE_TYPE = LakeField(name="_change_type", type=FieldType.STRING)
PREVIEW = {"reader": ["typeWidening-preview"], "fields": NARROW, "enableTypeWidening": "true"}
OVERWRITE, MERGE = Evolution.OVERWRITE, Evolution.MERGE


@pytest.mark.parametrize(
    ("made", "schema", "mode", "why"),
    [
        (TABLES["columnMapping"], WIDER, OVERWRITE, "with Spark"),
        (((), {**TABLES["typeWidening"][1], "fields": NARROW}), EVENTS, OVERWRITE, "with Spark"),
        # It may be one that the table is clustered by: the log would name one that is not there.
        (
            TABLES["clustering"],
            EVENTS.without(frozenset({"name"})),
            OVERWRITE,
            "drop name with Spark",
        ),
        (
            (("changeDataFeed",), {"enableChangeDataFeed": "true"}),
            Schema((*EVENTS.fields, CHANGE_TYPE)),
            MERGE,
            "_change_type: readers of the table's changes",
        ),
        (((), PREVIEW), EVENTS, OVERWRITE, "change id with Spark"),
    ],
    ids=["columnMapping", "typeWidening", "clustering", "changeDataFeed", "typeWidening-preview"],
)
def test_a_change_of_columns_that_a_feature_forbids_is_not_made(table, made, schema, mode, why):
    """The files are held, and the reason says what to do."""
    names, options = made
    make(table, *names, **options)
    values = {**row(1), "extra": "x", "_change_type": "x"}
    table.journal(partitions=(), schema=schema).batch([values])
    penguin = Penguin(table, options={"evolution": mode}).drain()
    assert table.versions() == 2
    assert why in penguin.why()


def test_columns_are_added_to_a_table_that_records_changes_of_types(table):
    names, options = TABLES["typeWidening"]
    make(table, *names, **options)
    table.journal(partitions=(), schema=WIDER).batch([{**row(1), "extra": "x"}])
    Penguin(table, options={"evolution": Evolution.MERGE}).drain()
    fields = latest(table).facts.schema["fields"]
    assert [field["name"] for field in fields] == ["id", "name", "date", "extra"]
    assert fields[0]["metadata"] == WIDENED[0]["metadata"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mode is both", {"reader": ["columnMapping"], "columnMapping.mode": "both"}),
        (
            "column id lacks delta.columnMapping.physicalName or delta.columnMapping.id",
            {
                "reader": ["columnMapping"],
                "columnMapping.mode": "name",
                "fields": [
                    {**FIELDS[0], "metadata": {"delta.columnMapping.physicalName": "col-1"}}
                ],
            },
        ),
        ("CURRENT_DEFAULT", {"fields": [{**FIELDS[0], "metadata": {"CURRENT_DEFAULT": "1"}}]}),
        ("rowTrackingSuspended", {"rowTrackingSuspended": "true"}),
    ],
)
def test_a_feature_that_is_used_in_another_way_is_refused_by_name(table, name, options):
    make(table, **options)
    with pytest.raises(TableUnsupported, match=name):
        Log(table.store).open()


def test_a_running_penguin_goes_on_once_a_constraint_is_dropped(table):
    """One that appears meanwhile stops the commits, and not the program."""
    journal = table.journal()
    journal.batch(rows_of(1))
    Penguin(table).drain()
    table.delta().alter.add_constraint({"positive": "id > 0"})
    journal.batch(rows_of(2))
    stop, codes = Stop(), []

    def emit(event):
        match event:
            case StepFailed(code=code):
                codes.append(code)
                table.delta().alter.drop_constraint("positive")
            case EntriesCommitted():
                stop.request()

    settings = PenguinSettings(tables=(table.settings(poll_interval=0.05),))
    (outcome,) = commit_tables(settings, emit, stop, once=False, clock=Clock())
    assert (outcome.error, codes) == (None, ["table_unsupported"])
    assert table.ids() == [1, 2]
