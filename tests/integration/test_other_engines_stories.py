"""What becomes of rows when another engine restores, compacts or changes a table.

Every story begins with a.ndjson (rows 1 and 2) in version 1 and b.ndjson (rows 3 and 4) in
version 2. No row may be in the table twice, none may be missing without a difference in the audit,
and no answer may contradict the table.
"""

import json
import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from blizzard.inspect.audit.findings import FilePlace
from tests.support.builders import entries
from tests.support.promotions import ID
from tests.support.retractions import Taken

PLAIN = {"fields": [ID]}
TELLS = {"fields": [ID], "provenance": ["file"]}
REPLACE = {"on_change": "replace"}
TAKES_OUT_B = {"retract": ("retract", "b.ndjson"), "erase": ("erase", "--where", "id >= 3")}
A, B, C, OTHER = "a.ndjson", "b.ndjson", "c.ndjson", "other.ndjson"


class Lake(Taken):
    """Both programs, and another engine on the same table."""

    engine = "delta-rs"

    @property
    def delta(self):
        return DeltaTable(str(self.table))

    def arrives(self, name, *ids):
        self.land(name, *({"id": number} for number in ids))
        self.ingest()

    def restore(self, version):
        self.delta.restore(version)

    def delete(self, where):
        self.delta.delete(where)

    def merge(self, *numbers):
        """Delete the rows that have one of the ids, and insert the others."""
        rows = pa.table({"id": pa.array(numbers, pa.int64())})
        merger = self.delta.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_delete().when_not_matched_insert_all().execute()

    def update(self, where):
        self.delta.update(updates={"id": "id + 10"}, predicate=where)

    def run(self, *arguments, code=0):
        """Run a command of blizzard's to its end."""
        done = self.cli(*arguments)
        assert done.exit_code == code, done.output
        return " ".join(done.output.split())

    def does(self, *order):
        """Carry out an order, and commit it."""
        self.run(*order, "--yes")
        self.penguin()

    def replaced(self, *names, by=None):
        """Replace the rows of source files, and commit it."""
        self.replaces(*names, by=by)
        self.penguin()

    def replaces(self, *names, by=None, code=0):
        return self.run("retract", *names, "--replace", by or names[0], "--yes", code=code)

    def replays(self, code=0):
        done = self.order("replay", "--yes")
        assert done.exit_code == code, done.output
        return " ".join(done.output.split())

    def asked(self, *arguments):
        return json.loads(self.cli(*arguments, "--output", "json").stdout)

    def kinds(self):
        return {one.kind.value for one in self.audited().differences}

    def balanced(self):
        audit = self.audited()
        assert audit.is_balanced, [one.message for one in audit.differences]

    def loses(self, name):
        """Delete the data file of a source, and let fsck take it out; return how it comes back."""
        (lost,) = [
            self.table / one.filename
            for entry in self.entries()
            for one in entry.files
            if one.source_files == (f"in:{name}",)
        ]
        body = lost.read_bytes()
        lost.unlink()
        return lambda: lost.write_bytes(body)

    def entries(self):
        return entries(self.table)


def lake(folder, schema=None, **more):
    found = Lake(folder, schema or PLAIN, **more)
    found.arrives(A, 1, 2)
    found.arrives(B, 3, 4)
    assert found.ids() == [1, 2, 3, 4]
    return found


@pytest.fixture
def desk(tmp_path):
    return lake(tmp_path)


# ------------------------------------------------ a source read again while its rows are out


def restored(desk):
    desk.restore(1)
    return lambda: None


def deleted(desk):
    desk.delete("id >= 3")
    return lambda: desk.restore(2)


def compacted(desk):
    desk.optimize()
    desk.restore(1)
    return lambda: None


def lost(desk):
    puts_back = desk.loses(B)
    assert desk.order("fsck", "--repair", "--yes").exit_code == 0
    return lambda: (puts_back(), desk.restore(2))


def lost_for_good(desk):
    puts_back = desk.loses(B)
    assert desk.order("fsck", "--repair", "--rows-lost", "--yes").exit_code == 0
    return lambda: (puts_back(), desk.restore(2))


OUT = [restored, deleted, compacted, lost, lost_for_good]


@pytest.mark.parametrize("schema", [PLAIN, TELLS], ids=["plain", "provenance"])
@pytest.mark.parametrize("by", [B, OTHER])
@pytest.mark.parametrize("out", OUT)
def test_replaced_rows_that_were_out_of_the_table_do_not_come_back(tmp_path, out, by, schema):
    desk = lake(tmp_path, schema)
    out(desk)
    if by == OTHER:
        desk.land(OTHER, {"id": 5})
    desk.replaced(B, by=by)
    desk.replays()
    assert desk.ids() == ([1, 2, 3, 4] if by == B else [1, 2, 5])
    desk.balanced()
    desk.replays()
    desk.ingest()
    assert desk.ids() == ([1, 2, 3, 4] if by == B else [1, 2, 5])


@pytest.mark.parametrize("out", OUT)
def test_replaced_rows_that_another_engine_brings_back_are_not_doubled_by_a_replay(tmp_path, out):
    desk = lake(tmp_path)
    out(desk)()
    before = desk.version
    desk.restore(1)
    desk.replaced(B)
    desk.restore(before)
    desk.order("replay", "--yes")
    assert len(desk.ids()) == len(set(desk.ids()))


@pytest.mark.parametrize("meanwhile", ["replay", "restore"])
def test_rows_that_came_back_before_the_commit_reject_the_replacement(desk, meanwhile):
    desk.restore(1)
    desk.replaces(B)
    if meanwhile == "replay":
        desk.replays()
    else:
        desk.restore(2)
    desk.penguin()
    assert desk.ids() == [1, 2, 3, 4]
    desk.balanced()
    desk.replaced(B)
    assert desk.ids() == [1, 2, 3, 4]
    desk.replays()
    assert desk.ids() == [1, 2, 3, 4]
    desk.balanced()


def test_a_compacted_file_that_came_back_before_the_commit_rejects_the_replacement(tmp_path):
    desk = lake(tmp_path, TELLS)
    desk.optimize()
    desk.restore(1)
    desk.replaces(B)
    desk.restore(3)
    desk.penguin()
    assert desk.ids() == [1, 2, 3, 4]
    desk.balanced()


def test_inline_commits_supersede_as_well(tmp_path):
    desk = Lake(tmp_path, PLAIN, commit="inline")
    for name, ids in ((A, (1, 2)), (B, (3, 4))):
        desk.land(name, *({"id": number} for number in ids))
        desk.run("--once")
    desk.restore(1)
    desk.replaces(B)
    desk.replays()
    assert desk.ids() == [1, 2, 3, 4]
    desk.balanced()


@pytest.mark.parametrize("out", OUT)
def test_new_content_supersedes_rows_that_are_out_of_the_table(tmp_path, out):
    desk = lake(tmp_path, source=REPLACE)
    out(desk)
    desk.arrives(B, 30)
    desk.ingest()
    assert desk.ids() == [1, 2, 30]
    desk.replays()
    assert desk.ids() == [1, 2, 30]
    desk.balanced()


@pytest.mark.parametrize("on_change", [False, True], ids=["retract", "on_change"])
def test_a_file_out_of_the_table_with_rows_of_others_is_put_back_first(tmp_path, on_change):
    desk = Lake(tmp_path, PLAIN, source=REPLACE if on_change else {})
    desk.arrives("z.ndjson", 0)
    desk.land(A, {"id": 1}, {"id": 2})
    desk.arrives(B, 3, 4)
    desk.restore(1)
    if on_change:
        desk.arrives(B, 30)
    else:
        desk.land(B, {"id": 30})
        told = desk.replaces(B, code=1)
        assert "penguin replay" in told
    assert desk.ids() == [0]
    desk.replays()
    assert desk.ids() == [0, 1, 2, 3, 4]
    if on_change:
        desk.ingest()
    else:
        desk.replaced(B)
    assert desk.ids() == [0, 1, 2, 30]
    desk.balanced()


# ------------------------------------------------ a rejected replacement by another file


@pytest.mark.parametrize("on_change", ["reingest", "replace"])
def test_a_rejected_replacement_does_not_arrive_beside_the_old_rows(tmp_path, on_change):
    desk = lake(tmp_path, TELLS, source={"on_change": on_change})
    desk.land(OTHER, {"id": 5})
    desk.replaces(B, by=OTHER)
    desk.optimize()
    desk.penguin()
    assert desk.ids() == [1, 2, 3, 4]
    desk.arrives(OTHER, 50)
    desk.ingest()
    assert desk.ids() in ([1, 2, 3, 4], [1, 2, 50])
    desk.replaced(B, by=OTHER)
    assert desk.ids() == [1, 2, 50]
    desk.balanced()


# ------------------------------------------------ losses that other rows hid


def test_rows_that_a_restore_took_out_are_missed_though_others_came_back(desk):
    desk.does("retract", B)
    desk.arrives(C, 5, 6)
    desk.restore(2)
    assert desk.kinds() == {"rows_back", "rows_removed"}
    desk.does("retract", B)
    assert desk.ids() == [1, 2]
    (one,) = desk.audited().differences
    assert one.kind.value == "rows_removed"
    assert f"version 5 (RESTORE of {desk.engine}" in one.message
    assert "penguin replay" in one.message


def test_rows_of_an_accepted_deletion_that_came_back_do_not_hide_a_loss(desk):
    desk.delete("id = 3")
    desk.run("audit", "--accept", "3", "--reason", "asked for")
    desk.balanced()
    desk.arrives(C, 5)
    desk.restore(2)
    assert desk.ids() == [1, 2, 3, 4]
    assert "rows_removed" in desk.kinds()
    assert [one.version for one in desk.audited().losses] == [5]


def test_erased_rows_that_came_back_do_not_hide_a_loss(desk):
    desk.does("erase", "--where", "id = 3")
    desk.arrives(C, 5)
    desk.restore(2)
    desk.does("erase", "--where", "id = 3")
    assert desk.ids() == [1, 2, 4]
    assert desk.kinds() == {"rows_removed"}


def test_a_merge_that_deletes_a_row_and_inserts_one_has_removed_one(desk):
    desk.merge(4, 9)
    assert desk.ids() == [1, 2, 3, 9]
    (one,) = desk.audited().differences
    assert one.kind.value == "rows_removed"
    assert f"version 3 (MERGE of {desk.engine}" in one.message
    assert "removed 1 row" in one.message


@pytest.mark.parametrize("rewrites", ["optimize", "update"])
def test_a_file_beside_the_one_that_has_its_rows_is_reported(desk, rewrites):
    """Another program adds a file again whose rows are in the table, in another file."""
    log = desk.table / "_delta_log"
    if rewrites == "optimize":
        desk.optimize()
    else:
        desk.update("id = 3")
    desk.balanced()
    lines = (log / f"{2:020}.json").read_text().splitlines()
    (add,) = (line for line in lines if line.startswith('{"add"'))
    info = json.dumps({"commitInfo": {"operation": "WRITE", "timestamp": 1}})
    (log / f"{4:020}.json").write_text(f"{info}\n{add}\n")
    assert len(desk.ids()) > len(set(desk.ids())) or rewrites == "update"
    (found,) = desk.audited().differences
    assert found.kind.value == "file_committed_twice"
    assert "which an earlier version has added before and version 3 removed" in found.message


# ------------------------------------------------ rows that came back and were rewritten


@pytest.mark.parametrize("how", ["retract", "erase"])
@pytest.mark.parametrize("rewrites", ["optimize", "update"])
def test_rows_that_came_back_and_were_rewritten_are_found(tmp_path, how, rewrites):
    desk = lake(tmp_path, TELLS)
    desk.does(*TAKES_OUT_B[how])
    assert desk.ids() == [1, 2]
    desk.restore(2)
    if rewrites == "optimize":
        desk.optimize()
    else:
        desk.update("id >= 3")
    assert desk.kinds() == {"rows_back"}
    (one,) = desk.audited().differences
    assert f"version 4 (RESTORE of {desk.engine}" in one.message
    answer = desk.asked("why", B)
    assert answer["state"] != "retracted", answer["answer"]
    desk.does("retract", B)
    assert desk.ids() == [1, 2]
    desk.balanced()


def test_rows_beside_replaced_ones_are_missed_when_what_was_accepted_changes(tmp_path):
    """A file with rows of two sources is superseded for one; the rows of the other stay lost."""
    desk = Lake(tmp_path, PLAIN)
    desk.land(A, {"id": 1}, {"id": 2})
    desk.land(B, {"id": 3}, {"id": 4})
    desk.ingest()
    desk.arrives(C, 5, 6)
    assert len(desk.active) == 2
    desk.restore(0)
    desk.run("audit", "--accept", "3", "--reason", "x")
    desk.balanced()
    desk.land(A, {"id": 11}, {"id": 12})
    desk.replaced(A)
    desk.replays()
    assert desk.ids() == [5, 6, 11, 12]
    (found,) = desk.audited().differences
    assert found.message.startswith(f"version 3 (RESTORE of {desk.engine}")
    assert "removed 2 rows, but 6 rows of 2 files were accepted" in found.message


# ------------------------------------------------ answers after a compaction by another engine


@pytest.mark.parametrize("how", ["delete", "erase"])
def test_rows_that_were_compacted_and_deleted_are_not_said_to_be_there(tmp_path, how):
    desk = lake(tmp_path, TELLS)
    desk.optimize()
    if how == "delete":
        desk.delete("id >= 3")
    else:
        desk.does("erase", "--where", "id >= 3")
    assert desk.ids() == [1, 2]
    answer = desk.asked("why", B)
    assert "2 rows in the table" not in answer["answer"]
    if how == "erase":
        assert "0 rows from 2 lines" in answer["answer"]
        assert "erases 2 rows of it" in answer["answer"]
        assert "2 rows from 2 lines" in desk.asked("why", A)["answer"]
    else:
        assert answer["state"] == "altered"
        assert desk.asked("why", A)["state"] == "altered", "the log does not say whose are left"


# ------------------------------------------------ what the answers count


@pytest.mark.parametrize("out", ["delete", "restore"])
def test_a_rejected_replacement_of_rows_that_are_gone_does_not_say_they_are_there(tmp_path, out):
    desk = lake(tmp_path, TELLS)
    desk.land(B, {"id": 30})
    desk.replaces(B)
    if out == "delete":
        desk.delete("id >= 3")
    else:
        desk.restore(1)
    desk.penguin()
    answer = desk.asked("why", B)
    assert "stay in the table" not in answer["answer"]


def test_forgotten_rows_are_not_counted_as_in_the_table(tmp_path):
    desk = lake(tmp_path)
    log, backup = desk.table / "_delta_log", tmp_path / "backup"
    shutil.copytree(log, backup)
    desk.arrives(C, 5, 6)
    shutil.rmtree(log)
    shutil.copytree(backup, log)
    assert desk.order("forget", "--yes").exit_code == 0
    assert desk.ids() == [1, 2, 3, 4]
    assert "of 3 files, 1 removed from the table" in desk.run("files", "--check", code=1)
    assert desk.asked("why", C)["state"] == "removed"


@pytest.mark.parametrize("done", ["retract", "erase", "replace"])
def test_what_was_to_leave_with_an_entry_that_was_forgotten_is_in_the_table(desk, done):
    """The log lost two versions: a batch, and an entry that takes rows out."""
    desk.arrives(C, 5)
    if done == "replace":
        desk.land(B, {"id": 30})
        desk.replaces(B)
    else:
        desk.run(
            *(("retract", B) if done == "retract" else ("erase", "--where", "id = 4")), "--yes"
        )
    desk.penguin()
    for version in (3, 4):
        (desk.table / "_delta_log" / f"{version:020}.json").unlink()
    assert desk.order("forget", "--yes").exit_code == 0
    assert desk.ids() == [1, 2, 3, 4]

    lost = desk.asked("why", C)
    assert "have been removed from the table since: penguin forget" in lost["answer"]
    assert "penguin forget in version 3" in lost["answer"]
    assert lost["next"][0]["commands"][0].endswith(f" retract in:{C} --replace in:{C}")
    assert (lost["read"][0]["version"], lost["data_files"][0]["removed_version"]) == (None, 3)
    there = desk.asked("why", B)
    assert "penguin forget left it out" in there["answer"] or done == "erase"
    assert "came back" not in there["answer"]
    assert there["state"] == ("changed" if done == "replace" else "in_table")
    assert [one["in_table"] for one in desk.asked("files")["groups"]] == [2]

    desk.does("retract", C, "--replace", C)
    assert desk.ids() == [1, 2, 3, 4, 5]


# ------------------------------------------------ rows that another engine deletes by value


@pytest.mark.parametrize("deleted", ["id >= 3", "id < 3"], ids=["those", "others"])
def test_rows_that_came_back_count_as_deleted_once_an_operator_says_so(desk, deleted):
    """The log does not say which rows another engine deleted by their values."""
    desk.does("retract", B)
    desk.restore(2)
    desk.optimize()
    assert desk.kinds() == {"rows_back"}
    desk.delete(deleted)
    assert len(desk.ids()) == 2
    back = next(one for one in desk.audited().differences if one.kind.value == "rows_back")
    assert "unless they are among the rows that version 6 deleted since" in back.message
    desk.run("audit", "--accept", "6", "--reason", "deleted by value")
    desk.balanced()
    desk.delete("id in (2, 4)")
    (one,) = desk.audited().differences
    assert f"version 7 (DELETE of {desk.engine}" in one.message


@pytest.mark.parametrize("compacted", [False, True], ids=["plain", "compacted"])
def test_rows_that_were_deleted_twice_are_missed_once(desk, compacted):
    if compacted:
        desk.optimize()
    before = desk.version
    for _time in range(2):
        desk.delete("id = 3")
        desk.restore(before)
    desk.balanced()
    desk.restore(before + 1)
    assert desk.ids() == [1, 2, 4]
    (one,) = desk.audited().differences
    assert "removed 1 row" in one.message


@pytest.mark.parametrize("how", ["retract", "erase"])
@pytest.mark.parametrize("by", ["blizzard", "another engine"])
def test_a_restore_to_before_rows_that_were_taken_out_brings_none_back(tmp_path, by, how):
    desk = lake(tmp_path, TELLS, more={"sink": {"compact": {"min_files": 2, "quiet_secs": 0}}})
    if by == "blizzard":
        desk.does("compact")
        assert len(desk.active) == 1
    else:
        desk.optimize()
    desk.does(*TAKES_OUT_B[how])
    desk.restore(1)
    assert desk.ids() == [1, 2]
    desk.balanced()


def test_rows_that_cannot_be_told_apart_are_deleted_by_value_and_replaced(desk):
    desk.optimize()
    told = desk.run("retract", B, "--yes", code=1)
    assert "--rows-deleted" in told
    desk.delete("id >= 3")
    assert desk.kinds() == {"rows_removed"}
    assert "none of its rows is in the table" in desk.run("retract", B, "--rows-deleted", "--yes")
    desk.land(B, {"id": 30})
    desk.does("retract", B, "--replace", B, "--rows-deleted")
    assert desk.ids() == [1, 2, 30]
    desk.balanced()
    desk.replays()
    assert desk.ids() == [1, 2, 30]


def test_a_lost_file_whose_bad_lines_were_replayed_is_read_again(tmp_path):
    """A redo would double the replayed row: it says what reads the file again without that."""
    desk = Lake(tmp_path, PLAIN, more={"error_handling": {"on_bad_record": "quarantine"}})
    desk.arrives(A, 1, 2)
    desk.land(B, {"id": 3}, {"id": "4"})
    desk.ingest()
    assert desk.ids() == [1, 2, 3]
    desk.loses(B)
    assert desk.order("fsck", "--repair", "--yes").exit_code == 0
    desk.configure({"fields": [ID], "coerce": True})
    desk.does("dlq", "replay", "--all")
    assert desk.ids() == [1, 2, 4]
    refused = desk.run("redo", "--file", B, "--yes", code=1)
    assert "blizzard retract of all of them with --replace" in refused
    desk.replaced(B)
    assert desk.ids() == [1, 2, 3, 4]
    desk.balanced()
    assert desk.audited().places.amounts[FilePlace.AWAITING_REDO].rows == 0


@pytest.mark.parametrize("how", ["retract", "erase", "replace"])
def test_a_replay_puts_back_what_must_be_there_though_rows_changed_meanwhile(desk, how):
    if how == "retract":
        desk.run("retract", B, "--yes")
    elif how == "erase":
        desk.run("erase", "--where", "id = 3", "--yes")
    else:
        desk.land(B, {"id": 30})
        desk.replaced(B)
    desk.arrives(C, 5, 6)
    there = desk.ids()
    desk.restore(1)
    assert desk.ids() == [1, 2]
    desk.replays()
    assert desk.ids() == there
    desk.balanced()
    desk.replays()
    assert desk.ids() == there
