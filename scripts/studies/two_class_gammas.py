"""Which gammas predict two classes best: test log loss of the pair that a grid chooses, against every pair's.

    python scripts/studies/two_class_gammas.py run --data FOLDER --out FILE [--splits 10] [--rows 80 300]
    python scripts/studies/two_class_gammas.py report --out FILE [--sets]

FOLDER holds comma-separated files of numbers with a last column of two classes. Of each, some rows are drawn to fit
(80, 300 and four fifths, where there are as many) and at most 2,000 others score. By local search alone, five
stratified folds and all rows get a support at every gamma of a grid that is wider than any default and every tau of
the default; what is kept is the CV error and the test log loss by (gamma, tau). Synthetic designs stand beside the
files: eight true features, correlation 0.5.

A grid then chooses the pair with the least CV error in its part; what it loses is the test log loss there less the
least of the whole table, which nobody could have known. (Ratios would be all of separable data, whose losses are
nearly 0.)
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _runs  # noqa: F401  (one thread, before numpy is loaded)
import numpy as np

from sparsecv_mio.model_space import default_gammas, gammas, parse_taus
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.trees.glm_subsets import GlmSubsets

GAMMAS = np.geomspace(1e-5, 30.0, 27)  # 1.774 times the one before
FOLDS, MOST_SCORED = 5, 2_000
Drawn = tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def drawn(ask: argparse.Namespace) -> Iterator[Drawn]:
    """Yield `(name, X, y, X of test rows, y of those)`, y -1 and 1."""
    for split in range(ask.splits):
        for file in sorted(Path(ask.data).glob("*.csv")):
            table = np.genfromtxt(file, delimiter=",", skip_header=1, dtype=str)
            X, y = table[:, :-1].astype(float), np.where(table[:, -1] == np.unique(table[:, -1])[-1], 1.0, -1.0)
            order = np.random.default_rng(split).permutation(len(y))
            for rows in sorted({min(rows, len(y) * 4 // 5) for rows in (*ask.rows, 1_000)}):
                fit, score = order[:rows], order[rows : rows + MOST_SCORED]
                if len(score) >= 40:
                    yield f"{file.stem} {rows}", X[fit], y[fit], X[score], y[score]
        for n, p, strength in ((80, 20, 0.6), (200, 20, 0.3), (200, 60, 1.0), (400, 40, 0.5), (1000, 40, 0.2)):
            draw = np.random.default_rng([split, n, p])
            X = draw.normal(size=(n + MOST_SCORED, p))
            for j in range(1, p):
                X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
            truth = np.zeros(p)
            truth[:: p // 8][:8] = strength
            y = np.where(X @ truth + draw.logistic(size=len(X)) > 0.0, 1.0, -1.0)
            yield f"synthetic {n} {p} {strength}", X[:n], y[:n], X[n:], y[n:]


def folds_of(y: np.ndarray) -> np.ndarray:
    """(n,) fold of each row, dealt by class."""
    fold = np.empty(len(y), dtype=int)
    for label in (-1.0, 1.0):
        places = np.flatnonzero(y == label)
        fold[places] = np.arange(len(places)) % FOLDS
    return fold


Rows = tuple[np.ndarray, np.ndarray]


def test_losses(fit: Rows, score: Rows, taus: list[int]) -> np.ndarray:
    """(G, T) summed log losses of scored rows at the supports that local search finds in the others."""
    (X, y), (Z, labels), losses = fit, score, np.empty((len(GAMMAS), len(taus)))
    whole = GlmSubsets(GlmProblem(X, y, np.ones(len(y)), np.ones(X.shape[1]), 1.0))
    starts: list[np.ndarray] = []
    for g in reversed(range(len(GAMMAS))):
        here = whole.with_gamma(float(GAMMAS[g]))
        supports = [here.solve([tau], starts=starts, effort=0).by_size[tau].support for tau in taus]
        fits, starts = here.refit(supports), supports
        margins = labels[:, None] * (Z @ fits.coefficients.T + fits.intercept)
        losses[g] = np.logaddexp(0.0, -margins).sum(axis=0)
    return losses


def run(ask: argparse.Namespace) -> None:
    """Add a line of JSON a draw to the file."""
    with Path(ask.out).open("a") as out:
        for name, X, y, Z, labels in drawn(ask):
            begin = time.process_time()
            varies = np.ptp(X, axis=0) > 0.0
            X, Z = X[:, varies], Z[:, varies]
            centre = X.mean(axis=0)
            length = np.sqrt(((X - centre) ** 2).sum(axis=0))
            X, Z, fold = (X - centre) / length, (Z - centre) / length, folds_of(y)
            if min((y[fold != k] == label).sum() for k in range(FOLDS) for label in (-1.0, 1.0)) < 2:
                continue
            n_train = int((fold != 0).sum())
            taus = [tau for tau in parse_taus(None, X.shape[1], n_train) if tau < n_train // 2]
            cv = np.zeros((len(GAMMAS), len(taus)))
            for k in range(FOLDS):
                cv += test_losses((X[fold != k], y[fold != k]), (X[fold == k], y[fold == k]), taus)
            test = test_losses((X, y), (Z, labels), taus) / len(labels)
            line = {
                "name": name, "n": len(y), "p": X.shape[1], "taus": taus, "cv": np.round(cv / len(y), 6).tolist(),
                "test": np.round(test, 6).tolist(),
            }  # fmt: skip
            out.write(json.dumps(line) + "\n")
            out.flush()
            print(name, X.shape, f"{time.process_time() - begin:.1f} s", flush=True)


SPANS = (
    "1e-4:10:11", "3e-4:3:9", "3e-4:1:8", "1e-3:3:8", "1e-3:1:7", "1e-3:1:5", "1e-3:1:4", "3e-3:1:6", "3e-3:1:4",
    "3e-3:0.3:5", "3e-3:0.3:3", "1e-2:1:5", "1e-2:1:3", "1e-2:0.3:3", "3e-2:1:4", "1e-1:1:3",
)  # fmt: skip
SPANS_OVER_ROWS = (
    "0.1:30:6", "0.1:100:7", "0.3:10:4", "0.3:30:3", "0.3:30:5", "0.3:30:9", "0.3:100:6", "1:30:4", "1:100:5",
)  # fmt: skip


def grids() -> dict[str, Any]:
    """Return the grids judged, each a function of `(p, n_train)` to gammas."""
    made: dict[str, Any] = {"default of squares": default_gammas, "all": lambda p, n: GAMMAS}
    for span in SPANS:
        made[span] = lambda p, n, span=span: np.array(gammas(span, "gammas"))
    for span in SPANS_OVER_ROWS:
        made[f"{span} over rows"] = lambda p, n, span=span: np.array(gammas(span, "gammas")) / n
    return made


def report(ask: argparse.Namespace) -> None:
    """Print the loss of every grid by data set."""
    lines = [json.loads(line) for line in Path(ask.out).read_text().splitlines()]
    names, kinds = sorted({line["name"] for line in lines}), grids()
    table: dict[str, dict[str, list[float]]] = {name: {kind: [] for kind in kinds} for name in names}
    for line in lines:
        cv, test = np.array(line["cv"]), np.array(line["test"])
        for kind, of in kinds.items():
            asked = of(line["p"], line["n"] * 4 // 5)
            near = np.unique([int(np.argmin(np.abs(np.log(GAMMAS / gamma)))) for gamma in asked])
            at = near[int(np.argmin(cv[near].min(axis=1)))]
            table[line["name"]][kind].append(test[at, int(np.argmin(cv[at]))] - test.min())
    for kind in kinds:
        means = np.array([np.mean(table[name][kind]) for name in names])
        small = np.array(["80" in name.split() for name in names])
        print(f"{kind:24s} mean {means.mean():.4f}  80 rows {means[small].mean():.4f}  more {means[~small].mean():.4f}"
              f"  worst {means.max():.3f} {names[int(means.argmax())]}")  # fmt: skip
    if ask.sets:
        for name in names:
            print(name, {kind: round(float(np.mean(table[name][kind])), 4) for kind in kinds})


def main() -> None:
    """Run or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--data")
    parser.add_argument("--out", required=True)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs="*", default=[80, 300])
    parser.add_argument("--sets", action="store_true", help="figures of every data set too")
    ask = parser.parse_args()
    (run if ask.what == "run" else report)(ask)


if __name__ == "__main__":
    main()
