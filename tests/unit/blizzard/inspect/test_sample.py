"""A configuration without fields: a look at the data says what could be declared."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import penguin.config.load
from blizzard.cli.app import app
from blizzard.config.load import load
from blizzard.inspect import sample, schema_guess
from blizzard.inspect.schema_guess import GuessedField
from blizzard.model.settings import BlizzardSettings
from blizzard.worker.ndjson.decoder import Decoder
from lakebed.errors import ConfigInvalid, StoreUnavailable
from lakebed.storage.store import Reader
from lakebed.types import FieldType
from tests.support.builders import gz, put

SEED = """\
source:
  path: "{source}"
sink:
  path: "{table}"
  file_size_mb: 128
  compression: snappy
"""
"""As the documents of the design write it: there is no schema section in any of them."""


def refusal(file: Path, reader: type[Reader] = Reader) -> str:
    with pytest.raises(ConfigInvalid) as invalid:
        load([file], [], {}, partial(sample.proposal, open_reader=reader))
    return str(invalid.value)


def written(tmp_path: Path, text: str = SEED) -> Path:
    file = tmp_path / "pipeline.yaml"
    file.write_text(text.format(source=tmp_path / "in", table=tmp_path / "table"))
    return file


def pasted(file: Path, message: str) -> BlizzardSettings:
    """Paste what a message offers, and read the configuration again."""
    offered = message[message.index("schema:\n") :]
    file.write_text(f"{file.read_text()}\n{offered}\n")
    return load([file], [], {}, sample.proposal)


def types_of(settings: BlizzardSettings) -> dict[str, str]:
    return {each.name: each.type.value for each in settings.pipelines[0].schema.fields}


RECORD = {
    "id": 7,
    "name": "a",
    "at": "2024-01-31T12:00:00Z",
    "on": "2024-01-31",
    "amount": 1.5,
    "ok": True,
    "tags": ["x"],
    "more": {"a": 1},
    "huge": 2**64,
    "nothing": None,
}
TYPES = {
    "id": "int64",
    "name": "string",
    "at": "timestamp",
    "on": "date",
    "amount": "float64",
    "ok": "boolean",
    "tags": "json",
    "more": "json",
    "huge": "json",
    "nothing": "json",
}
LINE = json.dumps(RECORD).encode() + b"\n"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.ndjson", LINE),
        ("a.ndjson", b"\xef\xbb\xbf" + LINE),
        ("a.ndjson.gz", gz(LINE)),
        ("a.jsonl.zst", zstandard.compress(LINE)),
        ("date=2024-01-01/a.json", b"\n\n" + LINE.rstrip()),
        ("a.ndjson", LINE + b"no JSON\n[1]\n"),
    ],
)
def test_what_the_message_offers_can_be_pasted(tmp_path: Path, name: str, body: bytes):
    """HOLES W34: a configuration as typed from the documents ends in the section to add."""
    put(tmp_path / "in", name, body)
    file = written(tmp_path)
    message = refusal(file)
    assert message.startswith(
        f"schema: is required  ({file})\nThis section fits the first lines of a file of"
    )
    assert types_of(pasted(file, message)) == TYPES


def test_the_command_says_it_and_exits_with_2(tmp_path: Path):
    """HOLES W34: on a terminal, from `run` and from every other command."""
    put(tmp_path / "in", "a.ndjson", LINE)
    file = written(tmp_path)
    for command in ([], ["--dry-run"], ["status"], ["gc"], ["dlq", "list"]):
        answer = CliRunner().invoke(app, [*command, "-c", str(file)])
        assert answer.exit_code == 2
        assert "    - {name: at, type: timestamp}\n" in answer.stderr


def test_a_pipeline_of_several_gets_its_section_at_its_depth(tmp_path: Path):
    """HOLES W34: YAML is about columns."""
    put(tmp_path / "in", "a.ndjson", LINE)
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"pipelines:\n  events:\n    source: {{path: {tmp_path / 'in'}}}\n    sink: {{path: /t}}\n"
    )
    message = refusal(file)
    assert message.startswith(f"pipelines.events.schema: is required  ({file})\n")
    file.write_text(file.read_text() + message[message.index("    schema:\n") :])
    assert types_of(load([file], [], {})) == TYPES


def test_an_empty_section_is_told_the_same(tmp_path: Path):
    put(tmp_path / "in", "a.ndjson", LINE)
    file = written(tmp_path, SEED + "schema:\n  fields: []\n")
    message = refusal(file)
    assert message.startswith(
        f"schema.fields: is required  ({file})\nThis section fits the first lines"
    )


def test_columns_of_the_path_are_not_declared(tmp_path: Path):
    """HOLES W34: the folders give them."""
    put(tmp_path / "in", "on=2024-01-01/a.ndjson", LINE)
    text = SEED + '  partition_by: {{prefix_template: "on=%Y-%m-%d"}}\n'
    file = written(tmp_path, text)
    assert types_of(pasted(file, refusal(file))) == {k: v for k, v in TYPES.items() if k != "on"}


def test_columns_that_rows_give_are_declared(tmp_path: Path):
    put(tmp_path / "in", "a.ndjson", LINE)
    by = '{{prefix_template: "day=%Y-%m-%d", timestamp_field: at}}'
    file = written(tmp_path, f"{SEED}  partition_by: {by}\n")
    # Whether `at` is a declared field can only be said once there are fields.
    assert types_of(pasted(file, refusal(file))) == TYPES


def test_several_sources_are_looked_at(tmp_path: Path):
    put(tmp_path / "a", "1.ndjson", b'{"id": 1}\n')
    put(tmp_path / "b", "1.ndjson", b'{"id": 1.5, "x": true}\n')
    file = tmp_path / "p.yaml"
    sources = {name: {"path": str(tmp_path / name)} for name in ("a", "b")}
    file.write_text(
        yaml.safe_dump({"pipelines": {"p": {"sources": sources, "sink": {"path": "/t"}}}})
    )
    message = refusal(file)
    assert "of 2 files" in message
    assert "{name: id, type: float64}" in message
    assert "{name: x, type: boolean}" in message


def test_the_look_is_short_however_much_there_is(tmp_path: Path):
    """HOLES W34: a few lines of a few files."""
    many = b"".join(b'{"id": %d}\n' % number for number in range(200))
    for number in range(sample.FILES + 3):
        put(tmp_path / "in", f"{number}.ndjson", many + b'{"late": 1}\n')
    put(tmp_path / "in", "0.ndjson", b'{"id": 0, "x": "' + b"x" * (2 << 20))
    read: list[str] = []

    class Noting(Reader):
        def stream(self, path: str, **given: Any) -> Any:
            read.append(path)
            return super().stream(path, **given)

    message = refusal(written(tmp_path), Noting)
    assert len(read) == sample.FILES
    assert "late" not in message
    assert f"of {sample.FILES - 1} files" in message


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "no file with JSON objects was found"),
        ({"a.csv": b"1,2\n"}, "no file with JSON objects was found"),
        ({"a.ndjson": b"[1]\nno\n"}, "no file with JSON objects was found"),
        ({"a.ndjson": b""}, "no file with JSON objects was found"),
        ({"a.ndjson.gz": gz(LINE)[:-6]}, "the gzip stream is truncated"),
        (None, "the folder does not exist"),
    ],
)
def test_where_nothing_can_be_read_an_example_is_shown(
    tmp_path: Path, files: dict[str, bytes] | None, why: str
):
    """HOLES W34: with the reason, and never with a trace."""
    for name, body in (files or {}).items():
        put(tmp_path / "in", name, body)
    if files is not None:
        (tmp_path / "in").mkdir(exist_ok=True)
    file = written(tmp_path)
    message = refusal(file)
    assert why in message
    assert "only an example" in message
    assert list(types_of(pasted(file, message))) == ["id", "name", "at"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"\nno JSON\n" + LINE, "line 2 of {} is not a JSON object and was left out"),
        (LINE + b"{\n[1]\n", "line 2 of {} and 1 other line are not JSON objects"),
        (b"{nope\n", "no file with JSON objects was found; line 1 of {} is not"),
    ],
)
def test_lines_that_are_left_out_of_the_guess_are_named(tmp_path: Path, body: bytes, told: str):
    """HOLES W34: whoever pastes the section must not meet them first as a failed file."""
    put(tmp_path / "in", "a.ndjson", body)
    assert told.format(tmp_path / "in" / "a.ndjson") in refusal(written(tmp_path))


def test_without_a_source_none_is_said_to_have_been_looked_at(tmp_path: Path):
    """HOLES W34: there was nothing to look at."""
    file = written(tmp_path, 'sink: {{path: "{table}"}}\n')
    message = refusal(file)
    assert "from the source" not in message
    assert "as in this example:\nschema:\n" in message


def test_a_store_that_does_not_answer_is_no_more_than_a_reason(tmp_path: Path):
    put(tmp_path / "in", "a.ndjson", LINE)

    class Silent(Reader):
        def in_order(self, *_given: object, **_named: object) -> Any:
            raise StoreUnavailable("no answer")

    assert "(no answer)" in refusal(written(tmp_path), Silent)


def test_other_faults_are_told_beside_it(tmp_path: Path):
    put(tmp_path / "in", "a.ndjson", LINE)
    message = refusal(written(tmp_path, SEED + "  part_size_mb: -1\n"))
    assert "sink.part_size_mb: must be greater than 0" in message
    assert "\nschema: is required" in message


def test_penguin_does_not_ask_for_fields(tmp_path: Path):
    """HOLES W34: it takes the columns of the files as they are."""
    file = written(tmp_path, SEED + 'tables:\n  events: {{table_uri: "{table}"}}\n')
    (table,) = penguin.config.load.load([file], [], {}).tables
    assert table.table_uri == str(tmp_path / "table")


# ------------------------------------------------------------------------------------- the guess

json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
        st.dates().map(str),
        st.datetimes().map(lambda at: at.isoformat()),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(), inner)),
    max_leaves=3,
)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@given(records=st.lists(st.dictionaries(names, json_values, max_size=4), min_size=1, max_size=6))
def test_every_line_that_was_seen_can_be_read_with_what_is_offered(records, tmp_path_factory):
    """HOLES W34: the same rules decide both, and the section says what it says."""
    lines = [json.dumps(record).encode() for record in records]
    found = schema_guess.guess(lines)
    if not found:
        return
    file = tmp_path_factory.mktemp("guess") / "p.yaml"
    file.write_text(f"{SEED.format(source='/in', table='/t')}{schema_guess.section(found)}\n")
    schema = load([file], [], {}).pipelines[0].schema
    assert [(each.name, each.path, each.type) for each in schema.fields] == [
        (each.name, (each.source or each.name,), each.type) for each in found
    ]
    decoded = list(Decoder(schema).decode([b"\n".join(lines)]))
    assert sum(each.batch.num_rows for each in decoded) == len(records)


def test_fields_that_differ_in_case_only_are_told_of():
    (field,) = schema_guess.guess([b'{"ProcessId": 1, "ProcessID": 2}'])
    assert field == GuessedField(
        "ProcessId", FieldType.INT64, "also spelled ProcessID; only one spelling can be kept"
    )


def test_a_field_whose_name_no_column_can_have_is_offered_under_another():
    """HOLES W34: Delta refuses the name, so the section says where the value is."""
    found = schema_guess.guess([b'{"a b": 1, "a_b": 2, "A,B": 3, "_rescued": 4}'])
    assert [(each.name, each.source) for each in found] == [
        ("a_b_", "a b"),
        ("a_b", None),
        ("A_B__", "A,B"),
        ("_rescued_", "_rescued"),
    ]
    assert '    - {name: a_b_, from: ["a b"], type: int64}\n' in schema_guess.section(found)


def test_another_name_is_none_of_the_path():
    (field,) = schema_guess.guess([b'{"a b": 1}'], without=frozenset({"a_b"}))
    assert (field.name, field.source) == ("a_b_", "a b")


def test_very_many_fields_are_cut():
    line = json.dumps({f"f{number}": 1 for number in range(schema_guess.MOST_FIELDS + 5)}).encode()
    text = schema_guess.section(schema_guess.guess([line]))
    assert text.endswith("    # and 5 more")
    assert len(text.splitlines()) == schema_guess.MOST_FIELDS + 3


def test_no_value_stands_in_what_is_offered():
    """HOLES W34, W28: names and types are offered, never a value."""
    text = schema_guess.section(
        schema_guess.guess([b'{"a": "hunter2", "b": {"hunter2": 1}, "c": ["hunter2"]}'])
    )
    assert "hunter2" not in text
