"""Lower bounds of held-out errors from the rows that a fold leaves out, added to its training rows with some weight.

With f the training objective of a fold, h the squared error on its other rows and any t > 0 (docs/theory/bounds.md 10)

    h(b*) >= (V_t - u) / t        for every V_t <= min over b of f(b) + t h(b), at most tau nonzero, and u >= f(b*).

At t = 1 it is the training-loss bound, up to the intercept: one V serves every fold, and what V falls short counts
once for each of them. Here that counts 1 / t, and what is lost beside it is how much better these rows are fitted once
they have the weight t. So where relaxations are far from the optimum, as under small penalties, large weights say most;
where a fold holds rows that no model fits, small ones do.

V_t never rises with tau and is concave in gamma (:mod:`sparsecv_mio.bounds.closed_form`): relaxations at some pairs
bound the others too. With V_t the optimum, or that of the relaxation, (V_t - u) / t has one peak, as V_t is concave in
t: the weight is found by climbing.

Trees have multipliers of the normal equations beside (:mod:`sparsecv_mio.bounds.normal_equations`), which make V_t
larger. With these V_t still never rises with tau, nor falls where gamma rises, but need not be concave in it: it serves
smaller sizes and larger gammas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING, implied_lower_bounds
from sparsecv_mio.bounds.normal_equations import (
    RELAXED_STEPS,
    ROOM,
    Multipliers,
    best_multipliers,
    moved_to,
    multiplied_form,
)
from sparsecv_mio.problem.elimination import Eliminated, eliminated
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees.listing import PerspectiveTree, sharpened
from sparsecv_mio.trees.normal_form import NormalForm, Root, normal_form, solve_root
from sparsecv_mio.trees.subsets import ROUND_GROWTH

LEFT_OUT_WEIGHTS = 0.05, 0.1, 0.2, 0.4, 0.75, 1.5, 3.0, 6.0, 12.0, 24.0
FIRST = LEFT_OUT_WEIGHTS.index(3.0)  # to be tried
LIGHT = LEFT_OUT_WEIGHTS.index(0.4)  # where trees on all rows have said all that the weight 1 can say
LEVEL_NEAR = 0.005  # accuracy of relaxations, of what is left to the level
PROBED_RATIO = 1.3  # of sizes at which a weight is looked for
RELAXED_RATIO = 1.05  # of sizes that are relaxed
MOST_BELOW = 2  # places between the weight of relaxations and that of trees
NEAR_ENOUGH = 0.55  # of h, from which on at a root trees are grown without multipliers: diabetes64; housing2 is below
STORED_WEIGHTS = "weight"  # and its place: under which name a fold keeps what is computed once of its rows together
MULTIPLIED_COLUMNS = 200  # up to which there are multipliers: of 376, half a second a fold brings what trees do
STORED_TREES = "trees with rows left out"  # under which name a fold keeps some,
TREE_BYTES = STORE_BYTES // 16  # and how much of them
MOST_MISSED = 3  # trees of a pair: the next one would have 65,536 nodes

Tree = tuple[int, float, int, bool]  # a weight by its place, gamma and size, and whether it has multipliers


class Known(NamedTuple):
    """Of every pair (G, T): u, which covers tied optima, inf where it is not known; the held-out error of a support.

    The errors only say how well relaxations are to be solved.
    """

    values: FloatArray
    errors: FloatArray


@dataclass(eq=False)
class RowsTogether:
    """The training rows of a fold with those it leaves out beside them, at any weight.

    Attributes
    ----------
    problem : SparseProblem
        Training rows, at any gamma.
    held_out : (q, q) array, (q,) array, float
        Moments Q, c and yy of the rows left out, about the training means.
    """

    problem: SparseProblem
    held_out: tuple[FloatArray, FloatArray, float]
    _weighted: dict[int, SparseProblem] = field(default_factory=dict)

    def at(self, gamma: float, weight: int) -> tuple[Eliminated, NormalForm]:
        """Return the problem at a gamma and a weight, by its place, forced columns minimised out; its normal form."""
        if weight not in self._weighted:
            t, (Q, c, yy), rows = LEFT_OUT_WEIGHTS[weight], self.held_out, self.problem
            squares = None if rows.own_squares is None else rows.own_squares + t * np.diag(Q)
            kept = rows.kept.setdefault(f"{STORED_WEIGHTS} {weight}", {})
            self._weighted[weight] = replace(
                rows, Q=rows.Q + t * Q, c=rows.c + t * c, yy=rows.yy + t * yy, kept=kept, own_squares=squares
            )
        reduced = eliminated(self._weighted[weight].with_gamma(gamma))
        return reduced, sharpened(normal_form(reduced.problem))

    @property
    def stored(self) -> dict[Tree, _Left]:
        """Trees that were left; that which was left last comes last."""
        trees: dict[Tree, _Left] = self.problem.kept.setdefault(STORED_TREES, {})
        return trees

    def store(self, which: Tree, left: _Left) -> None:
        """Keep a tree for the next time, and of the others those that were left last."""
        self.stored[which] = left
        room = TREE_BYTES
        for other in list(self.stored)[::-1]:
            room -= self.stored[other].tree.nbytes
            if room < 0:
                del self.stored[other]

    def total(self, weight: int, largest: float = 0.0) -> float:
        """Return the squared length of the target at a weight, with multipliers of at most some size."""
        return (1.0 + largest) * self.problem.yy + LEFT_OUT_WEIGHTS[weight] * self.held_out[2]


class _Left(NamedTuple):
    """A tree that may go on: the level at which it ends, and the largest multiplier that it has, if any."""

    level: float
    largest: float | None
    tree: PerspectiveTree


class _Begun(NamedTuple):
    """The root of a pair at a weight: its form, the largest multiplier, if any, size, point and what it says of h."""

    form: NormalForm
    largest: float | None
    size: int
    root: Root
    error: float

    @classmethod
    def of(
        cls, form: NormalForm, largest: float | None, size: int, ends: tuple[float, float], t: float,
        expired: Callable[[], bool],
    ) -> _Begun:  # fmt: skip
        """Solve the root, up to u and a held-out error."""
        bar = form.raised(ends[0] + t * ends[1])
        root = solve_root(form, size, bar, np.zeros(form.m), expired, near=LEVEL_NEAR, steps=RELAXED_STEPS)
        return cls(form, largest, size, root, (root.dual - ends[0]) / t)


def said_of_held_out(implied: FloatArray, values: FloatArray) -> FloatArray:
    """(G, T): what lower bounds (W, G, T) of `f + t h` say of h, from the u of every pair; inf: not known."""
    usable, weights = np.isfinite(values) & (implied > 0.0), np.reshape(LEFT_OUT_WEIGHTS, (-1, 1, 1))
    rises = np.where(usable, implied - np.where(np.isfinite(values), values, 0.0), 0.0)
    return np.asarray(np.maximum((rises / weights).max(axis=0), 0.0))


class MoreWeight:
    """Lower bounds of `f + t h` for one fold, by weight, gamma and size, and what they say of h.

    Parameters
    ----------
    gammas : (G,) array
        Ascending.
    taus : (T,) int array
        Rising.

    Attributes
    ----------
    lower : (W, G, T) array
        By weight, 0 where nothing is known.
    missed : (G, T) array
        Trees that missed their target; one that the clock ended counts half.
    best : (G, T) int array
        Place of the weight that a pair is bounded by, as far as that was looked for.
    with_multipliers : dict of (int, int, int) to float
        Lower bounds too, by weight, gamma and size.
    """

    def __init__(self, gammas: FloatArray, taus: IntArray) -> None:
        self.gammas, self.taus = gammas, taus
        self.lower = np.zeros((len(LEFT_OUT_WEIGHTS), len(gammas), len(taus)))
        self.best = np.full(self.lower.shape[1:], FIRST)
        self.missed = np.zeros(self.best.shape)
        self._yy = np.zeros(len(LEFT_OUT_WEIGHTS))
        self.with_multipliers: dict[tuple[int, int, int], float] = {}
        self._multipliers: dict[tuple[int, int, int], Multipliers] = {}

    def implied(self) -> FloatArray:
        """(W, G, T): lower bounds of `f + t h`, those that other gammas and sizes imply too; 0: nothing known."""
        implied = np.zeros(self.lower.shape)
        for place in np.flatnonzero(self.lower.any(axis=(1, 2))):
            at_weight = implied_lower_bounds(self.gammas, self.lower[place]) - ROWS_ROUNDING * self._yy[place]
            implied[place] = np.maximum(at_weight, 0.0)
        return implied

    def held_out_errors(self, values: FloatArray) -> FloatArray:
        """(G, T): lower bounds of h, 0 where nothing is known, from the u of every pair; inf where that is not."""
        usable, errors = np.isfinite(values), said_of_held_out(self.implied(), values)
        usable_values = np.where(usable, values, 0.0)
        for (place, g, at), lower in self.with_multipliers.items():
            part = np.s_[g:, : at + 1]
            said = np.where(usable[part], lower - usable_values[part], 0.0) / LEFT_OUT_WEIGHTS[place]
            errors[part] = np.maximum(errors[part], said)
        return np.asarray(errors)

    def relax(
        self, rows: RowsTogether, wanted: BoolArray, known: Known, expired: Callable[[], bool]
    ) -> tuple[MoreWeight, FloatArray]:
        """Bound some pairs (G, T) by relaxations, at the weights that say most; these bounds, and what they say of h.

        A weight is looked for at some sizes of every other gamma; what is between them takes that of the last.
        A relaxation of a size bounds smaller ones too: of large sizes, some are relaxed.

        Parameters
        ----------
        rows : RowsTogether
        wanted : (G, T) bool array
        known : Known
        expired : callable
            True ends it with what is known by then.

        Notes
        -----
        O(q^3) for each weight and gamma, and a relaxation for each pair.
        """
        at_size = np.full(len(self.taus), FIRST)
        for turn, g in enumerate(np.flatnonzero(wanted.any(axis=1)).tolist()):
            which = np.flatnonzero(wanted[g] & np.isfinite(known.values[g] + known.errors[g]))
            if not len(which) or expired():
                continue
            row = _Row(self, rows, g, known, expired)
            probe = last = -1
            for at in which[::-1].tolist():
                if turn % 2 == 0 and (probe < 0 or self.taus[at] * PROBED_RATIO <= self.taus[probe]):
                    probe, at_size[at] = at, row.climb(at, int(at_size[at]))
                if probe >= 0:
                    at_size[at] = at_size[probe]
                if last < 0 or self.taus[at] * RELAXED_RATIO <= self.taus[last]:
                    last = at
                    row.value(at, int(at_size[at]))
            self.best[g] = at_size
        return self, self.held_out_errors(known.values)

    def take_light_weights(self, solved: BoolArray) -> None:
        """Leave the weights near 1 and above to the trees on all rows, at pairs (G, T) where these are solved."""
        self.best = np.where(solved, np.minimum(self.best, LIGHT), self.best)

    def branch_each(
        self, rows: RowsTogether, targets: Mapping[tuple[int, int], tuple[float, float]], nodes: int, known: Known,
        expired: Callable[[], bool],
    ) -> tuple[MoreWeight, FloatArray, list[int]]:  # fmt: skip
        """Grow a tree at each of some pairs; these bounds, what they say of h, and the nodes of each tree.

        The largest size comes first: what its tree proves bounds smaller ones too, and may do for them.

        Parameters
        ----------
        rows, nodes, known, expired
            As for `branch`.
        targets : mapping of (int, int) to (float, float)
            By pair, what its tree is asked for, and what will do where another one proved it.
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
        """Grow a tree that is to prove a lower bound of h at a pair, by index; return its nodes.

        The root with multipliers comes first, and may do. Where it is near enough trees close what is left, without
        multipliers, as these leave children no better; they leave less of what a relaxation falls short, which counts
        `1 / t`, so after a tree that misses its target the next one of the pair takes the next smaller weight. Where
        it is not, they have the multipliers of the root and its weight. A tree of the same weight goes on where it was
        left.

        Parameters
        ----------
        rows : RowsTogether
        pair : int, int
        target : float, float
            Of h: what a tree is asked for, and what will do of one that goes on. What it proves may be less.
        nodes : int
            Of the first tree, at most; the next ones have more.
        known : Known
        expired : callable
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
        growing = rows.stored.pop(which, None)
        if growing is None or not growing.level >= u + weight * enough:
            level = u + weight * wanted
            root = begun if multiplied else self._without(rows, (place, *pair), (u, wanted), expired)
            if root is None:
                return 0
            none = np.zeros(root.form.m, dtype=bool)
            growing = _Left(level, root.largest, PerspectiveTree(root.form, root.size, level, none, root.root))
        tree, level, before = growing.tree, growing.level, growing.tree.nodes
        tree.advance(int(nodes * ROUND_GROWTH ** self.missed[pair]), expired)
        least = tree.upper if tree.finished else min(tree.lower, tree.upper)
        self.missed[pair] += (0.5 if expired() else 1.0) * (least < level)
        if not tree.overflow:
            self._note(rows, (place, *pair), least - (tree.form.raised(level) - level), growing.largest)
            if least < level:
                rows.store(which, growing)
        return tree.nodes - before

    def _without(
        self, rows: RowsTogether, where: tuple[int, int, int], ends: tuple[float, float], expired: Callable[[], bool]
    ) -> _Begun | None:
        """Return the root at a weight, gamma and size, without multipliers; None where it says nothing."""
        place, g, at = where
        reduced, form = rows.at(float(self.gammas[g]), place)
        size = reduced.choice.size(int(self.taus[at]))
        if not (form.curved and form.trusted and 0 < size < form.m):
            return None
        return _Begun.of(form, None, size, ends, LEFT_OUT_WEIGHTS[place], expired)

    def _with_multipliers(
        self, rows: RowsTogether, where: tuple[int, int, int], ends: tuple[float, float], expired: Callable[[], bool]
    ) -> _Begun | None:
        """Return the root with multipliers of normal equations, and note its bound; None where there are none."""
        (place, g, at), problem = where, rows.problem.with_gamma(float(self.gammas[where[1]]))
        reduced, form = rows.at(float(self.gammas[g]), place)
        size, t = reduced.choice.size(int(self.taus[at])), LEFT_OUT_WEIGHTS[place]
        whole = form.m + len(problem.forced) == problem.q and form.m <= MULTIPLIED_COLUMNS
        if not (form.curved and form.trusted and 0 < size < form.m and whole):
            return None
        chosen = self._multipliers.get(where)
        if chosen is None:
            start = Multipliers(t, np.zeros(problem.q), ROOM / form.scale**2)
            near = min(self._multipliers, key=lambda of: np.abs(np.subtract(of, where)).tolist()[::-1], default=None)
            if near is not None:
                start = moved_to(problem, rows.held_out, self._multipliers[near], start)
            chosen = best_multipliers(problem, rows.held_out, size, ends, start, expired)
        made = multiplied_form(problem, rows.held_out, chosen)
        if made is None:
            return None
        self._multipliers[where] = chosen
        begun = _Begun.of(made[1], float(np.abs(chosen.nu).max()), size, ends, t, expired)
        dual = begun.root.dual
        self._note(rows, where, dual - (made[1].raised(abs(dual)) - abs(dual)), begun.largest)
        return begun

    def _note(
        self, rows: RowsTogether, where: tuple[int, int, int], lower: float, largest: float | None = None
    ) -> None:
        """Take a bound of V, with multipliers of at most some size or without."""
        if largest is not None:
            lower -= ROWS_ROUNDING * rows.total(where[0], largest)
            self.with_multipliers[where] = max(self.with_multipliers.get(where, -np.inf), lower)
            return
        self._yy[where[0]] = rows.total(where[0])
        self.lower[where] = max(self.lower[where], lower)


class _Row:
    """Relaxations at one gamma of a fold, each from the solution of the size before at the same weight."""

    def __init__(
        self, bounds: MoreWeight, rows: RowsTogether, g: int, known: Known, expired: Callable[[], bool]
    ) -> None:
        self.bounds, self.rows, self.g, self.known, self.expired = bounds, rows, g, known, expired
        self._forms: dict[int, tuple[Eliminated, NormalForm]] = {}
        self._points: dict[int, FloatArray] = {}

    def climb(self, at: int, place: int) -> int:
        """Return the place of the weight that bounds h best at a size, by index: up or down from where it starts."""
        most = self.value(at, place)
        for step in (1, -1):
            start = place
            while 0 <= place + step < len(LEFT_OUT_WEIGHTS) and (more := self.value(at, place + step)) > most:
                place, most = place + step, more
            if place != start:
                break
        return place

    def value(self, at: int, place: int) -> float:
        """Relax a size, by index, at a weight, unless that is known; return (V - u) / t."""
        bounds, g = self.bounds, self.g
        u = float(self.known.values[g, at])
        if not bounds.lower[place, g, at] > 0.0 and not self.expired():
            if place not in self._forms:
                self._forms[place] = self.rows.at(float(bounds.gammas[g]), place)
            reduced, form = self._forms[place]
            size, level = (
                reduced.choice.size(int(bounds.taus[at])),
                u + LEFT_OUT_WEIGHTS[place] * float(self.known.errors[g, at]),
            )
            if form.curved and form.trusted and 0 < size < form.m:
                root = self._root(form, size, level, place)
                bounds._note(self.rows, (place, g, at), min(root.dual, level) - (form.raised(level) - level))
        return float(bounds.lower[place, g, at] - u) / LEFT_OUT_WEIGHTS[place]

    def _root(self, form: NormalForm, size: int, level: float, place: int) -> Root:
        start = self._points.get(place, np.zeros(form.m))
        root = solve_root(form, size, form.raised(level), start, self.expired, near=LEVEL_NEAR, steps=RELAXED_STEPS)
        self._points[place] = root.b
        return root
