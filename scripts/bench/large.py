"""A million rows from a Parquet file to a proved answer: the command line in a process of its own, with peak memory.

python scripts/bench/large.py [--rows 1000000] [--columns 30] [--folds 10] [--tau 1:10] [--threads N]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import environment, np, table

CHUNK = 50_000


def write_parquet(path: Path, rows: int, columns: int, informative: int = 10, seed: int = 0) -> None:
    """Toeplitz 0.5 columns, unit coefficients on every (columns // informative)-th, SNR 5; written chunk by chunk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    support = np.arange(informative) * (columns // informative)
    distance = np.abs(support[:, None] - support[None, :])
    noise = np.sqrt(float((0.5**distance).sum()) / 5.0)
    names = [f"x{j}" for j in range(columns)] + ["y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            X = rng.standard_normal((min(CHUNK, rows - start), columns))
            for j in range(1, columns):
                X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
            y = X[:, support].sum(axis=1) + noise * rng.standard_normal(len(X))
            writer.write_table(pa.table([*X.T, y], schema=schema))


def solve(path: Path, record: Path, options: argparse.Namespace) -> tuple[int, float]:
    """Run `sparsecv solve` on a file; its exit code and wall seconds, start-up and reading included."""
    command = [str(Path(sys.executable).with_name("sparsecv")), "solve", str(path), "--target", "y"]
    command += ["--folds", options.folds, "--tau", options.tau, "--json", str(record), "--quiet"]
    if options.threads is not None:
        command += ["--threads", str(options.threads)]
    begin = time.perf_counter()
    code = subprocess.run(command, check=False).returncode
    return code, time.perf_counter() - begin


def cpu_seconds() -> float:
    """User and system time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--folds", default="10")
    parser.add_argument("--tau", default="1:10")
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    print(environment(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        small, big, record = (Path(folder) / name for name in ("small.parquet", "big.parquet", "record.json"))
        write_parquet(small, 2_000, options.columns)
        write_parquet(big, options.rows, options.columns)
        solve(small, record, options)  # compiles the kernels on a machine that never ran them
        before = cpu_seconds()
        code, seconds = solve(big, record, options)
        after, peak = cpu_seconds(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        held = json.loads(record.read_text())
    # Peak memory is the largest child's, so it also covers the small run: the big one dominates.
    row = [options.rows, options.columns, options.folds, options.tau, held["status"], held["tau"], code]
    row += [round(seconds, 2), round(after - before, 2), round(peak / 2**20, 3)]
    head = ["rows", "columns", "folds", "tau", "status", "best tau", "exit", "seconds", "CPU seconds", "peak GiB"]
    print(table(head, [row]))
    return code


if __name__ == "__main__":
    sys.exit(main())
