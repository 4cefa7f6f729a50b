"""The stories of `test_other_engines_stories`, with Spark as the other engine."""

import pytest

from tests.integration.test_other_engines_stories import *  # noqa: F403
from tests.integration.test_other_engines_stories import Lake
from tests.support import delta_spark as spark

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def sql(desk: Lake, statement: str) -> None:
    """Run a statement on the table, which it names `{}`."""
    spark.forget()
    spark.sql(statement.format(f"delta.`{desk.table}`")).collect()


def merge(desk: Lake, *numbers: int) -> None:
    """Delete the rows that have one of the ids, and insert the others."""
    rows = f"(SELECT explode(array({', '.join(f'{one}L' for one in numbers)})) AS id)"
    then = "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    sql(desk, f"MERGE INTO {{}} t USING {rows} s ON t.id = s.id {then}")


@pytest.fixture(autouse=True)
def spark_is_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark do what another engine does to the table."""
    statements = {
        "restore": "RESTORE TABLE {{}} TO VERSION AS OF {}",
        "delete": "DELETE FROM {{}} WHERE {}",
        "update": "UPDATE {{}} SET id = id + 10 WHERE {}",
    }
    for name, statement in statements.items():
        monkeypatch.setattr(
            Lake, name, lambda desk, what, form=statement: sql(desk, form.format(what))
        )
    monkeypatch.setattr(Lake, "optimize", lambda desk: sql(desk, "OPTIMIZE {}"))
    monkeypatch.setattr(Lake, "merge", merge)
    monkeypatch.setattr(Lake, "engine", "Apache-Spark")
