"""Benches that measure the same at several sizes, each measure in a process of its own."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.section import Section

Figures = dict[str, Any]
Alone = Callable[[str, Path], Figures]
"""Measures something of a folder in a process that does nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BySize:
    """One bench: what it measures at which sizes, and where its table goes."""

    module: str
    """By which it is started again for one measure."""
    section: Section
    sizes: Sequence[int]
    measure: Alone
    """Runs in the process of its own."""
    rows: Callable[[Path, int, Alone], Iterable[Figures]]
    """Makes so many files in a folder, and yields the figures of each row of the table."""
    lines: Callable[[list[Figures]], list[str]]

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Measure, and print or write the figures."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--most", type=int, default=self.sizes[-1])
        parser.add_argument("--write", action="store_true")
        parser.add_argument("--alone", nargs=2)
        given = parser.parse_args(arguments)
        if given.alone:
            what, folder = given.alone
            print(json.dumps(self.measure(what, Path(folder))))
            return
        measured = []
        for files in self.sizes:
            if files > given.most:
                break
            with tempfile.TemporaryDirectory() as place:
                for row in self.rows(Path(place), files, partial(_alone, self.module)):
                    measured.append(row)
                    print(json.dumps(row), file=sys.stderr)
        text = "\n".join(self.lines(measured))
        print(text)
        if given.write:
            self.section.write(text)


def _alone(module: str, what: str, folder: Path) -> Figures:
    command = [sys.executable, "-m", module, "--alone", what, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Figures = json.loads(done.stdout)
    return found
