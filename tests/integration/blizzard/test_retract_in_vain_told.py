"""Whoever asks about a retraction that penguin rejected, or that waits, is told the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from blizzard.journal.fence import identity_of
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.new_journal import take_over
from tests.integration.blizzard.test_partly_read import NAME
from tests.integration.blizzard.test_retract_rejected import (
    LINES,
    gone,
    ids,
    put_back,
    retracted_in_vain,
)
from tests.support.builders import entries
from tests.support.desk import Desk
from tests.support.pipelines import pipeline_of
from tests.support.promotions import ID
from tests.support.retractions import Taken
from tests.support.runner import InProcessRunner

__all__ = ["gone"]


def told(desk: Desk, *arguments: str) -> list[dict[str, Any]]:
    output = desk.cli(*arguments, "--output", "json").stdout
    return [json.loads(line) for line in output.splitlines()]


def replaced(folder: Path, on_change: str = "error") -> Taken:
    """A table with two files; the new content of the second is to come in the place of its rows."""
    schema = {"fields": [ID], "provenance": ["file"]}
    desk = Taken(folder, schema, source={"on_change": on_change})
    desk.land("a.ndjson", {"id": 1})
    desk.land("b.ndjson", {"id": 2}, {"id": 3})
    desk.ingest()
    desk.land("c.ndjson", {"id": 4})
    desk.ingest()
    (desk.landing.folder / "b.ndjson").rename(folder / "b-as-it-was")
    desk.land("b.ndjson", {"id": 20})
    return desk


def test_a_file_that_was_not_taken_back_is_in_the_list_of_those_that_failed(
    gone: tuple[Desk, Path],
) -> None:
    """HOLES L39: nobody was told of it. Its rest can be given up."""
    desk, _aside = gone
    retracted_in_vain(desk)

    listed = told(desk, "dlq", "list")
    (one,) = (one for one in listed if one.get("code") == "partial_file_gone")
    assert one["path"].endswith(NAME)
    retried = desk.cli("dlq", "retry", "--file", NAME)
    assert retried.exit_code == 1
    assert "has not failed" not in retried.output
    assert "it disappeared from its source before all of it was read" in retried.output

    assert "the rest of 1 source file" in " ".join(desk.cli("dlq", "discard", NAME).output.split())
    done = desk.cli("dlq", "discard", NAME, "--yes")
    assert done.exit_code == 0, done.output
    desk.penguin()
    assert desk.cli("files", "--check").exit_code == 0
    (row,) = told(desk, "files", NAME)
    assert (row["state"], row["in_part"]) == ("discarded", True)


def test_a_journal_that_takes_over_reads_on_what_was_not_taken_back(
    gone: tuple[Desk, Path],
) -> None:
    """HOLES L39: what an earlier journal has left is not lost with it."""
    desk, aside = gone
    retracted_in_vain(desk)
    put_back(desk, aside)
    settings = replace(desk.settings, name="later")
    identity, committed = identity_of(settings, "run"), PipelineLog(settings).committed

    take_over(desk.store, identity, "default", committed, desk.clock, fates=desk.fates)
    pipeline = pipeline_of(settings, InProcessRunner())
    while pipeline.step():
        pass
    desk.penguin()

    assert len(ids(desk)) == len(set(ids(desk))) == 3 + LINES


def test_a_journal_that_takes_over_knows_that_content_was_not_put_in_place(tmp_path: Path) -> None:
    desk = replaced(tmp_path)
    desk.replace("b.ndjson", by="b.ndjson")
    desk.optimize()
    desk.penguin()
    desk.ends_well()
    document = yaml.safe_load(desk.file.read_text())
    document["pipelines"]["later"] = document["pipelines"].pop("default")
    desk.file.write_text(yaml.safe_dump(document))

    done = desk.cli("journal", "new", "--from", "default", "--yes")

    assert done.exit_code == 0, done.output
    plan = " ".join(desk.cli("--dry-run").output.split())
    assert "ingested before, changed since" in plan


def overtaken(desk: Taken) -> None:
    """Let another program rewrite the files before penguin gets to the entry."""
    desk.optimize()
    desk.penguin()


def test_what_is_rejected_twice_is_done_the_third_time(tmp_path: Path) -> None:
    """HOLES L39: new content stays new, however often it was not put in place."""
    desk = replaced(tmp_path, on_change="replace")
    for number in (5, 6):
        desk.land(f"{number}.ndjson", {"id": number})
        desk.blizzard()
        overtaken(desk)
        assert {2, 3} < set(desk.ids())
        assert 20 not in desk.ids()
        (way,) = told(desk, "why", "b.ndjson")[0]["next"]
        assert way["advice"] == "The next run tries again."

    desk.blizzard()
    desk.penguin()

    assert desk.ids() == [1, 4, 5, 6, 20]


@pytest.mark.parametrize("snapshot", [False, True])
def test_what_was_put_in_place_stays_when_the_next_content_is_not(
    tmp_path: Path, snapshot: bool
) -> None:
    """Both entries are read at once: the first has taken effect, the second has not."""
    desk = replaced(tmp_path)
    desk.replace("b.ndjson", by="b.ndjson")
    desk.penguin()
    desk.land("d.ndjson", {"id": 5})
    desk.ingest()
    desk.land("b.ndjson", {"id": 200})
    desk.replace("b.ndjson", by="b.ndjson")
    overtaken(desk)
    assert desk.ids() == [1, 4, 5, 20]
    if snapshot:
        desk.writes_a_snapshot()

    (old, new) = told(desk, "files", "b.ndjson")
    assert (old["state"], old["entry"], old["overwritten"]) == ("in_table", 3, True)
    assert (new["state"], new["reason"]) == ("changed", "not_applied")
    (day,) = told(desk, "files")
    assert day["groups"][0]["rows"] == len(desk.ids())


def test_what_is_taken_back_then_is_the_content_that_is_in_the_table(tmp_path: Path) -> None:
    desk = replaced(tmp_path)
    desk.replace("b.ndjson", by="b.ndjson")
    overtaken(desk)

    desk.take_back("b.ndjson")

    assert desk.ids() == [1, 4]
    (source,) = entries(desk.table)[-1].sources
    assert source.size == (tmp_path / "b-as-it-was").stat().st_size


def test_a_source_is_moved_with_the_content_that_is_in_the_table(tmp_path: Path) -> None:
    desk = replaced(tmp_path)
    desk.replace("b.ndjson", by="b.ndjson")
    overtaken(desk)
    desk.ends_well()
    (tmp_path / "b-as-it-was").rename(desk.landing.folder / "b.ndjson")
    moved = desk.landing.folder.rename(tmp_path / "elsewhere")
    document = yaml.safe_load(desk.file.read_text())
    document["pipelines"]["default"]["sources"]["in"]["path"] = str(moved)
    desk.file.write_text(yaml.safe_dump(document))

    (found,) = told(desk, "source", "set", "in", "--same-files")

    assert (found["same_files"], found["changed_files"]) == (3, 0)


def test_new_content_is_read_beside_the_old_rows_where_that_is_asked_for(tmp_path: Path) -> None:
    """The next run reads it: nobody has to put it in place."""
    desk = replaced(tmp_path)
    desk.replace("b.ndjson", by="b.ndjson")
    overtaken(desk)
    desk.source["on_change"] = "reingest"
    desk.configure({"fields": [ID], "provenance": ["file"]})

    rows = told(desk, "files", "b.ndjson")
    assert [row["state"] for row in rows] == ["in_table", "waiting"]
    (why,) = told(desk, "why", "b.ndjson")
    assert (why["state"], why["reason"]) == ("waiting", "changed")
    desk.ingest()
    assert desk.ids() == [1, 2, 3, 4, 20]


def test_a_part_that_is_to_be_taken_back_is_in_the_table_until_then(
    gone: tuple[Desk, Path],
) -> None:
    desk, _aside = gone
    before = len(ids(desk))
    assert desk.cli("retract", NAME, "--yes").exit_code == 0

    (row,) = told(desk, "files", NAME)
    (why,) = told(desk, "why", NAME)
    (answer,) = told(desk, "files")
    assert (row["state"], why["state"]) == ("in_table", "in_table")
    assert sum(group["rows"] for group in answer["groups"]) == before
