"""docs/reading.md: each reader finds the rows with the lines that the page gives it."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.orders import PAGE, ROWS, TOTALS, example, orders


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return orders(tmp_path_factory.mktemp("reading"))


def run(title: str, table: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(example(title, table), names)
    return names


def test_polars(table: Path):
    assert run("Polars", table)["totals"].rows() == TOTALS


def test_duckdb(table: Path):
    assert run("DuckDB", table)["totals"] == TOTALS


def test_pandas(table: Path):
    found = run("pandas", table)["totals"]
    assert dict(found) == {"ada": 9.5, "bob": 20.0}  # 4.25 is not more than 5


def test_an_earlier_version(table: Path):
    found = run("An earlier version", table)["before"]
    assert found.column("price").to_pylist() == [price for _, price in ROWS[:1]]


def test_no_other_example_is_left_untried():
    """Spark's is in tests/interop."""
    assert PAGE.count("```python\n") == 5
