"""What the studies share: one thread for linear algebra; a batch that is carried on, with its progress on screen."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence

# Read when numpy is first loaded: every method is timed with single-threaded linear algebra.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from sparsecv_mio.batch.batch_plan import Task  # noqa: E402
from sparsecv_mio.batch.dispatch import run_batch  # noqa: E402
from sparsecv_mio.batch.task_folder import BatchFolder, TaskOutcome  # noqa: E402

SHOWN_EVERY = 60.0  # seconds between two lines of progress


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every study."""
    parser.add_argument("--out", required=True, metavar="FOLDER", help="of the batch: read, and added to")
    parser.add_argument(
        "--results", default="build/results", metavar="FOLDER", help="where `report` writes [build/results]"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes of `run` [1]")
    parser.add_argument("--cpu-minutes", type=float, help="end `run` after so much processor time of one process")


def carry_on(phases: Iterable[Sequence[Task]], ask: argparse.Namespace) -> int:
    """Run what is left of the tasks, one phase after the other, within the limit that is asked for."""
    folder = BatchFolder(ask.out)
    shown, begin = time.monotonic(), time.process_time()

    def spent() -> float:
        return (time.process_time() - begin) / 60.0

    for number, tasks in enumerate(phases, 1):
        left = [task for task in tasks if folder.read(task.address) is None]
        print(f"phase {number}: {len(tasks):,} tasks, {len(left):,} left", flush=True)
        done = 0

        def told(outcome: TaskOutcome, left: int = len(left)) -> None:
            nonlocal done, shown
            done += 1
            if outcome.state == "failed":
                print(f"failed: {outcome.task['data']}: {outcome.reason}", file=sys.stderr, flush=True)
            if time.monotonic() - shown > SHOWN_EVERY:
                shown = time.monotonic()
                print(f"{done:,} of {left:,}, {spent():.1f} CPU minutes", flush=True)
            if ask.cpu_minutes is not None and spent() > ask.cpu_minutes:
                raise KeyboardInterrupt

        try:
            run_batch(left, folder, workers=ask.workers, progress=told)
        except KeyboardInterrupt:
            print("stopped: the same command carries on", flush=True)
            return 130
    return 0
