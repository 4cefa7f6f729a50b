"""Which names can be those of objects below a root. Pure.

Names come from documents that other programs may have written. One that leads elsewhere names
nothing here: whoever reads it finds no object, and nobody writes or deletes by it.
"""

import re

LONGEST_REMOTE = 1024
"""Bytes of a name, which no store exceeds."""

_ELSEWHERE = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00\ud800-\udc7f\udd00-\udfff]")
"""An absolute path, a part that is empty, `.` or `..`, and characters that no name can have."""
_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""What the stores' library takes for no name, and no store has to accept."""


def leads_elsewhere(path: str) -> bool:
    """Whether a path is not one of an object below a root, whatever the store."""
    return _ELSEWHERE.search(path) is not None


def is_usable(path: str, *, remote: bool) -> bool:
    """Whether a store can be asked for an object of this name."""
    if leads_elsewhere(path) or _UNSPEAKABLE.search(path):
        return False
    return not remote or len(path.encode()) <= LONGEST_REMOTE
