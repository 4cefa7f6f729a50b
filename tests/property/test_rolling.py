"""Rolling never waits for ever, and never closes nothing."""

from hypothesis import given
from hypothesis import strategies as st

from blizzard.model.settings import RollingPolicy
from blizzard.worker.output.parquet import OpenFile, file_is_full, row_group_is_full

POLICIES = st.builds(
    RollingPolicy, file_size=st.integers(1, 2**40), row_group_size=st.integers(1, 2**40)
)
OPEN = st.builds(
    OpenFile,
    encoded=st.integers(0, 2**41),
    buffered=st.integers(0, 2**41),
    ratio=st.floats(0.001, 10),
)


@given(OPEN, POLICIES)
def test_memory_is_one_row_group(file, policy):
    """W18: whatever is known of the file, no more than a row group stays buffered."""
    if file.buffered >= policy.row_group_size:
        assert row_group_is_full(file, policy)
    if not file.buffered:
        assert not row_group_is_full(file, policy)


@given(OPEN, POLICIES)
def test_a_file_that_has_reached_its_target_is_full(file, policy):
    if file.encoded >= policy.file_size:
        assert file_is_full(file, policy)
    if file.encoded < policy.file_size * 0.8:
        assert not file_is_full(file, policy)
