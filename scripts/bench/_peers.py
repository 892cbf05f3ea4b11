"""The peers of single fits, each behind one call: instance in, `Fit` out; those of cross-validation are in `batch`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _common import FloatArray, np

OKRIDGE = "0.1.1"
QUADRATIC_VARIABLES = 200  # of a quadratic Gurobi model under the licence that comes with its wheel


@dataclass(frozen=True, eq=False)
class Instance:
    """min ||y - Xb||^2 + lam ||b||^2 over |b|_0 <= tau, X and y centred."""

    name: str
    X: FloatArray
    y: FloatArray
    tau: int
    lam: float

    def objective(self, support: list[int]) -> float:
        """Exact refit of a support by least squares on the augmented rows."""
        X = self.X[:, support]
        rows = np.vstack([X, np.sqrt(self.lam) * np.eye(len(support))])
        rhs = np.concatenate([self.y, np.zeros(len(support))])
        beta = np.linalg.lstsq(rows, rhs, rcond=None)[0]
        return float(np.sum((rhs - rows @ beta) ** 2))


@dataclass(frozen=True)
class Fit:
    """What a method returned. `seconds` is the solve, `build` the set-up before it; `lower` is its own bound."""

    support: list[int]
    seconds: float
    build: float
    nodes: int
    status: str
    lower: float = field(default=-float("inf"))


class Worker:
    """A peer in a process and an environment of its own: one JSON request a line in, one JSON answer a line out.

    Parameters
    ----------
    name : str
        Of the environment in the cache folder, and of the script `_<name>_worker.py`.
    requirements : str
        What is installed there, at first use.
    """

    def __init__(self, name: str, *requirements: str) -> None:
        cache = Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "sparsecv-mio"
        home = cache / requirements[0].replace("==", "-")
        python = home / "bin" / "python"
        if not (home / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *requirements], check=True)
            (home / "ready").touch()
        self.script = Path(__file__).with_name(f"_{name}_worker.py")
        self.process = subprocess.Popen(
            [str(python), str(self.script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.folder = tempfile.TemporaryDirectory()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()

    def ask(self, X: FloatArray, y: FloatArray, **request: object) -> dict[str, Any]:
        """Hand over data and a request, and wait for the answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        path = Path(self.folder.name) / "instance.npz"
        np.savez(path, X=X, y=y)
        self.process.stdin.write(json.dumps({"data": str(path), **request}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended; run {self.script.name} by hand to see why")
        answer: dict[str, Any] = json.loads(line)
        return answer


class OKRidge:
    """OKRidge: it needs numpy < 2 and imports a package it does not name."""

    name = f"OKRidge {OKRIDGE}"

    def __init__(self) -> None:
        self.worker = Worker("okridge", f"okridge=={OKRIDGE}", "requests")

    def close(self) -> None:
        self.worker.close()

    def __call__(self, instance: Instance, gap: float, time_limit: float) -> Fit:
        options = {"tau": instance.tau, "lam": instance.lam, "gap": gap, "time_limit": time_limit}
        got = self.worker.ask(instance.X, instance.y, **options)
        status = "optimal" if got["claimed_gap"] <= gap else "limit"
        return Fit(got["support"], got["seconds"], got["build"], got["nodes"], status)


class Gurobi:
    """Gurobi on one thread: the perspective MISOCP where the wheel's licence admits it, single-tree Benders above."""

    name = "Gurobi"

    def __init__(self) -> None:
        import gurobipy

        self.gp = gurobipy
        self.env = gurobipy.Env(params={"OutputFlag": 0, "Threads": 1})
        self.name = "Gurobi " + ".".join(map(str, gurobipy.gurobi.version()))

    def __call__(self, instance: Instance, gap: float, time_limit: float) -> Fit:
        begin = time.perf_counter()
        model = self.gp.Model(env=self.env)
        model.Params.MIPGap = gap
        model.Params.TimeLimit = time_limit
        if 3 * instance.X.shape[1] <= QUADRATIC_VARIABLES:
            return self._perspective(model, instance, begin)
        return self._benders(model, instance, begin)

    def close(self) -> None:
        self.env.dispose()

    def _perspective(self, model: Any, instance: Instance, begin: float) -> Fit:
        """min yy - 2c'b + b'Qb + lam sum t,  b_j^2 <= t_j z_j,  sum z <= tau."""
        Q, c, yy = instance.X.T @ instance.X, instance.X.T @ instance.y, float(instance.y @ instance.y)
        p = len(c)
        b = model.addMVar(p, lb=-self.gp.GRB.INFINITY)
        t = model.addMVar(p)
        z = model.addMVar(p, vtype=self.gp.GRB.BINARY)
        model.addConstr(z.sum() <= instance.tau)
        for j in range(p):
            model.addConstr(b[j] * b[j] <= t[j] * z[j])
        model.setObjective(yy - 2.0 * (c @ b) + b @ Q @ b + instance.lam * t.sum())
        model.update()
        built = time.perf_counter()
        model.optimize()
        return self._fit(model, z, "MISOCP", built, begin)

    def _benders(self, model: Any, instance: Instance, begin: float) -> Fit:
        """min eta over binary z, |z| <= tau, with f(z) >= f(z0) - sum_j (x_j'r0)^2 / lam (z_j - z0_j) cut in lazily."""
        X, y, lam = instance.X, instance.y, instance.lam
        p = X.shape[1]
        z = model.addMVar(p, vtype=self.gp.GRB.BINARY)
        model.Params.LazyConstraints = 1
        errors: list[BaseException] = []

        def cut(support: list[int]) -> tuple[float, FloatArray]:
            part = X[:, support]
            beta = np.linalg.solve(part.T @ part + lam * np.eye(len(support)), part.T @ y)
            r = y - part @ beta
            return float(y @ r), (X.T @ r) ** 2 / lam

        def on_event(active: Any, where: int) -> None:
            if where != self.gp.GRB.Callback.MIPSOL:
                return
            try:
                support = np.flatnonzero(active.cbGetSolution(z) > 0.5).tolist()
                value, slope = cut(support)
                if active.cbGetSolution(eta)[0] < value * (1.0 - 1e-7):
                    active.cbLazy(eta.sum() + slope @ z >= value + float(slope[support].sum()))
            except BaseException as error:  # Gurobi swallows what a callback raises: keep it, stop, raise it outside
                errors.append(error)
                active.terminate()

        # The fit on all columns bounds every support; forward selection starts the search.
        eta = model.addMVar(1, lb=cut(list(range(p)))[0])
        model.addConstr(z.sum() == instance.tau)
        model.setObjective(eta.sum())
        first: list[int] = []
        for _ in range(instance.tau):
            gradient = cut(first)[1]
            gradient[first] = -1.0
            first.append(int(np.argmax(gradient)))
        value, slope = cut(first)
        model.addConstr(eta.sum() + slope @ z >= value + float(slope[first].sum()))
        z.Start = np.isin(np.arange(p), first).astype(float)
        eta.Start = np.array([value])
        model.update()
        built = time.perf_counter()
        model.optimize(on_event)
        if errors:
            raise errors[0]
        return self._fit(model, z, "Benders", built, begin)

    def _fit(self, model: Any, z: Any, form: str, built: float, begin: float) -> Fit:
        seconds = time.perf_counter() - built
        done = "optimal" if model.Status == self.gp.GRB.OPTIMAL else "limit"
        support = np.flatnonzero(z.X > 0.5).tolist() if model.SolCount else []
        fit = Fit(support, seconds, built - begin, int(model.NodeCount), f"{form} {done}", float(model.ObjBound))
        model.dispose()
        return fit
