"""Our relaxations and bounds beside a conic solver on the same relaxations, in one run, one thread each.

Leave-one-out on diabetes (442 folds x 9 tau) and autompg (392 x 24), gamma 1 (paper's relaxation: the penalty alone
inside the perspective). clarabel: `solve()` alone, set-up apart, tolerances so that its primal and dual meet to 1e-6;
both sides' certified relative gaps are checked. clarabel runs on every STEP-th fold and is scaled up.

    python scripts/bench/bounds_speed.py [--gamma 1] [--step 4] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
import time

import clarabel
import numpy as np
from _common import INSTANCES, TARGETS, deliver, environment, table
from scipy import sparse

from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.bounds.relaxation import Diagonal, relax_form, unit_diagonal
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import training_moments

GAP = 1e-6


class Conic:
    """`min b'Qb - 2c'b + lam sum s_j, b_j^2 <= s_j z_j, 0 <= z <= 1, sum z <= tau` in clarabel's form."""

    def __init__(self, q: int) -> None:
        self.q = q
        rows = [
            sparse.hstack([sparse.csc_matrix((q, 2 * q)), sparse.eye(q)]),
            sparse.csc_matrix(np.concatenate([np.zeros(2 * q), np.ones(q)])[None, :]),
        ]
        cones = [clarabel.NonnegativeConeT(q + 1)]
        for j in range(q):
            block = sparse.lil_matrix((3, 3 * q))
            block[0, q + j] = block[0, 2 * q + j] = block[2, q + j] = -1.0
            block[1, j], block[2, 2 * q + j] = -2.0, 1.0
            rows.append(sparse.csc_matrix(block))
            cones.append(clarabel.SecondOrderConeT(3))
        self.A, self.cones = sparse.csc_matrix(sparse.vstack(rows)), cones
        self.settings = clarabel.DefaultSettings()
        self.settings.verbose = False
        self.settings.max_threads = 1
        self.settings.tol_gap_rel = self.settings.tol_feas = self.settings.tol_gap_abs = 1e-7

    def solve(self, problem: SparseProblem, tau: int) -> tuple[float, float, float, float]:
        """Seconds of set-up, seconds of solve, value with yy, relative gap."""
        begin = time.perf_counter()
        q = self.q
        P = sparse.block_diag([2.0 * problem.Q, sparse.csc_matrix((2 * q, 2 * q))], format="csc")
        right = np.concatenate([np.ones(q), [float(tau)], np.zeros(3 * q)])
        linear = np.concatenate([-2.0 * problem.c, problem.penalty, np.zeros(q)])
        upper = sparse.csc_matrix(sparse.triu(P))
        solver = clarabel.DefaultSolver(upper, linear, self.A, right, self.cones, self.settings)
        ready = time.perf_counter()
        found = solver.solve()
        done = time.perf_counter()
        value, dual = problem.yy + found.obj_val, problem.yy + found.obj_val_dual
        return ready - begin, done - ready, value, abs(value - dual) / abs(value)


def ours(data: StandardData, problems: list[SparseProblem], taus: list[int]) -> tuple[float, float, float, np.ndarray]:
    """Set-up, relaxations, worst certified relative gap, dual values (folds, taus)."""
    setup = solve = worst = 0.0
    values = []
    for problem in problems:
        begin = time.perf_counter()
        form = unit_diagonal(problem, diagonal=Diagonal.PENALTY)
        assert form is not None
        ready = time.perf_counter()
        points = relax_form(form, taus, accuracy=0.5 * GAP)
        solve += time.perf_counter() - ready
        setup += ready - begin
        worst = max(worst, *(point.gap for point in points))
        values.append([point.dual for point in points])
    return setup, solve, worst, np.array(values)


def run(name: str, gamma: float, step: int) -> list[list[object]]:
    data = standardize(read_dataset(INSTANCES / f"{name}.csv", TARGETS[name]))
    folds, taus = make_folds("loo", data.dataset), list(range(1, data.q))
    begin = time.perf_counter()
    problems = [moments.problem(data, gamma) for _, moments in training_moments(data, folds)]
    moments_seconds = time.perf_counter() - begin
    ours(data, problems[:2], taus)
    compute_bounds(data, make_folds("holdout:0.01", data.dataset), [gamma], taus)
    cells = len(problems) * len(taus)
    setup, solve, gap, dual = ours(data, problems, taus)
    begin = time.perf_counter()
    bounds = compute_bounds(data, folds, [gamma], taus)
    everything = time.perf_counter() - begin
    model = Conic(data.q)
    sample = range(0, len(problems), step)
    model_setup = model_solve = model_gap = worst_difference = 0.0
    for fold in sample:
        for t, tau in enumerate(taus):
            a, b, value, relative = model.solve(problems[fold], tau)
            model_setup, model_solve, model_gap = model_setup + a, model_solve + b, max(model_gap, relative)
            worst_difference = max(worst_difference, abs(value - dual[fold, t]) / problems[fold].yy)
    scale = len(problems) / len(sample)
    conic = model_solve * scale
    head = [name, gamma, cells]
    return [
        [*head, "clarabel solve()", conic, 1e6 * conic / cells, 1.0, f"{model_gap:.1e}",
         f"set-up {model_setup * scale:.2f} s"],
        [*head, "our relaxations", solve, 1e6 * solve / cells, conic / solve, f"{gap:.1e}",
         f"set-up {setup:.2f} s, moments {moments_seconds:.2f} s, differ by {worst_difference:.1e} yy"],
        [*head, "relaxations, incumbents, all safe bounds", everything, 1e6 * everything / cells, conic / everything,
         "",
         f"with moments; {int((bounds.left == 0).sum())} cells decided"],
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gamma", default="1,0.1,0.01")
    parser.add_argument("--step", type=int, default=4)
    parser.add_argument("--data", default="diabetes,autompg")
    parser.add_argument("--out", default=None)
    options = parser.parse_args()
    rows: list[list[object]] = []
    for name in options.data.split(","):
        for gamma in options.gamma.split(","):
            print(name, gamma, file=sys.stderr, flush=True)
            rows += run(name, float(gamma), options.step)
    head = ["data", "gamma", "cells", "what", "seconds", "us / cell", "times faster", "worst gap", "beside"]
    text = "\n".join(
        ["# Relaxations and bounds beside a conic solver, leave-one-out", "", environment(), "", table(head, rows), ""]
    )
    deliver(text, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
