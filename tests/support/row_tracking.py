"""Tables that track their rows, and what is known of the rows wherever they are moved."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.compactions import Crowded, crowded
from tests.support.first_version import write_first
from tests.support.mapped import added, field
from tests.support.promotions import ID, PRICE

USER = {"name": "user", "type": "string"}
FIELDS: dict[str, Any] = {"fields": [ID, USER], "provenance": ["file"]}
IDS, VERSIONS = "_row-id-col-1", "_row-version-col-2"
NAMED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": IDS,
    "delta.rowTracking.materializedRowCommitVersionColumnName": VERSIONS,
}
COLUMNS = {
    "id": "long",
    "user": "string",
    "_file": "string",
    "_rescued": "string",
    "price": "decimal(10,2)",
}
Known = dict[int, tuple[int, int]]
"""The id of each row, and the version that wrote it, by the column `id`."""


def tracking(folder: Path) -> Crowded:
    """Return a pipeline whose table is yet to be made, by another program."""
    return crowded(folder, FIELDS, files=0)


def make_tracked(desk: Crowded, *, mapped: bool = False, configuration: Any = None) -> None:
    """Write version 0 of a table that tracks its rows, as another engine would."""
    fields = [
        field(name, kind, place, None if mapped else name)
        for place, (name, kind) in enumerate(COLUMNS.items(), start=1)
    ]
    features = ["invariants", "domainMetadata", "rowTracking"]
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 7}
    said = dict(NAMED if configuration is None else configuration)
    if mapped:
        features.append("columnMapping")
        protocol |= {"minReaderVersion": 3, "readerFeatures": ["columnMapping"]}
        said |= {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}
    else:
        fields = [{**one, "metadata": {}} for one in fields]
    fields = [{**one, "nullable": True} for one in fields]
    desk.table.mkdir(exist_ok=True)
    made = {**protocol, "writerFeatures": features}
    write_first(desk.store, made, fields, said, info={"operation": "CREATE TABLE"})


def in_files(desk: Crowded, name: str = "id") -> Known:
    """Return what the log and the files say of rows, by the rules of the protocol."""
    found: Known = {}
    for path, told in added(desk).items():
        first, version = told["baseRowId"], told["defaultRowCommitVersion"]
        for place, row in enumerate(pq.read_table(desk.table / path).to_pylist()):
            kept = (row.get(IDS), row.get(VERSIONS))
            assert row[name] not in found
            found[row[name]] = (
                first + place if kept[0] is None else kept[0],
                version if kept[1] is None else kept[1],
            )
    assert len({one for one, _ in found.values()}) == len(found)
    return found


def fill(desk: Crowded) -> None:
    """Bring four files of two rows each into the table; every second row has something rescued."""
    for number in range(4):
        rows = [{"id": one, "user": f"u{9 - one}"} for one in (2 * number, 2 * number + 1)]
        desk.land(f"{number}.ndjson", rows[0], {**rows[1], "price": 1.5})
        desk.ingest()


def but(rows: Known, *gone: int) -> Known:
    """Return what is known of the other rows."""
    return {one: told for one, told in rows.items() if one not in gone}


def move_about(desk: Crowded, known: Callable[[], Known]) -> Known:
    """Do all that moves rows to other files; after each step the others are the rows they were.

    Return what is known of those that are left: 0 anew, 1, 4, 6, 7 and whatever was there before.
    """
    before = known()
    desk.configure({**FIELDS, "fields": [*FIELDS["fields"], PRICE]})
    assert sum(one.taken for one in desk.promote("price").rewritten) == 4
    desk.penguin()
    promoted = known()
    changed = (1, 3, 5, 7)
    assert but(promoted, *changed) == but(before, *changed)
    # A row that changes has the id that it had, and the version that changed it.
    assert {one: promoted[one] for one in changed} == {
        one: (before[one][0], desk.version) for one in changed
    }

    assert desk.tidy().failed == ()
    assert known() == promoted
    assert len(desk.take_back("1.ndjson").rewritten) == 1
    assert known() == but(promoted, 2, 3)
    desk.forget("id = 5")
    left = but(promoted, 2, 3, 5)
    assert known() == left

    desk.land("0.ndjson", {"id": 0, "user": "new"}, {"id": 1, "user": "u8"})
    desk.replace("0.ndjson", by="0.ndjson")
    desk.penguin()
    after = known()
    assert but(after, 0, 1) == but(left, 0, 1)
    # What was read anew are other rows.
    last = max(one for one, _ in promoted.values())
    assert all(after[one][0] > last and after[one][1] == desk.version for one in (0, 1))
    return after
