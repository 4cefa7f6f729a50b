"""A look at file after file: what the values at each path look like."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from blizzard.model.json_path import any_element, member_path
from blizzard.model.seen import Objects, Seen
from blizzard.worker.ndjson.lines import Block
from blizzard.worker.ndjson.look.compiled import FastLook
from blizzard.worker.ndjson.look.gather import MOST_PATHS, look, parse

MOST_ROWS = 10_000
"""So many rows with rescued values are looked at by one task. Values of later ones that do not fit
the column that is found stay in `_rescued`."""


@dataclass(slots=True)
class Looks:
    """What values look like, by their paths, while a file after the other is gone through."""

    seen: dict[str, Seen] = field(default_factory=dict)
    rows: int = 0
    fast: FastLook = field(default_factory=FastLook)

    def at_lines(self, block: Block) -> bool:
        """Look at the members of the records of some lines; return whether there was anything new.

        What is no record is passed over.
        """
        found = self.fast.look(block)
        if found is None:
            lines = (line for line in block.data.split(b"\n") if line.strip())
            seen = look(list(_records(lines))).objects or Objects()
            # Names that are data are no columns, and the records as a whole are no map.
            found = dict(seen.members)
        return self._add({member_path("", name): one for name, one in found.items()})

    def at_rescued(self, texts: Iterable[str | None]) -> None:
        """Look at what no column takes."""
        some = list(islice((text for text in texts if text is not None), MOST_ROWS - self.rows))
        self.rows += len(some)
        at: dict[str, list[Any]] = {}
        for text in some:
            for path, value in parse(text).items():
                at.setdefault(any_element(path), []).append(value)
        self._add({path: look(values) for path, values in at.items()})

    def _add(self, found: Mapping[str, Seen]) -> bool:
        is_new = False
        for path, seen in found.items():
            known = self.seen.get(path)
            if known is None and len(self.seen) >= MOST_PATHS:
                continue
            joined = seen if known is None else known.join(seen)
            if joined != known:
                is_new = True
                self.seen[path] = joined
        return is_new


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            record = parse(line.decode())
        except (ValueError, RecursionError):
            continue  # Whoever reads the file in earnest says what is wrong with it.
        if isinstance(record, dict):
            yield record
