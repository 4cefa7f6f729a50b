"""What Pub/Sub is asked with, and what it answers, in our words and without secrets."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.api_core.exceptions import DeadlineExceeded, ResourceExhausted, RetryError
from google.auth.exceptions import RefreshError, TransportError
from google.oauth2.credentials import Credentials as UserCredentials
from google.oauth2.service_account import Credentials as ServiceAccount
from google.pubsub_v1.types import PubsubMessage, PullResponse, ReceivedMessage, Subscription

from blizzard.model.settings import QueueService, QueueSettings
from blizzard.notices.pubsub import CONSUME, PubSubQueue, _translated, login_of
from blizzard.notices.queue import QueueDenied, QueueMissing, QueueUnavailable
from lakebed.storage.options import StorageOptions
from tests.support.answering import Answering, Asked, Given, answering, self_signed

NAME = "projects/p/subscriptions/new-files"
OURS = ("GOOGLE_", "GCE_", "CLOUDSDK_")
USER = {
    "type": "authorized_user",
    "client_id": "canary-client",
    "client_secret": "canary-secret",
    "refresh_token": "canary-refresh",
}


@pytest.fixture(autouse=True)
def nothing_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take every credential of this machine away, those in the home folder included."""
    for name in [each for each in os.environ if each.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="module")
def account() -> dict[str, str]:
    """Return a service account, whose tokens are given at an address that is not there."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    written = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "client_email": "canary@example.com",
        "private_key_id": "canary-key-id",
        "private_key": written.decode(),
        "token_uri": "http://127.0.0.1:1/token",
    }


def settings(endpoint: str = "https://pubsub.googleapis.com", **options: str) -> QueueSettings:
    return QueueSettings(
        url=NAME, endpoint=endpoint, service=QueueService.PUBSUB, options=StorageOptions(options)
    )


@dataclass
class Service:
    """A Pub/Sub behind TLS, which says who asked and refuses what it is told to refuse."""

    port: int = 0
    tokens: list[str] = field(default_factory=list)
    refuses: Callable[[str], grpc.StatusCode | None] = lambda _token: None
    message: bytes = b""

    def service(self, details: Any) -> Any:
        kinds: dict[str, Any] = {
            "Pull": self._pull,
            "GetSubscription": lambda: Subscription(name=NAME),
        }
        given = kinds.get(details.method.rpartition("/")[2], PullResponse)

        def answer(_asked: bytes, context: Any) -> bytes:
            metadata = dict(context.invocation_metadata())
            self.tokens.append(str(metadata["authorization"]).removeprefix("Bearer "))
            if (status := self.refuses(self.tokens[-1])) is not None:
                context.abort(status, "canary-detail")
            found = given()
            return bytes(type(found).serialize(found))

        return grpc.unary_unary_rpc_method_handler(answer)

    def _pull(self) -> PullResponse:
        message = PubsubMessage(message_id="1", data=self.message)
        return PullResponse(received_messages=[ReceivedMessage(ack_id="a", message=message)])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run the service: once, since the certificates that are trusted are read once."""
    key, certificate = self_signed()
    roots = tmp_path_factory.mktemp("tls") / "roots.pem"
    roots.write_bytes(certificate)
    found = Service()
    server = grpc.server(ThreadPoolExecutor(2), handlers=[found])
    secure = grpc.ssl_server_credentials([(key, certificate)])
    found.port = server.add_secure_port("127.0.0.1:0", secure)
    server.start()
    with pytest.MonkeyPatch.context() as outside:
        outside.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(roots))
        yield found
    server.stop(None).wait()


@pytest.fixture
def service(server: Service) -> Service:
    server.tokens.clear()
    server.refuses = lambda _token: None
    return server


@pytest.fixture
def issuer() -> Iterator[Answering]:
    """Give tokens that are over at once: each is good for what is asked next."""
    with answering() as place:

        def token(_asked: Asked) -> Given:
            given = {
                "access_token": f"token-{len(place.asked)}",
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "token_type": "Bearer",
                "expires_in": 1,
            }
            return Given(200, json.dumps(given), {"Content-Type": "application/json"})

        place.answer = token
        yield place


@pytest.fixture
def opened(
    service: Service, issuer: Answering, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[PubSubQueue]:
    """Open a subscription with a workload identity, whose tokens the issuer gives."""
    (tmp_path / "subject").write_text("canary-subject")
    identity = {
        "type": "external_account",
        "audience": "//iam.example.com/canary",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"{issuer.address}/token",
        "credential_source": {"file": str(tmp_path / "subject")},
        # In Google's own, Google would be asked where the identity may be used from.
        "universe_domain": "example.com",
    }
    (tmp_path / "identity.json").write_text(json.dumps(identity))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "identity.json"))
    at = f"https://127.0.0.1:{service.port}"
    with closing(PubSubQueue(settings(at), wait_secs=10)) as queue:
        yield queue


def test_tokens_that_are_over_are_renewed(service: Service, opened: PubSubQueue):
    """A queue is asked for as long as blizzard runs, and a token holds for an hour."""
    for _again in range(3):
        (message,) = opened.receive(hide_secs=300)
        opened.delete([message.receipt])
    assert len(service.tokens) == 9, "asked for messages, hidden and acknowledged"
    assert len(set(service.tokens)) == 9


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, QueueDenied, "the role Pub/Sub"),
        (grpc.StatusCode.UNAUTHENTICATED, QueueDenied, "check them [UNAUTHENTICATED]"),
        (grpc.StatusCode.NOT_FOUND, QueueMissing, "check its project and its name"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, QueueUnavailable, "now [RESOURCE_EXHAUSTED]"),
        (grpc.StatusCode.UNAVAILABLE, QueueUnavailable, "does not answer [UNAVAILABLE]"),
    ],
)  # fmt: skip
def test_a_refusal_is_told_in_our_words(
    service: Service, opened: PubSubQueue, status: grpc.StatusCode, error: Any, words: str
):
    service.refuses = lambda _token: status
    for ask in (opened.depth, lambda: opened.receive(hide_secs=1), lambda: opened.delete(["a"])):
        with pytest.raises(error) as raised:
            ask()
        assert words in str(raised.value)
        assert "canary" not in str(raised.value)


def test_a_receipt_that_is_over_is_skipped(service: Service, opened: PubSubQueue):
    """So a subscription that delivers exactly once answers; the message comes again."""
    for status in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION):
        service.refuses = lambda _token, status=status: status  # type: ignore[misc]
        opened.delete(["a"])
        opened.hide(["a"], secs=300)


def test_a_login_that_is_refused_in_mid_run_is_told_and_no_secret_with_it(
    issuer: Answering,
    opened: PubSubQueue,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
):
    caplog.set_level(logging.DEBUG)
    opened.depth()
    refusal = json.dumps({"error": "invalid_grant", "error_description": "canary-detail"})
    issuer.answer = lambda _asked: Given(400, refusal)
    with pytest.raises(QueueDenied, match="refused the credentials; check them") as raised:
        opened.depth()
    shown = capfd.readouterr()
    logged = [each.getMessage() for each in caplog.records]
    for text in (str(raised.value), shown.out, shown.err, *logged):
        assert "canary" not in text
        assert "token-" not in text


@pytest.mark.parametrize(
    ("cause", "error", "words"),
    [
        (RefreshError("canary"), QueueDenied, "refused the credentials; check them [RefreshError]"),
        (TransportError("canary"), QueueUnavailable, "issues tokens for the queue does not answer"),
        (ValueError("canary"), QueueDenied, "source.notifications.storage_options"),
        (FileNotFoundError("canary"), QueueDenied, "source.notifications.storage_options"),
        (DeadlineExceeded("canary"), QueueUnavailable, "cannot answer now"),
        (RetryError("canary", ResourceExhausted("canary")), QueueUnavailable, "cannot answer now"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said_in_our_words(cause: Exception, error: Any, words: str):
    with pytest.raises(error) as raised, _translated(NAME, CONSUME):
        raise cause
    assert words in str(raised.value)
    assert NAME in str(raised.value)
    assert "canary" not in str(raised.value)


def test_credentials_are_those_of_the_configuration_else_of_the_environment(
    tmp_path: Path, account: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    key, user = tmp_path / "key.json", tmp_path / "user.json"
    key.write_text(json.dumps(account))
    user.write_text(json.dumps({**USER, "quota_project_id": "p"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(user))
    for options, environment, kind in (
        ({"service_account": str(key)}, {}, ServiceAccount),
        ({"service_account_key": json.dumps(account)}, {}, ServiceAccount),
        ({"application_credentials": str(user)}, {}, UserCredentials),
        ({}, {"GOOGLE_SERVICE_ACCOUNT": str(key)}, ServiceAccount),
        ({}, {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account)}, ServiceAccount),
        ({}, os.environ, UserCredentials),
        ({"application_credentials": str(user)}, {"GOOGLE_SERVICE_ACCOUNT": str(key)},
         UserCredentials),
    ):  # fmt: skip
        assert isinstance(login_of(settings(**options), environment), kind)


FOUND = """
from blizzard.model.settings import QueueSettings
from blizzard.notices.pubsub import login_of
print(type(login_of(QueueSettings(url="projects/p/subscriptions/s", endpoint=""), {})).__module__)
"""


def test_the_service_account_of_the_machine_is_found(tmp_path: Path):
    """In a process of its own: the library looks once where a machine's metadata are."""
    with answering() as machine:
        plain = {"Metadata-Flavor": "Google", "Content-Type": "text/plain"}
        machine.answer = lambda _asked: Given(200, "project", plain)
        address = machine.address.removeprefix("http://")
        names = ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP")
        outside = {"HOME": str(tmp_path), **dict.fromkeys(names, address)}
        command = [sys.executable, "-c", FOUND]
        done = subprocess.run(command, env=outside, capture_output=True, text=True, check=True)
    assert done.stdout == "google.auth.compute_engine.credentials\n"


@pytest.mark.parametrize(
    "options",
    [
        {"service_account": "/canary/nowhere.json"},
        {"service_account_key": "canary: no JSON"},
        {"service_account_key": '{"disable_oauth": true, "private_key": "canary"}'},
        {"service_account_key": '{"type": "service_account", "private_key": "canary"}'},
        {"service_account_key": '["canary"]'},
        {"application_credentials": "/canary"},
    ],
)
def test_what_is_no_key_is_refused_with_the_way_out(options: dict[str, str]):
    with pytest.raises(QueueDenied, match="there are no valid credentials for the queue") as raised:
        PubSubQueue(settings(**options), environment={})
    assert "canary" not in str(raised.value)
