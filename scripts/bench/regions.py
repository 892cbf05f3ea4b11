"""What a default run proves under a time limit: the region, the bounds of the whole grid, and the pair reported.

Toeplitz 0.5, eight unit coefficients evenly spaced; 10 folds, 15 gammas (1e-3 to 10), tau 1:30. Every line is one run
from the data in memory to the record, kernels compiled before. `region`: every tau up to the first number at every
gamma, every tau from the gamma behind the bar on. `8 at` is the second at which tau 1:8 was proved at every gamma.

    python scripts/bench/regions.py [--sizes 200x60 500x100 ...] [--snr 5 0.5] [--limit 20] [--threads 2] [--out FILE]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np
from _common import deliver, environment, synthetic, table

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.warmup import warm_up

SIZES = ["200x60", "500x100", "1000x100", "200x100", "100x200", "500x200"]
HEAD = [
    "n x p", "SNR", "status", "wall s", "CPU s", "region", "8 at", "open pairs", "lower", "upper", "CV error", "tau",
    "gamma",
]  # fmt: skip
TARGET = 8  # tau up to which the time of the proof is noted


def cpu() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(size: str, snr: float, limit: float, threads: int, method: str) -> list[object]:
    """One line of the table."""
    n, p = map(int, size.split("x"))
    data = Dataset.from_arrays(*synthetic(n, p, 8, seed=0, snr=snr))
    reached: list[float] = []

    def progress(state: Progress) -> None:
        if state.proved is not None and (state.proved[0] or 0) >= TARGET:
            reached.append(state.seconds)

    wall, used = time.perf_counter(), cpu()
    record = cross_validate(
        data, make_folds("10", data, seed=0), gammas=np.geomspace(1e-3, 10.0, 15).tolist(), taus=range(1, 31),
        time_limit=limit, threads=threads, method=method, progress=progress,
    )  # fmt: skip
    wall, used = time.perf_counter() - wall, cpu() - used
    region = record.region
    words = "-" if region is None else f"{region.up_to_tau or '-'} | {region.from_gamma or float('inf'):.2g}"
    return [
        size, snr, record.status, round(wall, 1), round(used, 1), words, f"{reached[0]:.1f}" if reached else "-",
        sum(row.status == "open" for row in record.table), record.lower, record.upper, record.cv_error, record.tau,
        record.gamma,
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--snr", nargs="+", type=float, default=[5.0, 0.5])
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--out")
    given = parser.parse_args()
    warm_up()
    lines = []
    for snr in given.snr:
        for size in given.sizes:
            lines.append(run(size, snr, given.limit, given.threads, given.method))
            print(*lines[-1], file=sys.stderr, flush=True)
    text = f"{environment()}\ntime limit {given.limit:g} s, {given.threads} threads, method {given.method}\n\n"
    deliver(text + table(HEAD, lines) + "\n", given.out)


if __name__ == "__main__":
    main()
