"""Limits, interruptions and breakdowns: valid bounds and the right word, or one clear error."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import threading
import tomllib
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conformance_suite import (
    FORMS,
    Polled,
    Solver,
    brute_force,
    endless,
    make_solver_fixture,
    noise,
    problem_of,
    random_problem,
    usable,
)
from repository import INSTANCES, ROOT

from sparsecv_mio.errors import BackendFailed, BackendUnavailable, BadInput, Contradiction
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.contract import Answer
from sparsecv_mio.formulation.outcome import KnownBounds, Limits, Stop
from sparsecv_mio.formulation.task import model_task
from sparsecv_mio.problem.constraints import FREE
from sparsecv_mio.problem.moment_fits import refit_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees.every_size import solve_path

solver = make_solver_fixture(FORMS)


@pytest.fixture(scope="module")
def hard() -> SparseProblem:
    """diabetes64, gamma 0.01."""
    table = np.loadtxt(INSTANCES / "diabetes64.csv", delimiter=",", skiprows=1)
    X = table[:, :-1] - table[:, :-1].mean(axis=0)
    return problem_of(X / np.linalg.norm(X, axis=0), table[:, -1], 0.01)


@pytest.fixture(scope="module")
def unsolved() -> SparseProblem:
    """Comes to an end by a limit or a cancel alone."""
    return endless()


def long(name: str) -> SparseProblem:
    """Noise on which a solver asks four times before it ends; SCIP, the slowest one, does on fewer columns."""
    return noise(30, 24) if name == "scip" else noise(40, 40)


def test_time_limit_on_an_endless_instance(solver: Solver, unsolved: SparseProblem) -> None:
    best_known = solve_path(unsolved, [13], node_limit=2_000).by_size[13].upper
    outcome = solver.solve(unsolved, 13, limits=Limits(seconds=0.5))
    assert outcome.stop is Stop.TIME
    assert 0.0 < outcome.lower <= best_known
    assert outcome.lower < outcome.upper and len(outcome.incumbent or ()) == 13


def test_node_limit(solver: Solver) -> None:
    outcome = solver.solve(noise(30, 20), 5, limits=Limits(nodes=1, seconds=60.0))
    assert outcome.stop is Stop.NODES
    assert 0.0 < outcome.lower < outcome.upper


def test_gap_limit(solver: Solver, hard: SparseProblem) -> None:
    outcome = solver.solve(hard, 10, limits=Limits(gap=0.2, seconds=60.0))
    assert outcome.stop is Stop.OPTIMAL
    assert outcome.gap <= 0.2 + outcome.allowance / outcome.upper


def test_cancel_from_another_thread(solver: Solver) -> None:
    def cancelled_elsewhere() -> None:
        thread = threading.Thread(target=cancel.set)
        thread.start()
        thread.join()

    cancel, problem = Polled(cancelled_elsewhere), long(solver.backend.name)
    outcome = solver.solve(problem, 8, limits=Limits(cancel=cancel))
    assert outcome.stop is Stop.INTERRUPTED
    assert 0.0 < outcome.lower < outcome.upper
    again = solver.solve(problem, 8, limits=Limits(cancel=cancel))
    assert again.stop is Stop.INTERRUPTED


def test_log_file(solver: Solver, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if "log" not in solver.backend.capabilities.limits:
        pytest.skip("does not write a log")
    log = tmp_path / "solver.log"
    problem = random_problem(np.random.default_rng(2), q=7)
    solver.solve(problem, 3, limits=Limits(log=str(log)))
    assert log.stat().st_size > 100
    closed = tmp_path / "closed.log"
    solver.solve(problem, 0, limits=Limits(log=str(closed)))
    assert closed.read_text() == f"backend {solver.backend.name} was not needed: closed by the ridge bound\n"
    capfd.readouterr()
    solver.solve(problem, 3)
    assert capfd.readouterr().out == ""


def test_threads_of_one_solve(solver: Solver, tmp_path: Path) -> None:
    """Two threads give the answer of one; where a log tells how many there are, it says two."""
    problem = random_problem(np.random.default_rng(2), q=7)
    log = str(tmp_path / "solver.log") if "log" in solver.backend.capabilities.limits else None
    one = solver.solve(problem, 3)
    two = solver.solve(problem, 3, limits=Limits(threads=2, log=log))
    assert two.upper == pytest.approx(one.upper, rel=1e-9) and two.stop is one.stop
    if solver.backend.name == "gurobi":
        assert "using up to 2 threads" in Path(log or "").read_text()


def test_two_threads_at_once(solver: Solver) -> None:
    """One backend object, several callers with threads of their own: the same answers as one after the other."""
    rng = np.random.default_rng(8)
    problems = [random_problem(rng, q=6) for _ in range(4)]
    alone = [solver.solve(problem, 3).upper for problem in problems]
    together: list[float] = [np.nan] * 4

    def work(k: int) -> None:
        together[k] = solver.solve(problems[k], 3, limits=Limits(threads=1 + k % 2)).upper

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_a_round_that_moves_nothing_has_a_status_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuts are counted but not added: without a check of progress the rounds would never end."""
    from sparsecv_mio.formulation.backends import highs

    backend, problem = usable("highs"), random_problem(np.random.default_rng(5), q=7)
    monkeypatch.setattr(highs._OuterApproximation, "_separate_point", lambda self, x: 1)
    monkeypatch.setattr(highs._OuterApproximation, "_refit", lambda self, x: 0)
    task = model_task(problem, 3, FREE, refit_moments(problem, (0,)), KnownBounds())
    answer = backend._run(task, "outer", Limits(seconds=20.0))
    assert answer.stop is Stop.STALLED
    assert task.scaled.objective(answer.bound) <= brute_force(problem, 3) + 2e-6 * problem.yy


def test_gurobi_callback_errors_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = usable("gurobi")
    from sparsecv_mio.formulation.backends import gurobi

    def broken(self: object, solver: object, where: int) -> None:
        raise ZeroDivisionError("inside the callback")

    monkeypatch.setattr(gurobi._Benders, "add_cuts", broken)
    with pytest.raises(ZeroDivisionError, match="inside the callback"):
        backend.solve(random_problem(np.random.default_rng(9), q=8), 3, formulation="benders")


def test_cancel_polling_errors_surface() -> None:
    """Whatever a poll of the cancel event raises comes out of solve, from every solver that polls in a callback."""

    def broken() -> None:
        raise ZeroDivisionError("inside the poll")

    for name in ("native", "gurobi", "scip", "highs"):
        backend = usable(name)
        with pytest.raises(ZeroDivisionError, match="inside the poll"):
            backend.solve(long(name), 8, limits=Limits(cancel=Polled(broken)))


def test_gurobi_past_its_size_limit() -> None:
    backend = usable("gurobi")
    if "size-limited" not in backend.available().licence:
        pytest.skip("a full licence has no size limit")
    rng = np.random.default_rng(10)
    problem = problem_of(rng.standard_normal((150, 120)), rng.standard_normal(150), 1.0)
    with pytest.raises(BackendUnavailable, match="120 columns exceeds the size limit of this licence") as caught:
        backend.solve(problem, 3)
    assert caught.value.exit_code == 4 and "\n" not in str(caught.value)
    outcome = backend.solve(problem, 2, formulation="benders", limits=Limits(seconds=0.5))
    assert 0.0 < outcome.lower <= outcome.upper


def test_a_version_with_a_known_fault_is_refused() -> None:
    """Presolve of HiGHS 1.14.0 returns wrong optima of two-variable models (its issue 2957)."""
    from sparsecv_mio.formulation.backends.highs import REFUSED_VERSIONS, _describe

    for version in ("1.13.1", *REFUSED_VERSIONS):
        module = SimpleNamespace(Highs=partial(SimpleNamespace, version=partial(str, version)))
        here = _describe(module)
        assert here.usable == (version == "1.13.1") and here.version == version
        assert here.usable or "wrong optima" in here.why
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert all(f"!={version}," in declared["optional-dependencies"]["highs"][0] for version in REFUSED_VERSIONS)


def test_unavailable_backend_is_one_line() -> None:
    backend = get_backend("mosek")
    if backend.available().usable:
        pytest.skip("mosek has a licence here")
    with pytest.raises(BackendUnavailable, match="backend mosek cannot be used: no licence") as caught:
        backend.solve(random_problem(np.random.default_rng(1), q=4), 2)
    assert caught.value.exit_code == 4 and "\n" not in str(caught.value)


def test_a_bound_above_a_feasible_objective_is_never_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(np.random.default_rng(3), q=7)
    for name in ("gurobi", "highs", "scip", "native"):
        backend = usable(name)
        monkeypatch.setattr(backend, "_run", lambda task, form, limits: Answer(Stop.OPTIMAL, 0.5, raw_status="wrong"))
        with pytest.raises(Contradiction, match="exceeds the objective of a support"):
            backend.solve(problem, 3)
        monkeypatch.undo()


def test_unknown_solver_states_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    from sparsecv_mio.formulation.backends import scip

    backend = usable("scip")
    monkeypatch.setattr(scip, "STOPS", {})
    with pytest.raises(
        BackendFailed, match="backend scip failed: .*; if columns are nearly collinear, use a larger"
    ) as caught:
        backend.solve(random_problem(np.random.default_rng(4), q=7), 3)
    assert caught.value.raw_status and caught.value.exit_code == 4


TAKEN = {"gurobi": "MIPFocus=1", "highs": "presolve=off", "scip": "separating/maxrounds=3"}
UNKNOWN = {"gurobi": "MIPFokus=1", "highs": "presolv=off", "scip": "separating/maxround=3"}
BAD = {"gurobi": "MIPFocus=7", "highs": "presolve=maybe", "scip": "separating/maxrounds=-9"}
CUT_OFF = {"gurobi": "MIPFocus=1.5", "highs": "random_seed=1.5", "scip": "separating/maxrounds=2.5"}
ON_WHICH_BOUNDS_REST = {
    "gurobi": ("MIPGap", "MIPGapAbs", "IntFeasTol", "FeasibilityTol", "OptimalityTol", "BarConvTol", "Cutoff",
               "BestObjStop", "BestBdStop", "TimeLimit", "NodeLimit", "Threads", "LogFile", "LazyConstraints",
               "ObjScale", "MIP*"),
    "highs": ("mip_feasibility_tolerance", "primal_feasibility_tolerance", "dual_feasibility_tolerance",
              "mip_rel_gap", "mip_abs_gap", "objective_bound", "objective_target", "small_matrix_value",
              "large_matrix_value", "infinite_bound", "infinite_cost", "solve_relaxation", "threads", "time_limit",
              "log_file", "user_objective_scale"),
    "scip": ("numerics/feastol", "numerics/epsilon", "numerics/sumepsilon", "numerics/infinity", "limits/gap",
             "limits/absgap", "limits/objstop", "limits/time", "misc/catchctrlc", "presolving/donotaggr"),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_options_of_the_solver(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """They change no answer; the solver's own word is one line, and what bounds rest on is refused by name."""
    backend, rng = usable(name), np.random.default_rng(0)
    for _ in range(3):
        problem = random_problem(rng, q=6)
        outcome, truth = backend.solve(problem, 3, limits=Limits(options=(TAKEN[name],))), brute_force(problem, 3)
        assert outcome.lower <= truth * (1.0 + 1e-9) and truth <= outcome.upper * (1.0 + 1e-9)
    for option in (UNKNOWN[name], BAD[name], CUT_OFF[name]):
        with pytest.raises(BadInput, match=f"^solver.option {re.escape(option)}: {name} rejects this option: [^\n]*$"):
            backend.check_options((option,))
    for option in ON_WHICH_BOUNDS_REST[name]:
        with pytest.raises(BadInput, match=f"^solver.option {re.escape(option)}: this option is set by the package"):
            backend.check_options((f"{option}=1",))
    assert capfd.readouterr() == ("", "")


def test_the_native_engine_takes_no_options_of_a_solver() -> None:
    get_backend("native").check_options(())
    with pytest.raises(BadInput, match="backend native does not accept solver options"):
        get_backend("native").check_options(("MIPFocus=1",))


@pytest.mark.skipif(os.name != "posix", reason="the handler is restored by a function of POSIX")
def test_a_handler_that_gurobi_installs_is_replaced_at_its_next_callback() -> None:
    gurobi = pytest.importorskip("sparsecv_mio.formulation.backends.gurobi")
    seen = list[int]()
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        watch = gurobi._Watch(Limits())
        ctypes.CDLL(None).signal(signal.SIGINT, ctypes.c_void_p(1))  # ignored, by a call that Python does not see
        watch.callback(None, 0)
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
