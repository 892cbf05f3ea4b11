"""The one-standard-error rule: which pair it takes, and which pairs must be known better for that to be sure.

The rule takes the smallest tau, then the largest gamma, whose h is within one standard error of the least. So the pair
with the least h must be known exactly, nothing may be able to fall below it, and of every simpler pair than the one
taken it must be certain that it is not within. The pair that is taken is reported, so it is decided too. Nothing else
of the table matters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.search.state.pairs import PairBounds, simplest

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Choice:
    """The pair that the rule takes of what is known, and what could change it.

    Attributes
    ----------
    pair : gamma, tau
        The pair taken.
    standard_error : float
        Of h of the best pair, in the units of `unit`.
    missing : (G, T) bool array
        Undecided pairs that could still change it, and the pair itself; the rule is sure where there are none.
    """

    pair: Pair
    standard_error: float
    missing: BoolArray


def apply(now: PairBounds, best: Pair, gammas: FloatArray, taus: IntArray, scored: Scored, unit: float) -> Choice:
    """Apply the rule.

    Parameters
    ----------
    now : PairBounds
    best : gamma, tau
        The pair with the least h.
    gammas, taus : arrays
    scored : Scored
        Weights of the rows of each fold.
    unit : float
        From squared standard units to squared units of the target.
    """
    total = scored.total
    error = standard_error(now.cells.nominal[best] * unit, scored.by_fold, scored.times)
    limit = now.shown[best] * (unit / total) + error
    # by the certified upper ends: within one standard error for sure
    within = (now.upper * (unit / total) <= limit) & np.isfinite(now.nominal)
    within[best] = True
    pair = simplest(within, gammas, taus)
    open_pairs = now.decided < len(scored.by_fold)
    simpler = (taus[None, :] < taus[pair[1]]) | ((taus[None, :] == taus[pair[1]]) & (gammas[:, None] > gammas[pair[0]]))
    missing = simpler & (now.lower * (unit / total) <= limit)
    missing |= now.lower < now.upper[best]
    missing[best] = missing[pair] = True
    return Choice(pair, error, missing & open_pairs)


def next_to_decide(missing: BoolArray, now: PairBounds) -> BoolArray:
    """Of the pairs that are missing those to decide first: the best one and its rivals, then one tau at a time."""
    first = missing & (now.lower < now.upper[now.best])
    first[now.best] = missing[now.best]
    if not first.any() and missing.any():
        t = int(np.flatnonzero(missing.any(axis=0))[0])
        first[:, t] = missing[:, t]
    return first
