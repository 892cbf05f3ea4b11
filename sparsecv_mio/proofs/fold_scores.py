"""Training objectives and held-out errors of supports in every fold: floats that propose what a proof says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.problem.accumulate import row_moments, training_moments
from sparsecv_mio.problem.problem import SparseProblem

Support = tuple[int, ...]
AT_ONCE = 1 << 20  # numbers of the arrays of supports that are scored together


class FoldScores:
    """The rows and moments of all folds, and what supports are worth there at one gamma after the other.

    Parameters
    ----------
    data : StandardData
    plan : FoldPlan
    """

    def __init__(self, data: StandardData, plan: FoldPlan) -> None:
        self.data, self.plan = data, plan
        self.whole = row_moments(data, slice(0, data.n))
        self.single = bool(np.all(plan.left_sizes == 1) and plan.scores_all_left_out.all())
        self._problems: dict[int, SparseProblem] = {}
        self._held: dict[int, tuple[FloatArray, FloatArray]] = {}

    def problem(self, fold: int) -> SparseProblem:
        """Return the problem of a fold's training rows at gamma 1."""
        if self.single:  # as many as rows, of which few are asked for
            return row_moments(self.data, self.plan.train_rows(fold)).problem(self.data, 1.0)
        if not self._problems:
            self._problems = {k: m.problem(self.data, 1.0) for k, m in training_moments(self.data, self.plan)}
        return self._problems[fold]

    def held(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """Return the rows that a fold scores, about the centre of those it trains on."""
        if fold not in self._held:
            problem = self.problem(fold)
            self._held[fold] = self.data.about(self.plan.scored_rows(fold), problem.v_mean, problem.r_mean)
        return self._held[fold]

    def at(self, gamma: float) -> ScoresAt:
        """Return the scores at one gamma."""
        return ScoresAt(self, gamma)


@dataclass(frozen=True, eq=False)
class ScoresAt:
    """Scores at one gamma; every number in the units of the problems, not of the file."""

    folds: FoldScores
    gamma: float

    @cached_property
    def whole(self) -> SparseProblem:
        """The problem on all rows."""
        return self.folds.whole.problem(self.folds.data, self.gamma)

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        data, base = self.folds.data, self.whole
        return data.about(slice(0, data.n), base.v_mean, base.r_mean)

    def problem(self, fold: int) -> SparseProblem:
        """Return the problem of a fold's training rows."""
        return self.folds.problem(fold).with_gamma(self.gamma)

    def _left_out(self, sets: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return f of L supports (L, a) on all rows, and residuals and leverages (L, K) of the row of every fold."""
        base, (V, r) = self.whole, self._rows
        order = self.folds.plan.order[: self.folds.plan.scored]
        X, c = V[order].T[sets], base.c[sets]
        inverse = np.linalg.inv(base.M[sets[:, :, None], sets[:, None, :]])
        beta = (inverse @ c[:, :, None])[:, :, 0]
        share = 1.0 / base.n if self.folds.data.intercept is Intercept.FOLD else 0.0
        h = ((inverse @ X) * X).sum(axis=1) + share
        rest = r[order] - (beta[:, None, :] @ X)[:, 0, :]
        return base.yy - (c * beta).sum(axis=1), rest, np.minimum(h, 1.0 - 1e-12)

    @cached_property
    def all_columns(self) -> tuple[float, FloatArray, FloatArray]:
        """The fit of all columns: f on all rows, residuals and leverages of folds of one row."""
        value, rest, h = self._left_out(np.arange(self.whole.q)[None, :])
        return float(value[0]), rest[0], h[0]

    def score(
        self, supports: Sequence[Support], folds: IntArray, within: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return training objectives and held-out errors of L supports of one size in K folds: arrays (L, K).

        Parameters
        ----------
        supports : sequence of tuples
        folds : (K,) int array
        within : (K,) array, optional
            Training objectives beyond which an error may be left out, as inf.
        """
        objective, error = np.empty((len(supports), len(folds))), np.empty((len(supports), len(folds)))
        every = np.array(supports, dtype=np.int64).reshape(len(supports), -1)
        many = self.folds.plan.scored if self.folds.single else every.shape[1] * len(folds)
        step = max(1, AT_ONCE // (max(1, every.shape[1]) * max(1, many)))
        for lo in range(0, len(every), step):
            here, sets = slice(lo, lo + step), every[lo : lo + step]
            if self.folds.single:
                f, e, h = self._left_out(sets)
                e, h = e[:, folds], h[:, folds]
                objective[here], error[here] = f[:, None] - e**2 / (1.0 - h), (e / (1.0 - h)) ** 2
            else:
                objective[here], error[here] = self._refitted(sets, folds.tolist(), within)
        return objective, error

    def _refitted(
        self, sets: IntArray, folds: list[int], within: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        problems, at = [self.folds.problem(fold) for fold in folds], np.arange(sets.shape[1])
        M = np.stack([problem.Q[sets[:, :, None], sets[:, None, :]] for problem in problems])
        M[:, :, at, at] += self.whole.penalty[sets]
        c = np.stack([problem.c[sets] for problem in problems])
        beta = np.linalg.solve(M, c[..., None])[..., 0]
        objective = np.array([problem.yy for problem in problems]) - (c * beta).sum(axis=2).T
        error = np.full(objective.shape, np.inf)
        wanted = np.ones(objective.shape, dtype=bool) if within is None else objective <= within
        for k in np.flatnonzero(wanted.any(axis=0)).tolist():
            near, (V, r) = np.flatnonzero(wanted[:, k]), self.folds.held(folds[k])
            rest = r - (beta[k, near][:, None, :] @ V.T[sets[near]])[:, 0, :]
            error[near, k] = (rest**2).sum(axis=1)
        return objective, error
