"""What a configuration may say of sources: names, paths, forms, and files that two would share."""

from pathlib import Path
from typing import Any

import pytest

from blizzard.config.load import load
from blizzard.model.settings import SourceSettings
from blizzard.model.source.form import Form, SkipRule, SourcePattern
from lakebed.errors import ConfigInvalid
from lakebed.types import SourceFormat
from tests.support.blizzard_config import changed, faults_of, minimal, settings_of, source


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [("/in", "/in", True), ("/in", "/in/deep", True), ("/in", "file:///in/a", True),
     ("/in", "/inside", False), ("s3://b/a", "s3://b/ab", False)],
)  # fmt: skip
def test_sources_that_hold_the_same_files_are_refused(
    tmp_path: Path, first: str, second: str, refused: bool
) -> None:
    """They would be ingested twice (D13)."""
    document = {
        "pipelines": {
            "p": {
                "sources": {"a": {"path": first}, "b": {"path": second}},
                "sink": {"path": "/t"},
                "schema": {"fields": [{"name": "id", "type": "string"}]},
            }
        }
    }
    if not refused:
        assert len(settings_of(tmp_path, document).pipelines[0].sources) == 2
        return
    with pytest.raises(ConfigInvalid) as caught:
        settings_of(tmp_path, document)
    assert any("would be ingested twice" in fault for fault in caught.value.faults)


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
            "source.partition_filter.prefix_template: 'region=%s' contains no time",
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
    document = {
        "pipelines": {
            "p": {
                "sources": {"a": {"path": "/in/a-*"}, "b": {"path": "/in/b-*"}},
                "sink": {"path": "/t"},
                "schema": {"fields": [{"name": "id", "type": "string"}]},
            }
        }
    }
    (fault,) = faults_of(tmp_path, document)
    assert fault.startswith("pipelines.p.sources.a.path: contains the files of source b")


def source_of(tmp_path: Path, *lines: str, path: str = "/in") -> SourceSettings:
    text = "\n  ".join(["source:", f"path: {path}", *lines])
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"{text}\nsink: {{path: /out}}\nschema: {{fields: [{{name: a, type: json}}]}}\n"
    )
    (pipeline,) = load([file], [], {}).pipelines
    return pipeline.sources[0]


def test_what_is_told_of_files_is_what_they_are(tmp_path: Path):
    form = source_of(
        tmp_path,
        "format: json",
        "records: result.items",
        "skip_records: {only_key: [index], with_key: [a, b], without_key: [c]}",
    ).form
    assert form == Form(
        format=SourceFormat.JSON,
        records=("result", "items"),
        skip=SkipRule(only_key=("index",), with_key=("a", "b"), without_key=("c",)),
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["records: Records"], "source.records: is the path .* it needs format: json"),
        (["format: json", "records: a..b"], "source.records: must be keys separated by dots"),
        (["skip_records: {}"], "source.skip_records: is empty; it needs only_key"),
        (["skip_records: {only_key: []}"], "source.skip_records: is empty"),
        (["skip_records: {keys: [a]}"], "source.skip_records.keys"),
        (["format: csv"], "source.format: "),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, lines: list[str], message: str):
    with pytest.raises(ConfigInvalid, match=message):
        source_of(tmp_path, *lines)


@pytest.mark.parametrize("name", ["a.log", "no suffix", "a[1]*.json"])
def test_the_path_of_a_local_file_is_that_file(tmp_path: Path, name: str):
    (tmp_path / name).write_text("{}")
    source = source_of(tmp_path, path=f"'{tmp_path / name}'")
    assert source.uri == str(tmp_path)
    assert isinstance(source.pattern, SourcePattern)
    assert source.pattern.compiled().fullmatch(name)
    assert not source.pattern.compiled().fullmatch(f"{name}x")
    assert source.pattern.names_file(name)


def load_field(tmp_path: Path, field: str) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"source: {{path: /in}}\nsink: {{path: /out}}\nschema: {{fields: [{{name: a, {field}}}]}}\n"
    )
    load([file], [], {})


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
    with pytest.raises(ConfigInvalid, match=rf"format: \[{better}\]"):
        load_field(tmp_path, field)


@pytest.mark.parametrize(
    "field",
    [
        "type: timestamp, format: [iso, epoch_s, epoch_ms, epoch_us]",
        "type: date, format: [epoch_ms, epoch_s]",
    ],
)
def test_formats_that_can_all_be_reached_are_taken(tmp_path: Path, field: str):
    load_field(tmp_path, field)
