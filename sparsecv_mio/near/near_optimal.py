"""Lists of all near-optimal supports of a size, by training objective or by CV error (`sparsecv near`)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.arrays import ArrowTable, IntArray
from sparsecv_mio.certificate.fit_records import NEAR_SCHEMA, NearModel, NearRecord, NearSize, Replacement
from sparsecv_mio.certificate.parts import Work, versions
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import KINDS, AnyFolds, check_label_order, make_folds
from sparsecv_mio.data.loss_targets import check_training
from sparsecv_mio.data.readers import TableColumns, read_requested_data
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.declared_options import TABLE, keywords_are
from sparsecv_mio.errors import BadInput, OutOfTime, did_you_mean
from sparsecv_mio.fits.fit_options import NearOptions
from sparsecv_mio.model_space import NONE, Restrictions
from sparsecv_mio.near import collecting
from sparsecv_mio.near.collecting import NO_CV_ERRORS, Valued, WholeTerms
from sparsecv_mio.near.glm_values import prepare_values
from sparsecv_mio.parallel import blas_on_one_thread
from sparsecv_mio.problem.glm_objective import null_error_of_folds
from sparsecv_mio.search.answer.answer_fits import column_names
from sparsecv_mio.search.answer.result import describe_data, fold_info
from sparsecv_mio.search.api import answer
from sparsecv_mio.search.deadline import CHOOSING_SHARE, Deadline, run_within_limit
from sparsecv_mio.search.first_use import make_first_use, start_clock
from sparsecv_mio.search.options import SearchOptions, with_keywords
from sparsecv_mio.search.question import Question
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.trees.without_ridge import standardize_and_check
from sparsecv_mio.units import CROSSING_RTOL
from sparsecv_mio.words import By

if TYPE_CHECKING:
    import pandas as pd

SPARE_SUPPORTS = 64  # supports stored in addition to twice the wanted number before the list is cut


@dataclass(frozen=True, eq=False)
class NearList:
    """Certified result for one size, in standard units; the fields are those of `certificate.fit_records.NearSize`."""

    tau: int
    best: float
    lower: float
    threshold: float
    complete_to: float
    models: tuple[Valued, ...]

    @property
    def certain(self) -> tuple[Valued, ...]:
        """Models below `complete_to`, of which none is missing; all models of a complete list."""
        if self.complete_to >= self.threshold:
            return self.models
        return tuple(model for model in self.models if model.value < self.complete_to)


@dataclass
class _Size:
    found: dict[bytes, Valued] = field(default_factory=dict)
    best: float = np.inf
    cut: float = np.inf
    unknown: bool = False


class NearBest:
    """A taker of supports that keeps those within a ratio of the best of their size.

    Parameters
    ----------
    taus : sequence of int
        Sizes.
    within : float
        The ratio minus 1.
    most : int or None
        Maximum number of supports of a size, the best ones; None for all.
    size : callable
        Function that returns the size of a support; its number of columns by default.
    """

    def __init__(
        self, taus: Sequence[int], within: float, most: int | None, size: Callable[[IntArray], int] = len
    ) -> None:
        self.taus, self.within, self.most, self.size = tuple(taus), within, most, size
        self._sizes = {tau: _Size() for tau in self.taus}

    def threshold(self, tau: int) -> float:
        """Return the value up to which supports of a size are wanted."""
        size = self._sizes[tau]
        return min((1.0 + self.within) * size.best, size.cut)

    def useful(self, tau: int) -> float:
        """Return the value beyond which a support of a size changes nothing."""
        return self.threshold(tau)

    def take(self, support: IntArray, value: float, error: float) -> None:
        """Take a support.

        Parameters
        ----------
        support : int array
            Columns in ascending order.
        value, error : float
            Value, and a bound on its rounding error.
        """
        tau = self.size(support)
        size = self._sizes.get(tau)
        if size is None:
            return
        if not (value < np.inf and error <= CROSSING_RTOL * (value + 1.0)):  # NaN too
            size.unknown = True
            return
        size.best = min(size.best, value + error)
        if value - error <= self.threshold(tau):
            size.found[support.tobytes()] = Valued(support, value, error)
        if self.most is not None and len(size.found) > 2 * self.most + SPARE_SUPPORTS:
            ranked = sorted(size.found.values(), key=lambda one: one.value)
            last = ranked[self.most]  # the first support beyond `most` limits how far the list is complete
            size.cut = min(size.cut, last.value + last.error)
            models = {model.support.tobytes(): model for model in ranked if model.value - model.error <= size.cut}
            size.found = models

    @property
    def has_unknown_value(self) -> bool:
        """True if the value of some support could not be computed: then nothing is certified for its size."""
        return any(size.unknown for size in self._sizes.values())

    def best(self, tau: int) -> Valued | None:
        """Return the best support of a size so far."""
        return min(self._sizes[tau].found.values(), key=lambda one: one.value, default=None)

    def result(self, tau: int, unseen: float) -> NearList:
        """Return the certified result of a size.

        Parameters
        ----------
        tau : int
            Size.
        unseen : float
            Lower bound on the values of the supports up to the threshold that were not passed.
        """
        size = self._sizes[tau]
        unseen = 0.0 if size.unknown else unseen
        ranked = sorted(size.found.values(), key=lambda one: (one.value, one.support.tolist()))
        if not ranked:
            return NearList(tau, np.inf, 0.0, np.inf, min(unseen, 0.0), ())
        threshold = (1.0 + self.within) * size.best
        listed = [model for model in ranked if model.value - model.error <= threshold]
        complete_to = min(threshold, unseen)
        if self.most is not None and len(listed) > self.most:
            after = listed[self.most]
            complete_to = min(complete_to, after.value - after.error)
            listed = listed[: self.most]
        lower = max(min(min(model.value - model.error for model in ranked), unseen), 0.0)
        return NearList(tau, size.best, lower, threshold, complete_to, tuple(listed))


def replacements(supports: Sequence[IntArray]) -> Counter[tuple[int, int]]:
    """Return, for each pair of columns, the number of pairs of supports that differ by exchanging these columns.

    Parameters
    ----------
    supports : sequence of int arrays
        Supports of one size, ascending; for terms, their first columns.

    Notes
    -----
    O(L s^2) for L supports of s columns, and the pairs.

    Examples
    --------
    >>> dict(replacements([np.array([0, 1]), np.array([0, 2]), np.array([1, 3])]))
    {(0, 3): 1, (1, 2): 1}
    """
    alike: dict[tuple[int, ...], list[int]] = {}  # for each set of remaining columns, the removed ones
    for support in map(tuple, (support.tolist() for support in supports)):
        for place, column in enumerate(support):
            alike.setdefault(support[:place] + support[place + 1 :], []).append(column)
    return Counter(sorted(pair for columns in alike.values() for pair in combinations(sorted(columns), 2)))


MOST_REPLACEMENTS = 100  # maximum number of pairs of features in the record, for each size


@keywords_are(TableColumns, Reading, NearOptions, Restrictions)
def near_optimal(
    dataset: str | Path | pd.DataFrame | ArrowTable | Dataset,
    folds: AnyFolds = "10",
    *,
    gamma: float | None = None,
    taus: str | int | Iterable[int] | None = None,
    options: NearOptions | None = None,
    stop: threading.Event | None = None,
    began: float | None = None,
    **keywords: Any,
) -> NearRecord:
    """Return every support near the best of its size.

    Parameters
    ----------
    dataset : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Rows, target and names. A file, frame or table also takes `target`, `features`, `drop` and the options of
        :func:`~sparsecv_mio.data.readers.read_dataset`.
    folds : FoldPlan, str, int, splitter, labels or pairs
        Folds, see :func:`~sparsecv_mio.data.folds.make_folds`. For a list by CV error every row must be held out, all
        equally often.
    gamma : float, optional
        Ridge weight; by default the one that cross-validation chooses.
    taus : int, sequence of int or str, optional
        Support sizes, with one list for each. The default is the size that cross-validation chooses; for lists by
        objective at a given gamma it is all sizes of `sparsecv path`. Supports have exactly tau features that vary.
    options : NearOptions, optional
        Ratio, number and kind of values; loss, scale, limits.
    stop : threading.Event, optional
        Event that ends the run with its present result.
    began : float, optional
        Moment of `time.monotonic` from which the time limit counts; this call by default.
    **keywords
        Fields of `NearOptions` by keyword, which override those of `options`: `near_optimal(..., within=0.02)`.

    Returns
    -------
    NearRecord
        The models and, for each size, the certified facts: the value up to which no support is missing, the features in
        all of these supports, and the features in none of them.

    Raises
    ------
    BadInput
        If gamma, a tau, the folds or an option is wrong.
    OutOfTime
        If the time limit ends before the data are in standard coordinates.
    TypeError
        If a keyword is not a field of `NearOptions`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> X[:, 4] = X[:, 1] + 0.1 * rng.normal(size=40)
    >>> data = Dataset.from_arrays(X, 2 * X[:, 1] - X[:, 3] + rng.normal(size=40))
    >>> record = near_optimal(data, "5", gamma=0.01, taus=2, within=0.1)
    >>> record.sizes[0].always, [model.support for model in record.models]
    (('x3',), [('x3', 'x4'), ('x1', 'x3')])
    """
    table = {name: keywords.pop(name) for name in (*TABLE, "time") if name in keywords}
    options = with_keywords(options or NearOptions(), keywords, "near_optimal", ("gamma", "taus", *TABLE, "time"))
    kind = folds.strip().lower().partition(":")[0] if isinstance(folds, str) else "10"
    if not {"target", "time"} & set(table) and kind not in KINDS and not kind[:1].isdigit():
        near = did_you_mean(kind, KINDS)
        raise BadInput(
            f"folds: {folds!r} is not a kind of folds{near}; if it is a column to predict, give target={folds!r}"
        )
    check_label_order(folds, dataset)
    rows = read_requested_data(options, dataset, table, folds)
    options, dataset = options.by_names(rows), options.in_classes(rows)
    plan = make_folds(folds, dataset) if options.valued_by is By.CV or gamma is None else None
    if plan is not None:
        check_training(dataset, plan, options.intercept, options.loss)
        if options.valued_by is By.CV:
            try:
                collecting.times_held_out(plan)
            except BadInput as error:
                raise BadInput(f'{error}, or set by="objective" to rank the models by training objective') from None
    wanted = tuple(taus) if isinstance(taus, Iterable) and not isinstance(taus, str) else taus

    def list_tiny(data: Dataset, folds: FoldPlan, gammas: Any, **asked: Any) -> None:
        near_optimal(data, folds, gamma=None, most=5, **asked)

    needs = make_first_use("near", replace(options, restrictions=NONE), dataset, list_tiny)
    grid = _check_pair(dataset, plan, options, gamma, wanted)

    def check() -> None:
        if gamma is not None and taus is not None:
            standardize_and_check(dataset, options, [gamma], grid.taus.tolist(), plan)

    clock = start_clock(options, stop, began, needs, check=check)
    search = NearSearch(dataset, plan, options, clock)
    return run_within_limit(lambda: search.solve(gamma, wanted), clock, search.record)


def _check_pair(
    dataset: Dataset, plan: FoldPlan | None, options: NearOptions, gamma: float | None,
    taus: str | int | tuple[int, ...] | None,
) -> Grid:  # fmt: skip
    """Return the grid of one gamma, 1 if it is not given; raise `BadInput` for a wrong gamma, size or kind of value."""
    if options.valued_by is By.CV and not options.loss.target.is_sum_over_rows:
        raise BadInput(
            f"by: CV errors of supports are not supported with loss {options.loss}, because single rows have no loss; "
            'give by="objective"'
        )
    ridge_weight = 1.0 if gamma is None else gamma
    grid = Grid.from_request(dataset, plan, ridge_weight, taus, options.restrictions, loss=options.loss)
    if len(grid.gammas) != 1:
        raise BadInput(
            f"gamma: a list of near-optimal models needs one gamma, not {len(grid.gammas)}; give one value, or "
            "leave gamma out"
        )
    return grid


class NearSearch:
    """The choice of gamma and tau, if not given, and the lists; it can return a record at any moment.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    plan : FoldPlan or None
        Folds; None if none are needed.
    options : NearOptions
        Options.
    clock : Deadline
        Time limit.
    """

    def __init__(self, dataset: Dataset, plan: FoldPlan | None, options: NearOptions, clock: Deadline) -> None:
        self.dataset, self.plan, self.options, self.clock = dataset, plan, options, clock
        self.data: StandardData | None = None
        self.chosen: str | None = None
        self.support: tuple[str, ...] = ()  # the model that came with the choice of gamma
        self.gamma, self.taus = 1.0, tuple[int, ...]()
        self.holder: NearBest | None = None
        self.collection: collecting.Lists | None = None
        self.unit = 1.0

    @blas_on_one_thread()
    def solve(self, gamma: float | None, taus: str | int | tuple[int, ...] | None) -> NearRecord:
        """Choose gamma and tau if not given, and make the lists.

        Parameters
        ----------
        gamma : float or None
            Ridge weight.
        taus : str, int, tuple of int or None
            Sizes.
        """
        if gamma is None or (taus is None and self.options.valued_by is By.CV):
            gamma, taus = self._choose(gamma, taus)
        grid = _check_pair(self.dataset, self.plan, self.options, gamma, taus)
        self._list(gamma, grid.taus.tolist())
        self.clock.check_caller_waits()
        return self.record()

    def _choose(
        self, gamma: float | None, taus: str | int | tuple[int, ...] | None
    ) -> tuple[float, str | int | tuple[int, ...]]:
        options, plan = self.options, self.plan
        assert plan is not None
        how = SearchOptions.of(
            scale=options.scale, intercept=options.intercept, gap=options.gap, threads=options.threads,
            restrictions=options.restrictions, loss=options.loss, positive=options.positive,
            class_weight=options.class_weight,
        )  # fmt: skip
        seconds = None if self.clock.limit is None else max(CHOOSING_SHARE * self.clock.remaining_seconds, 1e-3)
        record = answer(Question(self.dataset, plan, gamma, taus, how), self.clock.next_part(seconds))
        self.chosen, self.support = record.status, record.support
        return record.gamma, record.tau if taus is None else taus

    def _list(self, gamma: float, taus: list[int]) -> None:
        options, is_expired = self.options, self.clock.has_expired
        plan = self.plan if options.valued_by is By.CV else None
        data, sizes, at = prepare_values(self.dataset, options, [gamma], taus, self.plan, plan, "a near-optimal list")
        criterion = at(gamma)
        holder = NearBest(sizes, options.within, options.most, criterion.terms.count)
        self.unit = data.loss_unit
        self.gamma, self.taus, self.holder, self.data = gamma, tuple(taus), holder, data
        if self.support:  # at a time limit, this model may be the only one
            columns = {*map(data.names.index, self.support), *data.adjusting.tolist()}
            collecting.pass_supports(criterion, holder, [np.array(sorted(columns), dtype=np.int64)])
        collecting.pass_supports(criterion, holder, criterion.likely(sizes, is_expired))
        if options.valued_by is By.CV:
            for tau in sizes:
                self._exchange(criterion, holder, tau)
        self.collection = criterion.lists(holder, is_expired)
        if not is_expired():
            self.collection.run()

    def _exchange(self, criterion: collecting.SupportValue, holder: NearBest, tau: int) -> None:
        """Exchange columns of the best support of a size while this helps."""
        while (best := holder.best(tau)) is not None and not self.clock.has_expired():
            others = criterion.terms.neighbours(best.support, criterion.forced, [tau])
            collecting.pass_supports(criterion, holder, others)
            if holder.best(tau) is best:
                return

    def record(self) -> NearRecord:
        """Return the record of the present result.

        Raises
        ------
        OutOfTime
            If the data are not yet in standard coordinates.
        """
        data, holder, options = self.data, self.holder, self.options
        if data is None or holder is None:
            raise OutOfTime(
                "no answer yet: the (tau, gamma) pair was not chosen in time; give more time, or give gamma and tau"
            )
        collection = self.collection
        lists = [holder.result(tau, 0.0 if collection is None else collection.unseen(tau)) for tau in holder.taus]
        finished = collection is not None and collection.finished and not holder.has_unknown_value
        return NearRecord(
            schema=NEAR_SCHEMA,
            status=self.clock.status(finished),
            by=str(options.valued_by),
            within=options.within,
            most=options.most,
            gamma=self.gamma,
            chosen=self.chosen,
            sizes=tuple(self._size(data, near_list) for near_list in lists),
            models=tuple(
                NearModel(near_list.tau, data.features_of(model.support), model.value * self.unit)
                for near_list in lists
                for model in near_list.models
            ),
            work=Work(0, 0 if collection is None else collection.nodes, self.clock.seconds, "near"),
            folds=None if self.plan is None else fold_info(self.plan),
            request=options.request((self.gamma,), self.taus),
            warnings=(*data.warnings, *((NO_CV_ERRORS,) if holder.has_unknown_value else ())),
            versions=versions(),
            **describe_data(data, null_error_of_folds(data.dataset, data.loss, None)),
        )  # fmt: skip

    def _size(self, data: StandardData, one: NearList) -> NearSize:
        certain = [model.support for model in one.certain]
        always: IntArray = np.zeros(0, dtype=np.int64)
        never = always
        if certain:
            count = np.bincount(np.concatenate(certain), minlength=data.q)
            always, never = np.flatnonzero(count == len(certain)), np.flatnonzero(count == 0)
        terms = WholeTerms.from_data(data)
        pairs = replacements([terms.names(model.support) for model in one.models]).most_common(MOST_REPLACEMENTS)
        unit, names = self.unit, data.names
        return NearSize(
            tau=one.tau,
            best=one.best * unit,
            lower=one.lower * unit,
            threshold=one.threshold * unit,
            complete_to=one.complete_to * unit,
            models=len(one.models),
            always=data.features_of(always),
            never=column_names(data, never),
            replacements=tuple(Replacement(names[a], names[b], count) for (a, b), count in pairs),
        )
