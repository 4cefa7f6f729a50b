"""What a unit sees of values that have no column: in the files it looks at, and in rescued ones."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from blizzard.model.files import SourceFile
from blizzard.model.json_path import any_element, member_path
from blizzard.model.seen import Objects, Seen
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.lines import Block, Decoded
from blizzard.worker.ndjson.look.compiled import FastLook
from blizzard.worker.ndjson.look.gather import MOST_PATHS, look, parse
from blizzard.worker.progress import ProgressChannel
from lakebed.errors import LakeError
from lakebed.types import RESCUED

MOST_ROWS = 10_000
"""So many rows with rescued values are looked at by one task. Values of later ones that do not fit
the column that is found stay in `_rescued`."""


@dataclass(slots=True)
class Looks:
    """What values look like, by their paths, while a unit goes through file after file."""

    adds: bool = False
    """Whether rescued values are to get a column."""
    seen: dict[str, Seen] = field(default_factory=dict)
    rows: int = 0
    fast: FastLook = field(default_factory=FastLook)
    _before: tuple[dict[str, Seen], int] | None = None
    """What was known before the file that is being read, once something was seen in it."""

    def at_file(
        self,
        file: SourceFile,
        open_pieces: Callable[[], Generator[bytes]],
        decoder: Decoder,
        share: float,
        channel: ProgressChannel,
    ) -> None:
        """Look at the first part of a file. What is wrong with it is reported when it is read.

        If a block of lines has brought nothing new, the next one is left out. Nothing of this
        counts as work done: all of it is read again.
        """
        part = file.part
        enough = share * (file.to_read if part is None else part.end - part.start)
        before = channel.progress.bytes_read
        with suppress(LakeError), closing(open_pieces()) as pieces:
            is_new = True
            for block in decoder.blocks(pieces, file.from_start, file.form.skip):
                is_new = not is_new or self.at_lines(block)
                if channel.progress.bytes_read - before >= enough:
                    break

    def begin(self) -> None:
        """Begin with another file: what was seen in the last one counts."""
        self._before = None

    def forget(self) -> None:
        """Forget what was seen in the last file: it failed, and none of its rows are in."""
        if self._before is not None:
            self.seen, self.rows = self._before
        self._before = None

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

    def at_rescued(self, decoded: Decoded) -> None:
        """Look at values that are to get a column."""
        if not self.adds or not decoded.rescued:
            return
        if self._before is None:
            self._before = dict(self.seen), self.rows
        texts = (text for text in decoded.batch[RESCUED].to_pylist() if text is not None)
        some = list(islice(texts, MOST_ROWS - self.rows))
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
            continue  # The run that reads the file reports what is wrong with it.
        if isinstance(record, dict):
            yield record
