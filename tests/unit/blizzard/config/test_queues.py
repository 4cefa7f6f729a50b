"""Queues in YAML: what they become, and what is refused, in words."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.blizzard_config import faults_of, minimal, noticed, settings_of, source

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/new-files"
KEYS = {"AWS_ACCESS_KEY_ID": "canary-id", "AWS_SECRET_ACCESS_KEY": "canary-secret"}


def document(queue: Any = URL, path: str = "s3://lake/in", **more: Any) -> dict[str, Any]:
    return noticed(queue, path, **more)


@pytest.mark.parametrize(
    ("url", "region"),
    [
        (URL, "eu-west-1"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/1/q", "cn-north-1"),
        ("https://sqs-fips.us-gov-west-1.amazonaws.com/1/q", "us-gov-west-1"),
        ("https://eu-west-1.queue.amazonaws.com/1/q", "eu-west-1"),
        ("https://vpce-1a-2b.sqs.eu-west-1.vpce.amazonaws.com/1/q", "eu-west-1"),
        ("https://sqs.eu-west-1.api.aws/1/q", "eu-west-1"),
        ("https://queue.example.com:9324/1/q", None),
    ],
)
def test_the_url_says_where_a_queue_is(tmp_path: Path, url: str, region: str | None):
    queue = source(settings_of(tmp_path, document(f"{url}/"))).notifications
    assert (queue.url, queue.region) == (url, region)
    assert url.startswith(f"{queue.endpoint}/")


def test_the_credentials_are_those_of_the_source_and_the_endpoint_is_not(tmp_path: Path):
    given = {**KEYS, "aws_session_token": "t", "AWS_REGION": "us-east-1", "AWS_ENDPOINT": "http://x"}  # fmt: skip  # noqa: E501
    queue = source(settings_of(tmp_path, document(source__storage_options=given))).notifications
    assert queue.region == "eu-west-1"
    assert queue.options.plain() == {
        "access_key_id": "canary-id",
        "secret_access_key": "canary-secret",
        "session_token": "t",
    }
    assert "canary" not in repr(queue)


def test_a_queue_may_have_credentials_of_its_own(tmp_path: Path):
    given = document(own={"AWS_PROFILE": "queues"}, source__storage_options=KEYS)
    queue = source(settings_of(tmp_path, given)).notifications
    assert queue.options.plain() == {"profile": "queues"}


def test_a_queue_elsewhere_may_be_told_its_region(tmp_path: Path):
    own = {"AWS_REGION": "here", "AWS_ALLOW_HTTP": "true"}
    given = document("http://127.0.0.1:9324/1/q", own=own)
    assert source(settings_of(tmp_path, given)).notifications.region == "here"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"queue": "arn:aws:sqs:eu-west-1:123456789012:new-files"},
            f"queue: must be the URL of the queue, not its ARN: {URL}",
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
        ({"queue": f"{URL}?Action=x"}, "queue: must not hold credentials, ? or #"),
        ({"queue": "https://k:s@h/1/q"}, "queue: must not hold credentials, ? or #"),
        ({"queue": "http://127.0.0.1/1/q"}, "queue: is http://, which is not encrypted"),
        ({"path": "gs://lake/in"}, "queue: is a queue of SQS, which announces objects in S3"),
        ({"path": "/lake/in"}, "queue: is a queue of SQS, which announces objects in S3"),
        (
            {"own": {"AWS_REGION": "us-east-1"}},
            "storage_options: has another region than the queue's URL, which is in eu-west-1",
        ),
        ({"own": {"AWS_ENDPOINT": "x"}}, "storage_options.AWS_ENDPOINT: unknown option of a queue"),
        (
            {"own": {"AWS_ACCESS_KEY_ID": "canary-id"}},
            "storage_options: has only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
    ],
    ids=json.dumps,
)
def test_what_cannot_work_is_refused_in_words(tmp_path: Path, changes: Any, fault: str):
    (found,) = faults_of(tmp_path, document(**changes))
    assert found.startswith(f"source.notifications.{fault}")
    assert "canary" not in found


def test_two_pipelines_do_not_share_a_queue(tmp_path: Path):
    each = {
        name: {**document(path=f"s3://lake/{name}"), "sink": {"path": f"/tables/{name}"}}
        for name in ("a", "b")
    }
    (found,) = faults_of(tmp_path, {"pipelines": each})
    assert found.startswith(
        "pipelines.b.source.notifications.queue: is also the queue of pipeline a"
    )


def test_two_sources_of_one_pipeline_may(tmp_path: Path):
    given = document()
    one = given.pop("source")
    given["sources"] = {"a": one, "b": {**one, "path": "s3://lake/other"}}
    settings = settings_of(tmp_path, {"pipelines": {"p": given}})
    assert {each.notifications.url for each in settings.pipelines[0].sources} == {URL}


@pytest.mark.parametrize(
    ("queue", "path", "module", "package"),
    [
        (URL, "s3://lake/in", "botocore", "botocore: pip install 'blizzard-penguin[aws]'"),
        (
            "https://lake.queue.core.windows.net/new-files",
            "abfss://in@lake.dfs.core.windows.net/events",
            "azure.storage.queue",
            "azure-storage-queue: pip install 'blizzard-penguin[azure]'",
        ),
        (
            "projects/my-project/subscriptions/new-files",
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
    assert source(settings_of(tmp_path, minimal())).notifications is None


def test_the_programs_run_without_these_packages_and_without_the_compiler():
    """They are imported when a queue is opened or a row is read, and not before."""
    code = (
        "import sys\n"
        "for name in ('botocore', 'azure', 'google', 'grpc', 'numba'): sys.modules[name] = None\n"
        "import blizzard.cli.run.command, penguin.cli.app, penguin.pipeline"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
