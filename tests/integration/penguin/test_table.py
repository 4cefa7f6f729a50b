"""What the door to deltalake promises, run against the library itself."""

import threading
from dataclasses import replace

import deltalake
import pyarrow.parquet as pq
import pytest

from lakebed.deltalog.delta_types import TableFacts, features_needed
from lakebed.deltalog.snapshot import LogReader
from lakebed.errors import CommitUnconfirmed, TableUnreadable, TableUnsupported
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader
from penguin.delta.table import Log
from penguin.model.settings import TableExists
from tests.support.first_version import NOW, add, protocol_of, write_first
from tests.support.open_table import OpenTable
from tests.support.tables import Penguin, TableDirectory, opened, rows_of

ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
SCHEMA = {"type": "struct", "fields": [ID]}


def facts(**configuration):
    return TableFacts(
        version=None, schema=SCHEMA, partition_columns=(), configuration=configuration
    )


def wider(before, name="new"):
    column = {"name": name, "type": "string", "nullable": True, "metadata": {}}
    fields = [*before.schema["fields"], column]
    return replace(before, schema={**before.schema, "fields": fields})


def write_log(table, *, protocol, configuration=None, field_metadata=None, fields=(), adds=()):
    """Write version 0 as some other engine would."""
    field = {**ID, "metadata": field_metadata or {}}
    write_first(table.store, protocol, [field, *fields], configuration, adds=adds)


def legacy(reader, writer):
    return {"minReaderVersion": reader, "minWriterVersion": writer}


CLASSIC = legacy(1, 2)


def test_a_directory_without_a_log_has_no_table(table):
    """Nor has one with what a killed creator left behind."""
    assert Log(table.store).open() is None
    (table.root / "_delta_log").mkdir()
    (table.root / f"_delta_log/{0:020d}.json#1").write_text("{}")
    assert Log(table.store).open() is None


@pytest.mark.parametrize("body", [b"", b"{", b'{"txn":{"appId":"a","version":1}}\n'])
def test_a_log_that_cannot_be_read_is_an_error_and_never_no_table(table, body):
    """W14."""
    table.store.create(f"_delta_log/{0:020d}.json", body)
    with pytest.raises(TableUnreadable):
        Log(table.store).open()


def test_a_log_of_which_only_the_note_of_a_checkpoint_is_left_is_an_error(table):
    """W14."""
    table.store.create("_delta_log/_last_checkpoint", b'{"version":9,"size":1}')
    with pytest.raises(TableUnreadable):
        Log(table.store).open()


def test_a_panic_of_the_library_s_core_is_one_of_our_errors(table, monkeypatch):
    class PanicException(BaseException):
        """Named as the library's core names it; it cannot be imported."""

    def panic(*_arguments, **_options):
        raise PanicException("the core panicked")

    log = Log(table.store)
    log.create(facts(), {})
    monkeypatch.setattr(deltalake, "DeltaTable", panic)
    with pytest.raises(CommitUnconfirmed, match="panicked"):
        opened(log).checkpoint()


def test_a_commit_writes_no_checkpoint_by_the_way(table):
    """A hook that fails after the commit would look like a failed commit."""
    log = Log(table.store)
    log.create(facts(**{"delta.checkpointInterval": "1"}), {})
    opened(log).commit((add(),), (("a", 1),), {}, NOW)
    assert not list((table.root / "_delta_log").glob("*.parquet"))


def test_a_log_whose_first_versions_are_gone_is_an_error_and_never_no_table(table):
    """W14."""
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    (table.root / f"_delta_log/{0:020d}.json").unlink()
    with pytest.raises(TableUnreadable):
        Log(table.store).open()


def test_of_two_creators_one_is_told_that_the_table_exists(table):
    """W12."""
    Log(table.store).create(facts(), {})
    with pytest.raises(TableExists):
        Log(table.store).create(facts(), {})


AT = "2024-01-02T03:04:05"


def local_times():
    at = {"name": "at", "type": "timestamp_ntz", "nullable": True, "metadata": {}}
    required = {**ID, "nullable": False}
    schema = {"type": "struct", "fields": [required, at]}
    return replace(facts(), schema=schema, features=features_needed(schema))


def test_a_table_with_features_is_created_once_and_says_nothing_of_where_it_was_made(table):
    """W25: Spark reads no table of features with required columns without invariants."""
    log = Log(table.store)
    log.create(local_times(), {"by": "a test"})
    before = table.commit_text(0)
    with pytest.raises(TableExists):
        log.create(local_times(), {})
    assert table.commit_text(0) == before
    assert '"operationParameters":{}' in before
    assert table.delta().protocol().writer_features == ["invariants", "timestampNtz"]
    made = opened(log)
    assert made.facts.features == {"invariants", "timestampNtz"}
    made.commit((add(),), (("p", 1),), {}, NOW)
    assert opened(log).version == 1


NTZ = {"type": "timestamp_ntz"}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (NTZ, AT),
        ({"type": "list", "items": NTZ}, [AT]),
        ({"type": "map", "values": NTZ}, {"k": AT}),
        ({"type": "map", "values": {"type": "list", "items": NTZ}}, {"k": [AT]}),
        (
            {"type": "map", "values": {"type": "struct", "fields": [{"name": "t", **NTZ}]}},
            {"k": {"t": AT}},
        ),
        (
            {"type": "struct", "fields": [{"name": "m", "type": "map", "values": NTZ}]},
            {"m": {"k": AT}},
        ),
    ],
    ids=["column", "list", "map", "list in map", "struct in map", "map in struct"],
)
def test_local_times_make_a_table_at_every_depth(tmp_path, kind, value):
    desk = OpenTable(tmp_path, {"fields": [{"name": "x", **kind}]})
    desk.land("a.ndjson", {"x": value})
    desk.ingest()
    made = deltalake.DeltaTable(str(desk.table))
    assert made.protocol().writer_features == ["invariants", "timestampNtz"]
    assert [one.name for one in made.schema().fields] == ["x"]
    assert "datetime.datetime(2024, 1, 2, 3, 4, 5)" in repr(desk.rows())


def test_a_table_with_features_is_not_created_where_a_log_has_lost_its_beginning(table):
    log = Log(table.store)
    log.create(local_times(), {})
    first = table.root / "_delta_log" / f"{0:020d}.json"
    first.rename(first.with_name(f"{7:020d}.json"))
    with pytest.raises(TableExists):
        log.create(local_times(), {})


def test_many_creators_at_once_make_one_table(table):
    """W12."""
    gate = threading.Barrier(4)
    outcomes = []

    def create(number):
        gate.wait()
        try:
            Log(table.store).create(facts(**{"delta.checkpointInterval": str(number)}), {})
            outcomes.append("created")
        except TableExists:
            outcomes.append("exists")

    threads = [threading.Thread(target=create, args=(number,)) for number in (10, 20, 30, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["created", "exists", "exists", "exists"]
    assert table.versions() == 1


def test_a_stale_snapshot_cannot_commit_the_same_transaction(table):
    """D08: of two commits of one entry the second is refused."""
    log = Log(table.store)
    log.create(facts(), {})
    first, second = opened(log), opened(log)
    first.commit((add(),), (("blizzard/p/j", 1),), {}, NOW)
    with pytest.raises(CommitUnconfirmed):
        second.commit((add("b.parquet"),), (("blizzard/p/j", 1),), {}, NOW)
    assert table.versions() == 2


def test_a_stale_commit_conflicts_with_an_evolution_that_repeats_its_transaction(table):
    log = Log(table.store)
    log.create(facts(), {})
    stale, now = opened(log), opened(log)
    now.evolve(wider(now.facts), (("blizzard/p/j", 1),), {}, NOW)
    with pytest.raises(CommitUnconfirmed):
        stale.commit((add(),), (("blizzard/p/j", 2),), {}, NOW)


def test_an_evolution_is_the_very_next_version_or_nothing(table):
    """D08: of two that evolve from one snapshot, the second is told to look again."""
    log = Log(table.store)
    log.create(facts(), {})
    first, second = opened(log), opened(log)
    first.evolve(wider(first.facts), (), {}, NOW)
    with pytest.raises(CommitUnconfirmed, match="first"):
        second.evolve(wider(second.facts, "other"), (), {}, NOW)
    assert [one["name"] for one in opened(log).facts.schema["fields"]] == ["id", "new"]
    assert table.versions() == 2


def test_an_evolution_keeps_everything_else_that_the_table_is(table):
    """Also with a name of characters that are more than two bytes each."""
    log = Log(table.store)
    log.create(facts(**{"delta.checkpointInterval": "7"}), {})
    before = table.delta().metadata()
    now = opened(log)
    after = wider(now.facts, "\U00020bb7\U0001f427")
    now.evolve(after, (("blizzard/p/j", 5),), {"step": "columns"}, NOW)
    assert opened(log).facts.shape() == after.shape()
    assert opened(log).transaction("blizzard/p/j") == 5
    kept = table.delta().metadata()
    assert (kept.id, kept.created_time, kept.configuration) == (
        before.id,
        before.created_time,
        before.configuration,
    )
    opened(log).checkpoint()
    assert opened(log).facts.shape() == after.shape()
    assert table.delta().history(1)[0]["penguin"] == {"step": "columns"}


def test_a_table_that_forgets_transactions_is_refused(table):
    name = "delta.setTransactionRetentionDuration"
    write_log(table, protocol=CLASSIC, configuration={name: "interval 1 day"})
    with pytest.raises(TableUnsupported, match=name):
        LogReader(table.store).open()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.setTransactionRetentionDuration", "interval 1 day"),
        ("delta.columnMapping.mode", "name"),
    ],
)
def test_a_table_that_could_not_be_written_is_not_created(table, name, value):
    with pytest.raises(TableUnsupported, match=name):
        Log(table.store).create(facts(**{name: value}), {})
    assert not (table.root / "_delta_log").exists()


MAPS, POSITIVE = "delta.columnMapping", "delta.constraints.positive"
COMPUTED, INVARIANTS = "delta.generationExpression", "delta.invariants"


@pytest.mark.parametrize(
    ("name", "protocol", "configuration", "metadata"),
    [
        ("identityColumns", protocol_of("identityColumns"), {}, {}),
        ("something-new", protocol_of("something-new"), {}, {}),
        ("writer version 6", legacy(2, 6), {}, {}),
        (MAPS, legacy(2, 5), {f"{MAPS}.mode": "name"}, {f"{MAPS}.physicalName": "col-1"}),
        (POSITIVE, legacy(1, 3), {POSITIVE: "id > 0"}, {}),
        (COMPUTED, legacy(1, 4), {}, {COMPUTED: "1"}),
        (INVARIANTS, CLASSIC, {}, {INVARIANTS: '{"expression":{"expression":"id>0"}}'}),
    ],
)
def test_a_table_that_cannot_be_written_safely_is_refused_by_name(
    table, name, protocol, configuration, metadata
):
    write_log(table, protocol=protocol, configuration=configuration, field_metadata=metadata)
    before = sorted(table.root.rglob("*"))
    with pytest.raises(TableUnsupported, match=name):
        Log(table.store).open()
    assert sorted(table.root.rglob("*")) == before


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner,
        lambda inner: {"type": "array", "elementType": inner, "containsNull": True},
        lambda inner: {
            "type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True,
        },
    ],
)  # fmt: skip
def test_an_invariant_of_a_nested_field_is_seen_too(table, wrap):
    """HOLES W25: penguin does not check it, so it does not write such a table."""
    invariant = {"delta.invariants": '{"expression":{"expression":"x.a > 0"}}'}
    inner = {"name": "a", "type": "long", "nullable": True, "metadata": invariant}
    kind = wrap({"type": "struct", "fields": [inner]})
    extra = {"name": "x", "type": kind, "nullable": True, "metadata": {}}
    write_log(table, protocol=CLASSIC, fields=[extra])
    with pytest.raises(
        TableUnsupported, match=r"column x(\.element|\.value)?\.a has delta\.invariants"
    ):
        Log(table.store).open()


@pytest.mark.parametrize(
    "protocol",
    [CLASSIC, legacy(1, 4), protocol_of("appendOnly"), protocol_of(reader=["deletionVectors"])],
)
def test_a_table_that_can_be_written_safely_is_written(table, protocol):
    write_log(table, protocol=protocol)
    log = Log(table.store)
    opened(log).commit((add(),), (("a", 1),), {}, NOW)
    opened(log).checkpoint()
    assert opened(log).transaction("a") == 1


def test_a_checkpoint_keeps_the_deletion_vectors_of_others(table):
    told = {"storageType": "u", "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA", "offset": 1}
    vector = {**told, "sizeInBytes": 36, "cardinality": 2}
    other = {
        "path": "x.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1,
        "dataChange": True, "stats": '{"numRecords":9}', "deletionVector": vector,
    }  # fmt: skip
    write_log(table, protocol=protocol_of(reader=["deletionVectors"]), adds=[other])
    log = Log(table.store)
    opened(log).commit((add(),), (("a", 1),), {}, NOW)
    opened(log).checkpoint()
    (checkpoint,) = (table.root / "_delta_log").glob("*.checkpoint.parquet")
    kept = [row["add"] for row in pq.read_table(checkpoint).to_pylist() if row["add"]]
    assert {one["path"]: one["deletionVector"] for one in kept} == {
        "x.parquet": vector,
        "a.parquet": None,
    }


def test_a_transaction_of_sixty_three_bits_is_kept_whole(table):
    log = Log(table.store)
    log.create(facts(), {})
    opened(log).commit((), (("digest", 2**63 - 1),), {}, NOW)
    opened(log).checkpoint()
    assert opened(log).transaction("digest") == 2**63 - 1


def test_settings_may_change_the_properties_of_a_new_table(table):
    table.journal().batch(rows_of(1))
    wish = {"delta.logRetentionDuration": "interval 60 days", "delta.checkpointInterval": "7"}
    Penguin(table, options={"properties": wish}).drain()
    assert wish.items() <= table.delta().metadata().configuration.items()


def test_secrets_are_not_in_an_error(table):
    """W17."""
    secret = "a-very-secret-value"
    table.store.create(f"_delta_log/{0:020d}.json", b'{"protocol": "' + secret.encode() + b'"}')
    reader = Reader(str(table.root), StorageOptions({"some_key": secret}))
    with pytest.raises(TableUnreadable) as unreadable:
        LogReader(reader).open()
    assert secret not in str(unreadable.value)


def test_a_table_that_somebody_creates_between_two_looks_is_not_unreadable(tmp_path):
    """W12: the first look found no version, and then there was a log."""
    table = TableDirectory(tmp_path / "table")
    table.journal().batch(rows_of(1))
    Penguin(table).drain()
    first = [True]

    class TooEarly(Reader):
        def objects(self, *given, **named):
            return iter(()) if first and first.pop() else super().objects(*given, **named)

    found = LogReader(TooEarly(str(table.root), StorageOptions())).open()
    assert found is not None
    assert found.version == 1


@pytest.mark.parametrize("value", ["eu west/ü %20", "b"])
def test_a_file_is_taken_out_whatever_its_folder_is_called(tmp_path, value):
    table = TableDirectory(tmp_path / "table")
    journal = table.journal(partitions=("name",))
    rows = [{"id": number, "name": value, "date": None} for number in (1, 2)]
    first, _second = journal.batch([rows[0]], [rows[1]]).files
    Penguin(table).drain()
    now = opened(Log(table.store))
    now.commit((), (("a", 1),), {}, NOW, removes=(first,))
    assert (table.ids(), table.delta().transaction_version("a")) == ([2], 1)
    with pytest.raises(CommitUnconfirmed, match="another writer committed first"):
        now.commit((), (("a", 2),), {}, NOW, removes=(first,))
    with pytest.raises(CommitUnconfirmed, match="not in the table"):
        opened(Log(table.store)).commit((), (), {}, NOW, removes=(first,))
    table.delta().optimize.compact()
    table.delta().create_checkpoint()
    assert table.ids() == [2]
