"""First use: the commands with no kernel compiled yet, of two revisions side by side.

    python scripts/bench/cold_start.py --old 423a1cc --out results/cold_start.md

Both revisions are unpacked into temporary folders; every command gets an empty NUMBA_CACHE_DIR of its own, revisions
take turns. Then each runs once more from its cache. CPU seconds are those of the process; on a busy machine they are
the fairer measure.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from _common import deliver, environment, table

ROOT = Path(__file__).resolve().parents[2]
DATA = ["instances/diabetes.csv", "--target", "y"]
COMMANDS = {
    "solve": ["solve", *DATA],
    "fit": ["fit", *DATA, "--tau", "5", "--gamma", "1"],
    "path": ["path", *DATA],
    "bounds": ["bounds", *DATA],
}


HEAD = ["command", "cold wall, old", "new", "ratio", "cold CPU, old", "new", "ratio", "warm wall, old", "new"]


class Seconds(NamedTuple):
    """Of one process."""

    wall: float
    cpu: float


def unpack(revision: str, folder: Path) -> Path:
    """Files of a revision, as committed."""
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", revision], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def timed(tree: Path, command: list[str], cache: Path) -> Seconds:
    """Run one command of a revision."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "sparsecv_mio.cli", *command], cwd=tree, check=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(cache)},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Seconds(time.perf_counter() - begin, cpu)


def main() -> int:
    """Unpack, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", default="423a1cc")
    parser.add_argument("--new", default="HEAD")
    parser.add_argument("--out")
    parser.add_argument("--only", choices=list(COMMANDS), nargs="*", default=list(COMMANDS))
    asked = parser.parse_args()
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        trees = {side: unpack(revision, place / side) for side, revision in (("old", asked.old), ("new", asked.new))}
        for word in asked.only:
            cold, warm = (
                {side: timed(tree, COMMANDS[word], place / f"{side}_{word}") for side, tree in trees.items()}
                for _ in range(2)
            )
            (a, x), (b, y) = cold["old"], cold["new"]
            rows.append([word, a, b, b / a, x, y, y / x, warm["old"].wall, warm["new"].wall])
            print(table(HEAD, rows[-1:]), file=sys.stderr, flush=True)
    title = f"# First use: diabetes, default options, {asked.old} (old) against {revision_of(asked.new)} (new)"
    note = "Seconds of whole processes. Cold: an empty cache of kernels; warm: the same command again."
    deliver("\n".join([title, "", environment(), "", note, "", table(HEAD, rows), ""]), asked.out)
    return 0


def revision_of(name: str) -> str:
    """Short name of a revision."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", name]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
