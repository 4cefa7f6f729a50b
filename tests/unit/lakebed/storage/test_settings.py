"""Every library that opens a store is told the same settings, and none follows others."""

from contextlib import suppress

import pytest
from deltalake import DeltaTable

from lakebed.deltalog.tables import location, options_for, translated
from lakebed.errors import ConfigInvalid, LakeError
from lakebed.storage.options import OptionOrigin, StorageOptions
from lakebed.storage.settings import split
from lakebed.storage.store import Reader
from tests.support.answering import answering

KEYS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "canary",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}
A, B, C = "https://a:1", "https://b:1", "https://c:1"


@pytest.mark.parametrize(
    ("section", "outside"),
    [
        ("AWS_ENDPOINT", ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")),
        ("endpoint_url", ("AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3")),
        ("AWS_ENDPOINT_URL_S3", ("AWS_ENDPOINT", "AWS_ENDPOINT_URL")),
        ("", ("AWS_ENDPOINT_URL_S3",)),
        ("", ("AWS_ENDPOINT_URL",)),
    ],
)
def test_the_journal_and_the_delta_log_are_in_the_same_store(section, outside, monkeypatch):
    """A section always wins; without one, any of the variables leads both there."""
    with answering() as right, answering() as wrong:
        for name in outside:
            monkeypatch.setenv(name, (wrong if section else right).address)
        monkeypatch.setenv("AWS_BUCKET", "decoy")
        options = StorageOptions({**KEYS, **({section: right.address} if section else {})})
        reader = Reader("s3://lake/tab", options)
        assert reader.head("x") is None
        assert [each.path for each in right.asked] == ["/lake/tab/x"]
        with suppress(LakeError), translated(reader):
            DeltaTable(location(reader.uri), storage_options=options_for(reader))
    assert len(right.asked) > 1
    assert all("/lake" in each.path for each in right.asked)
    assert not wrong.asked


def test_the_address_for_s3_alone_wins_in_the_environment():
    environment = {"AWS_ENDPOINT_URL": A, "AWS_ENDPOINT_URL_S3": B}
    assert set(split({}, uri="s3://b", environment=environment)[0].values()) == {B}
    environment = {"AWS_ENDPOINT": A, "AWS_ENDPOINT_URL": B}
    assert split({}, uri="s3://b", environment=environment)[0] == {"aws_endpoint": A}
    assert split({"endpoint": C}, uri="s3://b", environment=environment)[0] == {"aws_endpoint": C}


def test_two_names_of_one_setting_in_a_section_are_a_contradiction_if_they_differ():
    with pytest.raises(ConfigInvalid, match="AWS_ENDPOINT_URL: is the same setting as endpoint"):
        split({"endpoint": A, "AWS_ENDPOINT_URL": B}, uri="s3://b")
    assert split({"endpoint": A, "AWS_ENDPOINT_URL": A}, uri="s3://b")[0] == {"aws_endpoint": A}


def test_a_region_of_a_section_wins_over_one_outside_by_whichever_name():
    environment = {"AWS_REGION": "eu-1", "AWS_DEFAULT_REGION": "eu-2"}
    assert split({}, uri="s3://b", environment=environment)[0] == {"aws_region": "eu-1"}
    given = {"default_region": "eu-3"}
    assert split(given, uri="s3://b", environment=environment)[0] == {"aws_region": "eu-3"}


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("s3://b", "AWS_BUCKET"),
        ("s3://b", "bucket_name"),
        ("gs://b", "google_bucket"),
        ("az://b", "azure_container_name"),
        ("az://b", "container_name"),
    ],
)
def test_no_option_names_the_bucket(uri, name):
    """The journal would be read from one bucket and the Delta log from another."""
    options = StorageOptions({name: "decoy"}, OptionOrigin(section="tables.one.storage_options"))
    with pytest.raises(ConfigInvalid, match=rf"one\.storage_options\.{name}: the bucket is"):
        Reader(uri, options)


def test_the_account_of_a_uri_is_the_only_one():
    uri = "abfss://c@acc.dfs.core.windows.net/t"
    with pytest.raises(ConfigInvalid, match="another account than the URI names"):
        split({"account_name": "other"}, uri=uri)
    split({"account_name": "acc"}, uri=uri)
    assert split({}, uri=uri, environment={"AZURE_STORAGE_ACCOUNT_NAME": "other"})[0] == {}


def test_an_empty_address_in_the_environment_is_a_fault():
    with pytest.raises(ConfigInvalid, match="AWS_ENDPOINT_URL_S3 is empty; unset it"):
        split({}, uri="s3://b", environment={"AWS_ENDPOINT_URL_S3": ""})
    environment = {"AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT": A}
    assert set(split({}, uri="s3://b", environment=environment)[0].values()) == {A}


@pytest.mark.parametrize("value", ["canary\n", "canary\r\n", "can\nary", "canary\x01"])
def test_a_value_that_no_header_can_hold_is_refused_by_its_key(value, monkeypatch):
    """The client panics where it is given one."""
    says = "it has a line break or another control character in it"
    origin = OptionOrigin(section="tables.one.storage_options")
    with pytest.raises(ConfigInvalid) as refused:
        Reader("s3://b", StorageOptions({**KEYS, "AWS_SECRET_ACCESS_KEY": value}, origin))
    assert f"tables.one.storage_options.AWS_SECRET_ACCESS_KEY: {says}" in str(refused.value)
    assert "canary" not in str(refused.value)
    monkeypatch.setenv("AWS_SESSION_TOKEN", value)
    with pytest.raises(ConfigInvalid, match=f"environment variable AWS_SESSION_TOKEN: {says}"):
        Reader("s3://b", StorageOptions({}, origin))


def test_a_switch_that_is_neither_true_nor_false_is_told_as_that():
    options = {"AWS_ALLOW_HTTP": "yes", "AWS_ENDPOINT": "http://h"}
    with pytest.raises(ConfigInvalid, match="AWS_ALLOW_HTTP: is not understood; write true or"):
        split(options, uri="s3://b")
    with pytest.raises(ConfigInvalid, match="AWS_ALLOW_HTTP: is not understood"):
        split({}, uri="s3://b", environment={"AWS_ALLOW_HTTP": "perhaps"})


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
    ],
)
def test_half_of_a_key_is_a_fault_unless_the_environment_has_the_other(given, missing):
    with pytest.raises(ConfigInvalid, match=f"{missing} is missing"):
        split({given: "x"}, uri="s3://b")
    with pytest.raises(ConfigInvalid, match=f"{missing} is missing"):
        split({}, uri="s3://b", environment={given: "x"})
    split({given: "x"}, uri="s3://b", environment={missing: "y"})


def test_create_only_writes_cannot_be_disabled():
    with pytest.raises(ConfigInvalid, match="AWS_CONDITIONAL_PUT: must not be disabled"):
        split({"AWS_CONDITIONAL_PUT": "disabled"}, uri="s3://b")
    with pytest.raises(ConfigInvalid, match="variable AWS_CONDITIONAL_PUT: must not be disabled"):
        split({}, uri="s3://b", environment={"AWS_CONDITIONAL_PUT": "disabled"})
