"""The writer of a search, which stores the findings of steps, the bounds they imply, and the attempts of sources."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, is_constant
from sparsecv_mio.bounds.closed_form import held_out_error_bounds, training_loss_bound
from sparsecv_mio.search.accounts import Accounts
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.registry import find_source
from sparsecv_mio.search.state.cells import Index
from sparsecv_mio.search.state.grid_state import GridState, SourceRecord
from sparsecv_mio.search.state.pairs import PairBounds
from sparsecv_mio.search.steps import (
    Findings,
    FullDataBounds,
    HeldOutBounds,
    NodeCount,
    Step,
    SubproblemBounds,
    SupportInFolds,
    WeightedBounds,
)
from sparsecv_mio.trees.subsets import BestSubsets


def _subproblem_index(statement: SubproblemBounds) -> Index:
    """Return the index of the subproblems of a statement; for one size it is the index of a row."""
    first, last, taus = statement.taus[0], statement.taus[-1], list(statement.taus)
    if len(taus) == 1:
        return statement.gamma, first, statement.folds
    is_range = last - first == len(taus) - 1
    return statement.gamma, slice(first, last + 1) if is_range else taus, statement.folds


class Writer:
    """The writer of a search state. It takes findings of steps and refuses contradictions.

    Parameters
    ----------
    state : GridState
        State to write.
    plan : Plan
        Plan of the search.
    accounts : Accounts
        Costs and gains of every source.
    """

    def __init__(self, state: GridState, plan: Plan, accounts: Accounts) -> None:
        self.state, self.plan, self.accounts = state, plan, accounts
        self._touched: BoolArray = np.zeros(state.context.shape[:2], dtype=bool)
        self._first_subsets: dict[int, BestSubsets] = {}
        self._lower_before: FloatArray | None = None  # bounds on the full data before a group that improves them

    def take(self, batch: Sequence[Findings]) -> None:
        """Take the findings of some steps, and apply the implications of those of one account together."""
        for account, some in groupby(batch, key=lambda findings: findings.step.account):
            group, began = list(some), time.thread_time()
            self.accounts.turn_to(account)
            self._take_group(group)
            spent = sum(findings.cpu_seconds for findings in group) + time.thread_time() - began
            self.accounts.book(len(group), spent)

    def _take_group(self, group: Sequence[Findings]) -> None:
        state = self.state
        before = state.bounds() if any(findings.step.promised for findings in group) else None
        self._touched[...] = False
        for findings in group:
            state.counts.nodes += findings.n_nodes
            state.counts.problems += findings.n_problems
            for statement in findings.statements:
                self._takers[type(statement)](self, statement, findings.step)
            self._take_first_subsets()
            self._count_tries(findings)
        self._apply_implications()
        state.find_lowest_tries(self._touched)
        if before is not None:
            self._record_rises(group, before)

    def _record_rises(self, group: Sequence[Findings], before: PairBounds) -> None:
        """Note the rises of the weakest pairs, as shares of their missing rises, and the promises of the steps."""
        least, state = float(before.lower.min()), self.state
        line = least + self.plan.raised_share * (before.ceiling - least)
        room = np.maximum(line - before.lower, 0.0)
        record = state.records.setdefault(group[0].step.source, SourceRecord())
        if np.isfinite(line):
            rise = np.minimum(state.bounds().lower - before.lower, room)
            record.promised += sum(findings.step.promised for findings in group)
            record.kept += float((rise[room > 0.0] / room[room > 0.0]).sum())
            record.work += sum(findings.step.work for findings in group)
            record.seconds += sum(findings.cpu_seconds for findings in group)

    def _count_tries(self, findings: Findings) -> None:
        """Note the tries of a step; a step that the clock ended may be tried again."""
        state, step = self.state, findings.step
        if step.tries < self.plan.max_tries and findings.n_nodes:
            state.tried.spent[int(step.tries > 0)] += findings.n_nodes
        if not findings.was_stopped:
            find_source(step).count_tries(state, findings)
            state.tried.n_mios[...] += step.n_mios
            if step.tries < self.plan.max_tries:
                state.tried.round[...] = max(int(state.tried.round), step.tries)

    def count_finished_order(self) -> None:
        """Note that another order of the plan has ended; a resumed search begins with the next order."""
        self.state.tried.n_orders_done[...] += 1

    # -- statements ---------------------------------------------------------------------------------------------------

    def _take_full_data(self, statement: FullDataBounds, step: Step) -> None:
        """Take best subsets of the full data; their bounds hold at other sizes and gammas too."""
        state, g, all_rows = self.state, statement.gamma, self.state.all_rows
        has_every_size = statement.subsets.by_size.keys() >= set(state.context.grid.taus.tolist())
        if state.has_supports[g] or not has_every_size:
            self._lower_before = all_rows.lower() if self._lower_before is None else self._lower_before
            all_rows.improve(g, statement.subsets)
        else:
            self._first_subsets[g] = statement.subsets

    def _take_first_subsets(self) -> None:
        """Take the initial supports of some gammas; a gamma without supports uses those of the nearest gamma."""
        state = self.state
        if self._first_subsets:
            gammas = np.flatnonzero(state.has_supports).tolist()
            state.all_rows.keep({g: state.all_rows.best[g] for g in gammas} | self._first_subsets)
            state.has_supports[list(self._first_subsets)] = True
            self._first_subsets.clear()

    def _take_support(self, statement: SupportInFolds, step: Step) -> None:
        """Take a support of the full data that was fitted in every fold."""
        pair, support = (statement.gamma, statement.tau), statement.support
        values = statement.held_out, statement.objective_upper, statement.objective_upper
        self._offer(np.s_[pair[0], pair[1], :], self.state.cells.pool.number(support), *values)
        if np.isfinite(statement.objective_upper).all() and np.isfinite(statement.held_out).all():
            self.state.offered.add((*pair, np.sort(support).astype(np.int64).tobytes()))

    def _take_folds(self, statement: SubproblemBounds, step: Step) -> None:
        """Take the bounds on some sizes in some folds."""
        cells, place, new = self.state.cells, _subproblem_index(statement), statement
        rows = np.s_[:] if len(new.taus) > 1 else 0
        numbers = np.array([*cells.pool.numbers(new.supports), 0], dtype=np.int32)
        best, held_out, objective, is_solved = (
            numbers[new.best[rows]], new.held_out[rows], new.objective[rows], new.is_solved[rows]
        )  # fmt: skip
        if not is_constant(new.objective_lower):
            cells.raise_floor(place, new.objective_lower[rows])
        if not (is_constant(new.lower) and is_constant(new.upper)):
            cells.narrow(place, new.lower[rows], new.upper[rows])
        if new.tied:
            is_solved = is_solved & ~self._decide_ties(new, numbers)[rows]
        if is_solved.any():
            intervals = new.lower[rows], new.upper[rows]
            cells.decide_part(place, is_solved, best, held_out, intervals, objective, new.is_branched[rows])
        self._offer(place, best, held_out, objective, new.objective_upper[rows])
        if (new.is_final & ~new.is_solved).any():
            cells.mark(place, new.is_branched[rows], new.is_final[rows])

    def _decide_ties(self, statement: SubproblemBounds, numbers: NDArray[np.int32]) -> BoolArray:
        """Take solved subproblems with several optimal supports, and return a (T', K') mask of them."""
        cells, is_tied = self.state.cells, np.zeros(statement.best.shape, dtype=bool)
        folds = np.arange(self.state.context.folds.k)[statement.folds]
        for at, places in statement.tied.items():
            where = statement.gamma, statement.taus[at[0]], int(folds[at[1]])
            is_tied[at], first = True, int(statement.best[at])
            if statement.is_solved[at] and not cells.decided[where]:
                cells.decide(
                    where, support=numbers[[first, *(i for i in places if i != first)]].tolist(),
                    tie=float(statement.tie[at]), nominal=float(statement.held_out[at]),
                    lower=float(statement.lower[at]), upper=float(statement.upper[at]),
                    value=float(statement.objective[at]), branched=bool(statement.is_branched[at]),
                )  # fmt: skip
        return is_tied

    def _take_weighted(self, statement: WeightedBounds, step: Step) -> None:
        """Take bounds on the objective of a fold plus its held-out loss at some weights."""
        self.state.weighted[statement.fold] = statement.lower
        self._touched |= True

    def _take_held_out(self, statement: HeldOutBounds, step: Step) -> None:
        """Take lower bounds on the held-out losses of a fold."""
        self.state.cells.narrow(np.s_[:, :, statement.fold], statement.lower, np.inf)

    def _take_count(self, statement: NodeCount, step: Step) -> None:
        """Count nodes."""
        self.state.counts.nodes += statement.n_nodes

    _takers: ClassVar[dict[type, Any]] = {
        FullDataBounds: _take_full_data, SupportInFolds: _take_support, SubproblemBounds: _take_folds,
        WeightedBounds: _take_weighted, HeldOutBounds: _take_held_out,
        NodeCount: _take_count,
    }  # fmt: skip

    def _offer(self, part: Index, numbers: Any, held_out: FloatArray, objective: FloatArray, upper: FloatArray) -> None:
        """Offer supports, given by their numbers, to the subproblems of a part."""
        stored = self.state.objective_upper
        if not (is_constant(stored) or is_constant(upper)):
            stored[part] = np.minimum(stored[part], upper)
        self.state.cells.offer(part, numbers, held_out, objective)
        self._touched[part[:2]] = True

    # -- implications -------------------------------------------------------------------------------------------------

    def _apply_implications(self) -> None:
        """Raise the lower bounds of the changed pairs by the training-loss bound and the weighted bounds."""
        state = self.state
        if not state.has_supports.any():
            return
        full_lower = state.all_rows.lower()
        if self._lower_before is not None:
            full_lower = state.all_rows.lower_bounds()
            self._touched |= full_lower > self._lower_before
            self._lower_before = None
        if not is_constant(state.objective_upper):
            for g in np.flatnonzero(self._touched.any(axis=1)).tolist():
                taus = np.flatnonzero(self._touched[g])
                self._raise_rows(g, taus, full_lower[g, taus])

    def _raise_rows(self, g: int, taus: np.ndarray, full_lower: np.ndarray) -> None:
        """Raise the lower bounds of some sizes at a gamma, fold by fold."""
        state, place = self.state, np.s_[g, taus] if len(taus) > 1 else np.s_[g, int(taus[0]), :][:2]
        upper = state.objective_upper[place].reshape(len(taus), -1)
        bounds = training_loss_bound(full_lower[:, None], upper, state.slip)
        bounds = np.where(state.context.folds.scores_all_left_out, bounds, 0.0)
        for fold, weighted in state.weighted.items():
            losses = held_out_error_bounds(weighted[:, g : g + 1, taus], upper[None, :, fold] + state.slip)[0]
            bounds[:, fold] = np.maximum(bounds[:, fold], losses)
        state.cells.narrow(place, bounds if len(taus) > 1 else bounds[0], np.inf)
