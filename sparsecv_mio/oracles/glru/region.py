"""A set that contains the optimum of a problem, from one primal point, one dual point and the gap between them.

For a problem with optimum (w*, alpha*), a primal point w and a feasible dual point alpha with score `c = X' alpha / n`,
put `v = drho*(c)` (the primal point that belongs to alpha), `a = -l'(X w)` (the dual point that belongs to w) and
`G = P(w) - D(alpha)`. The loss is mu-smooth, the regulariser ridge-strongly convex on the penalised columns. Then

    P(w) - P(w*)     >= ridge/2 ||w - w*||^2 + 1/(2 n mu) ||a - alpha*||^2
    P(w*) - D(alpha) >= ridge/2 ||v - w*||^2 + 1/(2 n mu) ||alpha - alpha*||^2

(strong convexity and co-coercivity at the optimum; Fenchel-Young residuals). The paper keeps one term of the sum of
both lines at a time, which gives its radii (9) and (11). Keeping all of them, with midpoints,

    ridge ||w* - (w + v)/2||^2 + 1/(n mu) ||alpha* - (a + alpha)/2||^2  <=  slack
    slack = G - ridge/4 ||w - v||^2 - 1/(4 n mu) ||a - alpha||^2        in [G/2, G]

The ball about the midpoint lies inside the paper's and has at most 1/sqrt(2) of its radius, 1/2 where w was optimal
before rows were removed. Norms of w run over the penalised columns: so this holds with an intercept too, for which (9)
is not stated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.oracles.glru.fit import EPS, DualFit
from sparsecv_mio.oracles.losses import ConjugateLoss
from sparsecv_mio.oracles.penalties import Regularizer


@dataclass(frozen=True, eq=False)
class CommonPoint:
    """The rows of a problem relative to one common point z: their predictions and their distances to z.

    Attributes
    ----------
    point : (d,) array
        The common point z, over the penalised columns.
    t, y : (k,) arrays
        Predictions `x_i' w + b` and responses.
    distance : (k,) array
        `||x_i - z||` over the penalised columns, rounded up.
    """

    point: FloatArray
    t: FloatArray
    y: FloatArray
    distance: FloatArray


@dataclass(frozen=True, eq=False)
class Anchor:
    """A few rows of the problem with their dual variables: `rows` (k, d + 1) with the intercept's one, `y`, `alpha`."""

    rows: FloatArray
    y: FloatArray
    alpha: FloatArray


@dataclass(frozen=True, eq=False)
class OptimumRegion(ABC):
    """A set that contains the optimum of one problem; the text of the module states and proves it.

    Coordinates: the problem's columns in the order of its matrix, added ones after them, an intercept last. What only
    some intervals need is computed when asked for.

    Attributes
    ----------
    fit : DualFit
        Of the old problem.
    n : int
        Rows of the new problem.
    w : (d,) array
        Primal point.
    score : (d,) array
        `c = X' alpha / n` of the dual point; zero for an intercept.
    gap : float
        `G`, rounded up by what the sums it is made of may have lost; +inf where the dual point is infeasible.
    primal : float
        `P(w)`, rounded up.
    w_distance_sq : float
        `||w - v||^2` over the penalised columns.
    alpha_distance_sq : float
        `||alpha - a||^2`.
    factor : float
        What the old dual point was multiplied by to be feasible.
    """

    fit: DualFit
    n: int
    w: FloatArray
    score: FloatArray
    gap: float
    primal: float
    w_distance_sq: float
    alpha_distance_sq: float
    factor: float

    @cached_property
    def loss(self) -> ConjugateLoss:
        """The loss of the problem."""
        return self.fit.problem.loss

    @cached_property
    def regularizer(self) -> Regularizer:
        """The regulariser of the problem."""
        return self.fit.problem.regularizer

    @property
    def d(self) -> int:
        """Number of penalised columns."""
        return self.regularizer.penalised(self.w.shape[0])

    @property
    def center(self) -> FloatArray:
        """(d,) centre of the ball: the midpoint of w and v, without strong convexity w; its intercept is that of w."""
        if self.regularizer.ridge == 0.0:
            return self.w
        middle = 0.5 * (self.w + self.regularizer.minimizer(self.score))
        if self.regularizer.intercept:
            middle[-1] = self.w[-1]
        return middle

    @cached_property
    def slack(self) -> float:
        """`slack` of the text above, in [G/2, G]: the right-hand side for both midpoint balls."""
        ridge = 0.25 * self.regularizer.ridge * self.w_distance_sq
        rows = 0.25 * self.alpha_distance_sq / (self.n * self.loss.smoothness)
        return max(self.gap - (1.0 - 8.0 * EPS) * (ridge + rows), 0.0) if np.isfinite(self.gap) else np.inf

    @property
    def primal_radius(self) -> float:
        """`r_P` of (9): distance of w* to w."""
        ridge = self.regularizer.ridge
        return float(np.sqrt(2.0 * self.gap / ridge)) if ridge > 0.0 else np.inf

    @property
    def radius(self) -> float:
        """Distance of w* to the midpoint: `sqrt(slack / ridge)`."""
        ridge = self.regularizer.ridge
        return float(np.sqrt(self.slack / ridge)) if ridge > 0.0 else np.inf

    @property
    def radius_about_w(self) -> float:
        """Distance of w* to w by the triangle inequality through the midpoint; at most `primal_radius`."""
        return 0.5 * float(np.sqrt(self.w_distance_sq)) + self.radius if self.regularizer.ridge > 0.0 else np.inf

    @property
    def dual_radius(self) -> float:
        """`r_D` of (11): distance of alpha* to alpha."""
        return float(np.sqrt(2.0 * self.n * self.loss.smoothness * self.gap))

    @property
    def dual_radius_sharp(self) -> float:
        """Distance of alpha* to alpha by the triangle inequality through the midpoint; at most `dual_radius`."""
        return 0.5 * float(np.sqrt(self.alpha_distance_sq)) + float(np.sqrt(self.n * self.loss.smoothness * self.slack))

    @property
    @abstractmethod
    def column_sq(self) -> FloatArray:
        """(d,) squared norms of the columns over the rows of the problem, rounded up."""

    @property
    @abstractmethod
    def box(self) -> tuple[FloatArray, FloatArray]:
        """(d,) least and largest `X_j' alpha` over the box of the loss's domain: (27g), (27j) of Remark 2."""

    @property
    @abstractmethod
    def common_point(self) -> CommonPoint:
        """Rows as seen from one point: bounds an intercept through the sum of the dual variables."""

    @property
    @abstractmethod
    def anchor(self) -> Anchor:
        """The rows whose predictions are bounded best by their dual variables."""
