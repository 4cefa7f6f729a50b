"""A table of where the values of each kind of file go: `python -m tests.support.real_data.figures`.

With the name of a kind, the schema that is inferred for it.
"""

import sys
from collections.abc import Iterator

from lakebed.columns.schema import walk
from tests.support.real_data.accounts import Place, accounts, inferred
from tests.support.real_data.kinds import KINDS

SEED = 1
SIZE = 500
FIRST = 20


def table() -> Iterator[str]:
    """Yield the table line by line: columns of all records, and of the first ones only."""
    yield f"{'':20}{'values':>8}" + f"{'typed':>8}{'json':>8}{'rescued':>8}" * 2
    for kind in KINDS:
        records = kind.records(SEED, SIZE)
        both = [accounts(records, inferred(part)) for part in (records, records[:FIRST])]
        figures = [each.places[place] for each in both for place in Place]
        yield f"{kind.name:20}{both[0].places.total():8}" + "".join(f"{n:8}" for n in figures)


def schema(name: str) -> Iterator[str]:
    """Yield the columns that are inferred for a kind, and what is rescued nevertheless."""
    kind = next(one for one in KINDS if one.name == name)
    records = kind.records(SEED, SIZE)
    found = accounts(records, inferred(records))
    for path, one in walk(found.columns):
        yield f"{path:70}{one.type}"
    yield from (f"rescued: {path}" for path in found.rescued)


if __name__ == "__main__":
    for line in schema(sys.argv[1]) if sys.argv[1:] else table():
        sys.stdout.write(f"{line}\n")
