"""Options of a store keep their values to themselves."""

from dataclasses import asdict

from blizzard.model.settings import SourceSettings
from lakebed.storage.options import StorageOptions

OPTIONS = StorageOptions({"AWS_REGION": "us-east-1", "AWS_SECRET_ACCESS_KEY": "hunter2"})


def test_only_the_names_are_shown() -> None:
    source = SourceSettings(uri="s3://b", storage_options=OPTIONS)

    for text in (repr(OPTIONS), str(OPTIONS), f"{OPTIONS}", repr(source), repr(asdict(source))):
        assert "hunter2" not in text
        assert "AWS_SECRET_ACCESS_KEY" in text
