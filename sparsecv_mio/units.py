"""The class `Interval` for certified bounds, and the numerical tolerances of the package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Rational
from typing import Any

from sparsecv_mio.errors import Contradiction

LARGEST = sys.float_info.max
"""Largest number of double precision."""

ROUNDING = sys.float_info.epsilon
"""Machine epsilon, twice the relative rounding error of one operation; bounds on rounding errors are multiples of it.
"""

WRITTEN = 4.0 * ROUNDING
"""Relative rounding error of numbers written to a file; numbers that differ by less are treated as equal."""

TIE_RTOL = 1e-9
"""Two supports are tied if their refitted objectives differ by at most this share of the objective (theory 9)."""

KEEP_RTOL = 1e-8
"""A node is pruned only above the best objective times `1 + KEEP_RTOL`, for rounding in updated inverses (theory 9)."""

PROVED_RTOL = 1e-9
"""Relative width of an interval up to which an optimum counts as proved, for any requested gap."""

LOSS_ROUNDING = 64.0 * ROUNDING
"""Rounding error of a computed loss or margin of a row, relative to the sum of the absolute values of its terms."""

NEWTON_RTOL = 1e-10
"""Relative accuracy of objectives from Newton steps; smaller differences count as ties, and smaller gaps as closed."""

MARGINS_OFF = 2e-8
"""Maximum error of a margin up to which held-out losses are taken from fits with held-out rows removed."""

LOSS_SLACK = 5e-9
"""Relative rounding error of a bound on an objective with log loss, for almost separated classes."""

CROSSING_RTOL = 1e-7
"""Maximum relative excess, by rounding, of a lower bound on a held-out error over an upper bound on this error."""

FOLLOWS_RTOL = 10.0 * CROSSING_RTOL
"""Relative rounding error of numbers computed from several held-out errors, such as an instability."""

ACCURATE_RTOL = 1e-9
"""Relative error up to which a held-out error, a coefficient, or a sum of such numbers counts as accurate.

Two well-conditioned or refined computations of a number agree to this error. Proofs weaken their claims by this share.
"""

FROM_ROWS = 1e-8
"""Relative rounding error of a loss or objective from moments, beyond which the support is fitted from the rows."""

WORST_ROUNDING = 1e-5
"""Relative rounding error of a held-out error, beyond which a known support does not solve a subproblem."""

SUM_RTOL = 1e-13
"""Rounding error of a sum of very many losses, over rows and folds, relative to the sum of their absolute values."""

SHAVED = 1e-9
"""Relative allowance for rounding errors in penalties, rates and intervals, such as those from eigenvalues."""

MOMENTS_RTOL = 2e-11
"""Relative error up to which a training objective from moments, or in double precision, is not computed again."""

OUTWARD = 1e-12
"""Relative outward shift of computed bounds, for the rounding of the last few operations."""

NARROWEST = 1e-12
"""Relative width of an interval of gamma below which it is not divided; relative accuracy of a minimiser of h."""

ALIKE_PENALTIES = 1e4
"""Maximum ratio of column penalties up to which products of rows are accurate for all columns."""

TINY = 1e-300
"""Replacement of a zero divisor, or a negligible allowance."""

GAMMA_RANGE = 1e-300, 1e300
"""Smallest positive and largest gamma that may be requested."""

NO_RIDGE = GAMMA_RANGE[0]
"""The ridge weight that replaces gamma 0; with independent columns it changes no digit (`trees.without_ridge`)."""

MODEL_SHARE = 0.15
"""Share of the time limit reserved for proving or fitting the reported model after the search."""

MAIN_SHARE = 2
"""Ratio of the time of the run on all rows to the time of the run of an outer fold, under a time limit."""

BASELINES_SHARE = 0.2
"""Share of the time limit that a search leaves for baselines."""

SO_FAR_GAP = 0.01
"""Relative gap at which an unfinished record states a part of the grid as certified so far."""

AVERAGE_GAP = 1e-4
"""Relative gap at which the best subset for an average counts as proved."""

AVERAGE_GAMMA = 1e-6
"""Ridge weight for projecting an average of fits on a subset: negligible, as the average is already shrunk."""

MISSED_SHARE = 0.005
"""Maximum mean squared difference between a best subset and the average, as a share of the minimum CV error."""

MOST_THREADS = 4096
"""Maximum number of threads; a larger number is taken for a mistake."""


def exceeds_double(value: Any) -> bool:
    """Return True for a whole number or fraction that is too large for double precision; `float` rejects it.

    Examples
    --------
    >>> exceeds_double(10**400), exceeds_double(2**60), exceeds_double(float("inf"))
    (True, False, False)
    """
    size = value
    return isinstance(value, Rational) and not -LARGEST <= size <= LARGEST


@dataclass(frozen=True)
class Interval:
    """A closed interval that contains a number; an unknown bound is infinite.

    Parameters
    ----------
    lower, upper : float
        Bounds with `lower <= truth <= upper`, in the unit of the number.

    Raises
    ------
    Contradiction
        If an end is NaN or `lower > upper`.

    Examples
    --------
    >>> 2.5 in Interval(1.0, 3.0)
    True
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise Contradiction(
                f"the lower bound {self.lower!r} exceeds the upper bound {self.upper!r} on the same number; please "
                "report this"
            )

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def tighten(self, other: Interval, allowance: float = 0.0) -> Interval:
        """Return the intersection with another interval that contains the same number.

        Parameters
        ----------
        other : Interval
            The other interval.
        allowance : float
            Rounding error that either interval may contain. Bounds that cross by at most this amount are swapped, so
            the result covers both of them.

        Raises
        ------
        Contradiction
            If the bounds cross by more than `allowance`.

        Examples
        --------
        >>> Interval(0.0, 2.0).tighten(Interval(1.0, 5.0))
        Interval(lower=1.0, upper=2.0)
        """
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        if lower <= upper:
            return Interval(lower, upper)
        if lower > upper + allowance:
            raise Contradiction(f"lower bound {lower!r} exceeds upper bound {upper!r} by more than {allowance:.3g}")
        return Interval(upper, lower)
