"""Every expression of every panel gives an answer on what real programs have exported."""

import re
from collections.abc import Iterator

import pytest

from tests.support.dashboards import dashboards
from tests.support.prometheus import Answers, blocks_of, serving
from tests.support.watched_lake import MINUTE, NAME, lake

pytestmark = [pytest.mark.ops, pytest.mark.unbalanced("every kind")]

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
