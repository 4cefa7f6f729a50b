"""What is read in one go, and which of its lines are refused."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from blizzard.worker.ndjson.compiled.columns import Bytes, Tokens
from blizzard.worker.ndjson.compiled.convert import Doubtful
from blizzard.worker.ndjson.compiled.leftovers import Numbers, Trail
from blizzard.worker.ndjson.compiled.syntax import MAX_DEPTH
from lakebed.types import UnknownFields


class Refusals:
    """The lines that are refused, by their place on the page."""

    def __init__(self) -> None:
        self.line_of: Numbers = np.empty(0, np.int32)
        """The line in which each row stands."""
        self.line_starts: Numbers | None = None
        """Where each line starts; None where nobody came to know."""
        self._lines: list[Numbers] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._lines)

    @property
    def lines(self) -> npt.NDArray[np.int64]:
        """Return them in their order, each once."""
        return np.unique(np.concatenate(self._lines)).astype(np.int64)

    def add(self, lines: Numbers) -> None:
        """Take in lines."""
        self._lines.append(lines)

    def add_rows(self, rows: Numbers, trail: Trail) -> None:
        """Take in the lines in which some rows of a level stand."""
        here: Trail | None = trail
        while here is not None:
            rows, here = here.rows_above(rows), here.parent
        self.add(self.line_of[rows])


@dataclass(frozen=True, slots=True)
class Page:
    """What is read in one go: blocks of lines one after the other, and what becomes of them."""

    data: Bytes
    """The bytes, and after them those of a step."""
    ends: npt.NDArray[np.int64]
    """Where each block has its end."""
    unknown: UnknownFields
    counted: Sequence[Counter[str]]
    """The values, other than null, of undeclared fields of each block."""
    room: Bytes = field(default_factory=lambda: np.empty(MAX_DEPTH, np.uint8))
    refused: Refusals | None = None
    """The lines that are not for this path; None where one of them is enough to give up."""

    @property
    def refusals(self) -> Refusals:
        """Return where to note a refusal, or raise `Doubtful`."""
        if self.refused is None:
            raise Doubtful
        return self.refused


@dataclass(frozen=True, slots=True)
class Found:
    """The tokens of a scan."""

    tokens: Sequence[Tokens]
    """Those of each declared member."""
    counts: npt.NDArray[np.int64]
    others: npt.NDArray[np.int32]
    """Row, slot, start and length of the values of undeclared members."""
