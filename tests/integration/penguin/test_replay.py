"""What the log has lost, or a RESTORE took out, is settled as an operator says."""

import json
import os
import shutil
import time
from dataclasses import replace
from functools import partial

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from lakebed.clock import Clock
from lakebed.columns.schema import Field, Schema
from lakebed.documents.entry import Receipt, digest, encode
from lakebed.layout import log_version, receipt
from lakebed.types import Evolution, FieldType
from penguin.cli.app import app
from penguin.delta.table import Log
from penguin.events.backlog import BacklogSeen
from penguin.operate.replay import LogReplay
from tests.support.penguin_commands import penguin
from tests.support.recall import loses
from tests.support.tables import (
    EVENTS,
    WIDER,
    Penguin,
    TableDirectory,
    after_opening,
    opened,
    rows_of,
)

STRICT, MERGE = ({"evolution": mode} for mode in (Evolution.STRICT, Evolution.MERGE))
UNKNOWN = ["pending_entries", "pending_files", "lag_seconds"]


@pytest.fixture
def cli(table):
    return partial(penguin, table.root)


def replay(table):
    return LogReplay(
        settings=table.settings(), store=table.store, clock=Clock(), pause=lambda _seconds: None
    )


def commit(table, *ids):
    for number in ids:
        table.journal().batch(rows_of(number))
        Penguin(table).drain()


def with_held(table):
    """Commit a row, and have the file of another one held."""
    commit(table, 1)
    table.journal().schema = WIDER
    table.journal().batch(rows_of(2))
    Penguin(table, options=STRICT).drain()


def restored_from_a_backup(table):
    """Commit two entries, and two more that the log then loses."""
    commit(table, 1, 2)
    loses(table, lambda: commit(table, 3, 4))


def test_a_log_from_a_backup_is_made_whole_by_replay(table, cli):
    """D16: noticed and stopped; each lost entry is committed once when the operator says so."""
    restored_from_a_backup(table)
    stopped = Penguin(table).drain()
    assert stopped.codes == {"events": "log_rolled_back"}
    seen = next(one for one in stopped.events if isinstance(one, BacklogSeen))
    unknown = [one for one in seen.measures() if "nan" in repr(one)]
    assert [one.name.partition("_")[2] for one in unknown] == UNKNOWN
    status = json.loads(cli("status", "--output", "json").stdout)
    assert {status[key] for key in status if "pending" in key or "lag" in key} == {None}
    for command in ("status", "plan"):
        assert "1 pipeline is stopped" in cli(command).stdout
    shown = cli("replay")
    assert shown.exit_code == 1
    assert "events: pipeline events: entries 3 to 4 would be committed again" in shown.stdout
    assert Penguin(table).drain().codes == {"events": "log_rolled_back"}
    done = cli("replay", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert Penguin(table).drain().codes == {}
    assert table.ids() == [1, 2, 3, 4]
    assert Penguin(table).drain().run.totals.commits == 0
    assert cli("replay", "--pipeline", "events", "--yes").stdout.startswith("nothing to do")


@pytest.mark.parametrize("order", ["replay", "forget"])
def test_a_machine_is_told_line_by_line_what_was_done(table, cli, order):
    """HOLES W42: `--output json` is for each command, as the page says."""
    restored_from_a_backup(table)
    shown = cli(order, "--output", "json")
    (line,) = shown.stdout.splitlines()
    told = json.loads(line)
    assert (shown.exit_code, told["table"], told["done"]) == (1, "events", False)
    assert "entries 3 to 4 would be" in told["what"]
    (line,) = cli(order, "--yes", "--output", "json").stdout.splitlines()
    assert json.loads(line)["done"] is True
    Penguin(table).drain()
    assert cli(order, "--pipeline", "events", "--output", "json").stdout == ""


def test_what_a_log_has_lost_can_be_left_out(table, cli):
    """D16: nothing of it is added, and what comes after it is."""
    restored_from_a_backup(table)
    assert "would be left out" in cli("forget").stdout
    assert cli("forget", "--yes").exit_code == 0
    commit(table, 5)
    assert table.ids() == [1, 2, 5]
    assert '"forgotten":{"events":[3,4]}' in table.commit_text(3).replace(" ", "")


def test_a_dropped_table_is_filled_again_or_begun_anew(table, cli):
    """D16: once an operator says which, and not before."""
    commit(table, 1, 2)
    shutil.rmtree(table.root / "_delta_log")
    assert Penguin(table).drain().codes == {"events": "log_rolled_back"}
    assert table.versions() == 0
    kept = table.root.parent / "kept"
    shutil.copytree(table.root, kept)
    assert cli("replay", "--yes").exit_code == 0
    Penguin(table).drain()
    assert table.ids() == [1, 2]
    shutil.rmtree(table.root)
    shutil.copytree(kept, table.root)
    assert cli("forget", "--yes").exit_code == 0
    commit(table, 3)
    assert table.ids() == [3]


def test_a_journal_that_is_not_the_committed_one_is_not_replayed(table, cli):
    """L21: the entry that the log has must be in the journal as it was."""
    restored_from_a_backup(table)
    path = table.root / "_blizzard/events/journal/00000000000000000002.json"
    path.write_bytes(path.read_bytes().replace(b'"run":"run"', b'"run":"RUN"'))
    done = cli("replay", "--yes")
    assert done.exit_code == 1
    assert "entry 2 is not the one that is committed" in done.stderr
    last = table.root / "_blizzard/events/journal/00000000000000000004.json"
    last.unlink()
    assert "entry 4 of journal" in cli("forget", "--yes").stderr


def test_a_renewed_journal_of_which_the_log_has_nothing_left_is_replayed(table, cli):
    """D16, L21: the receipt goes on saying that the new journal is wanted."""
    commit(table, 1)

    def renew():
        shutil.rmtree(table.root / "_blizzard/events")
        table.journals.clear()
        journal = table.journal()
        wanted = Receipt(journal=journal.id, sequence=0, digest=digest(journal.bodies[0]))
        table.store.replace(receipt("events"), encode(wanted))
        commit(table, 2, 3)

    loses(table, renew)
    assert Penguin(table).drain().codes == {"events": "log_rolled_back"}
    assert cli("replay", "--yes").exit_code == 0
    assert Penguin(table).drain().codes == {}
    assert table.ids() == [1, 2, 3]


def test_a_release_that_the_log_has_lost_is_made_again(table, cli):
    """D16: its meta is gone, its mark says held; no row is lost between the two."""
    with_held(table)
    loses(table, Penguin(table, options=MERGE).drain)
    assert Penguin(table, options=MERGE).drain().held == {}
    assert "1 file whose release the log has lost would be held again" in cli("replay").stdout
    assert cli("replay", "--yes").exit_code == 0
    Penguin(table, options=MERGE).drain()
    assert table.ids() == [1, 2]
    assert cli("replay", "--yes").exit_code == 0


def test_a_commit_that_is_made_during_the_look_has_not_been_rolled_back(table):
    """D16: receipt, log, journal, in this order: a log that was read first knows less."""
    commit(table, 1)
    look = replace(replay(table), open_log=after_opening(lambda: commit(table, 2)))
    assert look.rolled_back() == ()


def test_a_release_that_is_made_during_the_look_is_not_lost(table):
    with_held(table)
    release = Penguin(table, options=MERGE)
    assert replace(replay(table), open_log=after_opening(release.drain)).unlisted() == ()
    assert table.ids() == [1, 2]


def test_an_unreadable_receipt_is_not_taken_for_nothing_to_do(table, cli):
    """D05."""
    restored_from_a_backup(table)
    table.store.replace(receipt("events"), b"{")
    for order in ("replay", "forget"):
        done = cli(order, "--yes")
        assert (done.exit_code, done.stdout) == (1, "")
        assert "receipt.json" in done.stderr


def test_of_several_tables_one_that_was_never_restored_is_no_failure(table, tmp_path):
    commit(table, 1, 2)
    table.delta().restore(1)
    other = TableDirectory(tmp_path / "other")
    commit(other, 1)
    file = tmp_path / "penguin.yaml"
    uris = {"events": table.root, "other": other.root, "none": tmp_path / "none"}
    file.write_text(
        "tables:\n" + "".join(f"  {name}:\n    table_uri: {uri}\n" for name, uri in uris.items())
    )
    done = CliRunner().invoke(app, ["replay", "--yes", "-c", str(file)])
    assert (done.exit_code, done.stderr, table.ids()) == (0, "", [1, 2])


@pytest.mark.parametrize("whole", [False, True])
def test_a_file_that_somebody_has_put_back_does_not_come_back_twice(table, cli, whole):
    """D14, D21: also when it was compacted since, and when it was named by its whole path."""
    commit(table, 1, 2, 3)
    told = (json.loads(line) for line in table.commit_text(2).splitlines())
    add = next(action["add"] for action in told if "add" in action)
    table.delta().restore(1)
    if whole:
        add["path"] = f"file://{table.root}/{add['path']}"
    by_hand = table.root / log_version(table.delta().version() + 1)
    by_hand.write_text(json.dumps({"add": add}) + "\n")
    table.delta().optimize.compact()
    assert table.ids() == [1, 2]
    assert "1 file that version" in cli("replay", "--yes").stdout
    assert table.ids() == [1, 2, 3]


def nothing_to_do(cli) -> None:
    for given in ([], ["--yes"]):
        done = cli("replay", *given)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith("nothing to do: ")


def test_a_replay_without_anything_to_do_is_no_error(table, cli):
    """HOLES D14: before there is a table, with a log that was never restored, and afterwards."""
    nothing_to_do(cli)
    commit(table, 1)
    nothing_to_do(cli)
    assert replay(table).replay_undone() is None


def test_what_a_restore_took_out_comes_back_once_when_asked(table, cli):
    """D14: never by itself; with `replay` every row once, held against compaction in between."""
    commit(table, 1)
    table.journal().batch(rows_of(2), rows_of(3, date=None))
    Penguin(table).drain()
    table.delta().optimize.compact()
    commit(table, 4)
    table.delta().restore(1)
    commit(table, 5)
    assert table.ids() == [1, 5]
    assert "3 files that version" in cli("replay").stdout
    assert table.ids() == [1, 5]
    assert "are back in version" in cli("replay", "--yes").stdout
    assert table.ids() == [1, 2, 3, 4, 5]
    nothing_to_do(cli)
    commit(table, 6)
    assert table.ids() == [1, 2, 3, 4, 5, 6]


def test_columns_that_a_restore_took_away_come_back_with_the_files(table):
    """D14."""
    commit(table, 1)
    table.journal().schema = WIDER
    table.journal().batch([{**rows_of(2)[0], "extra": "x"}])
    Penguin(table).drain()
    table.delta().restore(1)
    replay(table).replay_undone()
    assert {row["id"]: row["extra"] for row in table.rows()} == {1: None, 2: "x"}


def test_two_replays_at_once_add_once(table):
    """D08: the second finds the mark moved."""
    commit(table, 1, 2)
    table.delta().restore(1)
    overtaken = after_opening(replay(table).replay_undone, turn=3)
    replace(replay(table), open_log=overtaken).replay_undone()
    assert table.ids() == [1, 2]
    assert opened(Log(table.store)).transaction("penguin/replay/3") == 2


def test_partition_values_of_any_kind_are_found_again(tmp_path):
    """W09: the log writes paths as parts of a URI."""
    schema = Schema((EVENTS.fields[0], Field(name="name", type=FieldType.STRING)))
    table = TableDirectory(tmp_path / "table")
    journal = table.journal(schema=schema, partitions=("name",))
    for number, name in enumerate(["plain", "a/b c", "100%", "ü=ö"]):
        journal.batch([{"id": number, "name": name}])
        Penguin(table).drain()
    table.delta().restore(1)
    replay(table).replay_undone()
    assert table.ids() == [0, 1, 2, 3]


def test_what_cannot_be_put_back_as_it_was_is_said(table, cli):
    """D14: a row that was deleted in between must not come back."""
    commit(table, 1)
    table.journal().batch(rows_of(2, 3))
    Penguin(table).drain()
    table.delta().delete("id = 2")
    table.delta().restore(1)
    assert "changed rows" in cli("replay", "--yes").stderr


def test_a_file_that_vacuum_took_is_named(table, cli):
    """W21."""
    commit(table, 1)
    entry = table.journal().batch(rows_of(2))
    Penguin(table).drain()
    table.delta().restore(1)
    (table.root / entry.files[0].filename).unlink()
    done = cli("replay", "--yes")
    assert (done.exit_code, table.ids()) == (1, [1])
    assert f"1 of 1 files cannot be put back, {entry.files[0].filename}" in done.stderr
    assert "blizzard audit --accept" in done.stderr


# ---------------------------------------------------------------------- dropped transactions


def drop(table, *kinds):
    """Leave a log that knows no action of these kinds, as another engine may leave one."""
    table.delta().create_checkpoint()
    log = table.root / "_delta_log"
    checkpoint = max(log.glob("*.checkpoint.parquet"))
    rows = pq.read_table(checkpoint)
    for kind in kinds:
        rows = rows.filter(pc.is_null(rows[kind]))
    pq.write_table(rows, checkpoint)
    *before, last = sorted(log.glob("*.json"))
    for version in before:
        version.unlink()
    lines = last.read_text().splitlines()
    kept = [line for line in lines if not any(f'"{kind}"' in line for kind in kinds)]
    last.write_text("\n".join(kept) + "\n")


def age_the_log(table, days):
    """Let the log begin with a version from so many days ago."""
    at = time.time() - days * 86_400
    for file in (table.root / "_delta_log").iterdir():
        os.utime(file, (at, at))


def compacted_and_dropped(table, *kinds):
    """Commit two entries, let another engine rewrite their files, and drop the transactions."""
    commit(table, 1, 2)
    table.delta().optimize.compact()
    drop(table, "txn", *kinds)


def test_a_log_that_still_knows_the_files_gets_its_transactions_again_and_no_row(table, cli):
    """HOLES D23: somebody's retention dropped them; the rows are there, rewritten."""
    compacted_and_dropped(table)
    penguin = Penguin(table).drain()
    assert penguin.codes == {"events": "log_rolled_back"}
    assert "its transactions were dropped" in penguin.reason()
    shown = cli("replay")
    assert "still knows files of entries 1 to 2" in shown.stdout
    assert "committed again" not in shown.stdout
    assert cli("replay", "--yes").exit_code == 0
    commit(table, 3)
    assert table.ids() == [1, 2, 3]
    assert Penguin(table).drain().codes == {}
    assert '"remembered":{"events":[1,2]}' in all_commits(table)


def test_to_forget_what_the_log_still_knows_leaves_no_row_out(table, cli):
    """HOLES D23"""
    compacted_and_dropped(table)
    shown = cli("forget")
    assert "still knows files of entries 1 to 2" in shown.stdout
    assert "left out" not in shown.stdout
    assert cli("forget", "--yes").exit_code == 0
    commit(table, 3)
    assert table.ids() == [1, 2, 3]


def test_of_a_log_that_has_lost_both_each_entry_is_in_once(table, cli):
    """HOLES D23: an old log whose transactions were dropped; what is after it is lost."""
    commit(table, 1, 2)
    table.delta().optimize.compact()
    loses(table, lambda: commit(table, 3, 4))
    drop(table, "txn")
    age_the_log(table, 2)
    shown = cli("replay")
    assert "still knows files of entries 1 to 2" in shown.stdout
    assert "entries 3 to 4 would be committed again" in shown.stdout
    assert cli("replay", "--yes").exit_code == 0
    Penguin(table).drain()
    assert table.ids() == [1, 2, 3, 4]


def test_where_the_log_cannot_tell_nothing_is_committed_again_unasked(table, cli):
    """HOLES D23: the files were rewritten, and even their removal is forgotten."""
    compacted_and_dropped(table, "remove")
    shown = cli("replay")
    assert "of entries 1 to 2 the log cannot tell" in shown.stdout
    refused = cli("replay", "--yes")
    assert refused.exit_code == 1
    assert "may be in the table" in refused.stderr
    assert Penguin(table).drain().codes == {"events": "log_rolled_back"}
    assert table.ids() == [1, 2]
    # Whoever has looked, and has not found them, may say so.
    assert cli("replay", "--yes", "--rows-missing").exit_code == 0
    assert Penguin(table).drain().codes == {}


def test_what_is_held_stays_held_when_its_mark_was_dropped(table, cli):
    """HOLES D23: its note would be taken for one that means nothing, and be deleted."""
    with_held(table)
    table.journal().schema = EVENTS
    table.journal().batch(rows_of(3))
    Penguin(table, options=STRICT).drain()
    drop(table, "txn")
    assert cli("replay", "--yes").exit_code == 0
    held = Penguin(table, options=STRICT).drain().held
    assert list(held.values()) == ["schema_refused"]
    Penguin(table, options=MERGE).drain()
    assert table.ids() == [1, 2, 3]


def all_commits(table):
    log = (table.root / "_delta_log").glob("*.json")
    return "".join(path.read_text() for path in log).replace(" ", "")
