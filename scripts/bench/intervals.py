"""Coverage of the prediction intervals of `predict --interval` on simulated data: `intervals.py [--out FILE]`.

Two hundred data sets, forty each of 30, 50, 100, 200 and 500 rows, of twelve features of correlation 0.5^|i - j|, four
of which matter, in turn with signal to noise 0.5 and 3, with normal errors and with those of Student's t with three
degrees of freedom. Each has intervals of level 0.9 by ten folds and by leave-one-out: of the pair that cross-validation
chose by these very folds, and of a pair that was fixed before (tau 4, gamma 0.1), of which alone there is a guarantee.
Coverage is over 1,000 new rows, its standard error over data sets.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import sparsecv_mio as sc
from sparsecv_mio.arrays import FloatArray

SIZES, REPEATS, NEW, LEVEL = (30, 50, 100, 200, 500), 40, 1000, 0.9
FEATURES, MATTER, NOISE_RATIOS = 12, 4, (0.5, 3.0)
GRIDS: dict[str, dict[str, Any]] = {
    "chosen": {"gammas": "1e-3:10:7", "taus": f"1:{FEATURES}"},
    "fixed": {"gammas": 0.1, "taus": MATTER},
}
ROOT = Path(__file__).parents[2]


def draw(n: int, number: int) -> tuple[sc.Dataset, FloatArray, FloatArray]:
    """Return a data set, and new rows of the same kind with their targets."""
    rng = np.random.default_rng([n, number])
    root = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(FEATURES), np.arange(FEATURES))))
    X = rng.normal(size=(n + NEW, FEATURES)) @ root.T
    b = np.zeros(FEATURES)
    b[rng.choice(FEATURES, MATTER, replace=False)] = rng.choice([-1.0, 1.0], MATTER)
    signal = X @ b
    noise = rng.standard_t(3, size=n + NEW) / 3**0.5 if number // 2 % 2 else rng.normal(size=n + NEW)
    y = signal + noise * np.std(signal) / NOISE_RATIOS[number % 2] ** 0.5
    return sc.Dataset.from_arrays(X[:n], y[:n]), X[n:], y[n:]


def coverage(data: sc.Dataset, X: FloatArray, y: FloatArray, folds: str, pair: str) -> tuple[float, float]:
    """Return the share of new rows in their intervals, and the mean width over the spread of the target."""
    record = sc.solve(data, folds=folds, threads=1, **GRIDS[pair])
    low, high = record.predict_interval(X, LEVEL, data=data).T
    return float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low) / np.std(y))


def table(found: dict[tuple[str, str, int], list[tuple[float, float]]]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| folds | pair | rows | coverage | least of the data sets | data sets below 0.8 | width / sd of y |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (folds, pair, n), runs in found.items():
        shares, widths = np.array(runs).T
        spread = np.std(shares, ddof=1) / len(shares) ** 0.5
        low = f"{np.sum(shares < 2 * LEVEL - 1)} of {len(runs)}"
        mean = f"{shares.mean():.3f} ± {spread:.3f}"
        cells = (folds, pair, str(n), mean, f"{shares.min():.3f}", low, f"{widths.mean():.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Draw the data sets, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "intervals.md")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="data sets of each size")
    given = parser.parse_args()
    found: dict[tuple[str, str, int], list[tuple[float, float]]] = defaultdict(list)
    for folds in ("10", "loo"):
        for pair in GRIDS:
            for n in SIZES:
                for number in range(given.repeats):
                    found[folds, pair, n].append(coverage(*draw(n, number), folds, pair))
    about = " ".join((__doc__ or "").split("\n\n", 1)[1].split())
    page = f"# Prediction intervals\n\n`python scripts/bench/intervals.py`. {about}\n\n{table(found)}\n"
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
