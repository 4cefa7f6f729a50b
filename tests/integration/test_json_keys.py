"""`--output json` keeps its keys, in their order; what a person reads is in plain English."""

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from blizzard.cli.app import app as blizzard_app
from penguin.cli.app import app as penguin_app
from tests.support.builders import ndjson, put
from tests.support.desk import Desk
from tests.unit.test_completion import ONE_OF_MANY

WHY = """kind state uri pipeline table_uri source path answer reason detail
    stored(path size etag modified)"""
WHY_ENDS = """sources retraction erased earlier_lines read_before bad_lines
    deleted_from"""
DATA_FILES = """data_files[path rows bytes entry sources state own_rows version
    removed_version removed_at removed_by code reasons replaced_by]"""
BATCH = """(entry kind at run files failed rows parquet_files parquet_bytes gone)"""
LAST_COMMIT = """last_commit(version at operation writer entries[pipeline first last]
    files_of_others files_added files_removed rows_added files_rewritten files_held files_released
    files_discarded)"""
OTHERS = """others(pending_files left_out watermarks
    ignored)"""
KEYS = {
    "blizzard status": """
        pipeline table_uri handoff journal last_entry committed_entry uncommitted_entries
        receipt_fits lost_entry last_batch(entry kind at run files failed rows parquet_files
        parquet_bytes gone)
        writer(run host process since state seen) sources[source uri pending_files pending_bytes
        oldest_pending lag_secs failed_files lost_files failures[path stage
        code message line field attempts since failed_at entry next_try lines_in_table]
        changed_files skipped_names totals(batches files lines blank
        filtered quarantined rows source_bytes rescued dropped) error notifications]
        totals(batches
        files lines blank filtered quarantined rows source_bytes rescued dropped) parquet_files
        parquet_bytes quarantine(waiting replayed filtered discarded)
        held_files held_rows
        held[code reasons files rows]
        discarded_files discarded_rows awaiting_redo withheld_error uncommitted_rows
        uncommitted_since last_commit_at late lag_secs error
    """,
    "blizzard why a.ndjson": f"""
        {WHY} read[entry at lines blank filtered quarantined rescued dropped rows version committed
        committed_at counted] resolved failure gone running {DATA_FILES} {WHY_ENDS} next
    """,
    "blizzard why bad.ndjson": f"""
        {WHY} read resolved failure(path stage code message line field attempts since failed_at
        entry next_try lines_in_table) gone running data_files {WHY_ENDS}
        next[advice yaml commands]
    """,
    "blizzard why c.ndjson": f"""
        {WHY} read resolved failure gone running data_files {WHY_ENDS} next[advice yaml commands]
    """,
    "blizzard why ID": f"""
        {WHY} read resolved failure gone running {DATA_FILES} {WHY_ENDS}
        next[advice yaml commands]
    """,
    "blizzard files": """
        pipeline table_uri by groups[name landed in_table journaled held discarded failed waiting
        changed retracted removed altered deleted lost in_part not_applied overwritten bytes
        rows quarantined_lines uncounted complete standing sentence] left_out skipped_names errors
    """,
    "blizzard files a.ndjson": """
        pipeline uri source path state at size entry partition reason deleted
        overwritten quarantined_lines in_part day
    """,
    "blizzard journal": """
        pipeline entry kind at run files failed rows parquet_files parquet_bytes gone sources
        dlq committed rejected follows held_files held_rows discarded_files discarded_rows
    """,
    "blizzard journal 2": """
        format kind pipeline journal sequence run created previous handoff source_uris
        table_schema partition_columns columns sources[source path size etag lines blank
        filtered quarantined rows skipped complete unread dropped rescued unit failure redo
        supersedes reingested retry gone discarded retracted modified form] files[filename size
        record_count partition_values source_file source_files runs unit statistics
        modification_time row_columns vector]
        dlq deleted redone inherits heir moved follows rewrites
        as_of erased reason quarantine resolved seconds path digest size committed rejected
        is_last held_files held_rows discarded_files discarded_rows
    """,
    "blizzard --dry-run": """
        pipeline table_uri entry files bytes units[unit partition_values files[path size bytes
        format reingested]] replaced
        not_taken[source reason files bytes some detail until] left_out[source path size reason
        detail until] refusal notifications
    """,
    "blizzard dlq list": """
        path error stage timestamp retry_count code line field pipeline source batch size etag
    """,
    "blizzard dlq retry --all": """
        pipeline entry files refused
    """,
    "blizzard dlq replay --all": """
        pipeline table_uri entry lines filtered left files sources
    """,
    "blizzard dlq discard --all": """
        pipeline table_uri entry lines filtered left files sources
    """,
    "blizzard gc --older-than 0s": """
        pipeline table_uri deleted entry files bytes pieces young_files young_bytes left_alone
    """,
    "blizzard redo --held ID": """
        pipeline table_uri entry units[entry files rows sources why_not]
    """,
    "penguin status": f"""
        table table_uri version {LAST_COMMIT} lag_secs pending_entries pending_files
        pending_rows pipelines[pipeline committed_entry pending_entries
        pending_files pending_rows lag_secs stopped] stopped
        held_files held_rows held[code reasons files rows] discarded_files discarded_rows
        {OTHERS} in_danger error
    """,
    "penguin held": """
        table kind id pipeline entry code reasons since file rows bytes sources
    """,
    "penguin history": """
        table version at operation writer entries[pipeline first last] files_of_others
        files_added files_removed rows_added files_rewritten
        files_held files_released files_discarded | table
        version at operation writer entries files_of_others files_added files_removed rows_added
        files_rewritten files_held files_released files_discarded
    """,
    "penguin release ID": """
        table id file rows outcome version reasons
    """,
    "penguin plan": """
        table table_uri version creates_table entries files rows columns_added columns_dropped
        columns_widened pipelines[pipeline journal first last] held[pipeline entry files code
        reasons] released still_held others left_out stopped waiting
        replaced retracted rejected error
    """,
    "penguin discard ID --yes": """
        table id file rows outcome version reasons
    """,
    "penguin --once": """
        table table_uri version commits entries files rows held_files held_rows error
    """,
    "penguin status # stopped": f"""
        table table_uri version {LAST_COMMIT} lag_secs pending_entries pending_files
        pending_rows pipelines[pipeline committed_entry pending_entries
        pending_files pending_rows lag_secs stopped(pipeline
        entry code reasons since)] stopped held_files held_rows
        held[code reasons files rows] discarded_files discarded_rows {OTHERS} in_danger
        error
    """,
    "penguin held # stopped": """
        table kind id pipeline entry code reasons since file rows bytes sources | table kind
        pipeline entry code reasons since
    """,
    "penguin plan # stopped": """
        table table_uri version creates_table entries files rows columns_added columns_dropped
        columns_widened pipelines held released still_held others left_out stopped[pipeline code
        error] waiting replaced retracted rejected error
    """,
    "blizzard audit --deep # damaged": """
        table_uri balanced deep version history_since journals entries waiting_entries source_files
        lines blank filtered quarantined bad_lines_waiting replayed filtered_on_replay discarded
        rows named(in_table(files rows) replaced(files rows) retracted(files rows)
        removed_by_others(files rows) unknown(files rows) waiting(files rows) held(files rows)
        given_up(files rows) awaiting_redo(files rows) forgotten(files rows) nowhere(files rows))
        active(files rows)
        by_others(files rows) adopted(files rows) unknown(files rows) others[version operation
        writer] accepted
        differences[kind message pipeline entry version file source]
        not_covered
    """,
    "blizzard status # damaged": """
        pipeline table_uri error code
    """,
    "blizzard journal new --empty": """
        pipeline done sentence doubles
    """,
    "blizzard journal new --empty --yes": """
        pipeline done journal entries files kept
    """,
    "blizzard source set default --same-files": """
        pipeline source uri done before same_files changed_files new_files
    """,
}

MAPS = {
    "source_uris",
    "table_schema",
    "dropped",
    "rescued",
    "statistics",
    "partition_values",
    "refused",
}
"""What has names of the user's for keys."""


def shape(value: Any) -> str:
    """Return the keys of a document in their order; of a list those of its first element."""
    if isinstance(value, list):
        return f"[{shape(value[0])}]" if value and isinstance(value[0], dict) else ""
    if not isinstance(value, dict):
        return ""
    below = {key: "" if key in MAPS else shape(each) for key, each in value.items()}
    return " ".join(
        f"{key}{inner if inner.startswith('[') else f'({inner})' if inner else ''}"
        for key, inner in below.items()
    )


class Table(Desk):
    """A table that gets into one situation after the other, and what each command says of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.said: dict[str, str] = {}
        self.shown: dict[str, str] = {}

    def ask(self, *commands: str, name: str = "") -> None:
        for command in commands:
            program, *words = command.partition(" #")[0].replace("ID", name).split()
            app = blizzard_app if program == "blizzard" else penguin_app
            words += ["-c", str(self.file)]
            if not {"retry", "release", "--yes", "--once"}.intersection(words):
                shown = CliRunner().invoke(app, words, env={"COLUMNS": "80", "NO_COLOR": "1"})
                self.shown[command] = shown.output
            done = CliRunner().invoke(app, [*words, "--output", "json"])
            assert done.stdout, (command, done.output)
            shapes = [shape(json.loads(line)) for line in done.stdout.splitlines()]
            self.said[command] = " | ".join(dict.fromkeys(shapes))


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> Table:
    table = Table(tmp_path_factory.mktemp("desk") / "both")
    held = table.holds_a_file()
    put(table.landing.folder, "bad.ndjson", b"{nope\n")
    table.blizzard()
    put(table.landing.folder, "c.ndjson", ndjson([{"id": 99}]))
    put(table.landing.folder, "odd\x01name.ndjson", b"x")
    put(table.table, "other.parquet", b"PAR1")
    put(table.table, "_blizzard/default/outbox/018cc4e5-2200-7000-8000-000000000001.parquet", b"x")
    table.ask(
        "blizzard status",
        "blizzard why a.ndjson",
        "blizzard why bad.ndjson",
        "blizzard why c.ndjson",
        "blizzard why ID",
        "blizzard files",
        "blizzard files a.ndjson",
        "blizzard journal",
        "blizzard journal 2",
        "blizzard --dry-run",
        "blizzard dlq list",
        "blizzard dlq retry --all",
        "blizzard dlq replay --all",
        "blizzard dlq discard --all",
        "blizzard gc --older-than 0s",
        "blizzard redo --held ID",
        "penguin status",
        "penguin held",
        "penguin history",
        "penguin release ID",
        name=held,
    )
    table.declare("small", "int64")
    table.landing.land("d.ndjson", 5)
    table.blizzard()
    table.ask("penguin plan")
    table.ask("penguin discard ID --yes", "penguin --once", name=held)
    table.landing.land("e.ndjson", 5)
    table.blizzard()
    last = max((table.table / "_blizzard/default/journal").glob("*[0-9].json"))
    last.write_text(json.dumps(json.loads(last.read_text()) | {"previous": "0" * 64}))
    table.ends_well()
    table.ask("penguin status # stopped", "penguin held # stopped", "penguin plan # stopped")
    DeltaTable(str(table.table)).delete()
    table.ask("blizzard audit --deep # damaged")
    table.ask("blizzard status # damaged", "blizzard journal new --empty")
    table.ask("blizzard journal new --empty --yes", "blizzard source set default --same-files")
    return table


def test_every_document_has_its_keys_in_their_order(asked):
    expected = {command: " ".join(keys.split()) for command, keys in KEYS.items()}
    assert asked.said == expected


def test_what_a_person_reads_counts_one_thing_as_one(asked):
    assert len(asked.shown) > 10
    for command, text in asked.shown.items():
        assert ONE_OF_MANY.search(text) is None, (command, text)
        assert "(s)" not in text
    status = asked.shown["penguin status"]
    assert "2 entries are waiting with 0 files" in status
    assert "1 file with 5 rows is held; `penguin held` names it" in status
    assert "1 file with 5 rows has been held since" in asked.shown["penguin held"]
