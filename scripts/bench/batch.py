"""Batches: two workers beside one, killed and carried on, a dask worker killed, many small jobs in one run.

Usage: python scripts/bench/batch.py workers|kills|dask|shell [--repeats R] [--kills N] [--seed S]

workers  the 200 tasks of batch_plan.toml with one worker and with two, in turns; wall and CPU seconds, the ratio
kills    the same batch killed by SIGKILL at random moments and carried on; its table beside that of a run in peace
dask     the same batch on a dask cluster of two workers, one of which is killed on the way; the tables again
shell    50 small jobs by 50 calls of `sparsecv solve`, and as one batch; the ratio, and the answers
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import psutil  # type: ignore[import-untyped]
from _common import INSTANCES

from sparsecv_mio.batch.collected import collect
from sparsecv_mio.batch.one_task import BatchFolder

PLAN = Path(__file__).with_name("batch_plan.toml")
TASKS = 200
SMALL_JOBS = 50
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "NUMBA", "OMP")}
ENVIRONMENT = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
LOOK = 0.1
PATIENCE = 60.0  # seconds for the workers of a batch that was killed to end
SPARED = 12  # tasks at the end, so that the last kill comes before it


def sparsecv(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sparsecv_mio.cli", *words]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def batch(out: Path, *words: str, plan: Path = PLAN) -> subprocess.Popen[bytes]:
    return sparsecv("batch", str(plan), "--out", str(out), *words)


def timed(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Wall and CPU seconds of a process and its children until it ends."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.wait() != 0:
        raise SystemExit(f"exit code {process.returncode}: {process.args!r}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


def tables(out: Path) -> list[pd.DataFrame]:
    """What came of the tasks, and of all pairs of their grids, but for times; not verified."""
    frames = (collect(BatchFolder(out), level, check=False) for level in ("tasks", "pairs"))
    return [frame.drop(columns=[name for name in frame if "seconds" in str(name)]) for frame in frames]


def compare(out: Path, reference: Path) -> None:
    """Print whether two folders hold the same results to the last digit."""
    for level, (ours, theirs) in zip(("tasks", "pairs"), zip(tables(out), tables(reference), strict=True), strict=True):
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
        print(f"  {level}: {len(ours):,} rows, all equal to the last digit")
    stray = [path.name for path in (out / "tasks").iterdir() if path.suffix != ".json"]
    print(f"  {len(list((out / 'tasks').glob('*.json')))} records, files of another kind left over: {stray or 'none'}")


def workers(folder: Path, repeats: int) -> None:
    walls: dict[int, list[float]] = {1: [], 2: []}
    for k in range(repeats):
        for count in (1, 2) if k % 2 == 0 else (2, 1):
            out = folder / f"{k}-{count}"
            load = os.getloadavg()[0]
            wall, cpu = timed(batch(out, "--workers", str(count)))
            fits = sum(one.seconds for one in BatchFolder(out).outcomes())
            walls[count].append(wall)
            busy = fits / (count * wall)
            print(f"{count} workers: {wall:6.1f} s, CPU {cpu:6.1f} s, fits {busy:.0%} of the workers' time, "
                  f"load {load:.1f} to {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip
    ratios = [one / two for one, two in zip(walls[1], walls[2], strict=True)]
    one, two = median(walls[1]), median(walls[2])
    print(f"two workers are {', '.join(f'{ratio:.2f}' for ratio in ratios)} times one")
    print(f"medians {one:.1f} and {two:.1f} s: {one / two:.2f}")


def done(out: Path) -> int:
    return len(list((out / "tasks").glob("*.json")))


def in_peace(folder: Path) -> Path:
    reference = folder / "peace"
    wall, cpu = timed(batch(reference, "--workers", "2"))
    print(f"in peace, 2 workers: {wall:.1f} s, CPU {cpu:.1f} s", flush=True)
    return reference


def kills(folder: Path, number: int, seed: int) -> None:
    reference, out, rng = in_peace(folder), folder / "killed", np.random.default_rng(seed)
    for k in range(number):
        process, before = batch(out, "--workers", "2"), done(out)
        until = before + int(rng.integers(1, max(2, 2 * (TASKS - before - SPARED) // (number - k + 1))))
        while process.poll() is None and done(out) < until:
            time.sleep(LOOK)
        time.sleep(float(rng.uniform(0.0, 0.5)))  # somewhere within the next task
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(children, timeout=PATIENCE)
        if alive:
            raise SystemExit(f"{len(alive)} processes outlive the batch that was killed")
        print(f"  killed after {done(out) - before} more tasks, {done(out)} done", flush=True)
    timed(batch(out, "--workers", "2"))
    compare(out, reference)


def dask(folder: Path, seed: int) -> None:
    reference, out, note = in_peace(folder), folder / "dask", folder / "scheduler.json"
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(note)]
    worker = ["worker", "--scheduler-file", str(note), "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    processes = []
    for words in (scheduler, worker, worker):
        command = [sys.executable, "-m", "dask", *words]
        if words is worker:
            command += ["--local-directory", str(folder)]
        processes.append(
            subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
    try:
        while not note.exists():
            time.sleep(LOOK)
        process = batch(out, "--scheduler", json.loads(note.read_text())["address"])
        until = int(np.random.default_rng(seed).integers(20, 150))
        while process.poll() is None and done(out) < until:
            time.sleep(LOOK)
        processes[1].kill()
        print(f"  a worker killed after {done(out)} tasks", flush=True)
        if process.wait() != 0:
            raise SystemExit(f"exit code {process.returncode}")
        compare(out, reference)
    finally:
        for one in processes:
            one.kill()
            one.wait()


def shell(folder: Path, repeats: int) -> None:
    data = INSTANCES / "prostate.csv"
    plan = folder / "plan.toml"
    plan.write_text(
        f'[[data]]\nfile = "{data}"\ntarget = "lpsa"\n[vary]\nfolds = "5"\nseed = {list(range(SMALL_JOBS))}\n'
    )
    for k in range(repeats):
        calls, cpu_calls = 0.0, 0.0
        for seed in range(SMALL_JOBS):
            words = ["--target", "lpsa", "--folds", "5", "--seed", str(seed), "--threads", "1", "--quiet"]
            wall, cpu = timed(sparsecv("solve", str(data), *words, "--json", str(folder / f"{seed}.json")))
            calls, cpu_calls = calls + wall, cpu_calls + cpu
        out = folder / f"batch-{k}"
        wall, cpu = timed(batch(out, "--workers", "1", plan=plan))
        print(f"{SMALL_JOBS} calls {calls:.1f} s (CPU {cpu_calls:.1f}), one batch {wall:.1f} s (CPU {cpu:.1f}): "
              f"{wall / calls:.3f} of the time (CPU {cpu / cpu_calls:.3f})", flush=True)  # fmt: skip
    for outcome in BatchFolder(out).outcomes():
        alone = json.loads((folder / f"{outcome.task['settings']['seed']}.json").read_text())
        answer = [alone[name] for name in ("status", "tau", "gamma", "cv_error", "lower", "upper")]
        assert answer == [outcome.numbers[name] for name in ("status", "tau", "gamma", "cv_error", "lower", "upper")]
    print(f"  the answers of the {SMALL_JOBS} calls and of the batch are equal to the last digit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("workers", "kills", "dask", "shell"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="batch-") as name:
        folder = Path(name)
        if given.what == "workers":
            workers(folder, given.repeats)
        elif given.what == "kills":
            kills(folder, given.kills, given.seed)
        elif given.what == "dask":
            dask(folder, given.seed)
        else:
            shell(folder, given.repeats)


if __name__ == "__main__":
    main()
