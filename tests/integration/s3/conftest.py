"""What holds for all tests on S3."""

from collections.abc import Iterator

import pytest

from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader
from tests.support.audits import require_balanced
from tests.support.s3 import options


@pytest.fixture(autouse=True)
def tables_are_balanced(request: pytest.FixtureRequest) -> Iterator[None]:
    """Audit every table that a test leaves in its bucket."""
    yield
    given = request.node.funcargs
    if "bucket" in given:
        access = options(given["s3"])
        store = Reader(f"s3://{given['bucket']}", StorageOptions(access))
        inside = ("table/_blizzard", "table/_delta_log")
        if any(facts for folder in inside for facts in store.objects(folder)):
            require_balanced([f"{store.uri}/table"], request, access=access)
