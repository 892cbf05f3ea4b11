"""Leave-one-out on many rows, in a process of its own: seconds from the data in memory to the proof, and peak memory.

Synthetic, Toeplitz 0.5, ten unit coefficients, SNR 5; gamma 1, tau 1:12.

    python scripts/bench/loocv_large.py [--cases 463715x90,581012x54,5000000x18] [--threads 2]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time


def one(case: str, threads: int) -> None:
    """Make the data, warm the kernels, run, print."""
    from _common import environment, np
    from _runs import warm_up

    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.folds import make_folds
    from sparsecv_mio.search.api import cross_validate

    n, p = (int(x) for x in case.split("x"))
    rng = np.random.default_rng(0)
    X = np.empty((n, p))
    y = np.empty(n)
    chosen = np.arange(10) * (p // 10)
    for lo in range(0, n, 100_000):
        rows = slice(lo, min(lo + 100_000, n))
        block = rng.standard_normal((rows.stop - rows.start, p))
        for j in range(1, p):
            block[:, j] = 0.5 * block[:, j - 1] + np.sqrt(0.75) * block[:, j]
        X[rows] = block
        signal = block[:, chosen].sum(axis=1)
        y[rows] = signal + rng.standard_normal(len(signal)) * np.sqrt(signal.var() / 5.0)
    data = Dataset.from_parts(X, y) if hasattr(Dataset, "from_parts") else Dataset.from_arrays(X, y)
    del X
    folds = make_folds("loo", data)
    warm_up()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    began = time.perf_counter()
    record = cross_validate(data, folds, gammas=[1.0], taus=range(1, 13), threads=threads)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{case:>12}: {record.status}, tau {record.tau}, h {record.cv_error:.6g}, {seconds:.1f} s, peak {peak:.2f} GiB "
        f"(data in memory {before:.2f}), {record.work.engine}; {environment()}",
        flush=True,
    )


def main() -> None:
    """Run every case in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="463715x90,581012x54,5000000x18")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one")
    options = parser.parse_args()
    if options.one:
        one(options.one, options.threads)
        return
    for case in options.cases.split(","):
        subprocess.run([sys.executable, __file__, "--one", case, "--threads", str(options.threads)], check=True)


if __name__ == "__main__":
    main()
