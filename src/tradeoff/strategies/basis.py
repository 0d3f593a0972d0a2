"""Bases of the space of values: the paper's (Algorithm 1, lines 6-13) and a barycentric spanner.

Neither depends on the person, so each is built once per problem and shared by everybody who is asked about it: at most
k of the paper's bases (one per benchmark) and one spanner.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary, ref

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Matrix, Option, Vector
from tradeoff.problem import Problem

# A component this small beside the largest value is rounding, not another dimension (the paper writes "> 0", with which
# a basis grew to 5 vectors on values of rank 3).
RANK_TOLERANCE = 1e-9

# How far a barycentric spanner may be from the best one: every value is a combination with coefficients in [-2, 2].
SPANNER_FACTOR = 2.0


@dataclass(frozen=True, eq=False)
class Basis:
    """Options whose values are independent and span all values, in the order they were found.

    ``components`` are the sizes max(|v^u_i|, |v^-u_i|) of the largest value in each new direction u_i (Theorem 2
    leaves out the rows where this is small); the first entry is the norm of the benchmark's value.
    """

    options: tuple[Option, ...]
    components: Vector

    @property
    def values(self) -> Matrix:
        """The values, one row each."""
        return np.array([a.value for a in self.options])


class Bases:
    """The bases of one problem, each built when first needed; safe to share between threads."""

    def __init__(self, problem: Problem) -> None:
        self._problem = ref(problem)  # the bases must not keep their problem alive
        self.built = 0
        self._lock = threading.RLock()
        self._optima: tuple[Option, ...] | None = None
        self._paper: dict[int, Basis] = {}
        self._spanner: Basis | None = None

    @property
    def problem(self) -> Problem:
        """The problem that these are the bases of."""
        problem = self._problem()
        if problem is None:
            raise ReferenceError("the problem of these bases is gone")
        return problem

    @property
    def optima(self) -> tuple[Option, ...]:
        """The optimum of each single objective: pi^{e_1}, ..., pi^{e_k}."""
        with self._lock:
            if self._optima is None:
                self._optima = tuple(self.problem.best(np.eye(len(self.problem.objectives))))
            return self._optima

    @property
    def relevant(self) -> tuple[int, ...]:
        """The objectives that can be changed: others have no optimum worth comparing, and would make u_1 undefined."""
        found = self.asked_about
        if not found:
            raise ArgumentError(
                "no objective of this problem can be changed by what is chosen; there is nothing to ask"
            )
        return found

    @property
    def asked_about(self) -> tuple[int, ...]:
        """The objectives that can be changed, if any."""
        return tuple(j for j, optimum in enumerate(self.optima) if optimum.value[j] > RANK_TOLERANCE)

    def paper(self, benchmark: int) -> Basis:
        """Return the basis that begins with the optimum of objective number ``benchmark``."""
        with self._lock:
            if benchmark not in self._paper:
                self._paper[benchmark] = grow_basis(self.problem, self.optima[benchmark])
                self.built += 1
            return self._paper[benchmark]

    def spanner(self) -> Basis:
        """Return the barycentric spanner."""
        with self._lock:
            if self._spanner is None:
                start = grow_basis(self.problem, self.optima[self.relevant[0]])
                self._spanner = barycentric_spanner(self.problem, start)
            return self._spanner


_bases: WeakKeyDictionary[Problem, Bases] = WeakKeyDictionary()
_lock = threading.Lock()


def bases_of(problem: Problem) -> Bases:
    """Return the bases of a problem, shared by everybody who asks about it."""
    with _lock:
        if problem not in _bases:
            _bases[problem] = Bases(problem)
        return _bases[problem]


def grow_basis(problem: Problem, benchmark: Option) -> Basis:
    """Return a basis that begins with the benchmark (Algorithm 1, lines 6-13)."""
    k = len(problem.objectives)
    chosen = [benchmark]
    norm = float(np.linalg.norm(benchmark.value))
    components, largest = [norm], norm
    while len(chosen) < k:
        # Line 7: an orthonormal basis of the complement of what is spanned so far.
        _, _, directions = np.linalg.svd(np.array([a.value for a in chosen]), full_matrices=True)
        complement = directions[len(chosen) :]
        both = np.concatenate([complement, -complement])
        found = problem.best(both)
        sizes = np.abs([direction @ a.value for direction, a in zip(both, found, strict=True)])
        # Line 8: the direction in which some value has the largest component, whichever way it points.
        j = int(np.maximum(sizes[: len(complement)], sizes[len(complement) :]).argmax())
        opposite = j + len(complement)
        winner = j if sizes[j] > sizes[opposite] else opposite
        largest = max(largest, *(float(np.linalg.norm(a.value)) for a in found))
        if sizes[winner] <= RANK_TOLERANCE * largest:
            break  # line 12: nothing sticks out of the span, so d = len(chosen)
        chosen.append(found[winner])
        components.append(float(sizes[winner]))
    return Basis(tuple(chosen), np.array(components))


def barycentric_spanner(problem: Problem, start: Basis) -> Basis:
    """Return a 2-approximate barycentric spanner: every value is sum c_i S_i with |c_i| <= 2.

    Found with the oracle (Awerbuch & Kleinberg 2004): while some value would make the spanned volume more than twice
    as large in place of S_i, it takes that place. The coefficient c_i of a value is the change of volume it makes.
    """
    chosen = list(start.options)
    changed = True
    while changed:
        changed = False
        for i in range(len(chosen)):
            # Row i of the inverse reads off c_i: <c, S_i> = 1 and <c, S_j> = 0 for the others.
            functional = np.linalg.pinv(np.array([a.value for a in chosen]))[:, i]
            found = problem.best(np.array([functional, -functional]))
            sizes = [abs(float(functional @ a.value)) for a in found]
            best = int(np.argmax(sizes))
            if sizes[best] > SPANNER_FACTOR:
                chosen[i] = found[best]
                changed = True
    return Basis(tuple(chosen), np.array([float(np.linalg.norm(a.value)) for a in chosen]))
