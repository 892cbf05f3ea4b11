"""Fits of Cox regression on centred columns, with duplicates merged, and quadratic lower bounds on its objective.

**Quadratic lower bounds** (docs/theory/cox.md, section 3). Let the weights of a term of the partial likelihood have the
mean `mean_t` and the covariance matrix `Cov_t` of the columns at a point b0. Suppose that no `(mean_t - x_j)'(b - b0)`
of a row x_j of the risk set exceeds a_t, for all b in a region. Then, in that region,

    F(b) >= F(b0) + g'd + d'H d / 2,    d = b - b0,    H = sum_t omega_t worst_ratio(a_t) Cov_t + 2 diag(ridge).

Let `F(b0) <= U`, and consider the ellipsoid of all points at which the right side is at most U. If this ellipsoid lies
inside the region, it contains all b with `F(b) <= U`, so the chosen a_t are valid for these b. The fits
of at most k columns with `F <= U` are in a smaller ellipsoid, whose a_t give a quadratic closer to F at these fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import cox_newton, local_search
from sparsecv_mio.kernels.glm_newton import Columns
from sparsecv_mio.problem.glm import (
    WIDENED,
    Centring,
    Ellipsoid,
    Minorant,
    QuadraticAbout,
    RoundedPoint,
    bound_level_set,
    with_moments,
)
from sparsecv_mio.problem.risk_sets import RiskSets, find_varying
from sparsecv_mio.problem.row_losses import RADII_TRIED, worst_ratio
from sparsecv_mio.trees.glm_fits import MIXTURES, GlmFits, find_duplicates
from sparsecv_mio.trees.glm_tree import FittedSupport, Quadratic
from sparsecv_mio.trees.subsets import is_never_expired
from sparsecv_mio.units import ROUNDING, TINY

MOST_PAIRS = 1 << 24  # events times rows at risk times columns, beyond which drops are bounded by maxima along paths
FIRST_DROP = 1e-3  # first drop that is tried
DROP_GROWTH, DROP_SETTLED = 1.3, 0.95  # growth of a drop that is too small, and the ratio at which to stop
LEAST_DROP = 1e-9  # addend of drops, for rounding


@dataclass(frozen=True, eq=False)
class CoxProblem:
    """The objective `l(b) + sum_j ridge_j b_j^2` of some rows (:mod:`sparsecv_mio.problem.cox`).

    Attributes
    ----------
    W : (p, n) array
        Rows as columns, centred and scaled by powers of two; also rows that are in no risk set.
    sets : RiskSets
        Risk sets of the rows of the problem.
    weight : (p,) array
        Penalty weights.
    gamma : float
        Ridge weight.
    """

    W: FloatArray
    sets: RiskSets
    weight: FloatArray
    gamma: float
    first_coefficient: int = field(default=0, init=False)
    intercept: bool = field(default=False, init=False)
    ends: None = field(default=None, init=False)

    @property
    def p(self) -> int:
        """Number of columns."""
        return len(self.W)

    @property
    def y(self) -> FloatArray:
        """(n,) weights of the events."""
        return self.sets.event_weight

    @property
    def ridge(self) -> FloatArray:
        """(p,) ridge weight of each column."""
        return np.asarray(0.5 * self.gamma * self.weight)

    @property
    def penalty(self) -> FloatArray:
        """(p,) diagonal of the penalty."""
        return self.ridge

    def with_gamma(self, gamma: float) -> CoxProblem:
        """Return the problem with another gamma."""
        return replace(self, gamma=gamma)

    def select_columns(self, columns: IntArray) -> CoxProblem:
        """Return the problem restricted to some columns."""
        return replace(self, W=self.W[columns], weight=self.weight[columns])

    def objective(self, theta: FloatArray) -> float:
        """Return F, without a bound on its rounding."""
        places, state = np.flatnonzero(theta), cox_newton.new_state(self.sets)
        return float(
            cox_newton.evaluate(Columns(self.W, places), self.sets, self.ridge[places], theta[places], state)[0]
        )


class CoxColumns(NamedTuple):
    """Columns of all rows, which all folds share: as given (n, p), centred W (p, n), and the map between them."""

    X: FloatArray
    W: FloatArray
    centring: Centring

    @classmethod
    def from_rows(cls, X: FloatArray) -> CoxColumns:
        """Return the columns of rows (n, p) after centring them."""
        centring = Centring.from_rows(X, np.ones(len(X)), True)
        return cls(X, np.ascontiguousarray(centring.rows(X).T), centring)


@dataclass(frozen=True, eq=False)
class CoxFits(GlmFits):
    """Training rows in centred columns, and fits of supports to them."""

    problem: CoxProblem  # type: ignore[assignment]
    rows: cox_newton.CoxRows  # type: ignore[assignment]

    @classmethod
    def from_columns(
        cls, columns: CoxColumns, sets: RiskSets, weight: FloatArray, gamma: float, forced: IntArray | None = None,
        is_whole: bool = False,
    ) -> CoxFits:  # fmt: skip
        """Return the fits of some rows.

        Parameters
        ----------
        columns : CoxColumns
            Columns of all rows.
        sets : RiskSets
            Risk sets of the training rows.
        weight : (p,) array
            Penalty weights of the given columns.
        gamma : float
            Ridge weight.
        forced : int array, optional
            Columns in every support.
        is_whole : bool
            True for the rows of the full data, whose best supports also have columns without an effect: those that are
            constant in each risk set.
        """
        (X, W, centring), at_risk = columns, np.flatnonzero(sets.weight > 0.0)
        problem = CoxProblem(W, sets, weight / centring.unit**2, gamma)
        inside = W[:, at_risk]
        varies = np.ptp(W, axis=1) > 0.0 if is_whole else find_varying(sets, W)
        inside[~varies] = 0.0
        copy_of, sign = find_duplicates(inside, lambda j: X[at_risk, j] / centring.unit[j], problem.weight)
        in_all = () if forced is None else tuple(sorted(set(forced.tolist())))
        rows = cox_newton.CoxRows(W, sets, problem.penalty, copy_of, 0, 0.0)
        return cls(problem, centring, in_all, copy_of, sign, varies, rows)

    def _refit(
        self, masks: BoolArray, points: FloatArray, bar: float, sure: bool,
        ends: tuple[FloatArray, FloatArray, FloatArray],
    ) -> None:  # fmt: skip
        cox_newton.refit(self.rows, masks & self.varies, points, bar, sure, ends)

    @cached_property
    def excludes_zero(self) -> BoolArray:
        """(p,) mask of the columns whose bounds exclude the coefficient 0: none."""
        return np.zeros(self.problem.p, dtype=np.bool_)

    def fit_of_all(
        self, mask: BoolArray, start: FloatArray, is_expired: Callable[[], bool] = is_never_expired
    ) -> tuple[FloatArray, float]:
        """Return `(point, lower)` of the fit of all open columns."""
        fitted = self.refit(mask[None, :], start, is_expired=is_expired)
        return fitted.points[0], float(fitted.lower[0])

    def hold_rows_out(self, rows: IntArray) -> None:
        """Return None: a fold has its own risk sets."""


def make_quadratic(fits: GlmFits, best: FittedSupport) -> Quadratic:
    """Return varying columns that are not forced, and the moments of Newton's quadratic about a fit in these columns.

    Parameters
    ----------
    fits : CoxFits
        Fits to the training rows.
    best : FittedSupport
        Support with its fit.
    """
    assert isinstance(fits, CoxFits)
    rows, free = fits.rows, fits.varies.copy()
    forced = np.array([j for j in fits.forced if fits.varies[j]], dtype=np.int64)
    free[list(fits.forced)] = False
    columns = np.flatnonzero(free)
    places = np.concatenate([forced, columns])
    Z, k, f = Columns(rows.W, places), len(places), len(forced)
    state, g, H, diagonal = cox_newton.new_state(rows.sets), np.empty(k), np.empty((k, k)), np.empty(k)
    theta, nothing = best.point[places], np.zeros(k)
    value, _ = cox_newton.evaluate(Z, rows.sets, nothing, theta, state)
    cox_newton.gradient(Z, rows.sets, nothing, theta, state, g)
    cox_newton.fill_hessian(Z, rows.sets, nothing, state, H, diagonal)
    product = H @ theta
    c, yy = product - g, 2.0 * value - 2.0 * float(g @ theta) + float(theta @ product)
    A = H[:f, :f] + np.diag(2.0 * rows.penalty[forced] + np.finfo(float).tiny)
    beside = np.linalg.lstsq(A, np.column_stack([H[:f, f:], c[:f]]), rcond=None)[0]
    yy -= float(c[:f] @ beside[:, -1])
    H, c = H[f:, f:] - H[f:, :f] @ beside[:, :-1], c[f:] - H[f:, :f] @ beside[:, -1]
    Q = np.ascontiguousarray(0.5 * (H + H.T))
    return columns, local_search.PenalisedMoments(
        Q, 2.0 * rows.penalty[columns], np.ascontiguousarray(c), max(yy, TINY)
    )


@dataclass(frozen=True, eq=False)
class _Around:
    """F about a point, with what bounds the drops of an ellipsoid."""

    problem: CoxProblem
    state: cox_newton.CoxState
    at: RoundedPoint
    means: FloatArray
    error: float
    few_pairs: bool

    def quadratic(self, level: float, drops: FloatArray) -> QuadraticAbout | None:
        """Return the quadratic for some drops, and bounds on its level set; None if its rounding is too large."""
        problem, k = self.problem, len(self.at.theta)
        Z, H, moments = Columns(problem.W, np.arange(k)), np.empty((k, k)), np.empty(k)
        self.state.curvature[:] = worst_ratio(drops)
        cox_newton.fill_hessian(Z, problem.sets, problem.penalty, self.state, H, moments)
        return bound_level_set(H, self.at, level, moments, 5.0 * self.error + (4 * k + 64) * ROUNDING)

    def quadratic_of_level_set(self, level: float, is_expired: Callable[[], bool]) -> QuadraticAbout | None:
        """Return the quadratic for drops that its level set verifies; None if there are none."""
        if not self.at.value + self.at.value_off <= level:
            return None
        best, drops = None, np.full(len(self.problem.sets.node), FIRST_DROP)
        for _ in range(RADII_TRIED):
            quadratic = None if is_expired() else self.quadratic(level, drops)
            if quadratic is None:
                break
            need = self.drops(quadratic.ellipsoid)
            if not np.all(np.isfinite(need)):
                break
            if np.all(need < drops):
                settled = best is not None and need.sum() > DROP_SETTLED * drops.sum()
                best, drops = quadratic, need
                if settled:
                    break
            elif best is not None:
                break
            else:
                drops = np.maximum(drops, need) * DROP_GROWTH
        return best

    def drops(self, ellipsoid: Ellipsoid) -> FloatArray:
        """Return (B,) bounds on the drops in an ellipsoid."""
        problem, (centre, inverse, spread, _) = self.problem, ellipsoid
        step, found = centre - self.at.theta, np.empty(len(problem.sets.node))
        root = np.linalg.cholesky(inverse).T if len(step) else inverse
        lengths, mean_lengths = root @ problem.W, self.means @ root.T
        drop, mean_drop, radius = step @ problem.W, self.means @ step, spread * WIDENED
        if self.few_pairs:
            cox_newton.fill_drops(problem.sets, lengths, drop, mean_lengths, mean_drop, radius, found)
        else:
            reach = radius * np.sqrt(np.einsum("ij,ij->j", lengths, lengths)) - drop
            mean_reach = radius * np.sqrt(np.einsum("ij,ij->i", mean_lengths, mean_lengths)) + mean_drop
            cox_newton.fill_wide_drops(problem.sets, reach, mean_reach, found)
        return found * WIDENED + LEAST_DROP


def _look(problem: CoxProblem, theta: FloatArray) -> _Around | None:
    """Return F about a point; None if its rounding is too large."""
    k, sets = len(theta), problem.sets
    Z, state = Columns(problem.W, np.arange(k)), cox_newton.new_state(sets)
    at = cox_newton.look(Z, sets, problem.penalty, theta, state)
    if not at.value < np.inf:
        return None
    _, size = cox_newton.evaluate(Z, sets, problem.penalty, theta, state)
    _, widest, relative = cox_newton.bound_value_rounding(Z, sets, theta, size, state)
    means = np.empty((2 * len(sets.node), k))
    cox_newton.fill_end_means(Z, sets, state, means)
    point = RoundedPoint(theta, at.value, at.off, at.g, at.noise)
    error = 3.0 * relative + 2.2 * widest + (len(sets.weight) + 8) * ROUNDING
    return _Around(problem, state, point, means, error, cox_newton.count_pairs(sets) * max(k, 1) <= MOST_PAIRS)


def cox_minorant(
    problem: CoxProblem, theta: FloatArray, level: float, is_expired: Callable[[], bool] = is_never_expired,
    region: Ellipsoid | None = None,
) -> Minorant | None:  # fmt: skip
    """Return a quadratic lower bound on F, built around a point.

    The bound holds over `{F <= level}` or, with a region, at all fits in this set that are in the region.

    Parameters
    ----------
    problem : CoxProblem
        The problem.
    theta : (p,) array
        Point; without a region, F must be at most the level there.
    level : float
        The level.
    is_expired : callable
        Function that is called between rounds; if it returns True, the best bound so far is returned.
    region : Ellipsoid, optional
        Ellipsoid that contains all fits of interest, as a quadratic below F at these fits implies it.

    Returns
    -------
    Minorant or None
        The bound; None if F is above the level at the point, or if no ellipsoid verifies itself.
    """
    around = _look(problem, theta)
    if around is None:
        return None
    if region is None:
        best = around.quadratic_of_level_set(level, is_expired) or _shrink(around, level, is_expired)
    else:
        best = around.quadratic(level, around.drops(region))
    return None if best is None else with_moments(problem, around.at, level, best)  # type: ignore[arg-type]


def _shrink(around: _Around, level: float, is_expired: Callable[[], bool]) -> QuadraticAbout | None:
    """Return the quadratic for drops that begin with those of all points whose penalty is at most the level."""
    problem, theta = around.problem, around.at.theta
    if not np.all(problem.ridge > 0.0) or not len(theta):
        return None
    length = np.sqrt(level * np.einsum("ij,ij,i->j", problem.W, problem.W, 1.0 / problem.ridge))
    mean_length = np.sqrt(level * np.einsum("ij,ij,j->i", around.means, around.means, 1.0 / problem.ridge))
    drops = np.empty(len(problem.sets.node))
    reach, mean_reach = length + theta @ problem.W, mean_length - around.means @ theta
    cox_newton.fill_wide_drops(problem.sets, reach, mean_reach, drops)
    drops, best = drops * WIDENED + LEAST_DROP, None
    for _ in range(RADII_TRIED):
        quadratic = None if is_expired() else around.quadratic(level, drops)
        if quadratic is None:
            return best
        need = np.minimum(drops, around.drops(quadratic.ellipsoid))
        settled, best, drops = need.sum() > DROP_SETTLED * drops.sum(), quadratic, need
        if settled:
            break
    return best


def mixed_points(near: FloatArray, everything: FloatArray) -> list[FloatArray]:
    """Return points between a fit and the fit of all open columns, about which quadratics are made."""
    return [(1.0 - share) * near + share * everything for share in (0.0, *MIXTURES[1:])]
