"""Names as a person sees and types them: none passes for two lines, or for another name. Pure.

A store takes nearly anything for a name: line breaks, control characters that a terminal obeys, and
marks that turn the direction of a text around, so that `gpj.nosjdn` seems to end in `.ndjson`. All
of these are written out wherever a text is printed, as Python and JSON write them, and a name that
is typed as it was printed means the same file.
"""

import re

_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f"  # control characters
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks of the direction of a text
    r"\u200b\u2028\u2029\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # what is not to be seen
    r"\ud800-\udfff"  # no characters at all
)
_ODD = re.compile(f"[{_HIDDEN}]")
_WRITTEN_OUT = re.compile(r"\\(?:[nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5})")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


def printable(text: object, *, keep: str = "") -> str:
    """Return a text with the characters escaped that mislead a reader or a terminal."""
    return _ODD.sub(
        lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], str(text)
    )


def printable_json(text: str) -> str:
    """Return a JSON text with the same characters escaped, so that it means what it meant."""
    return _ODD.sub(lambda found: _escaped(found[0]), text)


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def typed(text: str) -> str | None:
    """Return the name that was printed as this text; None where it is a name as it is.

    A file whose name has a backslash in such a place is meant by the text itself.
    """
    name = _WRITTEN_OUT.sub(_meant, text)
    return None if name == text else name


def _meant(found: re.Match[str]) -> str:
    body = found[0][1:]
    letter = _LETTERS.get(body) or chr(int(body[1:], 16))
    return letter if _ODD.fullmatch(letter) else found[0]
