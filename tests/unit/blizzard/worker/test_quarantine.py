"""Bad lines that are quarantined: what a unit writes, and what it says of it."""

from dataclasses import replace
from typing import Any

import pytest

from blizzard.execute.merge import SettledBatch, settle
from blizzard.model.settings import DecodeLimits, QuarantineLimits, RollingPolicy, Sizing
from blizzard.model.source.file import SourceFile, cut
from blizzard.model.work import UnitOutcome, Work
from blizzard.worker.download import OpenedStores
from blizzard.worker.unit import run_unit
from lakebed.documents.records import Failure, Unread
from lakebed.errors import StoreDenied
from tests.support import builders
from tests.support.builders import gz, listed, put, unit
from tests.support.quarantined import BROKEN, bad, good, mixed, quarantined_rows, raws, text
from tests.support.stores import RefusesUploads
from tests.support.units import Place, With

ANY = QuarantineLimits()


def read(place: Place, **given: Any) -> UnitOutcome:
    return place.run(quarantine=given.pop("limits", ANY), **given)


def in_parts(place: Place, files: list[SourceFile], limits: QuarantineLimits = ANY) -> SettledBatch:
    shared: Work = builders.work(place.source, place.table, quarantine=limits)
    units = [unit([file], name=str(number)) for number, file in enumerate(files)]
    outcomes = [run_unit(each, shared, OpenedStores(shared)) for each in units]
    return settle(list(zip(units, outcomes, strict=True)), limits)


def failure_of(outcome: UnitOutcome | SettledBatch) -> Failure:
    (record,) = outcome.sources
    assert (record.lines, record.rows, record.quarantined) == (0, 0, 0)
    assert (outcome.files, outcome.quarantine) == ((), ())
    assert record.failure is not None
    return record.failure


def test_small_files_share_a_quarantine_file_and_each_is_counted_in_it(place: Place) -> None:
    put(place.source, "a.ndjson", text([bad(1), good(1), bad(2)]))
    put(place.source, "b.ndjson", text([good(2)]))
    put(place.source, "c.ndjson", text([good(3), BROKEN]))
    outcome = read(place)

    (file,) = outcome.quarantine
    assert [(one.source, one.lines, one.first, one.code) for one in file.sources] == [
        ("default:a.ndjson", 2, 1, "wrong_type"),
        ("default:c.ndjson", 1, 2, "not_json"),
    ]
    assert [each.quarantined for each in outcome.sources] == [2, 0, 1]
    assert raws(place.table, [file]) == [bad(1), bad(2), BROKEN]


def test_a_large_file_is_not_held_until_its_end(place: Place) -> None:
    put(place.source, "a.ndjson", text(mixed(40_000, 2)))
    put(place.source, "b.ndjson", text([bad(-1)]))
    sizing = Sizing(decoded_budget=1, decoding=DecodeLimits(block_bytes=100_000))
    outcome = read(place, sizing=sizing, rolling=RollingPolicy(file_size=80_000))

    large, small = outcome.sources
    assert (large.rows, large.quarantined) == (20_000, 20_000)
    own = [file for file in outcome.quarantine if file.unit == large.unit]
    assert len(own) > 1
    assert [one.source for file in own for one in file.sources] == ["default:a.ndjson"] * len(own)
    assert [row["line"] for row in quarantined_rows(place.table, own)] == list(range(2, 40_001, 2))
    assert [file.sources[0].first for file in own] == [
        quarantined_rows(place.table, [file])[0]["line"] for file in own
    ]
    assert small.unit != large.unit


def test_compressed_files_count_bytes_of_their_text_and_a_mark_counts(place: Place) -> None:
    put(place.source, "a.ndjson.gz", gz(b"\xef\xbb\xbf" + text([good(1), BROKEN])))
    (row,) = quarantined_rows(place.table, read(place).quarantine)

    assert (row["line"], row["offset"]) == (2, 3 + len(good(1)) + 1)


def test_a_file_that_is_gone_on_with_counts_lines_from_its_start(place: Place) -> None:
    put(place.source, "a.ndjson", text([good(1), good(2), BROKEN]))
    (file,) = listed(place.source)
    outcome = read(place, files=(replace(file, skip=2),))

    (row,) = quarantined_rows(place.table, outcome.quarantine)
    assert (row["line"], row["nth"], row["offset"]) == (3, 3, None)
    assert outcome.quarantine[0].sources[0].first == 3


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_of_parts_are_counted_from_the_start_of_the_file(
    place: Place, parts: int, mark: bytes
) -> None:
    lines = mixed(60, 7)
    body = mark + text(lines)
    put(place.source, "a.ndjson", body)
    (file,) = listed(place.source)
    settled = in_parts(place, [replace(file, part=part) for part in cut(file.size, parts)])

    (record,) = settled.sources
    assert (record.lines, record.rows, record.quarantined) == (60, 52, 8)
    assert {one.unit for one in settled.quarantine} == {record.unit}
    found = quarantined_rows(place.table, settled.quarantine)
    assert [row["line"] for row in found] == list(range(7, 60, 7))
    assert [row["raw"] for row in found] == lines[6::7]
    assert all(body[row["offset"] :].startswith(row["raw"] + b"\n") for row in found)
    for one in settled.quarantine:
        (first,) = one.sources
        assert first.first == quarantined_rows(place.table, [one])[0]["line"]


def test_a_line_after_unread_bytes_has_no_number(place: Place) -> None:
    """Never a wrong one, in the file and in the entry."""
    put(place.source, "a.ndjson", text(mixed(60, 7)))
    (file,) = listed(place.source)
    first, second = cut(file.size, 2)
    rest = (Unread(start=first.start, end=first.end, lines_before=0),)
    shared = builders.work(place.source, place.table, quarantine=ANY)
    units = [unit([replace(file, part=part)], name=str(part.start)) for part in (first, second)]
    outcome = run_unit(units[1], shared, OpenedStores(shared))
    unread = UnitOutcome(unit=units[0].name, sources=(), files=())
    settled = settle(list(zip(units, [unread, outcome], strict=True)), ANY)

    (record,) = settled.sources
    assert record.unread == rest
    (one,) = settled.quarantine
    assert one.lines_before is None
    assert one.sources[0].first is None
    assert {row["line"] for row in quarantined_rows(place.table, settled.quarantine)} == {None}


def test_more_bad_lines_than_allowed_fail_the_file(place: Place) -> None:
    put(place.source, "a.ndjson", text([good(1), bad(1), bad(2), bad(3)]))
    assert read(place, limits=QuarantineLimits(max_records=3)).sources[0].failure is None

    failure = failure_of(read(place, limits=QuarantineLimits(max_records=2)))
    assert (failure.stage, failure.code) == ("parse", "too_many_bad_lines")
    assert (failure.line, failure.field) == (2, "id")
    assert failure.message == (
        "3 lines cannot be read, and error_handling.max_bad_records is 2; the first of them: "
        "found a string, expected an integer (int64) [wrong_type]"
    )


def test_a_greater_share_of_bad_lines_than_allowed_fails_the_file(place: Place) -> None:
    put(place.source, "a.ndjson", text([*mixed(30, 10), b"", b""]))
    assert read(place, limits=QuarantineLimits(max_ratio=0.1)).sources[0].failure is None

    failure = failure_of(read(place, limits=QuarantineLimits(max_ratio=0.09)))
    assert (failure.code, failure.line) == ("too_many_bad_lines", 10)
    assert failure.message.startswith(
        "3 of 30 lines cannot be read, and error_handling.max_bad_ratio is 0.09; the first of them"
    )


@pytest.mark.parametrize("limits", [{"max_records": 7}, {"max_ratio": 0.13}])
def test_the_parts_of_a_file_are_counted_together(place: Place, limits: dict[str, Any]) -> None:
    put(place.source, "a.ndjson", text(mixed(60, 7)))
    (file,) = listed(place.source)
    parts = [replace(file, part=part) for part in cut(file.size, 3)]
    more = {key: value * 2 for key, value in limits.items()}
    assert in_parts(place, parts, QuarantineLimits(**more)).sources[0].failure is None

    failure = failure_of(in_parts(place, parts, QuarantineLimits(**limits)))
    assert (failure.code, failure.line, failure.field) == ("too_many_bad_lines", 7, "id")


def test_too_many_in_a_later_part_names_the_line_of_the_file(place: Place) -> None:
    put(place.source, "a.ndjson", text([good(n) for n in range(40)] + [bad(n) for n in range(20)]))
    (file,) = listed(place.source)
    parts = [replace(file, part=part) for part in cut(file.size, 2)]

    failure = failure_of(in_parts(place, parts, QuarantineLimits(max_records=5)))
    assert (failure.code, failure.line) == ("too_many_bad_lines", 41)


def test_a_failed_file_leaves_the_bad_lines_of_others(place: Place) -> None:
    put(place.source, "a.ndjson", text([bad(1), bad(2)]))
    put(place.source, "b.ndjson", text([bad(3), good(1)]))
    outcome = read(place, limits=QuarantineLimits(max_records=1))

    assert [each.failure is None for each in outcome.sources] == [False, True]
    assert raws(place.table, outcome.quarantine) == [bad(3)]


def test_where_a_quarantine_file_cannot_be_written_its_source_files_fail(place: Place) -> None:
    """Good rows without the bad lines beside them would be half a file."""

    class NoQuarantine(RefusesUploads):
        def upload(self, path: str, *given: Any, **named: Any) -> Any:
            if "quarantine" in path:
                raise StoreDenied("refused")
            return super(RefusesUploads, self).upload(path, *given, **named)

    put(place.source, "a.ndjson", text([bad(1), good(1)]))
    sink = NoQuarantine(place.table, StoreDenied("refused"))
    outcome = read(place, stores=lambda shared: With(shared, sink))

    failure = failure_of(outcome)
    assert (failure.stage, failure.code) == ("upload", "store_denied")
