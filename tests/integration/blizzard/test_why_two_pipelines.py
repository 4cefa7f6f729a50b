"""`why` and `files` follow rows through the rewrites of another pipeline of the same table."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.erasures import FIELDS, Forgetful
from tests.support.promotions import ID


def both(folder: Path, schema: dict[str, Any] | None = None) -> tuple[Forgetful, Forgetful]:
    """Return two pipelines of one table, each with files of the same names."""
    one = Forgetful(folder, schema or FIELDS)
    other = Forgetful(folder, schema or FIELDS, pipeline="other")
    one.land("b.ndjson", {"id": 1, "user": "x"})
    one.ingest()
    other.land("b.ndjson", {"id": 3, "user": "y"}, {"id": 4, "user": "x"})
    other.land("c.ndjson", {"id": 5, "user": "z"})
    other.ingest()
    return one, other


def state_of(desk: Forgetful, name: str) -> tuple[str, str]:
    return desk.said("why", name)["state"], desk.said("files", name)["state"]


@pytest.mark.parametrize("where", ["id = 4", "id > 2"], ids=["one row", "all rows"])
def test_an_erasure_by_another_pipeline_is_shown_where_it_took_rows(tmp_path, where):
    one, other = both(tmp_path)
    one.forget(where)
    rows = 1 if where == "id = 4" else 2

    assert state_of(other, "b.ndjson") == ("in_table", "in_table")
    answer = other.said("why", "b.ndjson")
    (erased,) = answer["erased"]
    assert (erased["entry"], erased["pipeline"], erased["rows"]) == (2, "default", rows)
    assert f"{2 - rows} row" in answer["answer"]
    assert "erased in entry 2 of pipeline default" in answer["answer"]
    assert state_of(other, "c.ndjson") == ("in_table", "in_table")
    assert bool(other.said("why", "c.ndjson")["erased"]) is (where == "id > 2")
    assert one.said("why", "b.ndjson")["erased"] == []


def test_a_promotion_by_another_pipeline_leaves_rows_in_the_table(tmp_path):
    one, other = both(tmp_path, {"fields": [ID], "unknown_fields": "rescue"})
    fields = [ID, {"name": "user", "type": "string"}]
    one.configure({"fields": fields, "unknown_fields": "rescue"})
    one.promote("user")
    one.penguin()
    assert other.rows()[2]["user"] == "x"
    for name in ("b.ndjson", "c.ndjson"):
        assert state_of(other, name) == ("in_table", "in_table")
