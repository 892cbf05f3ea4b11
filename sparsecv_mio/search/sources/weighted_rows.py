"""Bounds from the training rows of a fold together with its weighted held-out rows.

Let V be a lower bound on the objective that includes the held-out rows with a weight t, and u an upper bound on the
smallest training objective. Then the held-out loss of the optimum is at least (V - u) / t
(:mod:`sparsecv_mio.bounds.more_weight`; docs/theory/glm.md, section 14).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, HeldOutBounds, PairsStep, Step, StepClock, WeightedBounds


class WeightedRelaxations:
    """Source of relaxations of training rows with weighted held-out rows of a fold, at every weight and gamma."""

    name: ClassVar[str] = "weighted relaxations"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds that were not relaxed."""
        if plan.weighs_held_out and wanted.any():
            taus = tuple(range(wanted.shape[1]))
            for fold in range(state.context.folds.k):
                if fold not in state.weighted:
                    yield Step(self.name, -1, taus, (fold,))

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Relax the fold of a step."""
        (fold,) = step.folds
        lower = problems.fold(fold, 0).bound_weighted(is_expired)
        return Findings(step, (WeightedBounds(fold, lower),), n_problems=1)

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note nothing, because the state stores the bounds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightedStep(PairsStep):
    """A step over a fold at several pairs; arrays are (G, T).

    Attributes
    ----------
    objective_upper, held_out, lower : arrays
        Upper bounds on objectives, held-out losses shown, and lower bounds on held-out losses.
    is_full_solved : bool array
        Pairs whose best subset of the full data is known.
    loss_cutoffs : array
        Sufficient lower bounds on held-out losses, for trees.
    """

    objective_upper: FloatArray
    held_out: FloatArray
    lower: FloatArray
    is_full_solved: BoolArray
    loss_cutoffs: FloatArray


class WeightedTrees:
    """Source of held-out-weighted bounds of single folds: relaxations of all pairs once, trees of pairs to raise."""

    name: ClassVar[str] = "weighted trees"

    def relaxations(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds that were not relaxed, each with its open pairs among those that are wanted (G, T)."""
        for fold in np.flatnonzero(~state.tried.is_weighted).tolist() if plan.grows_weighted_trees else ():
            here = wanted & ~state.cells.final[:, :, fold]
            if here.any():
                yield self._step(state, fold, here, state.cells.lower[:, :, fold].copy())

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray, aims: FloatArray) -> Iterator[Step]:
        """Yield trees of the folds of some pairs (G, T) whose sums of lower bounds are to rise to `aims`.

        The rise requested of a pair is shared among its folds in proportion to the distance of each lower bound from
        the shown held-out loss. Folds come first that may rise most for the nodes of their next trees. A single fold
        that no model fits may have most of that distance.
        """
        if not plan.grows_weighted_trees:
            return
        tries, sums = state.tried.weighted_tries, state.bounds().lower
        rise = np.where(wanted, np.maximum(aims - sums, 0.0), 0.0)
        shown = np.where(np.isfinite(state.cells.nominal), state.cells.nominal, 0.0)
        missing = np.where(state.cells.final, 0.0, np.maximum(shown - state.cells.lower, 0.0))
        is_worth = (missing > plan.least_missing * rise[:, :, None]) & (rise > 0.0)[:, :, None]
        is_worth &= tries < plan.max_weighted_tries
        share = rise / np.maximum(missing.sum(axis=2), np.maximum(rise, np.finfo(float).tiny))
        shares = np.where(is_worth, share[:, :, None] * missing, 0.0)
        promise = (np.where(is_worth, missing, 0.0) / np.float64(plan.node_growth) ** tries).sum(axis=(0, 1))
        for fold in np.argsort(-promise, kind="stable").tolist():
            here = is_worth[:, :, fold]
            if promise[fold] > plan.near_best * promise.max() and here.any():
                promised = float((shares[:, :, fold] / np.where(rise > 0.0, rise, 1.0)).sum())
                nodes = plan.first_weighted_nodes * (np.float64(plan.node_growth) ** tries[:, :, fold][here]).sum()
                step = self._step(state, fold, here, state.cells.lower[:, :, fold] + shares[:, :, fold])
                yield replace(step, node_limit=plan.first_weighted_nodes, promised=promised, work=float(nodes))

    def _step(self, state: GridState, fold: int, wanted: BoolArray, cutoffs: FloatArray) -> Step:
        taus = tuple(np.flatnonzero(wanted.any(axis=0)).tolist())
        return WeightedStep(
            self.name, -1, taus, (fold,), tuple(state.context.grid.taus[list(taus)].tolist()), wanted=wanted,
            objective_upper=state.objective_upper[:, :, fold].copy(), held_out=state.cells.nominal[:, :, fold].copy(),
            lower=state.cells.lower[:, :, fold].copy(), is_full_solved=state.all_rows.solved_pairs(),
            loss_cutoffs=cutoffs,
        )  # fmt: skip

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Relax all pairs, or grow a tree at each pair."""
        assert isinstance(step, WeightedStep)
        (fold,), n_nodes = step.folds, 0
        problem, known_bounds = problems.fold(fold, 0), (step.objective_upper, step.held_out)
        is_over = StepClock.from_step(step, is_expired).has_expired
        if not step.node_limit:
            lower = problem.relax_weighted(step.wanted, *known_bounds, is_over)
        else:
            targets = {
                (g, t): (float(step.loss_cutoffs[g, t]), float(0.5 * (step.loss_cutoffs[g, t] + step.lower[g, t])))
                for g, t in np.argwhere(step.wanted).tolist()
            }
            lower, n_nodes = problem.branch_weighted(
                targets, step.node_limit, *known_bounds, step.is_full_solved, is_over
            )
        n_problems = len(step.gammas)
        return Findings(step, (HeldOutBounds(fold, lower),), n_nodes, n_problems, was_stopped=is_expired())

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the fold that was relaxed, or the pairs whose trees rose by less than requested."""
        step, (fold,) = findings.step, findings.step.folds
        if not step.node_limit:
            state.tried.is_weighted[fold] = True
            return
        assert isinstance(step, WeightedStep)
        missed = step.wanted & (state.cells.lower[:, :, fold] <= 0.5 * (step.loss_cutoffs + step.lower))
        state.tried.weighted_tries[:, :, fold][missed] = np.minimum(
            state.tried.weighted_tries[:, :, fold][missed] + 1, DONE
        )
