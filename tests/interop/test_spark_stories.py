"""Random stories of both programs and Spark on one table: nothing lost, doubled or misreported."""

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.errors import IllegalArgumentException

from tests.property.test_stories import VERBS
from tests.support import delta_spark as spark
from tests.support.stories import FOREIGN, Story

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

STORIES = int(os.environ.get("STORIES", "2"))
FIRST = int(os.environ.get("FIRST_STORY", "0"))
MATCHED = "WHEN MATCHED THEN DELETE"
NEW = f"WHEN NOT MATCHED AND s.id >= {FOREIGN} THEN INSERT (id, v) VALUES (s.id, s.v)"


class SparkSql:
    """Spark's own statements; `vectors` lets it delete rows in place."""

    def __init__(self, *, vectors: bool) -> None:
        self.vectors = vectors
        self.prepared: set[Path] = set()

    def ids(self, table: Path) -> list[int]:
        spark.forget()
        return [row["id"] for row in spark.table(table).select("id").collect()]

    def restore(self, table: Path, version: int) -> None:
        with suppress(IllegalArgumentException):  # A story may have lost a file of that version.
            self.run(table, f"RESTORE TABLE {_name(table)} TO VERSION AS OF {version}")

    def optimize(self, table: Path) -> None:
        self.run(table, f"OPTIMIZE {_name(table)}")

    def delete(self, table: Path, number: int) -> None:
        self.run(table, f"DELETE FROM {_name(table)} WHERE id = {number}")

    def update(self, table: Path, number: int) -> None:
        self.run(table, f"UPDATE {_name(table)} SET v = v + 1 WHERE id = {number}")

    def merge(self, table: Path, number: int, new: int) -> None:
        rows = f"(SELECT explode(array({number}L, {new}L)) AS id, 0L AS v)"
        self.run(
            table, f"MERGE INTO {_name(table)} t USING {rows} s ON t.id = s.id {MATCHED} {NEW}"
        )

    def append(self, table: Path, new: int) -> None:
        self.run(table, f"INSERT INTO {_name(table)} (id, v) VALUES ({new}, 0)")

    def run(self, table: Path, statement: str) -> None:
        spark.forget()
        if self.vectors and table not in self.prepared:
            self.prepared.add(table)
            vectors = "'delta.enableDeletionVectors' = 'true'"
            spark.sql(f"ALTER TABLE {_name(table)} SET TBLPROPERTIES({vectors})")
        spark.sql(statement).collect()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + STORIES))
def test_no_story_with_spark_loses_doubles_or_misreports_a_row(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    steps = [
        (dice.choice(VERBS), dice.randrange(12), dice.randrange(12))
        for _ in range(dice.randint(3, 9))
    ]
    story = Story(
        tmp_path,
        SparkSql(vectors=dice.random() < 0.5),
        provenance=dice.random() < 0.5,
        on_change=dice.choice(["error", "reingest", "replace"]),
        inline=dice.random() < 0.3,
        staging=dice.random() < 0.5,
    )
    story.play(steps)


def _name(table: Path) -> str:
    return f"delta.`{table}`"
