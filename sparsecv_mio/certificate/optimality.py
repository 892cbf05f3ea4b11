"""The claims about optimal supports: by trying all of them where they are few, by their neighbours where not."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import islice

import numpy as np

from sparsecv_mio.certificate.checks import Checks
from sparsecv_mio.certificate.chosen_folds import ChosenFolds
from sparsecv_mio.certificate.claims import check_as_tabled, row_of, rows_of
from sparsecv_mio.certificate.enumeration import FoldOptima, UnitColumns, enumeration_cost, fold_optima
from sparsecv_mio.certificate.exchange import EXCHANGE_LIMIT, Exchanges, improvable_folds
from sparsecv_mio.certificate.record import Least, Record, Refined, Region, TableRow
from sparsecv_mio.certificate.refits import check_optimum, positions
from sparsecv_mio.certificate.restricted_optima import restricted_cost, restricted_optima
from sparsecv_mio.certificate.treatment import ENUMERATE_GRID, ENUMERATE_PAIR, Level
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.problem.coordinates import power_of_two
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.units import TINY

H_RTOL = 1e-7
ALLOWANCE_RTOL = 1e-6
COST_LIMIT = 5e10

Supports = list[tuple[int, ...]]


@dataclass(frozen=True)
class Pair:
    """The truth about one (gamma, tau): h over the tied optima, and over all supports that may pass for tied."""

    low: float
    high: float
    loose_low: float
    loose_high: float
    optima: FoldOptima


@dataclass(frozen=True)
class ReportedPair:
    """A pair of the record whose folds it holds: the answer's, or that of the least CV error where it is another.

    `name` is the field of the folds, `path` stands before the names of the pair's fields in messages.
    """

    known: Record | Least
    folds: ChosenFolds
    name: str = "chosen_folds"
    path: str = ""

    @property
    def words(self) -> str:
        """Say which pair it is, where it is not that of the answer."""
        return " of the pair with the least CV error" if self.path else ""


def reported_pairs(record: Record) -> list[ReportedPair]:
    """Return the pairs whose folds a record holds."""
    found = [ReportedPair(record, record.chosen_folds)]
    if record.least is not None and record.least_folds is not None:
        found.append(ReportedPair(record.least, record.least_folds, "least_folds", "least."))
    return found


def level_of(record: Record, design: UnitColumns, plan: FoldPlan) -> tuple[Level, str]:
    """Say how much is enumerated.

    Parameters
    ----------
    record : Record
    design : UnitColumns
        All columns that may be in a support.
    plan : FoldPlan

    Returns
    -------
    level : Level
    reason : str
        Why that is not all; empty where it is.
    """
    n, q, taus, gammas = design.dataset.n, design.q, list(record.request.taus), len(record.request.gammas)
    cost_of = enumeration_cost if design.allowed is None else restricted_cost
    moves = len(record.descent) + (record.refined is not None)
    if q > ENUMERATE_PAIR:
        return Level.NEIGHBOURS, f"p > {ENUMERATE_PAIR}"
    reported = [pair.known.tau for pair in reported_pairs(record)]
    if cost_of(n, q, reported, 2, plan.k) > COST_LIMIT:
        return Level.NEIGHBOURS, "too many rows to try all supports"
    if q > ENUMERATE_GRID:
        return Level.PAIR, f"p > {ENUMERATE_GRID}"
    if cost_of(n, q, taus, gammas + moves, plan.k) > COST_LIMIT:
        return Level.PAIR, "too many rows to try all supports of every pair"
    return Level.GRID, ""


class Optimality:
    """Enumerations of one record, each pair once.

    Parameters
    ----------
    supports : list of (ReportedPair, list of tuple of int)
        The pairs whose folds the record holds, with the support of every fold as positions in the data set.
    """

    def __init__(
        self, checks: Checks, record: Record, design: UnitColumns, plan: FoldPlan,
        supports: list[tuple[ReportedPair, Supports]],
    ) -> None:  # fmt: skip
        self.checks, self.record, self.design, self.plan = checks, record, design, plan
        place = {int(j): i for i, j in enumerate(self.design.columns)}
        self.reported = {
            (pair.known.gamma, pair.known.tau): (pair, [tuple(place[j] for j in support) for support in of_folds])
            for pair, of_folds in supports
        }
        self.scored = Scored.of(design.dataset, plan)
        self._known: dict[tuple[float, int], Pair] = {}

    def truth(self, gamma: float, tau: int) -> Pair:
        """Enumerate one pair."""
        if (gamma, tau) not in self._known:
            reported = self.reported[gamma, tau][1] if (gamma, tau) in self.reported else None
            optima_of = fold_optima if self.design.allowed is None else restricted_optima
            optima = optima_of(self.design, self.plan, gamma, tau, reported)
            ends = (optima.low, optima.high, optima.loose_low, optima.loose_high)
            low, high, loose_low, loose_high = (float(end.sum()) / self.scored.total for end in ends)
            self._known[gamma, tau] = Pair(low, high, loose_low, loose_high, optima)
        return self._known[gamma, tau]

    def h_of(self, gamma: float, tau: int) -> tuple[float, float]:
        """CV error of a pair, at least and at most where supports are tied."""
        truth = self.truth(gamma, tau)
        return truth.low, truth.high

    # -- enumeration ------------------------------------------------------------------------------------------------

    def enumerate(self, level: Level) -> None:
        """Check everything that all supports of a fold decide."""
        checks, record = self.checks, self.record
        check_optimum(checks, self.design, record.refit, "refit.")
        before = len(checks.failures)
        least = min(record.table, key=lambda row: row.lower, default=None)
        ceiling = min(record.table, key=lambda row: row.upper, default=None)
        for i, row in enumerate(record.table):
            checks.tell(i, len(record.table))
            if level is Level.GRID or row is least or row is ceiling or (row.gamma, row.tau) in self.reported:
                self._row(i, row)
        if least is not None:
            self._widths(record.certificate, least, "" if record.least is None else "least.")
        own = record.own_row
        if record.least is not None and own is not None:
            self._widths(record, own)
        if level is Level.GRID and record.region is not None:
            covered = rows_of(record.region, record.table)
            if covered:
                self._widths(record.region, min(covered, key=lambda row: row.lower), "region.")
        if level is Level.GRID:
            checks.part(f"lower and upper of all {len(record.table)} pairs, by enumeration of all supports", before)
        else:
            some = "the reported pair and those of the least lower and the least upper bound"
            checks.part(f"{some}, by enumeration of all supports", before)
        self._supports()
        self._moves()

    def _row(self, i: int, row: TableRow) -> None:
        truth = self.truth(row.gamma, row.tau)
        self._interval(row, f"table[{i}].", truth, row.folds_decided == row.folds)
        if row.standard_error is not None and row.folds_decided == row.folds and self.scored.has_standard_error:
            self._standard_error(row, row.standard_error, f"table[{i}].standard_error", truth.optima)
        name = "lower" if self.record.least is None else "least.lower"
        right = self.record.certificate.lower <= truth.low + H_RTOL * truth.high + TINY
        self.checks.that(right, name, f"gamma {row.gamma!r}, tau {row.tau} has h = {truth.low!r}")

    def _interval(self, row: TableRow | Refined, place: str, truth: Pair, decided: bool) -> None:
        """Lower and upper hold h; of a pair whose folds are all decided everything is h, ties apart."""
        slack = H_RTOL * truth.high + TINY
        words = f"{row.lower!r} exceeds the true {truth.low!r}"
        self.checks.that(row.lower <= truth.low + slack, f"{place}lower", words)
        words = f"{row.upper!r} is below the true {truth.high!r}"
        self.checks.that(truth.high <= row.upper + slack, f"{place}upper", words)
        if not decided:
            return
        room = self.design.slack(truth.loose_high, row.gamma, row.tau, ALLOWANCE_RTOL)
        low, high = truth.loose_low - room, truth.loose_high + room
        for name in ("lower", "cv_error", "upper"):
            said = getattr(row, name)
            words = f"{said!r} is not the h of a decided pair, {truth.low!r}"
            self.checks.that(low <= said <= high, f"{place}{name}", words)

    def _standard_error(self, row: TableRow, said: float, place: str, optima: FoldOptima) -> None:
        """Of a decided pair: by the true errors of its folds, ties and rounding apart."""
        sizes, low, high = self.scored.by_fold, optima.loose_low, optima.loose_high
        times = self.scored.times
        found = standard_error((low + high) / 2.0, sizes, times)
        unit = float(power_of_two(high.max()))  # squares neither overflow nor vanish
        means = np.stack([(high - low) / 2.0, high]) / unit / sizes
        ties, level = np.sqrt(means**2 @ (sizes / sizes.sum())) * unit
        room = ties + self.design.slack(float(level), row.gamma, row.tau, ALLOWANCE_RTOL)
        words = f"is {said!r}, the folds of a decided pair give {found!r}"
        self.checks.that(abs(said - found) <= room / math.sqrt(self.plan.k / times - 1), place, words)

    def _widths(self, claim: Record | Least | Region, row: TableRow, path: str = "") -> None:
        """Ties and rounding of a certificate: those of the pair with the least lower bound."""
        truth = self.truth(row.gamma, row.tau)
        room = self.design.slack(truth.loose_high, row.gamma, row.tau, ALLOWANCE_RTOL)
        ties = truth.loose_high - truth.loose_low
        words = f"the tied supports of the pair with the least lower bound differ by {ties!r}"
        self.checks.that(claim.tie_width <= ties + room, f"{path}tie_width", f"{claim.tie_width!r}: {words}")
        said = claim.allowance
        self.checks.that(said <= room, f"{path}allowance", f"{said!r} exceeds what rounding can do to h, {room!r}")

    def _supports(self) -> None:
        before = len(self.checks.failures)
        for (gamma, tau), (pair, _) in self.reported.items():
            if row_of(pair.known, self.record.table) is None:
                return
            optimal = self.truth(gamma, tau).optima.reported_optimal
            for fold in np.flatnonzero(~optimal & pair.folds.decided)[:3].tolist():
                words = "another support of the same size fits the fold better"
                self.checks.that(False, f"{pair.name}[{fold}].support", words)
        self.checks.part("optimality of the support of every decided fold, by enumeration", before)

    def _moves(self) -> None:
        """Pairs off the grid: the moves of a descent, the refined gamma."""
        checks, record, before = self.checks, self.record, len(self.checks.failures)
        saddle = record.descent and not all(math.isfinite(step.upper) for step in record.descent)
        for i, step in enumerate(record.descent):
            truth = self.truth(step.gamma, step.tau)
            below = step.upper >= truth.high * (1.0 - H_RTOL) - TINY
            checks.that(below, f"descent[{i}].upper", f"{step.upper!r} is below the true {truth.high!r}")
            ties = truth.loose_high - truth.loose_low
            room = self.design.slack(truth.high, step.gamma, step.tau, ALLOWANCE_RTOL)
            width = record.request.gap * truth.high + ties + room
            if record.status == "proved" and not saddle:
                wide = f"{step.upper!r} exceeds the true {truth.high!r} by more than the gap"
                checks.that(step.upper <= truth.loose_high + width, f"descent[{i}].upper", wide)
        if record.descent:
            checks.part(f"upper of the {len(record.descent)} moves of the descent, by enumeration", before)
        refined, before = record.refined, len(checks.failures)
        if refined is None:
            return
        self._interval(refined, "refined.", self.truth(refined.gamma, refined.tau), not refined.estimate)
        checks.part("refined, by enumeration of all supports", before)

    # -- neighbours -------------------------------------------------------------------------------------------------

    def neighbours(self) -> None:
        """Whether an exchange of one column, or another support of the record, beats more supports than are open."""
        record, claim = self.record, self.record.certificate
        path = "" if record.least is None else "least."
        least = min(record.table, key=lambda row: row.lower, default=None)
        self._allowance(claim, least, path)
        if record.least is not None:
            self._allowance(record, record.own_row, "")
        if self.design.allowed is not None:
            self.checks.reread.append("neighbours of the supports (restrictions may not allow them)")
            return
        for pair, supports in self.reported.values():
            self._exchanges(pair, supports)

    def _allowance(self, claim: Record | Least, row: TableRow | None, path: str) -> None:
        """Check the rounding of a certificate, which is that of the pair of a row."""
        if row is not None and math.isfinite(claim.cv_error):
            room = self.design.slack(max(claim.cv_error, row.lower), row.gamma, row.tau, ALLOWANCE_RTOL)
            words = f"{claim.allowance!r} exceeds what rounding can do to h, {room!r}"
            self.checks.that(claim.allowance <= room, f"{path}allowance", words)

    def _exchanges(self, pair: ReportedPair, supports: Supports) -> None:
        """Compare the supports of the decided folds of a pair with their neighbours."""
        exchanges = Exchanges(self.design, pair.known.gamma)
        cost = exchanges.cost(supports)
        if cost > EXCHANGE_LIMIT:
            self.checks.reread.append(f"neighbours of the supports{pair.words} ({cost:.0e} operations)")
            return
        before, others = len(self.checks.failures), [s for s, _ in Counter(supports).most_common()]
        index = {self.design.dataset.names[j]: i for i, j in enumerate(self.design.columns.tolist())}
        refit = positions(self.record.support, index)
        if refit is not None and len(refit) == min(pair.known.tau, self.design.q) and refit not in others:
            others.insert(0, refit)
        decided = np.flatnonzero(pair.folds.decided).tolist()
        found = improvable_folds(self.design, self.plan, pair.known.gamma, supports, others, decided)
        for fold, words in islice(found, 3):
            self.checks.that(False, f"{pair.name}[{fold}].support", words)
        if decided:
            part = "no exchange of one column and no other support of the record fits a decided fold better"
            self.checks.part(part + pair.words.replace(" of", ", of"), before)
        else:
            which = pair.words or " of the reported pair"
            self.checks.reread.append(f"supports{which}: none of its folds is decided")


def check_refined(checks: Checks, record: Record) -> None:
    """Check what needs no enumeration: tau is the answer's, the error inside its interval, no worse than the answer."""
    refined, before = record.refined, len(checks.failures)
    if refined is None:
        return
    checks.that(refined.tau == record.tau, "refined.tau", f"is {refined.tau}, the answer's is {record.tau}")
    inside = refined.lower * (1.0 - 1e-12) <= refined.cv_error <= refined.upper * (1.0 + 1e-12)
    words = f"{refined.cv_error!r} is outside of [{refined.lower!r}, {refined.upper!r}]"
    checks.that(inside, "refined.cv_error", words)
    own = row_of(record, record.table)
    if own is not None:
        worse = f"{refined.upper!r} is no better than the answer, {own.upper!r}"
        checks.that(refined.upper <= own.upper, "refined.upper", worse)
    if own is not None and refined.gamma == record.gamma:
        checks.equal("refined.estimate", refined.estimate, own.estimate)
        check_as_tabled(checks, refined, own, ("cv_error", "lower", "upper"), "refined.")
    checks.part("refined agrees with the answer", before)
