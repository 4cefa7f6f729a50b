"""What a value may be: every key, its bounds, its secrets."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from lakebed.config.loader import load_document
from lakebed.config.models import Document
from lakebed.config.section import Section, location
from lakebed.errors import ConfigInvalid
from lakebed.types import (
    Codec,
    CommitMode,
    Compression,
    DiscoverBy,
    Evolution,
    Handoff,
    OnBadRecord,
    OnChange,
    ParquetCodec,
    SourceFormat,
    UnknownFields,
)

ZERO_MEANS_SOMETHING = {
    "source.min_age_secs",
    "sink.compact.quiet_secs",
    "error_handling.max_failures",
    "global.poll_jitter_secs",
    "spark.line_port",
}


def whole() -> dict[str, Any]:
    """Build a document in which every section has what it needs."""
    by = {"prefix_template": "date=%Y-%m-%d"}
    only = {"prefix_template": "date=%Y-%m-%d", "lookback": "7"}
    return {
        "source": {
            "path": "/in",
            "partition_filter": dict(only),
            "skip_records": {},
            "notifications": {"queue": "https://sqs.eu-west-1.amazonaws.com/1/q"},
        },
        "sink": {"path": "/table", "partition_by": dict(by), "compact": {}},
        "schema": {"fields": [{"name": "id", "type": "string"}]},
        "error_handling": {},
        "tables": {
            "events": {
                "table_uri": "/table",
                "partition_by": dict(by),
                "partition_filter": dict(only),
                "catalog": {"type": "glue", "database": "lake"},
            }
        },
        "storage": [{"prefix": "s3://lake/", "options": {}}],
        "global": {},
        "spark": {},
        "metrics": {},
        "telemetry": {},
    }


def keys(
    section: type[Section] = Document, path: Any = ()
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Walk every key of the document with its annotation, one entry of each named section."""
    for key, name in section.attributes().items():
        annotation: Any = section.model_fields[name].annotation
        inner = [kind for kind in (annotation, *get_args(annotation)) if is_section(kind)]
        if key == "pipelines":
            continue  # the same sections again
        if not inner:
            yield (*path, key), annotation, section.model_fields[name]
        elif key == "tables":
            yield from keys(inner[0], (*path, key, "events"))
        elif key == "storage":
            yield from keys(inner[0], (*path, key, "0"))
        elif key not in ("fields", "hints"):
            yield from keys(inner[0], (*path, key))


def is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def holds_number(annotation: Any) -> bool:
    kinds = [annotation]
    for kind in kinds:
        kinds.extend(get_args(kind))
    return int in kinds or float in kinds


ALL = {".".join(path): (annotation, field) for path, annotation, field in keys()}
NUMBERS = sorted(key for key, (annotation, _) in ALL.items() if holds_number(annotation))
SECRETS = [key for key in ALL if key.endswith(("storage_options", "spark.conf", "0.options"))]


def with_value(key: str, value: Any) -> dict[str, Any]:
    document = whole()
    place: Any = document
    *above, last = key.split(".")
    for part in above:
        place = place[int(part) if part.isdigit() else part]
    place[last] = value
    return document


def load(folder: Path, document: Any, environment: dict[str, str] | None = None) -> Any:
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(document))
    return load_document([file], [], environment or {}, lambda _: ())


def faults(folder: Path, document: Any, environment: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigInvalid) as invalid:
        load(folder, document, environment)
    return invalid.value.faults


def test_the_whole_document_has_no_fault(tmp_path: Path) -> None:
    assert load(tmp_path, whole()).source is not None


def test_every_number_has_been_found() -> None:
    assert {"sink.file_size_mb", "tables.events.partition_filter.lookback"} <= set(NUMBERS)
    assert len(NUMBERS) >= 26


BOUNDS = {"sink.compact.min_files": "2 or greater"}
"""What a number must be, where 1 is not enough."""


@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_that_means_nothing_is_refused_by_name(tmp_path: Path, key: str) -> None:
    bound = BOUNDS.get(key, "greater than 0")
    lowest = "0 or greater" if key in ZERO_MEANS_SOMETHING else bound
    (fault,) = faults(tmp_path, with_value(key, -1))
    assert fault.startswith(f"{key}: must be {lowest}, not -1  ({tmp_path}/pipeline.yaml:")
    if key in ZERO_MEANS_SOMETHING:
        assert load(tmp_path, with_value(key, 0))
    else:
        (fault,) = faults(tmp_path, with_value(key, 0))
        assert fault.startswith(f"{key}: must be {bound}, not 0")
    (fault,) = faults(tmp_path, with_value(key, "nan"))
    assert fault.startswith(f"{key}: must be")
    (fault,) = faults(tmp_path, with_value(key, "12x"))
    assert fault.startswith((f"{key}: must be a number, not", f"{key}: must be a whole number,"))


@pytest.mark.parametrize("key", ["sink.file_size_mb", "source.batch_size"])
@pytest.mark.parametrize("value", [True, "", [1], {"a": 1}, ".inf", "inf"], ids=str)
def test_what_is_no_number_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    (fault,) = faults(tmp_path, with_value(key, value))

    refused = ("must be a number, not", "must be a whole number,", "must be less than 1, not inf")
    assert fault.startswith(tuple(f"{key}: {words}" for words in refused))


@pytest.mark.parametrize("value", [1, 1.5])
def test_a_share_of_all_lines_is_refused(tmp_path: Path, value: float) -> None:
    (fault,) = faults(tmp_path, with_value("error_handling.max_bad_ratio", value))

    assert fault.startswith(f"error_handling.max_bad_ratio: must be less than 1, not {value}")


@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_may_come_from_the_environment(tmp_path: Path, key: str) -> None:
    value = 0.5 if key.endswith("_ratio") else 128
    here = load(tmp_path, with_value(key, "${N}"), {"N": str(value)})

    assert here == load(tmp_path, with_value(key, value))


@pytest.mark.parametrize("key", sorted(ALL))
def test_no_fault_repeats_what_a_variable_holds(tmp_path: Path, key: str) -> None:
    text = with_value(key, "${SECRET}")
    section = with_value(key, {"hunter": ["${SECRET}"]})

    for document in (text, section):
        invalid = None
        try:
            shown = repr(load(tmp_path, document, {"SECRET": "hunter2://hunter2=x"}))
        except ConfigInvalid as raised:
            invalid = raised
            shown = f"{raised} {raised!r} {raised.__cause__} {raised.__context__}"
        assert "hunter2" not in shown or (invalid is None and key not in SECRETS)


@pytest.mark.parametrize("key", SECRETS)
def test_secrets_are_in_no_fault_and_no_repr(tmp_path: Path, key: str) -> None:
    kept = with_value(key, {"AWS_SECRET_ACCESS_KEY": "hunter2", "LEADING": "0123"})

    assert "hunter2" not in repr(load(tmp_path, kept))
    for value in ("hunter2", ["hunter2"], {"KEY": ["hunter2"]}):
        assert "hunter2" not in "".join(faults(tmp_path, with_value(key, value)))


def test_a_mistyped_key_names_the_nearest_one_in_every_section(tmp_path: Path) -> None:
    for key in ALL:
        above, _, last = key.rpartition(".")
        document = with_value(f"{above}.{last}x" if above else f"{last}x", "1")

        (fault,) = [line for line in faults(tmp_path, document) if "unknown" in line]

        shown = key.replace(".0.", "[0].")
        assert fault.startswith(f"{shown}x: unknown key; did you mean {last}?")


def test_a_key_that_is_like_no_other_is_answered_with_all_of_them(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, with_value("spark.zzz", "1"))

    assert fault.startswith("spark.zzz: unknown key; known keys are master, conf")


def test_a_key_without_a_value_counts_as_not_given(tmp_path: Path) -> None:
    expected = load(tmp_path, whole())
    for key, (_, field) in ALL.items():
        if field.is_required():
            assert any(
                line.startswith(f"{key.replace('.0.', '[0].')}: is required")
                for line in faults(tmp_path, with_value(key, None))
            )
        elif key != "sink.path":
            assert load(tmp_path, with_value(key, None)) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), ("FALSE", False), ("yes", None), ("1", None), ("", None)]
)
def test_a_flag_is_true_or_false_and_nothing_else(tmp_path: Path, text: str, expected: Any) -> None:
    document = with_value("metrics.enabled", text)

    if expected is None:
        assert "metrics.enabled: must be true or false" in faults(tmp_path, document)[0]
    else:
        assert load(tmp_path, document).metrics.enabled is expected


@pytest.mark.parametrize("address", ["0.0.0.0:9091", "localhost:2", "[::1]:65535", "h:0"])
def test_an_address_has_a_host_and_a_port(tmp_path: Path, address: str) -> None:
    assert load(tmp_path, with_value("metrics.address", address)).metrics.address == address


@pytest.mark.parametrize("address", ["9091", "localhost", ":9091", "h:65536", "::1:80"])
def test_an_address_without_them_is_refused(tmp_path: Path, address: str) -> None:
    (fault,) = faults(tmp_path, with_value("metrics.address", address))

    assert fault.startswith("metrics.address: must be host:port")


@pytest.mark.parametrize(
    ("key", "choices"),
    [
        ("source.compression", Compression),
        ("source.format", SourceFormat),
        ("source.on_change", OnChange),
        ("sink.compression", ParquetCodec),
        ("sink.handoff", Handoff),
        ("sink.commit", CommitMode),
        ("schema.unknown_fields", UnknownFields),
        ("error_handling.on_bad_record", OnBadRecord),
        ("tables.events.schema_evolution", Evolution),
        ("tables.events.discovery", DiscoverBy),
    ],
)
def test_a_wrong_value_is_answered_with_the_choices(
    tmp_path: Path, key: str, choices: type[StrEnum]
) -> None:
    (fault,) = faults(tmp_path, with_value(key, "wrong"))

    *first, last = choices
    assert f"{key}: must be {', '.join(first)} or {last}, not 'wrong'" in fault


def test_every_compression_but_auto_is_a_codec() -> None:
    assert [*Compression] == ["auto", *Codec]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("spark.line_port", 65_536, "must be 65535 or less, not 65536"),
        ("spark.shared_paths", ["mnt/lake"], "must be a full path of a local disk"),
        ("spark.shared_paths", ["s3://b/lake"], "must be a full path of a local disk"),
    ],
)
def test_what_is_no_port_and_no_folder_is_refused(
    tmp_path: Path, key: str, value: Any, says: str
) -> None:
    (fault,) = faults(tmp_path, with_value(key, value))

    assert says in fault


@pytest.mark.parametrize("text", ["file:/data/in/", "file:///data/in", "FILE:/data/in"])
def test_a_file_uri_may_have_one_slash_or_three(text: str):
    """HOLES D19: both are the same folder."""
    assert location(text) == "file:///data/in"
