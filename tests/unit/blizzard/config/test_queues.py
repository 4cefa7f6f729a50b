"""Queues in YAML, of AWS, Azure and Google: what they become, and what is refused, in words."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blizzard.model.settings import QueueService
from tests.support.blizzard_config import faults_of, minimal, noticed, settings_of, source

SQS = "https://sqs.eu-west-1.amazonaws.com/123456789012/new-files"
KEYS = {"AWS_ACCESS_KEY_ID": "canary-id", "AWS_SECRET_ACCESS_KEY": "canary-secret"}
AZURE = "https://lake.queue.core.windows.net/new-files"
ELSEWHERE = "https://other.queue.core.windows.net/new-files"
EMULATOR = "http://127.0.0.1:10001/devstoreaccount1/new-files"
BLOBS = "abfss://in@lake.dfs.core.windows.net/events"
GOOGLE = "https://pubsub.googleapis.com"
NAME = "projects/my-project/subscriptions/new-files"


def document(queue: str = SQS, path: str = "s3://lake/in", **more: Any) -> dict[str, Any]:
    return noticed(queue, path, **more)


def in_azure(queue: str = AZURE, path: str = BLOBS, **more: Any) -> dict[str, Any]:
    return noticed(queue, path, **more)


def at_google(queue: str = NAME, path: str = "gs://lake/in", **more: Any) -> dict[str, Any]:
    return noticed(queue, path, **more)


def queue_in(tmp_path: Path, given: dict[str, Any]) -> Any:
    return source(settings_of(tmp_path, given)).notifications


@pytest.mark.parametrize(
    ("url", "region"),
    [
        (SQS, "eu-west-1"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/1/q", "cn-north-1"),
        ("https://sqs-fips.us-gov-west-1.amazonaws.com/1/q", "us-gov-west-1"),
        ("https://eu-west-1.queue.amazonaws.com/1/q", "eu-west-1"),
        ("https://vpce-1a-2b.sqs.eu-west-1.vpce.amazonaws.com/1/q", "eu-west-1"),
        ("https://sqs.eu-west-1.api.aws/1/q", "eu-west-1"),
        ("https://queue.example.com:9324/1/q", None),
    ],
)
def test_the_url_says_where_a_queue_of_sqs_is(tmp_path: Path, url: str, region: str | None):
    queue = queue_in(tmp_path, document(f"{url}/"))
    assert (queue.url, queue.region) == (url, region)
    assert url.startswith(f"{queue.endpoint}/")


@pytest.mark.parametrize(
    ("endpoint", "account"),
    [
        ("https://lake.queue.core.windows.net", "lake"),
        ("https://lake.queue.core.chinacloudapi.cn", "lake"),
        ("https://lake.z01.queue.storage.azure.net", "lake"),
        ("http://127.0.0.1:10001/devstoreaccount1", "devstoreaccount1"),
    ],
)
@pytest.mark.parametrize("path", ["az://in/events", "https://lake.blob.core.windows.net/in"])
def test_the_url_says_where_a_queue_of_azure_is(
    tmp_path: Path, endpoint: str, account: str, path: str
):
    url = f"{endpoint}/new-files"
    given = in_azure(f"{url}/", path, source__storage_options={"AZURE_ALLOW_HTTP": "true"})
    queue = queue_in(tmp_path, given)
    assert (queue.url, queue.endpoint, queue.account) == (url, endpoint, account)
    assert queue.service is QueueService.AZURE


@pytest.mark.parametrize(
    ("queue", "endpoint"),
    [
        (NAME, GOOGLE),
        ("projects/example.com:p/subscriptions/a.b_c~d+e%20-f", GOOGLE),
        (f"{GOOGLE}/v1/{NAME}", GOOGLE),
        (f"https://europe-west1-pubsub.googleapis.com/{NAME}",
         "https://europe-west1-pubsub.googleapis.com"),
        (f"http://127.0.0.1:8085/{NAME}", "http://127.0.0.1:8085"),
    ],
)  # fmt: skip
def test_a_subscription_is_at_google_unless_its_url_says_where(
    tmp_path: Path, queue: str, endpoint: str
):
    given = at_google(f"{queue}/", source__storage_options={"GOOGLE_ALLOW_HTTP": "true"})
    found = queue_in(tmp_path, given)
    assert (found.url, found.endpoint, found.service) == (queue, endpoint, QueueService.PUBSUB)


FROM_AWS = {**KEYS, "aws_session_token": "t", "AWS_REGION": "us-east-1", "AWS_ENDPOINT": "http://x"}
FROM_AZURE = {
    "AZURE_STORAGE_ACCESS_KEY": "canary-key",
    "azure_client_id": "canary-client",
    "AZURE_STORAGE_TOKEN": "canary-token",
    "AZURE_STORAGE_ENDPOINT": "https://elsewhere",
}
FROM_GOOGLE = {
    "GOOGLE_SERVICE_ACCOUNT_PATH": "canary-file", "GOOGLE_BASE_URL": "https://elsewhere"
}  # fmt: skip


@pytest.mark.parametrize(
    ("written", "given", "own", "queue", "plain"),
    [
        (document, FROM_AWS, {}, SQS, {
            "access_key_id": "canary-id",
            "secret_access_key": "canary-secret",
            "session_token": "t",
        }),
        (document, KEYS, {"AWS_PROFILE": "queues"}, SQS, {"profile": "queues"}),
        (in_azure, FROM_AZURE, {}, AZURE, {
            "account_key": "canary-key", "client_id": "canary-client", "token": "canary-token",
        }),
        # In another account the source's key is not valid, but an identity may be.
        (in_azure, {"AZURE_STORAGE_ACCOUNT_KEY": "canary-key"},
         {"AZURE_STORAGE_SAS_TOKEN": "sig=own"}, ELSEWHERE, {"sas_key": "sig=own"}),
        (in_azure, {"AZURE_CLIENT_ID": "me"}, {}, ELSEWHERE, {"client_id": "me"}),
        (at_google, FROM_GOOGLE, {}, NAME, {"service_account": "canary-file"}),
        (at_google, FROM_GOOGLE, {"google_service_account_key": "canary-key"}, NAME,
         {"service_account_key": "canary-key"}),
    ],
)  # fmt: skip
def test_the_credentials_are_those_of_the_source_unless_the_queue_has_its_own(
    tmp_path: Path, written: Any, given: Any, own: Any, queue: str, plain: dict[str, str]
):
    """The source's endpoint and region are not."""
    found = queue_in(tmp_path, written(queue, own=own, source__storage_options=given))
    assert found.options.plain() == plain
    assert found.region == ("eu-west-1" if written is document else None)
    assert "canary" not in repr(found)


def test_a_queue_elsewhere_may_be_told_its_region(tmp_path: Path):
    own = {"AWS_REGION": "here", "AWS_ALLOW_HTTP": "true"}
    given = document("http://127.0.0.1:9324/1/q", own=own)
    assert queue_in(tmp_path, given).region == "here"


WRONG: dict[Any, list[tuple[dict[str, Any], str]]] = {
    document: [
        (
            {"queue": "arn:aws:sqs:eu-west-1:123456789012:new-files"},
            "queue: must be the URL of an SQS queue, as in https://sqs.",
        ),
        ({"queue": "new-files"}, "queue: must be the URL of an SQS queue, as in https://sqs."),
        ({"queue": "https://sqs.eu-west-1.amazonaws.com/"}, "queue: must be the URL of an SQS"),
        (
            {"queue": "https://lake.queue.core.windows.net/new-files"},
            "queue: is a storage queue of Azure, which announces blobs in Azure, but the source",
        ),
        (
            {"queue": "projects/lake/subscriptions/new-files"},
            "queue: is a subscription of Pub/Sub, which announces objects in Google Cloud Storage",
        ),
        ({"queue": f"{SQS}?Action=x"}, "queue: must be the URL of an SQS queue"),
        ({"queue": "https://k:canary@h/1/q"}, "queue: must be the URL of an SQS queue"),
        ({"queue": "http://127.0.0.1/1/q"}, "queue: is http://, which is not encrypted"),
        ({"path": "gs://lake/in"}, "queue: is a queue of SQS, which announces objects in S3"),
        ({"path": "/lake/in"}, "queue: is a queue of SQS, which announces objects in S3"),
        ({"own": {"AWS_ENDPOINT": "x"}}, "storage_options.AWS_ENDPOINT: unknown option of a queue"),
        (
            {"own": {"AWS_ACCESS_KEY_ID": "canary-id"}},
            "storage_options: has only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
    ],
    in_azure: [
        ({"queue": "new-files"}, "queue: must be the URL of a storage queue, as in https://"),
        (
            {"queue": "https://lake.queue.core.windows.net/"},
            "queue: must be the URL of a storage",
        ),
        ({"queue": f"{AZURE}/messages"}, "queue: must be the URL of a storage"),
        ({"queue": "https://queue.example.com/new-files"}, "queue: must be the URL of a storage"),
        ({"queue": f"{AZURE}?sig=canary"}, "queue: must be the URL of a storage queue"),
        (
            {"queue": EMULATOR, "path": "az://in/events"},
            "queue: is http://, which is not encrypted; to allow it set AZURE_ALLOW_HTTP: true",
        ),
        (
            {"queue": "https://sqs.eu-west-1.amazonaws.com/1/q"},
            "queue: is a queue of SQS, which announces objects in S3",
        ),
        ({"path": "gs://lake/in"}, "queue: is a storage queue of Azure, which announces blobs in"),
        (
            {"own": {"AZURE_STORAGE_ENDPOINT": "x"}},
            "storage_options.AZURE_STORAGE_ENDPOINT: unknown option of a queue; known are AZ",
        ),
    ],
    at_google: [
        ({"queue": "new-files"}, "queue: must be a subscription of Pub/Sub, as in projects/"),
        ({"queue": f"pubsub://{NAME}"}, "queue: must be a subscription of Pub/Sub"),
        ({"queue": f"{NAME}/more"}, "queue: must be a subscription of Pub/Sub"),
        ({"queue": "projects/p/topics/new-files"}, "queue: must be a subscription of Pub/Sub"),
        ({"queue": f"{GOOGLE}/{NAME}?key=canary"}, "queue: must be a subscription"),
        ({"queue": f"https://canary:s@h/{NAME}"}, "queue: must be a subscription"),
        (
            {"queue": f"http://127.0.0.1:8085/{NAME}"},
            "queue: is http://, which is not encrypted; to allow it set GOOGLE_ALLOW_HTTP: true",
        ),
        (
            {"path": "s3://lake/in"},
            "queue: is a subscription of Pub/Sub, which announces objects in Google Cloud Storage",
        ),
        (
            {"own": {"GOOGLE_BASE_URL": "x"}},
            "storage_options.GOOGLE_BASE_URL: unknown option of a queue; known are GOOG",
        ),
    ],
}


@pytest.mark.parametrize(
    ("written", "changes", "fault"),
    [(written, *case) for written, cases in WRONG.items() for case in cases],
)
def test_what_cannot_work_is_refused_in_words(
    tmp_path: Path, written: Any, changes: dict[str, Any], fault: str
):
    (found,) = faults_of(tmp_path, written(**changes))
    assert found.startswith(f"source.notifications.{fault}")
    assert "canary" not in found


@pytest.mark.parametrize("second", [NAME, f"{GOOGLE}/v1/{NAME}"])
def test_two_pipelines_do_not_share_a_queue_however_it_is_written(tmp_path: Path, second: str):
    each = {
        name: {**at_google(queue, f"gs://lake/{name}"), "sink": {"path": f"/tables/{name}"}}
        for name, queue in (("a", NAME), ("b", second))
    }
    (found,) = faults_of(tmp_path, {"pipelines": each})
    assert found.startswith("pipelines.b.source.notifications.queue: is also the queue of pip")


def test_two_sources_of_one_pipeline_may(tmp_path: Path):
    given = document()
    one = given.pop("source")
    given["sources"] = {"a": one, "b": {**one, "path": "s3://lake/other"}}
    settings = settings_of(tmp_path, {"pipelines": {"p": given}})
    assert {each.notifications.url for each in settings.pipelines[0].sources} == {SQS}


@pytest.mark.parametrize(
    ("queue", "path", "module", "package"),
    [
        (SQS, "s3://lake/in", "botocore", "botocore: pip install 'blizzard-penguin[aws]'"),
        (
            AZURE,
            BLOBS,
            "azure.storage.queue",
            "azure-storage-queue: pip install 'blizzard-penguin[azure]'",
        ),
        (
            NAME,
            "gs://lake/in",
            "google.pubsub_v1",
            "google-cloud-pubsub: pip install 'blizzard-penguin[google]'",
        ),
    ],
)
def test_without_its_package_a_queue_is_refused_with_the_way_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    queue: str,
    path: str,
    module: str,
    package: str,
):
    monkeypatch.setitem(sys.modules, module, None)
    (found,) = faults_of(tmp_path, noticed(queue, path))
    assert found == f"source.notifications: needs the package {package}"
    assert queue_in(tmp_path, minimal()) is None


def test_the_programs_run_without_these_packages_and_without_the_compiler():
    """They are imported when a queue is opened or a row is read, and not before."""
    code = (
        "import sys\n"
        "for name in ('botocore', 'azure', 'google', 'grpc', 'numba'): sys.modules[name] = None\n"
        "import blizzard.cli.run.command, penguin.cli.app, penguin.pipeline"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
