"""An S3 for the tests that ask for one."""

from collections.abc import Iterator

import pytest

from tests.support.faulty import Proxy, in_front_of
from tests.support.remembered import remember
from tests.support.s3 import make_bucket, moto

remember()


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """Yield the address of an S3; it is started when the first test asks."""
    with moto() as address:
        yield address


@pytest.fixture
def bucket(s3: str) -> str:
    """Return the name of an empty bucket."""
    return make_bucket(s3)


@pytest.fixture
def proxy(s3: str) -> Iterator[Proxy]:
    """Yield a proxy in front of the S3."""
    with in_front_of(s3) as proxy:
        yield proxy
