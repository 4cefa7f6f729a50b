"""Object stores that others wrote, each in a process of its own on loopback.

`make test-stores` installs them. A server is gone when its block ends, and also when the process
that started it is killed: a shell waits for the end of its input, and then ends the server.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from tests.support.ports import reserved_port

HOME = Path(__file__).parents[2] / ".tools/stores"
PATIENCE_SECS = 300
UNTIL_OUR_END = '"$@" </dev/null & read -r _; kill -KILL $!; wait $! 2>/dev/null'

AZURITE_OPTIONS = (
    *("--silent", "--disableTelemetry", "--disableProductStyleUrl", "--skipApiVersionCheck"),
)
WEED_PORTS = ("master", "volume", "filer", "s3")
WEED_IDENTITIES = """\
{"identities": [{
  "name": "tests",
  "credentials": [{"accessKey": "canary-access-key", "secretKey": "canary-secret-key"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]
}]}
"""


def program(name: str) -> str:
    """Return the path of a server's program; without it the tests fail, and say what to do."""
    for folder in (HOME / "python/bin", HOME / "node_modules/.bin", HOME / "bin"):
        if (folder / name).exists():
            return str(folder / name)
    pytest.fail(f"the object store {name} is not installed; run `make test-stores`", pytrace=False)


@dataclass
class Mortal:
    """A server that keeps its objects on disk, and that can be killed and started again."""

    command: Sequence[str]
    folder: Path
    address: str
    says_hello: str = "/"
    """The path that answers once it is ready."""
    saves_every_secs: float = 0.0
    """What it has said that it did is on disk after so long; at once, unless it is an emulator."""
    _running: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Start it; it has what it had before."""
        log = self._running.enter_context(_server(self.command, self.folder))
        url = f"{self.address}{self.says_hello}"
        _wait(lambda: _answers(url), self.command[0], log)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        time.sleep(self.saves_every_secs)
        self._running.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_given: object) -> None:
        self._running.close()


@contextmanager
def seaweedfs() -> Iterator[str]:
    """Run a SeaweedFS, which speaks S3, until the end of the block; give its address."""
    with mortal_seaweedfs() as server:
        yield server.address


@contextmanager
def mortal_seaweedfs() -> Iterator[Mortal]:
    """Run a SeaweedFS, which speaks S3, until the end of the block.

    It keeps its objects in folders, and so it does not list them in the order of their names.
    """
    with _folder() as folder, ExitStack() as ports:
        identities = folder / "identities.json"
        identities.write_text(WEED_IDENTITIES)
        command = [
            *(program("weed"), "server", "-filer", "-s3", f"-dir={folder}"),
            *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-s3.config={identities}"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"),
            *("-s3.autoCreateBucket=false", "-volume.max=0", "-master.volumeSizeLimitMB=256"),
            # Alone, it need not wait long for others before it leads again.
            *("-master.heartbeatInterval=100ms", "-master.electionTimeout=1s"),
        ]
        for name in WEED_PORTS:
            for suffix in ("port", "port.grpc"):
                port = ports.enter_context(reserved_port())
                command.append(f"-{name}.{suffix}={port}")
        (s3,) = (part.partition("=")[2] for part in command if part.startswith("-s3.port="))
        with Mortal(command, folder, f"http://127.0.0.1:{s3}", says_hello="/status") as server:
            yield server


@contextmanager
def azurite() -> Iterator[str]:
    """Run an Azurite, which speaks as Azure's blobs do, until the end of the block."""
    with _azurite("blob") as address:
        yield address


@contextmanager
def azurite_queues() -> Iterator[str]:
    """Run an Azurite, which speaks as Azure's storage queues do, until the end of the block."""
    with _azurite("queue") as address:
        yield address


@contextmanager
def pubsub() -> Iterator[tuple[str, str]]:
    """Run Google's own fake of Pub/Sub until the end of the block.

    Give its host and port, and those at which it tells what became of messages.
    """
    with _folder() as folder, _server([program("pubsub")], folder) as log:
        address = _said(r"listening on (127\.0\.0\.1:\d+)", "Pub/Sub", log)
        yield address, _said(r"books at (127\.0\.0\.1:\d+)", "Pub/Sub", log)


@contextmanager
def versitygw(key: str, secret: str) -> Iterator[str]:
    """Run a VersityGW, which speaks S3 and keeps objects as files, until the end of the block."""
    with _folder() as folder, reserved_port() as port:
        (folder / "data").mkdir()
        (folder / "sidecar").mkdir()
        command = [
            *(program("versitygw"), "--access", key, "--secret", secret, "--quiet"),
            *("--port", f"127.0.0.1:{port}", "--keep-alive"),
            *("posix", "--sidecar", str(folder / "sidecar"), str(folder / "data")),
        ]
        with Mortal(command, folder, f"http://127.0.0.1:{port}") as server:
            yield server.address


@contextmanager
def mortal_azurite() -> Iterator[Mortal]:
    """Run an Azurite for blobs that keeps them on disk, until the end of the block."""
    with _folder() as folder, reserved_port() as port:
        command = [
            *(program("azurite-blob"), "--blobPort", str(port), "--location", str(folder)),
            *AZURITE_OPTIONS,
        ]
        # It writes down what it has every five seconds.
        with Mortal(command, folder, f"http://127.0.0.1:{port}", saves_every_secs=6) as server:
            yield server


MORTAL: dict[str, Callable[[], AbstractContextManager[Mortal]]] = {
    "seaweedfs": mortal_seaweedfs,
    "azurite": mortal_azurite,
}


@contextmanager
def _azurite(service: str) -> Iterator[str]:
    with _folder() as folder:
        port = (f"--{service}Port", "0")
        command = [program(f"azurite-{service}"), *port, "--inMemoryPersistence", *AZURITE_OPTIONS]
        with _server(command, folder) as log:
            yield _said(r"listens on (http://127\.0\.0\.1:\d+)", "Azurite", log)


@contextmanager
def s3rver(bucket: str) -> Iterator[str]:
    """Run an s3rver with a bucket: an S3 that does not know create-only writes."""
    with _folder() as folder:
        command = [
            *(program("s3rver"), "-d", str(folder / "data"), "-a", "127.0.0.1", "-p", "0"),
            *("--no-vhost-buckets", "--configure-bucket", bucket),
        ]
        with _server(command, folder) as log:
            yield "http://" + _said(r"listening on (127\.0\.0\.1:\d+)", "s3rver", log)


@contextmanager
def google_in_front_of(s3: str) -> Iterator[str]:
    """Run a store that speaks as Google's does, until the end of the block."""
    with _folder() as folder:
        command = [sys.executable, str(Path(__file__).with_name("google.py")), s3]
        with _server(command, folder) as log:
            yield _said(r"listening on (http://127\.0\.0\.1:\d+)", "Google's store", log)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="store-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server(command: Sequence[str], folder: Path) -> Iterator[Path]:
    """Run a server until the end of the block; give the file that it writes its log to."""
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["sh", "-c", UNTIL_OUR_END, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            # Credentials of this machine are none of a server's business.
            env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            start_new_session=True,  # A Ctrl-C is for the tests, which then end their servers.
        )
        assert process.stdin is not None
        try:
            yield log
        finally:
            process.stdin.close()
            process.wait(300)


def _said(pattern: str, name: str, log: Path) -> str:
    """Wait for what a server says when it is ready."""
    _wait(lambda: re.search(pattern, log.read_text()) is not None, name, log)
    found = re.search(pattern, log.read_text())
    assert found is not None
    return found[1]


def _wait(ready: Callable[[], bool], name: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECS
    while not ready():
        if time.monotonic() > deadline:
            last = "\n".join(log.read_text().splitlines()[-20:])
            pytest.fail(f"{name} was not ready after {PATIENCE_SECS} s:\n{last}", pytrace=False)
        time.sleep(0.05)


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=30).close()
    except urllib.error.HTTPError as answer:
        answer.close()
        return True
    except OSError:
        return False
    return True
