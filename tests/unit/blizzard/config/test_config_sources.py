"""What a configuration may say of sources: names, paths, forms, and files that two would share."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from blizzard.model.source.form import Form, SkipRule, SourcePattern
from lakebed.types import SourceFormat
from tests.support.blizzard_config import changed, faults_of, minimal, settings_of, source


def two_sources(first: str, second: str) -> dict[str, Any]:
    document = minimal(sources__a={"path": first}, sources__b={"path": second})
    del document["source"]
    return {"pipelines": {"p": document}}


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [("/in", "/in", True), ("/in", "/in/deep", True), ("/in", "file:///in/a", True),
     ("/in", "/inside", False), ("s3://b/a", "s3://b/ab", False)],
)  # fmt: skip
def test_sources_that_hold_the_same_files_are_refused(
    tmp_path: Path, first: str, second: str, refused: bool
) -> None:
    """They would be ingested twice (D13)."""
    document = two_sources(first, second)
    if refused:
        assert any("would be ingested twice" in fault for fault in faults_of(tmp_path, document))
    else:
        assert len(settings_of(tmp_path, document).pipelines[0].sources) == 2


# ------------------------------------------------------------------------------ source paths


@pytest.mark.parametrize(
    ("path", "folder", "pattern"),
    [
        ("s3://b/in", "s3://b/in", None),
        ("s3://b/logs/app-*", "s3://b/logs", "app-*"),
        ("s3://b/*.ndjson", "s3://b", "*.ndjson"),
        ("/data/*/events-*.ndjson.gz", "/data", "*/events-*.ndjson.gz"),
        ("/data/day=0?/x.ndjson", "/data", "day=0?/x.ndjson"),
        ("s3://b/day=0?/hour=*/x.ndjson", "s3://b", "day=0?/hour=*/x.ndjson"),
        ("gs://b/in/[a-c]*/**", "gs://b/in", "[a-c]*/**"),
        ("file:///data/*.json", "file:///data", "*.json"),
        ("*.json", ".", "*.json"),
        ("/*.json", "/", "*.json"),
    ],
)
def test_a_path_is_a_folder_or_names_below_the_last_folder_that_is_written_out(
    tmp_path: Path, path: str, folder: str, pattern: str | None
) -> None:
    found = source(settings_of(tmp_path, minimal(source__path=path)))

    assert (found.uri, found.pattern and found.pattern.text) == (folder, pattern)


def test_a_folder_that_is_there_is_a_folder_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "in [2024]*").mkdir()

    found = source(settings_of(tmp_path, minimal(source__path=str(tmp_path / "in [2024]*"))))

    assert (found.uri, found.pattern) == (str(tmp_path / "in [2024]*"), None)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("source.path", "/data/[ab", "source.path: has a [ without its ]"),
        (
            "source.partition_filter",
            {"prefix_template": "region=%s", "lookback": 1},
            "source.partition_filter.prefix_template: 'region=%s' gives no time",
        ),
        ("source.path", "s3://b/in?sv=2024&sig=x", "source.path: must not hold ? or #"),
    ],
)
def test_a_source_that_cannot_be_looked_at_as_asked_is_refused(
    tmp_path: Path, key: str, value: Any, says: str
) -> None:
    (fault,) = faults_of(tmp_path, changed(key, value))

    assert fault.startswith(says)


def test_a_horizon_needs_a_template_that_tells_a_time(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, minimal(source__sweep_horizon=3))
    assert fault.startswith("source.sweep_horizon: counts folders of partition_filter")

    by = {"prefix_template": "region=%s"}
    (fault,) = faults_of(tmp_path, minimal(source__sweep_horizon=3, sink__partition_by=by))
    assert fault.startswith("source.sweep_horizon: counts the folders of a template")


def test_sources_with_patterns_below_one_folder_are_refused(tmp_path: Path) -> None:
    """D13: a file belongs to one source."""
    (fault,) = faults_of(tmp_path, two_sources("/in/a-*", "/in/b-*"))
    assert fault.startswith("pipelines.p.sources.a.path: contains the files of source b")


def test_what_is_told_of_files_is_what_they_are(tmp_path: Path):
    skip = {"only_key": ["index"], "with_key": ["a", "b"], "without_key": ["c"]}
    given = minimal(
        source__format="json", source__records="result.items", source__skip_records=skip
    )
    assert source(settings_of(tmp_path, given)).form == Form(
        format=SourceFormat.JSON,
        records=("result", "items"),
        skip=SkipRule(only_key=("index",), with_key=("a", "b"), without_key=("c",)),
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"records": "Records"}, "source.records: is the path .* it needs format: json"),
        ({"format": "json", "records": "a..b"}, "source.records: must be keys separated by dots"),
        ({"skip_records": {}}, "source.skip_records: is empty; it needs only_key"),
        ({"skip_records": {"only_key": []}}, "source.skip_records: is empty"),
        ({"skip_records": {"keys": ["a"]}}, "source.skip_records.keys"),
        ({"format": "csv"}, "source.format: "),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, given: dict[str, Any], message: str):
    document = minimal()
    document["source"] |= given
    assert any(re.match(message, fault) for fault in faults_of(tmp_path, document))


@pytest.mark.parametrize("name", ["a.log", "no suffix", "a[1]*.json"])
def test_the_path_of_a_local_file_is_that_file(tmp_path: Path, name: str):
    (tmp_path / name).write_text("{}")
    found = source(settings_of(tmp_path, minimal(source__path=str(tmp_path / name))))
    assert found.uri == str(tmp_path)
    assert isinstance(found.pattern, SourcePattern)
    assert found.pattern.compiled().fullmatch(name)
    assert not found.pattern.compiled().fullmatch(f"{name}x")
    assert found.pattern.names_file(name)


def with_field(field: str) -> dict[str, Any]:
    return minimal(schema__fields=[{"name": "a", **yaml.safe_load(f"{{{field}}}")}])


@pytest.mark.parametrize(
    ("field", "better"),
    [
        ("type: timestamp, format: [iso, epoch_ms, epoch_s]", "iso, epoch_s, epoch_ms"),
        ("type: timestamp_ntz, format: [epoch_ns, iso, epoch_us]", "epoch_us, iso, epoch_ns"),
        ("type: date, truncate: true, format: [epoch_ms, epoch_s]", "epoch_s, epoch_ms"),
        ("type: list, items: {type: timestamp, format: [epoch_ms, epoch_s]}", "epoch_s, epoch_ms"),
    ],
)
def test_formats_of_which_a_later_one_is_never_reached_are_refused(
    tmp_path: Path, field: str, better: str
):
    (fault,) = faults_of(tmp_path, with_field(field))
    assert f"format: [{better}]" in fault


@pytest.mark.parametrize(
    "field",
    [
        "type: timestamp, format: [iso, epoch_s, epoch_ms, epoch_us]",
        "type: date, format: [epoch_ms, epoch_s]",
    ],
)
def test_formats_that_can_all_be_reached_are_taken(tmp_path: Path, field: str):
    assert settings_of(tmp_path, with_field(field))
