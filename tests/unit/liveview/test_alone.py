"""The live page where only penguin is installed."""

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "numba", "pandas", "isal", "zstandard"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import liveview
for module in pkgutil.walk_packages(liveview.__path__, "liveview."):
    if ".terminal" not in module.name:
        importlib.import_module(module.name)
print("well")
"""


def test_it_needs_nothing_of_what_blizzard_needs():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stdout == "well\n", done.stderr
