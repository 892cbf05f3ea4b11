"""Leave-one-out of two classes or counts: searches beside scikit-learn's CV, and their verification.

    python scripts/bench/two_class_loo.py [--cases 1000x20 10000x20] [--data FILE:TARGET ...] [--limit 60] [--gammas 5]
                                          [--folds 10] [--loss poisson] [--verify]

Synthetic rows are N(0, Sigma), Sigma_ij = 0.5^|i-j|, with five coefficients and labels by the logistic model.
Everything runs on one thread, in a process of its own; seconds are those of the processor, after a small run that loads
what is compiled, and memory is the largest resident set above that of the small run, X itself included, over the bytes
of X. The peer is one `LogisticRegressionCV(cv=10)` with as many C and the log loss as its score, or of counts a
`PoissonRegressor` in a `GridSearchCV(cv=10)`: it chooses C for all columns together, and fits 10 models a C where the
search answers for K times the sizes. With `--verify` the record is verified too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import FloatArray, deliver, environment, parser_of, table

from sparsecv_mio.batch.sources import toeplitz_rows
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.search.api import solve

TRUTH = 1.0, -0.8, 0.6, 0.5, -0.4


def drawn(case: str, seed: int = 1, loss: str = "logistic") -> tuple[FloatArray, FloatArray]:
    """Return X and labels 0 and 1 of NxP, or counts."""
    n, p = (int(size) for size in case.split("x"))
    rng = np.random.default_rng(seed)
    X, truth = toeplitz_rows(rng, n, p, 0.5), np.zeros(p)
    truth[np.arange(5) * (p // 5)] = TRUTH
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.5 * (X @ truth))).astype(float)
    return X, (X @ truth - 0.5 + rng.logistic(size=n) > 0.0).astype(float)


def dataset_of(case: str, loss: str = "logistic") -> Dataset:
    """Return a case, NxP or FILE:TARGET."""
    if loss == "poisson":
        return Dataset.from_arrays(*drawn(case, loss=loss))
    if ":" in case:
        path, target = case.rsplit(":", 1)
        return as_two_classes(read_dataset(path, target, two_words=True))
    return as_two_classes(Dataset.from_arrays(*drawn(case)))


def resident(field: str = "VmRSS") -> float:
    """Bytes of the resident set of this process, or the most there were (VmHWM); of Linux."""
    with open("/proc/self/status") as status:
        return next(1024.0 * int(line.split()[1]) for line in status if line.startswith(field))


def measured(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what work returns, its processor seconds, and the bytes of the largest resident set meanwhile."""
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")  # what was most begins anew
    began = time.process_time()
    result = work()
    return result, time.process_time() - began, resident("VmHWM")


def search(case: str, limit: float, gammas: int, folds: str, loss: str, verified: bool) -> dict[str, Any]:
    """Run one search in this process, and its verification."""
    asked: dict[str, Any] = {"loss": loss, "threads": 1}
    small = dataset_of("1000x20", loss)  # large enough to load all that a large one does
    solve(small, folds=folds, taus="1:6", gammas=[0.1, 1.0], **asked)
    base, data = resident(), dataset_of(case, loss)
    grid = None if gammas == 5 else f"0.001:0.1:{gammas}"
    record, seconds, most = measured(lambda: solve(data, folds=folds, gammas=grid, time_limit=limit or None, **asked))
    row = {
        "case": case, "n": data.n, "p": data.p, "status": str(record.status), "tau": record.tau, "gap": record.gap,
        "cells": sum(row.folds for row in record.table), "seconds": seconds, "memory": (most - base) / data.X.nbytes,
    }  # fmt: skip
    if verified:
        said, seconds, most = measured(lambda: verify(record, data))
        row |= {"verified": seconds, "verify_memory": (most - base) / data.X.nbytes, "ok": said.ok}
    return row


def peer(case: str, gammas: int, loss: str) -> dict[str, Any]:
    """Run the peer in this process."""
    from sklearn.linear_model import LogisticRegressionCV, PoissonRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import scale

    def fitted(case: str) -> tuple[float, float, float]:
        base, data = resident(), dataset_of(case, loss)
        X, Cs, model = scale(data.X), np.geomspace(1e-2, 1e2, gammas), None
        if loss == "poisson":
            model = GridSearchCV(PoissonRegressor(), {"alpha": 1.0 / (Cs * data.n)}, cv=10)
        else:
            model = LogisticRegressionCV(Cs=Cs, cv=10, scoring="neg_log_loss", n_jobs=1)
        _, seconds, most = measured(lambda: model.fit(X, data.y))
        return seconds, most - base, data.X.nbytes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted("60x5")
        seconds, grown, size = fitted(case)
    return {"seconds": seconds, "memory": grown / size}


def in_process(kind: str, case: str, *words: str) -> dict[str, Any]:
    """Run one of the two in a process of its own."""
    command = [sys.executable, __file__, "--run", kind, "--cases", case, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure what is asked for, and print a table."""
    parser = parser_of(__doc__, out=True)
    parser.add_argument("--cases", nargs="*", default=["1000x20", "10000x20"])
    parser.add_argument("--data", nargs="*", default=[], metavar="FILE:TARGET")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of each search; 0 for none")
    parser.add_argument("--gammas", type=int, default=5)
    parser.add_argument("--folds", default="loo", help="of the searches [loo]")
    parser.add_argument("--loss", default="logistic", choices=["logistic", "poisson"])
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--run", choices=["search", "peer"], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        case = asked.cases[0]
        searched = asked.run == "search"
        how = asked.limit, asked.gammas, asked.folds, asked.loss, asked.verify
        print(json.dumps(search(case, *how) if searched else peer(case, asked.gammas, asked.loss)))
        return
    lines = []
    for case in [*asked.data, *asked.cases]:
        words = ["--limit", str(asked.limit), "--gammas", str(asked.gammas), "--folds", asked.folds]
        words += ["--loss", asked.loss, *(["--verify"] if asked.verify else [])]
        mine, other = in_process("search", case, *words), in_process("peer", case, *words)
        lines.append([
            case.rsplit("/", 1)[-1], f"{mine['n']} x {mine['p']}", f"{mine['cells']:,}", mine["status"],
            f"{mine['gap']:.1e}",
            f"{mine['seconds']:.1f}", f"{mine['memory']:.1f}", f"{other['seconds']:.1f}", f"{other['memory']:.1f}",
            f"{mine['seconds'] / other['seconds']:.2f}",
            *([f"{mine['verified']:.1f}", f"{mine['verify_memory']:.1f}", str(mine["ok"])] if asked.verify else []),
        ])  # fmt: skip
    heads = ["case", "rows", "cells", "status", "gap", "CPU s", "memory", "CV(10) CPU s", "CV(10) memory", "ratio"]
    heads += ["verify CPU s", "verify memory", "verified"] if asked.verify else []
    text = table(heads, lines)
    deliver(f"{text}\n\n{environment()}\n", asked.out)


if __name__ == "__main__":
    main()
