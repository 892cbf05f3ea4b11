"""The best subset of every size on the full data, at given gammas or as a function of gamma (`sparsecv path`).

With `--gamma LO..HI`, `with_surface` adds the best subset of every size as a function of gamma. For every size the
interval is divided into pieces, and on most pieces one subset is proved to be the best
(docs/theory/continuous_gamma.md, section 1). If the objectives of two subsets are equal at a gamma, a piece around this
gamma has both subsets. On this piece, the two objectives agree to 1e-9. A piece has no proved subset if rounding errors
exceed the difference between subsets, or if a limit ends the work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparsecv_mio.arrays import ArrowTable, IntArray
from sparsecv_mio.certificate.fit_records import PATH_SCHEMA, PathRecord, Surface, SurfacePiece
from sparsecv_mio.certificate.parts import Work, versions
from sparsecv_mio.certificate.records import PathRow
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.readers import TableColumns, read_requested_data
from sparsecv_mio.data.reading_options import Reading, drop_fold_wording
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.declared_options import TABLE, keywords_are
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.model_space import GammaInterval, Restrictions, interval
from sparsecv_mio.parallel import blas_on_one_thread
from sparsecv_mio.problem.glm_objective import null_error_of_folds
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_squares
from sparsecv_mio.search.answer.answer_fits import LITTLE_WORK, AnswerFits, make_answer_fits
from sparsecv_mio.search.answer.quick_answer import select_on_all_rows
from sparsecv_mio.search.answer.result import describe_data, fitted_row
from sparsecv_mio.search.deadline import Deadline, require_prepared_data, run_within_limit
from sparsecv_mio.search.every_gamma.gamma_fits import (
    Envelope,
    FitsAtLam,
    FitsOverGamma,
    TrainingSets,
    first_grid,
    geometric_mean,
)
from sparsecv_mio.search.every_gamma.gamma_lists import BestOverGamma, EndLists, Lister
from sparsecv_mio.search.first_use import make_first_use, start_clock
from sparsecv_mio.search.observers import Progress
from sparsecv_mio.search.options import GRID, with_keywords
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.trees.subsets import FIRST_LOOK, FIRST_NODES, ROUND_GROWTH, UNLIMITED, BestSubset
from sparsecv_mio.trees.without_ridge import standardize_and_check
from sparsecv_mio.units import NARROWEST, TIE_RTOL

if TYPE_CHECKING:
    import pandas as pd

NOT_TOLD_APART = (
    "the objectives of some subsets differ by less than the rounding error, or too many subsets remain to enumerate; "
    "more time does not help, but a larger gamma or fewer nearly duplicate columns may help"
)


Found = tuple[float, float, tuple[tuple[int, ...], ...]]  # an interval of lam and its supports; no supports if unknown


def with_surface(
    record: PathRecord, data: StandardData, gammas: GammaInterval, taus: Sequence[int], clock: Deadline
) -> PathRecord:
    """Add the best subset of every size, at every gamma of an interval, to the record of the two ends of the interval.

    Parameters
    ----------
    record : PathRecord
        Record of the two ends.
    data : StandardData
        Data set.
    gammas : GammaInterval
        Interval.
    taus : sequence of int
        Sizes.
    clock : Deadline
        Time limit.
    """
    # a bound that overflows is no bound
    with np.errstate(over="ignore", invalid="ignore"):
        lister = Lister(TrainingSets.from_full_data(data), data, None, clock.has_expired)
        sizes = sorted({min(tau, data.q) for tau in taus})
        lists = EndLists(lister, BestOverGamma(lister, sizes))
        ends = gammas.low / 2.0, gammas.high / 2.0
        by_size = {
            size: _merge_pieces(
                [piece for near in pairwise(first_grid(ends)) for piece in _find_pieces(lists, near, size)]
            )
            for size in sizes
        }
    is_expired = clock.has_expired()
    numbers: dict[tuple[int, ...], int] = {}
    pieces = []
    for tau in taus:
        for low, high, supports in by_size[min(tau, data.q)]:
            places = tuple(sorted(numbers.setdefault(support, len(numbers)) for support in supports))
            pieces.append(SurfacePiece(tau, 2.0 * low, 2.0 * high, places, len(places) > 0))
    names = tuple(tuple(data.names[j] for j in support) for support in numbers)
    surface = Surface(gammas.low, gammas.high, names, tuple(pieces))
    status, warnings = record.status, record.warnings
    if not all(piece.proved for piece in pieces):
        status = clock.status(False)
        warnings = warnings if is_expired else (*warnings, NOT_TOLD_APART)
    work = replace(record.work, nodes=record.work.nodes + lister.nodes, seconds=clock.seconds)
    return replace(record, surface=surface, status=status, work=work, warnings=warnings)


def _find_pieces(lists: EndLists, ends: tuple[float, float], size: int) -> list[Found]:
    """Return the pieces of one interval of lam."""
    low, high = ends
    if not all(lists.solve(lam, [size]) for lam in ends):
        return [(low, high, ())]
    fits = lists.candidate_fits(low, high, size)
    if fits is None:
        return [(low, high, ())]
    assert isinstance(fits, FitsOverGamma)
    return _Cut(lists.lister.data, lists.lister.is_expired).cut_interval(
        fits, ends, (fits.values(low), fits.values(high))
    )


@dataclass(frozen=True)
class _Cut:
    """Cuts intervals in half until one subset can be best on each part, or those that can be best are tied."""

    data: StandardData
    is_expired: Callable[[], bool]

    def cut_interval(
        self, fits: FitsOverGamma, ends: tuple[float, float], values: tuple[FitsAtLam, FitsAtLam], fine: bool = False
    ) -> list[Found]:
        """Return the pieces of an interval, given values of all candidates at its ends; `fine` if from the rows."""
        (low, high), (low_values, right) = ends, values
        envelope = Envelope.from_fits(ends, fits.fold, low_values, right, tie_rtol=0.0)
        alive = np.flatnonzero(envelope.may_win(low_values, right))
        fits, low_values, right = fits.select(alive), low_values.select(alive), right.select(alive)
        sides = [(side.f - side.f.min(), side) for side in (low_values, right)]
        tied = all(np.all(over + 2.0 * side.f_error.max() <= TIE_RTOL * side.f.min()) for over, side in sides)
        if len(fits) == 1 or tied:
            return [(low, high, tuple(tuple(row) for row in fits.support.tolist()))]
        # twice the tolerance of `may_win`: if every candidate is within it, halving would never end
        alike = all(np.all(over <= 8.0 * side.f_error.max()) for over, side in sides)
        if self.is_expired() or (alike and fine) or high - low <= NARROWEST * high:
            return [(low, high, ())]
        if alike:
            return self.cut_interval(
                fits, ends, (self._evaluate_from_rows(fits, low), self._evaluate_from_rows(fits, high)), True
            )
        middle = geometric_mean(low, high)
        between = self._evaluate_from_rows(fits, middle) if fine else fits.values(middle)
        parts = ((low, middle), (low_values, between)), ((middle, high), (between, right))
        return [
            piece for part_ends, part_values in parts for piece in self.cut_interval(fits, part_ends, part_values, fine)
        ]

    def _evaluate_from_rows(self, fits: FitsOverGamma, lam: float) -> FitsAtLam:
        """Return the values of fits from the rows, whose rounding is far smaller than that of the moments."""
        made = [refit_squares(self.data, slice(0, self.data.n), support, 2.0 * lam) for support in fits.support]
        slope = [float(self.data.weight[ridge.support] @ ridge.beta**2) for ridge in made]
        f, error = (np.array([getattr(ridge, name) for ridge in made]) for name in ("objective", "objective_error"))
        return FitsAtLam(f, error, np.array(slope), np.zeros(len(made)), np.zeros(len(made)))


def _merge_pieces(pieces: list[Found]) -> list[Found]:
    """Return the pieces with neighbours of the same supports joined."""
    merged: list[Found] = []
    for low, high, supports in pieces:
        if merged and set(merged[-1][2]) == set(supports):
            merged[-1] = (merged[-1][0], high, merged[-1][2])
        else:
            merged.append((low, high, supports))
    return merged


Report = Callable[[Progress], None] | None


@keywords_are(TableColumns, Reading, PathOptions, Restrictions)
@blas_on_one_thread()
def best_subsets(
    dataset: str | Path | pd.DataFrame | ArrowTable | Dataset,
    target: str | int | None = None,
    *,
    gammas: str | float | Iterable[float] | GammaInterval | None,
    taus: str | int | Iterable[int] | None = None,
    options: PathOptions | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    began: float | None = None,
    **keywords: Any,
) -> PathRecord:
    """Return the best subset of every size on all rows, each with its certified interval.

    Parameters
    ----------
    dataset : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Rows, target and names. A file, frame or table also takes `features`, `drop` and the options of
        :func:`~sparsecv_mio.data.readers.read_dataset`.
    target : str or int, optional
        Column to predict, by name or position; a `Dataset`, NPZ and svmlight files have their own. `time` is another
        name of it, for survival times.
    gammas : sequence, number, text or GammaInterval
        Ridge weights, positive, or 0 if the columns of every model are linearly independent. A `GammaInterval` or text
        `LO..HI` adds the best subset of every size as a function of gamma to those at both ends.
    taus : sequence, number or text, optional
        Support sizes, 0 to p; by default 1 to p, and for p > 30 to n / 8, but at least 10 and at most 50.
    options : PathOptions, optional
        Scale, gap, limits.
    progress : callable, optional
        Function called with a :class:`~sparsecv_mio.search.observers.Progress` after each gamma of a round.
    stop : threading.Event, optional
        Event that ends the run with its present result.
    began : float, optional
        Moment of `time.monotonic` from which the time limit counts; this call by default.
    **keywords
        Fields of `PathOptions` by keyword, which override those of `options`.

    Returns
    -------
    PathRecord
        A fit for every gamma and tau; `proved` if all are.

    Raises
    ------
    BadInput
        If the grid or an option is out of range.
    OutOfTime
        If the time limit ends before the data are in standard coordinates.
    TypeError
        If a keyword is not a field of `PathOptions`.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3], [3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    >>> [row.support for row in best_subsets(data, gammas=[0.1], taus=[1, 2]).path]
    [('x0',), ('x0', 'x1')]
    """
    table = {name: keywords.pop(name) for name in (*TABLE, "time") if name in keywords} | {"target": target}
    options = with_keywords(options or PathOptions(), keywords, "best_subsets", (*GRID, *TABLE, "time"))
    rows = read_requested_data(options, dataset, table)
    options, dataset = options.by_names(rows), options.in_classes(rows)
    restrictions = options.restrictions
    every = (interval(gammas, "gammas") or gammas) if isinstance(gammas, str) else gammas
    if not options.loss.is_quadratic and isinstance(every, GammaInterval):
        raise BadInput(
            f"gamma {every}: {options.loss} loss does not support an interval of gamma; give a positive number, a list "
            "or LO:HI:COUNT"
        )
    if isinstance(every, GammaInterval) and restrictions:
        raise BadInput(
            f"gamma {every}: an interval is not supported with restrictions of the models; give a grid LO:HI:COUNT"
        )
    ends = (every.low, every.high) if isinstance(every, GammaInterval) else every
    grid = Grid.from_request(dataset, None, ends, taus, restrictions, loss=options.loss)

    def find_tiny(data: Dataset, folds: FoldPlan, **asked: Any) -> None:
        best_subsets(data, **asked)

    def check() -> None:
        standardize_and_check(dataset, options, grid.gammas.tolist(), grid.taus.tolist())

    clock = start_clock(options, stop, began, make_first_use("path", options, dataset, find_tiny), progress, check)
    search = PathSearch(dataset, grid, options, clock, progress)
    record = run_within_limit(search.solve, clock, search.record, search.prepare)
    if not isinstance(every, GammaInterval):
        return record
    if clock.has_expired():  # an abandoned thread may still be loading what `with_surface` needs
        pieces = tuple(SurfacePiece(tau, every.low, every.high, (), False) for tau in grid.taus.tolist())
        return replace(record, surface=Surface(every.low, every.high, (), pieces), status=clock.status(False))

    return with_surface(record, search.data, every, grid.taus.tolist(), clock)


Subsets = dict[tuple[int, int], BestSubset]  # by index of gamma and by tau


class _Row(NamedTuple):
    """A row of the record, its subset, and True if its fit is a quick one."""

    subset: BestSubset
    row: PathRow
    quick: bool


class PathSearch:
    """A search for the best subset of every (gamma, tau); it can return a record once the data are read.

    The searching thread stores its results here. Either this thread or the thread that waits for it makes the record.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    grid : Grid
        Grid.
    options : PathOptions
        Options.
    clock : Deadline
        Time limit.
    progress : callable or None
        Function called with a `Progress` after each gamma of a round.

    Attributes
    ----------
    subsets : dict of (int, int) to BestSubset
        Results by index of gamma and by tau.
    nodes : int
        Number of nodes of all trees.
    """

    def __init__(
        self, dataset: Dataset, grid: Grid, options: PathOptions, clock: Deadline, progress: Report = None
    ) -> None:
        self.dataset, self.grid, self.options = dataset, grid, options
        self.clock, self.progress = clock, progress
        self.subsets: dict[tuple[int, int], BestSubset] = {}
        self.nodes = 0
        self._data: StandardData | None = None
        self._quick: dict[int, IntArray] = {}  # supports by forward selection, once they were needed
        self._rows: dict[tuple[int, int], _Row] = {}  # rows of the record made so far

    @property
    def data(self) -> StandardData:
        """Data in standard coordinates; raises `OutOfTime` before they are ready."""
        return require_prepared_data(self._data)

    def standardize(self) -> StandardData:
        """Return the data in standard coordinates and store them; `record` requires this call."""
        gammas, taus = self.grid.gammas.tolist(), self.grid.taus.tolist()
        self._data = standardize_and_check(self.dataset, self.options, gammas, taus)
        _ = self.dataset.fingerprint  # computed now, because there is no time for it after the limit
        return self._data

    def solve(self) -> PathRecord:
        """Process every open size in rounds of growing effort; return the record."""
        data = self.standardize()
        from sparsecv_mio.search.problems.all_rows import check_restrictions

        if data.loss.is_quadratic:
            check_restrictions(data, self.grid.taus.tolist(), 1)
        fits = make_answer_fits(data)
        if data.loss.is_quadratic and fits.problem is None:
            self._solve_by_rows()
        else:
            self._rounds(fits)
        self.clock.check_caller_waits()
        return self.record(fits.problem, self.clock.check_caller_waits)

    @property
    def pairs(self) -> int:
        """Number of pairs (tau, gamma)."""
        return len(self.grid.gammas) * len(self.grid.taus)

    def prepare(self, until: float) -> None:
        """Select supports for every (gamma, tau), and make rows of the record while there is time.

        Parameters
        ----------
        until : float
            Moment of `time.monotonic` after which no row is made.
        """
        if self._data is None:
            return
        gammas, taus = self.grid.gammas.tolist(), self.grid.taus.tolist()
        if not self._quick:
            self._quick = select_on_all_rows(self.data, gammas[len(gammas) // 2], taus, until)
        self._fit_rows(self._complete_results(), None, True, lambda: time.monotonic() > until)

    def record(
        self, problem: SparseProblem | None = None, check_wanted: Callable[[], None] = lambda: None
    ) -> PathRecord:
        """Return the record of the present result; no kernel is called without the moments of `problem`.

        After the time limit this takes `GRACE` and a quick fit of the smallest size at each gamma. A pair without a fit
        then has the fit of a smaller size.

        Parameters
        ----------
        problem : SparseProblem, optional
            Problem of all rows, at any gamma.
        check_wanted : callable
            Function called between fits; it raises an exception if the record is no longer wanted.

        Raises
        ------
        OutOfTime
            If the data are not yet in standard coordinates.
        """
        data, clock = self.data, self.clock
        if len(self.subsets) < self.pairs:
            self.prepare(clock.began)
        subsets, gammas, taus = self._complete_results(), self.grid.gammas.tolist(), self.grid.taus.tolist()
        if clock.limit is not None and problem is None:
            self._fit_rows(subsets, None, True, clock.make_late_check(), check_wanted)
        self._fit_rows(subsets, problem, False, clock.is_over, check_wanted)
        self._fit_rows(subsets, problem, True, clock.make_late_check(), check_wanted)
        rows = [row for g in range(len(gammas)) for row in self._path_rows(g, subsets)]
        done = all(row.proved for row in rows)
        options, branched = self.options, sum(subset.branched for subset in subsets.values())
        read = drop_fold_wording(data.warnings)
        return PathRecord(
            schema=PATH_SCHEMA,
            status=self.clock.status(done),
            path=tuple(rows),
            work=Work(branched, self.nodes, self.clock.seconds, "path"),
            request=options.request(gammas, taus),
            warnings=read if done or self.clock.has_expired() else (*read, NOT_TOLD_APART),
            versions=versions(),
            **describe_data(data, null_error_of_folds(data.dataset, data.loss, None)),
        )

    def _complete_results(self) -> dict[tuple[int, int], BestSubset]:
        """Return the results, with a support by forward selection for pairs without a result."""
        subsets = dict(self.subsets)
        for g, tau in product(range(len(self.grid.gammas)), self._quick):
            if (g, tau) not in subsets:
                at_hand = self._rows.get((g, tau))
                subsets[g, tau] = at_hand.subset if at_hand else BestSubset.from_bounds(tau, self._quick[tau])
        return subsets

    def _fit_rows(
        self, subsets: Subsets, problem: SparseProblem | None, quick: bool, is_expired: Callable[[], bool],
        check_wanted: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """Fit the missing rows of the record; quick fits of the smallest size are made after the time limit, too.

        If there is little work, all fits are exact.
        """
        data, smallest = self.data, int(self.grid.taus.min())
        fast = (
            quick
            and len(subsets) * make_answer_fits(data).count_numbers(data.choice.n_columns(int(self.grid.taus.max())))
            > LITTLE_WORK
        )
        for (g, tau), subset in sorted(
            subsets.items(), key=lambda item: (item[0][1] != smallest, not item[1].complete)
        ):
            check_wanted()
            made = self._rows.get((g, tau))
            if made is not None and made.subset is subset and (quick or not made.quick):
                continue
            if is_expired() and not (quick and tau == smallest and made is None):
                continue
            gamma = float(self.grid.gammas[g])
            at_gamma = problem.with_gamma(gamma) if problem is not None else None
            row = fitted_row(data, gamma, at_gamma, subset, self.options.gap, fast)
            self._rows[g, tau] = _Row(subset, row, fast)

    def _path_rows(self, g: int, subsets: Subsets) -> list[PathRow]:
        """Return the rows of a gamma; a size without a fit gets the fit of a smaller size."""
        rows: list[PathRow] = []
        for tau in self.grid.taus.tolist():
            made, subset = self._rows.get((g, tau)), subsets[g, tau]
            row = made.row if made is not None else min(rows, key=lambda row: row.objective)
            if made is None or made.subset is not subset:
                lower = max(row.lower if made is not None else 0.0, subset.lower * self.data.loss_unit)
                row = replace(row, tau=tau, lower=min(lower, row.objective), proved=False)
            rows.append(row)
        return rows

    def _solve_by_rows(self) -> None:
        """Solve one relaxation for each size, and the size exactly if the relaxation leaves few columns."""
        from sparsecv_mio.search.problems.all_rows import WideTraining

        data, taus = self.data, self.grid.taus.tolist()
        for g, gamma in enumerate(self.grid.gammas.tolist()):
            if self.clock.has_expired():
                return
            whole = WideTraining.from_full_data(data, gamma, self.clock.has_expired)
            whole.wide.search(taus)
            for tau in taus:
                if self.clock.has_expired():
                    return
                solved = whole.solve_size(tau, UNLIMITED)
                self.subsets[g, tau] = solved.by_size[tau]
                self.nodes += solved.nodes
                self._report(len(self.subsets))

    def _rounds(self, fits: AnswerFits) -> None:
        """Process every open size in rounds of growing effort."""
        alone = len(self.grid.gammas) == 1 and not self.data.restrictions.side_constraints  # no other gamma waits
        node_limit = FIRST_LOOK * ROUND_GROWTH if self.data.loss.is_quadratic else FIRST_NODES
        node_limit = UNLIMITED if alone else node_limit
        open_taus = {g: self.grid.taus.tolist() for g in range(len(self.grid.gammas))}
        while open_taus and not self.clock.has_expired():
            self._round(fits, open_taus, node_limit)
            open_taus = {g: taus for g, taus in open_taus.items() if taus}
            node_limit *= ROUND_GROWTH

    def _round(self, fits: AnswerFits, left: dict[int, list[int]], node_limit: int) -> None:
        """Give every open pair (tau, gamma) some effort, and remove closed ones from `left`, taus by index of gamma."""
        starts: list[IntArray] = []
        for g in sorted(left, key=lambda g: -self.grid.gammas[g]):
            if self.clock.has_expired():
                return
            mine = [self.subsets[g, t].support for t in left[g] if (g, t) in self.subsets]
            gamma = float(self.grid.gammas[g])
            result = fits.solve(gamma, left[g], starts + mine, node_limit, self.clock.has_expired)
            starts = [subset.support for subset in result.by_size.values()]
            self.nodes += result.nodes
            self.subsets.update({(g, t): subset for t, subset in result.by_size.items()})
            left[g] = [] if result.finished else [t for t in left[g] if not self.subsets[g, t].complete]
            self._report(self.pairs - sum(len(taus) for taus in left.values()))

    def _report(self, done: int) -> None:
        if self.progress is not None:
            self.progress(Progress(done, self.pairs, self.nodes, 0.0, np.inf, self.clock.seconds))
