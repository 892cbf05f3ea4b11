"""The optimum of every fold by enumeration: full-data fits of all supports, corrected for the held-out rows.

Theory section 5: with e, H the residuals and hat matrix of the full-data fit of S and N the rows of a fold,

    f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N,        held-out residual = (I - H_NN)^{-1} e_N

(`fold` intercept: columns centred on all rows, 1/n added to H; weighted rows are multiplied by the square roots of
their weights, and 1/n becomes the product of two such roots divided by the total weight). Folds with more than
`IDENTITY_ROWS` rows use the Gram matrix without their rows instead. Both formulas only select candidates: every close
support is refitted by `problem.objective.fit` on the training rows before anything is decided.

Under restrictions beyond forced columns, `verify` tries all supports that the restrictions allow. With sign
constraints, the fit of a support is the ridge fit of its nonzero coefficients. The optimum is therefore the minimum
over plain ridge fits with these signs: one for each set of columns that an allowed support contains, if a sign
constraint may force the other columns of this support to zero (docs/theory.md, "Restrictions"). No constrained fit is
made here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, islice
from math import comb
from typing import Any, NamedTuple

import numpy as np

from sparsecv_mio.arrays import BLOCK_NUMBERS, CHUNK_ELEMENTS, BoolArray, FloatArray, IntArray, exact_product
from sparsecv_mio.certificate.checked_fields import COST_LIMIT, ENUMERATE_PAIR
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.model_space import NONE, Restrictions, Term
from sparsecv_mio.problem.coordinates import Coordinates, exact_sum, objective_slack
from sparsecv_mio.problem.objective import (
    RidgeFit,
    fit,
    held_out_error,
    ridge_weights,
    scaled_norms,
    scales,
    varying_columns,
)
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, OUTWARD, ROUNDING, TIE_RTOL, TINY

CORRELATED_AT_ONCE = 10**9  # fold rows times squared columns, up to which the correlations of every fold are computed
NO_EFFECT = ACCURATE_RTOL  # share of the target; a smaller effect may have either sign


@dataclass(frozen=True, eq=False)
class AllowedSupports:
    """The sets of columns that restrictions allow as supports, as positions.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    asked : Restrictions
        Restrictions by names of the data.
    together : tuple of tuples of str
        Groups of features that enter together.
    """

    names: tuple[str, ...]
    asked: Restrictions
    together: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms of models, by positions; the terms of adjusted columns have the count 0."""
        place = {name: j for j, name in enumerate(self.names)}
        return tuple(term.convert_to_positions(place) for term in self.asked.terms(self.names, self.together))

    @cached_property
    def selectable(self) -> tuple[Term, ...]:
        """The terms that count as features."""
        return tuple(term for term in self.terms if term.count)

    @cached_property
    def adjusted_columns(self) -> tuple[int, ...]:
        """Positions of the adjusted columns, which every model has."""
        return tuple(j for term in self.terms if not term.count for j in term.columns)

    def columns(self, tau: int) -> int:
        """Return the maximum number of columns of a model of up to tau features, with the adjusted columns."""
        more = sorted((len(term.columns) - term.count for term in self.selectable), reverse=True)
        return min(tau + sum(more[:tau]) + len(self.adjusted_columns), len(self.names))

    def count(self, support: Iterable[int]) -> int:
        """Return the number of features that a support counts as."""
        chosen = set(support)
        return sum(min(len(chosen.intersection(term.columns)), term.count) for term in self.terms)

    @cached_property
    def _possible(self) -> frozenset[int]:
        return frozenset(j for term in self.terms for j in term.columns)

    @cached_property
    def sign(self) -> IntArray:
        """(q,) 1 for columns with a nonnegative coefficient, -1 for a nonpositive one, else 0."""
        up, down = (np.isin(self.names, list(some)) for some in (self.asked.nonnegative, self.asked.nonpositive))
        return up.astype(np.int64) - down.astype(np.int64)

    def allows(self, support: Iterable[int]) -> bool:
        """Return True if a model may have exactly these columns, apart from signs and size."""
        places, restrictions = set(support), self.asked
        chosen = {self.names[j] for j in places}
        return (
            chosen.issuperset(restrictions.forced_columns)
            and self._possible.issuperset(places)
            and all(places.issuperset(term.columns) or places.isdisjoint(term.columns) for term in self.terms)
            and all(len(chosen.intersection(group.features)) <= group.count for group in restrictions.at_most)
            and all(
                chosen.issuperset(rule.parents) if rule.every else not chosen.isdisjoint(rule.parents)
                for rule in restrictions.hierarchy
                if rule.feature in chosen
            )
        )

    def holds(self, active: tuple[int, ...], tau: int, slope: FloatArray | None = None) -> bool:
        """Return True if an allowed support of up to tau has these columns, and others that signs force to zero.

        Parameters
        ----------
        slope : (q,) array, optional
            Decrease of the objective by increasing each coefficient; without it, every sign constraint may be active.
        """
        stays = self.sign != 0 if slope is None else (self.sign != 0) & (self.sign * slope <= NO_EFFECT)
        others = [j for j in np.flatnonzero(stays).tolist() if j not in active]
        return any(self.allows((*active, *more)) for more in _subsets(others, tau - self.count(active)))

    def support_tables(self, tau: int) -> dict[int, IntArray]:
        """Return the sets that `holds` accepts for up to tau features, one table for each number of columns."""
        signed, by_size = set(np.flatnonzero(self.sign).tolist()), defaultdict[int, set[tuple[int, ...]]](set)
        for terms in _subsets(self.selectable, tau):
            columns = {j for term in terms for j in term.columns}.union(self.adjusted_columns)
            if sum(term.count for term in terms) <= tau and self.allows(columns):
                for at_zero in _subsets(sorted(columns & signed), len(columns)):
                    by_size[len(columns) - len(at_zero)].add(tuple(sorted(columns.difference(at_zero))))
        return {
            size: np.array(sorted(by_size[size]), dtype=np.int64).reshape(len(by_size[size]), size)
            for size in sorted(by_size)
        }

    def exactly(self, tau: int) -> list[IntArray]:
        """Return the allowed supports of exactly tau features, one table for each number of columns."""
        of_size = (
            rows[[self.count(row) == tau for row in rows.tolist()]] for rows in self.support_tables(tau).values()
        )
        return [rows for rows in of_size if len(rows)]

    def has_required_signs(self, support: Iterable[int], effect: FloatArray) -> bool:
        """Return True if coefficients have the required signs, apart from negligible ones.

        Parameters
        ----------
        effect : (s,) array
            Coefficients times the lengths of their columns, divided by the length of the target.
        """
        return bool(np.all(self.sign[list(support)] * effect >= -NO_EFFECT))


def positions(names: Iterable[str], index: Mapping[str, int], adjusted: Iterable[str] = ()) -> tuple[int, ...] | None:
    """Return the sorted positions of the features of a support, and of the adjusted columns, which it does not name.

    None if a name is unknown or there twice.

    Parameters
    ----------
    names : iterable of str
        The features.
    index : mapping of str to int
        Positions by name.
    adjusted : iterable of str
        Names of the adjusted columns.
    """
    columns = [index.get(name) for name in (*names, *adjusted)]
    if None in columns or len(set(columns)) < len(columns):
        return None
    return tuple(sorted(j for j in columns if j is not None))


def _subsets(things: Sequence[Any], most: int) -> Iterator[tuple[Any, ...]]:
    """Yield the subsets with at most `most` elements, smaller ones first."""
    return chain.from_iterable(combinations(things, size) for size in range(min(most, len(things)) + 1))


IDENTITY_ROWS = 12
CANDIDATE_RTOL = 1e-5  # four times the error of the closed forms below, so that every tie is refitted
CANDIDATE_SHARE = 1e-10  # share of the sum of squares of the target: rounding of an objective from a Gram matrix
NEARLY_PERFECT = 1e-4  # condition^-1 times share of the target, below which residuals get twice the precision
CANCELLED = 1e-3  # share of the full-data objective; a smaller objective without some rows has lost digits
TWICE = 8.0 * ROUNDING  # rounding of a sum in twice the precision, relative to its terms
TRUSTED = 1e-7  # rounding / TRUSTED = 1e-9 bounds the error of a correction, below all tolerances
NOISE = ROUNDING / 2.0  # of the target and a residual: 1,000 ulps of a long double, for sums and factors
RESIDUAL = 8.0 * ROUNDING  # rounding of a residual of the search, relative to the largest centred target
FACTOR_ROUNDING = 20.0 * ROUNDING  # rounding of a factorisation, relative to column lengths times root of its size
DOUBTFUL_EFFECT = 1000.0 * NO_EFFECT  # for a smaller effect an exact fit decides the sign
SINGULAR = 1e-5  # reciprocal condition of a Gram matrix, below which its solution may lose digits
LOOSE_TIES = 16.0 * TIE_RTOL  # tolerance within which a search may have treated supports as tied


@dataclass(frozen=True, eq=False)
class UnitColumns:
    """Some columns of a data set, centred about means of all rows and divided by powers of two.

    Attributes
    ----------
    dataset : Dataset
        Data set.
    scale, intercept : str
        Unit of the penalty, and type of the intercept.
    columns : (q,) int array
        Positions in the data set.
    Z : (n, q) array
        Columns centred on all rows unless the intercept is `none`, divided by a power of two; rows multiplied by
        `root`.
    t : (n,) array
        Targets in the same form.
    weight : (q,) array
        Penalty weights in these coordinates.
    y_unit : float
        Unit of the target: objectives here times `y_unit ** 2` are objectives in the file.
    root : (n,) array
        Square roots of the row weights.
    forced : tuple of int
        Positions in `columns` of the columns in every support.
    rows_by_weight : float
        Number of scored rows divided by their weight.
    allowed : AllowedSupports, optional
        Restrictions other than forced columns, if there are any.
    target_noise : float
        Error bound of each target, if targets are computed and not read from a file.
    free : tuple of int
        Positions in the data set of unpenalised columns.
    plan : FoldPlan, optional
        Folds on whose training rows unpenalised columns may be more collinear than on all rows.
    """

    dataset: Dataset
    scale: str
    intercept: str
    columns: IntArray
    Z: FloatArray
    t: FloatArray
    weight: FloatArray
    x_unit: FloatArray
    y_unit: float
    root: FloatArray
    forced: tuple[int, ...] = ()
    rows_by_weight: float = 1.0
    allowed: AllowedSupports | None = None
    target_noise: float = 0.0
    free: tuple[int, ...] = ()
    plan: FoldPlan | None = None
    _eigenvalues: dict[tuple[int, ...], float] = field(default_factory=dict, repr=False)

    @classmethod
    def from_dataset(
        cls, dataset: Dataset, scale: str, intercept: str, columns: IntArray | None = None, free: Sequence[int] = ()
    ) -> UnitColumns:
        """Return a data set in these coordinates.

        Parameters
        ----------
        scale : {"length", "variance", "none"}
            Unit in which the penalty measures columns.
        intercept : {"fold", "global", "none"}
            Type of the intercept.
        columns : (q,) int array, optional
            Positions of the columns; by default all varying columns.
        free : sequence of int, optional
            Positions in the data set of unpenalised columns.
        """
        chosen = varying_columns(dataset.X) if columns is None else columns
        everyone = np.arange(dataset.n)
        weights, root = dataset.row_weights, np.ones(dataset.n)
        if weights is not None:
            root = np.sqrt(weights)
        about = None if intercept == "none" else everyone
        place = Coordinates.from_columns(
            dataset.X, dataset.y, chosen.tolist(), about, None if weights is None else root
        )
        Z, t = place.rows(dataset.X, dataset.y, everyone)
        weight = np.minimum(scales(dataset.X[:, chosen], scale, weights) / place.x_unit, 1e150) ** 2
        weight[np.isin(chosen, list(free))] = 0.0
        Z, t = Z * root[:, None], t * root
        return cls(dataset, scale, intercept, chosen, Z, t, weight, place.x_unit, place.y_unit, root, free=tuple(free))

    @classmethod
    def from_restricted_dataset(
        cls, dataset: Dataset, scale: str, intercept: str, restrictions: Restrictions | None
    ) -> UnitColumns:
        """Return the varying columns that are not forced out, with the forced columns marked.

        Parameters
        ----------
        scale : {"length", "variance", "none"}
            Unit in which the penalty measures columns.
        intercept : {"fold", "global", "none"}
            Type of the intercept.
        restrictions : Restrictions or None
            Restrictions by names of the data.
        """
        wanted = restrictions or NONE
        varying = varying_columns(dataset.X)
        design = cls.from_dataset(
            dataset, scale, intercept, varying[~np.isin(np.array(dataset.names)[varying], wanted.force_out)],
            [j for j, penalty in enumerate(wanted.penalties(dataset.names)) if not penalty],
        )  # fmt: skip
        forced = tuple(i for i, name in enumerate(design.names) if name in wanted.forced_columns)
        allowed = AllowedSupports(design.names, wanted) if wanted.side_constraints else None
        return replace(design, forced=forced, allowed=allowed)

    @property
    def q(self) -> int:
        """Number of columns."""
        return int(self.columns.shape[0])

    @property
    def terms(self) -> int:
        """Number of features that may be chosen, a factor as one, without adjusted columns."""
        return self.q - len(self.adjusted_columns) if self.allowed is None else len(self.allowed.selectable)

    @cached_property
    def adjusted_columns(self) -> frozenset[int]:
        """Positions in `columns` of the adjusted columns."""
        return frozenset(np.flatnonzero(np.isin(self.columns, list(self.free))).tolist())

    def most_columns(self, tau: int) -> int:
        """Return the maximum number of columns of a model of tau features, with the adjusted columns."""
        return min(tau + len(self.adjusted_columns), self.q) if self.allowed is None else self.allowed.columns(tau)

    def positions(self, features: Iterable[str]) -> tuple[int, ...] | None:
        """Return the sorted positions of a support that a record states; None if it is not a set of features.

        Parameters
        ----------
        features : iterable of str
            Names of its features, without adjusted columns.
        """
        return positions(features, self.index, (self.dataset.names[j] for j in self.free))

    @property
    def is_exact(self) -> bool:
        """True if columns and targets are exactly the data divided by powers of two."""
        return self.intercept == "none" and self.dataset.row_weights is None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.dataset.names[j] for j in self.columns.tolist())

    @cached_property
    def index(self) -> dict[str, int]:
        """Position in `columns` by name."""
        return {name: i for i, name in enumerate(self.names)}

    def join_names(self, support: Iterable[int]) -> str:
        """Return the names of a support as a list."""
        return ", ".join(self.names[j] for j in support)

    def enumeration_obstacle(self, taus: list[int], gammas: int, k: int) -> str:
        """Return the reason why supports of some pairs are not enumerated in every fold; empty if they are.

        Parameters
        ----------
        gammas, k : int
            Numbers of gammas and folds.
        """
        if self.terms > ENUMERATE_PAIR:
            return f"p > {ENUMERATE_PAIR}"
        return "too many rows to try all supports" if self.cost(taus, gammas, k) > COST_LIMIT else ""

    def cost(self, taus: list[int], gammas: int, k: int) -> float:
        """Return the approximate number of operations of `fold_optima` for all pairs.

        Parameters
        ----------
        gammas, k : int
            Numbers of gammas and folds.
        """
        limited, q, total = self.allowed is not None, self.terms, 0.0
        for size in [size for tau in taus for size in range(0 if limited else min(tau, q), min(tau, q) + 1)]:
            count = comb(q, size)
            blocks = 1.0 + k * count // BLOCK_NUMBERS
            work = max(self.dataset.n, 400, 30 * k) * (self.most_columns(size) + 2.0)
            total += count * (work * blocks + 500.0 * k * limited)
        return gammas * total

    def sets(self, tau: int) -> list[IntArray]:
        """Return the column sets of models of up to tau features, as sorted positions in `columns`, by size."""
        return [self.supports(tau)] if self.allowed is None else list(self.allowed.support_tables(tau).values())

    def exactly(self, tau: int) -> list[IntArray]:
        """Return the column sets of models of exactly tau features, as sorted positions, by number of columns."""
        return [self.supports(tau)] if self.allowed is None else self.allowed.exactly(tau)

    def count(self, support: Sequence[int]) -> int:
        """Return the number of features that a support counts as."""
        return len(set(support) - self.adjusted_columns) if self.allowed is None else self.allowed.count(support)

    def has_required_signs(self, support: IntArray | tuple[int, ...], model: RidgeFit) -> bool:
        """Return True if the coefficients of a fit satisfy the sign constraints.

        Parameters
        ----------
        support : (s,) int array or tuple
            Positions in `columns`.
        model : RidgeFit
            Fit of the support.
        """
        return self.allowed is None or self.allowed.has_required_signs(support, effects(self, support, model))

    def supports(self, tau: int) -> IntArray:
        """Return (C, s) all supports of one tau within the restrictions, as sorted positions in `columns`."""
        size = self.most_columns(tau)
        others = [j for j in range(self.q) if j not in self.forced]
        sets = [sorted((*self.forced, *free)) for free in combinations(others, max(size - len(self.forced), 0))]
        return np.array(sets, dtype=np.int64).reshape(len(sets), size)

    def refit(self, support: IntArray | tuple[int, ...], gamma: float, rows: IntArray | None) -> RidgeFit:
        """Return the fit of a support by `problem.objective.fit`.

        Parameters
        ----------
        support : (s,) int array or tuple
            Positions in `columns`.
        rows : int array or None
            Training rows; None: all rows.
        """
        names = self.columns[np.asarray(support, dtype=np.int64)].tolist()
        return fit(
            self.dataset.X, self.dataset.y, names, ridge_weights(names, self.free, gamma), scale=self.scale,
            intercept=self.intercept, rows=rows,
            weights=self.dataset.row_weights,
        )  # fmt: skip

    def noise_effects(self, support: tuple[int, ...], gamma: float) -> FloatArray:
        """Return bounds on the effect of `target_noise` on full-data coefficients, in units of the file."""
        if not self.target_noise or not support:
            return np.zeros(len(support))
        at = list(support)
        A = np.vstack([self.Z[:, at], np.diag(np.sqrt(gamma / 2.0 * self.weight[at]))])
        inverse = np.abs(np.linalg.pinv(A, rcond=1e-15)[:, : len(self.t)])
        return np.asarray(inverse @ self.root * self.target_noise / self.x_unit[at])

    def minimum_objective(self, supports: IntArray, gamma: float, rows: IntArray | None) -> float:
        """Return the minimum objective over some supports.

        Parameters
        ----------
        supports : (k, s) int array
            Positions in `columns`.
        rows : int array or None
            Training rows; None: all rows.
        """
        return min(self.refit(s, gamma, rows).objective for s in supports)

    def residual_noise(self, h: float, gamma: float, tau: int) -> float:
        """Return a bound on the rounding error of a held-out residual of a search, times the root of its weight.

        Parameters
        ----------
        h : float
            Mean square of such residuals, in units of the file.

        Notes
        -----
        `r = 1e-16 (100 size + sqrt(n) (c size + c^2 sqrt(h)))`: a search computes in 64-bit long doubles, `size` is the
        largest centred target, and h is the mean square of the residuals. The condition number of a fit is at most
        `c = sqrt(tau max_j (1 + |z_j|^2 / (gamma/2 s_j^2)))`, as the penalty bounds its smallest singular value. For
        unpenalised columns the smallest eigenvalue of their correlations gives the bound.
        """
        penalty, tau = gamma / 2.0 * self.weight, self.most_columns(tau)
        paid = penalty > 0.0
        with np.errstate(over="ignore"):
            ratio = 1.0 + np.einsum("ij,ij->j", self.Z[:, paid], self.Z[:, paid]) / penalty[paid]
        square = max(tau, 1) * float(ratio.max(initial=1.0))
        if not paid.all():
            square *= max(tau, 1) / max(self._least_eigenvalue(tuple(np.flatnonzero(~paid).tolist())), TINY)
        condition = np.sqrt(min(square, 1e36))
        size = float(np.abs(self.t).max()) * self.y_unit
        reach = float(np.sqrt(self.dataset.n) * condition) * (size + float(condition) * float(np.sqrt(h)))
        return NOISE * (100.0 * size + reach)

    def _least_eigenvalue(self, columns: tuple[int, ...]) -> float:
        """Return the smallest eigenvalue of the correlations of some columns, over all rows and training rows."""
        if columns not in self._eigenvalues:
            every = [np.zeros(0, dtype=np.int64)]
            if self.plan is not None and self.plan.k * self.Z.shape[0] * len(columns) ** 2 <= CORRELATED_AT_ONCE:
                every += [self.plan.left_out(fold) for fold in range(self.plan.k)]
            grams = (moments(self, rows).gram[np.ix_(columns, columns)] for rows in every)
            self._eigenvalues[columns] = min(map(_least_correlation, grams))
        return self._eigenvalues[columns]

    def slack(self, h: float, gamma: float, tau: int, relative: float) -> float:
        """Return a bound on the rounding error of a mean square of residuals: `relative h + 2 r sqrt(h) + r^2`.

        Parameters
        ----------
        h : float
            Weighted mean square.
        """
        noise = self.residual_noise(h / self.rows_by_weight, gamma, tau) * float(np.sqrt(self.rows_by_weight))
        return relative * h + noise * (2.0 * float(np.sqrt(h)) + noise)

    def refit_slack(self, h: float) -> float:
        """Return a bound on the rounding of a mean square of refits: `CROSSING_RTOL h + 2 r sqrt(h) + r^2`.

        The rounding r of a residual matters if the fit is nearly perfect, so that h may be as small as `r^2`.

        Parameters
        ----------
        h : float
            Weighted mean square.
        """
        noise = RESIDUAL * float(np.abs(self.t).max()) * self.y_unit
        return CROSSING_RTOL * h + noise * (2.0 * math.sqrt(h) + noise)

    def objective_slack(self, objective: float) -> float:
        """Return a bound on the rounding error of a full-data objective of the search, in units of the file."""
        noise = self.target_noise * math.sqrt(self.dataset.weight_of(slice(0, self.dataset.n)))
        slack = objective_slack(objective, self.dataset, self.intercept)
        return slack + noise * (2.0 * math.sqrt(objective) + noise)

    def rounding(self, objective: float) -> float:
        """Return a bound on the error of a refit in floats, in units of the file.

        It is 1e-12 relative to the objective plus, for a nearly perfect fit, the rounding of residuals relative to the
        targets.
        """
        noise = RESIDUAL * self.y_unit * float(np.linalg.norm(self.root))
        return OUTWARD * objective + noise * (2.0 * float(np.sqrt(objective)) + noise)


def _least_correlation(gram: FloatArray) -> float:
    """Return the smallest eigenvalue of a Gram matrix scaled to columns of length 1; 0 if a column is zero."""
    squares = np.diag(gram)
    if not (squares > 0.0).all():
        return 0.0
    unit = 1.0 / np.sqrt(squares)
    return float(np.linalg.eigvalsh(gram * unit[:, None] * unit)[0])


@dataclass(frozen=True, eq=False)
class FoldOptima:
    """Held-out sums of squares over the tied optima of each fold, and whether a reported support is optimal.

    `low` and `high` are over supports that are certainly tied, `loose_low` and `loose_high` over all supports that may
    count as tied: a correct interval contains the former and need not be wider than the latter. `excess` is the
    relative excess of the objective of a reported support over the minimum.
    """

    low: FloatArray
    high: FloatArray
    loose_low: FloatArray
    loose_high: FloatArray
    reported_optimal: BoolArray
    excess: FloatArray


def fold_optima(
    design: UnitColumns, folds: FoldPlan, gamma: float, tau: int, reported: list[tuple[int, ...]] | None = None
) -> FoldOptima:
    """Return the optima of every fold of one (gamma, tau), found by enumeration.

    Parameters
    ----------
    design : UnitColumns
        Design of all columns that may be in a support.
    reported : list of tuple of int, optional
        Support of each fold, as sorted positions in `design.columns`, to be compared with the optimum. It may be
        smaller than tau, since a column that is constant in a training set adds nothing.
    """
    X, y, weights = design.dataset.X, design.dataset.y, design.dataset.row_weights
    ends, good, excess = np.zeros((4, folds.k)), np.ones(folds.k, dtype=bool), np.zeros(folds.k)
    for fold, fits, optima in _fits_by_fold(design, folds, gamma, tau, reported):
        if optima is not None:
            ends[:, fold] = optima
            continue
        train, test = folds.train_rows(fold), folds.scored_rows(fold)
        least = min(model.objective for model, _ in fits)
        doubt = design.rounding(least)
        errors = [(m.objective, certain, held_out_error(m, X, y, test, weights)) for m, certain in fits]
        tied = [error for value, certain, error in errors
                if value == least or (certain and value <= least * (1.0 + 0.5 * TIE_RTOL))]  # fmt: skip
        near = [error for value, _, error in errors if value <= least * (1.0 + LOOSE_TIES) + doubt]
        ends[:, fold] = min(tied), max(tied), min(near), max(near)
        if reported is not None:
            mine = design.refit(reported[fold], gamma, train)
            best = mine.objective <= least * (1.0 + 2.0 * TIE_RTOL) + doubt
            excess[fold] = max(mine.objective - least - doubt, 0.0) / least if least > 0.0 else 0.0
            good[fold] = best and design.has_required_signs(reported[fold], mine)
    return FoldOptima(ends[0], ends[1], ends[2], ends[3], good, excess)


Fits = list[tuple[RidgeFit, bool]]


def _fits_by_fold(
    design: UnitColumns, folds: FoldPlan, gamma: float, tau: int, reported: list[tuple[int, ...]] | None
) -> Iterator[tuple[int, Fits, float | None]]:
    """Yield (fold, fits that may be optimal, the held-out error if no fit is needed for it).

    No fit is needed if only the reported support may be optimal and the identity gives its error.
    """
    sets = design.sets(tau)
    if design.allowed is not None:
        for fold in range(folds.k):
            yield fold, close_fits(design, sets, gamma, tau, folds.left_out(fold), folds.train_rows(fold)), None
        return
    supports = sets[0]
    for fold, objective, error, sure in all_objectives(design, folds, gamma, supports):
        candidates = _candidates(design, objective, sure)
        first = candidates[0]
        alone = candidates.size == 1 and (reported is None or tuple(reported[fold]) == tuple(supports[first]))
        if alone and sure[first] and folds.scores_all_left_out[fold]:
            yield fold, [], float(error[first]) * design.y_unit * design.y_unit
        else:
            train = folds.train_rows(fold)
            yield fold, [(design.refit(s, gamma, train), True) for s in supports[candidates]], None


def least_objective(design: UnitColumns, gamma: float, tau: int) -> float:
    """Return the minimum of f on all rows, in units of the file.

    Parameters
    ----------
    tau : int
        Maximum size of a support.
    """
    fits = close_fits(design, design.sets(tau), gamma, tau, np.zeros(0, dtype=np.int64), None)
    return min(model.objective for model, _ in fits)


def close_fits(
    design: UnitColumns, sets: list[IntArray], gamma: float, tau: int, left_out: IntArray, train: IntArray | None
) -> Fits:
    """Return exact fits with the required signs of all sets that may be optimal, and whether each is certainly valid.

    A fit is uncertain if a coefficient near zero may have the other sign, or if a column that a sign constraint forces
    to zero would improve the fit.

    Parameters
    ----------
    design : UnitColumns
        Design of the columns.
    sets : list of (C, size) int arrays
        Column sets from `design.sets(tau)`.
    gamma : float
        Ridge weight.
    tau : int
        Maximum number of features.
    left_out, train : int arrays
        Held-out rows and training rows; None: all rows.
    """
    if design.allowed is not None:
        return _fit_signed_supports(design, design.allowed, sets, gamma, tau, left_out, train)
    objective = _objectives(design, moments(design, left_out), gamma, sets[0])
    return [(design.refit(support, gamma, train), True) for support in sets[0][_candidates(design, objective)]]


def _candidates(design: UnitColumns, objective: FloatArray, sure: BoolArray | None = None) -> IntArray:
    """Return the supports that may be optimal: close to the best known objective, or with an unknown one (-inf).

    The error of an objective that is not `sure` may be a share of the squares of the targets, in either direction.
    """
    finite, share = np.isfinite(objective), CANDIDATE_SHARE * float(design.t @ design.t)
    room = share if sure is None else np.where(sure, 0.0, share)
    most = np.where(finite, objective * (1.0 + CANDIDATE_RTOL) + room, np.inf)
    return np.flatnonzero((objective - room <= float(most.min(initial=np.inf))) | ~finite)


def all_objectives(
    design: UnitColumns, folds: FoldPlan, gamma: float, supports: IntArray
) -> Iterator[tuple[int, FloatArray, FloatArray, BoolArray]]:
    """Yield (fold, objectives of all supports, their held-out errors, mask of those accurate to 1e-9).

    Parameters
    ----------
    supports : (C, s) int array
        Positions in `design.columns`.
    """
    sizes = folds.left_sizes
    for size in np.unique(sizes[sizes <= IDENTITY_ROWS]).tolist():
        members = np.flatnonzero(sizes == size)
        step = max(1, BLOCK_NUMBERS // len(supports))
        for start in range(0, len(members), step):
            yield from _evaluate_by_identity(design, folds, gamma, supports, members[start : start + step])
    unknown, none = np.full(len(supports), np.nan), np.zeros(len(supports), dtype=bool)
    for fold in np.flatnonzero(sizes > IDENTITY_ROWS).tolist():
        yield fold, _objectives(design, moments(design, folds.left_out(fold)), gamma, supports), unknown, none


def _evaluate_by_identity(
    design: UnitColumns, folds: FoldPlan, gamma: float, supports: IntArray, members: IntArray
) -> Iterator[tuple[int, FloatArray, FloatArray, BoolArray]]:
    rows = np.stack([folds.left_out(fold) for fold in members.tolist()])
    objective, error, trust = np.empty((3, len(supports), len(members)))
    n, size = design.dataset.n, supports.shape[1]
    step = max(1, CHUNK_ELEMENTS // ((n + size) * (size + 2) + rows.size * (size + 2 * rows.shape[1])))
    for start in range(0, len(supports), step):
        some = slice(start, start + step)
        objective[some], error[some], trust[some] = leave_out(design, supports[some], gamma, rows)
    doubtful = trust < TRUSTED
    for j, fold in enumerate(members.tolist()):
        if doubtful[:, j].any():
            train = moments(design, folds.left_out(fold))
            objective[doubtful[:, j], j] = _objectives(design, train, gamma, supports[doubtful[:, j]])
        yield fold, objective[:, j], error[:, j], ~doubtful[:, j]


def leave_out(
    design: UnitColumns, supports: IntArray, gamma: float, rows: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return objectives and held-out errors of supports without each of some sets of rows, from full-data fits.

    Parameters
    ----------
    supports : (C, s) int array
        Positions in `design.columns`.
    rows : (k, B) int array
        Sets of held-out rows, one in each row of the array.

    Returns
    -------
    objective, error : (C, k) arrays
        Values in the units of the design.
    trust : (C, k) array
        Smallest eigenvalue of I - H_NN times reciprocal condition of the columns times ||e|| / ||t||; if it is near 0,
        the other results have lost digits. If e is computed from the data in twice the precision, ||e|| is divided by
        the root of f instead.
    """
    n, (count, s) = design.dataset.n, supports.shape
    root = np.sqrt(gamma / 2.0 * design.weight[supports])
    stacked = np.zeros((count, n + s, s))
    stacked[:, :n] = design.Z[:, supports].transpose(1, 0, 2)
    stacked[:, range(n, n + s), range(s)] = root
    length = np.sqrt(np.einsum("cij,cij->cj", stacked, stacked))
    Q, R = np.linalg.qr(stacked / np.where(length > 0.0, length, 1.0)[:, None])
    values = np.linalg.svd(R, compute_uv=False) if s else np.ones((count, 1))
    rcond = values[:, -1] / np.where(values[:, 0] > 0.0, values[:, 0], np.inf)
    e = np.concatenate([design.t, np.zeros(s)]) - (Q @ (design.t @ Q[:, :n])[:, :, None])[:, :, 0]
    full = np.einsum("ci,ci->c", e, e)
    share = np.minimum(1.0, np.sqrt(np.einsum("ci,ci->c", e[:, :n], e[:, :n])) / float(np.linalg.norm(design.t)))
    if design.is_exact:
        for i in np.flatnonzero((share * rcond < NEARLY_PERFECT) & (rcond > TRUSTED)):
            e[i], digits = _sharp_residual(design, supports[i], root[i], (Q[i], R[i], length[i]))
            full[i] = float(e[i] @ e[i])
            share[i] = digits * float(np.linalg.norm(e[i, :n])) / math.sqrt(full[i]) if full[i] > 0.0 else 0.0
    held_out, margin = _residuals_left_out(design, Q, e, rows)
    objective = full[:, None] - np.sum(e[:, rows] * held_out, axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        cancelled = np.where(full[:, None] > 0.0, np.clip(objective / (CANCELLED * full[:, None]), 0.0, 1.0), 0.0)
    return objective, np.sum(held_out**2, axis=2), margin * (rcond * share)[:, None] * cancelled


def _residuals_left_out(
    design: UnitColumns, Q: FloatArray, e: FloatArray, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return `(I - H_NN)^-1 e_N` from factors and residuals of fits, and the smallest eigenvalue of `I - H_NN`."""
    out = Q[:, rows]
    H = out @ out.swapaxes(2, 3)
    if design.intercept == "fold":
        H += design.root[rows][:, :, None] * design.root[rows][:, None, :] / float(design.root @ design.root)
    if rows.shape[1] == 1:
        complement = np.asarray(1.0 - H[..., 0, 0], dtype=np.float64)
        return e[:, rows] / np.where(complement > 0.0, complement, 1.0)[..., None], complement
    matrix = np.eye(rows.shape[1]) - (H + H.swapaxes(2, 3)) / 2.0
    margin = np.asarray(np.linalg.eigvalsh(matrix)[..., 0], dtype=np.float64)
    matrix[margin < TRUSTED] = np.eye(rows.shape[1])  # not trusted, and possibly exactly singular
    return np.asarray(np.linalg.solve(matrix, e[:, rows][..., None])[..., 0], dtype=np.float64), margin


def _sharp_residual(
    design: UnitColumns, support: IntArray, root: FloatArray, factors: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, float]:
    """Return an accurate residual of `[Z; diag(root)] b = [t; 0]` if it is tiny relative to the target.

    For any `b`, the least-squares residual is the part of `t - Z b` that is orthogonal to the columns. If `b` is nearly
    correct and `t - Z b` is summed in twice the precision, little cancellation remains. The second returned number is
    the size of the residual relative to this sum and the rounding of its terms.
    """
    (Q, R, length), beta = factors, np.zeros(len(support))
    for _ in range(3):
        high, low = design.t, np.zeros(len(design.t))
        for column, b in zip(design.Z[:, support].T, beta.tolist(), strict=True):
            product, below = exact_product(column, -b)
            high, lost = exact_sum(high, product)
            low = low + (lost + below)
        stacked = np.concatenate([high + low, -root * beta])
        along = Q.T @ stacked
        beta = beta + np.linalg.solve(R, along) / length
    residual: FloatArray = stacked - Q @ along
    size = float(np.linalg.norm(stacked)) + TWICE * float(np.linalg.norm(design.t))
    return residual, min(1.0, float(np.linalg.norm(residual)) / max(size, TINY))


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """Moments of some training rows, about their means with a fold intercept, and factors that keep their digits.

    Attributes
    ----------
    gram : (q, q) array
        Gram matrix of the columns.
    moment : (q + 1,) array
        Products of columns and target; the last entry is the squared length of the target.
    root : (m, q + 1) array
        Orthogonal factor of columns and target: `root' root` gives all of these moments.
    rounding : float
        Rounding of the columns of `root`, relative to their lengths.
    """

    gram: FloatArray
    moment: FloatArray
    root: FloatArray
    rounding: float


def moments(design: UnitColumns, test: IntArray) -> FoldMoments:
    """Return the moments of the rows outside `test`."""
    keep = np.ones(design.dataset.n, dtype=bool)
    keep[test] = False
    block = np.column_stack([design.Z[keep], design.t[keep]])
    if design.intercept == "fold":  # from the file, since centring on all rows may have lost digits of these
        root, X, y = design.root[keep], design.dataset.X[keep][:, design.columns], design.dataset.y[keep]
        block = np.column_stack([(X - X.mean(axis=0)) / design.x_unit, (y - y.mean()) / design.y_unit])
        block *= root[:, None]
        block -= np.outer(root, root @ block / float(root @ root))
    product, rounding = block.T @ block, FACTOR_ROUNDING * float(np.sqrt(sum(block.shape)))
    factor: FloatArray = np.asarray(np.linalg.qr(block, mode="r"), dtype=np.float64)
    return FoldMoments(product[:-1, :-1], product[:, -1], factor, rounding)


class GramFits(NamedTuple):
    """Fits of a block of supports.

    Attributes
    ----------
    objective : (C,) array
        Objectives; -inf if unknown.
    beta : (C, s) array
        Coefficients.
    doubt : (C,) array
        Rounding error of a coefficient times the length of its column, relative to the length of the target.
    by_rows : (C,) bool array
        True for fits from rows: the error of the objective may be a fourth of the candidate tolerance.
    """

    objective: FloatArray
    beta: FloatArray
    doubt: FloatArray
    by_rows: BoolArray


def _objectives(design: UnitColumns, train: FoldMoments, gamma: float, supports: IntArray) -> FloatArray:
    """Return the objectives of all supports of a size."""
    return np.concatenate([fits.objective for fits in gram_fits(design, train, gamma, supports)])


def gram_fits(design: UnitColumns, train: FoldMoments, gamma: float, supports: IntArray) -> Iterator[GramFits]:
    """Yield fits of blocks of supports: t't - c'(G + penalty)^{-1} c by moments, or by rows if digits are lost."""
    full = train.gram + np.diag(gamma / 2.0 * design.weight)
    unread = iter(supports)
    step = max(1, BLOCK_NUMBERS // max(1, supports.shape[1] ** 2))
    while block := list(islice(unread, step)):
        S = np.array(block)
        length = np.sqrt(np.diag(full)[S])
        length[length == 0.0] = 1.0
        matrix = full[S[:, :, None], S[:, None, :]] / (length[:, :, None] * length[:, None, :])
        c = train.moment[:-1][S] / length
        values, vectors = np.linalg.eigh(matrix)
        lost: BoolArray = np.asarray(~(values[:, :1] > SINGULAR * values[:, -1:]).all(axis=1))
        values[lost] = 1.0
        parts = np.einsum("kij,ki->kj", vectors, c)
        all_fits = GramFits(
            train.moment[-1] - np.sum(parts * parts / values, axis=1),
            np.einsum("kij,kj->ki", vectors, parts / values) / length, np.full(len(S), DOUBTFUL_EFFECT), lost,
        )  # fmt: skip
        at = np.flatnonzero(lost)
        few = max(1, BLOCK_NUMBERS // max(1, train.root.size))
        for some in (at[i : i + few] for i in range(0, len(at), few)):
            for all_of, fits in zip(all_fits, _row_fits(design, train, gamma, S[some]), strict=True):
                all_of[some] = fits
        yield all_fits


def _row_fits(design: UnitColumns, train: FoldMoments, gamma: float, S: IntArray) -> GramFits:
    """Return fits of supports by orthogonal factors of their rows, whose condition is the root of that of moments.

    The computed fit is the exact one of columns and target that differ by r, which is `rounding` times their lengths.
    The error of the square root of its objective is therefore at most `r (|t| + sum_j length_j |b_j|)`. If this is too
    large for selecting candidates, the objective is set to -inf and the support is fitted exactly.
    """
    columns, t = train.root[:, :-1].T[S].transpose(0, 2, 1), train.root[:, -1]
    penalty = np.sqrt(gamma / 2.0 * design.weight[S])
    A = np.concatenate([columns, penalty[:, :, None] * np.eye(S.shape[1])], axis=1)
    length = np.linalg.norm(A, axis=1)
    length[length == 0.0] = 1.0
    A /= length[:, None, :]
    target, size = np.concatenate([t, np.zeros(S.shape[1])]), max(float(np.linalg.norm(t)), TINY)
    U, values, V = np.linalg.svd(A, full_matrices=False)
    values = np.maximum(values, TINY)
    beta = np.einsum("kji,kj->ki", V, np.einsum("kij,i->kj", U, target) / values)
    error = np.linalg.norm(target - np.einsum("kij,kj->ki", A, beta), axis=1)
    wrong = train.rounding * (size + np.abs(beta).sum(axis=1))
    certain = wrong * (2.0 * error + wrong) <= (CANDIDATE_RTOL * error**2 + CANDIDATE_SHARE * size**2) / 4.0
    condition = values[:, 0] / values[:, -1]
    doubt = train.rounding * condition * (np.linalg.norm(beta, axis=1) + condition * error) / size
    every = np.ones(len(S), dtype=bool)
    return GramFits(np.where(certain, error**2, -np.inf), beta / length, np.maximum(doubt, DOUBTFUL_EFFECT), every)


def held_out_errors(
    whole: UnitColumns, folds: FoldPlan, supports: list[tuple[int, ...]], gamma: float
) -> tuple[FloatArray, FloatArray | None, str]:
    """Return held-out sums of squares and of absolute values of every fold at its given support.

    Parameters
    ----------
    whole : UnitColumns
        Design of all varying columns.
    supports : list of tuple of int
        Supports by fold, as positions in `whole.columns`.

    Returns
    -------
    errors : (k,) array
        Sums of squares, in units of the file.
    absolute : (k,) array or None
        Sums of absolute values without row weights; None unless every fold is refitted.
    how : str
        Method: "one refit per fold", or the leave-out identity if refits would take k n tau^2 > 5e8 operations.
    """
    dataset = whole.dataset
    tau = max((len(support) for support in supports), default=0)
    errors, absolute = np.empty(folds.k), np.empty(folds.k)
    direct = np.ones(folds.k, dtype=bool)
    if folds.k * dataset.n * (tau + 1.0) ** 2 > 5e8:
        groups: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for fold, (support, size) in enumerate(zip(supports, folds.sizes.tolist(), strict=True)):
            if size <= IDENTITY_ROWS and folds.scores_all_left_out[fold]:
                groups.setdefault((support, size), []).append(fold)
        for (support, _), members in groups.items():
            design = UnitColumns.from_dataset(
                dataset, whole.scale, whole.intercept, whole.columns[list(support)], whole.free
            )
            rows = np.stack([folds.scored_rows(fold) for fold in members])
            _, error, trust = leave_out(design, np.arange(len(support))[None], gamma, rows)
            errors[members] = error[0] * design.y_unit * design.y_unit
            direct[members] = trust[0] < TRUSTED
    for fold in np.flatnonzero(direct).tolist():
        model = whole.refit(supports[fold], gamma, folds.train_rows(fold))
        rows = folds.scored_rows(fold)
        errors[fold] = held_out_error(model, dataset.X, dataset.y, rows, dataset.row_weights)
        residuals = model.residuals(dataset.X, dataset.y, rows)
        absolute[fold] = float(np.abs(residuals).sum()) * model.coordinates.y_unit
    if direct.all():
        return errors, absolute, "one refit per fold"
    return errors, None, "leave-out identity"


def effects(design: UnitColumns, support: IntArray | tuple[int, ...], model: RidgeFit) -> FloatArray:
    """Return coefficients of a fit times the lengths of their columns, divided by the length of the target.

    Parameters
    ----------
    support : (s,) int array or tuple
        Positions in `design.columns`.
    model : RidgeFit
        Fit of the support.
    """
    columns = design.dataset.X[:, design.columns[np.asarray(support, dtype=np.int64)]] - model.x_center
    unit, norms = scaled_norms(columns, design.root)
    return np.asarray(model.beta * unit * norms / (np.linalg.norm(design.t) * design.y_unit))


def _fit_signed_supports(
    design: UnitColumns, allowed: AllowedSupports, sets: list[IntArray], gamma: float, tau: int, left_out: IntArray,
    train: IntArray | None,
) -> Fits:  # fmt: skip
    train_rows = moments(design, left_out)
    lengths = np.sqrt(np.diag(train_rows.gram)) / float(np.linalg.norm(design.t))
    rows, values, worst, doubts, betas = [], [], [], [], []
    for supports in sets:
        rows += list(supports)
        fits = list(gram_fits(design, train_rows, gamma, supports))
        values += [chunk.objective for chunk in fits]
        doubts += [chunk.doubt for chunk in fits]
        betas += [row for chunk in fits for row in chunk.beta]
        effect = np.concatenate([chunk.beta for chunk in fits]) * lengths[supports]
        worst.append(np.min(allowed.sign[supports] * effect, axis=1, initial=np.inf))
    value, sign, doubt = np.concatenate(values), np.concatenate(worst), np.concatenate(doubts)
    finite = np.isfinite(value)
    best = float(value[finite & (sign >= doubt)].min(initial=np.inf))
    models = []
    for i in np.argsort(value, kind="stable").tolist():  # early fits give bounds for the others
        close = value[i] <= best * (1.0 + CANDIDATE_RTOL) + CANDIDATE_SHARE * float(design.t @ design.t)
        if not close or (finite[i] and sign[i] < -doubt[i]):
            continue
        model = design.refit(rows[i], gamma, train)
        far = effects(design, rows[i], model)
        if allowed.has_required_signs(rows[i], far):
            best = min(best, model.objective / design.y_unit / design.y_unit)
            slope = train_rows.moment[:-1] - train_rows.gram[:, rows[i]] @ betas[i]
            slope = slope / np.maximum(lengths * float(design.t @ design.t), TINY)
            certain = bool(np.all((allowed.sign[rows[i]] == 0) | (np.abs(far) > NO_EFFECT)))
            models.append((model, certain and finite[i] and allowed.holds(tuple(rows[i].tolist()), tau, slope)))
    return models
