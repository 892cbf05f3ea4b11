"""The pairs (tau, gamma) of a search: the grid, sums over folds, the certified part, the one-standard-error rule.

`PairBounds` has the bounds on the CV error h of each pair, as sums over the folds. Three different pairs could be
called the best pair:

* `PairBounds.best` has the smallest upper bound. Certificates and exclusions compare other pairs with this pair.
* `PairBounds.winner` has the smallest estimate among the pairs that are not excluded. The search tries to solve this
  pair first.
* `PairBounds.reported_pair` is the answer. If the choice is certified on the grid, the answer is `PairBounds.best`.
  Otherwise the answer is the pair with the smallest CV error found, whose upper bound may not be known.

If the choice is not certified on the whole grid, it may be certified on a part of the grid (`proved_part`). The part is
a union of three sets: all pairs with tau at most some limit; all pairs with gamma at least some limit; and the pair
with the smallest upper bound of the grid. A part of the grid is certified, like the whole grid, if
`upper - lower <= gap upper + ties + rounding`. Here `upper` and `lower` are the smallest upper bound and the smallest
lower bound over the pairs of the part. The terms `ties` and `rounding` are those of the pair with the smallest lower
bound. The pair with the smallest upper bound is omitted if a larger part satisfies the condition without it.

Among the pairs whose h is within one standard error of the minimum, the one-standard-error rule (`one_se_rule`) chooses
the smallest tau, then the largest gamma. The rule is certified under three conditions. The minimum h must be known
exactly and proved to be the minimum. All pairs that the rule would prefer, with a smaller tau or with the same tau and
a larger gamma, must have CV errors that are proved to exceed the minimum by more than one standard error. The chosen
pair, which is reported, must be solved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.weights import Scored, least_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import NONE, Restrictions, check_grid, parse_gammas, parse_taus
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.targets import DEFAULT_LOSS, Loss
from sparsecv_mio.units import CROSSING_RTOL, TIE_RTOL


@dataclass(frozen=True, eq=False)
class Grid:
    """The requested gammas and taus, both ascending and without repeats. No tau includes adjustment columns."""

    gammas: FloatArray
    taus: IntArray

    def indices_of(self, sizes: Iterable[int]) -> list[int]:
        """Return the indices of those taus that are among some sizes."""
        return [t for t, tau in enumerate(self.taus.tolist()) if tau in set(sizes)]

    @classmethod
    def of(cls, gammas: Sequence[float], taus: Sequence[int], p: int, restrictions: Restrictions = NONE) -> Grid:
        """Return a checked grid.

        Parameters
        ----------
        gammas : sequence of float
            Ridge weights.
        taus : sequence of int
            Sizes.
        p : int
            Number of features of the data.
        restrictions : Restrictions, optional
            Restrictions that name features of the data.

        Raises
        ------
        BadInput
            If the grid is empty, a gamma is neither 0 nor in 1e-300 .. 1e300, a tau is not an integer in 0 .. p, or no
            model of that size satisfies the restrictions.
        """
        check_grid(gammas, taus, p)
        restrictions.check_sizes(taus, p)
        unique = sorted(set(float(g) for g in gammas)), sorted(set(int(t) for t in taus))
        return cls(np.array(unique[0]), np.array(unique[1], dtype=np.int64))

    @classmethod
    def from_request(
        cls,
        dataset: Dataset,
        folds: FoldPlan | None,
        gammas: str | float | Iterable[float] | None,
        taus: str | int | Iterable[int] | None,
        restrictions: Restrictions,
        all_features: bool = False,
        loss: Loss = DEFAULT_LOSS,
    ) -> Grid:
        """Return the requested grid, given as text or numbers; its defaults depend on the numbers of rows and columns.

        Parameters
        ----------
        dataset : Dataset
            Data set.
        folds : FoldPlan or None
            Folds; None if models are fitted to all rows.
        gammas, taus
            Requested grid, in the forms of `parse_gammas` and `parse_taus`.
        restrictions : Restrictions
            Restrictions that name features of the data.
        all_features : bool
            Argument of `parse_taus`.
        loss : Loss
            Loss of the model.
        """
        shape = restrictions.n_selectable_features(dataset.p), least_rows(dataset, folds)
        n_train = least_rows(dataset, folds, only_events=True)
        sizes = parse_taus(taus, shape[0], n_train, restrictions=restrictions, all_features=all_features)
        weights = parse_gammas(gammas, *shape, loss=loss)
        if not loss.is_quadratic and min(weights, default=1.0) == 0.0:
            from sparsecv_mio.problem.cox import explain_infinite_fits  # other grids do not need this import

            raise BadInput(
                f"gamma 0: not supported with loss {loss}, because {explain_infinite_fits(dataset, loss)}; "
                f"give positive values, such as {parse_gammas(None, *shape, loss=loss)[0]:.2g}"
            )
        return cls.of(weights, sizes, dataset.p, restrictions)


@dataclass(frozen=True, eq=False)
class PairBounds:
    """Bounds on the sum of held-out losses over the folds of each pair: `lower <= sum_j h_j <= upper`.

    Attributes
    ----------
    lower, upper : (G, T) arrays
        Bounds.
    nominal : (G, T) array
        Sums of the held-out losses of the best known supports: exact if all folds are solved, else estimates.
    best : tuple of (int, int)
        Indices of gamma and tau of the pair with the smallest upper bound. Of pairs that are equal up to rounding, it
        is the one with the smallest tau, then the largest gamma. If no upper bound is known, it is the pair with the
        smallest `nominal`.
    cells : CellTable
        Table of subproblems.
    """

    lower: FloatArray
    upper: FloatArray
    nominal: FloatArray
    best: tuple[int, int]
    cells: CellTable

    def restrict(self, part: BoolArray, gammas: FloatArray, taus: IntArray) -> PairBounds:
        """Return the bounds of a part of the grid; no pair outside of the part can be chosen.

        Parameters
        ----------
        part : (G, T) bool array
            Pairs of the part, at least one.
        gammas, taus : arrays
            Whole grid.

        Returns
        -------
        PairBounds
            Bounds in which all three numbers of the other pairs are inf.
        """
        lower, upper, nominal = (np.where(part, array, np.inf) for array in (self.lower, self.upper, self.nominal))
        return PairBounds(lower, upper, nominal, _best(upper, nominal, self.cells, gammas, taus), self.cells)

    @property
    def floor(self) -> float:
        """Certified lower bound on the smallest sum of the grid."""
        return float(self.lower.min())

    @property
    def ceiling(self) -> float:
        """Certified upper bound on the sum of the best pair."""
        return float(self.upper[self.best])

    @property
    def n_solved_folds(self) -> IntArray:
        """(G, T): number of solved folds."""
        return np.asarray(self.cells.decided.sum(axis=2))

    @property
    def clipped_estimates(self) -> FloatArray:
        """(G, T): `nominal`, replaced by the nearer bound if it lies outside of the bounds."""
        return np.asarray(np.clip(self.nominal, self.lower, self.upper))

    @property
    def complete_estimates(self) -> FloatArray:
        """(G, T): `clipped_estimates`; inf for pairs without a held-out loss in every fold."""
        return np.where(np.isfinite(self.nominal), self.clipped_estimates, np.inf)

    @cached_property
    def winner(self) -> tuple[int, int]:
        """Indices of the pair with the best estimate among those that may still be the best."""
        may_win = self.lower <= self.ceiling
        g, t = np.unravel_index(int(np.argmin(np.where(may_win, self.nominal, np.inf))), self.lower.shape)
        return int(g), int(t)

    @cached_property
    def allowances(self) -> tuple[float, float]:
        """Tie width and rounding allowance of the certificate: those of the pair with the smallest lower bound.

        If all its folds are solved, then `upper[best] <= upper[lowest] = lower[lowest] + ties + rounding`.
        """
        g, t = (int(i) for i in np.unravel_index(int(np.argmin(self.lower)), self.lower.shape))
        tie, rounding = self.cells.allowances(g, t)
        # rounding of the difference of the sums: ties may make the upper sum much larger than the lower one, and the
        # upper sum of a pair with an open fold may be any number
        closed = bool(self.cells.decided[g, t].all()) and np.isfinite(self.ceiling)
        size = self.ceiling if closed else float(self.lower[g, t])
        alike = self.ceiling - float(self.upper.min()) if np.isfinite(self.ceiling) else 0.0
        return tie, rounding + alike + 1e-14 * size

    def excluded(self, gap: float) -> BoolArray:
        """(G, T): True for pairs that bounds exclude, because `best` is at least as good up to the gap.

        Parameters
        ----------
        gap : float
            Relative gap of the certified choice.
        """
        is_excluded = np.isfinite(self.ceiling) & (self.lower >= self.ceiling * (1.0 - gap))
        is_excluded[self.best] = False
        return is_excluded

    def is_certified(self, gap: float) -> bool:
        """Return True if `upper - lower <= gap * upper + tie_width + allowance`, and only ties prevent a smaller width.

        A tie may hide a difference between pairs. A choice that needs the tie width is therefore certified only after
        every pair that may be better is solved.

        Parameters
        ----------
        gap : float
            Relative gap of the certified choice.
        """
        if not np.isfinite(self.ceiling):
            return False
        tie, allowance = self.allowances
        excess = self.ceiling - self.floor - gap * self.ceiling - allowance
        if excess <= 0.0 or excess > tie:
            return excess <= 0.0
        may_be_better = self.lower < (1.0 - gap) * self.ceiling - allowance
        return bool(self.cells.decided[may_be_better].all())

    def reported_pair(self, gap: float, gammas: FloatArray, taus: IntArray) -> tuple[int, int]:
        """Return the pair to report: `best` if the choice is certified, else the pair with the smallest CV error found.

        Of pairs whose CV errors agree to `TIE_RTOL`, it is the one with the smallest tau, then the largest gamma.

        Parameters
        ----------
        gap : float
            Relative gap of the certified choice.
        gammas, taus : arrays
            Grid.
        """
        if self.is_certified(gap):
            return self.best
        errors = self.complete_estimates
        if not np.isfinite(errors.min()):
            return self.best
        return simplest(errors <= errors.min() * (1.0 + TIE_RTOL), gammas, taus)


Pair = tuple[int, int]


class Aim(NamedTuple):
    """The pair of the next steps, and the sum of lower bounds at which these steps end; inf to solve every fold."""

    pair: Pair
    sum_cutoff: float

    @property
    def solves_pair(self) -> bool:
        """True if every fold is to be solved."""
        return self.sum_cutoff == np.inf


def choose_aim(now: PairBounds, gap: float, workable: BoolArray, open_share: float) -> Aim | None:
    """Return the pair with the best estimate, to solve it, then others, to exclude them; None once all are certified.

    Parameters
    ----------
    now : PairBounds
        Bounds of all pairs.
    gap : float
        Relative gap of the certified choice.
    workable : (G, T) bool array
        Pairs with subproblems for which steps are possible.
    open_share : float
        Share of the gap that the pair with the best estimate may leave open before others come first.
    """
    if now.is_certified(gap):
        return None
    winner = now.winner
    cutoff = now.upper[winner] * (1.0 - gap)
    others = (now.lower < cutoff) & workable
    others[winner] = False
    nearly_closed = now.upper[winner] * (1.0 - open_share * gap) <= now.lower[winner] < np.inf
    if workable[winner] and not (nearly_closed and others.any()):
        return Aim(winner, np.inf)
    if not others.any():
        return None
    # the pair furthest below the cutoff has the lower bound of the whole grid; trees are smallest at the largest gamma
    last, t = np.unravel_index(int(np.argmin(np.where(others, now.lower, np.inf)[::-1])), others.shape)
    return Aim((len(others) - 1 - int(last), int(t)), float(cutoff))


def simplest(among: BoolArray, gammas: FloatArray, taus: IntArray) -> tuple[int, int]:
    """Return the pair with the smallest tau, then the largest gamma, among some pairs (G, T).

    Parameters
    ----------
    among : (G, T) bool array
        Pairs to choose from.
    gammas, taus : arrays
        Grid.
    """
    rows, cols = np.nonzero(among)
    pick = np.lexsort((-gammas[rows], taus[cols]))[0]
    return int(rows[pick]), int(cols[pick])


def statuses(lower: FloatArray, upper: FloatArray, decided: BoolArray, gap: float, proved: bool) -> NDArray[np.str_]:
    """Return the status of every pair: `decided`, `excluded` or `open`.

    A pair is excluded if another pair is at least as good up to the gap. This holds if the upper bound of the pair
    exceeds the smallest upper bound, and its lower bound is at least `1 - gap` times the smallest upper bound. If the
    choice on the grid is certified, every pair with a larger upper bound is excluded, with ties and rounding taken into
    account.

    Parameters
    ----------
    lower, upper : (G, T) arrays
        Bounds.
    decided : (G, T) bool array
        True for pairs whose folds are all solved.
    gap : float
        Relative gap of the certified choice.
    proved : bool
        True if the choice on the grid is certified.

    Returns
    -------
    (G, T) array of str
        Status of each pair.

    Examples
    --------
    >>> lower, upper = np.array([[2.0, 1.0, 2.5, 1.0]]), np.array([[2.0, 3.0, np.inf, np.inf]])
    >>> statuses(lower, upper, np.array([[True, False, False, False]]), 0.0, False).tolist()
    [['decided', 'open', 'excluded', 'open']]
    """
    least = upper.min()
    is_excluded = (upper > least) & (proved | (lower >= (1.0 - gap) * least))
    return np.where(decided, "decided", np.where(is_excluded, "excluded", "open"))


def pair_bounds(cells: CellTable, gammas: FloatArray, taus: IntArray) -> PairBounds:
    """Return the sums of the bounds of subproblems over folds; O(K) for each pair that changed.

    Parameters
    ----------
    cells : CellTable
        Table of subproblems.
    gammas, taus : arrays
        Grid.
    """
    lower, upper, nominal = cells.sums()
    return PairBounds(lower, upper, nominal, _best(upper, nominal, cells, gammas, taus), cells)


def _best(
    upper: FloatArray, nominal: FloatArray, cells: CellTable, gammas: FloatArray, taus: IntArray
) -> tuple[int, int]:
    """Return the pair with the smallest upper bound, see `PairBounds.best`."""
    least = upper.min()
    if not np.isfinite(least):
        place = np.unravel_index(int(np.argmin(nominal)), nominal.shape)
        return int(place[0]), int(place[1])
    alike = upper <= least * (1.0 + 1e-15)
    near = np.argwhere(~alike & (upper <= least * (1.0 + CROSSING_RTOL)) & cells.decided.all(axis=2))
    if len(near):
        # pairs with the same CV error may have upper bounds that differ by rounding
        bar = least + max(cells.allowances(int(g), int(t))[1] for g, t in np.argwhere(alike))
        for g, t in near.tolist():
            alike[g, t] = upper[g, t] <= bar + cells.allowances(g, t)[1]
    return simplest(alike, gammas, taus)


@dataclass(frozen=True, eq=False)
class ProvedPart:
    """Some of the smallest taus at every gamma, and some of the largest gammas at every tau.

    Attributes
    ----------
    taus, gammas : int
        Number of the smallest taus, and of the largest gammas; one of the two may be 0.
    bounds : PairBounds
        Bounds of the pairs in the part.
    """

    taus: int
    gammas: int
    bounds: PairBounds


def proved_part(now: PairBounds, gap: float, gammas: FloatArray, taus: IntArray) -> ProvedPart | None:
    """Return the part of the grid in which the choice is certified: as many taus as possible, then as many gammas.

    Parameters
    ----------
    now : PairBounds
        Bounds of the whole grid.
    gap : float
        Relative gap of the certified choice.
    gammas, taus : arrays
        Grid, ascending.

    Returns
    -------
    ProvedPart or None
        Part; None if there is no such part.

    Notes
    -----
    O(G T K + G^2 T).
    """
    columns, rows = np.arange(len(taus)), np.arange(len(gammas))[:, None]
    best = np.zeros(now.lower.shape, dtype=bool)
    best[now.best] = True

    def certify_part(part: BoolArray) -> PairBounds | None:
        """Try a part with the best pair of the grid, then without this pair."""
        for pairs in (part | best, part):
            bounds = now.restrict(pairs, gammas, taus)
            if bounds.is_certified(gap):
                return bounds
        return None

    for most in [*_provable_tau_counts(now, gap), 0]:
        small = np.broadcast_to(columns < most, now.lower.shape)
        inside = certify_part(small) if most else None
        if most and inside is None:
            continue
        for count in range(len(gammas), 0, -1):
            interval = certify_part(small | (rows >= len(gammas) - count))
            if interval is not None:
                return ProvedPart(most, count, interval)
        if inside is not None:
            return ProvedPart(most, 0, inside)
    return None


def proved_ends(
    now: PairBounds, gap: float, gammas: FloatArray, taus: IntArray
) -> tuple[int | None, float | None] | None:
    """Return the largest tau and the smallest gamma of the certified part of the grid; None if there is no such limit.

    Parameters
    ----------
    now : PairBounds
        Bounds of the whole grid.
    gap : float
        Relative gap of the certificate.
    gammas, taus : arrays
        Grid, ascending.
    """
    region = proved_part(now, gap, gammas, taus)
    if region is None:
        return None
    return (
        int(taus[region.taus - 1]) if region.taus else None,
        float(gammas[-region.gammas]) if region.gammas else None,
    )


def _provable_tau_counts(now: PairBounds, gap: float) -> list[int]:
    """Return the numbers of smallest taus that may be certified at every gamma, in descending order; no other may.

    The whole width of a solved pair counts as ties, so that one pass over the table suffices.
    """
    cells = now.cells
    width = np.empty_like(now.lower)
    for t in range(width.shape[1]):  # one tau at a time: with many folds the widths of all would take much memory
        width[:, t] = np.where(cells.decided[:, t], cells.upper[:, t] - cells.lower[:, t], 0.0).sum(axis=1)
    lower = np.minimum.accumulate(now.lower.min(axis=0))
    room = np.maximum.accumulate(width.max(axis=0)) + float(width[now.best])
    fine = np.zeros(len(lower), dtype=bool)
    for upper in (np.full(len(lower), now.upper.min()), np.minimum.accumulate(now.upper.min(axis=0))):
        finite = np.isfinite(upper)
        bar = np.where(finite, upper, 0.0)
        fine |= finite & (bar - lower <= (gap + 2.0 * CROSSING_RTOL) * bar + room)
    return (np.flatnonzero(fine)[::-1] + 1).tolist()


@dataclass(frozen=True, eq=False)
class OneSeChoice:
    """The pair that the one-standard-error rule chooses at present, and the open pairs that may change the choice.

    Attributes
    ----------
    pair : gamma, tau
        Chosen pair.
    standard_error : float
        Standard error of h of the best pair, in the units of `unit`.
    missing : (G, T) bool array
        Open pairs that may change the choice, and the chosen pair if it is open. If there is none, the choice is
        certain.
    """

    pair: Pair
    standard_error: float
    missing: BoolArray


def one_se_rule(
    now: PairBounds, best: Pair, gammas: FloatArray, taus: IntArray, scored: Scored, unit: float
) -> OneSeChoice:
    """Return the choice of the one-standard-error rule.

    Parameters
    ----------
    now : PairBounds
        Bounds of all pairs.
    best : gamma, tau
        Pair with the smallest h.
    gammas, taus : arrays
        Grid.
    scored : Scored
        Weights of the rows of each fold.
    unit : float
        Factor from squared standard units to squared units of the target.
    """
    total = scored.total
    error = standard_error(now.cells.nominal[best] * unit, scored.by_fold, scored.times)
    limit = now.clipped_estimates[best] * (unit / total) + error
    # by the certified upper bounds: certainly within one standard error
    within = (now.upper * (unit / total) <= limit) & np.isfinite(now.nominal)
    within[best] = True
    pair = simplest(within, gammas, taus)
    open_pairs = now.n_solved_folds < len(scored.by_fold)
    simpler = (taus[None, :] < taus[pair[1]]) | ((taus[None, :] == taus[pair[1]]) & (gammas[:, None] > gammas[pair[0]]))
    missing = simpler & (now.lower * (unit / total) <= limit)
    missing |= now.lower < now.upper[best]
    missing[best] = missing[pair] = True
    return OneSeChoice(pair, error, missing & open_pairs)


def next_to_decide(missing: BoolArray, now: PairBounds) -> BoolArray:
    """Return the missing pairs to solve first: the best pair and its rivals, then one tau at a time."""
    first = missing & (now.lower < now.upper[now.best])
    first[now.best] = missing[now.best]
    if not first.any() and missing.any():
        t = int(np.flatnonzero(missing.any(axis=0))[0])
        first[:, t] = missing[:, t]
    return first
