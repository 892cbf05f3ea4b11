"""Default ranges of tau and gamma against data: what would a wider or a narrower grid have chosen, and how well?

    python scripts/bench/defaults.py --data FOLDER --tables FOLDER --out build/defaults.md [--splits 10 --seeds 3]

For every problem of `risk.py` (synthetic data and 80/20 splits of real ones) the ten folds and all rows search for
supports over a grid wider than any default: tau 1:50, fifteen gammas from 1e-3 to 10 and four beyond at the same
distance. That makes two tables by (gamma, tau): the CV error, and the error on new rows of the fit on all rows. A grid
that is part of the wide one chooses the pair with the least CV error in its part; its loss is the ratio of the error on
new rows there to the least of the whole table, which nobody could have known. `--tables` keeps the tables, one file a
problem: those in it are not made again.

`--wide` judges the least gamma where there are more columns than rows, on data of its own: designs (`WIDE`, the error
on 2,000 new rows) with sparse and dense truths, weak and strong signals, neighbours correlated or columns that share
factors; and a few rows of real data (`FEW_ROWS`, the error on all others).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from _common import INSTANCES, FloatArray, deliver, environment, parser_of, synthetic, table
from risk import Problem, Score, problems

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.parallel import Moment
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.problems.fold_local_search import FoldPaths, search_all_passes
from sparsecv_mio.search.state.pairs import Grid

LARGEST = 50
GAMMAS = 10.0 ** (-3.0 + 4.0 / 14.0 * np.arange(19))
Drawn = tuple[FloatArray, FloatArray, Score, float]  # X, y, what scores a fit, the variance of the noise if not in it
Design = tuple[int, int, int, float | None, float]
Sizes = Callable[[int], int]  # rows of the smallest training set -> largest tau
TAUS: dict[str, Sizes] = {
    "1:10": lambda n: 10,
    "1:20": lambda n: 20,
    "1:30": lambda n: 30,
    "1:50": lambda n: 50,
    "n/4": lambda n: n // 4,
    "n/8": lambda n: n // 8,
    "10 to 30 by n/8": lambda n: min(30, max(10, n // 8)),
    "10 to 50 by n/8": lambda n: min(50, max(10, n // 8)),
}
CHOSEN = "10 to 50 by n/8"
RANGES = {  # least and largest gamma, and the step on the wide grid
    "1e-3:10:15": (1e-3, 10.0, 1),
    "1e-3:10:8": (1e-3, 10.0, 2),
    "1e-3:6.1:5": (1e-3, 10.0, 3),
    "1e-3:1.4:12": (1e-3, 1.5, 1),
    "1e-2:10": (9.9e-3, 10.0, 1),
    "0.1:10": (0.09, 10.0, 1),
    "1e-3:139:19": (1e-3, 150.0, 1),
}
LEAST = (1e-3, 0.0072, 0.027, 0.052, 0.1, 0.19, 0.37)  # gammas that a grid for wide data may begin with
# rows, columns, true features (0: fifty of falling weight), correlation of neighbours (None: ten factors), SNR
WIDE: tuple[Design, ...] = (
    (60, 300, 4, 0.5, 2.0), (60, 1000, 4, 0.5, 5.0), (100, 400, 4, 0.9, 2.0), (100, 400, 8, 0.9, 5.0),
    (100, 1000, 8, 0.0, 2.0), (150, 400, 16, 0.5, 5.0), (200, 500, 16, 0.5, 2.0), (200, 1000, 16, 0.5, 5.0),
    (100, 500, 8, 0.5, 50.0), (100, 500, 8, 0.5, 500.0), (150, 500, 8, 0.9, 0.5), (60, 1000, 0, None, 1.0),
    (60, 1000, 0, None, 5.0), (100, 500, 0, None, 2.0), (100, 2000, 0, 0.9, 5.0), (200, 500, 0, 0.5, 5.0),
)  # fmt: skip
NEW_ROWS = 2000
FEW_ROWS = {"diabetes64": ("y", 60), "housing2": ("medv", 80), "topgear": ("MPG", 40), "topgear_int": ("MPG", 190)}


@dataclass(frozen=True)
class Tables:
    """CV error and error on new rows by (gamma, tau) of one problem."""

    problem: str
    repeat: int
    n_train: int
    gammas: FloatArray
    cv: FloatArray
    new: FloatArray

    def choice(self, gammas: tuple[float, float, int], sizes: Sizes) -> tuple[int, int]:
        """Pair with the least CV error in a part of the grid."""
        low, high, step = gammas
        rows = np.flatnonzero((self.gammas > low * (1.0 - 1e-9)) & (self.gammas < high * (1.0 + 1e-9)))[::step]
        part = self.cv[rows, : max(1, sizes(self.n_train))]
        g, t = np.unravel_index(int(part.argmin()), part.shape)
        return int(rows[g]), int(t)

    def loss(self, gammas: tuple[float, float, int], sizes: Sizes) -> float:
        """Logarithm of the error on new rows of that pair relative to the least of all."""
        return float(np.log(self.new[self.choice(gammas, sizes)] / self.new.min()))


def searched(X: FloatArray, y: FloatArray, score: Score, seconds: float) -> dict[str, FloatArray]:
    """Return the two tables of one problem as arrays, after so many CPU seconds of search."""
    dataset = Dataset.from_arrays(X, y)
    data, folds = standardize(dataset), make_folds("10", dataset)
    n_train = folds.least_training
    grid = Grid.of(GAMMAS.tolist(), list(range(1, min(LARGEST, data.dataset.p, n_train - 1) + 1)), data.dataset.p)
    end = time.process_time() + seconds
    found: dict[int, FoldPaths] = {}
    for paths in search_all_passes(data, folds.with_all_rows(), grid, until=Moment(lambda: time.process_time() > end)):
        found[paths.fold] = paths
    held_out = np.sum([found[fold].held_out for fold in range(folds.k)], axis=0)
    new = np.empty(held_out.shape)
    for g, t in np.ndindex(new.shape):
        new[g, t] = score(*on_all_rows(data, float(grid.gammas[g]), found[folds.k], (g, t)))
    cv = held_out * data.y_unit**2 / folds.sizes.sum()
    return {"cv": cv, "new": new, "gammas": grid.gammas, "n_train": np.array(n_train, dtype=float)}


def on_all_rows(data: StandardData, gamma: float, paths: FoldPaths, pair: tuple[int, int]) -> tuple[FloatArray, float]:
    """Coefficients and intercept of the support of a pair, in units of the file."""
    support = paths.support(*pair)
    fit = refit_rows(data, slice(0, data.n), support, gamma)
    mean = np.zeros(data.q)
    mean[support] = fit.v_mean
    named, intercept = data.coefficients(support, fit.beta, mean, fit.r_mean)
    beta = np.zeros(data.dataset.p)
    beta[[data.dataset.names.index(name) for name in named]] = list(named.values())
    return beta, intercept


def wide_name(design: Design) -> str:
    """Name of a design of `WIDE`."""
    n, p, k, rho, snr = design
    return f"{n}x{p}, {k or 'dense'}, {'factors' if rho is None else f'rho {rho:g}'}, SNR {snr:g}"


def wide(design: Design, seed: int) -> Drawn:
    """Draw data of a design of `WIDE`, and what scores a fit on new rows of it."""
    n, p, k, rho, snr = design
    rng, rows = np.random.default_rng([seed, n, p, k]), n + NEW_ROWS
    X, _ = synthetic(rows, p, 1, seed + 1000, rho=rho or 0.0)
    if rho is None:
        X = 0.6 * X + 0.8 * rng.standard_normal((rows, 10)) @ rng.standard_normal((10, p)) / np.sqrt(10.0)
    beta = np.zeros(p)
    beta[rng.choice(p, k or 50, replace=False)] = 1.0 if k else rng.choice([-1.0, 1.0], 50) * 0.93 ** np.arange(50)
    signal = X @ beta
    y = signal + rng.standard_normal(rows) * np.sqrt(signal.var() / snr)

    def error(fitted: FloatArray, intercept: float) -> float:
        return float(np.mean((y[n:] - intercept - X[n:] @ fitted) ** 2))

    return X[:n], y[:n], error, 0.0


def few_rows(data: Dataset, n: int, seed: int) -> Drawn:
    """Draw rows to fit; the others score."""
    order = np.random.default_rng(seed).permutation(data.n)
    fit, new = order[:n], order[n:]

    def error(fitted: FloatArray, intercept: float) -> float:
        return float(np.mean((data.y[new] - intercept - data.X[new] @ fitted) ** 2))

    return data.X[fit], data.y[fit], error, 0.0


def wide_problems(ask: argparse.Namespace) -> Iterator[Problem]:
    """Yield the problems of `WIDE` and of `FEW_ROWS`."""
    for design in WIDE:
        for seed in range(ask.seeds):
            yield wide_name(design), seed, partial(wide, design, seed)
    for name, (target, n) in FEW_ROWS.items():
        data = read_dataset(Path(ask.data) / f"{name}.csv", target)
        for seed in range(ask.splits):
            yield f"{name}, {n} rows", seed, partial(few_rows, data, n, seed)


def all_tables(ask: argparse.Namespace) -> list[Tables]:
    """Read the tables that are kept, and make the others."""
    folder = Path(ask.tables)
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for name, repeat, make in wide_problems(ask) if ask.wide else problems(ask):
        path = folder / f"{name}_{repeat}.npz"
        if not path.exists() and not ask.only_kept:
            X, y, score, noise = make()
            made = searched(X, y, score, ask.seconds)
            np.savez(path, allow_pickle=False, **(made | {"new": made["new"] + noise}))
            print(name, repeat, flush=True)
        if path.exists():
            with np.load(path) as held:
                out.append(Tables(name, repeat, int(held["n_train"]), held["gammas"], held["cv"], held["new"]))
    return out


def losses(tables: list[Tables], ways: dict[str, tuple[tuple[float, float, int], Sizes]]) -> str:
    """Geometric means of the ratios: a line for each problem, one for each kind."""
    names = list(dict.fromkeys(one.problem for one in tables))
    by_name = {
        name: np.mean([[one.loss(*way) for way in ways.values()] for one in tables if one.problem == name], axis=0)
        for name in names
    }
    lines = [[name, *np.exp(mean).tolist()] for name, mean in by_name.items()]
    for kind, wanted in (("SNR 5", "SNR 5"), ("SNR 0.5", "SNR 0.5"), ("real", "")):
        some = [mean for name, mean in by_name.items() if (name.endswith(wanted) if wanted else "SNR" not in name)]
        if some:
            lines.append([f"mean: {kind}", *np.exp(np.mean(some, axis=0)).tolist()])
    lines.append(["mean of all", *np.exp(np.mean(list(by_name.values()), axis=0)).tolist()])
    return table(["problem", *ways], lines)


def winners(tables: list[Tables]) -> str:
    """Which pairs of the wide grid have the least CV error."""
    whole = (GAMMAS[0], GAMMAS[-1], 1)
    lines: list[list[object]] = []
    for name in dict.fromkeys(one.problem for one in tables):
        some = [one for one in tables if one.problem == name]
        pairs = [one.choice(whole, lambda n: LARGEST) for one in some]
        taus = sorted(t + 1 for _, t in pairs)
        gammas = sorted(float(one.gammas[g]) for one, (g, _) in zip(some, pairs, strict=True))
        lines.append([
            name, some[0].n_train, len(some), " ".join(map(str, taus)), " ".join(f"{gamma:.2g}" for gamma in gammas),
        ])  # fmt: skip
    return table(["problem", "training rows", "repeats", "tau", "gamma"], lines)


def main() -> int:
    """Make the tables that are missing, and print what they say."""
    parser = parser_of(__doc__, out=True)
    parser.add_argument("--data", default=str(INSTANCES), help="folder of the real data [instances]")
    parser.add_argument("--tables", required=True, help="folder of the tables, read and added to")
    parser.add_argument("--seeds", type=int, default=3, help="of each synthetic problem [3]")
    parser.add_argument("--splits", type=int, default=10, help="of each real one [10]")
    parser.add_argument("--seconds", type=float, default=7.0, help="CPU seconds of a search [7]")
    parser.add_argument("--wide", action="store_true", help="designs with more columns than rows")
    parser.add_argument("--only-kept", action="store_true", help="make no table")
    ask = parser.parse_args()
    tables = all_tables(ask)
    if ask.wide:
        ways = {f"from {low:g}": ((0.93 * low, 10.0, 1), TAUS[CHOSEN]) for low in LEAST}
        deliver(f"## The least gamma of wide data\n\n{environment()}\n\n{losses(tables, ways)}\n", ask.out)
        return 0
    fifteen = RANGES["1e-3:10:15"]
    by_tau = losses(tables, {name: (fifteen, sizes) for name, sizes in TAUS.items()})
    by_gamma = losses(tables, {name: (gammas, TAUS[CHOSEN]) for name, gammas in RANGES.items()})
    deliver("\n\n".join([
        "# Default ranges of tau and gamma", environment(), __doc__ or "",
        f"## Ranges of tau, fifteen gammas\n\n{by_tau}", f"## Ranges of gamma, tau {CHOSEN}\n\n{by_gamma}",
        f"## Pairs of the wide grid with the least CV error\n\n{winners(tables)}",
    ]) + "\n", ask.out)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
