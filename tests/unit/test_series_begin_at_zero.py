"""Every counter is there, at zero, before what it counts happens for the first time."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import blizzard
import lakebed
import liveview
import penguin
from blizzard import metrics
from blizzard.cli.run import command
from blizzard.config.load import load
from blizzard.events import SourceFileFailed
from blizzard.metrics import FAILURES
from lakebed.documents.records import FailureStage
from lakebed.errors import LakeError
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.measures import MetricKind, Spec
from lakebed.telemetry.metrics_server import MetricsRegistry
from penguin.foreign import rules
from penguin.telemetry import LEFT_OUT
from penguin.telemetry import METRICS as PENGUIN
from tests.support.builders import Bench, pipeline_settings, put

ROOT = Path(__file__).parents[2]
BLIZZARD = metrics.METRICS
RULES = (ROOT / "ops/prometheus/rules.yml").read_text()
OPEN_SETS = {"penguin_pipeline_stopped"}
"""Gauges one of whose labels is a name that only the table directory knows."""
OF_THE_PROGRAM = {"blizzard_build_info", "penguin_build_info"}
"""What is so for a whole process, from its start."""
NEVER_A_STEPS = {
    "catalog_conflict",  # beside the steps
    "columns_unknown",  # a command, or beside the steps
    "pipelines_failed",  # of a call from Python
    "catalog_denied",  # beside the steps
    "catalog_missing",  # beside the steps
    "catalog_unavailable",  # beside the steps
    "repair_refused",  # a command
    "vacuum_refused",  # a command
    "content_not_read",  # of a source file
    "field_not_promotable",  # a command
    "file_ambiguous",  # a command
    "file_not_rewritten",  # a command
    "lines_miscounted",  # of a source file
    "lines_not_replayed",  # a command
    "file_rewritten",  # an order
    "file_unknown",  # a command
    "known_names_broken",  # mended on the spot
    "no_such_entry",  # a command
    "not_held",  # an order
    "nothing_to_accept",  # a command
    "nothing_to_sample",  # a command
    "nothing_to_move",  # a command
    "nothing_to_replay",  # an order
    "queue_denied",  # files are found without a queue
    "queue_missing",  # likewise
    "queue_unavailable",  # likewise
    "predicate_invalid",  # a command
    "promotion_pending",  # a command
    "row_origins_unknown",  # a command
    "source_not_retractable",  # a command
    "rows_uncertain",  # an order
    "snapshot_broken",  # mended on the spot
    "workers_died",  # its files are read in smaller jobs
    # Of a source file, and told by its own metric:
    "partial_file_changed",
    "decompress_failed",
    "partial_file_gone",
    "partition_unknown",
}


def samples(found: MetricsRegistry) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = found.page("")[1].decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def begun(specs: tuple[Spec, ...], **labels: str) -> MetricsRegistry:
    found = MetricsRegistry(specs)
    found.begin(**labels)
    return found


def of_alerts() -> Iterator[Spec]:
    by_name = {spec.name: spec for spec in (*BLIZZARD, *PENGUIN)}
    for name in re.findall(r"increase\((\w+)[\[{]", RULES):
        yield by_name[name]


@pytest.mark.parametrize("spec", [*BLIZZARD, *PENGUIN], ids=lambda spec: spec.name)
def test_every_series_of_a_closed_set_of_labels_begins_at_zero(spec: Spec):
    """HOLES W39: `increase()` of a series that begins at 1 is 0."""
    further = spec.labels[1:]
    if spec.name in OPEN_SETS | OF_THE_PROGRAM:
        assert spec.kind is MetricKind.GAUGE
        return
    assert all(len(values) == len(further) for values in spec.series)
    assert len(spec.series) == len(set(spec.series))
    found = samples(begun((spec,), **{spec.labels[0]: "p"}))
    name = f"{spec.name}_count" if spec.kind is MetricKind.HISTOGRAM else spec.name
    for values in spec.series:
        labels = {spec.labels[0]: "p", **dict(zip(further, values, strict=True))}
        assert found[name, frozenset(labels.items())] == 0


def test_the_alerts_that_the_page_recommends_see_the_first_time():
    """HOLES W39: for each failure that there can be, the series is there before."""
    counters = list(of_alerts())
    assert len(counters) >= 5
    assert {spec.kind for spec in counters} == {MetricKind.COUNTER}


def test_the_first_failed_file_is_a_rise_from_zero(tmp_path: Path):
    """HOLES W39: between two scrapes the recommended alert sees one failure more."""
    put(tmp_path / "in", "a.ndjson", b'{"id": "one"}\n')
    bench = Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"))
    found = begun(BLIZZARD, pipeline="default")
    before = samples(found)
    bench.pipeline().step()
    for event in bench.events:
        for measure in event.measures():
            found.record(measure)
    assert bench.said(SourceFileFailed)
    name = "blizzard_source_file_failures_total"
    labels = {"pipeline": "default", "stage": "parse", "code": "wrong_type"}
    key = (name, frozenset(labels.items()))
    assert (before[key], samples(found)[key]) == (0, 1)
    assert {key for key in samples(found) if key[0] == name} == {
        key for key in before if key[0] == name
    }


# -------------------------------------------------------------------- that the sets are closed


@cache
def nodes(folder: Path) -> tuple[ast.AST, ...]:
    """Return every node of the source below a folder."""
    trees = (ast.parse(path.read_text()) for path in folder.rglob("*.py"))
    return tuple(node for tree in trees for node in ast.walk(tree))


def constants(folder: Path) -> Iterator[str]:
    """Return every code that a failure or a refusal is made with, as it stands in the source."""
    for node in nodes(folder):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func).rpartition(".")[2]
        if called in ("ValueRefused", "bad") and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)
        if called in ("Failure", "BadLine"):
            for keyword in node.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)


def test_every_code_that_a_source_file_can_fail_with_has_a_series():
    """HOLES W39: a new code cannot be forgotten."""
    known = {code for codes in FAILURES.values() for code in codes}
    found = set(constants(ROOT / "src/blizzard"))
    assert len(found) > 8
    assert found <= known
    assert set(FAILURES) == set(FailureStage)


@cache
def errors() -> set[type[LakeError]]:
    for package in (lakebed, blizzard, penguin, liveview):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(("__main__", ".daemon")):
                importlib.import_module(module.name)
    found: set[type[LakeError]] = set()
    left = [LakeError]
    while left:
        one = left.pop()
        found.add(one)
        left += [each for each in one.__subclasses__() if each.__module__.split(".")[0] != "tests"]
    return found


def test_every_code_that_a_step_can_fail_with_has_a_series():
    """HOLES W39: every error of ours is a series, or is known to end no step."""
    own = {each.code for each in errors() if isinstance(vars(each).get("code"), str)}
    assert own - set(metrics.STEP_FAILURES) == NEVER_A_STEPS


def test_every_reason_to_leave_a_file_out_has_a_series():
    """HOLES W39: penguin's codes of other programs' files."""
    codes = {
        value
        for name, value in vars(rules).items()
        if name.isupper() and isinstance(value, str) and re.fullmatch(r"[a-z_]+", value)
    }
    assert codes == set(LEFT_OUT)


def test_metrics_of_inline_commits_begin_at_zero_too(tmp_path: Path):
    """HOLES W39: blizzard serves penguin's metrics under the names that its commits use."""
    file = tmp_path / "inline.yaml"
    sink = "{path: %s, commit: %s}"
    pipeline = "{source: {path: %s}, sink: %s, schema: {fields: [{name: id, type: string}]}}"
    file.write_text(
        f"pipelines:\n"
        f"  a: {pipeline % ('/in/a', sink % ('/t/a', 'inline'))}\n"
        f"  b: {pipeline % ('/in/b', sink % ('/t/b', 'inline'))}\n"
        f"  c: {pipeline % ('/in/c', sink % ('/t/c', 'penguin'))}\n"
        f"tables: {{events: {{table_uri: /t/a}}, other: {{table_uri: /t/c}}}}\n"
    )
    assert command._tables_committed_inline(load([file], [], {})) == [
        HealthPart(PartKind.TABLE, "events"),
        HealthPart(PartKind.TABLE, "/t/b"),
    ]
