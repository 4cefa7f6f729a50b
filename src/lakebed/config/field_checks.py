"""What no declared field can know alone: names beside each other, names that Delta refuses."""

from collections.abc import Iterator, Sequence

from lakebed.config.faults import Fault
from lakebed.config.models import KeyPath
from lakebed.config.schema import DeclaredField, DeclaredType
from lakebed.types import DEEPEST_COLUMN, FORBIDDEN_IN_NAMES, RESCUED


def check_fields(
    path: KeyPath, fields: Sequence[DeclaredField], above: str = ""
) -> Iterator[Fault]:
    """Yield the faults of fields beside each other, and of the fields inside them."""
    spellings: dict[str, list[str]] = {}
    for index, one in enumerate(fields):
        spellings.setdefault(one.name.casefold(), []).append(one.name)
        yield from _check_name((*path, index, "name"), one, above)
        yield from _check_inside((*path, index), one, f"{above}{one.name}")
        if not above and _depth(one) > DEEPEST_COLUMN:
            yield Fault(
                (*path, index),
                f"is nested deeper than {DEEPEST_COLUMN} levels, which readers of Delta tables do "
                "not bear; declare what is further inside as json",
                near=(),
            )
    for _name, given in sorted(spellings.items()):
        if len(given) > 1:
            yield Fault(path, _given_twice([f"{above}{name}" for name in given]), near=())


def _depth(one: DeclaredType) -> int:
    inner = [*one.fields_, *(each for each in (one.items, one.values) if each is not None)]
    return 1 + max((_depth(each) for each in inner), default=0)


def _check_inside(path: KeyPath, one: DeclaredType, shown: str) -> Iterator[Fault]:
    yield from check_fields((*path, "fields"), one.fields_, f"{shown}.")
    if one.items is not None:
        yield from _check_inside((*path, "items"), one.items, f"{shown}[]")
    if one.values is not None:
        yield from _check_inside((*path, "values"), one.values, f"{shown}[]")


def _check_name(path: KeyPath, one: DeclaredField, above: str) -> Iterator[Fault]:
    if set(one.name) & FORBIDDEN_IN_NAMES:
        yield Fault(
            path,
            "Delta column names cannot have spaces, control characters or any of ,;{}()= in them; "
            f"name the column {allowed_name(one.name)}, say, and read the field by from: "
            f"[{one.name!r}], a key of schema.fields",
        )
    if not above and one.name.casefold() == RESCUED:
        yield Fault(path, f"{RESCUED} is the column that keeps what no other column takes")


def allowed_name(name: str) -> str:
    """Return a name with an underscore for each character that Delta forbids in column names."""
    return "".join("_" if letter in FORBIDDEN_IN_NAMES else letter for letter in name)


def _given_twice(given: list[str]) -> str:
    """Return what can be done about a field that is declared twice."""
    if len(set(given)) == 1:
        return f"the name {given[0]} is given twice"
    return (
        f"{' and '.join(dict.fromkeys(given))} differ only in case, and Delta column names "
        "are case-insensitive; declare the one to keep (values of the other are left out and "
        "counted), and rename one in the data to keep both"
    )
