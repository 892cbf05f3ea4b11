"""What a duality gap costs after rows or columns change: slopes in log-log against the change and against the rest.

python scripts/bench/glru_slopes.py [--repeats 30] [--out build/glru_slopes.md]

Rows: the gap and the midpoint ball after removing or adding k rows, and the interval of one prediction, while n, k and
d vary. Columns: the gap after removing or adding k columns, while n, k and d vary. Where the slope should be 1 it is
fitted over the largest sizes of the series, where the fixed cost of a call counts least; sizes stay within what the
processor's caches hold, beyond which every pass slows down. With an intercept the rows' series shows the repair's cost.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _common import environment, np, table

from sparsecv_mio.oracles.glru import (
    DualFit,
    Logistic,
    Regularizer,
    assess,
    change_columns,
    change_rows,
    make_problem,
    prediction_intervals,
)

RESULTS = Path(__file__).resolve().parents[2] / "build"
Row = tuple[str, str, int, float, float, float]


def fit_of(n: int, d: int, intercept: bool, seed: int = 0) -> DualFit:
    """A fit near nothing in particular (the cost does not depend on how good it is) with its cached sums made."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    problem = make_problem(X, y, Logistic(), Regularizer(1.0, intercept=intercept))
    fit = assess(problem, rng.standard_normal(problem.design.d) / n)
    change_rows(fit, [0])
    change_columns(fit, [0])
    return fit


def seconds(call: Callable[[np.random.Generator], object], repeats: int) -> float:
    """Least time of a call; the rows or columns it takes are drawn anew each time."""
    rng, best = np.random.default_rng(1), np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        call(rng)
        best = min(best, time.perf_counter() - begin)
    return best


def remove_rows(fit: DualFit, k: int, x: np.ndarray) -> Callable[[np.random.Generator], object]:
    n = fit.problem.design.n
    return lambda rng: prediction_intervals(
        change_rows(fit, rng.integers(n // k, size=1) * k + np.arange(k)), x, "sharp"
    )


def add_rows(fit: DualFit, k: int, x: np.ndarray) -> Callable[[np.random.Generator], object]:
    new = np.random.default_rng(2).standard_normal((k, x.shape[1])), np.ones(k)
    return lambda rng: prediction_intervals(change_rows(fit, add=new), x, "sharp")


def remove_columns(fit: DualFit, k: int) -> Callable[[np.random.Generator], object]:
    d = fit.problem.regularizer.penalised(fit.problem.design.d)
    return lambda rng: change_columns(fit, rng.integers(d // k) * k + np.arange(k))


def add_columns(fit: DualFit, k: int) -> Callable[[np.random.Generator], object]:
    new = np.random.default_rng(2).standard_normal((fit.problem.design.n, k))
    return lambda rng: change_columns(fit, add=new)


def series(
    name: str,
    varying: str,
    sizes: Sequence[int],
    expected: int,
    make: Callable[[int], Callable[..., object]],
    reps: int,
) -> Row:
    """Time a call for each size; `make` builds what it needs and is not timed."""
    times = [seconds(make(size), reps) for size in sizes]
    tail = len(sizes) if expected == 0 else 3
    fitted = float(np.polyfit(np.log(sizes[-tail:]), np.log(times[-tail:]), 1)[0])
    print(name, varying, [f"{t * 1e6:.0f} us" for t in times], flush=True)
    return name, f"{varying} {sizes[0]}..{sizes[-1]}", expected, fitted, times[0] * 1e6, times[-1] * 1e6


def gap_alone(fit: DualFit) -> Callable[[np.random.Generator], object]:
    return lambda rng: change_rows(fit, rng.integers(fit.problem.n, size=1))


def row_series(repeats: int) -> list[Row]:
    heights, widths = (1_000, 4_000, 16_000, 64_000, 256_000), (100, 1_000, 10_000, 40_000, 160_000)
    many, x = (1, 10, 100, 300, 1_000, 2_000), np.random.default_rng(3).standard_normal((1, 160_000))
    fit = fit_of(20_000, 500, False)
    return [
        series("one row goes: gap", "n", heights, 0, lambda n: gap_alone(fit_of(n, 100, False)), repeats),
        series("one row goes: gap, intercept", "n", heights, 0, lambda n: gap_alone(fit_of(n, 100, True)), repeats),
        series(
            "one row goes: gap and interval",
            "n",
            heights,
            0,
            lambda n: remove_rows(fit_of(n, 100, False), 1, x[:, :100]),
            repeats,
        ),
        series("k rows go", "k", many, 1, lambda k: remove_rows(fit, k, x[:, :500]), repeats),
        series("k rows come", "k", many, 1, lambda k: add_rows(fit, k, x[:, :500]), repeats),
        series("one row goes", "d", widths, 1, lambda d: remove_rows(fit_of(100, d, False), 1, x[:, :d]), repeats),
    ]


def column_series(repeats: int) -> list[Row]:
    heights, widths = (1_000, 4_000, 16_000, 64_000), (100, 400, 1_600, 6_400)
    many, fit = (1, 10, 30, 100, 300), fit_of(5_000, 2_000, False)
    return [
        series("one column goes", "n", heights, 1, lambda n: remove_columns(fit_of(n, 20, False), 1), repeats),
        series("k columns go", "k", many, 1, lambda k: remove_columns(fit, k), repeats),
        series("k columns come", "k", many, 1, lambda k: add_columns(fit, k), repeats),
        series("one column goes", "d", widths, 0, lambda d: remove_columns(fit_of(4_000, d, False), 1), repeats),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--out", type=Path, default=RESULTS / "glru_slopes.md")
    given = parser.parse_args()
    rows = row_series(given.repeats) + column_series(given.repeats)
    head = ("change", "varying", "expected slope", "slope", "first, us", "last, us")
    text = (
        "# What GLRU's duality gap costs\n\n"
        f"`python scripts/bench/glru_slopes.py --repeats {given.repeats}`\n\n{environment()}; one thread, least of the "
        "repeats.\n\nThe slope is that of log time over the last sizes of a series; logistic loss, L2.\n\n"
        f"{table(head, rows)}\n"
    )
    given.out.parent.mkdir(exist_ok=True)
    given.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
