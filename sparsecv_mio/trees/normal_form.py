"""The form in which the kernels see an inner problem: `M = G + w I`, G positive semidefinite, w = 1 or 0."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.kernels.nodes import Copies, Form, Margin
from sparsecv_mio.problem.problem import SparseProblem, own_part, shifted
from sparsecv_mio.trees.path_cells import MANY
from sparsecv_mio.units import KEEP_RTOL

Value = TypeVar("Value", float, FloatArray)

NULL_COLUMN = 1e-26  # squared length, relative to a whole column's, below which a column is constant in training
OWN_PART_COLUMNS = (37, MANY)  # sizes for which the curvature takes each column's own part into account
POWER_STEPS, POWER_GROWTH = 30, 1.01  # of an estimate of the largest eigenvalue, and what a step is worth
WIDEST_RATIO = 1e12  # condition of M beyond which the penalty is too small to bound anything


@dataclass(frozen=True, eq=False)
class NormalForm:
    """`min yy - c_S' M_S^{-1} c_S` over columns that vary in training, each divided by the root of its curvature.

    The curvature w is any diagonal with `M - diag(w)` positive semidefinite, so that in the new units `M - I` is too:
    every w of theory section 4 becomes 1. Where the penalty is too small
    for that (`curved` is False) columns are divided by `M_jj ** 0.5` and the bounds that need w are off.

    Attributes
    ----------
    columns : (m,) int array
        Columns of the problem that vary in training. The others have coefficient zero in every optimum, and every
        optimum that holds one predicts as an optimum without it.
    scale : (m,) array
        What each column was multiplied by.
    G : (m, m) array
        `M - I` (or M itself where not curved).
    c : (m,) array
    yy : float
    curved : bool
    largest : float
        At least the largest eigenvalue of G.
    keep, slack : float
        Supports within `best (1 + keep) + slack` must be refitted before one is called optimal: the rounding error of
        the trees, from the condition of M.
    copy_prev, copy_next : (m,) int arrays
        Neighbouring copies or -1.
    """

    columns: IntArray
    scale: FloatArray
    G: FloatArray
    c: FloatArray
    yy: float
    curved: bool
    largest: float
    keep: float
    slack: float
    copy_prev: IntArray
    copy_next: IntArray

    @property
    def m(self) -> int:
        """Number of columns."""
        return int(self.c.shape[0])

    @property
    def w(self) -> float:
        """The w of `M = G + w I`."""
        return 1.0 if self.curved else 0.0

    @property
    def quadratic(self) -> Form:
        """The problem as the kernels take it; where curved."""
        return Form(self.G, self.c, self.yy, max(self.largest, 1e-12))

    @cached_property
    def steepest(self) -> float:
        """Estimate of the largest eigenvalue of G, a little from above; no bound. O(m^2)."""
        v, norm = np.random.default_rng(0).standard_normal(self.m), 0.0
        v /= np.linalg.norm(v)
        for _ in range(POWER_STEPS):
            v = self.G @ v
            before, norm = norm, float(np.linalg.norm(v))
            if not norm > before * POWER_GROWTH:
                break
            v /= norm
        return max(1.06 * norm, 1e-12)

    def raised(self, value: Value) -> Value:
        """Return a best value, or several, raised to the bar up to which supports are kept beside it."""
        return value * (1.0 + self.keep) + self.slack

    @property
    def copies(self) -> Copies:
        """Neighbouring copies as the kernels take them."""
        return Copies(self.copy_prev, self.copy_next)

    @property
    def margin(self) -> Margin:
        """How far above the best a support is kept."""
        return Margin(self.keep, self.slack)

    def matrix(self) -> FloatArray:
        """(m, m) matrix M."""
        out = self.G.copy()
        if self.curved:
            out.flat[:: self.m + 1] += 1.0
        return out

    def solved(self) -> tuple[FloatArray, FloatArray, float]:
        """`(M^{-1}, M^{-1} c, f of all columns)`, for trusted forms.

        The inverse is symmetric to the last bit: the trees eliminate by rows only, and what inversion leaves of
        asymmetry would grow with the square of the condition instead of the condition.
        """
        M = self.matrix()
        V = np.linalg.inv(M)
        V = 0.5 * (V + V.T)
        beta = np.asarray(np.linalg.solve(M, self.c), dtype=float)
        return V, beta, float(self.yy - self.c @ beta)

    @property
    def trusted(self) -> bool:
        """Whether the trees' arithmetic is good enough to prune at all."""
        return self.keep < 0.1


def normal_form(problem: SparseProblem) -> NormalForm:
    """Bring a problem to normal form. O(q^2) beside the cached spectrum."""
    diagonal = problem.squares
    longest = max(float(diagonal.max(initial=0.0)), problem.full_length)
    columns = np.flatnonzero(diagonal > NULL_COLUMN * longest).astype(np.int64)
    smallest, largest = problem.spectrum() if len(columns) == problem.q else (0.0, problem.spectrum()[1])
    Q = problem.Q if len(columns) == problem.q else problem.Q[np.ix_(columns, columns)]
    penalty = problem.penalty[columns]
    curvature = _curvature(Q, penalty, smallest)
    top = _largest(Q, penalty, curvature, largest)
    curved = top < WIDEST_RATIO
    G = Q.copy()
    m = len(columns)
    if curved:
        G.flat[:: m + 1] += penalty - curvature
        scale = 1.0 / np.sqrt(curvature)
        condition = top + 1.0
    else:
        G.flat[:: m + 1] += penalty
        scale = 1.0 / np.sqrt(np.diag(G))
        top = float(m)
        condition = np.inf
    G *= scale[:, None]
    G *= scale
    if not curved and m:
        values = np.linalg.eigvalsh(G)
        condition = values[-1] / values[0] if values[0] > 0.0 else np.inf
    if problem.own_squares is not None:
        length = float(np.max((problem.own_squares + problem.penalty)[columns] * scale**2, initial=0.0))
        condition = max(condition, problem.stretch * length * (1.0 if curved else condition))
    rounding = 50.0 * np.finfo(float).eps * condition
    prev, nxt = _copies(problem.copy_of, columns)
    return NormalForm(
        columns=columns,
        scale=scale,
        G=G,
        c=problem.c[columns] * scale,
        yy=problem.yy,
        curved=bool(curved),
        largest=float(top),
        keep=max(KEEP_RTOL, float(rounding)),
        slack=max(1e-13, 0.1 * float(rounding)) * problem.size if np.isfinite(rounding) else problem.size,
        copy_prev=prev,
        copy_next=nxt,
    )


def _largest(Q: FloatArray, penalty: FloatArray, curvature: FloatArray, largest: float) -> float:
    """Bound on the largest eigenvalue of G: the trace of its first part or the spectrum of Q, whichever says less."""
    if not len(curvature):
        return 0.0
    floor = float(curvature.min())
    if not floor > 0.0:
        return np.inf
    with np.errstate(over="ignore"):
        beside = float((penalty / curvature).max()) - 1.0
        return min(float((np.diag(Q) / curvature).sum()), largest / floor) + max(beside, 0.0)


def _curvature(Q: FloatArray, penalty: FloatArray, smallest: float) -> FloatArray:
    """Return a diagonal w >= 0 with `Q + diag(penalty) - diag(w)` positive semidefinite.

    The mean of `shifted` and `own_part`: perspective trees on diabetes64 have 2 to 6 times fewer nodes with it than
    with the first alone. Small problems do not earn it back.
    """
    uniform = shifted(penalty, smallest)
    if not OWN_PART_COLUMNS[0] <= len(penalty) <= OWN_PART_COLUMNS[1]:
        return uniform
    own = own_part(Q + np.diag(penalty))
    return uniform if own is None else np.asarray(0.5 * (uniform + own))


def _copies(copy_of: NDArray[np.intp] | None, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Chain the copies among `columns`."""
    m = len(columns)
    prev, nxt = np.full(m, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64)
    if copy_of is None or not np.any(copy_of >= 0):
        return prev, nxt
    last: dict[int, int] = {}
    for a, j in enumerate(columns.tolist()):
        root = int(copy_of[j]) if copy_of[j] >= 0 else j
        if root in last:
            prev[a] = last[root]
            nxt[last[root]] = a
        last[root] = a
    return prev, nxt
