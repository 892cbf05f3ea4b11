"""What would complete a proof that a limit cut short, by what was proved and how the costs grew."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sparsecv_mio.certificate.record import Advice, Region, SearchRequest
from sparsecv_mio.grids import text_of_gammas, text_of_taus

FEWEST = 3  # taus proved one after the other that tell how the costs grow
LONGEST = 1e6  # seconds of a limit that is worth advising


def advice(
    request: SearchRequest, region: Region | None, gamma: float, tau: int, reached: Mapping[int, float]
) -> Advice:
    """Return which options would make the proof complete.

    Parameters
    ----------
    request : SearchRequest
        The grid and the limit.
    region : Region or None
        Where the best pair is proved.
    gamma, tau : float, int
        The reported pair, which a smaller grid has to hold.
    reached : mapping of int to float
        By tau, the seconds after which every pair up to it was proved.

    Examples
    --------
    >>> request = SearchRequest((0.1, 1.0, 10.0), tuple(range(1, 13)), 1e-4, False, 20.0, 1)
    >>> region = Region(8, 1.0, 1.0, 3, 2.0, 2.0, 2.0, 0.0, 0.0)
    >>> advice(request, region, 1.0, 3, {6: 2.0, 7: 4.0, 8: 8.0})
    Advice(tau='1:8', gamma='1,10', time_limit=400.0)
    """
    taus = gammas = None
    # what is proved by a pair outside of a part is not proved by the part alone
    if region is not None and region.up_to_tau is not None and max(tau, region.tau) <= region.up_to_tau:
        taus = text_of_taus(size for size in request.taus if size <= region.up_to_tau)
    if region is not None and region.from_gamma is not None and min(gamma, region.gamma) >= region.from_gamma:
        gammas = text_of_gammas(value for value in request.gammas if value >= region.from_gamma)
    return Advice(taus, gammas, longer_limit(request, reached))


def longer_limit(request: SearchRequest, reached: Mapping[int, float]) -> float | None:
    """Return a limit within which the whole grid may be proved, to one digit; None where nothing tells.

    The logarithm of the seconds is taken to grow with tau as it did over the later half of the taus that were proved.

    Parameters
    ----------
    request : SearchRequest
    reached : mapping of int to float
        See `advice`.

    Examples
    --------
    >>> request = SearchRequest((1.0,), tuple(range(1, 11)), 1e-4, False, 10.0, 1)
    >>> longer_limit(request, {1: 1.0, 2: 2.0}), longer_limit(request, {tau: 2.0**tau / 8 for tau in range(1, 7)})
    (None, 200.0)
    """
    taus = sorted(reached)
    if request.time_limit is None or len(taus) < FEWEST:
        return None
    later = taus[min(len(taus) // 2, len(taus) - FEWEST) :]
    slope = float(np.polyfit(later, np.log([max(reached[tau], 1e-3) for tau in later]), 1)[0])
    growth = max(slope, 0.0) * (max(request.taus) - taus[-1])
    if growth > math.log(LONGEST):
        return None
    seconds = request.time_limit * math.exp(growth)
    digit = 10.0 ** math.floor(math.log10(seconds))
    rounded = math.ceil(max(seconds, 1.5 * request.time_limit) / digit - 1e-9) * digit
    return rounded if rounded <= LONGEST else None
