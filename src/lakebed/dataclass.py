"""The decorator of the standard library, with methods that are written when they are first used.

A program imports several hundred classes of values and uses a part of them in one run. Python
before 3.13 compiles up to six methods for each, one by one, and that was a quarter of the CPU of a
short run (ADR 69). Here a method is compiled when it is first looked up, and takes its place in
the class: from then on nothing lies between a caller and it. What comes out behaves as what the
standard library makes: `replace`, `fields`, patterns, pickles and signatures know no difference.
"""

import sys
from abc import update_abstractmethods
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, InitVar, fields
from dataclasses import dataclass as standard
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["dataclass"]

T = TypeVar("T")
Source = tuple[str, dict[str, Any]]
"""The text of a method, and the values that it names, beside those of its module."""


def _dataclass(
    *, frozen: bool = False, slots: bool = False, kw_only: bool = False
) -> Callable[[type[T]], type[T]]:
    """Return a decorator that makes a class with slots a dataclass. It takes no `InitVar`.

    A class without a docstring stays without: no signature is taken for one.
    """
    if not slots:
        return standard(frozen=frozen, kw_only=kw_only)

    def decorate(cls: type[T]) -> type[T]:
        own = set(vars(cls))
        made = _bare(cls, frozen=frozen, kw_only=kw_only)
        _check(made, frozen, own)
        written = {"__init__": _init, "__repr__": _repr, "__eq__": _eq}
        if frozen:
            written["__hash__"] = _hash
            written |= {"__getstate__": _getstate, "__setstate__": _setstate}
            made.__setattr__, made.__delattr__ = _no_assignment, _no_deletion
        if vars(cls).get("__hash__", ...) is None and "__eq__" in own:
            own.discard("__hash__")  # Python has set that, since the class has an `__eq__`.
        for name, write in written.items():
            if name not in own:
                setattr(made, name, Deferred(made, name, write))
        if not frozen and "__hash__" not in own:
            made.__hash__ = None
        update_abstractmethods(made)
        return made  # type: ignore[no-any-return]

    return decorate


if (
    TYPE_CHECKING
):  # For type checkers it is that of the standard library, all of whose rules they know.
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _bare(cls: type, *, frozen: bool, kw_only: bool) -> Any:  # noqa: ANN401 - of no known type
    """Return a class as the standard library makes it, without the methods that it compiles."""
    undocumented = cls.__doc__ is None
    if undocumented:
        cls.__doc__ = "-"  # It would be the signature of a method that is not there yet.
    # The standard library compiles two methods for `frozen`, and refuses a class that is not as
    # its bases are. Few have any.
    inherits = any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__)
    made: Any = standard(
        init=False,
        repr=False,
        eq=False,
        slots=True,
        kw_only=kw_only,
        frozen=frozen and inherits,
    )(cls)
    if undocumented:
        made.__doc__ = None
    said = made.__dataclass_params__
    said.init = said.repr = said.eq = True
    said.frozen = frozen
    return made


def _check(cls: "type[DataclassInstance]", frozen: bool, own: set[str]) -> None:
    """Refuse at once what the standard library refuses when it compiles the methods."""
    for name in ("__setattr__", "__delattr__") if frozen else ():
        if name in own:
            raise TypeError(f"Cannot overwrite attribute {name} in class {cls.__name__}")
    for one in cls.__dataclass_fields__.values():
        if isinstance(one.type, InitVar):
            raise TypeError(f"field {one.name!r} of {cls.__name__} is an InitVar")
    before: str | None = None
    for one in fields(cls):
        if one.kw_only or not one.init:
            continue
        if one.default is not MISSING or one.default_factory is not MISSING:
            before = one.name
        elif before is not None:
            raise TypeError(f"non-default argument {one.name!r} follows default argument")


class _Missing:
    """What stands for a value that was not given, and is made then."""

    def __repr__(self) -> str:
        return "<factory>"


_MISSING = _Missing()


class Deferred:
    """A method that is compiled when it is first looked up, and is the class's own from then on."""

    __slots__ = ("cls", "name", "write")

    def __init__(
        self, cls: type, name: str, write: "Callable[[type[DataclassInstance], bool], Source]"
    ) -> None:
        self.cls = cls
        self.name = name
        self.write = write

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., object]:
        """Return the method. Two threads may both compile it; either's will do."""
        cls: Any = self.cls
        source, names = self.write(cls, cls.__dataclass_params__.frozen)
        # Made by a function that is given them: the method's globals are those of its module, where
        # whoever reads its annotations looks for what they name.
        inner = "\n ".join((*source.split("\n"), f"return {self.name}"))
        around = getattr(sys.modules.get(cls.__module__), "__dict__", {})
        found: dict[str, Any] = {}
        text = f"def make({', '.join(names)}):\n {inner}"
        exec(text, around, found)  # noqa: S102 - names of fields, as in the standard library.
        method = found["make"](**names)
        method.__qualname__ = f"{cls.__qualname__}.{self.name}"
        method.__module__ = cls.__module__
        if self.name == "__init__":
            taken = {one.name: one.type for one in fields(cls) if one.init}
            method.__annotations__ = taken | {"return": None}
        setattr(cls, self.name, method)
        bound: Callable[..., object] = method.__get__(instance, owner)
        return bound


def _init(cls: "type[DataclassInstance]", frozen: bool) -> Source:
    names: dict[str, Any] = {"_missing": _MISSING}
    me = "_self" if "self" in cls.__dataclass_fields__ else "self"
    positional: list[str] = [me]
    keywords: list[str] = []
    body: list[str] = []
    for field in fields(cls):
        parameter, value = _taken(field, names)
        if field.init:
            (keywords if field.kw_only else positional).append(parameter)
        if value is None:
            continue  # `__post_init__` sets it.
        if frozen:
            names[f"_set_{field.name}"] = getattr(cls, field.name).__set__
            body.append(f"_set_{field.name}({me}, {value})")
        else:
            body.append(f"{me}.{field.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(f"{me}.__post_init__()")
    parameters = ", ".join([*positional, "*", *keywords] if keywords else positional)
    return f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), names


def _taken(field: Field[Any], names: dict[str, Any]) -> tuple[str, str | None]:
    """Return how a field is written as a parameter, and its value, if it has one."""
    name = field.name
    if field.default_factory is not MISSING:
        names[f"_make_{name}"] = field.default_factory
        made = f"_make_{name}()"
        return (
            f"{name}=_missing",
            f"{made} if {name} is _missing else {name}" if field.init else made,
        )
    if field.default is not MISSING:
        names[f"_default_{name}"] = field.default
        return f"{name}=_default_{name}", name if field.init else f"_default_{name}"
    return name, name if field.init else None


def _repr(cls: "type[DataclassInstance]", _frozen: bool) -> Source:
    shown = [one.name for one in fields(cls) if one.repr]
    values = ", ".join(f"{name}={{self.{name}!r}}" for name in shown)
    source = f'@_once\ndef __repr__(self):\n return f"{{self.__class__.__qualname__}}({values})"'
    return source, {"_once": recursive_repr()}


def _eq(cls: "type[DataclassInstance]", _frozen: bool) -> Source:
    compared = [one.name for one in fields(cls) if one.compare]
    return (
        "def __eq__(self, other):\n"
        " if other.__class__ is self.__class__:\n"
        f"  return {_values('self', compared)} == {_values('other', compared)}\n"
        " return NotImplemented"
    ), {}


def _hash(cls: "type[DataclassInstance]", _frozen: bool) -> Source:
    hashed = [one.name for one in fields(cls) if (one.compare if one.hash is None else one.hash)]
    return f"def __hash__(self):\n return _hash({_values('self', hashed)})", {"_hash": hash}


def _values(owner: str, names: list[str]) -> str:
    return f"({''.join(f'{owner}.{name}, ' for name in names)})"


def _no_assignment(self: "DataclassInstance", name: str, value: object) -> None:
    if _is_frozen(type(self), name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _no_deletion(self: "DataclassInstance", name: str) -> None:
    if _is_frozen(type(self), name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(cls: "type[DataclassInstance]", name: str) -> bool:
    """Whether an attribute cannot be changed: a class that inherits may have others of its own."""
    return "__dataclass_params__" in vars(cls) or name in cls.__dataclass_fields__


def _getstate(cls: "type[DataclassInstance]", _frozen: bool) -> Source:
    names = [one.name for one in fields(cls)]
    return f"def __getstate__(self):\n return [*{_values('self', names)}]", {}


def _setstate(cls: "type[DataclassInstance]", _frozen: bool) -> Source:
    names = [one.name for one in fields(cls)]
    me = "_self" if "self" in names else "self"
    body = [f"{''.join(f'{name}, ' for name in names)} = _state"] if names else ["pass"]
    body += [f"_set_{name}({me}, {name})" for name in names]
    setters = {f"_set_{name}": getattr(cls, name).__set__ for name in names}
    return f"def __setstate__({me}, _state):\n " + "\n ".join(body), setters
