"""blizzard's part of a configuration, as the settings that its stages are given."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from blizzard.config.load import NOT_AVAILABLE, NOT_YET, load
from blizzard.model.settings import (
    PipelineSettings,
    RollingPolicy,
    SinkSettings,
    SourceSettings,
    SparkSettings,
    UploadSettings,
)
from lakebed.config.models import (
    DeclaredField,
    DeclaredSchema,
    ErrorHandling,
    Global,
    Metrics,
    PartitionBy,
    Section,
    Sink,
    Source,
    Spark,
)
from lakebed.errors import ConfigInvalid
from lakebed.listing.lookback import Window
from lakebed.partition import Template
from lakebed.schema import Field, Schema
from lakebed.types import Commit, Compression, FieldType, Handoff, OnChange, ParquetCodec

SECTIONS: dict[str, type[Section]] = {
    "source": Source,
    "sink": Sink,
    "sink.partition_by": PartitionBy,
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
    "source.storage_options": (
        {"AWS_ALLOW_HTTP": True},
        lambda s: source(s).storage_options.plain(),
        {"AWS_ALLOW_HTTP": "true"},
    ),
    "source.compression": ("zstd", lambda s: source(s).compression, Compression.ZSTD),
    "source.max_concurrent_files": (3, lambda s: source(s).max_concurrent_files, 3),
    "source.batch_size": (100, lambda s: source(s).batch_size, 100),
    "source.poll_interval_secs": (0.5, lambda s: source(s).poll_interval, 0.5),
    "source.max_files_per_batch": (7, lambda s: source(s).max_files_per_batch, 7),
    "source.max_bytes_per_batch": (9, lambda s: source(s).max_bytes_per_batch, 9),
    "source.min_age_secs": (5, lambda s: source(s).min_age, 5.0),
    "source.on_change": ("reingest", lambda s: source(s).on_change, OnChange.REINGEST),
    "source.partition_filter": (
        {"prefix_template": "date=%Y-%m-%d", "lookback": 7},
        lambda s: source(s).lookback,
        Window.parse("date=%Y-%m-%d", 7),
    ),
    "source.late_window_secs": (60, lambda s: source(s).late_window, 60.0),
    "source.sweep_interval_secs": (61, lambda s: source(s).sweep_interval, 61.0),
    "source.sweep_horizon": (
        3,
        lambda s: source(s).horizon,
        Window.parse("date=%Y-%m-%d/hour=%H", 3),
    ),
    "sink.path": ("gs://b/t/", lambda s: sink(s).table_uri, "gs://b/t"),
    "sink.table_uri": ("file:///table", lambda s: sink(s).table_uri, "file:///table"),
    "sink.storage_options": (
        {"KEY": "0123"},
        lambda s: sink(s).storage_options.plain(),
        {"KEY": "0123"},
    ),
    "sink.file_size_mb": (0.5, lambda s: sink(s).rolling.file_size, 524_288),
    "sink.row_group_size_bytes": (1000, lambda s: sink(s).rolling.row_group_size, 1000),
    "sink.compression": ("lz4", lambda s: sink(s).rolling.codec, ParquetCodec.LZ4),
    "sink.max_concurrent_uploads": (2, lambda s: sink(s).upload.max_concurrent_uploads, 2),
    "sink.part_size_mb": (6, lambda s: sink(s).upload.part_size, 6_291_456),
    "sink.min_multipart_size_mb": (1, lambda s: sink(s).upload.min_multipart_size, 1_048_576),
    "sink.max_concurrent_parts": (3, lambda s: sink(s).upload.max_concurrent_parts, 3),
    "sink.handoff": ("staging", lambda s: sink(s).handoff, Handoff.STAGING),
    "sink.commit": ("inline", lambda s: sink(s).commit, Commit.INLINE),
    "sink.partition_by": (
        {"prefix_template": "date=%Y-%m-%d/region=%s"},
        lambda s: sink(s).template,
        Template.parse("date=%Y-%m-%d/region=%s"),
    ),
    "sink.partition_by.timestamp_field": ("at", lambda s: sink(s).timestamp_field, "at"),
    "schema.fields": (
        [
            {"name": "id", "type": "string"},
            {"name": "at", "type": "timestamp", "nullable": False},
        ],
        lambda s: s.pipelines[0].schema,
        Schema((ID, Field(name="at", type=FieldType.TIMESTAMP, nullable=False))),
    ),
    "sink.inactivity_timeout_secs": (61, lambda s: sink(s).rolling.inactivity, 61.0),
    "sink.rollover_timeout_secs": (301, lambda s: sink(s).rolling.rollover, 301.0),
    "error_handling.max_failures": (5, lambda s: s.pipelines[0].max_failures, 5),
    "error_handling.dlq_path": ("s3://b/dlq/", lambda s: s.pipelines[0].dlq_path, "s3://b/dlq"),
    "spark.master": ("local[2]", lambda s: s.spark.master, "local[2]"),
    "spark.shared_paths": (
        ["/mnt/lake/"],
        lambda s: s.spark.shared_paths,
        ("/mnt/lake",),
    ),
    "spark.line_port": (7078, lambda s: s.spark.line_port, 7078),
    "spark.conf": (
        {"spark.ui.enabled": False, "spark.cores.max": 4},
        lambda s: s.spark.conf,
        {"spark.ui.enabled": "false", "spark.cores.max": "4"},
    ),
    "global.total_concurrency": (8, lambda s: (s.total_concurrency, s.spark.most_tasks), (8, 8)),
    "global.poll_jitter_secs": (2, lambda s: s.poll_jitter, 2.0),
    "error_handling.show_values": (True, lambda s: s.pipelines[0].show_values, True),
    "metrics.enabled": (True, lambda s: s.metrics_address, "127.0.0.1:9090"),
}
"""Each key that is acted on: a value, where it arrives, and as what."""

INSIDE = {
    "sink.partition_by.prefix_template",
    "schema.fields.name",
    "schema.fields.type",
    "schema.fields.nullable",
    "metrics.address",
    "metrics.blizzard_address",
    "metrics.penguin_address",
}
"""Keys read by the entry above them."""

REFUSED: dict[str, Any] = {**NOT_AVAILABLE}

IGNORED: dict[str, Any] = {
    "schema.unknown_fields": "rescue",
}


def source(settings: Any) -> Any:
    return settings.pipelines[0].sources[0]


def sink(settings: Any) -> Any:
    return settings.pipelines[0].sink


def minimal(**changes: Any) -> dict[str, Any]:
    """Build the smallest document, changed by `section__key=value`."""
    document: dict[str, dict[str, Any]] = {
        "source": {"path": "/in"},
        "sink": {"path": "/table"},
        "schema": {"fields": [{"name": "id", "type": "string"}]},
    }
    for key, value in changes.items():
        section, _, name = key.partition("__")
        document.setdefault(section, {})[name] = value
    return document


def changed(key: str, value: Any) -> dict[str, Any]:
    """Change one key of the smallest document."""
    document = minimal()
    if key == "sink.table_uri":
        del document["sink"]["path"]
    if key == "source.sweep_horizon":
        document["sink"]["partition_by"] = {"prefix_template": "date=%Y-%m-%d/hour=%H"}
    if key.startswith("sink.partition_by."):
        document["sink"]["partition_by"] = {"prefix_template": "date=%Y-%m-%d"}
        document["schema"]["fields"].append({"name": "at", "type": "timestamp"})
    place: Any = document
    *above, last = key.split(".")
    for part in above:
        place = place.setdefault(part, {})
    place[last] = value
    return document


def settings_of(tmp_path: Path, document: Any, environment: dict[str, str] | None = None) -> Any:
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return load([file], [], environment or {})


def faults_of(tmp_path: Path, document: Any) -> list[str]:
    with pytest.raises(ConfigInvalid) as invalid:
        settings_of(tmp_path, document)
    return [fault.partition("  (")[0] for fault in invalid.value.faults]


def test_the_smallest_document_gives_the_documented_defaults(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, minimal())

    assert settings.pipelines == (
        PipelineSettings(
            name="default",
            sources=(
                SourceSettings(
                    name="default",
                    uri="/in",
                    compression=Compression.AUTO,
                    max_concurrent_files=16,
                    batch_size=8192,
                    poll_interval=10,
                    max_files_per_batch=10_000,
                    max_bytes_per_batch=17_179_869_184,
                ),
            ),
            sink=SinkSettings(
                table_uri="/table",
                rolling=RollingPolicy(
                    file_size=134_217_728, row_group_size=134_217_728, codec=ParquetCodec.SNAPPY
                ),
                upload=UploadSettings(
                    part_size=33_554_432,
                    min_multipart_size=5_242_880,
                    max_concurrent_parts=8,
                    max_concurrent_uploads=4,
                ),
                handoff=Handoff.JOURNAL,
                commit=Commit.PENGUIN,
                template=None,
            ),
            schema=Schema((ID,)),
            max_failures=None,
        ),
    )
    assert settings.spark == SparkSettings(master="local[*,4]", conf={})
    assert settings.metrics_address is None
    assert settings.warnings == ()


def test_settings_have_the_same_defaults_as_the_document(tmp_path: Path) -> None:
    assert settings_of(tmp_path, minimal()).pipelines == (
        PipelineSettings(
            sources=(SourceSettings(uri="/in"),),
            sink=SinkSettings(table_uri="/table"),
            schema=Schema((ID,)),
        ),
    )


@pytest.mark.parametrize("key", sorted(READ))
def test_every_key_that_is_acted_on_is_read(tmp_path: Path, key: str) -> None:
    value, arrived, expected = READ[key]

    settings = settings_of(tmp_path, changed(key, value))

    assert arrived(settings) == expected
    assert settings.warnings == ()


@pytest.mark.parametrize("key", sorted(IGNORED))
def test_a_key_that_is_not_acted_on_yet_says_so(tmp_path: Path, key: str) -> None:
    settings = settings_of(tmp_path, changed(key, IGNORED[key]))

    assert settings.warnings == (f"{key}: not acted on yet; {NOT_YET[key]}",)


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in REFUSED.items() for value in values]
)
def test_a_value_that_would_mislead_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    (fault,) = faults_of(tmp_path, changed(key, value))

    assert fault.startswith(f"{key}: ")
    assert "is not available yet; " in fault


def test_no_key_is_forgotten() -> None:
    every = {f"{path}.{key}" for path, section in SECTIONS.items() for key in section.attributes()}

    assert set(READ) | INSIDE | set(NOT_YET) | set(REFUSED) == every
    assert set(IGNORED) == set(NOT_YET)


def test_a_key_at_its_default_gives_no_warning(tmp_path: Path) -> None:
    document = minimal(
        source__late_window_secs=3600, metrics__enabled=False, global__poll_jitter_secs=0
    )

    assert settings_of(tmp_path, document).warnings == ()


def test_a_warning_names_the_pipeline(tmp_path: Path) -> None:
    document = {
        "pipelines": {
            "p": {
                "sources": {"web": {"path": "/in"}},
                "sink": {"path": "/t"},
                "schema": {
                    "fields": [{"name": "id", "type": "string"}],
                    "unknown_fields": "rescue",
                },
            }
        }
    }

    assert [line.partition(":")[0] for line in settings_of(tmp_path, document).warnings] == [
        "pipelines.p.schema.unknown_fields",
    ]


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


def test_many_pipelines_have_named_sources(tmp_path: Path) -> None:
    schema = {"fields": [{"name": "id", "type": "string"}]}
    settings = settings_of(
        tmp_path,
        {
            "pipelines": {
                "orders": {
                    "sources": {"web": {"path": "/web"}, "app": {"path": "/app"}},
                    "sink": {"path": "/orders"},
                    "schema": schema,
                    "error_handling": {"max_failures": 3},
                },
                "clicks": {
                    "source": {"path": "/clicks"},
                    "sink": {"path": "/clicks-table"},
                    "schema": schema,
                },
            }
        },
    )

    found = {
        pipeline.name: {source.name: source.uri for source in pipeline.sources}
        for pipeline in settings.pipelines
    }
    assert found == {
        "orders": {"web": "/web", "app": "/app"},
        "clicks": {"default": "/clicks"},
    }
    assert [pipeline.max_failures for pipeline in settings.pipelines] == [3, None]


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


@pytest.mark.parametrize("kind", ["float32", "float64", "timestamp", "binary", "json"])
def test_a_partition_column_has_a_type_that_delta_can_partition_by(
    tmp_path: Path, kind: str
) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "d", "type": kind}]
    document = minimal(sink__partition_by={"prefix_template": "d=%s"}, schema__fields=fields)

    (fault,) = faults_of(tmp_path, document)

    assert fault == (
        f"sink.partition_by.prefix_template: d is declared as {kind}, which cannot be a partition "
        "column; it must be string, date, int32, int64, boolean"
    )


@pytest.mark.parametrize("kind", ["string", "date", "int32", "int64", "boolean"])
def test_a_declared_partition_column_is_accepted(tmp_path: Path, kind: str) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "d", "type": kind}]
    document = minimal(sink__partition_by={"prefix_template": "d=%s"}, schema__fields=fields)

    assert sink(settings_of(tmp_path, document)).template == Template.parse("d=%s")


def test_a_data_file_must_be_left_a_column(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, minimal(sink__partition_by={"prefix_template": "id=%s"}))

    assert fault.startswith("schema.fields: every field is a partition column")


def test_a_partition_key_is_written_like_its_field(tmp_path: Path) -> None:
    document = minimal(sink__partition_by={"prefix_template": "ID=%s"})

    (fault,) = faults_of(tmp_path, document)

    assert fault.startswith("sink.partition_by.prefix_template: ID is declared as id")


FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "event_time", "type": "timestamp"},
    {"name": "day", "type": "date"},
    {"name": "hour", "type": "int32"},
    {"name": "flag", "type": "boolean"},
    {"name": "region", "type": "string"},
]


def by_time(template: str, field: str = "event_time") -> dict[str, Any]:
    by = {"prefix_template": template, "timestamp_field": field}
    return minimal(sink__partition_by=by, schema__fields=FIELDS)


def test_a_timestamp_field_must_be_declared_and_the_nearest_name_is_told(tmp_path: Path) -> None:
    where = "sink.partition_by.timestamp_field: "

    assert faults_of(tmp_path, by_time("date=%Y-%m-%d", "eventtime")) == [
        f"{where}eventtime is not a declared field; did you mean event_time?"
    ]
    assert faults_of(tmp_path, by_time("date=%Y-%m-%d", "xyz")) == [
        (
            f"{where}xyz is not a declared field; the declared fields are id, event_time, day, "
            "hour, flag, region"
        )
    ]


@pytest.mark.parametrize(
    ("field", "kind"), [("id", "string"), ("hour", "int32"), ("flag", "boolean")]
)
def test_a_timestamp_field_tells_time(tmp_path: Path, field: str, kind: str) -> None:
    (fault,) = faults_of(tmp_path, by_time("date=%Y-%m-%d", field))

    assert fault == (
        f"sink.partition_by.timestamp_field: {field} is declared as {kind}; "
        "it must be timestamp or date"
    )


@pytest.mark.parametrize(
    ("template", "field", "fault"),
    [
        (
            "d=%Y-%b",
            "event_time",
            "d has %b, which cannot be filled from timestamp_field; use %s",
        ),
        ("d=%", "event_time", "d has %, which"),
        ("r=%s-%Y", "event_time", "r has %s, which"),
        ("v=1", "event_time", "v has neither %s nor a time code, which"),
        ("h=%H", "day", "h needs a time of day, but day is a date"),
        ("day=%Y-%m", "event_time", "day is declared as date, which cannot hold %Y-%m; declare"),
        ("flag=%H", "event_time", "flag is declared as boolean, which cannot hold %H; declare"),
        ("hour=%m-%d", "event_time", "hour is declared as int32, which cannot hold %m-%d"),
        ("hour=%Y%m%d%H", "event_time", "hour is declared as int32, which cannot hold %Y%m%d%H"),
    ],
)
def test_a_template_that_rows_cannot_give_is_refused(
    tmp_path: Path, template: str, field: str, fault: str
) -> None:
    (found,) = faults_of(tmp_path, by_time(template, field))

    assert found.startswith(f"sink.partition_by.prefix_template: {fault}")


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ("date=%Y-%m-%d/hour=%H/region=%s/tenant=%s", "event_time"),
        ("year=%Y/month=%m/day=%Y-%m-%d", "day"),
        ("week=%G-W%V/nth=%j", "day"),
        ("hour=%Y%m%d", "event_time"),
        ("region=%s/flag=%s", "event_time"),
    ],
)
def test_a_template_that_rows_give_is_accepted(tmp_path: Path, template: str, field: str) -> None:
    settings = sink(settings_of(tmp_path, by_time(template, field)))

    assert (settings.template, settings.timestamp_field) == (Template.parse(template), field)


def test_inline_commits_find_the_entry_of_their_table(tmp_path: Path) -> None:
    document = minimal(sink__commit="inline")
    document["tables"] = {"other": {"table_uri": "/o"}, "mine": {"table_uri": "file:///table/"}}

    assert settings_of(tmp_path, document).tables == {"default": "mine"}


def test_penguins_section_is_checked_but_its_gaps_are_penguins(tmp_path: Path) -> None:
    document = minimal()
    document["tables"] = {"t": {"table_uri": "/t", "schema_evolution": "strict"}}
    broken = minimal()
    broken["tables"] = {"t": {"table_uri": "/t", "schema_evolutoin": "merge"}}

    assert settings_of(tmp_path, document).warnings == ()
    assert faults_of(tmp_path, broken) == [
        "tables.t.schema_evolutoin: unknown key; did you mean schema_evolution?"
    ]


def test_a_document_without_a_pipeline_is_answered_with_an_example(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, {"tables": {"t": {"table_uri": "/t"}}})

    first, _, example = fault.partition("\n")
    assert first.startswith("no pipeline is configured: ")
    assert len(example.splitlines()) == 6
    assert settings_of(tmp_path, yaml.safe_load(example)).pipelines


def test_a_broken_pipeline_is_not_also_a_missing_one(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, {"pipelines": {"p": "text"}})

    assert fault == "pipelines.p: must be a section with keys of its own, is text"


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


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [("/in", "/in", True), ("/in", "/in/deep", True), ("/in", "file:///in/a", True),
     ("/in", "/inside", False), ("s3://b/a", "s3://b/ab", False)],
)  # fmt: skip
def test_sources_that_hold_the_same_files_are_refused(
    tmp_path: Path, first: str, second: str, refused: bool
) -> None:
    """They would be ingested twice (D13)."""
    document = {
        "pipelines": {
            "p": {
                "sources": {"a": {"path": first}, "b": {"path": second}},
                "sink": {"path": "/t"},
                "schema": {"fields": [{"name": "id", "type": "string"}]},
            }
        }
    }
    if not refused:
        assert len(settings_of(tmp_path, document).pipelines[0].sources) == 2
        return
    with pytest.raises(ConfigInvalid) as caught:
        settings_of(tmp_path, document)
    assert any("would be ingested twice" in fault for fault in caught.value.faults)


# ------------------------------------------------------------------------------ source paths


@pytest.mark.parametrize(
    ("path", "folder", "pattern"),
    [
        ("s3://b/in", "s3://b/in", None),
        ("s3://b/logs/app-*", "s3://b/logs", "app-*"),
        ("s3://b/*.ndjson", "s3://b", "*.ndjson"),
        ("/data/*/events-*.ndjson.gz", "/data", "*/events-*.ndjson.gz"),
        ("/data/day=0?/x.ndjson", "/data", "day=0?/x.ndjson"),
        ("s3://b/day=0?/hour=*/x.ndjson", "s3://b", "day=0?/hour=*/x.ndjson"),
        ("gs://b/in/[a-c]*/**", "gs://b/in", "[a-c]*/**"),
        ("file:///data/*.json", "file:///data", "*.json"),
        ("*.json", ".", "*.json"),
        ("/*.json", "/", "*.json"),
    ],
)
def test_a_path_is_a_folder_or_names_below_the_last_folder_that_is_written_out(
    tmp_path: Path, path: str, folder: str, pattern: str | None
) -> None:
    found = source(settings_of(tmp_path, minimal(source__path=path)))

    assert (found.uri, found.pattern and found.pattern.text) == (folder, pattern)


def test_a_folder_that_is_there_is_a_folder_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "in [2024]*").mkdir()

    found = source(settings_of(tmp_path, minimal(source__path=str(tmp_path / "in [2024]*"))))

    assert (found.uri, found.pattern) == (str(tmp_path / "in [2024]*"), None)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("source.path", "/data/[ab", "source.path: has a [ without its ]"),
        (
            "source.partition_filter",
            {"prefix_template": "region=%s", "lookback": 1},
            "source.partition_filter.prefix_template: 'region=%s' contains no time",
        ),
        (
            "source.path",
            "s3://b/in?sv=2024&sig=x",
            "source.path: must not hold ? or #",
        ),
    ],
)
def test_a_source_that_cannot_be_looked_at_as_asked_is_refused(
    tmp_path: Path, key: str, value: Any, says: str
) -> None:
    (fault,) = faults_of(tmp_path, changed(key, value))

    assert fault.startswith(says)


def test_a_horizon_needs_a_template_that_tells_a_time(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, minimal(source__sweep_horizon=3))
    assert fault.startswith("source.sweep_horizon: counts folders of partition_filter")

    by = {"prefix_template": "region=%s"}
    (fault,) = faults_of(tmp_path, minimal(source__sweep_horizon=3, sink__partition_by=by))
    assert fault.startswith("source.sweep_horizon: counts the folders of a template")


def test_sources_with_patterns_below_one_folder_are_refused(tmp_path: Path) -> None:
    """D13: a file belongs to one source."""
    document = {
        "pipelines": {
            "p": {
                "sources": {"a": {"path": "/in/a-*"}, "b": {"path": "/in/b-*"}},
                "sink": {"path": "/t"},
                "schema": {"fields": [{"name": "id", "type": "string"}]},
            }
        }
    }
    (fault,) = faults_of(tmp_path, document)
    assert fault.startswith("pipelines.p.sources.a.path: contains the files of source b")


# ------------------------------------------------------------------------------ on a cluster


def on_cluster(master: str = "spark://h:7077", **more: Any) -> dict[str, Any]:
    return {"spark": {"master": master, **more}}


@pytest.mark.parametrize("master", ["spark://h:7077", "spark://127.0.0.1:1", "yarn", "k8s://h"])
def test_a_local_path_on_a_cluster_is_refused_by_name(tmp_path: Path, master: str) -> None:
    """Executors would look on disks of their own, and write where nobody looks."""
    faults = faults_of(tmp_path, minimal() | on_cluster(master))

    assert [fault.partition(":")[0] for fault in faults] == ["source.path", "sink.path"]
    assert all(f"executors of {master} would look on their own" in fault for fault in faults)
    assert all("spark.shared_paths" in fault for fault in faults)


@pytest.mark.parametrize("path", ["/mnt/lake/in", "/mnt/lake", "file:///mnt/lake/in/*.ndjson"])
def test_a_folder_that_all_machines_share_may_be_used_on_a_cluster(
    tmp_path: Path, path: str
) -> None:
    document = minimal(source__path=path, sink__path="s3://b/table")
    settings = settings_of(tmp_path, document | on_cluster(shared_paths=["/x", "/mnt/lake"]))

    assert source(settings).uri in path


@pytest.mark.parametrize("path", ["/mnt/lakeside", "/mnt", "/data/mnt/lake"])
def test_a_folder_beside_the_shared_one_is_not_shared(tmp_path: Path, path: str) -> None:
    document = minimal(source__path="s3://b/in", sink__table_uri=path)
    del document["sink"]["path"]
    (fault,) = faults_of(tmp_path, document | on_cluster(shared_paths=["/mnt/lake"]))

    assert fault.startswith("sink.table_uri: is on this machine's disk")


@pytest.mark.parametrize("master", ["local", "local[2,4]", "local-cluster[2,1,1024]"])
def test_without_a_cluster_local_paths_are_what_they_are(tmp_path: Path, master: str) -> None:
    assert settings_of(tmp_path, minimal() | on_cluster(master)).spark.master == master


@pytest.mark.parametrize(
    ("endpoint", "refused"),
    [
        ("http://localhost:9000", True),
        ("https://127.0.0.1", True),
        ("http://[::1]:9000", True),
        ("http://minio.lan:9000", False),
        ("http://10.0.0.7:9000", False),
        ("http://[::1", False),
    ],
)
@pytest.mark.parametrize("section", ["source", "sink"])
def test_a_store_at_the_drivers_loopback_is_refused_on_a_cluster(
    tmp_path: Path, section: str, endpoint: str, refused: bool
) -> None:
    document = minimal(source__path="s3://b/in", sink__path="s3://b/table")
    document[section]["storage_options"] = {"AWS_ENDPOINT": endpoint, "AWS_ALLOW_HTTP": True}
    # A master on loopback has no executors but those of this machine.
    assert settings_of(tmp_path, document | on_cluster("spark://localhost:7077"))
    if not refused:
        assert settings_of(tmp_path, document | on_cluster())
        return
    (fault,) = faults_of(tmp_path, document | on_cluster())
    assert fault.startswith(f"{section}.storage_options.AWS_ENDPOINT: is this machine's loopback")
    assert endpoint not in fault, "options are never shown"
