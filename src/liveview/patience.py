"""How long whoever asks the live page waits for what is being looked at."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds; a page in a browser is asked again soon, so none of them is long."""

    first: float = 5.0
    """A request waits so long for a first look."""
    stale: float = 0.3
    """A newer answer is waited for so long, where an older one is known."""
    other: float = 1.0
    """The other program is waited for so long."""
    answer: float = 7.0
    """A request waits so long for its answer; the server's own limit is longer."""
