"""An S3 of our own on loopback: moto's server in a process of its own."""

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from urllib.parse import quote

from lakebed.storage import remote
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store

KEY = "canary-access-key"
SECRET = "canary-secret-key"
QUICK = {
    **remote.RETRY,
    "backoff": {
        "init_backoff": timedelta(milliseconds=1),
        "max_backoff": timedelta(milliseconds=5),
        "base": 2,
    },
}
"""As many tries as in earnest, and milliseconds between them."""
_names = count()


@contextmanager
def moto() -> Iterator[str]:
    """Run an S3 until the end of the block; give its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        address = None
        while address is None and (line := process.stderr.readline()):
            address = re.search(r"Running on (http://127\.0\.0\.1:\d+)", line)
        assert address is not None, "moto's server did not start"
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        yield address[1]
    finally:
        process.kill()
        process.wait()
        drain.wait()
        process.stderr.close()


def make_bucket(address: str) -> str:
    """Make a bucket that nobody else uses; give its name."""
    name = f"bucket-{next(_names)}"
    urllib.request.urlopen(urllib.request.Request(f"{address}/{name}", method="PUT")).close()
    return name


def put_key(address: str, bucket: str, key: str, body: bytes = b"") -> None:
    """Put an object under any name, also one that a store's library would not take."""
    url = f"{address}/{bucket}/{quote(key)}"
    kind = {"Content-Type": "application/octet-stream"}
    urllib.request.urlopen(urllib.request.Request(url, body, kind, method="PUT")).close()


def open_uploads(address: str, bucket: str) -> int:
    """Count the multipart uploads that were begun and neither completed nor aborted."""
    with urllib.request.urlopen(f"{address}/{bucket}?uploads") as answer:
        return int(answer.read().decode().count("<UploadId>"))


def options(address: str, **changes: str) -> dict[str, str]:
    """Return the options of a store, by the names of the configuration."""
    return {
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": address,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ALLOW_HTTP": "true",
        **changes,
    }


def store(address: str, uri: str, **changes: str) -> Store:
    """Open a folder of a bucket; between tries there are milliseconds, as many as in earnest."""
    return Store(uri, StorageOptions(options(address, **changes)), retry=QUICK)
