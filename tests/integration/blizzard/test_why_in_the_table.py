"""`blizzard why` for source files that were read, and for the data files with their rows."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from deltalake import DeltaTable

from penguin.delta.table import Log
from tests.support.builders import entries, ndjson, put
from tests.support.promotions import ID, PRICE, Rescued
from tests.support.questions import Questions
from tests.support.tables import opened

ORPHAN = "018cc4e5-2200-7000-8000-000000000001.parquet"


@pytest.fixture
def desk(tmp_path):
    return Questions(tmp_path / "desk")


def test_a_file_that_is_in_says_its_entry_its_data_files_and_its_version(desk):
    put(desk.landing.folder, "a.ndjson", b'{"id": 1, "odd": 2}\n\n{"id": 2}\n')
    desk.blizzard()
    waiting = desk.why("a.ndjson")
    assert waiting["state"] == "journaled"
    assert [one["state"] for one in waiting["data_files"]] == ["journaled"]
    assert waiting["next"][0]["commands"][0].endswith(" --once")
    desk.penguin()
    answer = desk.why("a.ndjson")
    (read,), (file,) = answer["read"], answer["data_files"]
    assert answer["state"] == "in_table"
    assert (read["entry"], read["version"]) == (1, 1)
    assert (read["lines"], read["blank"], read["rows"], read["rescued"]) == (3, 1, 2, 1)
    assert (file["path"], file["state"], file["version"]) == (desk.data_file(), "in_table", 1)
    assert desk.state(f"default:{answer['path']}") == "in_table"
    assert desk.state(answer["uri"]) == "in_table"
    (desk.landing.folder / "a.ndjson").unlink()
    answer = desk.why("a.ndjson")
    assert (answer["state"], answer["stored"]) == ("in_table", None)
    assert "It has left its source since" in answer["answer"]


@pytest.mark.parametrize(
    ("bad", "told"), [(1, "1 bad line of it was"), (2, "2 bad lines of it were")]
)
def test_lines_that_were_quarantined_are_told_with_where_to_find_them(desk, bad, told):
    desk.rewrite("default", error_handling={"on_bad_record": "quarantine"})
    put(desk.landing.folder, "a.ndjson", b'{"id": 1}\n' + b"{nope\n" * bad)
    desk.both()
    answer = desk.why("a.ndjson")
    assert answer["state"] == "in_table"
    assert f" {told} quarantined. " in answer["answer"]
    assert answer["next"][-1]["commands"] == [f"blizzard -c {desk.file} dlq list"]


@pytest.mark.parametrize("body", [b"", b"\n\n"])
def test_a_file_without_a_row_says_so(desk, body):
    put(desk.landing.folder, "a.ndjson", body)
    desk.both()
    answer = desk.why("a.ndjson")
    assert (answer["state"], answer["reason"], answer["data_files"]) == ("in_table", "no_rows", [])
    assert "it gave no row" in answer["answer"]


@pytest.mark.parametrize(("on_change", "state"), [("error", "changed"), ("reingest", "waiting")])
def test_a_file_that_has_changed_since_says_what_becomes_of_it(desk, on_change, state):
    desk.configure(source=f"on_change: {on_change}")
    desk.landing.land("a.ndjson", 5)
    desk.both()
    desk.landing.land("a.ndjson", 6)
    answer = desk.why("a.ndjson")
    assert (answer["state"], answer["reason"]) == (state, "changed")
    assert [read["rows"] for read in answer["read"]] == [5]
    if state == "changed":
        assert f"source.on_change is {on_change}" in answer["answer"]
    else:
        assert "The rows of the previous object stay in the table, too." in answer["answer"]


def test_a_held_file_says_why_and_what_can_be_done(desk):
    name = desk.holds_a_file()
    answer = desk.why("b.ndjson")
    assert (answer["state"], answer["reason"]) == ("held", "schema_refused")
    assert "the table has type integer" in answer["answer"]
    assert answer["next"][0]["commands"] == [f"penguin -c {desk.file} release {name}"]
    data = desk.why(name)
    assert (data["state"], data["sources"]) == ("held", ["default:b.ndjson"])
    assert data["data_files"][0]["reasons"]


def test_a_discarded_file_and_one_that_is_read_again(desk):
    name = desk.holds_a_file()
    assert desk.order("discard", name, "--yes").exit_code == 0
    assert desk.state("b.ndjson") == desk.state(name) == "discarded"
    assert desk.cli("redo", "--held", name, "--yes").exit_code == 0
    assert desk.why("b.ndjson")["reason"] == "redo"
    body = (desk.landing.folder / "b.ndjson").read_bytes()
    (desk.landing.folder / "b.ndjson").unlink()
    desk.blizzard(later=4000)
    assert desk.why("b.ndjson")["gone"]
    put(desk.landing.folder, "b.ndjson", body)
    assert desk.state("b.ndjson") == "waiting"
    desk.both()
    answer = desk.why("b.ndjson")
    assert (answer["state"], answer["read"][0]["entry"]) == ("in_table", 5)
    assert desk.state(name) == "given_up"


def test_a_released_file_is_in_with_the_version_that_released_it(desk):
    name = desk.holds_a_file()
    desk.let("schema_evolution: overwrite")
    assert desk.order("release", name).exit_code == 0
    answer = desk.why("b.ndjson")
    assert answer["state"] == "in_table"
    (file,) = answer["data_files"]
    assert file["version"] == DeltaTable(str(desk.table)).version()


@pytest.mark.parametrize("checkpointed", [False, True])
def test_rows_that_were_compacted_are_still_in(desk, checkpointed):
    for name in ("a", "b"):
        desk.landing.land(f"{name}.ndjson", 5)
        desk.both()
    files = [one.name for one in desk.table.glob("*.parquet")]
    DeltaTable(str(desk.table)).optimize.compact()
    if checkpointed:
        opened(Log(desk.store)).checkpoint()
    answer = desk.why("a.ndjson")
    assert answer["state"] == "in_table"
    assert [one["state"] for one in answer["data_files"]] == ["rewritten"]
    assert [one["removed_version"] for one in answer["data_files"]] == [3]
    assert "OPTIMIZE" in answer["answer"]
    assert desk.state(files[0]) == "rewritten"


def test_a_promoted_file_says_which_has_its_rows_now(tmp_path):
    rescued = Rescued(tmp_path)
    rescued.land("a.ndjson", '{"id":1,"price":1.50}', '{"id":2,"price":"much"}')
    rescued.ingest()
    rescued.configure({"fields": [ID, PRICE]})
    (old,) = rescued.active
    assert rescued.cli("schema", "promote", "price", "--yes").exit_code == 0
    rescued.penguin()
    (new,) = rescued.active
    row = json.loads(rescued.cli("why", "a.ndjson", "--output", "json").stdout)
    (file,) = row["data_files"]
    assert (row["state"], file["state"], file["replaced_by"]) == ("in_table", "rewritten", new)
    row = json.loads(rescued.cli("why", old, "--output", "json").stdout)
    assert (row["state"], row["data_files"][0]["replaced_by"]) == ("rewritten", new)
    row = json.loads(rescued.cli("why", new, "--output", "json").stdout)
    assert (row["state"], row["data_files"][0]["entry"]) == ("in_table", 2)


def test_a_file_of_an_earlier_journal_is_inherited(desk):
    desk.landing.land("a.ndjson", 5)
    desk.both()
    desk.ends_well()
    (old,) = {entry.journal for entry in entries(desk.table)}
    path = desk.data_file()
    desk.rewrite("later")
    done = desk.cli("journal", "new", "--from", "default", "--yes")
    assert done.exit_code == 0, done.output
    answer = desk.why("a.ndjson")
    assert (answer["reason"], answer["pipeline"]) == ("inherited", "later")
    assert "under an earlier journal" in answer["answer"]
    assert old in desk.cli("journal", "0").stdout
    data = desk.why(str(desk.table / path))
    assert (data["state"], data["data_files"][0]["entry"]) == ("in_table", 1)


def test_names_of_an_earlier_version_lead_to_the_entry_all_the_same(desk):
    desk.landing.land("a.ndjson", 5)
    desk.both()
    desk.landing.land("b.ndjson", 5)
    desk.both()
    before = desk.why("a.ndjson")
    desk.writes_a_snapshot()
    assert desk.why("a.ndjson") == before


def test_a_file_of_a_source_that_was_moved_leads_to_its_batch(desk):
    desk.landing.land("a.ndjson", 5)
    desk.both()
    desk.ends_well()
    desk.landing.folder.rename(desk.folder / "moved")
    desk.file.write_text(desk.file.read_text().replace("/landing", "/moved"))
    done = desk.cli("source", "set", "default", "--same-files", "--yes")
    assert done.exit_code == 0, done.output
    answer = desk.why("a.ndjson")
    assert (answer["state"], answer["read"][0]["entry"]) == ("in_table", 1)


def test_a_data_file_that_no_entry_names_is_an_orphan_until_gc_deletes_it(desk):
    desk.landing.land("a.ndjson", 5)
    desk.both()
    assert desk.state(str(desk.table / ORPHAN)) == "missing"
    unknown = desk.cli("why", ORPHAN.removesuffix(".parquet"))
    assert unknown.exit_code == 1
    assert "no entry of a journal names" in unknown.output
    body = (desk.table / desk.data_file()).read_bytes()
    (desk.table / ORPHAN).write_bytes(body)
    answer = desk.why(ORPHAN)
    assert (answer["state"], answer["pipeline"]) == ("orphan", "default")
    written = datetime.fromtimestamp((desk.table / ORPHAN).stat().st_mtime, UTC)
    at = datetime.fromisoformat(answer["deleted_from"])
    assert abs(at - written - timedelta(hours=24)) < timedelta(seconds=1)
    assert desk.cli("gc", "--delete", "--older-than", "0s").exit_code == 0
    gone = desk.why(ORPHAN)
    assert (gone["state"], gone["stored"]) == ("deleted", None)


@pytest.mark.unbalanced("rows_removed", "file_gone")
def test_a_file_of_another_program_is_foreign_whether_committed_or_not(desk):
    desk.landing.land("a.ndjson", 5)
    desk.both()
    (desk.table / "other.parquet").write_bytes(b"PAR1")
    for name in (str(desk.table / "other.parquet"), "other.parquet"):
        answer = desk.why(name)
        assert (answer["state"], answer["reason"]) == ("foreign", "uncommitted")
    table = DeltaTable(str(desk.table))
    table.optimize.z_order(["id"])
    (written,) = DeltaTable(str(desk.table)).file_uris()
    answer = desk.why(written)
    assert (answer["state"], answer["reason"]) == ("foreign", "in_table")
    table = DeltaTable(str(desk.table))
    table.delete()
    assert desk.why(written)["reason"] == "removed"


@pytest.mark.unbalanced("file_gone")
def test_a_data_file_whose_object_is_gone_says_so(desk):
    name = desk.loses_a_file()
    answer = desk.why(name)
    assert (answer["state"], answer["stored"]) == ("journaled", None)
    assert "no longer in the store" in answer["answer"]
    assert answer["sources"] == ["default:b.ndjson"]


def test_a_data_file_that_is_still_in_the_outbox_says_so(desk):
    desk.configure(sink="handoff: direct")
    desk.landing.land("a.ndjson", 5)
    desk.blizzard()
    path = desk.data_file()
    outbox = desk.table / "_blizzard/default/outbox"
    outbox.mkdir(exist_ok=True)
    (desk.table / path).rename(outbox / path)
    answer = desk.why(path)
    assert answer["state"] == "journaled"
    assert [way["advice"] for way in answer["next"]] == ["Run blizzard."]
    assert "still in the outbox" in answer["answer"]


def test_two_pipelines_that_share_a_folder_answer_for_their_own_files(desk):
    """Whichever takes the file answers for it; where none does, each says why not."""
    landing = desk.landing.folder
    desk.rewrite("one", source={"path": f"{landing}/a-*.ndjson"})
    document = yaml.safe_load(desk.file.read_text())
    document["pipelines"]["two"] = document["pipelines"]["one"] | {
        "source": {"path": f"{landing}/b-*.ndjson"},
        "sink": {"path": f"{desk.folder}/other"},
    }
    desk.file.write_text(yaml.safe_dump(document))
    put(landing, "b-1.ndjson", ndjson([{"id": 1}]))
    answer = desk.why(str(landing / "b-1.ndjson"))
    assert (answer["state"], answer["pipeline"]) == ("waiting", "two")
    put(landing, "c-1.ndjson", ndjson([{"id": 1}]))
    done = desk.cli("why", str(landing / "c-1.ndjson"), "--output", "json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    told = [(row["pipeline"], row["reason"]) for row in rows]
    assert told == [("one", "not_matched"), ("two", "not_matched")]
    alone = desk.why(str(landing / "b-1.ndjson"), "-p", "one")
    assert (alone["pipeline"], alone["reason"]) == ("one", "not_matched")


@pytest.mark.unbalanced("file_damaged")
def test_a_path_of_another_programs_file_is_exact_and_its_name_means_all_folders(desk):
    desk.configure(partitioned=True)
    desk.landing.land("date=2024-01-01/a.ndjson", 5)
    desk.both()

    def commit(version, action, day):
        path = f"date={day}/part-0.parquet"
        (desk.table / path).parent.mkdir(exist_ok=True)
        (desk.table / path).write_bytes(b"PAR1")
        of = {"path": path, "partitionValues": {"date": day}, "size": 4, "dataChange": True}
        line = {action: of | {"modificationTime": 0, "deletionTimestamp": 0}}
        (desk.table / f"_delta_log/{version:020}.json").write_text(json.dumps(line))

    def found(name):
        answer = desk.why(name)
        return answer["path"], answer["state"], answer["reason"]

    first, later = (f"date=2024-01-0{day}/part-0.parquet" for day in (2, 3))
    version = DeltaTable(str(desk.table)).version()
    commit(version + 1, "add", "2024-01-02")
    assert found("part-0.parquet") == found(first) == (first, "foreign", "in_table")
    assert desk.cli("why", later).exit_code == 1
    assert (
        found(str(desk.table / later))[1]
        == found(str(desk.table / "part-0.parquet"))[1]
        == "missing"
    )
    commit(version + 2, "add", "2024-01-03")
    (desk.table / later).unlink()  # It is lost, and still in the table.
    for _once in range(2):
        several = desk.cli("why", "part-0.parquet")
        assert several.exit_code == 1
        assert f"{first}, {later}" in several.output
        assert found(str(desk.table / first))[0] == found(first)[0] == first
        assert found(str(desk.table / later))[0] == found(later)[0] == later
        commit(version + 3, "remove", "2024-01-03")
    assert found(later)[1:] == ("foreign", "removed")
