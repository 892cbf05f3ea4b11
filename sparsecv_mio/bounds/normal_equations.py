"""Multipliers of the normal equations of a fold, chosen to raise the lower bounds on its held-out error.

Let `f(b) = yy - 2 c'b + b'M b` be the training objective of a fold, h the squared error on its held-out rows and b* the
fit of a support. If column j is in the support, `(M b* - c)_j = 0`; otherwise `b*_j = 0`. Therefore, for every support

    b*_j (M b* - c)_j = 0        for every column j,

and for any weight t > 0 and any vector nu of multipliers (docs/theory/bounds.md, section 11)

    h(b*) >= (V - u) / t,    V <= min over b of f(b) + t h(b) + sum_j nu_j b_j (M b - c)_j,    at most tau nonzero,

with `u >= f(b*)`. Let Q_h, c_h and yy_h be the moments of the held-out rows, and N = diag(nu). This is again a
best-subset problem, with the matrix `M + t Q_h + (N M + M N) / 2`, the vector `c + t c_h + N c / 2` and the number
`yy + t yy_h`. With nu = 0 (`bounds.more_weight`), the minimum may be at a b that is not the fit of its support and fits
the held-out rows better. A nonzero multiplier penalises this deviation, separately for each column.

The same matrix limits the diagonal w of the perspective relaxation, so nu and w are chosen together. V is a minimum of
affine functions of (nu, w), and therefore concave. Its maximisation has a logarithmic barrier, which keeps the matrix
minus `diag(w)` positive definite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import Accuracy, Node
from sparsecv_mio.problem.problem import ReducedProblem, SparseProblem, eliminate_forced_columns
from sparsecv_mio.trees.listing import with_diagonal
from sparsecv_mio.trees.normal_form import SHARP_STEPS, NormalForm, normal_form
from sparsecv_mio.units import TINY

BARRIERS = 1e-2, 2e-3  # successive barrier weights, in units of the held-out error / sqrt(number of columns)
ASCENT_STEPS = 40  # maximum number of ascent steps for each barrier weight
PAIRS_KEPT = 15  # number of moves and slope changes stored for the quasi-Newton direction
FIRST_MOVE, LONGEST_MOVE, SHORTEST = 0.02, 0.5, 1e-4  # largest coordinate of the first and any move; minimum step
SHORTER = 0.4  # factor on a step that leaves the valid region or does not raise V
RELAXED_NEAR, RELAXED_STEPS = 1e-3, 2_000  # accuracy of a relaxation (share of the distance to the level), its steps
OWN_SHARE = 0.5  # share of the diagonal that the problem has as its penalty
LEAST_MULTIPLIER, MOST_MULTIPLIER = -0.5, 10.0  # range of multipliers; beyond, the matrix loses digits that M has
LEAST_LEFT = 1e-9  # minimum share of the target's squares that forced columns must leave
ROOM = 0.95  # share of a valid diagonal with which the ascent begins


class Multipliers(NamedTuple):
    """Multipliers of normal equations, and a diagonal that is valid for the matrix with them.

    Attributes
    ----------
    weight : float
        Weight t of the held-out rows.
    nu : (q,) array
        Multipliers, at least -1/2: above -1, V never falls with gamma.
    diagonal : (r,) array
        Diagonal of the columns that are not forced.
    """

    weight: float
    nu: FloatArray
    diagonal: FloatArray


def with_multipliers(
    problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], at: Multipliers
) -> SparseProblem | None:
    """Return the best-subset problem whose minimum is V; None if rounding prevents the proof that it is one.

    Parameters
    ----------
    problem : SparseProblem
        Problem of the training rows at the gamma in question.
    held_out : (q, q) array, (q,) array, float
        Moments of the held-out rows, about the training means.
    at : Multipliers
        Weight, multipliers and diagonal.
    """
    (Q, c, yy), t, nu, M = held_out, at.weight, at.nu, problem.M
    moved = nu[:, None] * M
    penalty = np.zeros(problem.q)
    penalty[np.setdiff1d(np.arange(problem.q), problem.forced)] = OWN_SHARE * at.diagonal
    T = M + t * Q + 0.5 * (moved + moved.T)
    T.flat[:: problem.q + 1] -= penalty
    size = (1.0 + float(np.abs(nu).max(initial=0.0))) * problem.yy + t * yy
    squares = None if problem.own_squares is None else (1.0 + np.abs(nu)) * problem.own_squares + t * np.diag(Q)
    made = replace(
        problem, Q=T, c=problem.c + t * c + 0.5 * nu * problem.c, yy=problem.yy + t * yy, weight=penalty, lam=1.0,
        copy_of=None, copy_off=None, copy_length=None, own=None, beside=size, own_squares=squares, kept={},
    )  # fmt: skip
    if not (np.isfinite(T).all() and np.isfinite(made.c).all() and np.isfinite(size)):
        return None
    if len(made.forced):  # these must have a minimiser, and leave enough that `eliminated` raises nothing to a rounding
        own = np.ix_(made.forced, made.forced)
        try:
            half = solve_triangular(np.linalg.cholesky(made.M[own]), made.c[made.forced], lower=True)
        except np.linalg.LinAlgError:
            return None
        if not made.yy - float(half @ half) > LEAST_LEFT * size:
            return None
    return made


def multiplied_form(
    problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], at: Multipliers, steps: int = 0
) -> tuple[ReducedProblem, NormalForm] | None:
    """Return the problem of `with_multipliers` without its forced columns, and its normal form, or None.

    The result is None if the problem proves no bound.

    Parameters
    ----------
    problem : SparseProblem
        Problem of the training rows at the gamma in question.
    held_out : (q, q) array, (q,) array, float
        Moments of the held-out rows, about the training means.
    at : Multipliers
        Weight, multipliers and diagonal.
    steps : int
        Number of Newton steps from this diagonal towards the one with the largest sum of logarithms.

    Notes
    -----
    O(q^3). The diagonal is certified by a factorisation of the matrix minus the diagonal.
    """
    made = with_multipliers(problem, held_out, at)
    if made is None:
        return None
    reduced = eliminate_forced_columns(made)
    form = normal_form(reduced.problem)
    if not (form.curved and form.m == reduced.problem.q):
        return None
    sharp = with_diagonal(form, at.diagonal * form.scale**2, steps)
    if sharp is None:
        return None
    times = 1.0 + 2.0 * float(np.abs(at.nu).max(initial=0.0))  # entries round like those of M, times their multipliers
    sharp = replace(sharp, keep=times * sharp.keep, slack=times * sharp.slack)
    return (reduced, sharp) if sharp.is_trusted else None


def adapt_multipliers(
    problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], near: Multipliers, plain: Multipliers
) -> Multipliers:
    """Return initial multipliers: those of a neighbour with a diagonal that is valid here, or else `plain`.

    If the weight is r times that of the neighbour, r < 1, then `r nu` admits a diagonal wherever nu did.

    Parameters
    ----------
    problem : SparseProblem
        Problem of the training rows at the gamma in question.
    held_out : (q, q) array, (q,) array, float
        Moments of the held-out rows, about the training means.
    near, plain : Multipliers
        Multipliers of the neighbour, and zero multipliers at the weight in question.
    """
    share = min(plain.weight / near.weight, 1.0)
    at = Multipliers(plain.weight, share * near.nu, ROOM * share * near.diagonal)
    made = multiplied_form(problem, held_out, at, SHARP_STEPS)
    return plain if made is None else at._replace(diagonal=ROOM / made[1].scale ** 2)


def best_multipliers(
    problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], size: int, ends: tuple[float, float],
    start: Multipliers, expired: Callable[[], bool],
) -> Multipliers:  # fmt: skip
    """Return multipliers and a diagonal with a larger V, at the weight of the initial ones.

    Parameters
    ----------
    problem : SparseProblem
        Problem of the training rows at the gamma in question.
    held_out : (q, q) array, (q,) array, float
        Moments of the held-out rows, about the training means.
    size : int
        Number of columns of a support without the forced ones.
    ends : (float, float)
        The value u, and a held-out error as target of the bound, which determines the accuracy of relaxations.
    start : Multipliers
        Initial multipliers with a valid diagonal.
    expired : callable
        Function that returns True to end the ascent.

    Notes
    -----
    80 to 150 times O(q^3) and a relaxation: 0.1 CPU seconds with 64 to 91 columns. On ten folds of housing2 and
    diabetes64 the bound is within 0.03 of h of that with the best multipliers, found by a semidefinite program in 7 to
    35 seconds.
    """
    ascent = _Ascent(problem, held_out, size, ends, start, expired)
    point = np.concatenate([start.nu, np.zeros(len(start.diagonal))])
    for share in BARRIERS[int(bool(start.nu.any())) :]:
        point = ascent.climb(point, share * start.weight * max(ends[1], 1e-300) / np.sqrt(max(problem.q, 1)))
    return ascent.decode_point(point)


class _Ascent:
    """V and its gradient in the multipliers and the logarithms of a diagonal, at one weight."""

    def __init__(
        self, problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], size: int,
        ends: tuple[float, float], start: Multipliers, expired: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.problem, self.held_out, self.size, self.start = problem, held_out, size, start
        self.level, self.expired = ends[0] + start.weight * ends[1], expired
        self.others = np.setdiff1d(np.arange(problem.q), problem.forced)
        self._point = np.zeros(len(self.others))  # solution of the last relaxation

    def decode_point(self, point: FloatArray) -> Multipliers:
        """Return the multipliers and the diagonal of a point."""
        q = self.problem.q
        nu = np.clip(point[:q], LEAST_MULTIPLIER, MOST_MULTIPLIER)
        return self.start._replace(nu=nu, diagonal=self.start.diagonal * np.exp(point[q:]))

    def climb(self, point: FloatArray, barrier: float) -> FloatArray:
        """Return the end of an ascent by quasi-Newton steps, which are shortened if they leave the valid region."""
        here = self.value(point, barrier)
        moves, changes = list[FloatArray](), list[FloatArray]()
        for _ in range(ASCENT_STEPS if here is not None else 0):
            value, slope = here  # type: ignore[misc]
            direction = _direction(slope, moves, changes)
            length = min(LONGEST_MOVE / max(float(np.abs(direction).max()), 1e-300), 1.0)
            there = None
            while length > SHORTEST and not self.expired():
                there = self.value(point + length * direction, barrier)
                if there is not None and there[0] > value:
                    break
                there, length = None, length * SHORTER
            if there is None:
                break
            move, change = length * direction, slope - there[1]
            if move @ change > 1e-12 * np.linalg.norm(move) * np.linalg.norm(change) and change @ change > TINY:
                moves, changes = [*moves, move][-PAIRS_KEPT:], [*changes, change][-PAIRS_KEPT:]
            point, here = point + move, there
        return point

    def value(self, point: FloatArray, barrier: float) -> tuple[float, FloatArray] | None:
        """Return V plus the barrier, and its gradient; None if the diagonal is not valid."""
        at, problem, others = self.decode_point(point), self.problem, self.others
        made = with_multipliers(problem, self.held_out, at)
        if made is None:
            return None
        remainder = made.M.copy()
        remainder[others, others] -= at.diagonal
        factor, failed = dpotrf(remainder, lower=1)
        if failed:
            return None
        room = 2.0 * float(np.log(np.diag(factor)).sum())
        V = dpotri(factor, lower=1)[0]
        V = np.tril(V) + np.tril(V, -1).T
        inner = eliminate_forced_columns(made)
        b, dual, spent = self._solve_relaxation(inner, at)
        whole = np.zeros(problem.q)
        whole[others] = b
        whole[problem.forced] = inner.centre - inner.share @ b
        of_nu = whole * (problem.M @ whole - problem.c) + barrier * np.einsum("ij,ij->i", V, problem.M)
        outwards = np.where(of_nu < 0.0, point[: problem.q] <= LEAST_MULTIPLIER, point[: problem.q] >= MOST_MULTIPLIER)
        of_nu[outwards] = 0.0
        of_diagonal = (spent - barrier * np.diag(V)[others]) * at.diagonal
        return dual + barrier * room, np.concatenate([of_nu, of_diagonal])

    def _solve_relaxation(self, inner: ReducedProblem, at: Multipliers) -> tuple[FloatArray, float, FloatArray]:
        """Return the point of the relaxation, its dual value and the gradient of that in the diagonal."""
        scale, m = 1.0 / np.sqrt(at.diagonal), len(self.others)
        G = inner.problem.M * scale[:, None] * scale
        G.flat[:: m + 1] -= 1.0
        none = np.full(m, -1, dtype=np.int64)
        form = NormalForm(
            self.others, scale, np.ascontiguousarray(G), inner.problem.c * scale, inner.problem.yy, True, 0.0, 0.0, 0.0,
            none, none,
        )  # fmt: skip
        start, g, b, slopes, free = self._point / scale, np.zeros(m), np.zeros(m), np.zeros(m), np.arange(m)
        kernel_form = form.quadratic._replace(lipschitz=form.steepest)
        node, stop = Node(free, 0, free, m, self.size), Accuracy(self.level, RELAXED_NEAR, RELAXED_STEPS)
        dual, _, _ = relax(kernel_form, node, stop, start, g, b, slopes)
        self._point = b * scale
        chosen = np.minimum(np.abs(b) / np.maximum(np.abs(slopes), 1e-300), 1.0)  # z, as b = z g
        spent = np.where(b != 0.0, self._point**2 * (1.0 / np.maximum(chosen, 1e-9) - 1.0), 0.0)
        return self._point, float(dual), spent


def _direction(slope: FloatArray, moves: list[FloatArray], changes: list[FloatArray]) -> FloatArray:
    """Return the direction of a limited-memory quasi-Newton ascent step; at first a short step along the gradient."""
    if not moves:
        return slope * (FIRST_MOVE / max(float(np.abs(slope).max()), 1e-300))
    direction, shares = slope.copy(), list[float]()
    for move, change in zip(reversed(moves), reversed(changes), strict=True):
        shares.append(float(move @ direction) / float(move @ change))
        direction -= shares[-1] * change
    direction *= float(moves[-1] @ changes[-1]) / float(changes[-1] @ changes[-1])
    for move, change, share in zip(moves, changes, reversed(shares), strict=True):
        direction += (share - float(change @ direction) / float(move @ change)) * move
    return direction
