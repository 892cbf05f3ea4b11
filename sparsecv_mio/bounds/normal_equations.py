"""Fits solve their normal equations: multipliers of these, chosen for what they say of the rows that a fold leaves out.

Let `f(b) = yy - 2 c'b + b'M b` be the training objective of a fold, h the squared error on its other rows and b* the
fit of a support. Where a column is in the support, `(M b* - c)_j = 0`; where it is not, `b*_j = 0`. So whatever the
support is,

    b*_j (M b* - c)_j = 0        for every column j,

and for any t > 0 and any nu (docs/theory/bounds.md 11)

    h(b*) >= (V - u) / t,    V <= min over b of f(b) + t h(b) + sum_j nu_j b_j (M b - c)_j,    at most tau nonzero,

with `u >= f(b*)`. With N = diag(nu) that is a best-subset problem again: of the matrix `M + t Q_h + (N M + M N) / 2`,
the vector `c + t c_h + N c / 2` and the number `yy + t yy_h`. nu = 0 is `bounds.more_weight`, where b may leave the fit
of its support to suit the rows left out; a multiplier makes that dear, column by column. The diagonal w that the
relaxation takes out has its room from the same matrix, so both are chosen together: V is concave in (nu, w), as a
minimum of functions that are affine in them, and is maximised with a logarithmic barrier for the room.
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
from sparsecv_mio.problem.elimination import Eliminated, eliminated
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees.listing import with_diagonal
from sparsecv_mio.trees.normal_form import SHARP_STEPS, NormalForm, normal_form
from sparsecv_mio.units import TINY

BARRIERS = 1e-2, 2e-3  # of a held-out error over the root of the columns, one after the other: what room is worth
ASCENT_STEPS = 40  # of the ascent under each
PAIRS_KEPT = 15  # of moves and of how slopes changed by them, that the next direction is made of
FIRST_MOVE, LONGEST_MOVE, SHORTEST = 0.02, 0.5, 1e-4  # of the largest coordinate, and of a direction that is not taken
SHORTER = 0.4  # times a move that leaves the room or does not rise
RELAXED_NEAR, RELAXED_STEPS = 1e-3, 2_000  # accuracy, of what is left to the level, and steps of a relaxation
OWN_SHARE = 0.5  # of the diagonal, which the problem has as its penalty
LEAST_MULTIPLIER, MOST_MULTIPLIER = -0.5, 10.0  # of a multiplier: beyond, the matrix loses digits that M has
LEAST_LEFT = 1e-9  # of the squares of the target, by the forced columns
ROOM = 0.95  # of a diagonal that is known to have room, to begin with


class Multipliers(NamedTuple):
    """Multipliers of normal equations, and a diagonal that has room under the matrix with them.

    Attributes
    ----------
    weight : float
        t.
    nu : (q,) array
        At least -1/2: above -1 V never falls where gamma rises.
    diagonal : (r,) array
        Of the columns that are not forced in.
    """

    weight: float
    nu: FloatArray
    diagonal: FloatArray


def with_multipliers(
    problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], at: Multipliers
) -> SparseProblem | None:
    """Return the best-subset problem whose least value is V; None where rounding hides that it is one.

    Parameters
    ----------
    problem : SparseProblem
        Training rows, at the gamma in question.
    held_out : (q, q) array, (q,) array, float
        Moments of the rows left out, about the training means.
    at : Multipliers
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
    if len(made.forced):  # they have a least point, and leave what `eliminated` need not raise to a rounding
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
) -> tuple[Eliminated, NormalForm] | None:
    """Return that problem, forced columns minimised out, and its normal form; None where nothing is proved by it.

    Parameters
    ----------
    problem, held_out, at
        As for `with_multipliers`.
    steps : int
        Of Newton's method, from this diagonal to one with the largest sum of logarithms, about.

    Notes
    -----
    O(q^3). What certifies the diagonal is a factorisation of what it leaves.
    """
    made = with_multipliers(problem, held_out, at)
    if made is None:
        return None
    reduced = eliminated(made)
    form = normal_form(reduced.problem)
    if not (form.curved and form.m == reduced.problem.q):
        return None
    sharp = with_diagonal(form, at.diagonal * form.scale**2, steps)
    if sharp is None:
        return None
    times = 1.0 + 2.0 * float(np.abs(at.nu).max(initial=0.0))  # entries round as those of M times their multipliers
    sharp = replace(sharp, keep=times * sharp.keep, slack=times * sharp.slack)
    return (reduced, sharp) if sharp.trusted else None


def moved_to(
    problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], near: Multipliers, plain: Multipliers
) -> Multipliers:
    """Return multipliers to start from: those of a neighbour, with a diagonal that has room here; or plain ones.

    At a weight that is the r-th part, r < 1, of that of the neighbour `r nu` leaves room where nu did.

    Parameters
    ----------
    problem, held_out
        As for `with_multipliers`.
    near, plain : Multipliers
        Of the neighbour; without multipliers, at the weight in question.
    """
    share = min(plain.weight / near.weight, 1.0)
    at = Multipliers(plain.weight, share * near.nu, ROOM * share * near.diagonal)
    made = multiplied_form(problem, held_out, at, SHARP_STEPS)
    return plain if made is None else at._replace(diagonal=ROOM / made[1].scale ** 2)


def best_multipliers(
    problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], size: int, ends: tuple[float, float],
    start: Multipliers, expired: Callable[[], bool],
) -> Multipliers:  # fmt: skip
    """Return multipliers, and a diagonal, with a larger V at the weight of those to start from.

    Parameters
    ----------
    problem, held_out
        As for `with_multipliers`.
    size : int
        Columns of a support beside those that are forced in.
    ends : (float, float)
        u, and a held-out error to raise the bound to: it says how well relaxations are to be solved.
    start : Multipliers
        With room.
    expired : callable
        True ends it.

    Notes
    -----
    Some 80 to 150 times O(q^3) and a relaxation: 0.1 CPU seconds of 64 to 91 columns. On ten folds of housing2 and
    diabetes64 it comes within 0.03 of h of the best multipliers by a semidefinite program, which takes 7 to 35 seconds.
    """
    ascent = _Ascent(problem, held_out, size, ends, start, expired)
    point = np.concatenate([start.nu, np.zeros(len(start.diagonal))])
    for share in BARRIERS[int(bool(start.nu.any())) :]:
        point = ascent.climb(point, share * start.weight * max(ends[1], 1e-300) / np.sqrt(max(problem.q, 1)))
    return ascent.at(point)


class _Ascent:
    """V and its slope over multipliers and the logarithms of a diagonal, at one weight."""

    def __init__(
        self, problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], size: int,
        ends: tuple[float, float], start: Multipliers, expired: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.problem, self.held_out, self.size, self.start = problem, held_out, size, start
        self.level, self.expired = ends[0] + start.weight * ends[1], expired
        self.others = np.setdiff1d(np.arange(problem.q), problem.forced)
        self._point = np.zeros(len(self.others))  # where the last relaxation ended

    def at(self, point: FloatArray) -> Multipliers:
        """Return multipliers and diagonal of a point."""
        q = self.problem.q
        nu = np.clip(point[:q], LEAST_MULTIPLIER, MOST_MULTIPLIER)
        return self.start._replace(nu=nu, diagonal=self.start.diagonal * np.exp(point[q:]))

    def climb(self, point: FloatArray, barrier: float) -> FloatArray:
        """Return where the ascent from a point ends: quasi-Newton steps, shorter where they leave the room."""
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
        """Return V with what its room is worth, and the slope of that; None where there is no room."""
        at, problem, others = self.at(point), self.problem, self.others
        made = with_multipliers(problem, self.held_out, at)
        if made is None:
            return None
        left = made.M.copy()
        left[others, others] -= at.diagonal
        factor, failed = dpotrf(left, lower=1)
        if failed:
            return None
        room = 2.0 * float(np.log(np.diag(factor)).sum())
        V = dpotri(factor, lower=1)[0]
        V = np.tril(V) + np.tril(V, -1).T
        inner = eliminated(made)
        b, dual, spent = self._relaxed(inner, at)
        whole = np.zeros(problem.q)
        whole[others] = b
        whole[problem.forced] = inner.centre - inner.share @ b
        of_nu = whole * (problem.M @ whole - problem.c) + barrier * np.einsum("ij,ij->i", V, problem.M)
        outwards = np.where(of_nu < 0.0, point[: problem.q] <= LEAST_MULTIPLIER, point[: problem.q] >= MOST_MULTIPLIER)
        of_nu[outwards] = 0.0
        of_diagonal = (spent - barrier * np.diag(V)[others]) * at.diagonal
        return dual + barrier * room, np.concatenate([of_nu, of_diagonal])

    def _relaxed(self, inner: Eliminated, at: Multipliers) -> tuple[FloatArray, float, FloatArray]:
        """Return the point of the relaxation, its dual value and the slope of that over the diagonal."""
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
    """Return the direction of a limited-memory quasi-Newton step upwards; along the slope, and short, at first."""
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
