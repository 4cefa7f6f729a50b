"""However files are cut, filtered, spread and resumed: a row leads back to its own record."""

import gzip
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from blizzard.model.source.form import Form, SkipRule
from lakebed.columns.schema import Field, Schema
from lakebed.documents.entry import Entry
from lakebed.documents.records import FinishedFile, Run
from lakebed.types import FieldType, Provenance
from tests.support.bounds import SMALL_PIECES, settings_of
from tests.support.builders import Bench, Hands, entries, gz, put, source_settings
from tests.support.slow import SlowRunner


def lines_of(source: Path) -> list[bytes]:
    """Cut a source file into lines, in the simplest way."""
    body = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    return body.removesuffix(b"\n").split(b"\n")


def id_in(line: bytes) -> int | None:
    """Read the id of a record; None for a line that has none."""
    return json.loads(line).get("id") if line.strip() else None


def first_record(run: Run, lines: Sequence[bytes]) -> int:
    """Find the first record of a run, by its number or from the byte that it names."""
    if run.first is not None:
        return run.first
    assert run.byte is not None
    assert run.nth is not None
    start, before = 0, 0
    for line in lines:
        if start >= run.byte:
            break
        start, before = start + len(line) + 1, before + 1
    return before + run.nth


def hold_to_its_runs(file: FinishedFile, entry: Entry, table: Path) -> Iterator[tuple[str, int]]:
    """Check each row of a data file against its records; yield source and record where known."""
    ids: list[Any] = pq.read_table(table / file.filename, columns=["id"])["id"].to_pylist()
    assert sum(run.rows for run in file.runs) == len(ids) == file.record_count
    assert [*dict.fromkeys(run.source for run in file.runs)] == [*range(len(file.source_files))]
    start = 0
    for run in file.runs:
        source, _, path = file.source_files[run.source].partition(":")
        lines = lines_of(Path(entry.source_uris[source]) / path)
        first = first_record(run, lines)
        found = [id_in(line) for line in lines[first - 1 : first - 1 + run.records]]
        rows = ids[start : start + run.rows]
        start += run.rows
        if run.is_exact:
            assert rows == found
            yield from ((path, number) for number in range(first, first + run.records))
        else:
            assert run.rows < run.records
            left = iter(found)
            assert all(row in left for row in rows), "rows come in the order of their records"


def known_origins(table: Path) -> list[tuple[str, int]]:
    """Check every row of a table; return the records whose numbers are known."""
    return [
        origin
        for entry in entries(table)
        for file in entry.files
        for origin in hold_to_its_runs(file, entry, table)
    ]


def stamped_origins(table: Path) -> list[tuple[str, int]]:
    """Return the records that the columns of the rows name; each has the id of its row."""
    found = []
    for entry in entries(table):
        for file in entry.files:
            rows = pq.read_table(table / file.filename, partitioning=None).to_pylist()
            for row in rows:
                source = Path(row["_file"])
                assert id_in(lines_of(source)[row["_line"] - 1]) == row["id"]
                assert row["_batch"] == f"{entry.pipeline}/{entry.journal}/{entry.sequence}"
                found.append((source.name, row["_line"]))
    return found


# A failure is small enough as it is found, and a smaller one takes minutes to find.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
COLUMNS = Schema(
    (Field(name="id", type=FieldType.INT64), Field(name="at", type=FieldType.TIMESTAMP))
)
LINES = st.sampled_from(["row", "row", "row", "row", "blank", "spaces", "filtered"])
FILES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.lists(LINES, max_size=12), st.integers(1, 10)),
    min_size=1,
    max_size=4,
)


def body_of(kinds: list[str], number: int, *, days: int) -> bytes:
    lines = []
    for place, kind in enumerate(kinds):
        name = number * 10_000 + place
        at = f"2024-01-{1 + place % days:02}T00:00:00Z"
        match kind:
            case "row":
                lines.append(json.dumps({"id": name, "at": at}))
            case "filtered":
                lines.append(json.dumps({"drop": name}))
            case _:
                lines.append(" \t" if kind == "spaces" else "")
    return "\n".join(lines).encode()


STOPPED = [(False, 3, ["row", "blank"], 10)]


def story(**given: Any) -> Any:
    """Return an example that once went wrong, tried before random ones."""
    usual = {"days": 0, "pace": 0.0, "batch_size": 8192, "room": 10**6, "budget": None}
    return example(**{**usual, "staged": None, "backwards": False, "columns": False, **given})


@settings(max_examples=30, phases=PHASES)
@given(
    files=FILES,
    days=st.sampled_from([0, 1, 3]),
    pace=st.sampled_from([0.0, 2.0, 10.0]),
    batch_size=st.sampled_from([3, 8192]),
    room=st.sampled_from([400, 4_000, 10**6]),
    budget=st.sampled_from([200, None]),
    staged=st.sampled_from([1, 2_000, None]),
    backwards=st.booleans(),
    columns=st.booleans(),
)
@story(
    files=[(False, 1, ["row", "blank"], 2), (True, 2, ["row", "filtered"], 3)], days=3, columns=True
)
@story(files=STOPPED, pace=2.0, batch_size=3, room=400, budget=200, columns=True)
@story(files=STOPPED, pace=2.0, batch_size=3, room=400, budget=200, backwards=True)
def test_a_row_leads_back_to_the_record_that_it_was_read_from(
    files: list[tuple[bool, int, list[str], int]],
    days: int,
    pace: float,
    batch_size: int,
    room: int,
    budget: int | None,
    staged: int | None,
    backwards: bool,
    columns: bool,
) -> None:
    spread: dict[str, Any] = {"template": "date=%Y-%m-%d", "timestamp_field": "at"} if days else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = set()
        for number, (packed, plain, mixed, times) in enumerate(files):
            kinds = ["row"] * plain * 20 + mixed * times
            body = body_of(kinds, number, days=max(1, days))
            path = f"{number}.ndjson{'.gz' if packed else ''}"
            put(folder / "in", path, gz(body) if packed else body)
            expected |= {(path, at + 1) for at, kind in enumerate(kinds) if kind == "row"}
        source = replace(
            source_settings(folder / "in", batch_size=batch_size),
            form=Form(skip=SkipRule(only_key=("drop",))),
        )
        usual = settings_of(
            folder,
            rollover=60,
            schema=COLUMNS,
            sources=(source,),
            provenance=tuple(Provenance) if columns else (),
            **spread,
        )
        small = {"staged_bytes": staged, "decoded_budget": budget}
        given: dict[str, Any] = {name: size for name, size in small.items() if size is not None}
        sizing = replace(SMALL_PIECES, smallest_unit=room, units_per_core=1, **given)
        hands = Hands()
        bench = Bench(
            replace(usual, sizing=sizing),
            runner=SlowRunner(hands, pace, parallelism=64, backwards=backwards),
            hands=hands,
        )
        pipeline = bench.pipeline()
        while pipeline.step():
            pass
        found = known_origins(bench.table)
        if columns:
            assert set(stamped_origins(bench.table)) == expected
        rows = sum(file.record_count for entry in bench.entries() for file in entry.files)

    assert rows == len(expected)
    assert len(found) == len(set(found)), "no record gave two rows"
    assert set(found) <= expected
    if days != 3:
        assert set(found) == expected, "a few gaps hide no number"
