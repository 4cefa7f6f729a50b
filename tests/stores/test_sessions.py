"""Tokens that expire in the middle of a batch, on Azure and Google: both programs renew them.

A proxy stands for the store's login: it takes each token for a few requests, and lets itself in at
the server behind it, which knows no tokens. S3 has its own test of this, with moto's server.
"""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from azure.storage.queue import generate_account_sas

from lakebed.types import Handoff
from tests.support.answering import Answering, Asked, Given, answering
from tests.support.dying import Fate
from tests.support.faulty import Fault, Proxy, Refuse, Request, in_front_of
from tests.support.servers_lake import Lake
from tests.support.servers_reached import ACCOUNT, ACCOUNT_KEY, Contestant

pytestmark = pytest.mark.stores

HOUR = timedelta(hours=1)
MOST = 8
"""Requests with one token, after which it has expired: some are sent at the same time."""
OURS = ("AZURE_", "GOOGLE_", "GCE_", "METADATA_", "IDENTITY_")
WHOSE = ((r"/in/", "a worker, of the source"), (r"\.parquet", "a worker, of the table"),
         (r"/journal", "the driver"), (r"/_delta_log", "the library of the Delta log"))  # fmt: skip


@dataclass
class Issuer:
    """Gives tokens that are over at once, and takes each of them for a few requests."""

    given: list[str] = field(default_factory=list)
    used: Counter[str] = field(default_factory=Counter)
    by: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    refused: list[str] = field(default_factory=list)

    def issue(self, _asked: Asked) -> Given:
        self.given.append(f"token-{len(self.given)}")
        over = str(int((datetime.now(UTC) - HOUR).timestamp()))
        token = {"access_token": self.given[-1], "token_type": "Bearer", "resource": "r"}
        # Google counts from now, Azure says when.
        return Given(200, json.dumps({**token, "expires_in": 0, "expires_on": over}))

    def rule(self, request: Request) -> Fault | None:
        self.used[request.session] += 1
        where = " ".join([unquote(request.path), *request.query.get("prefix", [])])
        for sign, who in WHOSE:
            if re.search(sign, where):
                self.by[who].add(request.session)
        if request.session in self.given and self.used[request.session] <= MOST:
            return None
        self.refused.append(request.session)
        return Refuse(401, b"<Error><Code>InvalidAuthenticationInfo</Code></Error>")


def azure_identity(place: Answering, proxy: Proxy) -> dict[str, str]:
    """Return options without a key: the identity of the machine is asked for tokens."""
    proxy.signature = generate_account_sas(
        ACCOUNT,
        ACCOUNT_KEY,
        resource_types="sco",
        permission="rwdlac",
        expiry=datetime.now(UTC) + HOUR,
        services="b",
    )
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ENDPOINT": f"{proxy.address}/{ACCOUNT}",
        "AZURE_ALLOW_HTTP": "true",
        "AZURE_MSI_ENDPOINT": f"{place.address}/msi",
    }


def google_machine(_place: Answering, proxy: Proxy) -> dict[str, str]:
    """Return options without a key: the metadata of the machine are asked for tokens."""
    return {"GOOGLE_BASE_URL": proxy.address, "GOOGLE_ALLOW_HTTP": "true"}


KEYLESS: dict[str, Callable[[Answering, Proxy], dict[str, str]]] = {
    "azurite": azure_identity,
    "google": google_machine,
}


@contextmanager
def behind_a_login(
    remote: Contestant, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Contestant]:
    """Put the proxy before a store, and the issuer where tokens are asked for."""
    with answering() as place, in_front_of(remote.address) as proxy:
        place.answer, proxy.rule = issuer.issue, issuer.rule
        monkeypatch.setenv("GCE_METADATA_HOST", place.address.removeprefix("http://"))
        options = KEYLESS[remote.name](place, proxy)
        yield replace(remote, address=proxy.address, access=lambda _address: options)


@pytest.fixture(autouse=True)
def nothing_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take every credential of this machine away, those in the home folder included."""
    for name in [each for each in os.environ if each.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("name", KEYLESS)
def test_tokens_that_expire_in_mid_batch_are_renewed_and_every_row_is_in_the_table_once(
    running: dict[str, Contestant], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By the driver, by the stores that workers open, and by the Delta log's library."""
    remote, issuer = running[name], Issuer()
    with behind_a_login(remote, issuer, monkeypatch) as keyless:
        lake = Lake(keyless, tmp_path, Handoff.JOURNAL)
        lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
        lake.life(Fate.none())
        lake.land("date=2024-01-02/c.ndjson", "date=2024-01-03/d.ndjson")
        lake.life(Fate.none())
    lake.contestant = remote
    lake.balances()
    assert issuer.refused == []
    assert {who: len(tokens) > 1 for who, tokens in issuer.by.items()} == {
        who: True for _sign, who in WHOSE
    }
