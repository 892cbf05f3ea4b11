"""Parts of the proof of a cross-validation for every loss: statements about folds, lines of pairs, and the claim."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import Place
from sparsecv_mio.proofs.proof_lines import KeptTrees
from sparsecv_mio.proofs.threshold_trees import ProofTree
from sparsecv_mio.units import CROSSING_RTOL


@dataclass(eq=False)
class PairStatements:
    """Statements about the folds of one pair in a proof, in the problem's units.

    Attributes
    ----------
    g, t, size : int
        Indices of gamma and tau, and size of the supports.
    low, high : (K,) arrays
        Bounds on h_N from the statements so far.
    parts : list of dict
        Statements.
    """

    g: int
    t: int
    size: int
    low: FloatArray
    high: FloatArray
    parts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def has_upper_bound(self) -> bool:
        """True if every fold has an upper bound."""
        return bool(np.isfinite(self.high).all())

    def tighten(self, folds: IntArray | int, low: FloatArray | float, high: FloatArray | float) -> None:
        """Intersect the bounds with those of a statement."""
        self.low[folds] = np.maximum(self.low[folds], low)
        self.high[folds] = np.minimum(self.high[folds], high)

    def state_loss(self, tree: int, folds: Sequence[int] | None, supports: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Add and return a statement by training losses: a tree on all rows, and a support of each of some folds.

        Parameters
        ----------
        tree : int
            Number of the tree.
        folds : sequence of int or None
            Folds; None for all.
        supports : sequence of sequences of int
            Distinct supports.
        """
        some = {} if folds is None else {"folds": list(folds)}
        self.parts.append({"by": "loss", "tree": tree, "supports": list(map(list, supports)), **some})
        return self.parts[-1]

    def state_own(self, folds: list[int], trees: list[int]) -> None:
        """Add a statement by trees on the training rows of folds."""
        self.parts.append({"by": "own", "folds": folds, "trees": trees})


class PairProof(ABC):
    """The lines of the proof of one record of a cross-validation.

    Parameters
    ----------
    record : Record
        Record.
    plan : FoldPlan
        Folds.
    head : dict
        First line.
    place : path
        File of the proof.
    unit : float
        Unit of objectives and losses of the problems.
    """

    excluded_rtol: ClassVar[float] = 0.0  # reduction of the lower bound of an excluded pair, for the fast check

    def __init__(self, record: Record, plan: FoldPlan, head: dict[str, Any], place: Place, unit: float = 1.0) -> None:
        self.best, self.plan, self.head, self.unit = record.certificate, plan, head, unit
        self.gammas, self.taus = list(record.request.gammas), list(record.request.taus)
        self.goal = self.best.lower * (1.0 - CROSSING_RTOL) * plan.scored / unit  # for each pair
        self.trees, self.least, self.upper = 0, np.inf, np.inf
        self.kept = KeptTrees(place, head)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the proof."""
        yield self.head
        for g in range(len(self.gammas)):
            yield from self._gamma(g)
        if self.least < self.goal * (1.0 - 10.0 * CROSSING_RTOL) or not np.isfinite(self.upper):
            raise BadInput(
                "--proof: rounding or ties keep the proof below the bounds of the record; no proof is written. Give a "
                "larger --gamma or subtract constants from columns far from 0, or use verify"
            )
        g, t = self.gammas.index(self.best.gamma), self.taus.index(self.best.tau)
        lower, upper = self._mean_interval(self.least, self.upper)
        yield {"kind": "claim", "gamma": g, "tau": t, "lower": lower, "upper": upper}

    @abstractmethod
    def _gamma(self, g: int) -> Iterator[dict[str, Any]]:
        """Yield the lines of one gamma."""

    def _mean_interval(self, low: float, high: float) -> tuple[float, float]:
        per_row = self.unit / self.plan.scored
        return low * per_row * (1.0 - CROSSING_RTOL), high * per_row * (1.0 + CROSSING_RTOL)

    def _is_reported(self, pair: PairStatements) -> bool:
        return bool(self.gammas[pair.g] == self.best.gamma and self.taus[pair.t] == self.best.tau)

    def _tree(self, tree: ProofTree, rows: int, g: int) -> dict[str, Any]:
        """Return the line of a tree, whose number is that of the trees before it."""
        self.trees += 1
        return tree.line(rows, g)

    def _line(self, pair: PairStatements) -> dict[str, Any]:
        low, high = float(pair.low.sum()), float(pair.high.sum())
        if low * (1.0 - self.excluded_rtol) >= self.goal:  # a clear exclusion need not be stated to the last digit
            low *= 1.0 - self.excluded_rtol
        self.least = min(self.least, low)
        if self._is_reported(pair) and pair.has_upper_bound:
            self.upper = high
        low, high = self._mean_interval(low, high)
        return {"kind": "pair", "gamma": pair.g, "tau": pair.t, "parts": pair.parts, "lower": low,
                "upper": high if pair.has_upper_bound else None}  # fmt: skip
