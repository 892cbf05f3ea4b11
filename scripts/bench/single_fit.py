"""One support size, one data set: our engine beside OKRidge and Gurobi, in one run, one thread each.

Every method is given the same centred X and y; the peers are asked for a relative gap of 1e-4, our engine knows only
the exact optimum. Counted for us: everything after X and y are in memory, the Gram matrix included. Counted for the
peers: their solve alone, their set-up apart. What a method claims is not taken over: its support is refitted exactly,
and `true gap` compares that value with the certified lower bound of our engine.

    python scripts/bench/single_fit.py [--repeats 5] [--seeds 3] [--place spread|first|random] [--time-limit 60]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable

from _common import INSTANCES, TARGETS, centred, environment, np, synthetic, table
from _peers import Fit, Gurobi, Instance, OKRidge

GAP = 1e-4
OURS = "ours"
Method = Callable[[Instance, float], Fit]
Run = tuple[Instance, Fit]


def native(instance: Instance, time_limit: float) -> Fit:
    """Our engine, from X and y to a support that is optimal or the best at the limit, with its bounds."""
    from sparsecv_mio.problem.problem import SparseProblem
    from sparsecv_mio.trees.every_size import solve_path

    begin = time.perf_counter()
    X, y = instance.X, instance.y
    p = X.shape[1]
    problem = SparseProblem(
        Q=X.T @ X,
        c=X.T @ y,
        yy=float(y @ y),
        weight=np.ones(p),
        lam=instance.lam,
        n=len(y),
        v_mean=np.zeros(p),
        r_mean=0.0,
    )
    built = time.perf_counter()
    result = solve_path(problem, [instance.tau], expired=lambda: time.perf_counter() - begin > time_limit)
    seconds = time.perf_counter() - built
    cell = result.by_size[instance.tau]
    status = "optimal" if cell.complete else "limit"
    return Fit(cell.support.tolist(), seconds, built - begin, result.nodes, status, cell.lower)


def instances(seeds: int, place: str) -> list[list[Instance]]:
    """Groups of instances that share a row of the table."""
    groups = []
    for n, p, k in ((442, 64, 10), (500, 200, 10)):
        group = []
        for seed in range(seeds):
            X, y = centred(*synthetic(n, p, k, seed, place=place), length=float(np.sqrt(n)))
            group.append(Instance(f"synthetic {n} x {p}, tau {k}, gamma 2", X, y, k, 1.0))
        groups.append(group)
    from sparsecv_mio.data.readers import read_dataset

    held = read_dataset(INSTANCES / "diabetes64.csv", TARGETS["diabetes64"])
    X, y = centred(held.X, held.y, length=1.0)
    y = y / y.std()  # Gurobi stops short of its gap on the response in its own units
    groups += [[Instance(f"diabetes64, tau 10, gamma {gamma:g}", X, y, 10, gamma / 2.0)] for gamma in (0.01, 1.0)]
    return groups


def runs_of(group: list[Instance], repeats: int, time_limit: float, methods: dict[str, Method]) -> dict[str, list[Run]]:
    """Run the methods in turns, so that a busy moment of the machine meets all of them."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for instance in group:
        for repeat in range(repeats):
            for name, method in methods.items():
                # a run this long is not noise: once is enough
                if repeat == 0 or runs[name][-1][1].seconds < time_limit / 4:
                    runs[name].append((instance, method(instance, time_limit)))
    return runs


def rows_of(runs: dict[str, list[Run]]) -> list[list[object]]:
    """One row a method."""
    lower = {id(instance): fit.lower for instance, fit in runs[OURS]}
    ours = statistics.median(fit.seconds + fit.build for _, fit in runs[OURS])
    unfinished = any(fit.status == "limit" for _, fit in runs[OURS])
    rows: list[list[object]] = []
    for name, held in runs.items():
        seconds = statistics.median(fit.seconds + (fit.build if name == OURS else 0.0) for _, fit in held)
        values = [(instance.objective(fit.support), lower[id(instance)]) for instance, fit in held]
        status = "/".join(sorted({fit.status for _, fit in held}))
        ratio = "-" if unfinished else f"{'> ' if 'limit' in status else ''}{seconds / ours:.3g}"
        rows.append(
            [
                held[0][0].name,
                name,
                len(held),
                seconds,
                statistics.median(fit.build for _, fit in held),
                ratio,
                int(statistics.median(fit.nodes for _, fit in held)),
                f"{max((value - bound) / value for value, bound in values):.1e}",
                status,
            ]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3, help="random data sets of each synthetic size")
    parser.add_argument("--place", choices=("spread", "first", "random"), default="spread")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--no-okridge", action="store_true", help="leave OKRidge out (no environment is made for it)")
    options = parser.parse_args()
    print(environment())
    gurobi = Gurobi()
    methods: dict[str, Method] = {OURS: native, gurobi.name: lambda i, limit: gurobi(i, GAP, limit)}
    okridge = None if options.no_okridge else OKRidge()
    if okridge is not None:
        methods[okridge.name] = lambda i, limit: okridge(i, GAP, limit)
    head = ["instance", "method", "runs", "median s", "set-up s", "x ours", "nodes", "true gap", "status"]
    rows: list[list[object]] = []
    for group in instances(options.seeds, options.place):
        native(group[0], time_limit=1.0)  # loads the compiled kernels
        rows += rows_of(runs_of(group, options.repeats, options.time_limit, methods))
    print(table(head, rows))
    gurobi.close()
    if okridge is not None:
        okridge.close()


if __name__ == "__main__":
    main()
