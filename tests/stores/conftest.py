"""The stores that take part: a local disk, and servers that others wrote, each started once."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from lakebed.storage.store import Store
from tests.support.faulty import Proxy, in_front_of
from tests.support.servers_reached import CONTESTANTS, Contestant, local_disk

REMOTE = tuple(CONTESTANTS)
S3 = tuple(name for name in REMOTE if name not in ("azurite", "google"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on every store."""
    everywhere = ("local", *REMOTE)
    for fixture, names in (("contestant", everywhere), ("remote", REMOTE), ("s3", S3)):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Contestant]]:
    """Hold what runs; all of it is stopped when the tests are over, also when they fail."""
    with ExitStack() as servers:

        class Running(dict[str, Contestant]):
            def __missing__(self, name: str) -> Contestant:
                folder = tmp_path_factory.mktemp("disk")
                start = local_disk(folder) if name == "local" else CONTESTANTS[name]()
                self[name] = servers.enter_context(start)
                return self[name]

        yield Running()


@pytest.fixture(scope="session")
def contestant(request: pytest.FixtureRequest, running: dict[str, Contestant]) -> Contestant:
    """Return one of the stores, the local disk among them."""
    return running[request.param]


@pytest.fixture(scope="session")
def remote(request: pytest.FixtureRequest, running: dict[str, Contestant]) -> Contestant:
    """Return one of the stores that are reached over a network."""
    return running[request.param]


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest, running: dict[str, Contestant]) -> Contestant:
    """Return one of the stores that speak S3's protocol."""
    return running[request.param]


@pytest.fixture
def store(contestant: Contestant) -> Store:
    """Open an empty place in a store."""
    return contestant.open(contestant.fresh())


@pytest.fixture
def proxy(remote: Contestant) -> Iterator[Proxy]:
    """Run a proxy in front of a store."""
    with in_front_of(remote.address) as proxy:
        yield proxy


@pytest.fixture
def troubled(remote: Contestant, proxy: Proxy) -> Store:
    """Open an empty place in a store, by way of the proxy."""
    return remote.open(remote.fresh(), proxy.address)
