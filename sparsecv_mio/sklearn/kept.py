"""Data and results of a cross-validation that an estimator stores, to compute further results on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsecv_mio.arrays import STORE_BYTES, FloatArray
from sparsecv_mio.certificate.predicting import expand_coefficients
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan, RowLists
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.model_space import NONE
from sparsecv_mio.search.answer.result import fitted_row
from sparsecv_mio.search.state.context import Snapshot
from sparsecv_mio.targets import DEFAULT_LOSS, Loss
from sparsecv_mio.trees.subsets import BestSubset

MOST_KEPT = STORE_BYTES // 16  # maximum size of X, and of the table of subproblems
PLAIN_DATA = (
    "X", "y", "names", "target", "weights", "row_weights", "classes", "counts", "exposure", "offset", "row_exposure",
)  # fmt: skip
PLAIN_FOLDS = "spec", "seed", "n", "k", "order", "starts", "repeats"
PLAIN_SUBSET = "tau", "support", "lower", "upper", "margin", "complete", "branched"


def _take_fields(source: object, names: Sequence[str]) -> dict[str, Any]:
    """Return attributes of an object by name."""
    return {name: getattr(source, name) for name in names}


@dataclass(frozen=True, eq=False)
class KeptSearch:
    """The rows of a fit, the errors of all subproblems, and the full-data best subsets at the chosen gamma.

    Attributes
    ----------
    dataset : Dataset
        Data set.
    folds : FoldPlan
        Folds.
    sums : (G, T, K) array
        Held-out sums of squares of the best known supports, in standard units; inf if there is none.
    factor : (K,) array
        Factor that converts them to mean squared errors, in squared units of the target.
    cells : tuple of BestSubset
        Best subset of each tau; empty with fold-specific preprocessing.
    """

    dataset: Dataset
    folds: FoldPlan
    sums: FloatArray
    factor: FloatArray
    cells: tuple[BestSubset, ...]

    @classmethod
    def from_search(cls, record: Record, known: Snapshot, dataset: Dataset, folds: FoldPlan) -> KeptSearch | None:
        """Return the needed data of a search without a copy, or None if they are too large.

        Parameters
        ----------
        record : Record
            Record of a search.
        known : Snapshot
            State of the search from which the record was made.
        dataset : Dataset
            Data of the user.
        folds : FoldPlan
            Folds of the user; with fold-specific preprocessing the search used an expanded table of rows.
        """
        context, sums = known.context, known.cells.nominal
        if max(sums.size, context.data.dataset.X.size) > MOST_KEPT:
            return None
        within = record.request.scale_within or record.request.na_within
        by_size = known.best[int(np.searchsorted(context.grid.gammas, record.gamma))].by_size
        taus = [] if within else context.grid.taus.tolist()
        cells = tuple(replace(by_size[tau], candidates=(), values=()) for tau in taus)
        factor = context.data.loss_unit / np.asarray(context.scored_weights.by_fold, dtype=np.float64)
        return cls(dataset if within else context.data.dataset, folds, np.asarray(sums), factor, cells)

    def plain(self) -> dict[str, Any]:
        """Return the object as arrays, numbers and texts by name, for pickling."""
        left = self.folds.left
        folds = _take_fields(self.folds, PLAIN_FOLDS) | {"left": None if left is None else list(left)}
        cells = [_take_fields(cell, PLAIN_SUBSET) for cell in self.cells]
        sums = {"folds": folds, "sums": self.sums, "factor": self.factor, "cells": cells}
        return _take_fields(self.dataset, PLAIN_DATA) | sums

    @classmethod
    def from_plain(cls, state: Mapping[str, Any]) -> KeptSearch:
        """Return the object from the result of `plain`."""
        dataset = Dataset(**{name: state[name] for name in PLAIN_DATA})
        left = state["folds"]["left"]
        plan = FoldPlan(**state["folds"] | {"left": None if left is None else RowLists(*left)})
        cells = tuple(BestSubset(**cell, candidates=(), values=()) for cell in state["cells"])
        return cls(dataset, plan, state["sums"], state["factor"], cells)

    def mse_path(self) -> FloatArray:
        """Return (G, T, K) mean squared errors of the folds, NaN if no support is known."""
        return np.where(np.isfinite(self.sums), self.sums * self.factor, np.nan)

    def coefficient_path(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (p, T) and intercepts (T,) of the best known full-data subsets, in units of X.

        Parameters
        ----------
        record : Record
            Record of the search.
        """
        if not self.cells:
            raise AttributeError(
                "scale_within, na_within: with 'folds', models of other sizes are not stored; give 'all'"
            )
        names, own = record.data.names, record.refit.tau
        within = record.request.restrictions or NONE
        loss = Loss(record.request.loss or DEFAULT_LOSS)
        data = standardize(self.dataset, record.data.scale, record.data.intercept, within, loss)
        path, levels = np.zeros((len(names), len(self.cells))), np.zeros(len(self.cells))
        for t, cell in enumerate(self.cells):
            coefficients, levels[t] = record.coefficients, record.intercept
            if cell.tau != own:
                fit = fitted_row(data, record.gamma, None, cell, 0.0, quick=True)
                coefficients, levels[t] = fit.coefficients, fit.intercept
            path[:, t] = expand_coefficients(coefficients, names)
        return path, levels
