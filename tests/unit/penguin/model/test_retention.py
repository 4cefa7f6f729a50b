from datetime import UTC, datetime, timedelta

import pytest

from lakebed.deltalog.log_contents import DELTA_DEFAULT, FOR_EVER, RETENTION_PROPERTY, retention
from penguin.model.backlog import danger

NOW = datetime(2026, 1, 15, tzinfo=UTC)


@pytest.mark.parametrize("text", ["365 days", "INTERVAL 365 DAYS", "interval 52 weeks 1 day"])
def test_a_long_retention_that_some_engine_cannot_read_is_no_comfort(text):
    """HOLES L31, W15: that engine's VACUUM takes files after its default."""
    assert retention({RETENTION_PROPERTY: text}) == DELTA_DEFAULT


@pytest.mark.parametrize("text", ["", "interval", "soon", "interval 3 moons 2 days", "-4"])
def test_what_cannot_be_read_counts_as_the_default(text):
    assert retention({RETENTION_PROPERTY: text}) == DELTA_DEFAULT
    assert retention({}) == DELTA_DEFAULT


@pytest.mark.parametrize(("days", "alarmed"), [(6.9, False), (7.1, True), (400, True)])
def test_half_of_the_retention_is_too_long(days, alarmed):
    """W15: the danger is told before it is one."""
    found = danger(NOW - timedelta(days=days), {RETENTION_PROPERTY: "interval 14 days"}, NOW)
    assert (found is not None) is alarmed


@pytest.mark.parametrize("text", ["interval 99999999 weeks", "interval 999999999999999999 days"])
def test_a_retention_beyond_every_calendar_is_a_long_one(text):
    """W15: half of it is reckoned with, and so is a time so long ago."""
    keeps = retention({RETENTION_PROPERTY: text})
    assert keeps == FOR_EVER
    assert NOW - keeps < NOW
    assert danger(NOW - timedelta(days=400), {RETENTION_PROPERTY: text}, NOW) is None
