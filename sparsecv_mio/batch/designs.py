"""Synthetic designs: what the rows of a plan may be drawn from, and the truth of those that have coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import memory

DESIGNS: Mapping[str, Mapping[str, Any]] = {
    "toeplitz": {"n": 100, "p": 20, "rho": 0.5, "support": 5, "snr": 1.0, "beta": "even", "draw": 0, "validation": 0},
    "logistic": {"n": 100, "p": 20, "support": 5, "draw": 0},
    "classes": {"n": 100, "p": 20, "bayes_error": 0.02, "draw": 0},
    "covertype": {"n": 581_012, "draw": 0},
    "year": {"n": 463_715, "draw": 0},
}  # with the keys of each and their defaults
DESIGN_KEYS = tuple(dict.fromkeys(key for keys in DESIGNS.values() for key in keys))
VALIDATION = "validation"  # column of a design that marks the rows to choose by: `folds = "column:validation"`
BETAS = ("even", "first", "decay", "weak", "signs")
WHOLE = ("n", "p", "support", "draw", "validation")
MOST_OWN = 90  # columns of designs without p
BETWEEN = {"snr": (0.0, np.inf), "rho": (-1.0, 1.0), "bayes_error": (0.0, 0.5)}


def check_design(one: Mapping[str, Any]) -> None:
    """Refuse values that a design cannot be drawn from.

    Parameters
    ----------
    one : mapping
        By name.

    Raises
    ------
    BadInput
        With what would do.
    """
    whole = all(type(one[key]) is int and one[key] >= 0 for key in WHOLE if key in one)
    if not (whole and one["n"] >= 4 and 0 < one.get("support", 1) <= one.get("p", 1)):
        raise BadInput(
            "[[data]]: n, p, support, draw and validation (or the word n) are whole numbers, n at least 4, support "
            "from 1 to p"
        )
    if 8 * (one["n"] + one.get("validation", 0)) * one.get("p", MOST_OWN) > memory():
        raise BadInput("[[data]]: n times p is more numbers than the memory of this machine holds: make them smaller")
    for key, (low, high) in BETWEEN.items():
        value = one.get(key, 0.25)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
            limits = f"above {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
            raise BadInput(f"[[data]]: {key} must be {limits}, not {value!r}")
    if one.get("beta", BETAS[0]) not in BETAS:
        raise BadInput(f"[[data]]: beta {one['beta']!r} is unknown, use {', '.join(BETAS)}")


def draw_design(spec: Mapping[str, Any]) -> Dataset:
    """Draw the rows of a design.

    Parameters
    ----------
    spec : mapping
        Its name as `design`, and its keys.
    """
    if spec["design"] == "toeplitz":
        return _toeplitz(spec)
    rng = np.random.default_rng([int(spec["draw"]), int(spec["n"]), int(spec.get("p", 0))])
    return Dataset.from_arrays(*_OTHERS[str(spec["design"])](rng, spec))


def _logistic(rng: np.random.Generator, spec: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Draw standard normal columns, coefficients N(0, 1) at random columns, labels -1 / 1 by the logistic model."""
    n, p = int(spec["n"]), int(spec["p"])
    theta = np.zeros(p)
    theta[rng.choice(p, int(spec["support"]), replace=False)] = rng.standard_normal(int(spec["support"]))
    X = rng.standard_normal((n, p))
    return X, np.where(rng.random(n) * (1.0 + np.exp(-X @ theta)) < 1.0, 1.0, -1.0)


def _classes(rng: np.random.Generator, spec: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Draw two Gaussian classes, as many rows of each, that differ alike in every column."""
    from scipy.special import ndtri

    n, p = int(spec["n"]), int(spec["p"])
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, p))
    X -= y[:, None] * (float(ndtri(spec["bayes_error"])) / np.sqrt(p))
    return X, y


def _covertype(rng: np.random.Generator, spec: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Draw 10 skewed columns, a one-hot of 4 and one of 40 levels that depend on the first; a noisy rule, 36% true."""
    n = int(spec["n"])
    Z = rng.standard_normal((n, 10))
    X = np.zeros((n, 54))
    X[:, :10] = np.exp(0.4 * Z) + 1.0
    four = np.clip((Z[:, 0] + rng.standard_normal(n) + 2.0).astype(int), 0, 3)
    forty = np.clip(np.abs(8.0 * Z[:, 0] + 6.0 * rng.standard_normal(n)).astype(int), 0, 39)
    X[np.arange(n), 10 + four] = X[np.arange(n), 14 + forty] = 1.0
    rule = Z[:, 0] - 0.6 * Z[:, 1] + 0.5 * Z[:, 2] * Z[:, 3] + 0.6 * Z[:, 4] ** 2 + 0.8 * rng.standard_normal(n)
    return X, np.where(rule > np.quantile(rule, 0.64), 1.0, -1.0)


def _year(rng: np.random.Generator, spec: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Draw 90 correlated columns and a skewed target in [0, 1], its mass near the top."""
    X = toeplitz_rows(rng, int(spec["n"]), 90, 0.4)
    signal = X @ (rng.standard_normal(90) / np.sqrt(90.0))
    raw = -np.log1p(np.exp(-signal + 0.8 * rng.standard_normal(len(signal))))
    return X, (raw - raw.min()) / (raw.max() - raw.min())


_OTHERS = {"logistic": _logistic, "classes": _classes, "covertype": _covertype, "year": _year}


def coefficients_of(spec: Mapping[str, Any]) -> FloatArray:
    """Return the true coefficients of a design.

    Parameters
    ----------
    spec : mapping
        With `p`, `support` and `beta`: `even`, ones at evenly spaced columns; `first`, ones at the first columns;
        `decay`, values from 10 down to 0.5 at the first columns; `weak`, ones at the first columns, then 0.5 to the
        power 1, 2, ... (types 1, 2, 3 and 5 of Hastie, Tibshirani and Tibshirani, 2020); `signs`, 1 or -1 at random
        columns, by `draw` (Bertsimas, Pauphilet and Van Parys, 2020).
    """
    p, support, beta = int(spec["p"]), int(spec["support"]), np.zeros(int(spec["p"]))
    if spec["beta"] == "signs":
        rng = np.random.default_rng([int(spec["draw"]), p, support, 1])
        beta[rng.choice(p, support, replace=False)] = rng.choice([-1.0, 1.0], support)
    elif spec["beta"] == "even":
        beta[np.linspace(0, p - 1, support).round().astype(int)] = 1.0
    else:
        beta[:support] = np.linspace(10.0, 0.5, support) if spec["beta"] == "decay" else 1.0
    if spec["beta"] == "weak":
        beta[support:] = 0.5 ** np.arange(1.0, p - support + 1.0)
    return beta


def toeplitz_rows(rng: np.random.Generator, n: int, p: int, rho: float) -> FloatArray:
    """Draw n rows of N(0, Sigma), Sigma_ij = rho^|i-j|.

    Parameters
    ----------
    rng : numpy.random.Generator
    n, p : int
        Rows, columns.
    rho : float
        Correlation of neighbouring columns.

    Returns
    -------
    (n, p) array
    """
    X = rng.standard_normal((n, p))
    for j in range(1, p):  # an autoregression of order one has this covariance
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho * rho) * X[:, j]
    return X


def _toeplitz(spec: Mapping[str, Any]) -> Dataset:
    """Draw rows, and y with noise of variance b'Sigma b / snr; rows of validation follow, marked in their column."""
    n, p, more = int(spec["n"]), int(spec["p"]), int(spec.get("validation", 0))
    rng = np.random.default_rng([int(spec["draw"]), n, p])
    beta = coefficients_of(spec)
    noise = np.sqrt(signal_of(spec) / float(spec["snr"]))
    parts = []
    for rows in (n, more):
        X = toeplitz_rows(rng, rows, p, float(spec["rho"]))
        parts.append((X, X @ beta + noise * rng.standard_normal(rows)))
    marks = {VALIDATION: np.repeat([-1, 0], [n, more])} if more else {}
    X, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    return Dataset.from_arrays(X, y, aux=marks)


def signal_of(spec: Mapping[str, Any]) -> float:
    """Return the variance b'Sigma b of the signal of a design.

    Parameters
    ----------
    spec : mapping
        As of :func:`coefficients_of`, with `rho`.
    """
    beta = coefficients_of(spec)
    return float(beta @ covariance_of(len(beta), float(spec["rho"])) @ beta)


@lru_cache(maxsize=4)
def covariance_of(p: int, rho: float) -> FloatArray:
    """Return the covariance (p, p) of the columns of a design, rho^|i-j|."""
    from scipy.linalg import toeplitz

    return np.asarray(toeplitz(np.power(rho, np.arange(p))))
