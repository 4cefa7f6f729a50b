"""Random stories of both programs and another engine: nothing is lost, doubled or misreported."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.stories import DeltaRs, Story

VERBS = [
    "arrive", "change", "land_only", "batch", "commits", "retracts", "replaces", "erases",
    "compacts", "replays", "accepts", "restores", "optimizes", "deletes", "marks", "updates",
    "merges", "appends", "checkpoints", "dies", "loses", "hands_over",
]  # fmt: skip
SMALL = st.integers(0, 11)
STEPS: st.SearchStrategy[Any] = st.lists(
    st.tuples(st.sampled_from(VERBS), SMALL, SMALL), min_size=2, max_size=9
)


def story(*steps, provenance=False, on_change="error", inline=False, staging=False):
    """Play a story that once went wrong, before random ones."""
    return example(
        steps=steps, provenance=provenance, on_change=on_change, inline=inline, staging=staging
    )


@story(
    ("replaces", 0, 7), ("deletes", 11, 0), inline=True
)  # The loss of a row beside replaced ones.
@story(
    ("deletes", 1, 0), ("deletes", 0, 0), ("replaces", 0, 9), provenance=True
)  # Two deletions, and one of the two rows was replaced.
@story(("deletes", 1, 0), ("restores", 0, 0), ("restores", 0, 0))  # A deletion that was restored.
@story(
    ("erases", 1, 0), ("merges", 2, 0), ("replaces", 0, 5), provenance=True
)  # A loss before the row beside it was replaced.
@story(
    ("restores", 3, 0), ("replays", 0, 0), ("restores", 1, 0), ("merges", 2, 0), inline=True
)  # A RESTORE that took nothing out, and a replay of it.
@story(("deletes", 1, 0), ("updates", 2, 0), ("loses", 0, 0), ("restores", 2, 0), provenance=True)
# A repair of another program's file, and a RESTORE of the rows that it had.
@story(("erases", 4, 0), ("restores", 4, 0), ("merges", 5, 0), inline=True)
# An erased row that came back, and the deletion of the row beside it.
@story(
    ("change", 10, 2), ("restores", 8, 4), ("retracts", 8, 11), ("replays", 11, 5),
    on_change="reingest",
)  # fmt: skip
# Content that had left the table before a retraction, and a replay of it.
@story(
    ("deletes", 0, 0), ("restores", 1, 0), ("restores", 0, 0), ("restores", 6, 9), ("merges", 0, 0)
)  # A RESTORE that took nothing out, and the loss of a row that it brought back.
@story(
    ("replaces", 0, 1), ("dies", 0, 0), ("appends", 0, 0), ("change", 0, 0), ("replaces", 1, 0),
    ("replaces", 1, 0), ("marks", 5, 11), ("optimizes", 0, 0),
    on_change="replace", inline=True,
)  # fmt: skip
# A row that was deleted in place, by a version of which the checkpoint has no trace.
@story(
    ("deletes", 8, 0), ("deletes", 7, 0), ("retracts", 0, 7), ("change", 2, 0),
    provenance=True, on_change="replace",
)  # fmt: skip
# Two deletions in a data file whose last row an entry took out.
@story(
    ("erases", 1, 0), ("replaces", 0, 4), ("arrive", 0, 0), ("compacts", 0, 0), inline=True
)  # Rows beside erased and replaced ones, in a compaction since.
@story(
    ("replaces", 0, 4), ("replaces", 1, 4), ("compacts", 0, 0)
)  # Two source files that shared a data file, replaced one after the other.
@story(
    ("deletes", 9, 7), ("land_only", 7, 1), ("erases", 10, 3),
    provenance=True, on_change="replace", inline=True,
)  # fmt: skip
# A deletion beside rows of which one was erased and one replaced.
@story(
    ("change", 4, 3), ("change", 4, 2), ("compacts", 8, 1), ("restores", 1, 1), ("merges", 8, 2),
    ("land_only", 5, 10), ("restores", 5, 7), ("change", 3, 6),
    on_change="replace", inline=True,
)  # fmt: skip
# Rows that two versions rewrote, and the first of the two was restored.
@story(
    ("merges", 6, 1), ("restores", 3, 10), ("restores", 6, 7), ("restores", 9, 6),
    ("accepts", 5, 2), ("restores", 7, 3), ("arrive", 7, 8), ("restores", 6, 6),
    provenance=True, on_change="replace", inline=True,
)  # fmt: skip
# The same before a checkpoint.
@story(
    ("replaces", 4, 5), ("arrive", 6, 1), ("replaces", 7, 11), ("optimizes", 7, 6),
    ("change", 11, 0),
    on_change="replace",
)  # fmt: skip
# New content of a file whose replacement of another one was rejected.
@story(
    ("replaces", 3, 3), ("change", 7, 4), ("restores", 5, 4), on_change="replace"
)  # A row that was lost beside superseded ones.
@story(
    ("change", 5, 0), ("replaces", 11, 6), ("restores", 1, 3), ("restores", 0, 4),
    ("compacts", 3, 11), ("marks", 0, 7),
    on_change="replace", inline=True,
)  # fmt: skip
# A row that was deleted in place beside one that was superseded before a RESTORE.
@story(("marks", 0, 0), ("optimizes", 0, 0))  # Rows deleted in place, and then rewritten.
@story(
    ("arrive", 0, 1), ("marks", 4, 0), ("retracts", 2, 0), provenance=True
)  # The same beside a retracted row.
@story(("marks", 1, 0), ("marks", 2, 0))  # Two deletions in place of one data file.
@story(("marks", 1, 0), ("restores", 0, 0), ("marks", 2, 0))
@settings(
    max_examples=int(os.environ.get("STORIES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    steps=STEPS,
    provenance=st.booleans(),
    on_change=st.sampled_from(["error", "reingest", "replace"]),
    inline=st.booleans(),
    staging=st.booleans(),
)
def test_no_story_loses_doubles_or_misreports_a_row(steps, **settings):
    with TemporaryDirectory() as folder:
        Story(Path(folder), DeltaRs(), **settings).play(steps)
