"""Leave-one-out cross-validation against one fit: R = (data to proved LOOCV, all folds and tau) / (one full-data path).

Both sides start from the data in memory and run on one thread: the numerator ends with the record of `cross_validate`,
the denominator with the cells of one path tree over all tau (best of five). Synthetic cases are Toeplitz 0.5.

    python scripts/bench/loocv_ratio.py [--cases servo,autompg,5000x25,...] [--gamma 1] [--threads 1]
"""

from __future__ import annotations

import argparse
import time
from unittest.mock import patch

from _common import TARGETS, environment, np, synthetic
from _runs import held, warm_up

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.search import plan
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.trees.every_size import solve_path

CASES = [
    "diabetes", "housing", "servo", "autompg", "5000x25", "5000x54", "50000x25", "50000x54",
    "5000x25:0.5", "5000x54:0.5", "50000x25:0.5", "50000x54:0.5", "463715x90",
]  # fmt: skip


def data_of(case: str, seed: int) -> tuple[Dataset, range]:
    """An instance by name, or NxP[:SNR] synthetic; with the range of tau."""
    if case in TARGETS:
        data = held(case)
        return data, range(1, data.p + 1)
    shape, _, snr = case.partition(":")
    n, p = (int(x) for x in shape.split("x"))
    X, y = synthetic(n, p, 10, seed, snr=float(snr or 5.0))
    return Dataset.from_arrays(X, y), range(1, 13)


def one_fit(data: Dataset, gamma: float, taus: range) -> float:
    """Seconds of one full-data path, data to proof."""
    began = time.perf_counter()
    result = solve_path(full_problem(standardize(data), gamma), list(taus))
    seconds = time.perf_counter() - began
    assert all(cell.complete for cell in result.by_size.values())
    return seconds


def main() -> None:
    """Measure the cases asked for, side by side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--gamma", default="0.01,0.02,0.05,0.1,0.2,0.5,1")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--against", action="store_true", help="also time one tree per fold")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(environment())
    warm_up()
    gammas = [float(g) for g in options.gamma.split(",")]
    for case in options.cases.split(","):
        data, taus = data_of(case, options.seed)
        folds = make_folds("loo", data)
        ratios, seconds, gains = [], [], []
        record = None
        for gamma in gammas if case in TARGETS else gammas[-1:]:
            fit = min(one_fit(data, gamma, taus) for _ in range(5))
            spans = []
            for _ in range(3 if data.n < 100_000 else 1):
                began = time.perf_counter()
                record = cross_validate(data, folds, gammas=[gamma], taus=taus, gap=0.0, threads=options.threads)
                spans.append(time.perf_counter() - began)
            assert record is not None and record.status == "proved", (case, gamma)
            if options.against:
                began = time.perf_counter()
                with patch.object(plan, "LARGEST_FOLD", 0):  # no tree serves more than one fold
                    cross_validate(data, folds, gammas=[gamma], taus=taus, gap=0.0, threads=options.threads)
                gains.append((time.perf_counter() - began) / min(spans))
            ratios.append(min(spans) / fit)
            seconds.append(min(spans))
        assert record is not None
        gain = f", per-fold / ours median {np.median(gains):.1f}" if gains else ""
        print(
            f"{case:>14}: R median {np.median(ratios):6.2f} (min {min(ratios):.2f}, max {max(ratios):.2f}), "
            f"{sum(seconds):.3f} s for {len(seconds)} gamma{gain}; last: {record.work.engine}",
            flush=True,
        )


if __name__ == "__main__":
    main()
