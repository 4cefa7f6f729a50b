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
        require_balanced(_tables(f"s3://{given['bucket']}", access), request, access=access)


def _tables(root: str, access: dict[str, str]) -> Iterator[str]:
    """Find the table directories right below a bucket."""
    store = Reader(root, StorageOptions(access))
    for folder in store.folders(""):
        inside = {name.rstrip("/").rpartition("/")[2] for name in store.folders(folder)}
        if not inside.isdisjoint({"_blizzard", "_delta_log"}):
            yield f"{root}/{folder}"
