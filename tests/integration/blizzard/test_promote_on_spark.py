"""A promotion on a real Spark session: files are rewritten by tasks, and trouble is told."""

from decimal import Decimal

import pytest

from blizzard.rewrite.transaction import NotRewritten
from tests.support.builders import entries
from tests.support.promotions import ID, PRICE, Rescued
from tests.support.spark import shared_runner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session")]


def test_files_are_rewritten_by_tasks(tmp_path):
    desk = Rescued(tmp_path)
    for number in range(1, 4):
        desk.land(f"{number}.ndjson", f'{{"id":{number},"price":{number}.25}}')
        desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    done = desk.promote("price", runner=shared_runner())
    assert [one.old.path for one in done.rewritten] == [one.path for one in done.found.files]
    desk.penguin()
    assert desk.column("price") == [(Decimal(f"{number}.25"), None) for number in range(1, 4)]


@pytest.mark.unbalanced("file_gone")
def test_a_file_that_is_gone_is_named_and_nothing_is_changed(tmp_path):
    desk = Rescued(tmp_path)
    desk.land("a.ndjson", '{"id":1,"price":1.25}')
    desk.ingest()
    desk.configure({"fields": [ID, PRICE]})
    (path,) = desk.active
    (desk.table / path).unlink()
    with pytest.raises(NotRewritten) as trouble:
        desk.promote("price", runner=shared_runner())
    assert path in str(trouble.value)
    assert "object_missing" in str(trouble.value)
    assert [one.kind for one in entries(desk.table)][-1] == "batch"
