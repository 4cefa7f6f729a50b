"""How many bad lines a source file may have before it fails. Pure."""

from dataclasses import dataclass
from fractions import Fraction

from lakebed.units import plural

TOO_MANY = "too_many_bad_lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineLimits:
    """What turns the quarantine of bad lines back into the failure of their file.

    Both count what one batch reads of a file; a file that several tasks share counts as one.
    """

    max_records: int | None = None
    """The most bad lines; None where there is no limit."""
    max_ratio: float | None = None
    """The highest share of lines that are bad, of those that are neither blank nor left out."""

    def too_many(self, bad: int) -> str | None:
        """Return which limit so many bad lines exceed, whatever else is in the file."""
        if self.max_records is None or bad <= self.max_records:
            return None
        lines = plural(bad, "line")
        return f"{lines} cannot be read, and error_handling.max_bad_records is {self.max_records}"

    def exceeded(self, bad: int, records: int) -> str | None:
        """Return which limit so many bad lines of so many exceed; None where none does."""
        # A share is compared as it is written: 0.1 is a tenth.
        if self.max_ratio is None or bad <= Fraction(repr(self.max_ratio)) * records:
            return self.too_many(bad)
        share = f"{bad:,} of {plural(records, 'line')}"
        return f"{share} cannot be read, and error_handling.max_bad_ratio is {self.max_ratio}"


def in_words(exceeded: str, *, code: str, message: str) -> str:
    """Return why a file failed that has too many bad lines: the limit, and the first of them."""
    return f"{exceeded}; the first of them: {message} [{code}]"
