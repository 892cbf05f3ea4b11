"""The test error of what a run under a time limit returns, beside abess and LassoCV.

    python scripts/bench/risk.py --data FOLDER --out build/risk.md [--quick] [--kept FILE]

Every method chooses by ten folds on the same rows and has its defaults otherwise; ours has `--time-limit`.

* Synthetic: Gaussian rows with covariance Sigma = 0.5^|i-j|, eight unit coefficients b* evenly spaced, SNR 5 and 0.5.
  Excess risk: `(b-b*)'Sigma(b-b*) + a^2`, a the intercept, whose true value is 0. Risk: that plus the noise variance,
  the expected squared error on a new row.
* Real: random 80/20 splits, mean squared error on the 20% relative to LassoCV.

`region`: the largest tau up to which every pair of the grid is decided or excluded by its bounds. `--kept` names a file
of measured runs: those in it are not run again, new ones are added, so that a long table can be made in parts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from _common import INSTANCES, FloatArray, deliver, environment, parser_of, synthetic, table

from sparsecv_mio.batch.one_task import run_estimator
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.model_space import default_taus, parse_gammas
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.warmup import warm_up

SHAPES = (
    "200x60", "500x100", "1000x100", "500x200", "1000x1000", "200x100", "100x200", "100x500", "200x1000", "100x5000",
)  # fmt: skip
SNRS = (5.0, 0.5)
TARGETS = {"bardet": "y", "housing2": "medv", "diabetes64": "y", "riboflavin": "y", "topgear": "MPG"}
NONZERO, RHO = 8, 0.5
Fitted = tuple[FloatArray, float]  # coefficients, intercept
Score = Callable[[FloatArray, float], float]


@dataclass(frozen=True)
class Row:
    """One problem, all three methods; errors are excess risks or test errors."""

    problem: str
    repeat: int
    noise: float
    status: str
    seconds: float
    tau: int
    gamma: float
    cv_error: float
    lower: float
    region: int
    ours: float
    abess: float
    lasso: float
    size_abess: int
    size_lasso: int
    seconds_abess: float
    seconds_lasso: float


def region(record: Record, gap: float = 1e-4) -> int:
    """Return the largest tau up to which no pair is open: all folds decided, or bounds that exclude it."""
    bar = record.upper * (1.0 - gap)
    left = [row.tau for row in record.table if row.folds_decided < row.folds and row.lower < bar]
    closed = [tau for tau in record.request.taus if tau < min(left, default=math.inf)]
    return max(closed, default=0)


def ours(X: FloatArray, y: FloatArray, limit: float) -> tuple[Fitted, Record, float]:
    """Return what `sparsecv solve --time-limit` does with everything else by default."""
    data = Dataset.from_arrays(X, y)
    folds = make_folds("10", data)
    taus = default_taus(data.p, folds.least_training)
    begin = time.perf_counter()
    gammas = parse_gammas(None, data.p, folds.least_training)
    record = cross_validate(data, folds, gammas=gammas, taus=taus, time_limit=limit)
    seconds = time.perf_counter() - begin
    beta = np.zeros(data.p)
    beta[[data.names.index(name) for name in record.coefficients]] = list(record.coefficients.values())
    return (beta, record.intercept), record, seconds


def peer(name: str, X: FloatArray, y: FloatArray) -> tuple[Fitted, float]:
    """Return what a peer of the batches does, on columns of unit variance and the same folds."""
    data = Dataset.from_arrays(X, y)
    found = run_estimator(name, data, make_folds("10", data), {})
    assert found.model is not None, f"{name} has no model"
    return (found.model.coefficients, found.model.intercept), found.seconds


def compared(name: str, repeat: int, X: FloatArray, y: FloatArray, score: Score, noise: float, limit: float) -> Row:
    """Run the three methods on one problem."""
    mine, record, seconds = ours(X, y, limit)
    abess, abess_seconds = peer("abess", X, y)
    lasso, lasso_seconds = peer("lasso", X, y)
    return Row(
        name, repeat, noise, record.status, seconds, record.tau, record.gamma, record.cv_error, record.lower,
        region(record), score(*mine), score(*abess), score(*lasso), int(np.count_nonzero(abess[0])),
        int(np.count_nonzero(lasso[0])), abess_seconds, lasso_seconds,
    )  # fmt: skip


Problem = tuple[str, int, Callable[[], tuple[FloatArray, FloatArray, Score, float]]]


def drawn(n: int, p: int, snr: float, seed: int) -> tuple[FloatArray, FloatArray, Score, float]:
    """Synthetic data, their excess risk, the variance of their noise."""
    X, y = synthetic(n, p, NONZERO, seed, rho=RHO, snr=snr)
    truth = np.zeros(p)
    truth[np.arange(NONZERO) * (p // NONZERO)] = 1.0
    noise = float((X @ truth).var() / snr)

    def excess(beta: FloatArray, intercept: float) -> float:
        off = np.flatnonzero(beta - truth)
        sigma = RHO ** np.abs(off[:, None] - off[None, :])
        return float((beta - truth)[off] @ sigma @ (beta - truth)[off] + intercept**2)

    return X, y, excess, noise


def split(data: Dataset, repeat: int) -> tuple[FloatArray, FloatArray, Score, float]:
    """80% of the rows to fit, 20% to score."""
    order = np.random.default_rng(repeat).permutation(data.n)
    test, train = order[: data.n // 5], order[data.n // 5 :]

    def error(beta: FloatArray, intercept: float) -> float:
        return float(np.mean((data.y[test] - intercept - data.X[test] @ beta) ** 2))

    return data.X[train], data.y[train], error, 0.0


def problems(ask: argparse.Namespace) -> Iterator[Problem]:
    """Name, repeat, and how to make it."""
    for shape in SHAPES:
        n, p = map(int, shape.split("x"))
        for snr in SNRS:
            for seed in range(ask.seeds):
                yield f"{shape} SNR {snr:g}", seed, partial(drawn, n, p, snr, seed)
    for name, target in TARGETS.items():
        path = Path(ask.data) / f"{name}.csv"
        if not path.exists():
            print(f"{name}: left out, {path.name} is not in the folder of --data", file=sys.stderr)
            continue
        data = read_dataset(path, target)
        for repeat in range(ask.splits):
            yield name, repeat, partial(split, data, repeat)


def measured(ask: argparse.Namespace) -> list[Row]:
    """Rows of all problems asked for, those kept included."""
    kept = Path(ask.kept) if ask.kept else None
    rows: dict[tuple[str, int], Row] = {}
    if kept is not None and kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            row = Row(**json.loads(line))
            rows[row.problem, row.repeat] = row
    todo = [one for one in problems(ask) if one[:2] not in rows and all(word in one[0] for word in ask.only)]
    if not todo:
        return list(rows.values())
    warm_up()
    for name, repeat, make in todo:
        X, y, score, noise = make()
        row = compared(name, repeat, X, y, score, noise, ask.time_limit)
        rows[name, repeat] = row
        told = row.noise + row.ours, row.noise + row.abess, row.noise + row.lasso
        print(name, repeat, row.status, f"{row.seconds:.1f} s, tau {row.tau}, gamma {row.gamma:.3g}, region",
              row.region, *(f"{value:.4g}" for value in told), flush=True)  # fmt: skip
        if kept is not None:
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    return list(rows.values())


def geometric(values: list[float]) -> float:
    """Geometric mean."""
    return math.exp(float(np.mean(np.log(values))))


def mean(values: list[float]) -> float:
    """Mean; one number for all repeats of a problem."""
    return float(np.mean(values))


def synthetic_table(rows: list[Row]) -> str:
    """One line for each shape and SNR, means over the seeds, and the geometric means of the ratios."""
    names = list(dict.fromkeys(row.problem for row in rows if row.noise > 0.0))
    lines: list[list[object]] = []
    for name in names:
        some = [row for row in rows if row.problem == name]
        total = [(row.noise + row.ours, row.noise + row.abess, row.noise + row.lasso) for row in some]
        lines.append([
            name, len(some), "/".join(sorted({row.status for row in some})), mean([row.seconds for row in some]),
            " ".join(str(row.tau) for row in some), " ".join(f"{row.gamma:.2g}" for row in some),
            " ".join(str(row.region) for row in some), mean([row.cv_error for row in some]),
            mean([one[0] for one in total]), geometric([one[0] / one[1] for one in total]),
            max(one[0] / one[1] for one in total), geometric([one[0] / one[2] for one in total]),
            mean([row.ours for row in some]), mean([row.abess for row in some]), mean([row.lasso for row in some]),
            geometric([row.ours / row.abess for row in some]),
        ])  # fmt: skip
    head = [
        "rows x columns", "seeds", "status", "s", "tau", "gamma", "region", "CV error", "risk", "/ abess", "worst",
        "/ LassoCV", "excess", "excess abess", "excess LassoCV", "excess / abess",
    ]  # fmt: skip
    if not lines:
        return ""
    every = [row for row in rows if row.noise > 0.0]
    ratios = [(row.noise + row.ours) / (row.noise + row.abess) for row in every]
    plain = [(row.noise + row.ours) / (row.noise + row.lasso) for row in every]
    excess = [row.ours / row.abess for row in every]
    said = (
        f"Risk / abess over all {len(every)} problems: geometric mean {geometric(ratios):.3f}, largest "
        f"{max(ratios):.3f}; risk / LassoCV {geometric(plain):.3f}. Excess risk / abess: {geometric(excess):.3f}, "
        f"largest {max(excess):.2f}. Of the means of {len(lines)} lines: largest risk / abess "
        f"{max(float(str(line[9])) for line in lines):.3f}."
    )
    return f"## Synthetic\n\n{table(head, lines)}\n\n{said}\n"


def real_table(rows: list[Row]) -> str:
    """One line a data set, and the mean over the sets."""
    names = list(dict.fromkeys(row.problem for row in rows if row.noise == 0.0))
    lines: list[list[object]] = []
    for name in names:
        some = [row for row in rows if row.problem == name]
        mine, peer, other = (mean([getattr(row, method) for row in some]) for method in ("ours", "abess", "lasso"))
        features = np.mean([[row.tau, row.size_abess, row.size_lasso] for row in some], axis=0)
        lines.append([
            name, len(some), "/".join(sorted({row.status for row in some})), mean([row.seconds for row in some]),
            mine, peer, other, mine / peer, mine / other, peer / other,
            " / ".join(f"{size:.1f}" for size in features), geometric([row.gamma for row in some]),
            mean([row.cv_error for row in some]),
        ])  # fmt: skip
    if not lines:
        return ""
    head = [
        "data", "splits", "status", "s", "ours", "abess", "LassoCV", "ours / abess", "ours / LassoCV",
        "abess / LassoCV", "features", "gamma", "CV error",
    ]  # fmt: skip
    said = " ".join(
        f"Mean of {what} over the sets: {mean([float(str(line[at])) for line in lines]):.3f}."
        for at, what in ((7, "ours / abess"), (8, "ours / LassoCV"), (9, "abess / LassoCV"))
    )
    return f"## Real\n\n{table(head, lines)}\n\n{said}\n"


def main() -> int:
    """Run, and print the tables."""
    parser = parser_of(__doc__, out=True)
    parser.add_argument("--data", default=str(INSTANCES), help="folder of the real data [instances]")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="problems whose name holds all of these")
    parser.add_argument("--seeds", type=int, help="of each synthetic problem [3]")
    parser.add_argument("--splits", type=int, help="of each real one [10]")
    parser.add_argument("--time-limit", type=float, help="seconds of a run of ours [20]")
    parser.add_argument("--quick", action="store_true", help="one seed, two splits, 5 s, where not given")
    parser.add_argument("--kept", metavar="FILE", help="measured runs, one a line: read, and added to")
    ask = parser.parse_args()
    for name, full, quick in (("seeds", 3, 1), ("splits", 10, 2), ("time_limit", 20.0, 5.0)):
        if getattr(ask, name) is None:
            setattr(ask, name, quick if ask.quick else full)
    load = os.getloadavg()[0]
    rows = measured(ask)
    when = f"Load before the run {load:.1f}, after {os.getloadavg()[0]:.1f}. Limit {ask.time_limit:g} s."
    head = f"# Test error under a limit\n\n{environment()}\n\n{when}\n\n{__doc__}"
    parts = [head, synthetic_table(rows), real_table(rows)]
    deliver("\n".join(part for part in parts if part), ask.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
