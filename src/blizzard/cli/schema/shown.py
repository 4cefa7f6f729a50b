"""What `blizzard schema` prints: the columns of a pipeline, of files, and differences."""

from collections.abc import Iterator, Sequence

from blizzard.cli.call import document_of
from blizzard.inspect.columns import Column, Difference, Homeless, Origin, PresentColumns
from blizzard.inspect.guess.fields import GuessedColumn, fields_of
from blizzard.inspect.written import ddl_of, field_lines
from blizzard.model.settings import PipelineSettings
from lakebed.columns.schema import Field, walk
from lakebed.terminal.call import Call
from lakebed.terminal.console import Line, Table, Verbatim, more, picked, print_error, second
from lakebed.units import plural

FEW = 50


def columns_document(settings: PipelineSettings, found: PresentColumns) -> dict[str, object]:
    """Return the columns of a pipeline as JSON has them."""
    return {
        **document_of(settings),
        "last_entry": None if found.last is None else found.last.sequence,
        **picked(settings, "unknown_fields on_mismatch"),
        "columns": [
            {"column": one.path, **picked(one, "type origin entry at")} for one in found.columns
        ],
        "without_column": found.homeless,
    }


def column_lines(settings: PipelineSettings, found: PresentColumns) -> Iterator[Line]:
    """Yield the columns of a pipeline, and the values that are in none."""
    entry = "no entry yet" if found.last is None else f"entry {found.last.sequence}"
    yield (
        f"pipeline {settings.name} ({entry}): unknown_fields {settings.unknown_fields}, "
        f"on_mismatch {settings.on_mismatch}"
    )
    if not found.columns:
        yield "  the columns are found in the first batch; blizzard schema infer looks ahead"
        return
    rows = [(one.path, one.type, _origin(one)) for one in found.columns]
    yield Table(("column", "type", "where from"), rows)
    for dropped in (False, True):
        some = [one for one in found.homeless if one.dropped is dropped]
        if some:
            yield from _homeless(settings, some, "left out" if dropped else "in _rescued")


def show_found(call: Call, some: Sequence[GuessedColumn], *, ddl: bool) -> None:
    """Print columns that were found in files, as YAML, DDL or JSON."""
    fields = fields_of(some)
    lines = ddl_of(fields).splitlines() if ddl else ["fields:", *field_lines(some, 2)]
    call.show(map(Verbatim, lines), *_found_rows(some))
    if ddl and any(_says_more(field) for _path, field in walk(fields)):
        print_error(
            "warning: DDL cannot say how values are written (format, from, coerce, "
            "null_values); fields can"
        )


def difference_lines(
    settings: PipelineSettings, differences: Sequence[Difference], held: Sequence[str]
) -> Iterator[Line]:
    """Yield how columns differ, and why penguin would hold the next files."""
    if not differences and not held:
        yield f"pipeline {settings.name}: no difference"
        return
    count = plural(len(differences), "difference")
    yield f"pipeline {settings.name}: {count} from {settings.sink.table_uri}"
    if differences:
        rows = [(one.path, one.present, one.journal, one.table) for one in differences]
        yield Table(("column", "next files", "journal", "table"), rows)
    if not held:
        yield "penguin would commit the next files"
        return
    yield "penguin would hold the next files:"
    yield from (f"  {reason}" for reason in held)
    yield "declare the fields as the table has them, change tables.*.schema_evolution,"
    yield "or write to another table; penguin held shows what is held already"


def _origin(one: Column) -> str:
    match one.origin:
        case Origin.FOUND if one.entry is not None:
            return f"entry {one.entry}, {second(one.at)}"
        case Origin.PARTITION:
            return "partition, from the path"
        case Origin.RESCUED:
            return "values without a column"
        case Origin.PROVENANCE:
            return "provenance, where the row came from"
    return one.origin.value


def _homeless(settings: PipelineSettings, some: Sequence[Homeless], title: str) -> Iterator[Line]:
    key = "hints" if settings.infer else "fields"
    yield ""
    yield Table(
        (title, ">values", "why"),
        [
            (one.path, one.values, "no column" if one.not_a is None else f"no {one.not_a}")
            for one in some[:FEW]
        ],
    )
    yield from more(len(some) - FEW)
    for above in dict.fromkeys(one.inside for one in some if one.line is not None):
        where = f"schema.{key}" if above is None else f"the fields of {above}"
        yield f"for a column, add to {where}:"
        for one in some[:FEW]:
            if one.line is not None and one.inside == above:
                yield Verbatim(f"  - {one.line}")


def _found_rows(some: Sequence[GuessedColumn], above: str = "") -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for one in some:
        path = f"{above}{one.name}"
        if one.name in ("element", "value") and above.endswith("[]."):
            path = above[:-1]
        kind = None if one.field is None else one.field.shown
        rows.append({"column": path, "type": kind, "remarks": one.remarks})
        is_struct = one.field is not None and bool(one.field.fields)
        rows += _found_rows(one.inner, f"{path}." if is_struct else f"{path}[].")
    return rows


def _says_more(field: Field) -> bool:
    reading = field.reading
    return bool(reading.path or reading.formats or reading.coerce or reading.null_values)
