"""Our dataclasses where those of the standard library are rarely looked at: as they are there."""

import abc
import copy
import dataclasses
import inspect
import pickle
import sys
import threading
import typing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, FrozenInstanceError, InitVar, field
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from pyspark import cloudpickle

from lakebed.dataclass import Deferred, dataclass

Decorator = Callable[..., Callable[[type], type]]
T = TypeVar("T")
BOTH = pytest.mark.parametrize("decorator", [dataclass, dataclasses.dataclass], ids=["ours", "std"])


class Named(str):
    """A type that only this module knows, named by a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traveller:
    """Goes to another process and back."""

    name: "Named"
    seen: dict[str, int] = field(default_factory=dict)
    length: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.name))


@dataclass(slots=True)
class Counter:
    """Can be changed."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class Nothing:
    """Has no field at all."""


def test_annotations_of_the_constructor_are_found_in_its_module():
    """As tools look for them that evaluate what is written as text."""
    hints = typing.get_type_hints(Traveller.__init__)
    assert hints == {"name": Named, "seen": dict[str, int], "return": type(None)}
    signature = inspect.signature(Traveller, eval_str=True)
    assert signature.parameters["name"].annotation is Named
    assert Traveller.__init__.__globals__ is sys.modules[__name__].__dict__


@BOTH
def test_a_class_says_which_methods_were_made(decorator):
    class Point:
        """A point."""

        x: int

    made: Any = decorator(frozen=True, slots=True)(Point)
    params = made.__dataclass_params__
    assert (params.init, params.repr, params.eq, params.frozen) == (True, True, True, True)


def test_a_class_without_a_docstring_has_none():
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int

    assert Point.__doc__ is None
    assert repr(Point(1)).endswith("Point(x=1)")


@BOTH
def test_fields_without_a_default_come_first(decorator):
    """It is said when the class is made, not when the first value is."""
    wrong = {"__annotations__": {"x": int, "y": int}, "x": 1, "__doc__": "x"}
    with pytest.raises(TypeError, match="non-default argument 'y' follows default argument"):
        decorator(slots=True)(type("Wrong", (), dict(wrong)))
    decorator(slots=True, kw_only=True)(type("Right", (), dict(wrong)))


def test_what_only_a_constructor_takes_is_refused():
    with pytest.raises(TypeError, match="field 'seed' of Wrong is an InitVar"):
        dataclass(slots=True)(type("Wrong", (), {"__annotations__": {"seed": InitVar[int]}}))


@BOTH
@pytest.mark.parametrize("name", ["__setattr__", "__delattr__"])
def test_a_frozen_class_has_no_way_of_its_own_to_assign(decorator, name):
    wrong = {name: lambda *_given: None, "__doc__": "x"}
    with pytest.raises(TypeError, match=f"Cannot overwrite attribute {name} in class Wrong"):
        decorator(frozen=True, slots=True)(type("Wrong", (), wrong))


@BOTH
def test_a_field_may_have_any_name(decorator):
    class Odd:
        """Has names that a constructor uses, too."""

        self: int
        hash: int = 2
        fields: tuple[int, ...] = ()

    made: Any = decorator(frozen=True, slots=True)(Odd)
    odd = made(1, fields=(3,))
    assert (odd.self, odd.hash, odd.fields, hash(odd)) == (1, 2, (3,), hash((1, 2, (3,))))
    assert dataclasses.replace(odd, hash=4) == made(1, 4, (3,))
    assert copy.copy(odd) == odd


@BOTH
def test_fields_after_the_mark_are_named(decorator):
    class Marked:
        """Has a mark, and what belongs to the class."""

        x: int
        _: KW_ONLY
        y: int = 2
        z: int
        most: ClassVar[int] = 7

    made: Any = decorator(frozen=True, slots=True)(Marked)
    assert str(inspect.signature(made)) == "(x: int, *, y: int = 2, z: int) -> None"
    assert made(1, z=3).most == 7
    assert made.__match_args__ == ("x",)


@BOTH
def test_a_class_that_is_said_not_to_be_hashable_is_not(decorator):
    class Unhashable:
        """Says so itself."""

        x: int
        __hash__ = None  # type: ignore[assignment]

    made: Any = decorator(frozen=True, slots=True)(Unhashable)
    with pytest.raises(TypeError, match="unhashable"):
        hash(made(1))


def test_a_plain_class_that_inherits_has_attributes_of_its_own():
    """As without slots; the standard library of some versions fails with them."""

    @dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int

    class Marked(Point):
        """No dataclass."""

    marked: Any = Marked(1)
    marked.note = "mine"
    assert marked.note == "mine"
    del marked.note
    for change in (lambda: setattr(marked, "x", 2), lambda: delattr(marked, "x")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert marked != Point(1)


@BOTH
def test_a_base_without_slots_and_fields_that_are_declared_again(decorator):
    class Base:
        """Has a dictionary."""

        x: int = 1
        y: int = 2

    decorator(frozen=True)(Base)

    class Derived(Base):
        """Has other defaults, and a field more."""

        x: int = 5
        z: int = 6

    made: Any = decorator(frozen=True, slots=True)(Derived)
    assert repr(made(y=3)).endswith("Derived(x=5, y=3, z=6)")
    assert copy.copy(made(y=3)) == made(y=3)


@BOTH
def test_what_is_made_is_not_abstract(decorator):
    class Comparable(abc.ABC):
        """Wants to be compared."""

        @abc.abstractmethod
        def __eq__(self, other: object) -> bool: ...

        @abc.abstractmethod
        def __hash__(self) -> int: ...

    class Point(Comparable):
        """Is."""

        x: int

    made: Any = decorator(frozen=True, slots=True)(Point)
    assert made(1) == made(1)


def test_a_generic_class_is_made_by_its_alias():
    @dataclass(frozen=True, slots=True)
    class Box(Generic[T]):
        """Holds something."""

        value: T

    assert Box[int](1) == Box(1)


@pytest.mark.parametrize(
    "value",
    [Traveller(name=Named("n"), seen={"a": 1}), Counter(3), Nothing()],
    ids=["frozen", "open", "empty"],
)
def test_values_go_to_a_process_of_spark_and_back(value):
    """Their classes are known there: nothing but their names and values travels."""
    body = cloudpickle.dumps(value)
    assert b"_set_" not in body
    assert b"Deferred" not in body
    assert pickle.loads(body) == value
    assert copy.deepcopy(value) == value == dataclasses.replace(value)


@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
def test_a_class_that_a_process_does_not_know_travels_whole(used):
    """As one does that is defined in a notebook, or in a function; used before, or not."""

    @dataclass(frozen=True, slots=True)
    class Local:
        """Is known in this function alone."""

        x: int
        tags: list[str] = field(default_factory=list)

    Local.__module__ = "__main__"
    if used:
        assert Local(1) == Local(1)
        assert repr(Local(1))
        assert copy.copy(Local(1)) == Local(1)
    there = pickle.loads(cloudpickle.dumps(Local))
    value = there(2, ["a"])
    assert (value.x, value.tags, value == there(2, ["a"])) == (2, ["a"], True)
    assert repr(value).endswith("Local(x=2, tags=['a'])")
    with pytest.raises(FrozenInstanceError):
        value.x = 3


def test_a_state_of_another_length_is_refused():
    """As a value is that another version of a class wrote; the standard library takes it."""

    @dataclass(frozen=True, slots=True)
    class Two:
        """Has two fields."""

        x: int
        y: int

    made: Any = Two
    assert made(1, 2).__getstate__() == [1, 2]
    for state in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match="values to unpack"):
            made(1, 2).__setstate__(state)


def test_threads_that_use_a_class_first_at_once_all_can():
    def used(made: Any, start: threading.Barrier) -> tuple[object, ...]:
        start.wait()
        value = made(1)
        return copy.copy(value), value == made(1), hash(value), repr(value)

    for _try in range(20):

        @dataclass(frozen=True, slots=True)
        class Fresh:
            """Nobody has used it."""

            x: int
            y: tuple[int, ...] = field(default_factory=tuple)

        start = threading.Barrier(8)
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _n, c=Fresh, s=start: used(c, s), range(8)))
        assert len(found) == 1
        assert not any(isinstance(one, Deferred) for one in vars(Fresh).values())
