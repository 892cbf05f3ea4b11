"""What is wrong with the record of a search, and with the cells that it is made of, by the truth about its problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from truth import INSIDE, OUTSIDE, Optima, Truth, allowed
from zoo import RandomProblem

from sparsecv_mio.certificate.claims import rows_in_region
from sparsecv_mio.certificate.records import Record

F_RTOL, H_RTOL = 1e-9, 1e-7
H_FLOOR = 1e-10  # of the mean square of the target: a held-out error far below it is rounding
TOO_WIDE = "is wider than the truth"
LOST = 1e-290  # products of such numbers have lost their digits


def wrong(problem: RandomProblem, record: Record, snapshot: Any = None) -> Iterator[str]:
    """Yield what enumeration contradicts in a record, and in the cells of the snapshot that it was made of."""
    truth = Truth(problem)
    yield from outside(record)
    yield from not_allowed(problem, record)
    yield from wrong_rows(truth, record)
    if snapshot is not None and "descent" not in record.work.engine:
        yield from wrong_cells(truth, snapshot)


def outside(record: Record) -> Iterator[str]:
    """Yield every number that is not within its interval, and every mark that is not true to what it marks."""
    grid = record.certificate
    parts = [part for part in (record, record.least, record.refined, *record.table) if part is not None]
    yield from (f"{part} outside of its interval" for part in parts if not part.lower <= part.cv_error <= part.upper)
    for row in record.table:
        if grid.lower > row.lower:
            yield f"the lower end of the grid {grid.lower!r} is above that of {row}"
        if row.estimate != (row.folds_decided < row.folds):
            yield f"decided folds and mark contradict each other: {row}"
    if not record.refit.lower <= record.refit.objective <= record.refit.upper:
        yield f"refit outside of its interval: {record.refit}"
    own = record.own_row
    if own is None or (own.cv_error, own.estimate) != (record.cv_error, record.estimate):
        yield f"the reported pair is not that of its row: {own}"
    if {len(fold.support) for fold in record.chosen_folds} - {*range(record.tau + 1)}:
        yield "a fold has more features than tau"


def not_allowed(problem: RandomProblem, record: Record) -> Iterator[str]:
    """Yield the supports that the restrictions exclude."""
    asked = problem.restrictions.resolve_names(problem.data.names)
    supports: Iterable[Any] = (record.support, *record.chosen_folds.supports)
    if asked.nonnegative or asked.nonpositive:  # a sign may hold a chosen column at zero
        supports = ()
    yield from (f"{one} is not allowed" for one in supports if not allowed(set(one), asked))


def wrong_rows(truth: Truth, record: Record) -> Iterator[str]:
    """Yield the rows of the table, and what is claimed of all of them, that enumeration contradicts."""
    known = {(row.gamma, row.tau): truth.h(row.gamma, row.tau) for row in record.table}
    y = truth.problem.data.y
    floor = H_FLOOR * float(np.mean((y - y.mean()) ** 2) + (y.mean() ** 2 if truth.problem.intercept == "none" else 0))
    if not np.isfinite([*known.values()]).all() or 0.0 < record.upper < LOST:
        return
    best, least = min(row.upper for row in record.table), min(low for low, *_ in known.values())
    descent = "descent" in record.work.engine
    for row in record.table:
        low, high, loose_low, loose_high = known[row.gamma, row.tau]
        room = H_RTOL * loose_high + floor
        if row.lower > low:
            yield f"lower above the truth {low!r}: {row}"
        if row.upper < high:
            yield f"upper below the truth {high!r}: {row}"
        if not row.estimate and not loose_low - room <= row.cv_error <= loose_high + room:
            yield f"decided, not in {(loose_low, loose_high)}: {row}"
        least_excluded = (1.0 - record.request.gap) * best - room
        if row.status == "excluded" and record.status != "proved" and loose_high < least_excluded:
            yield f"excluded, but no worse than others: {row}"
    if descent:
        return
    own = known[record.certificate.gamma, record.certificate.tau]
    width = record.request.gap * record.certificate.upper + record.certificate.tie_width + record.certificate.allowance
    rounding = 1e-9 * record.certificate.upper + floor
    if record.certificate.lower > least + rounding:
        yield f"the lower end {record.certificate.lower!r} is above the least h {least!r}"
    if record.certificate.upper < min(high for _, high, *_ in known.values()) - rounding:
        yield f"the upper end {record.certificate.upper!r} is below the least h"
    if record.status == "proved" and own[1] > least + width * (1.0 + 1e-9) + 2.0 * rounding:
        yield f"proved, but h is {own[1]!r} at the pair and {least!r} elsewhere"
    if record.region is not None:
        yield from wrong_region(record, known, rounding)


def wrong_region(record: Record, known: dict[Any, Any], rounding: float) -> Iterator[str]:
    """Yield what enumeration contradicts of the part of the grid that is proved."""
    region = record.region
    assert region is not None
    rows = rows_in_region(region, record.table)
    least, own = min(known[row.gamma, row.tau][0] for row in rows), known[region.gamma, region.tau]
    width = record.request.gap * region.upper + region.tie_width + region.allowance
    if region.lower > least + rounding or own[1] > region.upper + rounding:
        yield f"the region's interval does not hold {least!r}: {region}"
    if own[1] > least + width + 2.0 * rounding:
        yield f"proved in a region, but {least!r} is less than {own[1]!r}"
    if record.status == "proved" and len(rows) != len(record.table):
        yield "proved, but not in every row"


def wrong_cells(truth: Truth, snapshot: Any) -> Iterator[str]:
    """Yield the cells whose interval, support or mark enumeration contradicts."""
    grid, cells, data = snapshot.context.grid, snapshot.cells, snapshot.context.data
    # copies may differ by the rounding of whoever wrote the file, and one stands for all; bounds allow for that as well
    share = 1e-9 if np.any(data.copy_of >= 0) or "bounds" in snapshot.work.engine else 1e-12
    for fold in range(truth.problem.folds.k):
        rows = truth.rows(fold)
        for g, t in np.ndindex(len(grid.gammas), len(grid.taus)):
            optima = rows.optima(float(grid.gammas[g]), int(grid.taus[t]))
            if len(optima.value):
                said = wrong_cell(data, cells, (g, t, fold), rows, optima, share)
                yield from (f"gamma {grid.gammas[g]:.6g}, tau {grid.taus[t]}, fold {fold}: {words}" for words in said)


def wrong_cell(
    data: Any, cells: Any, at: tuple[int, int, int], rows: Any, optima: Optima, share: float
) -> Iterator[str]:
    """Yield what enumeration contradicts of one cell."""
    unit = (data.y_unit / np.ldexp(1.0, rows.exponent)) ** 2
    lower, upper = float(cells.lower[at]) * unit, float(cells.upper[at]) * unit
    (low, high), slip = optima.interval(INSIDE, -1.0), optima.rounding(OUTSIDE, 1.0)
    slip += share * high
    if not lower <= low + slip:
        yield f"lower {lower!r} is above the truth {low!r} (its rounding {slip:.1e})"
    if not upper >= high - slip:
        yield f"upper {upper!r} is below the truth {high!r} (its rounding {slip:.1e})"
    if not cells.decided[at]:
        return
    wide_low, wide_high = optima.interval(OUTSIDE, 1.0)
    support = data.columns[cells.pool.supports[int(cells.support[at])]]
    value, error = rows.value_of(support, optima)
    best_error = float(optima.value_error[int(np.argmin(optima.value))])
    excess = max(value - error - optima.best - best_error, 0.0) / max(optima.best, 1e-300)
    floor = H_FLOOR * optima.scale
    miss = max(wide_low - lower - slip - floor, upper - wide_high - slip - floor, 0.0) / max(wide_high, 1e-300)
    if excess > F_RTOL * 1.1:
        yield f"f of the stored support {support.tolist()} exceeds the optimum by {excess:.1e}"
    if miss > H_RTOL:
        yield f"interval [{lower!r}, {upper!r}] {TOO_WIDE} [{wide_low!r}, {wide_high!r}]"
