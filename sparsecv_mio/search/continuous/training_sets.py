"""Several training sets, in coordinates in which the penalty of every column is lam, and the rows each holds out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.accumulate import Moments, row_moments, training_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.continuous.fits import Fits, Values, values_at

MOST_BYTES = 2 << 30


@dataclass(frozen=True, eq=False)
class TrainingSets:
    """K inner problems at any gamma: `f(S) = yy - c_S' (G_SS + lam I)^{-1} c_S`, and the rows that each is scored on.

    Attributes
    ----------
    problems : tuple of SparseProblem
        The same in standard coordinates, at gamma 1.
    G, c, yy : (K, q, q), (K, q), (K,) arrays
    V, r : (K, m, q), (K, m) arrays
        Rows held out about the means of the training rows, each times the root of its weight; zero beyond those of a
        set with fewer than m.
    scored_whole : (K,) bool array
        Whether every row that a set does not train on is scored.
    rounding : float
        Relative rounding of the entries of G and c.
    """

    problems: tuple[SparseProblem, ...]
    G: FloatArray
    c: FloatArray
    yy: FloatArray
    V: FloatArray
    r: FloatArray
    scored_whole: BoolArray
    rounding: float

    @property
    def k(self) -> int:
        """Number of training sets."""
        return len(self.problems)

    @property
    def q(self) -> int:
        """Number of columns."""
        return int(self.c.shape[1])

    def values(self, fold: IntArray, support: IntArray, lam: float) -> Values:
        """Objectives, slopes and held-out errors of some supports; see `values_at`.

        Parameters
        ----------
        fold : (P,) int array
            Training sets.
        support : (P, s) int array
        lam : float
        """
        return values_at(self, fold, support, lam)

    def fits(self, fold: IntArray, support: IntArray) -> Fits:
        """Fits of supports (P, s) on training sets (P,) at every lam."""
        return Fits.of(self, fold, support)

    @classmethod
    def of_folds(cls, data: StandardData, folds: FoldPlan) -> TrainingSets:
        """Training rows and scored rows of every fold.

        Raises
        ------
        BadInput
            If the moments of all folds would take more than 2 GB.
        """
        most = int(folds.sizes.max())
        if 16 * folds.k * data.q * (data.q + most) > MOST_BYTES:
            raise BadInput(
                f"--gamma LO..HI: {folds.k} folds of {data.q} columns take more than 2 GB; give fewer folds, or a grid"
            )
        V, r = np.zeros((folds.k, most, data.q)), np.zeros((folds.k, most))
        problems = _problems(data, (moments for _, moments in training_moments(data, folds)))
        for fold, problem in enumerate(problems):
            rows = folds.scored_rows(fold)
            V[fold, : len(rows)], r[fold, : len(rows)] = data.about(rows, problem.v_mean, problem.r_mean)
        return cls._made(problems, V, r, folds.scores_all_left_out)

    @classmethod
    def of_all_rows(cls, data: StandardData) -> TrainingSets:
        """All rows as the only training set, with no row held out."""
        problems = _problems(data, [row_moments(data, slice(0, data.n))])
        return cls._made(problems, np.zeros((1, 0, data.q)), np.zeros((1, 0)), np.zeros(1, dtype=bool))

    @classmethod
    def _made(cls, problems: tuple[SparseProblem, ...], V: FloatArray, r: FloatArray, whole: BoolArray) -> TrainingSets:
        unit = 1.0 / np.sqrt(problems[0].weight)
        return cls(
            problems=problems,
            G=np.stack([problem.Q * unit[:, None] * unit for problem in problems]),
            c=np.stack([problem.c * unit for problem in problems]),
            yy=np.array([problem.yy for problem in problems]),
            V=V * unit,
            r=r,
            scored_whole=whole,
            rounding=max(problem.rounding for problem in problems),
        )


def _problems(data: StandardData, moments: Iterable[Moments]) -> tuple[SparseProblem, ...]:
    return tuple(one.problem(data, 1.0) for one in moments)
