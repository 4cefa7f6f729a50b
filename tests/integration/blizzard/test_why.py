"""`blizzard why` for a source file that is not in the table, in every state it can be in."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.builders import ndjson, put, tree
from tests.support.commands import Desk as PlainDesk
from tests.support.commands import told
from tests.support.desk import Desk
from tests.support.questions import Questions
from tests.support.stops import CUT, NEVER, all_at

BAD = b'{"id": 1}\n{nope\n'


@pytest.fixture
def desk(tmp_path):
    desk = Questions(tmp_path / "desk")
    desk.landing.folder.mkdir()
    return desk


def test_a_file_that_never_was_there_is_missing_or_elsewhere(desk):
    answer = desk.why(str(desk.landing.folder / "a.ndjson"))
    assert (answer["state"], answer["stored"], answer["source"]) == ("missing", None, "default")
    assert "the store has no such object" in answer["answer"]
    assert desk.state("default:a.ndjson") == "missing"
    assert desk.state("/somewhere/else.ndjson") == "elsewhere"
    assert desk.state("s3://bucket/else.ndjson") == "elsewhere"


def test_a_file_of_another_kind_of_name_and_a_link_are_skipped(desk):
    for name, reason in (
        ("_hidden/a.ndjson", "hidden"),
        ("x/.a.ndjson", "hidden"),
        ("a.csv", "not_ndjson"),
        ("a.ndjson.tmp", "temporary"),
    ):
        put(desk.landing.folder, name, b"{}")
        answer = desk.why(str(desk.landing.folder / name))
        assert (answer["state"], answer["reason"]) == ("skipped", reason)
        assert answer["stored"]["size"] == 2
        assert answer["next"]
    desk.landing.land("real.ndjson", 2)
    (desk.landing.folder / "link.ndjson").symlink_to(desk.landing.folder / "real.ndjson")
    answer = desk.why(str(desk.landing.folder / "link.ndjson"))
    assert (answer["state"], answer["reason"]) == ("skipped", "link")


def test_a_file_that_the_pattern_does_not_mean_is_skipped(desk):
    desk.pattern("a-*.ndjson")
    put(desk.landing.folder, "b-1.ndjson", b"{}")
    answer = desk.why(str(desk.landing.folder / "b-1.ndjson"))
    assert (answer["state"], answer["reason"]) == ("skipped", "not_matched")
    assert "source.path" in answer["answer"]


def test_a_folder_before_the_lookback_is_skipped(desk):
    template = "{prefix_template: 'date=%Y-%m-%d', lookback: 2}"
    desk.configure(source=f"partition_filter: {template}")
    put(desk.landing.folder, "date=2001-01-01/a.ndjson", b"{}")
    answer = desk.why("date=2001-01-01/a.ndjson")
    assert (answer["state"], answer["reason"]) == ("skipped", "too_old")
    assert "Unless another program has already loaded it" in answer["next"][0]["advice"]


def test_a_folder_beyond_the_horizon_is_skipped_unless_its_file_was_read(desk):
    today = f"date={datetime.now(UTC):%Y-%m-%d}/a.ndjson"
    desk.configure(source="sweep_horizon: 2", partitioned=True)
    put(desk.landing.folder, "date=2001-01-01/a.ndjson", b"{}")
    put(desk.landing.folder, today, b"{}")
    answer = desk.why("date=2001-01-01/a.ndjson")
    assert answer["reason"] == "beyond_horizon"
    assert "Unless another program has already loaded it" in answer["next"][0]["advice"]
    assert desk.state(today) == "waiting"


def test_a_path_without_its_partition_is_told_before_it_fails_and_after(desk):
    desk.configure(partitioned=True)
    put(desk.landing.folder, "a.ndjson", ndjson([{"id": 1}]))
    answer = desk.why("a.ndjson")
    assert (answer["state"], answer["reason"]) == ("failed", "partition_unknown")
    assert "date=" in answer["detail"]
    desk.blizzard()
    answer = desk.why("a.ndjson")
    assert (answer["state"], answer["reason"]) == ("failed", "partition_unknown")
    assert answer["failure"]["stage"] == "discover"


def test_a_young_file_waits_until_it_is_old_enough(desk):
    desk.configure(source="min_age_secs: 3600")
    desk.landing.land("a.ndjson", 2)
    answer = desk.why("a.ndjson")
    assert (answer["state"], answer["reason"]) == ("waiting", "too_young")
    assert "younger than min_age_secs (3600)" in answer["answer"]
    assert re.search(r"old enough in (1 h|5\d min)\b", answer["answer"])


def test_a_file_that_waits_says_what_starts_the_next_batch(desk):
    desk.landing.land("a.ndjson", 2)
    answer = desk.why("a.ndjson")
    assert answer["state"] == "waiting"
    assert "no new one has come for inactivity_timeout_secs (60)" in answer["answer"]
    assert "rollover_timeout_secs (300)" in answer["answer"]
    assert answer["running"] is False
    (way,) = answer["next"]
    assert way["advice"] == "Start blizzard: none is running for this pipeline."
    assert way["commands"] == [f"blizzard -c {desk.file}"]


def test_a_bad_file_says_where_it_failed_since_when_and_what_to_do(desk):
    put(desk.landing.folder, "bad.ndjson", BAD)
    desk.blizzard()
    answer = desk.why("bad.ndjson")
    first = answer["failure"]
    assert (answer["state"], answer["reason"]) == ("failed", "not_json")
    assert (first["stage"], first["line"], first["attempts"]) == ("parse", 2, 1)
    assert first["since"] == first["failed_at"]
    assert (first["entry"], first["next_try"]) == (1, None)
    assert "not retried automatically" in answer["answer"]
    retry = f"blizzard -c {desk.file} dlq retry --file default:bad.ndjson"
    assert answer["next"][0]["commands"] == [retry]
    uri, said, *facts = desk.cli("why", "bad.ndjson").stdout.splitlines()
    assert uri == str(desk.landing.folder / "bad.ndjson")
    assert said.startswith("It has failed since ")
    assert facts[0] == "  state      failed (not_json)"
    assert facts[-2].startswith("  -> ")
    assert facts[-1] == f"     blizzard -c {desk.file} dlq list"

    # Somebody asks for another try, which fails as well.
    assert desk.cli("dlq", "retry", "--all").exit_code == 0
    assert "tried again with the next batch" in desk.why("bad.ndjson")["answer"]
    desk.blizzard()
    again = desk.why("bad.ndjson")["failure"]
    assert (again["attempts"], again["since"]) == (2, first["since"])
    assert again["failed_at"] > first["failed_at"]

    put(desk.landing.folder, "bad.ndjson", ndjson([{"id": 1}, {"id": 2}]))
    answer = desk.why("bad.ndjson")
    assert (answer["state"], answer["reason"]) == ("waiting", "changed")
    assert "It failed before, and is another object now." in answer["answer"]
    assert answer["failure"]["code"] == "not_json"
    (desk.landing.folder / "bad.ndjson").unlink()
    answer = desk.why("bad.ndjson")
    assert answer["state"] == "failed"
    assert "It is not in its source now." in answer["answer"]
    desk.blizzard(later=timedelta(hours=3).total_seconds())
    assert desk.state("default:bad.ndjson") == "failed"


def test_a_file_that_is_read_in_part_says_how_far_and_has_a_row_for_each_batch(tmp_path):
    (tmp_path / "in").mkdir()
    desk = PlainDesk(tmp_path)
    put(desk.landing, "large.ndjson", ndjson([{"id": n} for n in range(600)]))
    bench = desk.bench(sizing=CUT)
    bench.runner = all_at(30)
    assert bench.pipeline().step()
    (first,) = bench.entries()[-1].sources
    (answer,) = told(desk.run("why", "large.ndjson", "--output", "json"))
    assert (answer["state"], answer["reason"]) == ("waiting", "part_read")
    assert [read["lines"] for read in answer["read"]] == [first.lines]
    assert f"{first.lines} lines so far" in answer["answer"]
    aside = (desk.landing / "large.ndjson").rename(tmp_path / "aside")
    (answer,) = told(desk.run("why", "large.ndjson", "--output", "json"))
    assert answer["stored"] is None
    aside.rename(desk.landing / "large.ndjson")
    later = bench.again(run_id="run-2", runner=all_at(NEVER)).pipeline()
    while later.step():
        pass
    (answer,) = told(desk.run("why", "large.ndjson", "--output", "json"))
    assert answer["state"] == "journaled"
    assert [read["entry"] for read in answer["read"]] == [1, 2]
    assert sum(read["rows"] for read in answer["read"]) == 600
    assert {file["entry"] for file in answer["data_files"]} == {1, 2}
    assert "600 rows from 600 lines" in answer["answer"]


def test_a_part_of_a_name_means_a_file_that_is_known_or_there(desk, monkeypatch):
    """Also in the folder of the source."""
    desk.landing.land("2024/events-1.ndjson", 2)
    desk.landing.land("2024/events-2.ndjson", 2)
    desk.blizzard()
    desk.landing.land("2024/others-3.ndjson", 2)
    assert desk.why("ents-1")["path"] == "2024/events-1.ndjson"
    assert desk.why("others")["path"] == "2024/others-3.ndjson"
    several = desk.cli("why", "events")
    assert several.exit_code == 1
    assert "default:2024/events-1.ndjson, default:2024/events-2.ndjson" in several.output
    nothing = desk.cli("why", "nothing-like-it")
    assert nothing.exit_code == 1
    assert "blizzard --dry-run" in nothing.output
    monkeypatch.chdir(desk.landing.folder / "2024")
    assert desk.why("events-1.ndjson")["path"] == "2024/events-1.ndjson"
    assert desk.why("ents-1")["path"] == "2024/events-1.ndjson"
    monkeypatch.chdir(desk.folder)
    assert desk.why("landing/2024/events-1.ndjson")["path"] == "2024/events-1.ndjson"


def test_nothing_is_written_whatever_is_asked(desk):
    put(desk.landing.folder, "bad.ndjson", BAD)
    desk.landing.land("a.ndjson", 2)
    desk.both()
    desk.landing.land("new.ndjson", 2)
    before = tree(desk.folder)
    for name in ("a.ndjson", "bad.ndjson", "new.ndjson", desk.data_file(), "nothing"):
        desk.cli("why", name)
    assert tree(desk.folder) == before


def test_damaged_names_are_not_believed(desk):
    desk.landing.land("events-1.ndjson", 2)
    desk.both()
    desk.writes_a_snapshot()
    (names,) = (desk.table / "_blizzard/default/known").glob("*.names")
    names.write_bytes(names.read_bytes().replace(b"events-1", b"events-2"))
    assert desk.state("events-1.ndjson") == "in_table"
    assert desk.why("ents-1")["path"] == "events-1.ndjson"


def test_a_source_that_is_not_there_is_named_where_a_name_is_looked_up(tmp_path):
    desk = Desk(tmp_path / "both")
    done = desk.cli("why", "a.ndjson")
    assert done.exit_code == 1
    assert f"source default cannot be listed: {desk.landing.folder} does not exist" in done.output
