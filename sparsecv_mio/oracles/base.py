"""Oracles: what a model predicts for rows that are left out, without training it again for each of them.

| kind | answer | may prune | oracles |
|---|---|---|---|
| certified | :class:`Bracket`, proved to contain the prediction | yes | GLRU |
| estimate | :class:`Guess`, near the prediction | no, it may only order the work | IACV, TreeCV |

The two answers are of different types: code that prunes takes a `Bracket`, and a `Guess` cannot become one.

What `solve --oracles` switches in the search are not these objects but accelerators that use the same results; see
:mod:`sparsecv_mio.search.accelerators` and the notation page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import Contradiction

ProgressHook = Callable[[int, int], None]
"""Called with (units of work done, units of work in total) from time to time."""


class Guarantee(StrEnum):
    """Whether an oracle's numbers are proved."""

    CERTIFIED = "certified"
    ESTIMATE = "estimate"


@dataclass(frozen=True, eq=False)
class Bracket:
    """Intervals proved to contain each left-out prediction.

    Parameters
    ----------
    lower, upper : (m,) arrays
        `lower <= x_i' w^(-N) <= upper` for the m left-out rows; -inf / +inf where nothing is known.

    Raises
    ------
    Contradiction
        If an end is NaN or a lower end exceeds its upper end.

    Examples
    --------
    >>> Bracket(np.array([0.5, -1.0]), np.array([2.0, 1.0])).sign().tolist()
    [1.0, nan]
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        if not np.all(self.lower <= self.upper):
            raise Contradiction("a certified interval is empty: its lower end exceeds its upper end")

    def sign(self) -> FloatArray:
        """(m,) sign of each prediction: -1, 0 or 1 where the interval decides it, NaN elsewhere."""
        zero = (self.lower == 0.0) & (self.upper == 0.0)
        return np.select([self.lower > 0.0, self.upper < 0.0, zero], [1.0, -1.0, 0.0], default=np.nan)


@dataclass(frozen=True, eq=False)
class Guess:
    """Numbers near each left-out prediction, without a proof.

    Parameters
    ----------
    value : (m,) array
        For the m left-out rows.
    """

    value: FloatArray


@runtime_checkable
class CertifiedOracle(Protocol):
    """Leaves rows out and proves in which intervals the predictions lie."""

    @property
    def guarantee(self) -> Guarantee:
        """`Guarantee.CERTIFIED`."""
        ...

    def leave_out(self, rows: IntArray) -> Bracket:
        """Return intervals for the predictions at `rows` (m,) of the fit to all other rows."""
        ...


@runtime_checkable
class EstimateOracle(Protocol):
    """Leaves rows out and estimates the predictions."""

    @property
    def guarantee(self) -> Guarantee:
        """`Guarantee.ESTIMATE`."""
        ...

    def leave_out(self, rows: IntArray) -> Guess:
        """Return estimates of the predictions at `rows` (m,) of the fit to all other rows."""
        ...
