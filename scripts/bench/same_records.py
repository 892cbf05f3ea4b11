"""Records and times of two source trees: a fixed set of runs, or random ones, in one and then in the other.

    python scripts/bench/same_records.py BEFORE AFTER [--same-answer] [--quick] [--random N --seed S] [--out FILE]

BEFORE and AFTER are folders that hold the package, as `git worktree add` makes them. Each has one process that stays
warm; they take turns, whoever is first changing at every repeat. A run is a command line, called inside the process; it
is made once unmeasured, then the best of `--repeats` counts, in wall-clock and in CPU seconds. On a busy machine CPU
seconds are the fairer measure; ratios of runs of a few milliseconds say little by themselves.

Records must be equal in every field but what tells of the work, the time and the versions (`IGNORED`), to the last
digit; new fields (`NEW`) are no difference. `--tolerance` only shows how large differences are. `--same-answer` is for
a search that works in another order: status and pair must be equal, exact numbers equal up to rounding, and intervals
must overlap; other bounds within the gap are no difference (`_same_answer.py`). In both modes, a run that writes two
different records in one tree is reported as well: it can say nothing. Every run is on one thread and without a time
limit. The exit code is 1 where records or exit codes differ.

A changed kernel keeps its callers' old machine code in the cache of the tree: delete `sparsecv_mio/kernels/__pycache__`
of AFTER first, and run once for the times.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _common import environment, parser_of, table
from _record_difference import IGNORED, Difference, compared, difference, node_limit
from _record_runs import Run, fixed, random_runs
from _same_answer import difference_of_answers

SHORT = 0.05  # seconds under which a run is repeated more often
MOST_RATIO = 1.05

Compare = Callable[[dict[str, Any] | None, dict[str, Any] | None], Difference]


def compare_fields(ignored: re.Pattern[str], tolerance: float) -> Compare:
    """Return the comparison of two records in every field that is not ignored."""
    return lambda before, after: difference(compared(before, ignored), compared(after, ignored), tolerance)


class Tree:
    """The process of one source tree."""

    def __init__(self, side: str, tree: Path, place: Path) -> None:
        self.side, self.scratch, self.log = side, place / f"{side}_scratch", place / f"{side}.log"
        self.record = self.scratch / "record.json"
        if not (tree / "sparsecv_mio" / "cli").is_dir():
            sys.exit(f"{tree} holds no package sparsecv_mio")
        settings = {
            "PYTHONPATH": str(tree.resolve()), "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "MPLBACKEND": "agg",
        }  # fmt: skip
        environ = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("_record_worker.py")), str(tree.resolve()), str(self.log)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=place, env=environ | settings,
        )  # fmt: skip

    def carry_out(self, run: Run) -> dict[str, Any]:
        """Call the commands of a run once; the answer of the worker with the record beside it."""
        place = {"{record}": str(self.record), "{scratch}": str(self.scratch)}
        commands = [[re.sub(r"\{\w+\}", lambda found: place[found[0]], word) for word in c] for c in run.commands]
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):  # of a process that has ended: it answers nothing
            self.process.stdin.write(json.dumps({"commands": commands, "scratch": str(self.scratch)}) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the process of {self.side} ended in the run {run.name}:\n{self.told()}")
        answer: dict[str, Any] = json.loads(line)
        answer["record"] = json.loads(self.record.read_text(encoding="utf-8")) if self.record.exists() else None
        return answer

    def told(self) -> str:
        """The end of what the last run printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:] if self.log.exists() else ""

    def close(self) -> None:
        """End the process, whatever it is at."""
        self.process.kill()
        self.process.wait()


@dataclass(frozen=True)
class Measured:
    """A run in both trees: seconds are (before, after)."""

    run: Run
    differs: Difference
    wall: tuple[float, float]
    cpu: tuple[float, float]
    same_work: bool
    recorded: bool
    notes: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether nothing is to be reported."""
        return not self.differs and not self.notes


def measure(
    run: Run, trees: tuple[Tree, Tree], repeats: int, compare: Compare, ignored: re.Pattern[str], begins: int
) -> Measured:
    """Make a run once unmeasured and `repeats` times measured (more often where it is short), trees taking turns.

    `begins` says which tree is first at the start: it changes from run to run, so that over a set neither has the
    better place.
    """
    answers: tuple[list[dict[str, Any]], ...] = ([], [])
    number = 0
    while number <= repeats:
        first_tree = (number + begins) % 2
        for which in (first_tree, 1 - first_tree):
            answers[which].append(trees[which].carry_out(run))
        if number == 1 and repeats > 1 and max(held[1]["wall"] for held in answers) < SHORT:
            repeats = 3 * repeats
        number += 1
    wall, cpu = (
        (min(one[what] for one in answers[0][1:]), min(one[what] for one in answers[1][1:])) if repeats else (0.0, 0.0)
        for what in ("wall", "cpu")
    )
    first, second = (held[-1] for held in answers)
    same_work = node_limit(first["record"]) == node_limit(second["record"])
    differs = compare(first["record"], second["record"])
    notes = tuple(_notes(trees, answers, ignored))
    return Measured(run, differs, wall, cpu, same_work, first["record"] is not None, notes)


def _notes(
    trees: tuple[Tree, Tree], answers: tuple[list[dict[str, Any]], ...], ignored: re.Pattern[str]
) -> Iterator[str]:
    """What else is wrong with a run: records that change from call to call, exceptions, other exit codes."""
    for tree, held in zip(trees, answers, strict=True):
        changing = compare_fields(ignored, 0.0)(held[0]["record"], held[-1]["record"])
        if changing:
            yield f"not the same twice {tree.side}: {changing.words()}"
        crash = next((code for code in held[-1]["codes"] if isinstance(code, str)), None)
        if crash is not None:
            yield f"exception {tree.side}: {crash}"
    first, second = (held[-1]["codes"] for held in answers)
    if first != second:
        yield f"exit codes {first} -> {second}: {_last_line(trees[0])} -> {_last_line(trees[1])}"


def _last_line(tree: Tree) -> str:
    return (tree.told().strip().splitlines() or ["(nothing)"])[-1][:200]


HEAD = ["run", "equal", "what differs", "largest", "wall s", "wall ratio", "CPU ratio"]


def row(one: Measured) -> list[object]:
    """A row of the table."""
    what = "; ".join([one.differs.words(), *one.notes]).strip("; ") or "-"
    ratios = [f"{b / a:.3f}" if a else "-" for a, b in (one.wall, one.cpu)]
    far = f"{one.differs.largest:.1e}" if 0.0 < one.differs.largest < math.inf else "-"
    return [one.run.name.strip(), "yes" if one.same else "NO", what, far, f"{one.wall[0]:.3f}", *ratios]


def told(one: Measured) -> str:
    """What is printed of a run as soon as it is over."""
    name, equal, what, far, seconds, wall, cpu = row(one)
    line = f"{equal:<4}{seconds:>7} s  wall {wall:>6}  CPU {cpu:>6}  {name}"
    return line if one.same else "\n".join([line, f"    {what} (largest {far})", *one.differs.examples()])


def summary(measured: list[Measured]) -> Iterator[str]:
    """What the whole set says."""
    same = sum(one.same for one in measured)
    refused = sum(not one.recorded for one in measured)
    yield f"records: {same} of {len(measured)} equal" + (f" ({refused} refused, without a record)" if refused else "")
    numbers = [one.differs.largest for one in measured if 0.0 < one.differs.largest < math.inf]
    if numbers:
        yield f"largest relative difference of a number: {max(numbers):.2e}"
    new = sorted(set().union(*(one.differs.new for one in measured)))
    if new:
        yield f"fields only AFTER has: {', '.join(new)}"
    other = [one.run.name.strip() for one in measured if not one.same_work]
    yield f"other MIOs or nodes: {'; '.join(other) or 'none'}"
    if any(one.wall[0] for one in measured):
        for name, pairs in (("wall", [one.wall for one in measured]), ("CPU", [one.cpu for one in measured])):
            total = [sum(pair[side] for pair in pairs) for side in (0, 1)]
            mean = math.exp(sum(math.log(b / a) for a, b in pairs) / len(pairs))
            ratio = total[1] / total[0]
            within = "within" if ratio <= MOST_RATIO else "BEYOND"
            totals = f"{total[0]:.2f} s -> {total[1]:.2f} s, ratio of the totals {ratio:.3f} ({within} {MOST_RATIO})"
            yield f"{name}: {totals}, geometric mean of the ratios {mean:.3f}"


def measured_runs(asked: argparse.Namespace) -> Iterator[Measured]:
    """Every run asked for, in turn."""
    ignored = re.compile("|".join([IGNORED.pattern, *(rf"{re.escape(name)}\b.*" for name in asked.ignore)]))
    compare = difference_of_answers if asked.same_answer else compare_fields(ignored, asked.tolerance)
    repeats = asked.repeats if asked.repeats is not None else (0 if asked.random else 1 if asked.quick else 3)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        trees = Tree("before", asked.before, place), Tree("after", asked.after, place)
        try:
            runs: Iterable[Run] = random_runs(place, asked.random, asked.seed) if asked.random else fixed(place)
            for number, run in enumerate(runs):
                wanted = run.quick or not asked.quick
                if wanted and all(word in run.name for word in asked.only):
                    yield measure(run, trees, repeats, compare, ignored, number % 2)
        finally:
            for tree in trees:
                tree.close()


def main() -> int:
    """Run both trees and compare."""
    parser = parser_of(__doc__)
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("after", type=Path, metavar="AFTER")
    parser.add_argument("--same-answer", action="store_true", help="compare answers and intervals, not every field")
    parser.add_argument("--quick", action="store_true", help="a third of the runs, each measured once")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random small runs in place of the set")
    parser.add_argument("--seed", type=int, default=0, help="of the random runs; run i of a seed is always the same")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="runs whose line holds all of these")
    parser.add_argument("--repeats", type=int, help="measured repeats of each run; 0: records only [3]")
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative difference of numbers let pass [0]")
    parser.add_argument("--ignore", nargs="*", default=[], metavar="FIELD", help="fields of the record not to compare")
    parser.add_argument("--out", help="Markdown file for the table")
    asked = parser.parse_args()
    if asked.random and (asked.quick or asked.only):
        parser.error("--random: draws its own runs; leave out --quick and --only")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # with the two processes
    measured = []
    for one in measured_runs(asked):
        measured.append(one)
        if not asked.random or not one.same:
            print(told(one), flush=True)
    sums = "\n".join(summary(measured))
    print(sums)
    if asked.out:
        page = "\n\n".join([environment(), table(HEAD, [row(one) for one in measured]), sums.replace("\n", "\n\n")])
        Path(asked.out).write_text(page + "\n", encoding="utf-8")
    return 0 if measured and all(one.same for one in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
