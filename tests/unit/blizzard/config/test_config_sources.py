"""What a configuration may say of sources: names, paths, and files that two would share."""

from pathlib import Path
from typing import Any

import pytest

from lakebed.errors import ConfigInvalid
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
        (
            "source.path",
            "s3://b/in?sv=2024&sig=x",
            "source.path: must not hold ? or #",
        ),
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
