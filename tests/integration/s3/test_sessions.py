"""Credentials that expire in the middle of a batch: both programs go on with new ones."""

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakebed.types import Handoff
from tests.support.answering import Asked, Given, answering
from tests.support.cluster import process_at
from tests.support.dying import Fate
from tests.support.faulty import Fault, Refuse, Request, in_front_of
from tests.support.lives import Programs
from tests.support.pipelines import pipeline_of
from tests.support.s3 import options
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant
from tests.support.spark import shared_runner

HOUR = timedelta(hours=1)
FILES = 24
"""Source files of one unit, of which a worker reads some at the same time."""
PAUSE = 0.3
"""Seconds a file's answer takes: a library does not ask for keys again within 0.1 s."""


@dataclass
class Issuer:
    """Gives sessions that are over at once, and takes each of them for a few requests."""

    most: int
    """Requests in one session, after which it has expired: some are sent at the same time."""
    given: list[str] = field(default_factory=list)
    used: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    seen: Callable[[Request], None] = lambda _request: None

    def issue(self, _asked: Asked) -> Given:
        self.given.append(f"session-{len(self.given)}")
        session = {
            "AccessKeyId": "KEY",
            "SecretAccessKey": "canary-secret",
            "Token": self.given[-1],
            "Expiration": (datetime.now(UTC) - HOUR).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return Given(200, json.dumps(session))

    def of_the_machine(self, asked: Asked) -> Given:
        """Answer as the metadata of a machine with a role do."""
        if asked.path.endswith("/token"):
            return Given(200, "canary")
        return Given(200, "role") if asked.path.endswith("/") else self.issue(asked)

    def rule(self, request: Request) -> Fault | None:
        self.seen(request)
        self.used[request.session] += 1
        if request.session in self.given and self.used[request.session] <= self.most:
            return None
        self.refused.append(request.session)
        return Refuse(400, b"<Error><Code>ExpiredToken</Code></Error>")


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
    sessions = Issuer(most=8)
    with answering() as place, in_front_of(s3) as proxy:
        place.answer, proxy.rule = sessions.issue, sessions.rule
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{place.address}/given")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
        keyless_one = Contestant("moto", "s3", proxy.address, keyless, f"s3://{bucket}")
        lake = Lake(keyless_one, tmp_path, Handoff.STAGING)
        lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
        lake.life(Fate.none())
    lake.contestant = Contestant("moto", "s3", s3, options, f"s3://{bucket}")
    lake.balances()
    assert sessions.refused == []
    assert len(sessions.used) > 20


@pytest.mark.spark
def test_python_workers_of_spark_renew_their_sessions_in_the_middle_of_a_unit(s3, bucket, tmp_path):
    """One unit reads more files than a session lasts for, in a process that Spark started."""
    sessions = Issuer(most=FILES - 1)
    by_process: defaultdict[int, list[str]] = defaultdict(list)

    def seen(request: Request) -> None:
        if request.kind == "get" and "/in/" in request.path:
            by_process[process_at(request.port)].append(request.session)
            time.sleep(PAUSE)

    with answering() as place, in_front_of(s3) as proxy:
        place.answer, proxy.rule = sessions.of_the_machine, sessions.rule
        sessions.seen = seen
        machine = {"AWS_METADATA_ENDPOINT": place.address}
        lake = Lake(
            Contestant(
                "moto", "s3", s3, lambda at: {**keyless(at), **machine}, f"s3://{bucket}/spark"
            ),
            tmp_path,
            address=proxy.address,
        )
        lake.source = Contestant("moto", "s3", s3, options, "").open(f"{lake.uri}/in")
        lake.land(*(f"date=2024-01-01/{number}.ndjson" for number in range(FILES)))
        (settings,) = lake.programs.pipelines
        pipeline = pipeline_of(settings, shared_runner())
        while pipeline.step():
            pass
    lake.contestant, lake.address = Contestant("moto", "s3", s3, options, ""), s3
    lake.programs = Programs(lake.config())
    lake.programs.penguin(Fate.none())
    lake.balances()
    assert sessions.refused == []
    (read,) = by_process.values()
    assert len(read) == FILES
    assert len(set(read)) > 1
