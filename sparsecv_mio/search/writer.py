"""The one writer of a search over a grid: it takes findings, and applies what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.bounds.closed_form import training_loss_bound
from sparsecv_mio.bounds.more_weight import said_of_held_out
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.search.accounts import Accounts
from sparsecv_mio.search.cells import held_sums, pair_rows_of, shared_rows
from sparsecv_mio.search.grid_state import GridState
from sparsecv_mio.search.pairs import Pair
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.registry import source_of
from sparsecv_mio.search.steps import (
    Findings,
    FullDataBounds,
    PairInFolds,
    Step,
    SubproblemBounds,
    SupportInFolds,
    WeightedBounds,
)
from sparsecv_mio.units import SUM_RTOL


class Writer:
    """Takes findings of steps; refuses a contradiction.

    Parameters
    ----------
    state : GridState
    plan : Plan
    accounts : Accounts
        Costs and gains of every source.
    """

    def __init__(self, state: GridState, plan: Plan, accounts: Accounts) -> None:
        self.state, self.plan, self.accounts = state, plan, accounts
        self._touched: BoolArray = np.zeros(state.is_offered.shape, dtype=bool)

    def take(self, batch: Sequence[Findings]) -> None:
        """Take the findings of some steps, and apply what follows from those of one account together."""
        for account, some in groupby(batch, key=lambda findings: source_of(findings.step).account(findings.step)):
            group = list(some)
            with self.accounts.of(account, len(group)):
                self._take_group(account, group)

    def _take_group(self, account: str, group: Sequence[Findings]) -> None:
        state = self.state
        self._touched[...] = False
        for findings in group:
            self.accounts.took(account, findings.cpu_seconds)
            state.counts.add(findings.n_nodes, problems=findings.n_problems)
            for statement in findings.statements:
                self._takers[type(statement)](self, statement, findings.step)
            self._count_tries(findings)
        state.forget_computed()
        self._apply_implications()
        for g, t in np.argwhere(self._touched).tolist():
            state.find_lowest_tries((g, t))
        for findings in group:
            self._store_sums(findings)
        state.forget_computed()

    def _count_tries(self, findings: Findings) -> None:
        """Note what a step tried; what the clock ended may be tried again."""
        state, step = self.state, findings.step
        if not findings.was_stopped:
            source_of(step).count_tries(state, findings)
            if step.tries < self.plan.max_tries:
                state.round[...] = max(int(state.round), step.tries)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _take_full_data(self, statement: FullDataBounds, step: Step) -> None:
        """Take best subsets of the full data; bounds hold at other sizes and gammas too."""
        state, g = self.state, statement.gamma
        all_rows = state.all_rows
        if state.has_supports[g]:
            before = all_rows.of_pairs(lambda subset: subset.lower)
            all_rows.improve(g, statement.subsets)
            self._touched |= all_rows.lower_bounds() > before
            return
        first = {i: all_rows.best[i] for i in np.flatnonzero(state.has_supports).tolist()}
        all_rows.keep(first | {g: statement.subsets})
        state.has_supports[g] = True

    def _take_support(self, statement: SupportInFolds, step: Step) -> None:
        """Take a support of the full data, fitted in every fold."""
        pair, support = (statement.gamma, statement.tau), statement.support
        self._offer(pair, self.state.cells.pool.number(support), statement.held_out, statement.objective_upper)
        if np.isfinite(statement.objective_upper).all() and np.isfinite(statement.held_out).all():
            self.state.offered.add((*pair, np.sort(support).astype(np.int64).tobytes()))

    def _take_subproblem(self, statement: SubproblemBounds, step: Step) -> None:
        """Take what is known of one subproblem."""
        cells, where, known = self.state.cells, (statement.gamma, statement.tau, statement.fold), statement.subproblem
        numbers = [cells.pool.number(support) for support in known.supports]
        upper = self.state.objective_upper
        upper[where] = min(upper[where], known.objective_upper)
        cells.raise_floor(where, known.objective_lower)
        self._touched[where[:2]] = True
        if known.is_solved:
            cells.decide(
                where, support=numbers, nominal=known.held_out, lower=known.lower, upper=known.upper, tie=known.tie,
                value=known.objective_upper, branched=True,
            )  # fmt: skip
            return
        cells.narrow(where, known.lower, known.upper)
        cells.offer(where, numbers[0], known.held_out, known.objective_upper)
        if known.is_final:
            cells.mark(where, branched=True)

    def _take_pair(self, statement: PairInFolds, step: Step) -> None:
        """Take what near-best supports of the full data say of the folds of a pair."""
        cells, pair = self.state.cells, (statement.gamma, statement.tau)
        numbers = np.array([cells.pool.number(support) for support in statement.supports], dtype=np.int32)
        best, part = numbers[statement.best], np.s_[statement.gamma, statement.tau, :]
        self._offer(pair, best, statement.held_out, statement.objective_upper)
        cells.narrow(part, statement.lower, statement.upper)
        is_solved = statement.is_solved.copy()
        for fold, places in statement.tied.items():
            if is_solved[fold] and not cells.decided[(*pair, fold)]:
                first = int(statement.best[fold])
                cells.decide(
                    (*pair, fold), support=numbers[[first, *(i for i in places if i != first)]].tolist(),
                    tie=float(statement.tie[fold]), nominal=float(statement.held_out[fold]),
                    lower=float(statement.lower[fold]), upper=float(statement.upper[fold]),
                    value=float(statement.objective_upper[fold]), branched=True,
                )  # fmt: skip
        is_solved[list(statement.tied)] = False
        cells.decide_part(
            part, is_solved, best, statement.held_out, statement.lower, statement.upper, statement.objective_upper,
            branched=True,
        )  # fmt: skip

    def _take_weighted(self, statement: WeightedBounds, step: Step) -> None:
        """Take bounds on the objective of a fold with its held-out rows at some weights."""
        self.state.weighted[statement.fold] = statement.lower
        self._touched |= True

    _takers: ClassVar[dict[type, Any]] = {
        FullDataBounds: _take_full_data, SupportInFolds: _take_support, SubproblemBounds: _take_subproblem,
        PairInFolds: _take_pair, WeightedBounds: _take_weighted,
    }  # fmt: skip

    def _offer(self, pair: Pair, numbers: object, held_out: object, objective_upper: object) -> None:
        """Offer supports, by their numbers, to all folds of a pair."""
        state = self.state
        state.objective_upper[pair] = np.minimum(state.objective_upper[pair], objective_upper)  # type: ignore[call-overload]
        state.cells.offer(np.s_[pair[0], pair[1], :], numbers, held_out, objective_upper)  # type: ignore[arg-type]
        shared_rows(state.objective_upper, state.cells.value, [pair])
        self._touched[pair] = True

    # -- implications -------------------------------------------------------------------------------------------------

    def _apply_implications(self) -> None:
        """Raise the lower bounds of the pairs touched by the training-loss bound and the weighted bounds."""
        state = self.state
        if not state.has_supports.any():
            return
        full_lower = state.all_rows.of_pairs(lambda subset: subset.lower)
        sums = held_sums(state.objective_upper)
        for g, t in np.argwhere(self._touched & np.isfinite(sums)).tolist():
            least = state.context.folds.k * (full_lower[g, t] - state.slip) * (1.0 - SUM_RTOL)
            state.cells.raise_sum(g, t, float(least - sums[g, t] * (1.0 + SUM_RTOL)))
        rows = self._touched & ~np.isfinite(sums)
        for g in np.flatnonzero(rows.any(axis=1)).tolist():
            taus = np.flatnonzero(rows[g])
            for some in [taus] if not self.plan.stores_sums else taus[:, None]:  # rows of all would take memory
                self._raise_rows(g, some, full_lower[g, some])

    def _raise_rows(self, g: int, taus: np.ndarray, full_lower: np.ndarray) -> None:
        """Raise the lower bounds of some sizes at a gamma, fold by fold."""
        state, part = self.state, np.s_[g, taus] if len(taus) > 1 else np.s_[g, int(taus[0]), :][:2]
        upper = np.asarray(state.objective_upper[part]).reshape(len(taus), -1)
        bounds = training_loss_bound(full_lower[:, None], upper, state.slip)
        bounds = np.where(state.context.folds.scores_all_left_out, bounds, 0.0)
        for fold, weighted in state.weighted.items():
            losses = said_of_held_out(weighted[:, g : g + 1, taus], upper[None, :, fold] + state.slip)[0]
            bounds[:, fold] = np.maximum(bounds[:, fold], losses)
        state.cells.narrow(part, bounds if len(taus) > 1 else bounds[0], np.inf)

    def _store_sums(self, findings: Findings) -> None:
        """Store sums of a pair in place of its folds, where the plan says so and the pair is not being solved."""
        step = findings.step
        if not self.plan.stores_sums:
            return
        for statement in findings.statements:
            if isinstance(statement, SupportInFolds):
                self._store_sum((statement.gamma, statement.tau), False)
            elif isinstance(statement, PairInFolds) and np.isfinite(step.cutoff):
                pair = statement.gamma, statement.tau
                self._store_sum(pair, bool(self.state.cells.lower.sum(axis=2)[pair] >= step.cutoff))

    def _store_sum(self, pair: Pair, intervals: bool) -> None:
        """Store sums of what a pair shows, or of its intervals too."""
        state, cells, scored = self.state, self.state.cells, self.state.context.scored
        shown, known = cells.nominal[pair], cells.standard_error(*pair) is not None
        if cells.decided[pair].any() or not (known or np.isfinite(shown).all()):
            return  # what a limit has left out is shown later, and its standard error is that of rows
        has_error = scored.has_standard_error and not known
        error = standard_error(shown, scored.by_fold, scored.times) if has_error else np.nan
        pair_rows_of(state.objective_upper).hold_for_all(*pair, float(state.objective_upper[pair].max()))
        cells.hold_sums(*pair, error, intervals)
