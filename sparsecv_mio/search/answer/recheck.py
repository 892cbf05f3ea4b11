"""A check of the answer before it is reported: supports are refitted by the code of `verify`.

The check prevents a run from reporting a status or an upper bound that `verify` would reject. At the end of a search,
the folds of the reported pair are refitted from the numbers of the file. The support of each fold is compared with all
supports that differ from it in one column. Then a sample of the other solved subproblems is refitted. If refit and
search disagree in a fold by more than rounding, all intervals of the fold become [0, inf) and the status changes. A
warning names the pair, the fold and the disagreement.

The check takes `RECHECK_SHARE` of the seconds of the search, or the rest of a time limit if the rest is shorter. The
folds and subproblems are checked in a random order with a fixed seed. At least one of them is checked. The check ends
if the next fold or subproblem is not expected to fit into the remaining time. A support is not refitted if its columns
and the target have more than `DOUBLED_NUMBERS` numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, IntArray
from sparsecv_mio.certificate.refits import Exchanges
from sparsecv_mio.certificate.restrictions import AllowedSupports
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.digits import format_interval, format_number
from sparsecv_mio.problem import glm_objective
from sparsecv_mio.problem.objective import held_out_error
from sparsecv_mio.search.deadline import REPORT_SHARE
from sparsecv_mio.search.state.cells import Where
from sparsecv_mio.search.state.context import Snapshot
from sparsecv_mio.search.state.pairs import pair_bounds
from sparsecv_mio.thresholds import QUICK_WORK
from sparsecv_mio.units import CROSSING_RTOL, TINY

RECHECK_SHARE = 1.0 / REPORT_SHARE  # share of the seconds of a search that the recheck may take
DOUBLED_NUMBERS = CHUNK_ELEMENTS // 4  # numbers of a support's columns up to which it is fitted in twice the precision


def recheck_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot without the bounds that a refit by plain arithmetic refutes.

    Parameters
    ----------
    snapshot : Snapshot
        Snapshot whose subproblems are changed; nothing else may write them any more.
    """
    context, cells = snapshot.context, snapshot.cells
    deadline = context.deadline
    begin, allowed = time.monotonic(), min(RECHECK_SHARE * deadline.seconds, deadline.remaining_seconds)
    look, doubts = _Recheck(snapshot), list[str]()
    for done, where in enumerate(_shuffled_subproblems(snapshot, begin + allowed)):
        spent = time.monotonic() - begin
        if done and spent + spent / done > allowed:
            break
        seen = look.objection(where)
        if seen:
            doubts.append(seen)
            cells.withdraw(where[2])
    return replace(snapshot, doubts=tuple(doubts)) if doubts else snapshot


def _shuffled_subproblems(snapshot: Snapshot, until: float) -> Iterator[Where]:
    """Yield solved subproblems in random order from a fixed seed: those of the pair to report, then the others.

    If few others are solved, the search for them ends at the moment `until` of `time.monotonic`.
    """
    context, decided = snapshot.context, snapshot.cells.decided
    rng, grid = np.random.default_rng(0), context.grid
    bounds = pair_bounds(snapshot.cells, grid.gammas, grid.taus)
    g, t = bounds.reported_pair(context.gap, grid.gammas, grid.taus)
    for fold in rng.permutation(
        np.flatnonzero(decided[g, t])
    ):  # no list, which would take more memory than X if there are many folds
        if decided[g, t, fold]:
            yield g, t, int(fold)
    step = max(CHUNK_ELEMENTS // 16, 1)  # indices take more memory than numbers
    for first in range(0, decided.size, step):  # few subproblems are drawn twice
        drawn = rng.integers(decided.size, size=min(step, decided.size - first))
        places = np.unravel_index(drawn, decided.shape)
        for place in np.transpose(places)[np.asarray(decided[places])]:
            g, t, fold = place.tolist()
            if decided[g, t, fold]:  # a withdrawn fold has none
                yield g, t, fold
        if time.monotonic() > until:
            return


class _Recheck:
    """Refits of subproblems in units of the file."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.context, self.cells = snapshot.context, snapshot.cells
        self.data = self.context.data
        self._how = self.data.dataset, str(self.data.scale), str(self.data.intercept)
        self._exchanges: dict[int, Exchanges] = {}
        self._last: RidgeDesign | None = None

    @cached_property
    def design(self) -> RidgeDesign:
        """Design of all columns that may be in a support. It copies columns, so it is built only for small data."""
        return RidgeDesign.from_restrictions(*self._how, self.data.restrictions)

    def objection(self, where: Where) -> str:
        """Return the objection of a refit to a solved subproblem; empty if there is none."""
        g, t, fold = where
        context, cells = self.context, self.cells
        gamma, tau, folds = float(context.grid.gammas[g]), int(context.grid.taus[t]), context.folds
        columns = self.data.columns[cells.pool.supports[cells.support[where]]]
        if self.data.n * (len(columns) + 1) > DOUBLED_NUMBERS:
            return ""
        error, room = self._refit(fold, columns, gamma, tau)
        low, high = (float(bound[where]) * self.data.loss_unit for bound in (cells.lower, cells.upper))
        named = f"gamma {gamma:.6g}, tau {tau}, fold {fold + 1}"
        if not low - room <= error <= high + room:
            what = "error" if self.data.loss.is_quadratic else "loss"
            bounds, refit = format_interval(low, high, 9), format_number(error, 9)
            return f"{named}: the search bounds the held-out {what} by {bounds}, but a refit gives {refit}"
        rival = self._better(g, folds.train_rows(fold), folds.left_out(fold), columns)
        return f"{named}: the features {rival} fit better than the reported best subset" if rival else ""

    def _refit(self, fold: int, columns: IntArray, gamma: float, tau: int) -> tuple[float, float]:
        """Return the held-out loss of a support by the definition of its fit, and an allowance for rounding."""
        folds, dataset, design = self.context.folds, self.data.dataset, self._support_columns(columns)
        train, scored = folds.train_rows(fold), folds.scored_rows(fold)
        if self.data.loss.is_quadratic:
            squared = design.refit(tuple(range(len(columns))), gamma, train)
            error = held_out_error(squared, dataset.X, dataset.y, scored, dataset.row_weights)
            return error, len(scored) * design.slack(error / len(scored), gamma, tau, CROSSING_RTOL) + TINY
        ridge = design.ridge_weights(columns.tolist(), gamma, train)
        model = glm_objective.fit_of_data(
            dataset, self.data.loss, columns.tolist(), ridge, scale=str(self.data.scale),
            intercept=str(self.data.intercept), rows=train,
            ends=None if design.allowed is None else design.allowed.ends,
        )  # fmt: skip
        loss, doubt = model.held_out(dataset, scored)
        return loss, CROSSING_RTOL * loss + doubt + TINY

    def _support_columns(self, columns: IntArray) -> RidgeDesign:
        """Return the design of a support; the last one is stored, because most folds have the same support."""
        if self._last is None or not np.array_equal(self._last.columns, columns):
            names = tuple(self.data.dataset.names[j] for j in columns.tolist())
            allowed = None if self.data.coefficient_bounds is None else AllowedSupports(names, self.data.restrictions)
            self._last = RidgeDesign(*self._how, columns, tuple(self.data.free), allowed=allowed)
        return self._last

    def _better(self, g: int, train: IntArray, left_out: IntArray, columns: IntArray) -> str:
        """Return the names of a support that differs in one column and fits better; empty if there is none.

        The result is empty too if the comparison would take long.
        """
        if not self.data.loss.is_quadratic or self.data.restrictions.side_constraints:
            return ""
        if self.data.n * self.data.q * (len(columns) + 1) > QUICK_WORK:
            return ""
        support = tuple(np.searchsorted(self.design.columns, columns).tolist())
        exchanges = self._exchanges.get(g)
        if exchanges is None:
            exchanges = self._exchanges[g] = Exchanges(self.design, float(self.context.grid.gammas[g]))
        rival = exchanges.best(left_out, support)
        if rival is None or not exchanges.has_better_fit(train, rival, support):
            return ""
        return self.design.join_names(rival)
