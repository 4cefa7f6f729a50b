"""Profiles of AWS that lead to keys: every library is told them, and an open store renews them."""

import hashlib
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakebed.errors import ConfigInvalid, StoreUnavailable
from lakebed.storage.store import Store
from tests.support.answering import Answering, Asked, Given, error
from tests.support.s3 import QUICK
from tests.unit.lakebed.storage.test_profiles import (
    LIBRARIES,
    by_every_library,
    given,
    home,
    place,
    signed,
)

__all__ = ["home", "place"]

SOON = timedelta(minutes=4)
"""botocore renews at once what is over so soon, and so does the store's library."""
PROGRAM = """
import json, pathlib, sys
count = pathlib.Path(sys.argv[1])
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
if pathlib.Path(sys.argv[1] + ".fails").exists():
    sys.exit("canary-words of a program")
keys = {"AccessKeyId": f"KEY{number}", "SecretAccessKey": "canary-secret"}
print(json.dumps({"Version": 1, **keys, "SessionToken": f"session-{number}",
                  "Expiration": sys.argv[2]}))
"""

LOOK = """
import sys
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
where = {"AWS_ENDPOINT": sys.argv[1], "AWS_ALLOW_HTTP": "true", "AWS_PROFILE": "leads"}
assert Store("s3://lake/in", StorageOptions(where)).get("a") is None
"""


def instant(lasts: timedelta) -> str:
    return (datetime.now(UTC) + lasts).strftime("%Y-%m-%dT%H:%M:%SZ")


def profile(home: Path, text: str) -> None:
    (home / ".aws/config").write_text(f"[profile leads]\n{text}\n")


def by_a_program(home: Path, lasts: timedelta = SOON) -> Path:
    """Have a profile whose keys a program gives; return the file that makes it fail."""
    (home / "program.py").write_text(PROGRAM)
    count = home / "count"
    command = f"{sys.executable} {home}/program.py {count} {instant(lasts)}"
    profile(home, f"credential_process = {command}")
    return home / "count.fails"


def test_keys_of_a_program_are_those_of_every_library(place: Answering, home: Path):
    """It is run once for all of them."""
    by_a_program(home, timedelta(hours=1))
    found = by_every_library(place, given(place, AWS_PROFILE="leads"))
    assert found == dict.fromkeys(LIBRARIES, ("KEY1", "us-east-1", "session-1"))


def test_a_role_is_assumed_with_the_keys_of_another_profile(
    place: Answering, home: Path, monkeypatch: pytest.MonkeyPatch
):
    profile(home, "role_arn = arn:aws:iam::1:role/r\nsource_profile = plain\nregion = eu-north-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", place.address)
    keys = "<AccessKeyId>ROLEKEY</AccessKeyId><SecretAccessKey>canary-secret</SecretAccessKey>"
    session = f"{keys}<SessionToken>role</SessionToken><Expiration>{instant(SOON)}</Expiration>"
    answer = f"<AssumeRoleResult><Credentials>{session}</Credentials></AssumeRoleResult>"
    asked_for: list[str] = []

    def answered(asked: Asked) -> Given:
        if asked.path == "/":
            asked_for.append(asked.headers["Authorization"])
            return Given(200, f"<AssumeRoleResponse>{answer}</AssumeRoleResponse>")
        return error(404, "NoSuchKey")

    place.answer = answered
    Store("s3://lake/in", given(place, AWS_PROFILE="leads"), retry=QUICK).get("a")
    assert "Credential=PLAINKEY/" in asked_for[0]
    assert signed(place.asked[-1]) == ("ROLEKEY", "eu-north-1", "role")


def test_a_single_sign_on_is_followed_as_long_as_it_lasts(
    place: Answering, home: Path, monkeypatch: pytest.MonkeyPatch
):
    text = """sso_session = mine
sso_account_id = 123456789012
sso_role_name = reader
[sso-session mine]
sso_start_url = https://example.awsapps.com/start
sso_region = us-east-1"""
    profile(home, text)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSO", place.address)
    login = {"accessToken": "canary-login", "expiresAt": instant(timedelta(hours=1))}
    name = hashlib.sha1(b"mine", usedforsecurity=False).hexdigest()
    (home / ".aws/sso/cache").mkdir(parents=True)
    (home / f".aws/sso/cache/{name}.json").write_text(json.dumps(login))
    until = int((datetime.now(UTC) + SOON).timestamp() * 1000)
    keys = {"accessKeyId": "SSOKEY", "secretAccessKey": "canary-secret", "sessionToken": "sso"}

    def answered(asked: Asked) -> Given:
        if asked.path.startswith("/federation/credentials"):
            assert asked.headers["x-amz-sso_bearer_token"] == "canary-login"
            return Given(200, json.dumps({"roleCredentials": {**keys, "expiration": until}}))
        return error(404, "NoSuchKey")

    place.answer = answered
    # In a process of its own: the library looks once where the home folder is.
    subprocess.run([sys.executable, "-c", LOOK, place.address], check=True)
    assert signed(place.asked[-1]) == ("SSOKEY", "us-east-1", "sso")


def test_an_open_store_renews_keys_that_are_over_soon(place: Answering, home: Path):
    by_a_program(home)
    store = Store("s3://lake/in", given(place, AWS_PROFILE="leads"), retry=QUICK)
    for name in ("a", "b", "c"):
        store.get(name)
    used = [signed(each) for each in place.asked]
    assert len(set(used)) == 3
    assert all(key.removeprefix("KEY") == token.removeprefix("session-") for key, _, token in used)


def test_keys_that_last_are_asked_for_once(place: Answering, home: Path):
    by_a_program(home, timedelta(hours=1))
    for name in ("a", "b"):
        Store("s3://lake/in", given(place, AWS_PROFILE="leads"), retry=QUICK).get(name)
    assert (home / "count").read_text() == "1"


def test_a_program_that_fails_is_told_without_its_words(place: Answering, home: Path):
    by_a_program(home).touch()
    with pytest.raises(ConfigInvalid) as raised:
        Store("s3://lake/in", given(place, AWS_PROFILE="leads"))
    told = str(raised.value)
    assert "source.storage_options.AWS_PROFILE: names a profile that led to no keys" in told
    assert "[CredentialRetrievalError]" in told
    assert "canary" not in told


def test_keys_that_cannot_be_renewed_are_an_outage_and_no_fault(place: Answering, home: Path):
    """Whoever runs for long goes on when somebody has logged in again."""
    fails = by_a_program(home)
    store = Store("s3://lake/in", given(place, AWS_PROFILE="leads"), retry=QUICK)
    store.get("a")
    fails.touch()
    for ask in (lambda: store.get("b"), lambda: opened_again(place)):
        with pytest.raises(StoreUnavailable, match="leads to no new keys") as raised:
            ask()
        assert "canary" not in str(raised.value)
    fails.unlink()
    assert store.get("c") is None


def opened_again(place: Answering) -> Any:
    return Store("s3://lake/in", given(place, AWS_PROFILE="leads"), retry=QUICK)


def test_without_the_package_it_is_told_what_to_install(
    place: Answering, home: Path, monkeypatch: pytest.MonkeyPatch
):
    by_a_program(home)
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(ConfigInvalid, match=r"pip install 'blizzard-penguin\[aws\]'"):
        Store("s3://lake/in", given(place, AWS_PROFILE="leads"))
