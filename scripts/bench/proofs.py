"""Proofs of searches: what they take to make and to check. Writes the table of results/proofs.md.

    python scripts/bench/proofs.py --out results/proofs.md

Seconds are those of the processor, on one thread, kernels compiled before; of the search, of its proof, and of
`sparsecv check` in both modes, without the start of a process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sparsecv_mio.check.main import check
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.proofs.writing import write_proof
from sparsecv_mio.search.api import cross_validate

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SEVEN = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0)
PAPER = {"diabetes": "y", "housing": "medv", "servo": "class", "autompg": "mpg"}


@dataclass(frozen=True)
class Case:
    """One search: data, folds, grid; `exact` where the exact mode is run too."""

    name: str
    data: Callable[[], Dataset]
    folds: str
    gammas: tuple[float, ...] | None
    taus: range | None
    exact: bool = False


def instance(name: str, target: str) -> Callable[[], Dataset]:
    return lambda: read_dataset(str(INSTANCES / f"{name}.csv"), target)


def correlated(n: int, p: int, k: int) -> Callable[[], Dataset]:
    """Draw n rows of p columns, neighbours correlated by 1/2, k of them in the target, signal-to-noise ratio 5."""

    def draw() -> Dataset:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, p))
        for j in range(1, p):
            X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
        signal = X[:, rng.choice(p, size=k, replace=False)].sum(axis=1)
        return Dataset.from_arrays(X, signal + rng.normal(size=n) * signal.std() / np.sqrt(5.0))

    return draw


def cases(exact: bool) -> Iterator[Case]:
    """Yield the searches; those of diabetes are checked in exact mode too where that is asked for."""
    for name, target in PAPER.items():
        for folds in ("loo", "blocks:10"):
            p = instance(name, target)().p
            yield Case(name, instance(name, target), folds, SEVEN, range(1, p + 1), exact and name == "diabetes")
    yield Case("263 x 19, default grid", correlated(263, 19, 6), "10", None, None)
    yield Case("housing2", instance("housing2", "medv"), "10", (1.0,), range(1, 9))
    yield Case("housing2", instance("housing2", "medv"), "loo", (1.0,), range(1, 9))
    yield Case("200 x 1,000", correlated(200, 1000, 10), "10", (1.0,), range(1, 7))


def line(case: Case) -> str:
    """Return a row of the table."""
    data, clock = case.data(), time.process_time
    plan = make_folds(case.folds, data, 0)
    began = clock()
    record = cross_validate(data, plan, gammas=case.gammas, taus=case.taus, threads=1, gap=1e-4)
    solved = clock()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "proof"
        write_proof(record, data, place, plan)
        logged = clock()
        found = check(str(place), data.X, data.y)
        fast, size = clock() - logged, place.stat().st_size
        exact = "-"
        if case.exact:
            begin = clock()
            check(str(place), data.X, data.y, "exact")
            exact = f"{clock() - begin:.0f}"
    trees = found.words[1].removesuffix(" leaves cover all supports, every bound holds").removeprefix("trees: ")
    return (
        f"| {case.name} | {case.folds} | {len(record.request.gammas)} | {len(record.request.taus)} | {record.status} "
        f"| {solved - began:.2f} | {logged - solved:.2f} | {fast:.2f} | {exact} | {size / 1e3:.1f} "
        f"| {trees.replace(', their ', ' / ')} |"
    )


def main() -> None:
    """Print the table, and write it between head and end of the file."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--out", type=Path)
    given.add_argument("--exact", action="store_true", help="check the proofs of diabetes in exact mode too: minutes")
    options = given.parse_args()
    warm = correlated(30, 5, 2)()
    for folds in ("loo", "3"):
        plan = make_folds(folds, warm)
        record = cross_validate(warm, plan, gammas=[0.1, 1.0], taus=[1, 2], threads=1)
        with tempfile.TemporaryDirectory() as folder:
            write_proof(record, warm, Path(folder) / "proof", plan)
    rows = []
    for case in cases(options.exact):
        rows.append(line(case))
        print(rows[-1], flush=True)
    if options.out is not None:
        text = options.out.read_text().split("<!-- table -->")
        head = (
            "| data | folds | gammas | taus | status | solve s | proof s | fast s | exact s | kB | trees / leaves |\n"
            "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
        )
        options.out.write_text("<!-- table -->".join([text[0], "\n" + head + "\n".join(rows) + "\n", *text[2:]]))


if __name__ == "__main__":
    main()
