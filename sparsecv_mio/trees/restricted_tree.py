"""Best subsets under restrictions on supports and under bounds on coefficients: one best-first tree for each tau.

Three kinds of restrictions on supports are possible: at most k columns of a group; a column only together with its
parents; all levels of a factor or none. A support is identified by its *active* columns: all its columns except those
whose coefficient is at a bound of 0. The fit of a support within the bounds equals the fit on its active columns, so a
refit on the active columns gives the coefficients.

A node is not branched further in two cases. First, a bound of :mod:`sparsecv_mio.kernels.restricted_node` exceeds the
cutoff. Second, the fit on all columns of the node is the fit of one of its supports, and dropping any column of this
fit would raise the objective above the cutoff. In the second case, all supports of the node with an objective of at
most the cutoff have the same fit.

If no bound on the rounding errors is valid, because columns are collinear up to rounding, no node is pruned. All
supports are then candidates, which are compared by refits from the rows.

If the rounding errors of the moments are large, the computed sign of a coefficient may be wrong. A column with the
computed coefficient zero may be active if a coefficient of any sign would lower the objective by at most the margin for
rounding. A column with a nonzero computed coefficient may have the exact coefficient zero if dropping the column raises
the objective by at most this margin. The two statements follow from the convexity of the objective, since the computed
objective differs from the exact objective by at most half of the margin at every point. All choices of the columns that
may be active or zero are candidates, and fits from the rows decide which candidates have valid signs.

`TermsBelow` lists all supports with a given number of terms and a small objective, by one tree for each number of
terms. A term is a column, or several columns that enter together. The cutoff of these trees is fixed, so a support with
a small objective does not prune other nodes. Every support at a leaf is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import bounded_tree
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE
from sparsecv_mio.kernels.restricted_node import NodePoint, Rules, bounded_fit, bounded_value, node_bound
from sparsecv_mio.model_space import Term
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.thresholds import SMALL
from sparsecv_mio.trees.allowed_supports import Family, column_array, columns_in_mask, make_mask
from sparsecv_mio.trees.listing import MetSupports
from sparsecv_mio.trees.normal_form import NormalForm, normal_form
from sparsecv_mio.trees.subsets import (
    FIRST_LOOK,
    MOST_REFITTED,
    MOST_TRIED,
    UNLIMITED,
    BestSubset,
    BestSubsets,
    OpenNodes,
)
from sparsecv_mio.units import KEEP_RTOL, OUTWARD, TIE_RTOL

PROXIMAL_STEPS = 60  # maximum number of proximal steps of a node's relaxation
SIGN_RTOL = 2.0 * KEEP_RTOL  # margin, as a share of the best objective, from which the rows decide about signs
NULL_COST = OUTWARD**2  # cost of dropping, as a share of yy, up to which a coefficient is zero up to rounding


WrongSigns = Callable[[IntArray], IntArray]  # from a support to its columns whose fit from the rows has a wrong sign
TERM_SLICE = 64  # nodes between two deliveries: about ten milliseconds


class RestrictedNode(NamedTuple):
    """An open node: its columns, and the points of its parent."""

    inside: int
    free: int
    b: FloatArray
    u: FloatArray


class UncertainSigns(NamedTuple):
    """A fit in which rounding may hide signs.

    Attributes
    ----------
    value : float
        Objective of the fit.
    active : int
        Active columns by the moments.
    uncertain : int
        Columns that may be active or zero.
    inside, columns : int
        Columns that every support with this fit contains, and all columns that such a support may contain.
    """

    value: float
    active: int
    uncertain: int
    inside: int
    columns: int


def solve_with_constraints(
    problem: SparseProblem,
    taus: Sequence[int],
    constraints: SideConstraints,
    *,
    warm_starts: Sequence[IntArray] = (),
    node_limit: int = UNLIMITED,
    is_expired: Callable[[], bool] = lambda: False,
    wrong_signs: WrongSigns | None = None,
    cutoffs: Mapping[int, float] | None = None,
) -> BestSubsets:
    """Return the best supports of several sizes under side constraints, each with a certified lower bound.

    Parameters
    ----------
    problem : SparseProblem
        Problem of one training set.
    taus : sequence of int
        Maximum sizes.
    constraints : SideConstraints
        Side constraints.
    warm_starts : sequence of int arrays
        Initial supports; those that are not allowed are skipped.
    node_limit : int
        Maximum number of nodes for each tau.
    is_expired : callable
        Function that returns True to end the search with its present result.
    wrong_signs : callable, optional
        Function that fits a support from the rows and returns its columns with a wrong sign. Without this function, a
        size stays unsolved if rounding hides a sign.
    cutoffs : mapping of int to float, optional
        Target of the lower bound for each tau, at which a tree of all sizes stops.

    Returns
    -------
    BestSubsets
        Supports and bounds for each tau; the value is inf if a tau allows no support.
    """
    form = normal_form(problem)
    if can_solve_sizes_together(problem.q, constraints) and len(taus):
        solved = _solve_sizes(form, problem.q, taus, constraints, warm_starts, (node_limit, is_expired), cutoffs or {})
        if solved is not None:
            return solved
    node_limit = node_limit if form.is_trusted else min(node_limit, MOST_TRIED)
    supports = list(warm_starts)
    subsets, nodes, ended = {}, 0, True
    for tau in taus:
        tree = RestrictedTree(form, Family(problem.q, tau, constraints), constraints, wrong_signs)
        for support in supports:
            tree.offer(support)
        tree.process_nodes(node_limit, is_expired)
        subsets[tau], nodes = tree.subset(), nodes + tree.nodes
        ended &= tree.is_finished
        supports.append(subsets[tau].support)
    return BestSubsets(subsets, nodes, ended)


def can_solve_sizes_together(q: int, constraints: SideConstraints) -> bool:
    """Return True if one tree may solve all sizes: q columns are few, and only forced columns and bounds restrict."""
    return constraints.has_only_bounds and q <= SMALL


def _solve_sizes(
    form: NormalForm, q: int, taus: Sequence[int], constraints: SideConstraints, supports: Sequence[IntArray],
    limits: tuple[int, Callable[[], bool]], cutoffs: Mapping[int, float],
) -> BestSubsets | None:  # fmt: skip
    """Return the result of one tree that covers all sizes; None if rounding or constant columns rule this tree out."""
    lo, hi = (ends[form.columns] / form.scale for ends in constraints.interval(q))
    inside, out = (np.isin(form.columns, some) for some in (constraints.forced_in, constraints.forced_out))
    out |= (lo == 0.0) & (hi == 0.0)
    n_inside, (node_limit, is_expired) = np.count_nonzero(inside & ~out), limits
    if not form.is_trusted or n_inside < len(constraints.forced_in) or n_inside > min(taus):
        return None
    at = np.flatnonzero(~out)
    goals = {tau: form.raise_cutoff(cutoffs.get(tau, np.inf)) for tau in taus}
    tree = BoundedSizes(form, at, (lo, hi), inside[at], goals)
    tree.process_nodes(supports, node_limit * len(taus), is_expired)
    if tree.depth < -1 or tree.can_hide_signs(float(tree.found.best[min(max(taus), len(at))])):
        return None
    return BestSubsets(tree.subsets(taus), tree.nodes, tree.depth < 0)


class BoundedSizes:
    """The tree of several sizes on some columns, whose supports are restricted by included columns and bounds alone.

    Parameters
    ----------
    form : NormalForm
        Problem in normal form, trusted.
    at : (s,) int array
        Columns of the form.
    ends : two (m,) arrays
        Bounds on the coefficients of the columns of the form.
    inside : (s,) bool array
        True for columns that every support includes.
    goals : mapping of int to float
        Cutoff of each size, from which no support is needed.
    upper : float
        Value of a known support.

    Attributes
    ----------
    nodes, depth : int
        Number of nodes so far, and the level of the next node; -1 if the tree is finished, -2 if it cannot be.
    """

    def __init__(
        self, form: NormalForm, at: IntArray, ends: tuple[FloatArray, FloatArray], inside: BoolArray,
        goals: Mapping[int, float], upper: float = np.inf,
    ) -> None:  # fmt: skip
        self.form, self.at, s = form, at, len(at)
        goal, status = np.full(s + 1, -np.inf), np.full((s + 1, s), FREE, dtype=np.int8)
        for size, value in goals.items():
            goal[min(size, s)] = max(goal[min(size, s)], value)
        status[0, inside] = INSIDE
        M, (lo, hi), shape = np.ascontiguousarray(form.matrix()[np.ix_(at, at)]), ends, (s + 1, s)
        self.problem = bounded_tree.QuadraticInBox(M, form.c[at], form.yy, lo[at], hi[at], form.w, inside)
        self.levels = bounded_tree.NodeLevels(
            np.empty((s + 1, s, s)),
            np.zeros(shape, dtype=np.bool_),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape),
            status,
            np.zeros(s + 1),
        )
        self.found = bounded_tree.FoundSupports(
            np.full(s + 1, upper), goal, form.keep, form.slack, np.zeros((4 * MOST_REFITTED, s), dtype=np.bool_),
            np.zeros(4 * MOST_REFITTED), np.zeros(1, dtype=np.int64),
        )  # fmt: skip
        self.nodes, self.depth = 1, 0

    def process_nodes(self, supports: Sequence[IntArray], node_limit: int, is_expired: Callable[[], bool]) -> None:
        """Offer supports and those of a backward elimination, then process nodes until a limit is reached."""
        chosen = {tuple(support.tolist()) for support in supports}
        masks = np.zeros((len(chosen), len(self.at)), dtype=np.bool_)
        for mask, support in zip(masks, chosen, strict=True):
            mask[:] = np.isin(self.form.columns[self.at], support)
        if not bounded_tree.start(self.problem, self.levels, self.found, masks):
            self.depth = -2
        while self.depth >= 0 and self.nodes < node_limit and not (self.nodes > 1 and is_expired()):
            count = np.array([self.nodes, min(node_limit, self.nodes + FIRST_LOOK)])
            self.depth = bounded_tree.advance(self.problem, self.levels, self.found, self.depth, count)
            self.nodes = int(count[0])

    def can_hide_signs(self, upper: float) -> bool:
        """Return True if rounding may hide the sign of a bounded coefficient in a support within the margin."""
        is_signed = bool(np.any((self.problem.lo == 0.0) | (self.problem.hi == 0.0)))
        return is_signed and self.form.raise_cutoff(upper) - upper > SIGN_RTOL * upper

    def supports(self) -> list[tuple[float, int, IntArray]]:
        """Return the kept supports, the best first: objective, size, and columns of the form off a bound of 0."""
        masks, inside = self.found.mask[: self.found.n_kept[0]], self.problem.is_forced
        order = np.argsort(self.found.value[: len(masks)], kind="stable").tolist()
        places = {masks[i].tobytes(): i for i in reversed(order)}.values()  # each support once
        return [(float(self.found.value[i]), int((masks[i] | inside).sum()), self.at[masks[i]])
                for i in reversed(places)]  # fmt: skip

    def subsets(self, taus: Sequence[int]) -> dict[int, BestSubset]:
        """Return the result of each size."""
        form, found, subsets = self.form, self.found, dict[int, BestSubset]()
        lower = bounded_tree.bound_open_supports(self.problem, self.levels, self.depth)
        kept = self.supports()
        for tau in taus:
            size = min(tau, len(self.at))
            upper, goal = float(found.best[size]), float(found.goal[size])
            bar = form.raise_cutoff(upper)
            margin, complete = bar - upper, bool(lower[size] > min(bar, goal) and bar <= goal)
            least = min(upper, float(lower[size]), goal)  # a cutoff that is reached is stated in full
            low = upper - margin if complete else (least - form.slack) / (1.0 + form.keep)
            some = [(value, form.columns[support]) for value, count, support in kept if value <= bar and count <= size]
            subsets[tau] = BestSubset(
                tau=tau,
                support=some[0][1],
                lower=max(low, 0.0),
                upper=upper,
                candidates=tuple(support for _, support in some) if complete else (),
                values=tuple(value for value, _ in some) if complete else (),
                margin=margin,
                complete=complete,
                branched=self.nodes > 1,
            )
        return subsets


class RestrictedTree:
    """The tree of one problem and one tau.

    Parameters
    ----------
    form : NormalForm
        Problem in normal form.
    family : Family
        Allowed supports, in the columns of the problem.
    constraints : SideConstraints
        Side constraints.
    wrong_signs : callable, optional
        Function as in `solve_with_constraints`.

    Attributes
    ----------
    upper, support : float, int array
        Objective and columns of the best support found; inf if there is none.
    """

    def __init__(
        self, form: NormalForm, family: Family, constraints: SideConstraints, wrong_signs: WrongSigns | None = None
    ) -> None:
        self.form, self.family, self.wrong_signs = form, family, wrong_signs
        self.upper, self.support = np.inf, np.zeros(0, dtype=np.int64)
        self.has_overflow = False
        lo, hi = constraints.interval(family.q)
        self.signed = make_mask(np.flatnonzero((lo == 0.0) | (hi == 0.0)).tolist())
        zero = np.flatnonzero((lo == 0.0) & (hi == 0.0))  # both signs together force the coefficient to zero
        self.caps = family.apart()
        group = np.full(family.q, -1, dtype=np.int64)
        for g, (_, columns) in enumerate(self.caps):
            group[list(columns_in_mask(columns))] = g
        term = np.arange(family.q)
        for factor in map(list, map(columns_in_mask, family.factors)):
            term[factor] = factor[0]
        self.group = group[form.columns]
        self.lo, self.hi = lo[form.columns] / form.scale, hi[form.columns] / form.scale
        # a model with such a column differs from the same model without it
        self.apart = make_mask(form.columns[(self.lo > 0.0) | (self.hi < 0.0)].tolist())
        self.term = np.unique(term[form.columns], return_inverse=True)[1]
        self.varying = make_mask(form.columns.tolist()) & ~make_mask(zero.tolist())
        self.place = np.full(family.q, -1, dtype=np.int64)
        self.place[form.columns] = np.arange(form.m)
        self.M = form.matrix()
        self.kept: dict[tuple[int, ...], float] = {}
        self._fitted: dict[int, tuple[float, tuple[int, ...]]] = {}
        self._uncertain: set[UncertainSigns] = set()
        self.open = OpenNodes[RestrictedNode]()
        root = family.root
        if root is not None:
            self.open.push(-np.inf, RestrictedNode(*root, np.zeros(form.m), np.zeros(form.m)))

    @property
    def nodes(self) -> int:
        """Number of nodes so far."""
        return self.open.n_expanded

    @property
    def bar(self) -> float:
        """Cutoff on the objective up to which supports are kept."""
        return self.form.raise_cutoff(self.upper) if self.form.is_trusted else np.inf

    @property
    def is_finished(self) -> bool:
        """True if further work cannot change the result."""
        closed = not (self.open and self.open.smallest_bound <= self.bar)
        return closed or self.has_overflow or (not self.form.is_trusted and self.nodes >= MOST_TRIED)

    def process_nodes(self, node_limit: int, is_expired: Callable[[], bool]) -> None:
        """Process the open nodes, the smallest bound first, until none is left or a limit is reached.

        The first node is processed whatever the limit, so that a support and a bound are always found.
        """
        before = self.nodes
        self.open.search(
            self._visit,
            lambda: float(np.nextafter(self.bar, np.inf)),  # supports at the cutoff are kept
            lambda: not self.has_overflow and (self.nodes == before or (self.nodes < node_limit and not is_expired())),
        )

    # -- supports -----------------------------------------------------------------------------------------------------

    def offer(self, support: IntArray) -> None:
        """Try a support, with the columns that it requires and without those that exceed a limit."""
        whole = self.family.greedily(support.tolist())
        if whole is not None:
            self._try(whole)

    def fit(self, support: int) -> tuple[float, tuple[int, ...]]:
        """Return the objective of a support within the bounds and its active columns."""
        if support not in self._fitted:
            at = self.place[column_array(support & self.varying)]
            value, b = self._fit_columns(at)
            active = tuple(columns_in_mask(support)) if value == np.inf else self._active(support, at, b)
            self._fitted[support] = value, active
        return self._fitted[support]

    def _fit_columns(self, at: IntArray) -> tuple[float, FloatArray]:
        """Return the objective and the coefficients of columns of the form; inf if rounding stopped the fit."""
        M, c, b = np.ascontiguousarray(self.M[np.ix_(at, at)]), self.form.c[at], np.zeros(len(at))
        if not bounded_fit(M, c, self.lo[at], self.hi[at], b, len(at)):
            return np.inf, b
        return float(bounded_value(M, c, self.form.yy, self.lo[at], self.hi[at], b, len(at))), b

    def _active(self, support: int, at: IntArray, b: FloatArray) -> tuple[int, ...]:
        off = make_mask(self.form.columns[at[self._counts(at, b)]].tolist())
        return tuple(columns_in_mask(support & (off | ~self.signed)))

    def _counts(self, at: IntArray, b: FloatArray) -> BoolArray:
        """Return True for coefficients that are larger than rounding errors of zero."""
        return np.asarray(b * b * self.M[at, at] > NULL_COST * self.form.yy)

    def _try(self, support: int) -> None:
        value, active = self.fit(support)
        self._keep(value, active)
        self._note_uncertain_signs(value, make_mask(active), support, support)

    def _keep(self, value: float, active: tuple[int, ...]) -> None:
        """Keep a support within the cutoff, identified by its active columns."""
        if value < self.upper or not self.kept:
            self.upper, self.support = value, np.array(active, dtype=np.int64)
        if value <= self.bar and active not in self.kept:
            self.kept[active] = value
            if len(self.kept) > MOST_REFITTED:
                bar = self.bar
                self.kept = {support: f for support, f in self.kept.items() if f <= bar}
                self.has_overflow = len(self.kept) > MOST_REFITTED

    # -- signs that rounding hides ------------------------------------------------------------------------------------

    def _note_uncertain_signs(self, value: float, active: int, inside: int, columns: int) -> None:
        """Note a fit if the moments do not determine which signed columns are active. O(s^3).

        Parameters
        ----------
        value : float
            Objective of the fit.
        active : int
            Active columns, by the moments.
        inside, columns : int
            Columns that every support with this fit contains, and all columns of the fit.
        """
        margin = self.bar - self.upper
        signed = columns & self.signed & self.varying
        if not signed or not self.form.is_trusted or not value <= self.bar or margin <= SIGN_RTOL * self.upper:
            return
        at, at_zero = (self.place[column_array(some)] for some in (active & self.varying, signed & ~active))
        inverse = np.linalg.inv(self.M[np.ix_(at, at)])
        b = self._fit_columns(at)[1]
        drop_cost = b * b / np.diag(inverse)
        slope = self.form.c[at_zero] - self.M[np.ix_(at_zero, at)] @ b
        gain = slope * slope / self.M[at_zero, at_zero]
        places = np.concatenate((at_zero[gain <= margin], at[drop_cost <= margin]))
        uncertain = make_mask(self.form.columns[places].tolist()) & signed
        if uncertain:
            self._uncertain.add(UncertainSigns(value, active, uncertain, inside, columns))

    def _choose_signs(self, fit: UncertainSigns) -> Iterator[int]:
        """Yield the sets of columns that may be the active columns of a support with a fit."""
        uncertain = [1 << j for j in columns_in_mask(fit.uncertain)]
        for some in chain.from_iterable(combinations(uncertain, size) for size in range(len(uncertain) + 1)):
            active = fit.active & ~fit.uncertain | sum(some)
            support = self.family.complete_mask(fit.inside | active, fit.columns & ~fit.inside)
            if support is not None and not support & ~fit.columns:
                yield active

    def _decide_signs(self, ties: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float] | None:
        """Return the candidates with valid signs in the rows; None if the rows are unknown or candidates too many.

        Parameters
        ----------
        ties : dict
            Candidates by the moments, and their values.
        """
        fits = [fit for fit in self._uncertain if fit.value <= self.bar]
        if not fits:
            return ties
        if self.wrong_signs is None or sum(1 << fit.uncertain.bit_count() for fit in fits) > MOST_REFITTED:
            return None
        valid = dict(ties)
        for mask in set(chain.from_iterable(map(self._choose_signs, fits))):
            active = tuple(columns_in_mask(mask))
            if len(self.wrong_signs(np.array(active, dtype=np.int64))):
                valid.pop(active, None)
            else:
                valid.setdefault(active, np.nan)
        return valid if valid else None

    def _incumbent(self) -> IntArray:
        """Return the best support without columns whose sign is wrong in the rows, if rounding may hide signs."""
        support, active = self.support, make_mask(self.support.tolist())
        is_uncertain = not self.form.is_trusted or any(fit.active == active for fit in self._uncertain)
        if self.wrong_signs is not None and is_uncertain:
            while len(wrong := self.wrong_signs(support)):
                support = np.setdiff1d(support, wrong)
        return support

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _visit(self, lower: float, node: RestrictedNode) -> list[tuple[float, RestrictedNode]]:
        """Bound a node and try supports in it; return its children, none if the node is closed."""
        settled: tuple[int, int] | None = (node.inside, node.free)
        point = NodePoint(node.b.copy(), node.u.copy(), np.empty(self.form.m), np.empty(self.form.m))
        while settled is not None and self._may_hold_support(*settled):
            inside, free = settled
            bound, value, status = self._bound(inside, free, point)
            bound = max(bound, lower)
            if bound > self.bar:
                return []
            self._round(inside, free, point)
            if bound > self.bar:
                return []
            fixed = self.family.settle(
                inside | make_mask(self.form.columns[status == INSIDE].tolist()),
                free & ~make_mask(self.form.columns[status == DROPPED].tolist()),
            )
            if fixed is not None and value > -np.inf and self._is_fitted(*fixed, free, value, point):
                return []
            if fixed == settled and not free:
                self._leaf(inside)
                return []
            if fixed == settled:
                return self._branch(bound, value, (inside, free), point)
            settled = fixed
        return []

    def _may_hold_support(self, inside: int, free: int) -> bool:
        """Return False if the columns of a node are too few for a support of interest."""
        return True

    def _leaf(self, inside: int) -> None:
        """Try the only support of a node; the subproblem stays unsolved if this support cannot be fitted.

        If no bound on the rounding errors is valid, the support is a candidate, fitted or not. Rounding then also hides
        which of its columns a sign holds at zero.
        """
        self._try(inside)
        signed = inside & self.signed & self.varying
        if self.form.is_trusted:
            self.has_overflow |= not np.isfinite(self.fit(inside)[0])
        elif signed:
            active = inside & (self.varying | ~self.signed)
            self._uncertain.add(UncertainSigns(self.fit(inside)[0], active, signed, inside, inside))

    def _bound(self, inside: int, free: int, point: NodePoint) -> tuple[float, float, BoolArray]:
        form = self.form
        status = np.full(form.m, DROPPED, dtype=np.int8)
        for mask, word in ((inside, INSIDE), (free, FREE)):
            status[self.place[column_array(mask & self.varying)]] = word
        cap = np.array([k - self.family.count(inside & some) for k, some in self.caps], dtype=np.int64)
        room = self.family.tau - self.family.count(inside)
        rules = Rules(self.lo, self.hi, self.group, cap, room, self.term, form.keep)
        before = status.copy()
        bound, value = node_bound(form.quadratic, form.w, rules, status, self.bar, PROXIMAL_STEPS, point)
        if not form.is_trusted:
            bound, value = -np.inf, -np.inf
        return bound, value, np.where(status == before, FREE, status)

    def _round(self, inside: int, free: int, point: NodePoint) -> None:
        """Try the support that takes columns in the order of their size in the relaxation."""
        columns = self.form.columns
        order = columns[np.lexsort((-np.abs(point.b), -point.z))]
        useful = [j for j in order.tolist() if free >> j & 1 and (point.b[self.place[j]] or point.z[self.place[j]])]
        support = self.family.greedily(useful, inside)
        if support is not None and support not in self._fitted:
            self._try(support)

    def _is_fitted(self, inside: int, free: int, before: int, value: float, point: NodePoint) -> bool:
        """Return True if the fit of all columns is that of a support here, and no other fit here is within the cutoff.

        Parameters
        ----------
        inside, free : int
            Columns of the node after all forced choices.
        before : int
            Columns that were free when the fit was made.
        value : float
            Objective of the fit.
        point : NodePoint
            Point with the coefficients and dropping costs of the fit.
        """
        is_used = self._counts(np.arange(self.form.m), point.b)
        if TIE_RTOL * self.upper <= NULL_COST * self.form.yy:  # effects that round to zero may separate ties
            is_used |= (self.lo != 0.0) & (self.hi != 0.0) & (point.b != 0.0)
        at = np.flatnonzero(is_used)
        used = make_mask(self.form.columns[at].tolist())
        support = self.family.complete_mask(inside | used, free)
        if support is None or support & ~(inside | free) or used & ~(inside | free):
            return False
        if self.apart & before:  # their intervals were extended to 0
            return False
        self._try(support)
        self._note_uncertain_signs(value, used | (inside & ~self.signed), inside, inside | free)
        open_columns = [
            j for j in columns_in_mask(used & free & before) if value + point.cost[self.place[j]] <= self.bar
        ]
        return not open_columns

    def _branch(
        self, bound: float, value: float, node: tuple[int, int], point: NodePoint
    ) -> list[tuple[float, RestrictedNode]]:
        """Split a node by a column about which its relaxation is undecided."""
        children, (inside, free) = [], node
        j = self._choose_branching_column(free, point)
        cost = float(point.cost[self.place[j]]) if self.varying >> j & 1 else 0.0
        for more, less in ((1 << j, 0), (0, 1 << j)):
            child = self.family.settle(inside | more, free & ~(more | less))
            if child is not None:
                low = bound if more else max(bound, value + cost)
                if low <= self.bar:
                    children.append((low, RestrictedNode(*child, point.b, point.u)))
        return children

    def _choose_branching_column(self, free: int, point: NodePoint) -> int:
        """Return the free column with the most fractional indicator, on ties with the largest cost; else a parent."""
        columns = column_array(free & self.varying)
        if not len(columns):
            return next(columns_in_mask(free))
        at = self.place[columns]
        fraction = np.minimum(point.z[at], 1.0 - point.z[at])
        return int(columns[np.lexsort((-point.cost[at], -fraction))[0]])

    def subset(self) -> BestSubset:
        """Return the best support and its bounds."""
        margin = max(self.bar - self.upper, 0.0) if np.isfinite(self.upper) else 0.0
        closed = not (self.open and self.open.smallest_bound <= self.bar or self.has_overflow)
        complete = bool(closed and np.isfinite(self.upper))
        values = {support: value for support, value in self.kept.items() if value <= self.bar}
        valid = self._decide_signs(values) if complete else None
        complete &= valid is not None
        ties = sorted((np.nan_to_num(value, nan=np.inf), support, value) for support, value in (valid or {}).items())
        unvalued = bool(self.kept) and not np.isfinite(self.upper)
        low = min(0.0 if unvalued else self.upper, self.open.smallest_bound)
        return BestSubset(
            tau=self.family.tau,
            support=self._incumbent(),
            lower=max(low - margin, 0.0) if np.isfinite(low) else (np.inf if low > 0.0 else 0.0),
            upper=self.upper,
            candidates=tuple(np.array(support, dtype=np.int64) for _, support, _ in ties),
            values=tuple(value for _, _, value in ties),
            margin=margin,
            complete=complete,
            branched=self.nodes > 1,
        )


class TermTree(RestrictedTree):
    """A tree of the supports of exactly tau terms below a cutoff.

    Parameters
    ----------
    form : NormalForm
        Trusted form of all columns of the family.
    family : Family
        Allowed supports.
    constraints : SideConstraints
        Side constraints of the family.
    limit : float
        Cutoff, with an allowance for rounding.
    """

    def __init__(self, form: NormalForm, family: Family, constraints: SideConstraints, limit: float) -> None:
        self.limit, self.met = limit, list[int]()
        super().__init__(form, family, constraints)

    @property
    def bar(self) -> float:
        """Cutoff on the objective."""
        return self.limit

    def _may_hold_support(self, inside: int, free: int) -> bool:
        return self.family.count(inside | free) >= self.family.tau

    def _round(self, inside: int, free: int, point: NodePoint) -> None:
        """Try no support, because only leaves are listed."""

    def _is_fitted(self, inside: int, free: int, before: int, value: float, point: NodePoint) -> bool:
        """Return False: a node is closed by its bound, or by its only support."""
        return False

    def _leaf(self, inside: int) -> None:
        self.met.append(inside)


class TermsBelow:
    """A source of all supports of terms at or below the cutoffs of their numbers of terms.

    Parameters
    ----------
    form : NormalForm
        Trusted form of all columns of its problem.
    first : (m,) int array
        First column of the term of each column.
    bars : (m + 1,) array
        Cutoff on the objective for each number of terms; -inf if not requested. Rounding is allowed for here.
    is_expired : callable
        Function that returns True to end a slice early.

    Attributes
    ----------
    finished : bool
        True if every support at or below its cutoff was handed out.
    nodes : int
        Number of nodes of all trees so far.
    """

    def __init__(self, form: NormalForm, first: IntArray, bars: FloatArray, is_expired: Callable[[], bool]) -> None:
        self.form, self.is_expired, self.bars = form, is_expired, bars.copy()
        groups = [np.flatnonzero(first == column).tolist() for column in np.unique(first).tolist()]
        self._constraints = SideConstraints(terms=tuple(Term(tuple(some)) for some in groups if len(some) > 1))
        self._left = np.flatnonzero(bars[: len(groups) + 1] > -np.inf).tolist()
        self._tree: TermTree | None = None
        self._spent = 0

    @property
    def finished(self) -> bool:
        """True if every support at or below its cutoff was handed out."""
        return not self._left

    @property
    def nodes(self) -> int:
        """Number of nodes of all trees so far."""
        return self._spent + (0 if self._tree is None else self._tree.nodes)

    @property
    def n_spent_nodes(self) -> int:
        """Number of nodes so far, since these trees are of one kind."""
        return self.nodes

    def lower_bars(self, bars: FloatArray) -> None:
        """Lower the cutoffs that exceed the given ones.

        Parameters
        ----------
        bars : (m + 1,) array
            Cutoff for each number of terms.
        """
        self.bars = np.minimum(self.bars, bars)
        if self._tree is not None:
            self._tree.limit = float(self.form.raise_cutoff(self.bars)[self._tree.family.tau])

    def advance(self, nodes: int = TERM_SLICE) -> MetSupports:
        """Process a number of nodes and return the supports found.

        Parameters
        ----------
        nodes : int
            Maximum number of nodes.
        """
        if self.finished:
            return self._encode_supports([])
        if self._tree is None:
            size = self._left[0]
            family = Family(self.form.m, size, self._constraints)
            limit = float(self.form.raise_cutoff(self.bars)[size])
            self._tree = TermTree(self.form, family, self._constraints, limit)
        tree = self._tree
        tree.process_nodes(tree.nodes + min(nodes, TERM_SLICE), self.is_expired)
        met, tree.met = tree.met, []
        if tree.is_finished:
            self._spent, self._tree, self._left = self.nodes, None, self._left[1:]
        return self._encode_supports(met)

    def _encode_supports(self, supports: Sequence[int]) -> MetSupports:
        masks = np.zeros((len(supports), self.form.m), dtype=np.bool_)
        for row, support in enumerate(supports):
            masks[row, column_array(support)] = True
        sizes = masks.sum(axis=1).astype(np.int64)
        return MetSupports(masks, sizes, np.full(len(supports), np.nan))

    def open_bounds(self) -> FloatArray:
        """Return (m + 1,) lower bounds on f of the supports not yet handed out, by number of terms; inf if all were."""
        bounds = np.full(len(self.bars), np.inf)
        bounds[self._left] = 0.0
        if self._tree is not None:
            bounds[self._tree.family.tau] = max(self._tree.open.smallest_bound, 0.0)
        return np.asarray(np.maximum((bounds - self.form.slack) / (1.0 + self.form.keep), 0.0))
