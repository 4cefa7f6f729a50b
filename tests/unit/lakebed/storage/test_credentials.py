"""The usual chains of credentials, against a loopback that gives some; they are renewed in time."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakebed.errors import StoreUnavailable
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from tests.support.answering import Answering, Asked, Given, answering
from tests.support.s3 import QUICK

HOUR = timedelta(hours=1)
OURS = ("AWS_", "AZURE_", "GOOGLE_", "IDENTITY_", "GCE_", "METADATA_")


@pytest.fixture(autouse=True)
def nothing_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take every credential of this machine away, those in the home folder included."""
    for name in [each for each in os.environ if each.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def place() -> Iterator[Answering]:
    with answering() as found:
        yield found


def session(number: int, lasts: timedelta) -> str:
    """Return credentials of a session, as the endpoints of Amazon write them."""
    return json.dumps(
        {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": f"KEY{number}",
            "SecretAccessKey": "canary-secret",
            "Token": f"session-{number}",
            "Expiration": (datetime.now(UTC) + lasts).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    )


def sessions_of(asked: list[Asked]) -> list[str]:
    """Return which session each request to the store was signed in."""
    return [each.headers["x-amz-security-token"] for each in asked if "/lake/" in each.path]


def s3(place: Answering, **options: str) -> Store:
    given = {"AWS_ENDPOINT": place.address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    return Store("s3://lake/in", StorageOptions({**given, **options}), retry=QUICK)


def test_a_container_is_given_credentials_which_are_renewed(place, monkeypatch, tmp_path):
    """A session that is over when it is given serves one request: the next needs another one."""
    token = tmp_path / "token"
    token.write_text("canary-token")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{place.address}/credentials")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
    lasts = [-HOUR]
    given: list[str] = []

    def answer(asked: Asked) -> Given:
        if asked.path == "/credentials":
            assert asked.headers["authorization"] == "canary-token"
            given.append(asked.path)
            return Given(200, session(len(given), lasts[0]))
        return Given(404)

    place.answer = answer
    store = s3(place)
    store.get("a")
    store.get("b")
    lasts[0] = HOUR
    store.get("c")
    store.get("d")
    assert sessions_of(place.asked) == ["session-1", "session-2", "session-3", "session-3"]


def test_a_machine_is_given_the_credentials_of_its_role(place):
    def answer(asked: Asked) -> Given:
        if asked.path == "/latest/api/token":
            return Given(200, "imds")
        if asked.path == "/latest/meta-data/iam/security-credentials/":
            return Given(200, "role")
        if asked.path == "/latest/meta-data/iam/security-credentials/role":
            assert asked.headers["x-aws-ec2-metadata-token"] == "imds"
            return Given(200, session(1, HOUR))
        return Given(404)

    place.answer = answer
    s3(place, AWS_METADATA_ENDPOINT=place.address).get("a")
    assert sessions_of(place.asked) == ["session-1"]


def test_a_web_identity_is_exchanged_for_credentials_over_tls_alone(monkeypatch, tmp_path):
    token = tmp_path / "token"
    token.write_text("canary-jwt")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
    until = (datetime.now(UTC) + HOUR).strftime("%Y-%m-%dT%H:%M:%SZ")

    def answer(asked: Asked) -> Given:
        if "/lake/" in asked.path:
            return Given(404)
        assert "AssumeRoleWithWebIdentity" in asked.path
        return Given(
            200,
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
            "<SessionToken>session-1</SessionToken><SecretAccessKey>s</SecretAccessKey>"
            f"<Expiration>{until}</Expiration><AccessKeyId>K</AccessKeyId></Credentials>"
            "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
        )

    with answering(secure=True) as place:
        place.answer = answer
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", place.address)
        s3(place, allow_invalid_certificates="true").get("a")
        assert sessions_of(place.asked) == ["session-1"]


def test_a_certificate_that_is_not_trusted_is_told():
    with answering(secure=True) as place, pytest.raises(StoreUnavailable, match="not trusted; it"):
        s3(place, AWS_SKIP_SIGNATURE="true").get("a")


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


def test_a_managed_identity_is_given_a_token_which_is_renewed(place):
    given: list[str] = []
    lasts = [-HOUR]

    def answer(asked: Asked) -> Given:
        if "lake" in asked.path:
            return Given(404)
        given.append(asked.path)
        until = str(int((datetime.now(UTC) + lasts[0]).timestamp()))
        token = {"access_token": f"t{len(given)}", "expires_in": "1", "expires_on": until}
        return Given(200, json.dumps({**token, "resource": "r", "token_type": "Bearer"}))

    place.answer = answer
    store = azure(place, AZURE_MSI_ENDPOINT=f"{place.address}/msi")
    store.get("a")
    store.get("b")
    lasts[0] = HOUR
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


def test_a_machine_of_google_is_given_a_token_which_is_renewed(place, monkeypatch):
    monkeypatch.setenv("GCE_METADATA_HOST", place.address.removeprefix("http://"))
    given: list[str] = []
    lasts = [0]

    def answer(asked: Asked) -> Given:
        if "/lake/" in asked.path:
            return Given(404)
        assert asked.headers["metadata-flavor"] == "Google"
        given.append(asked.path)
        token = {"access_token": f"t{len(given)}", "expires_in": lasts[0], "token_type": "Bearer"}
        return Given(200, json.dumps(token))

    place.answer = answer
    options = {"GOOGLE_BASE_URL": place.address, "GOOGLE_ALLOW_HTTP": "true"}
    store = Store("gs://lake/in", StorageOptions(options), retry=QUICK)
    store.get("a")
    store.get("b")
    lasts[0] = 7200
    store.get("c")
    store.get("d")
    assert bearers(place.asked) == ["Bearer t1", "Bearer t2", "Bearer t3", "Bearer t3"]
