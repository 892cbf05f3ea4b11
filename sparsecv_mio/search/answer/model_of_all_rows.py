"""The full-data model of a search with fold-specific preprocessing.

The search runs on an expanded table with the rows of all folds (:mod:`sparsecv_mio.data.rows_of_folds`), and its record
has the results for the folds. This module computes the full-data results from the original data, with missing values
imputed and columns scaled by all rows: the best subset at the reported pair, and its fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.records import Record, Refit
from sparsecv_mio.data.cure import OVER_ALL_ROWS
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.search.answer.answer_fits import make_answer_fits
from sparsecv_mio.search.answer.result import data_info, fitted_row, fold_info, with_supports_of_folds
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.trees.subsets import BestSubset
from sparsecv_mio.words import Within

OVER_TRAINING_ROWS = "over the training rows of each fold; for the model of all rows, over all rows"


def with_model(
    record: Record, data: StandardData, folds: FoldPlan, options: SearchOptions, expired: Callable[[], bool] | None
) -> Record:
    """Return the record of the given data and folds, with the full-data model.

    Parameters
    ----------
    record : Record
        Record of the table with the rows of all folds.
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    options : SearchOptions
        Options of the search.
    expired : callable or None
        Function that returns True to end the search for the best subset with its present support. None omits the
        search.
    """
    start, folds_of_record = data.support_of(record.support), record.chosen_folds
    supports = [data.support_of(names) for names in folds_of_record.supports]
    counts = np.bincount(folds_of_record.which, minlength=len(supports)).tolist()
    cell = with_supports_of_folds(data, record.gamma, BestSubset.from_bounds(record.tau, start), supports, counts)
    nodes = 0
    if expired is not None and not expired():
        cell, nodes = _best_subset(data, record.gamma, record.tau, cell.support, expired)
    row = fitted_row(data, record.gamma, None, cell, record.request.gap, quick=expired is None)
    folds_word: Literal["folds"] = "folds"
    na, scale = (folds_word if word is Within.FOLDS else None for word in (options.na_within, options.scale_within))
    said = data.warnings
    if options.na_within is Within.FOLDS:
        said = tuple(note.replace(OVER_ALL_ROWS, OVER_TRAINING_ROWS) for note in said)
    return replace(
        record,
        refit=Refit(record.gamma, record.tau, row.objective, row.lower, row.upper, row.proved),
        support=row.support, coefficients=row.coefficients, intercept=row.intercept,
        data=data_info(data), folds=fold_info(folds), stability=None,
        request=replace(record.request, na_within=na, scale_within=scale),
        warnings=(*said, *record.warnings), work=replace(record.work, nodes=record.work.nodes + nodes),
    )  # fmt: skip


def _best_subset(
    data: StandardData, gamma: float, tau: int, start: IntArray, expired: Callable[[], bool]
) -> tuple[BestSubset, int]:
    """Find the best subset of one size on all rows; also the nodes that it took."""
    solved = make_answer_fits(data).solve(gamma, tau, start, expired)
    return solved.by_size[tau], solved.nodes
