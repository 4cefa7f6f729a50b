"""Both programs on every store: killed, late, without answers; each row once."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pytest

from lakebed.clock import Clock
from lakebed.errors import LakeError
from lakebed.retry import may_mend
from lakebed.types import Handoff
from tests.support.dying import Fate
from tests.support.faulty import Cut, Drop, Fault, LoseAnswer, Proxy, Refuse, Request, in_front_of
from tests.support.lives import survives
from tests.support.s3 import QUICK
from tests.support.servers import MORTAL
from tests.support.servers_lake import Lake
from tests.support.servers_reached import REACHED, Contestant

MOST_STEPS = 40


@dataclass
class Steady:
    """A blizzard and a penguin that go on; between tries of a request there are milliseconds."""

    lake: Lake
    clock: Clock | None = None
    on_failure: Callable[[], None] = lambda: None
    failures: list[LakeError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.blizzard = self.lake.blizzard(retry=QUICK, clock=self.clock)
        self.penguin = self.lake.penguin(retry=QUICK, clock=self.clock)

    def settle(self) -> None:
        """Step until neither has anything to do."""
        for _step in range(MOST_STEPS):
            works = [self._tried(step) for step in (self.blizzard.step, self.penguin.step)]
            if not any(works):
                return
        pytest.fail(f"still at work after {MOST_STEPS} steps; {self.failures[-1:]}")

    def _tried(self, step: Callable[[], bool]) -> bool:
        try:
            return step()
        except LakeError as error:
            if not may_mend(error):
                raise
            self.failures.append(error)
            self.on_failure()
            return True


pytestmark = pytest.mark.stores

DEATHS = range(2, 200, 9)
"""The calls to die at, one life after the other; by turns they still reach the store."""


@pytest.mark.parametrize("handoff", Handoff)
def test_every_row_is_in_the_table_once_whatever_dies(
    contestant: Contestant, tmp_path: Path, handoff: Handoff
) -> None:
    """D01, D02, D06, L07, L23: killed in the middle of batches, with late files, two penguins."""
    lake = Lake(contestant, tmp_path, handoff)
    lake.land("date=2024-01-01/a.ndjson")
    lake.land("date=2024-01-02/b.ndjson")
    deaths = 0
    for number in DEATHS:
        if survives(lake.life, Fate(number, after=bool(number % 2))):
            break
        deaths += 1
        # It sorts before what is known already.
        lake.land(f"date=2024-01-01/a late {999 - number}%.ndjson")
    assert deaths > 3
    lake.land("date=2024-01-02/the last.ndjson")
    lake.programs.blizzard(Fate.none())
    lake.two_penguins()
    lake.life(Fate.none())
    lake.balances()


MB = 1 << 20
SIZE = 5 * MB + MB // 4
"""A whole part, and a bit of another."""
TRIES = 5
STEPS = {"s3": ("begin", "part", "complete"), "gs": ("begin", "part", "complete")}
STEPS_ON_AZURE = ("part", "complete")


def in_parts(remote: Contestant, proxy: Proxy, folder: Path) -> tuple[Lake, Steady]:
    """Start both programs with a sink that uploads whatever has more than one part in parts."""
    sink = {"part_size_mb": 5, "min_multipart_size_mb": 1}
    lake = Lake(remote, folder, Handoff.JOURNAL, address=proxy.address, sink=sink)
    return lake, Steady(lake)


def first(
    times: int, fault: Fault, *kinds: str, met: list[Request]
) -> Callable[[Request], Fault | None]:
    """Let the first requests of some kinds go wrong."""
    lock = threading.Lock()

    def rule(request: Request) -> Fault | None:
        with lock:
            if request.kind not in kinds or len(met) >= times:
                return None
            met.append(request)
            return fault

    return rule


def test_every_row_is_in_the_table_once_whichever_step_of_an_upload_is_cut(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W01, L24: cut once, so that the client goes on, and until the program has to."""
    lake, steady = in_parts(remote, proxy, tmp_path)
    for kind in STEPS.get(remote.scheme, STEPS_ON_AZURE):
        for times, fault in ((TRIES, Drop()), (1, LoseAnswer(None)), (TRIES, LoseAnswer(None))):
            met: list[Request] = []
            proxy.rule = first(times, fault, kind, met=met)
            lake.land_large(f"date=2024-01-01/{len(lake.landed)}.ndjson", SIZE)
            steady.settle()
            proxy.rule = lambda _request: None
            steady.settle()
            assert len(met) == times, (kind, fault)
            assert lake.rows() == len(lake.landed), (kind, times, fault)
    lake.balances()


def test_an_upload_that_cannot_even_be_aborted_loses_nothing(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W46: the parts stay in the bucket, under no name that anybody reads."""
    lake, steady = in_parts(remote, proxy, tmp_path)
    met: list[Request] = []
    proxy.rule = first(4 * TRIES, Drop(), "part", "abort", met=met)
    lake.land_large("date=2024-01-01/a.ndjson", SIZE)
    steady.settle()
    proxy.rule = lambda _request: None
    steady.settle()
    assert {"part"} <= {request.kind for request in met}
    lake.balances()


READS = ("get", "head", "list")
BEFORE: tuple[Fault, ...] = (Drop(),) * TRIES
AFTER: tuple[Fault, ...] = (LoseAnswer(None),) * TRIES
READ: tuple[Fault, ...] = (Drop(), Cut(after=10))
THROTTLED: tuple[Fault, ...] = (Refuse(503), Refuse(429), Refuse(503))
ABOUT = (
    (r"/in/", "source"),
    (r"/journal/\d", "entry"),
    (r"/outbox/", "outbox"),
    (r"/_delta_log/\d", "version"),
    (r"/_delta_log", "log"),
    (r"/pending/", "meta"),
    (r"\.parquet", "data"),
)


def kind_of(request: Request) -> tuple[str, str]:
    """Return what a request does, and to what."""
    where = " ".join([unquote(request.path), *request.query.get("prefix", [])])
    method = "list" if "list" in request.query.get("comp", []) else request.kind
    return method, next((what for sign, what in ABOUT if re.search(sign, where)), "other")


def is_kind(kind: tuple[str, str], request: Request) -> bool:
    return kind_of(request) == kind


def one_after_the_other(
    faults: tuple[Fault, ...], fits: Callable[[Request], bool], met: list[Request]
) -> Callable[[Request], Fault | None]:
    """Let the first requests that fit go wrong, each in its way."""
    lock = threading.Lock()

    def rule(request: Request) -> Fault | None:
        with lock:
            if not fits(request) or len(met) >= len(faults):
                return None
            met.append(request)
            return faults[len(met) - 1]

    return rule


def kinds_of_a_batch(steady: Steady, proxy: Proxy) -> list[tuple[str, str]]:
    """Run a batch and its commit, and return the kinds of its requests."""
    steady.lake.land("date=2024-01-01/0.ndjson")
    steady.settle()
    proxy.record.clear()
    steady.lake.land("date=2024-01-01/1.ndjson")
    steady.settle()
    return sorted({kind_of(request) for request in proxy.record})


def test_every_row_is_in_the_table_once_whichever_request_is_cut(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W01, L24, L10, L14: the oracle is asked after each. This hand-off has every kind."""
    lake = Lake(remote, tmp_path, Handoff.STAGING, address=proxy.address)
    steady = Steady(lake)
    kinds = kinds_of_a_batch(steady, proxy)
    assert {("put", "entry"), ("put", "version"), ("list", "source")} <= set(kinds)
    for number, kind in enumerate(kinds):
        for faults in (READ,) if kind[0] in READS else (BEFORE, AFTER):
            met: list[Request] = []
            proxy.rule = one_after_the_other(faults, partial(is_kind, kind), met)
            lake.land(f"date=2024-01-0{1 + number % 3}/{len(lake.landed)}.ndjson")
            steady.settle()
            proxy.rule = lambda _request: None
            steady.settle()
            assert met, kind
            assert lake.rows() == len(lake.landed), (kind, faults[0])
    lake.balances()


def test_a_store_that_throttles_every_kind_of_request_slows_down_and_fails_nothing(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W01: 503 and 429 are answers to wait for; no step fails, and no file."""
    lake = Lake(remote, tmp_path, Handoff.STAGING, address=proxy.address)
    steady = Steady(lake)
    kinds = kinds_of_a_batch(steady, proxy)
    met = {kind: list[Request]() for kind in kinds}
    rules = [one_after_the_other(THROTTLED, partial(is_kind, kind), met[kind]) for kind in kinds]
    proxy.rule = lambda request: next((f for f in (r(request) for r in rules) if f), None)
    lake.land("date=2024-01-02/a.ndjson")
    steady.settle()
    assert steady.failures == []
    assert all(len(each) == len(THROTTLED) for each in met.values())
    lake.balances()


DAY_SECS = 24 * 3600
PAUSE_SECS = 0.5
"""Between a step that failed and the next one, as a service waits."""


@pytest.mark.parametrize("name", MORTAL)
def test_a_server_that_is_killed_in_mid_batch_and_started_again_costs_time_alone(
    name: str, tmp_path: Path
) -> None:
    """W01: with SIGKILL, when the first data file is being uploaded; it starts again at once."""
    killing = threading.Lock()
    deaths: list[str] = []
    later = [0.0]
    with MORTAL[name]() as server, in_front_of(server.address) as proxy:
        second_life = threading.Thread(target=server.start)

        def kill(request: Request) -> None:
            with killing:
                if not deaths and request.method == "PUT" and ".parquet" in unquote(request.path):
                    server.kill()
                    deaths.append(request.path)
                    second_life.start()

        lake = Lake(REACHED[name](server.address), tmp_path, Handoff.STAGING, proxy.address)
        lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
        clock = Clock(seconds=lambda: time.time() + later[0], sleep=lambda _seconds: None)
        steady = Steady(lake, clock=clock, on_failure=lambda: time.sleep(PAUSE_SECS))
        proxy.hold = kill
        steady.settle()
        second_life.join()
        # What failed for good meanwhile is read again by then.
        later[0] = DAY_SECS
        steady.settle()
        tries = [request for request in proxy.record if request.path in deaths]
        assert len(tries) > 1, "the upload was tried again"
        lake.balances()


OUTAGE_SECS = 120
STEP_SECS = 30
"""How far the clock moves with each failure: the wait that a service would take."""


def test_an_outage_of_two_minutes_in_mid_batch_costs_time_alone(
    remote: Contestant, proxy: Proxy, tmp_path: Path
) -> None:
    """W01: it begins with the first data file that is uploaded; the clock is handed in."""
    passed = [0.0]
    began: list[float] = []

    def rule(request: Request) -> Fault | None:
        if not began and request.method == "PUT" and ".parquet" in unquote(request.path):
            began.append(passed[0])
        return Drop() if began and passed[0] < began[0] + OUTAGE_SECS else None

    def wait() -> None:
        passed[0] += STEP_SECS

    lake = Lake(remote, tmp_path, Handoff.STAGING, address=proxy.address)
    clock = Clock(seconds=lambda: time.time() + passed[0], sleep=lambda _seconds: None)
    steady = Steady(lake, clock=clock, on_failure=wait)
    proxy.rule = rule
    lake.land("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
    steady.settle()
    proxy.rule = lambda _request: None
    assert began
    assert passed[0] >= OUTAGE_SECS
    passed[0] += 24 * 3600
    steady.settle()
    lake.balances()


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
