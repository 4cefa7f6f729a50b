"""Storage profiles: what sections share is written once, and each may say otherwise."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

import blizzard.config.load
import penguin.config.load
from blizzard.model.settings import SourceSettings
from lakebed.errors import ConfigInvalid
from lakebed.storage.options import StorageOptions
from tests.support.config import faults_from, settings_from

LAKE = {"AWS_REGION": "eu", "AWS_ACCESS_KEY_ID": "${KEY}"}


def document(*profiles: tuple[str, dict[str, str]]) -> dict[str, Any]:
    return {
        "storage": [{"prefix": prefix, "options": options} for prefix, options in profiles],
        "source": {"path": "s3://lake/in/*.json"},
        "sink": {"path": "s3a://lake/table"},
        "error_handling": {"dlq_path": "s3://letters/x"},
        "tables": {"t": {"table_uri": "s3://lake/table"}},
    }


def read(folder: Path, written: Any) -> Any:
    return settings_from(blizzard.config.load.load, folder, written, {"KEY": "canary"})


def test_a_profile_is_used_wherever_its_prefix_fits(tmp_path: Path) -> None:
    (pipeline,) = read(tmp_path, document(("s3://lake/", LAKE))).pipelines
    options = {"AWS_REGION": "eu", "AWS_ACCESS_KEY_ID": "canary"}
    assert pipeline.sources[0].storage_options.plain() == options
    assert pipeline.sink.storage_options.plain() == options
    assert pipeline.dlq_options.plain() == {}
    found = settings_from(
        penguin.config.load.load, tmp_path, document(("s3://lake/", LAKE)), {"KEY": "canary"}
    )
    assert found.tables[0].storage_options.plain() == options
    assert "canary" not in repr(found) + repr(pipeline)


def test_the_longest_prefix_wins_and_no_other_is_added(tmp_path: Path) -> None:
    profiles = (
        ("s3://lake/in", {"AWS_REGION": "in"}),
        ("s3://", {"AWS_REGION": "any", "AWS_ENDPOINT": "https://h"}),
        ("s3://lake", {"AWS_REGION": "lake"}),
        ("s3://lake/tab", {"AWS_REGION": "no folder"}),
        ("gs://lake/in", {"GOOGLE_SERVICE_ACCOUNT": "x"}),
    )
    (pipeline,) = read(tmp_path, document(*profiles)).pipelines
    assert pipeline.sources[0].storage_options.plain() == {"AWS_REGION": "in"}
    assert pipeline.sink.storage_options.plain() == {"AWS_REGION": "lake"}
    assert pipeline.dlq_options.plain() == {"AWS_REGION": "any", "AWS_ENDPOINT": "https://h"}


def test_a_section_wins_over_a_profile_option_by_option_in_any_spelling(tmp_path: Path) -> None:
    written = document(("s3://", {"aws_region": "eu", "AWS_ENDPOINT_URL": "https://h", "x": "y"}))
    written["source"]["storage_options"] = {"REGION": "us", "endpoint": "https://mine"}
    written["error_handling"]["dlq_storage_options"] = {"AWS_REGION": "asia"}
    (pipeline,) = read(tmp_path, written).pipelines
    assert pipeline.sources[0].storage_options.plain() == {
        "REGION": "us",
        "endpoint": "https://mine",
        "x": "y",
    }
    assert pipeline.dlq_options.plain()["AWS_REGION"] == "asia"


def test_a_message_names_the_key_by_which_an_option_was_set(tmp_path: Path) -> None:
    written = document(("gs://", {}), ("s3://", {"AWS_REGION": "eu", "AWS_ENDPOINT": "https://h"}))
    written["source"]["storage_options"] = {"AWS_REGION": "eu"}
    (pipeline,) = read(tmp_path, written).pipelines
    options = pipeline.sources[0].storage_options
    assert options.key("AWS_ENDPOINT") == "storage[1].options.AWS_ENDPOINT"
    assert options.key("AWS_REGION") == "source.storage_options.AWS_REGION"
    assert options.key("AWS_TOKEN") == "source.storage_options.AWS_TOKEN"
    assert options.origin.place == "source.path"
    assert pipeline.dlq_options.origin.section == "error_handling.dlq_storage_options"
    assert pipeline.dlq_options.origin.place == "error_handling.dlq_path"


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ({"prefix": "/data", "options": {}}, "storage[0].prefix: must be that of a store"),
        ({"prefix": "s4://b", "options": {}}, "storage[0].prefix: must be a local path or start"),
        ({"prefix": "s3://b"}, "storage[0].options: is required"),
        ({"options": {}}, "storage[0].prefix: is required"),
        (
            {"prefix": "s3://b", "option": {}, "options": {}},
            "storage[0].option: unknown key; did you mean options?",
        ),
        ({"prefix": "s3://b", "options": "canary"}, "storage[0].options: must be a section"),
        (
            {"prefix": "s3://b", "options": {"K": "${NOT_SET}"}},
            "storage[0].options.K: the environment variable NOT_SET is not set",
        ),
    ],
)
def test_a_profile_is_checked_like_every_section(
    tmp_path: Path, profile: dict[str, Any], says: str
) -> None:
    (fault,) = faults_from(blizzard.config.load.load, tmp_path, document() | {"storage": [profile]})
    assert fault.startswith(says)
    assert "canary" not in fault


def test_two_profiles_for_one_prefix_are_refused(tmp_path: Path) -> None:
    (fault,) = faults_from(
        blizzard.config.load.load, tmp_path, document(("s3://lake/", {}), ("s3a://lake", {}))
    )
    assert fault == (
        "storage[1].prefix: is the same as that of an earlier profile; put their options together"
    )


def test_options_of_a_queue_belong_to_its_path(tmp_path: Path) -> None:
    written = document()
    written["error_handling"] = {"dlq_storage_options": {"AWS_REGION": "eu"}}
    (fault,) = faults_from(blizzard.config.load.load, tmp_path, written)
    assert fault.startswith("error_handling.dlq_storage_options: belongs to dlq_path")


def test_profiles_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    written = document(("s3://lake/", {"AWS_REGION": "eu"}))
    shared = tmp_path / "storage.yaml"
    shared.write_text(yaml.safe_dump({"storage": written.pop("storage")}))
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump(written))
    (pipeline,) = blizzard.config.load.load([shared, own], [], {}).pipelines
    assert pipeline.sink.storage_options.plain() == {"AWS_REGION": "eu"}
    with pytest.raises(ConfigInvalid):
        blizzard.config.load.load([shared], [], {})


OPTIONS = StorageOptions({"AWS_REGION": "us-east-1", "AWS_SECRET_ACCESS_KEY": "hunter2"})


def test_only_the_names_are_shown() -> None:
    source = SourceSettings(uri="s3://b", storage_options=OPTIONS)

    for text in (repr(OPTIONS), str(OPTIONS), f"{OPTIONS}", repr(source), repr(asdict(source))):
        assert "hunter2" not in text
        assert "AWS_SECRET_ACCESS_KEY" in text
