"""Every gamma of [1e-3, 10] against grids of 15 and of 200 points: the paper's four data sets, every tau, gap 1e-4.

For each data set and folds one run over the interval and one over each grid, in one process with compiled kernels:
CPU seconds, wall-clock seconds, status, and by how much the least CV error of the grid exceeds that of the interval.

    python scripts/bench/every_gamma.py [--threads N] [--data diabetes,servo] [--folds loo,blocks:10]
"""

from __future__ import annotations

import argparse
import sys
import time

from _common import environment, instance, table

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.warmup import warm_up

GAP = 1e-4
ASKED = ("1e-3..10", "1e-3:10:15", "1e-3:10:200")
HEAD = [
    "data", "folds", "status", "tau", "gamma", "lower", "upper", "gap", "pieces", "CPU s", "wall s",
    "15 gammas: h above", "CPU s", "200 gammas: h above", "CPU s",
]  # fmt: skip


def timed(data: Dataset, spec: str, gammas: str, threads: int | None) -> tuple[Record, float, float]:
    """Run one cross-validation of every tau: the record, CPU and wall-clock seconds."""
    folds, begin, cpu = make_folds(spec, data, seed=0), time.perf_counter(), time.process_time()
    record = cross_validate(data, folds, gammas=gammas, taus=range(1, data.p + 1), gap=GAP, threads=threads)
    return record, time.process_time() - cpu, time.perf_counter() - begin


def row_of(name: str, spec: str, threads: int | None) -> tuple[list[object], list[float], bool]:
    """One line of the table, its CPU and wall-clock seconds over the interval, and whether that was proved."""
    data = instance(name)
    runs = [timed(data, spec, gammas, threads) for gammas in ASKED]
    (record, cpu, wall), *grids = runs
    pieces = 0 if record.continuous is None else len(record.continuous.pieces)
    row: list[object] = [
        name, spec, record.status, record.tau, record.gamma, record.lower, record.upper, record.gap, pieces,
        round(cpu, 2), round(wall, 2),
    ]  # fmt: skip
    for grid, seconds, _ in grids:
        row += [f"{100.0 * (grid.upper / record.upper - 1.0):.4f}%", round(seconds, 2)]
    return row, [cpu, wall, *(seconds for _, seconds, _ in grids)], record.status == "proved"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--data", default="diabetes,housing,servo,autompg")
    parser.add_argument("--folds", default="loo,blocks:10")
    options = parser.parse_args()
    print(environment())
    warm_up()
    rows, seconds, proved = [], [], []
    for name in options.data.split(","):
        for spec in options.folds.split(","):
            row, took, done = row_of(name, spec, options.threads)
            rows.append(row)
            seconds.append(took)
            proved.append(done)
            print(f"{name} {spec}: {row[2]}, {took[0]:.1f} s of CPU", file=sys.stderr, flush=True)
    print(table(HEAD, rows))
    cpu, wall, few, many = (sum(part) for part in zip(*seconds, strict=True))
    print(f"{sum(proved)} of {len(rows)} proved, {cpu:.1f} s of CPU, {wall:.1f} s of wall clock together; "
          f"15 gammas {few:.1f} s of CPU, 200 gammas {many:.1f} s")  # fmt: skip
    return 0 if all(proved) else 3


if __name__ == "__main__":
    sys.exit(main())
