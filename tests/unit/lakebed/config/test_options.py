"""Options of a store keep their values to themselves."""

import copy
import pickle
from dataclasses import asdict

from blizzard.model.settings import SourceSettings
from lakebed.storage.options import StorageOptions

OPTIONS = StorageOptions({"AWS_REGION": "us-east-1", "AWS_SECRET_ACCESS_KEY": "hunter2"})


def test_the_values_are_given_to_who_asks_for_them() -> None:
    assert OPTIONS.plain() == {"AWS_REGION": "us-east-1", "AWS_SECRET_ACCESS_KEY": "hunter2"}


def test_only_the_names_are_shown() -> None:
    source = SourceSettings(uri="s3://b", storage_options=OPTIONS)

    for text in (repr(OPTIONS), str(OPTIONS), f"{OPTIONS}", repr(source), repr(asdict(source))):
        assert "hunter2" not in text
        assert "AWS_SECRET_ACCESS_KEY" in text


def test_they_travel_to_executors_whole() -> None:
    assert pickle.loads(pickle.dumps(OPTIONS)).plain() == OPTIONS.plain()
    assert copy.deepcopy(OPTIONS) == OPTIONS


def test_equal_options_can_share_a_store() -> None:
    assert {OPTIONS: 1}[StorageOptions(OPTIONS.plain())] == 1
    assert StorageOptions() == StorageOptions({})
    assert StorageOptions({"A": "1"}) != StorageOptions({"A": "2"})
