"""What proves that a checkpoint names every file that was removed since a time."""

from datetime import timedelta

import pytest

from lakebed.deltalog.actions import CommitInfo, LogActions
from lakebed.deltalog.removals import NEVER, RemovalEvidence
from tests.support.builders import NOON

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(("until", "since"), [(4, NOON - 9 * HOUR), (3, NOON - HOUR)])
def test_a_note_counts_only_if_no_version_after_it_went_unread(until, since):
    """A commit may come some versions after the one that its penguin had read."""
    evidence = RemovalEvidence(checkpointed=NOON, keeps=7 * 24 * HOUR)
    note = {"since": int((NOON - 9 * HOUR).timestamp() * 1000), "until": until}
    info = CommitInfo({"penguin": {"others": {"removals": note}}})
    evidence.take(LogActions(version=9, info=info), NOON, first=5)
    assert evidence.complete_since(NOON - HOUR) == since


def test_without_a_checkpoint_nothing_is_proved():
    assert RemovalEvidence().complete_since(NOON) == NEVER
