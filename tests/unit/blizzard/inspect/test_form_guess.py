"""What a look at files and their names tells of their form."""

import json

import pytest

from blizzard.inspect.guess.forms import FileHead, records_of
from blizzard.inspect.sample import pattern_for, taken
from blizzard.model.source.form import Form, SkipRule
from lakebed.types import SourceFormat

JSON = Form(format=SourceFormat.JSON)


def begin(*texts: str, whole: bool = True) -> list[FileHead]:
    return [FileHead(file=f"f{n}", data=text.encode(), whole=whole) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("text", "form", "count"),
    [
        ('{"a": 1}\n{"a": 2}\n', Form(), 2),
        ('{"a": 1}\r\n\r\n{"a": 2}', Form(), 2),
        ('\ufeff\x1e{"a": 1}\n\x1e{"a": 2}\n', Form(), 2),
        ('[{"a": 1}, {"a": 2}]', JSON, 2),
        ('{\n  "a": 1\n}\n{\n  "a": 2\n}\n', JSON, 2),
        ('{"a": 1}{"a": 2}', JSON, 2),
        (
            '{"Records": [{"a": 1}, {"a": 2}]}',
            Form(format=SourceFormat.JSON, records=("Records",)),
            2,
        ),
        (
            '{"Records": [{"a": 1}]}\n{"Records": [{"a": 2}, {"a": 3}]}\n',
            Form(format=SourceFormat.JSON, records=("Records",)),
            3,
        ),
        (
            '{"type": "FeatureCollection", "features": [{"a": 1}, {"a": 2}]}',
            Form(format=SourceFormat.JSON, records=("features",)),
            2,
        ),
        (
            '{"result": {"items": [{"a": 1}, {"a": 2}], "next": "x"}, "took": 3}',
            Form(format=SourceFormat.JSON, records=("result", "items")),
            2,
        ),
        ('{"id": 7, "items": [{"a": 1}, {"a": 2}]}', Form(), 1),
        ('{"messages": [{"role": "u"}, {"role": "a"}]}\n', Form(), 1),
        ('{"total": 7, "lines": [{"a": 1}, {"a": 2}]}\n', Form(), 1),
        (
            '{"index": {"_id": "1"}}\n{"a": 1}\n{"delete": {}}\n{"create": {}}\n{"a": 2}\n',
            Form(skip=SkipRule(only_key=("index", "delete", "create"))),
            2,
        ),
        ('{"a": 1}\n{"index": {"_id": "1"}}\n', Form(), 2),
        ('{"index": {"price": 1}}\n{"index": {"price": 2}}\n', Form(), 2),
    ],
)
def test_the_form_of_a_file_is_recognised(text: str, form: Form, count: int) -> None:
    found = records_of(begin(text))
    assert found.form == form
    assert len(found.records) == count
    assert not found.strange


@pytest.mark.parametrize("lines", [True, False])
def test_a_file_that_is_read_in_part_has_the_same_form(lines: bool) -> None:
    records = [{"text": 'a, "b" [', "n": n, "deep": {"x": [n, {"y": "]"}]}} for n in range(20)]
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps({"Records": records})
    form = Form() if lines else Form(format=SourceFormat.JSON, records=("Records",))
    seen = set()
    for end in range(200, len(text)):
        found = records_of(begin(text[:end], whole=False))
        assert found.form == form, text[:end]
        assert not found.strange
        seen.add(len(found.records))
    assert max(seen) >= 19


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x", "b": "y"}{"a": 2, "b"',
        '[\n{"a": "x", "b": "y"},\n{"a": 2, "b',
        '{"Records": [{"a": "x", "b": "y"}, {"a": 2, "c": 3, "b',
        '{"a": "x", "b": "y"}\n{"a": 2, "Records": [{"a": 3}, {"a": 4}, ',
    ],
)
def test_the_records_before_one_that_is_cut_off_are_taken(text: str) -> None:
    assert records_of(begin(text, whole=False)).records == ({"a": "x", "b": "y"},)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a": 1}\nhello\n', "line 2 is not JSON (expecting value at column 1)"),
        (b'\n{"a": NaN}\n', "line 2 is not JSON (NaN)"),
        (b'{"a": 1}\n\n7\n', "line 3 is not an object"),
        (b'{"a": 1}\n"x"\n', "line 2 is not an object"),
        (b'{"a": 1}\n[1]\n', "line 2 is not an object"),
        (b'{"a": "\xff"}', "byte 8 is not UTF-8"),
        (b"[" * 100_000, "line 1 is not JSON (nested too deeply)"),
    ],
)
def test_the_reason_is_told_for_each_file(data: bytes, why: str) -> None:
    good = FileHead(file="good", data=b'{"a": 1}\n')
    assert records_of([good, FileHead(file="x", data=data), good]).strange == (f"x: {why}",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[\n{"a": 1},\n{"a"}]', "line 3 is not JSON (expecting ':' delimiter at column 5)"),
        ('[\n{"a": 1},\n7]', "one of its records is not an object"),
        ("[\n]", "there is no record in it"),
    ],
)
def test_the_reason_is_told_for_each_file_of_documents(text: str, why: str) -> None:
    printed = '[\n{"a": 1},\n{"a": 2}\n]'
    found = records_of(begin(printed, text, printed))
    assert found.form == JSON
    assert found.strange == (f"f1: {why}",)


RECORDS = Form(format=SourceFormat.JSON, records=("Records",))
ENVELOPE = '{"Records": [{"a": 1}, {"a": 2}]}'


def test_an_envelope_is_recognised_if_the_first_one_is_empty() -> None:
    found = records_of(begin('{"Records": []}', ENVELOPE))
    assert (found.form, len(found.records), found.strange) == (RECORDS, 2, ())


def test_an_envelope_among_lines_is_a_record() -> None:
    lines = '{"a": 1}\n{"a": 2}\n'
    found = records_of(begin(lines, ENVELOPE, lines))
    assert (found.form, found.strange) == (Form(), ())


def test_the_other_members_of_an_envelope_and_the_files_without_it_are_named() -> None:
    envelope = '{"took": 3, "Records": [{"a": 1}, {"a": 2}]}'
    found = records_of(begin(envelope, '{"digest": "x"}', envelope))
    assert (found.form, len(found.records)) == (RECORDS, 4)
    assert found.beside == ("took",)
    (strange,) = found.strange
    assert strange.startswith("f1: it has no array Records, so it would fail")


def test_an_array_in_some_records_is_no_envelope() -> None:
    record = '{"messages": [{"role": "u"}, {"role": "a"}]}'
    found = records_of(begin(record, '{"total": 7}', record))
    assert (found.form, found.strange) == (Form(), ())


def test_one_broken_line_does_not_make_lines_of_all_files_documents() -> None:
    files = ['{"a": 1}\n{"a": 2}\n'] * 3
    assert records_of(begin(*files, '{"a": 1}\nx\n')).form == Form()


@pytest.mark.parametrize("text", ['{"a": tru]]]}, "b": 1, ', '{"a": [1]]}}, '])
def test_brackets_that_close_nothing_are_no_reason_to_crash(text: str) -> None:
    assert records_of(begin(text, whole=False)).records == ()


@pytest.mark.parametrize("text", ['["a", "b"]', '[\n  "a",\n  "b"\n]\n'])
def test_an_array_of_texts_is_json_without_records(text: str) -> None:
    (why,) = records_of(begin(text)).strange
    assert "is not JSON" not in why
    assert why.endswith("is not an object")


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["a.ndjson", "b.json.gz"], None),
        (["a.json", "b.log", "c.log"], None),
        (["a.log", "b/c.log"], "**.log"),
        (["a.log.gz", "b.log.gz", "c.md"], "**.log.gz"),
        (["a.log", "b.log.gz"], "**.log*"),
        (["access.log", "access.log.1", "access.log.2.gz"], "**.log*"),
        (["access.json.log", "access.json.log-20240511.gz"], "**.log*"),
        (["app.log.2024-05-10", "app.log.2024-05-11"], "**.log*"),
        (["app.2024-05-10.log", "app.2024-05-11.log"], "**.log"),
        (["x.json", "x.json.1.gz"], "**.json*"),
        (["x.json.1.gz"], "**.json*"),
        (["a.jsonl", "a.jsonl-20240511.zst", "b.jsonl.gz"], "**.jsonl*"),
        (["a.json", "a.json.tmp", "_a.json.1"], None),
        (["a.ndjson", "x.json.1"], None),
        (["access_log", "access_log-20240511", "error.md"], None),
        (["a.txt", "b.txt", "c.log", "d.csv", "e.csv", "f.csv"], "**.txt"),
        (["a.parquet", "b.parquet.1", "README"], None),
        ([], None),
    ],
)
def test_most_files_are_taken_by_the_narrowest_pattern(names: list[str], pattern: str | None):
    found = pattern_for(names)
    assert (found.text if found else None) == pattern
    assert not found or taken(names, found)
    assert set(taken(names, None)) <= set(taken(names, found))
