"""Every interval of the search contains the truth, every decided cell is it: random small problems by brute force."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from every_support import brute_force_cell
from random_problems import RandomProblem, random_problem
from reference import Enumeration, Optima
from runs import new_run, record_of

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.search.rounds import Rounds

F_RTOL, H_RTOL = 1e-9, 1e-7
H_FLOOR = 1e-10  # of the mean square of the target: a held-out error far below it is rounding
INSIDE, OUTSIDE = 0.9e-9, 1.1e-9  # tie tolerances on both sides of the engine's 1e-9: borderline ties go either way


@dataclass
class Tally:
    """What a comparison saw: cells, decided ones, the worst relative differences, and every violation in words."""

    problems: int = 0
    cells: int = 0
    decided: int = 0
    ties: int = 0
    worst_f: float = 0.0
    worst_h: float = 0.0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.problems} problems, {self.cells} cells, {self.decided} decided ({self.ties} ties), worst relative "
            f"difference f {self.worst_f:.2e}, h {self.worst_h:.2e}, {len(self.violations)} violations"
        )


def prepared(case: RandomProblem, gap: float = 0.0, seconds: float | None = None, threads: int = 1) -> Rounds:
    """A run that has not begun."""
    data = standardize(case.data, case.scale, case.intercept, case.restrictions)
    grid = Grid.of(case.gammas, case.taus, case.data.p)
    run: Rounds = new_run(data, case.folds, grid, seconds, gap=gap, threads=threads)
    return run


def solved(run: Rounds, rounds: int = 1 << 30, together: bool = True) -> Rounds:
    """The same run, begun and carried on for some rounds; `together`: first one tree for all folds, where usable."""
    run.begin()
    if not together:
        run.shared_pass.done[:] = True
    while run.shared_pass.left:
        run.step()
    run.step()
    while rounds > 1 and not run.finished:
        run.step()
        rounds -= 1
    return run


def compare(seed: int, case: RandomProblem, run: Rounds, tally: Tally) -> None:
    """Compare every cell of a run, and the record's bounds, with the enumeration."""
    tally.problems += 1
    high, low = (np.zeros((len(run.context.grid.gammas), len(run.context.grid.taus))) for _ in range(2))
    forced = case.restrictions.force_in, case.restrictions.force_out
    for fold in range(case.folds.k):
        rows = Enumeration(
            case.data.X,
            case.data.y,
            case.folds.train_rows(fold),
            case.folds.scored_rows(fold),
            case.scale,
            case.intercept,
            *(tuple(case.data.names.index(name) for name in some) for some in forced),
        )
        unit = (run.context.data.y_unit / np.ldexp(1.0, rows.exponent)) ** 2
        for g, gamma in enumerate(run.context.grid.gammas.tolist()):
            for t, tau in enumerate(run.context.grid.taus.tolist()):
                found = rows.optima(gamma, tau)
                (first, last), slip = found.interval(INSIDE, -1.0), found.rounding(INSIDE, -1.0)
                low[g, t], high[g, t] = low[g, t] + first + slip, high[g, t] + last - slip
                for message in _cell(run, (g, t, fold), found, unit, tally):
                    tally.violations.append(f"seed {seed}, gamma {gamma:.6g}, tau {tau}, fold {fold}: {message}")
    # the record's bounds are sums over folds
    record = record_of(run)
    scored = int((case.folds.labels >= 0).sum())
    unit = np.ldexp(1.0, rows.exponent) ** 2 / scored
    for message in _record(record, run, high * unit, low * unit):
        tally.violations.append(f"seed {seed}: {message}")


def _cell(run: Rounds, where: tuple[int, int, int], found: Optima, unit: float, tally: Tally) -> list[str]:
    cells, out = run.run.cells, []
    lower, upper = float(cells.lower[where]) * unit, float(cells.upper[where]) * unit
    (low, high), slip = found.interval(INSIDE, -1.0), found.rounding(OUTSIDE, 1.0)
    # copies may differ by the rounding of whoever wrote the file, and one stands for all
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
    tally.ties += wide_high > wide_low * (1.0 + H_RTOL)
    support = run.context.data.columns[cells.pool.supports[int(cells.support[where])]]
    value, error = _value(run, found, support, where)
    best_error = float(found.value_error[int(np.argmin(found.value))])
    excess = max(value - error - found.best - best_error, 0.0) / max(found.best, 1e-300)
    floor = H_FLOOR * found.scale
    miss = max(wide_low - lower - slip - floor, upper - wide_high - slip - floor, 0.0) / max(wide_high, 1e-300)
    tally.worst_f, tally.worst_h = max(tally.worst_f, excess), max(tally.worst_h, miss)
    if excess > F_RTOL * 1.1:
        out.append(f"f of the stored support exceeds the optimum by {excess:.1e}")
    if miss > H_RTOL:
        out.append(f"interval [{lower!r}, {upper!r}] is wider than the truth [{wide_low!r}, {wide_high!r}]")
    return out


def _value(run: Rounds, found: Optima, support: np.ndarray, where: tuple[int, int, int]) -> tuple[float, float]:
    """f of the stored support; columns that are constant in training may be missing from it."""
    size = found.supports.shape[1]
    if len(support) == size:
        return found.at(support.tolist())
    holders = [r for r in range(len(found.supports)) if set(support.tolist()) <= set(found.supports[r].tolist())]
    row = holders[int(np.argmax(found.value[holders]))]
    return float(found.value[row]), float(found.value_error[row])


def _record(record: Record, run: Rounds, high: np.ndarray, low: np.ndarray) -> list[str]:
    """Bounds and status of the record against h by (gamma, tau), pessimistic and optimistic over ties."""
    out = []
    least, rounding = float(low.min()), 1e-9 * record.upper
    grid = run.context.grid
    reported = float(high[grid.gammas.tolist().index(record.gamma), grid.taus.tolist().index(record.tau)])
    if record.lower > least + rounding:
        out.append(f"certificate: lower {record.lower!r} is above the smallest h {least!r}")
    own = record.own_row
    if own is None or own.upper < reported - rounding:
        out.append(f"the upper end of the reported pair is below its h {reported!r}: {own}")
    if record.upper < float(high.min()) - rounding:
        out.append(f"certificate: upper {record.upper!r} is below the smallest h {float(high.min())!r}")
    room = run.context.gap * record.upper + record.tie_width + record.allowance
    if (record.status == "proved") != (record.upper - record.lower <= room * (1.0 + 1e-12)):
        out.append(f"status {record.status!r} but upper - lower = {record.upper - record.lower:.3g}, room {room:.3g}")
    if record.status == "proved" and reported > least + room + rounding:
        out.append(f"proved, but h is {reported!r} at the reported pair and {least!r} elsewhere")
    return out


def check(seeds: range, tally: Tally, **size: int) -> None:
    """Run the whole comparison for some seeds, gap 0."""
    for seed in seeds:
        case = random_problem(seed, **size)
        run = solved(prepared(case), together=seed % 3 > 0)
        compare(seed, case, run, tally)
        record = record_of(run)
        if run.run.cells.decided.all() and record.status != "proved":
            tally.violations.append(f"seed {seed}: every cell is decided but the status is {record.status!r}")


@pytest.mark.parametrize("seed", range(40))
def test_reference_is_the_definition(seed: int) -> None:
    case = random_problem(seed, rows=20, columns=5)
    how = {"scale": case.scale, "intercept": case.intercept}
    X, y, fold = case.data.X, case.data.y, seed % case.folds.k
    train, test = case.folds.train_rows(fold), case.folds.scored_rows(fold)
    rows = Enumeration(X, y, train, test, **how)
    unit = np.ldexp(1.0, rows.exponent)
    for tau in case.taus:
        found = rows.optima(case.gammas[0], tau)
        slow = brute_force_cell(X, y, tau, case.gammas[0], rows=train, **how)
        blur = 16.0 * float(found.value_error.max()) + 1e-28  # the definition takes one mean, the reference two
        assert abs(slow.objective / unit / unit - found.best) <= 1e-9 * found.best + blur
        low, high = slow.held_out(X, y, test)
        slip = found.rounding(OUTSIDE, 1.0) * 64.0
        outer, inner = found.interval(OUTSIDE, 1.0), found.interval(INSIDE, -1.0)
        assert outer[0] * (1 - 1e-9) - slip <= low / unit / unit <= inner[0] * (1 + 1e-9) + slip
        assert inner[1] * (1 - 1e-9) - slip <= high / unit / unit <= outer[1] * (1 + 1e-9) + slip


@pytest.mark.parametrize("block", range(12))
def test_cells_are_the_truth(block: int) -> None:
    tally = Tally()
    check(range(10 * block, 10 * block + 10), tally, rows=30, columns=8)
    assert tally.violations == []
    assert tally.decided >= 0.8 * tally.cells


@pytest.mark.slow
def test_cells_are_the_truth_at_length(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    check(range(1000, 3400), tally)
    with capsys.disabled():
        print(f"\n{tally}")
    assert tally.violations == []
    assert tally.decided >= 0.98 * tally.cells


@pytest.mark.parametrize("seed", range(200, 230))
def test_a_run_that_is_stopped_early_stays_true(seed: int) -> None:
    case, tally = random_problem(seed, rows=30, columns=8), Tally()
    run = prepared(case)
    run.rounds.effort = seed % 3
    compare(seed, case, solved(run, rounds=1, together=seed % 2 > 0), tally)
    expired = prepared(case, seconds=1e-9)
    time.sleep(1e-6)
    compare(seed, case, solved(expired, rounds=1), tally)
    assert tally.violations == []
