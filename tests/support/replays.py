"""A table with lines in quarantine, and those who replay and discard them, in this process."""

from typing import Any

import yaml

from blizzard.rewrite.replay import ReplayOutcome, discard, replay
from lakebed.clock import Clock
from lakebed.documents.records import QuarantineFile
from lakebed.storage.store import Store
from tests.support.builders import entries
from tests.support.dying import Fate, dying
from tests.support.lives import WorkerStores
from tests.support.mortal import Mortal
from tests.support.quarantined import raws
from tests.support.runner import InProcessRunner

FIRST, SECOND = "date=2024-01-01", "date=2024-01-02"


class Replayed(Mortal):
    """Lines wait of which some can be read by now."""

    def __init__(self, folder: Any, *, handoff: Any, inlined: bool) -> None:
        super().__init__(
            folder,
            {"fields": [{"name": "id", "type": "int64"}]},
            handoff=handoff,
            inlined=inlined,
            error_handling={"on_bad_record": "quarantine"},
        )

    def begin(self) -> None:
        """Have lines quarantined, and then change what can be read."""
        self.land(f"{FIRST}/a.ndjson", {"id": 1}, {"id": "2"}, '{"id":')
        self.land(f"{SECOND}/b.ndjson", {"id": "3"})
        self.live(Fate.none())
        document = yaml.safe_load(self.file.read_text())
        document["schema"]["coerce"] = True
        self.file.write_text(yaml.safe_dump(document))

    def replay(self, fate: Fate | None = None, store: Store | None = None) -> ReplayOutcome:
        fate = fate or Fate.none()
        settings = self.settings
        return replay(
            store or dying(self.store, fate),
            settings,
            None,
            InProcessRunner(lambda work: WorkerStores(work, fate)),
            clock=Clock(),
        )

    def discard(
        self, names: list[str] | None, fate: Fate | None = None, store: Store | None = None
    ) -> ReplayOutcome:
        place = store or dying(self.store, fate or Fate.none())
        return discard(place, self.settings, names, clock=Clock())

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.rows())

    def waiting(self) -> list[bytes]:
        """Return the lines that wait, as the journal has it."""
        live: dict[str, QuarantineFile] = {}
        for entry in entries(self.table):
            live |= {file.filename: file for file in entry.quarantine_files}
            for one in entry.resolved:
                del live[one.old]
        return sorted(raws(self.table, live.values()))
