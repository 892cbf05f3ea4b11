"""Long questions of the speed guard: 200 rows by 200 columns, with and without a limit, each in a fresh process.

    python scripts/bench/guard.py --long [--seeds 5024 1 2]

Neighbouring columns have the correlation 0.5, eight columns have coefficients, and the signal-to-noise ratio is 5. A
question fails if it ends without a proof, or takes more than 15% more CPU seconds on one thread than commit bd88c1e1
took on the reference machine of docs/benchmarks.md, which first proved the pair with the best estimate.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _common import environment, table

CPU_SECONDS = {5024: 64.0, 1: 116.0, 2: 20.0}  # by seed, of bd88c1e1 on one thread
MAX_RATIO = 1.15
LIMITS = ("600", "none")  # seconds of wall time: more than a proof takes
ROWS = COLUMNS = 200
HEAD = ["question", "status", "gap", "nodes", "CPU s", "CPU s allowed"]


def write_table(place: Path, seed: int) -> None:
    """Write the drawn table of a seed."""
    draw = np.random.default_rng(seed)
    noise, X = draw.standard_normal((ROWS, COLUMNS)), np.empty((ROWS, COLUMNS))
    X[:, 0] = noise[:, 0]
    for j in range(1, COLUMNS):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * noise[:, j]
    mean = X[:, [i * COLUMNS // 8 for i in range(8)]].sum(axis=1)
    y = mean + np.sqrt(mean.var() / 5.0) * draw.standard_normal(ROWS)
    header = ",".join([*(f"x{j}" for j in range(COLUMNS)), "y"])
    np.savetxt(place, np.column_stack([X, y]), fmt="%.17g", delimiter=",", header=header, comments="")


def solve(data: Path, limit: str) -> tuple[dict[str, object], float]:
    """Solve the table on one thread; return its record and the CPU seconds."""
    record = data.with_suffix(".json")
    words = ["--target", "y", "--folds", "10", "--gamma", "0.01", "--tau", "1:8", "--threads", "1", "--quiet"]
    command = [sys.executable, "-m", "sparsecv_mio.cli", "solve", str(data), *words, "--time-limit", limit]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    single = os.environ | {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([*command, "--json", str(record)], env=single, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(record.read_text()), seconds


def check_long_questions(seeds: list[int]) -> int:
    """Solve every question, print a table, and return 1 if one fails."""
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as name:
        for seed in seeds:
            data = Path(name) / f"square_{seed}.csv"
            write_table(data, seed)
            for limit in LIMITS:
                record, seconds = solve(data, limit)
                allowed = MAX_RATIO * CPU_SECONDS[seed]
                failed |= record["status"] != "proved" or seconds > allowed
                work = record["work"]
                assert isinstance(work, dict)
                title = f"200 x 200, seed {seed}, --time-limit {limit}"
                rows.append([title, record["status"], record["gap"], work["nodes"], seconds, allowed])
                print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    print(environment(), table(HEAD, rows), sep="\n\n")
    return int(failed)
