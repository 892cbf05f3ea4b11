"""Lists, for each training set, of all supports that can be optimal somewhere on an interval of lam = gamma / 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparsecv_mio.arrays import BLOCK_NUMBERS, BoolArray, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.kernels import alive_folds
from sparsecv_mio.kernels.nodes import Margin
from sparsecv_mio.problem.moment_fits import rows_left_out
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.search.every_gamma import gamma_fits
from sparsecv_mio.search.problems.left_out_folds import LARGEST_LEVERAGE
from sparsecv_mio.search.state.cells import fill_support
from sparsecv_mio.thresholds import PATH_TREE_COLUMNS
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.listing import list_supports_by_size
from sparsecv_mio.trees.normal_form import NormalForm, normal_form
from sparsecv_mio.trees.subsets import MOST_NODES, MOST_TRIED, BestSubset
from sparsecv_mio.units import KEEP_RTOL, ROUNDING, TINY
from sparsecv_mio.words import Intercept

Supports = Mapping[int, Sequence[IntArray]]
Pairs = tuple[IntArray, IntArray]  # (P,) indices of training sets and (P, s) supports


@dataclass(frozen=True, eq=False)
class BarList:
    """Supports of one size at one lam: for every training set, all supports with f up to a cutoff.

    Attributes
    ----------
    bar : (K,) array
        Cutoffs by training set; -inf where the list may be incomplete.
    parts : list of pairs
        Indices (P,) of training sets and supports (P, s), in parts; at least one support of each training set.
    """

    bar: FloatArray
    parts: list[Pairs] = field(default_factory=list)

    def add(self, folds: int | IntArray, bar: float | FloatArray, pairs: Pairs) -> None:
        """Add the supports of some folds up to a cutoff."""
        self.bar[folds] = bar
        self.parts.append(pairs)


Lists = dict[int, BarList]  # by size


class Lister:
    """A lister of supports of all training sets at any lam.

    Parameters
    ----------
    sets : TrainingSets
        Training sets.
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan or None
        Folds of the training sets; None for all rows.
    is_expired : callable
        Function that returns True once the search has to end.

    Attributes
    ----------
    nodes : int
        Number of nodes of all trees so far.
    evaluated : TrainingSets or LeftOutRows
        The same training sets in the form that is evaluated fastest.
    """

    def __init__(
        self, sets: gamma_fits.TrainingSets, data: StandardData, folds: FoldPlan | None, is_expired: Callable[[], bool]
    ) -> None:
        self.sets, self.data, self.is_expired, self.nodes = sets, data, is_expired, 0
        single = folds is not None and bool(np.all(folds.left_sizes == 1) and np.all(folds.sizes == 1))
        self._whole: SparseProblem | None = None
        self.evaluated: gamma_fits.TrainingSets | gamma_fits.LeftOutRows = sets
        if single and folds is not None and data.q <= PATH_TREE_COLUMNS:
            self._whole = full_problem(data, 1.0)
            rows = folds.order[: folds.k]
            self._rows = data.about(rows, self._whole.v_mean, self._whole.r_mean)
            root = data.root_of(rows)
            share = 1.0 / self._whole.total if data.intercept is Intercept.FOLD else 0.0
            self._share = share * (np.ones(folds.k) if root is None else root * root)
            self.evaluated = gamma_fits.LeftOutRows.from_problem(self._whole, self._rows, self._share)

    def optima(self, lam: float, starts: Supports) -> Lists | None:
        """Find the best supports of some sizes in every training set, including all tied ones if these are known.

        Parameters
        ----------
        lam : float
            Half of gamma.
        starts : mapping of int to sequence of int arrays
            Supports of each size to try first, by size.

        Returns
        -------
        dict of int to Listed, or None
            Lists by size; None if the clock ended the search.
        """
        return self._collect_lists(lam, starts, None)

    def list_supports(self, lam: float, bars: Mapping[int, FloatArray]) -> Lists | None:
        """List every support with f up to a cutoff, for every training set.

        Parameters
        ----------
        lam : float
            Half of gamma.
        bars : mapping of int to (K,) array
            Cutoffs by size.

        Returns
        -------
        dict of int to Listed, or None
            Lists by size; None if the clock, the node limit or the limit of supports ended the search.
        """
        return self._collect_lists(lam, {size: () for size in bars}, bars)

    def _collect_lists(self, lam: float, starts: Supports, bars: Mapping[int, FloatArray] | None) -> Lists | None:
        if self.is_expired():
            return None
        lists = {size: BarList(np.full(self.sets.k, -np.inf)) for size in starts}
        unlisted = np.arange(self.sets.k)
        if self._whole is not None:
            unlisted = self._shared(lam, starts, bars, lists)
        for fold in unlisted.tolist():
            if self.is_expired():
                return None
            problem = self.sets.problems[fold].with_gamma(2.0 * lam)
            if bars is None:
                self._solve(fold, problem, starts, lists)
            elif not self._grow_fold_tree(fold, problem, bars, lists):
                return None
        return None if self.is_expired() else lists

    # -- folds of one row ---------------------------------------------------------------------------------------------

    def _shared(self, lam: float, starts: Supports, bars: Mapping[int, FloatArray] | None, found: Lists) -> IntArray:
        """List supports by trees that serve many folds; return the folds that no tree served."""
        assert self._whole is not None
        form = normal_form(self._whole.with_gamma(2.0 * lam))
        if not form.is_trusted or form.m < self.sets.q:
            return np.arange(self.sets.k)
        rows = _Rows.from_form(form, self._rows, self._share)
        good = np.flatnonzero(rows.leverage < LARGEST_LEVERAGE)
        order = good[np.argsort(rows.e[good] ** 2 / (1.0 - rows.leverage[good]), kind="stable")]
        unsettled = [np.flatnonzero(rows.leverage >= LARGEST_LEVERAGE)]
        for lo in range(0, len(order), alive_folds.GROUP):
            group = order[lo : lo + alive_folds.GROUP]
            if not self._fill_group(rows, group, starts, bars, found):
                unsettled.append(group)
        return np.concatenate(unsettled)

    def _fill_group(
        self, rows: _Rows, group: IntArray, starts: Supports, bars: Mapping[int, FloatArray] | None, found: Lists
    ) -> bool:
        form, q = rows.form, self.sets.q
        inner = sorted(size for size in starts if 0 < size < q)
        bar, margin = np.full((len(inner), len(group)), np.inf), form.margin
        for t, size in enumerate(inner):
            if bars is not None:
                bar[t] = form.raise_cutoff(bars[size][group])
            elif len(starts[size]):
                bar[t] = form.raise_cutoff(rows.scores(np.stack(list(starts[size])), group).min(axis=0))
        if bars is not None:
            margin = Margin(np.inf, 0.0)  # cutoffs are fixed
        masks = self._grow(rows, group, inner, bar, margin)
        if masks is None:
            return False
        count = masks.sum(axis=1)
        for size in starts:
            if size in (0, q):
                listed = np.arange(size, dtype=np.int64)[None, :]
            else:
                listed = np.nonzero(masks[count == size])[1].reshape(-1, size)
            value = rows.scores(listed, group)
            top = value.min(axis=0) if bars is None else bars[size][group]
            which, member = np.nonzero(value <= form.raise_cutoff(top))
            found[size].add(group, top, (group[member], listed[which]))
        return True

    def _grow(
        self, rows: _Rows, group: IntArray, inner: Sequence[int], bar: FloatArray, margin: Margin
    ) -> BoolArray | None:
        """Return supports (L, q), as masks, with a value below a cutoff of a fold; None if the tree did not finish."""
        form, q = rows.form, self.sets.q
        if not inner:
            return np.zeros((0, q), dtype=bool)
        solved, fits = (rows.V, rows.beta, rows.value), (rows.W[:, group], rows.e[group], rows.leverage[group])
        places = {size: row for row, size in enumerate(inner)}
        state, finished = alive_folds.grow(
            solved, fits, places, bar, form.copies, margin, MOST_NODES + 1, self.is_expired
        )
        if not finished:
            return None
        self.nodes += int(state.ctrl[alive_folds.NODES])
        return np.asarray(state.kept_mask[: state.ctrl[alive_folds.KEPT]])

    # -- one training set ---------------------------------------------------------------------------------------------

    def _solve(self, fold: int, problem: SparseProblem, starts: Supports, found: Lists) -> None:
        """Find the optima by separate trees of the training set."""
        first = [support for supports in starts.values() for support in supports]
        best = solve_path(problem, list(starts), warm_starts=first, node_limit=MOST_NODES, is_expired=self.is_expired)
        self.nodes += best.nodes
        others = np.arange(self.sets.q)
        for size in starts:
            cell = best.by_size[size]
            supports = cell.candidates if cell.complete and cell.candidates else (cell.support,)
            table = np.array([fill_support(support, size, others) for support in supports])
            table = table.reshape(len(supports), size)
            bar = cell.upper if cell.complete else -np.inf
            found[size].add(fold, bar, (np.full(len(table), fold), table.astype(np.int64)))

    def _grow_fold_tree(self, fold: int, problem: SparseProblem, bars: Mapping[int, FloatArray], found: Lists) -> bool:
        """List supports by a separate tree of the training set; return False if the tree did not finish."""
        form, q = normal_form(problem), self.sets.q
        if not form.is_trusted:
            return False
        inner = np.full(form.m + 1, -np.inf)
        wanted: dict[int, list[int]] = {}
        for tau, bar in bars.items():
            # columns that are constant in training extend a support: see `NormalForm.columns`
            for size in range(max(tau - (q - form.m), 0), min(tau, form.m) + 1):
                inner[size] = max(inner[size], float(form.raise_cutoff(bar[fold])))
                wanted.setdefault(size, []).append(tau)
        listed, nodes = list_supports_by_size(
            form, form.solve_all_columns(), inner, MOST_NODES, MOST_TRIED, self.is_expired
        )
        self.nodes += nodes
        if listed is None:
            return False
        constant = np.setdiff1d(np.arange(q), form.columns)
        parts: dict[int, list[IntArray]] = {tau: [] for tau in bars}
        for size, masks in listed.items():
            for tau in wanted[size]:
                parts[tau] += [fill_support(form.columns[mask], tau, constant) for mask in masks]
        for tau, supports in parts.items():
            table = np.array(supports, dtype=np.int64).reshape(len(supports), tau)
            found[tau].add(fold, bars[tau][fold], (np.full(len(supports), fold), table))
        return True


@dataclass(frozen=True, eq=False)
class _Rows:
    """The fit of all columns on all rows, with its prediction and leverage of each row."""

    form: NormalForm
    V: FloatArray
    beta: FloatArray
    value: float
    X: FloatArray
    r: FloatArray
    W: FloatArray
    e: FloatArray
    share: FloatArray
    leverage: FloatArray

    @classmethod
    def from_form(cls, form: NormalForm, rows: tuple[FloatArray, FloatArray], share: FloatArray) -> _Rows:
        V, beta, value = form.solve_all_columns()
        X = rows[0][:, form.columns] * form.scale
        W = V @ X.T
        leverage = np.einsum("ij,ji->i", X, W) + share
        return cls(form, V, beta, value, X, rows[1], W, rows[1] - X @ beta, share, leverage)

    def scores(self, supports: IntArray, group: IntArray) -> FloatArray:
        """(L, folds): objectives of supports (L, s) with each row of a group held out. O(L s^2 (s + folds))."""
        M, c, X = self.form.matrix(), self.form.c, self.X[group]
        out = np.empty((len(supports), len(group)))
        step = max(1, BLOCK_NUMBERS // max(1, len(group) * supports.shape[1]))
        for lo in range(0, len(supports), step):
            fall, e, h = rows_left_out(M, c, supports[lo : lo + step], (X, self.r[group]), self.share[group])
            out[lo : lo + step] = (self.form.yy - fall)[:, None] - e * e / (1.0 - h)
        return out


Both = tuple[
    IntArray, IntArray, gamma_fits.FitsAtLam, gamma_fits.FitsAtLam
]  # training sets, supports, values at both ends of an interval


class BestOverGamma:
    """Best supports of the full data at any lam, with certified lower bounds.

    Parameters
    ----------
    lister : Lister
        Lister of the full data.
    sizes : sequence of int
        Sizes of supports.
    """

    def __init__(self, lister: Lister, sizes: Sequence[int]) -> None:
        self.lister, self.sizes = lister, list(sizes)
        self._problem = full_problem(lister.data, 1.0)
        self._cells: dict[float, dict[int, BestSubset]] = {}
        self._last: list[IntArray] = []
        self._supports: dict[tuple[float, int], IntArray] = {}
        self._found: dict[int, dict[bytes, IntArray]] = {size: {} for size in self.sizes}

    def best_subsets(self, lam: float) -> dict[int, BestSubset]:
        """Return the best known subset of every size at one lam, with its bounds."""
        if lam not in self._cells:
            here = self._problem.with_gamma(2.0 * lam)
            solved = solve_path(
                here, self.sizes, warm_starts=self._last, node_limit=MOST_NODES, is_expired=self.lister.is_expired
            )
            self.lister.nodes += solved.nodes
            self._cells[lam] = solved.by_size
            self._last = [cell.support for cell in solved.by_size.values()]
            for size, cell in solved.by_size.items():
                support = fill_support(cell.support, size, np.arange(self.lister.sets.q))
                self._supports[lam, size] = self._found[size].setdefault(support.tobytes(), support)
        return self._cells[lam]

    def support(self, lam: float, size: int) -> IntArray:
        """Return the best support found, extended to its size."""
        self.best_subsets(lam)
        return self._supports[lam, size]

    def known_supports(self, size: int) -> list[IntArray]:
        """Return the distinct best supports at the values of lam evaluated so far."""
        return list(self._found[size].values())


class EndLists:
    """The supports that can be optimal on an interval, from complete lists at its ends.

    Parameters
    ----------
    lister : Lister
        Lister of the training sets.
    all_rows : BestOverGamma
        Best supports of the full data.
    """

    def __init__(self, lister: Lister, all_rows: BestOverGamma) -> None:
        self.lister, self.all_rows, self.sets = lister, all_rows, lister.evaluated
        self._listed: dict[tuple[float, int], BarList] = {}

    def solve(self, lam: float, sizes: Sequence[int]) -> bool:
        """Find the optima of some sizes at a lam; return False if the clock ended the search."""
        missing = [size for size in sizes if (lam, size) not in self._listed]
        return not missing or self._store_lists(
            lam, self.lister.optima(lam, {s: self.all_rows.known_supports(s) for s in missing})
        )

    def has_optima(self, low: float, high: float, size: int) -> bool:
        """Return True if the optima of a size are known at both ends of an interval.

        Parameters
        ----------
        low, high : float
            Ends of the interval.
        size : int
            Size of the supports.
        """
        return (low, size) in self._listed and (high, size) in self._listed

    def optima(self, lam: float, size: int) -> tuple[IntArray, gamma_fits.FitsAtLam]:
        """Return the training sets, ascending, of the supports listed at a solved lam, and their values there."""
        fold, support = _distinct(self._listed[lam, size].parts)
        return fold, self.sets.values(fold, support, lam)

    def grow_lists(self, lam: float, intervals: Sequence[tuple[float, float, int]]) -> bool:
        """Extend the lists at a lam for intervals (low, high, size) with this end; return False if that fails.

        Lists at both ends of an interval must exist.
        """
        bars: dict[int, FloatArray] = {}
        for low, high, size in intervals:
            wanted, _ = self._required_cutoffs(low, high, size)
            if wanted is not None:
                bars[size] = np.maximum(bars.get(size, self._listed[lam, size].bar), wanted[0 if lam == low else 1])
        listed = self.lister.list_supports(lam, bars) if bars else {}
        if listed is None:
            return False
        for size, bar_list in listed.items():
            # trees cut at equality: if the targets of a training set are constant, f is 0 everywhere and never below 0
            bar_list.parts[:0] = self._listed[lam, size].parts
        return self._store_lists(lam, listed)

    def candidate_fits(
        self, low: float, high: float, size: int
    ) -> gamma_fits.FitsOverGamma | gamma_fits.RowFits | None:
        """Return every fit that can be optimal somewhere on an interval; None if its lists cannot be completed.

        A support outside of both lists has an objective above the cutoffs at the ends. By concavity, this objective is
        above the chord of the cutoffs on all of the interval, and the chord is above the tangents of known supports.

        Parameters
        ----------
        low, high : float
            Ends of the interval.
        size : int
            Size of the supports.
        """
        bars, listed = self._required_cutoffs(low, high, size)
        if bars is not None:
            if not all(self.grow_lists(lam, [(low, high, size)]) for lam in (low, high)):
                return None
            bars, listed = self._required_cutoffs(low, high, size)
        if bars is not None:  # better supports were found, which lowered the tangents
            return None
        fold, support, at_low, at_high = listed
        alive = np.flatnonzero(
            gamma_fits.Envelope.from_fits((low, high), fold, at_low, at_high).may_win(at_low, at_high)
        )
        fits = self.sets.fits(fold[alive], support[alive])
        if isinstance(fits, gamma_fits.RowFits) and not fits.is_accurate(low):
            return self.lister.sets.fits(fold[alive], support[alive])
        return fits

    def evaluate_full_optimum(self, lam: float, size: int) -> gamma_fits.FitsAtLam:
        """Return the values of the best support of the full data in every training set."""
        k = self.sets.k
        return self.sets.values(np.arange(k), np.tile(self.all_rows.support(lam, size), (k, 1)), lam)

    def _store_lists(self, lam: float, listed: Lists | None) -> bool:
        if listed is not None:
            self._listed.update({(lam, size): bar_list for size, bar_list in listed.items()})
        return listed is not None

    def _evaluate_ends(self, low: float, high: float, size: int) -> Both:
        """Return supports listed at either end of an interval, their training sets, and their values at both ends."""
        fold, support = _distinct(self._listed[low, size].parts + self._listed[high, size].parts)
        if isinstance(self.sets, gamma_fits.LeftOutRows):
            fits = self.sets.fits(fold, support)
            return fold, support, fits.values(low), fits.values(high)
        low_values, right = (self.sets.values(fold, support, lam) for lam in (low, high))
        return fold, support, low_values, right

    def _required_cutoffs(
        self, low: float, high: float, size: int
    ) -> tuple[tuple[FloatArray, FloatArray] | None, Both]:
        """Return the cutoffs that the lists at both ends need, None if theirs suffice, and the listed supports."""
        listed = self._evaluate_ends(low, high, size)
        envelope = gamma_fits.Envelope.from_fits((low, high), listed[0], *listed[2:])
        bars = [self._listed[lam, size].bar for lam in (low, high)]
        wanted, share = envelope.excess + envelope.room, envelope.share
        enough = wanted <= (1.0 - share) * (bars[0] - envelope.left) + share * (bars[1] - envelope.right)
        if np.all(enough):
            return None, listed
        digits = 4.0 * ROUNDING * np.maximum(np.abs(envelope.left), np.abs(envelope.right))  # that sums with them lose
        room = np.where(enough, -np.inf, wanted * (1.0 + KEEP_RTOL) + digits + TINY)
        return (envelope.left + room, envelope.right + room), listed


def _distinct(parts: Sequence[Pairs]) -> Pairs:
    """Return the training sets, ascending, and the distinct supports of some lists."""
    fold, support = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    number = np.unique(gamma_fits.row_keys(support), return_inverse=True)[1].reshape(-1)
    _, first = np.unique(fold * (len(number) + 1) + number, return_index=True)
    return fold[first], support[first]
