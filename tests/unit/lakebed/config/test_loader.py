"""From files to one document, or to all faults at once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakebed.config.faults import ConfigFault
from lakebed.config.loader import load_document
from lakebed.errors import ConfigInvalid

COMPLETE = """
source: {path: /in}
sink: {path: /table}
schema: {fields: [{name: id, type: string}]}
"""


def load(
    folder: Path, *texts: str, environment: dict[str, str] | None = None, check: Any = lambda _: ()
) -> Any:
    """Load documents as the files a.yaml, b.yaml and so on."""
    files = []
    for name, text in zip("abc", texts, strict=False):
        (folder / f"{name}.yaml").write_text(text)
        files.append((folder / f"{name}.yaml").relative_to(folder))
    return load_document(files, [], environment or {}, check)


def faults(folder: Path, *texts: str, **more: Any) -> list[str]:
    with pytest.raises(ConfigInvalid) as invalid:
        load(folder, *texts, **more)
    return invalid.value.faults


def test_faults_of_all_sections_are_reported_at_once(folder: Path) -> None:
    found = faults(
        folder,
        """
        source: {path: "${NOWHERE}", batch_size: 12x, compresion: gzip}
        sink: {file_size_mb: -1, compression: zip}
        schema: {fields: [{name: id, type: strin}, {name: a, type: date}, {name: A, type: date}]}
        tables: {events: {poll_interval_secs: 0}}
        metrics: [1]
        what: 1
        """,
    )

    assert found == [
        "source.path: the environment variable NOWHERE is not set, and has no default  (a.yaml:2)",
        "source.batch_size: must be a whole number, not '12x'  (a.yaml:2)",
        "source.compresion: unknown key; did you mean compression?  (a.yaml:2)",
        "sink.file_size_mb: must be greater than 0, not -1  (a.yaml:3)",
        "sink.compression: must be snappy, gzip, zstd, lz4 or uncompressed, not 'zip'  (a.yaml:3)",
        "schema.fields[0].type: strin is not a type; did you mean string?  (a.yaml:4)",
        "tables.events.table_uri: is required  (a.yaml:5)",
        "tables.events.poll_interval_secs: must be greater than 0, not 0  (a.yaml:5)",
        "metrics: must be a section with keys of its own, not a list  (a.yaml:6)",
        (
            "what: unknown key; known keys are source, sink, schema, error_handling, pipelines, "
            "tables, storage, global, spark, metrics, telemetry  (a.yaml:7)"
        ),
    ]


def test_faults_between_valid_sections_are_reported_at_once(folder: Path) -> None:
    found = faults(
        folder,
        """
        source: {path: /in}
        sink: {}
        schema: {fields: [{name: a, type: date}, {name: A, type: date}]}
        """,
        check=lambda _: [ConfigFault(("source", "path"), "is empty")],
    )

    assert found == [
        "sink.path: is required  (a.yaml:3)",
        (
            "schema.fields: a and A differ only in case, and Delta column names are "
            "case-insensitive; declare the one to keep (values of the other are left out and "
            "counted), and rename one in the data to keep both  (a.yaml:4)"
        ),
        "source.path: is empty  (a.yaml:2)",
    ]


def test_faults_of_a_list_have_the_indexes_that_are_written(folder: Path) -> None:
    found = faults(
        folder,
        """
        schema:
          fields:
            - {name: s, type: struct}
            - {name: id, type: string}
            - {name: d, type: "decimal(40,2)"}
            - {name: a b, type: string}
            - {name: u, type: struct, fields: [{name: x}, {name: y, type: z}, {name: =, type: int}]}
        storage:
          - {options: {}}
        """,
    )

    assert [(fault.partition(":")[0], fault.rpartition(":")[2]) for fault in found] == [
        ("schema.fields[0]", "4)"),
        ("schema.fields[2].type", "6)"),
        ("schema.fields[4].fields[0].type", "8)"),
        ("schema.fields[4].fields[1].type", "8)"),
        ("storage[0].prefix", "10)"),
    ]


def test_sections_are_compared_only_if_each_is_valid_by_itself(folder: Path) -> None:
    def check(_document: Any) -> Iterator[ConfigFault]:
        raise AssertionError("a faulty document is not compared")

    assert faults(folder, COMPLETE.replace("/in", "ftp://x"), check=check) == [
        (
            "source.path: must be a local path or start with one of file://, s3://, gs://, az://, "
            "abfss://, https://  (a.yaml:2)"
        )
    ]


def test_variables_are_filled_in_values_only(folder: Path) -> None:
    document = load(
        folder,
        """
        tables:
          ${NAME}:
            table_uri: s3://${BUCKET:-none}/t
            table_properties: {"${NAME}": "$${x}", list: "a: b, [c]"}
        """,
        environment={"NAME": "x", "BUCKET": "b: {c: d}"},
    )

    assert document.tables["${NAME}"].table_uri == "s3://b: {c: d}/t"
    assert document.tables["${NAME}"].table_properties == {"${NAME}": "${x}", "list": "a: b, [c]"}


def test_plain_values_stay_what_they_say(folder: Path) -> None:
    document = load(
        folder,
        """
        tables:
          2024-01-01:
            table_uri: /t/0123
            table_properties: {0: 0123, a: 1.10, b: no, c: true, d: 2024-1-1, e: "", f: 1:30, on: x}
        """,
    )

    assert document.tables["2024-01-01"].table_uri == "/t/0123"
    assert document.tables["2024-01-01"].table_properties == {
        "0": "0123",
        "a": "1.10",
        "b": "no",
        "c": "true",
        "d": "2024-1-1",
        "e": "",
        "f": "1:30",
        "on": "x",
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "a: 1\nb: {c: [1]\n",
            (
                "a.yaml:3:1: expected ',' or '}', but got '<stream end>', "
                "while parsing a flow mapping from line 2 on"
            ),
        ),
        (
            "sink:\n  path: 'x\n  a: 1\n",
            (
                "a.yaml:4:1: found unexpected end of stream, "
                "while scanning a quoted scalar from line 2 on"
            ),
        ),
        ("a: b: c", "a.yaml:1:5: mapping values are not allowed here"),
        (
            "sink:\n\tpath: x",
            "a.yaml:2:1: found character '\\t' that cannot start any token",
        ),
        ("sink:\n  x: 1\n  x: 2", "a.yaml:3:3: the key x is given twice, first on line 2"),
        ("? [a]\n: 1", "a.yaml:1:3: a key must be text"),
        ("a: &a [*a]", "a.yaml:1:4: found unconstructable recursive node"),
        (
            "a: 1\n---\nb: 1",
            (
                "a.yaml:2:1: but found another document, "
                "expected a single document in the stream from line 1 on"
            ),
        ),
        ("- a", "a.yaml: must be a mapping of sections, not a list"),
        ("text", "a.yaml: must be a mapping of sections, not text"),
        ("", "a.yaml: is empty"),
        ("# a comment", "a.yaml: is empty"),
        ("a: \x01", "a.yaml: contains a character that YAML does not allow"),
    ],
)
def test_a_file_that_is_no_configuration_is_reported_with_its_place(
    folder: Path, text: str, fault: str
) -> None:
    assert faults(folder, text) == [fault]


def test_a_tag_that_would_run_code_is_refused(folder: Path) -> None:
    (fault,) = faults(folder, "a: !!python/object/apply:os.system [ls]")

    assert fault.startswith("a.yaml:1:4: could not determine a constructor")


def test_a_file_that_is_not_utf_8_is_reported(folder: Path) -> None:
    (folder / "a.yaml").write_bytes(b"a: \xff")

    with pytest.raises(ConfigInvalid, match="is not UTF-8 text"):
        load_document([folder / "a.yaml"], [], {}, lambda _: ())


def test_every_place_that_cannot_be_read_is_reported(folder: Path) -> None:
    (folder / "bare").mkdir()
    (folder / "file.yaml").write_text("a: 1")
    here = folder.relative_to(folder)

    with pytest.raises(ConfigInvalid) as invalid:
        load_document(
            [here / "no.yaml", here / "bare"],
            [here / "none", here / "bare", here / "file.yaml"],
            {},
            lambda _: (),
        )

    assert sorted(invalid.value.faults) == [
        "bare: is a folder; name it with -C",
        "bare: is not a folder with *.yaml or *.yml files",
        "file.yaml: is not a folder with *.yaml or *.yml files",
        "no.yaml: there is no such file",
        "none: is not a folder with *.yaml or *.yml files",
    ]


def test_no_file_at_all_is_a_fault() -> None:
    with pytest.raises(ConfigInvalid, match="no configuration given"):
        load_document([], [], {}, lambda _: ())


def test_a_folder_gives_its_yaml_files_in_the_order_of_their_names(folder: Path) -> None:
    (folder / "2.yml").write_text("sink: {path: /table}")
    (folder / "10.yaml").write_text("tables: {b: {table_uri: /b}}\nsource: {path: /in}")
    (folder / "3.yaml").write_text("tables: {a: {table_uri: /a}}")
    (folder / "4.yaml").write_text("schema: {fields: [{name: id, type: string}]}")
    (folder / "notes.txt").write_text("no: configuration")
    (folder / ".hidden.yaml").write_text("no: configuration")

    document = load_document([], [folder], {}, lambda _: ())

    assert list(document.tables) == ["b", "a"]


def test_files_are_merged_section_by_section(folder: Path) -> None:
    document = load(
        folder,
        "source: {path: /in}\nsink: {path: /table, file_size_mb: 64}\ntables:",
        "sink: {file_size_mb: 64, part_size_mb: 8}\ntables: {a: {table_uri: /a}}",
        "schema: {fields: [{name: id, type: string}]}\ntables: {b: {table_uri: /b}}",
    )

    assert document.sink is not None
    assert (document.sink.file_size_mb, document.sink.part_size_mb) == (64, 8)
    assert set(document.tables) == {"a", "b"}


def test_what_two_files_say_differently_names_both(folder: Path) -> None:
    table = "tables: {events: {table_uri: /a}}\n"
    pipeline = "pipelines:\n  p:\n    source: {path: /in}\n    sink: {path: /t}\n"
    pipeline += "    schema: {fields: [{name: id, type: string}]}\n"

    found = faults(
        folder,
        table + pipeline + "spark: {master: local, conf: {a: hunter1}}",
        table + pipeline + "spark: {master: yarn, conf: {a: hunter2}}",
        table + "spark: {master: yarn, conf: 1}",
    )

    assert found == [
        "tables.events: is defined again in b.yaml:1  (a.yaml:1)",
        "pipelines.p: is defined again in b.yaml:3  (a.yaml:3)",
        "spark.master: has another value in b.yaml:7  (a.yaml:7)",
        "spark.conf.a: has another value in b.yaml:7  (a.yaml:7)",
        "tables.events: is defined again in c.yaml:1  (a.yaml:1)",
        "spark.master: has another value in c.yaml:2  (a.yaml:7)",
        "spark.conf: has another value in c.yaml:2  (a.yaml:7)",
    ]


def test_a_fault_names_the_line_of_its_key_or_of_the_section_that_lacks_it(folder: Path) -> None:
    found = faults(
        folder,
        """# what arrives
source:
  path: /in

  batch_size: many
sink:
  compression: zip
schema:
  fields:
    - {name: id, type: string}
    - name: at
      type: tim
    - name: more
spark: &shared
  conf: 1
""",
    )

    assert [fault.rpartition("  ")[2] for fault in found] == [
        "(a.yaml:5)",
        "(a.yaml:7)",
        "(a.yaml:12)",
        "(a.yaml:13)",
        "(a.yaml:15)",
    ]


def test_what_a_merge_key_brings_in_is_named_where_it_is_written(folder: Path) -> None:
    found = faults(
        folder,
        COMPLETE
        + """
tables:
  a: &defaults
    table_uri: /a
    poll_interval_secs: 0
  b:
    <<: *defaults
    table_uri: /b
  c:
    <<: *defaults
    poll_interval_secs: -1
    table_uri: /c
""",
    )

    assert found == [
        "tables.a.poll_interval_secs: must be greater than 0, not 0  (a.yaml:9)",
        "tables.b.poll_interval_secs: must be greater than 0, not 0  (a.yaml:9)",
        "tables.c.poll_interval_secs: must be greater than 0, not -1  (a.yaml:15)",
    ]


def test_what_is_given_in_python_has_no_line() -> None:
    with pytest.raises(ConfigInvalid) as invalid:
        load_document([{"sink": {"file_size_mb": -1}}], [], {}, lambda _: ())

    assert invalid.value.faults == [
        "sink.file_size_mb: must be greater than 0, not -1  (given in Python)"
    ]


def test_no_message_speaks_of_the_library(folder: Path) -> None:
    text = """
    source: {path: {a: 1}, batch_size: [1], poll_interval_secs: {}, storage_options: {a: {b: c}}}
    sink: []
    schema: {fields: {a: b}, infer: {a: b}, unknown_fields: [x]}
    error_handling: text
    tables: [1]
    spark: {conf: [a], master: ''}
    """

    for fault in faults(folder, text):
        assert "\n" not in fault
        for jargon in ("pydantic", "http", "Input", "dict", "instance", "Value error", "str"):
            assert jargon not in fault


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ("from: ''", "schema.fields[0].from[0]: must not be empty"),
        ("from: a..b", "schema.fields[0].from[1]: must not be empty"),
        ("format: ''", "schema.fields[0].format[0]: must not be empty"),
        ("items: ''", "schema.fields[0].items.type: an empty text is not a type"),
        (
            "values: {type: map, values: ''}",
            "schema.fields[0].values.values.type: an empty text is not a type",
        ),
        ("null_values: 7", "schema.fields[0].null_values: must be a list"),
    ],
)
def test_a_fault_in_a_short_form_is_told_and_ends(folder: Path, field: str, fault: str) -> None:
    found = faults(folder, f"schema: {{fields: [{{name: a, type: int64, {field}}}]}}")
    assert any(one.startswith(fault) for one in found), found


@pytest.mark.parametrize("key", ["coerce: true", "null_values: ['-']"])
def test_what_means_nothing_for_json_is_told(folder: Path, key: str) -> None:
    found = faults(folder, f"schema: {{fields: [{{name: a, type: json, {key}}}]}}")
    name = key.partition(":")[0]
    told = f"{name} has no meaning for json, which takes every value as it is"
    assert any(told in one for one in found), found


@pytest.mark.parametrize("part", ["items", "values", "fields[0]", "items.fields[0]"])
def test_an_unknown_key_inside_a_column_is_told_with_the_nearest(folder: Path, part: str) -> None:
    inside: Any = {"tipe": "string"}
    for key in reversed(part.split(".")):
        inside = {"fields": [inside]} if "[" in key else {key: inside}
    column = {"name": "a", "type": "int64", **inside}
    found = faults(folder, json.dumps({"schema": {"fields": [column]}}))
    told = f"schema.fields[0].{part}.tipe: unknown key; did you mean type?  (a.yaml:1)"
    assert told in found, found


def test_a_column_is_not_nested_deeper_than_readers_bear(folder: Path) -> None:
    kind = "string"
    for _ in range(40):
        kind = f"{{type: list, items: {kind}}}"
    found = faults(folder, f"schema: {{fields: [{{name: a, type: list, items: {kind}}}]}}")
    told = "schema.fields[0]: is nested deeper than 30 levels"
    assert any(one.startswith(told) for one in found), found


def test_a_location_with_a_nul_character_is_refused(folder: Path) -> None:
    found = faults(folder, 'source: {path: "/in\\0"}')
    assert any("source.path: must not contain a NUL character" in one for one in found), found
