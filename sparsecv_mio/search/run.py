"""The contract of a method, what all of them do first and last, and how a search over a grid is seen and stored.

A method begins with first answers: a support for every fold, gamma and tau, and for all rows, before any tree is grown.
All rows search along with the folds, as one more fold that leaves nothing out; each learns from what the others found.
A fold is offered what it found itself, or judged by its own training rows, so that its held-out error is an honest
estimate: a support chosen on all rows has seen the rows that the fold leaves out. At the end it decides what is asked
for beyond the proof.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.parts import Work
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.search.accelerators import Accelerators, Ledger
from sparsecv_mio.search.accounts import Accounts, BoundSource
from sparsecv_mio.search.cells import (
    Archive,
    Index,
    below,
    check_like,
    counts_of,
    fill_like,
    filled_up,
    packed,
    prefixed,
    unpacked,
    within,
)
from sparsecv_mio.search.context import Context, SearchState, Snapshot
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.first_supports import FoldPaths, first_supports
from sparsecv_mio.search.instability import Instabilities, StabilityTable, stability_table
from sparsecv_mio.search.observers import Progress, Signals, Watched, progress_of, trace_line_of
from sparsecv_mio.search.pairs import next_to_decide, one_se_rule
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.subsets import FIRST_LOOK, ROUND_GROWTH, UNLIMITED, BestSubset, BestSubsets
from sparsecv_mio.units import MODEL_SHARE, TIE_RTOL
from sparsecv_mio.words import Oracle

if TYPE_CHECKING:
    from sparsecv_mio.search.grid_search import GridSearch


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(SearchState):
    """The state of a search, with what may save it work and who listens.

    Attributes
    ----------
    accelerators : Accelerators
        What may save it work.
    signals : Signals
        Where it says that it has come further.
    accounts : Accounts
        What each source of bounds cost and brought.
    """

    accelerators: Accelerators
    signals: Signals
    accounts: Accounts

    @classmethod
    def begun(
        cls, context: Context, signals: Signals, oracles: Collection[Oracle] | None = None, ledger: Ledger | None = None
    ) -> Run:
        """Return the run of which nothing is known yet.

        Parameters
        ----------
        context : Context
        signals : Signals
        oracles, ledger : optional
            As for `Accelerators`.
        """
        state = SearchState.new(context)
        accelerators = Accelerators(context, state.all_rows, oracles, ledger)
        return cls(
            context=context, cells=state.cells, all_rows=state.all_rows, counts=state.counts, changes=state.changes,
            accelerators=accelerators, signals=signals, accounts=Accounts(state),
        )  # fmt: skip


MOST_COUNTED = float(np.iinfo(np.int64).max)


class StoredPart:
    """A part of a method that a checkpoint holds.

    Attributes
    ----------
    stored_as : mapping of str to (str, float, float)
        By the name of an array in the checkpoint, which attribute it holds, and the least and largest number there.
    """

    stored_as: ClassVar[Mapping[str, tuple[str, float, float]]] = {}

    def archive(self) -> Archive:
        """Return where it stands."""
        held: Archive = {}
        for name, (attribute, _, _) in self.stored_as.items():
            held |= packed(name, getattr(self, attribute))
        return held

    def check(self, stored: Archive) -> None:
        """Raise `CorruptStore` unless it can go to where `stored` was archived."""
        for name, (attribute, least, most) in self.stored_as.items():
            within({name: unpacked(name, stored, getattr(self, attribute))}, name, least, most)

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""
        for name, (attribute, _, _) in self.stored_as.items():
            here = getattr(self, attribute)
            if np.ndim(here):
                fill_like(here, unpacked(name, stored, here))
            else:
                setattr(self, attribute, type(here)(stored[name]))


ROUND_EFFORT = FIRST_LOOK * ROUND_GROWTH  # nodes that a cell may cost in the first round
MOST_TRIES = UNLIMITED.bit_length()  # more make no difference to an effort
FREE = ("by_engine", "accounts")  # arrays of any length


def effort_of(tries: int) -> int:
    """Return the nodes of the next try, after so many others.

    Examples
    --------
    >>> effort_of(0), effort_of(2), effort_of(MOST_TRIES)
    (8192, 524288, 4611686018427387904)
    """
    return int(min(ROUND_EFFORT * ROUND_GROWTH**tries, UNLIMITED))


class GridMethod(Watched, StoredPart):
    """A method over one grid: `begin`, then `step` until `finished`, then `finish`.

    What is its own it defines itself; here is how it is seen and stored, and what most methods do alike. Every moment
    holds a valid certificate.

    Parameters
    ----------
    run : Run
    parts : sequence of StoredPart
        What a checkpoint holds beside the cells and the counts.
    """

    def __init__(self, run: Run, parts: Sequence[StoredPart] = ()) -> None:
        self.run, self.context, self.parts = run, run.context, parts

    @abstractmethod
    def work_on(self, pairs: BoolArray) -> None:
        """Do a portion of work on the open cells of some pairs (G, T)."""

    @abstractmethod
    def mios(self) -> int:
        """Return the number of mixed-integer problems that were solved."""

    @abstractmethod
    def engine(self) -> str:
        """Return who solved the cells, in words."""

    @abstractmethod
    def recompute(self) -> None:
        """Compute what a checkpoint does not hold, in place of `begin`."""

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that more work could decide."""
        return self.run.open

    @property
    def exhausted(self) -> bool:
        """Whether no more work may be done."""
        return self.context.deadline.expired()

    def finish(self) -> None:
        """Decide what is asked for beyond the proof."""
        decide_beyond_proof(self, self.context)

    @property
    def n_trees(self) -> int:
        """Number of mixed-integer problems that were solved."""
        return self.mios()

    @property
    def accounts(self) -> Accounts:
        """Costs and gains of every source."""
        return self.run.accounts

    def pursue_goals(self, requested: Context) -> None:
        """Search for the goals beyond the certified choice of another request over the same data."""
        decide_beyond_proof(self, requested)

    def score_reported_pair(self) -> None:  # noqa: B027
        """See to it that the pair to report is scored in every fold, unless all are as they are found."""

    def best_on_all_rows(self, g: int, tau: int) -> BestSubset:
        """Return the best subset on all rows at a pair, solved on where it is not proved and there is time."""
        return self.run.all_rows.best[g].by_size[tau]

    def model_is_open(self) -> bool:
        """Whether a pair is scored and its best subset on all rows is not known yet, which more work could tell."""
        return False

    def prove_model(self, beside: bool = False) -> None:
        """Find that subset, as far as time allows.

        Parameters
        ----------
        beside : bool
            Whether the search goes on meanwhile: then it is booked with what that does.
        """

    # -- what others see of it ---------------------------------------------------------------------------------------

    @property
    def reported(self) -> GridMethod:
        """The search whose cells the record is made of: this one."""
        return self

    def snapshot(self, over: bool = False) -> Snapshot:
        """Return copies of all that the record is made of, for any thread; of a search that is over, the cells.

        Parameters
        ----------
        over : bool
            Nothing will be written to the cells any more.
        """
        run = self.run
        cells = run.cells if over else run.cells.copy()
        did = self.mios(), run.counts.nodes, 0.0, self.engine(), run.accelerators.work()
        work, best = Work(*did, run.accounts.table(), run.accounts.course()), tuple(run.all_rows.best)
        return Snapshot(self.context, cells, best, work, reached=dict(run.counts.reached), changes=run.changes)

    def progress(self) -> Progress:
        """Return how far the search is."""
        return progress_of(self.run, self.mios(), self.run.signals.phase)

    def trace_line(self) -> dict[str, Any]:
        """Return a line of a trace."""
        return trace_line_of(self.run, self.mios())

    # -- a checkpoint ------------------------------------------------------------------------------------------------

    def checkpoint(self) -> Archive:
        """Return all that a checkpoint holds: the cells, the counts, and where the parts of the method stand."""
        return prefixed("cells", self.run.cells.archive()) | prefixed("run", self._position())

    def _position(self) -> Archive:
        counts = self.run.counts
        position = {"nodes": np.array(counts.nodes), "by_engine": np.array(json.dumps(counts.by_engine))}
        position |= self.run.accounts.archive()
        for component in self.parts:
            position |= component.archive()
        return position

    def resume(self, stored: Archive) -> None:
        """Go to where `stored` was archived; begin where that was before the first steps came to their end.

        Raises
        ------
        CorruptStore
            Before anything is changed, where `stored` is not of the same grid and method.
        """
        here, stored_position = self._position(), {"accounts": np.array("[]")} | below("run", stored)
        check_like(stored_position, here, FREE)
        if "begun" in here and not stored_position["begun"]:
            self.begin()
            return
        within(stored_position, "nodes", 0, np.iinfo(np.int64).max)
        decided = counts_of(stored_position["by_engine"])
        self.run.accounts.check(stored_position)
        for component in self.parts:
            component.check(stored_position)
        run, cells = self.run, below("cells", stored)
        run.cells.check(cells, self.context.data.q)
        self.recompute()
        run.cells.fill(cells)
        run.counts.nodes, run.counts.by_engine = int(stored_position["nodes"]), decided
        run.accounts.restore(stored_position)
        for component in self.parts:
            component.restore(stored_position)


NewRun = Callable[
    [Sequence[float], Sequence[int], Signals], "GridMethod | GridSearch"
]  # a run over other gammas and taus, not begun


def run_to_end(method: Watched) -> None:
    """Step until it is finished, and let it finish: the loop of every search, and of those within one."""
    while not method.finished:
        method.step()
    method.finish()


def run_with_model(method: GridMethod) -> None:
    """Do the same, and keep a part of a time limit for the best subset on all rows at the pair to report.

    The pair may be proved and the model that one takes home not: it is solved on for up to `MODEL_SHARE` of the limit,
    and the search goes on in what that leaves. Where slices are done by others, it is one of them, and the search goes
    on beside it.
    """
    deadline = method.context.deadline
    deadline.keep_time(MODEL_SHARE, method.model_is_open)
    while not method.finished:
        method.step()
    deadline.take_all()
    if deadline.over() or not method.model_is_open():
        run_to_end(method)
    elif method.context.hands.at_once == 1:
        method.prove_model()
        run_to_end(method)
    else:
        with ThreadPoolExecutor(1) as pool:
            model = pool.submit(method.prove_model, beside=True)
            run_to_end(method)
            model.result()


def fit_all_rows(
    run: Run, order: Sequence[int], effort: int, in_turn: bool = False, until: Deadline | None = None
) -> None:
    """Find best subsets on all rows at every gamma and tau: first supports for the folds, and bounds on all rows.

    Parameters
    ----------
    run : Run
    order : sequence of int
        Indices of the gammas; the time limit may leave out the last ones, never the first.
    effort : int
        Nodes a tau may cost.
    in_turn : bool
        Whether each gamma starts from the supports of the one before: not where there are several threads for them, and
        supports to start from.
    until : Deadline, optional
        When to end; by default with the run.
    """
    state, context, deadline = run, run.context, until or run.context.deadline
    taus, solved = context.grid.taus.tolist(), dict[int, BestSubsets]()
    alone = in_turn and (context.threads == 1 or not all(state.all_rows.starts))
    stage = "best subsets on all rows:" if effort else "relaxations on all rows:"

    def waiting() -> Iterator[tuple[int, None]]:
        for g in order:
            if solved and deadline.expired():
                return
            run.signals.doing(stage, len(solved) * len(taus), len(order) * len(taus))
            yield g, None

    def solve(g: int, _: None) -> None:
        before = [cell.support for cell in last[0].by_size.values()] if alone and last else []
        starts = [*before, *state.all_rows.starts[g]]
        problem = state.all_rows.problem(g)
        solved[g] = context.hands.do(solve_path, problem, taus, starts=starts, effort=effort, until=deadline)
        last[:] = [solved[g]]
        state.counts.add(solved[g].nodes, problems=1)

    last: list[BestSubsets] = []
    with run.accounts.of(BoundSource.ALL_ROWS if effort else BoundSource.ALL_ROWS_RELAXED):
        for _ in starmap(solve, waiting()) if alone else run_folds(waiting(), solve, context.threads):
            pass
        state.all_rows.keep(solved)


def best_on_all_rows(run: Run, g: int, tau: int, effort: int) -> BestSubset:
    """Return the best subset on all rows at a pair; an open one is solved on while there is time.

    Parameters
    ----------
    run : Run
    g, tau : int
        Index of gamma, and size.
    effort : int
        Nodes that it may cost.
    """
    cell, until = run.all_rows.best[g].by_size[tau], run.context.deadline
    if cell.complete or until.expired():
        return cell
    with run.accounts.of(BoundSource.ALL_ROWS):
        problem, do = run.all_rows.problem(g), run.context.hands.do
        again = do(solve_path, problem, [tau], starts=[cell.support], effort=effort, until=until)
        run.counts.add(again.nodes, problems=1)
    return again.by_size[tau]


SEARCH_SHARE = 0.4  # of the time limit, until when better supports are searched for before any proof


def first_answers(run: Run, once_answered: Callable[[], None] | None = None) -> FoldPaths | None:
    """Search in every fold and on all rows, and offer each fold's cells what was found.

    A quick answer of every fold is waited for whatever share of the limit that takes, as an answer from some folds
    alone would be one from rows that have been seen; better ones until `SEARCH_SHARE` of the limit is gone.

    Parameters
    ----------
    run : Run
    once_answered : callable, optional
        Called as soon as every fold has its quick answer, before better ones are searched for.

    Returns
    -------
    FoldPaths or None
        Supports of all rows, which `run.all_rows` holds and starts from; None where the limit came first.
    """
    if not run.context.grid.taus.max():
        return None
    with run.accounts.of(BoundSource.FIRST_SUPPORTS):
        return _searched_everywhere(run, once_answered)


def _searched_everywhere(run: Run, once_answered: Callable[[], None] | None) -> FoldPaths | None:
    """Search in every fold and on all rows, as `first_answers` says."""
    context, deadline, k = run.context, run.context.deadline, run.context.folds.k

    paths_by_fold: dict[int, FoldPaths] = {}
    whole: FoldPaths | None = None
    stage, passes = "searching first supports: fold", 1
    plan = context.folds.with_all_rows()
    run.signals.doing(stage, 1, k)
    until = deadline.by_share(SEARCH_SHARE)
    for paths in first_supports(context.data, plan, context.grid, context.threads, until, hands=context.hands):
        if paths.fold in paths_by_fold:
            offer(run, paths_by_fold)
            paths_by_fold = {}
        paths_by_fold[paths.fold] = paths
        run.counts.add(0, problems=len(context.grid.gammas))
        whole = paths if paths.fold == k else whole
        if whole is not None and len(paths_by_fold) == k + 1:
            offer(run, paths_by_fold)
            run.all_rows.keep(unproved(context, whole))
            paths_by_fold = {}
            run.signals.progressed()
            if once_answered is not None:
                once_answered()
            once_answered, passes = None, passes + 1
            stage = f"searching better supports, pass {passes}: fold"
        run.signals.doing(stage, min(len(paths_by_fold) + 1, k), k)
        if deadline.expired():
            break
    offer(run, paths_by_fold)
    if whole is not None:
        for g, starts in enumerate(run.all_rows.starts):
            starts += [whole.support(g, t) for t in range(len(context.grid.taus))]
    return whole


def unproved(context: Context, paths: FoldPaths) -> dict[int, BestSubsets]:
    """Return the supports of a path by gamma, of which nothing is proved, each filled up to its size.

    Parameters
    ----------
    context : Context
    paths : FoldPaths
        Of all rows.
    """
    q, by_gamma = context.data.q, {}
    for g in range(len(context.grid.gammas)):
        cells = {}
        for t, tau in enumerate(context.grid.taus.tolist()):
            support = paths.support(g, t)
            whole = filled_up(support, min(tau, q), np.arange(min(q, tau + len(support))))
            cells[tau] = BestSubset.unproved(tau, whole)
        by_gamma[g] = BestSubsets(cells, 0, False)
    return by_gamma


def answers_of_all_rows(context: Context) -> FoldPaths | None:
    """Search on all rows alone: of a run that was stored, whose folds have their answers."""
    if not context.grid.taus.max():
        return None
    until = context.deadline.sooner(SEARCH_SHARE)
    alone = context.folds.without_folds().with_all_rows()
    *_, last = first_supports(context.data, alone, context.grid, context.threads, until, hands=context.hands)
    return last


def offer(run: Run, found: dict[int, FoldPaths]) -> None:
    """Offer the paths of some folds over the whole grid to these folds, in their order; those of all rows to none."""
    gammas, taus = (np.arange(size) for size in run.context.shape[:2])
    for fold in sorted(found):
        if fold < run.context.folds.k:
            offer_paths(run, gammas, taus, found[fold])


def offer_paths(run: Run, gammas: IntArray, taus: IntArray, paths: FoldPaths) -> None:
    """Offer the supports of a fold that beat those its open cells show.

    Parameters
    ----------
    run : Run
    gammas, taus : int arrays
        Indices of the gammas and taus that the paths are of.
    paths : FoldPaths
    """
    cells, fold = run.cells, paths.fold
    place: Index = (*np.ix_(gammas, taus), fold)
    better = ~cells.decided[place] & (paths.objective < cells.value[place] * (1.0 - TIE_RTOL))
    better |= ~cells.decided[place] & ~np.isfinite(cells.nominal[place])
    numbers = np.zeros(better.shape, dtype=np.int32)
    for g, t in np.argwhere(better).tolist():
        numbers[g, t] = cells.pool.number(paths.support(g, t))
    value: FloatArray = np.where(better, paths.objective, np.nan)
    cells.offer(place, numbers, paths.held_out, value)


def decide_beyond_proof(method: GridMethod, asked: Context) -> None:
    """Work on the pairs that are still asked for until none is, or no more work may be done."""
    while asked.all_asked_for and not method.exhausted:
        pairs = np.asarray(method.open.any(axis=2)) if asked.gap == 0.0 else pairs_for_rule(method)
        if not pairs.any():
            break
        method.work_on(pairs)
    decide_stable_pairs(method)


def pairs_for_rule(method: GridMethod) -> BoolArray:
    """(G, T): the pairs to decide next for the one-standard-error rule to be sure of its pair."""
    context, now = method.run.context, method.run.bounds()
    grid, unit = context.grid, context.data.y_unit**2
    rule = one_se_rule(now, now.best, grid.gammas, grid.taus, context.scored, unit)
    return next_to_decide(rule.missing & method.open.any(axis=2), now)


def decide_stable_pairs(method: GridMethod) -> None:
    """Work on the pairs that may have the least criterion, for any of the weights, until each choice is proved.

    The pair that leads comes first, then its rivals. Nothing is done where no weight was given.
    """
    context, state = method.run.context, method.run
    if not context.stability:
        return
    instabilities = Instabilities(context, state.cells, state.changes)
    fitted = np.zeros(state.cells.lower.shape[:2], dtype=bool)
    while not method.exhausted:
        table = stability_table(
            instabilities, state.bounds(), state.all_rows.best, context.stability, lambda: method.exhausted
        )
        missing = np.any([table.missing(weight, context.gap) for weight in context.stability], axis=0)
        workable = method.open.any(axis=2) | ~(fitted | state.all_rows.solved_pairs())
        pairs = _leading(method, table) & missing & workable
        if not pairs.any():
            pairs = missing & workable
        if not pairs.any():
            return
        for g, t in np.argwhere(pairs & ~fitted).tolist():
            _fit(method, g, int(context.grid.taus[t]))
        fitted |= pairs
        still_open = pairs & method.open.any(axis=2)
        if still_open.any():
            method.work_on(still_open)


def _leading(method: GridMethod, table: StabilityTable) -> BoolArray:
    """(G, T): the pairs that the weights choose of what is known."""
    context, leading = method.run.context, np.zeros(table.known.shape, dtype=bool)
    for weight in context.stability:
        leading[table.choose(weight, context.gap, context.grid.gammas, context.grid.taus).pair] = True
    return leading


def _fit(method: GridMethod, g: int, tau: int) -> None:
    """Solve all rows at a pair, as far as the method goes."""
    best = method.run.all_rows.best[g].by_size[tau]
    if not best.complete:
        best_cell = method.best_on_all_rows(g, tau)
        method.run.all_rows.improve(g, BestSubsets({tau: best_cell}, 0, finished=best_cell.complete))
