"""Are some methods better than others over many problems? Friedman's test, and Nemenyi's of all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of methods, and how far apart they must be.

    Attributes
    ----------
    mean : dict
        Of every method, its rank over the problems; 1 is best, ties share.
    difference : float
        Two methods whose mean ranks are farther apart than this differ at the level (Nemenyi's critical difference).
    p_value : float
        Of Friedman's test that all are alike.
    problems, left_out : int
        How many were ranked; how many were not, as some method has no value there.
    level : float
    """

    mean: dict[str, float]
    difference: float
    p_value: float
    problems: int
    left_out: int
    level: float = LEVEL

    @property
    def needed(self) -> int:
        """How many problems it takes until the first and the last of so many methods can differ at the level."""
        return int(self.problems * (self.difference / (len(self.mean) - 1)) ** 2) + 1

    def groups(self) -> list[tuple[str, ...]]:
        """Return the largest sets of methods that do not differ, best first."""
        order = sorted(self.mean, key=lambda name: self.mean[name])
        found: list[tuple[str, ...]] = []
        for first, name in enumerate(order):
            one = tuple(other for other in order[first:] if self.mean[other] - self.mean[name] <= self.difference)
            if len(one) > 1 and not any(set(one) <= set(before) for before in found):
                found.append(one)
        return found


def ranks(table: pd.DataFrame, larger: bool = False, level: float = LEVEL) -> Ranks:
    """Rank methods problem by problem, and test (Demsar, 2006).

    Parameters
    ----------
    table : pandas.DataFrame
        A row for every problem, a column for every method, NaN where it has no value; such problems are left out.
    larger : bool
        Whether larger values are better.
    level : float

    Returns
    -------
    Ranks

    Raises
    ------
    BadInput
        Fewer than three methods, or two problems.
    """
    from scipy.stats import friedmanchisquare, studentized_range

    whole = table.dropna()
    count, methods = whole.shape
    if methods < 3 or count < 2:
        raise BadInput(f"ranks need three methods and two problems with values of all: here {methods} and {count}")
    mean = (-whole if larger else whole).rank(axis=1).mean()
    critical = float(studentized_range.ppf(1.0 - level, methods, np.inf)) / np.sqrt(2.0)
    with np.errstate(invalid="ignore"):  # all values tied: the statistic is 0 / 0, and no difference is shown
        p_value = float(friedmanchisquare(*(whole[name] for name in whole)).pvalue)
    return Ranks(
        {str(name): float(value) for name, value in mean.items()},
        critical * float(np.sqrt(methods * (methods + 1) / (6.0 * count))),
        1.0 if np.isnan(p_value) else p_value, count, len(table) - count, level,
    )  # fmt: skip
