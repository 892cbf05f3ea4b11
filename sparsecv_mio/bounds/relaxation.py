"""The perspective relaxation (P) of one problem for every tau, certified by the dual value (D) of its own point.

The problem is one fold, or all rows, at one gamma, in columns over the root of M_jj, so with unit diagonal, and with a
valid diagonal w under M. The kernels go from here to their own normal form, of the columns that are left: times
`1 / sqrt(w)`; that of the trees (`trees.normal_form`) divides by this root at once. All coordinates are in
docs/notation.md.

`screened` is safe screening by it: columns that are in every, or in no, support as good as the incumbent
(docs/theory/bounds.md 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.data.standard import about_means
from sparsecv_mio.kernels import reduced_forms
from sparsecv_mio.kernels import screening as kernel
from sparsecv_mio.kernels.node_relaxation import Solved, relax_sizes
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Fold, Rounding, size_of_candidates
from sparsecv_mio.kernels.nodes import allowance as kernel_allowance
from sparsecv_mio.kernels.reduced_forms import SHARP_COLUMNS, SHARPNESS, normalise
from sparsecv_mio.kernels.starts import unit_form
from sparsecv_mio.problem.problem import SHARES, SparseProblem, shifted
from sparsecv_mio.trees.normal_form import SHARP_STEPS
from sparsecv_mio.units import SHAVED

CONSTANT_COLUMN = 1e-30  # spread over the squared mean, a row, that is the rounding of the mean: constant in training
SOUND = 4.0  # roundings of M, a column, that an entry of a diagonal found by factorisations has to exceed
WARM_STEPS = 3  # of Newton from a neighbour's diagonal


class Diagonal(StrEnum):
    """Which valid diagonal w under M the perspective takes, see :mod:`sparsecv_mio.problem.problem`."""

    PENALTY = "penalty"  # lam w_j, as in the papers
    SHIFTED = "shifted"  # that and the smallest eigenvalue of Q
    SHARP = "sharp"  # about the largest sum of logarithms


@dataclass(frozen=True, eq=False)
class UnitDiagonal:
    """`min yy - 2 c'b + b'M b` with every column divided by the root of its `M_jj`.

    Attributes
    ----------
    dead : (m,) bool array
        Columns that are constant in training: zero here, and so is their coefficient. They keep their place: a support
        that holds one counts as a smaller support, which may tie.
    scale : (m,) array
        `beta_j = scale_j b_j` with beta in the units of the problem.
    M, c, yy : (m, m) with unit diagonal, (m,), float
    w : (m,) array
        `M - diag(w)` is positive semidefinite (docs/theory/bounds.md 2).
    rounding : float
        Unit of the rounding allowance (docs/theory/bounds.md 7).
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
        """(m,) w in the units of the problem: `Q + diag(penalty) - diag(diagonal)` is semidefinite."""
        return np.asarray(self.w / self.scale**2)

    def fold(self, X: FloatArray, u: FloatArray) -> Fold:
        """Return what the kernels are given, with held-out rows in these units."""
        return Fold(self.M, self.c, self.yy, self.w, X, u)

    def rows(
        self, problem: SparseProblem, V: FloatArray, r: FloatArray, root: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Held-out rows about the training means in these units, and their targets: the residual of b is `u - X b`.

        Parameters
        ----------
        problem : SparseProblem
            The one that the form was made of.
        V, r : (N, q), (N,) arrays
            In standard coordinates.
        root : (N,) array, optional
            Roots of the weights of these rows; None where each counts once.

        Returns
        -------
        X, u : (N, q), (N,) arrays
        """
        V, u = about_means(V, r, root, problem.v_mean, problem.r_mean)
        X = V * np.where(self.dead, 0.0, self.scale)
        return np.ascontiguousarray(X), np.asarray(u, dtype=float)


def rounding_unit(problem: SparseProblem) -> float:
    """Return the unit of the rounding allowance: sums over n rows, then arithmetic on q columns.

    Examples
    --------
    >>> from sparsecv_mio.problem.problem import SparseProblem
    >>> one = SparseProblem(np.eye(1), np.ones(1), 1.0, np.ones(1), 0.5, 9, np.zeros(1), 0.0)
    >>> rounding_unit(one) < 1e-13
    True
    """
    return float(np.finfo(float).eps) * (problem.n + 4 * problem.q + 64)


def centring_loss(n: float, longest: float, r_mean: float, yy: float) -> float:
    """Factor by which centring on the training means raises the rounding unit.

    A mean is known to a rounding of itself, so a length about it to `sqrt(n) |mean|` of that: much where a column or
    the target is all but constant on the training rows.

    Parameters
    ----------
    n : float
        Training rows, by their weights.
    longest : float
        Largest ratio of a column's training mean to its length.
    r_mean, yy : float
        Training mean of the target, and its squared length about it.

    Examples
    --------
    >>> centring_loss(4, 2.0, 0.0, 1.0)
    5.0
    """
    ratio = max(longest, abs(r_mean) / math.sqrt(yy)) if yy > 0.0 else longest
    return 1.0 + math.sqrt(n) * ratio


def held_out_loss(root: FloatArray | None, total: float) -> float:
    """Return the factor by which heavy held-out rows raise the rounding unit.

    The means they are about are known to a rounding of `length / sqrt(total)`, which is taken off them `root` times:
    no more than what the unit allows for, unless a row weighs more than the training rows together.

    Parameters
    ----------
    root : (N,) array or None
        Roots of the weights of the held-out rows; None where each counts once.
    total : float
        Weight of the training rows together.

    Examples
    --------
    >>> held_out_loss(np.array([1.0, 6.0]), 4.0), held_out_loss(None, 2.0)
    (3.0, 1.0)
    """
    return 1.0 if root is None else max(1.0, float(root.max(initial=0.0)) / math.sqrt(total))


def unit_diagonal(
    problem: SparseProblem, near: FloatArray | None = None, diagonal: Diagonal = Diagonal.SHARP
) -> UnitDiagonal | None:
    """Divide the columns of a problem by the root of `M_jj` and find a valid diagonal.

    Parameters
    ----------
    problem : SparseProblem
    near : (q,) array, optional
        The diagonal of a similar problem (all rows, another fold) in the units of the problem, to start from.
    diagonal : Diagonal

    Returns
    -------
    UnitDiagonal or None
        None if M is singular to rounding: then nothing is known.

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
        w = shifted(problem.penalty, smallest) * scale**2 * (1.0 - SHAVED)
    rounding = rounding_unit(problem) * loss
    # M may have less than its rounding of its own; the penalty it has whatever the rounding
    least = 0.0 if diagonal is Diagonal.PENALTY else SOUND * problem.q * rounding
    if w is None or (len(w) and not w.min() > least):
        return None
    return UnitDiagonal(dead, scale, M, c, problem.yy, w, rounding)


def _sharp(M: FloatArray, near: FloatArray | None) -> FloatArray | None:
    """Return the sharpened diagonal, from a neighbour's where that is still valid."""
    if near is not None:
        for share in SHARES:
            w = share * near
            if reduced_forms.sharpen(M, w, SHARPNESS, WARM_STEPS) >= 0:
                return w
    w = np.empty(len(M))
    if not reduced_forms.dominated(M, 0.9, w):
        return None
    reduced_forms.sharpen(M, w, SHARPNESS, SHARP_STEPS)
    return w


RELAXATION_STEPS = 20_000


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A point of the relaxation with its own dual value.

        D(beta) = yy - beta'G beta - (sum of the tau largest g_j^2 / w_j),     G = M - diag(w),  g = c - G beta

    Attributes
    ----------
    tau : int
    beta, slope, w : (q,) arrays
        The point, g and w in the units of the problem.
    dual : float
        D less the rounding allowance: at most f of every support of size tau.
    primal : float
        Value of the relaxation at the best point seen; at least its minimum, no bound on f.
    steps : int
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
        """`(primal - dual) / primal`: how exactly the relaxation is solved."""
        return (self.primal - self.dual) / self.primal if self.primal > 0.0 else 0.0


def relax_problem(
    problem: SparseProblem, taus: Sequence[int], *, diagonal: Diagonal = Diagonal.SHARP, accuracy: float = 1e-6
) -> list[Relaxation]:
    """Solve the relaxation for every tau, in the order given; rising orders are the fastest.

    Parameters
    ----------
    problem : SparseProblem
    taus : sequence of int
    diagonal : Diagonal
        What the perspective takes from M; all are valid, `sharp` is the tightest.
    accuracy : float
        Relative gap between primal and dual to stop at.

    Returns
    -------
    list of Relaxation

    Raises
    ------
    ValueError
        If M is singular to rounding.

    Examples
    --------
    The counterexample of the documents (X = I, y = (3/2, 3/2), lam = 1): zeta = 3.

    >>> problem = SparseProblem(np.eye(2), np.full(2, 1.5), 4.5, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> round(relax_problem(problem, [1], diagonal=Diagonal.PENALTY)[0].dual, 6)
    3.0
    """
    form = unit_diagonal(problem, diagonal=diagonal)
    if form is None:
        raise ValueError("the matrix of the problem is singular to rounding")
    return relax_form(form, taus, accuracy=accuracy)


def relax_form(form: UnitDiagonal, taus: Sequence[int], *, accuracy: float = 1e-6) -> list[Relaxation]:
    """Solve the relaxation of a form at hand for every tau.

    Parameters
    ----------
    form : UnitDiagonal
    taus : sequence of int
    accuracy : float
        Relative gap between primal and dual to stop at.
    """
    inner = np.array([tau for tau in taus if 0 < tau < form.m], dtype=np.int64)
    normal = normalise(form.fold(np.zeros((0, form.m)), np.zeros(0)))
    root = normal.root
    T = len(inner)
    relaxations = Solved(
        np.zeros((T, form.m)), np.zeros((T, form.m)), np.zeros(T), np.zeros(T), np.zeros(T, dtype=np.int64)
    )
    if len(inner):
        relax_sizes(normal.form, inner, accuracy, RELAXATION_STEPS, np.zeros(form.m), relaxations)
    unit, diagonal = form.scale * root, form.diagonal
    solved: dict[int, Relaxation] = {}
    for tau, b, g, dual, primal, steps in zip(inner.tolist(), *relaxations, strict=True):
        lower = float(dual) - comparison_allowance(form, tau, b * root)
        solved[tau] = Relaxation(tau, b * unit, g / unit, diagonal, lower, float(primal), int(steps))
    return [solved[tau] if tau in solved else _ridge_alone(form, tau) for tau in taus]


def _ridge_alone(form: UnitDiagonal, tau: int) -> Relaxation:
    """No column or all of them: the ridge fit itself."""
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
    tau : int
        Size of the supports.
    b : (m,) array
        The point, in units of the form.
    """
    prior = size_of_candidates(form.yy, 1.0 / form.w, min(max(tau, 0), form.m))
    return float(kernel_allowance(Rounding(form.rounding, prior, 0.0, np.ones(form.m)), b))


def screened(relaxation: Relaxation, ubar: float) -> NDArray[np.int8]:
    """Fix columns by the dual point of a relaxation, for its tau only: optima of two tau need not nest.

        d = g^2 / w,    d_(tau) - d_i > ubar - D  =>  i in no support,    d_i - d_(tau+1) > ubar - D  =>  i in every one

    Parameters
    ----------
    relaxation : Relaxation
        Any point with its own dual value; it need not be optimal.
    ubar : float
        f of a known support, rounded up.

    Returns
    -------
    (q,) int8 array
        INSIDE where a column is in every optimum, DROPPED where it is in none, else FREE (:mod:`.kernels.nodes`).

    Examples
    --------
    >>> from sparsecv_mio.bounds.relaxation import relax_problem
    >>> from sparsecv_mio.problem.problem import SparseProblem
    >>> c = np.array([3.0, 0.1])
    >>> problem = SparseProblem(np.eye(2), c, 9.01, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> found = screened(relax_problem(problem, [1])[0], ubar=4.51)
    >>> (found == INSIDE).tolist(), (found == DROPPED).tolist()
    ([True, False], [False, True])
    """
    tau, q = relaxation.tau, len(relaxation.beta)
    status = np.full(q, DROPPED if tau == 0 else INSIDE if tau >= q else FREE, dtype=np.int8)
    if 0 < tau < q:
        room = max(ubar - relaxation.dual, 0.0)
        kernel.screen(relaxation.slope**2 / relaxation.w, q, np.arange(q), tau, room, status)
    return status
