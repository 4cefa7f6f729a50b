"""Files as people have them come in with `blizzard init` and no editing, value by value."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from blizzard.config.load import load
from lakebed.columns.schema import walk
from lakebed.types import FieldType
from tests.support.real_data.kind import Kind
from tests.support.real_data.kinds import KINDS
from tests.support.real_data.oracle import RESCUED, differences, records_in, rescued
from tests.support.real_data.whole_way import arrived, configured
from tests.support.runner import InProcessRunner

SEED = 14
SIZE = 120
LITTLE = 12_000
"""Bytes of some records."""
EMPTY = ("length", 0)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_value_of_the_files_is_in_the_table(kind: Kind, tmp_path: Path) -> None:
    """HOLES W34: nothing changed, lost, doubled, or in another row; and nothing else."""
    file, told = configured(kind, tmp_path, SEED, SIZE)
    # A log that is still written has another name tomorrow.
    assert (
        ("access.json.log gets another name" in told) if kind.name == "nginx access" else not told
    )
    has_the_form_and_times_of_its_kind(kind, file)
    found = arrived(file, InProcessRunner())
    records = list(records_in(kind, kind.files(SEED, SIZE)))
    assert len(records) == SIZE
    assert not differences(records, found.rows, found.way)
    assert not found.has_found_columns
    # All values have columns: an array that is always empty has no type.
    unmapped = {leaf for row in found.rows for _path, leaf in rescued(row, found.way)}
    assert unmapped <= {EMPTY}


TIMES = {
    "tweets": {"created_at": "%a %b %d %H:%M:%S %z %Y"},
    "vpc flow logs": {"start": "epoch_s"},
    "nginx access": {"time_local": "%d/%b/%Y:%H:%M:%S %z", "msec": "epoch_s"},
}
"""Times that are no ISO 8601, by the kind of the files."""


def has_the_form_and_times_of_its_kind(kind: Kind, file: Path) -> None:
    (settings,) = load([file], [], {}).pipelines
    form = settings.sources[0].form
    assert form.is_documents == (kind.source.get("format") == "json")
    assert form.records == tuple(kind.source.get("records", "").split(".") if form.records else ())
    seen = set(form.skip.only_key) if form.skip else set()
    assert bool(seen) == ("skip_records" in kind.source)
    assert seen <= set(kind.source.get("skip_records", {"only_key": []})["only_key"])
    for path, written in TIMES.get(kind.name, {}).items():
        column = dict(walk(settings.schema.fields))[path]
        assert column.type is FieldType.TIMESTAMP
        assert column.reading.formats == (written,)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_value_is_in_the_table_after_a_look_at_little(kind: Kind, tmp_path: Path) -> None:
    """HOLES W34: fields that were not seen get columns, values of another type are rescued."""
    file, _told = configured(kind, tmp_path, SEED, SIZE, "--sample", str(LITTLE))
    found = arrived(file, InProcessRunner())
    records = list(records_in(kind, kind.files(SEED, SIZE)))
    assert not differences(records, found.rows, found.way)


Rows = list[dict[str, Any]]


def changed(rows: Rows) -> None:
    rows[3]["actor"]["id"] += 1


def lost(rows: Rows) -> None:
    rows[3]["actor"]["login"] = None


def lost_from_a_list(rows: Rows) -> None:
    next(row for row in rows if row["payload"]["commits"])["payload"]["commits"].pop()


def doubled(rows: Rows) -> None:
    rescued = json.loads(rows[3][RESCUED] or "{}")
    rows[3][RESCUED] = json.dumps(rescued | {"actor.login": rows[3]["actor"]["login"]})


def in_another_row(rows: Rows) -> None:
    rows[3]["actor"], rows[4]["actor"] = rows[4]["actor"], rows[3]["actor"]


def one_row_twice(rows: Rows) -> None:
    rows[4] = rows[3]


def one_row_less(rows: Rows) -> None:
    rows.pop()


def test_no_difference_goes_unseen(tmp_path: Path) -> None:
    kind = next(kind for kind in KINDS if kind.name == "github events")
    file, _told = configured(kind, tmp_path, SEED, SIZE)
    records = list(records_in(kind, kind.files(SEED, SIZE)))
    found = arrived(file, InProcessRunner())
    assert not differences(records, found.rows, found.way)
    for harm in (
        changed,
        lost,
        lost_from_a_list,
        doubled,
        in_another_row,
        one_row_twice,
        one_row_less,
    ):
        rows = copy.deepcopy(found.rows)
        harm(rows)
        assert differences(records, rows, found.way), harm
