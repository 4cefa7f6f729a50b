"""What compiled functions need beyond Python: bare pointers, and many bytes looked at in one step.

numba has no words for these, so they are written as LLVM's own instructions, which become vector
instructions of the processor they are compiled on.

numba keeps what it compiled by the time and size of the file of the compiled function, and does not
look at the files of its parts. So what is kept is named after these, too.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import config, int64, njit, types, void
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

# Somebody's NUMBA_DISABLE_JIT is meant for code of his own; this one is nothing without a compiler.
config.DISABLE_JIT = 0  # type: ignore[attr-defined]  # it is read from the environment

WIDTH = 32
"""How many bytes are looked at in one step; so many beyond the last one must be there to read."""

Function = TypeVar("Function", bound=Callable[..., Any])
Numbas = Any
"""Types, values and builders of numba and LLVM, which have no types of their own for Python."""

_BYTE = ir.IntType(8)
_BYTES = ir.VectorType(_BYTE, WIDTH)
_FLAGS = ir.IntType(WIDTH)
_INT64 = ir.IntType(64)


def compiled(signature: Numbas) -> Callable[[Function], Function]:
    """Compile a function at once, or load what was compiled before, on this machine."""

    def compile_it(function: Function) -> Function:
        try:
            kept: Numbas = njit(nogil=True)(function)
            kept._cache = _Cache(function)  # noqa: SLF001 - as numba does with its cache option
            kept.compile(signature)
            kept.disable_compile()
            return cast("Function", kept)
        except Exception:  # noqa: BLE001 - no folder to keep it in, a full disk, a file cut short
            return cast("Function", njit(signature, nogil=True)(function))

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


@_instructions
def ordinary(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
    """Count the bytes before the next quote, backslash or control character, or WIDTH."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        return _before_first(builder, _special(builder, *arguments))

    return int64(data, int64), generate


@_instructions
def special_in(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
    """Return which of WIDTH bytes are quotes, backslashes or control characters: none are zero."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        special = _special(builder, *arguments)
        return builder.zext(builder.bitcast(special, _FLAGS), _INT64)

    return int64(data, int64), generate


@_instructions
def backslashes_in(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
    """Return which of WIDTH bytes are backslashes: none are zero."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        same = builder.icmp_unsigned("==", _load(builder, *arguments), _each("\\"))
        return builder.zext(builder.bitcast(same, _FLAGS), _INT64)

    return int64(data, int64), generate


@_instructions
def first_of(_: Numbas, _found: Numbas) -> Numbas:
    """Return the place of the first of the bytes that were found; there must be one."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return int64(int64), generate


@_instructions
def flat(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
    """Count the bytes before the next quote, bracket, brace or control character, or WIDTH."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        found = _load(builder, *arguments)
        special = builder.icmp_unsigned("<", found, _each(" "))
        special = builder.or_(special, builder.icmp_unsigned("==", found, _each('"')))
        # The codes of brackets and of braces differ in one bit.
        folded = builder.or_(found, _each(" "))
        for character in "{}":
            same = builder.icmp_unsigned("==", folded, _each(character))
            special = builder.or_(special, same)
        return _before_first(builder, special)

    return int64(data, int64), generate


@_instructions
def newlines_in(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
    """Count the newlines among WIDTH bytes."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        same = builder.icmp_unsigned("==", _load(builder, *arguments), _each("\n"))
        return builder.zext(builder.ctpop(builder.bitcast(same, _FLAGS)), _INT64)

    return int64(data, int64), generate


@_instructions
def beyond_ascii(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
    """Return which of WIDTH bytes are not ASCII: none are zero."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        high = builder.icmp_signed("<", _load(builder, *arguments), _each("\0"))
        return builder.zext(builder.bitcast(high, _FLAGS), _INT64)

    return int64(data, int64), generate


@_instructions
def separators_in(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
    """Return which of WIDTH bytes separate records, as RFC 7464 has it: none are zero."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        same = builder.icmp_unsigned("==", _load(builder, *arguments), _each("\x1e"))
        return builder.zext(builder.bitcast(same, _FLAGS), _INT64)

    return int64(data, int64), generate


@_instructions
def digits_ahead(_: Numbas, data: Numbas, _at: Numbas) -> Numbas:
    """Count the digits before the next byte that is none, or WIDTH."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        return _before_first(builder, builder.not_(_digits(builder, *arguments)))

    return int64(data, int64), generate


@_instructions
def few_digits(_: Numbas, data: Numbas, _at: Numbas, _count: Numbas) -> Numbas:
    """Return the number that up to eight digits are; none are zero. Eight bytes are read.

    Neighbours are put together, then pairs of them, then fours: three multiplications for all.
    """

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        base, at, count = arguments
        place = builder.bitcast(builder.gep(base, [at]), _INT64.as_pointer())
        # What follows the digits goes out at the top; zeros come in below, before the first one.
        missing = builder.and_(builder.sub(_wide(8), count), _wide(7))
        number = builder.shl(builder.load(place, align=1), builder.shl(missing, _wide(3)))
        for mask, factor, size in (
            (0x0F0F0F0F0F0F0F0F, 10 * (1 << 8) + 1, 8),
            (0x00FF00FF00FF00FF, 100 * (1 << 16) + 1, 16),
            (0x0000FFFF0000FFFF, 10_000 * (1 << 32) + 1, 32),
        ):
            number = builder.mul(builder.and_(number, _wide(mask)), _wide(factor))
            number = builder.lshr(number, _wide(size))
        none = builder.icmp_unsigned("==", count, _wide(0))
        return builder.select(none, _wide(0), number)

    return int64(data, int64, int64), generate


@_instructions
def agreeing(_: Numbas, data: Numbas, _at: Numbas, other: Numbas, _start: Numbas) -> Numbas:
    """Return how many bytes are the same in two places, at most WIDTH."""

    def generate(_: Numbas, builder: Numbas, __: Numbas, arguments: Numbas) -> Numbas:
        one, two = _load(builder, *arguments[:2]), _load(builder, *arguments[2:])
        return _before_first(builder, builder.icmp_unsigned("!=", one, two))

    return int64(data, int64, other, int64), generate


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


def _wide(number: int) -> Numbas:
    return ir.Constant(_INT64, number)


def _special(builder: Numbas, base: Numbas, at: Numbas) -> Numbas:
    """Return which bytes are quotes, backslashes or control characters."""
    found = _load(builder, base, at)
    special = builder.icmp_unsigned("<", found, _each(" "))
    for character in '"\\':
        same = builder.icmp_unsigned("==", found, _each(character))
        special = builder.or_(special, same)
    return special


def _digits(builder: Numbas, base: Numbas, at: Numbas) -> Numbas:
    """Return which bytes are digits."""
    above = builder.sub(_load(builder, base, at), _each("0"))
    return builder.icmp_unsigned("<", above, ir.Constant(_BYTES, [ir.Constant(_BYTE, 10)] * WIDTH))


def _before_first(builder: Numbas, flags: Numbas) -> Numbas:
    """Count the unset flags before the first set one. The lowest bit is the first byte's."""
    zeros_defined = ir.Constant(ir.IntType(1), 0)
    return builder.zext(builder.cttz(builder.bitcast(flags, _FLAGS), zeros_defined), _INT64)
