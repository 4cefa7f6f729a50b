"""Find where rows that were or will be erased may still be. Read-only.

Quarantined lines are searched. Data files outside the table and source files that are not in the
table in full are only counted.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from blizzard.answers.bad_lines import LineSearch
from blizzard.model.columns import with_found
from blizzard.model.predicate import Predicate
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.erase import ErasePlan
from blizzard.worker.quarantine.reader import lines_of, read_table
from lakebed import layout
from lakebed.errors import LakeError
from lakebed.storage.store import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingCopies:
    """Where such rows may still be."""

    outside: int = 0
    """Data files in the table's directory that are not in the table."""
    bad_lines: Mapping[str, int] = field(default_factory=dict)
    """Quarantined lines that match or may match, by the key of their source file."""
    unread: tuple[str, ...] = ()
    """Quarantine files that cannot be read."""
    unfinished: int = 0
    """Source files that failed or are read in part."""


def remaining_copies(
    store: Reader, settings: PipelineSettings, predicate: Predicate, found: ErasePlan
) -> RemainingCopies:
    """Search the quarantine, and count the files that were not searched."""
    history = found.state.history
    known = with_found(settings.schema, history.columns)
    search = LineSearch(predicate, known if known.fields else found.columns)
    unread: list[str] = []
    # A line may be in two quarantine files: one that a replay has superseded, and its successor.
    lines: defaultdict[str, set[object]] = defaultdict(set)
    for facts in store.objects(layout.quarantine_folder(settings.name)):
        if not layout.is_quarantine_file(settings.name, facts.path):
            continue
        try:
            for line in lines_of(read_table(store, facts.path)):
                if search.may_match(line.raw):
                    lines[line.key].add((line.line, line.offset, line.raw))
        except (LakeError, pa.ArrowException):
            unread.append(facts.path)
    return RemainingCopies(
        outside=sum(path not in found.state.files for path in _data_files(store)),
        bad_lines={key: len(places) for key, places in sorted(lines.items())},
        unread=tuple(unread),
        unfinished=sum(not one.record.gone for one in history.unfinished.values()),
    )


def _data_files(store: Reader) -> Iterator[str]:
    """Yield the data files in the table's directory, including those in an outbox."""
    folders, here = store.level("")
    ours = (layout.DELTA_LOG, layout.OURS, layout.STAGING)
    below = [folder for folder in folders if folder.strip("/") not in ours]
    below += [
        f"{layout.OURS}/{name}/outbox" for name in layout.pipelines(store.folders(layout.OURS))
    ]
    paths = [facts.path for facts in here]
    for folder in below:
        paths += [facts.path for facts in store.objects(folder)]
    return filter(layout.is_parquet, paths)
