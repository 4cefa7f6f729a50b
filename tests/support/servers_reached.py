"""How each of the object stores is reached, and what is known of it."""

import base64
import hashlib
import hmac
import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from itertools import count
from pathlib import Path

import boto3

from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.s3 import KEY, QUICK, SECRET, moto
from tests.support.s3 import options as s3_options
from tests.support.servers import azurite, google_in_front_of, seaweedfs, versitygw

ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""What every Azurite has: it is no secret."""
BUCKET = "contest"
_folders = count()

Access = Callable[[str], dict[str, str]]


@dataclass(frozen=True)
class Contestant:
    """A store that runs, and how the programs reach it."""

    name: str
    scheme: str
    address: str
    access: Access
    """The options of a store at an address: the server's own, or that of a proxy before it."""
    root: str
    """The URI of its bucket; on a local disk, a folder."""

    def fresh(self) -> str:
        """Return the URI of a place that nobody else uses."""
        return f"{self.root}/{next(_folders)}"

    def options(self, address: str = "") -> dict[str, str]:
        """Return the options by the names of the configuration."""
        return self.access(address or self.address)

    def open(self, uri: str, address: str = "") -> Store:
        """Open a place; between tries there are milliseconds, as many tries as in earnest."""
        given = StorageOptions(self.options(address))
        return Store(uri, given, retry=QUICK, make_folder=self.scheme == "file")


@contextmanager
def local_disk(folder: Path) -> Iterator[Contestant]:
    """Use a folder of this machine."""
    yield Contestant("local", "file", "", lambda _address: {}, str(folder))


@contextmanager
def moto_s3() -> Iterator[Contestant]:
    """Run moto's S3 with a bucket."""
    with moto() as address:
        _make_bucket(address)
        yield Contestant("moto", "s3", address, s3_options, f"s3://{BUCKET}")


@contextmanager
def seaweedfs_s3() -> Iterator[Contestant]:
    """Run a SeaweedFS with a bucket."""
    with seaweedfs() as address:
        yield s3_at(address)


@contextmanager
def versitygw_s3() -> Iterator[Contestant]:
    """Run a VersityGW with a bucket."""
    with versitygw(KEY, SECRET) as address:
        yield s3_at(address, "versitygw")


@contextmanager
def azurite_blobs() -> Iterator[Contestant]:
    """Run an Azurite with a container."""
    with azurite() as address:
        yield azure_at(address)


def s3_at(address: str, name: str = "seaweedfs") -> Contestant:
    """Make a bucket at a server that speaks S3; return how it is reached."""
    _make_bucket(address)
    return Contestant(name, "s3", address, s3_options, f"s3://{BUCKET}")


def azure_at(address: str) -> Contestant:
    """Make a container at an Azurite; return how it is reached."""
    _make_container(address)
    return Contestant("azurite", "az", address, _azure_options, f"az://{BUCKET}")


REACHED = {"seaweedfs": s3_at, "azurite": azure_at}
"""How those are reached that can be killed."""


@contextmanager
def google_storage() -> Iterator[Contestant]:
    """Run a store that speaks as Google's does: headers translated, before moto's S3."""
    with moto() as behind, google_in_front_of(behind) as address:
        _make_bucket(behind)
        yield Contestant("google", "gs", address, _google_options, f"gs://{BUCKET}")


OPTIONAL = {"versitygw": versitygw_s3}
"""Those that take minutes to build: the variable STORE names the one that takes part."""
CONTESTANTS = {
    "moto": moto_s3,
    "seaweedfs": seaweedfs_s3,
    "azurite": azurite_blobs,
    "google": google_storage,
    **{name: start for name, start in OPTIONAL.items() if name == os.environ.get("STORE")},
}
"""All but the local disk, which needs no server."""


def _azure_options(address: str) -> dict[str, str]:
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
        "AZURE_STORAGE_ENDPOINT": f"{address}/{ACCOUNT}",
        "AZURE_ALLOW_HTTP": "true",
    }


def _google_options(address: str) -> dict[str, str]:
    account = {
        "gcs_base_url": address,
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    return {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account), "GOOGLE_ALLOW_HTTP": "true"}


def _make_bucket(address: str) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket=BUCKET)
    client.close()


def _make_container(address: str) -> None:
    """Make a container: the one request that the programs never send."""
    path, query = f"/{ACCOUNT}/{BUCKET}", "restype=container"
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    lines = [f"{name}:{value}\n" for name, value in sorted(headers.items())]
    # The account stands there twice: once for the account, once for its place in the path.
    signed = "PUT" + "\n" * 12 + "".join(lines) + f"/{ACCOUNT}{path}\nrestype:container"
    digest = hmac.digest(base64.b64decode(ACCOUNT_KEY), signed.encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    url = f"{address}{path}?{query}"
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)).close()
