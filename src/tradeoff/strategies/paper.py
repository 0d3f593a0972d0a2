"""The paper's elicitation: basis policies, basis ratios, the estimate of the weights (its section 3).

The sub-generators are named after the parts of Algorithms 1 and 2. ``basis="spanner"`` replaces the paper's basis by a
barycentric spanner, with which all ratios lie in [0, 1] and the regret is linear in the precision; docs/spanner.md has
the theorem and its proof.

Two things depart from the paper. With ``theorem=2`` the ratios that delta drops from the estimate are not asked for
(``literal=True`` asks for them, as the paper does; the estimate is the same). And an interview that stops early uses
all answers so far, those of half-done searches included, where the paper only says what to do at the end.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import Any, Literal

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.evidence import Answer, half_spaces
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP, Matrix, Option, Question, Recommendation, Reply, Vector
from tradeoff.problem import Problem, dilute
from tradeoff.strategies.cone import Cone
from tradeoff.strategies.replay import Received, Step, Strategy
from tradeoff.strategies.solutions import Basis, solutions_of

# A ratio is known well enough when its interval is this narrow, even if "about equal" was never said.
RESOLUTION = 1e-6

# Extreme rays up to which the centre of the consistent set is their mean; beyond, a linear program finds a centre.
RAY_LIMIT = 20_000


def paper(
    problem: Problem,
    *,
    basis: Literal["paper", "spanner"] = "paper",
    theorem: Literal[1, 2] = 1,
    resolution: float = RESOLUTION,
    literal: bool = False,
) -> Strategy:
    """Return the paper's strategy, ready to be asked.

    ``theorem=1`` solves for the weights from all ratios; ``theorem=2`` first asks how precise the person is, and drops
    the ratios of directions in which no option differs by more than the delta of Theorem 2. ``literal`` asks for
    the dropped ratios as well, as the paper's Algorithm 2 does.
    """
    if basis not in ("paper", "spanner"):
        raise ArgumentError(f"basis is {basis!r}; it must be 'paper' or 'spanner'")
    if theorem not in (1, 2):
        raise ArgumentError(f"theorem is {theorem!r}; it must be 1 or 2")
    if theorem == 2 and basis == "spanner":
        raise ArgumentError("Theorem 2 is about the paper's own basis; leave out theorem=2 or basis='spanner'")
    if not 0 < resolution <= 0.5:
        raise ArgumentError(f"resolution is {resolution!r}; it must be between 0 and 0.5")
    if not isinstance(literal, bool):
        raise ArgumentError(f"literal is {literal!r}; it must be True or False")
    return _Elicitation(problem, basis, theorem, resolution, literal).run()


def prepare_bases(problem: Problem, options: Mapping[str, Any]) -> None:
    """Build the bases that everybody who is asked about the problem shares."""
    solutions = solutions_of(problem)
    if options.get("basis", "paper") == "paper":
        for benchmark in solutions.relevant:
            solutions.paper_basis(benchmark)
    else:
        solutions.spanner()


Asking = Generator[Step, Received, None]

# Where in the interval a search asks: in the middle as in Algorithm 2, and beside it after a question was skipped.
FRACTIONS = (1 / 2, 1 / 3, 2 / 3)


class _Elicitation:
    """What has been learned so far, and the generators that learn it."""

    def __init__(
        self, problem: Problem, basis: str, theorem: int, resolution: float = RESOLUTION, literal: bool = False
    ) -> None:
        self.problem, self.kind, self.theorem, self.resolution = problem, basis, theorem, resolution
        self.literal = literal
        self.solutions = solutions_of(problem)
        self.k = len(problem.objectives)
        self.order: list[Option] = []  # the basis, benchmark first
        self.components: Vector = np.zeros(0)
        self.ratios: list[float | None] = []  # alpha-hat_1, ...; None where too many questions were skipped
        self.precision: float | None = None  # eta: the person's eps relative to the benchmark's worth
        self.ties: set[int] = set()  # members of the spanner that were "about equal" to the final benchmark
        self.unranked = False  # whether a question of the tournament was skipped
        self.distinguished = False
        self.finished = False  # whether all ratios that the estimate needs are known
        self.later = 0  # questions that can come after the running stage
        self.answers: list[Answer] = []
        self._cone = Cone.orthant(len(self.solutions.relevant), 1.0, limit=RAY_LIMIT)

    def run(self) -> Strategy:
        """Ask everything and return the personalised policy."""
        per_ratio = self.most_halvings(self.largest_ratio)
        precision = self.most_halvings(1.0) if self.theorem == 2 else 0
        members = self.k if self.kind == "paper" else len(self.solutions.spanner().options)
        self.later = precision + (members - 1) * per_ratio
        if self.kind == "paper":
            yield from self.choose_benchmark()
        else:
            yield from self.choose_spanner_benchmark()
        self.later = (len(self.order) - 1) * per_ratio
        if self.theorem == 2:
            yield from self.estimate_precision()
        yield from self.basis_ratios(per_ratio)
        if None in self.ratios[: self.kept]:
            return self.recommend("some questions were skipped; this is the best estimate without them", complete=False)
        self.finished = True
        if self.theorem == 2 and self.precision is None:
            return self.recommend(
                "the questions about what you notice were skipped, so no ratio could be left out as Theorem 2 does; "
                "this estimate uses all of them",
                complete=False,
            )
        if not self.distinguished:
            return self.recommend("all options were about equal to you; this one is as good as any", complete=True)
        return self.recommend("everything this strategy needs to know was asked", complete=True)

    # --- Algorithm 1 --------------------------------------------------------------------------------------------------

    def choose_benchmark(self) -> Asking:
        """Find pi_1, the best of the single-objective optima to this person (Algorithm 1, lines 1-5)."""
        champion, *others = self.solutions.relevant
        for position, j in enumerate(others):
            question = Question((self.solutions.optima[champion], self.solutions.optima[j]))
            reply = yield from self.put(question, len(others) - position - 1)
            if reply == SECOND:
                champion = j
            self.unranked |= reply == SKIP
        basis = self.solutions.paper_basis(champion)
        self.order, self.components = list(basis.options), basis.components

    def choose_spanner_benchmark(self) -> Asking:
        """Find S_1, the winner of a tournament among the spanner; members that tie with it have ratio 1."""
        basis: Basis = self.solutions.spanner()
        members = list(basis.options)
        champion, ties = 0, set[int]()
        for j in range(1, len(members)):
            reply = yield from self.put(Question((members[champion], members[j])), len(members) - j - 1)
            if reply == SECOND:
                champion, ties = j, set()
            elif reply == EQUAL:
                ties.add(j)
            self.unranked |= reply == SKIP
        rest = [j for j in range(len(members)) if j != champion]
        self.order = [members[champion], *(members[j] for j in rest)]
        self.components = np.append(basis.components[champion], basis.components[rest])
        self.ties = {position for position, j in enumerate(rest) if j in ties}

    # --- Algorithm 2 --------------------------------------------------------------------------------------------------

    def basis_ratios(self, most: int) -> Asking:
        """Find how much each basis policy is worth beside the benchmark (Algorithm 2); at most ``most`` questions each."""
        wanted = range(len(self.order) - 1 if self.literal else self.kept)
        self.later = most * sum(i not in self.ties for i in wanted)
        for i in wanted:
            if i in self.ties:
                self.ratios.append(1.0)
            else:
                self.later -= most
                yield from self.binary_search(self.order[i + 1], most)

    def binary_search(self, other: Option, most: int) -> Asking:
        """Find alpha-hat_i by comparing with lotteries between an option and nothing."""
        benchmark = self.order[0]
        low, high = 0.0, self.largest_ratio  # l and h
        skipped = 0
        for left in reversed(range(most)):  # skipped questions count, so that no search takes longer than announced
            ratio = low + FRACTIONS[skipped] * (high - low)  # alpha-hat_i
            if ratio > 1:
                question = Question((benchmark, dilute(other, 1 / ratio)))
                too_high, too_low = FIRST, SECOND
            else:
                question = Question((other, dilute(benchmark, ratio)))
                too_high, too_low = SECOND, FIRST
            reply = yield from self.put(question, left)
            if reply == EQUAL:
                self.ratios.append(ratio)
                return
            skipped = skipped + 1 if reply == SKIP else 0
            if reply == too_high:
                high = ratio
            elif reply == too_low:
                low = ratio
            if skipped == len(FRACTIONS) or high - low <= self.resolution:
                break
        # Nothing is concluded from skipped questions: where they leave the interval wide, or where only a skipped
        # tournament says that the ratio is below its largest value, the ratio stays unknown.
        known = high - low <= self.resolution and not (self.unranked and high == self.largest_ratio)
        self.ratios.append((low + high) / 2 if known else None)

    @property
    def largest_ratio(self) -> float:
        """Where the search ends: 2 C_alpha = 4k as in Algorithm 2, line 3; 1 for a spanner, whose winner is worth most."""
        return 4.0 * self.k if self.kind == "paper" else 1.0

    def most_halvings(self, width: float) -> int:
        """Return how many questions a search over an interval of this width takes at most."""
        return max(0, math.ceil(math.log2(width / self.resolution)))

    # --- Theorem 2 ----------------------------------------------------------------------------------------------------

    def estimate_precision(self) -> Asking:
        """Find the smallest share eta of the benchmark that the person notices (after Theorem 2)."""
        benchmark = self.order[0]
        low, high = 0.0, 1.0  # not noticed, noticed
        skipped = 0
        for left in reversed(range(self.most_halvings(1.0))):
            share = low + FRACTIONS[skipped] * (high - low)
            reply = yield from self.put(Question((benchmark, dilute(benchmark, 1 - share))), left)
            skipped = skipped + 1 if reply == SKIP else 0
            if reply == EQUAL:
                low = share
            elif reply in (FIRST, SECOND):  # a skip says nothing about what is noticed
                high = share
            # Known to within a factor of 2, and delta has only its cube root; or nothing more will be said.
            if high - low <= max(low, self.resolution) or skipped == len(FRACTIONS):
                break
        self.precision = high if high - low <= max(low, self.resolution) else None

    @property
    def kept(self) -> int:
        """How many ratios the estimate uses: d_delta - 1 in Theorem 2, all of them where there is no delta."""
        count = len(self.order) - 1
        if self.theorem == 1 or self.precision is None:
            return count
        delta = self.k ** (5 / 3) * self.precision ** (1 / 3)
        small = np.flatnonzero(self.components[1:] <= delta)
        return int(small[0]) if len(small) else count

    # --- the estimate -------------------------------------------------------------------------------------------------

    def put(self, question: Question, more: int) -> Generator[Step, Received, Reply]:
        """Ask a question after which at most ``more`` of its stage can come, and return the reply."""
        reply = yield Step(
            question,
            lambda: self.recommend("stopped before everything was asked", complete=False),
            1 + more + self.later,
        )
        assert isinstance(reply, Reply)  # this strategy accepts no observations
        if reply != SKIP:
            self.distinguished |= reply != EQUAL
            self.answers.append(Answer(question, reply))
        return reply

    def rows(self) -> tuple[Matrix, Vector]:
        """Return A-hat and e_1 of what is known: V^pi_1, then alpha-hat_i V^pi_1 - V^pi_{i+1} for each known ratio."""
        benchmark = self.order[0].value
        known = zip(self.ratios[: self.kept], self.order[1:], strict=False)
        rest = [ratio * benchmark - other.value for ratio, other in known if ratio is not None]
        matrix = np.array([benchmark, *rest])
        return matrix, np.eye(len(matrix))[0]

    def weights(self) -> Vector:
        """Return w-hat: the paper's once all ratios are known, before that the centre of what fits the answers."""
        if not self.finished and (centre := self.centre()) is not None:
            return centre
        if not self.order:
            return self._on_relevant(np.ones(len(self.solutions.relevant)))
        matrix, right = self.rows()
        weights: Vector = np.linalg.lstsq(matrix, right, rcond=None)[0].astype(np.float64)
        if weights.min() < -1e-9 * np.abs(weights).max():
            weights = _not_negative(matrix, right)
        return weights

    def centre(self) -> Vector | None:
        """Return weights in the middle of all that fit the answers so far, or None if the answers contradict each other.

        So half-done searches count with the interval they have reached, and so does the tournament.
        """
        relevant = list(self.solutions.relevant)
        for answer in self.answers[len(self._cone.labels) :]:
            differences, outcomes = answer.certain_terms()
            self._cone = self._cone.add(half_spaces(differences[:, relevant], outcomes), len(self._cone.labels))
        inside = self._cone.interior
        return None if inside is None else self._on_relevant(inside[:-1])

    def _on_relevant(self, weights: Vector) -> Vector:
        """Return weights on the objectives that can be changed as weights on all of them."""
        result = np.zeros(self.k)
        result[list(self.solutions.relevant)] = weights
        return result

    def recommend(self, reason: str, *, complete: bool) -> Recommendation:
        """Return the best option for the estimated weights."""
        weights = self.weights()
        (best,) = self.problem.best(weights[None, :])
        total = np.abs(weights).sum()
        return Recommendation(best, weights / (total or 1.0), 0, reason, complete=complete)


def _not_negative(matrix: Matrix, right: Vector) -> Vector:
    """Return weights >= 0 that miss the equations as little as possible in their worst one, exactly meeting the first.

    The person's own weights are such weights and miss no ratio by more than its error, so neither do these.
    """
    from scipy.optimize import linprog

    k = matrix.shape[1]
    cost = np.append(np.zeros(k), 1.0)
    rest = np.concatenate([matrix[1:], -matrix[1:]])
    bound = np.concatenate([rest, -np.ones((len(rest), 1))], axis=1)
    found = linprog(
        cost,
        A_ub=bound if len(rest) else None,
        b_ub=np.zeros(len(rest)) if len(rest) else None,
        A_eq=np.append(matrix[0], 0.0)[None, :],
        b_eq=right[:1],
        bounds=[(0, None)] * (k + 1),
        method="highs",
    )
    if found.x is None:  # the benchmark's value is not positive anywhere, which no optimum of an objective is
        raise AssertionError(f"no weights fit the ratios: {found.message}")
    weights: Vector = np.maximum(found.x[:k], 0.0)
    return weights
