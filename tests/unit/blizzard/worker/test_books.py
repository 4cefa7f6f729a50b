"""What was counted before the parser has to come out of it: a file that does not balance fails."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from blizzard.execute.merge import settle
from blizzard.model.progress import Supervisor
from blizzard.model.settings import DecodeLimits, QuarantineLimits, Sizing
from blizzard.model.source.file import cut
from blizzard.model.source.form import Form
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.worker.download import OpenedStores
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.lines import CombinedFiles, Decoded
from blizzard.worker.position import CountMismatch, require_explained
from blizzard.worker.unit import run_unit
from lakebed.documents.records import Failure, FailureStage
from lakebed.types import SourceFormat
from tests.support import builders
from tests.support.builders import Bench, entries, gz, listed, ndjson, put, rows, unit
from tests.support.quarantined import BROKEN, good, text
from tests.support.runner import InProcessRunner, Near
from tests.support.stops import Told
from tests.support.stores import Far, opened_as
from tests.support.units import Place

SMALL_BLOCKS = Sizing(decoded_budget=1, decoding=DecodeLimits(block_bytes=64, short_bytes=16))
"""Every file is a large one of many blocks."""
MARK = b"\xef\xbb\xbf"

Fault = Callable[[Iterator[Decoded]], Iterator[Decoded]]


def broken(fault: Fault) -> Callable[..., Decoder]:
    """Return a maker of decoders with a fault in what they say of each file."""

    class Broken(Decoder):
        def decode_files(self, *args: Any, **named: Any) -> Generator[Any]:
            for found in super().decode_files(*args, **named):
                for key, decoded in found.each() if isinstance(found, CombinedFiles) else (found,):
                    yield key, fault(decoded)

    return Broken


def loses_a_block(batches: Iterable[Decoded]) -> Iterator[Decoded]:
    """Lose a block whole: its lines and its rows still add up."""
    yield from list(batches)[1:]


def passes_over_a_block(batches: Iterator[Decoded]) -> Iterator[Decoded]:
    """Take the bytes of a block, and lose its lines."""
    lost = next(batches)
    yield replace(following := next(batches), taken=lost.taken + following.taken)
    yield from batches


def stops_short(batches: Iterator[Decoded]) -> Iterator[Decoded]:
    """Take what comes first for all there is."""
    yield next(batches)


def reads_twice(batches: Iterable[Decoded]) -> Iterator[Decoded]:
    for batch in batches:
        yield from (batch, batch)


def loses_a_row(batches: Iterable[Decoded]) -> Iterator[Decoded]:
    """Lose a row, and count its line for a blank one, as whoever subtracts would."""
    for batch in batches:
        fewer = batch.batch.slice(1)
        yield replace(batch, batch=fewer, blank=batch.lines - fewer.num_rows)


def miscounts_blanks(batches: Iterable[Decoded]) -> Iterator[Decoded]:
    for batch in batches:
        yield replace(batch, blank=batch.blank + 1)


def run(place: Place, fault: Fault, **given: Any) -> UnitOutcome:
    files = given.pop("files", None) or listed(place.source)
    shared = builders.work(place.source, place.table, **given)
    # In pieces: of a small file that is read at once no piece can be missing.
    stores = opened_as(reader=Far)(shared)
    return run_unit(unit(files), shared, stores, make_decoder=broken(fault))


def failure_of(outcome: UnitOutcome) -> Failure:
    (record,) = outcome.sources
    assert (record.lines, record.rows, outcome.files, outcome.quarantine) == (0, 0, (), ())
    assert record.failure is not None
    return record.failure


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (loses_a_block, "9 lines were counted, but 6 were read"),
        (stops_short, "reading ended before the end of the file, after 3 lines"),
        (reads_twice, "9 lines were counted, but 18 were read"),
        (loses_a_row, "of 3 lines, 2 gave a row and 0 gave none"),
        (miscounts_blanks, "of 3 lines, 3 gave a row and 0 gave none"),
    ],
)
@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz"])
def test_a_file_whose_lines_do_not_all_come_out_of_the_parser_fails(
    place: Place, fault: Fault, message: str, name: str
) -> None:
    body = b"".join(b'{"id":%d,"name":"n"}\n' % number for number in range(9))
    put(place.source, name, gz(body) if name.endswith("gz") else body)
    failure = failure_of(run(place, fault, sizing=SMALL_BLOCKS))

    assert (failure.stage, failure.code) == (FailureStage.PARSE, "lines_miscounted")
    assert failure.message.startswith(message)
    assert not failure.retryable


def test_one_part_of_a_file_that_does_not_balance_fails_the_file(place: Place) -> None:
    put(place.source, "a.ndjson", ndjson(rows(40)))
    (file,) = listed(place.source)
    parts = [replace(file, part=part) for part in cut(file.size, 2)]
    shared = builders.work(place.source, place.table, sizing=SMALL_BLOCKS)
    units = [unit([part], name=str(number)) for number, part in enumerate(parts)]
    first = run_unit(units[0], shared, OpenedStores(shared))
    other = run_unit(units[1], shared, OpenedStores(shared), make_decoder=broken(loses_a_block))
    settled = settle(list(zip(units, [first, other], strict=True)))

    (record,) = settled.sources
    assert record.failure is not None
    assert (record.failure.code, settled.files) == ("lines_miscounted", ())


def test_a_file_that_is_left_partly_read_balances_up_to_there(place: Place) -> None:
    put(place.source, "a.ndjson", b"\xef\xbb\xbf" + ndjson(rows(40)))
    shared = builders.work(place.source, place.table, sizing=SMALL_BLOCKS)
    asked = unit(listed(place.source))
    (whole,) = run_unit(asked, shared, OpenedStores(shared), Told(1)).sources
    assert whole.failure is None
    assert 0 < whole.lines < 40

    outcome = run_unit(
        asked, shared, OpenedStores(shared), Told(1), make_decoder=broken(passes_over_a_block)
    )
    assert failure_of(outcome).code == "lines_miscounted"


def test_a_compressed_file_that_was_left_partly_read_balances_at_its_end(place: Place) -> None:
    put(place.source, "a.ndjson.gz", gz(ndjson(rows(10))))
    (file,) = listed(place.source)
    (record,) = place.run((replace(file, skip=4),)).sources
    assert (record.lines, record.failure) == (6, None)

    files = (replace(file, skip=4),)
    failure = failure_of(run(place, loses_a_block, sizing=SMALL_BLOCKS, files=files))
    assert failure.message.startswith("10 lines were counted, but ")


@pytest.mark.parametrize("fault", [loses_a_block, stops_short, loses_a_row])
def test_records_of_documents_are_counted_where_they_are_cut(place: Place, fault: Fault) -> None:
    put(place.source, "a.json", b"[" + b",\n".join(good(number) for number in range(40)) + b"]")
    documents = Form(format=SourceFormat.JSON)
    (file,) = (replace(file, form=documents) for file in listed(place.source))
    assert place.run((file,)).sources[0].rows == 40

    failure = failure_of(run(place, fault, sizing=SMALL_BLOCKS, files=(file,)))
    assert failure.code == "lines_miscounted"


@dataclass
class WithDecoder(InProcessRunner):
    """Runs units with a decoder of the test's."""

    make_decoder: Callable[..., Decoder] = Decoder

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        supervisor = Supervisor(work.max_seconds, work.clock.seconds)
        return [
            run_unit(
                each,
                work,
                self.stores(work),
                Near(supervisor, each.name),
                make_decoder=self.make_decoder,
            )
            for each in units
        ]


def test_a_batch_that_does_not_balance_leaves_no_row_in_the_journal(place: Place) -> None:
    put(place.source, "a.ndjson", ndjson(rows(3)))
    settings = builders.pipeline_settings(place.source, place.table)
    runner = WithDecoder(make_decoder=broken(loses_a_row))
    Bench(settings, runner=runner).pipeline().step()

    (batch,) = entries(place.table)[1:]
    (record,) = batch.sources
    assert record.failure is not None
    assert (record.failure.code, batch.files) == ("lines_miscounted", ())


def test_rows_that_were_not_written_fail_the_files_that_share_the_output(place: Place) -> None:
    """What the writer says it wrote is held against what the decoder says it read."""
    put(place.source, "a.ndjson", ndjson(rows(3)))
    put(place.source, "b.ndjson", ndjson(rows(4)))
    asked = unit(listed(place.source))
    outcome = place.run()
    (file,) = outcome.files
    lost = replace(outcome, files=(replace(file, record_count=6),))
    settled = settle([(asked, lost)])

    assert settled.files == ()
    assert {one.failure.code for one in settled.sources if one.failure} == {"lines_miscounted"}
    assert [one.rows for one in settled.sources] == [0, 0]
    assert "7 rows were read, but 6 were written" in settled.sources[0].failure.message  # type: ignore[union-attr]
    assert settle([(asked, outcome)]).files == (file,)


def test_bad_lines_that_were_not_quarantined_fail_their_file(place: Place) -> None:
    put(place.source, "a.ndjson", text([good(1), BROKEN]))
    outcome = place.run(quarantine=QuarantineLimits())
    settled = settle([(unit(listed(place.source)), replace(outcome, quarantine=()))])
    assert (settled.files, settled.quarantine) == ((), ())
    assert [one.failure and one.failure.code for one in settled.sources] == ["lines_miscounted"]


@pytest.mark.parametrize("sizing", [Sizing(), SMALL_BLOCKS], ids=["small", "large"])
@pytest.mark.parametrize(
    ("name", "body", "lines"),
    [
        ("a.ndjson", MARK, 0),
        ("a.ndjson", MARK + b"\n", 1),
        ("a.ndjson", MARK + b"\r\n", 1),
        ("a.ndjson.gz", gz(MARK), 0),
        ("a.ndjson.gz", gz(MARK) + gz(b""), 0),
        ("a.ndjson.gz", gz(MARK) + gz(b"\n"), 1),
        ("a.json", MARK, 0),
    ],
)
def test_a_file_of_only_a_byte_order_mark_is_an_empty_file_in_either_format(
    place: Place, name: str, body: bytes, lines: int, sizing: Sizing
) -> None:
    put(place.source, name, body)
    form = Form(format=SourceFormat.JSON if name == "a.json" else SourceFormat.NDJSON)
    files = tuple(replace(file, form=form) for file in listed(place.source))
    outcome = place.run(files, sizing=sizing)
    (record,) = outcome.sources
    assert (record.failure, record.lines, record.rows, outcome.files) == (None, lines, 0, ())


def test_a_byte_order_mark_that_is_a_member_of_its_own_is_still_at_the_beginning(place: Place):
    put(place.source, "a.ndjson.gz", gz(MARK) + gz(ndjson(rows(2))))
    (record,) = place.run().sources
    assert (record.failure, record.lines, record.rows) == (None, 2, 2)


def test_what_the_text_shows_to_be_blank_is_held_against_what_is_said_to_be() -> None:
    (decoded,) = Decoder(builders.ID_AND_NAME).decode([b"\n" + good(1) + b"\n"])
    require_explained(decoded)
    with pytest.raises(CountMismatch, match="of 2 lines, 1 gave a row and 0 gave none"):
        require_explained(replace(decoded, rowless=np.empty(0, np.int64)))
