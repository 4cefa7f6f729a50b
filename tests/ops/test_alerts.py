"""Every alert fires when real programs are in that trouble, not before, and no other one does."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.prometheus import RULES, promtool
from tests.support.troubles import Trouble, troubles
from tests.support.watched_lake import History, lake

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
