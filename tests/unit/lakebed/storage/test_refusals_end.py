"""How both programs end where a store refuses them, and by which keys each store is reached."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner

from blizzard.cli.app import app as blizzard
from lakebed.deltalog.tables import location, options_for, translated
from lakebed.errors import LakeError
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader
from penguin.cli.app import app as penguin
from tests.support.answering import error
from tests.support.processes import finish, start
from tests.support.s3 import QUICK, options


def configuration(folder: Path, address: str) -> Path:
    document: dict[str, Any] = {
        "storage": [{"prefix": "s3://lake/", "options": options(address)}],
        "source": {"path": "s3://lake/in"},
        "sink": {"path": "s3://lake/table"},
        "schema": {"fields": [{"name": "id", "type": "int64"}]},
        "tables": {"one": {"table_uri": "s3://lake/table"}},
    }
    file = folder / "lake.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.mark.parametrize(
    ("program", "how"), [(blizzard, "--dry-run"), (penguin, "--once"), (penguin, "--dry-run")]
)
@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        ("InvalidAccessKeyId", 403, "correct or renew storage[0].options.AWS_ACCESS_KEY_ID"),
        ("SignatureDoesNotMatch", 403, "correct or renew storage[0].options.AWS_SECRET_ACCESS_KEY"),
        ("PermanentRedirect", 301, "set storage[0].options.AWS_REGION to the region of"),
        ("NoSuchBucket", 404, "has no bucket lake (NoSuchBucket): correct "),
    ],
)
def test_both_programs_end_with_2_and_name_the_key(
    place, tmp_path, program, how, code, status, says
):
    """HOLES W41: a configuration that a store refuses is told like any other fault of it."""
    place.answer = lambda _asked: error(status, code)
    done = CliRunner().invoke(program, ["-c", str(configuration(tmp_path, place.address)), how])
    assert done.exit_code == 2, done.output
    assert says in done.output
    assert place.address in done.output
    assert "canary" not in done.output


@pytest.mark.parametrize("program", ["blizzard", "penguin"])
def test_a_signal_while_a_store_refuses_the_key_does_not_end_with_2(place, tmp_path, program):
    """2 keeps the shipped units from starting the program again."""
    place.answer = lambda _asked: error(403, "InvalidAccessKeyId")
    process = start(program, "-c", configuration(tmp_path, place.address))
    assert process.stderr is not None
    said = ""
    while "InvalidAccessKeyId" not in said and (line := process.stderr.readline()):
        said += line
    process.send_signal(signal.SIGTERM)
    ended = finish(process)
    assert ended.code == 1, said + ended.err
    assert "SIGTERM" in ended.err


@pytest.mark.parametrize(("program", "how"), [(blizzard, "--dry-run"), (penguin, "--dry-run")])
def test_a_wrong_clock_is_no_fault_of_the_configuration(place, tmp_path, program, how):
    place.answer = lambda _asked: error(403, "RequestTimeTooSkewed")
    done = CliRunner().invoke(program, ["-c", str(configuration(tmp_path, place.address)), how])
    assert done.exit_code == 1, done.output
    assert "set the clock, or have it set by NTP" in done.output


LOGIN = json.dumps(
    {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
)
ACCOUNT = {
    "AZURE_ALLOW_HTTP": "true",
    "AZURE_STORAGE_ACCOUNT_NAME": "acc",
    "AZURE_STORAGE_ACCOUNT_KEY": "Y2FuYXJ5",
}
TOKEN = {"AZURE_ALLOW_HTTP": "true", "AZURE_STORAGE_SAS_KEY": "sv=2022&sig=canary"}
GOOGLE = {"GOOGLE_BASE_URL": "{at}", "GOOGLE_ALLOW_HTTP": "true"}
KEY = {"AWS_ACCESS_KEY_ID": "canary", "AWS_SECRET_ACCESS_KEY": "canary"}
KEYS: dict[str, tuple[str, dict[str, str], dict[str, str], str]] = {
    "azure endpoint": (
        "az://lake/table",
        {"AZURE_STORAGE_ENDPOINT": "{at}/acc", **ACCOUNT},
        {},
        "/acc/lake/table/",
    ),
    "azure by an account in the uri": (
        "wasbs://lake@acc.blob.core.windows.net/table",
        {"AZURE_ENDPOINT": "{at}", **TOKEN},
        {},
        "/lake/table/",
    ),
    "azurite": (
        "az://lake/table",
        {"AZURE_STORAGE_USE_EMULATOR": "true"},
        {"AZURITE_BLOB_STORAGE_URL": "{at}"},
        "/devstoreaccount1/lake/table/",
    ),
    "azure from outside": (
        "az://lake/table",
        {},
        {"AZURE_STORAGE_ENDPOINT": "{at}", **ACCOUNT},
        "/lake/table/",
    ),
    "google emulator": (
        "gcs://lake/table",
        {"GOOGLE_SERVICE_ACCOUNT_KEY": LOGIN, **GOOGLE},
        {},
        "/lake/table",
    ),
    "google from outside": (
        "gs://lake/table",
        {"GOOGLE_SERVICE_ACCOUNT_KEY": LOGIN},
        GOOGLE,
        "/lake/table",
    ),
    "s3 by its address": (
        "https://lake.s3.eu-west-1.amazonaws.com/table",
        {"AWS_ENDPOINT": "{at}", "AWS_ALLOW_HTTP": "true", **KEY},
        {},
        "/lake/table/",
    ),
}


@pytest.mark.parametrize("case", KEYS)
def test_endpoints_and_emulators_are_reached_by_the_documented_keys(place, monkeypatch, case):
    """By the library of the stores, and by that of the Delta log."""
    uri, inside, outside, path = KEYS[case]

    def filled(each: dict[str, str]) -> dict[str, str]:
        return {name: value.replace("{at}", place.address) for name, value in each.items()}

    for name, value in filled(outside).items():
        monkeypatch.setenv(name, value)
    store = Reader(uri, StorageOptions(filled(inside)), retry=QUICK)
    assert store.get("x") is None
    assert place.asked[-1].path.startswith(path)
    asked = len(place.asked)
    place.answer = lambda _asked: error(403, "AccessDenied")
    with pytest.raises(LakeError, match="refused access"), translated(store):
        DeltaTable(location(store.uri), storage_options=options_for(store))
    assert place.asked[asked].path.startswith(path)
