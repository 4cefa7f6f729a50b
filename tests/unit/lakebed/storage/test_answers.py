"""What a store refuses is told in one sentence: its code, its address, the key, the way out."""

import json
from typing import Any

import pytest

from lakebed.deltalog.tables import newest_snapshot
from lakebed.errors import (
    LakeError,
    MachineTrouble,
    ObjectMissing,
    StoreDenied,
    StoreMisconfigured,
    StoreUnavailable,
)
from lakebed.storage.options import OptionOrigin, StorageOptions
from lakebed.storage.store import AlreadyThere, Store
from lakebed.storage.store_errors import answer_in, means_exists, store_refusal
from lakebed.terminal.call import exit_code_of
from tests.support.answering import Given, error
from tests.support.ports import reserved_port
from tests.support.s3 import QUICK

ORIGIN = OptionOrigin(place="source.path", section="source.storage_options")


def s3(address: str, **changes: str) -> Store:
    options = {
        "AWS_ENDPOINT": address,
        "AWS_ALLOW_HTTP": "true",
        "aws_region": "us-east-1",
        "AWS_ACCESS_KEY_ID": "canary-key",
        "AWS_SECRET_ACCESS_KEY": "canary-secret",
        **changes,
    }
    return Store("s3://lake/in", StorageOptions(options, ORIGIN), retry=QUICK)


def azure(address: str, **changes: str) -> Store:
    options = {
        "AZURE_STORAGE_ENDPOINT": address,
        "AZURE_ALLOW_HTTP": "true",
        "AZURE_STORAGE_ACCOUNT_NAME": "acc",
        "AZURE_STORAGE_ACCOUNT_KEY": "Y2FuYXJ5",
        **changes,
    }
    return Store("az://lake/in", StorageOptions(options, ORIGIN), retry=QUICK)


def google(address: str) -> Store:
    options = {
        "GOOGLE_BASE_URL": address,
        "GOOGLE_ALLOW_HTTP": "true",
        "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(
            {
                "disable_oauth": True,
                "client_email": "canary",
                "private_key": "",
                "private_key_id": "canary",
            }
        ),
    }
    return Store("gs://lake/in", StorageOptions(options, ORIGIN), retry=QUICK)


OPENED = {"s3": s3, "az": azure, "gs": google}
WAYS = {
    "get": lambda store: store.get("x"),
    "fetch": lambda store: store.fetch("x"),
    "list": lambda store: list(store.objects()),
    "level": lambda store: store.level("x"),
    "create": lambda store: store.create("x", b"1"),
    "replace": lambda store: store.replace("x", b"1"),
    "stream": lambda store: list(store.stream("x", size=1, etag="e")),
    "part": lambda store: store.part("x", 0, 1, etag="e"),
}
MOVED = "<Region>eu-west-1</Region><Endpoint>lake.s3.eu-west-1.amazonaws.com</Endpoint>"
OLD = "<AuthenticationErrorDetail>Request date header too old: 'canary'</AuthenticationErrorDetail>"

CLOCK = (
    "the clock of this machine differs too much from that of the store at {at} "
    "({code}): set the clock, or have it set by NTP"
)
STORE, OPTIONS = "the store at {at} ", "source.storage_options."
LOGIN = f"{STORE}does not accept the credentials ({{code}}): correct or renew {OPTIONS}{{key}}"
KEY = LOGIN.replace("{key}", "AWS_ACCESS_KEY_ID")
SECRET = LOGIN.replace("{key}", "AWS_SECRET_ACCESS_KEY")
SESSION = LOGIN.replace("{key}", "AWS_SESSION_TOKEN")
BUCKET = f"{STORE}has no bucket lake ({{code}}): correct source.path, or create it"
CONTAINER = (
    f"{STORE}has no container lake ({{code}}): correct source.path, or "
    f"{OPTIONS}AZURE_STORAGE_ACCOUNT_NAME, or create it"
)
REGION = (
    f"{STORE}says that the bucket lake is in the region eu-west-1 ({{code}}): set "
    f"{OPTIONS}aws_region to eu-west-1"
)
ELSEWHERE = (
    f"{STORE}says that the bucket lake is in another region: set {OPTIONS}aws_region to the "
    "region of the bucket"
)
REFUSED = (
    f"{STORE}refused access ({{code}}); check the permissions on the {{place}} lake, and the "
    f"credentials: {OPTIONS}{{key}}"
)
SECRETS = {
    "s3": "AWS_ACCESS_KEY_ID",
    "az": "AZURE_STORAGE_ACCOUNT_KEY",
    "gs": "GOOGLE_SERVICE_ACCOUNT_KEY",
}
USED = "<AWSAccessKeyId>canary</AWSAccessKeyId>"
SIGNED = "<StringToSign>canary</StringToSign>"
TOLD: list[tuple[str, tuple[Any, ...], type[LakeError], str]] = [
    ("s3", (403, "RequestTimeTooSkewed"), MachineTrouble, CLOCK),
    ("s3", (403, "InvalidAccessKeyId", USED), StoreMisconfigured, KEY),
    ("s3", (404, "InvalidAccessKeyId"), StoreMisconfigured, KEY),
    ("s3", (403, "SignatureDoesNotMatch", SIGNED), StoreMisconfigured, SECRET),
    ("s3", (404, "NoSuchBucket"), StoreMisconfigured, BUCKET),
    ("s3", (400, "AuthorizationHeaderMalformed", MOVED), StoreMisconfigured, REGION),
    ("s3", (301, "PermanentRedirect", MOVED), StoreMisconfigured, ELSEWHERE),  # Without a body.
    ("s3", (400, "ExpiredToken"), StoreMisconfigured, SESSION),
    ("s3", (403, "AccessDenied"), StoreDenied, REFUSED),
    ("az", (403, "AuthenticationFailed"), StoreMisconfigured, LOGIN),
    ("az", (403, "AuthenticationFailed", OLD), MachineTrouble, CLOCK),
    ("az", (404, "ContainerNotFound"), StoreMisconfigured, CONTAINER),
    ("az", (409, "ContainerBeingDeleted"), StoreMisconfigured, CONTAINER),
    ("az", (403, "AuthorizationPermissionMismatch"), StoreDenied, REFUSED),
    ("gs", (404, "NoSuchBucket"), StoreMisconfigured, BUCKET),
    ("gs", (401, "AuthenticationRequired"), StoreMisconfigured, LOGIN),
    ("gs", (403, "AccessDenied"), StoreDenied, REFUSED),
]


ASKED = [*(("get", *each) for each in TOLD), *((way, *TOLD[1]) for way in WAYS if way != "get")]


@pytest.mark.parametrize(
    ("way", "kind", "given", "told", "says"),
    ASKED,
    ids=[f"{way}-{kind}-{given[0]}-{given[1]}" for way, kind, given, *_ in ASKED],
)
def test_a_refusal_is_told_with_its_code_the_key_and_the_way_out(
    place, way, kind, given, told, says
):
    """HOLES W41: on every way that a store is asked, and without what the store repeats."""
    place.answer = lambda _asked: error(*given)
    with pytest.raises(told) as caught:
        WAYS[way](OPENED[kind](place.address))
    assert type(caught.value) is told
    bucket = "container" if kind == "az" else "bucket"
    assert caught.value.message == says.format(
        at=place.address, code=given[1], key=SECRETS[kind], place=bucket
    )
    assert "canary" not in str(caught.value)
    assert len(place.asked) == 1, "what cannot help is not tried again"
    assert exit_code_of(caught.value) == (2 if told is StoreMisconfigured else 1)


@pytest.mark.parametrize("kind", OPENED)
def test_a_refusal_without_a_body_names_the_store_and_the_credentials(place, kind):
    """As every answer to a HEAD is."""
    place.answer = lambda _asked: Given(403)
    with pytest.raises(StoreDenied) as caught:
        OPENED[kind](place.address).head("x")
    assert caught.value.message.startswith(f"the store at {place.address} refused access; check")


def test_an_object_that_is_not_there_is_no_refusal(place):
    place.answer = lambda _asked: error(404, "NoSuchKey")
    assert s3(place.address).get("x") is None
    place.answer = lambda _asked: error(404, "BlobNotFound")
    assert azure(place.address).get("x") is None
    with pytest.raises(ObjectMissing):
        azure(place.address).part("x", 0, 1, etag=None)


def test_only_an_object_that_is_there_is_taken_for_one(place):
    """HOLES J01: a conflict of another kind is not the answer to a create-only write."""
    store = azure(place.address)
    place.answer = lambda _asked: error(409, "BlobAlreadyExists")
    assert store.create("x", b"1") == AlreadyThere()
    place.answer = lambda _asked: error(409, "AccountIsDisabled")
    with pytest.raises(StoreDenied, match=r"refused access \(AccountIsDisabled\)"):
        store.create("x", b"1")
    place.answer = lambda _asked: error(412, "PreconditionFailed")
    assert s3(place.address).create("x", b"1") == AlreadyThere()
    place.answer = lambda _asked: error(409, "OperationAborted")
    with pytest.raises(StoreUnavailable, match="409 Conflict"):
        s3(place.address).create("x", b"1")
    assert means_exists("a text without any answer")


@pytest.mark.parametrize(
    ("kind", "key"),
    [("s3", "AWS_ENDPOINT"), ("az", "AZURE_STORAGE_ENDPOINT"), ("gs", "GOOGLE_BASE_URL")],
)
def test_a_refused_connection_names_the_address_and_the_key_that_leads_there(kind, key):
    with reserved_port() as port:
        address = f"http://127.0.0.1:{port}"
        with pytest.raises(StoreUnavailable) as caught:
            OPENED[kind](address).get("x")
        assert caught.value.message == (
            f"the store gave no answer: Connection refused; it was asked at {address}: check the "
            f"address in source.storage_options.{key}, and that the store is up"
        )
        assert exit_code_of(caught.value) == 1


def test_what_is_set_in_the_environment_is_named_as_that(place, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    options = {"AWS_ENDPOINT": place.address, "AWS_ALLOW_HTTP": "true"}
    place.answer = lambda _asked: error(403, "InvalidAccessKeyId")
    store = Store("s3://lake/in", StorageOptions(options, ORIGIN), retry=QUICK)
    with pytest.raises(
        StoreMisconfigured, match="renew the environment variable AWS_ACCESS_KEY_ID"
    ):
        store.get("x")


def test_the_delta_log_is_refused_in_the_same_words(place):
    """HOLES W41: penguin's library tells it as a tree of causes."""
    place.answer = lambda _asked: error(403, "InvalidAccessKeyId")
    options = {
        "AWS_ENDPOINT": place.address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "canary-key",
        "AWS_SECRET_ACCESS_KEY": "canary-secret",
    }
    origin = OptionOrigin(place="tables.t.table_uri", section="tables.t.storage_options")
    with pytest.raises(StoreMisconfigured, match=r"tables\.t\.storage_options\.AWS_ACCESS_KEY_ID"):
        newest_snapshot("s3://lake/table", StorageOptions(options, origin))


def test_googles_login_is_told_by_its_own_code():
    body = json.dumps({"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
    text = (
        "Generic GCS error: Error performing POST https://oauth2.googleapis.com/token in 9ms - "
        f"Server returned non-2xx status code: 400 Bad Request: {body}"
    )
    answer = answer_in(text)
    assert answer is not None
    assert (answer.status, answer.code, answer.stale) == (400, "invalid_grant", False)
    stale = answer_in(text.replace("Invalid JWT", "Invalid JWT: Token must be a short-lived token"))
    assert stale is not None
    assert stale.stale


def test_a_machine_without_a_role_is_no_store_that_refuses():
    text = (
        "Generic GCS error: Error performing token request: Error performing GET "
        "http://169.254.169.254/computeMetadata/v1/token?audience=x in 1ms - Server returned "
        "non-2xx status code: 404 Not Found: <html>"
    )
    told = store_refusal(text, uri="gs://lake/in", options=StorageOptions({}, ORIGIN))
    assert isinstance(told, StoreMisconfigured)
    assert told.message == (
        "there are no credentials for the bucket lake: source.storage_options and the environment "
        "have none, and this machine has no role (it was asked at http://169.254.169.254): set "
        "source.storage_options.GOOGLE_SERVICE_ACCOUNT, or give the machine a role"
    )


def test_the_region_is_taken_from_the_message_too():
    text = (
        "Error performing GET http://me:canary@h/b in 1s - Server returned non-2xx status code: "
        "400 Bad Request: <Error><Code>AuthorizationHeaderMalformed</Code><Message>the region "
        "'us-east-1' is wrong; expecting 'eu-central-1'</Message></Error>"
    )
    answer = answer_in(text)
    assert answer is not None
    assert (answer.region, answer.asked) == ("eu-central-1", "http://h")
