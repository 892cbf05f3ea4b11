"""Nested cross-validation: the error of the whole procedure, on rows that had no part in it.

The least CV error of a grid is an estimate that was minimised: it is too low for the model that it chose. Here the
whole procedure, grid, choice of tau and gamma and the fit at the chosen pair, is repeated without each outer fold, and
every model predicts the rows of its outer fold.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.certificate.record import FoldInfo, Nested, NestedFold, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.nested_folds import inner_folds, outer_folds
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.observers.progress import staged
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.units import MAIN_SHARE

LEAST_SECONDS = 0.05  # left of a limit, below which no outer fold is begun


@dataclass(frozen=True, eq=False)
class Procedure:
    """How a model is chosen, to be carried out on all rows and on all but an outer fold.

    Attributes
    ----------
    dataset : Dataset
    folds : FoldPlan
    gammas, taus : numbers, sequences or texts, optional
        The grid, as :func:`~sparsecv_mio.search.api.cross_validate` takes it; a default depends on the rows.
    options : SearchOptions
    hooks : Hooks
    """

    dataset: Dataset
    folds: FoldPlan
    gammas: str | float | Iterable[float] | None
    taus: str | int | Iterable[int] | None
    options: SearchOptions
    hooks: Hooks

    def on_all_rows(self, seconds: float | None) -> Record:
        """Choose a model of all rows, within so many seconds."""
        options = replace(self.options, time_limit=seconds)
        record = cross_validate(
            self.dataset, self.folds, gammas=self.gammas, taus=self.taus, options=options, hooks=self.hooks
        )
        return replace(record, request=replace(record.request, time_limit=self.options.time_limit))

    def without(self, outer: FoldPlan, fold: int, seconds: float | None) -> NestedFold:
        """Choose a model without an outer fold, and score it there.

        Parameters
        ----------
        outer : FoldPlan
        fold : int
            Which of its folds.
        seconds : float or None
            For the search.
        """
        rows, held = outer.train_rows(fold), outer.scored_rows(fold)
        training, test = self.dataset.take(rows), self.dataset.take(held)
        options = replace(self.options, time_limit=seconds, refine=False)
        stage = f"nested: without outer fold {fold + 1} of {outer.k}"
        ours = self.hooks
        hooks = Hooks(staged(ours.progress, stage), ours.stop, ours.lost, scheduler=ours.scheduler)
        try:
            plan = inner_folds(self.folds, rows, training)
            record = cross_validate(
                training, plan, gammas=self.gammas, taus=self.taus, options=options, hooks=hooks
            )
        except BadInput as error:
            raise BadInput(f"nested, without outer fold {fold}: {error}") from None
        errors = (test.y - record.predict(test)) ** 2
        return NestedFold(
            fold=fold,
            gamma=record.gamma,
            tau=record.tau,
            support=record.support,
            cv_error=record.cv_error,
            status=record.status,
            error=float(np.average(errors, weights=test.row_weights)),
        )


def nested_cross_validate(procedure: Procedure, count: int) -> Record:
    """Choose a model, and estimate the error of how it was chosen.

    Parameters
    ----------
    procedure : Procedure
    count : int
        Outer folds.

    Returns
    -------
    Record
        Of all rows, with `nested`; that is null where a limit or Ctrl-C came before an outer fold was done.

    Notes
    -----
    The run on all rows may take two shares of a time limit of `count + 2`; what it leaves goes to the outer folds.
    """
    began, limit = time.monotonic(), procedure.options.time_limit
    if procedure.hooks.began is not None:
        began = procedure.hooks.began
    outer = outer_folds(count, procedure.folds, procedure.dataset)
    record = procedure.on_all_rows(None if limit is None else limit * MAIN_SHARE / (count + MAIN_SHARE))
    stop, done = procedure.hooks.stop, []
    try:
        for fold in range(outer.k):
            left = math.inf if limit is None else limit - (time.monotonic() - began)
            if left < LEAST_SECONDS or (stop is not None and stop.is_set()):
                break
            found = procedure.without(outer, fold, None if limit is None else left / (outer.k - fold))
            if stop is not None and stop.is_set():  # this model is not what the procedure chooses
                break
            done.append(found)
    except (KeyboardInterrupt, OutOfTime):
        pass
    if not done:  # its seconds are those of the whole limit
        return replace(record, work=replace(record.work, seconds=time.monotonic() - began))
    return replace(record, nested=nested_of(record, outer, done, procedure.dataset))


def nested_of(record: Record, outer: FoldPlan, done: list[NestedFold], dataset: Dataset) -> Nested:
    """Sum up the outer folds that are done.

    Parameters
    ----------
    record : Record
        Of all rows.
    outer : FoldPlan
    done : list of NestedFold
    dataset : Dataset
    """
    weights = np.array([dataset.weight_of(outer.scored_rows(one.fold)) for one in done])
    errors = np.array([one.error for one in done])
    error = float(np.average(errors, weights=weights))
    chosen = record.cv_error
    return Nested(
        outer=FoldInfo(outer.spec, outer.seed, outer.k, outer.digest, outer.repeats),
        error=error,
        standard_error=standard_error(errors * weights, weights) if len(done) > 1 else None,
        optimism=100.0 * (error / chosen - 1.0) if 0.0 < chosen < math.inf else None,
        folds=tuple(done),
    )
