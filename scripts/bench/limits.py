"""Does a time limit hold? 40 combinations of data, folds, method, backend and limit, each a fresh process of its own.

A run is late if the wall time from the start of the process to its end exceeds the limit by more than a second and 5%.
A late run is repeated once, as the machine may have been busy; both times are told. `cold` runs start with an empty
cache of compiled kernels.

    python scripts/bench/limits.py [--only WORD] [--out build/limits.md]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _common import deliver, environment, parser_of, synthetic, table

SECOND, SHARE = 1.0, 0.05  # what a run may take beyond its limit
STUCK = 600.0  # seconds after which a run is killed
SIGNAL = 10  # columns with a coefficient


@dataclass(frozen=True)
class Case:
    """One run."""

    n: int
    p: int
    folds: str
    limit: float
    options: str = ""
    command: str = "solve"
    cold: bool = False
    csv: bool = False

    @property
    def words(self) -> str:
        """Command, options and what is special."""
        return f"{self.command} {self.options}{' (cold)' if self.cold else ''}{' (CSV)' if self.csv else ''}"


def on_wide_data() -> list[Case]:
    """1,000 x 20,000: every method and backend."""
    methods = ("rounds", "joint", "algorithm1", "grid", "bounds", "descent")
    cases = [Case(1000, 20_000, "10", 10.0, f"--method {method}") for method in methods]
    cases += [Case(1000, 20_000, "10", 10.0, f"--backend {name}") for name in ("highs", "scip")]
    cases += [
        Case(1000, 20_000, "10", 10.0, "--backend gurobi --formulation benders"),
        Case(1000, 20_000, "loo", 15.0),
        Case(1000, 20_000, "10", 30.0, "--gamma 1 --tau 10"),
        Case(1000, 20_000, "", 10.0, command="path"),
        Case(1000, 20_000, "10", 40.0, csv=True),
        Case(1000, 10_000, "10", 60.0, "--gamma 1 --tau 10"),
    ]
    return cases


CASES = [
    Case(100, 5_000, "10", 20.0),
    Case(100, 500, "loo", 3.0),
    Case(60, 10_000, "2", 5.0),
    Case(200, 1_000, "10", 10.0),
    Case(100, 120, "10", 3.0, "--backend highs"),
    Case(100, 120, "10", 3.0, "--backend scip"),
    Case(100, 120, "10", 3.0, "--backend gurobi --formulation benders"),
    Case(100, 60, "10", 3.0, "--backend gurobi --method grid"),
    Case(60, 40, "10", 1.0, cold=True),
    Case(60, 40, "10", 5.0, cold=True),
    Case(200, 1_000, "10", 5.0, cold=True),
    *(Case(100, 500, "10", 3.0, f"--method {m}") for m in ("joint", "algorithm1", "grid", "bounds", "descent")),
    Case(500, 2_000, "10", 8.0),
    Case(500, 2_000, "10", 8.0, "--method algorithm1"),
    Case(300, 2_400, "loo", 8.0),
    Case(100, 300, "10", 4.0, "--backend highs --method algorithm1"),
    Case(100, 300, "10", 4.0, "--backend scip --method grid"),
    Case(100, 2_000, "10", 4.0, command="path"),
    Case(5_000, 200, "loo", 5.0, "--gamma 0.001"),
    Case(20_000, 100, "10", 5.0, "--gamma 0.001"),
    Case(100, 60, "loo", 2.0, "--gamma 0.001 --one-se"),
    *on_wide_data(),
]


def data_file(case: Case, folder: Path) -> Path:
    """The data of a case, made when first asked for."""
    path = folder / f"{case.n}x{case.p}.{'csv' if case.csv else 'npz'}"
    if not path.exists():
        X, y = synthetic(case.n, case.p, SIGNAL, seed=1, rho=0.0, snr=10.0)
        if case.csv:
            names = ",".join([*(f"x{j}" for j in range(case.p)), "y"])
            np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=names, comments="", fmt="%.6g")
        else:
            np.savez(path, X=X, y=y)
    return path


@dataclass(frozen=True)
class Run:
    """What a run took and said."""

    wall: float
    memory: float  # MB at the peak
    code: int
    status: str


def run(case: Case, folder: Path) -> Run:
    """Run a case; its own process, waited for with its own resource usage."""
    record = folder / "record.json"
    record.unlink(missing_ok=True)
    target = ["--target", "y"] if case.csv else []
    folds = ["--folds", case.folds] if case.command == "solve" else []
    words = [sys.executable, "-m", "sparsecv_mio.cli", case.command, str(data_file(case, folder)), *target, *folds]
    words += [*case.options.split(), "--time-limit", f"{case.limit:g}", "--quiet", "--json", str(record)]
    with tempfile.TemporaryDirectory() as cache:
        settings = os.environ | ({"NUMBA_CACHE_DIR": cache} if case.cold else {})
        begin = time.monotonic()
        process = subprocess.Popen(words, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        killer = threading.Timer(STUCK, process.kill)
        killer.start()
        _, state, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        killer.cancel()
        assert process.stderr is not None
        said = process.stderr.read().decode().strip().splitlines()
    status = json.loads(record.read_text())["status"] if record.exists() else (said[-1] if said else "nothing")
    return Run(wall, usage.ru_maxrss / 1024.0, os.waitstatus_to_exitcode(state), status)


def main() -> int:
    parser = parser_of(__doc__, out=True)
    parser.add_argument("--only", default="", help="cases whose line holds this word")
    options = parser.parse_args()
    rows: list[list[object]] = []
    late = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in CASES:
            if options.only not in f"{case.n} {case.p} {case.folds} {case.words}":
                continue
            data_file(case, folder)
            allowed = case.limit + SECOND + SHARE * case.limit
            runs = [run(case, folder)]
            if runs[0].wall > allowed:
                runs.append(run(case, folder))
            best = min(runs, key=lambda one: one.wall)
            verdict = "LATE" if best.wall > allowed else "no" if len(runs) == 1 else "once"
            late += verdict == "LATE"
            seconds = ", ".join(f"{one.wall:.1f}" for one in runs)
            memory = max(one.memory for one in runs)
            rows.append(
                [case.n, case.p, case.folds, case.words, case.limit, seconds, verdict, round(memory), best.status]
            )
            print(*rows[-1], f"load {os.getloadavg()[0]:.1f}", sep=" | ", file=sys.stderr, flush=True)
    head = ["n", "p", "folds", "command", "limit s", "wall s", "late", "peak MB", "status"]
    text = f"# Time limits: {len(rows)} runs, {late} late\n\n{environment()}\n\n"
    text += "Late: more than a second and 5% beyond the limit, from the start of the process to its end; `once`: a run "
    text += "that was late on a busy machine and not when repeated (both times are given).\n\n"
    deliver(text + table(head, rows) + "\n", options.out)
    return 1 if late else 0


if __name__ == "__main__":
    raise SystemExit(main())
