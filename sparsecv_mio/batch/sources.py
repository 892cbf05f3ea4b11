"""Data of a plan: files, data sets of scikit-learn, and synthetic data whose true coefficients are known."""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.declared_options import OF_TABLES, TABLE
from sparsecv_mio.errors import BadInput, did_you_mean, match_keyword
from sparsecv_mio.files import all_memory

DESIGNS: Mapping[str, Mapping[str, Any]] = {
    "toeplitz": {"n": 100, "p": 20, "rho": 0.5, "support": 5, "snr": 1.0, "beta": "even", "draw": 0, "validation": 0},
    "logistic": {"n": 100, "p": 20, "support": 5, "draw": 0},
    "classes": {"n": 100, "p": 20, "bayes_error": 0.02, "draw": 0},
    "covertype": {"n": 581_012, "draw": 0},
    "year": {"n": 463_715, "draw": 0},
}  # designs with their keys and default values
DESIGN_KEYS = tuple(dict.fromkeys(key for keys in DESIGNS.values() for key in keys))
VALIDATION = "validation"  # column of a design that marks validation rows: `folds = "column:validation"`
BETAS = ("even", "first", "decay", "weak", "signs")
WHOLE = ("n", "p", "support", "draw", "validation")
MOST_OWN = 90  # maximum number of columns of designs without p
BETWEEN = {"snr": (0.0, np.inf), "rho": (-1.0, 1.0), "bayes_error": (0.0, 0.5)}


def check_design(one: Mapping[str, Any]) -> None:
    """Raise an error for values from which a design cannot be drawn.

    Parameters
    ----------
    one : mapping
        Keys and values of the design.

    Raises
    ------
    BadInput
        With what would do.
    """
    whole = all(type(one[key]) is int and one[key] >= 0 for key in WHOLE if key in one)
    if not (whole and one["n"] >= 4 and 0 < one.get("support", 1) <= one.get("p", 1)):
        raise BadInput(
            "[[data]]: n, p, support, draw and validation must be whole numbers, n at least 4 and support from 1 to p; "
            'validation may also be "n"'
        )
    if 8 * (one["n"] + one.get("validation", 0)) * one.get("p", MOST_OWN) > all_memory():
        raise BadInput("[[data]]: n times p values exceed the memory of this machine; make n or p smaller")
    for key, (low, high) in BETWEEN.items():
        value = one.get(key, 0.25)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
            limits = f"above {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
            raise BadInput(f"[[data]]: {key} must be {limits}, not {value!r}")
    if one.get("beta", BETAS[0]) not in BETAS:
        raise BadInput(f"[[data]]: beta {one['beta']!r} is unknown; use {', '.join(BETAS)}")


def draw_design(spec: Mapping[str, Any]) -> Dataset:
    """Return the rows of a design.

    Parameters
    ----------
    spec : mapping
        Name of the design as `design`, and its keys.
    """
    if spec["design"] == "toeplitz":
        return _toeplitz(spec)
    rng = np.random.default_rng([int(spec["draw"]), int(spec["n"]), int(spec.get("p", 0))])
    return Dataset.from_arrays(*_OTHERS[str(spec["design"])](rng, spec))


def _logistic(rng: np.random.Generator, spec: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Return standard normal columns, coefficients N(0, 1) at random columns, labels -1 / 1 by the logistic model."""
    n, p = int(spec["n"]), int(spec["p"])
    theta = np.zeros(p)
    theta[rng.choice(p, int(spec["support"]), replace=False)] = rng.standard_normal(int(spec["support"]))
    X = rng.standard_normal((n, p))
    return X, np.where(rng.random(n) * (1.0 + np.exp(-X @ theta)) < 1.0, 1.0, -1.0)


def _classes(rng: np.random.Generator, spec: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Return two Gaussian classes of equal size that differ equally in every column."""
    from scipy.special import ndtri

    n, p = int(spec["n"]), int(spec["p"])
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, p))
    X -= y[:, None] * (float(ndtri(spec["bayes_error"])) / np.sqrt(p))
    return X, y


def _covertype(rng: np.random.Generator, spec: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Return 10 skewed columns, one-hot factors of 4 and 40 levels that depend on the first; a noisy rule, 36% true."""
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
    """Return 90 correlated columns and a skewed target in [0, 1], its mass near the top."""
    X = toeplitz_rows(rng, int(spec["n"]), 90, 0.4)
    signal = X @ (rng.standard_normal(90) / np.sqrt(90.0))
    raw = -np.log1p(np.exp(-signal + 0.8 * rng.standard_normal(len(signal))))
    return X, (raw - raw.min()) / (raw.max() - raw.min())


_OTHERS = {"logistic": _logistic, "classes": _classes, "covertype": _covertype, "year": _year}


def make_coefficients(spec: Mapping[str, Any]) -> FloatArray:
    """Return the true coefficients of a design.

    Parameters
    ----------
    spec : mapping
        Keys `p`, `support` and `beta` of the design. `beta` is one of five keywords: `even`, ones at evenly spaced
        columns; `first`, ones at the first columns; `decay`, values from 10 down to 0.5 at the first columns; `weak`,
        ones at the first columns, then 0.5 to the power 1, 2, ...; `signs`, 1 or -1 at random columns, by `draw`. The
        first four are types 1, 2, 3 and 5 of Hastie, Tibshirani and Tibshirani (2020); the last is that of Bertsimas,
        Pauphilet and Van Parys (2020).
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
    """Return n rows of N(0, Sigma) with Sigma_ij = rho^|i-j|.

    Parameters
    ----------
    n, p : int
        Number of rows, and of columns.
    rho : float
        Correlation of neighbouring columns.

    Returns
    -------
    (n, p) array
        The rows.
    """
    X = rng.standard_normal((n, p))
    for j in range(1, p):  # an autoregression of order one has this covariance
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho * rho) * X[:, j]
    return X


def _toeplitz(spec: Mapping[str, Any]) -> Dataset:
    """Return rows, and y with noise of variance b'Sigma b / snr; marked validation rows follow."""
    n, p, more = int(spec["n"]), int(spec["p"]), int(spec.get("validation", 0))
    rng = np.random.default_rng([int(spec["draw"]), n, p])
    beta = make_coefficients(spec)
    noise = np.sqrt(signal_variance(spec) / float(spec["snr"]))
    parts = []
    for rows in (n, more):
        X = toeplitz_rows(rng, rows, p, float(spec["rho"]))
        parts.append((X, X @ beta + noise * rng.standard_normal(rows)))
    marks = {VALIDATION: np.repeat([-1, 0], [n, more])} if more else {}
    X, y = (np.concatenate(halves) for halves in zip(*parts, strict=True))
    return Dataset.from_arrays(X, y, aux=marks)


def signal_variance(spec: Mapping[str, Any]) -> float:
    """Return the variance b'Sigma b of the signal of a design.

    Parameters
    ----------
    spec : mapping
        Keys as for :func:`make_coefficients`, and `rho`.
    """
    beta = make_coefficients(spec)
    return float(beta @ design_covariance(len(beta), float(spec["rho"])) @ beta)


@lru_cache(maxsize=4)
def design_covariance(p: int, rho: float) -> FloatArray:
    """Return the covariance matrix (p, p) of the columns of a design, rho^|i-j|."""
    from scipy.linalg import toeplitz

    return np.asarray(toeplitz(np.power(rho, np.arange(p))))


BUNDLED = ("diabetes", "linnerud")
DATA_SETS_KEPT = 4  # maximum number of data sets in the cache of a process


@dataclass(frozen=True)
class DataSource:
    """A data set given by a description.

    Attributes
    ----------
    name : str
        Name in tables.
    spec : tuple of (str, value)
        Description: `file`, `design` or `sklearn`, with further keys.
    digest : str
        Digest of the description and, for a file, of its bytes.
    """

    name: str
    spec: tuple[tuple[str, Any], ...]
    digest: str

    @property
    def shape_digest(self) -> str:
        """Digest that determines rows and column names; equal for all draws of a design of one size."""
        spec = dict(self.spec)
        shape = [spec.get(key) for key in ("design", "n", "p", "validation")]
        return " ".join(map(str, shape)) if "design" in spec else self.digest

    def load(self, aux: tuple[str, ...] = ()) -> Dataset:
        """Return the data set.

        Parameters
        ----------
        aux : tuple of str
            Columns for the folds, which are not features.

        Raises
        ------
        BadInput
            If the file has changed since the plan was read, or cannot be read.
        """
        return _read_source(self, aux)


@lru_cache(maxsize=DATA_SETS_KEPT)
def _read_source(source: DataSource, aux: tuple[str, ...]) -> Dataset:
    spec = dict(source.spec)
    if "design" in spec:
        return draw_design(spec)
    if "sklearn" in spec:
        return _load_bundle(str(spec["sklearn"]))
    from sparsecv_mio.data.readers import read_dataset, resolve_target

    path = spec.pop("file")
    if source_digest(source.spec) != source.digest:
        raise BadInput(f"file {path!r} changed after the plan was read; run the command again")
    for key in ("features", "drop"):
        if key in spec:
            spec[key] = list(spec[key]) if isinstance(spec[key], tuple) else [spec[key]]
    return read_dataset(path, resolve_target(path, spec.pop("target", None)), aux=aux, two_words=True, **spec)


def make_sources(table: Mapping[str, Any], folder: Path) -> Iterator[DataSource]:
    """Yield the data sets of a table `[[data]]`.

    Parameters
    ----------
    table : mapping
        Table with one of three keys. `file` is a path, a pattern or a list of these, with options of
        :func:`~sparsecv_mio.data.readers.read_dataset`; the target is a column, or a table of columns by file or
        pattern. `design` has values or lists of values for its keys (see `DESIGNS`). `sklearn` is the name of a
        data set of scikit-learn.
    folder : Path
        Folder to which paths of files are relative.

    Raises
    ------
    BadInput
        If a key is invalid; the message names it.
    """
    kinds = [kind for kind in ("file", "design", "sklearn") if kind in table]
    if len(kinds) != 1:
        raise BadInput("[[data]]: a data set needs exactly one of the keys file, design and sklearn")
    kind = kinds[0]
    design = match_keyword(table["design"], DESIGNS, "[[data]]: design") if kind == "design" else ""
    allowed = {"file": tuple(TABLE), "design": tuple(DESIGNS.get(design, ())), "sklearn": ()}[kind]
    for key in table:
        if key not in (kind, "name", *allowed):
            keys = ", ".join((kind, "name", *allowed))
            raise BadInput(f"[[data]]: unknown key {key!r}{did_you_mean(key, allowed)}; use {keys}")
    if kind == "file":
        yield from _files(table, folder)
    elif kind == "design":
        yield from _designs(table, design)
    else:
        name = str(table["sklearn"])
        if name not in BUNDLED:
            near = did_you_mean(name, BUNDLED)
            raise BadInput(f"[[data]]: sklearn {name!r} is unknown{near}; use {', '.join(BUNDLED)}")
        yield data_source(str(table.get("name", name)), {"sklearn": name})


def _files(table: Mapping[str, Any], folder: Path) -> Iterator[DataSource]:
    reading = {key: table[key] for key in OF_TABLES if key in table}
    try:
        Reading.from_keywords(**{key: value for key, value in reading.items() if key not in ("features", "drop")})
    except BadInput as error:
        raise BadInput(f"[[data]]: {error}") from None
    for key in ("features", "drop"):
        _check_columns(reading.get(key), key)
    target = table.get("target")
    if not isinstance(target, dict):
        _check_columns(target, "target", several=False)
    paths = _paths(table["file"], folder)
    for path in paths:
        goal = _find_target(path, target) if isinstance(target, dict) else target
        spec = {"file": str(Path(path).resolve()), **({} if goal is None else {"target": goal}), **reading}
        yield data_source(str(table["name"]) if "name" in table and len(paths) == 1 else Path(path).stem, spec)


def _paths(given: Any, folder: Path) -> list[str]:
    """Return the distinct files of a path, a pattern or a list of these."""
    paths: list[str] = []
    for pattern in given if isinstance(given, list) else [given]:
        if not isinstance(pattern, str) or not pattern or "\0" in pattern:
            raise BadInput(f"[[data]]: file {pattern!r} is not a path; give a path in quotes, or a list of paths")
        matching = any(mark in pattern for mark in "*?[") and not (folder / pattern).is_file()
        some = sorted(glob.glob(pattern, root_dir=folder)) if matching else [pattern]
        if not some:
            raise BadInput(f"[[data]]: no file matches the pattern {pattern!r}; correct the pattern")
        paths += [str(folder / name) for name in some]
    for path in paths:
        if not Path(path).is_file():
            raise BadInput(f"[[data]]: file {path!r} does not exist; check its path")
    if not paths:
        raise BadInput("[[data]]: file is an empty list; name at least one file")
    return list(dict.fromkeys(paths))


def _find_target(path: str, targets: Mapping[str, Any]) -> str | int:
    """Return the target of a file: by its name without the suffix, else by the first matching pattern."""
    stem = Path(path).stem
    key = stem if stem in targets else next((pattern for pattern in targets if fnmatchcase(stem, pattern)), None)
    if key is None:
        raise BadInput(
            f'[[data]]: target has no entry for the file {stem!r}; add one, or an entry for all other files: "*" = "y"'
        )
    _check_columns(targets[key], f"target of {stem!r}", several=False)
    goal: str | int = targets[key]
    return goal


def _check_columns(given: Any, key: str, several: bool = True) -> None:
    """Raise `BadInput` unless the value is a column or, if `several`, a list of columns."""
    for column in given if several and isinstance(given, list) else [given]:
        if isinstance(column, bool) or not isinstance(column, str | int | None):
            listed = ", or a list of columns" if several else ""
            raise BadInput(f"[[data]]: {key} {column!r} is not a column; give the name or position of a column{listed}")


def _designs(table: Mapping[str, Any], design: str) -> Iterator[DataSource]:
    base = DESIGNS[design]
    setting = {**base, **{key: value for key, value in table.items() if key in base}}
    lists = [value if isinstance(value, list) else [value] for value in setting.values()]
    for values in itertools.product(*lists):
        chosen = dict(zip(setting, values, strict=True))
        if chosen.get("validation") == "n":
            chosen["validation"] = chosen["n"]
        check_design(chosen)
        if chosen.get("validation") == 0:
            del chosen["validation"]
        fixed = {key for key, value in setting.items() if value == base[key] and key not in ("n", "p")}
        varied = [key for key in setting if key not in fixed]
        label = " ".join(f"{key}={chosen[key]}" for key in varied if key in chosen)
        yield data_source(f"{table.get('name', design)} {label}", {"design": design, **chosen})


def data_source(name: str, spec: Mapping[str, Any]) -> DataSource:
    """Return the data source of a description.

    Parameters
    ----------
    spec : mapping
        Description as in `DataSource`, with lists as in JSON.

    Raises
    ------
    BadInput
        The file cannot be read.
    """
    fixed = tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in spec.items())
    return DataSource(name, fixed, source_digest(fixed))


def source_digest(spec: tuple[tuple[str, Any], ...]) -> str:
    """Return a digest of a description and of the bytes of its file; the location of the file is ignored.

    Raises
    ------
    BadInput
        The file cannot be read.
    """
    path = dict(spec).get("file")
    content = hashlib.sha256(json.dumps([pair for pair in spec if pair[0] != "file"], sort_keys=True).encode())
    if path is not None:
        try:
            with Path(path).open("rb") as handle:
                content.update(hashlib.file_digest(handle, "sha256").digest())
        except OSError as error:
            raise BadInput(f"file {path!r} cannot be read: {error.strerror}") from None
    return content.hexdigest()


def _load_bundle(name: str) -> Dataset:
    from sklearn import datasets

    bundle = getattr(datasets, f"load_{name}")(as_frame=True)
    y = bundle.target if bundle.target.ndim == 1 else bundle.target.iloc[:, 0]
    return Dataset.from_arrays(bundle.data.to_numpy(), y.to_numpy(), names=list(bundle.data.columns))
