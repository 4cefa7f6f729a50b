"""Which source files a repair has taken rows of, up to which entry."""

from pathlib import Path

from blizzard.answers.progress import taken_out
from lakebed.documents.losses import Repair, TakenOut
from lakebed.documents.reading import encode_document
from lakebed.documents.source_record import SourceRecord
from lakebed.layout import repaired
from tests.support.tables import TableDirectory, rows_of


def part(*, skipped: int = 0, complete: bool = False) -> SourceRecord:
    return SourceRecord(
        source="in",
        path="a.ndjson",
        size=9,
        etag=None,
        lines=1,
        rows=1,
        skipped=skipped,
        complete=complete,
        unit="0",
    )


def taken_of(folder: Path, *records: SourceRecord) -> dict[str, int]:
    """Return what a repair took of files, the data file of the first entry being gone."""
    table = TableDirectory(folder / "table")
    written = [
        table.journal().batch(rows_of(number), sources=(record,))
        for number, record in enumerate(records)
    ]
    files = (
        TakenOut(path=written[0].files[0].filename, pipeline="events", entry=1),
        TakenOut(path=written[1].files[0].filename, pipeline="another", entry=2),
    )
    document = Repair(version=3, files=files, created="2026-01-01T00:00:00+00:00")
    table.store.replace(repaired(3), encode_document(document))
    assert taken_out(table.store, "events", lambda _paths: ()) == {}, "all came back"
    return taken_out(table.store, "events", frozenset)


def test_a_file_that_was_read_again_since_is_in_the_table(tmp_path: Path) -> None:
    assert taken_of(tmp_path, part(complete=True), part(complete=True)) == {"in:a.ndjson": 1}


def test_a_file_that_was_read_on_since_is_not(tmp_path: Path) -> None:
    """The rows of its first part are gone, whichever entry came to its end."""
    parts = (part(), part(skipped=1), part(skipped=2, complete=True), part(complete=True))
    assert taken_of(tmp_path, *parts) == {"in:a.ndjson": 3}
