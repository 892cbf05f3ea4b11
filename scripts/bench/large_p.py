"""Many columns: fits of 500 to 100,000, certified cross-validation of 200 to 1,000, every best subset of 40 to 80.

Every row runs in a process of its own, from arrays in memory: a cross-validation on two threads, a fit on one. Peak
memory is that of the process, data and interpreter included. `s` is the call of the library alone: standardising,
products and proof; kernels are compiled before. `region` is the part of the grid in which the best pair is proved,
`widest` the largest relative gap of a CV error of the grid: pairs that are excluded are left wide. What peers publish
stands beside, measured by their authors on their machines, not here. With `--quiet` the limit counts as in
`regions.py`: as if no other process took time.

    python scripts/bench/large_p.py [--rows NAME ...] [--time-limit 120] [--quiet] [--out build/large_p.md]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from _common import INSTANCES, TARGETS, centred, deliver, environment, np, parser_of, synthetic, table

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset

HEAD = [
    "row", "status", "answer", "lower", "upper", "gap", "region", "widest", "nodes", "s", "CPU s", "GB",
    "peers, published",
]  # fmt: skip
THREADS = 2


@dataclass(frozen=True)
class Row:
    """One line of the table: Toeplitz columns, unit coefficients on every (p // support)-th, and what is asked.

    `unit` scales columns to length one, as the default of the package does; else they are taken as they are, without an
    intercept, as the peers do. With `taus` it is a cross-validation, with `sizes` the best subsets of these sizes on
    all rows, else one fit of size `tau`. `file` names a data set of `instances/` that stands in place of the synthetic
    rows. With `assumed` a fit assumes coefficients in [-assumed, assumed], as peers do; its proof is conditional.
    """

    n: int
    p: int
    rho: float
    snr: float
    gamma: float
    support: int = 10
    unit: bool = True
    taus: tuple[int, int] | None = None
    sizes: tuple[int, int] | None = None
    peers: str = ""
    folds: int = 10
    file: str = ""
    assumed: float | None = None


def tenfold(n: int, p: int, gamma: float, taus: tuple[int, int] = (1, 8)) -> Row:
    """A row of cross-validations: eight coefficients, correlation 0.5, SNR 5."""
    return Row(n, p, 0.5, 5.0, gamma, support=8, taus=taus)


def every_size(p: int, sizes: tuple[int, int], peers: str) -> Row:
    """A row of best subsets without ridge to speak of: lmSubsets' design, half of the coefficients 1, noise of sd 1."""
    return Row(1000, p, 0.0, p / 2.0, 1e-6, support=p // 2, sizes=sizes, peers=f"lmSubsets {peers}")


ROWS = {
    "fit-3000": Row(6000, 3000, 0.5, 5.0, 0.2, unit=False, peers="OKRidge 27.1 s, proved (its notebook)"),
    "fit-500-rho.9": Row(500, 500, 0.9, 5.0, 2.0, unit=False),
    "fit-1000-rho.9": Row(1000, 1000, 0.9, 5.0, 2.0, unit=False),
    "fit-4000-rho.9": Row(4000, 4000, 0.9, 5.0, 2.0, unit=False),
    "fit-500-rho.9-M2": Row(500, 500, 0.9, 5.0, 2.0, unit=False, assumed=2.0),
    "fit-1000-rho.9-M2": Row(1000, 1000, 0.9, 5.0, 2.0, unit=False, assumed=2.0),
    "fit-4000-rho.9-M2": Row(
        4000, 4000, 0.9, 5.0, 2.0, unit=False, assumed=2.0, peers="OKGLM 87 s, A100 16.6 s, Gurobi 9,717 s, M = 2 too"
    ),
    "fit-10000": Row(1000, 10_000, 0.0, 10.0, 1.0, peers="L0BnB to p 1e7, penalised, M assumed"),
    "fit-100000": Row(1000, 100_000, 0.0, 10.0, 1.0, peers="as above"),
    "cv-200-200": tenfold(200, 200, 0.1),
    "cv-200-200-small": tenfold(200, 200, 0.01),
    "cv-500-500": tenfold(500, 500, 0.1),
    "cv-500-500-small": tenfold(500, 500, 0.01),
    "cv-200-1000": tenfold(200, 1000, 0.1),
    "cv-200-1000-small": tenfold(200, 1000, 0.01),
    "cv-100000": Row(1000, 100_000, 0.0, 10.0, 1.0, taus=(1, 10), folds=5),
    "riboflavin": Row(71, 4088, 0.0, 0.0, 1.0, taus=(1, 10), folds=5, file="riboflavin"),
    "housing2": Row(506, 104, 0.0, 0.0, 0.01, taus=(1, 10), file="housing2"),
    "diabetes64": Row(442, 64, 0.0, 0.0, 0.01, taus=(1, 10), file="diabetes64"),
    "cv-500-100": tenfold(500, 100, 0.1, (9, 15)),
    "cv-500-100-small": tenfold(500, 100, 0.01, (9, 15)),
    "sizes-40": every_size(40, (1, 40), "0.28 s"),
    "sizes-60": every_size(60, (1, 60), "209 s"),
    "sizes-80-upper": every_size(80, (30, 50), "414 s"),
}


def compiled() -> None:
    """Load the kernels on a problem of the same kind."""
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.fits.one import fit_one
    from sparsecv_mio.formulation.outcome import Limits

    for p, rho in ((60, 0.5), (500, 0.5), (500, 0.95)):
        X, y = synthetic(80, p, 3, seed=1, rho=rho)
        fit_one(Dataset.from_arrays(X, y), tau=3, gamma=1.0, limits=Limits(nodes=100))


def fitted(row: Row, limit: float) -> list[object]:
    """One best subset on all rows."""
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.fits.fit_options import FitOptions
    from sparsecv_mio.fits.one import fit_one
    from sparsecv_mio.formulation.outcome import Limits

    data = Dataset.from_arrays(*synthetic(row.n, row.p, row.support, 0, rho=row.rho, snr=row.snr))
    limits = Limits(seconds=limit)
    how = FitOptions(limits=limits) if row.unit else FitOptions.of(scale="none", intercept="none", limits=limits)
    how = replace(how, assume_box=row.assumed)
    begin, busy = time.perf_counter(), time.process_time()
    found = fit_one(data, tau=row.support, gamma=row.gamma, options=how)
    spent = [time.perf_counter() - begin, time.process_time() - busy]
    return [found.status, found.objective, found.lower, found.upper, found.gap, "", 0.0, found.nodes, *spent]


def dataset(row: Row) -> Dataset:
    """The data of a cross-validation; synthetic arrays are handed over, not copied."""
    from sparsecv_mio.data.dataset import Dataset, check_dataset
    from sparsecv_mio.data.readers import read_dataset

    if row.file:
        folder = Path(os.environ.get("SPARSECV_INSTANCES", INSTANCES))
        return read_dataset(folder / f"{row.file}.csv", TARGETS.get(row.file, "y"))
    X, y = synthetic(row.n, row.p, row.support, 0, rho=row.rho, snr=row.snr)
    if row.p <= 10_000:  # the rows of issue 14 were measured so; the package scales columns by itself
        X, y = centred(X, y, 1.0)
    return check_dataset(Dataset(X, y, tuple(f"x{j}" for j in range(row.p)), "y"))


def validated(row: Row, limit: float) -> list[object]:
    """Certified cross-validation."""
    from sparsecv_mio.data.folds import make_folds
    from sparsecv_mio.search.api import cross_validate

    data = dataset(row)
    first, last = row.taus or (1, 1)
    begin, busy = time.perf_counter(), time.process_time()
    found = cross_validate(
        data, make_folds(str(row.folds), data, seed=0), gammas=[row.gamma], taus=range(first, last + 1),
        time_limit=limit, threads=THREADS,
    )  # fmt: skip
    spent = [time.perf_counter() - begin, time.process_time() - busy]
    gap = (found.upper - found.lower) / found.upper if np.isfinite(found.upper) else 1.0
    region = "none" if found.region is None else f"tau {first}:{found.region.up_to_tau}"
    widest = max((one.upper - one.lower) / one.upper if np.isfinite(one.upper) else 1.0 for one in found.table)
    figures = [found.status, found.cv_error, found.lower, found.upper, gap]
    return [*figures, "whole grid" if found.status == "proved" else region, widest, found.work.nodes, *spent]


def subsets(row: Row, limit: float) -> list[object]:
    """Best subsets of several sizes on all rows; objective and bounds are those of the size with the largest gap."""
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.fits.best_subsets import best_subsets

    first, last = row.sizes or (1, 1)
    best_subsets(Dataset.from_arrays(*synthetic(row.n, row.p, row.support, 1)), gammas=[1.0], taus=[first])  # warm
    data = Dataset.from_arrays(*synthetic(row.n, row.p, row.support, 0, rho=row.rho, snr=row.snr))
    begin, busy = time.perf_counter(), time.process_time()
    found = best_subsets(data, gammas=[row.gamma], taus=range(first, last + 1), time_limit=limit)
    spent = [time.perf_counter() - begin, time.process_time() - busy]
    worst = max(found.path, key=lambda one: (one.upper - one.lower) / one.upper)
    region = f"{sum(one.proved for one in found.path)} of {len(found.path)} sizes"
    figures = [found.status, worst.objective, worst.lower, worst.upper, (worst.upper - worst.lower) / worst.upper]
    return [*figures, region, 0.0, found.work.nodes, *spent]


def worker(name: str, limit: float, quiet: bool) -> None:
    """Run one row and print its figures."""
    from regions import keep_quiet_time

    compiled()
    if quiet:
        keep_quiet_time(THREADS)
    row = ROWS[name]
    figures = (validated if row.taus else subsets if row.sizes else fitted)(row, limit)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps([*figures, peak]))


def asked(name: str) -> str:
    """A row in words."""
    row = ROWS[name]
    what = f"{row.folds} folds, tau {row.taus[0]}:{row.taus[1]}" if row.taus else f"fit, tau {row.support}"
    what += "" if row.assumed is None else f", |b| <= {row.assumed:g} assumed"
    if row.file:
        return f"{row.file}, {row.n} x {row.p}, gamma {row.gamma:g}, unit length: {what}"
    if row.sizes:
        what = f"every size {row.sizes[0]}:{row.sizes[1]}"
    units = "unit length" if row.unit else "not scaled"
    return f"{row.n} x {row.p}, rho {row.rho:g}, SNR {row.snr:g}, gamma {row.gamma:g}, {units}: {what}"


def line(name: str, limit: float, quiet: bool) -> list[object]:
    """Run a row in a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), "--worker", name, "--time-limit", str(limit)]
    command += ["--quiet"] * quiet
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    peers = ROWS[name].peers
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        return [asked(name), last, *["-"] * 10, peers]
    status, value, lower, upper, gap, region, widest, nodes, wall, busy, peak = json.loads(done.stdout.splitlines()[-1])
    times = [float(f"{wall:.3g}"), float(f"{busy:.3g}"), round(peak, 2)]
    proved = [f"{gap:.2%}", region, f"{widest:.1%}" if ROWS[name].taus else ""]
    return [asked(name), status, f"{value:.6g}", f"{lower:.6g}", f"{upper:.6g}", *proved, nodes, *times, peers]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__, out=True)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME")
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--quiet", action="store_true", help="count the limit as if no other process took time")
    parser.add_argument("--worker", choices=ROWS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        worker(options.worker, options.time_limit, options.quiet)
        return
    lines = []
    for name in options.rows:
        lines.append(line(name, options.time_limit, options.quiet))
        print(*lines[-1], sep=" | ", flush=True)
    text = f"# Many columns\n\n{environment()}\n\nTime limit {options.time_limit:g} s a row.\n\n{table(HEAD, lines)}\n"
    deliver(text, options.out)


if __name__ == "__main__":
    main()
