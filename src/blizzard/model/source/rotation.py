"""Names under which logs are put aside when a new one is begun: `access.log-20240511.gz`. Pure."""

import re
from collections.abc import Iterable

from blizzard.model.source.codec import codec_of

_TURN = re.compile(r"(?:[-._]\d+(?:T\d+)?Z?)+\Z")
"""A number or a date at the end of a name."""
_COUNT = re.compile(r"\.\d{1,4}\Z")
"""A number that the next rotation raises."""


def unrotated(path: str) -> str:
    """Return a file's name without its folders, its number or date, and its compression.

    `logs/access.log.2.gz`, `access.log-20240511` and `access.log.2024-05-11_13` are `access.log`.
    """
    return _parts(path)[0]


def renamed(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those files, of all that are there, which get another name at the next rotation.

    They are the ones with a number, and the one that is still written. Dated names stay.
    """
    names = [(path, *_parts(path)) for path in paths]
    logs = {_log(path, name) for path, name, turn in names if turn}
    return tuple(
        path
        for path, name, turn in names
        if (_COUNT.fullmatch(turn) if turn else _log(path, name) in logs)
    )


def _parts(path: str) -> tuple[str, str]:
    """Return the name of a log, and the number or date of the file."""
    name, turn = _unpacked(path.rpartition("/")[2]), ""
    if (found := _TURN.search(name)) is not None and found.start():
        name, turn = name[: found.start()], found[0]
    return _unpacked(name), turn


def _unpacked(name: str) -> str:
    return name.removesuffix(codec_of(name).suffix)


def _log(path: str, name: str) -> str:
    return f"{path.rpartition('/')[0]}/{name}"
