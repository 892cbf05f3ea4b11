"""Initial supports: local search on the full data, refits of these supports in every fold, local search in the folds.

The supports give upper bounds on training objectives, which the training-loss bound needs, and estimates of all CV
errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.outcomes import show_fits
from sparsecv_mio.search.problems.protocol import Fits, IsExpired, Problems
from sparsecv_mio.search.state.grid_state import GridState, find_open_gammas
from sparsecv_mio.search.state.pairs import Pair
from sparsecv_mio.search.steps import (
    ALL_FOLDS,
    FULL_DATA,
    Findings,
    FullDataBounds,
    PairsStep,
    Step,
    SubproblemBounds,
    SupportInFolds,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class InitialStep(Step):
    """A local search in the full data; warm starts are first improved by exchanges of columns if `exchanges`."""

    exchanges: bool


class InitialSupports:
    """Source of supports by local search in the full data, all sizes of a gamma at once."""

    name: ClassVar[str] = "initial supports"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray, exchanges: bool = True) -> Iterator[Step]:
        """Yield the gammas without supports; each search starts from the supports of the gammas that have some."""
        subsets = [state.all_rows.best[g] for g in np.flatnonzero(state.has_supports).tolist()]
        found = (subset.support for result in subsets for subset in result.by_size.values())
        starts = (*state.context.starts, *found)
        taus = state.context.grid.taus
        for g in find_open_gammas(wanted, state.has_supports):
            yield InitialStep(
                self.name, g, tuple(range(len(taus))), FULL_DATA, tuple(taus.tolist()), starts, exchanges=exchanges
            )

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Search the full data from the supports of the step."""
        assert isinstance(step, InitialStep)
        problem = problems.full(step.gamma)
        subsets = problem.solve(step.sizes, step.warm_starts, 0, is_expired, exchanges=step.exchanges)
        return Findings(step, (FullDataBounds(step.gamma, subsets),), subsets.nodes, 1)

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note nothing, because the state stores the supports."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SupportsStep(Step):
    """A step over the full-data supports of some sizes.

    Attributes
    ----------
    hides_losses : bool
        True if the held-out losses are not shown, because each fold is searched for a support of its own.
    """

    hides_losses: bool


class SupportsInFolds:
    """Source of estimates by fits of the full-data supports in every fold."""

    name: ClassVar[str] = "supports in folds"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the pairs whose full-data support was not fitted in the folds, some sizes of a gamma at a time."""
        wanted = wanted & state.has_supports[:, None] & ~state.tried.is_offered
        for g in find_open_gammas(wanted, ~state.has_supports):
            some = tuple(t for t in np.flatnonzero(wanted[g]).tolist() if not state.is_bounded((g, t)))
            if some:
                sizes = tuple(state.context.grid.taus[list(some)].tolist())
                supports = tuple(state.full_support((g, t)) for t in some)
                yield SupportsStep(
                    self.name, g, some, ALL_FOLDS, sizes, supports, hides_losses=plan.searches_folds_first
                )

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Hold every fold out of the supports; losses are not shown if each fold is searched separately."""
        assert isinstance(step, SupportsStep)
        problem, statements = problems.full(step.gamma), list[SupportInFolds]()
        for t, size, support in zip(step.taus, step.sizes, step.warm_starts, strict=True):
            if is_expired():
                return Findings(step, tuple(statements), n_problems=1, was_stopped=True)
            objective_upper, held_out = problem.hold_out(support, is_expired)
            if step.hides_losses and size > 0:
                held_out = np.full(len(held_out), np.nan)
            statements.append(SupportInFolds(step.gamma, t, support, objective_upper, held_out))
        return Findings(step, tuple(statements), n_problems=1)

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the pairs whose supports were fitted in the folds."""
        state.tried.is_offered[findings.step.gamma, list(findings.step.taus)] = True


@dataclass(frozen=True, eq=False, kw_only=True)
class FoldsStep(Step):
    """A step over some folds of a pair, with the supports to start from in each fold."""

    starts: tuple[tuple[IntArray, ...], ...]


class FoldSupports:
    """Source of supports by local search in a fold; unlike a full-data support, they do not depend on held-out rows."""

    name: ClassVar[str] = "fold supports"

    def steps(self, state: GridState, plan: Plan, pair: Pair) -> Iterator[Step]:
        """Yield open folds of a pair that had no local search, a part of them for each thread."""
        (g, t), size = pair, int(state.context.grid.taus[pair[1]])
        folds = state.unsearched_folds(pair).tolist() if plan.uses(self.name) else []
        folds = folds[: plan.steps_of_turn * plan.n_threads]  # with many folds a step would run long
        for part in (folds[i :: plan.n_threads] for i in range(min(plan.n_threads, len(folds)))):
            starts = tuple(state.warm_start_supports(pair, fold) for fold in part)
            yield FoldsStep(self.name, g, (t,), tuple(part), (size,), starts=starts)

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Search some folds, and fit the supports found."""
        assert isinstance(step, FoldsStep)
        (size,), fits = step.sizes, list[Fits]()
        for fold, starts in zip(step.folds, step.starts, strict=True):
            if is_expired():
                break
            problem = problems.fold(fold, step.gamma)
            fits.append(problem.score([problem.solve(step.sizes, starts, 0, is_expired).by_size[size].support]))
        folds = np.array(step.folds[: len(fits)], dtype=np.int64)
        shown = (show_fits(step.gamma, step.taus, folds, Fits.join(fits)),) if fits else ()
        return Findings(step, shown, n_problems=len(fits), was_stopped=is_expired())

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the folds that were searched."""
        step = findings.step
        pair = step.gamma, step.taus[0]
        state.tried.is_searched[(*pair, list(step.folds))] = True
        state.tried.is_pair_searched[pair] = not len(state.unsearched_folds(pair))


class SupportFits:
    """Source of fits of the supports that folds show, or of the full-data support where a fold shows none."""

    name: ClassVar[str] = "support fits"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds in which some pairs (G, T) show no support, or a support that was not fitted."""
        shows = np.isfinite(state.cells.nominal)
        is_new = wanted[:, :, None] & ~(shows & (state.tried.fitted == state.cells.support)) & ~state.cells.final
        for fold in np.flatnonzero(is_new.any(axis=(0, 1))).tolist() if plan.uses(self.name) else ():
            here = is_new[:, :, fold]
            taus = tuple(np.flatnonzero(here.any(axis=0)).tolist())
            step = PairsStep(self.name, -1, taus, (fold,), wanted=here)
            for g in np.flatnonzero(here.any(axis=1)).tolist():
                numbers, full = state.cells.support[g, :, fold].tolist(), state.full_subsets(g)
                step.starts[g] = tuple(
                    state.cells.pool.supports[numbers[t]] if shows[g, t, fold] else full[t].support
                    for t in np.flatnonzero(here[g]).tolist()
                )  # fmt: skip
            yield step

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Fit the supports, gamma by gamma."""
        (fold,), bounds = step.folds, list[SubproblemBounds]()
        for g, taus, supports in step.targets():
            if is_expired():
                return Findings(step, tuple(bounds), n_problems=len(bounds), was_stopped=True)
            bounds.append(show_fits(g, taus, slice(fold, fold + 1), problems.fold(fold, g).score(supports)))
        return Findings(step, tuple(bounds), n_problems=len(bounds))

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the supports that were fitted."""
        for statement in findings.statements:
            assert isinstance(statement, SubproblemBounds)
            numbers = state.cells.pool.numbers(statement.supports)
            state.tried.fitted[statement.gamma, list(statement.taus), findings.step.folds[0]] = numbers
