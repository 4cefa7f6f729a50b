"""Alerts fire in their trouble and in no other, and dashboards show what programs export."""

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml

from tests.support.dashboards import dashboards
from tests.support.ports import reserved_port
from tests.support.troubles import Trouble, troubles
from tests.support.waits import until
from tests.support.watched_lake import MINUTE, NAME, History, lake

ROOT = Path(__file__).parents[2]
RULES = ROOT / "ops" / "prometheus" / "rules.yml"
FETCHED = ROOT / ".tools" / "prometheus" / "usr" / "bin"


def tool(name: str) -> str:
    """Return the path of a tool; `make test-ops` has seen to it."""
    found = which(name) or which(name, path=str(FETCHED))
    assert found is not None, f"{name} is missing: run make test-ops, which fetches it"
    return found


def promtool(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    """Run promtool in a folder."""
    return subprocess.run(
        [tool("promtool"), *arguments],
        cwd=where,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def blocks_of(history: History, where: Path) -> Path:
    """Write a database with what was scraped."""
    lines = [
        f"{series} {value} {minute * MINUTE:.0f}"
        for series, values in history.series()
        for minute, value in enumerate(values)
        if value is not None
    ]
    (where / "scraped.txt").write_text("\n".join([*lines, "# EOF", ""]))
    made = promtool("tsdb", "create-blocks-from", "openmetrics", "scraped.txt", "data", where=where)
    assert made.returncode == 0, made.stderr
    return where / "data"


class Answers:
    """A running Prometheus, which is asked over HTTP."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str, *, at: float) -> list[dict[str, Any]]:
        """Return the series that an expression gives; an AssertionError says what is wrong."""
        asked = urllib.parse.urlencode({"query": expression, "time": f"{at:.0f}"})
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/query?{asked}", timeout=300) as answer:
                body = json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                raise AssertionError(json.load(refused)["error"]) from refused
        found: list[dict[str, Any]] = body["data"]["result"]
        return found

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def serving(data: Path) -> Iterator[Answers]:
    """Start a Prometheus on a database; it scrapes nothing."""
    config = data.parent / "prometheus.yml"
    config.write_text("scrape_configs: []\n")
    with reserved_port() as port:
        address = f"127.0.0.1:{port}"
    log = data.parent / "prometheus.log"
    with (
        log.open("wb") as written,
        subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={data}",
                "--storage.tsdb.retention.time=200y",
                f"--web.listen-address={address}",
            ],
            stdout=written,
            stderr=written,
        ) as process,
    ):
        try:
            answers = Answers(f"http://{address}")
            until(lambda: answers.ready() or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield answers
        finally:
            process.terminate()


pytestmark = [pytest.mark.ops, pytest.mark.unbalanced("every kind")]

GOOD = 4
"""Minutes in which all is well, before anything happens."""
TROUBLES = troubles()
FIRING = 'group by (alertname) (ALERTS{alertstate="firing"})'


def alerts() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def named() -> set[str]:
    """Return every word of the rules: the metrics are among them."""
    return {word for rule in alerts().values() for word in re.findall(r"[a-z_]+", rule["expr"])}


def values(samples: list[str | None]) -> str:
    return " ".join("_" if value is None else value for value in samples)


def expects(minute: int, fires: frozenset[str]) -> dict[str, Any]:
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(fires)]
    return {"expr": FIRING, "eval_time": f"{minute}m", "exp_samples": samples}


def unit_test(history: History, *expected: dict[str, Any]) -> str:
    """Write a test of the rules on what was scraped."""
    series = [
        {"series": key, "values": values(samples)} for key, samples in history.series(*named())
    ]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": list(expected)}
    document = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}
    return yaml.safe_dump(document)


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_just_these_alerts_fire(trouble: Trouble, tmp_path: Path):
    with lake(tmp_path / "lake") as found:
        trouble.setup(found)
        found.minutes(GOOD, landing="a")
        trouble.befalls(found)
    last = found.history.minutes - 1
    test = unit_test(found.history, expects(GOOD - 1, frozenset()), expects(last, trouble.fires))
    (tmp_path / "test.yml").write_text(test)
    answer = promtool("test", "rules", "test.yml", where=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_every_alert_is_made_to_fire():
    fired = {name for trouble in TROUBLES.values() for name in trouble.fires}
    assert fired == set(alerts())


def test_prometheus_takes_the_rules(tmp_path: Path):
    answer = promtool("check", "rules", "--lint-fatal", str(RULES), where=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_wrong_expectation_is_told(tmp_path: Path):
    """See that the tests above can fail."""
    with lake(tmp_path / "lake") as found:
        found.minutes(2)
    wrong = unit_test(found.history, expects(1, frozenset({"PenguinDown"})))
    (tmp_path / "test.yml").write_text(wrong)
    assert promtool("test", "rules", "test.yml", where=tmp_path).returncode != 0


MINUTES = 12
EXPRESSIONS = {
    f"{dashboard.uid}: {panel.title}: {query.legend}": query.expression
    for dashboard in dashboards()
    for row in dashboard.rows
    for panel in row.panels
    for query in panel.queries
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """A Prometheus that has seen both programs at work for some minutes."""
    where = tmp_path_factory.mktemp("prometheus")
    with lake(where / "lake") as found:
        found.minutes(MINUTES, landing="a")
    with serving(blocks_of(found.history, where)) as prometheus:
        yield prometheus


def as_asked(expression: str) -> str:
    """Return an expression as Grafana sends it, with what is chosen in the place of variables."""
    asked = re.sub(r"\$(pipeline|table)\b", NAME, expression)
    asked = asked.replace("$__rate_interval", "5m")
    assert "$" not in asked
    return asked


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_gives_an_answer(expression: str, answers: Answers):
    found = answers.query(as_asked(expression), at=(MINUTES - 1) * MINUTE)
    assert found, expression


def test_what_was_done_is_what_is_shown(answers: Answers):
    """The rows of twelve files of three are in the table, and the panel of throughput says so."""
    at = (MINUTES - 1) * MINUTE
    (rows,) = answers.query("penguin_rows_committed_total", at=at)
    assert float(rows["value"][1]) == 3 * MINUTES
    (files,) = answers.query("penguin_visible_delay_seconds_count", at=at)
    assert float(files["value"][1]) == MINUTES
    throughput = next(each for name, each in EXPRESSIONS.items() if "Rows per second" in name)
    (rate,) = answers.query(as_asked(throughput), at=at)
    assert float(rate["value"][1]) == pytest.approx(3 / MINUTE)


@pytest.mark.parametrize("wrong", ["no_such_metric", 'penguin_lag_seconds{table="other"}'])
def test_what_nobody_exports_gives_no_answer(wrong: str, answers: Answers):
    assert answers.query(wrong, at=MINUTE) == []


def test_what_is_no_promql_is_told(answers: Answers):
    with pytest.raises(AssertionError, match="parse error"):
        answers.query("sum by (", at=MINUTE)
