"""What stands in a line never leaves it by way of a message, unless somebody asks for that."""

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.lines import BadLine
from blizzard.worker.record import failure_of
from lakebed.columns.schema import Field, Schema
from lakebed.documents.records import FailureStage
from lakebed.types import FieldType
from tests.support.builders import Bench, gz, pipeline_settings, put
from tests.support.runner import FaultyRunner

TEXT = "hunter2-Zq7"
DIGITS = "4242871199887766"
SECRETS = (TEXT, DIGITS)
SCHEMA = Schema(tuple(Field(name=kind, type=kind) for kind in FieldType if kind.delta))
REQUIRED = Schema((*SCHEMA.fields, Field(name="must", type=FieldType.STRING, nullable=False)))
carriers = st.sampled_from(
    [
        f'"{TEXT}"',
        f'"{TEXT} and more of it, far beyond what is ever shown of a value that is wrong"',
        f'"2024-01-01T{TEXT}"',
        f'"\\ud800{TEXT}"',
        f'"{base64.b64encode(TEXT.encode()).decode()}{TEXT}="',
        DIGITS,
        f"-{DIGITS}",
        f"{DIGITS}.5",
        f"0.{DIGITS}e400",
        f'["{TEXT}"]',
        f'{{"password":"{TEXT}"}}',
        f'{{"password":"{TEXT}"',
        f'"{TEXT}',
        f'"{TEXT}\\x"',
        f'"{TEXT}\t"',
        TEXT,
        f"NaN{TEXT}",
        f'[NaN,"{TEXT}"]',
    ]
)
lines = st.one_of(
    carriers,
    carriers.map(lambda value: f'{{"string":"fine","int64":1}} {value}'),
    carriers.map(lambda value: f'{{"string" {value}}}'),
    carriers.map(lambda value: f"{{{value}:1}}"),
    carriers.map(lambda value: f'{{"id":1,"x":{value},"id":2}}'),
    st.tuples(st.sampled_from([field.name for field in SCHEMA.fields]), carriers).map(
        lambda some: f'{{"{some[0]}":{some[1]}}}'
    ),
    st.tuples(st.sampled_from([field.name for field in SCHEMA.fields]), carriers).map(
        lambda some: f'{{"other":{some[1]},"{some[0]}":{some[1]}}}'
    ),
).map(str.encode)
broken = st.one_of(
    lines,
    lines.map(lambda line: line[:-1] + b"\xff" + line[-1:]),
    lines.map(lambda line: line + b"\x80"),
)


def refusal(data: bytes, schema: Schema) -> BadLine | None:
    try:
        list(Decoder(schema).decode([data]))
    except BadLine as bad:
        return bad
    return None


@given(line=broken, schema=st.sampled_from([SCHEMA, REQUIRED]))
def test_a_message_tells_where_and_of_which_kind_and_never_what(line: bytes, schema: Schema):
    """HOLES W28: the path and the types are enough; a value may be a session token."""
    bad = refusal(line + b"\n", schema)
    if bad is None:
        return
    told = failure_of(bad).message
    for secret in SECRETS:
        assert secret not in told
        assert secret not in str(bad)
        assert secret not in repr(bad)
        assert secret[:8] not in told


@given(line=broken)
def test_asked_for_the_beginning_of_what_was_found_is_shown_too(line: bytes):
    bad = refusal(line + b"\n", SCHEMA)
    if bad is None or bad.value is None:
        return
    shown = failure_of(bad, show_values=True).message
    assert shown == f"{failure_of(bad).message}; it reads {bad.value}"


ODD_SPACE = "found white space that JSON does not allow"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"int64":"x"}', "found a string, expected an integer (int64)"),
        ('{"int64":""}', "found an empty string, expected an integer (int64)"),
        ('{"int64":1.5}', "found a number that is not an integer, expected an integer (int64)"),
        ('{"int64":true}', "found a boolean, expected an integer (int64)"),
        ('{"string":{}}', "found an object, expected a string"),
        ('{"string":[1]}', "found an array, expected a string"),
        ("[]", "found an array, expected an object"),
        ("null", "found null, expected an object"),
        ('{"a" 1}', "found other text at column 6, expected a colon"),
        ('{"a":1', "found the end of the line at column 7, expected a comma or a closing brace"),
        ('{"a":1}\f', f"{ODD_SPACE} (U+000C) at column 8, expected the end of the line"),
        ('{"a":\u00a01}', f"{ODD_SPACE} (U+00A0) at column 6, expected a JSON value"),
        ('{"a":"x', "found a string without an end at column 6, expected a closing quote"),
        (
            '{"a":"x\ty"}',
            r"found a control character in a string at column 8, expected an escape such as \t",
        ),
        (
            r'{"a":"\q"}',
            (
                "found an unknown escape in a string at column 7, "
                r"expected a JSON escape, such as \n or \""
            ),
        ),
        (
            r'{"a":"\u12"}',
            (
                r"found an incomplete \u escape in a string at column 8, "
                r"expected four hexadecimal digits after \u"
            ),
        ),
        (
            '{"a":[1 2]}',
            "found other text at column 9, expected a comma or the end of the array or object",
        ),
        ('{"a":{"b" 1}}', "found other text at column 11, expected a colon"),
        ('{"a":{b:1}}', "found other text at column 7, expected a field name in quotes"),
        ('{"a":[', "found the end of the line at column 7, expected a JSON value"),
        ('{"a":[NaN]}', "found a value with NaN in it at column 6, expected JSON numbers"),
        (
            '{"float64":1e999}',
            (
                "found a number beyond the range of float64, "
                "expected a number from -1.8e308 to 1.8e308"
            ),
        ),
        (
            '{"float32":1e39}',
            "found a number beyond the range of float32, expected a number from -3.4e38 to 3.4e38",
        ),
        ('{"binary":"aGl="}', "found a string, expected a string in canonical base64 with padding"),
        ('{"binary":"aGk"}', "found a string, expected a string in canonical base64 with padding"),
    ],
)
def test_the_kind_of_what_was_found_is_told(line: str, message: str):
    """HOLES W28: a message without the value still says what to mend, in our own words."""
    bad = refusal(line.encode() + b"\n", SCHEMA)
    assert bad is not None
    assert bad.message == message


@pytest.mark.parametrize(
    ("line", "hint"),
    [('{"ID":1}', " but ID (names are case-sensitive)"), ('{"di":1}', ""), ("{}", "")],
)
def test_a_required_field_that_is_spelled_in_another_case_is_named(line: str, hint: str):
    """HOLES W44: the field is there, for all that a person sees."""
    bad = refusal(
        line.encode() + b"\n", Schema((Field(name="id", type=FieldType.INT64, nullable=False),))
    )
    assert bad is not None
    expected = f"found no such field{hint}, expected a value: the field is required"
    assert bad.message == expected


# ------------------------------------------------------------------------------- from end to end


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    source, table = tmp_path / "in", tmp_path / "table"
    bad = [
        f'{{"id":"{TEXT}"}}',
        f'{{"id":{DIGITS}00000000}}',
        f'{{"id":1,"name":{{"token":"{TEXT}"}}}}',
        f'{{"id":1,"name":"{TEXT}"',
        f'"{TEXT}"',
        f'{{"name":"{TEXT}"}}',
        f'{{"id":1,"id":2,"token":"{TEXT}"}}',
    ]
    for number, line in enumerate(bad):
        put(source, f"{number}.ndjson", f"{line}\n".encode())
        put(source, f"{number}.ndjson.gz", gz(f"{line}\n".encode()))
    put(source, "bytes.ndjson", f'{{"id":1,"name":"{TEXT}'.encode() + b'\xff"}\n')
    put(source, "corrupt.ndjson.gz", gz(f'{{"id":1,"name":"{TEXT}"}}\n'.encode())[:-4])
    put(source, "deep.ndjson", f'{{"id":1,"a":{"[" * 600}"{TEXT}"'.encode())
    return Bench(pipeline_settings(source, table))


def everything_told(bench: Bench) -> Iterator[str]:
    """Return all that a batch leaves in the log, in the table directory and on a terminal."""
    for event in bench.events:
        yield event.sentence()
        yield json.dumps(event.facts(), default=str)
    for path in (bench.table / "_blizzard").rglob("*.*json"):
        yield path.read_text()
    config = bench.table.parent / "pipeline.yaml"
    (source,) = bench.settings.sources
    config.write_text(
        f"source: {{path: {source.uri}}}\nsink: {{path: {bench.table}}}\n"
        "schema: {fields: [{name: id, type: int64, nullable: false}, {name: name, type: string}]}\n"
    )
    for command in (["status"], ["journal", "1"], ["dlq", "list"], ["--dry-run"]):
        for output in ("text", "json"):
            given = [*command, "-c", str(config), "--output", output]
            result = CliRunner().invoke(app, given)
            assert result.exit_code == 0, result.output
            yield result.output


def test_no_log_line_no_dead_letter_and_no_journal_entry_holds_a_value(bench: Bench):
    """HOLES W28: whatever is wrong with a file, and whichever stage finds it."""
    bench.pipeline().step()
    failed = [record.failure for record in bench.entries()[1].sources]
    assert len(failed) == 17
    assert all(failure is not None for failure in failed)
    for told in everything_told(bench):
        for secret in SECRETS:
            assert secret not in told


def test_a_pipeline_that_is_told_to_shows_values(bench: Bench):
    """HOLES W28: `error_handling.show_values` is for those whose data may be seen."""
    asked = replace(bench, settings=replace(bench.settings, show_values=True))
    asked.pipeline().step()
    messages = {
        record.path: record.failure.message
        for record in asked.entries()[1].sources
        if record.failure is not None
    }
    told = f"found a string, expected an integer (int64); it reads '\"{TEXT}\"'"
    assert messages["0.ndjson"] == told


def test_an_error_that_nobody_foresaw_tells_its_place_and_not_its_words(bench: Bench):
    """HOLES W28: a library's own words quote the value that it stumbled over."""
    put(Path(bench.settings.sources[0].uri), "good.ndjson", b'{"id":1}\n')
    runner = FaultyRunner(fault=TypeError(f"cannot convert {TEXT!r}"))
    replace(bench, runner=runner).pipeline().step()
    messages = [record.failure.message for record in bench.entries()[1].sources if record.failure]
    assert any(told.startswith("TypeError at runner.py, line ") for told in messages)
    for told in everything_told(bench):
        assert TEXT not in told


def test_its_words_are_shown_where_values_may_be_seen():
    error = KeyError(TEXT)
    assert failure_of(error, FailureStage.UPLOAD, show_values=True).message.endswith(
        f"it reads {TEXT!r}"
    )
    assert TEXT not in failure_of(error, FailureStage.UPLOAD).message
