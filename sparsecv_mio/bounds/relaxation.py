"""The perspective relaxation (P) of one best-subset problem for every tau, with lower bounds from its dual (D).

The problem is the best-subset problem of one fold or of the full data, at one gamma. Columns are divided by the square
roots of the diagonal of the matrix M, so that M has a unit diagonal. A diagonal w is given for which `M - diag(w)` is
positive semidefinite. Kernels multiply these columns by `1 / sqrt(w)` to obtain the normal form of the problem. Trees
compute the normal form directly from the problem (`trees.normal_form`). docs/notation.md lists all coordinate systems.

Consider all supports whose objective is at most the objective of the incumbent (the best known support). Screening
(`screen_by_relaxation`) includes the columns that are in all of these supports, and excludes the columns that are in
none of them (safe screening; docs/theory/bounds.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.data.standard import subtract_means
from sparsecv_mio.kernels import reduced_forms
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Fold, Node, Rounding, absolute, screen, size_of_candidates
from sparsecv_mio.kernels.nodes import allowance as kernel_allowance
from sparsecv_mio.kernels.reduced_forms import SHARP_COLUMNS, SHARPNESS, normalise
from sparsecv_mio.kernels.starts import unit_form
from sparsecv_mio.problem.problem import SHARES, SparseProblem
from sparsecv_mio.trees.normal_form import SHARP_STEPS
from sparsecv_mio.units import ROUNDING, SHAVED

CONSTANT_COLUMN = 1e-30  # spread / squared mean, for each row, up to which a column counts as constant in training
SOUND = 4.0  # minimum entry of a diagonal found by factorisations, in roundings of M for each column
WARM_STEPS = 3  # number of Newton steps from a neighbour's diagonal


class Diagonal(StrEnum):
    """Choice of the valid diagonal w under M that the perspective takes, see :mod:`sparsecv_mio.problem.problem`."""

    PENALTY = "penalty"  # lam w_j, as in the papers
    SHIFTED = "shifted"  # the penalty plus the smallest eigenvalue of Q
    SHARP = "sharp"  # nearly the largest sum of logarithms


@dataclass(frozen=True, eq=False)
class UnitDiagonal:
    """The problem `min yy - 2 c'b + b'M b` with every column divided by the square root of its `M_jj`.

    Attributes
    ----------
    dead : (m,) bool array
        Columns that are constant in training. These columns and their coefficients are zero here. They stay in the
        problem: a support that contains such a column counts as a smaller support, which may tie.
    scale : (m,) array
        Factors `beta_j = scale_j b_j` with beta in the units of the problem.
    M, c, yy : (m, m) with unit diagonal, (m,), float
        Moments.
    w : (m,) array
        Diagonal with `M - diag(w)` positive semidefinite (docs/theory/bounds.md, section 2).
    rounding : float
        Unit of the rounding allowance (docs/theory/bounds.md, section 7).
    """

    dead: BoolArray
    scale: FloatArray
    M: FloatArray
    c: FloatArray
    yy: float
    w: FloatArray
    rounding: float

    @property
    def m(self) -> int:
        """Number of columns."""
        return int(self.c.shape[0])

    @property
    def diagonal(self) -> FloatArray:
        """The (m,) diagonal w in the units of the problem: `Q + diag(penalty) - diag(diagonal)` is semidefinite."""
        return np.asarray(self.w / self.scale**2)

    def fold(self, X: FloatArray, u: FloatArray) -> Fold:
        """Return the problem in the form that kernels take, with held-out rows in these units."""
        return Fold(self.M, self.c, self.yy, self.w, X, u)

    def rows(
        self, problem: SparseProblem, V: FloatArray, r: FloatArray, root: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return held-out rows about the training means in these units, and targets: the residual of b is `u - X b`.

        Parameters
        ----------
        problem : SparseProblem
            Problem from which the form was made.
        V, r : (N, q), (N,) arrays
            Rows and targets in standard coordinates.
        root : (N,) array, optional
            Square roots of the weights of these rows; None if each counts once.

        Returns
        -------
        X, u : (N, q), (N,) arrays
            Rows and targets.
        """
        V, u = subtract_means(V, r, root, problem.v_mean, problem.r_mean)
        X = V * np.where(self.dead, 0.0, self.scale)
        return np.ascontiguousarray(X), np.asarray(u, dtype=float)


def rounding_unit(problem: SparseProblem) -> float:
    """Return the unit of the rounding allowance, for sums over n rows followed by arithmetic on q columns.

    Examples
    --------
    >>> from sparsecv_mio.problem.problem import SparseProblem
    >>> one = SparseProblem(np.eye(1), np.ones(1), 1.0, np.ones(1), 0.5, 9, np.zeros(1), 0.0)
    >>> rounding_unit(one) < 1e-13
    True
    """
    return ROUNDING * (problem.n + 4 * problem.q + 64)


def centring_loss(n: float, longest: float, r_mean: float, yy: float) -> float:
    """Return the factor by which centring on the training means raises the rounding unit.

    A mean is known up to its relative rounding, so a length about the mean is known up to `sqrt(n) |mean|` times this
    relative rounding. This is large if a column or the target is nearly constant on the training rows.

    Parameters
    ----------
    n : float
        Total weight of the training rows.
    longest : float
        Largest ratio of a column's training mean to its length.
    r_mean, yy : float
        Training mean of the target, and its squared length about the mean.

    Examples
    --------
    >>> centring_loss(4, 2.0, 0.0, 1.0)
    5.0
    """
    ratio = max(longest, abs(r_mean) / math.sqrt(yy)) if yy > 0.0 else longest
    return 1.0 + math.sqrt(n) * ratio


def held_out_loss(root: FloatArray | None, total: float) -> float:
    """Return the factor by which heavy held-out rows raise the rounding unit.

    The means that are subtracted from these rows, multiplied by `root`, are known to a rounding of `length /
    sqrt(total)`. The unit covers this unless a row has a larger weight than all training rows together.

    Parameters
    ----------
    root : (N,) array or None
        Square roots of the weights of the held-out rows; None if each counts once.
    total : float
        Total weight of the training rows.

    Examples
    --------
    >>> held_out_loss(np.array([1.0, 6.0]), 4.0), held_out_loss(None, 2.0)
    (3.0, 1.0)
    """
    return 1.0 if root is None else max(1.0, float(root.max(initial=0.0)) / math.sqrt(total))


def unit_diagonal(
    problem: SparseProblem, near: FloatArray | None = None, diagonal: Diagonal = Diagonal.SHARP
) -> UnitDiagonal | None:
    """Return a problem with unit diagonal M and a valid diagonal w.

    Parameters
    ----------
    problem : SparseProblem
        Problem of one training set.
    near : (q,) array, optional
        Diagonal of a similar problem (all rows, another fold) in the units of the problem, to start from.
    diagonal : Diagonal
        Choice of the diagonal.

    Returns
    -------
    UnitDiagonal or None
        The form; None if M is singular to rounding, so that nothing can be proved.

    Notes
    -----
    O(q^3): a few factorisations. Beyond 300 columns the diagonal is not sharpened.
    """
    M, c, scale, dead, longest = unit_form(
        problem.Q, problem.penalty, problem.c, problem.v_mean, CONSTANT_COLUMN * problem.total
    )
    loss = centring_loss(problem.total, longest, problem.r_mean, problem.yy)
    if problem.own_squares is not None and problem.yy > 0.0:
        loss *= max(problem.shrinkage, problem.size / problem.yy)
    w: FloatArray | None
    if diagonal is Diagonal.SHARP and len(M) <= SHARP_COLUMNS:
        w = _sharp(M, None if near is None else near * scale**2)
    else:
        smallest = 0.0 if dead.any() or diagonal is Diagonal.PENALTY else problem.spectrum()[0]
        w = (problem.penalty + smallest) * scale**2 * (1.0 - SHAVED)
    rounding = rounding_unit(problem) * loss
    # a curvature of Q below the rounding of M is not reliable, but the penalty is valid whatever the rounding
    least = 0.0 if diagonal is Diagonal.PENALTY else SOUND * problem.q * rounding
    if w is None or (len(w) and not w.min() > least):
        return None
    return UnitDiagonal(dead, scale, M, c, problem.yy, w, rounding)


def _sharp(M: FloatArray, near: FloatArray | None) -> FloatArray | None:
    """Return the sharpened diagonal, starting from a neighbour's if that is still valid."""
    if near is not None:
        for share in SHARES:
            w = share * near
            if reduced_forms.sharpen(M, w, SHARPNESS, WARM_STEPS) >= 0:
                return w
    w = np.empty(len(M))
    if not reduced_forms.fill_valid_diagonal(M, 0.9, w):
        return None
    reduced_forms.sharpen(M, w, SHARPNESS, SHARP_STEPS)
    return w


RELAXATION_STEPS = 20_000


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A point of the relaxation with its dual value.

        D(beta) = yy - beta'G beta - (sum of the tau largest g_j^2 / w_j),     G = M - diag(w),  g = c - G beta

    Attributes
    ----------
    tau : int
        Size of the supports.
    beta, slope, w : (q,) arrays
        The point, g and w in the units of the problem.
    dual : float
        D minus the rounding allowance: a lower bound of f of every support of size tau.
    primal : float
        Value of the relaxation at the best point seen; at least its minimum, not a bound on f.
    steps : int
        Number of steps.
    """

    tau: int
    beta: FloatArray
    slope: FloatArray
    w: FloatArray
    dual: float
    primal: float
    steps: int

    @property
    def gap(self) -> float:
        """Relative gap `(primal - dual) / primal` to which the relaxation is solved."""
        return (self.primal - self.dual) / self.primal if self.primal > 0.0 else 0.0


def relax_problem(
    problem: SparseProblem, taus: Sequence[int], *, diagonal: Diagonal = Diagonal.SHARP, accuracy: float = 1e-6
) -> list[Relaxation]:
    """Return solutions of the relaxation for every tau, computed in the given order; rising orders are fastest.

    Parameters
    ----------
    problem : SparseProblem
        Problem of one training set.
    taus : sequence of int
        Sizes.
    diagonal : Diagonal
        Diagonal that the perspective takes from M; all are valid, `sharp` is the tightest.
    accuracy : float
        Relative gap between primal and dual at which to stop.

    Returns
    -------
    list of Relaxation
        A solution for each tau.

    Raises
    ------
    ValueError
        If M is singular to rounding.

    Examples
    --------
    The counterexample of docs/theory.md, section 2 (X = I, y = (3/2, 3/2), lam = 1) has zeta = 3.

    >>> problem = SparseProblem(np.eye(2), np.full(2, 1.5), 4.5, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> round(relax_problem(problem, [1], diagonal=Diagonal.PENALTY)[0].dual, 6)
    3.0
    """
    form = unit_diagonal(problem, diagonal=diagonal)
    if form is None:
        raise ValueError(
            "the Gram matrix plus the penalty is singular up to rounding; give a larger gamma or drop dependent columns"
        )
    return relax_form(form, taus, accuracy=accuracy)


def relax_form(form: UnitDiagonal, taus: Sequence[int], *, accuracy: float = 1e-6) -> list[Relaxation]:
    """Return solutions of the relaxation of a given form for every tau.

    Parameters
    ----------
    form : UnitDiagonal
        Problem with unit diagonal.
    taus : sequence of int
        Sizes.
    accuracy : float
        Relative gap between primal and dual at which to stop.
    """
    normal, m = normalise(form.fold(np.zeros((0, form.m)), np.zeros(0))), form.m
    unit, free, dual, point = form.scale * normal.root, np.arange(m), np.inf, np.zeros(m)
    solved: dict[int, Relaxation] = {}
    for tau in (tau for tau in taus if 0 < tau < m):
        # the value is not known in advance: half of the previous one sets the first goal
        goal = 0.5 * accuracy * dual if solved else 1e-3 * accuracy * form.yy
        start, g, slope, dual, primal, steps = point.copy(), np.zeros(m), np.zeros(m), -np.inf, np.inf, 0
        while steps < RELAXATION_STEPS:
            stop, point = absolute(form.yy, goal, RELAXATION_STEPS - steps), np.zeros(m)
            lower, upper, taken = relax(normal.form, Node(free, 0, free, m, tau), stop, start, g, point, slope)
            dual, primal, steps = max(dual, lower), min(primal, upper), steps + max(taken, 1)
            start = point.copy()
            if primal - dual <= accuracy * primal or goal <= 1e-13 * form.yy:
                break
            goal = max(0.5 * accuracy * max(dual, 0.0), 1e-13 * form.yy)
        lower = float(dual) - comparison_allowance(form, tau, point * normal.root)
        solved[tau] = Relaxation(tau, point * unit, slope / unit, form.diagonal, lower, float(primal), int(steps))
    return [solved[tau] if tau in solved else _ridge_alone(form, tau) for tau in taus]


def _ridge_alone(form: UnitDiagonal, tau: int) -> Relaxation:
    """Return the ridge fit itself, the solution for no column or all columns."""
    b = np.asarray(np.linalg.solve(form.M, form.c)) if tau else np.zeros(form.m)
    g = form.c - form.M @ b + form.w * b
    value = float(form.yy - form.c @ b)
    lower = value - comparison_allowance(form, tau, b)
    return Relaxation(tau, b * form.scale, g / form.scale, form.diagonal, lower, value, 0)


def comparison_allowance(form: UnitDiagonal, tau: int, b: FloatArray) -> float:
    """Return the rounding allowance of a comparison of D at a point with f (docs/theory/bounds.md, section 7).

    Parameters
    ----------
    form : UnitDiagonal
        Problem with unit diagonal.
    tau : int
        Size of the supports.
    b : (m,) array
        Point in units of the form.
    """
    prior = size_of_candidates(form.yy, 1.0 / form.w, min(max(tau, 0), form.m))
    return float(kernel_allowance(Rounding(form.rounding, prior, 0.0, np.ones(form.m)), b))


def screen_by_relaxation(relaxation: Relaxation, ubar: float) -> NDArray[np.int8]:
    """Return the status of columns by the dual point of a relaxation, valid for its tau only.

        d = g^2 / w,    d_(tau) - d_i > ubar - D  =>  i in no support,    d_i - d_(tau+1) > ubar - D  =>  i in every one

    Optima of two tau need not be nested.

    Parameters
    ----------
    relaxation : Relaxation
        Any point with its own dual value; it need not be optimal.
    ubar : float
        Objective f of a known support, rounded up.

    Returns
    -------
    (q,) int8 array
        INSIDE if a column is in every optimum, DROPPED if it is in none, else FREE (:mod:`.kernels.nodes`).

    Examples
    --------
    >>> from sparsecv_mio.bounds.relaxation import relax_problem
    >>> from sparsecv_mio.problem.problem import SparseProblem
    >>> c = np.array([3.0, 0.1])
    >>> problem = SparseProblem(np.eye(2), c, 9.01, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> found = screen_by_relaxation(relax_problem(problem, [1])[0], ubar=4.51)
    >>> (found == INSIDE).tolist(), (found == DROPPED).tolist()
    ([True, False], [False, True])
    """
    tau, q = relaxation.tau, len(relaxation.beta)
    status = np.full(q, DROPPED if tau == 0 else INSIDE if tau >= q else FREE, dtype=np.int8)
    if 0 < tau < q:
        room = max(ubar - relaxation.dual, 0.0)
        screen(relaxation.slope**2 / relaxation.w, q, np.arange(q), tau, room, status)
    return status
