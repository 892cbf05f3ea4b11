"""What each oracle of the search saves: the four data sets of the paper, all on / each alone / none.

    python scripts/bench/oracles_in_search.py --out results/oracles_in_search.md

Every row is one question (data, folds, method) asked with the oracles off, each alone, and all on; the answers must be
the same. Counts repeat from run to run; times are CPU seconds, the best of `--repeats`, on one thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sparsecv_mio.certificate.parts import OracleWork
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.search.api import cross_validate

ROOT = Path(__file__).resolve().parents[2]
DATA = {"diabetes": "y", "housing": "medv", "servo": "class", "autompg": "mpg"}
GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
FOLDS = ("loo", "blocks:10")
METHODS = ("rounds", "joint", "algorithm1")
CHOICES: dict[str, tuple[str, ...] | None] = {
    "none": (), "glru": ("glru",), "iacv": ("iacv",), "treecv": ("treecv",), "all": ("glru", "iacv", "treecv"),
    "default": None,
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One question under one choice of oracles."""

    data: str
    folds: str
    method: str
    choice: str
    seconds: float
    record: Record

    def oracle(self, name: str) -> OracleWork:
        """What an oracle did; zeros where it was off."""
        return next((work for work in self.record.work.oracles if work.oracle == name), OracleWork(name))


def asked(dataset: Dataset, folds: str, method: str, choice: str, repeats: int) -> tuple[Record, float]:
    """Record and least CPU seconds of a question."""
    plan = make_folds(folds, dataset)
    best = float("inf")
    for _ in range(repeats):
        begun = time.process_time()
        record = cross_validate(
            dataset, plan, gammas=GAMMAS, taus=range(1, dataset.p + 1), threads=1, method=method,
            oracles=CHOICES[choice],
        )  # fmt: skip
        best = min(best, time.process_time() - begun)
    return record, best


def runs(data: list[str], methods: list[str], repeats: int) -> Iterator[Run]:
    """Every question in turn; one small run first, so that nothing is compiled inside a measured one."""
    for name in data:
        dataset = read_dataset(ROOT / "instances" / f"{name}.csv", DATA[name])
        for folds in FOLDS:
            for method in methods:
                for choice in CHOICES:
                    record, seconds = asked(dataset, folds, method, choice, 1 if method == "algorithm1" else repeats)
                    yield Run(name, folds, method, choice, seconds, record)


def same_answer(run: Run, off: Run) -> bool:
    """Status, pair and support, CV error and both ends of the certificate within the gap and its allowances."""
    a, b = run.record, off.record
    room = a.request.gap * b.upper + a.allowance + b.allowance
    exact = (a.status, a.gamma, a.tau, a.support) == (b.status, b.gamma, b.tau, b.support)
    near = abs(a.cv_error - b.cv_error) <= 1e-9 * b.cv_error
    return exact and near and abs(a.lower - b.lower) <= room and abs(a.upper - b.upper) <= room


def line(run: Run, off: Run) -> str:
    """One row of the table."""
    work, glru, iacv, tree = run.record.work, run.oracle("glru"), run.oracle("iacv"), run.oracle("treecv")
    cells = [
        run.data, run.folds, run.method, run.choice, "yes" if same_answer(run, off) else "NO",
        f"{run.record.gamma:g} / {run.record.tau}", f"{run.record.cv_error:.6g}", str(work.mios), str(work.nodes),
        f"{run.seconds:.3f}", f"{run.seconds / off.seconds:.2f}", str(glru.mios), str(glru.relaxations),
        str(glru.columns), str(iacv.hits), str(tree.rows), f"{sum(one.seconds for one in work.oracles):.3f}",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| data | folds | method | oracles | same answer | gamma / tau | CV error | MIOs | nodes | CPU s | over none | "
    "glru: MIOs spared | glru: relaxations spared | glru: columns fixed | iacv: hits | treecv: rows not read | "
    "oracles s |\n" + "|---" * 17 + "|"
)


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=list(DATA))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="Markdown file to write the table into")
    parser.add_argument("--intro", type=Path, help="Text to put above the table")
    args = parser.parse_args()
    asked(read_dataset(ROOT / "instances" / "prostate.csv", "lpsa"), "5", "algorithm1", "all", 1)
    off: Run | None = None
    lines = [HEAD]
    differ = 0
    for run in runs(args.data, args.methods, args.repeats):
        off = run if run.choice == "none" else off
        assert off is not None
        differ += not same_answer(run, off)
        lines.append(line(run, off))
        print(lines[-1], flush=True)
    print(json.dumps({"rows": len(lines) - 1, "different answers": differ}))
    if args.out:
        intro = args.intro.read_text(encoding="utf-8") + "\n" if args.intro else ""
        args.out.write_text(intro + "\n".join(lines) + "\n", encoding="utf-8")
    raise SystemExit(1 if differ else 0)


if __name__ == "__main__":
    main()
