"""Numbers as a person reads them, and tables of them."""

import math
import re


def number(value: float) -> str:
    """Write a number with three digits at most, and its size in words where it is large."""
    for size, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= size:
            divisor = 1e3 if name == " k" else size
            return f"{three(value / divisor)}{name}"
    return three(value)


def weight(value: float) -> str:
    """Write a size in bytes."""
    for size, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{three(value / size)} {name}"
    return f"{value:.0f} B"


def duration(value: float) -> str:
    """Write a time."""
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if value >= 2 * size:
            return f"{three(value / size)} {name}"
    return f"{three(value * 1000)} ms" if value < 1 else f"{three(value)} s"


def dollars(value: float) -> str:
    """Write a price."""
    return "< 0.01" if 0 < value < 0.01 else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def three(value: float) -> str:
    """Write a number with three digits that count."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{round(value, 2 - math.floor(math.log10(abs(value)))):,.{digits}f}"
    return re.sub(r"(\.\d*?)0+$", r"\1", text).rstrip(".")


def rows(head: list[str], body: list[list[str]]) -> str:
    """Write a table; all columns but the first are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
