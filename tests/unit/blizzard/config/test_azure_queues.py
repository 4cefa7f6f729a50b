"""Storage queues of Azure in YAML: what they become, and what is refused, in words."""

import json
from pathlib import Path
from typing import Any

import pytest

from blizzard.model.settings import QueueService
from tests.support.blizzard_config import faults_of, noticed, settings_of, source

URL = "https://lake.queue.core.windows.net/new-files"
EMULATOR = "http://127.0.0.1:10001/devstoreaccount1/new-files"
PATH = "abfss://in@lake.dfs.core.windows.net/events"


def document(queue: str = URL, path: str = PATH, **more: Any) -> dict[str, Any]:
    return noticed(queue, path, **more)


def queue_in(tmp_path: Path, given: dict[str, Any]) -> Any:
    return source(settings_of(tmp_path, given)).notifications


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
def test_the_url_says_where_a_queue_is(tmp_path: Path, endpoint: str, account: str, path: str):
    url = f"{endpoint}/new-files"
    given = document(f"{url}/", path, source__storage_options={"AZURE_ALLOW_HTTP": "true"})
    queue = queue_in(tmp_path, given)
    assert (queue.url, queue.endpoint, queue.account) == (url, endpoint, account)
    assert queue.service is QueueService.AZURE


def test_the_credentials_are_those_of_the_source_and_the_endpoint_is_not(tmp_path: Path):
    given = {
        "AZURE_STORAGE_ACCESS_KEY": "canary-key",
        "azure_client_id": "canary-client",
        "AZURE_STORAGE_TOKEN": "canary-token",
        "AZURE_STORAGE_ENDPOINT": "https://elsewhere",
    }
    queue = queue_in(tmp_path, document(source__storage_options=given))
    assert queue.options.plain() == {
        "account_key": "canary-key",
        "client_id": "canary-client",
        "token": "canary-token",
    }
    assert "canary" not in repr(queue)


def test_a_queue_may_have_credentials_of_its_own_and_lie_in_another_account(tmp_path: Path):
    given = document(
        "https://other.queue.core.windows.net/new-files",
        own={"AZURE_STORAGE_SAS_TOKEN": "sig=own"},
        source__storage_options={"AZURE_STORAGE_ACCOUNT_KEY": "canary-key"},
    )
    assert queue_in(tmp_path, given).options.plain() == {"sas_key": "sig=own"}


def test_an_identity_may_read_a_queue_in_another_account(tmp_path: Path):
    given = document(
        "https://other.queue.core.windows.net/new-files",
        source__storage_options={"AZURE_CLIENT_ID": "me"},
    )
    assert queue_in(tmp_path, given).options.plain() == {"client_id": "me"}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"queue": "new-files"}, "queue: must be the URL of a storage queue, as in https://"),
        ({"queue": "https://lake.queue.core.windows.net/"}, "queue: must be the URL of a storage"),
        ({"queue": f"{URL}/messages"}, "queue: must be the URL of a storage"),
        ({"queue": "https://queue.example.com/new-files"}, "queue: must be the URL of a storage"),
        ({"queue": f"{URL}?sig=canary"}, "queue: must not hold credentials, ? or #"),
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
            "storage_options.AZURE_STORAGE_ENDPOINT: unknown option of a queue; the options are AZ",
        ),
        (
            {
                "queue": "https://other.queue.core.windows.net/new-files",
                "source__storage_options": {"AZURE_STORAGE_ACCOUNT_KEY": "canary"},
            },
            "queue: is in another account than the source, whose key is not valid there",
        ),
    ],
    ids=json.dumps,
)
def test_what_cannot_work_is_refused_in_words(tmp_path: Path, changes: Any, fault: str):
    (found,) = faults_of(tmp_path, document(**changes))
    assert found.startswith(f"source.notifications.{fault}")
    assert "canary" not in found
