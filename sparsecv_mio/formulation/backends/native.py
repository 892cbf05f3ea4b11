"""The solver backend `native`: the branch-and-bound trees of this package."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.standard import ForcedColumns
from sparsecv_mio.formulation.backends.contract import Answer, Availability, Backend, Capabilities
from sparsecv_mio.formulation.outcome import KnownBounds, Limits, Stop
from sparsecv_mio.formulation.task import ModelTask, model_task, refit_support, unbounded_task
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.moment_fits import Fit
from sparsecv_mio.problem.problem import SparseProblem, strip_forced_columns
from sparsecv_mio.thresholds import MANY
from sparsecv_mio.trees.allowed_supports import complete_support
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubsets
from sparsecv_mio.version import __version__


class NativeBackend(Backend):
    """Path, perspective and restricted trees of this package, whose bounds include their own rounding."""

    name: ClassVar[str] = "native"
    capabilities: ClassVar[Capabilities] = Capabilities(
        formulations={"tree": frozenset({"force", "together", "count", "at_most", "parents", "sign", "box"})},
        by_rows={"tree": frozenset({"force", "count", "sign", "box"})},
        limits=frozenset({"seconds", "nodes", "gap"}),
    )
    reduces: ClassVar[bool] = False  # its arithmetic is accurate enough without elimination

    def available(self) -> Availability:
        """Return whether numba is installed."""
        try:
            numba = version("numba")
        except PackageNotFoundError:
            return Availability(False, "numba is not installed", hint="pip install numba")
        return Availability(True, "", f"{__version__} (numba {numba})", "MIT, no limits")

    def _find_first_fit(
        self, problem: SparseProblem | GlmProblem, tau: int, constraints: SideConstraints
    ) -> Fit | None:
        """Leave the first support for logistic loss to the trees, which find better ones sooner."""
        if isinstance(problem, SparseProblem):
            return super()._find_first_fit(problem, tau, constraints)
        inside = tuple(sorted(set(constraints.forced_in)))
        return refit_support(problem, inside, constraints) if constraints.allows(inside, tau) else None

    def _task(
        self, problem: SparseProblem | GlmProblem, tau: int, constraints: SideConstraints, start: Fit,
        advice: KnownBounds,
    ) -> ModelTask:  # fmt: skip
        """Return the task; with many columns, skip steps that cost more than the trees and do not help them."""
        if isinstance(problem, SparseProblem) and problem.q <= MANY:
            return model_task(problem, tau, constraints, start, advice)
        return unbounded_task(problem, tau, constraints, start, advice)

    @staticmethod
    def _complete_support(task: ModelTask, support: IntArray) -> tuple[int, ...]:
        """Return a support with the columns that it requires, if signs hold these at zero."""
        if task.constraints.has_coefficient_bounds:
            signed = tuple(j for j, _, _ in task.constraints.box)
            return complete_support(task.q, task.tau, task.constraints, support, signed)
        return tuple(int(j) for j in np.sort(support))

    def _run(self, task: ModelTask, formulation: str, limits: Limits) -> Answer:
        from sparsecv_mio.trees.every_size import PATH_TREE_ALONE, solve_path

        classes = not isinstance(task.problem, SparseProblem)
        _compile_classes() if classes else _load_kernels(task.q > PATH_TREE_ALONE)
        begin = time.perf_counter()

        def has_expired() -> bool:
            return limits.is_cancelled or time.perf_counter() - begin > limits.seconds

        starts = [np.asarray(task.start.support, dtype=np.int64)]
        node_limit = int(limits.nodes) if math.isfinite(limits.nodes) else UNLIMITED
        if classes:
            result = _solve_glm(task, starts, node_limit, has_expired)
        elif task.constraints.needs == {"force"}:
            result = _solve_with_forced_columns(task, starts, node_limit, has_expired)
        elif task.constraints.needs:
            from sparsecv_mio.trees.restricted_tree import solve_with_constraints

            result = solve_with_constraints(
                task.squares,
                [task.tau],
                task.constraints,
                warm_starts=starts,
                node_limit=node_limit,
                is_expired=has_expired,
            )
        else:
            result = solve_path(
                task.squares, [task.tau], warm_starts=starts, node_limit=node_limit, is_expired=has_expired
            )
        seconds = time.perf_counter() - begin
        cell = result.by_size[task.tau]
        if cell.complete:
            stop, raw = Stop.OPTIMAL, "complete"
        elif limits.is_cancelled:
            stop, raw = Stop.INTERRUPTED, "cancelled"
        elif has_expired():
            stop, raw = Stop.TIME, "time"
        elif result.nodes >= limits.nodes:
            stop, raw = Stop.NODES, "nodes"
        else:
            stop, raw = Stop.GAP, "too many ties, or columns that are collinear up to rounding"
        return Answer(
            stop=stop,
            bound=task.scaled.value(cell.lower),
            supports=(self._complete_support(task, cell.support),),
            nodes=result.nodes,
            raw_status=raw,
            seconds=seconds,
            certified=True,
            margin=cell.margin,
        )


def _solve_with_forced_columns(
    task: ModelTask, starts: list[IntArray], node_limit: int, is_expired: Callable[[], bool]
) -> BestSubsets:
    """Solve on the columns that are not forced out, after eliminating those in every support (adjusted ones count)."""
    from sparsecv_mio.trees.every_size import solve_path

    choice = ForcedColumns.from_positions(task.q, np.array(task.constraints.forced_out, dtype=np.int64))
    keep = choice.others
    inside = np.searchsorted(keep, sorted(task.constraints.forced_in))
    smaller = replace(task.squares.select_columns(keep), forced=inside.astype(np.int64))
    size = task.constraints.columns(task.tau)
    result = solve_path(
        smaller, [size], warm_starts=strip_forced_columns(choice, starts), node_limit=node_limit, is_expired=is_expired
    )
    cell = result.by_size[size]
    cell_of_task = replace(
        cell,
        tau=task.tau,
        support=keep[cell.support],
        candidates=tuple(keep[candidate] for candidate in cell.candidates),
    )
    return replace(result, by_size={task.tau: cell_of_task})


def _solve_glm(task: ModelTask, starts: list[IntArray], node_limit: int, is_expired: Callable[[], bool]) -> BestSubsets:
    """Solve with logistic loss on the columns that are not forced out."""
    from sparsecv_mio.trees.glm_subsets import GlmSubsets

    assert not isinstance(task.problem, SparseProblem)
    keep = np.setdiff1d(np.arange(task.q), task.constraints.forced_out)
    inside = np.searchsorted(keep, sorted(set(task.constraints.forced_in))).astype(np.int64)
    of_columns = {j: term.columns for term in task.constraints.terms for j in term.columns if term.count}
    adjusted = {j for term in task.constraints.terms for j in term.columns if not term.count}
    terms = dict.fromkeys(of_columns.get(j, (j,)) for j in keep.tolist() if j not in adjusted)
    groups = tuple(tuple(np.searchsorted(keep, term).tolist()) for term in terms) if of_columns else ()
    result = GlmSubsets(task.problem.select_columns(keep), inside, groups).solve(
        [task.tau],
        warm_starts=[np.searchsorted(keep, start) for start in starts],
        node_limit=node_limit,
        is_expired=is_expired,
    )
    return result.map_to_columns(keep)


@lru_cache(maxsize=1)
def _compile_classes() -> None:
    """Load or compile the kernels of logistic loss."""
    from sparsecv_mio.trees.glm_subsets import GlmSubsets

    X = np.linspace(-1.0, 1.0, 40).reshape(10, 4) ** np.arange(1.0, 5.0)
    y = np.where(np.arange(10) % 3 > 0, 1.0, -1.0)
    GlmSubsets(GlmProblem(X, y, np.ones(10), np.ones(4), 0.1)).solve([2])


@lru_cache(maxsize=2)
def _load_kernels(perspective: bool) -> None:
    """Load or compile the kernels on a small problem, so that a time limit covers solving only.

    One node is not enough for the path tree of the small problem, so the perspective tree is called, too, if requested.
    """
    from sparsecv_mio.trees.every_size import PATH_TREE_ALONE, solve_path

    q = 6
    gram = np.full((q, q), 0.5) + 0.5 * np.eye(q)
    toy = SparseProblem(gram, np.linspace(1.0, 2.0, q), 9.0, np.ones(q), 0.1, 20, np.zeros(q), 0.0)
    solve_path(toy, [2, 3], warm_starts=[np.arange(2)], node_limit=1 if perspective else 1 << PATH_TREE_ALONE)
