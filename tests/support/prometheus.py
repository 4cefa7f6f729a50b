"""Prometheus and its promtool, as `scripts/need-prometheus` finds or fetches them."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

from tests.support.ports import reserved_port
from tests.support.waits import until
from tests.support.watched_lake import MINUTE, History

ROOT = Path(__file__).parents[2]
RULES = ROOT / "ops" / "prometheus" / "rules.yml"
FETCHED = ROOT / ".tools" / "prometheus" / "usr" / "bin"


def tool(name: str) -> str:
    """Return the path of a tool; `make test-ops` has seen to it."""
    found = which(name) or which(name, path=str(FETCHED))
    assert found is not None, f"{name} is missing: run make test-ops, which fetches it"
    return found


def promtool(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    """Run promtool in a folder."""
    return subprocess.run(
        [tool("promtool"), *arguments],
        cwd=where,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def blocks_of(history: History, where: Path) -> Path:
    """Write a database with what was scraped."""
    lines = [
        f"{series} {value} {minute * MINUTE:.0f}"
        for series, values in history.series()
        for minute, value in enumerate(values)
        if value is not None
    ]
    (where / "scraped.txt").write_text("\n".join([*lines, "# EOF", ""]))
    made = promtool("tsdb", "create-blocks-from", "openmetrics", "scraped.txt", "data", where=where)
    assert made.returncode == 0, made.stderr
    return where / "data"


class Answers:
    """A running Prometheus, which is asked over HTTP."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str, *, at: float) -> list[dict[str, Any]]:
        """Return the series that an expression gives; an AssertionError says what is wrong."""
        asked = urllib.parse.urlencode({"query": expression, "time": f"{at:.0f}"})
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/query?{asked}", timeout=300) as answer:
                body = json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                raise AssertionError(json.load(refused)["error"]) from refused
        found: list[dict[str, Any]] = body["data"]["result"]
        return found

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def serving(data: Path) -> Iterator[Answers]:
    """Start a Prometheus on a database; it scrapes nothing."""
    config = data.parent / "prometheus.yml"
    config.write_text("scrape_configs: []\n")
    with reserved_port() as port:
        address = f"127.0.0.1:{port}"
    log = data.parent / "prometheus.log"
    with (
        log.open("wb") as written,
        subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={data}",
                "--storage.tsdb.retention.time=200y",
                f"--web.listen-address={address}",
            ],
            stdout=written,
            stderr=written,
        ) as process,
    ):
        try:
            answers = Answers(f"http://{address}")
            until(lambda: answers.ready() or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield answers
        finally:
            process.terminate()
