"""First supports of every fold, gamma and tau: how long they take and how near the training optima they are.

Toeplitz 0.5, eight unit coefficients evenly spaced, SNR 5; 10 folds, 15 gammas (1e-3 to 10), tau 1:30. Every line is
one pass over all folds. "Missed" is the share of cells (fold, gamma, tau) whose training objective is above the
reference:

* `exact`: cells that the trees of `solve_path` close within `--seconds` a fold and gamma;
* `restarts`: the best of exchanges from supports of which a third was replaced at random, `--restarts` for every cell
  of a sample of folds and gammas, on all columns (p up to 1,000).

    python scripts/bench/first_answers.py [--sizes 200x60 1000x1000 ...] [--threads 2] [--out FILE]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator

import numpy as np
from _common import FloatArray, deliver, environment, synthetic, table

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.kernels import local_search
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.search.problems.first_supports import FoldPaths, first_supports
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.trees.every_size import solve_path

SAMPLE = [(0, 0), (0, 7), (3, 4), (5, 10), (7, 13)]  # folds and gammas that are compared
EQUAL = 1.0 + 1e-7


Pass = tuple[float, float, list[FoldPaths]]


def passes(data: StandardData, folds: FoldPlan, grid: Grid, threads: int) -> Iterator[Pass]:
    """(wall, CPU, paths of all folds) at the end of every pass."""
    wall, cpu = time.perf_counter(), time.process_time()
    now: dict[int, FoldPaths] = {}
    for count, paths in enumerate(first_supports(data, folds, grid, threads=threads), start=1):
        now[paths.fold] = paths
        if count % folds.k == 0:
            yield time.perf_counter() - wall, time.process_time() - cpu, [now[fold] for fold in range(folds.k)]


def exact(problem: SparseProblem, taus: list[int], paths: FoldPaths, g: int, seconds: float) -> FloatArray:
    """Optima by tau, nan where the trees did not finish."""
    end = time.monotonic() + seconds
    starts = [paths.support(g, t) for t in range(len(taus))]
    cells = solve_path(problem, taus, starts=starts, expired=lambda: time.monotonic() > end).by_size
    return np.array([cells[tau].upper if cells[tau].complete else np.nan for tau in taus])


def restarted(problem: SparseProblem, taus: list[int], paths: FoldPaths, g: int, restarts: int) -> FloatArray:
    """Least values by tau of exchanges from supports of which a third was replaced."""
    rng = np.random.default_rng(0)
    tableau = local_search.new_tableau(problem.q, max(taus))
    moments = local_search.PenalisedMoments(problem.Q, problem.penalty, problem.c, problem.yy)
    out = paths.objective[g].copy()
    for t, tau in enumerate(taus):
        best = paths.support(g, t)
        for _ in range(restarts):
            kept = rng.permutation(best)[: tau - max(1, tau // 3)]
            others = rng.choice(np.setdiff1d(np.arange(problem.q), kept), tau - len(kept), replace=False)
            start = np.concatenate([kept, others])
            if local_search.load(tableau, moments, start, tau):
                local_search.exchange(tableau, moments, local_search.MOST_EXCHANGES)
                out[t] = min(out[t], tableau.now[0])
    return out


def one_size(n: int, p: int, options: argparse.Namespace) -> list[list[object]]:
    """The lines of one size; the first run warms the kernels."""
    dataset = Dataset.from_arrays(*synthetic(n, p, 8, options.seed))
    data, folds = standardize(dataset), make_folds("10", dataset)
    grid = Grid.of(np.geomspace(1e-3, 10.0, 15).tolist(), list(range(1, min(30, p) + 1)), p)
    taus = grid.taus.tolist()
    found = list(passes(data, folds, grid, options.threads))
    last = found[-1][2]
    ratios: dict[str, list[FloatArray]] = {"exact": [], "restarts": [], "last pass": []}
    for fold, g in SAMPLE if p <= 1000 else []:
        problem = row_moments(data, folds.train_rows(fold)).problem(data, float(grid.gammas[g]))
        if p <= 100:
            best = exact(problem, taus, last[fold], g, options.seconds)
            ratios["exact"].append(np.array([paths[fold].objective[g] / best for *_, paths in found]))
        best = restarted(problem, taus, last[fold], g, options.restarts)
        ratios["restarts"].append(np.array([paths[fold].objective[g] / best for *_, paths in found]))
    values = np.array([[mine.objective for mine in paths] for *_, paths in found])
    ratios["last pass"] = [(values / values[-1]).reshape(len(found), -1)]
    lines: list[list[object]] = []
    for at, (wall, cpu, paths) in enumerate(found):
        error = np.sum([mine.held_out for mine in paths], axis=0) * data.y_unit**2 / n
        best_g, best_t = (int(i) for i in np.unravel_index(int(np.argmin(error)), error.shape))
        shares: list[object] = []
        for name in ("exact", "restarts"):
            ratio = np.concatenate([part[at] for part in ratios[name]]) if ratios[name] else np.zeros(0)
            known = ratio[np.isfinite(ratio)]
            shares += [f"{np.mean(known > EQUAL):.2%} of {len(known)}" if len(known) else "", _worst(known)]
        shares += [f"{np.mean(ratios['last pass'][0][at] > EQUAL):.2%}", _worst(ratios["last pass"][0][at])]
        lines.append([f"{n} x {p}", at + 1, wall, cpu, *shares, float(error[best_g, best_t]), taus[best_t]])
    return lines


def _worst(ratio: FloatArray) -> str:
    return f"{ratio.max():.4f}" if len(ratio) else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["200x60", "500x100", "1000x1000", "100x5000", "1000x20000"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--restarts", type=int, default=100)
    parser.add_argument("--out", default=None)
    options = parser.parse_args()
    warm = Dataset.from_arrays(*synthetic(60, 10, 2, 0))
    list(first_supports(standardize(warm), make_folds("5", warm), Grid.of([0.1, 1.0], [1, 2, 3], 10)))
    sizes = [tuple(map(int, size.split("x"))) for size in options.sizes]
    lines = [line for n, p in sizes for line in one_size(n, p, options)]
    head = [
        "rows x columns", "pass", "wall s", "CPU s", "missed: exact", "worst", "missed: restarts", "worst",
        "missed: last pass", "worst", "least CV error", "tau",
    ]  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    text = "\n".join(
        [
            "# First answers: every fold, gamma and tau before any proof", "", environment(), "",
            f"10 folds, 15 gammas, tau 1:30, {options.threads} threads; {peak:.2f} GB at the peak of all runs.",
            "CPU seconds are those of the process; wall seconds are inflated by whatever else ran. `worst` is the",
            "largest ratio of a training objective to the reference (head of scripts/bench/first_answers.py).", "",
            table(head, lines), "",
        ]
    )  # fmt: skip
    deliver(text, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
