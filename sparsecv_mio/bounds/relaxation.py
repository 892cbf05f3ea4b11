"""The perspective relaxation (P) of one problem for every tau, certified by the dual value (D) of its own point.

`screen` is safe screening by it: columns that are in every, or in no, support as good as the incumbent
(docs/theory/bounds.md 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.unit_diagonal import Diagonal, UnitDiagonal, unit_diagonal
from sparsecv_mio.kernels import screening as kernel
from sparsecv_mio.kernels.conic import allowance as kernel_allowance
from sparsecv_mio.kernels.conic import size_of_candidates
from sparsecv_mio.kernels.forms import Rounding
from sparsecv_mio.kernels.reduction import normalise
from sparsecv_mio.kernels.relaxation_sizes import Solved, relax_sizes
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE
from sparsecv_mio.problem.problem import SparseProblem

MAX_STEPS = 20_000


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
    problem: SparseProblem,
    taus: Sequence[int],
    *,
    diagonal: Diagonal = Diagonal.SHARP,
    accuracy: float = 1e-6,
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
    found = Solved(
        np.zeros((T, form.m)), np.zeros((T, form.m)), np.zeros(T), np.zeros(T), np.zeros(T, dtype=np.int64)
    )
    if len(inner):
        relax_sizes(normal.form, inner, accuracy, MAX_STEPS, np.zeros(form.m), found)
    unit, diagonal = form.scale * root, form.diagonal
    solved: dict[int, Relaxation] = {}
    for tau, b, g, dual, primal, steps in zip(inner.tolist(), *found, strict=True):
        lower = float(dual) - allowance(form, tau, b * root)
        solved[tau] = Relaxation(tau, b * unit, g / unit, diagonal, lower, float(primal), int(steps))
    return [solved[tau] if tau in solved else _ridge(form, tau) for tau in taus]


def _ridge(form: UnitDiagonal, tau: int) -> Relaxation:
    """No column or all of them: the ridge fit itself."""
    b = np.asarray(np.linalg.solve(form.M, form.c)) if tau else np.zeros(form.m)
    g = form.c - form.M @ b + form.w * b
    value = float(form.yy - form.c @ b)
    lower = value - allowance(form, tau, b)
    return Relaxation(tau, b * form.scale, g / form.scale, form.diagonal, lower, value, 0)


def allowance(form: UnitDiagonal, tau: int, b: FloatArray) -> float:
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


def screen(relaxation: Relaxation, ubar: float) -> NDArray[np.int8]:
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
        INSIDE where a column is in every optimum, DROPPED where it is in none, else FREE (:mod:`.kernels.status`).

    Examples
    --------
    >>> from sparsecv_mio.bounds.relaxation import relax_problem
    >>> from sparsecv_mio.problem.problem import SparseProblem
    >>> c = np.array([3.0, 0.1])
    >>> problem = SparseProblem(np.eye(2), c, 9.01, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> found = screen(relax_problem(problem, [1])[0], ubar=4.51)
    >>> (found == INSIDE).tolist(), (found == DROPPED).tolist()
    ([True, False], [False, True])
    """
    tau, q = relaxation.tau, len(relaxation.beta)
    status = np.full(q, DROPPED if tau == 0 else INSIDE if tau >= q else FREE, dtype=np.int8)
    if 0 < tau < q:
        room = max(ubar - relaxation.dual, 0.0)
        kernel.screen(relaxation.slope**2 / relaxation.w, q, np.arange(q), tau, room, status)
    return status
