"""Profiles of AWS are the same keys for every library, and no token joins another's key."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakebed.deltalog.tables import location, options_for
from lakebed.errors import ConfigInvalid, LakeError, StoreMisconfigured
from lakebed.storage import settings, unusable_names
from lakebed.storage.options import OptionOrigin, StorageOptions
from lakebed.storage.store import Store
from tests.support.answering import Answering, Asked, answering, error
from tests.support.s3 import QUICK

OURS = ("AWS_", "BOTO")
KEYS = {"AWS_ACCESS_KEY_ID": "SECTIONKEY", "AWS_SECRET_ACCESS_KEY": "canary-secret"}
OUTSIDE = {"AWS_ACCESS_KEY_ID": "OUTSIDEKEY", "AWS_SECRET_ACCESS_KEY": "canary-secret"}
CREDENTIALS = """\
[default]
aws_access_key_id = DEFAULTKEY
aws_secret_access_key = canary-secret

[plain]
aws_access_key_id = PLAINKEY
aws_secret_access_key = canary-secret/with+%signs
"""
CONFIG = """\
[default]
region = ap-south-1

[profile plain]
region = eu-north-1
s3 =
  max_concurrent_requests = 20

[profile session]
aws_access_key_id = SESSIONKEY
aws_secret_access_key = canary-secret
aws_session_token = canary-token

[profile empty]
output = json

[profile sso]
sso_session = mine
"""


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Have a home folder with profiles, and nothing of this machine."""
    for name in [each for each in os.environ if each.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws/config").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def place() -> Iterator[Answering]:
    with answering() as found:
        found.answer = lambda _asked: error(404, "NoSuchKey")
        yield found


def given(place: Answering, **options: str) -> StorageOptions:
    where = {"AWS_ENDPOINT": place.address, "AWS_ALLOW_HTTP": "true"}
    origin = OptionOrigin(place="source.path", section="source.storage_options")
    return StorageOptions({**where, **options}, origin)


def signed(asked: Asked) -> tuple[str, str, str]:
    """Return key, region and token of a request."""
    headers = {name.lower(): value for name, value in asked.headers.items()}
    found = re.search(r"Credential=([^/]+)/\d+/([^/]+)/s3/", headers["authorization"])
    assert found is not None
    return found[1], found[2], headers.get("x-amz-security-token", "")


def by_every_library(place: Answering, options: StorageOptions) -> dict[str, tuple[str, str, str]]:
    """Return what each library signs with: for objects, the Delta log and odd names."""
    store = Store("s3://lake/in", options, retry=QUICK)
    found: dict[str, tuple[str, str, str]] = {}

    def asks_delta() -> None:
        DeltaTable(location(store.uri), storage_options=options_for(store))

    def asks_arrow() -> None:
        unusable_names.names(store.uri, "a", options)

    for name, ask in {
        "obstore": lambda: store.get("a"),
        "deltalake": asks_delta,
        "arrow": asks_arrow,
    }.items():
        place.asked.clear()
        with suppress(LakeError, DeltaError, OSError):
            ask()
        (found[name],) = {signed(each) for each in place.asked}
    return found


LIBRARIES = ("obstore", "deltalake", "arrow")


@pytest.mark.parametrize(
    ("section", "outside", "expected"),
    [
        ({}, {"AWS_PROFILE": "plain"}, ("PLAINKEY", "eu-north-1", "")),
        ({}, {"AWS_DEFAULT_PROFILE": "plain"}, ("PLAINKEY", "eu-north-1", "")),
        ({}, {"AWS_PROFILE": "session"}, ("SESSIONKEY", "us-east-1", "canary-token")),
        ({}, {}, ("DEFAULTKEY", "ap-south-1", "")),
        ({}, {**OUTSIDE, "AWS_PROFILE": "plain"}, ("OUTSIDEKEY", "us-east-1", "")),
        ({}, {**OUTSIDE, "AWS_SESSION_TOKEN": "t"}, ("OUTSIDEKEY", "us-east-1", "t")),
        ({"AWS_PROFILE": "plain"}, OUTSIDE, ("PLAINKEY", "eu-north-1", "")),
        ({"profile": "plain"}, {"AWS_PROFILE": "session"}, ("PLAINKEY", "eu-north-1", "")),
        ({"AWS_PROFILE": "plain", "AWS_REGION": "x-1"}, {}, ("PLAINKEY", "x-1", "")),
        ({"AWS_PROFILE": "plain"}, {"AWS_REGION": "x-1"}, ("PLAINKEY", "x-1", "")),
        (KEYS, {"AWS_PROFILE": "plain"}, ("SECTIONKEY", "us-east-1", "")),
        (KEYS, {"AWS_PROFILE": "not there"}, ("SECTIONKEY", "us-east-1", "")),
        (KEYS, {**OUTSIDE, "AWS_SESSION_TOKEN": "t"}, ("SECTIONKEY", "us-east-1", "")),
        (KEYS, {"AWS_TOKEN": "t", "AWS_SESSION_TOKEN": "t"}, ("SECTIONKEY", "us-east-1", "")),
        ({"AWS_PROFILE": "plain"}, {"AWS_SESSION_TOKEN": "t"}, ("PLAINKEY", "eu-north-1", "")),
    ],
    ids=str,
)
def test_every_library_signs_with_the_same_key(place, monkeypatch, section, outside, expected):
    for name, value in outside.items():
        monkeypatch.setenv(name, value)
    assert by_every_library(place, given(place, **section)) == dict.fromkeys(LIBRARIES, expected)


def test_a_key_without_a_token_sends_none_not_even_an_empty_one(place, monkeypatch):
    """Some stores refuse an empty one."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "t")
    Store("s3://lake/in", given(place, **KEYS), retry=QUICK).get("a")
    assert [each for each in place.asked if "x-amz-security-token" in each.headers] == []


def test_the_files_may_be_elsewhere(place, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "mine"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    (tmp_path / "mine").write_text("[p]\naws_access_key_id=MINE\naws_secret_access_key=s\n")
    found = by_every_library(place, given(place, AWS_PROFILE="p"))
    assert found == dict.fromkeys(LIBRARIES, ("MINE", "us-east-1", ""))


def test_an_endpoint_of_a_profile_is_used_and_must_be_allowed(place, home):
    with (home / ".aws/credentials").open("a") as file:
        file.write(f"endpoint_url = {place.address}\n")
    Store("s3://lake/in", StorageOptions({"AWS_PROFILE": "plain", "AWS_ALLOW_HTTP": "true"})).get(
        "a"
    )
    assert signed(place.asked[0])[0] == "PLAINKEY"
    with pytest.raises(ConfigInvalid, match="is http://, which is not encrypted"):
        Store("s3://lake/in", StorageOptions({"AWS_PROFILE": "plain"}))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("nobody", "names a profile that is in neither of the files of ~/.aws"),
        ("empty", r"that led to no keys \[NoCredentials\]; see what `aws sts"),
        ("sso", r"that led to no keys \[\w+\]; see what `aws sts"),
    ],
)
def test_a_profile_that_cannot_be_used_is_told_with_its_key(place, monkeypatch, name, fault):
    where = "source.storage_options.AWS_PROFILE"
    with pytest.raises(ConfigInvalid, match=f"{where}: .*{fault}"):
        Store("s3://lake/in", given(place, AWS_PROFILE=name))
    monkeypatch.setenv("AWS_PROFILE", name)
    with pytest.raises(ConfigInvalid, match=f"the environment variable AWS_PROFILE: .*{fault}"):
        Store("s3://lake/in", given(place))


def test_a_file_that_cannot_be_read_is_named_without_its_content(place, home):
    (home / ".aws/credentials").write_text("canary-secret\n")
    with pytest.raises(ConfigInvalid, match=r"files of ~/\.aws cannot be read") as found:
        Store("s3://lake/in", given(place, AWS_PROFILE="plain"))
    assert "canary" not in str(found.value)


def test_a_profile_beside_a_key_is_a_contradiction(place):
    with pytest.raises(ConfigInvalid, match=r"AWS_PROFILE: is a profile, and AWS_ACCESS_KEY_ID is"):
        Store("s3://lake/in", given(place, AWS_PROFILE="plain", **KEYS))


def test_a_web_identity_comes_before_profiles_that_the_section_does_not_name(
    place, monkeypatch, tmp_path
):
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    config, _client = settings.split(
        given(place).plain(), uri="s3://lake/in", environment=os.environ
    )
    assert "aws_access_key_id" not in config


def test_other_stores_read_no_profiles(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    Store("gs://lake/in", StorageOptions({"GOOGLE_SKIP_SIGNATURE": "true"}))


def test_a_refused_key_of_a_profile_is_told_by_the_profile(place, monkeypatch):
    place.answer = lambda _asked: error(403, "InvalidAccessKeyId")
    with pytest.raises(StoreMisconfigured, match=r"renew source\.storage_options\.AWS_PROFILE"):
        Store("s3://lake/in", given(place, AWS_PROFILE="plain")).get("a")
    monkeypatch.setenv("AWS_PROFILE", "plain")
    with pytest.raises(StoreMisconfigured, match="renew the environment variable AWS_PROFILE"):
        Store("s3://lake/in", given(place)).get("a")
