"""Certificates at small ridge: what two source trees prove of the default question in some seconds, and of one size.

    python scripts/bench/small_ridge.py BEFORE AFTER [--data diabetes64 housing2 ...] [--limit 60] [--sizes 8 10 12]

BEFORE and AFTER are folders that hold the package, as `git worktree add` makes them; a file of `instances/` is a line.
`gap`: of the default question (ten folds) at the limit, which counts as in `regions.py --quiet`, and the region that is
proved. `tree s`: CPU seconds of the best subsets of one size on all rows at gamma 0.01, or the gap that is left at the
most nodes. Each tree has processes of its own, kernels compiled before; both are measured in one run, so that ratios
mean something on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
GAMMA, MOST_NODES = 0.01, 1 << 19


def question(name: str, limit: float) -> dict[str, object]:
    """Ask the default question."""
    from regions import INSTANCES, TARGETS, keep_quiet_time

    from sparsecv_mio import solve

    keep_quiet_time(2)
    record = solve(INSTANCES / f"{name}.csv", target=TARGETS[name], time_limit=limit, threads=2)
    region = record.region
    words = "-" if region is None else f"{region.up_to_tau or '-'}; {region.from_gamma or float('inf'):.2g}"
    return {"gap": round(1.0 - record.lower / record.upper, 3), "region": words}


def one_size(name: str, size: int) -> dict[str, object]:
    """Solve one size on all rows."""
    from regions import INSTANCES, TARGETS

    from sparsecv_mio.data.readers import read_dataset
    from sparsecv_mio.data.standard import standardize
    from sparsecv_mio.problem.training_moments import row_moments
    from sparsecv_mio.trees.every_size import solve_path

    data = standardize(read_dataset(INSTANCES / f"{name}.csv", TARGETS[name]))
    problem = row_moments(data, slice(0, data.n)).problem(data, GAMMA)
    solve_path(problem, [size], effort=1 << 15)  # compiles
    begun = time.process_time()
    cell = solve_path(problem, [size], effort=MOST_NODES).by_size[size]
    return {"s": round(time.process_time() - begun, 2), "gap": round(1.0 - cell.lower / cell.upper, 4)}


def asked(tree: Path, *words: str) -> dict[str, object]:
    """Start this file on a source tree; what it answers."""
    paths = os.pathsep.join([str(tree.resolve()), str(HERE)])
    settings = os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--worker", *words]
    done = subprocess.run(command, env=settings, check=True, capture_output=True, text=True, cwd=tree)
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    """Print a table, or be the worker of a line."""
    if sys.argv[1] == "--worker":
        kind, name, number = sys.argv[2:]
        print(json.dumps(question(name, float(number)) if kind == "question" else one_size(name, int(number))))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trees", nargs=2, type=Path)
    parser.add_argument("--data", nargs="+", default=["diabetes64", "housing2"])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--sizes", nargs="*", type=int, default=[8, 10, 12])
    given = parser.parse_args()
    for name in given.data:
        for size in given.sizes:
            before, after = (asked(tree, "size", name, str(size)) for tree in given.trees)
            print(f"{name}, tau {size}, gamma {GAMMA}: before {before}, after {after}", flush=True)
        if given.limit > 0.0:
            before, after = (asked(tree, "question", name, str(given.limit)) for tree in given.trees)
            print(f"{name}, {given.limit:g} s: before {before}, after {after}", flush=True)


if __name__ == "__main__":
    main()
