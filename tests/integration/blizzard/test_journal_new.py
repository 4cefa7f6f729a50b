"""`blizzard journal new`: the way out of a lost, rolled back or renamed journal."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from itertools import count, pairwise
from pathlib import Path

import pytest

from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.fence import identity_of
from blizzard.journal.lease import this_machine
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.new_journal import StartedJournal, begin_empty, take_over
from lakebed.clock import Clock
from lakebed.deltalog import tables
from lakebed.documents.entry import Receipt, decode
from lakebed.documents.pending_meta import HeldMeta, encode_meta
from lakebed.errors import DocumentUnreadable, JournalConflict, JournalLost, LakeError
from lakebed.layout import file_name, held_meta, journal_entry, journal_folder
from lakebed.storage.store import Store
from lakebed.types import OnChange
from tests.support.builders import (
    Bench,
    Hands,
    entries,
    ndjson,
    no_options,
    pipeline_settings,
    put,
    rows,
    tree,
)
from tests.support.commands import Desk, recorded, told
from tests.support.dying import Died, Fate, dying
from tests.support.writers import lease

DRAWN = count()
"""Ids are drawn from one counter by all runs: no two of them give files the same name."""


def land(desk: Desk, number: int) -> None:
    put(desk.landing, f"{number}.ndjson", ndjson(rows(2, number * 2)))


def bench_of(desk: Desk, name: str = "default", run: str = "run-1") -> Bench:
    """Return a pipeline under a name, which asks the log as the program does."""
    settings = pipeline_settings(desk.landing, desk.table, name=name)
    known = PipelineLog(settings).knows_pipeline()
    return Bench(settings, run_id=run, log_knows_pipeline=known, hands=Hands(drawn=DRAWN))


def step(desk: Desk, name: str = "default", run: str = "run-1") -> bool:
    return bench_of(desk, name, run).pipeline().step()


def a_past(desk: Desk, batches: int = 3) -> None:
    """Ingest some files, each in a batch of its own, and commit them."""
    for number in range(batches):
        land(desk, number)
        assert step(desk, run=f"run-{number}")
    desk.commit()


def renamed(desk: Desk, name: str = "later") -> Path:
    """Write the configuration of the same pipeline under another name."""
    (desk.root / name).symlink_to(desk.landing)
    file = desk.config(name)
    file.write_text(file.read_text().replace(str(desk.root / name), str(desk.landing)))
    return file


def roll_back(desk: Desk, to: int) -> None:
    for path in (desk.table / journal_folder("default")).iterdir():
        if int(path.name[:20]) > to:
            path.unlink()


@pytest.mark.parametrize("committed", [1, 2])
def test_an_empty_last_entry_names_the_command_that_continues_before_it(desk, committed):
    """L01: a power cut has left the name of an entry alone; its source file is read again."""
    a_past(desk, batches=committed)
    for number in range(committed, 3):
        land(desk, number)
        assert step(desk, run=f"run-{number}")
    torn = desk.table / journal_entry("default", 3)
    torn.write_bytes(b"")
    words = "blizzard journal new -p default --from default"
    with pytest.raises(DocumentUnreadable, match=words):
        step(desk)
    with pytest.raises(LakeError, match=words):
        desk.commit()
    assert desk.ids() == [0, 1, 2, 3], "what comes before it is committed"

    done = desk.run(*words.split()[1:], "--yes")
    assert done.exit_code == 0, done.output
    assert step(desk, run="run-9")
    desk.commit()
    assert desk.ids() == [0, 1, 2, 3, 4, 5]
    assert desk.run("gc").exit_code == 0, "the journal that is kept can be read"


@pytest.mark.unbalanced("file_unnamed", "journal_missing")
def test_an_empty_first_entry_names_the_command_that_begins_anew(desk):
    land(desk, 0)
    step(desk)
    for path in (desk.table / journal_folder("default")).iterdir():
        path.unlink()
    (desk.table / journal_entry("default", 0)).write_bytes(b"")
    with pytest.raises(DocumentUnreadable, match="blizzard journal new -p default --empty"):
        step(desk)
    done = desk.run("journal", "new", "--empty", "--yes")
    assert done.exit_code == 0, done.output
    assert step(desk, run="run-9")
    desk.commit()
    assert desk.ids() == [0, 1]


@pytest.mark.unbalanced("file_unnamed", "journal_missing")
def test_a_lost_journal_is_begun_anew_and_new_data_is_committed(desk):
    """HOLES L21: the new entries are not taken for the old ones of the same numbers."""
    a_past(desk)
    shutil.rmtree(desk.table / journal_folder("default"))
    with pytest.raises(JournalLost, match="blizzard journal new"):
        step(desk)
    with pytest.raises(LakeError, match="blizzard journal new"):
        desk.commit()

    shown = desk.run("journal", "new", "--empty")
    assert shown.exit_code == 1
    assert "EVERYTHING in the source is ingested AGAIN" in shown.stdout
    assert "add --yes" in shown.stdout
    assert entries(desk.table) == []

    assert desk.run("journal", "new", "--empty", "--yes").exit_code == 0
    land(desk, 9)
    assert step(desk, run="run-9")
    assert desk.commit() == 1
    assert desk.ids() == sorted([0, 1, 2, 3, 4, 5] * 2 + [18, 19])
    assert desk.commit() == 0


def test_a_renamed_pipeline_takes_over_what_the_old_one_knew(desk):
    """HOLES L21: after `journal new` new data is committed, and old data not twice."""
    put(desk.landing, "bad.ndjson", b"{nope\n")
    a_past(desk)
    config = renamed(desk)
    with pytest.raises(JournalLost, match="journal new --from default"):
        step(desk, "later")
    shown = desk.run("journal", "new", "--from", "default", config=config)
    assert shown.exit_code == 1
    assert "3 source files in the table" in shown.stdout
    assert "AGAIN" not in shown.stdout

    done = desk.run("journal", "new", "--from", "default", "--yes", config=config)
    assert done.exit_code == 0, done.output
    assert not step(desk, "later", "run-8")
    land(desk, 9)
    assert step(desk, "later", "run-9")
    desk.commit()
    assert desk.ids() == [0, 1, 2, 3, 4, 5, 18, 19]
    assert desk.commit() == 0
    shown = desk.run("journal", "0", config=config).stdout
    past = recorded(shown)["inherits"]
    assert (past["pipeline"], past["sequence"]) == ("default", 3)
    inherited = entries(desk.table, "later")[1]
    assert (inherited.kind, len(inherited.sources), inherited.files) == ("inherited", 4, ())
    (failed,) = (one for one in inherited.sources if one.failure)
    assert (failed.path, failed.rows) == ("bad.ndjson", 0)


def versions(desk: Desk) -> Callable[[], None]:
    """Ingest v1 of a file, let a bad v2 of it fail, and give the way to put v1 back."""
    land(desk, 0)
    bench = bench_of(desk, run="run-0")
    source = bench.settings.sources[0]
    settings = replace(bench.settings, sources=(replace(source, on_change=OnChange.REINGEST),))
    assert replace(bench, settings=settings).pipeline().step()
    path, kept = desk.landing / "0.ndjson", desk.landing / "kept"
    path.rename(kept)
    path.write_bytes(b"{nope\n")
    assert replace(bench, settings=settings, run_id="run-1").pipeline().step()
    desk.commit()

    def put_back() -> None:
        path.unlink()
        kept.rename(path)

    return put_back


@pytest.mark.parametrize("how", ["renamed", "rolled back"])
@pytest.mark.parametrize("chunk", [1, 5000])
@pytest.mark.unbalanced("entry_missing", "file_unnamed")
def test_all_that_a_journal_knows_of_a_file_is_taken_over(desk, how, chunk):
    """HOLES D24: v1, a bad v2, a journal taken over, v1 put back: v1 is in the table once."""
    put_back = versions(desk)
    name = "later" if how == "renamed" else "default"
    if how == "rolled back":
        land(desk, 1)
        assert step(desk, run="run-2")
        desk.commit()
        roll_back(desk, 2)
        (desk.landing / "1.ndjson").unlink()
    assert renew(desk, name, "default", chunk=chunk).files == 1
    put_back()
    assert not step(desk, name, "run-9")
    assert desk.ids()[:2] == [0, 1]
    assert len(desk.ids()) == (2 if how == "renamed" else 4)


def test_a_bad_version_is_taken_over_as_bad_beside_the_good_one(desk):
    """HOLES D24: the failed v2 stays failed, and is not read again as it is."""
    versions(desk)
    config = renamed(desk)
    shown = desk.run("journal", "new", "--from", "default", config=config)
    assert "1 source file in the table" in shown.stdout
    assert desk.run("journal", "new", "--from", "default", "--yes", config=config).exit_code == 0
    known = read_ledger(desk.store, "later")
    assert known.lookup()("default:0.ndjson").finished
    (failed,) = known.unfinished.values()
    assert failed.record.failure
    assert not step(desk, "later", "run-9")


def test_the_old_name_is_refused_from_then_on_running_or_not(desk):
    """HOLES L21: two pipelines must not read one source."""
    a_past(desk)
    running = bench_of(desk, run="run-8").pipeline()
    assert not running.step()
    config = renamed(desk)
    assert desk.run("journal", "new", "--from", "default", "--yes", config=config).exit_code == 0
    land(desk, 9)
    with pytest.raises(JournalConflict):
        running.step()
    with pytest.raises(JournalLost, match="pipeline 'later' has taken over this journal"):
        step(desk)
    other = renamed(desk, "third")
    refused = desk.run("journal", "new", "--from", "default", "--yes", config=other)
    assert refused.exit_code == 1
    assert "'later' has already taken over the journal of 'default'" in refused.stderr
    assert desk.commit() == 1
    assert desk.ids() == [0, 1, 2, 3, 4, 5]


@pytest.mark.unbalanced("entry_missing", "file_unnamed")
def test_a_journal_that_was_rolled_back_is_taken_over_as_far_as_it_goes(desk):
    """HOLES L21: what the lost entries read comes twice, and that is said beforehand."""
    a_past(desk)
    roll_back(desk, 1)
    with pytest.raises(JournalLost, match="blizzard journal new"):
        step(desk)
    shown = desk.run("journal", "new", "--from", "default")
    assert "The 2 entries after it are committed and lost" in shown.stdout
    assert "ingested AGAIN" in shown.stdout

    (done,) = told(desk.run("journal", "new", "--from", "default", "--yes", "--output", "json"))
    assert Path(done["kept"]).name.startswith("journal-")
    assert len(list(Path(done["kept"]).iterdir())) == 2
    assert step(desk, run="run-9")
    desk.commit()
    assert desk.ids() == [0, 1, *sorted([2, 3, 4, 5] * 2)]


@pytest.mark.unbalanced("entry_missing", "file_unnamed")
def test_a_journal_that_was_taken_over_once_can_be_taken_over_again(desk):
    """HOLES L21: what the first one knew goes through both."""
    a_past(desk, batches=2)
    roll_back(desk, 1)
    assert desk.run("journal", "new", "--from", "default", "--yes").exit_code == 0
    for number in (7, 8):
        land(desk, number)
        assert step(desk, run=f"run-{number}")
    desk.commit()
    before = desk.ids()
    roll_back(desk, 2)
    assert desk.run("journal", "new", "--from", "default", "--yes").exit_code == 0
    assert step(desk, run="run-9")
    desk.commit()
    assert desk.ids() == sorted([*before, 16, 17])
    assert len(list((desk.table / "_blizzard/default").glob("journal-*"))) == 2


def test_what_is_not_committed_yet_is_not_left_behind(desk):
    """HOLES L21: an uncommitted entry of the old journal would never be committed."""
    a_past(desk)
    land(desk, 7)
    assert step(desk, run="run-7")
    config = renamed(desk)
    before = tree(desk.table)
    refused = desk.run("journal", "new", "--from", "default", "--yes", config=config)
    assert refused.exit_code == 1
    assert "entries 4 to 4 of pipeline 'default' are not committed yet" in refused.stderr
    assert tree(desk.table) == before


@pytest.mark.unbalanced("entry_missing", "file_unnamed")
def test_what_penguin_holds_by_the_old_journal_is_not_given_up_in_silence(desk):
    """HOLES L21: held files could not be released, and their sources would not be read again."""
    a_past(desk)
    file, journal = entries(desk.table)[1].files[0], entries(desk.table)[0].journal
    roll_back(desk, 1)
    held = HeldMeta(
        filename=file.filename, size=file.size, record_count=2, partition_values={},
        source_file=None, pipeline="default", journal=journal, entry=1, code="schema_refused",
        reasons=("it does not fit",), held_at="2024-01-01T12:00:00+00:00",
    )  # fmt: skip
    put(desk.table, held_meta(file_name(file.filename)), encode_meta(held))
    refused = desk.run("journal", "new", "--from", "default", "--yes")
    assert refused.exit_code == 1
    assert "penguin holds 1 file of this journal" in refused.stderr


def test_a_journal_that_nothing_is_wrong_with_is_not_replaced(desk):
    """Nor for a pipeline that nobody knows, or arguments that make no sense."""
    a_past(desk)
    before = tree(desk.table)
    for how in (("--empty",), ("--from", "default")):
        refused = desk.run("journal", "new", *how, "--yes")
        assert refused.exit_code == 1
        assert "the journal is intact, so no new one is needed" in refused.stderr
    for yes in ((), ("--yes",)):
        refused = desk.run("journal", "new", "--from", "nobody", *yes)
        assert refused.exit_code == 1
        assert "--from nobody: no pipeline of this name has a journal" in refused.stderr
    for wrong in (("new",), ("new", "--empty", "--from", "x"), ("--empty",)):
        assert desk.run("journal", *wrong).exit_code == 2
    assert tree(desk.table) == before


def test_a_source_that_was_renamed_too_is_noticed(desk):
    """HOLES L21: files are known by their source's name."""
    a_past(desk)
    config = renamed(desk)
    text = config.read_text().replace("source: {path", "sources: {logs: {path")
    config.write_text(text.replace(", }\n    sink", "}}\n    sink"))
    refused = desk.run("journal", "new", "--from", "default", "--yes", config=config)
    assert refused.exit_code == 1
    assert "has been read as 'default' and is now called 'logs'" in refused.stderr


def renew(
    desk: Desk, name: str, old: str | None, store: Store | None = None, *, chunk: int = 1
) -> StartedJournal:
    settings = pipeline_settings(desk.landing, desk.table, name=name)
    identity = identity_of(settings, "run-new")
    opened = store or desk.store

    def last_committed(pipeline: str, journal: str) -> int | None:
        return tables.last_committed(str(desk.table), no_options(), pipeline, journal)

    if old is None:
        return begin_empty(opened, identity, last_committed, Clock())
    return take_over(opened, identity, old, last_committed, Clock(), chunk=chunk)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("name", "old", "expected"),
    [
        ("later", "default", [0, 1, 2, 3, 18, 19]),
        ("default", "default", [0, 1, 2, 2, 3, 3, 18, 19]),
        ("default", None, [0, 0, 1, 1, 2, 2, 3, 3, 18, 19]),
    ],
)
@pytest.mark.unbalanced("entry_missing", "file_unnamed")
def test_a_crash_at_any_step_doubles_nothing_and_the_same_command_finishes(
    desk, tmp_path, name, old, expected, after
):
    """HOLES L21: until it is finished, a start is refused, or does what it did before."""
    a_past(desk, batches=2)
    if name == "default":
        roll_back(desk, 1)
    whole = tmp_path / "whole"
    shutil.copytree(desk.table, whole)
    land(desk, 9)
    deaths = 0
    for number in range(1, 50):
        shutil.rmtree(desk.table)
        shutil.copytree(whole, desk.table)
        try:
            renew(desk, name, old, dying(desk.store, Fate(number, after=after, changes_only=True)))
        except Died:
            deaths += 1
        else:
            break
        try:
            step(desk, name, "run-8")
        except LakeError:
            renew(desk, name, old)
            assert step(desk, name, "run-9")
        desk.commit(name)
        assert desk.ids() == expected, number
    assert deaths > 3
    assert decode(Receipt,
        (desk.table / f"_blizzard/{name}/receipt.json").read_bytes(), "receipt"
    ).sequence == 0  # fmt: skip
    assert (desk.table / journal_entry(name, 0)).exists()


def test_a_new_journal_hides_nothing_that_came_after_the_old_one_was_begun(desk):
    """HOLES L12, L21: a lookback counts from when the source was first read, by whichever."""

    def first_read(name: str) -> datetime:
        return read_ledger(desk.store, name).first_reads.since["default"]

    a_past(desk)
    begun = first_read("default")
    assert begun == datetime.fromisoformat(entries(desk.table)[0].created)
    names = ["default", "later", "latest"]
    for old, new in pairwise(names):
        done = desk.run("journal", "new", "--from", old, "--yes", config=renamed(desk, new))
        assert done.exit_code == 0, done.output
        desk.commit()
        assert first_read(new) == begun


@pytest.mark.parametrize("writes", ["default", "later"])
def test_a_journal_is_not_replaced_while_a_blizzard_writes_it(desk, writes):
    """HOLES D07, L21: `--yes` or not; the old one, too, if it is another."""
    a_past(desk)
    turn = lease("run-7", pipeline=writes, on=this_machine())
    turn.take(desk.store)
    config = renamed(desk)
    before = tree(desk.table)
    for more in ((), ("--yes",)):
        shown = desk.run("journal", "new", "--from", "default", *more, config=config)
        assert shown.exit_code == 1
        assert f"a blizzard is running pipeline {writes} and is alive: run run-7" in shown.stderr
        assert tree(desk.table) == before

    turn.give_back(keep=True)
    done = desk.run("journal", "new", "--from", "default", "--yes", config=config)
    assert done.exit_code == 0


@pytest.fixture
def failed_once(tmp_path: Path) -> Desk:
    """A pipeline that commits inline, and of which one file failed."""
    desk = Desk(tmp_path, sink="commit: inline")
    put(desk.landing, "bad.ndjson", b"{nope\n")
    a_past(desk, 2)
    return desk


def test_files_and_dlq_say_what_a_start_would_be_refused_for(failed_once: Desk) -> None:
    config = renamed(failed_once)

    for arguments in (("files", "--check"), ("files",), ("dlq", "list")):
        done = failed_once.run(*arguments, config=config)
        said = " ".join(done.output.split())
        assert done.exit_code == 1, arguments
        assert "pipeline 'default' of this table already reads" in said, arguments
        assert "waiting to be read" not in said
        assert "no failures" not in said


def test_what_the_earlier_journal_had_read_is_in_the_table(failed_once: Desk) -> None:
    config = renamed(failed_once)
    assert (
        failed_once.run("journal", "new", "--from", "default", "--yes", config=config).exit_code
        == 0
    )

    (found,) = told(failed_once.run("files", "--output", "json", config=config))
    (day,) = found["groups"]
    assert (day["in_table"], day["failed"], day["journaled"]) == (2, 1, 0)
    assert (day["uncounted"], day["rows"]) == (2, 0)
    assert "penguin" not in day["sentence"]
    listed = " ".join(failed_once.run("dlq", "list", config=config).output.split())
    assert "1 file failed under the earlier journal and is not listed here" in listed
    assert "no failures under this journal" in listed

    (failed_once.landing / "bad.ndjson").unlink()
    put(failed_once.landing, "bad.ndjson", b'{"id": 9, "name": "x"}\n')
    assert step(failed_once, "later", run="again")
    failed_once.commit()
    (found,) = told(failed_once.run("files", "--output", "json", config=config))
    (day,) = found["groups"]
    assert (day["complete"], day["rows"], day["uncounted"]) == (True, 1, 2)
    assert "; the rows of 2 counted by an earlier journal" in day["sentence"]
    assert "earlier journal" not in failed_once.run("dlq", "list", config=config).output
