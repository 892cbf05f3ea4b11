"""The table of a record as the `cv_results_` of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from sparsecv_mio.certificate.record import Record


def cv_results(record: Record) -> dict[str, Any]:
    """Return a dict of arrays, an entry for every pair (gamma, tau) of the grid, as GridSearchCV has it.

    Scores are negative mean squared errors, NaN where a limit left a pair without any; those of pairs that are not
    decided are estimates, their `lower` and `upper` hold.

    Parameters
    ----------
    record : Record

    Returns
    -------
    dict
        `params`, `param_tau`, `param_gamma`; `mean_test_score`, `rank_test_score`; `cv_error` with its certified bounds
        `lower` and `upper` and its `standard_error` over the folds; `folds_decided`, `decided` (bool) and `status`.
    """
    rows = record.table

    def column(field: str) -> NDArray[Any]:
        return np.array([getattr(row, field) for row in rows])

    tau, gamma, error = column("tau"), column("gamma"), column("cv_error")
    score = np.where(np.isfinite(error), -error, np.nan)
    return {
        "params": [{"tau": row.tau, "gamma": row.gamma} for row in rows],
        "param_tau": tau,
        "param_gamma": gamma,
        "mean_test_score": score,
        "rank_test_score": rankdata(np.where(np.isfinite(error), error, np.inf), method="min").astype(np.int32),
        "cv_error": error,
        "lower": column("lower"),
        "upper": column("upper"),
        "standard_error": column("standard_error").astype(np.float64),
        "folds_decided": column("folds_decided"),
        "decided": column("folds_decided") == column("folds"),
        "status": column("status"),
    }
