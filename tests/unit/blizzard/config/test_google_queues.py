"""Subscriptions of Pub/Sub in YAML: what they become, and what is refused, in words."""

import json
from pathlib import Path
from typing import Any

import pytest

from blizzard.model.settings import QueueService
from tests.support.blizzard_config import faults_of, noticed, settings_of, source

NAME = "projects/my-project/subscriptions/new-files"
GOOGLE = "https://pubsub.googleapis.com"


def document(queue: str = NAME, path: str = "gs://lake/in", **more: Any) -> dict[str, Any]:
    return noticed(queue, path, **more)


def queue_in(tmp_path: Path, given: dict[str, Any]) -> Any:
    return source(settings_of(tmp_path, given)).notifications


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
    given = document(f"{queue}/", source__storage_options={"GOOGLE_ALLOW_HTTP": "true"})
    found = queue_in(tmp_path, given)
    assert (found.url, found.endpoint, found.service) == (queue, endpoint, QueueService.PUBSUB)


def test_the_credentials_are_those_of_the_source_unless_the_queue_has_its_own(tmp_path: Path):
    store = {"GOOGLE_SERVICE_ACCOUNT_PATH": "canary-file", "GOOGLE_BASE_URL": "https://elsewhere"}
    queue = queue_in(tmp_path, document(source__storage_options=store))
    assert queue.options.plain() == {"service_account": "canary-file"}
    own = {"google_service_account_key": "canary-key"}
    queue = queue_in(tmp_path, document(own=own, source__storage_options=store))
    assert queue.options.plain() == {"service_account_key": "canary-key"}
    assert "canary" not in repr(queue)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"queue": "new-files"}, "queue: must be a subscription of Pub/Sub, as in projects/"),
        ({"queue": f"pubsub://{NAME}"}, "queue: must be a subscription of Pub/Sub"),
        ({"queue": f"{NAME}/more"}, "queue: must be a subscription of Pub/Sub"),
        ({"queue": "projects/p/topics/new-files"}, "queue: is a topic; it must be a subscription"),
        ({"queue": f"{GOOGLE}/{NAME}?key=canary"}, "queue: must not hold credentials, ? or #"),
        ({"queue": f"https://canary:s@h/{NAME}"}, "queue: must not hold credentials, ? or #"),
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
            "storage_options.GOOGLE_BASE_URL: unknown option of a queue; the options are GOOG",
        ),
    ],
    ids=json.dumps,
)
def test_what_cannot_work_is_refused_in_words(tmp_path: Path, changes: Any, fault: str):
    (found,) = faults_of(tmp_path, document(**changes))
    assert found.startswith(f"source.notifications.{fault}")
    assert "canary" not in found


def test_two_pipelines_do_not_share_a_subscription_however_it_is_written(tmp_path: Path):
    def pipeline(name: str, queue: str) -> dict[str, Any]:
        given = document(queue, f"gs://lake/{name}")
        return {**given, "sink": {**given["sink"], "path": str(tmp_path / name)}}

    both = {"a": pipeline("a", NAME), "b": pipeline("b", f"{GOOGLE}/v1/{NAME}")}
    (found,) = faults_of(tmp_path, {"pipelines": both})
    assert found.startswith("pipelines.b.source.notifications.queue: is also the queue of pip")
