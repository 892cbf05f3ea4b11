"""A tree of the full data that solves all folds at one gamma together, by removing rows from full-data fits.

The tree solves the subproblems of all sizes and folds at one gamma, or bounds their held-out errors. It costs as much
as a few trees of single folds, and is used if there are many folds (docs/theory.md, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.state.attempts import BOUNDED, SOLVED
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import ALL_FOLDS, Findings, Step


@dataclass(frozen=True, eq=False, kw_only=True)
class LeftOutStep(Step):
    """A step over all folds of a gamma.

    Attributes
    ----------
    supports : list of (int array, int)
        Supports of the full data, each with the index of its size.
    full_lower : (T,) array
        Lower bounds on the optima of the full data.
    is_open : (T, K) bool array
        Subproblems that are not solved.
    streams : bool
        True if statements are made while the writer takes them.
    """

    supports: list[tuple[IntArray, int]]
    full_lower: FloatArray
    is_open: BoolArray
    streams: bool


class LeftOutTrees:
    """Source of bounds by full-data fits with every fold held out."""

    name: ClassVar[str] = "left-out trees"

    def step(self, state: GridState, plan: Plan, gamma: int, taus: Sequence[int], node_limit: int) -> Step:
        """Return the step over some sizes of a gamma.

        Parameters
        ----------
        state : GridState
            State of the search.
        plan : Plan
            Plan of the search.
        gamma : int
            Index of gamma.
        taus : sequence of int
            Indices of the sizes.
        node_limit : int
            Number of nodes that one tree of the full data costs; 0 for bounds alone.
        """
        subsets = [state.full_subset((gamma, t)) for t in taus]
        by_size = ((subset.candidates or (subset.support,))[: plan.tried_supports] for subset in subsets)
        return LeftOutStep(
            self.name, gamma, tuple(taus), ALL_FOLDS, tuple(int(state.context.grid.taus[t]) for t in taus),
            node_limit=node_limit, n_threads=plan.n_threads,
            supports=[(support, t) for t, tried in zip(taus, by_size, strict=True) for support in tried],
            is_open=~state.cells.final[gamma] if node_limit else np.zeros((0, 0), dtype=bool),
            full_lower=np.array([subset.lower for subset in state.full_subsets(gamma)]), streams=plan.streams_folds,
        )  # fmt: skip

    def steps(self, state: GridState, plan: Plan, wanted: np.ndarray, node_limit: int) -> Iterator[Step]:
        """Yield a step for each gamma of some pairs (G, T), the largest gamma first."""
        for g in np.flatnonzero(wanted.any(axis=1))[::-1].tolist():
            yield self.step(state, plan, g, np.flatnonzero(wanted[g]).tolist(), node_limit)

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Hold every fold out of the supports, and solve the subproblems that one tree can solve."""
        assert isinstance(step, LeftOutStep)
        problem = problems.full(step.gamma)
        supports, taus = [support for support, _ in step.supports], [t for _, t in step.supports]
        if not step.node_limit:
            bounds = None if is_expired() else problem.bound_left_out(supports, taus, step.full_lower)
            return Findings(step, () if bounds is None else bounds, n_problems=1, is_finished=bounds is not None)
        solved = problem.solve_left_out(supports, taus, step.is_open, step.node_limit, is_expired)
        return Findings(step, solved if step.streams else tuple(solved), n_problems=1, was_stopped=is_expired())

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the work on the pairs; nothing more can be done if fits of the full data cannot be used."""
        step, stage = findings.step, state.tried.list_stage
        done = SOLVED if step.node_limit or not findings.is_finished else BOUNDED
        stage[step.gamma, list(step.taus)] = np.maximum(stage[step.gamma, list(step.taus)], done)
