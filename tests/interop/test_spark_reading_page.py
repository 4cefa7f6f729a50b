"""docs/reading.md: Spark finds the rows with the lines that the page gives it."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import delta_spark
from tests.support.orders import TOTALS, example, orders

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_spark(tmp_path: Path):
    code = example("Spark", orders(tmp_path))
    assert delta_spark.PACKAGE in code
    session = delta_spark.session()  # The page's builder finds this one.
    names: dict[str, Any] = {}
    exec(code, names)
    assert [tuple(row) for row in names["totals"]] == TOTALS
    assert names["spark"] is session
