"""What a task runs: our search, or a peer through scikit-learn's interface, on the same rows and folds.

A peer chooses its own hyperparameters by cross-validation on the folds of the task, columns scaled to unit variance in
a pipeline; the clock runs around its `fit` alone, after a fit of a few rows that compiles and loads what there is to.
What is not installed is a failed task that says so.
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
from sparsecv_mio.batch.fitted import Fitted, Model
from sparsecv_mio.batch.oracles import ORACLES
from sparsecv_mio.batch.ours import run_search
from sparsecv_mio.certificate.parts import versions
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, make_folds
from sparsecv_mio.errors import BackendUnavailable, BadInput, did_you_mean
from sparsecv_mio.words import one_of

Splits = list[tuple[IntArray, IntArray]]
PEER_PACKAGES = ("scikit-learn", "skglm", "abess")
TRAINING = "training"
REFITS = ("all", TRAINING)
BY_LABELS = ("abess", "glmnet")  # peers that make their folds of a label per row
MOST_SWEEPS = 20_000  # of coordinate descent
MOST_STEPS = 50  # of OMP, as of forward selection


@dataclass(frozen=True)
class Peer:
    """An estimator with its folds.

    Attributes
    ----------
    model : estimator of scikit-learn
        Its `fit` chooses hyperparameters, then fits all rows; those of `batch.peers` leave that out where asked.
    numbers : callable
        Returns what is known of the fitted model.
    alone : callable, optional
        Returns an unfitted model of the hyperparameters that a fitted one chose.
    """

    model: Any
    numbers: Callable[[Any], dict[str, Any]]
    alone: Callable[[Any], Any] | None = None


def check_estimator_name(name: str) -> None:
    """Raise `BadInput` for an estimator that is not known."""
    known = (*ESTIMATORS, *ORACLES)
    if name not in known:
        raise BadInput(f"estimator {name!r} is unknown{did_you_mean(name, known)}, use {', '.join(known)}")


def check_plan(name: str, plan: FoldPlan, refit: str = "all") -> None:
    """Refuse folds that an estimator cannot be fitted by.

    Parameters
    ----------
    name : str
        A key of `ESTIMATORS`.
    plan : FoldPlan
    refit : {"all", "training"}
        As for :func:`run_estimator`.

    Raises
    ------
    BadInput
        With what would do.
    """
    if one_of(refit, REFITS, "refit") == TRAINING and plan.k != 1:
        raise BadInput(f"refit training needs a single fold, not {plan.k}: leave refit out, or hold out rows once")
    if name in BY_LABELS and (plan.k < 2 or not plan.is_partition or plan.scored < plan.n):
        raise BadInput(f"{name} takes folds that hold out every row once: ask for K folds")


def run_estimator(
    name: str, data: Dataset, plan: FoldPlan, settings: Mapping[str, Any], refit: str = "all"
) -> Fitted:
    """Fit one estimator.

    Parameters
    ----------
    name : str
        A key of `ESTIMATORS`.
    data : Dataset
    plan : FoldPlan
        By which hyperparameters are chosen.
    settings : mapping
        Options of our search, see :func:`~sparsecv_mio.batch.ours.run_search`; peers have none.
    refit : {"all", "training"}
        Whether the model is fitted on all rows, or, of a single fold, on its training rows alone.

    Raises
    ------
    BackendUnavailable
        A peer is not installed.
    BadInput
        `refit` is another word, or `training` with several folds.
    """
    check_plan(name, plan, refit)
    training_only = refit == TRAINING
    _warm(name)
    if name == "sparsecv":
        return run_search(data, plan, settings, training_only)
    splits = [(plan.train_rows(j), plan.scored_rows(j)) for j in range(plan.k)]
    peer: Peer = ESTIMATORS[name](splits, training_only)
    pipeline = _scaled(peer.model)
    begin, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: peers are judged by their errors
        pipeline.fit(data.X, data.y)
        model = found = pipeline[-1]
        if training_only and peer.alone is not None:
            rows = splits[0][0]
            model = peer.alone(found).fit(pipeline[0].transform(data.X[rows]), data.y[rows])
    seconds, cpu = time.perf_counter() - begin, time.process_time() - spent
    seconds = getattr(found, "seconds_", seconds)  # of a peer that has a clock of its own
    return Fitted(*_raw_model(pipeline[0], model), seconds, {"cpu_seconds": cpu, **peer.numbers(found)})


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


@cache
def _warm(name: str) -> None:
    """Fit a few rows, once in a process: what is compiled or loaded at first use is no part of the times."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    data = Dataset.from_arrays(X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=30))
    plan = make_folds("3", data)
    if name == "sparsecv":
        run_search(data, plan, {"gamma": [0.1, 1.0], "tau": [1, 2]})
        return
    peer: Peer = ESTIMATORS[name]([(plan.train_rows(j), plan.scored_rows(j)) for j in range(plan.k)], False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _scaled(peer.model).fit(data.X, data.y)


def _raw_model(scaler: Any, model: Any) -> Model:
    """Return coefficients and intercept in units of the file."""
    coefficients = np.asarray(model.coef_, dtype=float).reshape(-1) / scaler.scale_
    return Model(coefficients, float(np.ravel(model.intercept_)[0] - scaler.mean_ @ coefficients))


def _scaled(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _lasso(splits: Splits, training_only: bool) -> Peer:
    from sklearn.linear_model import Lasso, LassoCV

    return Peer(
        LassoCV(cv=splits, max_iter=MOST_SWEEPS),
        lambda found: {"cv_error": _least_error(found, splits), "alpha": float(found.alpha_)},
        lambda found: Lasso(found.alpha_, max_iter=MOST_SWEEPS),
    )


def _least_error(found: Any, splits: Splits) -> float:
    """Return the least mean over the folds of their mean squared errors, by which scikit-learn chooses."""
    return float(found.mse_path_.reshape(-1, len(splits)).mean(axis=1).min())


def _elastic_net(splits: Splits, training_only: bool) -> Peer:
    from sklearn.linear_model import ElasticNet, ElasticNetCV

    return Peer(
        ElasticNetCV(l1_ratio=[0.1, 0.5, 0.7, 0.9, 0.95, 0.99, 1.0], cv=splits, max_iter=MOST_SWEEPS),
        lambda found: {
            "cv_error": _least_error(found, splits), "alpha": float(found.alpha_),
            "l1_ratio": float(found.l1_ratio_),
        },
        lambda found: ElasticNet(alpha=found.alpha_, l1_ratio=found.l1_ratio_, max_iter=MOST_SWEEPS),
    )  # fmt: skip


def _ridge(splits: Splits, training_only: bool) -> Peer:
    from sklearn.linear_model import Ridge, RidgeCV

    return Peer(
        RidgeCV(np.logspace(-3, 5, 33), cv=splits, scoring="neg_mean_squared_error"),
        lambda found: {"cv_error": -float(found.best_score_), "alpha": float(found.alpha_)},
        lambda found: Ridge(found.alpha_),
    )


def _omp(splits: Splits, training_only: bool) -> Peer:
    from sklearn.linear_model import OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV

    class WithinColumns(OrthogonalMatchingPursuitCV):
        """As many steps as there are columns and rows; scikit-learn's default is a tenth of the columns, or 5."""

        def fit(self, X: FloatArray, y: FloatArray) -> Any:
            self.max_iter = max(1, min(X.shape[1], min(len(train) for train, _ in splits) - 1, MOST_STEPS))
            return super().fit(X, y)

    return Peer(
        WithinColumns(cv=splits),
        lambda found: {"tau": int(found.n_nonzero_coefs_)},
        lambda found: OrthogonalMatchingPursuit(n_nonzero_coefs=found.n_nonzero_coefs_),
    )


def _relaxed_lasso(splits: Splits, training_only: bool) -> Peer:
    from sparsecv_mio.batch.peers import RelaxedLassoCV

    return Peer(
        RelaxedLassoCV(splits, not training_only),
        lambda found: {"cv_error": found.cv_error_, "alpha": found.alpha_, "mix": found.mix_},
    )


def _forward(splits: Splits, training_only: bool) -> Peer:
    from sparsecv_mio.batch.peers import ForwardSelectionCV

    return Peer(
        ForwardSelectionCV(splits, not training_only), lambda found: {"cv_error": found.cv_error_, "tau": found.tau_}
    )


def _penalised(kind: str) -> Callable[[Splits, bool], Peer]:
    def make(splits: Splits, training_only: bool) -> Peer:
        try:
            import skglm  # noqa: F401
        except ImportError:
            raise BackendUnavailable(f"{kind} needs the package skglm: pip install skglm") from None
        from sparsecv_mio.batch.peers import ConcavePenaltyCV

        return Peer(
            ConcavePenaltyCV(splits, not training_only, kind),
            lambda found: {"cv_error": found.cv_error_, "alpha": found.alpha_},
        )

    return make


def _labels(splits: Splits) -> IntArray:
    """Return the fold of every row."""
    labels = np.zeros(sum(len(test) for _, test in splits), dtype=np.int64)
    for fold, (_, test) in enumerate(splits):
        labels[test] = fold
    return labels


def _abess(splits: Splits, training_only: bool) -> Peer:
    try:
        from abess import LinearRegression
    except ImportError:
        raise BackendUnavailable("abess is not installed: pip install abess") from None
    labels = _labels(splits)
    model = LinearRegression(cv=len(splits), thread=1)

    class OnFolds:
        """abess with the folds of the task."""

        def fit(self, X: FloatArray, y: FloatArray) -> OnFolds:
            model.fit(X, y, cv_fold_id=labels)
            self.coef_, self.intercept_ = model.coef_, model.intercept_
            return self

    return Peer(OnFolds(), lambda found: {"tau": int(np.count_nonzero(found.coef_))})


def _glmnet(splits: Splits, training_only: bool) -> Peer:
    from sparsecv_mio.batch.through_r import GlmnetCV, check_available

    check_available()
    return Peer(
        GlmnetCV(_labels(splits)),
        lambda found: {"cv_error": found.cv_error_, "alpha": found.alpha_, "cpu_seconds": found.cpu_seconds_},
    )


ESTIMATORS: dict[str, Any] = {
    "sparsecv": None, "lasso": _lasso, "elastic-net": _elastic_net, "ridge": _ridge, "relaxed-lasso": _relaxed_lasso,
    "omp": _omp, "forward": _forward, "mcp": _penalised("mcp"), "scad": _penalised("scad"), "abess": _abess,
    "glmnet": _glmnet,
}  # fmt: skip
