"""Which method is the fastest, in seconds, and whether `auto` takes it: data x folds x grids x gaps, warm, one process.

    python scripts/bench/methods_by_time.py --out build/methods_by_time.md
    python scripts/bench/methods_by_time.py --data servo,autompg --folds 10,loo
    python scripts/bench/methods_by_time.py --before TREE    # beside the methods of another source tree

Every line is a question. All methods answer it in turn, once under the limit and unmeasured, then without a limit, the
shorter a run the more often; the median CPU seconds of each count. On one thread these are the wall-clock seconds of a
machine that does nothing else. `auto / best` is the ratio of `auto` to the fastest of the others, `before` are those of
TREE, in a warm process of its own. The answers are compared: intervals of all methods meet, and no CV error exceeds
another by more than the gap.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from _common import INSTANCES, deliver, environment, synthetic, table

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.search.api import cross_validate

FILES = {
    "prostate": "lpsa", "diabetes": "y", "diabetes11": "y", "housing": "medv", "servo": "class", "autompg": "mpg",
    "topgear": "MPG", "diabetes64": "y", "housing2": "medv", "topgear_int": "MPG",
}  # fmt: skip
MADE: dict[str, Callable[[], Dataset]] = {
    "44x21": lambda: Dataset.from_arrays(*synthetic(44, 21, 5, seed=0, rho=0.7, snr=2.0)),
    "200x30": lambda: Dataset.from_arrays(*synthetic(200, 30, 6, seed=1)),
    "3000x10": lambda: Dataset.from_arrays(*synthetic(3000, 10, 4, seed=6)),
}
LARGEST_TAU = {"topgear": 5, "diabetes64": 6, "housing2": 5, "topgear_int": 3, "200x30": 10}  # beyond, trees take long
LEAST_GAMMA = {"diabetes64": 0.1, "housing2": 0.3, "topgear_int": 1.0}  # below, trees take long
LEAST, LARGEST, ONE = 1e-3, 10.0, 0.1
FOLDS = ("10", "loo", "blocks:10", "5")
Question = tuple[str, str, str, float]  # data, folds, number of gammas, gap
HEAD = ["data", "folds", "gammas", "gap"]
MOST = 1.25  # times the best method that `auto` may take
ENOUGH = 0.3  # seconds of a method after which it is not asked again


@dataclass(frozen=True)
class Answer:
    """What one run took, and what it says of the best pair."""

    seconds: float
    status: str
    lower: float
    upper: float
    cv_error: float
    slack: float  # by which rounding and ties may move the ends


@dataclass
class Times:
    """CPU seconds of every run of a method at a question, and its last answer."""

    runs: list[float] = field(default_factory=list)
    answer: Answer | None = None

    @property
    def seconds(self) -> float:
        """The median."""
        return float(np.median(self.runs))

    @property
    def proved(self) -> bool:
        """Whether the question was answered within the limit."""
        return self.answer is not None and self.answer.status == "proved"


class Tree:
    """A warm process of another source tree."""

    def __init__(self, tree: str) -> None:
        environ = os.environ | {"PYTHONPATH": str(Path(tree).resolve()), "NUMBA_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def answer(self, *asked: object) -> Answer:
        """Have it answer; arguments as those of `answer`."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        return Answer(**json.loads(self.process.stdout.readline()))


def load(name: str) -> Dataset:
    """Return committed or made data."""
    return MADE[name]() if name in MADE else read_dataset(INSTANCES / f"{name}.csv", FILES[name])


def gammas_of(name: str, grid: str) -> list[float]:
    """Return so many gammas, from the least one that is asked of the data."""
    least = LEAST_GAMMA.get(name, LEAST)
    return [max(ONE, least)] if grid == "1" else np.geomspace(least, LARGEST, int(grid)).tolist()


def questions(ask: argparse.Namespace) -> Iterator[Question]:
    """Data, folds, grid and gap."""
    for name in ask.data.split(","):
        for spec in ask.folds.split(","):
            for grid in ask.grids.split(","):
                for gap in ask.gaps.split(","):
                    yield name, spec, grid, float(gap)


@lru_cache(maxsize=1)
def prepared(name: str, spec: str) -> tuple[Dataset, FoldPlan]:
    """Return data and folds."""
    return load(name), make_folds(spec, load(name))


def answer(question: Question, method: str, threads: int, limit: float | None) -> Answer:
    """Answer a question by a method."""
    name, spec, grid, gap = question
    data, folds = prepared(name, spec)
    gammas, taus = gammas_of(name, grid), range(1, min(data.p, LARGEST_TAU.get(name, 30)) + 1)
    began = time.process_time()
    record = cross_validate(
        data, folds, gammas=gammas, taus=taus, gap=gap, method=method, threads=threads, time_limit=limit
    )
    spent, slack = time.process_time() - began, record.allowance + record.tie_width
    return Answer(spent, record.status, record.lower, record.upper, record.cv_error, slack)


def measure(question: Question, ask: argparse.Namespace, before: Tree | None) -> dict[str, Times]:
    """Answer one question by every method, in turn, until each was asked often or took long enough."""
    methods: dict[str, tuple[Callable[..., Answer], str]] = {
        f"{'before ' if tree else ''}{method}": (tree.answer if tree else answer, method)
        for tree in (before, None) if tree or not before
        for method in ask.methods.split(",")
    }  # fmt: skip
    methods["auto"] = answer, "auto"
    found = {name: Times() for name in methods}
    for repeat in range(1 + ask.repeats):
        for name, times in found.items():
            if repeat > 1 and (sum(times.runs) > ENOUGH or times.runs[0] > ask.once):
                continue
            if repeat and not times.proved:
                continue  # that run counts
            run, method = methods[name]
            times.answer = run(question, method, ask.threads, None if repeat else ask.limit)
            times.runs = [*times.runs, times.answer.seconds] if repeat > 1 else [times.answer.seconds]
    return found


def disagreement(found: dict[str, Times], gap: float) -> str:
    """Say in which way the answers of the methods differ by more than the gap; nothing where they do not."""
    done = {method: times.answer for method, times in found.items() if times.answer is not None and times.proved}
    if not done:
        return ""
    lower, least = max(one.lower for one in done.values()), min(one.cv_error for one in done.values())
    for method, one in done.items():
        if lower > one.upper * (1.0 + 1e-9) + one.slack:
            return f"{method}: upper {one.upper!r} below {lower!r}"
        if one.cv_error > least * (1.0 + gap + 1e-9) + one.slack:
            return f"{method}: CV error {one.cv_error!r}"
    return ""


def report(rows: list[list[object]], found: list[dict[str, Times]], ask: argparse.Namespace) -> str:
    """The table, the worst ratio, and the sums."""
    methods = list(found[0])
    done = [times for times in found if all(one.proved for one in times.values())]
    sums = [[method, sum(times[method].seconds for times in done)] for method in methods]
    best = sum(min(one.seconds for one in times.values()) for times in done)
    ratios = [float(str(row[-1])) for row in rows]
    worst = int(np.argmax(ratios))
    return "\n\n".join([
        "# The methods by time", environment(), (__doc__ or "").split("\n\n")[2].strip(),
        f"Threads: {ask.threads}; limit {ask.limit:g} s (`>`).",
        f"`auto` to the best: at most {ratios[worst]:.2f} ({', '.join(map(str, rows[worst][: len(HEAD)]))}); above "
        f"{MOST:g}: {sum(ratio > MOST for ratio in ratios)} of {len(rows)}.",
        f"Sums over the {len(done)} questions that every method answered within the limit "
        f"(of the fastest of each: {best:.4g} s):",
        table(["method", "CPU s"], sums),
        table([*HEAD, *[f"{method} s" for method in methods], "fastest", "auto / best"], rows),
    ]) + "\n"  # fmt: skip


def row_of(question: Question, times: dict[str, Times]) -> list[object]:
    """A line of the table: `>` marks a run that reached the limit."""
    shown = [f"{'' if one.proved else '>'}{one.seconds:.4f}" for one in times.values()]
    others = [method for method in times if method != "auto"]
    fastest = min(others, key=lambda method: times[method].seconds if times[method].proved else np.inf)
    ratio = round(times["auto"].seconds / times[fastest].seconds, 3)
    return [question[0], question[1], question[2], f"{question[3]:g}", *shown, fastest, ratio]


def main() -> int:
    """Ask every question of every method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join([*FILES, *MADE]))
    parser.add_argument("--folds", default=",".join(FOLDS))
    parser.add_argument("--grids", default="15,1", help="numbers of gammas")
    parser.add_argument("--gaps", default="1e-4,0")
    parser.add_argument("--methods", default="rounds,joint")
    parser.add_argument("--repeats", type=int, default=15, help="runs of a method at most")
    parser.add_argument("--once", type=float, default=3.0, help="seconds beyond which a run is not repeated")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for a run")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--before", metavar="TREE")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out")
    ask = parser.parse_args()
    if ask.serve:
        for line in sys.stdin:
            print(json.dumps(asdict(answer(*json.loads(line)))), flush=True)
        return 0
    before = Tree(ask.before) if ask.before else None
    rows: list[list[object]] = []
    found: list[dict[str, Times]] = []
    wrong = []
    for question in questions(ask):
        found.append(measure(question, ask, before))
        rows.append(row_of(question, found[-1]))
        print(*rows[-1], file=sys.stderr, flush=True)
        if said := disagreement(found[-1], question[3]):
            wrong.append(f"{question}: {said}")
    deliver(report(rows, found, ask), ask.out)
    print("\n".join(wrong) or "All answers agree.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
