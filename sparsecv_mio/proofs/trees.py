"""Trees that prove thresholds, in units of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.kernels.proof_tree import LISTED, prove
from sparsecv_mio.problem.problem import SparseProblem

MARGIN = 1e-9  # of an objective, by which a leaf clears its threshold at least
MOST = 1 << 20, 1 << 26  # supports and nodes of one tree


class TooLarge(BadInput):
    """A tree has more nodes or lists more supports than it may."""


@dataclass(frozen=True)
class ProofTree:
    """Nodes in preorder, and the listed supports by size, columns ascending; thresholds in units of the file."""

    nodes: list[int]
    listed: Mapping[int, list[tuple[int, ...]]]
    above: Mapping[int, float]

    def line(self, rows: int, gamma: int) -> dict[str, Any]:
        """Return the line of the proof; thresholds in units of the file."""
        first, last = min(self.above), max(self.above)
        supports = [list(one) for tau in sorted(self.listed) for one in self.listed[tau]]
        return {
            "kind": "tree", "rows": rows, "gamma": gamma, "taus": [first, last],
            "above": [self.above[tau] for tau in range(first, last + 1)], "listed": supports, "nodes": self.nodes,
        }  # fmt: skip


def rounding(problem: SparseProblem, divisor: FloatArray) -> float:
    """Estimate what the checker's floats may lose of an objective, in the problem's units.

    Parameters
    ----------
    problem : SparseProblem
    divisor : (q,) array
        Of `StandardData`.
    """
    u = 2.0**-53
    norms = np.sqrt(np.maximum(np.diag(problem.Q), 1e-300))
    size = max(float(np.sqrt(problem.yy)), 1e-150)
    beta = np.abs(np.linalg.solve(problem.M, problem.c)) * norms / size
    share = float(np.frexp(size)[0]) / 2.0
    total = float(np.sum(beta * share / (np.frexp(norms * divisor)[0] / 2.0)))
    off = u * (8.0 * (problem.n + 10) + 2.0 * problem.q + 40.0) * (1.0 + total)
    least = float((problem.penalty / norms**2).min()) / 16.0
    return (4.0 * off * (1.0 + total) + problem.q * off * off / least) * problem.yy / share**2


def prove_thresholds(
    problem: SparseProblem, above: Mapping[int, float], unit: float, margin: float, most: tuple[int, int] = MOST
) -> ProofTree:
    """Make the tree that proves a threshold for every size.

    Parameters
    ----------
    problem : SparseProblem
        One gamma.
    above : mapping of size to threshold
        In units of the file. Sizes between that are missing have none.
    unit : float
        Square of the target's unit.
    margin : float
        By which leaves clear thresholds besides, in the problem's units.

    most : tuple of int
        Supports that it may list, and nodes it may have, about.

    Raises
    ------
    TooLarge
        The tree would be larger.
    """
    q, sizes = problem.q, np.array([min(above), max(above)])
    bars = np.full(q + 1, -np.inf)
    for tau, value in above.items():
        bars[tau] = value / unit * (1.0 + MARGIN) + margin
    V = np.linalg.inv(problem.M)
    V = 0.5 * (V + V.T)
    beta = V @ problem.c
    value = float(problem.yy - problem.c @ beta)
    nodes, supports = np.empty(1 << 14, dtype=np.int64), np.zeros((1 << 10, q), dtype=bool)
    while True:
        ended, used, found = prove(V, beta, value, problem.penalty, sizes, bars, nodes, supports)
        if not ended:
            break
        if len(supports) >= most[0] or len(nodes) >= most[1]:
            raise TooLarge("--proof: the trees of the proof grow too large to be written: ask for fewer tau or gamma")
        if ended == LISTED:
            supports = np.zeros((8 * len(supports), q), dtype=bool)
        else:
            nodes = np.empty(8 * len(nodes), dtype=np.int64)
    listed: dict[int, list[tuple[int, ...]]] = {}
    for row in supports[:found]:
        one = tuple(np.flatnonzero(row).tolist())
        listed.setdefault(len(one), []).append(one)
    every = {tau: above.get(tau, -abs(problem.yy) * unit) for tau in range(int(sizes[0]), int(sizes[1]) + 1)}
    return ProofTree(nodes[:used].tolist(), listed, every)
