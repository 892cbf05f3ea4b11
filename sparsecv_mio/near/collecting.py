"""Lists of all supports at one gamma whose value is at most a threshold, found by branch-and-bound trees.

A *criterion* defines the value of a support: the training objective, or the CV error if all folds share the support. A
*branch* is the set of supports that contain given columns and exclude other given columns. The criterion gives a ridge
problem for each branch. Its objective f satisfies `f(S) <= rate * value(S) + offset` for every support S of the branch.
If the value of a support is at most v, its objective f is therefore at most `rate * v + offset`
(docs/theory/near_optimal.md). A `Collection` lists, by branch-and-bound trees, all supports S of a branch with
`f(S) <= rate * v + offset`. If a branch has many such supports, the branch is split.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, islice
from math import comb
from typing import NamedTuple, Protocol

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import Centre
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.errors import BadInput
from sparsecv_mio.kernels import leave_out
from sparsecv_mio.kernels.leave_out import HeldOutRows
from sparsecv_mio.model_space import Term
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.search.problems.left_out_folds import listed_supports
from sparsecv_mio.thresholds import CUBIC_COLUMNS, SUPPORTS_TRIED, has_large_matrices
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.trees.listing import PATH_SLICE, MetSupports, SupportsBelow
from sparsecv_mio.trees.normal_form import NormalForm, normal_form
from sparsecv_mio.trees.restricted_tree import TermsBelow, solve_with_constraints
from sparsecv_mio.trees.subsets import FIRST_LOOK, OpenNodes, is_never_expired
from sparsecv_mio.units import FROM_ROWS, SHAVED
from sparsecv_mio.words import Intercept

NO_CV_ERRORS = "some models have no CV error: their columns are collinear, and the penalty is too small to compensate"


@dataclass(frozen=True, eq=False)
class WholeTerms:
    """The terms of some columns, each named by its first column.

    Attributes
    ----------
    first : (q,) int array
        First column of the term of each column.
    adjusted : int array
        Adjustment columns, which are in every support and do not count.

    Examples
    --------
    >>> terms = WholeTerms(np.array([0, 1, 1, 3]))
    >>> terms.count(np.array([0, 1, 2])), terms.columns([1, 3]).tolist(), terms.most_columns(2)
    (2, [1, 2, 3], 3)
    """

    first: IntArray
    adjusted: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def from_data(cls, data: StandardData) -> WholeTerms:
        """Return the terms of data in standard coordinates."""
        first = np.arange(data.q)
        for term in data.terms:
            first[list(term.columns)] = term.columns[:1]
        return cls(first, data.adjusting)

    @cached_property
    def has_multicolumn_terms(self) -> bool:
        """True if some term has several columns."""
        return bool(np.any(self.first != np.arange(len(self.first))))

    def names(self, support: IntArray) -> IntArray:
        """Return the terms of a support in ascending order, each by its first column."""
        return np.unique(self.first[support]) if self.has_multicolumn_terms else support

    def count(self, support: IntArray) -> int:
        """Return the number of terms to which some columns belong, without adjustment columns."""
        return len(np.setdiff1d(self.names(support), self.adjusted))

    def columns(self, names: Iterable[int]) -> IntArray:
        """Return the columns of some terms, ascending."""
        chosen = np.array(sorted(names), dtype=np.int64)
        return np.flatnonzero(np.isin(self.first, chosen)).astype(np.int64) if self.has_multicolumn_terms else chosen

    def most_columns(self, tau: int) -> int:
        """Return the maximum number of columns of tau terms, with the adjustment columns."""
        widths = np.bincount(np.delete(self.first, self.adjusted))
        return int(np.sort(widths)[::-1][:tau].sum()) + len(self.adjusted)

    def constraints(self, forced: IntArray) -> SideConstraints:
        """Return the side constraints that describe the terms to trees, and the columns in every support."""
        groups = [np.flatnonzero(self.first == name).tolist() for name in np.unique(self.first).tolist()]
        terms = [Term(tuple(some)) for some in groups if len(some) > 1]
        terms += [Term((j,), 0, 0.0, True) for j in self.adjusted.tolist()]
        return SideConstraints(forced_in=tuple(forced.tolist()), terms=tuple(terms))

    def sets(self, among: IntArray, sizes: Sequence[int]) -> Iterator[IntArray]:
        """Yield the columns of every set of terms of given sizes among some columns."""
        names = self.names(among).tolist()
        for size in sizes:
            yield from map(self.columns, combinations(names, size))

    def neighbours(self, support: IntArray, forced: IntArray, taus: Sequence[int]) -> list[IntArray]:
        """Return the supports of some sizes that differ by adding, removing or exchanging one term.

        Parameters
        ----------
        support : int array
            Columns in ascending order.
        forced : int array
            Columns that stay.
        taus : sequence of int
            Wanted sizes, in terms.

        Examples
        --------
        >>> terms = WholeTerms(np.arange(3))
        >>> [one.tolist() for one in terms.neighbours(np.array([0, 1]), np.array([0]), [1, 2])]
        [[0], [0, 2]]
        """
        inside = self.names(support)
        size, outside = self.count(support), np.setdiff1d(self.names(np.arange(len(self.first))), inside).tolist()
        shorter = [np.setdiff1d(inside, [name]) for name in np.setdiff1d(inside, self.names(forced)).tolist()]
        made = list(shorter) if size - 1 in taus else []
        for start in (*(shorter if size in taus else ()), *([inside] if size + 1 in taus else ())):
            made += [np.append(start, name) for name in outside]
        return [self.columns(names.tolist()) for names in made]


@dataclass(frozen=True, eq=False)
class Valued:
    """A support, its value, and a bound on the rounding error of the value."""

    support: IntArray
    value: float
    error: float


def all_rows(data: StandardData, who: str) -> SparseProblem:
    """Return the problem of all rows at a gamma of 1.

    Parameters
    ----------
    data : StandardData
        Data set.
    who : str
        Name of the feature that needs the problem, for the error message.

    Raises
    ------
    BadInput
        If there are too many features for a matrix of their products.
    """
    if has_large_matrices(data, 1):
        raise BadInput(
            f"{who}: {data.q} features are too many, because the {data.q} x {data.q} Gram matrix does not fit in "
            "memory; keep fewer columns"
        )
    return row_moments(data, slice(0, data.n)).problem(data, 1.0)


MOST_MIDDLE = 1.9  # maximum of the number a, a mean eigenvalue
LEAST_REST = 1e-6  # minimum of 1 - leverage, which replaces smaller values
LOSS, LEAST_LAM_SHARE = 2e-4, 1e-8  # share of a bound given up for a penalty of its problem; minimum share of lam


class Branch(NamedTuple):
    """The supports that contain the columns `inside` and none of `outside`, both ascending."""

    inside: IntArray
    outside: IntArray


class Part(NamedTuple):
    """A problem that bounds the values of a branch from below: `f(S) <= rate * value(S) + offset`.

    Attributes
    ----------
    problem : SparseProblem
        Problem on the columns `columns`; the included columns of the branch are forced in.
    columns : int array
        Columns.
    rate, offset : float
        Numbers of the inequality.
    """

    problem: SparseProblem
    columns: IntArray
    rate: float
    offset: float


class Lists(Protocol):
    """A search that passes all supports at one gamma with small values to a taker.

    Attributes
    ----------
    finished : bool
        True if all supports with a value up to the threshold of their size were passed.
    nodes : int
        Number of nodes.
    """

    finished: bool
    nodes: int

    def run(self) -> None:
        """Pass supports until all were passed, or the time is over."""
        ...

    def unseen(self, tau: int) -> float:
        """Return a lower bound on the values, up to the threshold, of supports of a size that were not passed on.

        Parameters
        ----------
        tau : int
            Size.
        """
        ...


class SupportValue(ABC):
    """Values of supports at one gamma, in standard units, for any loss.

    Attributes
    ----------
    terms : WholeTerms
        Terms, which sizes of supports count.
    forced : int array
        Columns in every support.
    is_expired : callable
        Function that returns True when time is over; set by the caller of `likely` or `lists`.
    """

    terms: WholeTerms
    forced: IntArray
    is_expired: Callable[[], bool] = staticmethod(is_never_expired)

    @abstractmethod
    def likely(self, taus: Sequence[int], is_expired: Callable[[], bool]) -> list[IntArray]:
        """Return supports with a small training objective, some of each size."""

    @abstractmethod
    def lists(self, wanted: SupportTaker, is_expired: Callable[[], bool]) -> Lists:
        """Return a search that passes all wanted supports to a taker."""

    @abstractmethod
    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the values of supports, and bounds on their rounding errors.

        Parameters
        ----------
        supports : sequence of int arrays
            Supports.
        limit : float
            Value above which any number above it may be returned.
        """


class SquaredValue(SupportValue):
    """Base class of values for squared-error loss; `splits` is True if smaller branches have tighter problems."""

    problem: SparseProblem
    splits: bool

    def likely(self, taus: Sequence[int], is_expired: Callable[[], bool]) -> list[IntArray]:
        """Return supports with a small training objective; see `SupportValue`."""
        self.is_expired = is_expired
        return likely_supports(self.problem, self.terms, taus, is_expired)

    def lists(self, wanted: SupportTaker, is_expired: Callable[[], bool]) -> Collection:
        """Return a search that passes supports to a taker; see `SupportValue`."""
        self.is_expired = is_expired
        return Collection(self, wanted, is_expired)

    @abstractmethod
    def part(self, branch: Branch) -> Part:
        """Return a problem that bounds the values of a branch from below."""


class TrainingObjective(SquaredValue):
    """The training objective f(S) on all rows, as a value.

    Parameters
    ----------
    data : StandardData
        Data set.
    problem : SparseProblem
        Problem of all rows at one gamma.
    """

    splits = False

    def __init__(self, data: StandardData, problem: SparseProblem) -> None:
        self.data, self.problem, self.terms = data, problem, WholeTerms.from_data(data)
        self.forced = problem.forced

    def part(self, branch: Branch) -> Part:
        """Return the problem itself on the columns of a branch."""
        return branch_part(self.problem, branch, 1.0)

    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the values of supports; see `SupportValue`."""
        fits = fit_from_moments(self.problem, supports)
        value, error = fits.value.copy(), fits.value_error.copy()
        for a in np.flatnonzero(~((value < np.inf) & (error <= FROM_ROWS * value))).tolist():
            if not (value[a] < np.inf and value[a] - error[a] > limit):
                fit = refit_rows(self.data, slice(0, self.data.n), supports[a], 2.0 * self.problem.lam)
                value[a], error[a] = fit.objective, fit.objective_error
        return value, error


class CommonError(SquaredValue):
    """H(S), the mean of squared held-out residuals of one support in all folds, at one gamma, as a value.

    Parameters
    ----------
    folds : FoldRows
        Held-out rows.
    problem : SparseProblem
        Problem of all rows at the gamma.
    largest : int
        Maximum number of columns of a support.
    """

    splits = True

    def __init__(self, folds: FoldRows, problem: SparseProblem, largest: int) -> None:
        self.folds, self.problem, self.terms = folds, problem, WholeTerms.from_data(folds.data)
        self.forced = problem.forced
        self.below = problem.with_gamma(2.0 * residual_penalty(problem, largest))
        self._least = least_of_all_columns(self.below) * (1.0 - SHAVED)

    def part(self, branch: Branch) -> Part:
        """Return the problem of in-sample residuals, or that weighted by the leverages of the included columns.

        The problem with the larger bound for all columns of the branch together is returned.
        """
        plain = branch_part(self.below, branch, self.folds.residual_rate)
        weighted = self.weighted(branch)
        if weighted is None:
            return plain
        least = [(least_of_all_columns(form.problem) - form.offset) / form.rate for form in (plain, weighted)]
        return weighted if least[1] > least[0] else plain

    def weighted(self, branch: Branch) -> Part | None:
        """Return the problem of residuals weighted by the leverages of the columns that all supports have.

        Returns None if its penalty would have to be nearly zero.
        """
        problem, own = self.problem, branch.inside
        M = problem.M[np.ix_(own, own)]
        try:
            factor = np.linalg.inv(np.linalg.cholesky(M))
        except np.linalg.LinAlgError:
            return None
        value = problem.yy - float(np.sum((factor @ problem.c[own]) ** 2))
        most = min(problem.yy / 4.0, value - self._least)  # maximum of lam ||b||^2 over the supports of the branch
        share = min(LOSS * self._least / most, 1.0) if most > 0.0 else 1.0
        if not share > LEAST_LAM_SHARE:
            return None
        Z, t = self.folds.weighted_rows(own, factor)
        scatter = replace(
            problem, Q=Z.T @ Z, c=t @ Z, yy=float(t @ t), lam=share * problem.lam, n=len(t), copy_of=None,
            kept={},
        )  # fmt: skip
        return branch_part(scatter, branch, self.folds.total * (1.0 + SHAVED), share * most * (1.0 + SHAVED))

    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the values of supports; see `SupportValue`."""
        value, error = np.empty(len(supports)), np.empty(len(supports))
        longest = max(map(len, supports), default=1)
        step = max(CHUNK_ELEMENTS // max(longest, 1) ** 2, 1)
        for lo in range(0, len(supports), step):
            some = supports[lo : lo + step]
            value[lo : lo + step], error[lo : lo + step] = self.folds.errors(self.problem, some, limit)
        for a in np.flatnonzero(~((value < np.inf) & (error <= FROM_ROWS * value))).tolist():
            if not (value[a] < np.inf and value[a] - error[a] > limit):
                value[a], error[a] = self.folds.refit_support(supports[a], 2.0 * self.problem.lam, self.is_expired)
        return value, error


class FoldRows:
    """Held-out rows of folds, prepared to compute the values of supports that all folds share.

    Parameters
    ----------
    data : StandardData
        Data set.
    plan : FoldPlan
        Folds that hold out every row, all equally often.
    problem : SparseProblem
        Problem of all rows, at any gamma.

    Raises
    ------
    BadInput
        If the folds are not of this kind.

    Attributes
    ----------
    unit : float
        Factor from values to squared units of the target.
    residual_rate : float
        Factor c with: the sum of squared residuals of a full-data fit is at most c times H.
    """

    def __init__(self, data: StandardData, plan: FoldPlan, problem: SparseProblem) -> None:
        times = times_held_out(plan)
        self.data, self.plan = data, plan
        index = plan.order[: plan.scored]
        V, r = data.about(index, problem.v_mean, problem.r_mean)
        root = data.root_of(index)
        root = np.ones(len(r)) if root is None else np.ascontiguousarray(root)
        self.rows = HeldOutRows(np.asfortranarray(V), np.ascontiguousarray(r), plan.starts, root)
        self.base = 1.0 / problem.total if data.intercept is Intercept.FOLD else 0.0
        self.total = float(Scored.of(data.dataset, plan).total)
        self.unit = data.loss_unit
        by_row = plan.k == plan.scored
        least = (1.0 - self.base * float(np.min(root)) ** 2) ** 2 if by_row else 1.0
        self.residual_rate = least * self.total / times * (1.0 + SHAVED)

    def errors(
        self, problem: SparseProblem, supports: Sequence[IntArray], limit: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return H of supports in standard units, by closed form, with bounds on the rounding errors.

        Parameters
        ----------
        problem : SparseProblem
            Problem of all rows at one gamma.
        supports : sequence of int arrays
            Supports.
        limit : float
            Value above which any number above it may be returned.
        """
        listed = listed_supports(problem, supports, [0] * len(supports))
        value, error = np.empty(len(supports)), np.empty(len(supports))
        leave_out.common_errors(self.rows, self.base, listed, limit * self.total, value, error)
        error[~np.isfinite(value)] = np.inf
        return value / self.total, error / self.total

    def weighted_rows(self, own: IntArray, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows whose sum of squared residuals e is at most m H, for any support that contains given columns.

        Let `B = (I - H_NN)^{-1}` for these columns alone. If a fold is one row, the row is multiplied by B. Otherwise
        the rows are multiplied by the root of `2 a B - a^2 I`, where a is the mean eigenvalue of B, limited to less
        than 2. The matrix is then positive definite, because B is at least I.

        Parameters
        ----------
        own : int array
            Columns.
        factor : (s, s) array
            Matrix C with `C'C` the inverse of their matrix M.
        """
        rows, starts = self.rows, self.plan.starts
        Z = rows.V[:, own] @ factor.T
        if self.plan.k == self.plan.scored:
            leverage = np.einsum("ij,ij->i", Z, Z) + self.base * rows.root**2
            weight = 1.0 / np.maximum(1.0 - leverage * (1.0 - SHAVED), LEAST_REST)
            return np.asarray(rows.V * weight[:, None]), rows.r * weight
        V, r = np.empty(rows.V.shape), np.empty(len(rows.r))
        for lo, hi in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            root = rows.root[lo:hi]
            H = Z[lo:hi] @ Z[lo:hi].T + self.base * np.outer(root, root)
            values, vectors = np.linalg.eigh(H)
            B = 1.0 / np.maximum(1.0 - np.clip(values, 0.0, None) * (1.0 - SHAVED), LEAST_REST)
            middle = min(float(B.mean()), MOST_MIDDLE)
            half = vectors * np.sqrt(2.0 * middle * B - middle**2)
            V[lo:hi], r[lo:hi] = half.T @ rows.V[lo:hi], half.T @ rows.r[lo:hi]
        return V, r

    def refit_support(self, support: IntArray, gamma: float, is_expired: Callable[[], bool]) -> tuple[float, float]:
        """Return H of one support by a fit to the rows of every fold, for closed forms that lose digits.

        The cost is O(n s^2) for each fold.

        Parameters
        ----------
        support : int array
            Columns.
        gamma : float
            Ridge weight.
        is_expired : callable
            Function that returns True after the time limit; the value is then unknown, with an error of inf.
        """
        sums = np.zeros(2)
        for fold in range(self.plan.k):
            if is_expired():
                return 0.0, np.inf
            fit = refit_rows(self.data, self.plan.train_rows(fold), support, gamma)
            sums += fit.held_out(self.data, self.plan.scored_rows(fold))
        return float(sums[0]) / self.total, float(sums[1]) / self.total


def times_held_out(plan: FoldPlan) -> float:
    """Return how often every row is held out.

    Raises
    ------
    BadInput
        If the folds do not hold out every row, all equally often, or do not score all held-out rows.
    """
    times = np.bincount(plan.order[: plan.scored], minlength=plan.n)
    if plan.left is not None or not np.all(times == times[0]) or not times[0]:
        raise BadInput(
            f"folds {plan.spec!r}: one support for all folds requires that every row is held out equally often, and "
            "that each fold trains on all other rows; give 10, 5x10 or loo"
        )
    return float(times[0])


def branch_part(problem: SparseProblem, branch: Branch, rate: float, offset: float = 0.0) -> Part:
    """Return a problem on the columns of a branch.

    Parameters
    ----------
    problem : SparseProblem
        Problem on all columns.
    branch : Branch
        Branch.
    rate, offset : float
        Numbers of the inequality of `Part`.
    """
    columns = np.setdiff1d(np.arange(problem.q), branch.outside).astype(np.int64)
    return Part(replace(problem, forced=branch.inside).select_columns(columns), columns, rate, offset)


def least_of_all_columns(problem: SparseProblem) -> float:
    """Return a lower bound on f of all columns together, and so of every support; 0 if the moments are inaccurate."""
    centre = Centre.from_problem(problem, problem.rounding)
    return 0.0 if centre is None else centre.objective_lower_bound


def residual_penalty(problem: SparseProblem, largest: int) -> float:
    """Return a mu for which the sum of squared residuals of every ridge fit is at least f_mu of its support.

    `mu = lam^2 / (2 lam + s)` with s at least the largest eigenvalue of any `X_S'X_S`, in columns of equal penalty.
    With eigenvalues t of that matrix, the two are sums of the same squares times `(lam / (lam + t))^2` and `mu / (mu +
    t)`, and the first factor is at least the second if `t <= lam^2 / mu - 2 lam`.

    Parameters
    ----------
    problem : SparseProblem
        Problem of all rows.
    largest : int
        Maximum number of columns of a support.
    """
    problem = problem.select_columns(np.flatnonzero(problem.weight > 0.0))  # adjustment columns can only reduce Q
    root = 1.0 / np.sqrt(problem.weight)
    squares = np.diag(problem.Q) * root**2
    most = float(np.sort(squares)[::-1][:largest].sum())
    if problem.q < CUBIC_COLUMNS:
        scaled = problem.Q * root[:, None] * root
        with np.errstate(all="ignore"):
            whole = float(np.linalg.eigvalsh(scaled)[-1]) if np.all(np.isfinite(scaled)) else np.inf
        most = min(most, whole) if np.isfinite(whole) else most
    most = max(most, 0.0) * (1.0 + SHAVED)
    lam = problem.lam
    return lam / (2.0 + most / lam) * (1.0 - SHAVED)


ALL_TRIED_OF_SIZES = 20_000  # maximum number of supports of all sizes that are all tried if no tree can be trusted
TRIED_AT_ONCE = 256  # supports whose values are computed together
NODES_A_SUPPORT, STEP_NODES = 30, 1_000  # cost of a support, in nodes; nodes of a step
LEAST_SPLIT = 8  # maximum number of free columns of a branch that is not split


@dataclass(eq=False)
class Open:
    """An open branch and, by size, lower bounds on the values of its supports that were not passed."""

    branch: Branch
    bounds: dict[int, float]


class SupportTaker(Protocol):
    """A taker of supports of some sizes."""

    @property
    def taus(self) -> Sequence[int]:
        """Wanted sizes, in terms."""
        ...

    def threshold(self, tau: int) -> float:
        """Return the value up to which supports of a size are wanted; it may fall."""
        ...

    def useful(self, tau: int) -> float:
        """Return the value beyond which a support of a size changes nothing; at least the threshold."""
        ...

    def take(self, support: IntArray, value: float, error: float) -> None:
        """Take a support whose value is near or below the threshold; a support may be passed twice.

        Parameters
        ----------
        support : int array
            Columns in ascending order.
        value, error : float
            Value, and a bound on its rounding error; inf if the value cannot be computed.
        """
        ...


class Collection:
    """A search for all supports at one gamma with a value up to the threshold of their size.

    Parameters
    ----------
    criterion : SquaredValue
        Values. If it splits, it gives tighter problems for smaller branches, used if the tree of a branch is long.
    wanted : SupportTaker
        Taker of the supports.
    is_expired : callable
        Function that returns True when time is over.

    Attributes
    ----------
    finished : bool
        True if all supports were passed.
    nodes : int
        Number of nodes.
    """

    def __init__(self, criterion: SquaredValue, wanted: SupportTaker, is_expired: Callable[[], bool]) -> None:
        self.criterion, self.wanted, self.is_expired = criterion, wanted, is_expired
        self.terms = criterion.terms
        self.finished, self.nodes = False, 0
        self._stuck: list[Open] = []  # branches that no tree can solve reliably and that are too large to be tried
        root = Branch(criterion.problem.forced, np.zeros(0, dtype=np.int64))
        reduced = criterion.part(root)
        floor = self._value(least_of_all_columns(reduced.problem), reduced)
        self._open = OpenNodes[Open]()
        for bound, branch in self._open_branches([root], dict.fromkeys(wanted.taus, floor)):
            self._open.push(bound, branch)

    def run(self) -> None:
        """Pass supports until all were passed, or the time is over."""
        is_passed = self._open.search(self._visit_branch, lambda: np.inf, lambda: not self.is_expired())
        self.finished = is_passed and not self._stuck

    def unseen(self, tau: int) -> float:
        """Return a lower bound on the values, up to the threshold, of supports of a size that were not passed on.

        Parameters
        ----------
        tau : int
            Size.
        """
        unseen_nodes = [*self._open, *self._stuck]
        return min((node.bounds[tau] for node in unseen_nodes if tau in node.bounds), default=np.inf)

    @staticmethod
    def _value(objective: float, part: Part) -> float:
        """Return a lower bound on the values of supports with at least the given objective."""
        return max(objective - part.offset, 0.0) / part.rate * (1.0 - SHAVED)

    def _open_branches(self, branches: Iterable[Branch], bounds: dict[int, float]) -> list[tuple[float, Open]]:
        """Return the branches with bounds for their sizes, if they have any, each with the smallest bound."""
        n_terms, children = self.terms.count(np.arange(self.criterion.problem.q)), []
        for branch in branches:
            least, most = self.terms.count(branch.inside), n_terms - self.terms.count(branch.outside)
            own = {tau: bound for tau, bound in bounds.items() if least <= tau <= most}
            if own:
                children.append((min(own.values()), Open(branch, own)))
        return children

    def _visit_branch(self, lower: float, now: Open) -> list[tuple[float, Open]]:
        """Work on a branch until it is finished or split; return its parts, or the branch if the time ended before."""
        taus = [tau for tau, bound in now.bounds.items() if bound <= self.wanted.threshold(tau)]
        reduced = self.criterion.part(now.branch)
        eliminated_part = eliminate_forced_columns(reduced.problem)
        choice, problem = eliminated_part.choice, eliminated_part.problem
        form = normal_form(problem)
        if not taus:
            return []
        if not form.is_trusted or len(form.columns) < len(choice.others):
            return [] if self._try_all(now, taus) else [(lower, now)]
        columns = reduced.columns[choice.others][form.columns]
        fixed = self.terms.count(now.branch.inside)
        bars = self._bars(reduced, fixed, taus, form.m)
        source = self._open_source(form, columns, bars)
        budget = PATH_SLICE if self.criterion.splits and form.m > LEAST_SPLIT else np.inf
        valued = 0
        while not source.finished:
            if self.is_expired() or source.n_spent_nodes + NODES_A_SUPPORT * valued >= budget:
                self.nodes += source.nodes
                bounds = source.open_bounds()
                here = {tau: self._value(float(bounds[tau - fixed]), reduced) for tau in taus}
                now.bounds = {tau: max(now.bounds[tau], here[tau]) for tau in taus if here[tau] < np.inf}
                return [(lower, now)] if self.is_expired() else self._split(now, columns, form)
            supports = source.advance(STEP_NODES if budget < np.inf else PATH_SLICE)
            valued += len(supports.masks)
            if len(supports.masks):
                self._offer(self._supports(supports, columns, now.branch.inside))
                source.lower_bars(self._bars(reduced, fixed, taus, form.m))
        self.nodes += source.nodes
        return []

    def _open_source(self, form: NormalForm, columns: IntArray, bars: FloatArray) -> SupportsBelow | TermsBelow:
        """Return the source of the supports below the cutoffs."""
        if self.terms.has_multicolumn_terms:
            return TermsBelow(form, self.terms.first[columns], bars, self.is_expired)
        return SupportsBelow(form, bars, self.is_expired)

    def _split(self, now: Open, columns: IntArray, form: NormalForm) -> list[tuple[float, Open]]:
        """Return the two branches with and without the column that is most expensive to drop, or its term."""
        V, beta, _ = form.solve_all_columns()
        term = self.terms.columns([int(self.terms.first[columns[int(np.argmax(beta**2 / np.diag(V)))]])])
        inside, outside = now.branch
        halves = Branch(np.union1d(inside, term), outside), Branch(inside, np.union1d(outside, term))
        return self._open_branches(halves, now.bounds)

    def _bars(self, part: Part, fixed: int, taus: Sequence[int], m: int) -> FloatArray:
        """Return cutoffs by the number of terms in addition to the included ones."""
        bars = np.full(m + 1, -np.inf)
        for tau in taus:
            limit = self.wanted.threshold(tau) * part.rate + part.offset
            bars[tau - fixed] = min(limit, 2.0 * part.problem.size)  # no f exceeds that of the null model
        return bars

    def _supports(self, found: MetSupports, columns: IntArray, inside: IntArray) -> list[IntArray]:
        """Return the supports that a tree found, in the columns of the criterion's problem, ascending."""
        parts = np.split(columns[np.nonzero(found.masks)[1]], np.cumsum(found.sizes)[:-1])
        return [np.sort(np.concatenate((inside, chosen))) for chosen in parts] if len(inside) else parts

    def _offer(self, supports: list[IntArray]) -> None:
        limit = max((self.wanted.threshold(tau) for tau in self.wanted.taus), default=np.inf)
        values, errors = self.criterion.values(supports, limit)
        for a in np.flatnonzero(values <= limit + errors).tolist():  # if both are inf, the value is unknown
            self.wanted.take(supports[a], float(values[a]), float(errors[a]))

    def _try_all(self, now: Open, taus: Sequence[int]) -> bool:
        """Pass every support of a branch if there are few; return False if the time was over before."""
        inside, outside = now.branch
        others = np.setdiff1d(np.arange(self.criterion.problem.q), np.concatenate((inside, outside)))
        sizes = [tau - self.terms.count(inside) for tau in taus]
        if sum(comb(self.terms.count(others), size) for size in sizes) > ALL_TRIED_OF_SIZES:
            self._stuck.append(now)
            return True
        every = (np.union1d(inside, some) for some in self.terms.sets(others, sizes))
        while some := [support.astype(np.int64) for support in islice(every, TRIED_AT_ONCE)]:
            if self.is_expired():
                return False
            self._offer(some)
        return True


def pass_supports(criterion: SupportValue, wanted: SupportTaker, supports: Sequence[IntArray]) -> None:
    """Pass supports with their values to a taker.

    Parameters
    ----------
    criterion : SupportValue
        Values.
    wanted : SupportTaker
        Taker of the supports.
    supports : sequence of int arrays
        Supports, columns in ascending order.
    """
    if not supports:
        return
    values, errors = criterion.values(supports)
    for support, value, error in zip(supports, values.tolist(), errors.tolist(), strict=True):
        wanted.take(support, value, error)


def likely_supports(
    problem: SparseProblem, terms: WholeTerms, taus: Sequence[int], is_expired: Callable[[], bool]
) -> list[IntArray]:
    """Return supports with a small training objective, some of each size.

    Parameters
    ----------
    problem : SparseProblem
        Problem of all rows at one gamma.
    terms : WholeTerms
        Terms.
    taus : sequence of int
        Sizes.
    is_expired : callable
        Function that returns True when time is over.
    """
    if terms.has_multicolumn_terms:
        best = solve_with_constraints(
            problem, taus, terms.constraints(problem.forced), node_limit=FIRST_LOOK, is_expired=is_expired
        )
    else:
        best = solve_path(problem, taus, node_limit=FIRST_LOOK, is_expired=is_expired)
    return [
        np.sort(support)
        for tau, cell in best.by_size.items()
        for support in (cell.support, *cell.candidates[:SUPPORTS_TRIED])
        if terms.count(support) == tau
    ]
