"""The definition of the problem for squared-error loss, in plain numpy and in the original units of the data.

The module computes the training objective f(S), the fit and the held-out errors of a support S, and the CV error h
(theory section 0). Tests compare every other computation of the package with this module, and `sparsecv verify` uses no
other definition. The module is written for clarity, not for speed. In floating point, a residual is inaccurate if a fit
is nearly perfect, if columns are nearly dependent, or if a row is far from the training rows. The module then uses
exact fractions, or twice the precision of floats if there are many rows.

    f(S) = min over b0, b   sum_{i in T} (y_i - b0 - x_i' b)^2  +  (gamma / 2) sum_{j in S} (s_j b_j)^2,    b = 0 off S

Here T are the training rows and s_j is the scale of column j, computed once from all n rows. With scale `length`, s_j
is the square root of the sum of squares about the mean; with `variance`, s_j is that root divided by sqrt(n); with
`none`, s_j is 1. The intercept b0 is free and unpenalised (`fold`), or follows from centring the data once, on all rows
(`global`), or is 0 (`none`). Constant columns are never in a support.

    h = (1 / m) sum over folds N of sum_{i in N} (y_i - b0^(-N) - x_i' b^(-N))^2,    m = rows that some fold holds out

With bounds on coefficients, b is the minimiser within these bounds (`fit_bounded_ridge`).

If folds overlap, a row counts once for each fold that scores it. A fold may score only some of the rows that its
training set excludes. Then the sum is over the scored rows N, but b0^(-N) and b^(-N) are fitted without any of the
excluded rows.

Row weights multiply the squares in f(S), h and s_j, and the summands of every mean; n and m are then sums of weights.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray, power_of_two
from sparsecv_mio.problem.beyond_floats import EXACT_WORK, Coordinates, DoubleDouble, ExactFit, fit_exactly
from sparsecv_mio.units import ACCURATE_RTOL, ALIKE_PENALTIES, TIE_RTOL, WRITTEN

REFINEMENTS = 12
LARGEST_ROOT = 1e150  # largest root of a penalty for columns of size 1; larger ones overflow


def ridge_weights(columns: Sequence[int], free: Collection[int], gamma: float) -> float | FloatArray:
    """Return the ridge weight, or an array with one for each column if some of them are unpenalised.

    Examples
    --------
    >>> ridge_weights([3, 5], [5], 0.1), ridge_weights([3, 5], [], 0.1)
    (array([0.1, 0. ]), 0.1)
    """
    return np.where(np.isin(list(columns), list(free)), 0.0, gamma) if len(free) else gamma


def scales(X: FloatArray, scale: str = "length", weights: FloatArray | None = None) -> FloatArray:
    """Return the column scales s_j of the penalty, from all rows about the mean.

    Parameters
    ----------
    X : (n, p) array
        Features.
    scale : {"length", "variance", "none"}
        Unit in which the penalty measures columns.
    weights : (n,) array, optional
        Row weights; 1 by default.

    Returns
    -------
    (p,) array
        Scales; 0 for a constant column under `length` and `variance`.

    Examples
    --------
    >>> scales(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]))
    array([1.41421356, 0.        ])
    """
    if scale == "none":
        return np.ones(X.shape[1])
    unit, norms = _centred_norms(X, weights)
    total = X.shape[0] if weights is None else weights.sum()
    return unit * norms / (np.sqrt(total) if scale == "variance" else 1.0)


def _mean(rows: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Return the weighted mean over the rows."""
    return np.asarray(rows.mean(axis=0) if weights is None else weights @ rows / weights.sum())


def varying_columns(X: FloatArray) -> IntArray:
    """Return the positions of the columns that are not constant up to the rounding of a file."""
    return np.flatnonzero(_varies(X)).astype(np.int64)


def _varies(X: FloatArray) -> BoolArray:
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(high - low > WRITTEN * np.maximum(np.abs(low), np.abs(high)))


def _centred_norms(X: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return (power of two, norm) for each column; their product is the norm about the mean, without overflow."""
    centred = np.where(_varies(X), X - _mean(X, weights), 0.0)
    # a mean is rounded, which matters if the spread is far smaller than the mean
    centred -= _mean(centred, weights)
    return scaled_norms(centred, None if weights is None else np.sqrt(weights))


def scaled_norms(columns: FloatArray, root: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Return (power of two, norm) for each column of weighted rows; their product is the norm, without overflow.

    Examples
    --------
    >>> unit, norms = scaled_norms(np.array([[3.0], [4.0]]) * 2.0**800)
    >>> float(unit[0] * norms[0] / 2.0**800)
    5.0
    """
    unit = power_of_two(np.abs(columns).max(axis=0, initial=0.0))
    scaled = columns / unit
    return unit, np.asarray(np.linalg.norm(scaled if root is None else root[:, None] * scaled, axis=0))


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """The minimiser behind f(S), in units of the file: prediction = y_center + (x - x_center)' beta.

    Attributes
    ----------
    support : tuple of int
        Positions of the columns of X.
    beta : (|S|,) array
    objective : float
        Training objective f(S).
    coordinates : Coordinates
        Coordinates of the fit, from the training rows.
    solution : ExactFit, DoubleDouble or (|S|,) array
        Coefficients `beta` in these coordinates, in twice the precision if floats would lose digits of the residuals;
        or the fit in fractions.
    """

    support: tuple[int, ...]
    beta: FloatArray
    objective: float
    coordinates: Coordinates
    solution: ExactFit | DoubleDouble | FloatArray

    @property
    def is_exact(self) -> bool:
        """True if the coefficients were computed in fractions."""
        return isinstance(self.solution, ExactFit)

    @property
    def x_center(self) -> FloatArray:
        """(|S|,) centres of the columns."""
        return self.coordinates.centers[0]

    @property
    def y_center(self) -> float:
        """Centre of the target."""
        return self.coordinates.centers[1]

    @property
    def intercept(self) -> float:
        """Intercept b0 of prediction = b0 + x' beta."""
        return float(self.y_center - self.x_center @ self.beta)

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the (m,) predictions for rows X (m, p)."""
        return np.asarray(self.y_center + (X[:, list(self.support)] - self.x_center) @ self.beta)

    def residuals(self, X: FloatArray, y: FloatArray, index: IntArray) -> FloatArray:
        """Return (m,) `y - prediction` of some rows over `coordinates.y_unit`, without rounding of a large offset.

        Parameters
        ----------
        X : (n, p) array
            Features.
        y : (n,) array
            Target.
        index : (m,) int array
            The rows.
        """
        if isinstance(self.solution, ExactFit):
            return self.solution.residuals(X, y, index) / self.coordinates.y_unit
        if isinstance(self.solution, DoubleDouble):
            wide, target = self.coordinates.doubled_rows(X, y, index)
            return (target - (wide * self.solution).sum(1)).high
        Z, t = self.coordinates.standardise_rows(X, y, index)
        return np.asarray(t - Z @ self.solution)


def fit(
    X: FloatArray,
    y: FloatArray,
    support: Sequence[int],
    gamma: float | FloatArray,
    *,
    scale: str = "length",
    intercept: str = "fold",
    rows: IntArray | None = None,
    weights: FloatArray | None = None,
) -> RidgeFit:
    """Return the ridge fit of one support, by QR factorisation of the augmented matrix `[X_S; sqrt(gamma/2) diag(s)]`.

    If floats would leave fewer than nine digits of a residual, the fit is computed in fractions, or in twice the
    precision if there are many rows. Causes are small residuals, nearly dependent columns and rows far from the
    training rows.

    Parameters
    ----------
    X : (n, p) array
        Features.
    y : (n,) array
        Target.
    support : sequence of int
        Columns of the support.
    gamma : float or (s,) array
        Ridge weight, or one for each column; 0 is allowed if the columns are independent on the training rows.
    scale, intercept : str
        Scale and intercept as defined at the top of this module.
    rows : array of int, optional
        Training rows; all by default. Scales and, for `global`, centres always use all rows.
    weights : (n,) array, optional
        Weights of all rows; 1 by default.

    Examples
    --------
    >>> fit(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0]), [0], 4.0).beta        # 2 b + (4/2) 2 b = 2
    array([0.33333333])
    """
    columns = list(support)
    everyone = np.arange(X.shape[0])
    train = everyone if rows is None else np.asarray(rows)
    about = {"fold": train, "global": everyone}.get(intercept)
    heft = None if weights is None else np.sqrt(weights)
    place = Coordinates.from_columns(X, y, columns, about, heft)
    lengths = scales(X[:, columns], scale, weights)
    root = np.sqrt(gamma / 2.0) * (lengths / place.x_unit)
    root = np.minimum(root, LARGEST_ROOT)
    Z, t = place.standardise_rows(X, y, train)
    if heft is not None:
        Z, t = Z * heft[train][:, None], t * heft[train]
    size = power_of_two(np.sqrt(np.einsum("ij,ij->j", Z, Z) + root**2))
    out = np.ones(len(everyone), dtype=bool)
    out[train] = False
    away = place.standardise_rows(X, y, np.flatnonzero(out))
    if len(columns) > len(train) and root.max() <= ALIKE_PENALTIES * root.min():
        of_few = _fit_of_few_rows(columns, (Z / root, t), root, place, (away[0] / root, away[1]))
        if of_few is not None:
            return of_few
    augmented, response = np.vstack([Z / size, np.diag(root / size)]), np.concatenate([t, np.zeros(len(columns))])
    solution, _, _, singular = np.linalg.lstsq(augmented, response, rcond=None)
    busy = Z.any(axis=0)  # a column of zeros gets coefficient 0, since rounding would matter in rows where it is not 0
    solution[~busy] = 0.0
    residual = response - augmented @ solution
    objective = float(residual @ residual)
    precise: DoubleDouble | FloatArray = solution / size
    if not _has_accurate_digits(t, residual[: len(t)], solution, singular, (away[0] / size, away[1])):
        small = len(train) * len(columns) ** 2 <= EXACT_WORK
        exact = fit_exactly(X, y, columns, _exact_penalties(gamma, lengths), train, about, weights) if small else None
        if exact is not None:
            beta = np.array([float(b) for b in exact.beta])
            return RidgeFit(tuple(columns), beta, float(exact.objective), place, exact)
        place = place.double_precision(X, y, about, heft)
        wide, target = place.doubled_rows(X, y, train)
        if heft is not None:
            wide, target = wide * heft[train][:, None], target * heft[train]
        wide = wide.rescale(1.0 / size).concatenate(DoubleDouble.from_floats(np.diag(root / size)))
        refined = _refine_least_squares(wide, target.concatenate(DoubleDouble.from_floats(np.zeros(len(columns)))))
        if refined is not None:
            precise, objective = refined[0].rescale(busy / size), refined[1]
    beta = (precise.high if isinstance(precise, DoubleDouble) else precise) / place.x_unit * place.y_unit
    return RidgeFit(tuple(columns), beta, objective * place.y_unit * place.y_unit, place, precise)


@dataclass(frozen=True, eq=False)
class BoundedFit(RidgeFit):
    """A fit within bounds: `inner` is the plain fit of the columns that are not at a bound to the rest of the target.

    Attributes
    ----------
    inner : RidgeFit
        Fit of the columns off their bounds.
    at_bound : int array
        Places in `support` of the other columns.
    """

    inner: RidgeFit
    at_bound: IntArray

    def residuals(self, X: FloatArray, y: FloatArray, index: IntArray) -> FloatArray:
        """Return (m,) `y - prediction` of some rows over `coordinates.y_unit`; see `RidgeFit`."""
        rest = _rest_of_target(X, y, self, self.at_bound)
        return self.inner.residuals(X, rest, index) * (self.inner.coordinates.y_unit / self.coordinates.y_unit)


def _rest_of_target(X: FloatArray, y: FloatArray, fit: RidgeFit, places: IntArray) -> FloatArray:
    """Return the target less the part of some columns of a fit, about the centres of the fit."""
    place = fit.coordinates
    Z, t = place.standardise_rows(X, y, np.arange(len(y)))
    return np.asarray((t - Z[:, places] @ (fit.beta * (place.x_unit / place.y_unit))[places]) * place.y_unit)


def fit_bounded_ridge(
    X: FloatArray,
    y: FloatArray,
    support: Sequence[int],
    gamma: float | FloatArray,
    ends: tuple[FloatArray, FloatArray],
    **how: Any,
) -> RidgeFit:
    """Return the ridge fit of one support within bounds; it is the plain fit if that satisfies the bounds.

    Bounded least squares in floats find the columns at their bounds. The other columns are fitted by `fit`. If floats
    would lose digits as described there, a small fit is computed in fractions.

    Parameters
    ----------
    X, y, support, gamma
        Arguments of `fit`.
    ends : two (s,) arrays
        Lower and upper bounds of the coefficients, in units of the file.
    **how
        Further arguments of `fit`.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0])
    >>> within = fit_bounded_ridge(X, y, [0], 4.0, (np.array([-np.inf]), np.array([0.25])))
    >>> within.beta.tolist(), within.objective, within.intercept
    ([0.25], 1.375, 1.75)
    """
    plain, columns, (low, high) = fit(X, y, support, gamma, **how), list(support), ends
    if np.all((low <= plain.beta) & (plain.beta <= high)):
        return plain
    each = np.broadcast_to(gamma, len(columns))
    root = np.sqrt(each / 2.0) * scales(X[:, columns], how.get("scale", "length"), how.get("weights"))
    beta, is_accurate = _bounded_least_squares(X, y, plain, root, ends, how)
    exact = None if is_accurate else fit_exactly_within(X, y, columns, beta, gamma, ends, **how)
    if exact is not None:
        beta = np.array([float(b) for b in exact.beta])
        return RidgeFit(tuple(columns), beta, float(exact.objective), plain.coordinates, exact)
    while True:
        beta = np.clip(beta, low, high)
        at_bound = np.flatnonzero((beta <= low) | (beta >= high))
        free = np.setdiff1d(np.arange(len(columns)), at_bound)
        whole = RidgeFit(tuple(columns), beta, 0.0, plain.coordinates, beta)
        rest = _rest_of_target(X, y, whole, at_bound)
        inner = fit(X, rest, np.array(columns, dtype=np.int64)[free].tolist(), each[free], **how)
        beta[free] = inner.beta
        if np.all((low <= beta) & (beta <= high)):
            break
    objective = inner.objective + float(((root * beta)[at_bound] ** 2).sum())
    return BoundedFit(tuple(columns), beta, objective, plain.coordinates, beta, inner, at_bound)


def fit_exactly_within(
    X: FloatArray, y: FloatArray, columns: Sequence[int], start: FloatArray, gamma: float | FloatArray,
    ends: tuple[FloatArray, FloatArray], **how: Any,
) -> ExactFit | None:  # fmt: skip
    """Return the fit within bounds in fractions, by active sets from a start; None if it takes long or has no end.

    No step within the bounds lowers the objective of the returned fit, so the objective is the minimum.

    Parameters
    ----------
    X, y, columns, gamma, ends
        Arguments of `fit_bounded_ridge`, with `columns` for the support.
    start : (s,) array
        Coefficients; those at or beyond their bounds are at first fixed at them.
    **how
        Further arguments of `fit`.
    """
    everyone, rows, weights = np.arange(len(y)), how.get("rows"), how.get("weights")
    train = everyone if rows is None else np.asarray(rows)
    if len(train) * len(columns) ** 2 > EXACT_WORK:
        return None
    about = {"fold": train, "global": everyone}.get(how.get("intercept", "fold"))
    lam = _exact_penalties(gamma, scales(X[:, list(columns)], how.get("scale", "length"), weights))
    low, high = (end.tolist() for end in ends)
    fixed = _fix_at_bounds(start.tolist(), low, high, is_within=operator.lt)
    for _ in range(3 * len(columns) + 3):
        exact = fit_exactly(X, y, columns, lam, train, about, weights, fixed.items())
        if exact is None:
            return None
        beyond = _fix_at_bounds(exact.beta, low, high, is_within=operator.le)
        if beyond:
            fixed |= beyond
            continue
        decrease, worst = max(
            ((exact.slope[j] if b == low[j] else -exact.slope[j], j) for j, b in fixed.items() if low[j] < high[j]),
            default=(Fraction(0), -1),
        )
        if decrease <= 0:
            return exact
        del fixed[worst]
    return None


def _fix_at_bounds(
    beta: Sequence[Any], low: list[float], high: list[float], is_within: Callable[[Any, Any], bool]
) -> dict[int, Fraction]:
    """Return the nearer bounds of the coefficients that are not within theirs, by place."""
    return {j: Fraction(low[j] if b <= low[j] else high[j]) for j, b in enumerate(beta)
            if not (is_within(low[j], b) and is_within(b, high[j]))}  # fmt: skip


def _bounded_least_squares(
    X: FloatArray, y: FloatArray, plain: RidgeFit, root: FloatArray, ends: tuple[FloatArray, FloatArray],
    how: Mapping[str, Any],
) -> tuple[FloatArray, bool]:  # fmt: skip
    """Return the coefficients within bounds by bounded least squares in floats, and whether residuals keep digits."""
    place, rows, weights = plain.coordinates, how.get("rows"), how.get("weights")
    train = np.arange(len(y)) if rows is None else np.asarray(rows)
    Z, t = place.standardise_rows(X, y, train)
    away = place.standardise_rows(X, y, np.setdiff1d(np.arange(len(y)), train))
    if weights is not None:
        heft = np.sqrt(weights[train])
        Z, t = Z * heft[:, None], t * heft
    A = np.vstack([Z, np.diag(root / place.x_unit)])
    factor, target = place.x_unit / place.y_unit, np.concatenate([t, np.zeros(len(root))])
    b = solve_least_squares(A, target, (ends[0] * factor, ends[1] * factor))
    size: FloatArray = power_of_two(np.sqrt(np.einsum("ij,ij->j", A, A)))
    singular = np.asarray(np.linalg.svd(A / size, compute_uv=False), dtype=np.float64)
    return b / factor, _has_accurate_digits(t, t - Z @ b, b * size, singular, (away[0] / size, away[1]))


def solve_least_squares(A: FloatArray, target: FloatArray, ends: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return the b within bounds that minimises `||target - A b||`, in floats.

    Parameters
    ----------
    A, target : (m, s), (m,) arrays
        Matrix and target.
    ends : two (s,) arrays
        Lower and upper bounds.
    """
    from scipy.optimize import lsq_linear

    size = power_of_two(np.sqrt(np.einsum("ij,ij->j", A, A)))
    low, high = (end * size for end in ends)
    loose, beta = low < high, low.copy()
    if loose.any():
        rest = target - (A / size)[:, ~loose] @ low[~loose]
        found = lsq_linear((A / size)[:, loose], rest, (low[loose], high[loose]), method="bvls", tol=1e-15)
        beta[loose] = np.where(found.active_mask < 0, low[loose], np.where(found.active_mask > 0, high[loose], found.x))
    return np.asarray(beta / size)


def _exact_penalties(gamma: float | FloatArray, lengths: FloatArray) -> list[Fraction]:
    """Return the factors of the squared coefficients, from the scales of the columns."""
    each = np.broadcast_to(gamma, len(lengths)).tolist()
    return [Fraction(weight) / 2 * Fraction(s) ** 2 for weight, s in zip(each, lengths.tolist(), strict=True)]


def _fit_of_few_rows(
    columns: list[int], training: tuple[FloatArray, FloatArray], root: FloatArray, place: Coordinates,
    away: tuple[FloatArray, FloatArray],
) -> RidgeFit | None:  # fmt: skip
    """Return the fit for fewer rows than columns: `root b` lies in the span of the rows divided by `root`.

    None if digits are lost in `training` or in the other rows `away`; both hold columns over `root` and targets.
    """
    wide, t = training
    Q, R = np.linalg.qr(wide.T)
    augmented, response = np.vstack([R.T, np.eye(len(t))]), np.concatenate([t, np.zeros(len(t))])
    along, _, _, singular = np.linalg.lstsq(augmented, response, rcond=None)
    beta, residual, unit = Q @ along / root, response - augmented @ along, place.y_unit
    if not _has_accurate_digits(t, residual[: len(t)], along, singular, (away[0] @ Q, away[1])):
        return None
    objective = float(residual @ residual)
    return RidgeFit(tuple(columns), beta / place.x_unit * unit, objective * unit * unit, place, beta)


def _has_accurate_digits(
    t: FloatArray,
    residual: FloatArray,
    solution: FloatArray,
    singular: FloatArray,
    away: tuple[FloatArray, FloatArray],
) -> bool:
    """Return True if the rounding of a least-squares solution is below `ACCURATE_RTOL` of the residuals.

    This is checked for the training rows and, separately, for all other rows, whose columns and targets are `away`.
    """
    condition = 1.0
    if singular.size:
        condition = float(singular[0] / singular[-1]) if singular[-1] > 0.0 else np.inf
    error, level = float(np.linalg.norm(residual)), float(np.linalg.norm(t))
    largest = float(singular[0]) if singular.size else 0.0
    load = level + float(np.linalg.norm(solution)) * largest
    rounding = 32.0 * np.finfo(float).eps * condition * (load + condition * error)
    if not rounding <= ACCURATE_RTOL * error:
        return False
    rows, targets = away
    missed, reach = float(np.linalg.norm(targets - rows @ solution)), float(np.linalg.norm(rows))
    return bool(reach * rounding <= ACCURATE_RTOL * missed * largest or not largest)


def _refine_least_squares(A: DoubleDouble, b: DoubleDouble) -> tuple[DoubleDouble, float] | None:
    """Return least squares in twice the precision, by Bjorck's refinement; None if A is singular.

    Each step solves `de + A ds = b - e - A s`, `A'de = -A'e` by the float factors of A, and gains the digits that its
    condition number leaves.
    """
    Q, R = np.linalg.qr(A.high)
    diagonal = np.abs(np.diag(R))
    if not np.all(diagonal > 1e-14 * diagonal.max(initial=0.0)):
        return None
    solution, residual, last = DoubleDouble.from_floats(np.zeros(R.shape[1])), b.rescale(0.0), np.inf
    for _ in range(REFINEMENTS):
        f = (b - residual - (A * solution).sum(1)).high
        g = -(A * residual[:, None]).sum(0).high
        h, d = np.linalg.solve(R.T, g), Q.T @ f
        change = np.linalg.solve(R, d - h)
        moved = float(np.linalg.norm(change))
        if not moved < last / 2.0:
            break
        solution, residual, last = solution + change, residual + (f - Q @ (d - h)), moved
        if moved <= 1e-30 * float(np.linalg.norm(solution.high)):
            break
    residual = b - (A * solution).sum(1)
    return solution, float((residual * residual).sum(0).high)


def evaluate_objective(
    X: FloatArray,
    y: FloatArray,
    support: Sequence[int],
    beta: FloatArray,
    gamma: float | FloatArray,
    *,
    scale: str = "length",
    intercept: str = "fold",
    weights: FloatArray | None = None,
) -> tuple[float, float]:
    """Return the training objective of given coefficients on all rows, and the optimal intercept for them.

    Parameters
    ----------
    X : (n, p) array
        Features.
    y : (n,) array
        Target.
    support : sequence of s int
        Columns of the support.
    beta : (s,) array
        Coefficients in units of the file.
    gamma : float or (s,) array
        Ridge weight as in `fit`.
    scale, intercept : str
        Scale and intercept as defined at the top of this module.
    weights : (n,) array, optional
        Row weights; 1 by default.

    Returns
    -------
    objective, intercept : float
        Training objective, and optimal intercept.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0])
    >>> objective, intercept = evaluate_objective(X, y, [0], np.array([1.0]), 4.0)
    >>> round(objective, 9), round(intercept, 9)
    (4.0, 1.0)
    """
    everyone, columns = np.arange(X.shape[0]), list(support)
    heft = None if weights is None else np.sqrt(weights)
    place = Coordinates.from_columns(X, y, columns, None if intercept == "none" else everyone, heft)
    Z, t = place.standardise_rows(X, y, everyone)
    residual = t - Z @ (beta * place.x_unit / place.y_unit)
    if heft is not None:
        residual = residual * heft
    shrunk = np.sqrt(gamma / 2.0) * (scales(X[:, columns], scale, weights) * (beta / place.y_unit))
    value = float(residual @ residual + shrunk @ shrunk) * place.y_unit * place.y_unit
    x_center, y_center = place.centers
    return value, float(y_center - x_center @ beta)


def held_out_error(
    model: RidgeFit, X: FloatArray, y: FloatArray, test: IntArray, weights: FloatArray | None = None
) -> float:
    """Return the weighted sum of squared errors of the held-out rows: h_j of theory section 0.

    Parameters
    ----------
    model : RidgeFit
        Fit.
    X : (n, p) array
        Features.
    y : (n,) array
        Target.
    test : int array
        The held-out rows.
    weights : (n,) array, optional
        Weights of all rows; 1 by default.
    """
    residual = model.residuals(X, y, test)
    if weights is not None:
        residual = residual * np.sqrt(weights[test])
    unit = float(power_of_two(np.abs(residual).max(initial=0.0)))
    return float(np.sum((residual / unit) ** 2)) * unit * model.coordinates.y_unit * unit * model.coordinates.y_unit


def squared_errors(model: RidgeFit, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Return the (n,) squared errors of all rows, weighted, in units of the file.

    Parameters
    ----------
    model : RidgeFit
        Fit.
    X : (n, p) array
        Features.
    y : (n,) array
        Target.
    weights : (n,) array, optional
        Row weights; 1 by default.
    """
    residual = model.residuals(X, y, np.arange(len(y))) * model.coordinates.y_unit
    return np.asarray(residual**2 if weights is None else weights * residual**2)


def changes(full: FloatArray, without: FloatArray, total: float) -> float:
    """Return the change of the squared errors of all rows by holding out a fold, per row (theory, stability).

    Parameters
    ----------
    full, without : (n,) arrays
        Results of `squared_errors` for the full-data model, and for the model without the fold.
    total : float
        Weight of all rows.

    Examples
    --------
    >>> changes(np.array([1.0, 4.0]), np.array([2.0, 1.0]), 2.0)
    2.0
    """
    return float(np.abs(without - full).sum()) / total


def r_squared(y: FloatArray, scored_rows: IntArray, cv_error: float, weights: FloatArray | None = None) -> float:
    """Return the cross-validated R^2: 1 - h / (variance of the scored targets); 0 if these are all equal.

    Parameters
    ----------
    y : (n,) array
        Target.
    scored_rows : (m,) integers
        Rows that some fold scores, repeated as often as a fold scores them.
    cv_error : float
        CV error h.
    weights : (n,) array, optional
        Weights of all rows; 1 by default.
    """
    targets, share = y[scored_rows], None if weights is None else weights[scored_rows]
    targets -= _mean(targets, share)
    unit = _size(targets)
    targets /= unit
    variance = float(np.var(targets))
    if share is not None:
        variance = float(_mean((targets - _mean(targets, share)) ** 2, share))
    return 1.0 - cv_error / unit / unit / variance if variance > 0.0 else 0.0


def standard_error(errors: FloatArray, sizes: FloatArray | IntArray, times: float = 1.0) -> float:
    """Return the standard error of h over folds as glmnet defines it, as if each row had been scored once.

    With `e_j = h_j / n_j` and weights `w_j = n_j / sum n`: sqrt( sum_j w_j (e_j - h)^2 / (k / times - 1) ). Folds that
    score rows again are not additional observations: for repeated folds the result is the root mean square of the
    standard errors of the repeats, about the common mean.

    A fold of size 0 has no mean. With such folds, the result is the standard error of the ratio `sum h_j / sum n_j`,
    `sqrt( k sum_j (h_j - n_j h)^2 / (sum n)^2 / (k / times - 1) )`, which is the same for equal sizes.

    Parameters
    ----------
    errors : (k,) array
        Held-out sums of squares.
    sizes : (k,) array
        Rows of each fold, or their weights.
    times : float
        Average number of times that a scored row is scored; less than k.

    Examples
    --------
    >>> round(standard_error(np.array([1.0, 3.0]), np.array([1, 1])), 12)
    1.0
    """
    unit = _size(errors)
    means, weights = errors / unit, sizes / sizes.sum()
    if not np.all(sizes > 0.0):
        apart = means / sizes.sum() - weights * (means.sum() / sizes.sum())
        return float(np.sqrt(len(errors) * (apart @ apart) / (len(errors) / times - 1))) * unit
    means /= sizes  # in place: there may be millions of folds
    means -= weights @ means
    means *= means
    return float(np.sqrt(weights @ means / (len(errors) / times - 1))) * unit


LEAST_WEIGHT = 0.02  # share of the largest weight, below which a pair is not part of an average


def distances_of_pairs(
    errors: FloatArray, best: FloatArray, times: FloatArray | IntArray, weights: FloatArray | None = None
) -> FloatArray:
    """Return the distance of each pair from the best one, in standard errors (docs/theory/average.md).

    With `d_i` the squared error of row i minus that of the best pair, the distance is `z = mean(d) / se(d)`, at least
    0. The variation is over rows: `se^2 = n / (n - 1) sum_i m_i c_i^2 (d_i - mean)^2 / (sum m c)^2` for `m_i` rows that
    count c_i each. Integer weights are numbers of rows: `m = w`, `c = times`, n their sum. With other weights each row
    is one: `m = 1`, `c = w times`, so the unit of the weights does not matter.

    Parameters
    ----------
    errors : (P, n) array
        Squared held-out errors by pair and row.
    best : (n,) array
        Squared held-out errors of the pair with the minimum CV error.
    times : (n,) array
        Number of folds that score each row.
    weights : (n,) array, optional
        Row weights; 1 by default.

    Examples
    --------
    >>> distances_of_pairs(np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0]]), np.array([0.0, 1.0, 1.0]), np.ones(3))
    array([4., 0.])

    A row of weight 2 is two rows.

    >>> once, weights = np.ones(3), np.array([1.0, 1.0, 2.0])
    >>> distances_of_pairs(np.array([[1.0, 2.0, 3.0]]), np.array([0.0, 1.0, 1.0]), once, weights)
    array([5.19615242])
    >>> distances_of_pairs(np.array([[1.0, 2.0, 3.0, 3.0]]), np.array([0.0, 1.0, 1.0, 1.0]), np.ones(4))
    array([5.19615242])
    """
    mean, spread, least = changes_of_pairs(errors, best, times, weights)
    told, distances = mean > TIE_RTOL * least, np.zeros(len(mean))
    with np.errstate(divide="ignore"):
        distances[told] = mean[told] / spread[told]
    return distances


def changes_of_pairs(
    errors: FloatArray, best: FloatArray, times: FloatArray | IntArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, float]:
    """Return `mean(d)` and `se(d)` of each pair, whose ratio is its distance, and the minimum CV error.

    The parameters are the same as for `distances_of_pairs`.

    Examples
    --------
    >>> changes_of_pairs(np.array([[1.0, 3.0, 3.0, 3.0]]), np.array([0.0, 1.0, 1.0, 1.0]), np.ones(4))
    (array([1.75]), array([0.25]), 0.75)
    """
    each, heft = np.ones(len(times)), np.ones(len(times)) if weights is None else weights
    rows = heft if np.all(heft == np.floor(heft)) else each
    counts = heft * times
    unit, shares, n = _size(best), counts / counts.sum(), float(rows[times > 0].sum())
    change = (errors - best) / unit
    mean = change @ shares
    spread = np.sqrt((change - mean[:, None]) ** 2 @ (shares**2 / rows) * (n / max(n - 1.0, 1.0)))
    return mean * unit, spread * unit, float(best @ shares)


def weights_of_pairs(distances: FloatArray, models: Sequence[Hashable] | None = None) -> FloatArray:
    """Return the weights of pairs in their average: `exp(-z - z^2)`, normalised to sum 1.

    Weights below `LEAST_WEIGHT` of the largest are 0. Among pairs with the same full-data model, only the pair with the
    smallest distance, the first one in a tie, has a positive weight.

    Parameters
    ----------
    distances : (P,) array
        Distances z; inf for a pair without an error.
    models : sequence of P hashable objects, optional
        Full-data model of each pair; all differ by default. Only models of near pairs are read.

    Examples
    --------
    >>> weights_of_pairs(np.array([0.0, 1.6, 0.0]))
    array([0.5, 0. , 0.5])
    >>> weights_of_pairs(np.array([0.2, 0.0, 0.0]), "ABA").round(3)
    array([0. , 0.5, 0.5])
    """
    weights = np.exp(-distances - distances**2)
    weights[weights < LEAST_WEIGHT * weights.max()] = 0.0
    if models is not None:
        seen: set[Hashable] = set()
        for i in np.argsort(distances, kind="stable").tolist():
            if models[i] in seen:
                weights[i] = 0.0
            seen.add(models[i])
    return np.asarray(weights / weights.sum())


def _size(numbers: FloatArray) -> float:
    """Return the power of two nearest the largest number by size; 1 if all are zero."""
    return float(power_of_two(max(numbers.max(initial=0.0), -numbers.min(initial=0.0))))
