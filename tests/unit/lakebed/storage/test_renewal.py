"""The usual chains of credentials, against a loopback that gives some; they are renewed in time."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakebed.deltalog.tables import location, options_for
from lakebed.errors import StoreMisconfigured, StoreUnavailable
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.answering import Answering, Asked, Given, answering, error
from tests.support.s3 import QUICK

OURS = ("AWS_", "AZURE_", "GOOGLE_", "IDENTITY_", "GCE_", "METADATA_")
HOUR = timedelta(hours=1)
REQUESTS = 6
STORE = "/lake"


@dataclass
class Issuer:
    """Hands out sessions that are over at once; the store takes each of them for one request."""

    lasts: timedelta = -HOUR
    given: int = 0
    used: list[str] = field(default_factory=list)
    strict: bool = True

    def session(self) -> dict[str, str]:
        self.given += 1
        return {
            "AccessKeyId": f"KEY{self.given}",
            "SecretAccessKey": "canary-secret",
            "Token": f"session-{self.given}",
            "Expiration": (datetime.now(UTC) + self.lasts).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def answer(self, asked: Asked) -> Given:
        if asked.path.startswith(STORE):
            token = asked.headers["x-amz-security-token"]
            if self.strict and token in self.used:
                return error(400, "ExpiredToken")
            self.used.append(token)
            return error(404, "NoSuchKey")
        if asked.path == "/latest/api/token":
            return Given(200, "imds")
        if asked.path == "/latest/meta-data/iam/security-credentials/":
            return Given(200, "role")
        if "AssumeRoleWithWebIdentity" in asked.path:
            return Given(200, _as_xml(self.session()))
        if asked.path == "/given":
            assert asked.headers["authorization"] == "canary-jwt"
        else:
            assert asked.headers["x-aws-ec2-metadata-token"] == "imds"
        return Given(200, json.dumps({"Code": "Success", "Type": "AWS-HMAC", **self.session()}))


def _as_xml(session: dict[str, str]) -> str:
    renamed = {"Token": "SessionToken"}
    inside = "".join(
        f"<{renamed.get(name, name)}>{value}</{renamed.get(name, name)}>"
        for name, value in session.items()
    )
    for tag in ("Credentials", "AssumeRoleWithWebIdentityResult"):
        inside = f"<{tag}>{inside}</{tag}>"
    return f"<AssumeRoleWithWebIdentityResponse>{inside}</AssumeRoleWithWebIdentityResponse>"


@pytest.fixture(autouse=True)
def nothing_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take every credential of this machine away, those in the home folder included."""
    for name in [each for each in os.environ if each.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(params=["container", "machine", "web identity"])
def way(request, monkeypatch, tmp_path) -> Iterator[tuple[Answering, Issuer, dict[str, str]]]:
    """Give credentials in one of the ways; return the options by which they are found."""
    issuer = Issuer()
    (tmp_path / "token").write_text("canary-jwt")
    with answering(secure=request.param == "web identity") as place:
        place.answer = issuer.answer
        options: dict[str, str] = {}
        match request.param:
            case "container":
                monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{place.address}/given")
                monkeypatch.setenv(
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token")
                )
            case "machine":
                options["AWS_METADATA_ENDPOINT"] = place.address
            case _:
                monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
                monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
                monkeypatch.setenv("AWS_ENDPOINT_URL_STS", place.address)
                options["allow_invalid_certificates"] = "true"
        yield place, issuer, options


def opened(place: Answering, **options: str) -> Store:
    where = {"AWS_ENDPOINT": place.address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    return Store("s3://lake/in", StorageOptions({**where, **options}), retry=QUICK)


def numbers(tokens: list[str]) -> list[int]:
    return [int(token.removeprefix("session-")) for token in tokens]


def test_a_store_that_is_open_for_longer_than_its_session_goes_on(way):
    """Each session serves one request here: the next comes with another, and none is refused."""
    place, issuer, options = way
    store = opened(place, **options)
    for number in range(REQUESTS):
        assert store.get(f"{number}") is None
    assert len(issuer.used) == REQUESTS
    assert all(before < after for before, after in pairwise(numbers(issuer.used)))
    assert issuer.given <= REQUESTS + 1


def test_a_session_that_lasts_is_asked_for_once(way):
    place, issuer, options = way
    issuer.lasts, issuer.strict = HOUR, False
    store = opened(place, **options)
    for number in range(REQUESTS):
        store.get(f"{number}")
    assert (set(issuer.used), issuer.given) == ({"session-1"}, 1)


def test_the_delta_log_is_reached_with_sessions_that_are_renewed(way):
    """The library of the Delta log asks for its own, and renews them in the same way."""
    place, issuer, options = way
    store = opened(place, **options)
    for _again in range(2):
        with suppress(DeltaError, OSError):
            DeltaTable(location(store.uri), storage_options=options_for(store))
    assert len(issuer.used) >= 3
    assert all(before < after for before, after in pairwise(numbers(issuer.used)))
    assert not re.search("ExpiredToken", " ".join(each.path for each in place.asked))


def test_a_session_that_the_store_takes_for_over_is_told(way):
    place, issuer, options = way
    issuer.lasts = HOUR
    store = opened(place, **options)
    store.get("a")
    with pytest.raises(StoreMisconfigured, match="does not accept the credentials"):
        store.get("b")


def test_a_certificate_that_is_not_trusted_is_told():
    with (
        answering(secure=True) as place,
        pytest.raises(StoreUnavailable, match=r"(?i)invalid ?(peer )?certificate"),
    ):
        opened(place, AWS_SKIP_SIGNATURE="true").get("a")


def bearers(asked: list[Asked]) -> list[str]:
    """Return the token that each request to the store came with."""
    return [each.headers["authorization"] for each in asked if "lake" in each.path]


def azure(place: Answering, **options: str) -> Store:
    given = {
        "AZURE_STORAGE_ENDPOINT": place.address,
        "AZURE_ALLOW_HTTP": "true",
        "AZURE_STORAGE_ACCOUNT_NAME": "acc",
    }
    return Store("az://lake/in", StorageOptions({**given, **options}), retry=QUICK)


@pytest.mark.parametrize("machine", ["azure", "google"])
def test_a_machine_is_given_a_token_which_is_renewed(place, monkeypatch, machine):
    """By Azure's managed identity and by Google's metadata: one that is over serves one request."""
    given: list[str] = []
    lasts = [-HOUR]

    def answer(asked: Asked) -> Given:
        if "lake" in asked.path:
            return Given(404)
        given.append(asked.path)
        token = {"access_token": f"t{len(given)}", "expires_in": 1, "token_type": "Bearer"}
        if machine == "google":
            assert asked.headers["metadata-flavor"] == "Google"
            left = max(0, int(lasts[0].total_seconds()))
            return Given(200, json.dumps({**token, "expires_in": left}))
        until = str(int((datetime.now(UTC) + lasts[0]).timestamp()))
        return Given(
            200, json.dumps({**token, "expires_in": "1", "expires_on": until, "resource": "r"})
        )

    place.answer = answer
    if machine == "azure":
        store = azure(place, AZURE_MSI_ENDPOINT=f"{place.address}/msi")
    else:
        monkeypatch.setenv("GCE_METADATA_HOST", place.address.removeprefix("http://"))
        options = {"GOOGLE_BASE_URL": place.address, "GOOGLE_ALLOW_HTTP": "true"}
        store = Store("gs://lake/in", StorageOptions(options), retry=QUICK)
    store.get("a")
    store.get("b")
    lasts[0] = 2 * HOUR
    store.get("c")
    store.get("d")
    assert bearers(place.asked) == ["Bearer t1", "Bearer t2", "Bearer t3", "Bearer t3"]


def test_a_workload_identity_is_exchanged_for_a_token(place, tmp_path):
    token = tmp_path / "token"
    token.write_text("canary-jwt")

    def answer(asked: Asked) -> Given:
        if "lake" in asked.path:
            return Given(404)
        assert asked.path == "/tenant/oauth2/v2.0/token"
        return Given(200, json.dumps({"access_token": "t1", "expires_in": 7200}))

    place.answer = answer
    azure(
        place,
        AZURE_FEDERATED_TOKEN_FILE=str(token),
        AZURE_CLIENT_ID="client",
        AZURE_TENANT_ID="tenant",
        AZURE_AUTHORITY_HOST=place.address,
    ).get("a")
    assert bearers(place.asked) == ["Bearer t1"]
