"""Rows of the table by tau: the best gamma of each tau, or only bounds if all gammas of this tau are excluded."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sparsecv_mio.certificate.records import Least, Record, TableRow
from sparsecv_mio.digits import format_interval, format_lower, format_upper, format_with_zeros, interval_digits
from sparsecv_mio.report.layout import mark_estimate
from sparsecv_mio.units import WORST_ROUNDING

MAX_SIZES = 25  # rows of the table of sizes; with more sizes it shows powers of two and the neighbours of the choice
NEIGHBOURS = 2  # sizes shown to each side of the chosen one in a shortened table


@dataclass(frozen=True)
class SizeRow:
    """The best pair of a tau, or certified bounds on its smallest CV error if all its pairs are excluded.

    Parameters
    ----------
    row : TableRow
        Row of the best gamma; of the gamma with the smallest estimate where the best gamma is not known.
    lower, upper : float
        Certified bounds on the CV error of `row`; on the minimum over all gammas if `excluded`.
    excluded : bool
        True if no gamma of this tau has the minimum CV error of the grid, and the best gamma of this tau is not known.
    """

    row: TableRow
    lower: float
    upper: float
    excluded: bool

    @property
    def tau(self) -> int:
        """The size."""
        return self.row.tau

    def is_pair(self, known: Record | Least) -> bool:
        """Return True if the row is that of a given pair."""
        return (self.row.gamma, self.row.tau) == (known.gamma, known.tau)

    @property
    def is_solved(self) -> bool:
        """True if all folds of the pair are solved."""
        return self.row.folds_decided == self.row.folds

    @property
    def is_estimate(self) -> bool:
        """True if `cv_error` is an estimate."""
        return self.row.estimate and not self.excluded

    @property
    def has_estimate_and_bound(self) -> bool:
        """True if the size is excluded, and an estimate above its lower bound is known but no upper bound."""
        return self.excluded and self.row.estimate and self.lower < self.row.cv_error < self.upper == math.inf

    @property
    def cv_error(self) -> float:
        """The CV error or its estimate; the lower bound if the size is excluded."""
        return self.lower if self.excluded else self.row.cv_error

    def describe_error(self, digits: int) -> str:
        """Return the CV error as text, marked as an estimate, as a bound, or as one of tied subsets where it is one."""
        if self.excluded:
            bounds, is_known = describe_bounds(self.lower, self.upper, digits), self.has_estimate_and_bound
            return (
                f"{mark_estimate(format_with_zeros(self.row.cv_error, digits), True)}, {bounds}" if is_known else bounds
            )
        if not self.row.estimate and self.upper - self.lower > WORST_ROUNDING * self.upper:
            return f"{describe_bounds(self.lower, self.upper, digits)} (tied)"
        return mark_estimate(format_with_zeros(self.row.cv_error, digits), self.row.estimate)

    def describe(self, digits: int, has_pair: bool) -> dict[str, object]:
        """Return the cells of the row by column, without the gamma and the folds of a pair unless `has_pair`."""
        row = self.row
        return {
            "tau": row.tau,
            "gamma": row.gamma if has_pair else "",
            "CV error": self.describe_error(digits),
            "lower": format_lower(self.lower, digits, format_with_zeros),
            "upper": format_upper(self.upper, digits, format_with_zeros),
            "folds solved": f"{row.folds_decided:,}/{row.folds:,}" if has_pair else "",
        }


def describe_bounds(lower: float, upper: float, digits: int = 6) -> str:
    """Return bounds on the CV error of an excluded pair as text.

    Parameters
    ----------
    lower, upper : float
        The bounds; an infinite `upper` is unknown.
    digits : int
        Number of digits.

    Examples
    --------
    >>> describe_bounds(0.53096, float("inf")), describe_bounds(0.5, 0.75)
    ('at least 0.530960', 'in [0.5, 0.75]')
    """
    if math.isfinite(upper):
        return f"in {format_interval(lower, upper, digits)}"
    return f"at least {format_lower(lower, digits, format_with_zeros)}"


def is_excluded(record: Record, row: TableRow) -> bool:
    """Return True if a pair is unsolved because the search excluded it: its CV error is then only bounded."""
    by_proof = record.status == "proved" and not record.estimate  # records without states of rows
    return row.estimate and row.lower > 0.0 and (row.status == "excluded" or by_proof)


def digits_of_sizes(rows: Iterable[SizeRow]) -> int:
    """Return the number of digits that distinguishes the bounds of rows that are not excluded."""
    return interval_digits((size_row.lower, size_row.upper) for size_row in rows if not size_row.excluded)


def rows_of_pairs(record: Record) -> list[SizeRow]:
    """Return a row for every pair of the table of a record, in the order of the table."""
    return [SizeRow(row, row.lower, row.upper, is_excluded(record, row)) for row in record.table]


def best_by_tau(record: Record) -> list[SizeRow]:
    """Return a row for every tau, in ascending order.

    Parameters
    ----------
    record : Record
        Record; for the reported tau, the row is that of the reported pair, and for the tau of the minimum CV error
        found, that of this pair.
    """
    by_tau: dict[int, list[TableRow]] = {}
    for row in record.table:
        by_tau.setdefault(row.tau, []).append(row)
    return [_best_row(record, by_tau[tau]) for tau in sorted(by_tau)]


def _best_row(record: Record, rows: Sequence[TableRow]) -> SizeRow:
    own, least = (record.gamma, record.tau), (record.certificate.gamma, record.certificate.tau)

    def rank(row: TableRow) -> tuple[bool, bool, float, float]:
        return (row.gamma, row.tau) != own, (row.gamma, row.tau) != least, row.cv_error, row.upper

    best, solved = min(rows, key=rank), [row for row in rows if not row.estimate]
    if (best.gamma, best.tau) in (own, least):
        return SizeRow(best, best.lower, best.upper, is_excluded(record, best))
    best_solved = min(solved, key=lambda row: row.cv_error, default=best)
    unsolved_lower = min((row.lower for row in rows if row.estimate), default=math.inf)
    if solved and best_solved.cv_error * (1.0 - record.request.gap) <= unsolved_lower:
        return SizeRow(best_solved, best_solved.lower, best_solved.upper, False)
    if all(not row.estimate or is_excluded(record, row) for row in rows):
        return SizeRow(best, min(row.lower for row in rows), min(row.upper for row in rows), True)
    return SizeRow(best, best.lower, best.upper, False)


def title_of_sizes(record: Record) -> str:
    """Return the title of the rows of `best_by_tau`, which names the reported tau."""
    if record.continuous is not None:
        return "every tau at this gamma"
    suffix = " found" if any(size_row.is_estimate for size_row in best_by_tau(record)) else ""
    reported = (
        f"reported: tau = {record.tau}" if record.least is None else f"for tau = {record.tau}: the reported gamma"
    )
    return f"best gamma{suffix} for each tau ({reported})"


def words_of_gamma(record: Record) -> str:
    """Return which gamma of each tau the rows of `best_by_tau` have."""
    return f"at its best gamma{'' if record.least is None else f' (tau = {record.tau}: the reported gamma)'}"


def advise_full_curve(record: Record) -> str:
    """Return advice on a run with the CV error of every size; empty if at most half of the sizes are excluded."""
    rows = best_by_tau(record)
    n_excluded = sum(size_row.excluded for size_row in rows)
    if 2 * n_excluded <= len(rows) or not _may_compute_all(record):
        return ""
    return f"{n_excluded:,} of {len(rows):,} sizes are excluded; --gap 0 computes the CV error of every size"


def _may_compute_all(record: Record) -> bool:
    """Return True if a run with gap 0 would compute the CV error of every size: no limit ended this run."""
    return record.status == "proved" and record.request.gap > 0.0 and record.continuous is None


def explain_excluded(record: Record, rows: Iterable[SizeRow]) -> str:
    """Return a sentence on the excluded sizes among some rows; empty without one."""
    rows = [size_row for size_row in rows if size_row.excluded]
    if not rows:
        return ""
    has_estimate = any(size_row.has_estimate_and_bound for size_row in rows)
    estimates = "; ~ marks an estimate, perhaps too low or too high" if has_estimate else ""
    computed = " (--gap 0 computes it)" if not advise_full_curve(record) and _may_compute_all(record) else ""
    has_lower = any(size_row.upper == math.inf for size_row in rows)
    has_interval = any(size_row.upper < math.inf for size_row in rows)
    words = "; `in` has bounds on the smallest CV error of this tau" if has_interval else ""
    words += "; `at least` is a lower bound, and the CV error may be far above it" if has_lower else ""
    reason = "this tau is" if record.continuous is not None else "this tau, at every gamma of the grid, is"
    return (
        f"excluded: {reason} certified not to improve on the minimum CV error by more than the "
        f"gap{words}{computed}{estimates}"
    )


def select_sizes(taus: Sequence[int], chosen: Collection[int]) -> list[int]:
    """Return the sizes to show: all if they are few, otherwise the chosen ones, their neighbours and powers of two.

    Parameters
    ----------
    taus : sequence of int
        The sizes, in ascending order.
    chosen : collection of int
        The sizes to show with their neighbours.

    Examples
    --------
    >>> select_sizes(range(1, 41), [6])
    [1, 2, 4, 5, 6, 7, 8, 16, 32, 40]
    """
    if len(taus) <= MAX_SIZES:
        return list(taus)
    near = {
        tau
        for at, size in enumerate(taus)
        if size in chosen
        for tau in taus[max(at - NEIGHBOURS, 0) : at + NEIGHBOURS + 1]
    }
    return [tau for tau in taus if tau in near or not tau & (tau - 1) or tau in (taus[0], taus[-1])]
