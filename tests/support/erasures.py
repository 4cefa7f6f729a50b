"""A table, and rows that are erased from it by what they hold."""

import json
from pathlib import Path
from typing import Any

from blizzard.model.predicate import parse
from blizzard.rewrite.erase import ErasePlan, erase, plan_erasure
from blizzard.rewrite.remaining_copies import RemainingCopies, remaining_copies
from blizzard.rewrite.transaction import RewriteDone
from tests.support.promotions import ID
from tests.support.retractions import Taken
from tests.support.runner import InProcessRunner

USER = {"name": "user", "type": "string"}
FIELDS = {"fields": [ID, USER]}


class Forgetful(Taken):
    """A table from which rows are erased."""

    def erase(self, where: str, **around: Any) -> RewriteDone[ErasePlan]:
        """Rewrite files and append the entry, in this process."""
        store = around.get("store", self.store)
        return erase(
            store,
            self.settings,
            parse(where),
            around.get("runner", InProcessRunner()),
            clock=self.clock,
            reason=around.get("reason"),
        )

    def forget(self, where: str, **around: Any) -> RewriteDone[ErasePlan]:
        """Erase, and let penguin commit it."""
        done = self.erase(where, **around)
        self.penguin()
        return done

    def meant(self, where: str) -> ErasePlan:
        """Find what an erasure would take out."""
        return plan_erasure(self.store, self.settings, parse(where))

    def held(self, where: str, found: ErasePlan | None = None) -> RemainingCopies:
        """Find where rows for which a condition holds may be, after a look at the table."""
        return remaining_copies(self.store, self.settings, parse(where), found or self.meant(where))

    def said(self, *arguments: str) -> dict[str, Any]:
        """Return what a command prints as JSON."""
        found: dict[str, Any] = json.loads(self.cli(*arguments, "--output", "json").stdout)
        return found

    def uri(self, name: str) -> str:
        """Return how the journal names a source file."""
        return f"{self.landing.folder}/{name}"


def landed(folder: Path, schema: dict[str, Any] | None = None, **more: Any) -> Forgetful:
    """Return a table with three data files: in the last one a user is not known."""
    desk = Forgetful(folder, schema or FIELDS, **more)
    desk.land("a.ndjson", {"id": 1, "user": "x"}, {"id": 2, "user": "y"}, {"id": 3, "user": "x"})
    desk.land("b.ndjson", {"id": 4, "user": "z"}, {"id": 5, "user": "x"})
    desk.ingest()
    desk.land("c.ndjson", {"id": 6, "user": "x"})
    desk.ingest()
    desk.land("d.ndjson", {"id": 7, "user": None})
    desk.ingest()
    return desk
