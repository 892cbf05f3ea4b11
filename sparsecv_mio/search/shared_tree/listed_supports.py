"""Supports fitted on all rows, and what is known of them in some folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm
from sparsecv_mio.kernels import leave_out
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.subproblem.moment_fits import fit_from_moments
from sparsecv_mio.units import TIE_RTOL


@dataclass(frozen=True, eq=False)
class ListedSupports:
    """Supports fitted on all rows at one gamma, ready to be scored in every fold.

    Attributes
    ----------
    supports, sizes : (L, s), (L,) int arrays
        Columns; of row a the first `sizes[a]` count.
    tau_index : (L,) int array
        Index of the tau that each support is for.
    value, value_error : (L,) arrays
        Training objective on all rows, and a bound on its rounding error.
    beta, beta_error : (L, s) arrays
        Coefficients, and bounds on their rounding errors.
    residual_error : (L,) array
        Bound on the rounding error that the means of columns and target leave in a residual, of a row of weight 1.
    half_inverse : (L, s, s) array
        Lower-triangular C with `C'C = M_S^{-1}`.
    leverage_error : (L,) array
        Relative rounding error of the leverages.
    """

    supports: IntArray
    sizes: IntArray
    tau_index: IntArray
    value: FloatArray
    value_error: FloatArray
    beta: FloatArray
    beta_error: FloatArray
    residual_error: FloatArray
    half_inverse: FloatArray
    leverage_error: FloatArray

    def __len__(self) -> int:
        """Return the number of supports."""
        return len(self.sizes)

    def left_out_error(self, taus: int) -> FloatArray:
        """(taus,) rounding error of objectives with a fold left out, by tau: of its own supports alone.

        Leaving rows out divides by `1 - leverage`; asked for where the leverage is below one half.
        """
        worst = np.zeros(taus)
        np.maximum.at(worst, self.tau_index, self.value_error)
        return 4.0 * worst

    def after(self, first: int) -> ListedSupports:
        """Return the supports from number `first` on; views, not copies."""
        return ListedSupports(*(getattr(self, f.name)[first:] for f in fields(self)))

    @classmethod
    def of(cls, problem: SparseProblem, supports: Sequence[IntArray], tau_index: Sequence[int]) -> ListedSupports:
        """Fit supports on the moments of all rows.

        Parameters
        ----------
        problem : SparseProblem
            All rows.
        supports : sequence of int arrays
        tau_index : sequence of int
            Index of the tau that each is for.

        Notes
        -----
        O(s^3) a support.
        """
        fits = fit_from_moments(problem, supports)
        table, sizes = fits.table, fits.sizes
        k, top = table.shape
        made = cls(
            supports=table,
            sizes=sizes,
            tau_index=np.array(tau_index, dtype=np.int64),
            value=fits.value,
            value_error=fits.value_error,
            beta=fits.beta,
            beta_error=fits.spread,
            residual_error=np.zeros(k),
            half_inverse=np.zeros((k, top, top)),
            leverage_error=np.zeros(k),
        )
        # rows are centred on rounded means
        lengths = np.sqrt(np.maximum(np.diag(problem.Q), 0.0) / problem.total)
        load = np.sqrt(problem.yy / problem.total) + (lengths[table] * np.abs(made.beta)).sum(axis=1)
        made.residual_error[:] = 4.0 * np.finfo(float).eps * load
        leave_out.half_inverses(problem.Q, problem.penalty, table, sizes, made.half_inverse, made.leverage_error)
        return made


@dataclass(frozen=True, eq=False)
class Scores:
    """The best of some supports by (tau, fold), for consecutive folds, each fold left out of the fit on all rows.

    Attributes
    ----------
    value, second : (T, K) arrays
        Least and second least training objective without the fold; inf where there is none.
    held_out, error : (T, K) arrays
        Held-out sum of squares of the support with the least objective, and a bound on its rounding error.
    which : (T, K) int array
        Number of that support; -1 where there is none.
    """

    value: FloatArray
    second: FloatArray
    held_out: FloatArray
    error: FloatArray
    which: NDArray[np.int32]

    def copy(self) -> Scores:
        """Return a copy that may be written to."""
        return Scores(*(getattr(self, f.name).copy() for f in fields(self)))

    @classmethod
    def empty(cls, taus: int, folds: int) -> Scores:
        """Nothing known."""
        shape = (taus, folds)
        return cls(
            np.full(shape, np.inf),
            np.full(shape, np.inf),
            np.full(shape, np.inf),
            np.zeros(shape),
            np.full(shape, -1, dtype=np.int32),
        )


def clear_of_ties(best: FloatArray, second: FloatArray, form: NormalForm) -> BoolArray:
    """Where the second best value of a tree is so far above the best that no refit could swap them.

    Parameters
    ----------
    best, second : arrays of one shape
        The two least objectives that the tree found.
    form : NormalForm
        The problem that the tree solved, which says how the tree rounds.
    """
    return np.asarray(second > best * (1.0 + form.keep) + form.slack)


def clear_of_ties_refitted(best: FloatArray, second: FloatArray, value_error: FloatArray | float) -> BoolArray:
    """Where the second best of refitted supports cannot be tied with the best.

    Parameters
    ----------
    best, second : arrays of one shape
        The two least objectives.
    value_error : array or float
        Bound on the rounding error of each.
    """
    return np.asarray(second - 2.0 * value_error > best * (1.0 + 1.01 * TIE_RTOL) + 2.0 * value_error)
