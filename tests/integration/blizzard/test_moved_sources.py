"""A source at another place: refused until it is told whether the same files lie there."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.lease import this_machine
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.source.file import IngestedFile, Recorded, UnfinishedFile
from blizzard.model.source.form import SourcePattern
from blizzard.model.stores import sink_location, source_location
from blizzard.repair.new_journal import compare, move, to_learn
from lakebed.clock import Clock
from lakebed.errors import JournalLost, LakeError, SourceMoved
from lakebed.storage.store import Reader, Store
from lakebed.types import OnChange
from tests.support.builders import (
    NOON,
    Bench,
    Hands,
    entries,
    facts,
    failure,
    ndjson,
    no_options,
    pipeline_settings,
    put,
    record,
    rows,
    source_settings,
    tree,
)
from tests.support.commands import Desk, recorded, told
from tests.support.dying import Died, Fate, dying
from tests.support.promotions import ID
from tests.support.retractions import Taken
from tests.support.writers import lease


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A pipeline that has read two files, one of them in a folder, and a bad one."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(2)))
    put(tmp_path / "in", "sub/b.ndjson", ndjson(rows(2, 2)))
    put(tmp_path / "in", "bad.ndjson", b"{nope\n")
    found = Desk(tmp_path)
    ingest(found.settings())
    return found


def at(desk: Desk, uri: object, name: str = "default", **given) -> PipelineSettings:
    source = source_settings(str(uri), name=name, **given)
    return pipeline_settings(desk.landing, desk.table, sources=(source,))


def ingest(settings: PipelineSettings, hands: Hands | None = None) -> bool:
    bench = Bench(settings, run_id=str(Clock().fresh_id()), hands=hands or Hands(drawn=DRAWN))
    return bench.pipeline().step()


DRAWN = iter(range(10**9))
"""Ids are drawn from one counter by all runs: no two of them give files the same name."""


def ids(desk: Desk) -> list[int]:
    desk.commit()
    return desk.ids()


def moved(desk: Desk, where: str = "elsewhere") -> Path:
    """Copy the source to another folder, as other objects, and write a configuration of it."""
    target = desk.root / where
    shutil.copytree(desk.landing, target)
    return target


def config(desk: Desk, place: object) -> Path:
    file = desk.config()
    file.write_text(file.read_text().replace(f'"{desk.landing}"', f'"{place}"'))
    return file


def told_so(desk: Desk, place: object, *more: str):
    return desk.run("source", "set", "default", "--same-files", *more, config=config(desk, place))


def test_a_source_at_another_place_is_refused_with_both_ways_out(desk):
    """HOLES L26: files of equal names there would count as changed, and never be read."""
    place = moved(desk)
    put(place, "a.ndjson", ndjson(rows(3, 10)))
    before = tree(desk.table)
    with pytest.raises(SourceMoved, match="blizzard source set default --same-files") as refused:
        ingest(at(desk, place))
    assert "a name other than 'default'" in str(refused.value)
    assert tree(desk.table) == before
    shown = desk.run("--dry-run", config=config(desk, place))
    assert shown.exit_code == 2
    assert "[source_moved]" in shown.stdout
    assert str(refused.value) in shown.stderr
    shown = desk.run("status", config=config(desk, place))
    assert shown.exit_code == 1
    assert "has been read from" in shown.stdout


def test_files_of_a_source_at_another_place_are_not_said_to_wait(desk):
    file = config(desk, moved(desk))
    for asked in ((), ("--check",), ("--state", "waiting")):
        shown = desk.run("files", *asked, config=file)
        assert shown.exit_code == 1, shown.output
        assert "a start would be refused: " in shown.stdout
        assert "[source_moved]" in shown.stdout
        assert "waiting" not in shown.stdout
        assert "has landed" not in shown.stdout
    (row,) = told(desk.run("files", "--output", "json", config=file))
    assert (row["groups"], len(row["errors"])) == ([], 1)
    listed = desk.run("files", "a.ndjson", "--output", "json", config=file)
    assert (listed.exit_code, listed.stdout) == (1, "")
    assert "[source_moved]" in listed.stderr


def test_files_of_a_source_by_another_name_are_not_said_to_wait(desk):
    file = desk.config()
    text = file.read_text()
    file.write_text(text.replace("    source: {", "    sources:\n      logs: {"))
    for command in ("files", "status"):
        shown = desk.run(command, config=file)
        assert shown.exit_code == 1, shown.output
        assert "has been read as 'default' and is now called 'logs'" in " ".join(
            shown.stdout.split()
        )
    assert "waiting to be read" not in desk.run("files", config=file).stdout


def test_the_program_refuses_it_with_exit_2(desk):
    """HOLES L26: before it asks Spark for anything."""
    ended = CliRunner().invoke(app, ["-c", str(config(desk, moved(desk))), "--once"])
    assert ended.exit_code == 2, ended.output
    assert "source set default --same-files" in ended.stderr


@pytest.mark.parametrize("how", ["{}/in/", "file://{}/in", "{}/link", "in", "./link/../in"])
def test_another_spelling_of_the_same_place_is_no_other_place(desk, monkeypatch, how):
    """HOLES L26: and nothing is read again."""
    monkeypatch.chdir(desk.root)
    (desk.root / "link").symlink_to(desk.landing)
    settings = at(desk, how.format(desk.root))
    assert not ingest(settings)
    put(desk.landing, "c.ndjson", ndjson(rows(1, 4)))
    assert ingest(settings)
    assert ids(desk) == [0, 1, 2, 3, 4]
    assert not ingest(desk.settings())


def test_a_relative_path_from_another_folder_is_another_place(desk, monkeypatch):
    """HOLES L26: the journal remembers the full path."""
    monkeypatch.chdir(desk.root)
    put(desk.landing, "c.ndjson", ndjson(rows(1, 4)))
    assert ingest(at(desk, "in"))
    put(desk.root / "there/in", "a.ndjson", ndjson(rows(2, 10)))
    monkeypatch.chdir(desk.root / "there")
    with pytest.raises(SourceMoved):
        ingest(at(desk, "in"))


@pytest.mark.parametrize("on_change", OnChange)
def test_the_same_files_at_another_place_stay_known(desk, on_change):
    """HOLES L26: as other objects, whatever is to become of changed ones; new ones are read."""
    place = moved(desk)
    put(place, "c.ndjson", ndjson(rows(1, 4)))
    shown = told_so(desk, place)
    assert shown.exit_code == 1
    assert "3 files with known names and sizes" in shown.stdout
    assert "1 file with new names" in shown.stdout
    assert "add --yes" in shown.stdout
    with pytest.raises(SourceMoved):
        ingest(at(desk, place))

    done = told_so(desk, place, "--yes")
    assert done.exit_code == 0, done.output
    settings = at(desk, place, on_change=on_change)
    assert ingest(settings)
    assert not ingest(settings)
    assert ids(desk) == [0, 1, 2, 3, 4]
    shown = recorded(desk.run("journal", "2", config=config(desk, place)).stdout)
    assert (shown["moved"], shown["source_uris"]["default"]) == ("default", str(place))
    shown = told_so(desk, place, "--yes")
    assert (shown.exit_code, len(entries(desk.table))) == (0, 4)
    assert "already" in shown.stdout
    with pytest.raises(SourceMoved, match=str(place)):
        ingest(desk.settings())


def test_a_place_where_no_known_file_lies_is_not_taken_for_the_same_files(desk):
    """HOLES L26, D19: a slip of the path would have them read under names that are not theirs."""
    place = desk.root / "elsewhere"
    put(place, "x.ndjson", ndjson(rows(1, 20)))
    shown = told_so(desk, place, "--yes")
    assert shown.exit_code == 1
    assert "none of the files" in shown.output
    assert [entry.kind for entry in entries(desk.table)] == ["open", "batch"]


def test_other_files_under_another_name_are_read_whatever_they_are_called(desk):
    """HOLES L26: the second way out."""
    put(desk.root / "elsewhere", "a.ndjson", ndjson(rows(3, 10)))
    assert ingest(at(desk, desk.root / "elsewhere", "more"))
    assert ids(desk) == [0, 1, 2, 3, 10, 11, 12]
    assert not ingest(desk.settings())


def test_a_bad_file_that_was_moved_is_still_bad_and_a_changed_one_still_changed(desk):
    """HOLES L26: what was known of a file goes with it."""
    place = moved(desk)
    put(place, "a.ndjson", ndjson(rows(5)))
    (done,) = told(told_so(desk, place, "--yes", "--output", "json"))
    assert (done["same_files"], done["changed_files"], done["new_files"]) == (2, 1, 0)
    assert done["before"] == str(desk.landing)
    assert not ingest(at(desk, place))
    put(place, "bad.ndjson", ndjson(rows(1, 4)))
    assert ingest(at(desk, place))
    assert ids(desk) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["default", "later"])
def test_a_file_that_changes_after_its_source_has_moved_is_not_read_again(desk, name):
    """Nor where another pipeline has taken the journal over: its rows are in the table."""
    place = moved(desk)
    before = ids(desk)
    file = config(desk, place)
    assert desk.run("source", "set", "default", "--same-files", "--yes", config=file).exit_code == 0
    ids(desk)
    if name == "later":
        file.write_text(file.read_text().replace("  default:\n", "  later:\n", 1))
        done = desk.run("journal", "new", "--from", "default", "--yes", config=file)
        assert done.exit_code == 0, done.output
    put(place, "a.ndjson", ndjson(rows(3, 10)))
    assert not ingest(replace(at(desk, place), name=name))
    assert ids(desk) == before


@pytest.mark.parametrize("is_penguin_first", [True, False], ids=["committed", "uncommitted"])
def test_a_replaced_file_and_others_stay_in_the_table_when_their_source_moves(
    tmp_path, is_penguin_first
):
    lake = Taken(tmp_path, {"fields": [ID]}, source={"on_change": "replace"})
    for name, number in (("a", 2), ("b", 3), ("a", 9)):
        lake.land(f"{name}.ndjson", {"id": 1}, {"id": number})
        lake.ingest()
    place = tmp_path / "elsewhere"
    shutil.copytree(lake.landing.folder, place)
    lake.source["path"] = str(place)
    lake.configure({"fields": [ID]})
    lake.ends_well()
    done = lake.cli("source", "set", "in", "--same-files", "--yes")
    assert done.exit_code == 0, done.output
    if is_penguin_first:
        lake.penguin()

    (answer,) = told(lake.cli("files", "--output", "json"))
    counts = [group for group in answer["groups"] if group["landed"]]
    found = [(one["landed"], one["in_table"], one["rows"], one["uncounted"]) for one in counts]
    assert found == [(2, 2, 4, 0)]
    (why,) = told(lake.cli("why", "a.ndjson", "--output", "json"))
    assert (why["state"], why["read_before"]) == ("in_table", [])
    assert "Entry 3 replaced its earlier content" in why["answer"]
    lake.blizzard()
    assert lake.ids() == [1, 1, 3, 9]


def test_after_a_move_others_may_be_read_from_the_old_place(desk):
    place = moved(desk)
    with pytest.raises(JournalLost, match="has been read as 'default'"):
        ingest(at(desk, desk.landing, "more"))
    assert told_so(desk, place, "--yes").exit_code == 0
    shutil.rmtree(desk.landing)
    put(desk.landing, "new.ndjson", ndjson(rows(1, 4)))
    assert ingest(at(desk, desk.landing, "more"))
    assert ids(desk) == [0, 1, 2, 3, 4]


def test_a_narrower_path_is_refused_and_the_pattern_that_is_named_reads_nothing_twice(desk):
    """HOLES D19: a file is known by its name below the source's folder."""
    put(desk.landing, "sub/c.ndjson", ndjson(rows(1, 4)))
    put(desk.landing, "d.ndjson", ndjson(rows(1, 5)))
    with pytest.raises(
        SourceMoved, match="keep the outer one and select it with a pattern"
    ) as told:
        ingest(at(desk, desk.landing / "sub"))
    pattern = str(told.value).partition("pattern: ")[2].partition(" (")[0]
    assert pattern == f"{desk.landing}/su[b]/**"
    assert ingest(at(desk, desk.landing, pattern=SourcePattern("su[b]/**")))
    assert ids(desk) == [0, 1, 2, 3, 4]
    assert told_so(desk, desk.landing / "sub", "--yes").exit_code == 1


def test_a_wider_path_is_refused_and_other_folders_are_added_by_their_names(desk):
    """HOLES D19."""
    put(desk.root / "other", "a.ndjson", ndjson(rows(1, 4)))
    with pytest.raises(SourceMoved, match="add each other folder under sources"):
        ingest(at(desk, desk.root))
    both = at(desk, desk.landing)
    more = source_settings(str(desk.root / "other"), name="other")
    assert ingest(replace(both, sources=(*both.sources, more)))
    assert ids(desk) == [0, 1, 2, 3, 4]


def test_what_the_journal_does_not_know_cannot_have_been_moved(desk):
    file = config(desk, moved(desk))
    assert desk.run("source", "set", "default", config=file).exit_code == 2
    assert desk.run("source", "set", "other", "--same-files", config=file).exit_code == 2
    file.write_text(
        file.read_text().replace("source: {path", "sources: {more: {path").replace(", }", "}}", 1)
    )
    refused = desk.run("source", "set", "more", "--same-files", "--yes", config=file)
    assert refused.exit_code == 1
    assert "knows no source 'more'" in refused.stderr


def test_nothing_is_moved_while_a_blizzard_writes_the_pipeline(desk):
    """HOLES D26."""
    place = moved(desk)
    turn = lease("run-7", on=this_machine())
    turn.take(desk.store)
    for more in ((), ("--yes",)):
        refused = told_so(desk, place, *more)
        assert refused.exit_code == 1
        assert "a blizzard is running pipeline default and is alive" in refused.stderr
    assert len(entries(desk.table)) == 2


def test_a_place_that_another_pipeline_reads_is_nobody_s_new_place(desk):
    """HOLES D19."""
    place = moved(desk)
    other = replace(at(desk, place), name="other")
    assert ingest(other)
    refused = told_so(desk, place, "--yes")
    assert refused.exit_code == 1
    assert "pipeline 'other' of this table already reads" in refused.stderr


@pytest.mark.unbalanced("entry_missing", "file_unnamed")
def test_a_journal_is_not_taken_over_with_a_source_at_another_place(desk):
    """HOLES L26: the new journal would take the files there for the ones of the same names."""
    ids(desk)
    (desk.table / "_blizzard/default/journal/00000000000000000001.json").unlink()
    refused = desk.run(
        "journal", "new", "--from", "default", "--yes", config=config(desk, moved(desk))
    )
    assert refused.exit_code == 2
    assert "source 'default' has been read from" in refused.stderr


def file_by_file(store: Store, source: SourceSettings, place: Reader) -> None:
    """Write down where a source is, in an entry for each of its files."""
    move(store, source, read_ledger(store, "default"), place, clock=Clock(), chunk=1)


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_entry_loses_and_doubles_nothing_and_the_command_finishes(
    desk, tmp_path, after
):
    """HOLES L26: until it is finished a start is refused, with either path."""
    place = moved(desk)
    settings = at(desk, place, on_change=OnChange.REINGEST)
    whole = tmp_path / "whole"
    shutil.copytree(desk.table, whole)
    for number in range(1, 10):
        shutil.rmtree(desk.table)
        shutil.copytree(whole, desk.table)
        store = dying(desk.store, Fate(number, after=after, changes_only=True))
        reader = Reader(str(place), no_options())
        try:
            file_by_file(store, settings.sources[0], reader)
        except Died:
            pass
        else:
            break
        if len(entries(desk.table)) in range(3, 5):
            for each in (settings, at(desk, desk.landing)):
                with pytest.raises(LakeError, match="source set default --same-files"):
                    ingest(each)
        file_by_file(desk.store, settings.sources[0], reader)
        assert not ingest(settings)
        assert ids(desk) == [0, 1, 2, 3]
    assert number == 4, "three entries: a file each"


def test_while_one_source_is_half_moved_no_other_is(desk):
    """HOLES L26: the second would hide what the journal has yet to learn of the first."""
    put(desk.root / "more", "m.ndjson", ndjson(rows(1, 9)))
    assert ingest(at(desk, desk.root / "more", "more"))
    place = moved(desk)
    store = dying(desk.store, Fate(1, after=True, changes_only=True))
    with pytest.raises(Died):
        file_by_file(store, at(desk, place).sources[0], Reader(str(place), no_options()))
    other = at(desk, desk.root / "most", "more")
    (desk.root / "most").mkdir()
    reader = Reader(sink_location(other).uri, no_options())
    with pytest.raises(JournalLost, match="source set default --same-files --yes again"):
        compare(
            other.sources[0], read_ledger(reader, "default"),
            Reader(source_location(other.sources[0]).uri, no_options()),
        )  # fmt: skip


def test_what_was_seen_last_of_a_file_counts_before_what_is_in_the_table():
    """HOLES L26, D24: of a file with a bad later version both stay known."""
    done = Recorded(finished=IngestedFile(key="default:a", size=10, etag="e1"))
    bad = UnfinishedFile(record=record("a", size=7, failure=failure()), at=NOON)
    assert to_learn(Recorded(), facts("a")) == to_learn(done, facts("a")) == ()
    both = replace(done, unfinished=bad)
    (later,) = to_learn(both, facts("a", size=7, etag="e9"))
    assert (later.etag, later.failure) == ("e9", bad.record.failure)
    read, kept = to_learn(both, facts("a", size=10, etag="e9"))
    assert (read.etag, read.failure, kept.etag) == ("e9", None, "e1")
