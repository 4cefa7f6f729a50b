"""Credentials that expire in the middle of a batch: both programs go on with new ones."""

import json
import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakebed.types import Handoff
from tests.support.answering import Asked, Given, answering
from tests.support.dying import Fate
from tests.support.faulty import Fault, Refuse, Request, in_front_of
from tests.support.s3 import options
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant

HOUR = timedelta(hours=1)
MOST = 8
"""Requests in one session, after which it has expired: some are sent at the same time."""


def keyless(address: str) -> dict[str, str]:
    """Return the options of a store whose credentials are those of a container."""
    return {"AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}


def test_sessions_that_expire_in_mid_batch_are_renewed_and_every_row_is_in_the_table_once(
    s3: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store refuses a session after a few requests, as it does one that has expired."""
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text("canary")
    given: list[str] = []
    used: Counter[str] = Counter()
    refused: list[str] = []

    def issue(_asked: Asked) -> Given:
        given.append(f"session-{len(given)}")
        session = {
            "AccessKeyId": "KEY",
            "SecretAccessKey": "canary-secret",
            "Token": given[-1],
            "Expiration": (datetime.now(UTC) - HOUR).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return Given(200, json.dumps(session))

    def rule(request: Request) -> Fault | None:
        used[request.session] += 1
        if request.session in given and used[request.session] <= MOST:
            return None
        refused.append(request.session)
        return Refuse(400, b"<Error><Code>ExpiredToken</Code></Error>")

    with answering() as issuer, in_front_of(s3) as proxy:
        issuer.answer, proxy.rule = issue, rule
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{issuer.address}/given")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
        keyless_one = Contestant("moto", "s3", proxy.address, keyless, f"s3://{bucket}")
        lake = Lake(keyless_one, tmp_path, Handoff.STAGING)
        lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
        lake.life(Fate.none())
        sessions = len(used)
    lake.contestant = Contestant("moto", "s3", s3, options, f"s3://{bucket}")
    lake.balances()
    assert refused == []
    assert sessions > 20
