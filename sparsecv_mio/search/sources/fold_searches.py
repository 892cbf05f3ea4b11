"""Local search for supports in all folds at once; columns that one fold found useful are tried in the other folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import IsExpired, Problems, SupportsFound
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import (
    ALL_FOLDS,
    Findings,
    FullDataBounds,
    PairsStep,
    Statement,
    Step,
    StepClock,
    SubproblemBounds,
)
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets


@dataclass(frozen=True, eq=False, kw_only=True)
class PassStep(PairsStep):
    """A pass over all folds.

    Attributes
    ----------
    n_passes : int
        Number of passes before this one.
    are_estimates : bool
        True if the full data is not searched, and objectives have no bounds.
    """

    n_passes: int
    are_estimates: bool = False


class FoldSearches:
    """Source of supports by passes over all folds: quick supports first, then better ones.

    The first pass runs to its end whatever share of a limit it takes, since supports of some folds give no answer.
    """

    name: ClassVar[str] = "fold searches"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray, are_estimates: bool = False) -> Iterator[Step]:
        """Yield the next pass over the gammas and sizes of some pairs (G, T)."""
        n_passes, grid = int(state.tried.fold_passes), state.context.grid
        sizes = grid.taus[wanted.any(axis=0)]
        if not plan.searches_all_folds or n_passes == DONE or not sizes.any():
            return
        seconds = state.context.deadline.seconds_until(plan.search_share) if n_passes else np.inf
        yield PassStep(
            self.name, -1, tuple(np.flatnonzero(wanted.any(axis=0)).tolist()), ALL_FOLDS, tuple(sizes.tolist()),
            n_threads=plan.n_threads, tries=DONE, wanted=wanted, n_passes=n_passes, seconds=seconds,
            are_estimates=are_estimates,
        )  # fmt: skip

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Run a pass."""
        assert isinstance(step, PassStep)
        gammas, clock = step.gammas, StepClock.from_step(step, is_expired)
        searched = problems.search_folds(
            gammas, step.taus, step.n_passes + 1, step.n_threads, clock, step.are_estimates
        )
        folds = [supports_found for supports_found in searched.found if supports_found.fold != ALL_ROWS]
        statements: list[Statement] = [
            FullDataBounds(g, _make_subsets(supports_found, at, step.sizes))
            for supports_found in searched.found if supports_found.fold == ALL_ROWS
            for at, g in enumerate(gammas)
        ]  # fmt: skip
        if folds:
            statements += [_make_bounds(folds, at, g, step.taus) for at, g in enumerate(gammas)]
        is_stopped = is_expired()
        return Findings(
            step, tuple(statements), 0, searched.n_problems, searched.is_finished and not is_stopped, is_stopped
        )  # fmt: skip

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the pass, and the pairs whose folds were searched."""
        step = findings.step
        assert isinstance(step, PassStep)
        state.tried.fold_passes[...] = DONE if findings.is_finished else step.n_passes + 1
        for g in step.gammas:
            for t in step.taus:
                state.tried.is_searched[g, t, :], state.tried.is_pair_searched[g, t] = True, True


class FoldSamples:
    """Source of supports by one search of a sample of very many folds; every fold tries the supports found."""

    name: ClassVar[str] = "fold samples"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the search over the gammas and sizes of some pairs (G, T), unless it was done."""
        taus = np.flatnonzero(wanted.any(axis=0)).tolist()
        sizes = state.context.grid.taus[taus]
        if (
            not plan.samples_folds
            or int(state.tried.fold_passes) == DONE
            or not sizes.any()
            or not state.has_supports.any()
        ):
            return
        gammas = np.flatnonzero(wanted.any(axis=1)).tolist()
        folds = np.flatnonzero(~state.cells.decided.all(axis=(0, 1))).tolist()
        starts = {g: tuple(state.full_support((g, t)) for t in taus) for g in gammas}
        until = state.context.deadline.seconds_until(plan.search_share)
        yield PairsStep(
            self.name, -1, tuple(taus), tuple(folds), tuple(sizes.tolist()), n_threads=plan.n_threads, tries=DONE,
            wanted=wanted, starts=starts, seconds=until if until > 0.0 else np.inf,
        )  # fmt: skip

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Search the sampled folds, and fit the supports found in all folds."""
        assert isinstance(step, PairsStep)
        gammas, is_over = step.gammas, StepClock.from_step(step, is_expired).has_expired
        supports = [step.starts[g] for g in gammas]
        statements, by_fold = list[Statement](), list[SupportsFound]()
        gamma_indices: tuple[int, ...] = ()
        for found in problems.sample_folds(gammas, step.taus, step.folds, supports, step.n_threads, is_over):
            if isinstance(found, SubproblemBounds):
                statements.append(found)
            else:
                gamma_indices = found[0]
                by_fold.append(found[1])
            if is_over():
                break
        for fold_supports in sorted(by_fold, key=lambda found: found.fold):
            statements += [_make_bounds([fold_supports], at, g, step.taus) for at, g in enumerate(gamma_indices)]
        return Findings(step, tuple(statements), n_problems=len(gammas) * (1 + len(by_fold)), was_stopped=is_expired())

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note that the folds were searched."""
        state.tried.fold_passes[...] = DONE


def _make_subsets(found: SupportsFound, at: int, sizes: Sequence[int]) -> BestSubsets:
    """Return the supports found in the full data at one of the gammas, without a proof of optimality."""
    uppers = found.objective_upper[at].tolist()
    subsets = {
        size: BestSubset.from_bounds(size, support, upper)
        for size, support, upper in zip(sizes, found.supports[at], uppers, strict=True)
    }
    return BestSubsets(subsets, 0, False)


def _make_bounds(folds: Sequence[SupportsFound], at: int, gamma: int, taus: tuple[int, ...]) -> SubproblemBounds:
    """Return the supports found in folds at one gamma, given by its place and index; inner folds may be missing."""
    first, last = folds[0].fold, folds[-1].fold
    numbers, supports = dict[bytes, int](), list[IntArray]()
    bounds = SubproblemBounds.unknown(gamma, taus, slice(first, last + 1), last + 1 - first, supports)
    for supports_found in folds:
        place = supports_found.fold - first
        for t, support in enumerate(supports_found.supports[at]):
            key = support.tobytes()
            if key not in numbers:
                numbers[key] = len(supports)
                supports.append(support)
            bounds.best[t, place] = numbers[key]
        bounds.held_out[:, place] = supports_found.held_out[at]
        bounds.objective[:, place] = supports_found.objective[at]
        bounds.objective_upper[:, place] = supports_found.objective_upper[at]
    return bounds
