"""Leave-one-out of two classes: certified searches beside LogisticRegressionCV, and one support by four ways.

    python scripts/bench/two_class_loo.py [--cases 1000x20 10000x20] [--data FILE:TARGET ...] [--limit 60] [--gammas 5]
                                          [--folds 10]
    python scripts/bench/two_class_loo.py --one-support [--cases ...] [--out FILE]

Synthetic rows are N(0, Sigma), Sigma_ij = 0.5^|i-j|, with five coefficients and labels by the logistic model.
Everything runs on one thread, in a process of its own; seconds are those of the processor, after a small run that loads
what is compiled, and memory is what the largest resident set grew by meanwhile, over the bytes of X. The peer is one
`LogisticRegressionCV(cv=10)` with as many C and the log loss as its score: it chooses C for all columns together, and
fits 10 models a C where the search answers for K times the sizes.

With `--one-support` all columns are one support, --gamma on columns of variance 1, no intercept: what its fit on all
rows says of the log loss of leave-one-out. `one step` and `more steps` are `sparsecv_mio.trees.glm_left_out`; `GLRU`
is `leave_one_out_bounds`, by conjugate duality; `Newton estimate` is the point after one step, which IACV and
approximate cross-validation report, with its distance from the truth as its width; `refits` are Newton's method in
every fold, from the fit on all rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import FloatArray, deliver, environment, table

from sparsecv_mio.batch.sources import toeplitz_rows
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import RowLists
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.two_classes import as_two_classes
from sparsecv_mio.kernels.glm_newton import newton
from sparsecv_mio.oracles.glru import Logistic, Regularizer, leave_one_out_bounds, make_problem, train
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.search.api import solve
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.glm_left_out import LeftOut

TRUTH = 1.0, -0.8, 0.6, 0.5, -0.4
MOST_REFITTED = 20_000_000  # rows times folds, up to which every fold is fitted anew


def drawn(case: str, seed: int = 1) -> tuple[FloatArray, FloatArray]:
    """Return X and labels 0 and 1 of NxP."""
    n, p = (int(size) for size in case.split("x"))
    rng = np.random.default_rng(seed)
    X, truth = toeplitz_rows(rng, n, p, 0.5), np.zeros(p)
    truth[np.arange(5) * (p // 5)] = TRUTH
    return X, (X @ truth - 0.5 + rng.logistic(size=n) > 0.0).astype(float)


def dataset_of(case: str) -> Dataset:
    """Return a case, NxP or FILE:TARGET."""
    if ":" in case:
        path, target = case.rsplit(":", 1)
        return as_two_classes(read_dataset(path, target, two_words=True))
    return as_two_classes(Dataset.from_arrays(*drawn(case)))


def measured(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what work returns, its processor seconds, and by how many bytes the largest resident set grew."""
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    result = work()
    seconds = time.process_time() - began
    return result, seconds, 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def search(case: str, limit: float, gammas: int, folds: str) -> dict[str, Any]:
    """Run one search in this process."""
    asked = {"loss": "logistic", "threads": 1}
    solve(dataset_of("60x5"), folds=folds, taus="1:3", gammas=[0.1, 1.0], **asked)  # type: ignore[arg-type]
    data = dataset_of(case)
    grid = None if gammas == 5 else f"0.001:0.1:{gammas}"
    record, seconds, grown = measured(
        lambda: solve(data, folds=folds, gammas=grid, time_limit=limit or None, **asked)  # type: ignore[arg-type]
    )
    return {
        "case": case, "n": data.n, "p": data.p, "status": str(record.status), "tau": record.tau, "gap": record.gap,
        "cells": sum(row.folds for row in record.table), "seconds": seconds, "memory": grown / data.X.nbytes,
    }  # fmt: skip


def peer(case: str, gammas: int) -> dict[str, Any]:
    """Run one LogisticRegressionCV in this process."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.preprocessing import scale

    data = dataset_of(case)
    X, Cs = scale(data.X), np.geomspace(1e-2, 1e2, gammas)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegressionCV(Cs=Cs, cv=10, scoring="neg_log_loss", n_jobs=1)
        _, seconds, grown = measured(lambda: model.fit(X, data.y))
    return {"seconds": seconds, "memory": grown / data.X.nbytes}


def in_process(kind: str, case: str, *words: str) -> dict[str, Any]:
    """Run one of the two in a process of its own."""
    command = [sys.executable, __file__, "--run", kind, "--cases", case, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def ends(low: FloatArray, high: FloatArray) -> tuple[float, float]:
    """Least and greatest sum of log losses of margins between two ends."""
    return float(np.logaddexp(0.0, -high).sum()), float(np.logaddexp(0.0, -low).sum())


def one_support(case: str, gamma: float) -> list[list[str]]:
    """Leave every row out of one support by each way."""
    X, target = drawn(case)
    y, n = np.where(target > 0.0, 1.0, -1.0), len(X)
    X = np.ascontiguousarray(X / X.std(axis=0))
    problem = GlmProblem(X, y, np.ones(n), np.ones(X.shape[1]), gamma, intercept=False)
    fits, every_row = GlmFits.of(problem, None), RowLists(np.arange(n), np.arange(n + 1))
    mask, folds = np.ones(problem.p, dtype=bool), LeftOut(fits, every_row, None, np.ones(n))
    point = fits.fit(range(problem.p))[0]
    here, first, _ = measured(lambda: folds.of(mask, point))
    low, high, near = here.held_out()
    estimate = float(near.sum())
    widths = {"one step": (float(low.sum()), float(high.sum()), first)}
    _, more, _ = measured(lambda: here.settle(np.arange(n), 1e-9))
    low, high, near = here.held_out()
    truth = float(near.sum())
    widths["more steps"] = float(low.sum()), float(high.sum()), first + more
    trained = train(make_problem(X, y, Logistic(), Regularizer(gamma / n)))
    bracket, glru, _ = measured(lambda: leave_one_out_bounds(trained))
    signed = np.sort(y * np.array([bracket.lower, bracket.upper]), axis=0)
    widths["GLRU"] = *ends(signed[0], signed[1]), glru
    lines = [
        [case, name, f"{low:.6g}", f"{high:.6g}", f"{(high - low) / truth:.1e}", f"{seconds:.4f}"]
        for name, (low, high, seconds) in widths.items()
    ]
    lines.append(
        [case, "Newton estimate", f"{estimate:.8g}", "", f"{abs(estimate - truth) / truth:.1e}", f"{first:.4f}"]
    )
    if n * n <= MOST_REFITTED:
        _, seconds, _ = measured(lambda: refits(fits, point))
        lines.append([case, "refits", f"{truth:.8g}", "", "", f"{seconds:.4f}"])
    return lines


def refits(fits: GlmFits, point: FloatArray) -> None:
    """Fit every fold's rows, from the fit on all rows."""
    rows, v = fits.rows, fits.rows.response.v.copy()
    for i in range(len(v)):
        v[i] = 0.0
        newton(rows.W, rows.response._replace(v=v), rows.penalty, point.copy(), 1e-14, np.inf, 0.0)
        v[i] = 1.0


def main() -> None:
    """Measure what is asked for, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="*", default=["1000x20", "10000x20"])
    parser.add_argument("--data", nargs="*", default=[], metavar="FILE:TARGET")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of each search; 0 for none")
    parser.add_argument("--gammas", type=int, default=5)
    parser.add_argument("--folds", default="loo", help="of the searches [loo]")
    parser.add_argument("--one-support", action="store_true")
    parser.add_argument("--gamma", type=float, default=1.0, help="of --one-support")
    parser.add_argument("--out")
    parser.add_argument("--run", choices=["search", "peer"], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        case = asked.cases[0]
        searched = asked.run == "search"
        row = search(case, asked.limit, asked.gammas, asked.folds) if searched else peer(case, asked.gammas)
        print(json.dumps(row))
        return
    if asked.one_support:
        one_support("100x3", 1.0)  # compiles
        lines = [line for case in asked.cases for line in one_support(case, asked.gamma)]
        text = table(["case", "way", "lower", "upper", "width", "CPU s"], lines)
    else:
        lines = []
        for case in [*asked.data, *asked.cases]:
            words = ["--limit", str(asked.limit), "--gammas", str(asked.gammas), "--folds", asked.folds]
            mine, other = in_process("search", case, *words), in_process("peer", case, *words)
            lines.append([
                case.rsplit("/", 1)[-1], f"{mine['n']} x {mine['p']}", f"{mine['cells']:,}", mine["status"],
                f"{mine['gap']:.1e}",
                f"{mine['seconds']:.1f}", f"{mine['memory']:.1f}", f"{other['seconds']:.1f}", f"{other['memory']:.1f}",
                f"{mine['seconds'] / other['seconds']:.2f}",
            ])  # fmt: skip
        heads = ["case", "rows", "cells", "status", "gap", "CPU s", "memory", "CV(10) CPU s", "CV(10) memory", "ratio"]
        text = table(heads, lines)
    deliver(f"{text}\n\n{environment()}\n", asked.out)


if __name__ == "__main__":
    main()
