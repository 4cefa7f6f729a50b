"""The part of a page that a bench writes: what stands between two marks."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page, by its path in the repository and its name."""

    page: str
    name: str

    def read(self) -> str:
        """Return what the page has now."""
        _before, text, _after = self._cut()
        return text

    def write(self, text: str) -> None:
        """Replace it; the rest of the page stays as it is."""
        before, _was, after = self._cut()
        (ROOT / self.page).write_text(f"{before}\n{text.strip()}\n{after}")

    def _cut(self) -> tuple[str, str, str]:
        """Return what the page has up to the first mark, between the two, and from the second."""
        begin, end = f"<!-- {self.name}: begin -->", f"<!-- {self.name}: end -->"
        before, found, rest = (ROOT / self.page).read_text().partition(begin)
        text, ended, after = rest.partition(end)
        if not (found and ended):
            raise ValueError(f"{self.page} has no marks for {self.name}")
        return before + begin, text.strip(), end + after
