"""Arithmetic on several numbers at once: ``+ - * /`` of `Lanes`, so that a formula is written once for one and for many.

A product may be fused into a sum here, unlike in ``vector.py``: these are for numbers whose last digits do not count.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin
from numba.np.arrayobj import make_array

from tradeoff.kernels.vector import Lanes, _splat

_REALS = {operator.add: "fadd", operator.sub: "fsub", operator.mul: "fmul", operator.truediv: "fdiv"}
_INTEGERS = {
    operator.add: "add", operator.sub: "sub", operator.and_: "and_", operator.or_: "or_", operator.lshift: "shl",
    operator.rshift: "lshr",
}  # fmt: skip
SCALARS = {"f": (types.Float, types.float64), "i": (types.Integer, types.int64)}


def _widened(builder: Any, value: Any, like: Any) -> Any:
    """Return a value as lanes like others."""
    return value if isinstance(value.type, ir.VectorType) else _splat(builder, value, like.type.count)


def _lowered(context: Any, builder: Any, called: Any, given: Any, operation: Any) -> Any:
    """Return the result of an operation on lanes, or on lanes and a scalar."""
    x, y = _widened(builder, given[0], given[1]), _widened(builder, given[1], given[0])
    if called.return_type.kind == "f":
        return getattr(builder, _REALS[operation])(x, y, flags=("contract",))
    return getattr(builder, _INTEGERS[operation])(x, y)


def _define(operation: Any) -> None:
    """Let kernels use an operator on lanes."""

    class OfLanes(AbstractTemplate):
        def generic(self, given: Any, _: Any) -> Any:
            lanes = [one for one in given if isinstance(one, Lanes)]
            if not lanes or any(one.kind != lanes[0].kind or one.kind == "m" for one in lanes):
                return None
            among, scalar = SCALARS[lanes[0].kind]
            if not all(isinstance(one, Lanes | among) for one in given):
                return None
            parts = [one if isinstance(one, Lanes) else scalar for one in given]
            return signature(lanes[0], *parts)  # type: ignore[no-untyped-call]

    infer_global(operation)(OfLanes)  # type: ignore[no-untyped-call]

    def lowered(context: Any, builder: Any, called: Any, given: Any) -> Any:
        return _lowered(context, builder, called, given, operation)

    for pair in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lower_builtin(operation, *pair)(lowered)  # type: ignore[no-untyped-call]


for _operation in {*_REALS, *_INTEGERS}:
    _define(_operation)


def _bits_of(_: Any, number: Any) -> Any:
    """Return the bits of numbers, as integers."""
    kind = Lanes(number.count, "i") if isinstance(number, Lanes) else types.int64
    element: Any = ir.IntType(64)
    into = ir.VectorType(element, number.count) if isinstance(number, Lanes) else element
    return kind(number), lambda _, builder, __, given: builder.bitcast(given[0], into)


def _number_of(_: Any, bits: Any) -> Any:
    """Return the numbers with these bits."""
    kind = Lanes(bits.count) if isinstance(bits, Lanes) else types.float64
    element: Any = ir.DoubleType()
    into = ir.VectorType(element, bits.count) if isinstance(bits, Lanes) else element
    return kind(bits), lambda _, builder, __, given: builder.bitcast(given[0], into)


def _chosen(sign: str) -> Callable[..., Any]:
    def define(_: Any, numbers: Any, end: Any) -> Any:
        def generate(_: Any, builder: Any, __: Any, given: Any) -> Any:
            limit = _widened(builder, given[1], given[0]) if isinstance(numbers, Lanes) else given[1]
            return builder.select(builder.fcmp_ordered(sign, given[0], limit), given[0], limit)

        return numbers(numbers, types.float64), generate

    return define


def _flags(_: Any, where: Any) -> Any:
    """Return truth values as the bits of an integer, the first one lowest."""

    def generate(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.zext(builder.bitcast(given[0], ir.IntType(where.count)), ir.IntType(64))

    return types.int64(where), generate


def _lowest_bit(_: Any, bits: Any) -> Any:
    """Return the place of the lowest bit that is 1; any number if there is none."""
    return types.int64(types.int64), lambda _, builder, __, given: builder.cttz(given[0], ir.Constant(ir.IntType(1), 1))


def _borrowed(_: Any, array: Any) -> Any:
    """Return an array whose references are not counted, which costs more than small helpers do; its owner must outlive it."""

    def generate(context: Any, builder: Any, called: Any, given: Any) -> Any:
        view = make_array(called.args[0])(context, builder, given[0])  # type: ignore[no-untyped-call]
        view.meminfo, view.parent = (ir.Constant(one.type, None) for one in (view.meminfo, view.parent))
        return view._getvalue()

    return array(array), generate


borrowed: Any = intrinsic(_borrowed)
bits_of: Any = intrinsic(_bits_of)
number_of: Any = intrinsic(_number_of)
at_least: Any = intrinsic(_chosen(">"))  # the larger of each number and a scalar
at_most: Any = intrinsic(_chosen("<"))  # the smaller of each number and a scalar
flags: Any = intrinsic(_flags)
lowest_bit: Any = intrinsic(_lowest_bit)
