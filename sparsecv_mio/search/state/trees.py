"""Who grows the trees of single folds: this process, unless a caller has somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.formulation.backends.native.cell import PathResult
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.state.deadline import Deadline


class Trees(Protocol):
    """Grows trees. Safe to use from several threads."""

    @property
    def at_once(self) -> int:
        """How many of them it grows at once."""

    def grow(
        self, problem: SparseProblem, taus: Sequence[int], starts: Sequence[IntArray], effort: int, deadline: Deadline
    ) -> PathResult:
        """Solve some tau of a fold and gamma, as `solve_path` would here.

        Parameters
        ----------
        problem : SparseProblem
            Training rows of the fold.
        taus : sequence of int
        starts : sequence of int arrays
            Supports to try first.
        effort : int
            Nodes that one tau may cost.
        deadline : Deadline
        """


class TreesHere:
    """Grows trees in the thread that asks."""

    at_once = 1

    def grow(
        self, problem: SparseProblem, taus: Sequence[int], starts: Sequence[IntArray], effort: int, deadline: Deadline
    ) -> PathResult:
        """Solve some tau of a fold and gamma.

        Parameters
        ----------
        problem, taus, starts, effort, deadline
            As of `Trees.grow`.
        """
        from sparsecv_mio.formulation.backends.native.path import solve_path  # kernels: not before a search begins

        return solve_path(problem, taus, starts=starts, effort=effort, expired=deadline.expired)


HERE = TreesHere()
