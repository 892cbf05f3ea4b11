"""The training-loss bound: a held-out error is at least what all rows cost more than the training rows.

**Theorem** (docs/theory.md, section 3). Let f be the training objective on all rows, `f^(-N)` that without the rows of
a fold N, and `h_N(b)` the sum of squared errors of b on N. For every b

    f(support of b) <= f(b) = f^(-N)(b) + h_N(b),

an intercept being the fold's own on the right, which all rows may improve on. Let b be an optimum of the fold, so
`f^(-N)(b) <= u` for every feasible value u of the fold's problem. Then

* `h_N(b) >= v - u` for every lower bound v of the optimum on all rows;
* with a list of *every* support of tau columns with `f(S) <= T`: the support of b is in the list, or `h_N(b) > T - u`.

Both are `training_loss_bound`, v being the T of a list without supports. N is all rows that the fold does not train on:
of a fold that scores only a part of them (`FoldPlan.scores_all_left_out`) the bound says nothing.

**Rounding.** The function subtracts and rounds nothing itself. Its caller sees to it that v (or T) is at most, and u at
least, what the theorem speaks of, rounding included, and that u covers tied optima where ties count as optimal; what is
in neither goes into `allowances`.

======================= ==================================== ==============================================
where                   v or T is lowered by                 u is raised by
======================= ==================================== ==============================================
`bounds.cv_error`       the rounding of the fold bounds      the tolerance of ties and that rounding
`subproblem`            the margin of the trees              the error of a refit, and `TIE_RTOL` of it
first intervals         that margin, and `slack` of the form `keep` and `slack` of the form
lists, in closed form   `keep`, `slack`, ROWS_ROUNDING       `keep`, `slack`, the error of the closed form
lists, by refits        `keep`, `slack`, ROWS_ROUNDING       the error of a refit, and `TIE_RTOL` of it
saddle point            ROWS_ROUNDING                        nothing: refit error and ROWS_ROUNDING are passed
======================= ==================================== ==============================================
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray

ROWS_ROUNDING = 1e-10
"""Of y'y: what moments, refits and centring may leave between the training rows of a fold and all rows."""


def training_loss_bound(
    all_rows: FloatArray | float, fold: FloatArray | float, *allowances: FloatArray | float
) -> FloatArray:
    """Lower bound of the held-out error of every optimum of a fold, `all_rows - fold - allowances`.

    Parameters
    ----------
    all_rows : array or float
        v, a certified lower bound of the optimum on all rows for the same gamma and tau; or T, the value up to which a
        list of supports is complete: then the bound holds for optima outside of the list.
    fold : array or float
        u, the value of a feasible solution of the fold's problem (training rows only). Broadcast against `all_rows`.
    *allowances : array or float
        Rounding errors that `all_rows` and `fold` do not account for yet, subtracted one after the other.

    Returns
    -------
    array
        May be negative: no information. -inf where u is not finite, that is unknown.

    Examples
    --------
    >>> training_loss_bound(np.array([[5.0], [7.0]]), np.array([4.0, np.inf])).tolist()
    [[1.0, -inf], [3.0, -inf]]
    >>> float(training_loss_bound(5.0, 4.0, 0.25))
    0.75
    """
    known = np.isfinite(fold)
    everywhere = bool(known.all())
    bound = np.subtract(all_rows, fold if everywhere else np.where(known, fold, 0.0))
    for allowance in allowances:
        bound = bound - allowance
    return bound if everywhere else np.where(known, bound, -np.inf)


def enough_on_all_rows(known: FloatArray, fold: FloatArray, bar: FloatArray) -> FloatArray:
    """Return the least v for which the sum over folds of the better one of two lower bounds reaches a bar.

    Parameters
    ----------
    known : (..., K) array
        Lower bounds of the held-out errors, whatever proved them.
    fold : (..., K) array
        u of `training_loss_bound`; inf where it is not known.
    bar : (...) array
        What `sum_N max(known_N, v - u_N)` is to reach; inf where nothing would do.

    Returns
    -------
    (...) array
        0 where `known` is enough, inf where no v is.

    Examples
    --------
    >>> enough_on_all_rows(np.array([[0.0, 2.0]]), np.array([[5.0, 4.0]]), np.array([3.0])).tolist()
    [6.0]
    """
    start = known + fold  # from here on v - u is the better one
    order = np.argsort(start, axis=-1, kind="stable")
    start, known, fold = (np.take_along_axis(array, order, axis=-1) for array in (start, known, fold))
    rest = np.sum(known, axis=-1)
    found = np.where(rest >= bar, 0.0, np.inf)
    total = np.zeros_like(rest)
    for first in range(known.shape[-1]):
        usable = np.isfinite(fold[..., first])
        rest = rest - known[..., first]
        total = total + np.where(usable, fold[..., first], 0.0)
        v = (bar - rest + total) / (first + 1)
        found = np.where(usable & (v >= start[..., first]), np.minimum(found, v), found)
    return np.asarray(found)
