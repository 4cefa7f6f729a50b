"""Whatever documents are printed like and cut into, their records come out, or it is told why not.

The judge is Python's own parser of JSON.
"""

import json
from itertools import accumulate
from typing import Any, NoReturn

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blizzard.worker.ndjson.forms.framer import Framer
from blizzard.worker.ndjson.lines import BadLine

PATH = ("result", "items")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.sampled_from(['"', "\\", '{"a": [', "]}", "\n", "\x1e", "a, b"]),
)
keys = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), st.just("result"))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(keys, values, max_size=3)


@st.composite
def printed(draw: st.DrawFn, value: Any) -> str:
    """Print a value in one of many ways."""
    text = json.dumps(
        value,
        indent=draw(st.sampled_from([None, 0, 1, 4, "\t"])),
        separators=draw(st.sampled_from([None, (",", ":"), (" , ", " :\t")])),
        ensure_ascii=draw(st.booleans()),
    )
    # No string holds a raw line end, so all of these are between tokens.
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"])))


@st.composite
def chunked(draw: st.DrawFn, text: str) -> list[bytes]:
    """Cut a text into chunks anywhere, also in the middle of a character."""
    mark = b"\xef\xbb\xbf" if draw(st.booleans()) else b""
    data = mark + text.encode()
    ends = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    if draw(st.booleans()):
        ends = list(range(len(data)))
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


def framed(chunks: list[bytes], path: tuple[str, ...] = ()) -> list[Any]:
    lines = b"".join(Framer(path).lines(chunks)).split(b"\n")
    assert lines.pop() == b""
    return [parsed(line) for line in lines]


def parsed(line: bytes) -> Any:
    return json.loads(line, parse_constant=refuse)


def refuse(name: str) -> NoReturn:
    raise ValueError(name)


@given(st.data(), st.lists(values, max_size=4))
def test_an_array_printed_in_any_way_gives_its_elements(data, found):
    text = data.draw(printed(found))
    assert framed(data.draw(chunked(text))) == found


@given(st.data(), st.lists(st.one_of(objects, st.lists(objects, max_size=3)), max_size=4))
def test_documents_one_after_the_other_give_their_records(data, documents):
    between = st.sampled_from(["", " ", "\n", "\r\n\t", "\x1e", "\n\x1e", " \x1e\x1e "])
    text = data.draw(between)
    for document in documents:
        text += data.draw(printed(document)) + data.draw(between)
    flat = [each for one in documents for each in (one if isinstance(one, list) else [one])]
    assert framed(data.draw(chunked(text))) == flat


small = st.one_of(
    scalars, st.lists(scalars, max_size=2), st.dictionaries(keys, scalars, max_size=2)
)
around = st.dictionaries(st.sampled_from(["", "a", "é", "resul", "Items"]), small, max_size=2)
at_path = st.one_of(
    st.lists(small, max_size=3), st.dictionaries(st.sampled_from(["a", "items"]), small, max_size=2)
)


@st.composite
def envelopes(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    """Draw a document with records at the path, and something around them."""
    records = draw(at_path)
    inner = [*draw(around).items(), (PATH[1], records), *draw(around).items()]
    outer = [*draw(around).items(), (PATH[0], dict(inner)), *draw(around).items()]
    return dict(outer), records if isinstance(records, list) else [records]


@given(st.data(), st.lists(envelopes(), max_size=2), st.booleans())
def test_records_are_taken_out_of_whatever_is_around_them(data, found, in_array):
    documents = [document for document, _records in found]
    texts = [documents] if in_array else documents
    text = "\n".join(data.draw(printed(each)) for each in texts)
    records = [record for _document, records in found for record in records]
    assert framed(data.draw(chunked(text)), PATH) == records


@given(st.data(), st.lists(objects, max_size=5))
def test_the_place_of_a_record_is_where_it_begins(data, found):
    text = data.draw(printed(found))
    framer = Framer()
    b"".join(framer.lines([text.encode()[at : at + 7] for at in range(0, len(text.encode()), 7)]))
    for number, record in enumerate(found, 1):
        place = framer.place_of(number)
        assert place is not None
        before = text.encode()[: place.offset].decode()
        value, _end = json.JSONDecoder().raw_decode(text, len(before))
        assert value == record
        assert place.line == before.count("\n") + 1
    assert framer.place_of(len(found) + 1) is None


# --------------------------------------------------------------------- documents that are broken


def judged(text: str, path: tuple[str, ...]) -> list[Any] | None:
    """Return the records of a text, all of them objects, as Python reads it; None if it does not.

    Of a key that comes twice the first would be lost in a dictionary, so objects are pairs.
    """
    parser = json.JSONDecoder(parse_constant=refuse, object_pairs_hook=lambda pairs: (pairs,))
    at, records = 0, []
    try:
        while (at := skipped(text, at)) < len(text):
            document, at = parser.raw_decode(text, at)
            for one in document if isinstance(document, list) else [document]:
                records += taken(one, path)
    except (ValueError, LookupError):
        return None
    return records if all(isinstance(each, tuple) for each in records) else None


def skipped(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n\x1e":
        at += 1
    return at


def taken(document: Any, path: tuple[str, ...]) -> list[Any]:
    if not path:
        return [document]
    for number, key in enumerate(path, 1):
        if not isinstance(document, tuple):
            raise LookupError  # noqa: TRY004 - as where the key is missing
        (document,) = [value for name, value in document[0] if name == key]
        if isinstance(document, list) and number < len(path):
            raise LookupError
    return document if isinstance(document, list) else [document]


def ours(text: str, path: tuple[str, ...], size: int) -> list[Any] | None:
    """Return what the lines of a text say, all of them objects; None where something is broken."""
    data = text.encode()
    try:
        lines = b"".join(
            Framer(path).lines([data[at : at + size] for at in range(0, len(data), size)])
        ).split(b"\n")
        assert lines.pop() == b""
        records = [
            json.loads(line, parse_constant=refuse, object_pairs_hook=lambda pairs: (pairs,))
            for line in lines
        ]
    except (BadLine, ValueError):
        return None
    return records if all(isinstance(each, tuple) for each in records) else None


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """Change a text in a few places: leave something out, put something in, or cut it off."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        removed = draw(st.integers(0, 3))
        added = draw(
            st.sampled_from(
                ["", "", *'{}[]",:\\ \n\x1e0-1.eEtn/u', "null", '"a":', "},{", '"items":[', "\\u00"]
            )
        )
        text = text[:at] + added + text[at + removed :]
    return text


@settings(max_examples=400)
@given(st.data(), st.lists(objects, max_size=3), st.integers(1, 40))
def test_what_is_broken_is_never_read_as_something_else(data, found, size):
    text = data.draw(damaged(json.dumps(found, indent=data.draw(st.sampled_from([None, 1])))))
    assert ours(text, (), size) == judged(text, ())


@given(st.data(), st.lists(envelopes(), min_size=1, max_size=2), st.integers(1, 40))
def test_nor_is_what_is_broken_around_the_records(data, found, size):
    texts = [json.dumps(document, indent=1) for document, _records in found]
    text = data.draw(damaged("\n".join(texts)))
    assert ours(text, PATH, size) == judged(text, PATH)


@given(st.text('{}[]",:\\ \nab\x1e0-1.eEtrufalsn', max_size=30), st.integers(1, 5))
@example('{"result":{"items":[{}]},"x":tru}', 3)
@example('{"result":{"items":[{}]},"x":0e}', 3)
@example('{"result":{"items":[{}]},"x":-}', 3)
@example('{"result":{"it\\u0065ms":[{}],"items":[]}}', 3)
@example("[1.5,{}]", 1)
def test_nor_is_any_text(text, size):
    for path in ((), PATH):
        assert ours(text, path, size) == judged(text, path)


@pytest.mark.parametrize("size", [1, 2, 3, 31, 32, 33, 1000])
def test_a_long_text_is_the_same_however_it_is_cut(size):
    """Strings that are longer than a step, with quotes and brackets at every place in it."""
    found = [
        {"k" * length: "x" * length + '"\\{[]}é' * (length % 5), "n": [length] * (length % 7)}
        for length in range(70)
    ]
    data = json.dumps(found, ensure_ascii=False, indent=2).encode()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert framed(chunks) == found
    assert list(accumulate(map(len, chunks)))[-1] == len(data)
