"""Raw pointers and vector instructions for compiled functions.

numba cannot express these, so they are written as LLVM IR, which is compiled to the vector
instructions of the local processor. Only this module uses numba's private interfaces:

- The cache. numba keys compiled code by the time and size of the function's own file and ignores
  the files of inlined functions. Ours includes the contents of these.
- `NUMBA_DISABLE_JIT`, which users set for their own code. It is ignored while our code is compiled,
  since that cannot run uncompiled.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import config, int64, njit, types, void
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

WIDTH = 32
"""Bytes per vector step; this many must be readable past the end."""

Function = TypeVar("Function", bound=Callable[..., Any])
Numbas = Any
"""Untyped objects of numba and llvmlite."""

_BYTE = ir.IntType(8)
_BYTES = ir.VectorType(_BYTE, WIDTH)
_FLAGS = ir.IntType(WIDTH)
_INT64 = ir.IntType(64)


@contextmanager
def _compiling() -> Iterator[None]:
    settings: Numbas = config
    before, settings.DISABLE_JIT = settings.DISABLE_JIT, 0
    try:
        yield
    finally:
        settings.DISABLE_JIT = before


def compiled(signature: Numbas) -> Callable[[Function], Function]:
    """Compile a function now, or load it from this machine's cache."""

    def compile_it(function: Function) -> Function:
        with _compiling():
            try:
                kept: Numbas = njit(nogil=True)(function)
                kept._cache = _Cache(function)  # noqa: SLF001 - as numba does with its cache option
                kept.compile(signature)
                kept.disable_compile()
            except Exception:  # noqa: BLE001 - no cache folder, a full disk, a truncated file
                kept = njit(signature, nogil=True)(function)
        return cast("Function", kept)

    return compile_it


class _Cache(FunctionCache):
    """A cache that is valid until one of the source files changes."""

    def __init__(self, function: Numbas) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        contents = b"".join(Path(file).read_bytes() for file in sorted(_files(function)))
        self._made_of = hashlib.sha256(contents).hexdigest()

    def _index_key(self, sig: Numbas, codegen: Numbas) -> Numbas:
        return (*super()._index_key(sig, codegen), self._made_of)  # type: ignore[no-untyped-call]


def _files(function: FunctionType) -> set[str]:
    """Return the files of a function and its parts, and this file."""
    found = {__file__, function.__code__.co_filename}
    for name in function.__code__.co_names:
        inner = getattr(function.__globals__.get(name), "py_func", None)
        if inner is not None:
            found |= _files(inner)
    return found


def part(function: Function) -> Function:
    """Inline a function into the compiled functions that call it.

    A real call would return a tuple through memory, written as two words and read as one, which
    stalls the processor for longer than the function takes.
    """
    with _compiling():
        return cast("Function", njit(nogil=True, forceinline=True)(function))


def _instructions(function: Callable[..., Any]) -> Numbas:
    """Turn a code generator into a callable function."""
    return intrinsic(function)


@_instructions
def pointer(_: Numbas, array: Numbas) -> Numbas:
    """Return a pointer to an array's first element.

    Passing arrays costs a third of the scan's time in reference counting; a pointer is free.
    """

    def generate(context: Numbas, builder: Numbas, signature: Numbas, arguments: Numbas) -> Numbas:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    bare: Numbas = types.CPointer
    return bare(array.dtype)(array), generate


def _which(test: Callable[[Numbas, Numbas], Numbas]) -> Numbas:
    """Turn a byte test into a function that returns a bit mask over WIDTH bytes."""

    def typed(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
        def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
            return _bits(builder, test(builder, _load(builder, *arguments)))

        return int64(data, int64), generate

    typed.__name__ = test.__name__
    return intrinsic(typed)


@_which
def special_in(builder: Numbas, found: Numbas) -> Numbas:
    """Return a mask of quotes, backslashes and control characters."""
    return _any_of(builder, found, '"\\', builder.icmp_unsigned("<", found, _each(" ")))


@_which
def brackets_in(builder: Numbas, found: Numbas) -> Numbas:
    """Return a mask of quotes, brackets, braces and control characters."""
    special = _any_of(builder, found, '"', builder.icmp_unsigned("<", found, _each(" ")))
    # The codes of brackets and of braces differ in one bit.
    return _any_of(builder, builder.or_(found, _each(" ")), "{}", special)


@_instructions
def differing(_: Numbas, data: Numbas, _at: Numbas, other: Numbas, _start: Numbas) -> Numbas:
    """Return a mask of the bytes that differ between two places."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        one, two = _load(builder, *arguments[:2]), _load(builder, *arguments[2:])
        return _bits(builder, builder.icmp_unsigned("!=", one, two))

    return int64(data, int64, other, int64), generate


@_instructions
def first_of(_: Numbas, _found: Numbas) -> Numbas:
    """Return the index of the lowest set bit, or WIDTH if there is none."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        zeros_defined = ir.Constant(ir.IntType(1), 0)
        flags = builder.trunc(arguments[0], _FLAGS)
        return builder.zext(builder.cttz(flags, zeros_defined), _INT64)

    return int64(int64), generate


@_instructions
def copy_step(_: Numbas, data: Numbas, _at: Numbas, out: Numbas, _to: Numbas) -> Numbas:
    """Copy WIDTH bytes."""

    def generate(context: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        target = _place(builder, *arguments[2:])
        builder.store(_load(builder, *arguments[:2]), target, align=1)
        return context.get_dummy_value()

    return void(data, int64, out, int64), generate


def _place(builder: Numbas, base: Numbas, at: Numbas) -> Numbas:
    return builder.bitcast(builder.gep(base, [at]), _BYTES.as_pointer())


def _load(builder: Numbas, base: Numbas, at: Numbas) -> Numbas:
    return builder.load(_place(builder, base, at), align=1)


def _each(character: str) -> Numbas:
    return ir.Constant(_BYTES, [ir.Constant(_BYTE, ord(character))] * WIDTH)


def _any_of(builder: Numbas, found: Numbas, characters: str, others: Numbas) -> Numbas:
    """Return a mask of the bytes that equal one of the characters or are in `others`."""
    for character in characters:
        same = builder.icmp_unsigned("==", found, _each(character))
        others = builder.or_(others, same)
    return others


def _bits(builder: Numbas, flags: Numbas) -> Numbas:
    """Pack flags into an integer, first byte in the lowest bit."""
    return builder.zext(builder.bitcast(flags, _FLAGS), _INT64)
