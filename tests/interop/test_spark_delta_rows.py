"""Tables of Spark's that track their rows: in whichever file a row is, Spark knows it again."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support import delta_spark as spark
from tests.support.compactions import Crowded
from tests.support.row_tracking import COLUMNS, Known, but, fill, move_about, tracking

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
MODES = {
    "plain": "",
    "name": ", 'delta.columnMapping.mode'='name'",
    "id": ", 'delta.columnMapping.mode'='id'",
}


def known(desk: Crowded) -> Known:
    """Return the id of each row, and the version that wrote it, as Spark reads them."""
    spark.forget()
    frame = spark.table(desk.table)
    rows = frame.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
    found = {row["id"]: (row["row_id"], row["row_commit_version"]) for row in rows}
    assert len(found) == len(rows) == len({one for one, _ in found.values()})
    assert all(None not in one for one in found.values())
    return found


@pytest.mark.parametrize("mode", MODES)
def test_rows_keep_their_ids_in_whichever_file_they_are(tmp_path: Path, mode: str) -> None:
    desk = tracking(tmp_path)
    name = f"delta.`{desk.table}`"
    columns = ", ".join(f"{one} {kind}" for one, kind in COLUMNS.items())
    spark.sql(
        f"CREATE TABLE {name} ({columns}) USING delta "
        f"TBLPROPERTIES('delta.enableRowTracking'='true'{MODES[mode]})"
    )
    spark.sql(f"INSERT INTO {name} (id, user) SELECT id, concat('u', id) FROM range(90, 94, 1, 1)")
    # What is left of this file of Spark's has ids of rows in itself from now on.
    spark.sql(f"DELETE FROM {name} WHERE id = 91")
    fill(desk)
    left = move_about(desk, lambda: known(desk))
    assert set(left) == {0, 1, 4, 6, 7, 90, 92, 93}
    desk.forget("user = 'u92'")
    assert known(desk) == but(left, 92)

    # Spark goes on with such files, and we with its own.
    spark.sql(f"OPTIMIZE {name}")
    assert known(desk) == but(left, 92)
    spark.sql(f"UPDATE {name} SET user = 'x' WHERE id = 6")
    desk.forget("user = 'x'")
    assert known(desk) == but(left, 92, 6)
    assert spark.table(desk.table).where("user = 'u2' AND price = 1.5").count() == 1
    if mode == "plain":
        rows = DeltaTable(str(desk.table)).to_pyarrow_table()
        assert set(rows["id"].to_pylist()) == {0, 1, 4, 7, 90, 93}
        assert set(rows.column_names) == {*COLUMNS}
