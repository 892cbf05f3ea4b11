"""A running search, which applies a method to data in standard coordinates, informs observers and returns a record.

Progress, trace and checkpoints are written during the search (:mod:`sparsecv_mio.search.observers`).

Under a time limit the search has a separate thread (:mod:`sparsecv_mio.search.deadline`). The calling thread must be
able to return a record at any moment of the search:

==============================  =====================================================================================
The limit expires               The record is built from
==============================  =====================================================================================
before standard coordinates     nothing: `OutOfTime`
before a method is made         the quick answer alone, intervals [0, inf)
before a checkpoint is restored the intervals of the checkpoint
before a pair is scored         the intervals of the method; missing supports are those of the quick answer
later                           the state of the method
==============================  =====================================================================================
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from weakref import WeakSet

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, give_back_memory
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.declared_options import keyword_names
from sparsecv_mio.digits import format_interval
from sparsecv_mio.errors import CorruptStore, SparseCVWarning
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.model_space import text_of_taus
from sparsecv_mio.parallel import Hands
from sparsecv_mio.search.answer.quick_answer import QuickAnswer, find_quick_answer
from sparsecv_mio.search.answer.recheck import recheck_snapshot
from sparsecv_mio.search.answer.result import build_record
from sparsecv_mio.search.deadline import Deadline, require_prepared_data
from sparsecv_mio.search.observers import (
    RESUMED,
    Checkpoint,
    Reporter,
    Signals,
    Stored,
    Trace,
    Watched,
    check_same,
    make_search_key,
    read_checkpoint,
    resume,
    stored_cells,
)
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.search.question import Question
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import Context, Snapshot
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.thresholds import has_large_matrices, is_very_wide
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets
from sparsecv_mio.trees.without_ridge import standardize_and_check


@dataclass(eq=False)
class RunningSearch:
    """A question with a checked grid, and its search, from which a record can be built while the search runs.

    Attributes
    ----------
    question : Question
        Question to answer.
    grid : Grid
        Grid of the question, or of all of its pairs.
    deadline : Deadline
        Deadline of the search.
    hands : Hands
        Executor of the work units.
    context : Context, optional
        Context of the search, once the data are in standard coordinates; the searching thread writes it, as well as
        `method`.
    method : Watched, optional
        Method that searches, once there is one.
    quick : QuickAnswer, optional
        Supports for the pairs of one gamma, if the method has scored no pair in every fold; the waiting thread writes
        them.
    reported : Snapshot, optional
        Snapshot from which the returned record was built.
    stored : mapping and Archive, optional
        Content of the checkpoint to resume; a record never has wider intervals than the checkpoint.
    keeper : Checkpoint, optional
        Writer of checkpoints.
    """

    question: Question
    grid: Grid
    deadline: Deadline
    hands: Hands = field(default_factory=Hands)
    context: Context | None = field(default=None, init=False)
    method: Watched | None = field(default=None, init=False)
    quick: QuickAnswer | None = field(default=None, init=False)
    reported: Snapshot | None = field(default=None, init=False)
    stored: Stored | None = field(default=None, init=False)
    keeper: Checkpoint | None = field(default=None, init=False)
    _known_before: CellTable | None = field(default=None, init=False)
    _finding: threading.Lock = field(default_factory=threading.Lock, init=False)

    def standardize(self) -> Context:
        """Transform the data to standard coordinates; afterwards a record can be built."""
        question, options = self.question, self.question.options
        gammas, taus = self.grid.gammas.tolist(), self.grid.taus.tolist()
        data = standardize_and_check(question.dataset, options, gammas, taus, question.folds)
        request = options.request(self.grid)
        context = Context(
            data, question.folds, self.grid, request, self.deadline, options.workers, self.hands,
            tuple(data.support_of(names) for names in question.starts if set(names) <= set(data.names)),
        )  # fmt: skip
        self.context = context
        _ = question.dataset.fingerprint  # the record needs it, and after the limit it could not be computed in time
        if question.hooks.resume is not None:
            self.stored = key, _ = read_checkpoint(question.hooks.resume)
            own = make_search_key(context, key.get("method", ""))
            check_same(question.hooks.resume, key, own)  # before the limit can expire
            try:
                self._known_before = stored_cells(context, self.stored)
            except CorruptStore as error:
                raise CorruptStore(f"checkpoint {question.hooks.resume}: {error}") from None
        return context

    def store_end(self, record: Record) -> None:
        """Write a last checkpoint after a limit, once the answer is built, so that everything proved is stored.

        Parameters
        ----------
        record : Record
            Answer; if its choice and its model are proved, the search has ended although the limit has expired.
        """
        if self.keeper is None or self.method is None or self.keeper.has_ended or not self.deadline.has_expired():
            return
        if self.method.carried_on or self.question.hooks.resume is None:
            self.keeper.has_ended = record.status == "proved" and record.refit.proved
            self.keeper.write(self.method)

    def set_method(self, method: Watched) -> None:
        """Store the method, from which the waiting thread can build a record at any time."""
        self.method = method

    def prepare_answer(self, until: float) -> None:
        """Find the quick answer shortly before the limit if no pair is scored in every fold yet.

        Parameters
        ----------
        until : float
            End of the time for the answer on the clock of `time.monotonic`, in seconds.
        """
        if self.context is not None:
            snapshot = self._snapshot(self.context)
            if not snapshot.has_scored_pair:
                self._find_quick_answer(snapshot.context, until)

    def _find_quick_answer(self, context: Context, until: float) -> None:
        """Find the quick answer of a grid unless there is one; of two threads the second takes the first one's."""
        with self._finding:
            if self.quick is None or self.quick.gamma not in context.grid.gammas:
                self.quick = find_quick_answer(context.data, context.folds, context.grid, until)

    def record(self) -> Record:
        """Return the record of the present state, from any thread.

        Raises
        ------
        OutOfTime
            If the data are not in standard coordinates yet.
        """
        snapshot = self._snapshot(require_prepared_data(self.context))
        if not snapshot.has_scored_pair:
            self._find_quick_answer(snapshot.context, self.deadline.began)
        self.reported = recheck_snapshot(with_quick_answer(snapshot, self.quick))
        return build_record(self.reported)

    def _snapshot(self, context: Context) -> Snapshot:
        """Return the present state of the method; without a method, a state without any bounds."""
        method = self.method
        snapshot = method.snapshot() if method is not None else None
        if self._known_before is not None and not (method is not None and method.carried_on):
            cells = self._known_before.copy()
            return Snapshot(context, cells) if snapshot is None else replace(snapshot, cells=cells)
        return snapshot or Snapshot(context, CellTable.empty(*context.shape))


def with_quick_answer(snapshot: Snapshot, quick: QuickAnswer | None) -> Snapshot:
    """Return a snapshot to which the quick answer is added if no pair is scored in every fold.

    The intervals of the snapshot stay unchanged. If the quick answer is None, the snapshot is returned unchanged.

    Parameters
    ----------
    snapshot : Snapshot
        Snapshot whose subproblems are changed, since they are copies.
    quick : QuickAnswer or None
        Quick answer of a gamma.

    Returns
    -------
    Snapshot
        Snapshot with the supports of the quick answer.
    """
    if quick is None:
        return snapshot
    cells, grid = snapshot.cells, snapshot.context.grid
    place = np.flatnonzero(grid.gammas == quick.gamma)
    if len(place) and not cells.scored_pairs().any():
        numbers: dict[int, int] = {}  # sizes that share supports share one array
        for t, supports in enumerate(quick.supports):
            for support in supports:
                if id(support) not in numbers:
                    numbers[id(support)] = cells.pool.number(support)
            named = np.array([numbers[id(support)] for support in supports], dtype=np.int32)
            cells.offer((int(place[0]), t), named, quick.nominal[t], quick.value[t])
    on_all_rows = zip(grid.taus.tolist(), quick.on_all_rows, quick.value_on_all_rows, strict=True)
    by_tau = {tau: BestSubset.from_bounds(tau, support, float(value)) for tau, support, value in on_all_rows}
    selected, best = BestSubsets(by_tau, 0, False), list(snapshot.best)
    for g in place[place < len(best)].tolist():
        best[g] = selected.merge(best[g])
    return replace(snapshot, best=(*best, *[selected] * (len(grid.gammas) - len(best))))


def with_threads(context: Context, options: SearchOptions) -> Context:
    """Return the context of a search with the number of threads that the data and the backend allow.

    Parameters
    ----------
    context : Context
        Context of the search. If its `hands` run more work units at once than it has threads, their number counts.
    options : SearchOptions
        Options of the search.
    """
    threads = max(context.threads, context.hands.at_once) if get_backend(options.backend).capabilities.concurrent else 1
    data = context.data
    if options.loss.is_quadratic and (has_large_matrices(data, context.folds.k) or is_very_wide(data)):
        from sparsecv_mio.search.problems.many_columns import limit_threads

        threads = limit_threads(data, threads)
    return replace(context, threads=threads)


SILENT_SECONDS = 60.0  # seconds after which a search without a limit and without progress warns of its gap
_stops_of_warned_calls: WeakSet[threading.Event] = WeakSet()

NewMethod = Callable[[Context, SearchOptions, Signals], Watched]  # returns a method before its first step


def run_to_record(running: RunningSearch, new_method: NewMethod) -> Record:
    """Search by the requested method, and build the record.

    Parameters
    ----------
    running : RunningSearch
        Running search. It receives the method, from which the waiting thread can build a record at any time.
    new_method : callable
        Function of a context, options and signals that returns the method before its first step.

    Raises
    ------
    BadInput
        If options cannot be combined, or the checkpoint belongs to another run.
    """
    options, hooks, signals = running.question.options, running.question.hooks, Signals()
    context = running.standardize()
    method = new_method(with_threads(context, options), options, signals)
    running.set_method(method)
    running.keeper = Checkpoint(hooks.place_to_store) if hooks.place_to_store is not None else None
    drive(method, signals, hooks, running.keeper, running.stored)
    running.deadline.check_caller_waits()
    if context.data.dataset.X.size > CHUNK_ELEMENTS:
        give_back_memory()  # the record is built from refits of the full data
    snapshot = method.snapshot(over=True)
    if snapshot is None or not snapshot.has_scored_pair:  # a limit within the first steps
        return running.record()
    running.reported = recheck_snapshot(snapshot)
    return build_record(running.reported)


def drive(
    method: Watched, signals: Signals, hooks: Hooks, keeper: Checkpoint | None = None, stored: Stored | None = None
) -> None:
    """Run a method with its observers to the end, from the start or from a checkpoint.

    Parameters
    ----------
    method : Watched
        Method to run.
    signals : Signals
        Signals of the method.
    hooks : Hooks
        Places and functions for progress, trace and checkpoint; `lost` receives failures to write.
    keeper : Checkpoint, optional
        Writer of the checkpoint; built here by default.
    stored : mapping and Archive, optional
        Content of the checkpoint to resume, if it was read already.
    """
    trace = Trace(hooks.trace) if hooks.trace is not None else None
    if keeper is None and hooks.place_to_store is not None:
        keeper = Checkpoint(hooks.place_to_store)
    if hooks.resume is not None:
        resume(method, hooks.resume, stored)
    reporter = _reporter(method, signals, hooks)
    if trace is not None:  # a resumed run is traced only after its state is restored
        signals.listen(step=trace.begun.append, turn=partial(trace.visit, method))
    if keeper is not None:  # the limit may expire within the first turn
        keeper.write(method)
        signals.listen(turn=partial(keeper.visit, method))
    method.run_to_end()
    has_ended = not method.context.deadline.has_expired()
    if keeper is not None and (keeper.failure is not None or has_ended):
        keeper.has_ended = has_ended
        keeper.write(method)
    method.score_reported_pair()
    if reporter is not None:
        reporter.report()
    if trace is not None:
        trace.close(method)
    for writer in (keeper, trace):
        if hooks.lost is not None and writer is not None and writer.failure is not None:
            hooks.lost(writer.failure)


def _reporter(method: Watched, signals: Signals, hooks: Hooks) -> Reporter | None:
    """Return the reporter of progress, already listening; None if nobody requested progress.

    Without progress, a search in Python that has no time limit warns if it takes long.
    """
    if hooks.progress is None:
        if hooks.began is None and method.context.deadline.limit is None:
            warn = _make_warner_of_long_search(method)
            signals.listen(step=lambda _begun: warn(), turn=warn)
        return None
    reporter = Reporter(hooks.progress, method.progress)
    signals.listen(step=reporter.say, turn=reporter.visit)
    if method.carried_on:
        hooks.progress(replace(method.progress(), stage=RESUMED))
    return reporter


def _make_warner_of_long_search(method: Watched) -> Callable[[], None]:
    """Return a function that warns once of a search in Python that shows no progress and may take for ever.

    The searches of one call, for example those of outer folds or draws, share their stop event and one warning.
    """
    deadline = method.context.deadline

    def warn() -> None:
        seconds = deadline.seconds
        if seconds < SILENT_SECONDS or deadline.stop in _stops_of_warned_calls:
            return
        _stops_of_warned_calls.add(deadline.stop)
        now = method.progress()
        smaller = "fewer --tau or --gamma values take less time"
        if now.proved is not None and (most := now.proved[0]) is not None:
            certified = text_of_taus(size.tau for size in now.taus if size.tau <= most)
            smaller = f"the smaller grid --tau {certified} is certified already"
        words = (
            f"no time limit: after {seconds:.0f} s the minimum CV error is in {format_interval(now.lower, now.upper)}; "
            f"--time-limit 300 ends a search with its best answer, as Ctrl-C does; {smaller}"
        )
        with suppress(Warning):  # if warnings are errors, this warning does not end the search
            warnings.warn_explicit(keyword_names(words), SparseCVWarning, "sparsecv_mio", 1)

    return warn
