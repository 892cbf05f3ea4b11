"""Functions that detect tables with rows in time order, so that `inspect` can propose folds in time order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.columns import RawColumn
from sparsecv_mio.data.dates import DAYS, FORMS, PARTS, read_moment

ORDERED_ROWS = 20
FORWARD_FOLDS = 5  # K of the proposed `forward:K`: the last five sixths of the rows are scored
NEIGHBOUR_CORRELATION = 0.5  # lag-1 correlation of the target, from which neighbouring rows count as similar
YEAR = re.compile(r"(?i)(.*[_. -])?(year|yr|jahr)([_. -].*)?")
WITHIN = re.compile(r"(?i)(.*[_. -])?(quarter|qtr|quartal|month|monat|week|woche|day|tag|date)([_. -].*)?")
TIME = re.compile(r"(?i)(.*[_. -])?(year|yr|jahr|date|datum|day|time|timestamp|zeit|period|t)([_. -].*)?")


@dataclass(frozen=True)
class TimeOrder:
    """Rows in time order.

    Attributes
    ----------
    column : str
        Column that shows the order.
    why : str
        Reason for the conclusion.
    """

    column: str
    why: str

    @property
    def option(self) -> str:
        """Option of `solve` that trains on earlier rows only."""
        return f"--folds forward:{FORWARD_FOLDS}"

    @property
    def note(self) -> str:
        """Note on the column."""
        return (
            f"{self.why}: {self.option} predicts each row from earlier rows only, but shuffled folds also use later "
            "rows"
        )


def time_order(features: Sequence[RawColumn], target: RawColumn) -> TimeOrder | None:
    """Return the evidence that the rows are in time order, or None.

    The evidence is a date, or a year with quarters, months or days, that increases from row to row. Any other
    increasing column counts if the target correlates with its value in the previous row but the rows are not sorted by
    the target.

    Parameters
    ----------
    features : sequence of RawColumn
        All columns except the target, including columns that are not features.
    target : RawColumn
        The target.
    """
    if len(target.numbers) < ORDERED_ROWS:
        return None
    sorted_by_target, likeness = (
        _is_growing(target.numbers, 0.0) or _is_growing(-target.numbers, 0.0),
        _likeness(target.numbers),
    )
    for column in features:
        days = _days(column)
        if days is not None and _is_growing(days, 0.5):
            return TimeOrder(column.name, "a date that grows from row to row")
    plain = [column for column in features if not column.texts and not column.empty.any()]
    by_name = _order_by_name(plain, sorted_by_target)
    if by_name is not None or sorted_by_target or likeness < NEIGHBOUR_CORRELATION:
        return by_name
    growing = next((column for column in plain if _is_growing(column.numbers, 1.0)), None)
    if growing is None:
        return None
    alike = f"the target is similar to the target of the previous row (correlation {likeness:.2f})"
    return TimeOrder(growing.name, f"grows from row to row, and {alike}, as in the order of time")


def _order_by_name(columns: Sequence[RawColumn], sorted_by_target: bool) -> TimeOrder | None:
    """Return the order of a numeric column whose name states a time, including a year with its parts."""
    for times in columns:
        if not TIME.fullmatch(times.name):
            continue
        within = [column for column in columns if column is not times and WITHIN.fullmatch(column.name)]
        for within_year in within if YEAR.fullmatch(times.name) else []:
            if _is_growing(_together(times.numbers, within_year.numbers), 1.0):
                return TimeOrder(times.name, f"grows from row to row together with {within_year.name!r}")
        if _is_growing(times.numbers, 1.0) and not sorted_by_target:
            return TimeOrder(times.name, "has the name of a time, and grows from row to row")
    return None


def _is_growing(numbers: FloatArray, share: float) -> bool:
    """Return True if numbers never fall from row to row, and rise in at least this share of the steps."""
    steps = np.diff(numbers)
    return bool(np.all(steps >= 0.0) and np.mean(steps > 0.0) >= share) if len(steps) else False


def _together(years: FloatArray, parts: FloatArray) -> FloatArray:
    """Return numbers that increase with the year and, within a year, with its part."""
    return years * (np.ptp(parts) + 1.0) + (parts - parts.min())


def _likeness(target: FloatArray) -> float:
    """Return the lag-1 correlation of the target."""
    finite = np.isfinite(target)
    off = np.where(finite, target - np.mean(target[finite]), 0.0) if finite.any() else np.zeros(1)
    off = off / (np.abs(off).max() or 1.0)
    square = float(off @ off)
    return float(off[1:] @ off[:-1]) / square if 0.0 < square < np.inf else 0.0


def _days(column: RawColumn) -> FloatArray | None:
    """Return the dates of a column as numbers; None if a cell is missing or not a date."""
    if len(column.texts) < len(column.numbers):
        return None
    texts = [column.texts[row] for row in range(len(column.numbers))]
    for form in FORMS:
        with suppress(ValueError):
            return np.array([PARTS[DAYS](read_moment(text, form)) for text in texts])
    return None
