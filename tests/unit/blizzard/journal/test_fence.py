"""An operator's entry beside a run that journals batches of its own."""

import pytest

from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.fence import TRIES, append_what_is_found
from blizzard.journal.journal import Journal
from lakebed.documents.entry import digest, encode
from lakebed.errors import JournalConflict
from lakebed.storage.store import Store
from tests.support.builders import Hands, entries, identity, no_options, record


class Operator:
    """Looks at a journal, to which batches are appended before the operator's entry is there."""

    def __init__(self, root, batches):
        self.store = Store(str(root), no_options())
        history = read_ledger(self.store, "default")
        self.journal = Journal(self.store, identity(), history, Hands().clock)
        self.journal.open_with(lambda: False)
        self.last = self.journal.append((record("a"),), ())
        self.batches = batches
        self.looks = 0

    def look(self):
        self.looks += 1
        entry = self.last.successor(
            "redo", previous=digest(encode(self.last)), run="r", created=self.last.created
        )
        if self.batches:
            self.batches -= 1
            self.last = self.journal.append((record(f"b{self.looks}"),), ())
        return self.looks, entry

    def append(self):
        return append_what_is_found(self.store, "default", self.look)


def test_batches_that_come_too_fast_end_in_an_error_and_nothing_is_written(tmp_path):
    operator = Operator(tmp_path, batches=TRIES)
    with pytest.raises(JournalConflict, match="nothing was done, try again"):
        operator.append()
    assert [each.kind for each in entries(tmp_path)] == ["open", *["batch"] * (TRIES + 1)]
