"""Certificates at small ridge: what two source trees prove of the default question in some seconds.

    python scripts/bench/small_ridge.py BEFORE AFTER [--data diabetes64 housing2 ...] [--share 1] [--sizes 8 10 12]
        [--today]

BEFORE and AFTER are folders that hold the package, as `git worktree add` makes them. A line is a file, asked the
default question (ten folds; 15 gammas, or 9 where columns are no fewer than training rows; tau 1 up to a row in eight):
the gap and the part of the grid that is proved at its limit, or the CPU seconds to the end where it has none. `late`
are sizes whose proof at every gamma took AFTER more than 1.1 times as long, with both times. Files of `instances/`;
`prostate44`, `housing54`: main effects, squares and products of its columns (of the first nine), as they come. Limits
count as in `regions.py --quiet`; `--share` multiplies them. With `--sizes`: CPU seconds of the best subsets of these
sizes on all rows at gamma 0.01 as well, or the gap left. With `--today` AFTER is also asked the default question of
today, whose grid ends with all columns where these are 31 to 300.

Each tree has processes of its own, kernels compiled before; both are measured in one run, so that ratios mean something
on a busy machine. All of it: 20 minutes of CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset

HERE = Path(__file__).resolve().parent
GAMMA, MOST_NODES = 0.01, 1 << 19
LIMITS = {
    "diabetes64": 60.0, "housing2": 60.0, "topgear_int": 60.0, "prostate44": 20.0, "housing54": 20.0,
    "diabetes": np.inf, "housing": np.inf, "servo": np.inf, "autompg": np.inf, "prostate": np.inf, "topgear": np.inf,
}  # fmt: skip
PRODUCTS = {"prostate44": ("prostate", 8), "housing54": ("housing", 9)}
TARGETS = {
    "diabetes": "y", "diabetes64": "y", "housing": "medv", "housing2": "medv", "servo": "class", "autompg": "mpg",
    "prostate": "lpsa", "topgear": "MPG", "topgear_int": "MPG",
}  # fmt: skip
SLACK = 1.1, 0.5  # of the time a proof took before, and seconds, that it may take


def read(name: str) -> Dataset:
    """A file of `instances/`, or the products of its columns."""
    from _common import INSTANCES

    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.readers import read_dataset

    if name not in PRODUCTS:
        return read_dataset(INSTANCES / f"{name}.csv", TARGETS[name])
    of, count = PRODUCTS[name]
    data = read_dataset(INSTANCES / f"{of}.csv", TARGETS[of])
    X = data.X[:, :count]
    columns = [*X.T, *(X**2).T, *(X[:, i] * X[:, j] for i, j in combinations(range(count), 2))]
    return Dataset.from_arrays(np.column_stack(columns), data.y)


def question(name: str, limit: float, today: bool = False) -> dict[str, Any]:
    """Ask the default question: that of both trees, or that of today."""
    from regions import keep_quiet_time

    from sparsecv_mio.data.folds import make_folds
    from sparsecv_mio.search.api import cross_validate
    from sparsecv_mio.warmup import warm_up

    warm_up()
    keep_quiet_time(2)
    data, reached = read(name), dict[int, float]()
    n, p = data.X.shape

    def progress(state: Any) -> None:
        top = 0 if state.proved is None else state.proved[0] or 0
        if top:
            reached.setdefault(int(top), round(float(state.seconds), 2))

    begun = time.process_time()
    largest = p if p <= 30 else max(10, min((n - -(-n // 10)) // 8, 50))
    wide = p >= n - -(-n // 10)  # no fewer columns than training rows
    taus = [*range(1, min(p, largest) + 1), *([p] if today and 30 < p <= 300 and not wide else [])]
    gammas = np.geomspace(0.05, 10.0, 9) if wide else np.geomspace(1e-3, 10.0, 15)
    record = cross_validate(
        data, make_folds("10", data, seed=0), gammas=gammas.tolist(), taus=taus, threads=2,
        time_limit=limit if np.isfinite(limit) else None, progress=progress,
    )  # fmt: skip
    region, spent = record.region, round(time.process_time() - begun, 2)
    words = "-" if region is None else f"{region.up_to_tau or '-'}; {region.from_gamma or float('inf'):.2g}"
    return {"gap": round(1.0 - record.lower / record.upper, 3), "proved": words, "CPU s": spent, "reached": reached}


def one_size(name: str, size: int) -> dict[str, Any]:
    """Solve one size on all rows."""
    from sparsecv_mio.data.standard import standardize
    from sparsecv_mio.problem.training_moments import row_moments
    from sparsecv_mio.trees.every_size import solve_path

    data = standardize(read(name))
    problem = row_moments(data, slice(0, data.n)).problem(data, GAMMA)
    solve_path(problem, [size], effort=1 << 15)  # compiles
    begun = time.process_time()
    cell = solve_path(problem, [size], effort=MOST_NODES).by_size[size]
    return {"s": round(time.process_time() - begun, 2), "gap": round(1.0 - cell.lower / cell.upper, 4)}


def asked(tree: Path, *words: str) -> dict[str, Any]:
    """Start this file on a source tree; what it answers."""
    paths = os.pathsep.join([str(tree.resolve()), str(HERE)])
    settings = os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--worker", *words]
    done = subprocess.run(command, env=settings, check=True, capture_output=True, text=True, cwd=tree)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def late(before: dict[str, float], after: dict[str, float]) -> dict[str, tuple[float, float | None]]:
    """Sizes whose proof took longer than it may, with the seconds before and after; None where it did not come.

    A proof of more sizes is one of fewer.
    """

    def first(reached: dict[str, float], size: int) -> float:
        return min((t for top, t in reached.items() if int(top) >= size), default=np.inf)

    found = {}
    for top in before:
        old, new = first(before, int(top)), first(after, int(top))
        if new > SLACK[0] * old + SLACK[1]:
            found[top] = (old, new if np.isfinite(new) else None)
    return found


def main() -> None:
    """Print a table, or be the worker of a line."""
    if sys.argv[1] == "--worker":
        kind, name, number = sys.argv[2:]
        asked_for = one_size(name, int(number)) if kind == "size" else question(name, float(number), kind == "today")
        print(json.dumps(asked_for))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trees", nargs=2, type=Path)
    parser.add_argument("--data", nargs="+", default=list(LIMITS), choices=list(LIMITS))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--sizes", nargs="*", type=int, default=[])
    parser.add_argument("--today", action="store_true")
    given = parser.parse_args()
    whole = np.zeros(2)
    for name in given.data:
        for size in given.sizes:
            before, after = (asked(tree, "size", name, str(size)) for tree in given.trees)
            print(f"{name}, tau {size}, gamma {GAMMA}: before {before}, after {after}", flush=True)
        limit = LIMITS[name] * given.share
        for kind in ["question"] * 2 if np.isinf(limit) else ["question"]:  # the first answer may load kernels
            before, after = (asked(tree, kind, name, str(limit)) for tree in given.trees)
        slow = late(before.pop("reached"), after.pop("reached"))
        whole += [before["CPU s"], after["CPU s"]] if np.isinf(limit) else [0.0, 0.0]
        print(f"{name}, {limit:g} s: before {before}, after {after}, late {slow}", flush=True)
        if given.today:
            found = asked(given.trees[1], "today", name, str(limit))
            print(f"{name}, {limit:g} s, the grid of today: {found}", flush=True)
    if whole.any():
        print(f"files without a limit together: before {whole[0]:.1f}, after {whole[1]:.1f} CPU s")


if __name__ == "__main__":
    main()
