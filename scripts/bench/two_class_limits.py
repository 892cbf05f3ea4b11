"""Two classes under a limit: the answer beside abess with as many features, and whether bounds and the limit hold.

    python scripts/bench/two_class_limits.py [--limits 1 5 20] [--kept FILE] [--only WORD] [--out FILE]

Twelve problems: rows N(0, Sigma), Sigma_ij = rho^|i-j|, eight equal coefficients at even distances, labels by the
logistic model; 300 x 1,000 and 5,000 x 100, rho 0, 0.5 and 0.9, little and much signal. Every limit is a search of its
own on one thread, with the defaults of `sparsecv solve --loss logistic`. abess (no ridge term, its defaults otherwise)
is given the number of features of the answer and the same rows. Both are scored by the log loss of 20,000 fresh rows
and by the share of them that gets the wrong class.

`fit`: the objective of our fit on all rows over that of abess's support, fitted at our gamma; above 1 abess has the
better support. Bounds: the lower end of our fit is compared with that objective, and the intervals that the limits left
of the CV error of each pair with each other: no lower end may be above an upper end. `--kept` names a file of measured
runs: those in it are not run again, new ones are added.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from _common import FloatArray, deliver, environment, table
from sklearn.linear_model import LogisticRegression

from sparsecv_mio.batch.sources import toeplitz_rows
from sparsecv_mio.certificate.predicting import expand_coefficients
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.two_classes import as_two_classes
from sparsecv_mio.problem.row_losses import LOG_LOSS
from sparsecv_mio.search.api import cross_validate

NONZERO, SCORED = 8, 20_000
SHAPES = {(300, 1_000): (0.7, 1.5), (5_000, 100): (0.2, 0.7)}  # with the size of a coefficient: little and much signal
RHOS = (0.0, 0.5, 0.9)


def log_losses(labels: FloatArray, odds: FloatArray) -> FloatArray:
    """Return the log losses of classes 0 and 1 at log odds."""
    signs = LOG_LOSS.encode_targets(labels)[0]
    return np.asarray(LOG_LOSS.losses(signs * odds, signs))


@dataclass(frozen=True)
class Problem:
    """A design, drawn by its seed."""

    n: int
    p: int
    rho: float
    strength: float
    seed: int

    @property
    def name(self) -> str:
        """Return it in words."""
        return f"{self.n} x {self.p}, rho {self.rho:g}, {self.strength:g}"

    def drawn(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return X and y of rows to fit, then of those to score."""
        rng = np.random.default_rng(self.seed)
        X = toeplitz_rows(rng, self.n + SCORED, self.p, self.rho)
        truth = np.zeros(self.p)
        truth[np.arange(NONZERO) * (self.p // NONZERO)] = self.strength
        y = (X @ truth + rng.logistic(size=len(X)) > 0.0).astype(float)
        return X[: self.n], y[: self.n], X[self.n :], y[self.n :]


PROBLEMS = [
    Problem(n, p, rho, strength, seed)
    for (n, p), strengths in SHAPES.items()
    for seed, (rho, strength) in enumerate((rho, strength) for rho in RHOS for strength in strengths)
]


@dataclass(frozen=True)
class Row:
    """One search; test errors are log losses."""

    problem: str
    limit: float
    status: str
    wall: float
    cpu: float
    load: float
    tau: int
    features: int
    gamma: float
    cv_error: float
    lower: float
    upper: float
    ours: float
    abess: float
    wrong: float
    wrong_abess: float
    abess_seconds: float
    objective: float
    objective_lower: float
    objective_abess: float
    ends: list[list[float]]


def scored(beta: FloatArray, intercept: float, Z: FloatArray, labels: FloatArray) -> tuple[float, float]:
    """Return the mean log loss of rows and the share that gets the wrong class."""
    odds = Z @ beta + intercept
    return float(np.mean(log_losses(labels, odds))), float(np.mean((odds > 0.0) != (labels > 0.5)))


def abess_of(size: int, X: FloatArray, y: FloatArray) -> tuple[FloatArray, float, float]:
    """Return coefficients, intercept and seconds of abess with a number of features."""
    import abess

    begin = time.perf_counter()
    model = abess.LogisticRegression(support_size=[size], thread=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return np.asarray(model.coef_), float(model.intercept_), time.perf_counter() - begin


def measured(problem: Problem, limit: float) -> Row:
    """Search under a limit, and score the answer."""
    X, y, Z, labels = problem.drawn()
    data = as_two_classes(Dataset.from_arrays(X, y))
    folds = make_folds("10", data)
    begin, spent = time.perf_counter(), time.process_time()
    record = cross_validate(data, folds, gammas=None, taus=None, loss="logistic", threads=1, time_limit=limit)
    wall, cpu = time.perf_counter() - begin, time.process_time() - spent
    load = os.getloadavg()[0]
    beta = expand_coefficients(record.coefficients, data.names)
    features = int(np.count_nonzero(beta))
    ours, wrong = scored(beta, record.intercept, Z, labels)
    other, constant, seconds = abess_of(features, X, y)
    theirs, wrong_abess = scored(other, constant, Z, labels)
    return Row(
        problem.name, limit, record.status, wall, cpu, load, record.tau, features, record.gamma, record.cv_error,
        record.lower, record.upper, ours, theirs, wrong, wrong_abess, seconds, record.refit.objective,
        record.refit.lower, objective_at(other != 0.0, record.gamma, X, y), ends_of(record),
    )  # fmt: skip


def objective_at(support: FloatArray, gamma: float, X: FloatArray, y: FloatArray) -> float:
    """Return the least objective of some columns, of length 1, by scikit-learn."""
    Z = (X[:, support] - X[:, support].mean(axis=0)) / X[:, support].std(axis=0) / math.sqrt(len(X))
    if not Z.shape[1]:
        return float(log_losses(y, np.full(len(y), math.log(y.mean() / (1.0 - y.mean())))).sum())
    model = LogisticRegression(C=1.0 / gamma, tol=1e-10, max_iter=10_000).fit(Z, y)
    odds = model.decision_function(Z)
    return float(log_losses(y, odds).sum() + 0.5 * gamma * np.sum(model.coef_**2))


def ends_of(record: Record) -> list[list[float]]:
    """Return (lower, upper) of every pair, JSON having no infinity."""
    return [[row.lower, min(row.upper, sys.float_info.max)] for row in record.table]


def crossings(rows: list[Row]) -> int:
    """Return how many pairs of a problem have a lower end above an upper end of another limit."""
    ends = np.array([row.ends for row in rows])
    return int(np.sum(ends[:, :, 0].max(axis=0) * (1.0 - 1e-9) > ends[:, :, 1].min(axis=0)))


def geometric(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(float(np.mean(np.log(values))))


def tables(rows: list[Row]) -> str:
    """Return the tables."""
    lines = [
        [
            row.problem, row.limit, row.status, row.wall - row.limit if row.status != "proved" else -0.0, row.cpu,
            row.load, row.features, f"{row.gamma:.2g}", row.cv_error, row.lower, row.ours, row.abess,
            row.ours / row.abess, row.wrong, row.wrong_abess, row.abess_seconds, row.objective / row.objective_abess,
        ]
        for row in rows
    ]  # fmt: skip
    head = [
        "problem", "limit s", "status", "overrun s", "CPU s", "load", "features", "gamma", "CV error", "lower",
        "log loss", "abess", "ratio", "wrong", "wrong abess", "abess s", "fit",
    ]  # fmt: skip
    said = []
    for limit in sorted({row.limit for row in rows}):
        some = [row for row in rows if row.limit == limit]
        late = max((row.wall - limit for row in some if row.status != "proved"), default=0.0)
        for shape in (*(f"{n} x {p}" for n, p in SHAPES), ""):
            of = [row.ours / row.abess for row in some if row.problem.startswith(shape)]
            if of:
                said.append(
                    f"* {limit:g} s, {shape or 'all'}: log loss over abess's, geometric mean {geometric(of):.3f} of "
                    f"{len(of)}, largest {max(of):.3f}" + ("." if shape else f"; longest overrun {late:.2f} s.")
                )
    names = list(dict.fromkeys(row.problem for row in rows))
    crossed = sum(crossings([row for row in rows if row.problem == name]) for name in names)
    pairs = sum(len(next(row for row in rows if row.problem == name).ends) for name in names)
    above = sum(row.objective_lower > row.objective_abess * (1.0 + 1e-9) for row in rows)
    worse = [row.objective / row.objective_abess for row in rows]
    said.append(
        f"* Pairs whose bounds cross: {crossed} of {pairs}. Fits whose lower end is above the objective of abess's "
        f"support: {above} of {len(rows)}. Our objective over that one: at most {max(worse):.4f}, above 1 in "
        f"{sum(one > 1.0 + 1e-9 for one in worse)}."
    )
    return table(head, lines) + "\n\n" + "\n".join(said) + "\n"


def main() -> int:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--limits", nargs="+", type=float, default=[1.0, 5.0, 20.0], help="seconds of a search [1 5 20]"
    )
    parser.add_argument("--only", default="", help="problems whose name holds this word")
    parser.add_argument("--kept", metavar="FILE", help="measured runs, one a line: read, and added to")
    parser.add_argument("--out")
    ask = parser.parse_args()
    kept = Path(ask.kept) if ask.kept else None
    lines = kept.read_text(encoding="utf-8").splitlines() if kept is not None and kept.exists() else []
    rows = {(row.problem, row.limit): row for row in (Row(**json.loads(line)) for line in lines)}
    measured(Problem(60, 40, 0.0, 1.0, 0), 5.0)  # compiles
    for problem in PROBLEMS:
        for limit in ask.limits:
            if (problem.name, limit) in rows or ask.only not in problem.name:
                continue
            row = rows[problem.name, limit] = measured(problem, limit)
            told = f"{limit:g} s, {row.status} in {row.wall:.2f} s ({row.cpu:.2f} CPU), {row.features} features"
            print(f"{row.problem}: {told}, {row.ours:.4f} / {row.abess:.4f}", file=sys.stderr, flush=True)
            if kept is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
    done = [rows[key] for problem in PROBLEMS for limit in ask.limits if (key := (problem.name, limit)) in rows]
    deliver(f"# Two classes under a limit\n\n{environment()}\n\n{__doc__}\n{tables(done)}", ask.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
