"""Speed guard: short questions on two commits side by side; fails where the second commit is slower.

    python scripts/bench/guard.py --long [--seeds 5024 1 2]
    python scripts/bench/guard.py BEFORE [AFTER] [--most 1.15] [--seconds 0.05] [--mean 1.00] [--only WORD ...]

BEFORE and AFTER are commits, or folders that hold the package; AFTER is this folder by default. Each has one warm
process on one thread, they take turns, and the least CPU seconds of five count; wall-clock seconds are shown as well. A
question fails if it is both 15% and 50 ms slower. The geometric mean of the ratios, rounded to two decimals, may be at
most 1.00. Questions that fail, or that raise a failing mean, are measured again, up to three times, and the least of
all measurements counts: on a busy machine a later measurement clears a question that an earlier one blamed.

The last column compares the answers as `same_records.py --same-answer` does; another answer fails too.
Commits are unpacked into build/guard, where their compiled kernels stay for the next time.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from _common import environment, parser_of, table
from _record_difference import IGNORED
from _record_runs import Run, fixed
from _same_answer import difference_of_answers
from long_questions import CPU_SECONDS, check_long_questions
from same_records import Measured, Tree, measure

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = (
    "solve diabetes --folds loo --gamma 0.01:1:7 --method rounds",
    "solve diabetes --folds 10 --gamma 0.01:1:5 --method algorithm1",
    "solve diabetes --folds 10",
    "solve housing --folds loo --gamma 0.05 --gap 0",
    "solve servo --folds 10 --gamma 0.1,1 --method joint",
    "solve servo --folds loo --gamma 0.01..1 --tau 1:4",
    "solve diabetes64 --folds 10 --gamma 1 --tau log --gap 0.05",
    "solve diabetes64 --folds 10 --gamma 0.3,1 --tau 1:8",
    "solve columns --folds 3 --gamma 1 --tau 1:2",
    "solve labels --loss logistic --drop site --folds 10 --gamma 0.003:0.3:3",
    "solve labels --loss logistic --drop site --folds loo --gamma 0.05 --tau 1:3",
    "solve counts --loss poisson --exposure hours --folds 10 --gamma 0.03,0.3,3",
    "solve counts --loss poisson --exposure hours --folds loo --gamma 0.3 --tau 1:3",
    "path housing --gamma 0.01:1:5",
    "bounds diabetes --folds 10 --gamma 0.1,1",
    "near diabetes --within 1% --gamma 0.1 --tau 3:6",
    "fit diabetes64 --tau 6 --gamma 1",
)
MAX_RATIO = 1.15  # a slower question fails if it also takes MAX_EXTRA_SECONDS longer
MAX_EXTRA_SECONDS = 0.05  # CPU seconds; shorter changes are within the noise of one question
MAX_MEAN = 1.00  # geometric mean of the ratios, rounded to two decimals
MAX_MEASUREMENTS = 4  # of a question that fails
HEAD = ["question", "CPU s before", "CPU s after", "CPU ratio", "wall s before", "wall s after", "measured", "answers"]


@dataclass
class Question:
    """A question with its measurements so far."""

    run: Run
    measurements: list[Measured] = field(default_factory=list)

    def shortest(self, clock: str) -> tuple[float, float]:
        """Return the least seconds before and after, of the clock `cpu` or `wall`."""
        before, after = zip(*(getattr(one, clock) for one in self.measurements), strict=True)
        return min(before), min(after)

    @property
    def ratio(self) -> float:
        """CPU seconds after over CPU seconds before."""
        before, after = self.shortest("cpu")
        return after / before

    def is_slower(self, limits: argparse.Namespace) -> bool:
        """Return True if the question is slower by more than the ratio and more than the seconds allowed."""
        before, after = self.shortest("cpu")
        return after > limits.most * before and after > before + limits.seconds

    @property
    def row(self) -> list[object]:
        """A row of the table."""
        cpu, wall = self.shortest("cpu"), self.shortest("wall")
        return [self.run.name.strip(), *cpu, self.ratio, *wall, len(self.measurements), self.answers]

    @property
    def answers(self) -> str:
        """How the answers compare, in words."""
        one = self.measurements[0]
        return "same" if one.same else "; ".join(filter(None, [one.differs.words(), *one.notes]))


def folder_of(name: str) -> Path:
    """Return the folder of a commit, or one that holds the package as it is."""
    if (Path(name) / "sparsecv_mio").is_dir():
        return Path(name).resolve()
    place = ROOT / "build" / "guard" / _git("rev-parse", "--short", name).decode().strip()
    if not place.exists():
        place.mkdir(parents=True)
        with tarfile.open(fileobj=BytesIO(_git("archive", name))) as files:
            files.extractall(place, filter="data")
    return place


def _git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True).stdout


def geometric_mean(ratios: list[float]) -> float:
    """Return the geometric mean, rounded to two decimals as it is judged."""
    return round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 2)


def questions_to_repeat(questions: list[Question], limits: argparse.Namespace) -> list[Question]:
    """Return the questions that fail or, if the mean fails, all that took longer."""
    if geometric_mean([question.ratio for question in questions]) > limits.mean:
        return [question for question in questions if question.ratio > 1.0]
    return [question for question in questions if question.is_slower(limits)]


def measure_questions(sides: tuple[Path, Path], limits: argparse.Namespace) -> list[Question]:
    """Measure every question, then up to three times more those that make the guard fail."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        runs = {run.name.strip(): run for run in fixed(place)}
        questions = [Question(runs[text]) for text in QUESTIONS if all(word in text for word in limits.only)]
        trees = Tree("before", sides[0], place), Tree("after", sides[1], place)
        pending = questions
        try:
            for round_index in range(MAX_MEASUREMENTS):
                for number, question in enumerate(pending):
                    begins = (number + round_index) % 2
                    measured = measure(question.run, trees, limits.repeats, difference_of_answers, IGNORED, begins)
                    question.measurements.append(measured)
                    print(f"{question.ratio:6.3f}  {question.run.name.strip()}", file=sys.stderr, flush=True)
                pending = questions_to_repeat(questions, limits)
        finally:
            for tree in trees:
                tree.close()
    return questions


def main() -> int:
    """Ask every question of both, print the table, and state why the guard fails."""
    parser = parser_of(__doc__)
    parser.add_argument("before", nargs="?", default="main")
    parser.add_argument("after", nargs="?", default=str(ROOT))
    parser.add_argument("--most", type=float, default=MAX_RATIO, help=f"ratio of a question that fails [{MAX_RATIO}]")
    parser.add_argument("--seconds", type=float, default=MAX_EXTRA_SECONDS, help=f"and its extra [{MAX_EXTRA_SECONDS}]")
    parser.add_argument("--mean", type=float, default=MAX_MEAN, help=f"largest geometric mean [{MAX_MEAN:.2f}]")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="questions that contain all of these")
    parser.add_argument("--long", action="store_true", help="long questions of this environment alone, no comparison")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(CPU_SECONDS), help="of the long questions")
    limits = parser.parse_args()
    if limits.long:
        return check_long_questions(limits.seeds)
    questions = measure_questions((folder_of(limits.before), folder_of(limits.after)), limits)
    print(environment(), table(HEAD, [question.row for question in questions]), sep="\n\n")
    mean = geometric_mean([question.ratio for question in questions])
    slower = [question.run.name.strip() for question in questions if question.is_slower(limits)]
    other = [question.run.name.strip() for question in questions if question.answers != "same"]
    totals = [sum(question.shortest("cpu")[side] for question in questions) for side in (0, 1)]
    print(f"\nCPU seconds in all: {totals[0]:.2f} -> {totals[1]:.2f}")
    print(f"geometric mean of the CPU ratios: {mean:.2f} (at most {limits.mean:.2f})")
    print(f"slower by more than {limits.most} and {limits.seconds} s: {'; '.join(slower) or 'none'}")
    print(f"other answers: {'; '.join(other) or 'none'}")
    return 1 if slower or other or mean > limits.mean else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"no such commit, and no folder with the package: {error.cmd[-1]}")
