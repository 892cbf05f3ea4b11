"""Search for the subset with the minimum CV error if all folds use the same subset (`--criterion common`).

For a support S at one gamma and squared-error loss, the CV error is `H(S) = (1/m) sum_N ||(I - H_NN)^{-1} e_N||^2`. The
sum is over the folds, N are the held-out rows of a fold, and m is the total number of held-out rows. The vector e_N has
the residuals of the rows N in the full-data fit of S, and H_NN is the block of the hat matrix for the rows N
(docs/theory/near_optimal.md). For another loss, H(S) is the mean loss of held-out rows
(:mod:`sparsecv_mio.near.glm_values`). The search first finds supports with a small H(S). Then it lists, at every gamma,
all supports whose H(S) may be below the smallest H(S) found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.fit_records import COMMON_SCHEMA, CommonRecord, CommonRow
from sparsecv_mio.certificate.parts import Work, relative_gap, versions
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import AnyFolds, make_folds
from sparsecv_mio.data.loss_targets import check_training
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.declared_options import keywords_are
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.fits.fit_options import CommonOptions
from sparsecv_mio.model_space import NONE, Restrictions
from sparsecv_mio.near import collecting
from sparsecv_mio.near.collecting import NO_CV_ERRORS, Valued
from sparsecv_mio.near.glm_values import prepare_values
from sparsecv_mio.parallel import blas_on_one_thread
from sparsecv_mio.problem.glm_objective import null_error_of_folds
from sparsecv_mio.search.answer.answer_fits import make_answer_fits
from sparsecv_mio.search.answer.result import describe_data, fitted_row, fold_info
from sparsecv_mio.search.deadline import Deadline, run_within_limit
from sparsecv_mio.search.first_use import make_first_use, start_clock
from sparsecv_mio.search.options import GRID, with_keywords
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.trees.subsets import BestSubset
from sparsecv_mio.trees.without_ridge import standardize_and_check
from sparsecv_mio.units import PROVED_RTOL


@keywords_are(CommonOptions, Restrictions)
def best_common_subset(
    dataset: Dataset,
    folds: AnyFolds = "10",
    *,
    gammas: str | float | Iterable[float] | None = None,
    taus: str | int | Iterable[int] | None = None,
    options: CommonOptions | None = None,
    stop: threading.Event | None = None,
    began: float | None = None,
    **keywords: Any,
) -> CommonRecord:
    """Return the subset with the minimum CV error if all folds share it, with a certificate.

    The search minimises `H(S, gamma) = (1/m) sum_j sum_{i in N_j} (y_i - x_i' b_S^(-N_j))^2` over the supports S of the
    requested sizes and the gammas of the grid. Here `b_S^(-N)` is the ridge fit of S on the rows outside N. H is the
    criterion of Takano and Miyashiro (TOP, 2020). `cross_validate` minimises a different criterion, in which every fold
    has the subset that is best on its own training rows.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    folds : FoldPlan, str, int, splitter, labels or pairs
        Folds, see :func:`~sparsecv_mio.data.folds.make_folds`; every row must be held out, all equally often.
    gammas, taus : sequences, numbers or texts
        Grid, by default that of `solve`. Supports have exactly tau features that vary.
    options : CommonOptions, optional
        Scale, gap, limits.
    stop : threading.Event, optional
        Event that ends the run with its present result.
    began : float, optional
        Moment of `time.monotonic` from which the time limit counts; this call by default.
    **keywords
        Fields of `CommonOptions` by keyword, which override those of `options`.

    Returns
    -------
    CommonRecord
        Best subset with certified bounds.

    Raises
    ------
    BadInput
        If the grid, the folds or an option is wrong.
    OutOfTime
        If the time limit ends before any support has a value.
    TypeError
        If a keyword is not a field of `CommonOptions`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> data = Dataset.from_arrays(X, 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=40))
    >>> record = best_common_subset(data, "5", gammas=[0.01, 0.1], taus=[1, 2])
    >>> record.status, record.gamma, record.support
    ('proved', 0.01, ('x1', 'x3'))
    """
    options = with_keywords(options or CommonOptions(), keywords, "best_common_subset", GRID)
    return common_search(dataset, folds, gammas, taus, options, stop, began).run()


def common_search(
    dataset: Dataset, folds: AnyFolds, gammas: str | float | Iterable[float] | None,
    taus: str | int | Iterable[int] | None, options: CommonOptions, stop: threading.Event | None, began: float | None,
) -> CommonSearch:  # fmt: skip
    """Return the search that `best_common_subset` runs, with the same parameters."""
    dataset = options.in_classes(dataset)
    plan = make_folds(folds, dataset)
    check_training(dataset, plan, options.intercept, options.loss)
    options = options.by_names(dataset)
    grid = Grid.from_request(dataset, plan, gammas, taus, options.restrictions, loss=options.loss)

    def find_tiny(data: Dataset, folds: FoldPlan, **asked: Any) -> None:
        best_common_subset(data, folds, **asked)

    def check() -> None:
        standardize_and_check(dataset, options, grid.gammas.tolist(), grid.taus.tolist(), plan)

    needs = make_first_use("common", replace(options, restrictions=NONE), dataset, find_tiny)
    clock = start_clock(options, stop, began, needs, check=check)
    return CommonSearch(dataset, plan, grid, options, clock)


class CommonSearch:
    """The search over a grid; it can return a record once a support has a value.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    plan : FoldPlan
        Folds.
    grid : Grid
        Grid.
    options : CommonOptions
        Options.
    clock : Deadline
        Time limit.

    Attributes
    ----------
    progress : callable or None
        Function called with (done, total) after each step: each gamma has one step for first values and one for the
        list.
    """

    def __init__(self, dataset: Dataset, plan: FoldPlan, grid: Grid, options: CommonOptions, clock: Deadline) -> None:
        self.steps = 0
        self.progress: Callable[[int, int], None] | None = None
        self.dataset, self.plan, self.grid, self.options, self.clock = dataset, plan, grid, options, clock
        self.data: StandardData | None = None
        self.leader = Leader(options.gap)
        self.at_gammas: list[AtGamma] = []

    def run(self) -> CommonRecord:
        """Search within the time limit, and return the record."""
        return run_within_limit(self.solve, self.clock, self.record)

    def _step(self) -> None:
        """Report that a step is done."""
        self.steps += 1
        if self.progress is not None:
            self.progress(self.steps, 2 * len(self.grid.gammas))

    @blas_on_one_thread()
    def solve(self) -> CommonRecord:
        """Compute values of promising supports at every gamma, then list all supports that may be better."""
        self._prepare()
        self._improve()
        for at_gamma in sorted(self.at_gammas, key=lambda at_gamma: at_gamma.best_value):
            if not self.clock.has_expired():
                at_gamma.collection.run()
                self._step()
        self.clock.check_caller_waits()
        return self.record()

    def _prepare(self) -> None:
        gammas, is_expired = self.grid.gammas.tolist(), self.clock.has_expired
        self.data, taus, at = prepare_values(
            self.dataset, self.options, gammas, self.grid.taus.tolist(), self.plan, self.plan, "criterion common"
        )
        for gamma in gammas:
            if not is_expired() or not self.at_gammas:
                self.at_gammas.append(AtGamma(self.leader, at(gamma), gamma, taus, is_expired))
                self._step()

    def _improve(self) -> None:
        """Exchange columns of the best support while this helps, and try the result at every gamma."""
        while True:
            before, best = self.leader.upper, min(self.at_gammas, key=lambda one: one.best_value)
            if self.clock.has_expired() or best.best is None:
                return
            support = best.best.support
            best.offer(best.criterion.terms.neighbours(support, best.criterion.forced, best.taus))
            for at_gamma in self.at_gammas:
                if best.best is not None:
                    at_gamma.offer([best.best.support])
            if not self.leader.upper < before:
                return

    def record(self) -> CommonRecord:
        """Return the record of the present result.

        Raises
        ------
        OutOfTime
            If no support has a value.
        """
        valued = [at_gamma for at_gamma in self.at_gammas if at_gamma.best is not None]
        data, options = self.data, self.options
        if data is None or not valued:
            raise OutOfTime("no answer yet: no support was evaluated in time; give more time")
        winner = min(valued, key=lambda one: one.best_value)
        best = winner.best
        assert best is not None
        gamma, unit = winner.gamma, data.loss_unit
        problem = winner.criterion.problem if isinstance(winner.criterion, collecting.SquaredValue) else None
        tau = winner.criterion.terms.count(best.support)
        cell = BestSubset.from_bounds(tau, best.support, np.inf)
        quick = self.clock.abandoned.is_set() and make_answer_fits(data).takes_long(len(best.support))
        fit = fitted_row(data, gamma, problem, cell, options.gap, quick)
        rows = [row for at_gamma in self.at_gammas for row in at_gamma.rows(data, unit)]
        # the model has the first of equal columns, whichever was found
        rows = [replace(row, support=fit.support) if (row.gamma, row.tau) == (gamma, tau) else row for row in rows]
        whole = len(self.at_gammas) == len(self.grid.gammas)
        upper = (best.value + best.error) * unit
        lower = min(min(row.lower for row in rows) if whole else 0.0, best.value * unit)
        proved = upper - lower <= max(options.gap, PROVED_RTOL) * upper + 2.0 * best.error * unit
        return CommonRecord(
            schema=COMMON_SCHEMA,
            status=self.clock.status(proved),
            gamma=gamma,
            tau=tau,
            cv_error=best.value * unit,
            lower=lower,
            upper=upper,
            gap=relative_gap(lower, upper),
            support=fit.support,
            coefficients=fit.coefficients,
            intercept=fit.intercept,
            table=tuple(rows),
            work=Work(0, sum(at_gamma.collection.nodes for at_gamma in self.at_gammas), self.clock.seconds, "common"),
            folds=fold_info(self.plan),
            request=options.request(self.grid.gammas.tolist(), self.grid.taus.tolist()),
            warnings=(*data.warnings, *[NO_CV_ERRORS] * any(at_gamma.unknown for at_gamma in self.at_gammas)),
            versions=versions(),
            **describe_data(data, null_error_of_folds(data.dataset, data.loss, self.plan)),
        )  # fmt: skip


class Leader:
    """The smallest CV error found at any gamma, rounded up.

    Parameters
    ----------
    gap : float
        Minimum relative improvement of a wanted support.
    """

    def __init__(self, gap: float) -> None:
        self.gap, self.upper = gap, np.inf

    @property
    def threshold(self) -> float:
        """Value up to which supports are wanted."""
        return (1.0 - self.gap) * self.upper


class AtGamma:
    """The result at one gamma, and the taker of its `Collection`.

    Parameters
    ----------
    leader : Leader
        Smallest CV error of all gammas.
    criterion : SupportValue
        Values at the gamma.
    gamma : float
        Ridge weight.
    taus : sequence of int
        Sizes.
    is_expired : callable
        Function that returns True when time is over.
    """

    def __init__(
        self,
        leader: Leader,
        criterion: collecting.SupportValue,
        gamma: float,
        taus: list[int],
        is_expired: Callable[[], bool],
    ) -> None:
        self.leader, self.taus, self.gamma, self.criterion = leader, taus, gamma, criterion
        self.found: dict[int, Valued] = {}
        self.unknown: set[int] = set()  # sizes with a support whose value could not be computed
        self.offer(criterion.likely(taus, is_expired))
        self.collection = criterion.lists(self, is_expired)

    @property
    def best(self) -> Valued | None:
        """Best support of any size."""
        return min(self.found.values(), key=lambda one: one.value, default=None)

    @property
    def best_value(self) -> float:
        """Value of the best support."""
        return np.inf if self.best is None else self.best.value

    def offer(self, supports: list[IntArray]) -> None:
        """Compute the values of supports and take them."""
        collecting.pass_supports(self.criterion, self, supports)

    def threshold(self, tau: int) -> float:
        """Return the value up to which supports of a size are wanted."""
        return self.leader.threshold

    def useful(self, tau: int) -> float:
        """Return the value beyond which a support of a size changes neither the result nor the row of the size."""
        return max(self.leader.threshold, self.found[tau].value if tau in self.found else np.inf)

    def take(self, support: IntArray, value: float, error: float) -> None:
        """Take a support.

        Parameters
        ----------
        support : int array
            Columns.
        value, error : float
            Value, and a bound on its rounding error.
        """
        tau = self.criterion.terms.count(support)
        if not np.isfinite(value + error):
            self.unknown.add(tau)
        elif tau not in self.found or value < self.found[tau].value:
            self.found[tau] = Valued(support, value, error)
            self.leader.upper = min(self.leader.upper, value + error)

    def rows(self, data: StandardData, unit: float) -> list[CommonRow]:
        """Return the rows of the record's table, in squared units of the target.

        Parameters
        ----------
        data : StandardData
            Data set.
        unit : float
            Factor from values to units of the file.
        """
        made = []
        for tau in self.taus:
            best = self.found.get(tau, Valued(np.zeros(0, dtype=np.int64), np.inf, 0.0))
            unseen = 0.0 if tau in self.unknown else self.collection.unseen(tau)
            lower = max(min(unseen, self.leader.threshold, best.value - best.error), 0.0)
            made.append(CommonRow(self.gamma, tau, data.features_of(best.support), best.value * unit, lower * unit))
        return made
