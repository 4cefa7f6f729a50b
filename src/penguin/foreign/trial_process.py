"""The process that tries footers: it reads one after the other, until nobody asks any more."""

import contextlib
import sys

from penguin.foreign.footer import parse_footer
from penguin.foreign.trial import LENGTH_BYTES, SURVIVED


def main() -> None:
    """Read footers from standard input, each after its length, and answer that we still live."""
    while head := sys.stdin.buffer.read(LENGTH_BYTES):
        footer = sys.stdin.buffer.read(int.from_bytes(head, "little"))
        # What it thinks of the footer is for the one who asks to find out, and to say.
        with contextlib.suppress(Exception):
            parse_footer(footer, sys.maxsize, "")
        sys.stdout.buffer.write(SURVIVED)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
