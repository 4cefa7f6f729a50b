"""The program: `blizzard`, or `python -m blizzard`."""

import gc
import sys
from importlib.util import find_spec

NEEDED = ("pyspark", "numba", "isal", "zstandard", "pandas")
USAGE = 2


def missing(needed: tuple[str, ...] = NEEDED) -> list[str]:
    """Return the packages of blizzard that are not installed; penguin needs none of them."""
    return [name for name in needed if find_spec(name) is None]


def main() -> None:
    """Run the program, if it is installed whole."""
    if names := missing():
        sys.stderr.write(
            f"error: blizzard is not installed here, only penguin: {', '.join(names)} "
            f"{'is' if len(names) == 1 else 'are'} missing; "
            "pip install 'blizzard-penguin[blizzard]' installs the rest\n"
        )
        sys.exit(USAGE)
    gc.disable()  # Nothing that is imported is garbage; `run_program` enables it again.
    from blizzard.cli.app import main as run  # noqa: PLC0415 - only where it can be imported

    run()


if __name__ == "__main__":
    main()
