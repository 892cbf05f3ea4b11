"""Peers: estimators of other packages that choose their hyperparameters on the folds of a task.

To add a peer, add a row to `ESTIMATORS` and, if scikit-learn does not have the estimator, a function that fits it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import lstsq

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.errors import BackendUnavailable, BadInput, advise_extra, match_keyword
from sparsecv_mio.inference.penalised_paths import MOST_SWEEPS, N_ALPHAS, FitRows, fit_paths, import_abess, make_paths
from sparsecv_mio.problem.row_losses import LOG_LOSS, PoissonLoss, RowLoss, SquaredError
from sparsecv_mio.targets import DEFAULT_LOSS, Loss


class RawModel(NamedTuple):
    """Coefficients (p,) and intercept, in units of the file."""

    coefficients: FloatArray
    intercept: float


@dataclass
class Fitted:
    """The result of an estimator.

    Attributes
    ----------
    model : RawModel or None
        Chosen model; None for an oracle, which scores one setting.
    seconds : float
        Wall-clock duration of the fit.
    numbers : dict
        Further results: the CV error, the chosen hyperparameters, bounds.
    record : Record, optional
        Record of a search.
    one_se : RawModel, optional
        Model chosen by the one-standard-error rule, if it is requested in addition.
    """

    model: RawModel | None
    seconds: float
    numbers: dict[str, Any]
    record: Record | None = None
    one_se: RawModel | None = None


Splits = list[tuple[IntArray, IntArray]]
MIXES = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_FORWARD = 50


class _Chosen:
    """A path of models that is fitted in every fold; the model with the minimum mean held-out loss is chosen.

    Attributes
    ----------
    loss : RowLoss
        Loss of a row.
    """

    loss: RowLoss = SquaredError()

    def __init__(self, splits: Splits, refit: bool = True) -> None:
        self.splits, self.refit = splits, refit

    def _models(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (models, p) and intercepts (models,) of all models."""
        raise NotImplementedError

    def fit(self, X: FloatArray, y: FloatArray, sample_weight: FloatArray | None = None) -> Self:
        """Choose by the folds, then fit all rows."""
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        self.grid = self._make_grid(X, y, weights)
        losses, rows = np.zeros(1), 0
        for train, test in self.splits:
            path, levels = self._models(X[train], y[train], weights[train])
            targets, predictors = self.loss.encode_targets(y[test])[0], (X[test] @ path.T + levels).T
            by_row = np.asarray(self.loss.losses(self.loss.signs(targets) * predictors, targets))
            losses = losses + weights[test] @ by_row.T
            rows += len(test)
        best = int(np.argmin(losses))
        self.cv_error_ = float(losses[best]) / rows
        if self.refit:
            path, levels = self._models(X, y, weights)
        self.coef_, self.intercept_ = path[best], float(levels[best])
        for name, values in self.grid.items():
            setattr(self, f"{name}_", values[best])
        return self

    def _make_grid(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> dict[str, FloatArray]:
        """Return the hyperparameters of all models by name, from all rows."""
        return {"alpha": _alphas(X, y)}


class _ChosenOfSquares(_Chosen):
    """A path of models with squared-error loss, fitted to centred rows."""

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Return the coefficients of all models, (models, p), for centred rows."""
        raise NotImplementedError

    def _models(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, level = X.mean(axis=0), y.mean()
        path = self._path(X - mean, y - level)
        return path, level - path @ mean


def make_linear_model(name: str, *args: Any, **how: Any) -> Any:
    """Return an object of scikit-learn's linear models, which are imported by the first task that needs them."""
    from sklearn import linear_model

    return getattr(linear_model, name)(*args, **how)


def _alphas(X: FloatArray, y: FloatArray) -> FloatArray:
    largest = float(np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max()) / len(y)
    return largest * np.logspace(0.0, -3.0, N_ALPHAS)


def _least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(lstsq(X, y, lapack_driver="gelsy", check_finite=False)[0])  # takes a third of the time of an SVD


class RelaxedLassoCV(_ChosenOfSquares):
    """The relaxed lasso: averages of the lasso and of least squares on its support (Hastie and others, 2020)."""

    def _make_grid(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> dict[str, FloatArray]:
        return {"alpha": np.repeat(_alphas(X, y), len(MIXES)), "mix": np.tile(MIXES, N_ALPHAS)}

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        alphas = self.grid["alpha"][:: len(MIXES)]
        _, lasso, _ = make_linear_model("lasso_path", X, y, alphas=alphas, max_iter=MOST_SWEEPS)
        models, last, fitted = [], None, np.zeros(X.shape[1])
        for beta in lasso.T:
            support = np.flatnonzero(beta)
            if last is None or not np.array_equal(support, last):
                last, fitted = support, beta
                if 0 < len(support) < len(y):
                    fitted = np.zeros(X.shape[1])
                    fitted[support] = _least_squares(X[:, support], y)
            models += [mix * beta + (1.0 - mix) * fitted for mix in MIXES]
        return np.array(models)


class ForwardSelectionCV(_ChosenOfSquares):
    """Forward stepwise selection by least squares; cross-validation chooses its size."""

    def _make_grid(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> dict[str, FloatArray]:
        fewest = min(len(train) for train, _ in self.splits)
        return {"tau": np.arange(max(1, min(X.shape[1], fewest - 2, MOST_FORWARD)) + 1)}

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        p, sizes = X.shape[1], self.grid["tau"]
        models, support = [np.zeros(p)], list[int]()
        orthogonal, residual = X.copy(), y.copy()
        length = np.maximum(np.linalg.norm(X, axis=0), 1e-300)
        for _ in sizes[1:]:
            size = np.linalg.norm(orthogonal, axis=0)
            free = size > 1e-8 * length
            free[support] = False
            if not free.any():
                break
            gain = np.where(free, np.abs(orthogonal.T @ residual) / np.where(free, size, 1.0), -1.0)
            j = int(np.argmax(gain))
            direction = orthogonal[:, j] / size[j]
            support.append(j)
            residual = residual - direction * (direction @ residual)
            orthogonal -= np.outer(direction, direction @ orthogonal)
            beta = np.zeros(p)
            beta[support] = _least_squares(X[:, support], y)
            models.append(beta)
        return np.array(models + [models[-1]] * (len(sizes) - len(models)))


class ConcavePenaltyCV(_Chosen):
    """MCP (gamma 3) or SCAD (gamma 3.7) by skglm along a path of alphas, warm-started.

    The curvature of the log loss is at most a quarter of that of half the squared error. With logistic loss the
    penalties therefore have a quarter of the concavity (gamma 12 and 11.8), so that coordinate steps stay convex.

    Parameters
    ----------
    kind : {"mcp", "scad"}
        Penalty.
    of_classes : bool
        True for log loss, False for squared error.
    """

    def __init__(self, splits: Splits, refit: bool = True, kind: str = "mcp", of_classes: bool = False) -> None:
        super().__init__(splits, refit)
        self.kind, self.of_classes = kind, of_classes
        self.loss = LOG_LOSS if of_classes else self.loss

    def _models(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        try:
            from skglm.datafits import Logistic, Quadratic
            from skglm.penalties import SCAD, MCPenalty
            from skglm.solvers import AndersonCD
        except ImportError:
            raise BackendUnavailable(f"{self.kind} needs skglm: {advise_extra('skglm', 'peers')}") from None

        flatter = 4.0 if self.of_classes else 1.0
        penalty = MCPenalty(1.0, 3.0 * flatter) if self.kind == "mcp" else SCAD(1.0, 1.0 + 2.7 * flatter)
        solver = AndersonCD(fit_intercept=self.of_classes, max_iter=200, tol=1e-5)
        if self.of_classes:
            _, models, _ = solver.path(np.asfortranarray(X), 2.0 * y - 1.0, Logistic(), penalty, self.grid["alpha"])
            return np.asarray(models[:-1].T), np.asarray(models[-1])
        mean, level = X.mean(axis=0), y.mean()
        _, models, _ = solver.path(np.asfortranarray(X - mean), y - level, Quadratic(), penalty, self.grid["alpha"])
        return np.asarray(models.T), level - mean @ models


class PenalisedCV(_Chosen):
    """The lasso, ridge regression or the elastic net with logistic or Poisson loss, as `solve --baselines` fits it.

    With Poisson loss, exposures are sample weights, and targets are rates (counts divided by exposures).

    Parameters
    ----------
    method : {"lasso", "ridge", "elasticnet"}
        Penalty.
    loss : RowLoss
        Loss of a row.
    """

    def __init__(self, splits: Splits, refit: bool = True, method: str = "lasso", loss: RowLoss = LOG_LOSS) -> None:
        super().__init__(splits, refit)
        self.method, self.loss = method, loss

    def _make_rows(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> FitRows:
        design, (targets, v) = np.column_stack([np.ones(len(y)), X]), self.loss.encode_targets(y, weights)
        return FitRows(
            design, np.array([0]), np.arange(1, design.shape[1]), targets, v, float(v.sum()), self.loss, False
        )

    def _make_grid(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> dict[str, FloatArray]:
        self.paths = make_paths(self._make_rows(X, y, weights), self.method)
        return {"alpha": np.concatenate([alphas for _, alphas in self.paths])}

    def _models(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        models = fit_paths(self._make_rows(X, y, weights), self.paths)
        return models[:, 1:], models[:, 0]


PEER_PACKAGES = ("scikit-learn", "skglm", "abess")
BY_LABELS = ("abess",)  # peers that accept folds as one label for each row


@dataclass(frozen=True)
class Peer:
    """An estimator of another package.

    Attributes
    ----------
    make : callable
        Function of the folds and of a flag for a final fit to all rows; it returns a scikit-learn estimator whose `fit`
        chooses hyperparameters. Estimators of scikit-learn itself always fit all rows in the end.
    numbers : tuple of str
        Attributes of the fitted model for the table, without the trailing underscore.
    cv_error : callable, optional
        Function that returns the CV error of a fitted model that has no such attribute.
    alone : callable, optional
        Function that returns an unfitted model with the hyperparameters that a fitted one chose.
    """

    make: Callable[[Splits, bool], Any]
    numbers: tuple[str, ...]
    cv_error: Callable[[Any], float] | None = None
    alone: Callable[[Any], Any] | None = None

    def extract_numbers(self, found: Any) -> dict[str, Any]:
        """Return the numbers of a fitted model for the table."""
        numbers = {} if self.cv_error is None else {"cv_error": self.cv_error(found)}
        values = ((name, getattr(found, f"{name}_")) for name in self.numbers)
        return numbers | {name: value.item() if hasattr(value, "item") else value for name, value in values}


class SteppedOmpCV:
    """Orthogonal matching pursuit with up to min(columns, rows) steps; scikit-learn's default is 10% of columns or 5.

    Parameters
    ----------
    splits : list of (train, test)
        Folds as pairs of row positions.
    """

    def __init__(self, splits: Splits) -> None:
        self.splits = splits

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Choose the number of steps and fit all rows."""
        if X.shape[1] < 2:
            raise BadInput(
                "omp: OrthogonalMatchingPursuitCV of scikit-learn needs at least two features; use another estimator"
            )
        steps = max(1, min(X.shape[1], min(len(train) for train, _ in self.splits) - 1, MOST_FORWARD))
        pursuit = make_linear_model("OrthogonalMatchingPursuitCV", cv=self.splits, max_iter=steps).fit(X, y)
        self.coef_, self.intercept_, self.tau_ = pursuit.coef_, pursuit.intercept_, pursuit.n_nonzero_coefs_
        return self


class AbessCV:
    """abess with the folds of the task, scored by squared errors, log losses or deviances.

    Parameters
    ----------
    splits : list of (train, test)
        Folds as pairs of row positions.
    model : str
        Name of a class of abess.
    **how
        Further arguments of the class.
    """

    def __init__(self, splits: Splits, model: str = "LinearRegression", **how: Any) -> None:
        self.splits, self.model, self.how = splits, model, how

    def fit(self, X: FloatArray, y: FloatArray, sample_weight: FloatArray | None = None) -> Self:
        """Choose the number of features and fit all rows."""
        abess = import_abess()
        labels = np.zeros(sum(len(test) for _, test in self.splits), dtype=np.int64)
        for fold, (_, test) in enumerate(self.splits):
            labels[test] = fold
        model = getattr(abess, self.model)(cv=len(self.splits), thread=1, **self.how)
        model.fit(X, y, cv_fold_id=labels, sample_weight=sample_weight)
        self.coef_, self.intercept_, self.tau_ = model.coef_, model.intercept_, np.count_nonzero(model.coef_)
        return self


def _least_error(found: Any) -> float:
    """Return the minimum mean over folds of the mean squared errors, by which scikit-learn chooses."""
    return float(found.mse_path_.reshape(-1, len(found.cv)).mean(axis=1).min())


L1_RATIOS = [0.1, 0.5, 0.7, 0.9, 0.95, 0.99, 1.0]
ESTIMATORS: dict[str, Peer] = {
    "lasso": Peer(
        lambda splits, _: make_linear_model("LassoCV", cv=splits, max_iter=MOST_SWEEPS),
        ("alpha",),
        _least_error,
        lambda found: make_linear_model("Lasso", found.alpha_, max_iter=MOST_SWEEPS),
    ),
    "elastic-net": Peer(
        lambda splits, _: make_linear_model("ElasticNetCV", l1_ratio=L1_RATIOS, cv=splits, max_iter=MOST_SWEEPS),
        ("alpha", "l1_ratio"),
        _least_error,
        lambda found: make_linear_model("ElasticNet", found.alpha_, l1_ratio=found.l1_ratio_, max_iter=MOST_SWEEPS),
    ),
    "ridge": Peer(
        lambda splits, _: make_linear_model(
            "RidgeCV", np.logspace(-3, 5, 33), cv=splits, scoring="neg_mean_squared_error"
        ),
        ("alpha",),
        lambda found: -float(found.best_score_),
        lambda found: make_linear_model("Ridge", found.alpha_),
    ),
    "relaxed-lasso": Peer(RelaxedLassoCV, ("cv_error", "alpha", "mix")),
    "omp": Peer(
        lambda splits, _: SteppedOmpCV(splits),
        ("tau",),
        None,
        lambda found: make_linear_model("OrthogonalMatchingPursuit", n_nonzero_coefs=found.tau_),
    ),
    "forward": Peer(ForwardSelectionCV, ("cv_error", "tau")),
    "mcp": Peer(partial(ConcavePenaltyCV, kind="mcp"), ("cv_error", "alpha")),
    "scad": Peer(partial(ConcavePenaltyCV, kind="scad"), ("cv_error", "alpha")),
    "abess": Peer(lambda splits, _: AbessCV(splits), ("tau",)),
}


def _make_penalised_peers(loss: RowLoss) -> dict[str, Peer]:
    """Return the peers with a penalty on the coefficients."""
    methods = {"lasso": "lasso", "elastic-net": "elasticnet", "ridge": "ridge"}
    return {
        name: Peer(partial(PenalisedCV, method=method, loss=loss), ("cv_error", "alpha"))
        for name, method in methods.items()
    }


OF_CLASSES: dict[str, Peer] = _make_penalised_peers(LOG_LOSS) | {
    "mcp": Peer(partial(ConcavePenaltyCV, kind="mcp", of_classes=True), ("cv_error", "alpha")),
    "scad": Peer(partial(ConcavePenaltyCV, kind="scad", of_classes=True), ("cv_error", "alpha")),
    "abess": Peer(lambda splits, _: AbessCV(splits, "LogisticRegression", cv_score="test_loss"), ("tau",)),  # not AUC
}
OF_COUNTS: dict[str, Peer] = _make_penalised_peers(PoissonLoss()) | {
    "abess": Peer(lambda splits, _: AbessCV(splits, "PoissonRegression"), ("tau",)),
}
PEERS = {Loss.SQUARED: ESTIMATORS, Loss.LOGISTIC: OF_CLASSES, Loss.POISSON: OF_COUNTS}


def find_peer(name: str, loss: str = DEFAULT_LOSS) -> Peer:
    """Return the peer for a loss.

    Parameters
    ----------
    name : str
        Key of `ESTIMATORS`.
    loss : {"squared", "logistic", "poisson"}
        Loss of the fits.

    Raises
    ------
    BadInput
        If the peer does not support the loss.

    Examples
    --------
    >>> find_peer("omp", "poisson")
    Traceback (most recent call last):
    ...
    sparsecv_mio.errors.BadInput: omp: does not support loss poisson; use sparsecv, lasso, elastic-net, ridge, abess
    """
    word = Loss(match_keyword(loss, tuple(Loss), "loss"))
    peers = PEERS.get(word, {})
    if name not in peers:
        raise BadInput(f"{name}: does not support loss {word}; use {', '.join(['sparsecv', *peers])}")
    return peers[name]
