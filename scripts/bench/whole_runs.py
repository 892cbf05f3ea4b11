"""Whole cross-validations: the first table of docs/benchmarks.md, seconds from the data to the answer.

    python scripts/bench/whole_runs.py [CASE ...] [--threads N] [--time-limit S] [--gap G]

paper      the grid of the paper's tables: four data sets, leave-one-out and blocks of ten rows, seven gammas, every
           tau, each proved without a gap. The paper reports 5,501 minutes for the leave-one-out half
housing2, diabetes64, wide, housing2-small-gamma   branch and bound has to work: correlated columns, or p > n
rows-NxP   leave-one-out of synthetic rows, ten unit coefficients, Toeplitz 0.5, SNR 5; gamma 1, tau 1:12
parquet    `sparsecv solve` of 1,000,000 synthetic rows and 30 columns from a Parquet file, with start-up and reading

Cases of many rows and the file run in processes of their own, with peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from _common import FloatArray, centred, environment, instance, np, parser_of, synthetic, table

from sparsecv_mio.data.dataset import Dataset, check_dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.warmup import warm_up

HEAD = ["data", "folds", "gamma", "tau", "status", "best tau", "CV error", "gap", "solved", "MIOs", "nodes", "seconds"]
PAPER = ("diabetes", "housing", "servo", "autompg")
PAPER_GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
HARD: dict[str, tuple[tuple[float, ...], range]] = {
    "housing2": ((1.0,), range(1, 11)),
    "diabetes64": ((0.1, 1.0), range(1, 13)),
    "wide": ((1.0,), range(8, 13)),
    "housing2-small-gamma": ((0.01,), range(1, 11)),
}
CASES = ("paper", "housing2", "diabetes64", "wide", "parquet")
CHUNK = 50_000  # rows drawn at a time
GIB = 2**20  # of the kibibytes of `ru_maxrss`


def run(name: str, data: Dataset, spec: str, gamma: float, taus: Sequence[int], **options: Any) -> list[object]:
    """Time one cross-validation from the data in memory to the record; return a row of the table."""
    folds = make_folds(spec, data, seed=0)
    begin = time.perf_counter()
    record = cross_validate(data, folds, gammas=[gamma], taus=taus, **options)
    seconds = time.perf_counter() - begin
    solved = f"{sum(row.folds_decided for row in record.table)}/{sum(row.folds for row in record.table)}"
    gap = (record.upper - record.lower) / record.upper
    return [name, spec, gamma, f"{taus[0]}:{taus[-1]}", record.status, record.tau, record.cv_error, gap, solved,
            record.work.mios, record.work.nodes, round(seconds, 3)]  # fmt: skip


def rows_of(case: str, options: dict[str, Any]) -> Iterator[list[object]]:
    """Yield the rows of a case that runs in this process."""
    if case == "paper":
        for name in PAPER:
            data = instance(name)
            for spec in ("loo", "blocks:10"):
                for gamma in PAPER_GAMMAS:
                    yield run(name, data, spec, gamma, range(1, data.p + 1), **{**options, "gap": 0.0})
        return
    gammas, taus = HARD[case]
    if case == "wide":
        data = Dataset.from_arrays(*centred(*synthetic(200, 1000, 10, seed=0), length=1.0))
    else:
        data = instance(case.removesuffix("-small-gamma"))
    for gamma in gammas:
        yield run(case, data, "5" if case == "wide" else "10", gamma, taus, **options)


def chunks(n: int, p: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Draw rows and responses chunk by chunk: Toeplitz 0.5, ten unit coefficients, SNR 5."""
    rng, chosen = np.random.default_rng(0), np.arange(10) * (p // 10)
    noise = np.sqrt(float((0.5 ** np.abs(chosen[:, None] - chosen)).sum()) / 5.0)
    for start in range(0, n, CHUNK):
        X = rng.standard_normal((min(CHUNK, n - start), p))
        for j in range(1, p):
            X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
        yield X, X[:, chosen].sum(axis=1) + noise * rng.standard_normal(len(X))


def many_rows(case: str, options: dict[str, Any]) -> None:
    """Run leave-one-out on many rows in this process, and print it with its peak memory."""
    n, p = (int(size) for size in case.removeprefix("rows-").split("x"))
    X, y, start = np.empty((n, p)), np.empty(n), 0
    for block, response in chunks(n, p):
        rows = slice(start, start := start + len(block))
        X[rows], y[rows] = block, response
    data = check_dataset(Dataset(X, y, tuple(f"x{j}" for j in range(p)), "y"))
    del X
    warm_up()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB
    row = run(case, data, "loo", 1.0, range(1, 13), **options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB
    print(f"{table(HEAD, [row])}\npeak {peak:.2f} GiB, {before:.2f} before the search", flush=True)


def write_parquet(path: Path, n: int, p: int) -> None:
    """Write synthetic rows, chunk by chunk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float64()) for name in [*(f"x{j}" for j in range(p)), "y"]])
    with pq.ParquetWriter(path, schema) as writer:
        for X, y in chunks(n, p):
            writer.write_table(pa.table([*X.T, y], schema=schema))


def solve_parquet(threads: int | None) -> None:
    """Solve a Parquet file of a million rows in a process of its own, and print seconds and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        for n in (2_000, 1_000_000):  # the small one compiles the kernels on a machine that never ran them
            path, record = Path(folder) / f"{n}.parquet", Path(folder) / "record.json"
            write_parquet(path, n, 30)
            command = [sys.executable, "-m", "sparsecv_mio.cli", "solve", str(path), "--target", "y", "--folds", "10"]
            command += ["--tau", "1:10", "--json", str(record), "--quiet"]
            command += [] if threads is None else ["--threads", str(threads)]
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, check=True)
            seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads(record.read_text())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"parquet, 1,000,000 x 30: {found['status']}, tau {found['tau']}, {seconds:.2f} s, {cpu:.2f} CPU s, "
          f"peak {after.ru_maxrss / GIB:.2f} GiB", flush=True)  # fmt: skip


def main() -> int:
    """Run the cases; return 3 if one of those in this process is not proved."""
    parser = parser_of(__doc__)
    parser.add_argument("cases", nargs="*", default=CASES, help=f"of {', '.join((*CASES, *HARD))}, rows-NxP")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--time-limit", type=float, help="seconds for each run")
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    options = {"gap": asked.gap, "threads": asked.threads, "time_limit": asked.time_limit}
    if asked.here:
        many_rows(asked.cases[0], options)
        return 0
    print(environment())
    warm_up()
    rows: list[list[object]] = []
    for case in asked.cases:
        if case.startswith("rows-"):
            given = [word for name, value in options.items() if value is not None
                     for word in (f"--{name.replace('_', '-')}", str(value))]  # fmt: skip
            subprocess.run([sys.executable, __file__, case, "--here", *given], check=True)
        elif case == "parquet":
            solve_parquet(asked.threads)
        else:
            for row in rows_of(case, options):
                rows.append(row)
                print(*row, sep="  ", file=sys.stderr, flush=True)
    print(table(HEAD, rows))
    proved = sum(row[4] == "proved" for row in rows)
    print(f"{proved} of {len(rows)} proved, {sum(float(str(row[-1])) for row in rows):.1f} s together")
    return 0 if proved == len(rows) else 3


if __name__ == "__main__":
    sys.exit(main())
