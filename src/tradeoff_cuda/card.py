"""Solve on a graphics card (the extra ``gpu``: CUDA through CuPy). Questions, plans and certificates stay the same."""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from tradeoff.errors import TooLargeError
from tradeoff.mdp.compiled import Rows, layer_arrays
from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.layer import Layer
from tradeoff.memory import GIB
from tradeoff_cuda import kernels


@cache
def absent() -> str:
    """Return why there is no usable card, or "" if there is one."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed; install it, in the folder of tradeoff, with: pip install '.[gpu]'"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CUDA finds no graphics card ({error})"
    return "" if count else "CUDA finds no graphics card"


class Card:
    """The first graphics card. It keeps the layers in use; if they do not all fit, it holds one at a time."""

    def __init__(self) -> None:
        import cupy

        self.arrays: Any = cupy
        self._layers: WeakKeyDictionary[Layer, kernels.CardLayer] = WeakKeyDictionary()
        self._one_at_a_time = False

    def __reduce__(self) -> tuple[type[Card], tuple[()]]:
        return Card, ()

    def memory(self, dynamics: Dynamics) -> int:
        """Return how many bytes are left beside the model; raise a TooLargeError if not even one layer fits."""
        free, size = _free(), max(map(_size, dynamics.layers))
        missing = sum(_size(layer) for layer in dynamics.layers if layer not in self._layers)
        self._one_at_a_time = missing > free // 2 and len(dynamics.layers) > 1
        if self._one_at_a_time:
            self._layers.clear()
            free, missing = _free(), size
        if missing >= free:
            raise TooLargeError(
                f"a model with {len(dynamics.states):,} states needs {size / GIB:.3g} GiB on the graphics card, and "
                f"{free / GIB:.3g} GiB may be used; make the model smaller, or use the processor (device cpu)"
            )
        return free - missing

    def _layer(self, layer: Layer) -> kernels.CardLayer:
        if layer in self._layers:
            return self._layers[layer]
        if self._one_at_a_time:
            self._layers.clear()
        self._layers[layer] = kernels.card_layer(*layer_arrays(layer))
        return self._layers[layer]

    def backward(self, layer: Layer, rows: Rows, values: Any, seconds: Any, policy: Any, threads: int) -> None:
        """Sweep backwards, in place."""
        there, asarray = self._layer(layer), self.arrays.asarray
        if rows.second is None:
            kernels.backward(there, asarray(rows.raw), values, policy)
        else:
            second = (asarray(rows.second), asarray(rows.tolerance))
            kernels.backward_lexicographic(there, asarray(rows.raw), *second, values, seconds, policy)

    def forward(self, layer: Layer, policy: Any, occupancy: Any, totals: Any, threads: int) -> None:
        """Follow the policies, in place."""
        kernels.forward(self._layer(layer), policy, occupancy, totals)

    def fetch(self, array: Any) -> Any:
        """Return an array on the card as a NumPy array."""
        return self.arrays.asnumpy(array)


def fits(dynamics: Dynamics) -> bool:
    """Return whether a model fits on the card, with as much memory again for solving it."""
    return 2 * max(map(_size, dynamics.layers)) < _free()


def _free() -> int:
    """Return how many bytes of the card may be used: nine tenths of what is free."""
    import cupy

    return int(0.9 * (cupy.cuda.Device().mem_info[0] + cupy.get_default_memory_pool().free_bytes()))


def _size(layer: Layer) -> int:
    """Return about how many bytes a layer takes on the card, where it is kept twice: as it is, and sorted by target."""
    branches, choices, states = len(layer.target), len(layer.action), len(layer.state_ptr)
    return branches * (12 + 16) + layer.reward.nbytes + 8 * choices + 12 * states
