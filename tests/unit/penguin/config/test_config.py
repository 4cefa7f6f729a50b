"""penguin's part of a configuration, its catalog included, as settings of its stages."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakebed.config.models import Metrics, PartitionBy, TableSection
from lakebed.errors import ConfigInvalid
from lakebed.listing.lookback import Window
from lakebed.types import CatalogType, DiscoverBy, Evolution
from penguin.config.load import load
from penguin.model.settings import CatalogSettings
from tests.support.config import faults_from, set_key, settings_from

READ: dict[str, tuple[Any, Any, Any]] = {
    "table_uri": ("s3://b/t/", lambda t: t.table_uri, "s3://b/t"),
    "storage_options": ({"A": 1}, lambda t: t.storage_options.plain(), {"A": "1"}),
    "poll_interval_secs": (0.5, lambda t: t.poll_interval, 0.5),
    "delta_checkpoint_interval": (3, lambda t: t.checkpoint_interval, 3),
    "schema_evolution": ("strict", lambda t: t.evolution, Evolution.STRICT),
    "discovery": ("watermark", lambda t: t.discovery, DiscoverBy.WATERMARK),
    "partition_by": (
        {"prefix_template": "date=%Y-%m-%d/region=%s"},
        lambda t: t.partition_columns,
        ("date", "region"),
    ),
    "partition_filter": (
        {"prefix_template": "date=%Y-%m-%d", "lookback": 7},
        lambda t: t.partition_filter,
        Window.parse("date=%Y-%m-%d", 7),
    ),
    "file_pattern": ("*.parquet", lambda t: t.file_pattern, "*.parquet"),
    "late_window_secs": (60, lambda t: t.late_window, 60),
    "sweep_interval_secs": (90, lambda t: t.sweep_interval, 90),
    "max_files_per_commit": (5, lambda t: t.max_files_per_commit, 5),
    "table_properties": (
        {"delta.appendOnly": True, "delta.logRetentionDuration": "interval 7 days"},
        lambda t: t.properties,
        {"delta.appendOnly": "true", "delta.logRetentionDuration": "interval 7 days"},
    ),
}
"""Each key of a table that is acted on: a value, where it arrives, and as what."""

METRICS_READ: dict[str, tuple[Any, Any, Any]] = {
    "enabled": (True, lambda s: s.metrics_address, "127.0.0.1:9091"),
    "page": (False, lambda s: s.metrics_page, False),
}


settings_of = partial(settings_from, load)
faults_of = partial(faults_from, load)


def changed(key: str, value: Any) -> dict[str, Any]:
    """Change one key of the smallest document."""
    document: dict[str, Any] = {"tables": {"events": {"table_uri": "/table"}}}
    return set_key(document, key.replace("*", "events"), value)


@pytest.mark.parametrize("key", sorted(READ))
def test_every_key_that_is_acted_on_is_read(tmp_path: Path, key: str) -> None:
    value, arrived, expected = READ[key]

    settings = settings_of(tmp_path, changed(f"tables.*.{key}", value))

    assert arrived(settings.tables[0]) == expected


@pytest.mark.parametrize("key", METRICS_READ)
def test_the_metrics_section_is_read(tmp_path: Path, key: str) -> None:
    value, arrived, expected = METRICS_READ[key]

    settings = settings_of(tmp_path, changed(f"metrics.{key}", value))

    assert arrived(settings) == expected


def test_no_key_is_forgotten() -> None:
    every = {f"tables.*.{key}" for key in TableSection.attributes()}
    every |= {f"tables.*.partition_by.{key}" for key in PartitionBy.attributes()}
    every |= {f"metrics.{key}" for key in Metrics.attributes()}
    read = {f"tables.*.{key}" for key in READ} | {"tables.*.partition_by.prefix_template"}
    read |= {"tables.*.sweep_horizon"}
    # Catalogs have tests of their own.
    read |= {"tables.*.catalog"}
    # Only compared with the sink of the same table: penguin takes the columns, not their values.
    read |= {"tables.*.partition_by.timestamp_field"}

    read |= {f"metrics.{key}" for key in METRICS_READ}
    # Which address is whose is told by the tests of lakebed.config.checks.
    read |= {"metrics.address", "metrics.blizzard_address", "metrics.penguin_address"}
    # Who may read them is told by the tests of lakebed.telemetry.settings.
    read |= {f"metrics.{key}" for key in ("token", "token_file", "tls_cert_file", "tls_key_file")}

    assert read == every


def test_a_table_may_not_be_told_to_forget_what_was_committed(tmp_path: Path) -> None:
    forgets = {"delta.setTransactionRetentionDuration": "interval 7 days"}

    (fault,) = faults_of(tmp_path, changed("tables.*.table_properties", forgets))

    assert "must not be set: the table would forget" in fault


@pytest.mark.parametrize(
    "template", [{"partition_filter"}, {"partition_by"}, {"partition_filter", "partition_by"}]
)
def test_the_sweep_horizon_counts_in_the_unit_of_a_template(tmp_path, template):
    sections: dict[str, dict[str, Any]] = {
        "partition_filter": {"prefix_template": "date=%Y-%m-%d/hour=%H", "lookback": 7},
        "partition_by": {"prefix_template": "date=%Y-%m-%d"},
    }
    document = changed("tables.*.sweep_horizon", 3)
    document["tables"]["events"] |= {name: sections[name] for name in template}

    table = settings_of(tmp_path, document).tables[0]

    counts_in = "partition_filter" if "partition_filter" in template else "partition_by"
    assert table.sweep_horizon == Window.parse(sections[counts_in]["prefix_template"], 3)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "counts folders of partition_filter.prefix_template or of partition_by."),
        (
            {"partition_by": {"prefix_template": "region=%s"}},
            "counts the folders of a template, but 'region=%s' gives no time",
        ),
    ],
)
def test_a_sweep_horizon_without_a_unit_is_refused(tmp_path, more, why):
    document = changed("tables.*.sweep_horizon", 3)
    document["tables"]["events"] |= more

    (fault,) = faults_of(tmp_path, document)

    assert fault.startswith(f"tables.events.sweep_horizon: {why}")


def test_a_filter_that_tells_no_time_is_refused(tmp_path: Path) -> None:
    wrong = {"prefix_template": "region=%s", "lookback": 7}

    (fault,) = faults_of(tmp_path, changed("tables.*.partition_filter", wrong))

    assert fault.startswith("tables.events.partition_filter.prefix_template: ")
    assert "gives no time" in fault


def test_blizzards_sections_are_checked_but_their_gaps_are_blizzards(tmp_path: Path) -> None:
    document = changed("tables.*.poll_interval_secs", 5) | {
        "source": {"path": "/in", "min_age_secs": 5},
        "sink": {"path": "/table", "handoff": "staging"},
        "schema": {"fields": [{"name": "id", "type": "string"}]},
    }
    broken = document | {"source": {"path": "/in", "batch_sise": 1}}

    assert settings_of(tmp_path, document).tables
    assert faults_of(tmp_path, broken) == [
        "source.batch_sise: unknown key; did you mean batch_size?"
    ]


def test_a_document_without_a_table_is_answered_with_an_example(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, {"metrics": {"enabled": False}})

    first, _, example = fault.partition("\n")
    assert first.startswith("no table is configured: ")
    assert len(example.splitlines()) == 6
    assert settings_of(tmp_path, yaml.safe_load(example)).tables


def test_a_broken_table_is_not_also_a_missing_one(tmp_path: Path) -> None:
    assert faults_of(tmp_path, {"tables": {"events": {}}}) == [
        "tables.events.table_uri: is required"
    ]


def test_settings_show_no_secret(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path, changed("tables.*.storage_options", {"KEY": "${T}"}), {"T": "hunter2"}
    )

    assert settings.tables[0].storage_options.plain() == {"KEY": "hunter2"}
    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize("sink", ["/table", "file:///table"])
def test_a_table_that_says_nothing_of_its_partitions_has_those_of_its_sink(tmp_path, sink):
    """HOLES W34: one file says once how a table is divided."""
    document = {
        "source": {"path": "/in"},
        "sink": {"path": sink, "partition_by": {"prefix_template": "date=%Y-%m-%d/region=%s"}},
        "tables": {
            "events": {"table_uri": "/table", "sweep_horizon": 3},
            "other": {"table_uri": "/other"},
        },
    }
    events, other = settings_of(tmp_path, document).tables
    assert events.partition_columns == ("date", "region")
    assert events.partition_template == "date=%Y-%m-%d/region=%s"
    assert events.sweep_horizon == Window.parse("date=%Y-%m-%d/region=%s", 3)
    assert other.partition_columns is None


def loaded(tmp_path: Path, name: str = "events", **catalog: Any) -> CatalogSettings:
    table = {
        "table_uri": "s3://lake/events",
        "storage_options": {"AWS_REGION": "eu-west-1"},
        "catalog": {"type": "glue", "database": "lake", **catalog},
    }
    file = tmp_path / "penguin.yaml"
    file.write_text(yaml.safe_dump({"tables": {name: table}}))
    (found,) = load([file], [], {}).tables
    assert found.catalog is not None
    return found.catalog


def test_the_name_and_the_credentials_are_those_of_the_table(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert (found.type, found.name) == (CatalogType.GLUE, "lake.events")
    assert found.options.plain() == {"AWS_REGION": "eu-west-1"}


def test_its_own_credentials_are_not_mixed_with_those_of_the_table(tmp_path: Path) -> None:
    found = loaded(tmp_path, storage_options={"AWS_PROFILE": "catalog"}, table="all_events")
    assert found.options.plain() == {"AWS_PROFILE": "catalog"}
    assert found.name == "lake.all_events"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"type": "hive"}, "thrift://host:9083"),
        ({"type": "hive", "uri": "http://x:1"}, "thrift://host:9083"),
        ({"type": "hive", "uri": "thrift://x:9083", "region": "eu"}, "belongs to type glue"),
        ({"uri": "thrift://x:9083"}, "belongs to type hive"),
        ({"database": "Lake"}, "database"),
        ({"name": "Events-1"}, "cannot name a table"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, given: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        loaded(tmp_path, **given)
    assert word in str(refused.value)
