"""A worker's memory: what one batch frees, the next one has, without asking the system again."""

import subprocess
import sys

FAULTS = """
import resource, sys
import numpy as np
from blizzard.execute.spark.daemon import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "keeps":
    keep_freed_memory()
for _ in range(3):  # what the first batches take is never there before
    arrays = [np.ones(size << 20, np.uint8) for size in (1, 2, 4, 4, 8, 8, 8)]
    del arrays
before = faults()
for _ in range(4):
    arrays = [np.ones(size << 20, np.uint8) for size in (1, 2, 4, 4, 8, 8, 8)]
    del arrays
print(faults() - before)
"""


def faults(how: str) -> int:
    """Count the pages that the system hands out while arrays of the same sizes come and go."""
    command = [sys.executable, "-c", FAULTS, how]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_arrays_of_the_same_sizes_take_no_pages_anew():
    assert faults("keeps") < faults("gives back") / 10
