"""Which source an object belongs to."""

import pytest

from blizzard.model.notices import Hint
from blizzard.notices.messages import ObjectCreated, hint_for, place_of_source
from lakebed.storage.options import StorageOptions
from tests.support.builders import source_settings

SOURCES = {
    name: place_of_source(source_settings(uri, name=name))
    for name, uri in (("in", "s3://lake/in"), ("logs", "s3://lake/logs/a b"), ("all", "s3://all"))
}


@pytest.mark.parametrize(
    ("bucket", "key", "found"),
    [
        ("lake", "in/a.ndjson", ("in", "a.ndjson")),
        ("lake", "in/date=1/a.ndjson", ("in", "date=1/a.ndjson")),
        ("lake", "logs/a b/x", ("logs", "x")),
        ("all", "in/a.ndjson", ("all", "in/a.ndjson")),
        ("lake", "inner/a.ndjson", None),
        ("lake", "in", None),
        ("lake", "in/", None),
        ("lake", "other/in/a.ndjson", None),
        ("other", "in/a.ndjson", None),
    ],
)
def test_an_object_is_found_by_its_bucket_and_folder(bucket, key, found):
    hint = hint_for(ObjectCreated(bucket=bucket, key=key), SOURCES)
    expected = found and Hint(source=found[0], path=found[1])
    assert hint == expected


@pytest.mark.parametrize(("told", "is_ours"), [("lake", True), ("", True), ("another", False)])
@pytest.mark.parametrize("uri", ["abfss://in@lake.dfs.core.windows.net/a", "az://in/a"])
def test_a_container_of_the_same_name_in_another_account_is_elsewhere(told, is_ours, uri):
    options = StorageOptions({"AZURE_STORAGE_ACCOUNT_NAME": "lake"})
    place = place_of_source(source_settings(uri, storage_options=options))
    hint = hint_for(ObjectCreated(bucket="in", key="a/b.ndjson", account=told), {"s": place})
    assert (hint is not None) == is_ours
