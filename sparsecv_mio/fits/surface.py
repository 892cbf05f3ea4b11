"""The best subset of every size as a function of gamma, on all rows: what `sparsecv path --gamma LO..HI` adds.

Every size is cut into pieces on each of which one subset is proved to be the best one (docs/theory/continuous_gamma.md,
section 1). Where two cross, the piece around the crossing holds both: there their objectives agree to 1e-9. A piece on
which rounding is wider than what tells subsets apart stays open, as does what a limit leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sparsecv_mio.certificate.record import PathRecord, Surface, SurfacePiece
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.grids import GammaInterval
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.continuous.chords import Envelope
from sparsecv_mio.search.continuous.fits import Fits, Values
from sparsecv_mio.search.continuous.listing import Lister
from sparsecv_mio.search.continuous.lists import AllRows, Lists
from sparsecv_mio.search.continuous.partition import NARROWEST, first_grid, middle_of
from sparsecv_mio.search.continuous.solve import ROUNDED
from sparsecv_mio.search.continuous.training_sets import TrainingSets
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.units import TIE_RTOL

Found = tuple[float, float, tuple[tuple[int, ...], ...]]  # an interval of lam and its supports, none where unknown


def with_surface(
    record: PathRecord, data: StandardData, gammas: GammaInterval, taus: Sequence[int], clock: Deadline
) -> PathRecord:
    """Add the best subset of every size at every gamma of an interval to the record of its ends.

    Parameters
    ----------
    record : PathRecord
    data : StandardData
    gammas : GammaInterval
    taus : sequence of int
    clock : Deadline
    """
    from threadpoolctl import threadpool_limits

    # a bound that overflows says nothing
    with threadpool_limits(limits=1), np.errstate(over="ignore", invalid="ignore"):
        lister = Lister(TrainingSets.of_all_rows(data), data, None, clock.expired)
        sizes = sorted({min(tau, data.q) for tau in taus})
        lists = Lists(lister, AllRows(lister, sizes))
        ends = gammas.low / 2.0, gammas.high / 2.0
        found = {size: _joined([piece for part in pairwise(first_grid(ends)) for piece in _on(lists, part, size)])
                 for size in sizes}  # fmt: skip
    expired = clock.expired()
    numbers: dict[tuple[int, ...], int] = {}
    pieces = []
    for tau in taus:
        for low, high, supports in found[min(tau, data.q)]:
            places = tuple(sorted(numbers.setdefault(support, len(numbers)) for support in supports))
            pieces.append(SurfacePiece(tau, 2.0 * low, 2.0 * high, places, len(places) > 0))
    names = tuple(tuple(data.names[j] for j in support) for support in numbers)
    surface = Surface(gammas.low, gammas.high, names, tuple(pieces))
    status, warnings = record.status, record.warnings
    if not all(piece.proved for piece in pieces):
        status = "interrupted" if clock.stop.is_set() else "limit"
        warnings = warnings if expired else (*warnings, ROUNDED)
    work = replace(record.work, nodes=record.work.nodes + lister.nodes, seconds=clock.seconds)
    return replace(record, surface=surface, status=status, work=work, warnings=warnings)


def _on(lists: Lists, ends: tuple[float, float], size: int) -> list[Found]:
    """Cut one interval of lam into pieces."""
    low, high = ends
    if not all(lists.solve(lam, [size]) for lam in ends):
        return [(low, high, ())]
    fits = lists.on(low, high, size)
    if fits is None:
        return [(low, high, ())]
    assert isinstance(fits, Fits)
    return _Cut(lists.lister.data, lists.lister.expired).of(fits, ends, (fits.values(low), fits.values(high)))


@dataclass(frozen=True)
class _Cut:
    """Halves intervals until one subset can be best on each part, or those that can are tied."""

    data: StandardData
    expired: Callable[[], bool]

    def of(
        self, fits: Fits, ends: tuple[float, float], values: tuple[Values, Values], fine: bool = False
    ) -> list[Found]:
        """Cut an interval, given what all that can be best have at its ends; `fine` where that is from the rows."""
        (low, high), (left, right) = ends, values
        alive = np.flatnonzero(Envelope.of(ends, fits.fold, left, right).may_win(left, right))
        fits, left, right = fits.at(alive), left.at(alive), right.at(alive)
        sides = [(side.f - side.f.min(), side) for side in (left, right)]
        if len(fits) == 1 or all(np.all(over <= TIE_RTOL * side.f.min()) for over, side in sides):
            return [(low, high, tuple(tuple(row) for row in fits.support.tolist()))]
        # twice what `may_win` spares: where every one of them is within it, halving would go on without end
        alike = all(np.all(over <= 8.0 * side.f_error.max()) for over, side in sides)
        if self.expired() or (alike and fine) or high - low <= NARROWEST * high:
            return [(low, high, ())]
        if alike:
            return self.of(fits, ends, (self._by_rows(fits, low), self._by_rows(fits, high)), True)
        middle = middle_of(low, high)
        between = self._by_rows(fits, middle) if fine else fits.values(middle)
        parts = ((low, middle), (left, between)), ((middle, high), (between, right))
        return [piece for part, known in parts for piece in self.of(fits, part, known, fine)]

    def _by_rows(self, fits: Fits, lam: float) -> Values:
        """Values of fits from the rows, whose rounding is far less than that of the moments."""
        made = [refit_rows(self.data, slice(0, self.data.n), support, 2.0 * lam) for support in fits.support]
        slope = [float(self.data.weight[one.support] @ one.beta**2) for one in made]
        f, error = (np.array([getattr(one, name) for one in made]) for name in ("objective", "objective_error"))
        return Values(f, error, np.array(slope), np.zeros(len(made)), np.zeros(len(made)))


def _joined(pieces: list[Found]) -> list[Found]:
    """Join neighbours with the same supports."""
    found: list[Found] = []
    for low, high, supports in pieces:
        if found and set(found[-1][2]) == set(supports):
            found[-1] = (found[-1][0], high, found[-1][2])
        else:
            found.append((low, high, supports))
    return found
