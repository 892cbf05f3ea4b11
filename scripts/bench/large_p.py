"""Many columns: one fit from 500 to 100,000 columns, and certified cross-validation of 200 to 1,000.

Every row runs in a process of its own, from arrays in memory: a cross-validation on two threads, a fit on one. Peak
memory is that of the process, data and interpreter included. `s` is the call of the library alone: standardising,
products and proof; kernels are compiled before. What peers publish stands beside, measured by their authors on their
machines, not here.

    python scripts/bench/large_p.py [--rows NAME ...] [--time-limit 120] [--out results/large_p.md]
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
from dataclasses import dataclass

from _common import centred, deliver, environment, np, synthetic, table

HEAD = ["row", "status", "answer", "lower", "upper", "gap", "nodes", "s", "CPU s", "GB", "peers, published"]
FOLDS, THREADS = 10, 2


@dataclass(frozen=True)
class Row:
    """One line of the table: Toeplitz columns, unit coefficients on every (p // support)-th, and what is asked.

    `unit` scales columns to length one, as the default of the package does; else they are taken as they are, without an
    intercept, as the peers do. With `taus` it is a cross-validation in ten folds, else one fit of size `tau`.
    """

    n: int
    p: int
    rho: float
    snr: float
    gamma: float
    support: int = 10
    unit: bool = True
    taus: tuple[int, int] | None = None
    peers: str = ""



def tenfold(n: int, p: int, gamma: float, taus: tuple[int, int] = (1, 8)) -> Row:
    """A row of cross-validations: eight coefficients, correlation 0.5, SNR 5."""
    return Row(n, p, 0.5, 5.0, gamma, support=8, taus=taus)


ROWS = {
    "fit-3000": Row(6000, 3000, 0.5, 5.0, 0.2, unit=False, peers="OKRidge 27.1 s, proved (its notebook)"),
    "fit-500-rho.9": Row(500, 500, 0.9, 5.0, 2.0, unit=False),
    "fit-1000-rho.9": Row(1000, 1000, 0.9, 5.0, 2.0, unit=False),
    "fit-4000-rho.9": Row(
        4000, 4000, 0.9, 5.0, 2.0, unit=False, peers="OKGLM 87 s, A100 16.6 s, Gurobi 9,717 s, all with M = 2 assumed"
    ),
    "fit-10000": Row(1000, 10_000, 0.0, 10.0, 1.0, peers="L0BnB to p 1e7, penalised, M assumed"),
    "fit-100000": Row(1000, 100_000, 0.0, 10.0, 1.0, peers="as above"),
    "cv-200-200": tenfold(200, 200, 0.1),
    "cv-200-200-small": tenfold(200, 200, 0.01),
    "cv-500-500": tenfold(500, 500, 0.1),
    "cv-500-500-small": tenfold(500, 500, 0.01),
    "cv-200-1000": tenfold(200, 1000, 0.1),
    "cv-200-1000-small": tenfold(200, 1000, 0.01),
    "cv-500-100": tenfold(500, 100, 0.1, (9, 15)),
    "cv-500-100-small": tenfold(500, 100, 0.01, (9, 15)),
}


def compiled() -> None:
    """Load the kernels on a problem of the same kind."""
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.fits.one import fit_one

    for p in (60, 500):
        X, y = synthetic(80, p, 3, seed=1)
        fit_one(Dataset.from_arrays(X, y), tau=3, gamma=1.0)


def fitted(row: Row, limit: float) -> list[object]:
    """One best subset on all rows."""
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.fits.one import fit_one
    from sparsecv_mio.fits.options import FitOptions
    from sparsecv_mio.formulation.outcome import Limits

    data = Dataset.from_arrays(*synthetic(row.n, row.p, row.support, 0, rho=row.rho, snr=row.snr))
    limits = Limits(seconds=limit)
    how = FitOptions(limits=limits) if row.unit else FitOptions.of(scale="none", intercept="none", limits=limits)
    begin, busy = time.perf_counter(), time.process_time()
    found = fit_one(data, tau=row.support, gamma=row.gamma, options=how)
    spent = [time.perf_counter() - begin, time.process_time() - busy]
    return [found.status, found.objective, found.lower, found.upper, found.gap, found.nodes, *spent]


def validated(row: Row, limit: float) -> list[object]:
    """Certified cross-validation in ten folds."""
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.folds import make_folds
    from sparsecv_mio.search.api import cross_validate

    X, y = synthetic(row.n, row.p, row.support, 0, rho=row.rho, snr=row.snr)
    data = Dataset.from_arrays(*centred(X, y, 1.0))
    first, last = row.taus or (1, 1)
    begin, busy = time.perf_counter(), time.process_time()
    found = cross_validate(
        data, make_folds(str(FOLDS), data, seed=0), gammas=[row.gamma], taus=range(first, last + 1),
        time_limit=limit, threads=THREADS,
    )  # fmt: skip
    spent = [time.perf_counter() - begin, time.process_time() - busy]
    gap = (found.upper - found.lower) / found.upper if np.isfinite(found.upper) else 1.0
    return [found.status, found.cv_error, found.lower, found.upper, gap, found.work.nodes, *spent]


def worker(name: str, limit: float) -> None:
    """Run one row and print its figures."""
    compiled()
    row = ROWS[name]
    figures = (validated if row.taus else fitted)(row, limit)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps([*figures, peak]))


def asked(name: str) -> str:
    """A row in words."""
    row = ROWS[name]
    what = f"10 folds, tau {row.taus[0]}:{row.taus[1]}" if row.taus else f"fit, tau {row.support}"
    units = "unit length" if row.unit else "not scaled"
    return f"{row.n} x {row.p}, rho {row.rho:g}, SNR {row.snr:g}, gamma {row.gamma:g}, {units}: {what}"


def line(name: str, limit: float) -> list[object]:
    """Run a row in a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), "--worker", name, "--time-limit", str(limit)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    peers = ROWS[name].peers
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        return [asked(name), last, *["-"] * 8, peers]
    status, value, lower, upper, gap, nodes, wall, busy, peak = json.loads(done.stdout.splitlines()[-1])
    times = [round(wall, 1), round(busy, 1), round(peak, 2)]
    return [asked(name), status, f"{value:.6g}", f"{lower:.6g}", f"{upper:.6g}", f"{gap:.2%}", nodes, *times, peers]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME")
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--out", help="write the report here as well")
    parser.add_argument("--worker", choices=ROWS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        worker(options.worker, options.time_limit)
        return
    lines = []
    for name in options.rows:
        lines.append(line(name, options.time_limit))
        print(*lines[-1], sep=" | ", flush=True)
    text = f"# Many columns\n\n{environment()}\n\nTime limit {options.time_limit:g} s a row.\n\n{table(HEAD, lines)}\n"
    deliver(text, options.out)


if __name__ == "__main__":
    main()
