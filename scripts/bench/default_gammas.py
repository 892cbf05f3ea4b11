"""Which gammas predict two classes or counts best: the test loss of the pair that a grid chooses, against every pair's.

    python scripts/bench/default_gammas.py run --loss logistic|poisson --data FOLDER --out FILE [--splits 10]
    python scripts/bench/default_gammas.py report --loss logistic|poisson --out FILE [--sets]

FOLDER holds comma-separated files of numbers with a last column of two classes or of counts, before the latter one
called `exposure` where rows have exposures. Of each, 80 and 300 rows and four fifths (counts: 80 and 300) are drawn to
fit and at most 2,000 others score. By local search alone, five folds and all rows get a support at every gamma of a
grid that is wider than any default and every tau of the default; what is kept is the CV error and the test loss by
(gamma, tau). Synthetic designs stand beside the files: eight true features, correlation 0.5; mean counts from 0.1 to
30, some of which scatter more than the Poisson law has it.

A grid then chooses the pair with the least CV error in its part. Its loss is the test loss there less the least of the
whole table, which nobody could have known; of counts the ratio of the two, less 1 (of two classes ratios would be all
of separable data, whose losses are nearly 0).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import _batches  # noqa: F401  (one thread, before numpy is loaded)
import numpy as np

from sparsecv_mio.model_space import default_gammas, gammas, parse_taus
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.responses import row_loss
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.words import Loss

FOLDS, MOST_SCORED = 5, 2_000
TABLES = {"logistic": np.geomspace(1e-5, 30.0, 27), "poisson": np.geomspace(1e-5, 1e3, 25)}  # gammas of the wide grids
ROWS = {"logistic": (80, 300, 1_000), "poisson": (80, 300)}
CLASSES = ((80, 20, 0.6), (200, 20, 0.3), (200, 60, 1.0), (400, 40, 0.5), (1000, 40, 0.2))  # rows, columns, coefficient
COUNTS = ((80, 12, 1.0, 0.0), (200, 20, 0.1, 0.0), (200, 20, 3.0, 1.0), (400, 30, 30.0, 0.5))  # mean count, scatter
SPANS = {
    "logistic": ("1e-4:10:11", "3e-4:3:9", "1e-3:3:8", "1e-3:1:7", "1e-3:1:5", "3e-3:1:6", "1e-2:1:5", "3e-2:1:4"),
    "poisson": ("1e-3:10:5", "1e-3:10:9", "1e-2:10:4", "1e-2:100:5", "1e-3:1:7", "1e-3:100:6"),
}
SPANS_OVER_ROWS = {
    "logistic": ("0.1:30:6", "0.1:100:7", "0.3:10:4", "0.3:30:5", "0.3:30:9", "0.3:100:6", "1:30:4", "1:100:5"),
    "poisson": ("0.3:30:5", "0.3:300:7", "0.3:3000:9", "0.1:1000:9", "1:1000:7", "3:3000:7", "3:300:5"),
}
Grid = Callable[[int, int], np.ndarray]  # columns and rows of a training set -> gammas


class Rows(NamedTuple):
    """Features, targets (-1 and 1, or counts) and exposures of some rows."""

    X: np.ndarray
    y: np.ndarray
    e: np.ndarray

    def at(self, rows: np.ndarray | slice) -> Rows:
        """Return some of them."""
        return Rows(*(values[rows] for values in self))


def read(file: Path, loss: str) -> Rows:
    """Read a file of two classes or of counts."""
    head = file.open().readline().strip().split(",")
    table = np.genfromtxt(file, delimiter=",", skip_header=1, dtype=str)
    if loss == "logistic":
        y = np.where(table[:, -1] == np.unique(table[:, -1])[-1], 1.0, -1.0)
        return Rows(table[:, :-1].astype(float), y, np.ones(len(y)))
    last = -2 if head[-2] == "exposure" else -1
    numbers = table.astype(float)
    return Rows(numbers[:, :last], numbers[:, -1], numbers[:, -2] if last == -2 else np.ones(len(numbers)))


def features(draw: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Draw rows of columns whose neighbours have the correlation 0.5."""
    X = draw.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    return X


def synthetic(loss: str, split: int) -> Iterator[tuple[str, int, Rows]]:
    """Yield the name of a design, the rows to fit, and all rows."""
    for n, p, *how in CLASSES if loss == "logistic" else COUNTS:
        draw = np.random.default_rng([split, n, p])
        X = features(draw, n + MOST_SCORED, p)
        if loss == "logistic":
            truth = np.zeros(p)
            truth[:: p // 8][:8] = how[0]
            y = np.where(X @ truth + draw.logistic(size=len(X)) > 0.0, 1.0, -1.0)
        else:
            level, scatter = how
            mean = level * np.exp(0.25 * X[:, :: max(p // 8, 1)][:, :8] @ np.tile([1.0, -1.0], 4))
            y = draw.poisson(mean * (draw.gamma(1.0 / scatter, scatter, len(X)) if scatter else 1.0)).astype(float)
        yield f"synthetic {n} {p} {how[0]}", n, Rows(X, y, np.ones(len(X)))


def drawn(ask: argparse.Namespace) -> Iterator[tuple[str, Rows, Rows]]:
    """Yield the name of a draw, the rows to fit and those that score, columns centred and of length 1."""
    for split in range(ask.splits):
        for file in sorted(Path(ask.data).glob("*.csv")):
            rows = read(file, ask.loss)
            order, most = np.random.default_rng(split).permutation(len(rows.y)), len(rows.y) * 4 // 5
            for count in sorted({min(count, most) for count in ROWS[ask.loss]}):
                fit, score = order[:count], order[count : count + MOST_SCORED]
                if len(score) >= 40 or (count == most and ask.loss == "poisson"):
                    yield f"{file.stem} {count}", *scaled(rows.at(fit), rows.at(score))
        for name, n, rows in synthetic(ask.loss, split):
            yield name, *scaled(rows.at(slice(n)), rows.at(slice(n, None)))


def scaled(fit: Rows, score: Rows) -> tuple[Rows, Rows]:
    """Leave out columns that do not vary in the rows to fit, and scale the others."""
    varies = np.ptp(fit.X, axis=0) > 0.0
    centre = fit.X[:, varies].mean(axis=0)
    length = np.sqrt(((fit.X[:, varies] - centre) ** 2).sum(axis=0))
    return fit._replace(X=(fit.X[:, varies] - centre) / length), score._replace(
        X=(score.X[:, varies] - centre) / length
    )


def folds_of(y: np.ndarray, loss: str, number: int) -> np.ndarray:
    """(n,) fold of each row, at random, or assigned by class."""
    if loss == "poisson":
        return np.random.default_rng(number).permutation(len(y)) % FOLDS
    fold = np.empty(len(y), dtype=int)
    for label in (-1.0, 1.0):
        places = np.flatnonzero(y == label)
        fold[places] = np.arange(len(places)) % FOLDS
    return fold


def test_losses(fit: Rows, score: Rows, taus: list[int], loss: str) -> np.ndarray:
    """(G, T) summed losses of scored rows at the supports that local search finds in the others."""
    kind, table = row_loss(Loss(loss)), TABLES[loss]
    losses, starts = np.empty((len(table), len(taus))), list[np.ndarray]()
    whole = GlmSubsets(GlmProblem(fit.X, fit.y / fit.e, fit.e, np.ones(fit.X.shape[1]), 1.0, loss=kind))
    for g in reversed(range(len(table))):
        here = whole.with_gamma(float(table[g]))
        supports = [here.solve([tau], starts=starts, effort=0).by_size[tau].support for tau in taus]
        fits, starts = here.refit(supports), supports
        margins = score.X @ fits.coefficients.T + fits.intercept
        losses[g] = (score.e[:, None] * kind.losses(margins, (score.y / score.e)[:, None])).sum(axis=0)
    return losses


def run(ask: argparse.Namespace) -> None:
    """Add a line of JSON a draw to the file; draws that are there are not made again."""
    place, begun = Path(ask.out), time.monotonic()
    known = [json.loads(line)["draw"] for line in place.read_text().splitlines()] if place.exists() else []
    with place.open("a") as out:
        for number, (name, fit, score) in enumerate(drawn(ask)):
            if number in known:
                continue
            if time.monotonic() - begun > ask.seconds:
                print("stopped: the same command carries on")
                return
            fold = folds_of(fit.y, ask.loss, number)
            if ask.loss == "logistic" and any(
                min(np.sum(fit.y[fold != k] == c) for c in (-1, 1)) < 2 for k in set(fold)
            ):
                continue
            n_train = int((fold != 0).sum())
            taus = [tau for tau in parse_taus(None, fit.X.shape[1], n_train) if tau < n_train // 2]
            cv = sum(test_losses(fit.at(fold != k), fit.at(fold == k), taus, ask.loss) for k in range(FOLDS))
            test = test_losses(fit, score, taus, ask.loss) / len(score.y)
            line = {
                "draw": number, "name": name, "n": len(fit.y), "p": fit.X.shape[1],
                "cv": np.round(cv / len(fit.y), 7).tolist(), "test": np.round(test, 7).tolist(),
            }  # fmt: skip
            out.write(json.dumps(line) + "\n")
            out.flush()
            print(name, fit.X.shape, flush=True)


def grids(loss: str) -> dict[str, Grid]:
    """Return the grids judged by name."""
    made: dict[str, Grid] = {
        "default of squares": lambda p, n: np.array(default_gammas(p, n)),
        "all": lambda p, n: TABLES[loss],
    }
    for span in SPANS[loss]:
        made[span] = lambda p, n, span=span: np.array(gammas(span, "gammas"))  # type: ignore[misc]
    for span in SPANS_OVER_ROWS[loss]:
        made[f"{span} over rows"] = lambda p, n, span=span: np.array(gammas(span, "gammas")) / n  # type: ignore[misc]
    return made


def report(ask: argparse.Namespace) -> None:
    """Print the loss of every grid, and how often its best pair is at an end, by data set."""
    lines = [json.loads(line) for line in Path(ask.out).read_text().splitlines()]
    names, kinds, wide = sorted({line["name"] for line in lines}), grids(ask.loss), TABLES[ask.loss]
    table: dict[str, dict[str, list[tuple[float, ...]]]] = {name: {kind: [] for kind in kinds} for name in names}
    for line in lines:
        cv, test, n = np.array(line["cv"]), np.array(line["test"]), line["n"] * 4 // 5
        cv[~np.isfinite(cv)] = np.inf
        for kind, of in kinds.items():
            near = np.unique([int(np.argmin(np.abs(np.log(wide / gamma)))) for gamma in of(line["p"], n)])
            at = near[int(np.argmin(cv[near].min(axis=1)))]
            reached, least = test[at, int(np.argmin(cv[at]))], test.min()
            lost = reached - least if ask.loss == "logistic" else reached / least - 1.0
            table[line["name"]][kind].append((lost, at == near[0], at == near[-1], len(near)))
    print(f"{len(lines)} draws of {len(names)} sets")
    small = np.array(["80" in name.split() for name in names])
    for kind in kinds:
        means = np.array([np.mean(table[name][kind], axis=0) for name in names])
        of_all, worst = means.mean(axis=0), int(means[:, 0].argmax())
        print(f"{kind:24s} {of_all[3]:4.0f} gammas mean {of_all[0]:.4f}  80 rows {means[small, 0].mean():.4f}  more "
              f"{means[~small, 0].mean():.4f}  median {np.median(means[:, 0]):.4f}  least {of_all[1]:.2f}  largest "
              f"{of_all[2]:.2f}  worst {means[worst, 0]:.3f} {names[worst]}")  # fmt: skip
    if ask.sets:
        for name in names:
            print(name, {kind: np.round(np.mean(table[name][kind], axis=0)[:3], 4).tolist() for kind in kinds})


def main() -> None:
    """Run or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--loss", choices=TABLES, required=True)
    parser.add_argument("--data", help="folder of the files")
    parser.add_argument("--out", required=True)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end `run` after so many")
    parser.add_argument("--sets", action="store_true", help="figures of every data set too")
    ask = parser.parse_args()
    (run if ask.what == "run" else report)(ask)


if __name__ == "__main__":
    main()
