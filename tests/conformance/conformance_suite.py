"""The conformance suite's own view of the backends, its random problems, and brute force."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.contract import Answer, Backend
from sparsecv_mio.formulation.outcome import Limits, Outcome
from sparsecv_mio.formulation.task import ModelTask
from sparsecv_mio.model_space import Term
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.problem import SparseProblem

# every registered backend must be named here: test_registry compares the two lists
NAMES = ("native", "gurobi", "highs", "scip", "mosek")
LICENCE_FREE = ("native", "gurobi", "highs", "scip")
FORMS = [(name, form) for name in NAMES for form in get_backend(name).capabilities.formulations]


@dataclass(frozen=True)
class Solver:
    """A backend with one of its formulations."""

    backend: Backend
    form: str

    def solve(self, *given: Any, **options: Any) -> Outcome:
        """Solve a problem in this formulation."""
        return self.backend.solve(*given, formulation=self.form, **options)

    def run(self, task: ModelTask, limits: Limits) -> Answer:
        """Return the answer of the solver itself."""
        return self.backend._run(task, self.form, limits)


def make_solver_fixture(forms: list[tuple[str, str]]) -> Any:
    """Return a fixture of the backends that are usable here, each with each of its formulations."""

    @pytest.fixture(params=forms, ids="-".join)
    def solver(request: pytest.FixtureRequest) -> Solver:
        return Solver(usable(request.param[0]), request.param[1])

    return solver


class Polled(threading.Event):
    """Does something when it is asked for the fourth time: by then the solver is at work, however fast it is."""

    def __init__(self, act: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.act, self.polls = act or self.set, 0

    def is_set(self) -> bool:
        self.polls += 1
        if self.polls == 4:
            self.act()
        return super().is_set()


def usable(name: str) -> Backend:
    """The backend, or a skip for one that may be missing here."""
    backend = get_backend(name)
    here = backend.available()
    if not here.usable:
        assert name not in LICENCE_FREE, f"{name} needs no licence and must run: {here.why}"
        pytest.skip(f"{name}: {here.why}")
    return backend


def problem_of(X: np.ndarray, y: np.ndarray, gamma: float, weight: np.ndarray | None = None) -> SparseProblem:
    """The inner problem of centred rows."""
    n, q = X.shape
    X, y = X - X.mean(axis=0), y - y.mean()
    weight = np.ones(q) if weight is None else weight
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), weight, gamma / 2.0, n, np.zeros(q), 0.0)


def random_problem(rng: np.random.Generator, q: int | None = None) -> SparseProblem:
    """A small problem: n from 4 (less than q included) to 40, correlation to 0.99, gamma from 1e-4 to 1e4, copies."""
    q = q or int(rng.integers(2, 9))
    n = int(rng.integers(4, 40))
    rho = rng.uniform(0.0, 0.99)
    X = np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1.0 - rho) * rng.standard_normal((n, q))
    kind = rng.integers(6)
    if kind == 0 and q > 2:
        X[:, 1] = -X[:, 0]
    if kind == 1 and q > 2:
        X[:, 2] = X[:, 0] + X[:, 1]
    X = X - X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    beta = rng.standard_normal(q) * (rng.random(q) < 0.5) * 3.0
    y = X @ beta + 10.0 ** rng.uniform(-3, 0) * rng.standard_normal(n)
    return problem_of(X, y * 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-4, 4))


def noise(n: int, q: int) -> SparseProblem:
    """Nothing but noise: nearly all supports of a size are alike."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, q))
    return problem_of(X / np.linalg.norm(X, axis=0), rng.standard_normal(n), 0.01)


def endless() -> SparseProblem:
    """Noise on 64 columns of as many rows: at tau 13 (1e13 supports) the native tree has a gap of 26% after 20 s."""
    return noise(64, 64)


def value(problem: SparseProblem, support: tuple[int, ...], constraints: SideConstraints = FREE) -> float:
    """f of one support; with boxes, by trying every set of active bounds."""
    S = list(support)
    M, c = problem.M[np.ix_(S, S)], problem.c[S]
    lo, hi = constraints.interval(problem.q)
    lo, hi = lo[S], hi[S]
    best = np.inf
    for state in itertools.product(*[[0, *([-1] if np.isfinite(a) else []), *([1] if np.isfinite(b) else [])]
                                     for a, b in zip(lo, hi, strict=True)]):  # fmt: skip
        side = np.array(state)
        free = side == 0
        beta = np.where(side < 0, lo, np.where(side > 0, hi, 0.0))
        if free.any():
            beta[free] = np.linalg.solve(M[np.ix_(free, free)], c[free] - M[np.ix_(free, ~free)] @ beta[~free])
        if np.all(beta >= lo - 1e-12) and np.all(beta <= hi + 1e-12):
            best = min(best, float(problem.yy - 2.0 * c @ beta + beta @ (M @ beta)))
    return best


def brute_force(problem: SparseProblem, tau: int, constraints: SideConstraints = FREE) -> float:
    """min f by enumeration; inf when no support meets the constraints."""
    best = np.inf
    for size in range(tau + 1):
        for support in itertools.combinations(range(problem.q), size):
            if _meets(support, constraints):
                best = min(best, value(problem, support, constraints))
    return best


def _meets(support: tuple[int, ...], c: SideConstraints) -> bool:
    chosen = set(support)
    if not chosen.issuperset(c.forced_in) or chosen & set(c.forced_out):
        return False
    if any(0 < len(chosen.intersection(term.columns)) < len(term.columns) for term in c.terms):
        return False
    for j, parents, every in c.parents:
        if j in chosen and not (chosen.issuperset(parents) if every else chosen & set(parents)):
            return False
    return all(len(chosen & set(columns)) <= k for k, columns in c.at_most)


def random_constraints(rng: np.random.Generator, q: int, kinds: frozenset[str]) -> SideConstraints:
    """Some side constraints of the given kinds, often contradictory."""

    def columns(most: int) -> tuple[int, ...]:
        return tuple(int(j) for j in rng.permutation(q)[: int(rng.integers(1, most + 1))])

    box, parents = [], []
    if "sign" in kinds:
        box += [(j, *((0.0, np.inf), (-np.inf, 0.0))[int(rng.integers(2))]) for j in columns(q)]
    if "parents" in kinds:
        drawn = [columns(3) for _ in range(2)]
        parents += [(some[0], some[1:], bool(rng.integers(2))) for some in drawn if len(some) > 1]
    if "box" in kinds:
        box = []
        for j in columns(2):
            lo, hi = sorted(rng.normal(0.0, 1.5, 2))
            box.append([(j, 0.0, np.inf), (j, -np.inf, 0.0), (j, lo, hi), (j, lo, lo)][int(rng.integers(4))])
    return SideConstraints(
        forced_in=columns(1) if "force" in kinds and rng.random() < 0.6 else (),
        forced_out=columns(1) if "force" in kinds and rng.random() < 0.6 else (),
        terms=tuple(Term(some, len(some)) for some in [columns(3)]) if "together" in kinds else (),
        at_most=((int(rng.integers(0, 2)), columns(q)),) if "at_most" in kinds else (),
        box=tuple((j, float(a), float(b)) for j, a, b in box),
        parents=tuple(parents),
    )
