"""The form in which the kernels see an inner problem, `M = G + w I` with w = 1 or 0, and the relaxation of its root.

Where columns are many the root is solved to the end, as all else is done on the columns that it leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.kernels import cluster_relaxation
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import Accuracy, Copies, Form, Margin, Node
from sparsecv_mio.kernels.screening import screen
from sparsecv_mio.problem.problem import SparseProblem, own_part, shifted
from sparsecv_mio.thresholds import MANY
from sparsecv_mio.units import KEEP_RTOL, SHAVED

Value = TypeVar("Value", float, FloatArray)

OWN_PART_COLUMNS = (37, MANY)  # sizes for which the curvature takes each column's own part into account
SHARP_STEPS = 15  # of Newton, from a valid diagonal to a sharper one
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
    kept : dict
        What was computed once of the problem at this gamma, in its own units.
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
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

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
    columns = np.flatnonzero(problem.squares).astype(np.int64)  # the others do not vary
    smallest, largest = problem.spectrum() if len(columns) == problem.q else (0.0, problem.spectrum()[1])
    Q = problem.Q if len(columns) == problem.q else problem.Q[np.ix_(columns, columns)]
    penalty = problem.penalty[columns]
    curvature = _curvature(Q, penalty, smallest)
    top = _largest_eigenvalue(Q, penalty, curvature, largest)
    curved = top < WIDEST_RATIO
    G = Q.copy()
    m = len(columns)
    if curved:
        G.flat[:: m + 1] += penalty - curvature
        scale = 1.0 / np.sqrt(curvature)
        condition = top + 1.0
    else:
        G.flat[:: m + 1] += penalty
        own = np.diag(G)
        sound = bool(np.all(own > 0.0))  # else rounding has eaten what elimination left
        scale = 1.0 / np.sqrt(np.where(own > 0.0, own, 1.0))
        top = float(m)
        condition = np.inf
    G *= scale[:, None]
    G *= scale
    if not curved and m and sound:
        values = np.linalg.eigvalsh(G)
        condition = values[-1] / values[0] if values[0] > 0.0 else np.inf
    if problem.own_squares is not None:
        length = float(np.max((problem.own_squares + problem.penalty)[columns] * scale**2, initial=0.0))
        condition = max(condition, problem.stretch * length * (1.0 if curved else condition))
    rounding = 50.0 * np.finfo(float).eps * condition
    prev, nxt = _chained_copies(problem.copies, columns)
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
        kept=problem.kept.setdefault(problem.lam, {}),
    )


def _largest_eigenvalue(Q: FloatArray, penalty: FloatArray, curvature: FloatArray, largest: float) -> float:
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


def _chained_copies(copy_of: NDArray[np.intp] | None, columns: IntArray) -> tuple[IntArray, IntArray]:
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


OUT = -2  # in place of a cluster's number: the column is dropped
SLICE_WORK = 1e9  # multiplications between two looks at the clock
PART = (200, 1.5)  # columns that a relaxation works on at first: at least, and beside those with a weight
SET_ROUNDS = 12  # in which such a set grows


def box_of(form: NormalForm, ends: FloatArray) -> cluster_relaxation.BoxEnds:
    """Return the box of coefficients within plus or minus `ends` (q,), in the units of the normal form."""
    high = ends[form.columns] / form.scale * (1.0 + SHAVED)
    return cluster_relaxation.BoxEnds(-high, high)


@dataclass(frozen=True, eq=False)
class NodeAnswer:
    """A point of a node's relaxation with its own dual value, weights and scores of all columns."""

    dual: float
    b: FloatArray
    z: FloatArray
    h: FloatArray


class ClusterRelaxation:
    """Relaxations of nodes on the columns that matter, with dual values over all of them."""

    def __init__(self, form: NormalForm, size: int, box: cluster_relaxation.BoxEnds | None = None) -> None:
        everywhere = np.full(form.m, np.inf)
        self.form, self.size, self.box = form, size, box or cluster_relaxation.BoxEnds(-everywhere, everywhere)

    def solve(
        self, cluster: IntArray, asked: int, start: FloatArray, stop: Accuracy, expired: Callable[[], bool]
    ) -> NodeAnswer:
        """Maximise the dual of a node.

        Parameters
        ----------
        cluster : (m,) array
            OUT, NO_CLUSTER or the number of a cluster.
        asked : int
            Clusters.
        start : (m,) array
            Warm start.
        stop : Accuracy
            `steps` counts those of one round.
        expired : callable
            True ends it with the best value so far.
        """
        active = np.flatnonzero(cluster != OUT)
        b = np.where(cluster == OUT, 0.0, start)
        point = self._value(active, cluster, asked, b, np.zeros_like(b))
        first_part = self._first_part(active, cluster, point)
        for _ in range(SET_ROUNDS):
            if point.dual >= stop.bar or expired():
                break
            b, primal, z = self._on_part(first_part, cluster, asked, b, (stop, expired))
            value = self._value(active, cluster, asked, b, z)
            point = value if value.dual > point.dual else point
            if point.dual >= stop.bar or primal - value.dual <= stop.near * max(stop.bar - value.dual, 0.0):
                break
            more = self._missing(active, first_part, cluster, asked, value)
            if not len(more):
                break
            first_part = np.union1d(first_part, more)
        return point

    def _first_part(self, active: IntArray, cluster: IntArray, found: NodeAnswer) -> IntArray:
        least, beside = PART
        active_now = (found.b[active] != 0.0) | (cluster[active] >= 0)
        most = max(least, int(beside * np.count_nonzero(active_now)), 2 * self.size)
        if most >= 0.7 * len(active):
            return active
        order = np.argsort(-np.where(active_now, np.inf, found.h[active]), kind="stable")
        return np.sort(active[order[:most]])

    def _missing(self, active: IntArray, part: IntArray, cluster: IntArray, asked: int, value: NodeAnswer) -> IntArray:
        """Columns outside of a part that its relaxation should have had."""
        if len(part) == len(active) or asked == self.size:
            return active[:0]
        inside = np.zeros(self.form.m, dtype=bool)
        inside[part] = True
        choice = self.choice(part, cluster, asked)
        level = cluster_relaxation.best_choice(np.ascontiguousarray(value.h[part]), choice).least
        outside = active[~inside[active]]
        outside = outside[value.h[outside] > level]
        return outside[np.argsort(-value.h[outside], kind="stable")[: max(len(part) // 2, 50)]]

    def choice(self, columns: IntArray, cluster: IntArray, asked: int) -> cluster_relaxation.ClusterChoice:
        """Return the supports of a node as the kernels take them."""
        return cluster_relaxation.ClusterChoice(
            cluster[columns], asked, self.size, cluster_relaxation.NO_MOST, cluster_relaxation.NO_TERM
        )

    def _value(self, active: IntArray, cluster: IntArray, asked: int, b: FloatArray, z: FloatArray) -> NodeAnswer:
        """Evaluate the dual of a point over all columns of a node."""
        slope, h = np.empty(self.form.m), np.empty(self.form.m)
        quad = cluster_relaxation.product(self.form.G, b, slope)
        cluster_relaxation.scores(self.form.c - slope, self.box, h)
        total = cluster_relaxation.best_choice(
            np.ascontiguousarray(h[active]), self.choice(active, cluster, asked)
        ).total
        return NodeAnswer(float(self.form.yy - quad - total), b, z, h)

    def _on_part(
        self, part: IntArray, cluster: IntArray, asked: int, start: FloatArray, how: tuple[Accuracy, Callable[[], bool]]
    ) -> tuple[FloatArray, float, FloatArray]:
        form, (stop, expired) = self.form, how
        whole = len(part) == form.m
        G = form.G if whole else np.ascontiguousarray(form.G[np.ix_(part, part)])
        small = Form(G, np.ascontiguousarray(form.c[part]), form.yy, form.steepest)
        box = cluster_relaxation.BoxEnds(self.box.lo[part], self.box.hi[part])
        choice = self.choice(part, cluster, asked)
        b, best_b, best_z = np.ascontiguousarray(start[part]), np.empty(len(part)), np.empty(len(part))
        steps = int(max(20, min(stop.steps, SLICE_WORK / len(part) ** 2)))
        primal, steps_left = np.inf, stop.steps
        while steps_left > 0:
            _, value, taken = cluster_relaxation.descend(
                small, box, choice, stop._replace(steps=min(steps, steps_left)), b, best_b, best_z
            )
            primal, steps_left = min(primal, value), steps_left - steps
            if taken < steps or expired():
                break
        point, weights = np.zeros(form.m), np.zeros(form.m)
        point[part], weights[part] = best_b, best_z
        return point, float(primal), weights


ROOT_ACCURACY, ROOT_STEPS = 0.1, 300  # of a relaxation that will not close its node: of what is left to the bar
NEAR_OF_MANY, STEPS_OF_MANY = 1e-4, 5_000  # the same of many columns, steps of a round


@dataclass(frozen=True, eq=False)
class Root:
    """A point of the relaxation of all columns with its dual value, rounding not yet taken off.

    Attributes
    ----------
    dual : float
    b, h : (m,) arrays
        The point and what each column adds to its dual value, in the columns of the normal form.
    """

    dual: float
    b: FloatArray
    h: FloatArray

    def status(self, size: int, bar: float) -> NDArray[np.int8]:
        """(m,) what supports of `size` columns with f at most `bar` have in common: FREE, INSIDE or DROPPED."""
        m = len(self.b)
        status = np.zeros(m, dtype=np.int8)
        if self.dual < bar:
            screen(self.h, m, np.arange(m), size, bar - self.dual, status)
        return status


def solve_root(
    form: NormalForm,
    size: int,
    bar: float,
    start: FloatArray,
    expired: Callable[[], bool],
    box: cluster_relaxation.BoxEnds | None = None,
    near: float = ROOT_ACCURACY,
    steps: int = ROOT_STEPS,
) -> Root:
    """Solve the relaxation of a size until it passes `bar`, or well enough to branch.

    Parameters
    ----------
    form : NormalForm
        A curved one.
    size : int
        0 < size < m.
    bar : float
        Supports above it are of no interest.
    start : (m,) array
        A point to start from: zero, or the solution of a neighbouring size.
    expired : callable
        True ends it with the best dual value so far.
    box : BoxEnds, optional
        Assumed ends of the coefficients.
    near, steps : float, int
        Accuracy, of what is left to the bar, and steps, where columns are not many.
    """
    m = form.m
    if m > MANY or box is not None:
        everywhere, stop = (
            np.full(m, cluster_relaxation.NO_CLUSTER, dtype=np.int64),
            Accuracy(bar, NEAR_OF_MANY, STEPS_OF_MANY),
        )
        point = ClusterRelaxation(form, size, box).solve(everywhere, 0, start, stop, expired)
        return Root(point.dual, point.b, point.h)
    free = np.arange(m)
    b, g, best_b, best_g = start.copy(), np.zeros(m), np.zeros(m), np.zeros(m)
    dual, _, _ = relax(form.quadratic, Node(free, 0, free, m, size), Accuracy(bar, near, steps), b, g, best_b, best_g)
    return Root(float(dual), best_b, best_g**2)
