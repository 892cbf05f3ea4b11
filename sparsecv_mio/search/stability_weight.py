"""The weight of the instability by nested cross-validation: the one whose models predict left-out rows best.

Without each outer fold one search decides the pair of every weight at once; the model of each pair predicts the rows of
the outer fold. The weight with the least error over all outer folds, the smallest of several, then chooses the pair of
all rows. Weight 0, the least CV error alone, is among them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.certificate.parts import FoldInfo
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.certificate.stability import OuterModel, TriedWeight, WeighedModel
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.nested_folds import inner_folds, outer_folds
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.observers.progress import staged
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.units import MAIN_SHARE

WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
OUTER = 5  # outer folds
LEAST_SECONDS = 0.05  # left of a limit, below which no outer fold is begun

Search = Callable[[Dataset, FoldPlan, SearchOptions, Hooks], Record]


@dataclass(frozen=True, eq=False)
class WeightSearch:
    """What is searched, as the run on all rows is given it.

    Attributes
    ----------
    search : callable
        Makes the record of some rows, folds, options and hooks.
    dataset : Dataset
    folds : FoldPlan
    options : SearchOptions
    hooks : Hooks
    """

    search: Search
    dataset: Dataset
    folds: FoldPlan
    options: SearchOptions
    hooks: Hooks

    def without(self, outer: FoldPlan, fold: int, seconds: float | None) -> list[OuterModel]:
        """Return the model of every weight without an outer fold, scored there; none where a limit came first.

        Parameters
        ----------
        outer : FoldPlan
        fold : int
            Which of its folds.
        seconds : float or None
            For the search.
        """
        rows = outer.train_rows(fold)
        options = replace(self.options, stability=WEIGHTS, time_limit=seconds, refine=False)
        stage = f"stability: without outer fold {fold + 1} of {outer.k}"
        hooks = Hooks(staged(self.hooks.progress, stage), stop=self.hooks.stop, lost=self.hooks.lost)
        training = self.dataset.take(rows)
        try:
            record = self.search(training, inner_folds(self.folds, rows, training), options, hooks)
        except BadInput as error:
            raise BadInput(f"stability nested, without outer fold {fold}: {error}") from None
        if record.stability is None or record.stability.chosen is None:
            return []
        models = record.stability.chosen.models
        return [self._scored(training, outer, fold, one) for one in models]

    def _scored(self, training: Dataset, outer: FoldPlan, fold: int, one: WeighedModel) -> OuterModel:
        """Fit a model on the rows outside of an outer fold, and predict those inside."""
        test, data = outer.scored_rows(fold), self.dataset
        model = fit(
            training.X, training.y, [data.names.index(name) for name in one.support], one.gamma,
            scale=self.options.scale, intercept=self.options.intercept, weights=training.row_weights,
        )  # fmt: skip
        error = held_out_error(model, data.X, data.y, test, data.row_weights) / data.weight_of(test)
        return OuterModel(fold, one.gamma, one.tau, one.support, error)

    def with_weight(self, weight: float, seconds: float | None) -> Record:
        """Return the record of all rows, the pair chosen by a weight."""
        options = replace(self.options, stability=(weight,), time_limit=seconds)
        hooks = self.hooks if seconds is None else replace(self.hooks, began=None)
        record = self.search(self.dataset, self.folds, options, hooks)
        return replace(record, request=replace(record.request, time_limit=self.options.time_limit))


def search_with_nested_weight(given: WeightSearch) -> Record:
    """Choose the weight of the instability by nested cross-validation, then the pair of all rows by it.

    Parameters
    ----------
    given : WeightSearch

    Returns
    -------
    Record
        Of all rows, with the weights that were tried in `stability.chosen`. Where a limit or Ctrl-C came before an
        outer fold was done, the weight is 0 and none was tried.

    Notes
    -----
    The outer folds may take five shares of a time limit of seven; what they leave goes to the run on all rows.
    """
    began, limit = time.monotonic(), given.options.time_limit
    if given.hooks.began is not None:
        began = given.hooks.began
    outer = outer_folds(OUTER, given.folds, given.dataset)
    share = None if limit is None else limit * OUTER / (OUTER + MAIN_SHARE)
    stop, done = given.hooks.stop, []
    try:
        for fold in range(outer.k):
            left = math.inf if share is None else share - (time.monotonic() - began)
            if left < LEAST_SECONDS or (stop is not None and stop.is_set()):
                break
            found = given.without(outer, fold, None if share is None else left / (outer.k - fold))
            if not found or (stop is not None and stop.is_set()):
                break
            done.append(found)
    except OutOfTime:
        pass
    tried = tried_weights(done, [given.dataset.weight_of(outer.scored_rows(fold)) for fold in range(len(done))])
    weight = min(tried, key=lambda one: (one.error, one.weight)).weight if tried else 0.0
    seconds = None if limit is None else max(limit - (time.monotonic() - began), LEAST_SECONDS)
    before = time.monotonic() - began
    record = given.with_weight(weight, seconds)
    if limit is not None:  # of which the outer folds took their part
        record = replace(record, work=replace(record.work, seconds=before + record.work.seconds))
    stable = record.stability
    if stable is None or stable.chosen is None or not tried:
        return record
    info = FoldInfo(outer.spec, outer.seed, outer.k, outer.digest, outer.repeats)
    return replace(record, stability=replace(stable, chosen=replace(stable.chosen, outer=info, tried=tried)))


def tried_weights(done: list[list[OuterModel]], row_weights: list[float]) -> tuple[TriedWeight, ...]:
    """Sum up the outer folds that are done, by weight of the instability.

    Parameters
    ----------
    done : list of lists of OuterModel
        By outer fold, a model for each of `WEIGHTS`.
    row_weights : list of float
        Of the rows of each of these folds.
    """
    return tuple(
        TriedWeight(weight, float(np.average([one.error for one in models], weights=row_weights)), models)
        for weight, models in zip(WEIGHTS, zip(*done, strict=True), strict=True)
    ) if done else ()  # fmt: skip
