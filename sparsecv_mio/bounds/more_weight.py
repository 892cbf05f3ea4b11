"""Lower bounds on held-out errors from problems that add the held-out rows, with a weight, to the training rows.

Let f be the training objective of a fold, h the squared error on its held-out rows, b* an optimum of the fold, and t >
0 the weight of the held-out rows. Let V_t be a lower bound on the minimum of `f(b) + t h(b)` over all b with at most
tau nonzero coefficients, and let `u >= f(b*)`. Then (docs/theory/bounds.md, section 10)

    h(b*) >= (V_t - u) / t.

Both f and h use the intercept of the training rows. If h contains all rows on which the fold does not train, f + h is
therefore at least the training objective on all rows. At t = 1, a lower bound on the minimum of that objective is then
a valid V_1 for every fold, and gives the training-loss bound (:mod:`sparsecv_mio.bounds.closed_form`).

Two effects make the bound smaller than h(b*). First, V_t may be smaller than the minimum of f + t h; the bound is then
smaller by this difference divided by t. Large weights reduce the first effect, and are suitable if relaxations are
weak, as with small penalties. Second, the minimiser of f + t h fits the held-out rows better than b*. Small weights
reduce the second effect, and are suitable if a fold contains rows that no model fits well.

V_t is nonincreasing in tau and concave in gamma (:mod:`sparsecv_mio.bounds.closed_form`), so a relaxation at one pair
(tau, gamma) also gives bounds at other pairs. The minimum of f + t h is concave in t, and so is the value of its
relaxation. If V_t is this minimum or this value, `(V_t - u) / t` has a single local maximum, and an ascent finds the
best t.

Branch-and-bound trees also use multipliers of the normal equations, which increase V_t. With multipliers, V_t is still
nonincreasing in tau and nondecreasing in gamma, but it need not be concave in gamma. The V_t of one pair then gives
bounds at smaller sizes and larger gammas, but not at other pairs.

**Multipliers of the normal equations.** Let `f(b) = yy - 2 c'b + b'M b`, and let b* be the fit of a support. If column
j is in the support, `(M b* - c)_j = 0`; otherwise `b*_j = 0`. Therefore, for every support and every column j,

    b*_j (M b* - c)_j = 0.

Let t > 0 be a weight, nu a vector of multipliers, and `u >= f(b*)`. Let V be a lower bound on the minimum of
`f(b) + t h(b) + sum_j nu_j b_j (M b - c)_j` over all b with at most tau nonzero coefficients. Then
(docs/theory/bounds.md, section 11)

    h(b*) >= (V - u) / t.

Let Q_h, c_h and yy_h be the moments of the held-out rows, and N = diag(nu). The minimisation is again a best-subset
problem, with the matrix `M + t Q_h + (N M + M N) / 2`, the vector `c + t c_h + N c / 2` and the number `yy + t yy_h`.
With nu = 0, the minimiser may fit the held-out rows better than the fit of its support does. A nonzero multiplier nu_j
penalises points b that violate the equation `b_j (M b - c)_j = 0` of column j.

The perspective relaxation of this problem needs a diagonal w for which the matrix minus `diag(w)` is positive
semidefinite. Therefore nu and w are chosen together. The value of the relaxation is a minimum of affine functions of
(nu, w), so it is concave in (nu, w). A logarithmic barrier keeps the matrix minus `diag(w)` positive definite while
this value is maximised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import LEFT_OUT_WEIGHTS, ROWS_ROUNDING, held_out_error_bounds, implied_lower_bounds
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import Accuracy, Node
from sparsecv_mio.problem.problem import ReducedProblem, SparseProblem, eliminate_forced_columns
from sparsecv_mio.trees.listing import PerspectiveTree, sharpen_form, with_diagonal
from sparsecv_mio.trees.normal_form import SHARP_STEPS, NormalForm, Root, normal_form, solve_root
from sparsecv_mio.trees.subsets import ROUND_GROWTH
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
    start: Multipliers, is_expired: Callable[[], bool],
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
    is_expired : callable
        Function that returns True to end the ascent.

    Notes
    -----
    80 to 150 times O(q^3) and a relaxation: 0.1 CPU seconds with 64 to 91 columns. A semidefinite program finds the
    best multipliers in 7 to 35 seconds. On ten folds of housing2 and diabetes64 the bound here is at most 0.03 h below
    the bound with the best multipliers.
    """
    ascent = _Ascent(problem, held_out, size, ends, start, is_expired)
    point = np.concatenate([start.nu, np.zeros(len(start.diagonal))])
    for share in BARRIERS[int(bool(start.nu.any())) :]:
        point = ascent.climb(point, share * start.weight * max(ends[1], 1e-300) / np.sqrt(max(problem.q, 1)))
    return ascent.decode_point(point)


class _Ascent:
    """V and its gradient in the multipliers and the logarithms of a diagonal, at one weight."""

    def __init__(
        self, problem: SparseProblem, held_out: tuple[FloatArray, FloatArray, float], size: int,
        ends: tuple[float, float], start: Multipliers, is_expired: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.problem, self.held_out, self.size, self.start = problem, held_out, size, start
        self.level, self.is_expired = ends[0] + start.weight * ends[1], is_expired
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
            while length > SHORTEST and not self.is_expired():
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


FIRST = LEFT_OUT_WEIGHTS.index(3.0)  # index of the weight that is tried first
LIGHT = LEFT_OUT_WEIGHTS.index(0.4)  # largest weight after trees on all rows, which have used the weight 1 fully
LEVEL_NEAR = 0.005  # accuracy of relaxations, as a share of the distance from the level
PROBED_RATIO = 1.3  # ratio between the sizes at which weights are compared
RELAXED_RATIO = 1.05  # ratio between the sizes that are relaxed
MOST_BELOW = 2  # maximum distance in `LEFT_OUT_WEIGHTS` of the weight of trees below that of relaxations
NEAR_ENOUGH = 0.55  # root bound, as a share of h, for trees without multipliers: diabetes64 is above, housing2 below
STORED_WEIGHTS = "weight"  # key, with the index of the weight, of the stored results of a held-out-weighted problem
MULTIPLIED_COLUMNS = 200  # maximum columns for multipliers: with 376, half a second a fold gains no more than trees
STORED_TREES = "trees with rows left out"  # key of the stored trees of a fold
TREE_BYTES = STORE_BYTES // 16  # maximum size of these trees

Tree = tuple[int, float, int, bool]  # index of the weight, gamma, size, and True for multipliers


class Known(NamedTuple):
    """Known values of every pair (G, T): u, covering ties (inf if unknown), and the held-out error of some support.

    The errors only determine how accurately relaxations are solved.
    """

    values: FloatArray
    errors: FloatArray


@dataclass(eq=False)
class RowsTogether:
    """The training rows of a fold together with its held-out rows, at any weight of the latter.

    Attributes
    ----------
    problem : SparseProblem
        Problem of the training rows, at any gamma.
    held_out : (q, q) array, (q,) array, float
        Moments Q, c and yy of the held-out rows, about the training means.
    """

    problem: SparseProblem
    held_out: tuple[FloatArray, FloatArray, float]
    _weighted: dict[int, SparseProblem] = field(default_factory=dict)

    def weighted_problem(self, gamma: float, weight: int) -> tuple[ReducedProblem, NormalForm]:
        """Return the problem at a gamma and a weight index, without its forced columns, and its normal form."""
        if weight not in self._weighted:
            t, (Q, c, yy), rows = LEFT_OUT_WEIGHTS[weight], self.held_out, self.problem
            squares = None if rows.own_squares is None else rows.own_squares + t * np.diag(Q)
            problems = rows.kept.setdefault(f"{STORED_WEIGHTS} {weight}", {})
            self._weighted[weight] = replace(
                rows, Q=rows.Q + t * Q, c=rows.c + t * c, yy=rows.yy + t * yy, kept=problems, own_squares=squares
            )
        reduced = eliminate_forced_columns(self._weighted[weight].with_gamma(gamma))
        return reduced, sharpen_form(normal_form(reduced.problem))

    @property
    def unfinished_trees(self) -> dict[Tree, _Left]:
        """Unfinished trees, the last one stored at the end."""
        trees: dict[Tree, _Left] = self.problem.kept.setdefault(STORED_TREES, {})
        return trees

    def store(self, which: Tree, left: _Left) -> None:
        """Store a tree for the next call, and drop the oldest trees if they are too large."""
        self.unfinished_trees[which] = left
        room = TREE_BYTES
        for tree_key in list(self.unfinished_trees)[::-1]:
            room -= self.unfinished_trees[tree_key].tree.nbytes
            if room < 0:
                del self.unfinished_trees[tree_key]

    def total(self, weight: int, largest: float = 0.0) -> float:
        """Return the squared length of the target at a weight, with an upper bound on the multipliers."""
        return (1.0 + largest) * self.problem.yy + LEFT_OUT_WEIGHTS[weight] * self.held_out[2]


class _Left(NamedTuple):
    """An unfinished tree, the level at which it ends, and its largest multiplier, if it has any."""

    level: float
    largest: float | None
    tree: PerspectiveTree


class _Begun(NamedTuple):
    """Root of a pair at a weight: its form, largest multiplier (if any), size, point, and bound on h."""

    form: NormalForm
    largest: float | None
    size: int
    root: Root
    error: float

    @classmethod
    def from_form(
        cls, form: NormalForm, largest: float | None, size: int, ends: tuple[float, float], t: float,
        is_expired: Callable[[], bool],
    ) -> _Begun:  # fmt: skip
        """Return the root, solved up to the level given by u and a held-out error."""
        bar = form.raise_cutoff(ends[0] + t * ends[1])
        root = solve_root(form, size, bar, np.zeros(form.m), is_expired, near=LEVEL_NEAR, steps=RELAXED_STEPS)
        return cls(form, largest, size, root, (root.dual - ends[0]) / t)


class HeldOutWeightedBounds:
    """Lower bounds on `f + t h` for one fold, by weight, gamma and size, and the lower bounds on h that they imply.

    Parameters
    ----------
    gammas : (G,) array
        Ascending ridge weights.
    taus : (T,) int array
        Rising sizes.

    Attributes
    ----------
    lower : (W, G, T) array
        Lower bounds by weight, 0 if unknown.
    missed : (G, T) array
        Number of trees that missed their target; a tree that the clock ended counts half.
    best : (G, T) int array
        Index of the best known weight for a pair.
    with_multipliers : dict of (int, int, int) to float
        Lower bounds from problems with multipliers, by weight, gamma and size.
    """

    def __init__(self, gammas: FloatArray, taus: IntArray) -> None:
        self.gammas, self.taus = gammas, taus
        self.lower = np.zeros((len(LEFT_OUT_WEIGHTS), len(gammas), len(taus)))
        self.best = np.full(self.lower.shape[1:], FIRST)
        self.missed = np.zeros(self.best.shape)
        self._yy = np.zeros(len(LEFT_OUT_WEIGHTS))
        self.with_multipliers: dict[tuple[int, int, int], float] = {}
        self._multipliers: dict[tuple[int, int, int], Multipliers] = {}

    def implied_bounds(self) -> FloatArray:
        """Return (W, G, T) lower bounds on `f + t h`, including those that other pairs imply; 0 if unknown."""
        implied = np.zeros(self.lower.shape)
        for place in np.flatnonzero(self.lower.any(axis=(1, 2))):
            at_weight = implied_lower_bounds(self.gammas, self.lower[place]) - ROWS_ROUNDING * self._yy[place]
            implied[place] = np.maximum(at_weight, 0.0)
        return implied

    def held_out_errors(self, values: FloatArray) -> FloatArray:
        """Return (G, T) lower bounds on h, 0 if unknown, given the u of every pair (inf if unknown)."""
        usable, errors = np.isfinite(values), held_out_error_bounds(self.implied_bounds(), values)
        usable_values = np.where(usable, values, 0.0)
        for (place, g, at), lower in self.with_multipliers.items():
            pairs = np.s_[g:, : at + 1]
            said = np.where(usable[pairs], lower - usable_values[pairs], 0.0) / LEFT_OUT_WEIGHTS[place]
            errors[pairs] = np.maximum(errors[pairs], said)
        return np.asarray(errors)

    def bound_pairs(
        self, rows: RowsTogether, wanted: BoolArray, known: Known, is_expired: Callable[[], bool]
    ) -> tuple[HeldOutWeightedBounds, FloatArray]:
        """Bound the requested pairs (G, T) by relaxations at the best weights; return all bounds, and bounds on h.

        Weights are compared at some sizes of every other gamma; the pairs between them take the weight of the last
        comparison. A relaxation of a size also bounds smaller sizes, so only some of the large sizes are relaxed.

        Parameters
        ----------
        rows : RowsTogether
            Rows of the fold.
        wanted : (G, T) bool array
            Requested pairs.
        known : Known
            Known values of every pair.
        is_expired : callable
            Function that returns True to end with the bounds found so far.

        Notes
        -----
        O(q^3) for each weight and gamma, and a relaxation for each pair.
        """
        at_size, sizes = np.full(len(self.taus), FIRST), rows.problem.choice.n_columns(self.taus)
        for turn, g in enumerate(np.flatnonzero(wanted.any(axis=1)).tolist()):
            which = np.flatnonzero(wanted[g] & np.isfinite(known.values[g] + known.errors[g]))
            if not len(which) or is_expired():
                continue
            row = _GammaRelaxations(self, rows, g, known, is_expired)
            probe = last = -1
            for at in which[::-1].tolist():
                if turn % 2 == 0 and (probe < 0 or sizes[at] * PROBED_RATIO <= sizes[probe]):
                    probe, at_size[at] = at, row.climb(at, int(at_size[at]))
                if probe >= 0:
                    at_size[at] = at_size[probe]
                if last < 0 or sizes[at] * RELAXED_RATIO <= sizes[last]:
                    last = at
                    row.value(at, int(at_size[at]))
            self.best[g] = at_size
        return self, self.held_out_errors(known.values)

    def take_light_weights(self, solved: BoolArray) -> None:
        """Use small weights only at pairs (G, T) solved by trees on all rows, which cover weights near 1 and above."""
        self.best = np.where(solved, np.minimum(self.best, LIGHT), self.best)

    def branch_each(
        self, rows: RowsTogether, targets: Mapping[tuple[int, int], tuple[float, float]], nodes: int, known: Known,
        is_expired: Callable[[], bool],
    ) -> tuple[HeldOutWeightedBounds, FloatArray, list[int]]:  # fmt: skip
        """Grow a tree at each of some pairs; return the bounds of all trees, the bounds on h, and node counts.

        The largest size comes first, because its bound also holds for smaller sizes and may suffice for them.

        Parameters
        ----------
        rows : RowsTogether
            Rows of the fold.
        targets : mapping of (int, int) to (float, float)
            For each pair, the bound on h that its tree must prove, and the bound that suffices if another tree proved
            it.
        nodes : int
            Maximum number of nodes of the first tree of a pair; later ones have more.
        known : Known
            Known values of every pair.
        is_expired : callable
            Function that returns True when time is over.
        """
        spent = list[int]()
        for pair in sorted(targets, key=lambda pair: -pair[1]):
            if is_expired():
                break
            target, enough = targets[pair]
            if not (spent and self.held_out_errors(known.values)[pair] >= enough):
                spent.append(self.branch(rows, pair, (target, enough), nodes, known, is_expired))
        return self, self.held_out_errors(known.values), spent

    def branch(
        self, rows: RowsTogether, pair: tuple[int, int], target: tuple[float, float], nodes: int, known: Known,
        is_expired: Callable[[], bool],
    ) -> int:  # fmt: skip
        """Grow a tree that must prove a lower bound on h at a pair, given by its indices; return its number of nodes.

        The root with multipliers comes first and may suffice. If its bound is close enough to the target, the trees
        have no multipliers, because these do not improve the children. Trees reduce the distance of a relaxation from
        the optimum, and this distance is multiplied by `1 / t` in the bound. After a tree that misses its target, the
        next tree of the pair therefore takes the next smaller weight. If the root is not close enough, the trees have
        its multipliers and its weight. An unfinished tree of the same weight is continued.

        Parameters
        ----------
        rows : RowsTogether
            Rows of the fold.
        pair : int, int
            Indices of gamma and tau.
        target : float, float
            Bound on h that a new tree must prove, and the bound that suffices from an unfinished tree. A tree may prove
            less.
        nodes : int
            Maximum number of nodes of the first tree; later ones have more.
        known : Known
            Known values of every pair.
        is_expired : callable
            Function that returns True when time is over.
        """
        (wanted, enough), (g, at), place = target, pair, int(self.best[pair])
        u, error = float(known.values[pair]), max(wanted, float(known.errors[pair]))
        if not np.isfinite(u):
            return 0
        begun = self._with_multipliers(rows, (place, *pair), (u, error), is_expired)
        if begun is not None and self.held_out_errors(known.values)[pair] >= wanted:
            return 0
        multiplied = begun is not None and begun.error < NEAR_ENOUGH * error
        if not multiplied:
            place = max(place - min(int(self.missed[pair]), MOST_BELOW), 0)
        weight, which = LEFT_OUT_WEIGHTS[place], (place, float(self.gammas[g]), int(self.taus[at]), multiplied)
        growing = rows.unfinished_trees.pop(which, None)
        if growing is None or not growing.level >= u + weight * enough:
            level = u + weight * wanted
            root = begun if multiplied else self._solve_plain_root(rows, (place, *pair), (u, wanted), is_expired)
            if root is None:
                return 0
            none = np.zeros(root.form.m, dtype=bool)
            growing = _Left(level, root.largest, PerspectiveTree(root.form, root.size, level, none, root.root))
        tree, level, before = growing.tree, growing.level, growing.tree.nodes
        tree.advance(int(nodes * ROUND_GROWTH ** self.missed[pair]), is_expired)
        least = tree.upper if tree.finished else min(tree.lower, tree.upper)
        self.missed[pair] += (0.5 if is_expired() else 1.0) * (least < level)
        if not tree.has_overflow:
            self._note(rows, (place, *pair), least - (tree.form.raise_cutoff(level) - level), growing.largest)
            if least < level:
                rows.store(which, growing)
        return tree.nodes - before

    def _solve_plain_root(
        self, rows: RowsTogether, where: tuple[int, int, int], ends: tuple[float, float], is_expired: Callable[[], bool]
    ) -> _Begun | None:
        """Return the root without multipliers at a weight, gamma and size; None if it gives no bound."""
        place, g, at = where
        reduced, form = rows.weighted_problem(float(self.gammas[g]), place)
        size = reduced.choice.size(int(self.taus[at]))
        if not (form.curved and form.is_trusted and 0 < size < form.m):
            return None
        return _Begun.from_form(form, None, size, ends, LEFT_OUT_WEIGHTS[place], is_expired)

    def _with_multipliers(
        self, rows: RowsTogether, where: tuple[int, int, int], ends: tuple[float, float], is_expired: Callable[[], bool]
    ) -> _Begun | None:
        """Return the root with multipliers of the normal equations, and record its bound; None if there are none."""
        (place, g, at), problem = where, rows.problem.with_gamma(float(self.gammas[where[1]]))
        reduced, form = rows.weighted_problem(float(self.gammas[g]), place)
        size, t = reduced.choice.size(int(self.taus[at])), LEFT_OUT_WEIGHTS[place]
        whole = form.m + len(problem.forced) == problem.q and form.m <= MULTIPLIED_COLUMNS
        if not (form.curved and form.is_trusted and 0 < size < form.m and whole):
            return None
        chosen = self._multipliers.get(where)
        if chosen is None:
            start = Multipliers(t, np.zeros(problem.q), ROOM / form.scale**2)
            near = min(self._multipliers, key=lambda of: np.abs(np.subtract(of, where)).tolist()[::-1], default=None)
            if near is not None:
                start = adapt_multipliers(problem, rows.held_out, self._multipliers[near], start)
            chosen = best_multipliers(problem, rows.held_out, size, ends, start, is_expired)
        made = multiplied_form(problem, rows.held_out, chosen)
        if made is None:
            return None
        self._multipliers[where] = chosen
        begun = _Begun.from_form(made[1], float(np.abs(chosen.nu).max()), size, ends, t, is_expired)
        dual = begun.root.dual
        self._note(rows, where, dual - (made[1].raise_cutoff(abs(dual)) - abs(dual)), begun.largest)
        return begun

    def _note(
        self, rows: RowsTogether, where: tuple[int, int, int], lower: float, largest: float | None = None
    ) -> None:
        """Record a bound on V, given the largest multiplier or None."""
        if largest is not None:
            lower -= ROWS_ROUNDING * rows.total(where[0], largest)
            self.with_multipliers[where] = max(self.with_multipliers.get(where, -np.inf), lower)
            return
        self._yy[where[0]] = rows.total(where[0])
        self.lower[where] = max(self.lower[where], lower)


class _GammaRelaxations:
    """Relaxations at one gamma of a fold; each starts from the solution of the previous size at the same weight."""

    def __init__(
        self, bounds: HeldOutWeightedBounds, rows: RowsTogether, g: int, known: Known, is_expired: Callable[[], bool]
    ) -> None:
        self.bounds, self.rows, self.g, self.known, self.is_expired = bounds, rows, g, known, is_expired
        self._forms: dict[int, tuple[ReducedProblem, NormalForm]] = {}
        self._points: dict[int, FloatArray] = {}

    def climb(self, at: int, place: int) -> int:
        """Return the index of the weight with the best bound on h at a size, climbing up or down from a first index."""
        most = self.value(at, place)
        for step in (1, -1):
            start = place
            while 0 <= place + step < len(LEFT_OUT_WEIGHTS) and (more := self.value(at, place + step)) > most:
                place, most = place + step, more
            if place != start:
                break
        return place

    def value(self, at: int, place: int) -> float:
        """Return (V - u) / t of a size, given by its index, at a weight, after relaxing it if necessary."""
        bounds, g = self.bounds, self.g
        u = float(self.known.values[g, at])
        if not bounds.lower[place, g, at] > 0.0 and not self.is_expired():
            if place not in self._forms:
                self._forms[place] = self.rows.weighted_problem(float(bounds.gammas[g]), place)
            reduced, form = self._forms[place]
            size, level = (
                reduced.choice.size(int(bounds.taus[at])),
                u + LEFT_OUT_WEIGHTS[place] * float(self.known.errors[g, at]),
            )
            if form.curved and form.is_trusted and 0 < size < form.m:
                root = self._root(form, size, level, place)
                bounds._note(self.rows, (place, g, at), min(root.dual, level) - (form.raise_cutoff(level) - level))
        return float(bounds.lower[place, g, at] - u) / LEFT_OUT_WEIGHTS[place]

    def _root(self, form: NormalForm, size: int, level: float, place: int) -> Root:
        start = self._points.get(place, np.zeros(form.m))
        root = solve_root(
            form, size, form.raise_cutoff(level), start, self.is_expired, near=LEVEL_NEAR, steps=RELAXED_STEPS
        )
        self._points[place] = root.b
        return root
