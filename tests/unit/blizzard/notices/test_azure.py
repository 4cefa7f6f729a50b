"""What Azure is asked with, and what it answers, in our words and without what may be a secret."""

import sys
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.identity import ClientSecretCredential, DefaultAzureCredential

from blizzard.model.settings import QueueService, QueueSettings
from blizzard.notices.azure import ROLE, _translated, _unless_gone, credential_of
from blizzard.notices.queue import QueueDenied, QueueMissing, QueueUnavailable
from lakebed.storage.options import StorageOptions

URL = "https://lake.queue.core.windows.net/q"
CLIENT = {
    "client_id": "canary-id",
    "client_secret": "canary-secret",
    "tenant_id": "00000000-0000-0000-0000-000000000000",
}


def answered(
    code: str, status: int, kind: type[HttpResponseError] = HttpResponseError
) -> HttpResponseError:
    error = kind("canary-secret is wrong")
    error.status_code = status
    error.error_code = code  # type: ignore[attr-defined]
    return error


def settings(**options: str) -> QueueSettings:
    return QueueSettings(
        url=URL,
        endpoint="https://lake.queue.core.windows.net",
        service=QueueService.AZURE,
        account="lake",
        options=StorageOptions(options),
    )


@pytest.mark.parametrize(
    ("cause", "error", "words"),
    [
        (answered("QueueNotFound", 404, ResourceNotFoundError), QueueMissing, "check its URL"),
        (answered("AuthenticationFailed", 403), QueueDenied, "check them and the account"),
        (answered("AuthorizationPermissionMismatch", 403), QueueDenied, f"it needs {ROLE}"),
        (answered("AuthorizationServiceMismatch", 403), QueueDenied, "a signature for queues"),
        (answered("ServerBusy", 503), QueueUnavailable, "[ServerBusy]"),
        (ClientAuthenticationError("canary"), QueueDenied, "source.notifications.storage_options"),
        (ValueError("canary"), QueueDenied, "source.notifications.storage_options"),
        (ServiceRequestError("canary"), QueueUnavailable, "does not answer [ServiceRequestError]"),
        (ServiceResponseError("canary"), QueueUnavailable, "does not answer"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said_in_our_words(cause: Exception, error: Any, words: str):
    with pytest.raises(error) as raised, _translated(URL, ROLE):
        raise cause
    assert words in str(raised.value)
    assert URL in str(raised.value)
    assert "canary" not in str(raised.value)


def test_a_message_that_is_gone_is_skipped_and_a_queue_that_is_gone_is_not():
    for code, status in (("MessageNotFound", 404), ("PopReceiptMismatch", 400)):
        with _unless_gone():
            raise answered(code, status)
    with pytest.raises(HttpResponseError), _unless_gone():
        raise answered("QueueNotFound", 404)


@pytest.mark.parametrize(
    ("options", "environment", "kind"),
    [
        ({"account_key": "a2V5"}, {}, AzureNamedKeyCredential),
        ({"sas_key": "?sig=x"}, {}, AzureSasCredential),
        (CLIENT, {}, ClientSecretCredential),
        ({}, {}, DefaultAzureCredential),
        ({"client_id": "canary-id"}, {}, DefaultAzureCredential),
        ({}, {"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}, AzureNamedKeyCredential),
        ({}, {"AZURE_STORAGE_SAS_TOKEN": "sig=x"}, AzureSasCredential),
        ({}, {f"AZURE_{name.upper()}": CLIENT[name] for name in CLIENT}, ClientSecretCredential),
        # What the configuration says wins over what stands in the environment.
        ({"sas_key": "sig=x"}, {"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}, AzureSasCredential),
        ({"account_key": "a2V5"}, {"AZURE_STORAGE_TOKEN": "t"}, AzureNamedKeyCredential),
    ],
)  # fmt: skip
def test_credentials_are_those_of_the_configuration_else_of_the_environment(
    options: dict[str, str], environment: dict[str, str], kind: type
):
    assert isinstance(credential_of(settings(**options), environment), kind)


def test_a_key_is_used_for_the_account_of_the_url():
    credential = credential_of(settings(account_key="a2V5"), {"AZURE_STORAGE_ACCOUNT_NAME": "x"})
    assert isinstance(credential, AzureNamedKeyCredential)
    assert credential.named_key == ("lake", "a2V5")


def test_a_token_is_handed_on_as_it_is():
    credential: Any = credential_of(settings(token="given"), {})
    assert credential.get_token("https://storage.azure.com/.default").token == "given"


def test_without_azure_identity_keys_work_and_the_rest_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    assert isinstance(credential_of(settings(sas_key="sig=x"), {}), AzureSasCredential)
    for options in ({}, CLIENT):
        with pytest.raises(QueueDenied, match="pip install 'blizzard-penguin"):
            credential_of(settings(**options), {})
