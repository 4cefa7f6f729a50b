"""Take the pictures of docs/live.md from a lake with a history: `make live-images`.

The history is written by the programs' own parts with a clock that was set back; the page is served
and drawn as it is. Only the batch that runs in the pictures is told by events alone.
"""

import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from blizzard.events import (
    BatchProgress,
    BatchStarted,
    BatchStep,
    SourcesListed,
    StageFinished,
    UnitReported,
)
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit
from penguin.model.settings import TableSettings
from tests.support.browsing import Theme, launched
from tests.support.live_lake import LiveLake
from tests.support.pipelines import pipeline_of
from tests.support.ports import reserved_pair
from tests.support.runner import InProcessRunner
from tests.support.tables import commit_table

NAMES = ("orders", "clicks", "payments", "inventory", "shipments", "sessions")
BUSY = ("orders", "clicks", "payments")
ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs/images"
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
QUARTER = 900.0
DAY = 86_400.0
UNIT_BYTES = 128 << 20
UNITS = 40
FIELDS = """
        - {name: id, type: int64, nullable: false}
        - {name: customer, type: string}
        - {name: amount, type: "decimal(18,2)"}
        - {name: channel, type: string}
        - {name: placed_at, type: timestamp}"""


def configured(root: Path, ports: tuple[int, int]) -> LiveLake:
    """Return a lake whose configuration looks like one of a shop."""
    lake = LiveLake(root, NAMES)
    pipelines = "".join(
        f"""
  {name}:
    source: {{path: "{root}/{name}-in"}}
    sink: {{path: "{root}/{name}-table"}}
    error_handling: {{on_bad_record: quarantine, max_bad_ratio: 0.9}}
    schema:
      fields:{FIELDS}"""
        for name in NAMES
    )
    tables = "".join(f'\n  {name}: {{table_uri: "{root}/{name}-table"}}' for name in NAMES)
    addresses = "".join(
        f', {program}_address: "127.0.0.1:{port}"'
        for program, port in zip(("blizzard", "penguin"), ports, strict=True)
    )
    lake.file.write_text(
        f"pipelines:{pipelines}\ntables:{tables}\nmetrics: {{enabled: true{addresses}}}\n"
    )
    return lake


def landed(lake: LiveLake, name: str, at: float, rows: int, bad: int = 0) -> Path:
    """Write a source file as it arrived at a time."""
    day = time.strftime("%Y/%m/%d", time.gmtime(at))
    path = (
        lake.root / f"{name}-in" / day / f"{name}-{time.strftime('%H%M', time.gmtime(at))}.ndjson"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    line = f'"customer":"c-1017","amount":12.40,"channel":"web","placed_at":"{stamp}"}}\n'
    text = "".join(f'{{"id":{number},{line}' for number in range(rows))
    path.write_text(text + '{"id":1,"amount":"twelve"}\n' * bad)
    os.utime(path, (at, at))
    return path


def ingest(settings: PipelineSettings, at: float) -> None:
    """Read what has landed, as a process would have done at a time."""
    running = pipeline_of(settings, InProcessRunner(), clock=Clock(seconds=lambda: at))
    while running.step():
        pass


def commit(table: TableSettings, at: float) -> None:
    store = Store(table.table_uri, table.storage_options)
    commit_table(table, store, lambda _event: None, Clock(seconds=lambda: at))


def history(lake: LiveLake, now: float) -> None:
    """Write some days, and the last of them by the quarter of an hour."""
    dice = random.Random(7)
    pipelines = {one.name: one for one in lake.blizzard.pipelines}
    tables = {one.name: one for one in lake.penguin.tables}
    for order, name in enumerate(NAMES):
        step = QUARTER if name in BUSY else 2 * QUARTER
        looks = [now - back * DAY for back in range(9, 1, -1)]
        looks += [now - 40 - back * step for back in range(int(1.1 * DAY / step), -1, -1)]
        for at in looks:
            recent = now - at < 2 * DAY
            wave = 0.15 + 0.85 * math.sin(math.pi * ((at / DAY + order / 9) % 1)) ** 2
            rows = int(wave * dice.uniform(700, 1000) * (1 + order / 3)) if recent else 2_000
            bad = dice.randint(0, 4) if name == "payments" and recent else 0
            landed(lake, name, at - dice.uniform(5, 30), rows, bad)
            ingest(pipelines[name], at)
            commit(tables[name], at + dice.uniform(1, 4))
    broken = lake.root / "payments-in" / "broken" / "payments-late.ndjson.gz"
    broken.parent.mkdir()
    broken.write_bytes(b"\x1f\x8b nothing of gzip")
    os.utime(broken, (now - 5_000, now - 5_000))
    ingest(pipelines["payments"], now - 4_800)
    commit(tables["payments"], now - 4_798)
    landed(lake, "shipments", now - 260, 400)
    landed(lake, "clicks", now - 20, 400)


def running(emit: Emit) -> Callable[[], None]:
    """Begin a batch of clicks; what is returned moves it to its middle."""
    oldest = time.time() - 35
    emit(SourcesListed(pipeline="clicks", pending=12 * UNITS, oldest=oldest, resting=0))
    emit(StageFinished(pipeline="clicks", stage=BatchStep.DISCOVER, seconds=0.4))
    planned = tuple((f"unit-{number:03}", 12, UNIT_BYTES) for number in range(UNITS))
    total = UNITS * UNIT_BYTES
    emit(
        BatchStarted(
            pipeline="clicks",
            entry=115,
            files=12 * UNITS,
            bytes=total,
            units=UNITS,
            planned=planned,
        )
    )

    def move() -> None:
        read = 0
        for number in range(22):
            share = 1.0 if number < 18 else 0.35 + 0.13 * (number - 18)
            done = int(share * UNIT_BYTES)
            read += done
            emit(
                UnitReported(
                    pipeline="clicks",
                    unit=f"unit-{number:03}",
                    files_read=int(12 * share),
                    bytes_read=done,
                    records=done // 310,
                )
            )
        emit(BatchProgress(pipeline="clicks", bytes_read=read, records=read // 310))

    return move


VIEWS = {
    "overview": "#/",
    "pipeline": "#/pipelines/clicks",
    "problems": "#/pipelines/payments",
    "journey": "#/files?q=orders-&pipeline=orders",
    "table": "#/tables/orders",
}


PICTURES: tuple[tuple[str, Theme, int], ...] = (
    ("overview", "light", 900),
    ("overview", "dark", 900),
    ("pipeline", "light", 1000),
    ("pipeline", "dark", 1000),
    ("problems", "dark", 1100),
    ("journey", "light", 560),
    ("table", "dark", 900),
)


@contextmanager
def window(browser: Browser, theme: Theme, width: int, height: int) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,
        reduced_motion="reduce",
        timezone_id="Europe/Berlin",
    )
    yield context.new_page()
    context.close()


def picture(page: Page, url: str, view: str, name: str) -> None:
    page.goto(url + VIEWS[view])
    expect(page.locator("h1")).to_be_visible()
    if view == "journey":
        page.locator(".row-link").nth(3).click()
        expect(page.locator(".answer")).to_be_visible()
    page.wait_for_timeout(2_500)  # The documents of the view, and a tick of the clock.
    expect(page.locator("[aria-busy]")).to_have_count(0)
    path = IMAGES / f"live-{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as drawn:  # A third of the bytes, and nobody sees the difference.
        drawn.convert("RGB").quantize(256).save(path, optimize=True)


@contextmanager
def shown_as(name: Path, folder: Path) -> Iterator[Path]:
    """Give a folder a name that may stand in a picture."""
    name.symlink_to(folder)
    yield name
    name.unlink()


def main() -> None:
    """Write docs/images/live-*.png."""
    with (
        reserved_pair() as ports,
        tempfile.TemporaryDirectory(prefix="lake-", dir=MEMORY) as folder,
        shown_as(Path("/tmp/lake"), Path(folder)) as place,
        sync_playwright() as playwright,
        launched(playwright) as browser,
    ):
        lake = configured(place, ports)
        history(lake, time.time())
        sys.stdout.write("the history is written\n")
        with (
            lake.served("blizzard", port=ports[0]) as (pages, _site, emit),
            lake.served("penguin", port=ports[1]),
        ):
            move = running(emit)
            move()
            for view, theme, height in PICTURES:
                with window(browser, theme, 1280, height) as page:
                    picture(page, f"{pages.url}/", view, f"{view}-{theme}")
            with window(browser, "light", 390, 844) as page:
                picture(page, f"{pages.url}/", "overview", "phone")


if __name__ == "__main__":
    main()
