"""Several penguins at once on one table on S3: each entry and each file goes in once."""

import json
import threading
from collections import Counter

from lakebed.clock import Clock
from lakebed.deltalog.tables import preview
from lakebed.storage.options import StorageOptions
from lakebed.types import Handoff
from penguin.model.settings import TableSettings
from penguin.pipeline import TableRun
from tests.support.foreign import Directory
from tests.support.s3 import options, store
from tests.support.tables import TableDirectory, rows_of

ENTRIES = 5
PENGUINS = 3


def upload(folder, opened):
    """Put a table directory that was made here onto S3."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            opened.create(str(path.relative_to(folder)), path.read_bytes())


def test_penguins_at_once_commit_each_file_once_on_s3(s3, bucket, tmp_path):
    """HOLES D08, W12: they also race to create the table; entries and other programs' files."""
    local = TableDirectory(tmp_path / "table", handoff=Handoff.DIRECT)
    for number in range(ENTRIES):
        local.journal().batch(rows_of(number))
    others = Directory(tmp_path / "table")
    for number in range(ENTRIES):
        others.file(100 + number, folder="date=2026-01-01")
    uri = f"s3://{bucket}/table"
    opened = store(s3, uri)
    upload(local.root, opened)
    given = StorageOptions(options(s3))
    gate = threading.Barrier(PENGUINS, timeout=300)
    troubles: list[BaseException] = []
    runs = [
        TableRun(
            settings=TableSettings(
                name="t", table_uri=uri, storage_options=given, max_files_per_commit=2
            ),
            emit=lambda _event: None,
            clock=Clock(),
            open_store=lambda: store(s3, uri),
        )
        for _ in range(PENGUINS)
    ]

    def commit(run):
        try:
            gate.wait()
            while run.step():
                pass
        except BaseException as trouble:  # noqa: BLE001 - it is the test's to judge
            troubles.append(trouble)

    threads = [threading.Thread(target=commit, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(250)
        assert not thread.is_alive()
    assert troubles == []
    versions = [facts.path for facts in opened.objects("_delta_log") if ".json" in facts.path]
    lines = [
        json.loads(line) for path in versions for line in (opened.get(path) or b"").splitlines()
    ]
    added = Counter(line["add"]["path"] for line in lines if "add" in line)
    assert (len(added), set(added.values())) == (2 * ENTRIES, {1})
    assert sum("metaData" in line for line in lines) == 1
    assert preview(uri, rows=1, options=given).rows == 2 * ENTRIES
    assert sum(run.totals.commits for run in runs) == len(versions) - 1
