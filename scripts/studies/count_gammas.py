"""Which gammas predict counts best: test half deviance of the pair that a grid chooses, and how often it is at an end.

    python scripts/studies/count_gammas.py run --data FOLDER --out FILE [--splits 10]
    python scripts/studies/count_gammas.py report --out FILE [--sets]

FOLDER holds comma-separated files of numbers with a last column of counts, before it one called `exposure` where rows
have exposures. Of each, 80 and 300 rows are drawn to fit (four fifths where there are fewer) and at most 2,000
others score; synthetic designs of eight true features stand beside them, with mean counts from 0.1 to 30, some of which
scatter more than the Poisson law has it. What is kept and judged is what `two_class_gammas.py` keeps and judges.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import _runs  # noqa: F401  (one thread, before numpy is loaded)
import numpy as np

from sparsecv_mio.model_space import default_gammas, gammas, parse_taus
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.responses import row_loss
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.words import Loss

GAMMAS = np.geomspace(1e-5, 1e3, 25)  # 2.15 times the one before
DESIGNS = ((80, 12, 1.0, 0.0), (200, 20, 0.1, 0.0), (200, 20, 3.0, 1.0), (400, 30, 30.0, 0.5))
FOLDS, MOST_SCORED, ROWS = 5, 2_000, (80, 300)


class Rows(NamedTuple):
    """Features, counts and exposures of some rows."""

    X: np.ndarray
    y: np.ndarray
    e: np.ndarray

    def at(self, rows: np.ndarray) -> Rows:
        """Some of them."""
        return Rows(*(values[rows] for values in self))


def drawn(ask: argparse.Namespace) -> Iterator[tuple[str, Rows, Rows]]:
    """Yield the name of a draw, the rows to fit and those that score."""
    for split in range(ask.splits):
        for file in sorted(Path(ask.data).glob("*.csv")):
            head = file.open().readline().strip().split(",")
            table = np.genfromtxt(file, delimiter=",", skip_header=1)
            last = -2 if head[-2] == "exposure" else -1
            e = table[:, -2] if last == -2 else np.ones(len(table))
            rows = Rows(table[:, :last], table[:, -1], e)
            order = np.random.default_rng(split).permutation(len(table))
            for count in sorted({min(count, len(table) * 4 // 5) for count in ROWS}):
                fit, score = order[:count], order[count : count + MOST_SCORED]
                if len(score) >= 40 or count == len(table) * 4 // 5:
                    yield f"{file.stem} {count}", rows.at(fit), rows.at(score)
        for n, p, level, scatter in DESIGNS:
            draw = np.random.default_rng([split, n, p])
            X = draw.normal(size=(n + MOST_SCORED, p))
            for j in range(1, p):
                X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
            mean = level * np.exp(0.25 * X[:, :: max(p // 8, 1)][:, :8] @ np.tile([1.0, -1.0], 4))
            mean = mean * (draw.gamma(1.0 / scatter, scatter, len(X)) if scatter else 1.0)
            rows = Rows(X, draw.poisson(mean).astype(float), np.ones(len(X)))
            yield f"synthetic {n} {p} {level}", rows.at(np.arange(n)), rows.at(np.arange(n, len(X)))


def test_losses(fit: Rows, score: Rows, taus: list[int]) -> np.ndarray:
    """(G, T) summed half deviances of scored rows at the supports that local search finds in the others."""
    loss, losses = row_loss(Loss.POISSON), np.empty((len(GAMMAS), len(taus)))
    ones = np.ones(fit.X.shape[1])
    whole = GlmSubsets(GlmProblem(fit.X, fit.y / fit.e, fit.e, ones, 1.0, loss=loss))
    starts: list[np.ndarray] = []
    for g in reversed(range(len(GAMMAS))):
        here = whole.with_gamma(float(GAMMAS[g]))
        supports = [here.solve([tau], starts=starts, effort=0).by_size[tau].support for tau in taus]
        fits, starts = here.refit(supports), supports
        rates = score.X @ fits.coefficients.T + fits.intercept
        losses[g] = (score.e[:, None] * loss.losses(rates, (score.y / score.e)[:, None])).sum(axis=0)
    return losses


def run(ask: argparse.Namespace) -> None:
    """Add a line of JSON a draw to the file."""
    place, begun = Path(ask.out), time.monotonic()
    known = [json.loads(line)["draw"] for line in place.read_text().splitlines()] if place.exists() else []
    with place.open("a") as out:
        for number, (name, fit, score) in enumerate(drawn(ask)):
            if number in known:
                continue
            if time.monotonic() - begun > ask.seconds:
                print("stopped: the same command carries on")
                return
            varies = np.ptp(fit.X, axis=0) > 0.0
            centre = fit.X[:, varies].mean(axis=0)
            length = np.sqrt(((fit.X[:, varies] - centre) ** 2).sum(axis=0))
            fit, score = (Rows((rows.X[:, varies] - centre) / length, rows.y, rows.e) for rows in (fit, score))
            fold = np.random.default_rng(number).permutation(len(fit.y)) % FOLDS
            n_train = int((fold != 0).sum())
            taus = [tau for tau in parse_taus(None, fit.X.shape[1], n_train) if tau < n_train // 2]
            cv = sum(test_losses(fit.at(fold != k), fit.at(fold == k), taus) for k in range(FOLDS))
            test = test_losses(fit, score, taus) / len(score.y)
            line = {
                "draw": number, "name": name, "n": len(fit.y), "p": fit.X.shape[1], "counts": float(fit.y.sum()),
                "cv": np.round(cv / len(fit.y), 7).tolist(), "test": np.round(test, 7).tolist(),
            }  # fmt: skip
            out.write(json.dumps(line) + "\n")
            out.flush()


def grids() -> dict[str, Any]:
    """Return the grids judged, each a function of p, rows and counts of a training set to gammas."""
    made: dict[str, Any] = {"default of squares": lambda p, n, c: default_gammas(p, n), "all": lambda p, n, c: GAMMAS}
    for span in ("0.3:30:5", "0.3:300:7", "0.3:3000:9", "0.1:1000:9", "1:1000:7", "3:3000:7", "3:300:5"):
        made[f"{span} over rows"] = lambda p, n, c, span=span: np.array(gammas(span, "gammas")) / n
    for span in ("0.3:30:5", "1:100:5", "0.3:300:7", "1:300:6", "1:1000:7", "3:300:5"):
        made[f"{span} times counts over rows"] = lambda p, n, c, span=span: np.array(gammas(span, "gammas")) * c / n**2
    for span in ("1e-3:10:5", "1e-3:10:9", "1e-2:10:4", "1e-2:100:5", "1e-3:1:7", "1e-3:100:6"):
        made[span] = lambda p, n, c, span=span: np.array(gammas(span, "gammas"))
    return made


def report(ask: argparse.Namespace) -> None:
    """Print the loss of every grid, and how often its best pair is at an end, by data set."""
    lines = [json.loads(line) for line in Path(ask.out).read_text().splitlines()]
    names, kinds = sorted({line["name"] for line in lines}), grids()
    table: dict[str, dict[str, list[tuple[float, ...]]]] = {name: {kind: [] for kind in kinds} for name in names}
    for line in lines:
        cv, test, n = np.array(line["cv"]), np.array(line["test"]), line["n"] * 4 // 5
        cv[~np.isfinite(cv)] = np.inf
        for kind, of in kinds.items():
            asked = of(line["p"], n, line["counts"] * n / line["n"])
            near = np.unique([int(np.argmin(np.abs(np.log(GAMMAS / gamma)))) for gamma in asked])
            at = near[int(np.argmin(cv[near].min(axis=1)))]
            lost = test[at, int(np.argmin(cv[at]))] / test.min() - 1.0
            table[line["name"]][kind].append((lost, at == near[0], at == near[-1], len(asked)))
    print(f"{len(lines)} draws of {len(names)} sets; test half deviance over the least of the table, less 1")
    for kind in kinds:
        means = np.array([np.mean(table[name][kind], axis=0) for name in names])
        of_all = means.mean(axis=0)
        worst = int(means[:, 0].argmax())
        print(f"{kind:34s} {of_all[3]:4.0f} gammas mean {of_all[0]:.4f}  median {np.median(means[:, 0]):.4f}  "
              f"least {of_all[1]:.2f}  largest {of_all[2]:.2f} worst {means[worst, 0]:.2f} {names[worst]}")  # fmt: skip
    if ask.sets:
        for name in names:
            print(name, {kind: np.round(np.mean(table[name][kind], axis=0)[:3], 3).tolist() for kind in kinds})


def main() -> None:
    """Run or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--data")
    parser.add_argument("--out", required=True)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end `run` after so many")
    parser.add_argument("--sets", action="store_true", help="figures of every data set too")
    ask = parser.parse_args()
    (run if ask.what == "run" else report)(ask)


if __name__ == "__main__":
    main()
