"""What a store cannot do is found at the start, and told; nothing is written by halves."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from blizzard.cli import app as blizzard_cli
from blizzard.cli.surroundings import Surroundings
from lakebed.errors import NoExclusiveCreate
from lakebed.layout import TablePath
from lakebed.storage import create_only
from lakebed.storage.store import Created
from penguin.cli import app as penguin_cli
from penguin.cli.run import PenguinSurroundings
from tests.support.foreign import name_at
from tests.support.runner import inside
from tests.support.s3 import options
from tests.support.servers import s3rver
from tests.support.servers_lake import Lake
from tests.support.servers_reached import BUCKET, Contestant
from tests.support.waits import Hurry

pytestmark = pytest.mark.stores


@pytest.fixture(scope="module")
def careless() -> Iterator[Contestant]:
    """Run an S3 that takes a create-only write for any other."""

    def access(address: str) -> dict[str, str]:
        return options(address, AWS_ACCESS_KEY_ID="S3RVER", AWS_SECRET_ACCESS_KEY="S3RVER")

    with s3rver(BUCKET) as address:
        yield Contestant("s3rver", "s3", address, access, f"s3://{BUCKET}")


def test_a_store_without_create_only_writes_is_found_out(careless: Contestant) -> None:
    store = careless.open(careless.fresh())
    assert [store.create("a", body) for body in (b"1", b"2")] == [Created(), Created()]
    with pytest.raises(NoExclusiveCreate):
        create_only.probe(store, TablePath("a"))


def test_blizzard_refuses_a_store_without_create_only_writes(
    careless: Contestant, tmp_path: Path
) -> None:
    """D07: before the first file is written."""
    lake = Lake(careless, tmp_path)
    lake.land("date=2024-01-01/a.ndjson")
    around = Surroundings(make_runner=inside, stop=Hurry(), listen=lambda *_given: None)
    command = ["-c", str(lake.config()), "--once"]
    done = CliRunner().invoke(blizzard_cli.app, command, obj=around)

    assert done.exit_code != 0
    assert "no_exclusive_create" in done.output
    assert "use one that supports conditional writes" in " ".join(done.output.split())
    assert not [each for each in lake.store("table").objects() if each.path.endswith(".parquet")]


def test_penguin_refuses_to_make_a_table_of_other_programs_files_there(
    careless: Contestant, tmp_path: Path
) -> None:
    """D07: nothing is there to try it with, so it writes a document of its own, and removes it."""
    lake = Lake(careless, tmp_path)
    file = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1]}), file)
    name = f"date=2024-01-01/{name_at(1_704_067_200_000)}"
    lake.store("table").create(name, file.getvalue().to_pybytes())
    around = PenguinSurroundings(stop=Hurry())
    done = CliRunner().invoke(penguin_cli.app, ["-c", str(lake.config()), "--once"], obj=around)
    assert done.exit_code != 0
    assert "no_exclusive_create" in done.output
    assert [each.path for each in lake.store("table").objects()] == [name]
