"""How a remote store is reached: options, timeouts, tries, and what an error may say."""

import json
import socket
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from blizzard.cli.app import app as blizzard
from lakebed.errors import ConfigInvalid
from lakebed.storage import settings
from lakebed.storage.options import StorageOptions
from lakebed.storage.remote import RETRY, for_delta
from lakebed.storage.settings import TIMEOUTS, split
from lakebed.storage.store import Reader
from lakebed.storage.store_errors import explained, in_words, name_in, without_urls
from penguin.cli.app import app as penguin

KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n"
    "-----END PRIVATE KEY-----\n"
)
SERVICE_ACCOUNT = {
    "type": "service_account",
    "private_key": KEY,
    "private_key_id": "k",
    "client_email": "a@b",
    "disable_oauth": True,
}


def test_what_is_the_stores_is_parted_from_what_is_its_clients():
    store, client = split(
        {"AWS_REGION": "x", "aws_endpoint": "https://h", "AWS_ALLOW_HTTP": "true", "timeout": "9s"},
        uri="s3://b",
    )
    assert store == {"aws_region": "x", "aws_endpoint": "https://h"}
    assert client == {**TIMEOUTS, "allow_http": "true", "timeout": "9s"}


def test_waiting_and_trying_are_bounded_without_any_option():
    """W01."""
    _store, client = split({}, uri="s3://b")
    assert client == {
        "connect_timeout": "5s",
        "read_timeout": "60s",
        "timeout": "300s",
        "allow_http": "false",
    }
    assert RETRY["max_retries"] == 4
    assert RETRY["retry_timeout"].total_seconds() == 60
    assert RETRY["backoff"]["max_backoff"].total_seconds() == 5


def test_an_option_in_two_spellings_is_a_fault():
    with pytest.raises(ConfigInvalid, match="aws_region is given twice") as invalid:
        split({"AWS_REGION": "canary-1", "aws_region": "canary-2"}, uri="s3://b")
    assert "canary" not in str(invalid.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET http://h/b?sig=canary&x=1 failed", "GET http://h/b?… failed"),
        ("(url https://u:canary@h/b?sv=canary)", "(url https://h/b?…)"),
        ("az://c@account/x is fine", "az://account/x is fine"),
        ("what? nothing", "what? nothing"),
    ],
)
def test_urls_lose_their_logins_and_queries(text, shown):
    """W17."""
    assert without_urls(text) == shown


# ------------------------------------------------------------------------------ opening


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_given: object) -> Any:
        raise AssertionError("a store is opened without a network call")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


OPENED = [
    (
        "s3://bucket/in",
        {"AWS_REGION": "eu-west-1", "AWS_ALLOW_HTTP": "TRUE"},
        'S3Store(bucket="bucket", prefix="in")',
    ),
    (
        "s3://bucket/in",
        {
            "aws_region": "eu-west-1",
            "aws_endpoint": "https://minio.example",
            "aws_access_key_id": "a",
            "aws_secret_access_key": "b",
            "aws_session_token": "c",
        },
        'S3Store(bucket="bucket", prefix="in")',
    ),
    ("gs://bucket/in", {}, 'GCSStore(bucket="bucket", prefix="in")'),
    (
        "gs://bucket/in",
        {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(SERVICE_ACCOUNT)},
        'GCSStore(bucket="bucket", prefix="in")',
    ),
    (
        "az://container/in",
        {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "AZURE_STORAGE_ACCOUNT_KEY": "aGVsbG8="},
        'AzureStore(container_name="container", account_name="acc", prefix="in")',
    ),
    (
        "abfss://container@acc.dfs.core.windows.net/in",
        {"azure_storage_sas_key": "sv=1&sig=abc%3D", "AZURE_ALLOW_HTTP": "true"},
        'AzureStore(container_name="container", account_name="acc", prefix="in")',
    ),
]


@pytest.mark.parametrize(("uri", "options", "opened"), OPENED)
def test_each_scheme_opens_its_store_without_asking_it_anything(uri, options, opened):
    reader = Reader(uri, StorageOptions(options))
    assert repr(reader._store) == opened
    assert reader.local_root is None


@pytest.mark.parametrize("name", sorted(settings.CLIENT_OPTIONS))
def test_every_option_of_the_client_reaches_the_client(name):
    """W17: handed to the store itself, it would end the thread in a panic."""
    values = {"proxy_url": "http://127.0.0.1:1", "user_agent": "x", "proxy_excludes": "h"}
    values |= {"pool_max_idle_per_host": "1", "proxy_ca_certificate": ""}
    value = values.get(name, "5s" if name.endswith("timeout") else "false")
    Reader("s3://bucket", StorageOptions({name: value}))


GOOGLE_KEY = {"google_service_account_key": '{"private_key": "canary"}'}


@pytest.mark.parametrize(
    ("uri", "options", "says"),
    [
        ("s3://b", {"AWS_REGOIN": "canary"}, "AWS_REGOIN: unknown option; did you mean aws_region"),
        ("s3://b", {"endpont": "http://canary"}, "endpont: unknown option; did you mean endpoint"),
        ("s3://b", {"AWS_QWERTZ": "canary"}, r"AWS_QWERTZ: unknown option \("),
        ("s3://b", {"AWS_SKIP_SIGNATURE": "canary"}, "AWS_SKIP_SIGNATURE: invalid"),
        ("s3://b", {"aws_virtual_hosted_style_request": "canary"}, "boolean"),
        ("s3://b", {"Timeout": "canary"}, "Timeout: invalid value.*Duration"),
        ("gs://b", GOOGLE_KEY, "service account"),
        ("az://c", {}, "Account must be specified"),
        ("az://c", {"azure_storage_account_name": "a", "account_key": "canary ary"}, "az://c"),
    ],
)
def test_an_option_that_a_store_cannot_use_is_named_as_it_was_written(uri, options, says):
    """HOLES W41, W17: a library names it in another spelling or not at all, or shows its value."""
    with pytest.raises(ConfigInvalid, match=says) as invalid:
        Reader(uri, StorageOptions(options))
    assert "canary" not in str(invalid.value)


# ------------------------------------------------------------------------------ what is said


def test_an_answer_of_the_store_is_told_by_its_status_and_code_alone():
    """W17: a store may repeat keys and signatures beside them."""
    text = (
        "Generic S3 error: Error performing POST http://h/b?uploadId=canary in 15ms - Server "
        'returned non-2xx status code: 400 Bad Request: <?xml version="1.0"?>\n'
        "<Error><Code>EntityTooSmall</Code><AWSAccessKeyId>canary</AWSAccessKeyId></Error>"
    )
    assert in_words(text) == "the store answered 400 Bad Request (EntityTooSmall)"


def test_an_answer_is_found_in_a_tree_of_causes():
    below = "\n    \x1b[31m↳\x1b[0m "
    text = below.join(
        (
            "Kernel error -> Generic S3 error",
            "Error performing GET http://h/b in 1s - HTTP error",
            "error sending request",
            "Connection refused (os error 111)",
        )
    )
    assert in_words(text) == "the store gave no answer: Connection refused"


def test_no_answer_is_told_as_such():
    text = "Generic S3 error: Error performing GET http://h/?sig=canary in 5s, after 4 retries - "
    assert in_words(f"{text}HTTP error: operation timed out\n\nDebug") == (
        "the store gave no answer: operation timed out"
    )


NO_ANSWER = "Generic S3 error: Error performing GET {url} in 5s - HTTP error: error sending request"


@pytest.mark.parametrize(
    ("url", "options", "says"),
    [
        (
            "http://minio:9000/b/x?sig=canary",
            {"AWS_ENDPOINT": "http://minio:9000"},
            "it was asked at http://minio:9000: check the address in storage_options.AWS_ENDPOINT,",
        ),
        (
            "http://me:canary@minio/b",
            {"endpoint": "http://me:canary@minio"},
            "at http://minio: check",
        ),
        (
            "https://s3.eu-1.amazonaws.com/b",
            {},
            "at https://s3.eu-1.amazonaws.com: check the network",
        ),
        ("http://169.254.169.254/latest/api/token", {}, "for the credentials of this machine"),
        (
            "REDACTED",
            {"AZURE_STORAGE_ENDPOINT": "http://me:canary@azurite:1/a?sig=canary"},
            "; check the address in storage_options.AZURE_STORAGE_ENDPOINT, and that the store",
        ),
        ("REDACTED", {"sas_key": "canary"}, "; check the network, or set an endpoint"),
        (
            "http://minio/b",
            {"AWS_ENDPOINT": "http://minio", "proxy_url": "http://me:canary@proxy"},
            "check the address in storage_options.AWS_ENDPOINT and storage_options.proxy_url, and",
        ),
    ],
)
def test_a_store_that_is_not_reached_is_named_with_the_option_that_leads_there(url, options, says):
    """HOLES W41: and never with what may be secret in a URL."""
    told = explained(NO_ANSWER.format(url=url), StorageOptions(options))
    assert told.startswith("the store gave no answer: error sending request; ")
    assert says in told
    assert "canary" not in told


def test_a_store_that_has_answered_was_reached():
    text = "Error performing GET http://h/b in 1s - Server returned non-2xx status code: 503 Busy"
    assert explained(text, StorageOptions({})) == "the store answered 503 Busy"


@pytest.mark.parametrize("value", ["localhost:9000", "minio", "not a url", "http://", "ftp://h"])
@pytest.mark.parametrize("outside", [True, False])
def test_an_endpoint_that_is_no_url_is_a_fault_of_the_configuration(value, outside, monkeypatch):
    """HOLES W41: the client panics where it is given one."""
    if outside:
        monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    with pytest.raises(ConfigInvalid, match=r"AWS_ENDPOINT.*: is not a URL; write http://"):
        Reader("s3://b", StorageOptions({} if outside else {"AWS_ENDPOINT": value}))


@pytest.mark.parametrize("app", [blizzard, penguin])
@pytest.mark.parametrize("how", ["--once", "--dry-run"])
@pytest.mark.parametrize(
    "options",
    [
        {"AWS_REGOIN": "x"},
        {"AWS_ENDPOINT": "localhost:9000"},
        {"AWS_BUCKET": "decoy"},
        {"AWS_SESSION_TOKEN": "canary\n"},
    ],
)
def test_both_programs_end_with_2_where_options_cannot_be_used(app, how, options, tmp_path):
    """HOLES W41: at once, however they were started, and the option is named."""
    place = {"storage_options": options}
    file = tmp_path / "lake.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "source": {"path": "s3://b/in", **place},
                "sink": {"path": "s3://b/table", **place},
                "schema": {"fields": [{"name": "id", "type": "int64"}]},
                "tables": {"one": {"table_uri": "s3://b/table", **place}},
            }
        )
    )
    answer = CliRunner().invoke(app, ["-c", str(file), how])
    assert answer.exit_code == 2, answer.output
    assert next(iter(options)) in answer.output
    assert "canary" not in answer.output


HTTP = [
    ("s3://b", "AWS_ENDPOINT", "AWS_ALLOW_HTTP", {}),
    ("az://c", "AZURE_STORAGE_ENDPOINT", "AZURE_ALLOW_HTTP", {"account_name": "a"}),
    ("az://c", "AZURE_ENDPOINT", "AZURE_ALLOW_HTTP", {"account_name": "a"}),
    ("gs://b", "GOOGLE_BASE_URL", "GOOGLE_ALLOW_HTTP", {"GOOGLE_SKIP_SIGNATURE": "true"}),
]


@pytest.mark.parametrize(("uri", "endpoint", "allowing", "beside"), HTTP)
@pytest.mark.parametrize("outside", [True, False])
def test_plain_http_is_allowed_by_the_option_of_its_store(
    uri, endpoint, allowing, beside, outside, monkeypatch
):
    """HOLES W41: the advice can be followed, in the options and in the environment."""
    given = {endpoint: "http://user:canary@127.0.0.1:9"}
    if outside:
        monkeypatch.setenv(endpoint, given.pop(endpoint))
    with pytest.raises(ConfigInvalid) as refused:
        Reader(uri, StorageOptions({**beside, **given}))
    assert str(refused.value) == (
        f"{uri}: storage_options: {endpoint} is http://, which is not encrypted; to allow it set "
        f"{allowing}: true"
    )
    if outside:
        monkeypatch.setenv(allowing, "true")
        Reader(uri, StorageOptions({**beside, **given}))
    else:
        Reader(uri, StorageOptions({**beside, **given, allowing: "true"}))


def test_an_address_gives_the_region_unless_one_is_set():
    uri = "https://b.s3.eu-west-1.amazonaws.com/in"
    assert Reader(uri, StorageOptions({})).options.plain() == {"aws_region": "eu-west-1"}
    given = StorageOptions({"AWS_REGION": "us-east-1"})
    assert Reader(uri, given).options == given


@pytest.mark.parametrize(("text", "said"), [("", "no reason given"), ("a\nb", "a")])
def test_any_other_error_is_told_by_its_first_line(text, said):
    assert in_words(text) == said


def test_the_delta_log_is_reached_with_the_same_bounds_unless_others_are_given():
    """W01."""
    assert for_delta({"AWS_REGION": "x", "TIMEOUT": "9s"}, uri="s3://b") == {
        "aws_region": "x",
        "timeout": "9s",
        "allow_http": "false",
        "max_retries": "4",
        "retry_timeout": "60000ms",
        "backoff_config.init_backoff": "200ms",
        "backoff_config.max_backoff": "5000ms",
        "connect_timeout": "5s",
    }


def test_the_name_in_an_error_of_the_library_is_read_as_it_is() -> None:
    """W23."""
    text = r'InvalidPath { source: BadSegment { path: "in/q\"\\\u{b}y\u{7f}ü\t.x", source: … } }'
    assert name_in(text) == 'in/q"\\\x0by\x7fü\t.x'
    assert name_in("something else") is None
