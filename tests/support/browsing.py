"""A browser that looks at the live page, and notes whatever must not happen there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Playwright, Request

from liveview.model import Overview
from tests.support import live_samples as samples
from tests.support.live_server import LiveServer, Scene

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
Theme = Literal["light", "dark"]
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
HIDE = """(hidden) => {
  Object.defineProperty(document, "visibilityState",
    { configurable: true, get: () => (hidden ? "hidden" : "visible") });
  document.dispatchEvent(new Event("visibilitychange"));
}"""

STRAY = """[...document.querySelectorAll("main, section, table, tbody, tr, ul, ol, dl")]
  .flatMap((block) => [...block.childNodes])
  .filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())
  .map((node) => node.data)"""
"""Texts beside blocks: a number, for example, that stood for whether to draw something."""


def clock() -> samples.Clock:
    """Return the clock of a test's documents: the real one, for the browser has no other."""
    return samples.Clock(datetime.now(UTC))


@dataclass
class Visit:
    """One look at the page."""

    page: Page
    url: str
    server: LiveServer | None = None
    """Who serves samples; None where the programs themselves serve the page."""
    faults: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    """What the browser may say on its console, because the test makes it happen."""

    @property
    def scene(self) -> Scene:
        assert self.server is not None
        return self.server.scene

    def kill(self) -> int:
        """Kill the server of samples, and return its port."""
        assert self.server is not None
        self.server.kill()
        return self.server.server_port

    def heading(self) -> Locator:
        return self.page.get_by_role("heading", level=1)

    def section(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    def go(self, hash_: str) -> None:
        self.page.evaluate("(hash) => { location.hash = hash }", hash_)

    def hide(self, hidden: bool) -> None:
        """Do as a browser does when its tab is covered or shown."""
        self.page.evaluate(HIDE, hidden)

    def width(self) -> int:
        """Return how wide the page is, which is the window's width unless something sticks out."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def heard(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.faults.append(said.text)

    def asked(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.outside.append(request.url)

    def check(self) -> None:
        """Assert that nothing happened that must not."""
        assert self.page.evaluate("window.violations") == []
        assert self.page.evaluate("window.hacked") is None
        assert [one for one in self.faults if not any(each in one for each in self.expected)] == []
        assert self.outside == []
        assert self.page.evaluate(STRAY) == []


@dataclass
class Visitor:
    """Opens the page as a test wants it; every visit is checked when the test is over."""

    browser: Browser
    visits: list[Visit] = field(default_factory=list)
    servers: list[LiveServer] = field(default_factory=list)

    def open(
        self,
        overview: Overview,
        path: str = "#/",
        *,
        width: int = 1280,
        theme: Theme = "light",
        calm: bool = True,
        expected: tuple[str, ...] = (),
        **scene: Any,
    ) -> Visit:
        server = LiveServer(Scene(clock(), overview, **scene))
        self.servers.append(server)
        visit = self.look(server.url, path, width=width, theme=theme, calm=calm, expected=expected)
        visit.server = server
        return visit

    def look(
        self,
        url: str,
        path: str = "#/",
        *,
        width: int = 1280,
        theme: Theme = "light",
        calm: bool = True,
        expected: tuple[str, ...] = (),
    ) -> Visit:
        context = self.browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=theme,
            reduced_motion="reduce" if calm else "no-preference",
            timezone_id="Europe/Berlin",
        )
        context.add_init_script(WATCH)
        page = context.new_page()
        visit = Visit(page, url, expected=expected)
        page.on("console", visit.heard)
        page.on("pageerror", lambda error: visit.faults.append(str(error)))
        page.on("request", visit.asked)
        page.goto(url + path)
        self.visits.append(visit)
        return visit

    def end(self) -> None:
        try:
            for visit in self.visits:
                visit.check()
        finally:
            for visit in self.visits:
                visit.page.context.close()
            for server in self.servers:
                server.kill()


@contextmanager
def launched(playwright: Playwright) -> Iterator[Browser]:
    """Start Chromium, which needs no sandbox of its own to look at pages of ours."""
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    try:
        yield browser
    finally:
        browser.close()
