"""Checks that an objective with a smooth convex loss and some unpenalised coefficients has a unique minimiser.

The intercept and the adjustment columns have no ridge penalty; let `z_i = (1, x_i)` be their values in row i and u_i
the penalised features. With v_i the weight of row i and l_i its loss as a function of the margin, the objective on a
set of rows is

    F(a, b) = sum_i v_i l_i(sign_i (z_i'a + u_i'b)) + sum_j ridge_j b_j^2

**Claim.** F has exactly one minimiser if and only if no `d != 0` has `sign_i z_i'd` in R_i for all rows with a positive
weight. R_i is the set of changes of the margin along which l_i never rises. It is `[0, inf)` for logistic loss. For
Poisson loss it is `(-inf, 0]` if the count is 0, else `{0}` (`RowLoss.recedes`).

*Proof.* If such a d exists, F never rises along (d, 0) from any point, so no point is the only minimiser. Conversely,
suppose that no such d exists and that F never rises along `(d, e)`. Then e = 0, since otherwise the penalty would rise.
Therefore d satisfies the condition, and d = 0. A convex function that eventually rises along every direction has
bounded level sets and therefore a minimum. As l'' > 0, two minimisers would differ by a d with `z_i'd = 0` in all rows;
such a d satisfies the condition, so d = 0. []

The condition depends neither on the chosen features nor on gamma. The fit on the columns z alone therefore determines
whether it holds for all models. A certified ball around this fit (`problem.glm_refit`) proves that the minimiser
exists; the proof includes rounding errors. A run starts only if there is such a ball for all rows and for the training
rows of every fold. Otherwise a linear program searches for such a d, and the error message names the columns in which d
is not 0.

**Held-out rows.** Most folds need no separate fit. Let the full-data fit on z have the Hessian H and a gradient of
length g in the norm of `H^{-1}`. Let `s_i = -v_i l'` and `c_i = v_i l''` at this fit, and let N be the held-out rows of
a fold. Without N, the Hessian at this fit is at least `(1 - h) H` with `h = sum over N of c_i z_i'H^{-1}z_i`. Lengths
are now in the norm of the inverse of the Hessian without N. The length of the gradient is at most `delta = (g +
|sum over N of s_i sign_i z_i|) / sqrt(1 - h)`, and the length of a row is at most `L = max |z_i| / sqrt(1 - h)`. If
`delta L <= 0.9`, there is a certified ball of radius `10 / L`, because `10 k(10) >= 1.8 >= 2 delta L` with the function
k of docs/theory/glm.md, section 2. Folds without this condition are fitted.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.digits import abbreviate_list, plural
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.glm_refit import GlmRowFit, make_design_rows, refit_glm
from sparsecv_mio.problem.row_losses import RowLoss, row_loss

SURE = 0.5  # bound on `delta L`; the proof needs 0.9, the rest is for rounding
MOVES = 1e-6  # smallest move of a margin in the linear program, whose tolerance is 1e-7


def check_optimum_exists(data: StandardData, folds: FoldPlan | None = None) -> None:
    """Raise `BadInput` if the coefficients of adjustment columns have no optimum.

    Parameters
    ----------
    data : StandardData
        Data with adjustment columns and another loss than squared error.
    folds : FoldPlan, optional
        Folds whose training rows are checked too; None checks all rows only.

    Raises
    ------
    BadInput
        If there is no optimum; the message names the fold, counted from 1, and the columns.

    Notes
    -----
    Approximately six steps of O(n k^2) with k adjustment columns, on all rows and in every fold that the full-data fit
    does not settle.
    """
    whole = refit_glm(data, slice(0, data.n), data.adjusting, 1.0)
    if not np.isfinite(whole.radius):
        _refuse(data, np.arange(data.n), "all rows")
    if folds is None:
        return
    sure = _sure(data, whole, folds)
    for fold in np.flatnonzero(~sure).tolist():
        rows = folds.train_rows(fold)
        if not np.isfinite(refit_glm(data, rows, data.adjusting, 1.0).radius):
            _refuse(data, rows, f"the training rows of fold {fold + 1} of {folds.k}")


def _sure(data: StandardData, whole: GlmRowFit, folds: FoldPlan) -> BoolArray:
    """Return a (K,) mask of the folds for which the full-data fit proves that a fit exists."""
    loss = row_loss(data.loss)
    Z, y, v = make_design_rows(data, slice(0, data.n), data.adjusting, whole.first)
    signed = Z * loss.signs(y)[:, None]
    margins = signed @ whole.theta
    turned = signed @ whole.root.T
    length = np.linalg.norm(turned, axis=1)
    leverage = loss.curvatures(margins, y, v) * length**2
    slope = turned * loss.falls(margins, y, v)[:, None]
    sure = np.zeros(folds.k, dtype=np.bool_)
    for fold in range(folds.k):
        left_out = folds.left_out(fold)
        remaining = 1.0 - float(leverage[left_out].sum())
        delta = 0.5 * whole.radius + float(np.linalg.norm(slope[left_out].sum(axis=0)))
        sure[fold] = remaining > 0.0 and delta * float(length.max()) <= SURE * remaining
    return sure


def _refuse(data: StandardData, rows: IntArray, where: str) -> None:
    """Raise `BadInput` that names the columns without optimal coefficients."""
    first, loss = int(data.has_intercept), row_loss(data.loss)
    Z, y, v = make_design_rows(data, rows, data.adjusting, first)
    signed, y = (Z * loss.signs(y)[:, None])[v > 0.0], y[v > 0.0]
    columns = np.arange(signed.shape[1])
    told_apart = _has_recession_direction(signed, y, loss)
    for j in columns.tolist() if told_apart else ():  # a smallest set of such columns
        fewer = columns[columns != j]
        columns = fewer if len(fewer) and _has_recession_direction(signed[:, fewer], y, loss) else columns
    names = [repr(data.names[j]) for j in data.adjusting[columns[columns >= first] - first].tolist()]
    columns_named = f"{plural(len(names), 'column')} {abbreviate_list(names)}"
    why = f"the fit of {columns_named} is so close to one without finite coefficients that it cannot be certified"
    if told_apart:
        tell = "separates" if len(names) == 1 else "separate"
        why = f"{columns_named} {tell} {data.loss.target.separated}, so coefficients without a penalty are not finite"
    raise BadInput(
        f"adjust: on {where}, {why}; leave a column out, force it in instead (with a penalty), or merge a rare level"
    )


def _has_recession_direction(Z: FloatArray, y: FloatArray, loss: RowLoss) -> bool:
    """Return True if a direction moves some margins such that no loss ever rises."""
    from scipy.optimize import linprog  # imported here since most runs do not need it

    low, high = loss.recedes(y)
    unit = np.abs(Z).max(axis=0)
    A = Z / np.where(unit > 0.0, unit, 1.0)
    one_way = (low < 0.0).astype(float) - (high > 0.0)  # -1 for margins that may rise, 1 for those that may fall
    still = (low == 0.0) & (high == 0.0)
    program = linprog(
        one_way @ A, A_ub=A[~still] * one_way[~still, None], b_ub=np.zeros(int((~still).sum())), A_eq=A[still],
        b_eq=np.zeros(int(still.sum())), bounds=[(-1.0, 1.0)] * A.shape[1],
    )  # fmt: skip
    return bool(program.status == 0 and float(program.fun or 0.0) < -MOVES * len(A))
