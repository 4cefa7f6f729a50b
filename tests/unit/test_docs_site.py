"""The documentation site has every page, nothing from elsewhere, and every known hole is shut."""

import importlib.util
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands_page import PAGE, commands_page

ROOT = Path(__file__).parents[2]
CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def loaded() -> Any:
    loader = SourceFileLoader("docs_hooks", str(ROOT / "scripts/docs_hooks.py"))
    spec = importlib.util.spec_from_loader("docs_hooks", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


HOOKS = loaded()


def leaves(nav: list[Any]) -> list[str]:
    """Return the pages of a navigation in their order."""
    found: list[str] = []
    for item in nav:
        for content in item.values() if isinstance(item, dict) else [item]:
            found += leaves(content) if isinstance(content, list) else [content]
    return found


def test_every_page_is_in_the_navigation_once():
    records = sorted((ROOT / "docs/adr").glob("*.md"))
    listed = leaves(list(HOOKS.with_records(CONFIG["nav"], records)))
    pages = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    outside = [place for place in HOOKS.OUTSIDE.values() if place.endswith(".md")]
    assert sorted(listed) == sorted([*pages, *outside]), "add the page to nav in mkdocs.yml"


def test_what_stands_on_the_site_from_outside_of_docs_is_there():
    assert all((ROOT / name).exists() for name in HOOKS.OUTSIDE)


def test_warnings_of_the_build_are_errors_and_nothing_is_left_unchecked():
    assert "mkdocs build --strict\n" in (ROOT / "Makefile").read_text()  # --quiet hides them
    assert "make docs" in (ROOT / ".ci/run").read_text()
    checks = CONFIG["validation"]
    assert {len(checks["nav"]), len(checks["links"])} == {3, 4}
    assert {*checks["nav"].values(), *checks["links"].values()} == {"warn"}


def test_the_logo_leads_to_a_page_and_not_to_a_folder():
    """Opened from a disk, a folder is shown as a list of its files."""
    assert CONFIG["extra"]["homepage"] == "index.html"
    assert CONFIG["use_directory_urls"] is False


@pytest.mark.parametrize(
    ("here", "link", "there"),
    [
        ("README.md", "[a](docs/errors.md#codes)", "[a](errors.md#codes)"),
        ("README.md", "[a](docs/adr/)", "[a](adr/README.md)"),
        ("docs/errors.md", "[a](../README.md)", "[a](index.md)"),
        ("docs/security.md", "[a](../SECURITY.md#x)", "[a](vulnerabilities.md#x)"),
        ("docs/adr/0001-a.md", "[a](../errors.md)", "[a](../errors.md)"),
        ("deploy/README.md", "[a](../docs/metrics.md)", "[a](metrics.md)"),
        ("deploy/README.md", "[the chart](helm/values.yaml)", "the chart"),
        ("docs/a.md", "[a](https://example.com/x)", "[a](https://example.com/x)"),
        ("docs/a.md", "[a](#b)", "[a](#b)"),
        ("README.md", "[two\nlines](docs/a.md)", "[two\nlines](a.md)"),
    ],
)
def test_a_link_that_works_on_github_works_on_the_site(here: str, link: str, there: str):
    assert HOOKS.for_site(f"{link}\n", here) == f"{there}\n"


def test_what_is_in_a_block_stays_as_it_is():
    text = "```\n[a](docs/b.md)\n- c\n```\n"
    assert HOOKS.for_site(text, "README.md") == text


def test_a_list_after_its_paragraph_is_a_list():
    text = "It holds:\n- one\n  more\n- two\nIt ends.\n"
    assert HOOKS.for_site(text, "docs/a.md") == "It holds:\n\n- one\n  more\n- two\nIt ends.\n"


def test_a_bar_in_the_code_of_a_table_is_shown_as_such():
    assert HOOKS.for_site(r"| `a\|b` | c\|d |", "docs/a.md") == r"| `a|b` | c\|d |"


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".html", '<script src="https://cdn.example.com/a.js"></script>'),
        (".html", '<link rel="stylesheet" href="//fonts.example.com/css">'),
        (".html", "<img alt=x src=http://example.com/a.png>"),
        (".html", '<div style="background: url(https://example.com/a.png)">'),
        (".css", "@import 'https://example.com/a.css';"),
        (".js", 'fetch("https://example.com/a")'),
    ],
)
def test_what_a_page_would_fetch_from_elsewhere_is_found(suffix: str, text: str):
    assert len(HOOKS.fetched(suffix, text)) == 1


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".html", '<a href="https://example.com/">a link</a>'),
        (".html", '<script src="assets/a.js"></script><code>"https://x.com/"</code>'),
        (".css", "/* see https://example.com */ a { background: url(images/a.svg) }"),
        (".js", '/* https://example.com */ ns = "http://www.w3.org/2000/svg"'),
    ],
)
def test_links_are_not_fetched(suffix: str, text: str):
    assert HOOKS.fetched(suffix, text) == set()


def test_the_page_of_commands_is_what_the_programs_say():
    assert PAGE.read_text() == commands_page(), "run make commands-page"


def test_every_alert_leads_to_a_recipe():
    """Each alert on the page of dashboards has a link to a section of the page of incidents."""
    alerts = (ROOT / "docs/dashboards.md").read_text().partition("\n## Alerts\n")[2]
    sections = alerts.partition("\n## ")[0].split("\n### ")[1:]
    assert len(sections) > 20
    assert [each for each in sections if "](incidents.md#" not in each] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs/images").glob("*.svg")), ids=lambda p: p.name)
def test_a_drawing_is_shown_somewhere_and_says_what_it_shows(page: Path):
    if page.name == "favicon.svg":
        return
    shown = [text.read_text() for text in (ROOT / "docs").glob("*.md")]
    links = [re.search(rf"!\[([^\]]+)\]\(images/{page.name}\)", text) for text in shown]
    assert any(link is not None and len(link[1]) > 20 for link in links)


def test_what_is_inside_a_list_is_indented_so_that_both_readers_see_it_there():
    """GitHub takes three spaces or four for a table or a block in a list; mkdocs takes four."""
    for page in (ROOT / "docs").rglob("*.md"):
        assert not re.search(
            r"^ {1,3}(\||```|[-*] |\d+\. )", outside_of_blocks(page), re.MULTILINE
        ), page


def outside_of_blocks(page: Path) -> str:
    return str(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL))


def test_the_page_of_holes_matches_the_tests_and_every_hole_has_one() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts/holes"], capture_output=True, text=True, check=True
    )
    assert (ROOT / "tests/HOLES.md").read_text() == made.stdout, "run scripts/holes --write"
    bare = [hole for hole in made.stdout.split("\n### ")[1:] if "\n- `" not in hole]
    assert not bare, "holes without a test"
