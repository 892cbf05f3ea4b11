"""Where the optimum of a problem must be, given one primal point, one dual point and the gap between them.

For a problem with optimum (w*, alpha*), a primal point w and a feasible dual point alpha with score `c = X' alpha / n`,
put `v = drho*(c)` (the primal point that belongs to alpha), `a = -l'(X w)` (the dual point that belongs to w) and
`G = P(w) - D(alpha)`. The loss is mu-smooth, the regulariser ridge-strongly convex on the penalised columns. Then

    P(w) - P(w*)     >= ridge/2 ||w - w*||^2 + 1/(2 n mu) ||a - alpha*||^2
    P(w*) - D(alpha) >= ridge/2 ||v - w*||^2 + 1/(2 n mu) ||alpha - alpha*||^2

(strong convexity and co-coercivity at the optimum; Fenchel-Young residuals). The paper keeps one term of the sum of
both lines at a time, which gives its radii (9) and (11). Keeping all of them, with midpoints,

    ridge ||w* - (w + v)/2||^2 + 1/(n mu) ||alpha* - (a + alpha)/2||^2  <=  slack
    slack = G - ridge/4 ||w - v||^2 - 1/(4 n mu) ||a - alpha||^2        in [G/2, G]

The ball of the midpoint lies inside of the paper's and has at most 1/sqrt(2) of its radius, 1/2 where w was optimal
before rows went. Norms of w run over the penalised columns: this holds with an intercept too, where (9) is not stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparsecv_mio.data.dataset import FloatArray
from sparsecv_mio.oracles.glru.changes import Anchor, Change, Middle
from sparsecv_mio.oracles.glru.fit import EPS
from sparsecv_mio.oracles.glru.losses import Loss
from sparsecv_mio.oracles.glru.regularizers import Regularizer


@dataclass(frozen=True, eq=False)
class Region:
    """A set that contains the optimum of one problem; see the module for what is proved.

    Coordinates: the problem's columns in the order of its matrix, added ones after them, an intercept last.

    Attributes
    ----------
    loss, regularizer : Loss, Regularizer
    n : int
        Rows of the problem.
    w : (d,) array
        Primal point.
    score : (d,) array
        `c = X' alpha / n` of the dual point; zero for an intercept.
    gap : float
        `G`, rounded up by the allowance of the sums it came from; +inf where the dual point is infeasible.
    primal : float
        `P(w)`, rounded up.
    w_tilt_sq : float
        `||w - v||^2` over the penalised columns.
    alpha_tilt_sq : float
        `||alpha - a||^2`.
    change : Change
        Makes on demand what only some intervals ask for.
    """

    loss: Loss
    regularizer: Regularizer
    n: int
    w: FloatArray
    score: FloatArray
    gap: float
    primal: float
    w_tilt_sq: float
    alpha_tilt_sq: float
    change: Change

    @property
    def d(self) -> int:
        """Number of penalised columns."""
        return self.regularizer.penalised(self.w.shape[0])

    @property
    def center(self) -> FloatArray:
        """(d,) midpoint of w and v; without strong convexity w itself. The intercept's entry is that of w."""
        if self.regularizer.ridge == 0.0:
            return self.w
        middle = 0.5 * (self.w + self.regularizer.minimizer(self.score))
        if self.regularizer.intercept:
            middle[-1] = self.w[-1]
        return middle

    @cached_property
    def slack(self) -> float:
        """What the two midpoint balls share, in [G/2, G]."""
        ridge = 0.25 * self.regularizer.ridge * self.w_tilt_sq
        rows = 0.25 * self.alpha_tilt_sq / (self.n * self.loss.smoothness)
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
        """Distance of w* to w by way of the midpoint; at most `primal_radius`."""
        return 0.5 * float(np.sqrt(self.w_tilt_sq)) + self.radius if self.regularizer.ridge > 0.0 else np.inf

    @property
    def dual_radius(self) -> float:
        """`r_D` of (11): distance of alpha* to alpha."""
        return float(np.sqrt(2.0 * self.n * self.loss.smoothness * self.gap))

    @property
    def dual_radius_sharp(self) -> float:
        """Distance of alpha* to alpha by way of the midpoint; at most `dual_radius`."""
        return 0.5 * float(np.sqrt(self.alpha_tilt_sq)) + float(np.sqrt(self.n * self.loss.smoothness * self.slack))

    @cached_property
    def column_sq(self) -> FloatArray:
        """(d,) squared norms of the columns over the rows of the problem."""
        return self.change.column_sq()

    @cached_property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """(d,) least and largest `X_j' alpha` over the box of the loss's domain: (27g), (27j) of Remark 2."""
        return self.change.box()

    @cached_property
    def middle(self) -> Middle:
        """What bounds an intercept through the sum of the dual variables."""
        return self.change.middle()

    @cached_property
    def anchor(self) -> Anchor:
        """What bounds an intercept through single dual variables."""
        return self.change.anchor()
