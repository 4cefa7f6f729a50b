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

from blizzard.model.source.form import Form
from blizzard.worker.ndjson.inference import parse, parse_next
from blizzard.worker.ndjson.lines import BYTE_ORDER_MARK
from blizzard.worker.ndjson.values import Number

ENVELOPES = frozenset([
    "records", "features", "items", "results", "data", "value", "values", "events", "logevents",
    "entries", "hits", "rows",
])  # fmt: skip
"""Usual names of the arrays in envelopes, in lower case."""
OF_A_RECORD = frozenset(("messages", "conversations", "choices", "tags"))
"""Usual names of arrays of objects within a single record."""
IDENTIFIES = re.compile(r"_?u?u?id|key|.*_id|.*[a-z]Id|timestamp|time|ts")
"""A document with a member of such a name is a record, not an envelope."""
FEWEST_RECORDS = 2

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope around an array of records, and the files with and without it."""

    path: tuple[str, ...]
    """The keys that lead to the array."""
    beside: tuple[str, ...]
    """The other members of the documents."""
    inside: frozenset[int]
    """The indexes of the files with the envelope."""
    outside: frozenset[int]
    """The indexes of the other files."""

    @property
    def is_usual(self) -> bool:
        """Whether it is the form of all files with few exceptions."""
        return len(self.inside) >= len(self.outside)

    def unlike(self) -> Iterator[tuple[int, str]]:
        """Yield the exceptions, and how each of them will be read."""
        path = ".".join(self.path)
        if self.is_usual:
            why = f"it has no array {path}, so it would fail; leave it out with a narrower path"
        else:
            why = (
                f"it looks like an envelope around the array {path}, unlike most files; it would "
                "be one record: give such files a source of their own, with format and records"
            )
        yield from ((n, why) for n in sorted(self.outside if self.is_usual else self.inside))


def envelope_of(files: Sequence[Sequence[Document]], *, all_whole: bool) -> Envelope | None:
    """Return the envelope, if the documents of some files are envelopes around records.

    For files that were not read in full, one record is enough.
    """
    arrays = (next(filter(None, map(_array, values)), None) for values in files)
    paths = Counter(path for path in arrays if path is not None)
    if not paths:
        return None
    ((path, _count),) = paths.most_common(1)
    numbers = [n for n, values in enumerate(files) if values]
    inside = [n for n in numbers if all(is_records(at(value, path)) for value in files[n])]
    documents = [value for n in inside for value in files[n]]
    longest = max((len(at(document, path)) for document in documents), default=0)
    if longest < (FEWEST_RECORDS if all_whole else 1):
        return None
    beside = tuple(
        dict.fromkeys(name for document in documents for name in document if name != path[0])
    )
    named = path[-1].lower() in ENVELOPES
    if not named and len(inside) < len(numbers):
        return None
    if beside or not named:
        # A one-line file may also be a single record with an array.
        alone = all(len(files[n]) == 1 for n in inside)
        is_record = path[-1].lower() in OF_A_RECORD or any(map(IDENTIFIES.fullmatch, beside))
        if not alone or is_record or (beside and not named):
            return None
    return Envelope(path, beside, frozenset(inside), frozenset(numbers) - frozenset(inside))


def _array(document: Document) -> tuple[str, ...] | None:
    """Return the path of the only array of objects, at most one level deep."""
    outer = [(name,) for name, value in document.items() if is_records(value) and value]
    inner = [
        (name, below)
        for name, value in document.items()
        if isinstance(value, dict)
        for below, array in value.items()
        if is_records(array) and array
    ]
    found = outer or inner
    if len(found) != 1 or any("." in key or not key for key in found[0]):
        return None
    return found[0]


def at(document: Document, path: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value at a path of a document; None if missing."""
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def is_records(value: object) -> bool:
    """Whether a value is an array of objects only."""
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


ACTIONS = ("index", "create", "update", "delete")
"""The action names of Elasticsearch bulk requests."""
OF_ACTIONS = re.compile(r"_\w+|routing|version|version_type|pipeline|retry_on_conflict|require_\w+")
"""The members of such an action; `if_seq_no` and others are rare."""
_SEPARATOR = "\x1e"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
"""A string, possibly truncated, or punctuation."""
_CLOSING = {"[": "]", "{": "}"}
_SPACE = re.compile(r"[\s\x1e]*")

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHead:
    """The first bytes of a file, once it is decompressed."""

    file: str
    data: bytes
    whole: bool = True
    """Whether these are all of the file's bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedForm:
    """The guessed form of a source's files; by default one record per line."""

    documents: bool = False
    """Whether records may span lines: `format: json`."""
    records: tuple[str, ...] = ()
    """The keys that lead from a document to its records: `records`."""
    actions: tuple[str, ...] = ()
    """Records with one of these as their only key are no rows: `skip_records: {only_key: …}`."""
    beside: tuple[str, ...] = ()
    """The other members of an envelope, which belong to no record."""

    def settings(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of `source` for this form, with YAML values."""
        if self.documents:
            yield "format", "json"
        if self.records:
            yield "records", ".".join(self.records)
        if self.actions:
            yield "skip_records", f"{{only_key: [{', '.join(self.actions)}]}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records at the beginnings of some files."""

    form: GuessedForm
    records: tuple[Record, ...] = ()
    strange: tuple[str, ...] = ()
    """The files that deviate from this form, each with the reason."""
    bad_lines: bool = False
    """Whether some lines among readable ones are unreadable."""


def records_of(files: Sequence[FileHead]) -> Records:
    """Return the form that fits the beginnings of files best, with their records."""
    found = [_lines(file) for file in files]
    form = GuessedForm()
    if any(each.why_not for each in found):
        documents = [_documents(file) for file in files]
        if _brokenness(documents) < _brokenness(found):
            found, form = documents, GuessedForm(documents=True)
    strange = _unlike_form(files, found)
    all_whole = all(file.whole for file in files)
    if envelope := envelope_of([each.values for each in found], all_whole=all_whole):
        if envelope.is_usual:
            form = GuessedForm(documents=True, records=envelope.path, beside=envelope.beside)
        strange = (*strange, *(f"{files[n].file}: {why}" for n, why in envelope.unlike()))
    rows = tuple(record for each in found for record in _rows(each, form.records))
    if not form.documents and (actions := _actions(rows)):
        form = GuessedForm(actions=actions)
        rows = tuple(each for each in rows if not _is_action(each))
    bad_lines = not form.documents and any(each.why_not and each.values for each in found)
    return Records(form=form, records=rows, strange=strange, bad_lines=bad_lines)


def records_in(files: Sequence[FileHead], form: Form) -> Records:
    """Return the records at the beginnings of files of a known form."""
    found = [_documents(file) if form.is_documents else _lines(file) for file in files]
    rows = (record for each in found for record in _rows(each, form.records))
    return Records(
        form=GuessedForm(documents=form.is_documents, records=form.records),
        records=tuple(
            record
            for record in rows
            if form.skip is None or not form.skip.holds(json.dumps(record).encode())
        ),
        strange=_unlike_form(files, found),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    values: tuple[Any, ...]
    why_not: str | None = None
    """Why the file does not have the form."""
    cut: bool = False
    """Whether the last value is truncated and has only the first records of an envelope."""
    is_json: bool = True
    """Whether all of it is JSON, even without records."""


def _brokenness(found: Sequence[_Found]) -> tuple[int, int]:
    """Count the files of another form, and those that are not JSON at all."""
    return sum(each.why_not is not None for each in found), sum(not each.is_json for each in found)


def _unlike_form(files: Sequence[FileHead], found: Sequence[_Found]) -> tuple[str, ...]:
    pairs = zip(files, found, strict=True)
    return tuple(f"{file.file}: {each.why_not}" for file, each in pairs if each.why_not)


def _text(file: FileHead) -> str:
    # The last character may be truncated.
    errors = "strict" if file.whole else "ignore"
    return file.data.removeprefix(BYTE_ORDER_MARK).decode(errors=errors)


def _lines(file: FileHead) -> _Found:
    """Parse each line as a record; the last one may be truncated."""
    try:
        lines = _text(file).split("\n")
    except UnicodeDecodeError as wrong:
        return _Found((), _not_utf8(wrong), is_json=False)
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
            why_not = why_not or f"line {number} is {_kind(value)}, not an object"
    if why_not is not None:
        return _Found(tuple(found), why_not, is_json=is_json)
    if not found and not file.whole:
        # Such a line may be a document, too.
        return _Found((), "no line ends within the bytes read of it; --sample reads more")
    return _Found(tuple(found))


def _documents(file: FileHead) -> _Found:
    """Parse consecutive documents in any layout; the last one may be truncated."""
    values: list[Any] = []
    text, at, cut = "", 0, False
    try:
        text = _text(file)
        at = _past_space(text, 0)
        while at < len(text):
            try:
                value, at = parse_next(text, at)
            except ValueError:
                if file.whole:
                    raise
                value, at = _cut_off(text[at:]), len(text)
                cut = isinstance(value, dict)
            values += value if isinstance(value, list) else [value]
            at = _past_space(text, at)
    except UnicodeDecodeError as wrong:
        return _Found((), _not_utf8(wrong), is_json=False)
    except (ValueError, RecursionError) as wrong:
        line = text.count("\n", 0, wrong.pos if isinstance(wrong, JSONDecodeError) else at) + 1
        return _Found((), f"line {line} is not JSON ({_parse_error(wrong)})", is_json=False)
    good = tuple(value for value in values if isinstance(value, dict))
    if len(good) < len(values):
        other = next(value for value in values if not isinstance(value, dict))
        return _Found(good, f"one of its records is {_kind(other)}, not an object")
    if good or file.whole:
        return _Found(good, None if good else "there is no record in it", cut=cut)
    return _Found((), "no record ends within the bytes read of it; --sample reads more")


def _not_utf8(wrong: UnicodeDecodeError) -> str:
    return f"byte {wrong.start + 1} is not UTF-8"


def _parse_error(wrong: ValueError | RecursionError) -> str:
    """Return a parser's error without the text."""
    if isinstance(wrong, RecursionError):
        return "nested too deeply"
    if isinstance(wrong, JSONDecodeError):
        return f"{wrong.msg[:1].lower()}{wrong.msg[1:]} at column {wrong.colno}"
    return str(wrong)


def _kind(value: object) -> str:
    match value:
        case list():
            return "an array"
        case bool():
            return "a boolean"
        case Number():
            return "a number"
        case str():
            return "a string"
    return "null"


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _cut_off(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the complete part of a truncated document: records, or an envelope with some.

    A truncated record is dropped, since its absent members would look missing.
    """
    closed = _closed(text)
    if closed is None:
        return []
    value = parse(closed)
    is_record = isinstance(value, dict) and envelope_of([[value]], all_whole=False) is None
    return [] if is_record else value


def _closed(text: str) -> str | None:
    """Close a truncated document after its last complete value; None without one.

    Values of objects inside an array do not count, since the object may be a record.
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
    return None if end is None else text[: end[0]] + "".join(end[1])


def _rows(found: _Found, path: Sequence[str]) -> Iterator[Record]:
    """Yield the records at a path; without a path, a truncated envelope gives none."""
    return _inside(found.values[:-1] if found.cut and not path else found.values, path)


def _inside(values: Sequence[Record], path: Sequence[str]) -> Iterator[Record]:
    for value in values:
        inside = at(value, path)
        if isinstance(inside, dict):
            yield inside
        elif is_records(inside):
            yield from inside


def _is_action(record: Mapping[str, Any]) -> bool:
    if len(record) != 1:
        return False
    ((name, value),) = record.items()
    return name in ACTIONS and isinstance(value, dict) and all(map(OF_ACTIONS.fullmatch, value))


def _actions(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the actions of bulk requests; none if the first record is not one."""
    if not records or not _is_action(records[0]):
        return ()
    return tuple(dict.fromkeys(name for each in records if _is_action(each) for name in each))
