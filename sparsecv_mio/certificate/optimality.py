"""Checks that the supports of a record are optimal.

If few supports are allowed, each support of the record is compared with all other allowed supports. Otherwise it is
compared only with the supports that differ from it in one column.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, power_of_two
from sparsecv_mio.certificate.checked_fields import SAME, Checks, EnumerationLevel
from sparsecv_mio.certificate.claims import ReportedPair, check_against_table, find_row, reported_pairs, rows_in_region
from sparsecv_mio.certificate.design import Design, FoldOptima, Pair, Support
from sparsecv_mio.certificate.fit_records import PathRecord, Surface, SurfacePiece
from sparsecv_mio.certificate.records import Continuous, GammaPiece, Least, Record, Refined, Region, TableRow
from sparsecv_mio.certificate.refits import EXCHANGE_LIMIT, Exchanges, improvable_folds
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.units import CROSSING_RTOL, FOLLOWS_RTOL, TIE_RTOL, TINY


class TruePair(NamedTuple):
    """Bounds on h of one pair (tau, gamma): those that no interval may exceed, and those of all possible ties."""

    low: float
    high: float
    loose_low: float
    loose_high: float
    optima: FoldOptima


class Optimality:
    """Comparisons with all supports for one record; each pair is compared once.

    Parameters
    ----------
    supports : list of (ReportedPair, list of tuple of int)
        Pairs whose folds the record stores, with the support of every fold.
    """

    def __init__(
        self, checks: Checks, record: Record, design: Design, supports: list[tuple[ReportedPair, list[Support]]]
    ) -> None:
        self.checks, self.record, self.design, self.scored = checks, record, design, design.scored
        self.reported = {(pair.known.gamma, pair.known.tau): (pair, of_folds) for pair, of_folds in supports}
        self._known: dict[Pair, TruePair] = {}

    def choose_level(self) -> tuple[EnumerationLevel, str]:
        """Return the extent of the comparison with all supports, and the reason why it is not complete."""
        record = self.record
        rows = [*record.table, *record.descent, *(() if record.refined is None else (record.refined,))]
        grid = list(dict.fromkeys((row.gamma, row.tau) for row in rows))
        ends = {(row.gamma, row.tau): None for row in (self._least_lower, self._least_upper) if row is not None}
        if reason := self._obstacle([*self.reported, *(pair for pair in ends if pair not in self.reported)]):
            return EnumerationLevel.NEIGHBOURS, reason
        if reason := self._obstacle(grid, of_grid=True):
            return EnumerationLevel.PAIR, reason
        return EnumerationLevel.GRID, ""

    def _obstacle(self, pairs: list[Pair], of_grid: bool = False) -> str:
        reported = {pair: of_folds for pair, (_, of_folds) in self.reported.items()}
        model = self.design.positions(self.record.support) or ()
        start = tuple(sorted(model, key=lambda j: (j not in self.design.forced, j)))
        return self.design.optima_obstacle(pairs, reported, start, self.checks.tell, of_grid)

    @property
    def _least_lower(self) -> TableRow | None:
        return min(self.record.table, key=lambda row: row.lower, default=None)

    @property
    def _least_upper(self) -> TableRow | None:
        return min(self.record.table, key=lambda row: row.upper, default=None)

    def truth(self, gamma: float, tau: int) -> TruePair:
        """Return the truth about one pair."""
        if (gamma, tau) not in self._known:
            optima = self.design.fold_optima(gamma, tau)
            ends = (optima.low, optima.high, optima.loose_low, optima.loose_high)
            low, high, loose_low, loose_high = (float(end.sum()) / self.scored.total for end in ends)
            self._known[gamma, tau] = TruePair(low, high, loose_low, loose_high, optima)
        return self._known[gamma, tau]

    # -- all supports -----------------------------------------------------------------------------------------------

    def enumerate(self, level: EnumerationLevel) -> None:
        """Check all claims that follow from comparing with all supports of the folds."""
        checks, record, how = self.checks, self.record, self.design.how
        least, ceiling = self._least_lower, self._least_upper
        for i, row in enumerate(record.table):
            checks.tell(i, len(record.table))
            chosen = row is least or row is ceiling or (row.gamma, row.tau) in self.reported
            if level is EnumerationLevel.GRID or chosen:
                self._row(i, row)
        if self.design.bounds_ties:
            self._all_widths(least, level)
        if level is EnumerationLevel.GRID:
            checks.end_part(f"lower and upper of all {len(record.table)} pairs, by {how} all supports")
        else:
            some = "the reported pair and the pairs with the minimum lower and upper bounds"
            self._only_read("that are not enumerated")
            checks.end_part(f"{some}, by {how} all supports")
        self._supports()
        self._moves()

    def _all_widths(self, least: TableRow | None, level: EnumerationLevel) -> None:
        """Check ties and rounding of the certificate, of the reported pair and of regions."""
        record = self.record
        for pair in reported_pairs(record):
            row = least if pair.known is record.certificate else record.own_row
            if row is not None:
                self._widths(pair.known, row, pair.path)
        so_far = None if record.so_far is None else record.so_far.region
        for path, region in (("region.", record.region), ("so_far.region.", so_far)):
            covered = [] if region is None else rows_in_region(region, record.table)
            if level is EnumerationLevel.GRID and region is not None and covered:
                self._widths(region, min(covered, key=lambda row: row.lower), path)

    def _row(self, i: int, row: TableRow) -> None:
        truth = self.truth(row.gamma, row.tau)
        self._interval(row, f"table[{i}].", truth, row.folds_decided == row.folds)
        if row.standard_error is not None and row.folds_decided == row.folds and self.scored.has_standard_error:
            self._standard_error(row, row.standard_error, f"table[{i}].standard_error", truth.optima)

    def _interval(self, row: TableRow | Refined, place: str, truth: TruePair, decided: bool) -> None:
        """Check that an interval contains h; for a pair with all folds solved every number must equal h up to ties."""
        slack = self.design.refit_slack(truth.high) + TINY
        self.checks.require_at_most(f"{place}lower", row.lower, truth.low, f"the recomputed {truth.low!r}", slack)
        self.checks.require_at_least(f"{place}upper", row.upper, truth.high, f"the recomputed {truth.high!r}", slack)
        if not decided or not self.design.bounds_ties:
            return
        room = self.design.slack(truth.loose_high, row.gamma, row.tau, FOLLOWS_RTOL)
        low, high = truth.loose_low - room, truth.loose_high + room
        for name in ("lower", "cv_error", "upper"):
            said = getattr(row, name)
            words = f"{said!r} differs from the recomputed CV error of the solved pair, {truth.low!r}"
            self.checks.require(low <= said <= high, f"{place}{name}", words)

    def _standard_error(self, row: TableRow, said: float, place: str, optima: FoldOptima) -> None:
        """Check the standard error of a solved pair by the true errors of its folds, up to ties and rounding."""
        sizes, low, high = self.scored.by_fold, optima.loose_low, optima.loose_high
        if not np.isfinite(high).all():
            return
        times = self.scored.times
        spread = standard_error((low + high) / 2.0, sizes, times)
        unit = float(power_of_two(high.max()))  # squares neither overflow nor vanish
        ends, total = np.stack([(high - low) / 2.0, high]) / unit, sizes.sum()
        if np.all(sizes > 0.0):
            ties, level = np.sqrt((ends / sizes) ** 2 @ (sizes / total)) * unit
        else:
            ties, level = np.sqrt(len(sizes) * (ends**2).sum(axis=1)) / total * unit
        room = ties + self.design.slack(float(level), row.gamma, row.tau, 2.0 * CROSSING_RTOL)
        words = f"is {said!r}, but the folds of the pair give {spread!r}"
        self.checks.require(abs(said - spread) <= room / math.sqrt(len(sizes) / times - 1), place, words)

    def _widths(self, claim: Record | Least | Region, row: TableRow, path: str = "") -> None:
        """Check ties and rounding of a certificate: those of the pair with the smallest lower bound."""
        truth = self.truth(row.gamma, row.tau)
        room = self.design.slack(truth.loose_high, row.gamma, row.tau, FOLLOWS_RTOL)
        ties = truth.loose_high - truth.loose_low
        words = (
            f"{ties!r}, the difference between the CV errors of tied supports of the pair with the minimum lower bound"
        )
        unique = ties == 0.0 and all(len(supports) == 1 for supports in truth.optima.supports)
        self.checks.require_at_most(f"{path}tie_width", claim.tie_width, ties, words, 0.0 if unique else room)
        self._allowance(claim, room, path)

    def _supports(self) -> None:
        for pair, supports in self.reported.values():
            if find_row(pair.known, self.record.table) is None:
                return
            is_optimal, excess = self._compare_supports(pair.known.gamma, pair.known.tau, supports)
            for fold in np.flatnonzero(~is_optimal & pair.folds.decided)[:3].tolist():
                words = "another support of the same size has a smaller training objective in the fold"
                self.checks.require(False, f"{pair.name}[{fold}].support", words)
            self.checks.mark_bounded_fields(f"{pair.name}[].support")
            said = None if pair.path else self.record.training_gap
            if said is not None:
                worst = float(excess.max())
                words = f"is {said!r}, but the training objective of a fold model exceeds its minimum by a share of "
                right = worst <= said * (1.0 + CROSSING_RTOL) + CROSSING_RTOL
                self.checks.require(right, "training_gap", f"{words}{worst!r}")
        self.checks.end_part(f"optimality of the support of every solved fold, by {self.design.how.split()[0]}")

    def _compare_supports(self, gamma: float, tau: int, supports: list[Support]) -> tuple[BoolArray, FloatArray]:
        """Return which supports of the folds are optimal, and the relative excesses of their training objectives.

        A support may be smaller than tau, since a column that is constant in a training set adds nothing.
        """
        design, optima = self.design, self.truth(gamma, tau).optima.supports
        is_optimal, excess = np.ones(len(supports), dtype=bool), np.zeros(len(supports))
        for fold, (support, best) in enumerate(zip(supports, optima, strict=True)):
            if support not in best:
                train = design.folds.train_rows(fold)
                mine, least = design.refit(support, gamma, train), design.refit(best[0], gamma, train).objective
                over = mine.objective - least - design.refit_rounding(least, train)
                right = over <= design.tie_rtol * least and design.has_required_signs(support, mine)
                is_optimal[fold], excess[fold] = right, max(over, 0.0) / max(least, TINY)
        return is_optimal, excess

    def _moves(self) -> None:
        """Check pairs outside the grid: the moves of a descent, and the refined gamma."""
        checks, record = self.checks, self.record
        estimated = record.descent and not all(math.isfinite(step.upper) for step in record.descent)
        for i, step in enumerate(record.descent):
            truth = self.truth(step.gamma, step.tau)
            least = truth.high - self.design.refit_slack(truth.high) - TINY
            checks.require_at_least(f"descent[{i}].upper", step.upper, least, f"the recomputed {truth.high!r}")
            ties = truth.loose_high - truth.loose_low
            room = self.design.slack(truth.high, step.gamma, step.tau, FOLLOWS_RTOL)
            width = record.request.gap * truth.high + ties + room
            if not estimated:
                least = truth.loose_low - width
                checks.require_at_least(f"descent[{i}].cv_error", step.cv_error, least, f"the recomputed {truth.low!r}")
            if record.status == "proved" and not estimated:
                true = f"the recomputed {truth.high!r} by more than the gap"
                checks.require_at_most(f"descent[{i}].upper", step.upper, truth.loose_high, true, width)
        if record.descent:
            checks.end_part(f"upper of the {len(record.descent)} moves of the descent, by enumeration")
        refined = record.refined
        if refined is None:
            return
        checks.mark_bounded_fields("refined.estimate")
        self._interval(refined, "refined.", self.truth(refined.gamma, refined.tau), not refined.estimate)
        checks.end_part("the refined pair, by enumeration of all supports")

    # -- neighbours -------------------------------------------------------------------------------------------------

    def neighbours(self) -> None:
        """Check that one-column exchanges and other supports of the record improve no more supports than are open."""
        record, design = self.record, self.design
        if not isinstance(design, RidgeDesign):
            self._only_read("of the table")
            return
        for pair in reported_pairs(record):
            claim = pair.known
            row = self._least_lower if claim is record.certificate else record.own_row
            if row is not None and math.isfinite(claim.cv_error):
                h = max(claim.cv_error, row.lower)
                self._allowance(claim, design.slack(h, row.gamma, row.tau, FOLLOWS_RTOL), pair.path)
        self.checks.end_part("allowance: at most the bound on the rounding error of the CV error")
        self._only_read("of the table")
        if design.allowed is not None:
            self.checks.reread.append("neighbours of the supports (not checked, because restrictions may exclude them)")
            return
        for pair, supports in self.reported.values():
            self._exchanges(design, pair, supports)

    def _only_read(self, which: str) -> None:
        """Record which parts of the rows of the table nothing bounds."""
        names = (f"table[].{name}" for name in ("cv_error", "lower", "upper", "standard_error"))
        self.checks.leaves(
            f"not checked: how far the stored values of pairs {which} are from recomputed values", *names
        )

    def _allowance(self, claim: Record | Least | Region, room: float, path: str) -> None:
        """Check the rounding allowance of a certificate."""
        words = f"the bound on the rounding error of the CV error, {room!r}"
        self.checks.require_at_most(f"{path}allowance", claim.allowance, room, words)

    def _exchanges(self, design: RidgeDesign, pair: ReportedPair, supports: list[Support]) -> None:
        """Compare the supports of the solved folds of a pair with their neighbours."""
        exchanges = Exchanges(design, pair.known.gamma)
        cost = exchanges.cost(supports)
        if cost > EXCHANGE_LIMIT:
            self.checks.reread.append(
                f"neighbours of the supports{pair.words} (not checked, because this needs {cost:.0e} operations)"
            )
            return
        others = [s for s, _ in Counter(supports).most_common()]
        refit, size = self.design.positions(self.record.support), self.design.most_columns(pair.known.tau)
        if refit is not None and len(refit) == size and refit not in others:
            others.insert(0, refit)
        decided = np.flatnonzero(pair.folds.decided).tolist()
        improvable = improvable_folds(exchanges.design, pair.known.gamma, supports, others, decided)
        for fold, words in islice(improvable, 3):
            self.checks.require(False, f"{pair.name}[{fold}].support", words)
        if decided:
            self.checks.mark_bounded_fields(f"{pair.name}[].support")
            of_pair = pair.words.replace(" of", ", of")
            self.checks.end_part(
                f"no exchange of one column and no other support of the record fits a solved fold better{of_pair}"
            )
        else:
            which = pair.words or " of the reported pair"
            self.checks.reread.append(f"supports{which} (not checked, because no fold of this pair is solved)")


def check_refined_pair(checks: Checks, record: Record) -> None:
    """Check the refined pair: it has the tau of the answer, an error within its interval, and no larger upper bound."""
    refined = record.refined
    if refined is None:
        return
    checks.mark_bounded_fields("refined.lower")
    checks.require(refined.tau == record.tau, "refined.tau", f"is {refined.tau}, but the answer has {record.tau}")
    checks.require_between("refined.cv_error", refined.cv_error, refined.lower, refined.upper, SAME)
    own = find_row(record, record.table)
    if own is not None:
        worse = f"{refined.upper!r} exceeds the upper bound of the answer, {own.upper!r}"
        checks.require(refined.upper <= own.upper, "refined.upper", worse)
    if own is not None and refined.gamma == record.gamma:
        checks.require_equal("refined.estimate", refined.estimate, own.estimate)
        check_against_table(checks, refined, own, ("cv_error", "lower", "upper"), "refined.")
    checks.end_part("refined agrees with the answer")


ENUMERATED_FITS = 2e5  # fits of supports, about 20 seconds; beyond it fewer gammas are tried

Numbered = tuple[int, GammaPiece]


def check_partition(checks: Checks, record: Record) -> None:
    """Check that the pieces cover the interval for every tau, and that their bounds are those of the record."""
    continuous = record.continuous
    if continuous is None:
        return
    request = record.request
    checks.require(continuous.low < continuous.high, "continuous.low", "must be below high")
    words = f"must be in the interval from {continuous.low!r} to {continuous.high!r}"
    checks.require(continuous.low <= record.gamma <= continuous.high, "gamma", words)
    words = f"must be the reported gamma alone, {record.gamma!r}"
    checks.require(request.gammas == (record.gamma,), "request.gammas", words)
    words = f"is {continuous.gap!r}, but {request.gap!r} was requested"
    checks.require(continuous.gap == request.gap, "continuous.gap", words)
    for i, piece in enumerate(continuous.pieces):
        _check_piece(checks, piece, f"continuous.pieces[{i}].")
    _check_cover(checks, record, continuous, "continuous.")
    curve = continuous.curve_gammas
    right = list(curve) == sorted(set(curve)) and all(continuous.low <= gamma <= continuous.high for gamma in curve)
    words = "must be ascending gammas of the interval, as many as curve_errors"
    checks.require(right and len(curve) == len(continuous.curve_errors), "continuous.curve_gammas", words)
    above = all(error >= record.lower * (1.0 - CROSSING_RTOL) for error in continuous.curve_errors)
    checks.require(above, "continuous.curve_errors", f"has a value below the lower bound {record.lower!r}")
    checks.end_part(
        f"{len(continuous.pieces)} intervals cover every gamma from {continuous.low:g} to {continuous.high:g}"
    )


def _check_cover(checks: Checks, record: Record | PathRecord, found: Continuous | Surface, path: str) -> bool:
    """Check that pieces cover the interval for every tau; return True if their supports are of features of the data."""
    every: Sequence[GammaPiece | SurfacePiece] = found.pieces
    by_tau: dict[int, list[GammaPiece | SurfacePiece]] = {}
    for i, piece in enumerate(every):
        by_tau.setdefault(piece.tau, []).append(piece)
        named = all(number < len(found.supports) for number in piece.supports or ())
        words = f"refers to an entry that {path}supports does not have (it has {len(found.supports)})"
        checks.require(named, f"{path}pieces[{i}].supports", words)
    name, words = f"{path}pieces", "must cover the interval of gamma once for every tau"
    fields = ("low", "high", *(f"pieces[].{field}" for field in ("tau", "low", "high")))
    checks.mark_bounded_fields(*(f"{path}{field}" for field in fields))
    checks.require(tuple(by_tau) == tuple(record.request.taus), name, words)
    for pieces in by_tau.values():
        ends = pieces[0].low == found.low and pieces[-1].high == found.high
        checks.require(ends and all(a.high == b.low for a, b in pairwise(pieces)), name, words)
    features = set(record.data.names)
    right = all(features.issuperset(support) for support in found.supports)
    return checks.require(right, f"{path}supports", "must contain only features of the data")


def check_surface(checks: Checks, record: PathRecord, design: RidgeDesign, enumerated: bool) -> None:
    """Check the best subsets of every size as functions of gamma, if the record has them.

    Parameters
    ----------
    design : RidgeDesign
        Design of all varying columns.
    enumerated : bool
        True if all supports can be enumerated at the midpoint of every piece.
    """
    surface = record.surface
    if surface is None:
        return
    right = _check_cover(checks, record, surface, "surface.")
    for i, piece in enumerate(surface.pieces):
        place, words = f"surface.pieces[{i}].", "must be true if, and only if, supports is not empty"
        checks.require(piece.proved == (len(piece.supports) > 0), f"{place}proved", words)
        if not right or any(number >= len(surface.supports) for number in piece.supports):
            continue
        supports, size = [surface.supports[number] for number in piece.supports], min(piece.tau, design.q)
        sized = all(len(set(support)) == size for support in supports)
        if checks.require(sized, f"{place}supports", f"must have {size} features") and enumerated:
            _check_best(checks, design, piece, supports, place)
    if not enumerated:
        checks.leaves("not checked: whether these supports are optimal", "surface.pieces[].supports")
    how = "; at the midpoint of each interval, no other support has a smaller objective" if enumerated else ""
    checks.end_part(f"{len(surface.pieces)} intervals of gamma, each with its best subsets, cover every gamma{how}")


def _check_best(
    checks: Checks, design: RidgeDesign, piece: SurfacePiece, supports: Sequence[Sequence[str]], place: str
) -> None:
    middle = math.sqrt(piece.low) * math.sqrt(piece.high)
    best = design.best_fit(middle, piece.tau).objective
    for support in supports:
        objective = design.refit(tuple(sorted(design.index[name] for name in support)), middle, None).objective
        words = f"have the objective {objective!r} at gamma {middle!r}, but the minimum objective is {best!r}"
        right = objective <= best * (1.0 + 2.0 * TIE_RTOL) + design.refit_rounding(best)
        checks.require(right, f"{place}supports", words)


def _check_piece(checks: Checks, piece: GammaPiece, place: str) -> None:
    checks.require(piece.low < piece.high, f"{place}low", f"is {piece.low!r}, but must be below high, {piece.high!r}")
    least = min(piece.at_low, piece.at_high)
    words = f"{least!r}, the smaller of the CV errors at the ends of the interval of gamma"
    checks.require(0.0 <= piece.lower <= least, f"{place}lower", f"{piece.lower!r} exceeds {words}")
    checks.mark_bounded_fields(f"{place}at_low", f"{place}at_high")
    unknown = math.isinf(least)
    words = "null, because the CV error is unknown" if unknown else "given, because the CV error is known"
    checks.require(unknown == (piece.supports is None), f"{place}supports", f"must be {words}")


def check_by_enumeration(
    checks: Checks, record: Record, design: RidgeDesign, truth: Callable[[float, int], TruePair]
) -> None:
    """Check bounds and supports of the pieces at their ends and midpoints, by enumeration.

    Parameters
    ----------
    design : RidgeDesign
        Design of all varying columns.
    truth : callable
        Method `Optimality.truth` of the record.
    """
    continuous = record.continuous
    if continuous is None or any(failure.field.startswith("continuous") for failure in checks.failures):
        return
    tried = _pieces_to_try(continuous.pieces, design)
    for done, (i, piece) in enumerate(tried):
        checks.tell(done, len(tried))
        place, middle = f"continuous.pieces[{i}].", math.sqrt(piece.low) * math.sqrt(piece.high)
        for gamma, upper in ((piece.low, piece.at_low), (middle, math.inf), (piece.high, piece.at_high)):
            low, high = truth(gamma, piece.tau)[:2]
            words = f"the recomputed minimum {low!r} at gamma {gamma!r}"
            checks.require_at_most(f"{place}lower", piece.lower, low * (1.0 + CROSSING_RTOL), words)
            words = f"{upper!r} is below the recomputed CV error {high!r} at gamma {gamma!r}"
            name = "at_high" if gamma == piece.high else "at_low"
            checks.require(low <= upper * (1.0 + CROSSING_RTOL), place + name, words)
        if piece.supports is not None:
            of_piece = (design.positions(continuous.supports[number]) for number in piece.supports)
            size = design.most_columns(piece.tau)
            listed = [support for support in of_piece if support is not None and len(support) == size]
            for fold in _find_unlisted_folds(design, truth(middle, piece.tau).optima, middle, listed):
                words = f"omits the optimal support of fold {fold + 1} at gamma {middle!r}"
                checks.require(False, f"{place}supports", words)
                break
    curve = list(zip(continuous.curve_gammas, continuous.curve_errors, strict=True))
    if len(curve) * _work(design, record.tau) > ENUMERATED_FITS:
        checks.only_read("continuous.curve_errors", "too many supports to fit all of them at every gamma")
        curve = []
    elif curve:
        checks.mark_recomputed_fields("continuous.curve_errors")
    for at, (gamma, error) in enumerate(curve):
        true = truth(gamma, record.tau)
        low, high = true.loose_low, true.loose_high  # a curve may follow either of two tied subsets
        room = design.slack(high, gamma, record.tau, CROSSING_RTOL)
        words = f"is {error!r}, but the recomputed CV error at gamma {gamma!r} is {true.low!r}"
        checks.require(low - room <= error <= high + room, f"continuous.curve_errors[{at}]", words)
    share = "all" if len(tried) == len(continuous.pieces) else f"{len(tried)}"
    words = (
        f"bounds and supports of {share} intervals of gamma at their ends and midpoints, by enumeration of all supports"
    )
    checks.end_part(words)


def _pieces_to_try(pieces: Sequence[GammaPiece], design: RidgeDesign) -> list[Numbered]:
    """Return the pieces to check: all, or those with the smallest bounds and a regular sample of the others."""
    cost = {tau: 4.0 * _work(design, tau) for tau in {p.tau for p in pieces}}
    order = sorted(enumerate(pieces), key=lambda one: one[1].lower)
    whole = sum(cost[piece.tau] for piece in pieces)
    stride = max(1, math.ceil(2.0 * whole / ENUMERATED_FITS)) if whole > ENUMERATED_FITS else 1
    first = len(order) // (2 * stride) if stride > 1 else 0
    return order[:first] + order[first::stride]


def _work(design: RidgeDesign, tau: int) -> float:
    """Return the approximate number of fits for all supports of one pair; large ones count as several."""
    large = design.cost([tau], 1, design.folds.k) / 2e4
    return large + math.comb(design.q, min(tau, design.q))


def _find_unlisted_folds(design: RidgeDesign, optima: FoldOptima, gamma: float, listed: list[Support]) -> Iterator[int]:
    """Yield the folds whose optimum no listed support attains."""
    size = float(design.unit.t @ design.unit.t) * design.unit.y_unit * design.unit.y_unit
    for fold, best in enumerate(optima.supports):
        if set(listed).isdisjoint(best):
            train = design.folds.train_rows(fold)
            least = design.refit(best[0], gamma, train).objective
            most = least * (1.0 + 2.0 * TIE_RTOL) + TIE_RTOL * size + design.refit_rounding(least)
            if all(design.refit(support, gamma, train).objective > most for support in listed):
                yield fold
