"""Every estimator of a batch behind one call: our search, and peers on the same rows and folds.

A peer chooses its own hyperparameters by the mean of the squared errors of all held-out rows on the folds of the task
and is then fitted on all rows; with `refit=False` the fit of its only fold stays. Columns come centred and scaled by a
pipeline; the intercept is the mean of the target. The clock runs around `fit` alone, after a fit of a few rows that
compiles and loads what there is to. What is not installed is a failed task that says so.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.linalg import lstsq
from sklearn import linear_model
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.parts import versions
from sparsecv_mio.certificate.records import PathRow, Record, by_column
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.declared_options import ACCELERATING, FORCING, SEARCHING, UNITS
from sparsecv_mio.errors import BackendUnavailable, BadInput, one_of

if TYPE_CHECKING:
    from sparsecv_mio.search.options import SearchOptions

OURS = "sparsecv"  # name of our estimator
_OF_ANY_SEARCH = UNITS | SEARCHING | ACCELERATING | FORCING
OF_SEARCHES = (*(name for name in _OF_ANY_SEARCH if name != "threads"), "tau_step")  # a task has one thread
BOTH = "both"  # word of `one_se`: the model of either rule
TRAINING = "training"
REFITS = ("all", TRAINING)


class RawModel(NamedTuple):
    """Coefficients (p,) and intercept, in units of the file."""

    coefficients: FloatArray
    intercept: float


@dataclass(frozen=True)
class Fitted:
    """What an estimator found.

    Attributes
    ----------
    model : RawModel or None
        The model that it chose; None of an oracle, which scores one setting.
    seconds : float
        Of the fit alone, on the clock.
    numbers : dict
        What else is known: the CV error, the chosen hyperparameters, bounds.
    record : Record, optional
        Of our search.
    others : dict
        Models by other rules, by name.
    """

    model: RawModel | None
    seconds: float
    numbers: Mapping[str, Any]
    record: Record | None = None
    others: Mapping[str, RawModel] = field(default_factory=dict)


def options_of(settings: Mapping[str, Any]) -> SearchOptions:
    """Return the options of the search that settings describe.

    Parameters
    ----------
    settings : mapping
        As of :func:`run_search`; those of every estimator may be among them.
    """
    from sparsecv_mio.search.options import SearchOptions  # loads numba

    given = {name: settings[name] for name in OF_SEARCHES if settings.get(name) is not None}
    if given.get("one_se") == BOTH:
        del given["one_se"]
    return SearchOptions.of(threads=1, **given)


LOOKS = 0.02  # seconds between two looks at the processor's clock


def run_search(data: Dataset, plan: FoldPlan, settings: Mapping[str, Any], training_only: bool = False) -> Fitted:
    """Choose (tau, gamma) by our search, and fit.

    Parameters
    ----------
    settings : mapping
        Options of the search by the names of the command line, and what only plans know: `cpu_limit`, seconds of this
        process, which do not depend on what else the machine does; the model of the one-standard-error rule beside
        that of the least CV error.
    training_only : bool
        Whether the model is that of the training rows of the single fold, not of all rows.
    """
    from sparsecv_mio.search.api import cross_validate
    from sparsecv_mio.search.options import Hooks

    options = options_of(settings)
    if training_only and options.model == "average":
        raise BadInput("model average: the averaged model is of all rows, leave out refit training")
    begin, spent = time.perf_counter(), time.process_time()
    with processor_limit(settings.get("cpu_limit")) as stop:
        record = cross_validate(
            data, plan, gammas=settings.get("gamma"), taus=settings.get("tau"), options=options, hooks=Hooks(stop=stop)
        )
    seconds, cpu = time.perf_counter() - begin, time.process_time() - spent
    found = of_record(record, data, seconds, plan if training_only else None)
    others = {}  # models by other rules than the least CV error
    if settings.get("one_se") == BOTH:
        others["one_se"] = _simplest(record, data, options, settings.get("cpu_limit"))
    return replace(found, numbers={**found.numbers, "cpu_seconds": cpu}, others=others)


def of_record(record: Record, data: Dataset, seconds: float, held_out: FoldPlan | None = None) -> Fitted:
    """Return the model and the numbers of a record of our search.

    Parameters
    ----------
    data : Dataset
        The rows it was made from.
    seconds : float
        Of the fit.
    held_out : FoldPlan, optional
        The single fold on whose training rows alone the model is fitted.
    """
    numbers = {
        "status": record.status, "cv_error": record.cv_error, "lower": record.lower, "upper": record.upper,
        "gap": record.gap, "tau": record.tau, "gamma": record.gamma, "mios": record.work.mios,
        "nodes": record.work.nodes,
    }  # fmt: skip
    model = _named(record.predictor, data) if held_out is None else _on_training_rows(record, data, held_out)
    return Fitted(model, seconds, numbers, record)


@contextmanager
def processor_limit(seconds: float | None) -> Iterator[threading.Event | None]:
    """Yield an event that is set once this process has had so many seconds of the processor; None without a limit."""
    if seconds is None:
        yield None
        return
    stop, over, end = threading.Event(), threading.Event(), time.process_time() + float(seconds)

    def watch() -> None:
        while not over.wait(LOOKS):
            if time.process_time() > end:
                stop.set()
                return

    watcher = threading.Thread(target=watch, name="processor limit", daemon=True)
    watcher.start()
    try:
        yield stop
    finally:
        over.set()
        watcher.join()


def _named(record: Record | PathRow, data: Dataset) -> RawModel:
    """Return coefficients by name as an array."""
    return RawModel(by_column(record.coefficients, data.names), float(record.intercept))


def _on_training_rows(record: Record, data: Dataset, plan: FoldPlan) -> RawModel:
    """Return the model of the reported pair that was fitted without the rows of the single fold."""
    from sparsecv_mio.problem.objective import fit

    (support,) = record.chosen_folds.supports
    columns = [data.names.index(name) for name in support]
    coefficients: FloatArray = np.zeros(data.p)
    if not columns:
        return RawModel(coefficients, float(data.y[plan.train_rows(0)].mean()))
    found = fit(
        data.X, data.y, columns, record.gamma, scale=record.data.scale, intercept=record.data.intercept,
        rows=plan.train_rows(0),
    )  # fmt: skip
    coefficients[columns] = found.beta
    return RawModel(coefficients, found.intercept)


def simplest_pair(record: Record) -> tuple[float, int]:
    """Return the pair of the one-standard-error rule by the CV errors of the table, proved or estimated.

    The smallest tau, then the largest gamma, whose CV error is at most one standard error above that of the reported
    pair; of a record that a limit cut short, `solve --one-se` asks for certified bounds instead.
    """
    best = next(row for row in record.table if (row.gamma, row.tau) == (record.gamma, record.tau))
    most = record.cv_error + (best.standard_error or 0.0)
    within = [(row.tau, -row.gamma) for row in record.table if row.cv_error <= most]
    tau, gamma = min(within, default=(record.tau, -record.gamma))
    return -gamma, tau


def _simplest(record: Record, data: Dataset, options: SearchOptions, cpu_limit: float | None) -> RawModel:
    """Return the model of the one-standard-error rule, on all rows."""
    from sparsecv_mio.fits.best_subsets import best_subsets

    gamma, tau = simplest_pair(record)
    with processor_limit(cpu_limit) as stop:
        found = best_subsets(
            data, gammas=[gamma], taus=[tau], stop=stop, scale=options.scale, intercept=options.intercept, threads=1,
            restrictions=options.restrictions,
        )  # fmt: skip
    return _named(found.path[0], data)


Splits = list[tuple[IntArray, IntArray]]
MIXES = (0.0, 0.25, 0.5, 0.75, 1.0)
ALPHAS = 100
MOST_FORWARD = 50


class _Chosen(BaseEstimator):
    """A path of models: every fold fits all of it, the least mean squared error chooses."""

    def __init__(self, splits: Splits, refit: bool = True) -> None:
        self.splits, self.refit = splits, refit

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Return the coefficients of all models, (models, p), of centred rows."""
        raise NotImplementedError

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Choose by the folds, then fit all rows."""
        self._begin(X, y)
        errors, rows = np.zeros(1), 0
        for train, test in self.splits:
            mean, level = X[train].mean(axis=0), y[train].mean()
            path = self._path(X[train] - mean, y[train] - level)
            left = (y[test] - level)[:, None] - (X[test] - mean) @ path.T
            errors, rows = errors + np.sum(left**2, axis=0), rows + len(test)
        best = int(np.argmin(errors))
        self.cv_error_ = float(errors[best]) / rows
        if self.refit:
            mean, level = X.mean(axis=0), y.mean()
            path = self._path(X - mean, y - level)
        self.coef_ = path[best]
        self.intercept_ = float(level - mean @ self.coef_)
        self._keep(best)
        return self

    def _begin(self, X: FloatArray, y: FloatArray) -> None:
        """Set what all folds share."""

    def _keep(self, best: int) -> None:
        """Note the hyperparameters of the model that was chosen."""


def _alphas(X: FloatArray, y: FloatArray) -> FloatArray:
    largest = float(np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max()) / len(y)
    return largest * np.logspace(0.0, -3.0, ALPHAS)


def _least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(lstsq(X, y, lapack_driver="gelsy", check_finite=False)[0])  # a third of the time of an SVD


class RelaxedLassoCV(_Chosen):
    """The relaxed lasso: mixes of the lasso and of least squares on its support (Hastie and others, 2020)."""

    def _begin(self, X: FloatArray, y: FloatArray) -> None:
        self.alphas_ = _alphas(X, y)

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        _, lasso, _ = linear_model.lasso_path(X, y, alphas=self.alphas_, max_iter=20_000)
        models, last, fitted = [], None, np.zeros(X.shape[1])
        for beta in lasso.T:
            support = np.flatnonzero(beta)
            if last is None or not np.array_equal(support, last):
                fitted = np.zeros(X.shape[1])
                if 0 < len(support) < len(y):
                    fitted[support] = _least_squares(X[:, support], y)
                else:
                    fitted = beta
                last = support
            models += [mix * beta + (1.0 - mix) * fitted for mix in MIXES]
        return np.array(models)

    def _keep(self, best: int) -> None:
        self.alpha_, self.mix_ = float(self.alphas_[best // len(MIXES)]), MIXES[best % len(MIXES)]


class ForwardSelectionCV(_Chosen):
    """Forward stepwise selection by least squares, its size by cross-validation."""

    def _begin(self, X: FloatArray, y: FloatArray) -> None:
        fewest = min(len(train) for train, _ in self.splits)
        self.most_ = max(1, min(X.shape[1], fewest - 2, MOST_FORWARD))

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        n, p = X.shape
        models, basis, support = [np.zeros(p)], np.zeros((n, 0)), list[int]()
        rest, residual = X.copy(), y.copy()
        length = np.maximum(np.linalg.norm(X, axis=0), 1e-300)
        for _ in range(self.most_):
            size = np.linalg.norm(rest, axis=0)
            free = size > 1e-8 * length
            free[support] = False
            if not free.any():
                break
            gain = np.where(free, np.abs(rest.T @ residual) / np.where(free, size, 1.0), -1.0)
            j = int(np.argmax(gain))
            direction = rest[:, j] / size[j]
            basis, support = np.column_stack([basis, direction]), [*support, j]
            residual = residual - direction * (direction @ residual)
            rest -= np.outer(direction, direction @ rest)
            beta = np.zeros(p)
            beta[support] = _least_squares(X[:, support], y)
            models.append(beta)
        return np.array(models + [models[-1]] * (self.most_ + 1 - len(models)))

    def _keep(self, best: int) -> None:
        self.tau_ = best


class ConcavePenaltyCV(_Chosen):
    """MCP (gamma 3) or SCAD (gamma 3.7) by skglm along a path of alphas, warm-started.

    Parameters
    ----------
    kind : {"mcp", "scad"}
    """

    def __init__(self, splits: Splits, refit: bool = True, kind: str = "mcp") -> None:
        super().__init__(splits, refit)
        self.kind = kind

    def _begin(self, X: FloatArray, y: FloatArray) -> None:
        self.alphas_ = _alphas(X, y)

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        try:
            from skglm.datafits import Quadratic
            from skglm.penalties import SCAD, MCPenalty
            from skglm.solvers import AndersonCD
        except ImportError:
            raise BackendUnavailable(f"{self.kind} needs the package skglm: pip install skglm") from None

        penalty = MCPenalty(1.0, 3.0) if self.kind == "mcp" else SCAD(1.0, 3.7)
        solver = AndersonCD(fit_intercept=False, max_iter=200, tol=1e-5)
        _, models, _ = solver.path(np.asfortranarray(X), y, Quadratic(), penalty, self.alphas_)
        return np.asarray(models.T)

    def _keep(self, best: int) -> None:
        self.alpha_ = float(self.alphas_[best])


PEER_PACKAGES = ("scikit-learn", "skglm", "abess")
BY_LABELS = ("abess",)  # peers that make their folds of a label per row
MOST_SWEEPS = 20_000  # of coordinate descent
MOST_STEPS = 50  # of OMP, as of forward selection


@dataclass(frozen=True)
class Peer:
    """An estimator of other authors.

    Attributes
    ----------
    make : callable
        Takes the folds and whether to fit all rows; returns an estimator of scikit-learn whose `fit` chooses
        hyperparameters. Those of scikit-learn itself always fit all rows in the end.
    numbers : tuple of str
        What the table tells of the fitted model: its attributes, without the underscore.
    cv_error : callable, optional
        Returns the CV error of a fitted model that has it under no such name.
    alone : callable, optional
        Returns an unfitted model of the hyperparameters that a fitted one chose.
    """

    make: Callable[[Splits, bool], Any]
    numbers: tuple[str, ...]
    cv_error: Callable[[Any], float] | None = None
    alone: Callable[[Any], Any] | None = None

    def told(self, found: Any) -> dict[str, Any]:
        """Return what the table tells of a fitted model."""
        known = {} if self.cv_error is None else {"cv_error": self.cv_error(found)}
        values = ((name, getattr(found, f"{name}_")) for name in self.numbers)
        return known | {name: value.item() if hasattr(value, "item") else value for name, value in values}


def check_plan(name: str, plan: FoldPlan, refit: str = "all") -> None:
    """Refuse folds that an estimator cannot be fitted by.

    Parameters
    ----------
    name : str
        A key of `ESTIMATORS`.
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


def run_estimator(name: str, data: Dataset, plan: FoldPlan, settings: Mapping[str, Any], refit: str = "all") -> Fitted:
    """Fit one estimator.

    Parameters
    ----------
    name : str
        A key of `ESTIMATORS`.
    plan : FoldPlan
        By which hyperparameters are chosen.
    settings : mapping
        Options of our search, see :func:`~sparsecv_mio.batch.estimators.run_search`; peers have none.
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
    _warm(name)
    return _fitted(name, data, plan, settings, refit == TRAINING)


def _fitted(name: str, data: Dataset, plan: FoldPlan, settings: Mapping[str, Any], training_only: bool) -> Fitted:
    if name == OURS:
        return run_search(data, plan, settings, training_only)
    splits = [(plan.train_rows(j), plan.scored_rows(j)) for j in range(plan.k)]
    peer = ESTIMATORS[name]
    pipeline = make_pipeline(StandardScaler(), peer.make(splits, not training_only))
    begin, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: peers are judged by their errors
        pipeline.fit(data.X, data.y)
        model = found = pipeline[-1]
        if training_only and peer.alone is not None:
            rows = splits[0][0]
            model = peer.alone(found).fit(pipeline[0].transform(data.X[rows]), data.y[rows])
    seconds, cpu = time.perf_counter() - begin, time.process_time() - spent
    return Fitted(_raw_model(pipeline[0], model), seconds, {"cpu_seconds": cpu, **peer.told(found)})


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
    _fitted(name, data, make_folds("3", data), {"gamma": [0.1, 1.0], "tau": [1, 2]}, False)


def _raw_model(scaler: Any, model: Any) -> RawModel:
    """Return coefficients and intercept in units of the file."""
    coefficients = np.asarray(model.coef_, dtype=float).reshape(-1) / scaler.scale_
    return RawModel(coefficients, float(np.ravel(model.intercept_)[0] - scaler.mean_ @ coefficients))


class SteppedOmpCV(linear_model.OrthogonalMatchingPursuitCV):
    """As many steps as there are columns and rows; scikit-learn's default is a tenth of the columns, or 5."""

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Choose the number of steps and fit all rows."""
        self.max_iter = max(1, min(X.shape[1], min(len(train) for train, _ in self.cv) - 1, MOST_STEPS))
        found: Self = super().fit(X, y)
        self.tau_ = self.n_nonzero_coefs_
        return found


class AbessCV:
    """abess with the folds of the task."""

    def __init__(self, splits: Splits) -> None:
        self.splits = splits

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Choose the number of features and fit all rows."""
        try:
            from abess import LinearRegression
        except ImportError:
            raise BackendUnavailable("abess is not installed: pip install abess") from None
        labels = np.zeros(sum(len(test) for _, test in self.splits), dtype=np.int64)
        for fold, (_, test) in enumerate(self.splits):
            labels[test] = fold
        model = LinearRegression(cv=len(self.splits), thread=1)
        model.fit(X, y, cv_fold_id=labels)
        self.coef_, self.intercept_, self.tau_ = model.coef_, model.intercept_, np.count_nonzero(model.coef_)
        return self


def _least_error(found: Any) -> float:
    """Return the least mean over the folds of their mean squared errors, by which scikit-learn chooses."""
    return float(found.mse_path_.reshape(-1, len(found.cv)).mean(axis=1).min())


MIXTURES = [0.1, 0.5, 0.7, 0.9, 0.95, 0.99, 1.0]
ESTIMATORS: dict[str, Peer] = {
    "lasso": Peer(
        lambda splits, _: linear_model.LassoCV(cv=splits, max_iter=MOST_SWEEPS), ("alpha",), _least_error,
        lambda found: linear_model.Lasso(found.alpha_, max_iter=MOST_SWEEPS),
    ),
    "elastic-net": Peer(
        lambda splits, _: linear_model.ElasticNetCV(l1_ratio=MIXTURES, cv=splits, max_iter=MOST_SWEEPS),
        ("alpha", "l1_ratio"), _least_error,
        lambda found: linear_model.ElasticNet(found.alpha_, l1_ratio=found.l1_ratio_, max_iter=MOST_SWEEPS),
    ),
    "ridge": Peer(
        lambda splits, _: linear_model.RidgeCV(np.logspace(-3, 5, 33), cv=splits, scoring="neg_mean_squared_error"),
        ("alpha",), lambda found: -float(found.best_score_), lambda found: linear_model.Ridge(found.alpha_),
    ),
    "relaxed-lasso": Peer(RelaxedLassoCV, ("cv_error", "alpha", "mix")),
    "omp": Peer(
        lambda splits, _: SteppedOmpCV(cv=splits), ("tau",), None,
        lambda found: linear_model.OrthogonalMatchingPursuit(n_nonzero_coefs=found.tau_),
    ),
    "forward": Peer(ForwardSelectionCV, ("cv_error", "tau")),
    "mcp": Peer(partial(ConcavePenaltyCV, kind="mcp"), ("cv_error", "alpha")),
    "scad": Peer(partial(ConcavePenaltyCV, kind="scad"), ("cv_error", "alpha")),
    "abess": Peer(lambda splits, _: AbessCV(splits), ("tau",)),
}  # fmt: skip
