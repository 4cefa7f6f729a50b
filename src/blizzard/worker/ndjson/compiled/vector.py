"""What compiled functions need beyond Python: bare pointers, and many bytes inspected in one step.

numba has no words for these, so they are written as LLVM's own instructions, which become vector
instructions of the processor they are compiled on. This is the one module that uses interfaces of
numba which are not public:

- The cache. numba keeps what it compiled by the time and size of the file of the compiled function,
  and does not look at the files of its parts. So what is kept is named after these, too.
- `NUMBA_DISABLE_JIT`, which a user sets for code of their own. Only while something of ours is
  compiled it does not hold: ours is nothing without a compiler.
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
"""How many bytes are inspected in one step; so many beyond the last one must be there to read."""

Function = TypeVar("Function", bound=Callable[..., Any])
Numbas = Any
"""Types, values and builders of numba and LLVM, which have no types of their own for Python."""

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
    """Compile a function at once, or load what was compiled before, on this machine."""

    def compile_it(function: Function) -> Function:
        with _compiling():
            try:
                kept: Numbas = njit(nogil=True)(function)
                kept._cache = _Cache(function)  # noqa: SLF001 - as numba does with its cache option
                kept.compile(signature)
                kept.disable_compile()
            except Exception:  # noqa: BLE001 - no folder to keep it in, a full disk, a file cut short
                kept = njit(signature, nogil=True)(function)
        return cast("Function", kept)

    return compile_it


class _Cache(FunctionCache):
    """Keeps what was compiled as long as no file changes that it was made of."""

    def __init__(self, function: Numbas) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        contents = b"".join(Path(file).read_bytes() for file in sorted(_files(function)))
        self._made_of = hashlib.sha256(contents).hexdigest()

    def _index_key(self, sig: Numbas, codegen: Numbas) -> Numbas:
        return (*super()._index_key(sig, codegen), self._made_of)  # type: ignore[no-untyped-call]


def _files(function: FunctionType) -> set[str]:
    """Return the files in which a function and its parts are, and this one."""
    found = {__file__, function.__code__.co_filename}
    for name in function.__code__.co_names:
        inner = getattr(function.__globals__.get(name), "py_func", None)
        if inner is not None:
            found |= _files(inner)
    return found


def part(function: Function) -> Function:
    """Make a function a part of the compiled ones that call it.

    It becomes part of their code: one that is called hands two answers over in memory, written as
    two and read as one, and the processor waits for that longer than it takes to find them.
    """
    with _compiling():
        return cast("Function", njit(nogil=True, forceinline=True)(function))


def _instructions(function: Callable[..., Any]) -> Numbas:
    """Make a function that says which instructions to write into one that can be called."""
    return intrinsic(function)


@_instructions
def pointer(_: Numbas, array: Numbas) -> Numbas:
    """Return the place of an array's first element.

    Handing on an array counts who holds it, at a third of the scan's time; a pointer is free.
    """

    def generate(context: Numbas, builder: Numbas, signature: Numbas, arguments: Numbas) -> Numbas:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    bare: Numbas = types.CPointer
    return bare(array.dtype)(array), generate


def _which(test: Callable[[Numbas, Numbas], Numbas]) -> Numbas:
    """Make a test of bytes a function that returns which of WIDTH bytes pass, as bits."""

    def typed(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
        def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
            return _bits(builder, test(builder, _load(builder, *arguments)))

        return int64(data, int64), generate

    typed.__name__ = test.__name__
    return intrinsic(typed)


@_which
def special_in(builder: Numbas, found: Numbas) -> Numbas:
    """Return which bytes are quotes, backslashes or control characters."""
    return _any_of(builder, found, '"\\', builder.icmp_unsigned("<", found, _each(" ")))


@_which
def brackets_in(builder: Numbas, found: Numbas) -> Numbas:
    """Return which bytes are quotes, brackets, braces or control characters."""
    special = _any_of(builder, found, '"', builder.icmp_unsigned("<", found, _each(" ")))
    # The codes of brackets and of braces differ in one bit.
    return _any_of(builder, builder.or_(found, _each(" ")), "{}", special)


@_instructions
def differing(_: Numbas, data: Numbas, _at: Numbas, other: Numbas, _start: Numbas) -> Numbas:
    """Return which of WIDTH bytes differ in two places, as bits."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        one, two = _load(builder, *arguments[:2]), _load(builder, *arguments[2:])
        return _bits(builder, builder.icmp_unsigned("!=", one, two))

    return int64(data, int64, other, int64), generate


@_instructions
def first_of(_: Numbas, _found: Numbas) -> Numbas:
    """Return the place of the first of the bytes that were found, or WIDTH if there is none."""

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
    """Return which bytes are one of some characters, or are among the others."""
    for character in characters:
        same = builder.icmp_unsigned("==", found, _each(character))
        others = builder.or_(others, same)
    return others


def _bits(builder: Numbas, flags: Numbas) -> Numbas:
    """Return flags as a number; the lowest bit is the first byte's."""
    return builder.zext(builder.bitcast(flags, _FLAGS), _INT64)
