"""Every backend in a process where its solver also runs for somebody else: the same answers, and an empty stdout."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
from conformance_suite import NAMES, random_problem

from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.outcome import Limits, Stop


def run_highs(threads: int) -> float:
    """Maximise 1.5 x + y over binaries with 0.7 x + y <= 1.5, as every function below does."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", threads)
    for column, cost in enumerate((-1.5, -1.0)):
        solver.addVar(0.0, 1.0)
        solver.changeColCost(column, cost)
        solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
    solver.addRow(-highspy.kHighsInf, 1.5, 2, np.arange(2, dtype=np.int32), np.array([0.7, 1.0]))
    solver.run()
    return -float(solver.getInfo().objective_function_value)


def run_gurobi(threads: int) -> float:
    import gurobipy as gp

    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        model.Params.Threads = threads
        x, y = model.addVar(vtype="B"), model.addVar(vtype="B")
        model.addConstr(0.7 * x + y <= 1.5)
        model.setObjective(1.5 * x + y, gp.GRB.MAXIMIZE)
        model.optimize()
        return float(model.ObjVal)


def run_scip(threads: int) -> float:
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    x, y = model.addVar(vtype="B"), model.addVar(vtype="B")
    model.addCons(0.7 * x + y <= 1.5)
    model.setObjective(1.5 * x + y, "maximize")
    model.optimize()
    return float(model.getObjVal())


def run_mosek(threads: int) -> float:
    import mosek

    with mosek.Env() as env, env.Task(0, 0) as task:
        task.putintparam(mosek.iparam.num_threads, threads)
        task.appendvars(2)
        task.appendcons(1)
        for column, (cost, weight) in enumerate(((1.5, 0.7), (1.0, 1.0))):
            task.putcj(column, cost)
            task.putvarbound(column, mosek.boundkey.ra, 0.0, 1.0)
            task.putvartype(column, mosek.variabletype.type_int)
            task.putaij(0, column, weight)
        task.putconbound(0, mosek.boundkey.up, 1.5, 1.5)
        task.putobjsense(mosek.objsense.maximize)
        task.optimize()
        return float(task.getprimalobj(mosek.soltype.itg))


ELSEWHERE: dict[str, Callable[[int], float]] = {
    "gurobi": run_gurobi, "highs": run_highs, "scip": run_scip, "mosek": run_mosek,
}  # fmt: skip


def solve_in_turn(name: str) -> None:
    """Solve here and in another thread, each before and after somebody else's solve with another number of threads."""
    backend, problem = get_backend(name), random_problem(np.random.default_rng(2), q=7)
    uppers, failures = [], []

    def solve(threads: int) -> None:
        outcome = backend.solve(problem, 3, limits=Limits(threads=threads))
        assert outcome.stop is Stop.OPTIMAL
        uppers.append(outcome.upper)

    def solve_elsewhere(threads: int) -> None:
        if name in ELSEWHERE:
            assert abs(ELSEWHERE[name](threads) - 1.5) < 1e-6

    def take_turns() -> None:
        try:
            solve_elsewhere(2)
            solve(1)
            solve(2)
            solve_elsewhere(1)
        except BaseException as error:
            failures.append(error)

    solve(1)
    thread = threading.Thread(target=take_turns)
    thread.start()
    thread.join()
    take_turns()
    if failures:
        raise failures[0]
    assert np.ptp(uppers) <= 1e-9 * uppers[0]


def test_every_solver_is_run_elsewhere() -> None:
    assert {"native", *ELSEWHERE} == set(NAMES)


def test_a_process_where_solvers_run_for_others() -> None:
    names = [name for name in NAMES if get_backend(name).available().usable]
    run = subprocess.run([sys.executable, __file__, *names], capture_output=True, text=True, timeout=300, check=False)
    assert names and run.returncode == 0, run.stderr
    assert run.stdout == ""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        solve_in_turn(name)
