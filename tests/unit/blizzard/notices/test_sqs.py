"""What AWS answers, in our words, and without what may be a secret."""

from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
)

from blizzard.notices.queue import QueueDenied, QueueMissing, QueueUnavailable
from blizzard.notices.sqs import SqsQueue, _translated
from tests.support.queues import queue_settings

URL = "https://sqs.eu-west-1.amazonaws.com/1/q"


def answered(code: str) -> ClientError:
    said: Any = {"Error": {"Code": code, "Message": "canary-secret is wrong"}}
    return ClientError(said, "ReceiveMessage")


@pytest.mark.parametrize(
    ("cause", "error", "words"),
    [
        (answered("AWS.SimpleQueueService.NonExistentQueue"), QueueMissing, "check its URL"),
        (answered("QueueDoesNotExist"), QueueMissing, "check its URL"),
        (answered("AccessDenied"), QueueDenied, "it needs sqs:ReceiveMessage on the queue"),
        (answered("InvalidClientTokenId"), QueueDenied, "credentials for the region"),
        (answered("SignatureDoesNotMatch"), QueueDenied, "credentials for the region"),
        (answered("ExpiredToken"), QueueDenied, "valid credentials for the region"),
        (answered("ServiceUnavailable"), QueueUnavailable, "[ServiceUnavailable]"),
        (NoCredentialsError(), QueueDenied, "source.notifications.storage_options"),
        (ProfileNotFound(profile="canary-secret"), QueueDenied, "AWS_PROFILE"),
        (EndpointConnectionError(endpoint_url=URL), QueueUnavailable, "does not answer"),
        (ReadTimeoutError(endpoint_url=URL), QueueUnavailable, "does not answer"),
    ],
)
def test_what_goes_wrong_is_said_in_our_words(cause: Exception, error: Any, words: str):
    with pytest.raises(error) as raised, _translated(URL, "sqs:ReceiveMessage"):
        raise cause
    assert words in str(raised.value)
    assert URL in str(raised.value)
    assert "canary" not in str(raised.value)


def test_a_profile_that_is_not_there_is_told():
    with pytest.raises(QueueDenied, match="AWS_PROFILE"):
        SqsQueue(queue_settings(URL, profile="nobody-has-this-profile"))
