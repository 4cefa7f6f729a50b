"""Documents that are envelopes around an array of records: `{"Records": […]}`. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
