"""Files that were removed stay out under whichever name the log has them."""

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.layout import DELTA_LOG
from penguin.events.backlog import FilesLeftOut
from tests.support.foreign import DAY, Directory
from tests.support.removals import add, begin, left_out, remove, write_version


@pytest.fixture
def table(tmp_path: Path) -> Directory:
    """Make a directory whose files are named by the store's own time."""
    found = Directory(tmp_path / "table")
    found.hands.at = time.time()
    return found


def absolute_names(table: Directory, path: str) -> list[str]:
    root = str(table.root.absolute())
    return [f"file://{root}/{path}", f"file:{root}/{path}", f"{root}/{path}"]


@pytest.mark.parametrize("form", range(3))
def test_a_file_that_the_log_names_by_its_whole_path_is_known(table, form):
    """HOLES D21"""
    begin(table)
    gone = table.file(2)
    name = absolute_names(table, gone)[form]
    size = (table.root / gone).stat().st_size
    told = {"path": name, "size": size, "partitionValues": {"date": "2024-01-01"}}
    write_version(table, {"add": {**told, "modificationTime": 0, "dataChange": True}})
    write_version(table, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 1}})
    penguin = table.penguin().drain()
    assert (table.ids(), left_out(penguin)) == ([1], {})


def test_a_file_that_the_log_names_through_a_link_is_known(table, tmp_path):
    """HOLES D21: penguin is given a link to the directory, another engine the directory itself."""
    begin(table)
    gone = table.file(2)
    name = f"file://{table.root.absolute()}/{gone}"
    write_version(table, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 1}})
    link = tmp_path / "link"
    link.symlink_to(table.root)
    other = Directory(link)
    other.hands.at = table.hands.at
    other.penguin().drain()
    assert table.ids() == [1]
    third = tmp_path / "third"
    third.symlink_to(table.root)
    again = table.file(3)
    name = f"{third.absolute()}/{again}"
    write_version(table, {"remove": {"path": name, "dataChange": True, "deletionTimestamp": 1}})
    table.penguin().drain()
    assert table.ids() == [1]


def test_a_linked_folder_does_not_double_what_another_engine_committed(table):
    """HOLES D21: a UUID is committed once, whoever did it and wherever the file lies."""
    begin(table)
    known = table.file(2)
    add(table, known)
    (table.root / "date=2024-01-02").symlink_to(table.root / DAY)
    penguin = table.penguin().drain()
    assert table.ids() == [1, 2]
    assert left_out(penguin) == {"date=2024-01-02/": "name_unusable"}


@pytest.mark.parametrize("known_by_link", [True, False])
def test_a_plain_name_in_a_linked_folder_is_one_file(table, known_by_link):
    """HOLES D21: the log may know it by either of its names."""
    begin(table)
    (table.root / "date=2024-01-02").symlink_to(table.root / DAY)
    real = table.file(2, path=f"{DAY}/part-0.parquet")
    link = real.replace("01-01", "01-02")
    known = link if known_by_link else real
    add(table, known)
    remove(table, known)
    new = table.file(3, path=f"{DAY}/part-1.parquet")
    penguin = table.penguin(file_pattern="part-*.parquet").drain()
    assert table.ids() == [1, 3]
    assert new in table.delta().get_add_actions().column("path").to_pylist()
    reasons = " ".join(told.reason for told in penguin.told(FilesLeftOut))
    assert ("a link makes it the same file" in reasons) == known_by_link
    assert "it is a link to a folder" in reasons


def test_a_checkpoint_with_sidecars_under_the_classic_name_is_read_whole(table):
    """HOLES D21: its files and tombstones are in the sidecars."""
    begin(table)
    gone, stays = table.file(2), table.file(3)
    for path in (gone, stays):
        add(table, path)
    remove(table, gone)
    table.delta().create_checkpoint()
    with_sidecar(table)
    for path in (gone, stays):
        table.meta(path)
    table.penguin().drain()
    assert table.ids() == [1, 3]
    assert len(table.delta().get_add_actions().column("path")) == 2


def with_sidecar(table: Directory) -> None:
    """Move the files of a checkpoint into a sidecar, as the second kind of checkpoint has them."""
    log = table.root / DELTA_LOG
    (classic,) = log.glob("*.checkpoint.parquet")
    whole = pq.read_table(classic)
    is_file = pa.compute.or_(
        pa.compute.is_valid(whole["add"]), pa.compute.is_valid(whole["remove"])
    )
    side = whole.filter(is_file).select(["add", "remove"])
    (log / "_sidecars").mkdir()
    target = log / "_sidecars" / "016ae953-37a9-438e-8683-9a9a4a79a395.parquet"
    pq.write_table(side, target)
    rest = whole.filter(pa.compute.invert(is_file))
    kind = whole.schema.field("sidecar").type
    told = {
        "path": target.name,
        "sizeInBytes": target.stat().st_size,
        "modificationTime": 0,
        "tags": None,
    }
    line = dict.fromkeys(whole.schema.names) | {
        "sidecar": {field.name: told.get(field.name) for field in kind}
    }
    more = pa.Table.from_pylist([line], schema=whole.schema)
    pq.write_table(pa.concat_tables([rest, more]), classic)
    for version in log.glob("*.json"):
        if int(version.stem) < int(classic.name[:20]):
            version.unlink()
