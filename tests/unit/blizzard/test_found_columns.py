"""The columns of a running batch."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from blizzard.found_columns import BatchColumns, look_share
from blizzard.model.seen import Integers, Seen, Text
from lakebed.columns.schema import Field, Reading, Schema
from lakebed.documents.entry import Entry, decode_entry, encode
from lakebed.types import FieldType, Handoff, UnknownFields
from tests.support.builders import NOON, pipeline_settings, work

NUMBERS = Seen(integers=Integers(0, 5))
TEXTS = Seen(texts=frozenset({Text.OTHER}))
ID = Field(name="id", type=FieldType.INT64)
N = Field(name="n", type=FieldType.INT64)
N_IN_TABLE = Field(name="n", type=FieldType.STRING)
M = Field(name="m", type=FieldType.STRING)


def batch(answers: Iterator[Schema | None], known: Schema | None = None) -> BatchColumns:
    settings = replace(
        pipeline_settings(Path("/in"), Path("/table"), unknown_fields=UnknownFields.ADD),
        schema=Schema((ID,)),
    )
    return BatchColumns(
        settings=settings,
        known=known,
        of_table=lambda: next(answers),
        emit=lambda _event: None,
    )


def entry(columns: Schema) -> Entry:
    return Entry(
        kind="batch",
        pipeline="default",
        journal="j",
        sequence=1,
        run="r",
        created=NOON.isoformat(),
        previous=None,
        handoff=Handoff.JOURNAL,
        source_uris={},
        table_schema=columns.delta(),
        partition_columns=(),
        columns=columns,
    )


def test_a_column_does_not_change_within_a_batch_whatever_becomes_of_the_table() -> None:
    """Units that stand have files with it: the entry has one schema for all of them."""
    columns = batch(iter([None, Schema((ID, N_IN_TABLE))]))

    assert columns.grow({"n": NUMBERS})
    assert columns.grow({"m": TEXTS})

    assert columns.schema == Schema((ID, N, M))


def test_the_next_batch_takes_it_as_the_table_has_it() -> None:
    columns = batch(iter([Schema((ID, N_IN_TABLE))]), known=Schema((ID, N, M)))

    assert columns.schema == Schema((ID, N_IN_TABLE, M))


def test_a_table_that_cannot_be_read_leaves_the_columns_as_they_are_known() -> None:
    assert batch(iter([None]), known=Schema((ID, N))).schema == Schema((ID, N))


def test_where_nothing_was_found_the_table_is_not_asked() -> None:
    assert batch(iter([])).schema == Schema((ID,))


def test_what_was_met_and_has_a_column_by_now_asks_for_no_other_run() -> None:
    columns = batch(iter([None, None]))

    assert columns.grow({"n": NUMBERS})
    assert not columns.grow({"n": TEXTS})


def test_what_was_found_is_read_exactly_by_every_later_batch_too() -> None:
    """Also where the table has it with another type, and where an older program has found it."""
    found = Schema((ID, replace(N, type=FieldType.FLOAT64), M))
    again = decode_entry(encode(entry(found)), "entry").columns
    in_table = Schema((ID, replace(N, type=FieldType.FLOAT32)))

    for table, kind in ((None, FieldType.FLOAT64), (in_table, FieldType.FLOAT32)):
        columns = batch(iter([table]), known=again)
        read = columns.within(work(Path("/in"), Path("/table"))).file_schema
        assert read.fields[1] == Field(name="n", type=kind, reading=Reading(exact=True))
        assert columns.schema.fields[1] == Field(name="n", type=kind)
        assert columns.entry([]).found == columns.schema
        assert b"exact" not in encode(entry(read))


def test_without_units_there_is_nothing_to_look_at() -> None:
    assert look_share([], 10) == 1.0
