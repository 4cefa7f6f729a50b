"""Our dataclasses behave as those of the standard library, and compile what is used alone."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Hashable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any

import pytest

from lakebed.dataclass import Deferred, dataclass
from lakebed.documents.data_file import ColumnStatistics

METHODS = ("__init__", "__repr__", "__eq__", "__hash__")
Decorator = Callable[..., Callable[[type], type]]


def family(decorator: Decorator) -> dict[str, Any]:
    """Return the same classes, made by one decorator or the other."""

    @decorator(frozen=True, slots=True)
    class Point:
        """Taken by place."""

        x: int
        y: int = 2

    @decorator(frozen=True, slots=True, kw_only=True)
    class Named(Point):
        """Inherits, and has every kind of field."""

        name: str
        tags: list[str] = field(default_factory=list, hash=False)
        secret: str = field(default="s", repr=False)
        note: str = field(default="", compare=False)
        length: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.name))

    @decorator(slots=True)
    class Open:
        """Can be changed."""

        count: int = 0
        seen: set[str] = field(default_factory=set)
        more: int = field(init=False, default=3)

    @decorator(frozen=True, slots=True)
    class Own:  # noqa: PLW1641 - the decorator makes it.
        """Has methods of its own."""

        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, int)

        def __repr__(self) -> str:
            return "mine"

    return {"Point": Point, "Named": Named, "Open": Open, "Own": Own}


OURS, THEIRS = family(dataclass), family(dataclasses.dataclass)
Point: Any = OURS["Point"]


def both(told: Callable[[dict[str, Any]], object]) -> None:
    assert told(OURS) == told(THEIRS)


def message(told: Callable[[], object]) -> str:
    with pytest.raises((TypeError, AttributeError)) as caught:
        told()
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize("name", ["Point", "Named", "Open", "Own"])
def test_it_says_the_same_of_a_class_as_the_standard_library(name):
    both(lambda kin: str(inspect.signature(kin[name])))
    both(lambda kin: [str(one) for one in fields(kin[name])])
    both(lambda kin: kin[name].__match_args__)
    both(lambda kin: kin[name].__slots__)
    both(lambda kin: str(kin[name].__dataclass_params__.frozen))
    both(lambda kin: kin[name].__init__.__annotations__)
    both(lambda kin: kin[name].__init__.__qualname__)
    both(lambda kin: isinstance(kin[name](1, **named(name)), Hashable))


def named(name: str) -> dict[str, Any]:
    return {"name": "n"} if name == "Named" else {}


def test_values_are_the_same():
    both(lambda kin: repr(kin["Point"](1)))
    both(lambda kin: repr(kin["Named"](1, name="long", tags=["t"])))
    both(lambda kin: repr(kin["Open"]()))
    both(lambda kin: repr(kin["Own"](1)))
    both(lambda kin: asdict(kin["Named"](1, y=5, name="n", note="o")))
    both(lambda kin: hash(kin["Named"](1, name="n", note="o")))
    both(lambda kin: hash(kin["Own"](1)))
    both(lambda kin: repr(replace(kin["Named"](1, name="n"), name="longer", x=4)))


def test_equality_is_the_same():
    both(lambda kin: kin["Point"](1) == kin["Point"](1, 2))
    both(lambda kin: kin["Point"](1) == kin["Point"](1, 3))
    both(lambda kin: kin["Named"](1, name="n", note="a") == kin["Named"](1, name="n", note="b"))
    both(lambda kin: kin["Named"](1, name="n") == kin["Point"](1))
    both(lambda kin: kin["Open"]() == kin["Open"]())
    both(lambda kin: kin["Own"](1) == 7)
    both(lambda kin: kin["Point"](1) == 1)


def test_what_is_not_given_and_what_is_not_known_is_refused_in_the_same_words():
    both(lambda kin: message(kin["Point"]))
    both(lambda kin: message(lambda: kin["Named"](1)))
    both(lambda kin: message(lambda: kin["Point"](1, z=1)))
    both(lambda kin: message(lambda: hash(kin["Open"]())))
    both(lambda kin: message(lambda: setattr(kin["Point"](1), "x", 5)))
    both(lambda kin: message(lambda: delattr(kin["Named"](1, name="n"), "x")))


def test_a_frozen_value_takes_no_attribute_at_all():
    value = OURS["Point"](1)
    for name in ("x", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 1)
    assert not hasattr(value, "__dict__")


def test_what_is_made_by_default_is_made_for_each():
    first, second = OURS["Open"](), OURS["Open"]()
    first.seen.add("a")
    first.count += 1
    assert (second.seen, second.count, second.more) == (set(), 0, 3)


def test_what_holds_itself_can_be_shown():
    value = OURS["Open"]()
    value.count = value
    assert repr(value).endswith("Open(count=..., seen=set(), more=3)")


def test_patterns_match_by_place():
    match OURS["Point"](1):
        case Point(x, y):
            assert (x, y) == (1, 2)
        case _:
            raise AssertionError("it is a point")


def test_classes_of_both_kinds_inherit_from_one_another():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Theirs(Point):  # type: ignore[misc]
        z: int = 1

    @dataclass(frozen=True, slots=True)
    class Ours(Theirs):
        w: int = 1

    assert repr(Ours(1, 2, 3, 4)).endswith("Ours(x=1, y=2, z=3, w=4)")
    assert Ours(1) == Ours(1)
    assert Theirs(1, 2, 3) != Theirs(1)
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        dataclass(slots=True)(type("Mutable", (OURS["Point"],), {"__annotations__": {}}))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_values_of_ours_travel_as_pickles(protocol):
    value = ColumnStatistics(null_count=1, maximum="z")
    assert pickle.loads(pickle.dumps(value, protocol)) == value
    assert copy.copy(value) == copy.deepcopy(value) == value


def test_what_nobody_used_is_not_compiled():
    made = family(dataclass)["Point"]
    assert all(isinstance(vars(made)[name], Deferred) for name in METHODS)
    value = made(1)
    assert [isinstance(vars(made)[name], Deferred) for name in METHODS] == [False, True, True, True]
    assert {value} == {made(1)}
    assert [isinstance(vars(made)[name], Deferred) for name in METHODS] == [
        False,
        True,
        False,
        False,
    ]
