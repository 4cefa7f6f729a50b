"""Where the rows of data files came from, as the journal in use has it.

A file that this journal does not name is of another writer, of another pipeline or of a journal
before this one, and nothing is known of it here.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lakebed.documents.data_file import FinishedFile, Run
from lakebed.documents.entry import Entry
from lakebed.journal import JournalReader
from lakebed.listing.watermark import named_at

CONCURRENT = 16
CLOCKS_DIFFER = timedelta(hours=1)
"""An entry is written after the files that it names, by clocks that differ by less."""


@dataclass(slots=True)
class KnownOrigins:
    """What the journal says of data files; what was asked before is not read again."""

    journal: str | None = None
    files: dict[str, FinishedFile | None] = field(default_factory=dict)
    """Each file as it was written, with the origins of its rows; None where it is not ours."""

    def keep(self, journal: str, active: Collection[str]) -> None:
        """Forget files that are not in the table any more, and all of another journal."""
        if journal != self.journal:
            self.journal, self.files = journal, {}
        self.files = {path: file for path, file in self.files.items() if path in active}

    def ask(self, journal: JournalReader, last: int, names: Collection[str]) -> None:
        """Learn of files what the entries up to one say of them."""
        unknown = [name for name in names if name not in self.files]
        found = read_origins(journal, last, unknown) if unknown else {}
        self.files |= {name: found.get(name) for name in unknown}


def read_origins(
    journal: JournalReader, last: int, names: Collection[str]
) -> dict[str, FinishedFile]:
    """Return the files that a journal names, each with the origins of its rows.

    Entries are read from the last one back, as far as to when the oldest file was written.
    """
    found: dict[str, FinishedFile] = {}
    wanted: dict[str, list[FinishedFile | None]] = {name: [None] for name in names}
    for entry in _backwards(journal, last):
        begun = min((named_at(name) or 0 for name in wanted), default=None)
        written = datetime.fromisoformat(entry.created) + CLOCKS_DIFFER
        if begun is None or written.timestamp() * 1000 < begun:
            break
        for one in reversed(entry.replaced):
            if one.new is not None and not one.new.source_files and one.new.filename in wanted:
                # It has the rows of the one before, in their order.
                heirs = wanted.pop(one.new.filename)
                wanted.setdefault(one.old, []).extend(heir or one.new for heir in heirs)
        for file in entry.data_files:
            for heir in wanted.pop(file.filename, ()):
                new = heir or file
                found[new.filename] = replace(new, source_files=file.source_files, runs=file.runs)
    return found


def _backwards(journal: JournalReader, last: int) -> Iterator[Entry]:
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="origins") as pool:
        for end in range(last, -1, -CONCURRENT):
            numbers = range(end, max(-1, end - CONCURRENT), -1)
            yield from filter(None, pool.map(journal.entry, numbers))


def joined(files: Collection[FinishedFile]) -> tuple[tuple[str, ...], tuple[Run, ...]]:
    """Return the source files of the rows of several files, and which rows came from which. Pure.

    The rows of the files follow each other; a source file is named once.
    """
    places: dict[str, int] = {}
    runs: list[Run] = []
    for file in files:
        here = [places.setdefault(name, len(places)) for name in file.source_files]
        runs += [run._replace(source=here[run.source]) for run in file.runs]
    return tuple(places), tuple(runs)
