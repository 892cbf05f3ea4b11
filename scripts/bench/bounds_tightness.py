"""How wide each bound of the CV error is, beside the printed (invalid) one, on the same incumbents.

Five data sets, leave-one-out and blocks of ten rows, gamma 0.01, 0.1 and 1, every tau (diabetes64: 1 to 20). The
widths are relative to h at the incumbents. Two tables: the best certified interval and the printed one on all folds;
every bound by itself on at most FOLDS folds.

    python scripts/bench/bounds_tightness.py [--data diabetes,servo] [--folds loo,blocks:10] [--sample 40] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _common import INSTANCES, TARGETS, deliver, environment, table

from sparsecv_mio.bounds.cv_error import compute_bounds, printed_ends
from sparsecv_mio.bounds.fold import FoldBounds, Which
from sparsecv_mio.bounds.relaxation import Diagonal, unit_diagonal
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.problem.training_moments import full_problem, training_moments
from sparsecv_mio.units import Interval

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "reference"))
from ellipsoids import safe_ellipsoid  # noqa: E402

GAMMAS = (0.01, 0.1, 1.0)
NAMES = ("diabetes", "housing", "servo", "autompg", "diabetes64")
Method = Callable[[FoldBounds, list[int]], list[tuple[float, float]]]

INSTANCE_OF: dict[str, str] = {}  # of the data, by fingerprint


def taus_of(data: StandardData) -> list[int]:
    return list(range(1, data.q)) if data.q < 30 else list(range(1, 21))


def printed(fold: FoldBounds, taus: list[int]) -> list[tuple[float, float]]:
    return [(lower, upper) for lower, upper, _ in printed_ends(fold, taus).tolist()]


def family(which: Which) -> Method:
    def run(fold: FoldBounds, taus: list[int]) -> list[tuple[float, float]]:
        return [(cell.lower, cell.upper) for cell in fold.cells(taus, which)]

    return run


def conic_at_penalty(fold: FoldBounds, taus: list[int]) -> list[tuple[float, float]]:
    sharp, fold.form = fold.form, unit_diagonal(fold.problem, diagonal=Diagonal.PENALTY)
    try:
        return [(cell.lower, cell.upper) for cell in fold.cells(taus, Which.CONIC)]
    finally:
        fold.form = sharp


def ellipsoids(shares: tuple[float, ...], diagonal: Diagonal, together: bool) -> Method:
    def run(fold: FoldBounds, taus: list[int]) -> list[tuple[float, float]]:
        form = unit_diagonal(fold.problem, diagonal=diagonal)
        assert form is not None
        out = []
        for tau in taus:
            found = Interval(0.0, np.inf)
            for share in shares:
                body = safe_ellipsoid(form, tau, float(fold.best[tau]) * (1.0 + 3e-9), share)
                ends = body.together(fold.X, fold.u) if together else body.rows(fold.X, fold.u)
                found = found.tighten(ends, 1e-9 * float(fold.u @ fold.u))
            out.append((found.lower, found.upper))
        return out

    return run


METHODS: dict[str, Method] = {
    "as printed (invalid)": printed,
    "ridge ellipsoid, row by row": ellipsoids((1.0,), Diagonal.PENALTY, False),
    "3 eps-ellipsoids, row by row": ellipsoids((1.0, 0.5, 0.1), Diagonal.PENALTY, False),
    "3 eps-ellipsoids, together": ellipsoids((1.0, 0.5, 0.1), Diagonal.PENALTY, True),
    "3 sharp ellipsoids, together": ellipsoids((1.0, 0.5, 0.1), Diagonal.SHARP, True),
    "conic, w = lam, row by row": conic_at_penalty,
    "conic, sharp w, row by row": family(Which.CONIC),
    "conic, sharp w, together": family(Which.AGGREGATED),
    "safe (all, screened)": family(Which.SAFE),
}


def truth_of_incumbents(fold: FoldBounds, taus: list[int]) -> float:
    total = 0.0
    for tau in taus:
        support = np.flatnonzero(fold.supports[tau])
        assert fold.form is not None
        M = fold.form.M[np.ix_(support, support)]
        total += float(np.sum((fold.u - fold.X[:, support] @ np.linalg.solve(M, fold.form.c[support])) ** 2))
    return total


def each_bound(data: StandardData, spec: str, gamma: float, sample: int) -> list[list[object]]:
    folds, taus = make_folds(spec, data.dataset), taus_of(data)
    full = FoldBounds(full_problem(data, gamma), *data.rows(np.arange(0)))
    full.search(taus, swap_rounds=6)
    full.cells(taus)
    width, seconds, held, cells = dict.fromkeys(METHODS, 0.0), dict.fromkeys(METHODS, 0.0), 0.0, 0
    for fold, moments in training_moments(data, folds, range(0, folds.k, max(1, folds.k // sample))):
        here = FoldBounds(moments.problem(data, gamma), *data.rows(folds.scored_rows(fold)))
        here.try_supports(full.incumbents())
        here.search(taus, swap_rounds=2)
        here.cells(taus)  # rounds every relaxation: all methods below start from the same incumbents
        held += truth_of_incumbents(here, taus)
        cells += len(taus)
        for name, method in METHODS.items():
            if here.N == 1 and "together" in name:
                continue
            begin = time.perf_counter()
            ends = method(here, taus)
            seconds[name] += time.perf_counter() - begin
            width[name] += sum(high - low for low, high in ends)
    base = width["as printed (invalid)"]
    return [
        [
            INSTANCE_OF[data.dataset.fingerprint],
            spec,
            gamma,
            name,
            width[name] / held,
            width[name] / base,
            1e6 * seconds[name] / cells,
        ]
        for name in METHODS
        if seconds[name] > 0.0
    ]


def all_folds(data: StandardData, spec: str) -> list[list[object]]:
    folds, taus = make_folds(spec, data.dataset), taus_of(data)
    safe = compute_bounds(data, folds, GAMMAS, taus)
    old = compute_bounds(data, folds, GAMMAS, taus, "as-printed")
    rows: list[list[object]] = []
    for g, gamma in enumerate(GAMMAS):
        wide, base = (x.upper[g] - x.lower[g] for x in (safe, old))
        middle = float(np.nansum(safe.estimate[g]))
        per_tau = wide.sum(axis=1) / base.sum(axis=1)
        cells = wide.size
        rows.append(
            [INSTANCE_OF[data.dataset.fingerprint], spec, gamma, cells, wide.sum() / middle, base.sum() / middle,
             wide.sum() / base.sum(), float(per_tau.mean()), float(per_tau.max()), float((safe.left[g] == 0).mean()),
             1e6 * float(safe.seconds[g]) / cells]
        )  # fmt: skip
    return rows


def load(name: str) -> StandardData:
    """An instance in standard coordinates."""
    data = standardize(read_dataset(INSTANCES / f"{name}.csv", TARGETS[name]))
    INSTANCE_OF[data.dataset.fingerprint] = name
    return data


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(NAMES))
    parser.add_argument("--folds", default="loo,blocks:10")
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--out", default=None)
    options = parser.parse_args()
    warm = load("servo")
    compute_bounds(warm, make_folds("3", warm.dataset), [1.0], [1, 2])
    compute_bounds(warm, make_folds("loo", warm.dataset), [1.0], [1], "as-printed")
    first: list[list[object]] = []
    second: list[list[object]] = []
    for name in options.data.split(","):
        data = load(name)
        for spec in options.folds.split(","):
            print(name, spec, file=sys.stderr, flush=True)
            first += all_folds(data, spec)
            for gamma in GAMMAS:
                second += each_bound(data, spec, gamma, options.sample)
    text = "\n".join(
        [
            "# Width of the bounds of the CV error",
            "",
            environment(),
            "",
            "Best certified interval (`safe`) beside the printed one, all folds and taus. Widths are sums over cells,",
            "over h at the relaxations' points; the ratios by tau are of sums over folds; time is one thread,",
            "incumbents included.",
            "",
            table(
                ["data", "folds", "gamma", "cells", "width / h", "printed / h", "ratio", "mean ratio by tau",
                 "worst tau", "cells decided", "us / cell"], first,
            ),
            "",
            f"Every bound by itself, same incumbents, a sample of {options.sample} folds or more; h at the incumbents.",
            "",
            table(["data", "folds", "gamma", "bound", "width / h", "of printed", "us / cell"], second),
            "",
        ]
    )  # fmt: skip
    deliver(text, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
