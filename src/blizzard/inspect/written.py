"""Write columns and pipelines as configuration YAML. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from blizzard.inspect.guess.fields import GuessedColumn
from blizzard.model.source.form import Form
from lakebed.columns.schema import Field
from lakebed.types import FieldType

WIDTH = 80
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NO_TEXT = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n"])
"""Words that YAML parsers do not read as text."""


def scalar(text: str) -> str:
    """Write text as a YAML scalar that reads back unchanged."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT:
        return text
    return _quoted(text)


def field_line(field: Field) -> str:
    """Return a field without inner fields, or a list or map of such, as one line."""
    return f"{{{', '.join(f'{key}: {value}' for key, value in _keys(field, named=True))}}}"


def field_lines(columns: Iterable[GuessedColumn], indent: int) -> Iterator[str]:
    """Yield the lines of `fields`, with remarks as comments."""
    margin = " " * indent
    for one in columns:
        remark = "; ".join(one.remarks)
        if one.field is None:
            yield from _comment(margin, f"{scalar(one.name)}: {remark}")
        elif _fits_a_line(one.field):
            yield from _remarked(f"{margin}- {field_line(one.field)}", remark, margin)
        else:
            yield from _remarked(f"{margin}- name: {scalar(one.field.name)}", remark, margin)
            if one.field.reading.path:
                yield f"{margin}  from: {_list(one.field.reading.path)}"
            yield from _type_lines(one, indent + 2)


def pipeline_lines(
    *,
    source: str,
    table: str,
    form: Form,
    columns: Sequence[GuessedColumn],
    sampled: str,
    beside: Sequence[str] = (),
    partition: str | None = None,
    renamed: Sequence[str] = (),
    inline: bool = False,
    bad_lines: bool = False,
) -> Iterator[str]:
    """Yield the lines of a configuration for both programs, or for blizzard alone."""
    programs = "For blizzard alone" if inline else "One file for both programs"
    yield f"# {programs}, generated from {sampled}."
    yield ""
    yield "source:"
    yield f"  path: {_quoted(source)}"
    if renamed:
        yield from _comment("  ", rotation_remark(renamed))
    if form.is_documents:
        yield "  format: json"
    if form.records:
        yield f"  records: {'.'.join(form.records)}"
    if form.skip:
        yield f"  skip_records: {{only_key: [{', '.join(form.skip.only_key)}]}}"
    if beside:
        others = ", ".join(map(scalar, beside))
        yield from _comment("  ", f"Other members of a document are left out: {others}")
    yield ""
    yield "sink:"
    yield f"  path: {_quoted(table)}"
    if inline:
        yield "  commit: inline"
    if partition is not None:
        yield "  # Every file is in such folders, and the table has the same partitions."
        yield "  partition_by:"
        yield f"    prefix_template: {_quoted(partition)}"
    yield ""
    yield "schema:"
    yield "  # A field that is not listed gets a column of its own; rescue keeps its values"
    yield "  # in the column _rescued instead, drop leaves them out, fail refuses the line."
    yield "  unknown_fields: add"
    yield "  # A value that does not fit its column is kept in _rescued; or fail."
    yield "  on_mismatch: rescue"
    if any(one.field is not None for one in columns):
        yield "  fields:"
        yield from field_lines(columns, 4)
    if bad_lines:
        yield ""
        yield "error_handling:"
        yield "  # Bad lines are quarantined, and the rest of their file is ingested; or fail."
        yield "  # blizzard dlq list shows them."
        yield "  on_bad_record: quarantine"
    yield ""
    yield "tables:"
    yield f"  {scalar(_table_name(table))}:"
    yield f"    table_uri: {_quoted(table)}"


def rotation_remark(renamed: Sequence[str]) -> str:
    """Return a remark about files that log rotation will rename."""
    them = renamed[0] if len(renamed) == 1 else f"{renamed[0]} and {len(renamed) - 1} more"
    gets = "gets another name" if len(renamed) == 1 else "get other names"
    return (
        f"{them} {gets} when the log is rotated, and would be read again under the new name; "
        "run this once, or let the path match only files that keep their names"
    )


def _table_name(uri: str) -> str:
    name = uri.rpartition("/")[2]
    return name if _PLAIN.fullmatch(name) else "events"


def _type_lines(one: GuessedColumn, indent: int) -> Iterator[str]:
    """Yield the type of a field whose inner fields need lines of their own."""
    if one.field is None:
        return
    margin = " " * indent
    yield f"{margin}type: {one.field.type}"
    if one.field.type is FieldType.STRUCT:
        yield f"{margin}fields:"
        yield from field_lines(one.inner or map(_plain, one.field.fields), indent + 2)
        return
    items = one.inner[0] if one.inner else _plain(one.field.items) if one.field.items else None
    if items is None or items.field is None:
        return
    key = "items" if one.field.type is FieldType.LIST else "values"
    yield f"{margin}{key}:"
    if _fits_a_line(items.field):
        for name, value in _keys(items.field, named=False):
            yield f"{margin}  {name}: {value}"
        if items.remarks:
            yield from _comment(f"{margin}  ", "; ".join(items.remarks))
    else:
        yield from _type_lines(items, indent + 2)


def plain_columns(fields: Iterable[Field]) -> tuple[GuessedColumn, ...]:
    """Return fields as columns without remarks."""
    return tuple(map(_plain, fields))


def _plain(field: Field) -> GuessedColumn:
    return GuessedColumn(field, field.name, (), plain_columns(field.inner))


def _fits_a_line(field: Field) -> bool:
    if field.type is FieldType.STRUCT:
        return False
    return field.items is None or not (field.items.is_nested or _keys_of_reading(field.items))


def _keys(field: Field, *, named: bool) -> Iterator[tuple[str, str]]:
    if named:
        yield "name", scalar(field.name)
    decimal = field.type is FieldType.DECIMAL
    yield "type", f'"{field.shown}"' if decimal else field.type.value
    if not field.nullable:
        yield "nullable", "false"
    if field.items is not None:
        key = "items" if field.type is FieldType.LIST else "values"
        shown = field.items.shown
        yield key, f'"{shown}"' if field.items.type is FieldType.DECIMAL else shown
    if field.reading.path:
        yield "from", _list(field.reading.path)
    yield from _keys_of_reading(field)


def _keys_of_reading(field: Field) -> list[tuple[str, str]]:
    reading = field.reading
    keys = []
    if reading.formats:
        written = list(map(scalar, reading.formats))
        keys.append(("format", written[0] if len(written) == 1 else f"[{', '.join(written)}]"))
    if reading.coerce:
        keys.append(("coerce", "true"))
    if reading.null_values:
        keys.append(("null_values", f"[{', '.join(map(_quoted, reading.null_values))}]"))
    if reading.truncate:
        keys.append(("truncate", "true"))
    return keys


def _list(path: Sequence[str]) -> str:
    return f"[{', '.join(map(scalar, path))}]"


def _quoted(text: str) -> str:
    """Quote text, escaping invisible characters."""
    written = "".join(
        f"\\{letter}"
        if letter in '"\\'
        else letter
        if letter.isprintable()
        else f"\\U{ord(letter):08x}"
        for letter in text
    )
    return f'"{written}"'.replace("${", "$${")


def _remarked(line: str, remark: str, margin: str) -> Iterator[str]:
    """Yield a line with a trailing remark, or with the remark above if too long."""
    if not remark:
        yield line
    elif len(line) + len(remark) + 4 <= WIDTH:
        yield f"{line}  # {remark}"
    else:
        yield from _comment(margin, remark)
        yield line


def _comment(margin: str, text: str) -> Iterator[str]:
    """Yield a comment, wrapped if long."""
    # A name may hold anything; a line break in it would end the comment.
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    begin = f"{margin}# "
    yield from wrap(
        plain,
        WIDTH,
        initial_indent=begin,
        subsequent_indent=begin,
        break_long_words=False,
        break_on_hyphens=False,
    )
