"""What a log still knows of entries whose transactions it does not have."""

from types import SimpleNamespace
from typing import Any

import pytest

from penguin.operate.commit_evidence import CommitEvidence, evidence_of

ENTRIES: list[Any] = [
    SimpleNamespace(entry=SimpleNamespace(sequence=n, files=(n,))) for n in range(3, 9)
]
EMPTY: Any = SimpleNamespace(entry=SimpleNamespace(sequence=9, files=()))


@pytest.mark.parametrize(
    ("known", "forgotten", "expected"),
    [
        (set(), set(), CommitEvidence()),
        ({3, 4}, set(), CommitEvidence(up_to=4)),
        ({5}, set(), CommitEvidence(up_to=5)),
        ({8}, {3, 4}, CommitEvidence(up_to=8)),
        (set(), {4, 6}, CommitEvidence(doubtful=(4, 6))),
        ({5}, {3, 6, 7}, CommitEvidence(up_to=5, doubtful=(6, 7))),
    ],
)
def test_entries_are_committed_in_order_so_the_last_known_one_tells_of_all_before(
    known, forgotten, expected
):
    """HOLES D23"""
    found = evidence_of([*ENTRIES, EMPTY], known.__contains__, lambda file: file not in forgotten)
    assert found == expected
