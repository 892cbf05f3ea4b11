"""How leave-one-out scales: seconds against rows, columns and number of folds, as a figure and a table.

Synthetic, Toeplitz 0.5, ten unit coefficients, SNR 5, gamma 1, tau 1:12, one thread; `one fit` is the full-data path.

    python scripts/bench/loocv_scaling.py --out build/loocv_scaling [--rows 500,...] [--columns 20,...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from _common import environment, synthetic

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.warmup import warm_up

TAUS = range(1, 13)


def one_fit(data: Dataset) -> float:
    """Seconds of one full-data path at gamma 1, from the data to the proof."""
    began = time.perf_counter()
    result = solve_path(full_problem(standardize(data), 1.0), list(TAUS))
    seconds = time.perf_counter() - began
    assert all(subset.complete for subset in result.by_size.values())
    return seconds


def seconds_of(n: int, p: int, spec: str, repeats: int = 3) -> tuple[float, float, str]:
    """(seconds of the cross-validation, of one fit, what ran)."""
    data = Dataset.from_arrays(*synthetic(n, p, 10, seed=0))
    folds = make_folds(spec, data)
    spans, engine = [], ""
    for _ in range(repeats):
        began = time.perf_counter()
        record = cross_validate(data, folds, gammas=[1.0], taus=TAUS, gap=0.0, threads=1)
        spans.append(time.perf_counter() - began)
        assert record.status == "proved"
        engine = record.work.engine
    return min(spans), min(one_fit(data) for _ in range(repeats)), engine


def main() -> None:
    """Measure, print the table, draw the three curves."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="build/loocv_scaling")
    parser.add_argument("--rows", default="500,2000,5000,20000,50000,200000")
    parser.add_argument("--columns", default="12,20,30,40,54,70,90")
    parser.add_argument("--folds", default="2,5,10,50,200,1000,5000")
    options = parser.parse_args()
    warm_up()
    lists = [[int(x) for x in text.split(",")] for text in (options.rows, options.columns, options.folds)]
    panels: list[tuple[str, list[int], Callable[[int], tuple[int, int, str]]]] = [
        ("rows n (p = 30, leave-one-out)", lists[0], lambda n: (n, 30, "loo")),
        ("columns p (n = 5,000, leave-one-out)", lists[1], lambda p: (5000, p, "loo")),
        ("folds k (n = 5,000, p = 30)", lists[2], lambda k: (5000, 30, "loo" if k == 5000 else str(k))),
    ]
    head = ("| sweep | value | cross-validation s | one fit s | ratio | engine |", "|---|---:|---:|---:|---:|---|")
    lines = [environment(), "", *head]
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), constrained_layout=True)
    for axis, (label, values, shape) in zip(axes, panels, strict=True):
        rows = [seconds_of(*shape(value)) for value in values]
        axis.loglog(values, [row[0] for row in rows], "o-", label="cross-validation, proved")
        axis.loglog(values, [row[1] for row in rows], "s--", label="one full-data path")
        axis.set_xlabel(label)
        axis.set_ylabel("seconds, one thread")
        axis.grid(alpha=0.3, which="both")
        for value, (span, fit, engine) in zip(values, rows, strict=True):
            lines.append(f"| {label} | {value:,} | {span:.4f} | {fit:.4f} | {span / fit:.1f} | {engine} |")
    axes[0].legend()
    out = Path(options.out)
    figure.savefig(out.with_suffix(".png"), dpi=130)
    out.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
