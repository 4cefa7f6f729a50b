"""Quarantine files are read without threads, so that none is at work while the program ends."""

import subprocess
import sys

from blizzard.model.bad_lines import QuarantineLimits
from tests.support.builders import put
from tests.support.quarantined import bad, good, text
from tests.support.units import Place

COUNTS = """
import sys
from pathlib import Path
from blizzard.worker.quarantine.reader import lines_of, read_table
from lakebed.documents.quarantine_file import QuarantineFile
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader

table, name, size = sys.argv[1:]
store = Reader(table, StorageOptions({}))
file = QuarantineFile(filename=name, size=int(size), record_count=1, unit="0", sources=())
store.get(name)

def threads():
    # Those that the store's library may start are not Arrow's.
    names = {one.name: (one / "comm").read_text() for one in Path("/proc/self/task").iterdir()}
    return {number for number, name in names.items() if not name.startswith("tokio")}

before = threads()
assert len(list(lines_of(read_table(store, file), file))) == 1
print(len(threads() - before))
"""


def test_reading_starts_no_thread(place: Place) -> None:
    """What a thread of Arrow's frees while Python ends aborts the process."""
    put(place.source, "a.ndjson", text([good(1), bad(2)]))
    (file,) = place.run(quarantine=QuarantineLimits()).quarantine
    command = [sys.executable, "-c", COUNTS, str(place.table), file.filename, str(file.size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr
