"""blizzard's part of a configuration, as the settings that its stages are given."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from blizzard.model.settings import PipelineSettings, QuarantineLimits, SinkSettings, SourceSettings
from blizzard.model.source.form import SkipRule
from lakebed.columns.schema import Field, Schema
from lakebed.config.models import (
    Compact,
    ErrorHandling,
    Global,
    Metrics,
    PartitionBy,
    Sink,
    Source,
    Spark,
)
from lakebed.config.schema import DeclaredField, DeclaredSchema
from lakebed.config.section import Section
from lakebed.listing.lookback import Window
from lakebed.partition import Template
from lakebed.types import (
    CommitMode,
    Compression,
    FieldType,
    Handoff,
    OnChange,
    OnMismatch,
    ParquetCodec,
    Provenance,
    SourceFormat,
    UnknownFields,
)
from tests.support.blizzard_config import changed, faults_of, minimal, settings_of, sink, source

SECTIONS: dict[str, type[Section]] = {
    "source": Source,
    "sink": Sink,
    "sink.partition_by": PartitionBy,
    "sink.compact": Compact,
    "schema": DeclaredSchema,
    "schema.fields": DeclaredField,
    "error_handling": ErrorHandling,
    "global": Global,
    "spark": Spark,
    "metrics": Metrics,
}
ID = Field(name="id", type=FieldType.STRING)
READ: dict[str, tuple[Any, Any, Any]] = {
    "source.path": ("s3://b/in/", lambda s: source(s).uri, "s3://b/in"),
    "source.storage_options": ({"AWS_ALLOW_HTTP": True},
        lambda s: source(s).storage_options.plain(), {"AWS_ALLOW_HTTP": "true"}),
    "source.format": ("json", lambda s: source(s).form.format, SourceFormat.JSON),
    "source.skip_records": ({"only_key": ["a"]}, lambda s: source(s).form.skip,
        SkipRule(only_key=("a",))),
    "source.compression": ("zstd", lambda s: source(s).compression, Compression.ZSTD),
    "source.max_concurrent_files": (3, lambda s: source(s).max_concurrent_files, 3),
    "source.batch_size": (100, lambda s: source(s).batch_size, 100),
    "source.poll_interval_secs": (0.5, lambda s: source(s).poll_interval, 0.5),
    "source.max_files_per_batch": (7, lambda s: source(s).max_files_per_batch, 7),
    "source.max_bytes_per_batch": (9, lambda s: source(s).max_bytes_per_batch, 9),
    "source.min_age_secs": (5, lambda s: source(s).min_age, 5.0),
    "source.on_change": ("reingest", lambda s: source(s).on_change, OnChange.REINGEST),
    "source.partition_filter": ({"prefix_template": "date=%Y-%m-%d", "lookback": 7},
        lambda s: source(s).lookback, Window.parse("date=%Y-%m-%d", 7)),
    "source.late_window_secs": (60, lambda s: source(s).late_window, 60.0),
    "source.sweep_interval_secs": (61, lambda s: source(s).sweep_interval, 61.0),
    "source.sweep_horizon": (3, lambda s: source(s).horizon,
        Window.parse("date=%Y-%m-%d/hour=%H", 3)),
    "sink.path": ("gs://b/t/", lambda s: sink(s).table_uri, "gs://b/t"),
    "sink.table_uri": ("file:///table", lambda s: sink(s).table_uri, "file:///table"),
    "sink.storage_options": ({"KEY": "0123"}, lambda s: sink(s).storage_options.plain(),
        {"KEY": "0123"}),
    "sink.file_size_mb": (0.5, lambda s: sink(s).rolling.file_size, 524_288),
    "sink.row_group_size_bytes": (1000, lambda s: sink(s).rolling.row_group_size, 1000),
    "sink.compression": ("lz4", lambda s: sink(s).rolling.codec, ParquetCodec.LZ4),
    "sink.max_concurrent_uploads": (2, lambda s: sink(s).upload.max_concurrent_uploads, 2),
    "sink.part_size_mb": (6, lambda s: sink(s).upload.part_size, 6_291_456),
    "sink.min_multipart_size_mb": (1, lambda s: sink(s).upload.min_multipart_size, 1_048_576),
    "sink.max_concurrent_parts": (3, lambda s: sink(s).upload.max_concurrent_parts, 3),
    "sink.handoff": ("staging", lambda s: sink(s).handoff, Handoff.STAGING),
    "sink.commit": ("inline", lambda s: sink(s).commit, CommitMode.INLINE),
    "sink.partition_by": ({"prefix_template": "date=%Y-%m-%d/region=%s"},
        lambda s: sink(s).template, Template.parse("date=%Y-%m-%d/region=%s")),
    "sink.partition_by.timestamp_field": ("at", lambda s: sink(s).timestamp_field, "at"),
    "sink.compact": ({"max_mb": 1}, lambda s: sink(s).compact.max_bytes, 1_048_576),
    "sink.compact.enabled": (True, lambda s: sink(s).compact.enabled, True),
    "sink.compact.every_secs": (60, lambda s: sink(s).compact.every, 60.0),
    "sink.compact.min_files": (9, lambda s: sink(s).compact.min_files, 9),
    "sink.compact.quiet_secs": (0, lambda s: sink(s).compact.quiet, 0.0),
    "sink.compact.max_mb": (2, lambda s: sink(s).compact.max_bytes, 2_097_152),
    "schema.fields": (
        [{"name": "id", "type": "string"}, {"name": "at", "type": "timestamp", "nullable": False}],
        lambda s: s.pipelines[0].schema,
        Schema((ID, Field(name="at", type=FieldType.TIMESTAMP, nullable=False)))),
    "schema.on_mismatch": ("rescue", lambda s: s.pipelines[0].on_mismatch, OnMismatch.RESCUE),
    "schema.unknown_fields": ("fail", lambda s: s.pipelines[0].unknown_fields, UnknownFields.FAIL),
    "schema.infer_max_bytes": (9, lambda s: s.pipelines[0].infer_max_bytes, 9),
    "schema.provenance": (["line", "file"], lambda s: s.pipelines[0].provenance,
        (Provenance.LINE, Provenance.FILE)),
    "sink.inactivity_timeout_secs": (61, lambda s: sink(s).rolling.inactivity, 61.0),
    "sink.rollover_timeout_secs": (301, lambda s: sink(s).rolling.rollover, 301.0),
    "sink.late_after_secs": (60, lambda s: sink(s).late_after, 60.0),
    "error_handling.max_failures": (5, lambda s: s.pipelines[0].max_failures, 5),
    "error_handling.dlq_path": ("s3://b/dlq/", lambda s: s.pipelines[0].dlq_path, "s3://b/dlq"),
    "spark.master": ("local[2]", lambda s: s.spark.master, "local[2]"),
    "spark.shared_paths": (["/mnt/lake/"], lambda s: s.spark.shared_paths, ("/mnt/lake",)),
    "spark.line_port": (7078, lambda s: s.spark.line_port, 7078),
    "spark.conf": ({"spark.ui.enabled": False, "spark.cores.max": 4}, lambda s: s.spark.conf,
        {"spark.ui.enabled": "false", "spark.cores.max": "4"}),
    "global.total_concurrency": (8, lambda s: (s.total_concurrency, s.spark.most_tasks), (8, 8)),
    "global.poll_jitter_secs": (2, lambda s: s.poll_jitter, 2.0),
    "error_handling.on_bad_record": ("quarantine", lambda s: s.pipelines[0].quarantine,
        QuarantineLimits()),
    "error_handling.show_values": (True, lambda s: s.pipelines[0].show_values, True),
    "metrics.enabled": (True, lambda s: s.metrics_address, "127.0.0.1:9090"),
    "metrics.page": (False, lambda s: s.metrics_page, False),
}  # fmt: skip
"""Each key that is acted on: a value, where it arrives, and as what."""
INSIDE = {
    f"{section}.{key}"
    for section, keys in {
        "error_handling": "dlq_storage_options max_bad_records max_bad_ratio",
        "source": "records notifications",
        "sink": "partition_by.prefix_template",
        "schema": "infer hints ddl file coerce null_values",
        "schema.fields": "name type nullable fields items values format from coerce truncate "
        "null_values",
        "metrics": "address blizzard_address penguin_address token token_file tls_cert_file "
        "tls_key_file",
    }.items()
    for key in keys.split()
}
"""Keys read by the entry above them."""


def test_settings_have_the_same_defaults_as_the_document(tmp_path: Path) -> None:
    assert settings_of(tmp_path, minimal()).pipelines == (
        PipelineSettings(
            sources=(SourceSettings(uri="/in"),),
            sink=SinkSettings(table_uri="/table"),
            schema=Schema((ID,)),
            unknown_fields=UnknownFields.RESCUE,
        ),
    )


@pytest.mark.parametrize("key", sorted(READ))
def test_every_key_that_is_acted_on_is_read(tmp_path: Path, key: str) -> None:
    value, arrived, expected = READ[key]

    settings = settings_of(tmp_path, changed(key, value))

    assert arrived(settings) == expected


def test_limits_belong_to_a_quarantine(tmp_path: Path) -> None:
    limits = {"max_bad_records": 7, "max_bad_ratio": 0.25}
    quarantine = {"error_handling": {"on_bad_record": "quarantine", **limits}}
    (pipeline,) = settings_of(tmp_path, minimal() | quarantine).pipelines
    assert pipeline.quarantine == QuarantineLimits(max_records=7, max_ratio=0.25)

    faults = faults_of(tmp_path, minimal() | {"error_handling": limits})
    assert [fault.partition(";")[0] for fault in faults] == [
        f"error_handling.{key}: belongs to on_bad_record: quarantine" for key in limits
    ]


def test_no_key_is_forgotten() -> None:
    every = {f"{path}.{key}" for path, section in SECTIONS.items() for key in section.attributes()}

    assert set(READ) | INSIDE == every


@pytest.mark.parametrize(
    ("schema", "unknown", "mismatch"),
    [
        (None, UnknownFields.ADD, OnMismatch.RESCUE),
        ({"infer": True}, UnknownFields.ADD, OnMismatch.RESCUE),
        ({"infer": True, "unknown_fields": "drop"}, UnknownFields.DROP, OnMismatch.RESCUE),
        ({"fields": [{"name": "id", "type": "string"}]}, UnknownFields.RESCUE, OnMismatch.FAIL),
        (
            {"fields": [{"name": "id", "type": "string"}], "unknown_fields": "add"},
            UnknownFields.ADD,
            OnMismatch.RESCUE,
        ),
        ({"infer": True, "on_mismatch": "fail"}, UnknownFields.ADD, OnMismatch.FAIL),
    ],
)
def test_what_becomes_of_other_values_depends_on_who_knows_the_columns(
    tmp_path: Path, schema: Any, unknown: UnknownFields, mismatch: OnMismatch
) -> None:
    document = {"source": {"path": "/in"}, "sink": {"path": "/t"}}
    if schema is not None:
        document["schema"] = schema
    (pipeline,) = settings_of(tmp_path, document).pipelines

    assert (pipeline.unknown_fields, pipeline.on_mismatch) == (unknown, mismatch)


def test_columns_are_declared_or_found_and_hints_belong_to_the_latter(tmp_path: Path) -> None:
    field = {"name": "id", "type": "string"}
    hinted = settings_of(tmp_path, minimal() | {"schema": {"infer": True, "hints": [field]}})
    assert (hinted.pipelines[0].infer, hinted.pipelines[0].schema) == (True, Schema((ID,)))

    (both,) = faults_of(tmp_path, minimal() | {"schema": {"infer": True, "fields": [field]}})
    assert both.startswith("schema.infer: cannot be combined with fields")
    declared = {"fields": [field], "hints": [field | {"name": "x"}]}
    (stray,) = faults_of(tmp_path, minimal() | {"schema": declared})
    assert stray.startswith("schema.hints: belongs to infer: true")


def test_parts_that_s3_would_refuse_are_refused_at_the_start(tmp_path: Path) -> None:
    """W11."""
    small = minimal(sink__path="s3://b/table", sink__part_size_mb=4.9)

    assert faults_of(tmp_path, small) == [
        (
            "sink.part_size_mb: must be at least 5: S3 refuses parts smaller than 5 MB, other than "
            "the last one"
        )
    ]
    assert settings_of(tmp_path, minimal(sink__path="s3://b/table", sink__part_size_mb=5))
    assert settings_of(tmp_path, minimal(sink__path="gs://b/table", sink__part_size_mb=1))


@pytest.mark.parametrize("path", ["az://c/in?sig=hunter2", "s3://b/in#hunter2"])
def test_a_uri_may_not_carry_a_signature(tmp_path: Path, path: str) -> None:
    """W17."""
    (fault,) = faults_of(tmp_path, minimal(source__path=path))

    assert fault == (
        "source.path: must not hold ? or #; put keys and signatures into storage_options"
    )


def test_zero_failures_mean_no_limit(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, minimal(error_handling__max_failures=0))

    assert settings.pipelines[0].max_failures is None


@pytest.mark.parametrize("name", ["a/b", "", ".hidden", "_x", "a b", "a:b", "x" * 101])
def test_a_name_that_cannot_be_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    pipeline = {
        "sources": {name: {"path": "/in"}},
        "sink": {"path": "/t"},
        "schema": {"fields": [{"name": "id", "type": "string"}]},
    }

    found = faults_of(tmp_path, {"pipelines": {name: pipeline}})

    assert len(found) == 2
    assert all("a name must start with a letter or digit" in fault for fault in found)


@pytest.mark.parametrize("name", ["protocol", "Protocol"])
def test_a_pipeline_may_not_take_the_protocols_folder(tmp_path: Path, name: str) -> None:
    (fault,) = faults_of(tmp_path, {"pipelines": {name: minimal()}})

    assert "is reserved for the table directory" in fault


def test_inline_commits_find_the_entry_of_their_table(tmp_path: Path) -> None:
    document = minimal(sink__commit="inline")
    document["tables"] = {"other": {"table_uri": "/o"}, "mine": {"table_uri": "file:///table/"}}

    assert settings_of(tmp_path, document).tables == {"default": "mine"}


def test_penguins_section_is_checked_but_its_gaps_are_penguins(tmp_path: Path) -> None:
    document = minimal()
    document["tables"] = {"t": {"table_uri": "/t", "schema_evolution": "strict"}}
    broken = minimal()
    broken["tables"] = {"t": {"table_uri": "/t", "schema_evolutoin": "merge"}}

    assert settings_of(tmp_path, document).pipelines
    assert faults_of(tmp_path, broken) == [
        "tables.t.schema_evolutoin: unknown key; did you mean schema_evolution?"
    ]


def test_a_document_without_a_pipeline_is_answered_with_an_example(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, {"tables": {"t": {"table_uri": "/t"}}})

    first, _, example = fault.partition("\n")
    assert first.startswith("no pipeline is configured: ")
    assert len(example.splitlines()) == 5
    assert settings_of(tmp_path, yaml.safe_load(example)).pipelines


def test_a_broken_pipeline_is_not_also_a_missing_one(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, {"pipelines": {"p": "text"}})

    assert fault == "pipelines.p: must be a section with keys of its own, not text"


def test_settings_travel_to_executors_and_show_no_secret(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        minimal(
            source__storage_options={"AWS_SECRET_ACCESS_KEY": "${TOKEN}"},
            sink__storage_options={"AWS_SECRET_ACCESS_KEY": "${TOKEN}"},
            spark__conf={"spark.hadoop.fs.s3a.secret.key": "${TOKEN}"},
        ),
        {"TOKEN": "hunter2"},
    )

    assert pickle.loads(pickle.dumps(settings)) == settings
    assert "hunter2" not in repr(settings)
    assert sink(settings).storage_options.plain() == {"AWS_SECRET_ACCESS_KEY": "hunter2"}
