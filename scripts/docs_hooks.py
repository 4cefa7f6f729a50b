"""What mkdocs does not do by itself: the site is made of the pages as they stand on GitHub.

- Pages outside of docs/ (README.md, CHANGELOG.md …) are pages of the site, too, and links lead to
  them from both.
- Every record in docs/adr is in the navigation.
- A list may follow its paragraph without a blank line, as CommonMark has it, and a bar in a table's
  code is written with a backslash.
- Nothing on a page is fetched from another host; a build that has such a reference fails.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    # Not security.md: that is the page on what the programs trust.
    "SECURITY.md": "vulnerabilities.md",
    "deploy/README.md": "deploy.md",
    "LICENSE": "LICENSE.txt",
}
"""Files outside of docs/ by where they are on the site."""

LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
BLOCK = re.compile(r"(^ *```.*?^ *```$\n?)", re.MULTILINE | re.DOTALL)
TEXT = re.compile(r"(?!(?:[-*+]|\d+\.) )[^\s|>#]")
"""A line of a paragraph."""
CODE = re.compile(r"`[^`]+`")
ITEM = re.compile(r"(?:[-*+]|\d+\.) ")
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b[^>]*?\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|url\(\s*[\"']?((?:https?:)?//[^\"')\s]+)"
    r"|@import\s+[\"']((?:https?:)?//[^\"']+)"
)
HOST = re.compile(r"[\"'`]((?:https?:)?//[\w.-]+\.[a-z]{2,}/?[^\"'`\s]*)[\"'`]")
ELSEWHERE = re.compile(r"https://(?:unpkg\.com|api\.github\.com)/")
"""Where the theme's script would fetch what this site does not use, such as a drawing program."""


def on_config(config: Any) -> Any:
    """Fill the navigation, and let headings have the anchors that GitHub gives them."""
    config.nav = list(with_records(config.nav, sorted((ROOT / "docs/adr").glob("*.md"))))
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


def with_records(nav: list[Any], records: list[Path]) -> Iterator[Any]:
    """Yield the navigation with every file of docs/adr in place of the folder."""
    for item in nav:
        for title, content in item.items() if isinstance(item, dict) else ():
            if content == "adr/":
                yield {title: sorted(f"adr/{record.name}" for record in records)[::-1]}
            elif isinstance(content, list):
                yield {title: list(with_records(content, records))}
            else:
                yield item
        if not isinstance(item, dict):
            yield item


def slug(title: str, separator: str = "-") -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", separator)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are outside of docs/."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the tests do without mkdocs

    for name, place in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page with links and lists as mkdocs reads them."""
    place = page.file.src_uri
    here = next((name for name, there in OUTSIDE.items() if there == place), f"docs/{place}")
    return for_site(markdown, here)


def for_site(markdown: str, here: str) -> str:
    """Return the text of the file `here`, a path in the repository, for the site."""
    parts = BLOCK.split(markdown)
    # Every second part is a block of code, which stays as it is.
    parts[::2] = [prose(LINK.sub(lambda m: linked(m[1], m[2], here), each)) for each in parts[::2]]
    return "".join(parts)


def prose(text: str) -> str:
    """Return paragraphs, lists and tables as mkdocs reads them."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if ITEM.match(line) and lines and TEXT.match(lines[-1]):
            lines.append("\n")
        # A bar in code parts no cells here, and its backslash would be shown.
        is_row = line.startswith("|")
        lines.append(CODE.sub(lambda m: m[0].replace(r"\|", "|"), line) if is_row else line)
    return "".join(lines)


def linked(text: str, target: str, here: str) -> str:
    """Return a link for the site; what is no page of it is named and not linked."""
    path, mark, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return f"{text}({target})"
    there = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
    place = place_of(there)
    if place is None:
        return text[1:-1]
    start = posixpath.dirname(place_of(here) or "")
    return f"{text}({posixpath.relpath(place, start or '.')}{mark}{anchor})"


def place_of(path: str) -> str | None:
    """Return where a file of the repository is on the site, or None if it is not there."""
    if path == "docs/adr":
        return "adr/README.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else OUTSIDE.get(path)


def on_post_build(config: Any, **_: Any) -> None:
    """Fail if anything on the site would be fetched from another host."""
    site = Path(config.site_dir)
    for script in site.rglob("*.js"):
        script.write_text(ELSEWHERE.sub("./", script.read_text()))
    found = sorted(
        f"{path.relative_to(site)}: {reference}"
        for path in site.rglob("*")
        if path.suffix in (".html", ".css", ".js", ".svg", ".json")
        for reference in fetched(path.suffix, path.read_text())
    )
    if found:
        raise SystemExit("the site fetches from other hosts:\n" + "\n".join(found))


def fetched(suffix: str, text: str) -> set[str]:
    """Return the addresses on other hosts that a file of the site has fetched; not its links."""
    if suffix == ".json":
        return set()  # the index of the search: words of the pages
    found = {next(filter(None, groups)) for groups in FETCHED.findall(text)}
    if suffix == ".js":
        bare = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        found |= set(HOST.findall(bare))
    return {each for each in found if not each.startswith("http://www.w3.org/")}
