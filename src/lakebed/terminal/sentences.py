"""Sentences in the lines of a terminal, broken between words alone. Pure."""

import re
from collections.abc import Callable

Measure = Callable[[str], int]
"""Returns how many cells of a terminal a text takes."""
HANGING = "  "
"""How much further the lines after the first are indented."""
TITLED = 24
"""How far to the right the text after a title may begin for the next lines to begin there, too."""
_TOGETHER = (
    r"[^ ]*\d (?:B|KiB|MiB|GiB|TiB|s|min|h|d)\b[^ ]*"  # a number and its unit
    r"|[^ ]*\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: UTC)?[^ ]*"  # a time
)
_WORD = re.compile(rf"( *)({_TOGETHER}|[^ ]+)")
_TITLE = re.compile(r" *(?:-> |[^ ]+(?: [^ ]+)*  +)(?=[^ ])")


def wrapped(text: str, room: int, measure: Measure) -> list[str]:
    """Return a text in lines, broken between words; a word that is longer than a line is whole.

    A number and its unit are one word, and so is a time.
    """
    lines: list[str] = []
    for part in text.split("\n"):
        words = [word for _gap, word in _WORD.findall(part)]
        line = words[0] if words else ""
        for word in words[1:]:
            if measure(line) + 1 + measure(word) <= room:
                line = f"{line} {word}"
            else:
                lines.append(line)
                line = word
        lines.append(line)
    return lines


def folded(text: str, room: int, measure: Measure) -> list[str]:
    """Return a sentence in lines, those after the first indented; what fits is left as it is.

    A text after a title, such as `  state      failed`, or after an arrow goes on below its
    beginning.

    A terminal breaks a line where it ends, in the middle of a name or a number.
    """
    if measure(text) <= room:
        return [text]
    title = _TITLE.match(text)
    if title is not None and title.end() <= TITLED:
        indent = " " * title.end()
    else:
        indent = text[: len(text) - len(text.lstrip(" "))] + HANGING
    lines: list[str] = []
    line = ""
    for gap, word in _WORD.findall(text):
        if line and measure(f"{line}{gap}{word}") > room:
            lines.append(line)
            line = f"{indent}{word}"
        else:
            line = f"{line}{gap}{word}"
    return [*lines, line]
