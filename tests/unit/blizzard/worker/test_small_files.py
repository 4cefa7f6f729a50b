"""Small files that are read at once and written as one are what each would be by itself."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from blizzard.model.settings import DecodeLimits, QuarantineLimits, RollingPolicy, Sizing
from blizzard.model.work import SharedProvenance, UnitOutcome
from blizzard.worker.download import OpenedStores
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.lines import CombinedFiles
from blizzard.worker.unit import run_unit
from lakebed.types import OnMismatch, Provenance, UnknownFields
from tests.support import builders
from tests.support.builders import gz, listed, ndjson, put, rows, unit
from tests.support.stores import Far, opened_as
from tests.support.units import Place, failed, require_balanced

MARK = b"\xef\xbb\xbf"
PLAIN = {
    "a": ndjson(rows(3)),
    "b": ndjson(rows(1, 7)).rstrip(b"\n"),
    "c": ndjson(rows(40, 100)),
    "d": '{"id":9,"name":"é日本"}\n'.encode(),
}
ODD = {
    "empty": b"",
    "blank lines": b'\n{"id":1,"name":"x"}\n \n',
    "only blank": b"\n\n",
    "mark": MARK + ndjson(rows(2)),
    "mark alone": MARK,
    "separators": b'\x1e{"id":1,"name":"x"}\n\x1e{"id":2,"name":"y"}\n',
    "two separators": b'\x1e\x1e{"id":1,"name":"x"}\n\x1e\n\x1e \x1e{"id":2,"name":"y"}\n',
    "unknown field": b'{"id":1,"name":"x","more":[1]}\n',
    "another type": b'{"id":"one","name":"x"}\n',
    "cut short": b'{"id":1,"name":"x"}\n{"id":2,"na',
    "no text": b'{"id":1,"name":"\xff"}\n',
    "half a letter": b'{"id":1,"name":"\xc3',
    "compressed": gz(ndjson(rows(5))),
    "compressed and cut": gz(ndjson(rows(5)))[:-9],
    "carriage returns": b'{"id":1,"name":"x"}\r\n\r\n',
    "no object": b"[1]\n7\n",
}


def known_of(place: Place, outcome: UnitOutcome) -> dict[str, Any]:
    """Return all that an outcome says, but for what is by chance or by the clock."""
    return {
        "sources": outcome.sources,
        "rows": [pq.read_table(place.table / each.filename).to_pylist() for each in outcome.files],
        "origins": [(each.source_file, each.source_files, each.runs) for each in outcome.files],
        "books": [(each.record_count, each.partition_values) for each in outcome.files],
        "quarantined": [each.sources for each in outcome.quarantine],
    }


def both_ways(place: Place, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read all files as they are read here, and as those of a remote store are."""
    files = tuple(replace(file, by_content=True) for file in listed(place.source))
    here = place.run(files, **given)
    far = place.run(files, stores=opened_as(reader=Far), **given)
    return known_of(place, here), known_of(place, far)


@pytest.mark.parametrize("odd", [(), *((name,) for name in ODD), tuple(ODD)])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"unknown_fields": UnknownFields.RESCUE, "on_mismatch": OnMismatch.RESCUE},
        {"quarantine": QuarantineLimits()},
    ],
    ids=["usual", "rescue", "quarantine"],
)
def test_small_files_say_the_same_read_here_and_from_afar(
    place: Place, odd: tuple[str, ...], given: dict[str, Any]
) -> None:
    for number, body in enumerate([*PLAIN.values(), *(ODD[name] for name in odd)] * 2):
        put(place.source, f"{number:03}.ndjson", body)
    here, far = both_ways(place, **given)
    assert here == far


def stamp(*columns: Provenance) -> SharedProvenance:
    return SharedProvenance(columns=columns, batch="default/j-1/1", ingested_at=builders.NOON)


@pytest.mark.parametrize(
    "given",
    [
        {"stamp": stamp(Provenance.FILE, Provenance.BATCH)},
        {"stamp": stamp(Provenance.FILE, Provenance.LINE)},
        {"batch_size": 5},
        {"rolling": RollingPolicy(file_size=300)},
        {"rolling": RollingPolicy(row_group_size=200)},
        {"sizing": Sizing(decoded_budget=1)},
        {"sizing": Sizing(decoding=DecodeLimits(max_combined=3))},
        {"sizing": Sizing(decoding=DecodeLimits(short_bytes=100))},
    ],
    ids=str,
)
def test_whatever_is_asked_for_small_files_are_written_as_each_would_be(
    place: Place, given: dict[str, Any]
) -> None:
    for number, body in enumerate(list(PLAIN.values()) * 3):
        put(place.source, f"{number:03}.ndjson", body)
    here, far = both_ways(place, **given)
    assert here == far


def test_many_small_files_are_written_as_one_batch(place: Place) -> None:
    """What this is for: were each written by itself, nothing else would tell."""
    found: list[Any] = []

    class Watched(Decoder):
        def decode_files(self, *args: Any, **named: Any) -> Generator[Any]:
            for each in super().decode_files(*args, **named):
                found.append(each)
                yield each

    for number in range(300):
        put(place.source, f"{number:03}.ndjson", ndjson(rows(2, number)))
    shared = builders.work(place.source, place.table)
    asked = unit(listed(place.source))
    outcome = run_unit(asked, shared, OpenedStores(shared), make_decoder=Watched)
    require_balanced(asked, outcome)
    assert [(type(each), len(each.keys)) for each in found] == [
        (CombinedFiles, 256),
        (CombinedFiles, 44),
    ]
    assert [each.rows for each in outcome.sources] == [2] * 300


@pytest.mark.parametrize("fault", ["a row less", "a line more", "lines of another"])
def test_files_that_come_out_of_the_parser_otherwise_than_counted_fail(place: Place, fault: str):
    """As of any other file: the count is taken before the parser, and by other code."""

    class Broken(Decoder):
        def decode_files(self, *args: Any, **named: Any) -> Generator[Any]:
            for each in super().decode_files(*args, **named):
                assert isinstance(each, CombinedFiles)
                read, blocks = each.read, [*each.read.blocks]
                if fault == "a row less":
                    read = replace(read, batch=read.batch.slice(0, read.batch.num_rows - 1))
                elif fault == "a line more":
                    blocks[0] = replace(blocks[0], lines=blocks[0].lines + 1)
                    read = replace(read, blocks=blocks)
                else:
                    read = replace(read, blocks=blocks[::-1], rows=read.rows[::-1])
                yield CombinedFiles(each.keys, read)

    put(place.source, "a.ndjson", ndjson(rows(3)))
    put(place.source, "b.ndjson", ndjson(rows(5, 3)))
    shared = builders.work(place.source, place.table)
    asked = unit(listed(place.source))
    outcome = run_unit(asked, shared, OpenedStores(shared), make_decoder=Broken)
    require_balanced(asked, outcome)
    assert "lines_miscounted" in {code for _stage, code in failed(outcome).values()}
    wrong = {"a row less": {"b.ndjson"}, "a line more": {"a.ndjson"}}
    assert set(failed(outcome)) >= wrong.get(fault, {"a.ndjson", "b.ndjson"})


def test_small_files_that_changed_or_vanished_since_they_were_listed_fail_alone(place: Place):
    """D17, L05."""
    for number in range(5):
        put(place.source, f"{number}.ndjson", ndjson(rows(2, number)))
    files = listed(place.source)
    put(place.source, "2.ndjson", ndjson(rows(3, 50)))
    (place.source / "3.ndjson").unlink()
    outcome = place.run(files)
    assert failed(outcome) == {
        "2.ndjson": ("download", "object_changed"),
        "3.ndjson": ("download", "object_missing"),
    }
    assert len(place.ids(outcome)) == 6
