"""Where the rows of a batch come from: files, synthetic designs, the data sets that scikit-learn brings along."""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput, did_you_mean

FILE_KEYS = (
    "target", "features", "drop", "sep", "decimal", "comment", "encoding", "header", "index_col", "na", "encode",
)  # fmt: skip
DESIGN_KEYS = ("n", "p", "rho", "support", "snr", "draw", "beta", "validation")
VALIDATION = "validation"  # column of a design that marks the rows to choose by: `folds = "column:validation"`
BUNDLED = ("diabetes", "linnerud")
BETAS = ("even", "first", "decay", "weak", "signs")
HELD_BYTES = 1 << 28  # of the data sets that a process keeps, beside the last one


@dataclass(frozen=True)
class Source:
    """A data set by its description.

    Attributes
    ----------
    name : str
        What tables call it.
    spec : tuple of (str, value)
        `file`, `design` or `sklearn`, and what goes with it.
    digest : str
        Of the description, and of the bytes of a file.
    """

    name: str
    spec: tuple[tuple[str, Any], ...]
    digest: str

    @property
    def shape_digest(self) -> str:
        """Digest of what decides rows and names of columns, the same for all draws of a design of a size."""
        spec = dict(self.spec)
        return f"design {spec['n']} {spec['p']} {spec.get('validation', 0)}" if "design" in spec else self.digest

    def load(self, aux: tuple[str, ...] = ()) -> Dataset:
        """Return the rows.

        Parameters
        ----------
        aux : tuple of str
            Columns that give the folds, and are no features.

        Raises
        ------
        BadInput
            The file has changed since the plan was read, or cannot be read.
        """
        return _held.get((self, aux))


class _Held:
    """Data sets that were read last. Safe to use from several threads, which never read the same one twice."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[Source, tuple[str, ...]], Dataset] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[Source, tuple[str, ...]]) -> Dataset:
        with self._lock:
            if key not in self._found:
                self._found[key] = _load(*key)
                self._bytes += self._found[key].X.nbytes
            self._found.move_to_end(key)
            while len(self._found) > 1 and self._bytes > HELD_BYTES:
                self._bytes -= self._found.popitem(last=False)[1].X.nbytes
            return self._found[key]


_held = _Held()


def _load(source: Source, aux: tuple[str, ...]) -> Dataset:
    spec = dict(source.spec)
    if "design" in spec:
        return _design(spec)
    if "sklearn" in spec:
        return _bundled(str(spec["sklearn"]))
    from sparsecv_mio.data.readers import read_dataset, target_of

    path = spec.pop("file")
    if digest_of(source.spec) != source.digest:
        raise BadInput(f"file {path!r} is not what it was when the plan was read")
    for key in ("features", "drop"):
        if key in spec:
            spec[key] = list(spec[key]) if isinstance(spec[key], tuple) else [spec[key]]
    return read_dataset(path, target_of(path, spec.pop("target", None)), aux=aux, **spec)


def sources_of(table: Mapping[str, Any], folder: Path) -> Iterator[Source]:
    """Yield the data sets of a table `[[data]]`.

    Parameters
    ----------
    table : mapping
        `file`, a path or a pattern, with the options of :func:`~sparsecv_mio.data.readers.read_dataset`; or `design`
        with lists or values of `n, p, rho, support, snr, beta, draw, validation`; or `sklearn`, a name.
    folder : Path
        Where files are looked for.

    Raises
    ------
    BadInput
        The message names the key.
    """
    kinds = [kind for kind in ("file", "design", "sklearn") if kind in table]
    if len(kinds) != 1:
        raise BadInput("[[data]]: give one of file, design and sklearn")
    kind = kinds[0]
    allowed = {"file": FILE_KEYS, "design": DESIGN_KEYS, "sklearn": ()}[kind]
    for key in table:
        if key not in (kind, "name", *allowed):
            known = ", ".join((kind, "name", *allowed))
            raise BadInput(f"[[data]]: unknown key {key!r}{did_you_mean(key, allowed)}, use {known}")
    if kind == "file":
        yield from _files(table, folder)
    elif kind == "design":
        yield from _designs(table)
    else:
        name = str(table["sklearn"])
        if name not in BUNDLED:
            near = did_you_mean(name, BUNDLED)
            raise BadInput(f"[[data]]: sklearn {name!r} is unknown{near}, use {', '.join(BUNDLED)}")
        yield source_of(str(table.get("name", name)), {"sklearn": name})


def _files(table: Mapping[str, Any], folder: Path) -> Iterator[Source]:
    pattern = str(folder / str(table["file"]))
    paths = sorted(glob.glob(pattern)) if any(mark in pattern for mark in "*?[") else [pattern]
    if not paths:
        raise BadInput(f"[[data]]: no file matches {table['file']!r}")
    for path in paths:
        if not Path(path).is_file():
            raise BadInput(f"[[data]]: file {path!r} does not exist: check its path")
        given = {key: table[key] for key in FILE_KEYS if key in table}
        if isinstance(given.get("target"), dict):
            stem = Path(path).stem
            if stem not in given["target"]:
                raise BadInput(f"[[data]]: target names no column of {stem!r}")
            given["target"] = given["target"][stem]
        spec = {"file": str(Path(path).resolve()), **given}
        yield source_of(str(table["name"]) if "name" in table and len(paths) == 1 else Path(path).stem, spec)


def _designs(table: Mapping[str, Any]) -> Iterator[Source]:
    if table["design"] != "toeplitz":
        raise BadInput(f"[[data]]: design {table['design']!r} is unknown, use toeplitz")
    base = {"n": 100, "p": 20, "rho": 0.5, "support": 5, "snr": 1.0, "beta": "even", "draw": 0, "validation": 0}
    given = {**base, **{key: value for key, value in table.items() if key in DESIGN_KEYS}}
    lists = [value if isinstance(value, list) else [value] for value in given.values()]
    for values in itertools.product(*lists):
        one = dict(zip(given, values, strict=True))
        if one["validation"] == "n":
            one["validation"] = one["n"]
        _check_design(one)
        if one["validation"] == 0:
            del one["validation"]
        fixed = {key for key, value in given.items() if value == base[key] and key not in ("n", "p")}
        varied = [key for key in given if key not in fixed]
        label = " ".join(f"{key}={one[key]}" for key in varied if key in one)
        yield source_of(f"{table.get('name', 'toeplitz')} {label}", {"design": "toeplitz", **one})


def _check_design(one: Mapping[str, Any]) -> None:
    whole = all(isinstance(one[key], int) and one[key] >= 0 for key in ("n", "p", "support", "draw", "validation"))
    if not (whole and one["n"] >= 4 and 0 < one["support"] <= one["p"]):
        raise BadInput(
            "[[data]]: n, p, support, draw and validation (or the word n) are whole numbers, n at least 4, support "
            "from 1 to p"
        )
    if not (isinstance(one["snr"], int | float) and one["snr"] > 0 and -1 < one["rho"] < 1):
        raise BadInput("[[data]]: snr must be above 0, rho between -1 and 1")
    if one["beta"] not in BETAS:
        raise BadInput(f"[[data]]: beta {one['beta']!r} is unknown, use {', '.join(BETAS)}")


def source_of(name: str, spec: Mapping[str, Any]) -> Source:
    """Return the data set of a description.

    Parameters
    ----------
    name : str
    spec : mapping
        As of `Source`, lists as JSON has them.

    Raises
    ------
    BadInput
        The file cannot be read.
    """
    fixed = tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in spec.items())
    return Source(name, fixed, digest_of(fixed))


def digest_of(spec: tuple[tuple[str, Any], ...]) -> str:
    """Return a digest of a description, and of the bytes of its file; where the file lies does not count.

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


def _design(spec: Mapping[str, Any]) -> Dataset:
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


def _bundled(name: str) -> Dataset:
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")(as_frame=True)
    y = found.target if found.target.ndim == 1 else found.target.iloc[:, 0]
    return Dataset.from_arrays(found.data.to_numpy(), y.to_numpy(), names=list(found.data.columns))
