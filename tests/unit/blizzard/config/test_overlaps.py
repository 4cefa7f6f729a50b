"""What is written into a source, and a source inside a table, is refused before anything runs."""

from typing import Any

import pytest

from lakebed.locations import place_of
from tests.support.blizzard_config import faults_of, minimal, settings_of


def pipeline(source: str, table: str, dlq: str | None = None) -> dict[str, Any]:
    letters = {"error_handling__dlq_path": dlq} if dlq else {}
    return minimal(source__path=source, sink__path=table, **letters)


IN_SOURCE = "is inside source default, where the records of failed files would be read as data"


@pytest.mark.parametrize(
    ("source", "dlq"),
    [
        ("s3://b/in", "s3://b/in"),
        ("s3://b/in/", "s3://b/in/dlq/"),
        ("s3://b", "s3://b/dlq"),
        ("s3://b/in", "s3://b/x/../in/dlq"),
        ("s3://b/in/*.ndjson", "s3://b/in"),
        ("s3://b/in/**/*.ndjson", "s3://b/in/dlq"),
        ("s3://b/in/f*", "s3://b/in"),
        ("/data/in", "file:///data/in/dlq"),
        ("file:///data/in", "/data/./x/../in/dlq"),
    ],
)
def test_a_dead_letter_queue_in_a_source_is_refused(tmp_path, source, dlq):
    """D20: its records would be read, fail, and be written about again."""
    (fault,) = faults_of(tmp_path, pipeline(source, "s3://b/table", dlq))
    assert fault.startswith(f"error_handling.dlq_path: {IN_SOURCE}")


@pytest.mark.parametrize(
    ("source", "dlq"),
    [
        ("s3://b/in", "s3://b/dlq"),
        ("s3://b/in", "s3://b/in-dlq"),
        ("s3://b/in", "s3://other/in/dlq"),
        ("s3://b/in", "s3://b/in/_dlq"),
        ("s3://b/in/*.ndjson", "s3://b/in/dlq"),
        ("/data/in", "s3://data/in"),
    ],
)
def test_a_dead_letter_queue_of_which_nothing_is_read_is_accepted(tmp_path, source, dlq):
    """D20."""
    assert settings_of(tmp_path, pipeline(source, "s3://b/table", dlq))


def test_a_link_does_not_hide_that_a_queue_lies_in_a_source(tmp_path):
    """D20."""
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    found = faults_of(
        tmp_path, pipeline(f"{tmp_path}/in", f"{tmp_path}/table", f"{tmp_path}/link/dlq")
    )
    assert [IN_SOURCE in fault for fault in found] == [True]


def test_the_queue_of_one_pipeline_in_the_source_of_another_is_refused(tmp_path):
    """D20."""
    document = {
        "pipelines": {
            "a": pipeline("s3://b/a", "s3://b/ta"),
            "b": pipeline("s3://b/b", "s3://b/tb", "s3://b/a/dlq"),
        }
    }
    (fault,) = faults_of(tmp_path, document)
    assert fault.startswith(f"pipelines.b.error_handling.dlq_path: {IN_SOURCE}")


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ("s3://b/table/in", "s3://b/table"),
        ("s3://b/table/date=*/x.ndjson", "s3://b/table"),
        ("s3://b/table/_blizzard/in", "s3://b/table"),
        ("/t/table/../table/in", "file:///t/table"),
    ],
)
def test_a_source_in_a_table_is_refused(tmp_path, source, table):
    """D20: a VACUUM takes its files for what the table has left behind."""
    (fault,) = faults_of(tmp_path, pipeline(source, table))
    assert fault.startswith("source.path: is inside the table of pipeline default, where a VACUUM")


def test_a_source_that_is_the_table_is_refused_as_that(tmp_path):
    (fault,) = faults_of(tmp_path, pipeline("s3://b/table/", "s3://b/table"))
    assert fault.startswith("source.path: is the table of pipeline default itself, where a VACUUM")


def test_a_source_in_a_table_of_penguin_is_refused(tmp_path):
    """D20."""
    document = pipeline("s3://b/other/in", "s3://b/table")
    document["tables"] = {"t": {"table_uri": "s3://b/other"}}
    (fault,) = faults_of(tmp_path, document)
    assert fault.startswith("source.path: is inside the table of tables.t, where a VACUUM")


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ("s3://b/table/_landing", "s3://b/table"),
        ("s3://b/table-in", "s3://b/table"),
        ("s3://b", "s3://b/table"),
        ("s3://b/**/*.ndjson", "s3://b/table"),
        ("s3://b/**", "s3://b/table"),
    ],
)
def test_a_source_beside_or_around_a_table_is_accepted(tmp_path, source, table):
    """D20: what the programs write into a table is Parquet, or hidden."""
    assert settings_of(tmp_path, pipeline(source, table))


def test_places_are_compared_in_one_form():
    assert place_of("s3a://b//x/./y/").same(place_of("s3://b/x/y"))
    assert place_of("s3://b/x/y").below(place_of("s3://b")) == "x/y"
    assert place_of("s3://b/xy").below(place_of("s3://b/x")) is None
    assert place_of("/x").below(place_of("/")) == "x"


AZURE = {"AZURE_STORAGE_ACCOUNT_NAME": "lake"}


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("abfss://data@lake.dfs.core.windows.net/in", {}),
        ("wasbs://data@lake.blob.core.windows.net/in", {}),
        ("https://lake.blob.core.windows.net/data/in", {}),
        ("az://data/in", AZURE),
    ],
)
def test_a_container_is_one_whatever_scheme_and_address_name_it(tmp_path, table, options):
    """HOLES D20: in any spelling."""
    document = pipeline("az://data/in/new", table)
    document["source"]["storage_options"] = AZURE
    document["sink"]["storage_options"] = options
    (fault,) = faults_of(tmp_path, document)
    assert fault.startswith("source.path: is inside the table of pipeline default")


def test_containers_of_two_accounts_have_nothing_in_common(tmp_path):
    document = pipeline("az://data/in/new", "az://data/in")
    document["source"]["storage_options"] = AZURE
    document["sink"]["storage_options"] = {"account_name": "other"}
    assert settings_of(tmp_path, document)
