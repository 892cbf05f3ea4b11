"""Figure 2 and Table 2 of "Fast Cross-Validation for Incremental Learning" (Joulani, Gyorgy, Szepesvari 2015), in form.

python scripts/papers/treecv_figures.py [--parts figure,table] [--repeats 10] [--share 1.0] [--loo-standard 10000]
                                        [--covertype FILE] [--year FILE] [--out results]

PEGASOS (lam = 1e-6, columns of unit variance, misclassification) and averaged least-squares SGD in the unit ball (step
n^-1/2, targets in [0, 1], squared error). The paper's data are UCI Covertype (581,012 x 54) and YearPredictionMSD
(463,715 x 90); give them in svmlight form by --covertype and --year (class 1 against the rest is made here), or
synthetic data of these sizes stand in: 10 skewed and 44 one-hot columns with a noisy nonlinear rule, and 90 correlated
columns. A repeat is a new permutation of the rows. --share takes that share of the rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from _common import FloatArray, environment, np, table

from sparsecv_mio.data.folds import FoldPlan, folds_from_labels
from sparsecv_mio.oracles.treecv import CvResult, Learner, LeastSquaresSgd, PegasosLearner, standard_cv, tree_cv

RESULTS = Path(__file__).resolve().parents[2] / "results"
FOLDS = (5, 10, 100)
SIZES = (0.1, 0.25, 0.5, 0.75, 1.0)
COVERTYPE = (581_012, 54)
YEAR = (463_715, 90)


@dataclass(frozen=True, eq=False)
class Task:
    """One learner with its data."""

    name: str
    loss: str
    X: FloatArray
    y: FloatArray
    make: Callable[[int, int], Learner]

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    def head(self, n: int) -> Task:
        return replace(self, X=self.X[:n], y=self.y[:n])

    def learner(self) -> Learner:
        return self.make(self.n, self.X.shape[1])

    def permuted(self, seed: int) -> Task:
        order = np.random.default_rng(seed).permutation(self.n)
        return replace(self, X=self.X[order], y=self.y[order])


def like_covertype(rows: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """10 skewed columns, a one-hot of 4 and one of 40 levels that depend on the first; 36% in class 1, noisy rule."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((rows, 10))
    X = np.zeros((rows, 54))
    X[:, :10] = np.exp(0.4 * Z) + 1.0
    four = np.clip((Z[:, 0] + rng.standard_normal(rows) + 2.0).astype(int), 0, 3)
    forty = np.clip((np.abs(8.0 * Z[:, 0] + 6.0 * rng.standard_normal(rows))).astype(int), 0, 39)
    X[np.arange(rows), 10 + four] = 1.0
    X[np.arange(rows), 14 + forty] = 1.0
    rule = Z[:, 0] - 0.6 * Z[:, 1] + 0.5 * Z[:, 2] * Z[:, 3] + 0.6 * Z[:, 4] ** 2 + 0.8 * rng.standard_normal(rows)
    return X, np.where(rule > np.quantile(rule, 0.64), 1.0, -1.0)


def like_year(rows: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """90 correlated columns and a skewed target in [0, 1], its mass near the top."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 90))
    for j in range(1, 90):
        X[:, j] = 0.4 * X[:, j - 1] + np.sqrt(1 - 0.16) * X[:, j]
    signal = X @ (rng.standard_normal(90) / np.sqrt(90.0))
    raw = -np.log1p(np.exp(-signal + 0.8 * rng.standard_normal(rows)))
    return X, (raw - raw.min()) / (raw.max() - raw.min())


def read(path: Path) -> tuple[FloatArray, FloatArray]:
    from sparsecv_mio.data.readers import read_dataset

    data = read_dataset(path, "y")
    return data.X, data.y


def pegasos_task(options: argparse.Namespace) -> Task:
    rows = int(COVERTYPE[0] * options.share)
    if options.covertype is None:
        X, y = like_covertype(rows)
    else:
        X, y = read(options.covertype)
        X, y = X[:rows], np.where(y[:rows] == 1.0, 1.0, -1.0)
    spread = X.std(axis=0)
    X = X / np.where(spread > 0.0, spread, 1.0)
    return Task("PEGASOS", "misclassification", X, y, lambda n, p: PegasosLearner(p, 1e-6))


def year_task(options: argparse.Namespace) -> Task:
    rows = int(YEAR[0] * options.share)
    X, y = like_year(rows) if options.year is None else read(options.year)
    X, y = X[:rows], y[:rows]
    spread = X.std(axis=0)
    X, y = X / np.where(spread > 0.0, spread, 1.0), (y - y.min()) / (y.max() - y.min())
    return Task("LSQSGD", "squared error", X, y, lambda n, p: LeastSquaresSgd(p, n**-0.5))


def plan(n: int, k: int) -> FoldPlan:
    """k folds of neighbouring rows; the rows themselves are permuted."""
    return folds_from_labels(np.arange(n) * k // n)


def run(cv: Callable[..., CvResult], task: Task, k: int, randomized: bool, seed: int = 0) -> CvResult:
    return cv(task.learner(), task.X, task.y, plan(task.n, k), shuffle_seed=seed if randomized else None)


def figure(tasks: list[Task], loo_standard: int, path: Path) -> str:
    """Running times; returns the largest sizes' times as a table."""
    import matplotlib.pyplot as plt

    canvas, axes = plt.subplots(len(tasks), 3, figsize=(15, 4.2 * len(tasks)), squeeze=False)
    rows: list[list[object]] = []
    for row, task in enumerate(tasks):
        for column, randomized in enumerate((False, True)):
            times = k_fold_times(task, randomized)
            for (label, k), points in times.items():
                line = "--" if label == "standard" else "-"
                axes[row, column].plot(*zip(*points, strict=True), line, marker=".", label=f"{label}, k = {k}")
            order = "randomized" if randomized else "fixed"
            axes[row, column].set_title(f"{task.name}: k-fold, {order} order")
            rows += [
                [task.name, order, k, task.n, times["TreeCV", k][-1][1], times["standard", k][-1][1]] for k in FOLDS
            ]
        rows += loo_panel(axes[row, 2], task, loo_standard)
        for ax in axes[row]:
            ax.set_xlabel("rows")
            ax.set_ylabel("seconds")
            ax.legend(fontsize="small")
    canvas.tight_layout()
    canvas.savefig(path, dpi=150)
    plt.close(canvas)
    return table(["learner", "order", "k", "n", "TreeCV s", "standard s"], rows)


def k_fold_times(task: Task, randomized: bool) -> dict[tuple[str, int], list[tuple[int, float]]]:
    times: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for share in SIZES:
        part = task.head(int(share * task.n))
        for k in FOLDS:
            for label, cv in (("standard", standard_cv), ("TreeCV", tree_cv)):
                seconds = run(cv, part, k, randomized).seconds
                times.setdefault((label, k), []).append((part.n, seconds))
    print(f"{task.name}: k-fold times, {'random' if randomized else 'fixed'} order", file=sys.stderr, flush=True)
    return times


def loo_panel(ax: object, task: Task, largest: int) -> list[list[object]]:
    """Leave-one-out: standard up to `largest` rows, TreeCV up to all."""
    rows: list[list[object]] = []
    sizes = [int(share * min(largest, task.n)) for share in (0.1, 0.25, 0.5, 1.0)]
    for randomized in (False, True):
        order = "randomized" if randomized else "fixed"
        standard = [(n, run(standard_cv, task.head(n), n, randomized).seconds) for n in sizes]
        tree = [(n, run(tree_cv, task.head(n), n, randomized).seconds) for n in [*sizes, task.n]]
        ax.plot(*zip(*standard, strict=True), "--", marker=".", label=f"standard, {order}")  # type: ignore[attr-defined]
        ax.plot(*zip(*tree, strict=True), "-", marker=".", label=f"TreeCV, {order}")  # type: ignore[attr-defined]
        rows.append([task.name, order, "n", sizes[-1], tree[-2][1], standard[-1][1]])
        rows.append([task.name, order, "n", task.n, tree[-1][1], "not run"])
        print(f"{task.name}: leave-one-out times, {order} order", file=sys.stderr, flush=True)
    ax.set_xscale("log")  # type: ignore[attr-defined]
    ax.set_yscale("log")  # type: ignore[attr-defined]
    ax.set_title(f"{task.name}: leave-one-out")  # type: ignore[attr-defined]
    return rows


def estimates(task: Task, repeats: int) -> str:
    """Table 2: mean and standard deviation of 100 x estimate over permutations of the rows."""
    found: dict[tuple[str, bool, int], list[float]] = {}
    for repeat in range(repeats):
        shuffled = task.permuted(repeat)
        for k in (*FOLDS, task.n):
            for label, cv in (("TreeCV", tree_cv), ("standard", standard_cv)):
                if label == "standard" and k == task.n:
                    continue
                for randomized in (False, True):
                    value = 100.0 * run(cv, shuffled, k, randomized, seed=repeat).estimate
                    found.setdefault((label, randomized, k), []).append(value)
        print(f"{task.name}: repeat {repeat + 1} of {repeats}", file=sys.stderr, flush=True)
    rows = []
    for k in (*FOLDS, task.n):
        cells = ["n" if k == task.n else str(k)]
        for label in ("TreeCV", "standard"):
            for randomized in (False, True):
                values = found.get((label, randomized, k))
                cells.append("n/a" if values is None else f"{np.mean(values):.4f} +- {np.std(values, ddof=1):.4f}")
        rows.append(cells)
    return table(["k", "TreeCV fixed", "TreeCV randomized", "standard fixed", "standard randomized"], rows)


def main() -> int:
    import matplotlib

    matplotlib.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="figure,table")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--loo-standard", type=int, default=10_000)
    parser.add_argument("--covertype", type=Path)
    parser.add_argument("--year", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    tasks = [pegasos_task(options), year_task(options)]
    kinds = ["given" if given else "synthetic" for given in (options.covertype, options.year)]
    text = [
        "# TreeCV: Figure 2 and Table 2 of the paper, in form\n",
        f"`python scripts/papers/treecv_figures.py --parts {options.parts} --repeats {options.repeats} "
        f"--share {options.share} --loo-standard {options.loo_standard}`\n",
        f"{environment()}; one thread. "
        + "; ".join(f"{t.name}: {kind} data, {t.n} x {t.X.shape[1]}" for t, kind in zip(tasks, kinds, strict=True))
        + ".",
    ]
    if "figure" in options.parts:
        times = figure(tasks, options.loo_standard, options.out / "treecv_figure2.png")
        text += ["\n## Running times (treecv_figure2.png)\n", times]
    if "table" in options.parts:
        for task in tasks:
            text.append(
                f"\n## {task.name}: 100 x {task.loss}, mean and standard deviation of {options.repeats} repeats\n"
            )
            text.append(estimates(task, options.repeats))
    print("\n".join(text))
    (options.out / "treecv_figures.md").write_text("\n".join([*text, ""]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
