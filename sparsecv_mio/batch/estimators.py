"""What a task runs: our search, or a peer through scikit-learn's interface, on the same rows and folds.

A peer chooses its own hyperparameters by cross-validation on the folds of the task, columns scaled to unit variance in
a pipeline; the clock runs around its `fit` alone. What is not installed is a failed task that says so.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.parts import versions
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.errors import BackendUnavailable, BadInput, did_you_mean

Splits = list[tuple[IntArray, IntArray]]
PEER_PACKAGES = ("scikit-learn", "skglm", "abess")


@dataclass(frozen=True)
class Fitted:
    """A model that an estimator chose.

    Attributes
    ----------
    coefficients : (p,) array
        In units of the file.
    intercept : float
    seconds : float
        Of the fit alone, on the clock.
    numbers : dict
        What else is known: the CV error, the chosen hyperparameters, bounds.
    record : Record, optional
        Of our search.
    """

    coefficients: FloatArray
    intercept: float
    seconds: float
    numbers: Mapping[str, Any]
    record: Record | None = None


def check_estimator_name(name: str) -> None:
    """Raise `BadInput` for an estimator that is not known."""
    if name not in ESTIMATORS:
        raise BadInput(f"estimator {name!r} is unknown{did_you_mean(name, ESTIMATORS)}, use {', '.join(ESTIMATORS)}")


def run_estimator(name: str, data: Dataset, plan: FoldPlan, settings: Mapping[str, Any]) -> Fitted:
    """Fit one estimator.

    Parameters
    ----------
    name : str
        A key of `ESTIMATORS`.
    data : Dataset
    plan : FoldPlan
        By which hyperparameters are chosen.
    settings : mapping
        Options of our search, by the names of the command line; peers have none.

    Raises
    ------
    BackendUnavailable
        A peer is not installed.
    """
    if name == "sparsecv":
        return _ours(data, plan, settings)
    splits = [(plan.train_rows(j), plan.scored_rows(j)) for j in range(plan.k)]
    model, numbers = ESTIMATORS[name](splits)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: peers are judged by their errors
        model.fit(data.X, data.y)
    seconds = time.perf_counter() - begin
    coefficients, intercept = _raw_model(model)
    return Fitted(coefficients, intercept, seconds, numbers(model[-1]))


def _ours(data: Dataset, plan: FoldPlan, settings: Mapping[str, Any]) -> Fitted:
    from sparsecv_mio.search.api import cross_validate
    from sparsecv_mio.search.options import SearchOptions

    words = {key: value for key, value in settings.items() if key not in ("gamma", "tau")}
    options = SearchOptions.of(threads=1, **words)
    begin = time.perf_counter()
    record = cross_validate(data, plan, gammas=settings.get("gamma"), taus=settings.get("tau"), options=options)
    seconds = time.perf_counter() - begin
    return of_record(record, data, seconds)


def of_record(record: Record, data: Dataset, seconds: float) -> Fitted:
    """Return the model and the numbers of a record of our search.

    Parameters
    ----------
    record : Record
    data : Dataset
        The rows it was made from.
    seconds : float
        Of the fit.
    """
    place = {column: j for j, column in enumerate(data.names)}
    coefficients = np.zeros(data.p)
    for column, value in record.coefficients.items():
        coefficients[place[column]] = value
    numbers = {
        "status": record.status, "cv_error": record.cv_error, "lower": record.lower, "upper": record.upper,
        "gap": record.gap, "tau": record.tau, "gamma": record.gamma, "mios": record.work.mios,
        "nodes": record.work.nodes,
    }  # fmt: skip
    return Fitted(coefficients, record.intercept, seconds, numbers, record)


@cache
def versions_of_all() -> dict[str, str]:
    """Versions of Python, of this package, of the numerical libraries, and of the packages of peers."""
    peers = {}
    for package in PEER_PACKAGES:
        try:
            peers[package] = version(package)
        except PackageNotFoundError:
            peers[package] = "not installed"
    return {f"version_{name}": found for name, found in {**versions(), **peers}.items()}


def _raw_model(pipeline: Any) -> tuple[FloatArray, float]:
    """Return coefficients and intercept in units of the file."""
    scaler, model = pipeline[0], pipeline[-1]
    coefficients = np.asarray(model.coef_, dtype=float).reshape(-1) / scaler.scale_
    return coefficients, float(np.ravel(model.intercept_)[0] - scaler.mean_ @ coefficients)


def _scaled(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


Peer = Callable[[Splits], tuple[Any, Callable[[Any], dict[str, Any]]]]


def _lasso(splits: Splits) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
    from sklearn.linear_model import LassoCV

    return _scaled(LassoCV(cv=splits, max_iter=20_000)), lambda model: {
        "cv_error": float(model.mse_path_.mean(axis=-1).min()), "alpha": float(model.alpha_),
    }  # fmt: skip


def _elastic_net(splits: Splits) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
    from sklearn.linear_model import ElasticNetCV

    ratios = [0.1, 0.5, 0.7, 0.9, 0.95, 0.99, 1.0]
    return _scaled(ElasticNetCV(l1_ratio=ratios, cv=splits, max_iter=20_000)), lambda model: {
        "cv_error": float(model.mse_path_.mean(axis=-1).min()), "alpha": float(model.alpha_),
        "l1_ratio": float(model.l1_ratio_),
    }  # fmt: skip


def _ridge(splits: Splits) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
    from sklearn.linear_model import RidgeCV

    alphas = np.logspace(-3, 5, 33)
    model = RidgeCV(alphas, cv=splits, scoring="neg_mean_squared_error")
    return _scaled(model), lambda found: {"cv_error": -float(found.best_score_), "alpha": float(found.alpha_)}


def _omp(splits: Splits) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
    from sklearn.linear_model import OrthogonalMatchingPursuitCV

    model = OrthogonalMatchingPursuitCV(cv=splits)
    return _scaled(model), lambda found: {"tau": int(found.n_nonzero_coefs_)}


def _relaxed_lasso(splits: Splits) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
    from sparsecv_mio.batch.peers import RelaxedLassoCV

    return _scaled(RelaxedLassoCV(splits)), lambda found: {
        "cv_error": found.cv_error_, "alpha": found.alpha_, "mix": found.mix_,
    }  # fmt: skip


def _forward(splits: Splits) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
    from sparsecv_mio.batch.peers import ForwardSelectionCV

    return _scaled(ForwardSelectionCV(splits)), lambda found: {"cv_error": found.cv_error_, "tau": found.tau_}


def _penalised(kind: str) -> Peer:
    def make(splits: Splits) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
        try:
            import skglm  # noqa: F401
        except ImportError:
            raise BackendUnavailable(f"{kind} needs the package skglm: pip install sparsecv-mio[peers]") from None
        from sparsecv_mio.batch.peers import ConcavePenaltyCV

        return _scaled(ConcavePenaltyCV(splits, kind)), lambda found: {
            "cv_error": found.cv_error_, "alpha": found.alpha_,
        }  # fmt: skip

    return make


def _abess(splits: Splits) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
    try:
        from abess import LinearRegression
    except ImportError:
        raise BackendUnavailable("abess is not installed: pip install sparsecv-mio[peers]") from None
    labels = np.zeros(sum(len(test) for _, test in splits), dtype=int)
    for fold, (_, test) in enumerate(splits):
        labels[test] = fold
    model = LinearRegression(cv=len(splits), thread=1)

    class OnFolds:
        """abess with the folds of the task."""

        def fit(self, X: FloatArray, y: FloatArray) -> OnFolds:
            model.fit(X, y, cv_fold_id=labels)
            self.coef_, self.intercept_ = model.coef_, model.intercept_
            return self

    return _scaled(OnFolds()), lambda found: {"tau": int(np.count_nonzero(found.coef_))}


ESTIMATORS: dict[str, Any] = {
    "sparsecv": None, "lasso": _lasso, "elastic-net": _elastic_net, "ridge": _ridge, "relaxed-lasso": _relaxed_lasso,
    "omp": _omp, "forward": _forward, "mcp": _penalised("mcp"), "scad": _penalised("scad"), "abess": _abess,
}  # fmt: skip
