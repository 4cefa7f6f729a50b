"""Guess the form of files from their beginnings: lines, documents, envelopes. Pure.

The corresponding keys of `source` are `format`, `records` and `skip_records`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any

from blizzard.model.source.form import Form, SkipRule
from blizzard.worker.ndjson.inference import parse, parse_next
from blizzard.worker.ndjson.lines import BYTE_ORDER_MARK
from lakebed.types import SourceFormat

ENVELOPES = frozenset([
    "records", "features", "items", "results", "data", "value", "values", "events", "logevents",
    "entries", "hits", "rows",
])  # fmt: skip
"""Usual names of the arrays in envelopes, in lower case."""
IDENTIFIES = re.compile(r"_?u?u?id|key|.*_id|.*[a-z]Id|timestamp|time|ts")
"""A document with a member of such a name is a record, not an envelope."""
ACTIONS = ("index", "create", "update", "delete")
"""The action names of Elasticsearch bulk requests."""
_SEPARATOR = "\x1e"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
"""A string, possibly truncated, or punctuation."""
_CLOSING = {"[": "]", "{": "}"}
_SPACE = re.compile(r"[\s\x1e]*")
_NOTHING_ENDS = "nothing ends within the bytes read of it; --sample reads more"

Record = dict[str, Any]
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHead:
    """The first bytes of a file, once it is decompressed."""

    file: str
    data: bytes
    whole: bool = True
    """Whether these are all of the file's bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records at the beginnings of some files."""

    form: Form
    records: tuple[Record, ...] = ()
    beside: tuple[str, ...] = ()
    """The other members of an envelope, which belong to no record."""
    strange: tuple[str, ...] = ()
    """The files that deviate from this form, each with the reason."""
    bad_lines: bool = False
    """Whether some lines among readable ones are unreadable."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The values at the beginning of a file, read as lines or as documents."""

    values: tuple[Record, ...]
    why_not: str | None = None
    """Why the file does not have the form."""
    cut: bool = False
    """Whether the last value is truncated and has only the first records of an envelope."""
    is_json: bool = True
    """Whether all of it is JSON, even without records."""


def records_of(files: Sequence[FileHead]) -> Records:
    """Return the form that fits the beginnings of files best, with their records."""
    found = [_lines(file) for file in files]
    form = Form()
    if any(each.why_not for each in found):
        documents = [_documents(file) for file in files]
        if _brokenness(documents) < _brokenness(found):
            found, form = documents, Form(format=SourceFormat.JSON)
    bad_lines = not form.is_documents and any(each.why_not and each.values for each in found)
    strange = list(_unlike_form(files, found))
    beside: dict[str, None] = {}
    if path := _envelope_of([each.values for each in found]):
        form = Form(format=SourceFormat.JSON, records=path)
        bad_lines = False
        for file, each in zip(files, found, strict=True):
            if all(is_records(at(value, path)) for value in each.values):
                beside |= dict.fromkeys(name for value in each.values for name in value)
            else:
                strange.append(
                    f"{file.file}: it has no array {'.'.join(path)}, so it would fail; leave it "
                    "out with a narrower path"
                )
        beside.pop(path[0])
    rows = [record for each in found for record in _rows(each, form.records)]
    if not form.is_documents and rows and _is_action(rows[0]):
        actions = dict.fromkeys(name for each in rows if _is_action(each) for name in each)
        form = Form(skip=SkipRule(only_key=tuple(actions)))
        rows = [each for each in rows if not _is_action(each)]
    return Records(
        form=form,
        records=tuple(rows),
        beside=tuple(beside),
        strange=tuple(strange),
        bad_lines=bad_lines,
    )


def records_in(files: Sequence[FileHead], form: Form) -> Records:
    """Return the records at the beginnings of files of a known form."""
    found = [_documents(file) if form.is_documents else _lines(file) for file in files]
    rows = (record for each in found for record in _rows(each, form.records))
    return Records(
        form=form,
        records=tuple(
            record
            for record in rows
            if form.skip is None or not form.skip.holds(json.dumps(record).encode())
        ),
        strange=tuple(_unlike_form(files, found)),
    )


def _brokenness(found: Sequence[_Found]) -> tuple[int, int]:
    """Count the files of another form, and those that are not JSON at all."""
    return sum(each.why_not is not None for each in found), sum(not each.is_json for each in found)


def _unlike_form(files: Sequence[FileHead], found: Sequence[_Found]) -> Iterator[str]:
    pairs = zip(files, found, strict=True)
    yield from (f"{file.file}: {each.why_not}" for file, each in pairs if each.why_not)


def _envelope_of(files: Sequence[Sequence[Document]]) -> tuple[str, ...] | None:
    """Return the path of the records if the documents of most files are envelopes around them."""
    files = [values for values in files if values]
    arrays = (next(filter(None, map(_array, values)), None) for values in files)
    paths = Counter(path for path in arrays if path is not None)
    if not paths:
        return None
    ((path, _count),) = paths.most_common(1)
    inside = [values for values in files if all(is_records(at(value, path)) for value in values)]
    beside = {name for values in inside for value in values for name in value} - {path[0]}
    # A file of one line with other members may also be a single record with an array.
    is_record = beside and (
        any(len(values) > 1 for values in inside) or any(map(IDENTIFIES.fullmatch, beside))
    )
    return None if is_record or 2 * len(inside) < len(files) else path


def _array(document: Document) -> tuple[str, ...] | None:
    """Return the path of the only array of objects, at most one level deep, if it is usual."""
    outer = [(name,) for name, value in document.items() if is_records(value) and value]
    inner = [
        (name, below)
        for name, value in document.items()
        if isinstance(value, dict)
        for below, array in value.items()
        if is_records(array) and array
    ]
    found = outer or inner
    is_usual = len(found) == 1 and found[0][-1].lower() in ENVELOPES and "." not in found[0][0]
    return found[0] if is_usual and found[0][0] else None


def at(document: Document, path: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value at a path of a document; None if missing."""
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def is_records(value: object) -> bool:
    """Whether a value is an array of objects only."""
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _is_action(record: Document) -> bool:
    """Whether a record is an action of an Elasticsearch bulk request, not a document."""
    if len(record) != 1:
        return False
    ((name, value),) = record.items()
    is_known = name in ACTIONS and isinstance(value, dict)
    return is_known and all(key.startswith("_") for key in value)


def _text(file: FileHead) -> str:
    # The last character may be truncated.
    errors = "strict" if file.whole else "ignore"
    return file.data.removeprefix(BYTE_ORDER_MARK).decode(errors=errors)


def _lines(file: FileHead) -> _Found:
    """Parse each line as a record; the last one may be truncated."""
    try:
        lines = _text(file).split("\n")
    except UnicodeDecodeError as wrong:
        return _Found((), _parse_error(wrong), is_json=False)
    if not file.whole:
        lines.pop()
    found: list[Record] = []
    why_not, is_json = None, True
    for number, line in enumerate(lines, 1):
        written = line.lstrip(_SEPARATOR).strip()
        if not written:
            continue
        try:
            value = parse(written)
        except (ValueError, RecursionError) as wrong:
            why_not = why_not or f"line {number} is not JSON ({_parse_error(wrong)})"
            is_json = False
            continue
        if isinstance(value, dict):
            found.append(value)
        else:
            why_not = why_not or f"line {number} is not an object"
    if not found and not file.whole:
        # Such a line may be a document, too.
        why_not = why_not or _NOTHING_ENDS
    return _Found(tuple(found), why_not, is_json=is_json)


def _documents(file: FileHead) -> _Found:
    """Parse consecutive documents in any layout; the last one may be truncated."""
    values: list[Any] = []
    text, end, cut = "", 0, False
    try:
        text = _text(file)
        end = _past_space(text, 0)
        while end < len(text):
            try:
                value, end = parse_next(text, end)
            except ValueError:
                if file.whole:
                    raise
                value, end = _cut_off(text[end:]), len(text)
                cut = isinstance(value, dict)
            values += value if isinstance(value, list) else [value]
            end = _past_space(text, end)
    except UnicodeDecodeError as wrong:
        return _Found((), _parse_error(wrong), is_json=False)
    except (ValueError, RecursionError) as wrong:
        line = text.count("\n", 0, wrong.pos if isinstance(wrong, JSONDecodeError) else end) + 1
        return _Found((), f"line {line} is not JSON ({_parse_error(wrong)})", is_json=False)
    good = tuple(value for value in values if isinstance(value, dict))
    if len(good) < len(values):
        return _Found(good, "one of its records is not an object")
    if good:
        return _Found(good, cut=cut)
    return _Found((), "there is no record in it" if file.whole else _NOTHING_ENDS)


def _parse_error(wrong: ValueError | RecursionError) -> str:
    """Return a parser's error without the text."""
    if isinstance(wrong, UnicodeDecodeError):
        return f"byte {wrong.start + 1} is not UTF-8"
    if isinstance(wrong, RecursionError):
        return "nested too deeply"
    if isinstance(wrong, JSONDecodeError):
        return f"{wrong.msg[:1].lower()}{wrong.msg[1:]} at column {wrong.colno}"
    return str(wrong)


def _past_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return start if found is None else found.end()


def _cut_off(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the complete part of a truncated document: records, or an envelope with some.

    A truncated record is dropped, since its absent members would look missing. Values of objects
    inside an array do not count, since the object may be a record.
    """
    if not text.startswith(("[", "{")):
        raise ValueError("no value is whole")
    around: list[str] = []
    end: tuple[int, list[str]] | None = None
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                around.append(_CLOSING[token[0]])
            case "]" | "}" if around:
                around.pop()
            case "," if around and "]" not in around[:-1]:
                end = token.start(), around[::-1]
    value = [] if end is None else parse(text[: end[0]] + "".join(end[1]))
    return value if isinstance(value, list) or _envelope_of([[value]]) else []


def _rows(found: _Found, path: Sequence[str]) -> Iterator[Record]:
    """Yield the records at a path; without a path, a truncated envelope gives none."""
    for value in found.values[:-1] if found.cut and not path else found.values:
        inside = at(value, path)
        if isinstance(inside, dict):
            yield inside
        elif is_records(inside):
            yield from inside
