"""The footers of other programs' files: what is read of them, and what a table can hold."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.documents.parquet_footer import TAIL
from lakebed.documents.records import ColumnStatistics
from lakebed.errors import ObjectChanged
from lakebed.storage.options import ObjectFacts
from lakebed.storage.store import Reader
from penguin.foreign.footer import Footer, read_footer
from penguin.foreign.rules import as_the_table_sees_it
from penguin.model.settings import FileUnfit

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Bytes(Reader):
    """A store with one object that notes what is read of it."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.read: list[int] = []

    def footer(self, etag: str = "e1") -> Footer:
        facts = ObjectFacts(path="x.parquet", size=len(self.body), etag=etag, modified=NOW)
        return read_footer(self, facts)

    def part(self, path: str, start: int, end: int, *, etag: str | None = None) -> bytes:
        if etag != "e1":
            raise ObjectChanged("replaced", path=path)
        self.read.append(end - start)
        return self.body[start:end]

    def describe(self, path: str) -> str:
        return f"s3://bucket/table/{path}"


def written(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def footer_of(table: pa.Table, **options: Any) -> Footer:
    return Bytes(written(table, **options)).footer()


def types(table: pa.Table, **options: Any) -> dict[str, Any]:
    footer = footer_of(table, **options)
    assert footer.reasons == ()
    return {one["name"]: one["type"] for one in footer.schema["fields"]}


# ------------------------------------------------------------------------------ reading


def test_one_ranged_read_is_enough_for_a_large_file():
    body = written(pa.table({"id": list(range(300_000))}), compression="none", use_dictionary=False)
    store = Bytes(body)
    footer = store.footer()
    assert footer.rows == 300_000
    assert store.read == [TAIL]
    assert footer.statistics["id"] == ColumnStatistics(null_count=0, minimum=0, maximum=299_999)


def test_a_footer_longer_than_the_first_read_costs_a_second_one_and_not_the_file():
    many = {f"column_{number:04}": [number] * 2000 for number in range(900)}
    body = written(pa.table(many), compression="none", use_dictionary=False)
    store = Bytes(body)
    footer = store.footer()
    assert len(footer.schema["fields"]) == 900
    assert len(store.read) == 2
    assert sum(store.read) < len(body) / 4


def test_a_file_that_was_replaced_since_it_was_listed_is_not_taken_for_it():
    body = written(pa.table({"id": [1]}))
    with pytest.raises(ObjectChanged):
        Bytes(body).footer(etag="e0")


def test_the_mark_of_blizzard_is_seen():
    marked = pa.table({"id": [1]}).replace_schema_metadata({"blizzard.journal": "j"})
    assert footer_of(marked).ours
    assert not footer_of(pa.table({"id": [1]})).ours


WHOLE = written(pa.table({"id": list(range(50_000))}), compression="none", use_dictionary=False)

LENGTH = int.from_bytes(WHOLE[-8:-4], "little") + 8


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "0 bytes are too few"),
        (b"PAR1PAR1", "8 bytes are too few"),
        (b"x" * 4000, "does not end like a Parquet file"),
        (WHOLE[:-1], "does not end like a Parquet file"),
        (WHOLE[:3000], "does not end like a Parquet file"),
        (WHOLE[:-4] + b"PARE", "does not end like a Parquet file"),
        (WHOLE[:-8] + b"\xff\xff\xff\x7fPAR1", "bytes is impossible"),
        (WHOLE[:-LENGTH] + bytes(LENGTH - 8) + WHOLE[-8:], "cannot be read"),
    ],
)
def test_a_file_that_is_no_whole_parquet_file_is_unfit(body, why):
    """HOLES L09"""
    with pytest.raises(FileUnfit, match=why) as unfit:
        Bytes(body).footer()
    assert "s3://bucket/table/x.parquet" in str(unfit.value)


# ------------------------------------------------------------------------------ types


def test_the_types_that_every_reader_reads_become_deltas():
    kinds: dict[str, tuple[pa.DataType, str]] = {
        "i8": (pa.int8(), "byte"),
        "i16": (pa.int16(), "short"),
        "i32": (pa.int32(), "integer"),
        "i64": (pa.int64(), "long"),
        "f32": (pa.float32(), "float"),
        "f64": (pa.float64(), "double"),
        "date": (pa.date32(), "date"),
        "money": (pa.decimal128(10, 2), "decimal(10,2)"),
        "utc": (pa.timestamp("us", tz="UTC"), "timestamp"),
        "millis": (pa.timestamp("ms", tz="UTC"), "timestamp"),
        "berlin": (pa.timestamp("us", tz="Europe/Berlin"), "timestamp"),
        "wall": (pa.timestamp("us"), "timestamp_ntz"),
    }
    columns: dict[str, Any] = {name: pa.array([None], kind) for name, (kind, _) in kinds.items()}
    columns |= {"flag": pa.array([True]), "binary": pa.array([b"x"]), "string": pa.array(["x"])}
    columns |= {"large": pa.array(["x"], pa.large_string())}
    columns |= {"packed": pa.array(["x"]).dictionary_encode()}
    wanted = {name: told for name, (_, told) in kinds.items()}
    wanted |= {"flag": "boolean", "binary": "binary"}
    assert types(pa.table(columns)) == wanted | dict.fromkeys(
        ("string", "large", "packed"), "string"
    )


def test_nested_types_become_deltas_and_a_legacy_timestamp_in_one_is_found():
    instant = datetime(2024, 1, 1, tzinfo=UTC)
    kind = pa.struct([("tags", pa.list_(pa.string())), ("at", pa.timestamp("us", tz="UTC"))])
    found = types(
        pa.table(
            {
                "id": pa.array([1]),
                "s": pa.array([{"tags": ["x"], "at": instant}], kind),
                "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
            }
        ),
        use_deprecated_int96_timestamps=True,
    )
    tags = {"type": "array", "elementType": "string", "containsNull": True}
    assert found == {
        "id": "long",
        "s": {
            "type": "struct",
            "fields": [
                {"name": "tags", "type": tags, "nullable": True, "metadata": {}},
                {"name": "at", "type": "timestamp", "nullable": True, "metadata": {}},
            ],
        },
        "m": {
            "type": "map",
            "keyType": "string",
            "valueType": "integer",
            "valueContainsNull": True,
        },
    }


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([1], pa.timestamp("ns")), "Delta keeps microseconds"),
        (pa.array([1], pa.timestamp("ns", tz="UTC")), "Delta keeps microseconds"),
        (pa.array([1], pa.uint32()), "type uint32 cannot be held"),
        (pa.array([1], pa.time64("us")), "cannot be held"),
        (pa.array([None], pa.null()), "type null cannot be held"),
        (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), "cannot be held"),
        (pa.array([{"n": 1}], pa.struct([("n", pa.uint8())])), "n: type uint8 cannot be held"),
    ],
)
def test_a_type_that_readers_do_not_agree_on_is_a_reason_by_name(column, why):
    footer = footer_of(pa.table({"before": [1], "odd": column, "after": ["x"]}))
    assert len(footer.reasons) == 1
    assert footer.reasons[0].startswith("odd: ")
    assert why in footer.reasons[0]
    # The columns around it are told right all the same.
    assert [one["type"] for one in footer.schema["fields"]] == ["long", "string"]


def test_a_name_that_delta_does_not_allow_is_a_reason():
    assert footer_of(pa.table({"a b": [1]})).reasons == (
        "a b: a column's name must not contain [' ']",
    )


MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)
AWAY = pa.timestamp("us", "+05:30")


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([MIDNIGHT.date()], pa.date64()), "odd: type date64"),
        (pa.array([[MIDNIGHT.date()]], pa.list_(pa.date64())), "item: type date64"),
        (pa.array([{"n": MIDNIGHT.date()}], pa.struct([("n", pa.date64())])), "n: type date64"),
        (pa.array([0], AWAY), "odd: type timestamp[us, tz=+05:30]"),
        (pa.array([{"n": 0}], pa.struct([("n", AWAY)])), "n: type timestamp"),
        (pa.array([[("k", 0)]], pa.map_(pa.string(), AWAY)), "type timestamp"),
    ],
)
def test_a_type_that_its_writer_noted_and_one_reader_cannot_bear_is_a_reason(column, why):
    """HOLES W25: committed, it made the whole table unreadable for polars, or for deltalake."""
    table = pa.table({"before": [1], "odd": column, "after": ["x"]})
    (reason,) = footer_of(table).reasons
    assert reason.startswith("odd: ")
    assert why in reason
    assert "write the file with" in reason
    # Without the writer's note the file holds what every reader reads.
    assert footer_of(table, store_schema=False).reasons == ()


def test_a_legacy_timestamp_with_an_offset_is_a_reason():
    """HOLES W25: the file's own type does not show it."""
    table = pa.table({"odd": pa.array([0], AWAY)})
    (reason,) = footer_of(table, use_deprecated_int96_timestamps=True).reasons
    assert "tz=+05:30" in reason


@pytest.mark.parametrize("zone", ["UTC", "utc", "Etc/UTC", "Europe/Berlin", "GMT", "+00:00"])
def test_a_time_zone_that_every_reader_knows_is_taken(zone):
    assert types(pa.table({"at": pa.array([0], pa.timestamp("us", zone))})) == {"at": "timestamp"}


@pytest.mark.parametrize("char", ["\x00", "\x01", "\r", "\x1f", "\x7f"])
def test_a_name_with_a_control_character_is_a_reason_that_can_be_shown(char):
    """HOLES W25: no reader reads a table that has a NUL in the name of a column."""
    shown = rf"a\x{ord(char):02x}b"
    (reason,) = footer_of(pa.table({f"a{char}b": [1]})).reasons
    assert reason == f"{shown}: a column's name must not contain [{char!r}]"
    inner = pa.array([{f"a{char}b": 1}], pa.struct([(f"a{char}b", pa.int64())]))
    (reason,) = footer_of(pa.table({"s": inner})).reasons
    assert reason.startswith(f"s: {shown}: ")


# ------------------------------------------------------------------------------ statistics


def test_a_legacy_timestamp_has_no_bounds():
    table = pa.table({"at": pa.array([1, None], pa.timestamp("us", tz="UTC"))})
    found = footer_of(table, use_deprecated_int96_timestamps=True).statistics
    assert found.get("at") in (None, ColumnStatistics(null_count=1))


def test_a_file_without_statistics_has_none():
    footer = footer_of(pa.table({"id": [1, 2]}), write_statistics=False)
    assert footer.statistics == {}
    assert footer.rows == 2


def test_a_year_that_python_cannot_hold_gives_no_bound():
    far = pa.array([2**58], pa.timestamp("us", tz="UTC"))
    assert footer_of(pa.table({"at": far})).statistics["at"] == ColumnStatistics(null_count=0)


# ------------------------------------------------------------------------------ nulls


def field_of(name: str, *, nullable: bool = True, kind: Any = "long") -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {}}


def struct_of(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def test_a_required_column_is_satisfied_by_counts_of_nulls_and_by_nothing_less():
    file = struct_of(field_of("id"), field_of("n"), field_of("unknown"))
    counted = {
        "id": ColumnStatistics(null_count=0),
        "n": ColumnStatistics(null_count=1),
    }
    seen = as_the_table_sees_it(file, counted, file, ())
    assert [one["nullable"] for one in seen["fields"]] == [False, True, True]


def test_a_new_column_may_be_null_at_every_depth():
    inner = struct_of(field_of("x", nullable=False))
    array = {"type": "array", "elementType": inner, "containsNull": False}
    file = struct_of(field_of("new", nullable=False, kind=array), field_of("p"))
    seen = as_the_table_sees_it(file, {}, struct_of(field_of("p")), ("p",))
    assert seen == struct_of(
        field_of(
            "new",
            kind={"type": "array", "elementType": struct_of(field_of("x")), "containsNull": True},
        )
    )


def test_a_machine_without_memory_has_found_no_fault_in_the_file(monkeypatch):
    """HOLES L28: the file would be held as corrupt."""

    def poor(_footer, **_limits):
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr("lakebed.documents.parquet_footer.pq.ParquetFile", poor)
    with pytest.raises(MemoryError):
        footer_of(pa.table({"id": [1]}))
