"""Rows of doubles that numba keeps in vector registers, and a few processor instructions that numba does not provide.

numba vectorises a loop only if it can prove much about it, which it cannot for a loop over the weights of a batch inside a
loop over random rows. These intrinsics are explicit: a `Lanes` value is a fixed number of doubles, each operation acts on
all of them at once, and LLVM splits it over the registers of the machine.

Everything rounds according to IEEE 754 and nothing is reassociated, so lane i of a vector operation and the scalar
operation of the same name give the same bits. If the number of lanes is an argument, it must be a compile-time constant: a
literal or a variable captured from an enclosing function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import make_array

__all__ = [
    "Lanes",
    "at",
    "block_fma",
    "block_load",
    "broadcast",
    "choose",
    "fma",
    "gather_fma",
    "greater",
    "lane_fma",
    "load",
    "not_less",
    "prefetch",
    "put",
    "select",
    "short_dot",
    "store",
    "store_narrow",
    "subtract",
]

_DOUBLE = ir.DoubleType()
_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_ELEMENT = {"f": _DOUBLE, "i": _I64, "m": _I1}


class Lanes(types.Type):
    """The type of `count` doubles ("f"), 64-bit integers ("i") or truth values ("m") in registers."""

    def __init__(self, count: int, kind: str = "f") -> None:
        self.count = count
        self.kind = kind
        super().__init__(name=f"Lanes({count}, {kind})")


class Block(types.Type):
    """The type of `rows` vectors of `count` doubles, meant to stay in registers through a loop."""

    def __init__(self, rows: int, count: int) -> None:
        self.rows = rows
        self.count = count
        super().__init__(name=f"Block({rows}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, ir.VectorType(_ELEMENT[kind.kind], kind.count))  # type: ignore[no-untyped-call]


@register_model(Block)
class _BlockModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Block) -> None:
        row = ir.VectorType(_DOUBLE, kind.count)
        super().__init__(manager, kind, ir.ArrayType(row, kind.rows))  # type: ignore[no-untyped-call]


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Return the address of `array[index]`, unchecked."""
    view = make_array(array_type)(context, builder, array)  # type: ignore[no-untyped-call]
    return builder.gep(view.data, [index])


def _splat(builder: Any, scalar: Any, count: int) -> Any:
    """Return a vector of `count` copies of a scalar."""
    empty = ir.Constant(ir.VectorType(scalar.type, count), ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(_I32, count), [0] * count))


def _call_fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x * y + z, rounded once, for scalars or vectors."""
    kind = x.type
    vector = isinstance(kind, ir.VectorType)
    name = f"llvm.fma.v{kind.count}f64" if vector else "llvm.fma.f64"
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(function, [x, y, z])


def _operation(define: Callable[..., Any]) -> Any:
    """Return the intrinsic for a definition, with a type that lets kernels call it."""
    return intrinsic(prefer_literal=True)(define)


def _literal(kind: Any) -> int:
    """Return the value of a compile-time integer."""
    return int(kind.literal_value)


@_operation
def load(typing: Any, array: Any, index: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    """Return `count` doubles from a flat array, starting at `index`."""
    lanes = Lanes(_literal(count))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row = ir.VectorType(_DOUBLE, lanes.count)
        address = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load(builder.bitcast(address, row.as_pointer()), align=8)

    return lanes(array, types.intp, count), generate


@_operation
def store(typing: Any, array: Any, index: Any, row: Any) -> tuple[Any, Callable[..., Any]]:
    """Write the doubles of `row` into a flat array, starting at `index`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(arguments[2], builder.bitcast(address, arguments[2].type.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, row), generate


@_operation
def store_narrow(typing: Any, array: Any, index: Any, row: Any) -> tuple[Any, Callable[..., Any]]:
    """Write integer lanes into a flat array of narrower integers, starting at `index`, dropping the high bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = array.dtype.bitwidth
        narrow = builder.trunc(arguments[2], ir.VectorType(ir.IntType(size), row.count))
        address = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(narrow, builder.bitcast(address, narrow.type.as_pointer()), align=size // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, row), generate


@_operation
def broadcast(typing: Any, scalar: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    """Return `count` lanes that all hold `scalar`, a double or an integer."""
    real = isinstance(scalar, types.Float)
    lanes = Lanes(_literal(count), "f" if real else "i")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _splat(builder, arguments[0], lanes.count)

    return lanes(types.float64 if real else types.int64, count), generate


@_operation
def fma(typing: Any, x: Any, y: Any, z: Any) -> tuple[Any, Callable[..., Any]]:
    """Return x * y + z of three doubles, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call_fma(builder, *arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@_operation
def lane_fma(typing: Any, x: Any, y: Any, z: Any) -> tuple[Any, Callable[..., Any]]:
    """Return x * y + z in every lane for a scalar x, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call_fma(builder, _splat(builder, arguments[0], y.count), arguments[1], arguments[2])

    return z(types.float64, y, z), generate


@_operation
def gather_fma(typing: Any, x: Any, array: Any, index: Any, z: Any) -> tuple[Any, Callable[..., Any]]:
    """Return x * array[index : index + lanes] + z in every lane for a scalar x, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row_type = arguments[3].type
        address = _pointer(context, builder, signature.args[1], arguments[1], arguments[2])
        row = builder.load(builder.bitcast(address, row_type.as_pointer()), align=8)
        return _call_fma(builder, _splat(builder, arguments[0], z.count), row, arguments[3])

    return z(types.float64, array, types.intp, z), generate


@_operation
def block_load(typing: Any, array: Any, rows: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the first `rows` rows of `count` doubles of a flat array, to be kept in registers."""
    block = Block(_literal(rows), _literal(count))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row = ir.VectorType(_DOUBLE, block.count)
        held = ir.Constant(ir.ArrayType(row, block.rows), ir.Undefined)
        for i in range(block.rows):
            offset = ir.Constant(_I64, i * block.count)
            address = _pointer(context, builder, signature.args[0], arguments[0], offset)
            held = builder.insert_value(held, builder.load(builder.bitcast(address, row.as_pointer()), align=8), i)
        return held

    return block(array, rows, count), generate


@_operation
def block_fma(typing: Any, array: Any, index: Any, block: Any, z: Any) -> tuple[Any, Callable[..., Any]]:
    """Return z plus the sum over i of array[index + i] * row i of the block, one fma after the other in that order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = arguments[3]
        for i in range(block.rows):
            at = builder.add(arguments[1], ir.Constant(_I64, i))
            scalar = builder.load(_pointer(context, builder, signature.args[0], arguments[0], at))
            row = builder.extract_value(arguments[2], i)
            total = _call_fma(builder, _splat(builder, scalar, block.count), row, total)
        return total

    return z(array, types.intp, block, z), generate


@_operation
def subtract(typing: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
    """Return x - y in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fsub(*arguments)

    return x(x, y), generate


@_operation
def greater(typing: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
    """Return where x > y."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fcmp_ordered(">", *arguments)

    return Lanes(x.count, "m")(x, y), generate


@_operation
def not_less(typing: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
    """Return where x >= y."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fcmp_ordered(">=", *arguments)

    return Lanes(x.count, "m")(x, y), generate


@_operation
def select(typing: Any, where: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
    """Return x where the condition holds and y elsewhere."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return x(where, x, y), generate


@_operation
def prefetch(typing: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """Prefetch the cache line of `array[index]`; any index is harmless."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = builder.bitcast(
            _pointer(context, builder, signature.args[0], arguments[0], arguments[1]), _I8.as_pointer()
        )
        kind = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_I8.as_pointer()], kind)
        builder.call(function, [address, *(ir.Constant(_I32, flag) for flag in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@_operation
def at(typing: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """Return `array[index]` of a flat array without numba's test for a negative index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], *arguments))

    return array.dtype(array, types.intp), generate


@_operation
def put(typing: Any, array: Any, index: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """Write `array[index]` of a flat array without numba's test for a negative index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _pointer(context, builder, signature.args[0], arguments[0], arguments[1]))
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), generate


@_operation
def short_dot(
    typing: Any, prob: Any, target: Any, values: Any, index: Any, count: Any, lanes: Any, start: Any
) -> tuple[Any, Callable[..., Any]]:
    """Return start plus the sum of prob[j] * values[target[j]] over `count` entries from `index`, but at most `lanes`.

    The sum is added up in that order, without a branch: entries from `count` on get the probability 0, which changes nothing
    as long as values are finite. The arrays must have all `lanes` entries.
    """
    entries = _literal(lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row = ir.VectorType(_DOUBLE, entries)
        first = _pointer(context, builder, signature.args[0], arguments[0], arguments[3])
        chances = builder.load(builder.bitcast(first, row.as_pointer()), align=8)
        numbers = ir.Constant(ir.VectorType(_I64, entries), list(range(entries)))
        counted = builder.icmp_signed("<", numbers, _splat(builder, arguments[4], entries))
        chances = builder.select(counted, chances, ir.Constant(row, [0.0] * entries))
        total = arguments[6]
        for i in range(entries):
            j = builder.add(arguments[3], ir.Constant(_I64, i))
            state = builder.load(_pointer(context, builder, signature.args[1], arguments[1], j))
            state = builder.sext(state, _I64)
            value = builder.load(_pointer(context, builder, signature.args[2], arguments[2], state))
            total = _call_fma(builder, builder.extract_element(chances, ir.Constant(_I32, i)), value, total)
        return total

    return types.float64(prob, target, values, types.intp, types.int64, lanes, types.float64), generate


@_operation
def choose(typing: Any, condition: Any, x: Any, y: Any) -> tuple[Any, Callable[..., Any]]:
    """Return x if the condition holds, otherwise y, without a branch that could be mispredicted."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    kind = types.unliteral(x)  # type: ignore[no-untyped-call]
    return kind(types.boolean, kind, kind), generate
