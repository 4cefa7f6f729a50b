"""The table of orders that docs/reading.md reads, and the blocks of that page."""

import re
from pathlib import Path

from blizzard.config.load import load
from lakebed.clock import Clock
from lakebed.storage.store import Store
from penguin.config.load import load as load_tables
from tests.support.builders import ndjson, put
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table

PAGE = (Path(__file__).parents[2] / "docs" / "reading.md").read_text()
TOTALS = [("ada", 13.75), ("bob", 20.0)]
ROWS = [("ada", 9.5), ("bob", 20.0), ("ada", 4.25)]


def orders(root: Path) -> Path:
    """Make the table with both programs, a version for each row; return where it is."""
    table = root / "orders"
    config = {
        "source": {"path": str(root / "landing")},
        "sink": {"path": str(table)},
        "tables": {"orders": {"table_uri": str(table)}},
    }
    (pipeline,) = load([config], [], {}).pipelines
    (settings,) = load_tables([config], [], {}).tables
    for number, (customer, price) in enumerate(ROWS):
        line = {"id": number, "customer": customer, "price": price}
        put(root / "landing", f"{number}.ndjson", ndjson([line]))
        assert pipeline_of(pipeline, InProcessRunner()).step()
        commit_table(
            settings, Store(settings.table_uri, settings.storage_options), lambda _: None, Clock()
        )
    return table


def example(title: str, table: Path) -> str:
    """Return the Python of a chapter of the page, for this table."""
    chapter = re.split(r"^## ", PAGE.partition(f"\n## {title}\n")[2], flags=re.MULTILINE)[0]
    (code,) = re.findall(r"```python\n(.*?)```", chapter, re.DOTALL)
    assert "/data/tables/orders" in code
    return str(code).replace("/data/tables/orders", str(table))
