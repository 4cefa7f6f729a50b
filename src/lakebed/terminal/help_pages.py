"""How the help of commands looks: the names that a person types, and no types of Python's."""

import re
from collections.abc import Iterable

CHOICES = re.compile(r" <(?:list\[)?([^<>\[\]]*\|[^<>\[\]]*)\]?>")
"""How the library shows a value that is one of several."""
TYPE = re.compile(r" <[\w\[\], ]+>")
"""How it shows any other value."""
LEAST = re.compile(r"x>=([\d.]+)")


def plain_record(record: tuple[str, str]) -> tuple[str, str]:
    """Return an option or argument as a person would write it: `--output [text|json]`. Pure."""
    name, text = record
    name = TYPE.sub("", CHOICES.sub(r" [\1]", name))
    return name, LEAST.sub(r"at least \1", text)


def plain_usage(pieces: Iterable[str]) -> list[str]:
    """Return the words of a usage line: those in brackets may be left out. Pure."""
    return [re.sub(r"^\{(.*)\}(\.\.\.)?$", r"\1\2", piece) for piece in pieces]
