"""Speed guard: ten short questions on two commits side by side; fails where one takes more than 15% longer.

    python scripts/bench/guard.py BEFORE [AFTER] [--most 1.15] [--repeats 5]

BEFORE and AFTER are commits, or folders that hold the package; AFTER is this folder by default. Each has one warm
process on one thread, they take turns, and the least CPU seconds of five count. A question that is beyond is measured
again, up to three times, and the least of all counts: on a busy machine a look clears what the one before blamed.
Commits are unpacked into build/guard, where their compiled kernels stay for the next time.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

from _common import environment, table
from _record_difference import IGNORED
from _record_runs import fixed
from same_records import Measured, Tree, measure

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = (
    "solve diabetes --folds loo --gamma 0.01:1:7 --method rounds",
    "solve diabetes --folds 10 --gamma 0.01:1:5 --method algorithm1",
    "solve housing --folds loo --gamma 0.05 --gap 0",
    "solve servo --folds loo --gamma 0.01:1:4 --method joint --oracles none",
    "solve diabetes64 --folds 10 --gamma 1 --tau log --gap 0.05",
    "solve columns --folds 3 --gamma 1 --tau 1:2",
    "path housing --gamma 0.01:1:5",
    "bounds diabetes --folds 10 --gamma 0.1,1",
    "near diabetes --within 1% --gamma 0.1 --tau 3:6",
    "fit diabetes64 --tau 6 --gamma 1",
)
MOST = 1.15
LOOKS = 4  # at a question that is beyond
HEAD = ["question", "before, CPU s", "after, CPU s", "ratio", "looks", "records"]


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


def least(looks: list[Measured]) -> tuple[float, float]:
    """Return the least CPU seconds before and after."""
    before, after = zip(*(one.cpu for one in looks), strict=True)
    return min(before), min(after)


def main() -> int:
    """Ask every question of both, print the table, and say which are beyond."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default=str(ROOT))
    parser.add_argument("--most", type=float, default=MOST, help=f"ratio that fails [{MOST}]")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    sides = folder_of(asked.before), folder_of(asked.after)
    rows: list[list[object]] = []
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        runs = {run.name.strip(): run for run in fixed(place)}
        trees = Tree("before", sides[0], place), Tree("after", sides[1], place)
        try:
            for number, question in enumerate(QUESTIONS):
                looks = [measure(runs[question], trees, asked.repeats, 0.0, IGNORED, number % 2)]
                while len(looks) < LOOKS and least(looks)[1] > asked.most * least(looks)[0]:
                    looks.append(measure(runs[question], trees, asked.repeats, 0.0, IGNORED, (number + len(looks)) % 2))
                before, after = least(looks)
                ratios.append(after / before)
                rows.append([question, before, after, ratios[-1], len(looks), "equal" if looks[0].same else "differ"])
                print(f"{ratios[-1]:6.3f}  {question}", file=sys.stderr, flush=True)
        except KeyError as error:
            sys.exit(f"{error} is no run of _record_runs.py")
        finally:
            for tree in trees:
                tree.close()
    print(environment(), table(HEAD, rows), sep="\n\n")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    beyond = [question for question, ratio in zip(QUESTIONS, ratios, strict=True) if ratio > asked.most]
    print(f"\ngeometric mean of the ratios {mean:.3f}; beyond {asked.most}: {'; '.join(beyond) or 'none'}")
    return 1 if beyond else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"no such commit, and no folder with the package: {error.cmd[-1]}")
