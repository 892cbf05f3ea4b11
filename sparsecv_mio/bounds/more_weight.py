"""Lower bounds on held-out errors by held-out-weighted problems, which add the held-out rows to the training rows.

Let f be the training objective of a fold, h the squared error on its held-out rows, b* an optimum of the fold, and t >
0 the weight of the held-out rows. Then (docs/theory/bounds.md, section 10)

    h(b*) >= (V_t - u) / t        for every V_t <= min over b of f(b) + t h(b), at most tau nonzero, and u >= f(b*).

At t = 1 this is the training-loss bound (:mod:`sparsecv_mio.bounds.closed_form`), up to the intercept, and one V_1
holds for all folds. The difference between V_t and the minimum lowers the bound by 1 / t of this difference. On the
other hand, the minimiser of f + t h fits the held-out rows better than b*. This lowers the bound, and more so for
larger t. Large weights therefore give the best bounds if relaxations are far from the minimum, as with small penalties.
Small weights give the best bounds if a fold contains rows that no model fits.

V_t never rises with tau and is concave in gamma (:mod:`sparsecv_mio.bounds.closed_form`), so a relaxation at one pair
(tau, gamma) also bounds other pairs. If V_t is the minimum or the value of the relaxation, it is concave in t. Then
(V_t - u) / t has one peak, and an ascent finds the best t.

Branch-and-bound trees also use multipliers of the normal equations (:mod:`sparsecv_mio.bounds.normal_equations`), which
increase V_t. With multipliers V_t never rises with tau and never falls with gamma, but it need not be concave in gamma.
V_t at one pair is then a bound only at smaller sizes and larger gammas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import LEFT_OUT_WEIGHTS, ROWS_ROUNDING, held_out_error_bounds, implied_lower_bounds
from sparsecv_mio.bounds.normal_equations import (
    RELAXED_STEPS,
    ROOM,
    Multipliers,
    adapt_multipliers,
    best_multipliers,
    multiplied_form,
)
from sparsecv_mio.problem.problem import ReducedProblem, SparseProblem, eliminate_forced_columns
from sparsecv_mio.trees.listing import PerspectiveTree, sharpen_form
from sparsecv_mio.trees.normal_form import NormalForm, Root, normal_form, solve_root
from sparsecv_mio.trees.subsets import ROUND_GROWTH

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
        expired: Callable[[], bool],
    ) -> _Begun:  # fmt: skip
        """Return the root, solved up to the level given by u and a held-out error."""
        bar = form.raise_cutoff(ends[0] + t * ends[1])
        root = solve_root(form, size, bar, np.zeros(form.m), expired, near=LEVEL_NEAR, steps=RELAXED_STEPS)
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
        self, rows: RowsTogether, wanted: BoolArray, known: Known, expired: Callable[[], bool]
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
        expired : callable
            Function that returns True to end with the bounds found so far.

        Notes
        -----
        O(q^3) for each weight and gamma, and a relaxation for each pair.
        """
        at_size, sizes = np.full(len(self.taus), FIRST), rows.problem.choice.n_columns(self.taus)
        for turn, g in enumerate(np.flatnonzero(wanted.any(axis=1)).tolist()):
            which = np.flatnonzero(wanted[g] & np.isfinite(known.values[g] + known.errors[g]))
            if not len(which) or expired():
                continue
            row = _GammaRelaxations(self, rows, g, known, expired)
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
        expired: Callable[[], bool],
    ) -> tuple[HeldOutWeightedBounds, FloatArray, list[int]]:  # fmt: skip
        """Grow a tree at each of some pairs; return these bounds, those on h, and the number of nodes of each tree.

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
        expired : callable
            Function that returns True when time is over.
        """
        spent = list[int]()
        for pair in sorted(targets, key=lambda pair: -pair[1]):
            if expired():
                break
            target, enough = targets[pair]
            if not (spent and self.held_out_errors(known.values)[pair] >= enough):
                spent.append(self.branch(rows, pair, (target, enough), nodes, known, expired))
        return self, self.held_out_errors(known.values), spent

    def branch(
        self, rows: RowsTogether, pair: tuple[int, int], target: tuple[float, float], nodes: int, known: Known,
        expired: Callable[[], bool],
    ) -> int:  # fmt: skip
        """Grow a tree that must prove a lower bound on h at a pair, given by its indices; return its number of nodes.

        The root with multipliers comes first and may suffice. If its bound is close enough to the target, the trees
        have no multipliers, because these do not improve the children. Trees reduce the distance of a relaxation from
        the optimum, which counts `1 / t`; so after a tree that misses its target, the next tree of the pair takes the
        next smaller weight. If the root is not close enough, the trees have its multipliers and its weight. An
        unfinished tree of the same weight is continued.

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
        expired : callable
            Function that returns True when time is over.
        """
        (wanted, enough), (g, at), place = target, pair, int(self.best[pair])
        u, error = float(known.values[pair]), max(wanted, float(known.errors[pair]))
        if not np.isfinite(u):
            return 0
        begun = self._with_multipliers(rows, (place, *pair), (u, error), expired)
        if begun is not None and self.held_out_errors(known.values)[pair] >= wanted:
            return 0
        multiplied = begun is not None and begun.error < NEAR_ENOUGH * error
        if not multiplied:
            place = max(place - min(int(self.missed[pair]), MOST_BELOW), 0)
        weight, which = LEFT_OUT_WEIGHTS[place], (place, float(self.gammas[g]), int(self.taus[at]), multiplied)
        growing = rows.unfinished_trees.pop(which, None)
        if growing is None or not growing.level >= u + weight * enough:
            level = u + weight * wanted
            root = begun if multiplied else self._solve_plain_root(rows, (place, *pair), (u, wanted), expired)
            if root is None:
                return 0
            none = np.zeros(root.form.m, dtype=bool)
            growing = _Left(level, root.largest, PerspectiveTree(root.form, root.size, level, none, root.root))
        tree, level, before = growing.tree, growing.level, growing.tree.nodes
        tree.advance(int(nodes * ROUND_GROWTH ** self.missed[pair]), expired)
        least = tree.upper if tree.finished else min(tree.lower, tree.upper)
        self.missed[pair] += (0.5 if expired() else 1.0) * (least < level)
        if not tree.has_overflow:
            self._note(rows, (place, *pair), least - (tree.form.raise_cutoff(level) - level), growing.largest)
            if least < level:
                rows.store(which, growing)
        return tree.nodes - before

    def _solve_plain_root(
        self, rows: RowsTogether, where: tuple[int, int, int], ends: tuple[float, float], expired: Callable[[], bool]
    ) -> _Begun | None:
        """Return the root without multipliers at a weight, gamma and size; None if it gives no bound."""
        place, g, at = where
        reduced, form = rows.weighted_problem(float(self.gammas[g]), place)
        size = reduced.choice.size(int(self.taus[at]))
        if not (form.curved and form.is_trusted and 0 < size < form.m):
            return None
        return _Begun.from_form(form, None, size, ends, LEFT_OUT_WEIGHTS[place], expired)

    def _with_multipliers(
        self, rows: RowsTogether, where: tuple[int, int, int], ends: tuple[float, float], expired: Callable[[], bool]
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
            chosen = best_multipliers(problem, rows.held_out, size, ends, start, expired)
        made = multiplied_form(problem, rows.held_out, chosen)
        if made is None:
            return None
        self._multipliers[where] = chosen
        begun = _Begun.from_form(made[1], float(np.abs(chosen.nu).max()), size, ends, t, expired)
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
        self, bounds: HeldOutWeightedBounds, rows: RowsTogether, g: int, known: Known, expired: Callable[[], bool]
    ) -> None:
        self.bounds, self.rows, self.g, self.known, self.expired = bounds, rows, g, known, expired
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
        if not bounds.lower[place, g, at] > 0.0 and not self.expired():
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
            form, size, form.raise_cutoff(level), start, self.expired, near=LEVEL_NEAR, steps=RELAXED_STEPS
        )
        self._points[place] = root.b
        return root
