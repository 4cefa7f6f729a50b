"""Guess the form of files from their beginnings: lines, documents, envelopes. Pure.

The keys of `source` that say the same are `format`, `records` and `skip_records`.
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
"""What the arrays of envelopes are called, in lower case."""
OF_A_RECORD = frozenset(("messages", "conversations", "choices", "tags"))
"""What arrays of objects are called that belong to one record."""
IDENTIFIES = re.compile(r"_?u?u?id|key|.*_id|.*[a-z]Id|timestamp|time|ts")
"""A document with a member of such a name is a record, not an envelope."""
FEWEST_RECORDS = 2

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Envelope:
    """The files that are envelopes around an array of records, and those that are not."""

    path: tuple[str, ...]
    """The keys that lead to the array."""
    beside: tuple[str, ...]
    """What else the documents hold."""
    inside: frozenset[int]
    """The numbers of these files."""
    outside: frozenset[int]
    """The numbers of the others."""

    @property
    def is_usual(self) -> bool:
        """Whether it is the form of all files, but for exceptions."""
        return len(self.inside) >= len(self.outside)

    def unlike(self) -> Iterator[tuple[int, str]]:
        """Yield the files that are not like most, and what becomes of each."""
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
    """Return where the records are, if the documents of some files are envelopes around them.

    Of files that were not read whole, one record is enough to tell.
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
        # A file of one line may just as well be a record that has an array in it.
        alone = all(len(files[n]) == 1 for n in inside)
        is_record = path[-1].lower() in OF_A_RECORD or any(map(IDENTIFIES.fullmatch, beside))
        if not alone or is_record or (beside and not named):
            return None
    return Envelope(path, beside, frozenset(inside), frozenset(numbers) - frozenset(inside))


def _array(document: Document) -> tuple[str, ...] | None:
    """Return where the one array of objects is, at the top of a document or right below it."""
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
    """Return what is at a path of a document; None where there is no such member."""
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def is_records(value: object) -> bool:
    """Whether this is an array that can be one of records: all of its elements are objects."""
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


ACTIONS = ("index", "create", "update", "delete")
"""What a line of an Elasticsearch bulk request does that has no document in it."""
OF_ACTIONS = re.compile(r"_\w+|routing|version|version_type|pipeline|retry_on_conflict|require_\w+")
"""The members of such an action; `if_seq_no` and others are rare."""
_SEPARATOR = "\x1e"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
"""A string, which may be cut off, or what is between values."""
_CLOSING = {"[": "]", "{": "}"}
_SPACE = re.compile(r"[\s\x1e]*")

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The first bytes of a file, once it is decompressed."""

    file: str
    data: bytes
    whole: bool = True
    """Whether the file ends with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedForm:
    """What the files of a source seem to be made of; by default of lines, a record each."""

    documents: bool = False
    """Whether records need not be lines: `format: json`."""
    records: tuple[str, ...] = ()
    """The keys that lead from a document to its records: `records`."""
    actions: tuple[str, ...] = ()
    """Records with one of these as their only key are no rows: `skip_records: {only_key: …}`."""
    beside: tuple[str, ...] = ()
    """What else an envelope holds, which is no part of any record."""

    def settings(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of `source` that say this, with their values as YAML."""
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
    """The files that do not have this form from beginning to end, each with the reason."""
    bad_lines: bool = False
    """Whether lines that cannot be read stand among others that can."""


def records_of(files: Sequence[Beginning]) -> Records:
    """Return the form that fits the beginnings of files best, and their records in that form."""
    found = [_lines(file) for file in files]
    form = GuessedForm()
    if any(each.why_not for each in found):
        documents = [_documents(file) for file in files]
        if _brokenness(documents) < _brokenness(found):
            found, form = documents, GuessedForm(documents=True)
    strange = _strange(files, found)
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


def records_in(files: Sequence[Beginning], form: Form) -> Records:
    """Return the records at the beginnings of files whose form is known."""
    found = [_documents(file) if form.is_documents else _lines(file) for file in files]
    rows = (record for each in found for record in _rows(each, form.records))
    return Records(
        form=GuessedForm(documents=form.is_documents, records=form.records),
        records=tuple(
            record
            for record in rows
            if form.skip is None or not form.skip.holds(json.dumps(record).encode())
        ),
        strange=_strange(files, found),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    values: tuple[Any, ...]
    why_not: str | None = None
    """What in the file has another form."""
    cut: bool = False
    """Whether the last value is cut off: it has the first records of an envelope, and no more."""
    is_json: bool = True
    """Whether all of it is JSON, though it may hold no records."""


def _brokenness(found: Sequence[_Found]) -> tuple[int, int]:
    """Count the files that have another form, and those that are not even JSON in this one."""
    return sum(each.why_not is not None for each in found), sum(not each.is_json for each in found)


def _strange(files: Sequence[Beginning], found: Sequence[_Found]) -> tuple[str, ...]:
    pairs = zip(files, found, strict=True)
    return tuple(f"{file.file}: {each.why_not}" for file, each in pairs if each.why_not)


def _text(file: Beginning) -> str:
    # The last character may be cut in two.
    errors = "strict" if file.whole else "ignore"
    return file.data.removeprefix(BYTE_ORDER_MARK).decode(errors=errors)


def _lines(file: Beginning) -> _Found:
    """Take each line as a record; the last one may be cut off."""
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
            why_not = why_not or f"line {number} is not JSON ({_told(wrong)})"
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
        return _Found((), "no line ends within what was read of it; --sample reads more")
    return _Found(tuple(found))


def _documents(file: Beginning) -> _Found:
    """Take document after document, however they are printed; the last one may be cut off."""
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
        return _Found((), f"line {line} is not JSON ({_told(wrong)})", is_json=False)
    good = tuple(value for value in values if isinstance(value, dict))
    if len(good) < len(values):
        other = next(value for value in values if not isinstance(value, dict))
        return _Found(good, f"one of its records is {_kind(other)}, not an object")
    if good or file.whole:
        return _Found(good, None if good else "there is no record in it", cut=cut)
    return _Found((), "no record ends within what was read of it; --sample reads more")


def _not_utf8(wrong: UnicodeDecodeError) -> str:
    return f"byte {wrong.start + 1} is not UTF-8"


def _told(wrong: ValueError | RecursionError) -> str:
    """Return what a parser says of a text, without the text."""
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
    """Return what is whole in a document that is cut off: some records, or an envelope with some.

    Of a record that is cut off nothing is taken: what it lacks would pass for missing.
    """
    closed = _closed(text)
    if closed is None:
        return []
    value = parse(closed)
    is_record = isinstance(value, dict) and envelope_of([[value]], all_whole=False) is None
    return [] if is_record else value


def _closed(text: str) -> str | None:
    """Close a document that is cut off behind its last whole value; None where it has none.

    A value of an object that is inside of an array is not one of these: that may be a record.
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
    """Yield the records at a path; without one, an envelope that is cut off is none."""
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
    """Return the actions of bulk requests; none where the first record is not one."""
    if not records or not _is_action(records[0]):
        return ()
    return tuple(dict.fromkeys(name for each in records if _is_action(each) for name in each))
