"""Mosek's models without a licence: built, written, and evaluated to the truth."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance_suite import brute_force, random_problem, value
from lowered_points import violation

from sparsecv_mio.errors import BackendFailed, BackendUnavailable
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.models import FactorModel, lower_model
from sparsecv_mio.formulation.outcome import KnownBounds, Limits, Stop
from sparsecv_mio.formulation.task import ModelTask, feasible_start, model_task
from sparsecv_mio.model_space import Term
from sparsecv_mio.problem.constraints import FREE, SideConstraints

mosek = pytest.importorskip("mosek")
from lowered_points import evaluate  # noqa: E402

from sparsecv_mio.formulation.backends.mosek import build, read_answer  # noqa: E402


def tasks(count: int) -> Iterator[ModelTask]:
    rng = np.random.default_rng(40)
    made = 0
    while made < count:
        problem = random_problem(rng, q=6)
        constraints = SideConstraints(terms=(Term((0, 1), 2),), at_most=((1, (2, 3, 4)),)) if made % 2 else FREE
        start = feasible_start(problem, 3, constraints)
        assert start is not None
        yield model_task(problem, 3, constraints, start, KnownBounds())
        made += 1


def points(task: ModelTask, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(u, z) of feasible points: the optimum's support refitted, then random coefficients of it inside the links."""
    yield task.start_u, task.start_z
    for _ in range(5):
        u = np.where(task.start_z > 0, rng.uniform(np.maximum(task.lo, -3), np.minimum(task.hi, 3)), 0.0)
        yield u, task.start_z


def phi(task: ModelTask, u: np.ndarray) -> float:
    """The truth, from f itself."""
    b = u * task.scaled.unit / task.scaled.column
    p = task.problem
    return task.scaled.value(float(p.yy - 2.0 * p.c @ b + b @ (p.M @ b)))


def test_native_model_evaluates_to_the_truth() -> None:
    rng = np.random.default_rng(41)
    with mosek.Env() as env:
        for task in tasks(6):
            model = FactorModel(task)
            arrays = lower_model(model)
            with build(env, arrays) as solver:
                for u, z in points(task, rng):
                    objective, violation = evaluate(solver, arrays.vector(model.point(task, u, z)))
                    assert objective == pytest.approx(phi(task, u), abs=1e-9)
                    assert violation <= 1e-9


def test_a_broken_cone_and_a_broken_link_are_seen() -> None:
    task = next(tasks(1))
    model = FactorModel(task)
    arrays = lower_model(model)
    x = arrays.vector(model.point(task, task.start_u, task.start_z))
    shrunk = x.copy()
    shrunk[arrays.columns(model.t)] *= 0.5
    unlinked = arrays.vector(model.point(task, task.start_u, np.zeros(task.q)))
    with mosek.Env() as env, build(env, arrays) as solver:
        for bad in (shrunk, unlinked):
            assert evaluate(solver, bad)[1] > 1e-4
            assert violation(arrays, bad) > 1e-4


def test_known_optimum_is_the_least_over_all_supports() -> None:
    """Over every support's exact fit the model's objective is least at the brute-force optimum, and equal to it."""
    task = next(tasks(1))
    model = FactorModel(task)
    arrays = lower_model(model)
    best = brute_force(task.problem, 3)
    found = np.inf
    with mosek.Env() as env, build(env, arrays) as solver:
        for i in range(task.q):
            for j in range(i):
                for k in range(j):
                    support = [k, j, i]
                    u = np.zeros(task.q)
                    M, c = task.problem.M[np.ix_(support, support)], task.problem.c[support]
                    u[support] = task.scaled.to_u(_full(task.q, support, np.linalg.solve(M, c)))[support]
                    z = np.zeros(task.q)
                    z[support] = 1.0
                    objective, violation = evaluate(solver, arrays.vector(model.point(task, u, z)))
                    assert task.scaled.objective(objective) == pytest.approx(value(task.problem, tuple(support)))
                    inside = bool(np.all(u >= task.lo - 1e-9) and np.all(u <= task.hi + 1e-9))
                    assert (violation <= 1e-8) == inside  # the links cut off supports worse than the start, no others
                    found = min(found, task.scaled.objective(objective) if inside else np.inf)
    assert found == pytest.approx(best)


def _full(q: int, support: list[int], beta: np.ndarray) -> np.ndarray:
    out = np.zeros(q)
    out[support] = beta
    return out


@pytest.mark.parametrize("suffix", ["ptf", "cbf", "task.gz"])
def test_files_read_back_to_the_same_model(tmp_path: Path, suffix: str) -> None:
    task = next(tasks(1))
    model = FactorModel(task)
    arrays = lower_model(model)
    x = arrays.vector(model.point(task, task.start_u, task.start_z))
    path = tmp_path / f"model.{suffix}"
    with mosek.Env() as env:
        with build(env, arrays) as solver:
            truth = evaluate(solver, x)[0]
            solver.writedata(str(path))
        with env.Task() as again:
            again.readdata(str(path))
            assert again.getnumvar() >= arrays.size
            assert again.getnumacc() >= len(arrays.cones)
            objective, violation = evaluate(again, np.concatenate([x, np.zeros(again.getnumvar() - arrays.size)]))
    assert objective == pytest.approx(truth, abs=1e-9)
    assert violation <= 1e-9


def test_solving_is_left_to_a_licence() -> None:
    """Nothing pretends to have solved: without a licence `optimize` itself refuses."""
    if get_backend("mosek").available().usable:
        pytest.skip("a licence is here: test_answers solves")
    task = next(tasks(1))
    arrays: Any = lower_model(FactorModel(task))
    with mosek.Env() as env, build(env, arrays) as solver, pytest.raises(mosek.Error) as caught:
        solver.optimize()
    assert caught.value.errno == mosek.rescode.err_missing_license_file


def test_everything_up_to_the_licence_runs(tmp_path: Path) -> None:
    """Model, parameters of every limit, start, log and callback are taken by Mosek; then it asks for a licence."""
    backend = get_backend("mosek")
    if backend.available().usable:
        pytest.skip("a licence is here: test_backend_limits solves")
    limits = Limits(seconds=5.0, nodes=10, threads=2, log=str(tmp_path / "mosek.log"), cancel=threading.Event())
    with pytest.raises(BackendUnavailable, match="backend mosek has no licence"):
        backend._run(next(tasks(1)), "perspective", limits)
    assert (tmp_path / "mosek.log").exists()


def test_an_empty_answer_claims_nothing() -> None:
    task = next(tasks(1))
    model = FactorModel(task)
    arrays = lower_model(model)
    with mosek.Env() as env, build(env, arrays) as solver:
        solver.putxxslice(mosek.soltype.itg, 0, arrays.size, [0.0] * arrays.size)
        told = read_answer(solver, mosek.rescode.trm_max_time, arrays.columns(model.z), 0.5, Limits())
        assert (told.stop, told.bound, told.supports) == (Stop.TIME, -np.inf, ())
        with pytest.raises(BackendFailed, match="err_space"):
            read_answer(solver, mosek.rescode.err_space, arrays.columns(model.z), 0.5, Limits())
