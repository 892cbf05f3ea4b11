"""Runs inside OKRidge's own environment (numpy < 2): one JSON request a line in, one JSON answer a line out."""

from __future__ import annotations

import contextlib
import json
import sys
import time

import numpy as np
from okridge.tree import BNBTree


def answer(request: dict) -> dict:
    with np.load(request["data"]) as held:
        X, y = held["X"], held["y"]
    with contextlib.redirect_stdout(sys.stderr):
        begin = time.perf_counter()
        tree = BNBTree(X=X, y=y, lambda2=request["lam"])
        built = time.perf_counter()
        _, beta, gap, _, _ = tree.solve(
            k=request["tau"], gap_tol=request["gap"], verbose=False, time_limit=request["time_limit"]
        )
        seconds = time.perf_counter() - built
    return {
        "support": np.flatnonzero(beta).tolist(),
        "claimed_gap": float(gap),
        "nodes": int(tree.number_of_nodes),
        "build": built - begin,
        "seconds": seconds,
    }


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
