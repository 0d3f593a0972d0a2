"""Flow decomposition: Algorithm 5 of the paper, followed by C4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeoff.kernels.flow import take_paths
from tradeoff.model import Matrix, Vector
from tradeoff.representation.compression import compress
from tradeoff.representation.expand import expected_return
from tradeoff.representation.process import Following, Int, Paths, Process, branch_rewards

# Paths are extracted and compressed this many at a time, so that memory does not grow with their number.
PATHS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class _Edges:
    """The edges of the layer graph with flow, step by step (the paper's E^(0), ..., E^(H-1))."""

    edge_ptr: Int
    head: Int
    flow: Vector
    choice: Int
    branch: Int
    state: Int  # the state the edge leads to
    reward: Matrix
    sources: Int
    supply: Vector


def decompose(process: Process, following: Following) -> tuple[Paths, Vector]:
    """Return at most k+1 weighted paths of a policy, and V^pi, which is their mean return."""
    edges, value = _edges(process, following), expected_return(process, following)
    cursor = edges.edge_ptr[:-1].copy()
    buffer = np.empty((min(PATHS_AT_ONCE, len(edges.flow) + len(edges.sources)), process.horizon), dtype=np.int64)
    amounts = np.empty(len(buffer))
    first_state = np.flatnonzero(process.start > 0)
    kept, weights = np.empty((0, process.horizon), dtype=np.int64), np.empty(0)
    while found := take_paths(
        edges.edge_ptr, edges.head, edges.flow, cursor, edges.sources, edges.supply, buffer, amounts
    ):
        kept, weights = np.concatenate([kept, buffer[:found]]), np.concatenate([weights, amounts[:found]])
        total = weights.sum()
        rows, shares = compress(_returns(edges, kept), weights / total)
        kept, weights = kept[rows], shares * total
    # The last compression matches the known V^pi, which corrects what the flow lost by rounding.
    returns = _returns(edges, kept)
    rows, weights = compress(returns, weights / weights.sum(), target=value, size=process.largest_total)
    kept = kept[rows]
    tail = np.searchsorted(edges.edge_ptr, kept[:, 0], side="right") - 1  # the node each path starts from
    states = np.concatenate([first_state[tail][:, None], edges.state[kept]], axis=1)
    return Paths(states, edges.choice[kept], edges.branch[kept], weights, returns[rows]), value


def _returns(edges: _Edges, paths: Int) -> Matrix:
    """Return the total reward of each path, added up in order of time."""
    total = np.zeros((len(paths), edges.reward.shape[1]))
    for step in range(paths.shape[1]):
        total += edges.reward[paths[:, step]]
    return total


def _edges(process: Process, following: Following) -> _Edges:
    """Return the flow of a policy (Eq. 8), by pushing probability forward."""
    count, k = len(process.states), len(process.objectives)
    now = process.start
    nodes = np.flatnonzero(now > 0)
    sources, supply = np.arange(len(nodes)), now[nodes].copy()
    pieces: list[tuple[Int, Int, Vector, Int, Int, Int, Matrix]] = []
    base = 0
    for step in range(process.horizon):
        layer, chance = process.layer(step), following.chance(step)
        taken = np.flatnonzero((chance > 0) & (now[layer.state_of_choice] > 0))
        begin, width = layer.choice_ptr[taken], np.diff(layer.choice_ptr)[taken]
        choice = np.repeat(taken, width)
        branch = np.repeat(begin - (np.cumsum(width) - width), width) + np.arange(width.sum())
        origin = layer.state_of_choice[choice].astype(np.int64)
        flow = now[origin] * chance[choice] * layer.prob[branch]
        state = layer.target[branch].astype(np.int64)
        reward = branch_rewards(layer, choice, branch)
        ended = nodes[np.diff(layer.state_ptr)[nodes] == 0]  # probability at an end stays there
        origin, state = np.concatenate([origin, ended]), np.concatenate([state, ended])
        flow = np.concatenate([flow, now[ended]])
        nowhere = np.full(len(ended), -1)
        choice, branch = np.concatenate([choice, nowhere]), np.concatenate([branch, nowhere])
        reward = np.concatenate([reward, np.zeros((len(ended), k))])
        after = process.next_distribution(step, chance, now)
        possible = flow > 0  # a product of tiny probabilities may underflow
        order = np.lexsort((-flow[possible], origin[possible]))
        kept = np.flatnonzero(possible)[order]
        origin, state, flow = origin[kept], state[kept], flow[kept]
        choice, branch, reward = choice[kept], branch[kept], reward[kept]
        number = np.zeros(count, dtype=np.int64)
        number[nodes] = np.arange(len(nodes)) + base
        tails = number[origin]
        base += len(nodes)
        nodes = np.flatnonzero(after > 0)
        number[nodes] = np.arange(len(nodes)) + base
        pieces.append((tails, number[state], flow, choice, branch, state, reward))
        now = after
    tails, head, flow, choice, branch, state, reward = (np.concatenate(part) for part in zip(*pieces, strict=True))
    edge_ptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=base))])
    return _Edges(edge_ptr, head, flow, choice, branch, state, reward, sources, supply)
