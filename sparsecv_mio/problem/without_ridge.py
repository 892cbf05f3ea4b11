"""Fits without a ridge weight: where gamma 0 is taken, and which columns may be adjusted for.

Without a ridge weight a model is determined on some rows where its columns, and the intercept, are linearly independent
there. It is taken where *all* columns are, on the training rows of every fold: so they are in every support, and on all
rows, which hold those of a fold. Else a line names the fold and the columns. Two other rules were not taken: to leave
out the supports that are singular would make which models are compared depend on the fold, and the fit of least length
in place of none would let the units of columns choose among models that fit alike.

**Proposition.** Let columns of length 1 on some rows have a Gram matrix `Q >= c I`, and let f and f_0 be the objectives
of a support at `NO_RIDGE` and at 0. Then `f_0(S) <= f(S) <= f_0(S) + lam w y'y / c`, lam = NO_RIDGE / 2 and w the
largest penalty weight of such columns, and coefficients differ by at most `lam w |y| / c^{3/2}`.

*Proof.* f is f_0 and a penalty, which at the solution b_0 of f_0 is at most `lam w b_0'b_0 <= lam w b_0'Q b_0 / c`, and
`b_0'Q b_0 <= y'y`. The solutions differ by `(Q + lam W)^{-1} lam W b_0`. []

With `c >= LEAST_EIGENVALUE` and `w <= LARGEST_RIDGE`, which are asked for, that is below 1e-180 of y'y: it changes no
digit of any float, and what is proved at `NO_RIDGE` is proved at gamma 0, to within what ends are moved outwards by.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from sparsecv_mio.arrays import FloatArray, IntArray, row_chunks
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.digits import first_named, plural
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.attained import check_attained
from sparsecv_mio.problem.training_moments import TrainingMoments, row_moments, training_moments
from sparsecv_mio.words import Intercept, Loss

CONSTANT = "is constant"
FORCE_OUT = "force one out"
LEAST_EIGENVALUE = (
    1e-12  # of the Gram matrix of columns of length 1: below, floats cannot tell them from dependent ones
)
CLEAR = 1e-9  # at which rounding leaves no doubt
LARGEST_RIDGE = 1e100  # of a penalty, in standard coordinates: columns no shorter than 1e-50
NAMED = 1e-6  # share in a combination, of the largest one, from which on a column is named


def check_independent(data: StandardData, gammas: Iterable[float], folds: FoldPlan | None = None) -> None:
    """Raise `BadInput` where columns that are not penalised are linearly dependent on the training rows of a fold.

    With gamma 0 these are all columns, else those that are adjusted for.

    Parameters
    ----------
    data : StandardData
    gammas : iterable of float
        Whether 0 is among them.
    folds : FoldPlan, optional
        Where it is None, on all rows alone.

    Raises
    ------
    BadInput
        Names the fold, counted from 1, and the columns.

    Notes
    -----
    O(n q^2), and O(m q^2 + q^3) for each fold of m rows that leverages leave in doubt. By the trace of the block of the
    hat matrix, `Q_N >= (1 - sum of leverages of N) Q` for the training rows of fold N.

    Examples
    --------
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.standard import standardize
    >>> X = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [2.0, 1.0, 3.0], [0.0, 0.0, 0.0], [5.0, 0.0, 5.0]])
    >>> check_independent(standardize(Dataset.from_arrays(X, [1.0, 2.0, 3.0, 4.0, 6.0])), [0.0])
    Traceback (most recent call last):
        ...
    sparsecv_mio.errors.BadInput: gamma 0: on all rows, columns 'x0', 'x1', 'x2' are linearly dependent: ...
    """
    if len(data.adjusting):
        _check(data.only(data.adjusting), "adjust", "leave one out", folds)
        if data.loss is not Loss.SQUARED:
            check_attained(data, folds)
    if 0.0 not in gammas:
        return
    short = np.flatnonzero(data.weight > LARGEST_RIDGE)
    if len(short):
        raise BadInput(
            f"gamma 0: column {data.names[short[0]]!r} is shorter than 1e-50: rescale it, or leave scale none"
        )
    _check(data, "gamma 0", f"{FORCE_OUT}, or give a gamma above 0", folds)


def _check(data: StandardData, option: str, cure: str, folds: FoldPlan | None) -> None:
    """Raise `BadInput` where columns are linearly dependent on all rows, or on the training rows of a fold."""

    def least_eigenvalue(moments: TrainingMoments, where: str) -> float:
        least, columns, kind = _least_eigenvalue(data, moments)
        if len(columns):
            rare = kind == CONSTANT and option == "adjust" and where != "all rows"
            what = "leave it out, or merge a rare level with another" if rare else cure
            if option == "gamma 0":  # of the levels of a factor all but one stay
                what = what.replace(FORCE_OUT, f"{FORCE_OUT}, force_out={json.dumps([data.names[columns[-1]]])}")
            raise BadInput(f"{option}: on {where}, {_named(data, columns, kind)}: {what}")
        return least

    _check_rows(data, option, cure, data.n, "there are")
    if folds is not None:
        fold = int(np.argmax(folds.left_sizes))
        _check_rows(data, option, cure, folds.least_training, f"fold {fold + 1} of {folds.k} trains on")
    whole = row_moments(data, slice(0, data.n))
    least = least_eigenvalue(whole, "all rows")
    if folds is None:
        return
    leverage = _leverages(data, whole) if least > CLEAR else np.ones(data.n)
    doubtful = [
        fold for fold in range(folds.k)
        if not least * (1.0 - float(leverage[folds.left_out(fold)].sum())) > CLEAR
    ]  # fmt: skip
    for fold, moments in training_moments(data, folds, doubtful) if doubtful else ():
        least_eigenvalue(moments, f"the training rows of fold {fold + 1} of {folds.k}")


def _check_rows(data: StandardData, option: str, cure: str, rows: int, who: str) -> None:
    """Refuse rows that are too few for any columns to be independent on them."""
    free = data.intercept is Intercept.FOLD
    if rows < data.q + free:
        columns = f"{data.q} columns and an intercept" if free else f"{data.q} columns"
        raise BadInput(f"{option}: {who} {rows} rows, on which {columns} are linearly dependent: {cure}")


def _least_eigenvalue(data: StandardData, moments: TrainingMoments) -> tuple[float, IntArray, str]:
    """Return the least eigenvalue of the Gram matrix of columns of length 1 on some rows, about; and what is wrong.

    Where it is 0, up to rounding, also columns that are dependent, and in which way. O(q^3).
    """
    scatter = moments.scatter[: data.q, : data.q]
    squares = np.diag(scatter)
    constant = np.flatnonzero(~(squares > 0.0)).astype(np.int64)
    if len(constant):
        return 0.0, constant[:1], CONSTANT
    unit = 1.0 / np.sqrt(squares)
    correlation = scatter * unit[:, None] * unit
    least = float(np.linalg.eigvalsh(correlation)[0])
    if least > LEAST_EIGENVALUE:
        return least, constant, ""
    return least, _dependent(correlation), "are linearly dependent"


def _dependent(correlation: FloatArray) -> IntArray:
    """Return the first columns of which one is a combination of the others, up to rounding."""
    low, high = 1, len(correlation)
    while low < high:  # leading blocks: the least eigenvalue falls as they grow
        middle = (low + high) // 2
        dependent = not float(np.linalg.eigvalsh(correlation[:middle, :middle])[0]) > LEAST_EIGENVALUE
        low, high = (low, middle) if dependent else (middle + 1, high)
    share = np.abs(np.linalg.eigh(correlation[:low, :low])[1][:, 0])
    return np.flatnonzero(share > NAMED * share.max()).astype(np.int64)


def _named(data: StandardData, columns: IntArray, what: str) -> str:
    """Return what is said of some columns, with their names."""
    names = [repr(data.names[j]) for j in columns.tolist()]
    return f"{plural(len(names), 'column')} {first_named(names)} {what}"


def _leverages(data: StandardData, whole: TrainingMoments) -> FloatArray:
    """(n,) leverages of rows in least squares on all columns and the intercept. O(n q^2)."""
    scatter, mean = whole.scatter[: data.q, : data.q], whole.mean[: data.q]
    unit = 1.0 / np.sqrt(np.diag(scatter))
    factor = cholesky(scatter * unit[:, None] * unit, lower=True, check_finite=False)
    leverage = np.zeros(data.n)
    for rows in row_chunks(data.n, data.q):
        V, _ = data.about(rows, mean, 0.0)
        turned = solve_triangular(factor, unit[:, None] * V.T, lower=True, check_finite=False)
        leverage[rows] = np.einsum("ji,ji->i", turned, turned)
        if data.intercept is Intercept.FOLD:
            root = data.root_of(rows)
            leverage[rows] += (1.0 if root is None else root**2) / whole.total
    return leverage
