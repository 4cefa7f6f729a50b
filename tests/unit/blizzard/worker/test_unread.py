"""A plain file that tasks share, and a batch that ends in the middle: nothing is read twice."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from blizzard.answers.status_reader import StatusReader
from blizzard.cli.run.dry_run import batch_document, explain
from blizzard.model.source.partly_read import bytes_in_words
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.repair.old_journal import inherited
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from lakebed.documents.records import SourceRecord
from lakebed.storage.store import Reader, Store
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows
from tests.support.dying import Died, Fate, dying
from tests.support.pipelines import pipeline_of
from tests.support.readers import journaled_ids as ids
from tests.support.stops import CUT, NEVER, NOT_BEGUN, UNCUT, Stopped, all_at
from tests.support.stores import Far, opened_as

ROWS = 2_000


def bench_of(folder: Path, body: bytes, runner: Stopped, **given: Any) -> Bench:
    put(folder / "in", "large.ndjson", body)
    usual: dict[str, Any] = {"sizing": CUT}
    settings = pipeline_settings(folder / "in", folder / "table", **(usual | given))
    return Bench(settings, runner=runner)


def test_what_each_part_has_read_is_kept_and_the_rest_is_read_by_the_next_run(tmp_path: Path):
    """HOLES L32: a stop in the middle of a cut file throws nothing away."""
    stops = [30, NEVER, NOT_BEGUN, NOT_BEGUN, 50]
    bench = bench_of(tmp_path, ndjson(rows(ROWS)), Stopped(lambda unit: stops[unit]))
    assert bench.pipeline().step()
    (first,) = bench.entries()[1].sources

    assert not first.complete
    assert first.rows == first.lines > 0
    assert len(first.unread) == 3, "parts that were not begun and touch are one range"
    assert {file.unit for file in bench.entries()[1].files} == {first.unit}
    kept = ids(tmp_path / "table")
    assert len(kept) == first.rows

    assert bench.again(runner=all_at(NEVER)).pipeline().step()
    (second,) = bench.entries()[2].sources
    assert (second.complete, second.unread) == (True, ())
    assert second.skipped == first.lines
    assert first.rows + second.rows == first.lines + second.lines == ROWS
    assert ids(tmp_path / "table") == list(range(ROWS))
    assert not bench.again().pipeline().step()


@pytest.mark.parametrize("seed", range(6))
def test_a_stop_in_every_run_comes_to_the_end_and_to_every_row_once(tmp_path: Path, seed: int):
    """HOLES L32, L15: each run gets further, with blank lines and a mark, too."""
    chance = random.Random(seed)
    body = b"".join(
        line + b"\n" * chance.choice((0, 0, 1, 3))
        for line in ndjson(rows(ROWS // 2)).splitlines(keepends=True)
    )
    body = (b"\xef\xbb\xbf" if seed % 2 else b"") + b"\n" * chance.randrange(3) + body
    body = body if seed % 3 else body.rstrip(b"\n")
    runner = Stopped(lambda _unit: chance.choice((NOT_BEGUN, 1, 40, 90, NEVER)))
    bench = bench_of(tmp_path, body, runner)
    for _run in range(400):
        before = len(bench.entries()) if (tmp_path / "table").exists() else 1
        bench.again().pipeline().step()
        after = bench.entries()
        assert all(each.sources[0].lines for each in after[before:])
        if after[-1].sources and after[-1].sources[0].complete:
            break
    else:
        pytest.fail("it never comes to an end")
    of_file = [each.sources[0] for each in bench.entries()[1:]]

    assert ids(tmp_path / "table") == list(range(ROWS // 2))
    assert sum(each.lines for each in of_file) == len(body.splitlines())
    assert all(each.lines == each.rows + each.blank for each in of_file)
    assert [each.skipped for each in of_file] == [
        sum(each.lines for each in of_file[:number]) for number in range(len(of_file))
    ]


def test_a_plain_file_in_one_part_goes_on_at_its_byte_and_can_be_cut_then(tmp_path: Path) -> None:
    """HOLES L32: its first lines are not read again, and all cores share the rest."""
    bench = bench_of(tmp_path, ndjson(rows(ROWS)), all_at(1), sizing=UNCUT)
    bench.pipeline().step()
    (first,) = bench.entries()[1].sources
    (left,) = first.unread

    assert (left.end, left.lines_before) == (first.size, first.lines)
    assert not first.has_holes
    later = bench.again(runner=all_at(NEVER), settings=replace(bench.settings, sizing=CUT))
    assert later.pipeline().step()
    assert "in 5 units" in " ".join(event.sentence() for event in later.events)
    assert ids(tmp_path / "table") == list(range(ROWS))


def test_a_bad_line_in_one_part_keeps_the_file_out_also_where_others_stopped(tmp_path: Path):
    """HOLES L32: its number is not known while a part before it is unread, so none is told."""
    body = ndjson(rows(1_500)) + b"{oops\n" + ndjson(rows(500))
    bench = bench_of(tmp_path, body, Stopped(lambda unit: NEVER if unit else 30))
    bench.pipeline().step()
    (failed,) = bench.entries()[1].sources

    assert failed.failure is not None
    assert (failed.failure.code, failed.failure.line) == ("not_json", None)
    assert "in the table" not in failed.failure.message
    assert (failed.lines, failed.unread) == (0, ())
    assert ids(tmp_path / "table") == []


@pytest.mark.parametrize("begun", [True, False], ids=["all before it read", "something before it"])
def test_when_a_rest_fails_the_journal_says_what_is_in_the_table(tmp_path: Path, begun: bool):
    """HOLES L32: and counts the bad line from the start of the file, or not at all."""
    body = ndjson(rows(1_500)) + b"{oops\n" + ndjson(rows(500, 1_500))
    first_run = Stopped(lambda unit: (30, 30, NEVER, NOT_BEGUN, NOT_BEGUN)[unit])
    bench = bench_of(tmp_path, body, first_run)
    bench.pipeline().step()
    (first,) = bench.entries()[1].sources
    kept = ids(tmp_path / "table")
    second_run = all_at(NEVER) if begun else Stopped(lambda unit: NEVER if unit else NOT_BEGUN)
    bench.again(runner=second_run).pipeline().step()
    (second,) = bench.entries()[2].sources

    assert second.failure is not None
    assert second.failure.line == (1_501 if begun else None)
    assert (second.skipped, second.lines, second.unread) == (first.lines, 0, first.unread)
    (a, b, c) = first.unread
    assert second.failure.message.endswith(
        f"; {first.lines} of its lines are in the table, all but those of bytes {a.start} to "
        f"{a.end - 1}, {b.start} to {b.end - 1} and {c.start} to {c.end - 1}"
    )
    assert ids(tmp_path / "table") == kept
    # The books know it for good: it is not read again as it is, nor as another object.
    assert not bench.again(runner=all_at(NEVER)).pipeline().step()
    put(tmp_path / "in", "large.ndjson", ndjson(rows(5)))
    assert bench.again(runner=all_at(NEVER)).pipeline().step()
    (third,) = bench.entries()[3].sources
    assert third.failure is not None
    assert third.failure.code == "partial_file_changed"
    assert ids(tmp_path / "table") == kept


def test_a_failed_upload_of_a_rest_is_tried_again_and_says_what_is_in_the_table(tmp_path: Path):
    """HOLES L32: what failed in a way that passes goes on with the same ranges."""

    class Full(OpenedStores):
        def sink(self) -> Store:
            store = OpenedStores.sink(self)
            store.upload = _no_space  # type: ignore[method-assign]
            return store

    def _no_space(*_given: Any, **_named: Any) -> Any:
        raise OSError(28, "No space left on device")

    @dataclass
    class FullRunner:
        parallelism: int = 2

        def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
            return [run_unit(unit, work, Full(work)) for unit in units]

    bench = bench_of(tmp_path, ndjson(rows(ROWS)), all_at(30))
    bench.pipeline().step()
    (first,) = bench.entries()[1].sources
    bench.again(runner=FullRunner()).pipeline().step()
    (second,) = bench.entries()[2].sources
    assert second.failure is not None
    assert f"{first.lines} of its lines are in the table" in second.failure.message
    assert second.unread == first.unread
    bench.hands.at += 4_000
    assert bench.again(runner=all_at(NEVER)).pipeline().step()
    assert ids(tmp_path / "table") == list(range(ROWS))


def test_a_file_that_is_replaced_while_it_is_read_is_not_entered_by_a_stop(tmp_path: Path) -> None:
    """HOLES L32, D17: what stops in good order may have read of two objects as well."""

    class Replaced(Far):
        def stream(self, *given: Any, **named: Any) -> Any:
            pieces = list(super().stream(*given, **named))
            put(tmp_path / "in", "large.ndjson", ndjson(rows(ROWS, 1)))
            yield from pieces

    runner = replace(all_at(1), stores=opened_as(reader=Replaced))
    bench = bench_of(tmp_path, ndjson(rows(ROWS)), runner, sizing=UNCUT)
    bench.pipeline().step()
    (found,) = bench.entries()[1].sources

    assert found.failure is not None
    assert found.failure.code == "object_changed"
    assert ids(tmp_path / "table") == []


def test_a_death_at_any_call_between_stops_leaves_every_row_once(tmp_path: Path) -> None:
    """HOLES L32: whatever is stopped and whatever is killed, in whichever order."""
    stops = (1, 60, NEVER)
    died = 0
    for number in range(1, 60, 3):
        folder = tmp_path / str(number)
        put(folder / "in", "large.ndjson", ndjson(rows(600)))
        settings = pipeline_settings(folder / "in", folder / "table", sizing=CUT)
        for stop in (*stops, *stops):
            fate = Fate(number if stop != NEVER else 0)

            def open_sink(place: Any, fate: Fate = fate) -> Store:
                return dying(Store(place.uri, place.options, make_folder=True), fate)

            try:
                pipeline_of(settings, all_at(stop), open_sink=open_sink).step()
            except Died:
                died += 1
        assert ids(folder / "table") == list(range(600)), f"died at call {number}"
    assert died > 20


def journaled(folder: Path, runner: Stopped) -> tuple[Bench, SourceRecord]:
    bench = bench_of(folder, ndjson(rows(ROWS)), runner)
    bench.pipeline().step()
    return bench, bench.entries()[1].sources[0]


def test_a_new_journal_and_every_view_know_what_is_left(tmp_path: Path) -> None:
    """HOLES L32: `journal N`, `status`, `--dry-run` and `journal new --from`."""
    bench, found = journaled(tmp_path, all_at(30))
    left = sum(one.end - one.start for one in found.unread)

    assert bytes_in_words(found).startswith("bytes ")
    heir = inherited(found)
    assert (heir.unread, heir.skipped, heir.lines) == (found.unread, found.lines, 0)
    assert heir.has_holes

    def open_reader(place: Any) -> Reader:
        return Reader(place.uri, place.options)

    next_batch = explain(bench.settings, open_reader, parallelism=2, clock=bench.hands.clock)
    plan: Any = batch_document(next_batch)
    parts = [file["bytes"] for unit in plan["units"] for file in unit["files"] if file["bytes"]]
    assert len(parts) == sum(len(unit["files"]) for unit in plan["units"])
    assert plan["bytes"] == left == sum(end - start for start, end in parts)
    assert {start for start, _end in parts} >= {one.start for one in found.unread}
    _asked, status = StatusReader(bench.settings, bench.hands.clock).read(open_reader)
    assert status.sources[0].pending_bytes == left


def test_a_file_whose_path_is_wrong_for_a_while_is_gone_on_with_where_it_was(tmp_path: Path):
    """HOLES L32: a failure before anything is read forgets nothing of what was read before."""
    bench, found = journaled(tmp_path, all_at(30))
    wrong = pipeline_settings(tmp_path / "in", tmp_path / "table", template="date=%Y-%m-%d")
    assert bench.again(settings=wrong, runner=all_at(NEVER)).pipeline().step()
    (failed,) = bench.entries()[2].sources

    assert failed.failure is not None
    assert failed.failure.code == "partition_unknown"
    assert f"{found.lines} of its lines are in the table" in failed.failure.message
    assert (failed.skipped, failed.unread) == (found.lines, found.unread)
