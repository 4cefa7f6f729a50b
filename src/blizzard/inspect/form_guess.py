"""What a look at the beginnings of files tells of their form: lines, documents, envelopes. Pure.

The keys of `source` that say the same are `format`, `records` and `skip_records`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blizzard.model.source.form import Form
from blizzard.worker.ndjson.lines import BYTE_ORDER_MARK
from blizzard.worker.ndjson.look.values import parse, parse_next

ACTIONS = ("index", "create", "update", "delete")
"""What a line of an Elasticsearch bulk request does that has no document in it."""
OF_ACTIONS = re.compile(r"_\w+|routing|version|version_type|pipeline|retry_on_conflict|require_\w+")
"""The members of such an action; `if_seq_no` and others are rare."""
ENVELOPES = frozenset(
    [
        "records",
        "features",
        "items",
        "results",
        "data",
        "value",
        "values",
        "events",
        "logevents",
        "entries",
        "hits",
        "rows",
    ]
)
"""What the arrays of envelopes are called, in lower case."""
OF_A_RECORD = frozenset(("messages", "conversations", "choices", "tags"))
"""What arrays of objects are called that belong to one record."""
IDENTIFIES = re.compile(r"_?u?u?id|key|.*_id|.*[a-z]Id|timestamp|time|ts")
"""A document with a member of such a name is a record, not an envelope."""
FEWEST_RECORDS = 2
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
    """The files with something in them that is no JSON object."""


def records_of(files: Sequence[Beginning]) -> Records:
    """Return the form that fits the beginnings of files best, and their records in that form."""
    found = [_lines(file) for file in files]
    form = GuessedForm()
    if any(each.broken for each in found):
        documents = [_documents(file) for file in files]
        if sum(each.broken for each in documents) < sum(each.broken for each in found):
            found, form = documents, GuessedForm(documents=True)
    strange = tuple(file.file for file, each in zip(files, found, strict=True) if each.broken)
    fewest = FEWEST_RECORDS if all(file.whole for file in files) else 1
    if envelope := _envelope([each.values for each in found if each.values], fewest):
        form = envelope
    rows = tuple(record for each in found for record in _inside(each.values, form.records))
    if not form.documents and (actions := _actions(rows)):
        form = GuessedForm(actions=actions)
        rows = tuple(each for each in rows if not _is_action(each))
    return Records(form=form, records=rows, strange=strange)


def records_in(files: Sequence[Beginning], form: Form) -> Records:
    """Return the records at the beginnings of files whose form is known."""
    found = [_documents(file) if form.is_documents else _lines(file) for file in files]
    rows = (record for each in found for record in _inside(each.values, form.records))
    return Records(
        form=GuessedForm(documents=form.is_documents, records=form.records),
        records=tuple(
            record
            for record in rows
            if form.skip is None or not form.skip.holds(json.dumps(record).encode())
        ),
        strange=tuple(file.file for file, each in zip(files, found, strict=True) if each.broken),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    values: tuple[Any, ...]
    broken: bool = False


def _text(file: Beginning) -> str:
    # The last character may be cut in two.
    errors = "strict" if file.whole else "ignore"
    return file.data.removeprefix(BYTE_ORDER_MARK).decode(errors=errors)


def _lines(file: Beginning) -> _Found:
    """Take each line as a record; the last one may be cut off."""
    try:
        lines = _text(file).split("\n")
    except UnicodeDecodeError:
        return _Found((), broken=True)
    if not file.whole:
        lines.pop()
    found: list[Record] = []
    for line in lines:
        written = line.lstrip(_SEPARATOR).strip()
        if not written:
            continue
        try:
            value = parse(written)
        except (ValueError, RecursionError):
            return _Found(tuple(found), broken=True)
        if not isinstance(value, dict):
            return _Found(tuple(found), broken=True)
        found.append(value)
    # A line longer than what was read of its file may be a document, too.
    return _Found(tuple(found), broken=not found and not file.whole)


def _documents(file: Beginning) -> _Found:
    """Take document after document, however they are printed; the last one may be cut off."""
    values: list[Any] = []
    try:
        text = _text(file)
        at = _past_space(text, 0)
        while at < len(text):
            try:
                value, at = parse_next(text, at)
            except ValueError:
                if file.whole:
                    raise
                value, at = parse(_closed(text[at:])), len(text)
            values += value if isinstance(value, list) else [value]
            at = _past_space(text, at)
    except (ValueError, RecursionError):
        return _Found((), broken=True)
    good = tuple(value for value in values if isinstance(value, dict))
    return _Found(good, broken=len(good) < len(values) or not good)


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _closed(text: str) -> str:
    """Close a document that is cut off behind its last whole value; a ValueError if it has none."""
    open_ones: list[str] = []
    end: tuple[int, str] | None = None
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                open_ones.append(_CLOSING[token[0]])
            case "]" | "}":
                open_ones.pop()
            case ",":
                end = token.start(), "".join(reversed(open_ones))
    if end is None:
        raise ValueError("no value is whole")
    return text[: end[0]] + end[1]


def _envelope(files: Sequence[Sequence[Record]], fewest: int) -> GuessedForm | None:
    """Return where the records are, if every document is an envelope around an array of them."""
    documents = [value for values in files for value in values]
    if not documents or (path := _array(documents[0])) is None:
        return None
    found = [_at(document, path) for document in documents]
    if not all(map(_is_records, found)) or max(map(len, found)) < fewest:
        return None
    beside = tuple(
        dict.fromkeys(name for document in documents for name in document if name != path[0])
    )
    named = path[-1].lower() in ENVELOPES
    if beside or not named:
        # A file of one line may just as well be a record that has an array in it.
        alone = all(len(values) == 1 for values in files)
        is_record = path[-1].lower() in OF_A_RECORD or any(map(IDENTIFIES.fullmatch, beside))
        if not alone or is_record or (beside and not named):
            return None
    return GuessedForm(documents=True, records=path, beside=beside)


def _array(document: Record) -> tuple[str, ...] | None:
    """Return where the one array of objects is, at the top of a document or right below it."""
    outer = [(name,) for name, value in document.items() if _is_records(value) and value]
    inner = [
        (name, below)
        for name, value in document.items()
        if isinstance(value, dict)
        for below, array in value.items()
        if _is_records(array) and array
    ]
    found = outer or inner
    if len(found) != 1 or any("." in key or not key for key in found[0]):
        return None
    return found[0]


def _at(document: Record, path: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _is_records(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _inside(values: Sequence[Record], path: Sequence[str]) -> Iterator[Record]:
    for value in values:
        inside = _at(value, path)
        if isinstance(inside, dict):
            yield inside
        elif _is_records(inside):
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
