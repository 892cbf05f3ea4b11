"""What the benchmarks share: one thread for linear algebra, synthetic data, the environment line, a plain table."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset

# Read when numpy is first loaded: every method is timed with single-threaded linear algebra.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

FloatArray = NDArray[np.float64]
INSTANCES = Path(__file__).resolve().parents[2] / "instances"
TARGETS = {
    "diabetes": "y",
    "diabetes64": "y",
    "housing": "medv",
    "housing2": "medv",
    "servo": "class",
    "autompg": "mpg",
}


def synthetic(
    n: int, p: int, k: int, seed: int, rho: float = 0.5, snr: float = 5.0, place: str = "spread"
) -> tuple[FloatArray, FloatArray]:
    """Gaussian rows with Toeplitz covariance rho^|i-j| and a response of k unit coefficients.

    Parameters
    ----------
    n, p, k : int
        Rows, columns, nonzero coefficients.
    seed : int
    rho : float
        Correlation of neighbouring columns.
    snr : float
        Variance of the signal over that of the noise.
    place : {"spread", "first", "random"}
        Where the nonzero coefficients sit: every (p // k)-th column, the first k, or k at random.

    Returns
    -------
    X : (n, p) array
    y : (n,) array
    """
    rng = np.random.default_rng(seed)
    from sparsecv_mio.batch.sources import toeplitz_rows  # trees of other commits have it elsewhere

    X = toeplitz_rows(rng, n, p, rho)
    support = {
        "spread": np.arange(k) * (p // k),
        "first": np.arange(k),
        "random": rng.choice(p, size=k, replace=False),
    }[place]
    signal = X[:, support].sum(axis=1)
    y = signal + rng.standard_normal(n) * np.sqrt(signal.var() / snr)
    return X, y


def instance(name: str) -> Dataset:
    """Read one of the committed instances."""
    from sparsecv_mio.data.readers import read_dataset

    return read_dataset(INSTANCES / f"{name}.csv", TARGETS[name])


def centred(X: FloatArray, y: FloatArray, length: float) -> tuple[FloatArray, FloatArray]:
    """Centre columns and response, then scale every column to the given l2 norm."""
    X = X - X.mean(axis=0)
    return X * (length / np.linalg.norm(X, axis=0)), y - y.mean()


def environment() -> str:
    """One line that says where a figure was measured."""
    packages = []
    for name in ("sparsecv-mio", "numpy", "scipy", "numba", "gurobipy"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"{name} absent")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    system = f"python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{system}, load {load:.1f}, " + ", ".join(packages)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown, columns padded so that it reads as plain text too; numbers align right."""
    cells = [[_cell(value) for value in row] for row in rows]
    width = [max(3, len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(head)]
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(head))]
    lines = [[name.ljust(w) for name, w in zip(head, width, strict=True)]]
    lines.append(["-" * (w - 1) + ":" if number else "-" * w for w, number in zip(width, numeric, strict=True)])
    for row in cells:
        lines.append([c.rjust(w) if num else c.ljust(w) for c, w, num in zip(row, width, numeric, strict=True)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def parser_of(docstring: str | None, out: bool = False) -> argparse.ArgumentParser:
    """Return a parser that explains a case by its docstring, with the file of the report where it has one."""
    parser = argparse.ArgumentParser(description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter)
    if out:
        parser.add_argument("--out", metavar="FILE", help="write the report here as well")
    return parser


def deliver(text: str, out: str | None) -> None:
    """Print a report, and write it where asked."""
    print(text)
    if out:
        Path(out).write_text(text, encoding="utf-8")


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
