"""Which source an object belongs to."""

import pytest

from blizzard.model.notices import Hint
from blizzard.notices.messages import ObjectCreated, SourceRoute, hint_for
from lakebed.storage.options import StorageOptions
from tests.support.builders import source_settings

ROUTES = [
    SourceRoute.to(source_settings("s3://lake/in", name="in")),
    SourceRoute.to(source_settings("s3://lake/logs/a b", name="logs")),
    SourceRoute.to(source_settings("s3://all", name="all")),
]


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
    hint = hint_for(ObjectCreated(bucket=bucket, key=key, size=3, etag="e"), ROUTES)
    expected = found and Hint(source=found[0], path=found[1], size=3, etag="e")
    assert hint == expected


@pytest.mark.parametrize(("told", "is_ours"), [("lake", True), ("", True), ("another", False)])
@pytest.mark.parametrize("uri", ["abfss://in@lake.dfs.core.windows.net/a", "az://in/a"])
def test_a_container_of_the_same_name_in_another_account_is_elsewhere(told, is_ours, uri):
    options = StorageOptions({"AZURE_STORAGE_ACCOUNT_NAME": "lake"})
    route = SourceRoute.to(source_settings(uri, storage_options=options))
    hint = hint_for(ObjectCreated(bucket="in", key="a/b.ndjson", account=told), [route])
    assert (hint is not None) == is_ours
