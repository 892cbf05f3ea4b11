"""Proofs of searches: what they take to make and to check. Writes the table of results/proofs.md.

    python scripts/bench/proofs.py --out build/proofs.md

Seconds are those of the processor, on one thread, kernels compiled before: of the search, of its proof, and of
`sparsecv check` in both modes, without the start of a process; and of the whole commands: the search without and with
`--proof`, and the check.
The least of three runs, where one takes less than a second.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _common import parser_of

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.check.main import check
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.proofs.proof_writing import write_proof
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state.context import Snapshot

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SEVEN = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0)
PAPER = {"diabetes": "y", "housing": "medv", "servo": "class", "autompg": "mpg"}
EXACT = ("diabetes", "housing", "servo")
SHORT, RUNS = 1.0, 3  # seconds below which so many runs are made, of which the quickest counts


@dataclass(frozen=True)
class Case:
    """One search: data, folds, grid; the target where the data are a file, `exact` where the exact mode is run too."""

    name: str
    data: Callable[[], Dataset]
    folds: str
    gammas: tuple[float, ...] | None
    taus: range | None
    target: str | None = None
    exact: bool = False

    def command(self) -> list[str]:
        """Return the command of the search."""
        how = [sys.executable, "-m", "sparsecv_mio.cli", "solve", str(INSTANCES / f"{self.name}.csv"), "-q"]
        how += ["--target", str(self.target), "--folds", self.folds, "--threads", "1"]
        how += [] if self.gammas is None else ["--gamma", ",".join(map(str, self.gammas))]
        return how + ([] if self.taus is None else ["--tau", f"{self.taus[0]}:{self.taus[-1]}"])


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


def cases() -> Iterator[Case]:
    """Yield the searches."""
    for name, target in PAPER.items():
        p = instance(name, target)().p
        for folds in ("loo", "blocks:10"):
            yield Case(name, instance(name, target), folds, SEVEN, range(1, p + 1), target, name in EXACT)
    yield Case("hitters", instance("hitters", "log10_salary"), "10", None, None, "log10_salary")
    yield Case("263 x 19, default grid", correlated(263, 19, 6), "10", None, None)
    yield Case("housing2", instance("housing2", "medv"), "10", (1.0,), range(1, 9), "medv")
    yield Case("housing2", instance("housing2", "medv"), "loo", (1.0,), range(1, 9), "medv")
    yield Case("200 x 1,000", correlated(200, 1000, 10), "10", (1.0,), range(1, 7))


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return what a piece of work takes."""
    found: list[float] = []
    while len(found) < RUNS:
        began = clock()
        work()
        found.append(clock() - began)
        if found[0] >= SHORT:
            break
    return min(found)


def of_children() -> float:
    """Seconds of the processor that processes took which were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def whole(command: list[str]) -> str:
    """Return what a command takes, start of the process included; the least of three."""
    return f"{seconds(lambda: subprocess.run(command, capture_output=True, check=True), of_children):.2f}"


def commands(case: Case, place: str) -> str:
    """Return what the whole commands of the search, of the search with its proof and of the check take."""
    if case.target is None:
        return "- | - | -"
    plain, check = case.command(), [*case.command()[:3], "check", place, case.command()[4]]
    return f"{whole(plain)} | {whole([*plain, '--proof', place])} | {whole(check)}"


def line(case: Case, exact: bool) -> str:
    """Return a row of the table."""
    data = case.data()
    plan = make_folds(case.folds, data, 0)
    known: list[Snapshot] = []

    def search() -> Record:
        return cross_validate(data, plan, gammas=case.gammas, taus=case.taus, threads=1, gap=1e-4, found=known.append)

    record = search()
    solve = seconds(search)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "proof"
        proof = seconds(lambda: write_proof(record, data, place, plan, known[-1]))
        found = check(str(place), data.X, data.y)
        fast, size, slow = seconds(lambda: check(str(place), data.X, data.y)), place.stat().st_size, "-"
        if exact and case.exact:
            slow = f"{seconds(lambda: check(str(place), data.X, data.y, 'exact')):.0f}"
        by_process = commands(case, str(place))
    trees = next(word for word in found.words if word.startswith("trees: "))
    trees = trees.removesuffix(" leaves cover all supports, and every bound is valid").removeprefix("trees: ")
    return (
        f"| {case.name} | {case.folds} | {len(record.request.gammas)} | {len(record.request.taus)} | {record.status} "
        f"| {solve:.3f} | {proof:.3f} | {proof / solve:.2f} | {fast:.2f} | {fast / solve:.1f} | {slow} | {by_process} "
        f"| {size / 1e3:.1f} | {trees.replace(', their ', ' / ')} |"
    )


def main() -> None:
    """Print the table, and write it between head and end of the file."""
    given = parser_of(__doc__)
    given.add_argument("--out", type=Path)
    given.add_argument("--exact", action="store_true", help="check the small ones in exact mode too: minutes")
    given.add_argument("--only", help="cases whose name begins so")
    options = given.parse_args()
    warm = correlated(30, 5, 2)()
    for folds in ("loo", "3"):
        plan = make_folds(folds, warm)
        record = cross_validate(warm, plan, gammas=[0.1, 1.0], taus=[1, 2], threads=1)
        with tempfile.TemporaryDirectory() as folder:
            write_proof(record, warm, Path(folder) / "proof", plan)
    rows = []
    for case in cases():
        if case.name.startswith(options.only or ""):
            rows.append(line(case, options.exact))
            print(rows[-1], flush=True)
    if options.out is not None:
        head = (
            "| data | folds | gammas | taus | status | solve s | proof s | / solve | fast s | / solve | exact s "
            "| command s | with proof s | `check` s | kB | trees / leaves |\n"
            f"| --- | --- | ---: | ---: | --- {'| ---: ' * 10}| --- |\n"
        )
        options.out.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
