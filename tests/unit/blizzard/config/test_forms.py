"""The forms of source files in YAML: what they become, and what is refused."""

from pathlib import Path

import pytest

from blizzard.config.load import load
from blizzard.model.settings import SourceSettings
from blizzard.model.source.form import Form, SkipRule
from blizzard.model.source.glob import SourcePattern
from lakebed.errors import ConfigInvalid
from lakebed.types import SourceFormat


def source_of(tmp_path: Path, *lines: str, path: str = "/in") -> SourceSettings:
    text = "\n  ".join(["source:", f"path: {path}", *lines])
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"{text}\nsink: {{path: /out}}\nschema: {{fields: [{{name: a, type: json}}]}}\n"
    )
    (pipeline,) = load([file], [], {}).pipelines
    return pipeline.sources[0]


def test_what_is_told_of_files_is_what_they_are(tmp_path: Path):
    form = source_of(
        tmp_path,
        "format: json",
        "records: result.items",
        "skip_records: {only_key: [index], with_key: [a, b], without_key: [c]}",
    ).form
    assert form == Form(
        format=SourceFormat.JSON,
        records=("result", "items"),
        skip=SkipRule(only_key=("index",), with_key=("a", "b"), without_key=("c",)),
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["records: Records"], "source.records: says where .* it needs format: json"),
        (["format: json", "records: a..b"], "source.records: must be keys with a dot"),
        (["skip_records: {}"], "source.skip_records: says nothing; it needs only_key"),
        (["skip_records: {only_key: []}"], "source.skip_records: says nothing"),
        (["skip_records: {keys: [a]}"], "source.skip_records.keys"),
        (["format: csv"], "source.format: "),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, lines: list[str], message: str):
    with pytest.raises(ConfigInvalid, match=message):
        source_of(tmp_path, *lines)


@pytest.mark.parametrize("name", ["a.log", "no suffix", "a[1]*.json"])
def test_the_path_of_a_local_file_is_that_file(tmp_path: Path, name: str):
    (tmp_path / name).write_text("{}")
    source = source_of(tmp_path, path=f"'{tmp_path / name}'")
    assert source.uri == str(tmp_path)
    assert isinstance(source.pattern, SourcePattern)
    assert source.pattern.compiled().fullmatch(name)
    assert not source.pattern.compiled().fullmatch(f"{name}x")
    assert source.pattern.names_file(name)


def load_field(tmp_path: Path, field: str) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"source: {{path: /in}}\nsink: {{path: /out}}\nschema: {{fields: [{{name: a, {field}}}]}}\n"
    )
    load([file], [], {})


@pytest.mark.parametrize(
    ("field", "better"),
    [
        ("type: timestamp, format: [iso, epoch_ms, epoch_s]", "iso, epoch_s, epoch_ms"),
        ("type: timestamp_ntz, format: [epoch_ns, iso, epoch_us]", "epoch_us, iso, epoch_ns"),
        ("type: date, truncate: true, format: [epoch_ms, epoch_s]", "epoch_s, epoch_ms"),
        ("type: list, items: {type: timestamp, format: [epoch_ms, epoch_s]}", "epoch_s, epoch_ms"),
    ],
)
def test_formats_of_which_a_later_one_is_never_reached_are_refused(
    tmp_path: Path, field: str, better: str
):
    with pytest.raises(ConfigInvalid, match=rf"format: \[{better}\]"):
        load_field(tmp_path, field)


@pytest.mark.parametrize(
    "field",
    [
        "type: timestamp, format: [iso, epoch_s, epoch_ms, epoch_us]",
        "type: date, format: [epoch_ms, epoch_s]",
    ],
)
def test_formats_that_can_all_be_reached_are_taken(tmp_path: Path, field: str):
    load_field(tmp_path, field)
