"""The error of the averaged model by its own rule within every fold, with the weights of all rows (theory section 15).

Much cheaper than to search without every fold again, and optimistic: the weights have seen the rows that are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.records import AveragedPair, Record, WithinFolds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.training_moments import fits_without_folds, training_moments
from sparsecv_mio.search.average import FIRST_EFFORT, MeanModel, coefficients_of, projected
from sparsecv_mio.search.context import Context, Snapshot


def with_own_error(record: Record, snapshot: Snapshot, expired: Callable[[], bool]) -> Record:
    """Return a record with the error of its averaged model within folds; as it is where time runs out.

    Parameters
    ----------
    record : Record
        With an averaged model.
    snapshot : Snapshot
        What it was made of.
    expired : callable
    """
    average = record.average
    assert average is not None
    pairs, supports = average.used, average.supports
    context = snapshot.context
    data, folds, most = context.data.dataset, context.folds, int(context.grid.taus[-1])
    means, found, total, heft = _means(context, pairs, supports), [], 0.0, 0.0
    for fold, (coefficients, intercept) in enumerate(zip(*means, strict=True)):
        if expired():
            return record
        here = data.take(folds.train_rows(fold))
        part = standardize(here, str(context.data.scale), str(context.data.intercept), context.data.restrictions)
        mean = MeanModel(coefficients, intercept, tuple(supports[pair.folds[fold]] for pair in pairs))
        model, _ = projected(part, mean, average.allowed, most, FIRST_EFFORT, expired)
        rows = data.take(folds.scored_rows(fold))
        columns = [data.names.index(name) for name in model.support]
        missed = rows.y - rows.X[:, columns] @ [model.coefficients[name] for name in model.support] - model.intercept
        weights = np.ones(rows.n) if rows.row_weights is None else rows.row_weights
        total, heft = total + float(weights @ missed**2), heft + float(weights.sum())
        found.append(model.support)
    known = {names: place for place, names in enumerate(dict.fromkeys((*supports, *found)))}
    within = WithinFolds(tuple(known[names] for names in found), total / heft)
    return replace(record, average=replace(average, supports=tuple(known), within_folds=within))


def _means(
    context: Context, pairs: Sequence[AveragedPair], supports: Sequence[tuple[str, ...]]
) -> tuple[FloatArray, FloatArray]:
    """(K, p) coefficients and (K,) intercepts of the average without each fold, in units of the file."""
    data, folds, largest = context.data, context.folds, int(context.grid.taus[-1])
    coefficients, intercepts = np.zeros((folds.k, data.dataset.p)), np.zeros(folds.k)
    column = {name: j for j, name in enumerate(data.dataset.names)}
    few, whole = ([pair for pair in pairs if (pair.tau > largest) is large] for large in (False, True))
    weights, gammas = (np.array([getattr(pair, name) for pair in few]) for name in ("weight", "gamma"))

    def put(fold: int, fit: tuple[dict[str, float], float], level: float = 0.0) -> None:
        coefficients[fold, [column[name] for name in fit[0]]] += np.array(list(fit[0].values()))
        intercepts[fold] += fit[1] - level

    used = sorted({column[name] for pair in few for place in pair.folds for name in supports[place]})
    narrow = data.only(np.searchsorted(data.columns, used))
    place = {name: j for j, name in enumerate(narrow.names)}
    for fold, moments in training_moments(narrow, folds):
        problem = moments.problem(narrow, 1.0)
        chosen = [np.array([place[name] for name in supports[pair.folds[fold]]], dtype=np.int64) for pair in few]
        beta = weights @ coefficients_of(problem, chosen, gammas / 2.0)
        put(fold, narrow.coefficients(np.arange(narrow.q), beta, problem.v_mean, problem.r_mean))
    if whole:
        weights, gammas = (np.array([getattr(pair, name) for pair in whole]) for name in ("weight", "gamma"))
        for fold, fits in fits_without_folds(data, folds, gammas):
            _, level = data.coefficients((), np.zeros(0), fits.v_mean, fits.r_mean)
            put(fold, data.coefficients(np.arange(data.q), weights @ fits.beta, fits.v_mean, fits.r_mean), level)
    return coefficients, intercepts
