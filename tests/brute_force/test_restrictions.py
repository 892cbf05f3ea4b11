"""Group limits, hierarchy and signs: every interval holds the truth, every decided cell is it, verify agrees."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem
from reference import Optima
from restricted import KINDS, RestrictedEnumeration, random_restrictions
from runs import new_run

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.search.one_by_one import FIRST_NODES, RestrictedCells
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.search.result import build_record
from sparsecv_mio.trees.path_cells import PathResult

F_RTOL, H_RTOL, H_FLOOR = 1e-9, 1e-7, 1e-10
INSIDE, OUTSIDE = 0.9e-9, 1.1e-9  # tie tolerances on both sides of the engine's 1e-9: borderline ties go either way


@dataclass
class Tally:
    """What a comparison saw."""

    problems: int = 0
    cells: int = 0
    decided: int = 0
    refused: int = 0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.problems} problems, {self.cells} cells, {self.decided} decided, {self.refused} impossible, "
            f"{len(self.violations)} violations"
        )


def problem(seed: int, kind: str, rows: int = 24, columns: int = 6) -> tuple[RandomProblem, Restrictions]:
    """A hostile random problem and restrictions of a kind."""
    case = random_problem(seed, rows=rows, columns=columns)
    rng = np.random.default_rng([KINDS.index(kind), seed])
    return case, random_restrictions(rng, case.data.names, kind).within(case.data.names)


def check(seed: int, kind: str, tally: Tally, seconds: float | None = None, **how: str) -> None:
    """Compare every cell of a search, and its record, with the enumeration."""
    case, asked = problem(seed, kind)
    taus = [tau for tau in case.taus if len(asked.force_in) <= tau <= case.data.p - len(asked.force_out)]
    possible = [tau for tau in taus if _possible(case, asked, tau)]
    if not possible or not asked.beyond_forcing:
        tally.refused += 1
        return
    try:
        data = standardize(case.data, case.scale, case.intercept, asked)
    except BadInput:  # a constant column is forced in, or none is left
        tally.refused += 1
        return
    run = new_run(data, case.folds, Grid.of(case.gammas, possible, case.data.p, asked), seconds, gap=0.0,
                  method=("algorithm1", "grid")[seed % 2], restrictions=asked, **how)  # fmt: skip
    run.begin()
    while not run.finished:
        run.step()
    run.finish()
    run.score_reported_pair()
    tally.problems += 1
    low, high = (np.zeros(run.context.shape[:2]) for _ in range(2))
    for fold in range(case.folds.k):
        rows = RestrictedEnumeration(case.data.X, case.data.y, case.folds.train_rows(fold),
                                     case.folds.scored_rows(fold), case.scale, case.intercept)  # fmt: skip
        rows.names, rows.asked = case.data.names, asked
        for g, t in np.ndindex(*run.context.shape[:2]):
            found = rows.optima(float(run.context.grid.gammas[g]), int(run.context.grid.taus[t]))
            (first, last), slip = found.interval(INSIDE, -1.0), found.rounding(INSIDE, -1.0)
            low[g, t], high[g, t] = low[g, t] + first + slip, high[g, t] + last - slip
            tally.violations += [f"{kind} {seed}, {(g, t, fold)}: {words}" for words in
                                 _cell(run, (g, t, fold), found, rows, tally)]  # fmt: skip
    unit = np.ldexp(1.0, rows.exponent) ** 2 / case.folds.scored
    record = _record(run, asked, how)
    if record.lower > float((low * unit).min()) + 1e-9 * record.upper:
        tally.violations.append(f"{kind} {seed}: lower {record.lower!r} is above {(low * unit).min()!r}")
    report = sc.verify(record, case.data, case.folds)
    if record.upper < 1e-290:  # products of such numbers have lost their digits
        return
    tally.violations += [f"{kind} {seed}: verify: {one}" for one in report.failures]


def _record(run: Any, asked: Restrictions, how: dict[str, str]) -> Record:
    options = SearchOptions.of(threads=1, gap=0.0, restrictions=asked, **how)
    source = run.reported
    return build_record(run.snapshot(), options, source.best_on_all_rows, source.run.all_rows)


def _possible(case: RandomProblem, asked: Restrictions, tau: int) -> bool:
    from itertools import combinations

    from restricted import allowed

    varying = [name for name, ptp in zip(case.data.names, np.ptp(case.data.X, axis=0), strict=True) if ptp > 0.0]
    return any(allowed(set(some), asked) for size in range(tau + 1) for some in combinations(varying, size))


def _cell(run: Any, where: tuple[int, int, int], found: Optima, rows: RestrictedEnumeration, tally: Tally) -> list[str]:
    cells, out = run.run.cells, []
    unit = (run.context.data.y_unit / np.ldexp(1.0, rows.exponent)) ** 2
    lower, upper = float(cells.lower[where]) * unit, float(cells.upper[where]) * unit
    (low, high), slip = found.interval(INSIDE, -1.0), found.rounding(OUTSIDE, 1.0)
    slip += (1e-9 if np.any(run.context.data.copy_of >= 0) else 1e-12) * high
    tally.cells += 1
    if not lower <= low + slip:
        out.append(f"lower {lower!r} is above the truth {low!r} (its rounding {slip:.1e})")
    if not upper >= high - slip:
        out.append(f"upper {upper!r} is below the truth {high!r} (its rounding {slip:.1e})")
    if not cells.decided[where]:
        return out
    tally.decided += 1
    wide_low, wide_high = found.interval(OUTSIDE, 1.0)
    support = run.context.data.columns[cells.pool.supports[int(cells.support[where])]]
    value, error = rows.value_of(support, found)
    best_error = float(found.value_error[int(np.argmin(found.value))])
    excess = max(value - error - found.best - best_error, 0.0) / max(found.best, 1e-300)
    floor = H_FLOOR * found.scale
    miss = max(wide_low - lower - slip - floor, upper - wide_high - slip - floor, 0.0) / max(wide_high, 1e-300)
    if excess > F_RTOL * 1.1:
        out.append(f"f of the stored support {support.tolist()} exceeds the optimum by {excess:.1e}")
    if miss > H_RTOL:
        out.append(f"interval [{lower!r}, {upper!r}] is wider than the truth [{wide_low!r}, {wide_high!r}]")
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_the_truth(kind: str) -> None:
    tally = Tally()
    for seed in range(6):
        check(seed, kind, tally)
    assert tally.violations == []
    assert tally.decided >= 0.9 * tally.cells > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_problems(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    seed = 1000
    while tally.problems < 500:
        check(seed, kind, tally)
        seed += 1
    with capsys.disabled():
        print(f"\n{kind}: {tally}")
    assert tally.violations == []
    assert tally.decided >= 0.97 * tally.cells


# -- other solvers ----------------------------------------------------------------------------------------------------


@pytest.fixture
def only_by_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own trees decide nothing at their first nodes, so that every cell goes to the vendor's solver."""
    whole = RestrictedCells.tree

    def tree(self: RestrictedCells, *args: Any, **more: Any) -> PathResult:
        found = whole(self, *args, **more)
        if args[3] > FIRST_NODES:
            return found
        return replace(found, finished=False, cells={
            tau: replace(cell, complete=False, candidates=(), values=(), lower=0.0) for tau, cell in found.cells.items()
        })  # fmt: skip

    monkeypatch.setattr(RestrictedCells, "tree", tree)


@pytest.mark.parametrize("backend", ["highs", "gurobi", "scip"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("only_by_vendor")
def test_cells_by_other_solvers(kind: str, backend: str, count: int = 1) -> None:
    if not get_backend(backend).available().usable:
        pytest.skip(f"no {backend}")
    tally, seed = Tally(), 300
    while tally.problems < count:
        check(seed, kind, tally, backend=backend)
        seed += 1
    assert tally.violations == []
    assert tally.decided >= 0.9 * tally.cells > 0


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["highs", "gurobi", "scip"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("only_by_vendor")
def test_more_cells_by_other_solvers(kind: str, backend: str) -> None:
    test_cells_by_other_solvers(kind, backend, 25)
