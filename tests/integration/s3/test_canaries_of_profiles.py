"""Keys to which a profile leads are secrets like those that are written down."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.s3.test_canaries import GOSSIP, SESSION, Told, found_in, quick, troubled
from tests.support.builders import ndjson, rows
from tests.support.faulty import Refuse
from tests.support.s3 import KEY, SECRET
from tests.support.s3_lake import Lake

__all__ = ["quick", "troubled"]

WORDS = "canary-words-of-a-program"
PROGRAM = f"""
echo {WORDS} >&2
if [ -e "$0.fails" ]; then exit 1; fi
cat "$0.json"
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a profile whose keys a program gives, and no other credentials."""
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    program = tmp_path / "program"
    program.write_text(PROGRAM)
    soon = datetime.now(UTC) + timedelta(minutes=4)  # So it is run again and again.
    keys = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "SessionToken": SESSION}
    document = {"Version": 1, **keys, "Expiration": soon.strftime("%Y-%m-%dT%H:%M:%SZ")}
    (tmp_path / "program.json").write_text(json.dumps(document))
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text(
        f"[profile leads]\ncredential_process = /bin/sh {program}\n"
    )
    return program


def by_profile(lake: Lake) -> Path:
    """Write the configuration with a profile in place of keys."""
    document = yaml.safe_load(lake.config.read_text())
    for section in (document["source"], document["sink"], document["tables"]["t"]):
        given = section["storage_options"]
        kept = {key: value for key, value in given.items() if "KEY" not in key}
        kept.pop("AWS_SESSION_TOKEN")
        section["storage_options"] = {**kept, "AWS_PROFILE": "leads"}
    file = lake.folder / "profile.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.mark.parametrize("shape", ["text", "json"])
def test_no_key_of_a_profile_is_printed_logged_or_written(
    program: Path, troubled: Lake, proxy: Any, shape: str
):
    """HOLES W17: nor what a program says, whether it works, fails at once or fails later."""
    told = Told(by_profile(troubled), shape)
    troubled.land("good.ndjson", ndjson(rows(3)))
    troubled.land("bad.ndjson", b'{"id": "one"}\n')
    assert told.blizzard("--dry-run", logs=True).exit_code == 0
    assert told.blizzard("--once", logs=True).exit_code == 0
    assert told.penguin("--once", logs=True).exit_code == 0
    assert troubled.ids() == [0, 1, 2]
    proxy.rule = lambda _request: Refuse(403, GOSSIP)
    for words in (("--once",), ("--dry-run",)):
        told.blizzard(*words, logs=True)
        told.penguin(*words, logs=True)
    proxy.rule = lambda _request: None
    program.with_name("program.fails").touch()
    for words in (("--once",), ("--dry-run",)):
        assert told.blizzard(*words, logs=True).exit_code != 0
        assert told.penguin(*words, logs=True).exit_code != 0
    told.blizzard("status")
    texts = "".join(told.texts)
    assert "leads to no new keys [CredentialRetrievalError]" in texts
    assert found_in(told.texts) == []
    assert WORDS not in texts
    bucket = troubled.store()
    for facts in bucket.objects():
        body = bucket.get(facts.path) or b""
        assert [one for one in (KEY, SECRET, SESSION, WORDS) if one.encode() in body] == []
