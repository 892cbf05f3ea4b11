"""Normal form of a best-subset problem, `M = G + w I` with w = 1 or 0, and the relaxation at the root of its tree.

M is the Gram matrix of scaled columns plus the penalty, and G is positive semidefinite. All trees and relaxations use
the normal form. If there are many columns, the relaxation at the root is solved completely: its solution then screens
out more columns, and all further work uses only the remaining columns.
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
from sparsecv_mio.kernels.nodes import Accuracy, Copies, Form, Margin, Node, screen
from sparsecv_mio.problem.problem import SparseProblem, own_part
from sparsecv_mio.thresholds import MANY
from sparsecv_mio.units import KEEP_RTOL, ROUNDING, SHAVED

Value = TypeVar("Value", float, FloatArray)

OWN_PART_COLUMNS = (37, MANY)  # minimum and maximum number of columns for which the diagonal w includes `own_part`
SHARP_STEPS = 15  # number of Newton steps from a valid diagonal to a sharper one
POWER_STEPS, POWER_GROWTH = 30, 1.01  # power iterations for the largest eigenvalue, and minimum growth of a step
WIDEST_RATIO = 1e12  # condition number of M beyond which the penalty is too small for any bound


@dataclass(frozen=True, eq=False)
class NormalForm:
    """The problem `min yy - c_S' M_S^{-1} c_S` over the columns that vary in training, each divided by the root of w.

    The diagonal w (the curvature) is any with `M - diag(w)` positive semidefinite. So in the new units `M - I` is
    semidefinite, and every w of theory section 4 becomes 1. If the penalty is too small for such a w (`curved` is
    False), columns are divided by `M_jj ** 0.5`, and the bounds that need w are switched off.

    Attributes
    ----------
    columns : (m,) int array
        Columns of the problem that vary in training. The others have the coefficient zero in every optimum, and an
        optimum that contains one predicts like the same optimum without it.
    scale : (m,) array
        Factors by which the columns were multiplied.
    G : (m, m) array
        Matrix `M - I` (M itself if not curved).
    c : (m,) array
        Products of columns and target.
    yy : float
        Squared length of the target.
    curved : bool
        True if a valid diagonal was found.
    largest : float
        Upper bound on the largest eigenvalue of G.
    keep, slack : float
        Margin for the rounding of the trees, from the condition of M: supports up to `best (1 + keep) + slack` must be
        refitted before one is called optimal.
    copy_prev, copy_next : (m,) int arrays
        Previous and next duplicate of each column, or -1.
    kept : dict
        Stored results of the problem at this gamma, in its own units.
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
        """The problem in the form that kernels take; for curved forms."""
        return Form(self.G, self.c, self.yy, max(self.largest, 1e-12))

    @cached_property
    def steepest(self) -> float:
        """Estimate of the largest eigenvalue of G, slightly too large; not a bound. O(m^2)."""
        v, norm = np.random.default_rng(0).standard_normal(self.m), 0.0
        v /= np.linalg.norm(v)
        for _ in range(POWER_STEPS):
            v = self.G @ v
            before, norm = norm, float(np.linalg.norm(v))
            if not norm > before * POWER_GROWTH:
                break
            v /= norm
        return max(1.06 * norm, 1e-12)

    def raise_cutoff(self, value: Value) -> Value:
        """Return the cutoff, or several, up to which supports are kept, given the best values."""
        return value * (1.0 + self.keep) + self.slack

    @property
    def copies(self) -> Copies:
        """Neighbouring duplicate columns in the form that kernels take."""
        return Copies(self.copy_prev, self.copy_next)

    @property
    def margin(self) -> Margin:
        """Margin above the best value up to which supports are kept."""
        return Margin(self.keep, self.slack)

    def matrix(self) -> FloatArray:
        """Return the (m, m) matrix M."""
        out = self.G.copy()
        if self.curved:
            out.flat[:: self.m + 1] += 1.0
        return out

    def solve_all_columns(self) -> tuple[FloatArray, FloatArray, float]:
        """Return `(M^{-1}, M^{-1} c, f of all columns)`, for trusted forms.

        The inverse is symmetric to the last bit. The trees eliminate by rows only, so an asymmetry left by the
        inversion would grow with the square of the condition number instead of the condition number.
        """
        M = self.matrix()
        V = np.linalg.inv(M)
        V = 0.5 * (V + V.T)
        beta = np.asarray(np.linalg.solve(M, self.c), dtype=float)
        return V, beta, float(self.yy - self.c @ beta)

    @property
    def is_trusted(self) -> bool:
        """True if the arithmetic of the trees is accurate enough for pruning."""
        return self.keep < 0.1


def normal_form(problem: SparseProblem) -> NormalForm:
    """Return a problem in normal form. O(q^2) in addition to the stored spectrum."""
    columns = np.flatnonzero(problem.squares).astype(np.int64)  # the other columns are constant
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
        sound = bool(np.all(own > 0.0))  # otherwise elimination has left only rounding errors
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
    rounding = 50.0 * ROUNDING * condition
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
    """Return an upper bound on the largest eigenvalue of G, by the trace of its first part or by the spectrum of Q."""
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

    It is the mean of `own_part` and of the penalty plus the smallest eigenvalue. On diabetes64, perspective trees have
    2 to 6 times fewer nodes with the mean than with that sum alone. For small problems, the sum alone takes less time.
    """
    uniform = penalty + smallest
    if not OWN_PART_COLUMNS[0] <= len(penalty) <= OWN_PART_COLUMNS[1]:
        return uniform
    own = own_part(Q + np.diag(penalty))
    return uniform if own is None else np.asarray(0.5 * (uniform + own))


def _chained_copies(copy_of: NDArray[np.intp] | None, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Return the previous and the next duplicate of each of `columns`."""
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


OUT = -2  # cluster number of a dropped column
SLICE_WORK = 1e9  # multiplications between two checks of the clock
PART = (200, 1.5)  # first working set of a relaxation: minimum size, and size per column with a weight
SET_ROUNDS = 12  # maximum number of rounds in which the working set grows


def make_box(form: NormalForm, ends: FloatArray) -> cluster_relaxation.BoxEnds:
    """Return the box of coefficients within plus or minus `ends` (q,), in the units of the normal form."""
    high = ends[form.columns] / form.scale * (1.0 + SHAVED)
    return cluster_relaxation.BoxEnds(-high, high)


@dataclass(frozen=True, eq=False)
class NodeAnswer:
    """A point of the relaxation of a node, with its dual value and the weights and scores of all columns."""

    dual: float
    b: FloatArray
    z: FloatArray
    h: FloatArray


class ClusterRelaxation:
    """Relaxations of nodes, solved on working sets of columns, with dual values over all columns."""

    def __init__(self, form: NormalForm, size: int, box: cluster_relaxation.BoxEnds | None = None) -> None:
        everywhere = np.full(form.m, np.inf)
        self.form, self.size, self.box = form, size, box or cluster_relaxation.BoxEnds(-everywhere, everywhere)

    def solve(
        self, cluster: IntArray, asked: int, start: FloatArray, stop: Accuracy, is_expired: Callable[[], bool]
    ) -> NodeAnswer:
        """Maximise the dual value of a node.

        Parameters
        ----------
        cluster : (m,) array
            OUT, NO_CLUSTER or the cluster number of each column.
        asked : int
            Number of required clusters.
        start : (m,) array
            Point to start from.
        stop : Accuracy
            Stopping rule; its `steps` limit one round.
        is_expired : callable
            Function that returns True to end with the best value so far.
        """
        active = np.flatnonzero(cluster != OUT)
        b = np.where(cluster == OUT, 0.0, start)
        point = self._value(active, cluster, asked, b, np.zeros_like(b))
        first_part = self._first_part(active, cluster, point)
        for _ in range(SET_ROUNDS):
            if point.dual >= stop.bar or is_expired():
                break
            b, primal, z = self._on_part(first_part, cluster, asked, b, (stop, is_expired))
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
        """Return columns outside of the working set that should join it."""
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
        """Return the supports of a node in the form that kernels take."""
        return cluster_relaxation.ClusterChoice(
            cluster[columns], asked, self.size, cluster_relaxation.NO_MOST, cluster_relaxation.NO_TERM
        )

    def _value(self, active: IntArray, cluster: IntArray, asked: int, b: FloatArray, z: FloatArray) -> NodeAnswer:
        """Return the dual value of a point over all columns of a node."""
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
        form, (stop, is_expired) = self.form, how
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
            if taken < steps or is_expired():
                break
        point, weights = np.zeros(form.m), np.zeros(form.m)
        point[part], weights[part] = best_b, best_z
        return point, float(primal), weights


ROOT_ACCURACY, ROOT_STEPS = 0.1, 300  # accuracy of a root, as a share of its distance from the cutoff; maximum steps
NEAR_OF_MANY, STEPS_OF_MANY = 1e-4, 5_000  # the same for many columns; maximum steps of a round


@dataclass(frozen=True, eq=False)
class Root:
    """A point of the relaxation of all columns with its dual value, from which no rounding is subtracted yet.

    Attributes
    ----------
    dual : float
        Dual value.
    b, h : (m,) arrays
        Point, and contribution of each column to its dual value, in the columns of the normal form.
    """

    dual: float
    b: FloatArray
    h: FloatArray

    def status(self, size: int, bar: float) -> NDArray[np.int8]:
        """Return (m,) FREE, INSIDE or DROPPED, the status of columns in supports of a size with f up to the cutoff."""
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
    is_expired: Callable[[], bool],
    box: cluster_relaxation.BoxEnds | None = None,
    near: float = ROOT_ACCURACY,
    steps: int = ROOT_STEPS,
) -> Root:
    """Solve the relaxation of a size until its dual value exceeds the cutoff, or accurately enough to branch.

    Parameters
    ----------
    form : NormalForm
        Curved form.
    size : int
        Size, 0 < size < m.
    bar : float
        Cutoff: supports above it are not needed.
    start : (m,) array
        Point to start from: zero, or the solution of a neighbouring size.
    is_expired : callable
        Function that returns True to end with the best dual value so far.
    box : BoxEnds, optional
        Assumed bounds on the coefficients.
    near, steps : float, int
        Accuracy, as a share of the distance from the cutoff, and maximum number of steps, if columns are not many.
    """
    m = form.m
    if m > MANY or box is not None:
        everywhere, stop = (
            np.full(m, cluster_relaxation.NO_CLUSTER, dtype=np.int64),
            Accuracy(bar, NEAR_OF_MANY, STEPS_OF_MANY),
        )
        point = ClusterRelaxation(form, size, box).solve(everywhere, 0, start, stop, is_expired)
        return Root(point.dual, point.b, point.h)
    free = np.arange(m)
    b, g, best_b, best_g = start.copy(), np.zeros(m), np.zeros(m), np.zeros(m)
    dual, _, _ = relax(form.quadratic, Node(free, 0, free, m, size), Accuracy(bar, near, steps), b, g, best_b, best_g)
    return Root(float(dual), best_b, best_g**2)
