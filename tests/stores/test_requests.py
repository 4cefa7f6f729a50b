"""How many requests both programs send: the figures of `docs/storage.md`, on every store."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.faulty import Proxy
from tests.support.servers_lake import Lake
from tests.support.servers_reached import Contestant

pytestmark = pytest.mark.stores

PAGE = Path(__file__).parents[2] / "docs/storage.md"
FILES = 100


def documented() -> dict[str, int]:
    """Return the figures of the page, by what they count."""
    section = PAGE.read_text().partition("### Requests")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([a-z][^|]*?) \| (\d+) \|$", section, re.MULTILINE)
    return {what: int(count) for what, count in rows}


def counted(lake: Lake, proxy: Proxy) -> dict[str, int]:
    """Count the requests of a batch, of its commit, and of polls that find nothing."""
    blizzard, penguin = lake.blizzard(), lake.penguin()
    found: dict[str, int] = {}

    def count(what: str, step: Callable[[], bool], *, works: bool) -> None:
        proxy.record.clear()
        assert step() is works
        found[what] = len(proxy.record)

    # The first makes the table, the second asks it for the names of its columns, once a run.
    for name in ("first", "second"):
        lake.land(f"date=2024-01-01/{name}.ndjson")
        while blizzard.step():
            pass
        while penguin.step():
            pass
    lake.land(*(f"date=2024-01-01/g{number:03d}.ndjson" for number in range(FILES)))
    count(f"blizzard, a batch of {FILES} files into one", blizzard.step, works=True)
    count("penguin, the commit of a batch", penguin.step, works=True)
    while blizzard.step():
        pass
    while penguin.step():
        pass
    count("blizzard, a poll that finds nothing", blizzard.step, works=False)
    count("penguin, a poll that finds nothing", penguin.step, works=False)
    return found


def test_the_programs_send_as_many_requests_as_the_page_says(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """Requests are money and time; where they grow on purpose, the page changes, too."""
    lake = Lake(remote, tmp_path, address=proxy.address)
    assert counted(lake, proxy) == documented()
    lake.balances()
