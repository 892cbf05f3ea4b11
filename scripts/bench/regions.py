"""What a default run proves under a time limit: the region, the bounds of the whole grid, and the pair reported.

Toeplitz 0.5, eight unit coefficients evenly spaced; 10 folds, 15 gammas (1e-3 to 10), tau 1:30. Every line is one run
from the data in memory to the record, kernels compiled before. `region`: every tau up to the first number at every
gamma, every tau from the gamma behind the semicolon on. `8 at`: the second at which tau 1:8 was proved at every gamma.

A machine that others use too: `--quiet` counts the limit, and every second below, on a clock that runs as a wall clock
would if the threads of this process had their cores for themselves: the CPU seconds of the thread that searches, and
of the threads it shares work out to divided by their number.

    python scripts/bench/regions.py [--data 200x60 housing2 ...] [--snr 5 0.5] [--limit 20] [--threads 2] [--quiet]
        [--method auto] [--out FILE]
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
from _common import INSTANCES, TARGETS, deliver, environment, parser_of, synthetic, table

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.warmup import warm_up

if TYPE_CHECKING:
    from sparsecv_mio.search.observers import Progress

DATA = ["200x60", "500x100", "1000x100", "200x100", "500x200", "housing2", "diabetes64"]
HEAD = [
    "data", "SNR", "status", "wall s", "CPU s", "region", "8 at", "open pairs", "lower", "upper", "CV error", "tau",
    "gamma",
]  # fmt: skip
TARGET = 8  # tau up to which the time of the proof is noted


def cpu() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def keep_quiet_time(threads: int) -> None:
    """Let `time.monotonic` be the clock that the head of this file describes."""
    clocks: dict[int, float] = {}  # of the threads that searched; one that has ended keeps its last reading

    def seconds() -> float:
        for thread in threading.enumerate():
            if thread.name == "sparsecv work" and thread.ident is not None:
                clocks[thread.ident] = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        alone = sum(clocks.values())
        return alone + (time.process_time() - alone) / threads

    time.monotonic = seconds


def read(name: str, snr: float) -> Dataset:
    """Return the data of a line, a file of `instances` or synthetic."""
    if name in TARGETS:
        return read_dataset(INSTANCES / f"{name}.csv", TARGETS[name])
    n, p = map(int, name.split("x"))
    return Dataset.from_arrays(*synthetic(n, p, 8, seed=0, snr=snr))


def run(name: str, snr: float, limit: float, threads: int, method: str) -> list[object]:
    """One line of the table."""
    data = read(name, snr)
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
    words = "-" if region is None else f"{region.up_to_tau or '-'}; {region.from_gamma or float('inf'):.2g}"
    return [
        name, snr if name not in TARGETS else "-", record.status,
        round(wall, 1), round(used, 1), words, f"{reached[0]:.1f}" if reached else "-",
        sum(row.status == "open" for row in record.table), record.lower, record.upper, record.cv_error, record.tau,
        record.gamma,
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__, out=True)
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--snr", nargs="+", type=float, default=[5.0, 0.5])
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--quiet", action="store_true")
    given = parser.parse_args()
    warm_up()
    if given.quiet:
        keep_quiet_time(given.threads)
    lines = []
    for snr in given.snr:
        for name in given.data:
            if name not in TARGETS or snr == given.snr[0]:
                lines.append(run(name, snr, given.limit, given.threads, given.method))
                print(*lines[-1], file=sys.stderr, flush=True)
    clock = "on a quiet machine" if given.quiet else "of the wall clock"
    words = f"time limit {given.limit:g} s {clock}, {given.threads} threads, method {given.method}"
    text = f"{environment()}\n{words}\n\n"
    deliver(text + table(HEAD, lines) + "\n", given.out)


if __name__ == "__main__":
    main()
