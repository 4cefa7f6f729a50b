"""Files as people have them come in with `blizzard init` and no editing, value by value."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.config.load import load
from blizzard.model.json_path import element_path, member_path
from blizzard.model.settings import PipelineSettings
from blizzard.worker.ndjson.decoder import Decoder
from lakebed.schema import Field, walk
from lakebed.types import RESCUED, FieldType
from tests.support.builders import Bench
from tests.support.real_data.kind import Kind, lines
from tests.support.real_data.kinds import KINDS

SEED = 14
SIZE = 120
PER_SECOND = {"epoch_s": 1, "epoch_ms": 10**3, "epoch_us": 10**6, "epoch_ns": 10**9}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def configured(kind: Kind, root: Path) -> tuple[Path, PipelineSettings]:
    """Have a configuration written for the files of a kind, and read it."""
    for name, body in kind.files(SEED, SIZE).items():
        file = root / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    file = root / "pipeline.yaml"
    done = CliRunner().invoke(app, ["init", str(root / "in"), "--output", str(file)])
    assert done.exit_code == 0, done.output
    # Only one suffix can be asked for, so a log that was rotated is left out, and named.
    rotated = "access.json.log-20240511.gz" if kind.name == "nginx access" else ""
    assert (rotated in done.stderr) if rotated else not done.stderr
    (settings,) = load([file], [], {}).pipelines
    return file, settings


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_files_as_people_have_them_come_in_value_by_value(kind: Kind, tmp_path: Path) -> None:
    file, settings = configured(kind, tmp_path)
    source = yaml.safe_load(file.read_text())["source"]
    source.pop("path")
    rules = {key: sorted(value["only_key"]) if key == "skip_records" else value
             for key, value in kind.source.items()}  # fmt: skip
    if "skip_records" in source:
        seen = source["skip_records"]["only_key"]
        assert set(seen) <= set(rules["skip_records"])
        source["skip_records"] = rules["skip_records"]
    assert source == rules
    bench = Bench(settings)
    assert bench.pipeline().step()
    entry = bench.entries()[-1]
    assert [one.failure for one in entry.sources] == [None] * len(entry.sources)
    records = kind.records(SEED, SIZE)
    taken = len(entry.sources) / len(kind.files(SEED, SIZE))
    assert sum(one.rows for one in entry.sources) == taken * len(records)
    assert taken == 1 or kind.name == "nginx access"
    # Row by row: the order of the lines is known where they are decoded.
    decoder = Decoder(
        settings.schema, unknown=settings.unknown_fields, on_mismatch=settings.on_mismatch
    )
    rows = [row for each in decoder.decode([lines(records)]) for row in each.batch.to_pylist()]
    for record, row in zip(records, rows, strict=True):
        rescued = json.loads(row.get(RESCUED) or "{}")
        assert not list(lost(record, row, settings.schema.fields, rescued, "")), record


@pytest.mark.parametrize(
    ("name", "path", "form"),
    [
        ("tweets", "created_at", "%a %b %d %H:%M:%S %z %Y"),
        ("stripe events", "created", "epoch_s"),
        ("vpc flow logs", "start", "epoch_s"),
        ("nginx access", "time_local", "%d/%b/%Y:%H:%M:%S %z"),
        ("nginx access", "msec", "epoch_s"),
    ],
)
def test_times_that_are_no_iso_8601_are_times(
    name: str, path: str, form: str, tmp_path: Path
) -> None:
    _file, settings = configured(next(kind for kind in KINDS if kind.name == name), tmp_path)
    column = dict(walk(settings.schema.fields))[path]
    assert column.type is FieldType.TIMESTAMP
    assert column.reading.formats == (form,)


def lost(
    value: Mapping[str, Any],
    cell: Mapping[str, Any] | None,
    fields: Sequence[Field],
    rescued: Mapping[str, Any],
    above: str,
) -> Any:
    """Yield the paths of values that are neither in their column nor rescued."""
    taken = {one.path[0]: one for one in fields}
    for name, inner in value.items():
        path = member_path(above, name)
        one = taken.get(name)
        if path in rescued:
            if rescued[path] != inner:
                yield path
        elif one is None:
            if not is_nothing(inner):
                yield path
        else:
            yield from lost_in(inner, (cell or {}).get(one.name), one, rescued, path)


def is_nothing(value: Any) -> bool:
    """Whether there is nothing in a value that a column could hold."""
    if isinstance(value, dict):
        return all(map(is_nothing, value.values()))
    return value is None


def lost_in(value: Any, cell: Any, one: Field, rescued: Mapping[str, Any], path: str) -> Any:
    match one.type:
        case FieldType.STRUCT if isinstance(value, dict):
            yield from lost(value, cell, one.fields, rescued, path)
        case FieldType.LIST if isinstance(value, list) and isinstance(cell, list):
            assert one.items is not None
            for index, (inner, found) in enumerate(zip(value, cell, strict=True)):
                here = element_path(path, index)
                if here in rescued:
                    assert rescued[here] == inner
                else:
                    yield from lost_in(inner, found, one.items, rescued, here)
        case FieldType.MAP if isinstance(value, dict):
            assert one.items is not None
            for name, inner in value.items():
                here = member_path(path, name)
                if here not in rescued:
                    yield from lost_in(inner, dict(cell)[name], one.items, rescued, here)
        case _:
            if not same(value, cell, one):
                yield f"{path}: {value!r} is {cell!r}"


def same(value: Any, cell: Any, one: Field) -> bool:  # noqa: PLR0911 - one for each type
    """Whether a cell is the value of a line, by other means than those that have read it."""
    if value is None or value in one.reading.null_values:
        return cell is None
    match one.type:
        case FieldType.JSON:
            return bool(json.loads(cell) == value)
        case FieldType.TIMESTAMP | FieldType.TIMESTAMP_NTZ:
            return bool(cell == moment(value, one))
        case FieldType.DATE:
            return bool(cell == date.fromisoformat(value))
        case FieldType.INT64 | FieldType.DECIMAL:
            return bool(Decimal(str(value)) == cell)
        case FieldType.FLOAT64:
            return math.isclose(float(value), cell, rel_tol=0, abs_tol=0)
        case FieldType.BOOLEAN:
            return bool(cell is (value if isinstance(value, bool) else value == "true"))
    return bool(value == cell)


def moment(value: Any, one: Field) -> datetime:
    form = one.reading.formats[0] if one.reading.formats else None
    if form in PER_SECOND:
        micros = Decimal(str(value)) * 10**6 / PER_SECOND[form]
        return EPOCH + timedelta(microseconds=int(micros))
    if form is not None:
        return datetime.strptime(value, form)  # noqa: DTZ007 - as the pattern says
    return datetime.fromisoformat(value)
