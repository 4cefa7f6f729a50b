"""A stalled uploader stops the stages before it, and memory does not grow with what waits."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, os, resource, sys, threading, time
from pathlib import Path
from blizzard.model.settings import RollingPolicy, UploadSettings
from blizzard.worker.stores import (OpenedStores)
from blizzard.worker.unit import (run_unit)
from lakebed.storage.store import Reader, Store
from tests.support.builders import listed, ndjson, put, rows, unit, work

root, count = Path(sys.argv[1]), int(sys.argv[2])
body = ndjson({"id": n, "name": "x" * 900} for n in range(300))
put(root / "in", "0000.ndjson", body)
for number in range(1, count):
    os.link(root / "in/0000.ndjson", root / f"in/{number:04d}.ndjson")

begun, stalled, go_on = [], threading.Event(), threading.Event()
stream, upload = Reader.stream, Store.upload

def watched(self, path, **how):
    begun.append(path)
    return stream(self, path, **how)

def blocked(self, *given, **how):
    stalled.set()
    go_on.wait()
    return upload(self, *given, **how)

Reader.stream, Store.upload = watched, blocked
given = work(
    root / "in", root / "table",
    rolling=RollingPolicy(file_size=1000),
    upload=UploadSettings(max_concurrent_uploads=2),
)
everything = unit(listed(root / "in"))
done = threading.Thread(target=run_unit, args=(everything, given, OpenedStores(given)))
done.start()
stalled.wait()
before = -1
while before != len(begun):  # until nothing new is begun any more
    before = len(begun)
    time.sleep(0.5)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
told = {"begun": len(begun), "peak": peak * 1024}
print(json.dumps(told), flush=True)
os._exit(0)  # what waits need not be read and uploaded
"""


def stalled_run(folder: Path, count: int) -> dict[str, int]:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(count)],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    told: dict[str, int] = json.loads(ended.stdout)
    return told


def test_with_a_stalled_uploader_downloads_stop_and_memory_is_that_of_few_files(
    tmp_path: Path,
) -> None:
    """W18: 300 waiting source files cost no more than 10."""
    few = stalled_run(tmp_path / "few", 10)
    many = stalled_run(tmp_path / "many", 300)

    assert many["begun"] <= 20, "two uploads, eight closed files, four downloads ahead, one in hand"
    assert many["peak"] - few["peak"] < 32 * 1024 * 1024
