"""The class `Interval` for certified bounds, and the numerical tolerances of the package."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from sparsecv_mio.errors import Contradiction

ROUNDING = sys.float_info.epsilon
"""Machine epsilon, twice what one operation may be off by, relative: bounds of rounding count operations in it."""

WRITTEN = 4.0 * ROUNDING
"""What numbers of a file may be off by, relative, where whoever wrote them rounded: closer ones are the same."""

TIE_RTOL = 1e-9
"""Supports whose refitted objectives differ by at most this, relative to the full objective, are tied (theory 9)."""

KEEP_RTOL = 1e-8
"""A node is pruned only above the best objective times `1 + KEEP_RTOL`: updated inverses drift (theory 9)."""

PROVED_RTOL = 1e-9
"""Relative width of an interval up to which an optimum counts as proved, whatever gap was asked for."""

LOSS_ROUNDING = 64.0 * ROUNDING
"""Of the loss of a row or of its margin: what computing it adds to the rounding of its parts, relative to these."""

NEWTON_RTOL = 1e-10
"""Relative accuracy of an objective whose fits are made by Newton steps: closer ones are tied, nearer bounds closed."""

MARGINS_OFF = 2e-8
"""What the margins of fits without some rows may be off by, where held-out losses are to be those of the fits."""

LOSS_SLACK = 5e-9
"""Of an objective of log losses: rounding of either bound, where classes are all but separated."""

CROSSING_RTOL = 1e-7
"""Relative rounding between two ways to the same held-out sum: a lower end may exceed an upper one by that much."""

FOLLOWS_RTOL = 10.0 * CROSSING_RTOL
"""The same of what is computed from several such sums: means of absolute errors, distances of pairs, instabilities."""

ACCURATE_RTOL = 1e-9
"""Relative error up to which a held-out sum or a coefficient is known well, and that sums over them may have.

Two ways to the same number, well conditioned or refined, agree to it; proofs claim so much less than they show."""

FROM_ROWS = 1e-8
"""Relative rounding of a loss or a value by normal equations beyond which the support is fitted from the rows."""

WORST_ROUNDING = 1e-5
"""Relative rounding of a held-out error beyond which knowing its support decides no cell."""

SUM_RTOL = 1e-13
"""Rounding of a sum of very many numbers, relative to the sum of their sizes: losses over folds, predictions."""

SHAVED = 1e-9
"""Relative, off a penalty or a rate that comes of eigenvalues, and on an interval of one: their rounding, with room."""

MOMENTS_RTOL = 2e-11
"""Relative error up to which a training objective by moments, or in double precision, needs no second computation."""

OUTWARD = 1e-12
"""What computed bounds are moved outwards by, relative: rounding of the last few operations."""

NARROWEST = 1e-12
"""Relative width of an interval of gamma that is not divided, and at which a root in it is found."""

ALIKE_PENALTIES = 1e4
"""Factor by which penalties of columns differ at most, where products of rows keep the digits of all of them."""

TINY = 1e-300
"""Stands for a zero that is divided by, or for an allowance of next to nothing."""

GAMMA_RANGE = 1e-300, 1e300
"""Least and largest gamma that may be asked for, beside 0."""

NO_RIDGE = GAMMA_RANGE[0]
"""The ridge weight that replaces gamma 0; with independent columns it changes no digit (`trees.without_ridge`)."""

MODEL_SHARE = 0.15
"""Share of a limit, at its end, for the model that is reported where the search leaves that to be proved or made."""

MAIN_SHARE = 2
"""Runs that the run on all rows counts as, beside one for each outer fold, where a time limit is shared."""

SO_FAR_GAP = 0.01
"""Relative gap of the part of the grid that a record without a proof states as certified so far."""

AVERAGE_GAP = 1e-4
"""Relative gap at which a best subset for an average counts as proved."""

AVERAGE_GAMMA = 1e-6
"""Ridge weight with which an average of fits is put on a best subset: next to none, as the average is shrunk."""

MISSED_SHARE = 0.005
"""Share of the least CV error that a best subset may miss the average by, in the mean square over rows."""

MOST_THREADS = 4096
"""Threads that may be asked for: more is never meant."""


@dataclass(frozen=True)
class Interval:
    """A closed interval known to contain a number; an unknown end is infinite.

    Parameters
    ----------
    lower, upper : float
        `lower <= truth <= upper`, both in the unit of the truth.

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
            raise Contradiction(f"lower bound {self.lower!r} exceeds upper bound {self.upper!r}")

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def tighten(self, other: Interval, allowance: float = 0.0) -> Interval:
        """Intersect two intervals that contain the same number.

        Parameters
        ----------
        other : Interval
        allowance : float
            Rounding error either interval may carry. Ends that cross by at most this much are swapped, so the result
            covers both of them.

        Raises
        ------
        Contradiction
            If the ends cross by more than `allowance`.

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
