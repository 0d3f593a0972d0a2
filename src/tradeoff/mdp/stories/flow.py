"""Flow decomposition: Algorithm 5 of the paper, followed by C4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tradeoff.mdp.stories.compress import compress
from tradeoff.mdp.stories.expand import expected_return
from tradeoff.mdp.stories.process import Following, Int, Paths, Process, branch_rewards
from tradeoff.model import Matrix, Vector

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
    first_state = np.flatnonzero(process.start > 0)
    kept, weights = np.empty((0, process.horizon), dtype=np.int64), np.empty(0)
    paths = _take_paths(edges, process.horizon)
    while found := list(islice(paths, PATHS_AT_ONCE)):
        kept = np.concatenate([kept, np.array([path for path, _ in found])])
        weights = np.concatenate([weights, [amount for _, amount in found]])
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


def _take_paths(edges: _Edges, steps: int) -> Iterator[tuple[list[int], float]]:
    """Yield paths, as their edges, and the flow along each, until no flow is left.

    Every path uses up an edge or a source, so there are at most as many as both together.
    """
    last, head, flow = edges.edge_ptr[1:].tolist(), edges.head.tolist(), edges.flow.tolist()
    cursor = edges.edge_ptr[:-1].tolist()  # the first edge of each node that may have flow left
    for source, supply in zip(edges.sources.tolist(), edges.supply.tolist(), strict=True):
        while supply > 0:
            node, path = source, list[int]()
            while len(path) < steps:
                edge = cursor[node]
                while edge < last[node] and flow[edge] <= 0:
                    edge += 1
                cursor[node] = edge
                if edge == last[node]:
                    break
                path.append(edge)
                node = head[edge]
            if len(path) < steps:  # rounding left a tiny flow into a node whose own flow is used up: drop it
                if not path:
                    break
                flow[path[-1]] = 0.0
                continue
            amount = min(supply, *(flow[edge] for edge in path))
            supply -= amount
            for edge in path:
                flow[edge] -= amount
            yield path, amount


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
