"""A search as explicit state: rounds of growing effort over all cells until the certificate closes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.formulation.backends.native.path import SMALL, PathCell, PathResult, solve_path
from sparsecv_mio.problem.accumulate import Moments, row_moments
from sparsecv_mio.search import one_se
from sparsecv_mio.search.accelerators import Accelerators
from sparsecv_mio.search.heuristics.estimates import show_own_supports
from sparsecv_mio.search.observers.checkpoint import below, key_of, prefixed
from sparsecv_mio.search.observers.progress import Progress, progress_of
from sparsecv_mio.search.observers.trace import head_of, moment_of
from sparsecv_mio.search.options import Grid
from sparsecv_mio.search.parallel import run_folds
from sparsecv_mio.search.shared_tree.engines import root_node, solve_all_folds
from sparsecv_mio.search.shared_tree.leave_out import LeaveOut
from sparsecv_mio.search.shared_tree.root_node import RootNode
from sparsecv_mio.search.state.cells import CellTable, PairBounds, State, pair_bounds
from sparsecv_mio.search.state.context import AllRows, Context
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.stored import check_like, counts_of, within
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver
from sparsecv_mio.words import Engine

FIRST_EFFORT, EFFORT_GROWTH = 1 << 13, 8
MANY_CELLS, REPORT_SECONDS = 100_000, 0.2  # summing so many cells after every fold would cost more than the folds
FULL_SHARE = 0.1  # of the time limit, for the first pass on all rows
FIRST_ANSWERS_SHARE = 0.4  # of the time limit, until when the folds may search for first supports
GRACE = 0.2  # seconds after the limit in which the folds may


class CrossValidation:
    """A run as explicit state: `begin`, then `round` until `finished`; every moment holds a valid certificate.

    A round gives every open cell the same effort, counted in nodes; the next one eight times as much. With a gap
    above 0, pairs whose certified lower bound already exceeds the best upper bound by the gap are left as they are.
    `at_safe_point` is called whenever the state may be stored: no cell is half-written then.
    """

    name = "rounds"
    row_wise = False  # whether no matrix of columns by columns is formed

    def __init__(
        self,
        data: StandardData,
        folds: FoldPlan,
        grid: Grid,
        gap: float,
        clock: Deadline,
        threads: int,
        progress: Callable[[Progress], None] | None,
        engine: Engine = Engine.AUTO,
    ) -> None:
        self.data, self.folds, self.grid, self.gap, self.engine = data, folds, grid, gap, engine
        self.oracles = Accelerators(self)
        self.decided_by: dict[str, int] = {}
        self.clock, self.threads, self.progress = clock, threads, progress
        self.cells = CellTable.empty(len(grid.gammas), len(grid.taus), folds.k)
        self.full: list[PathResult] = []
        self.all_rows: Moments | None = None
        self.nodes = 0
        self.effort = FIRST_EFFORT
        self.passed = np.zeros(len(grid.gammas), dtype=bool)  # gammas that one tree for all folds has seen
        self.in_round: NDArray[np.bool_] | None = None  # cells of the present round
        self.rest: list[int] = []  # folds it has yet to visit
        self._leave_out: LeaveOut | None = None
        self.roots: dict[int, RootNode | None] = {}
        self.searched = False  # whether the folds searched for supports by themselves
        self.one_se = False  # whether the one-standard-error rule will be applied
        self.at_safe_point: Callable[[], None] | None = None
        self._reported = -np.inf
        self.watch: Callable[[], None] | None = None  # called with every report of progress

    @property
    def context(self) -> Context:
        """What is asked, of which data, and by when."""
        return Context(self.data, self.folds, self.grid, self.gap, self.clock, self.threads)

    @property
    def best_by_gamma(self) -> AllRows:
        """The best supports found on all rows."""
        made = AllRows(self.context)
        made.best = self.full
        return made

    def key(self) -> dict[str, Any]:
        """What must be the same for the run to be carried on."""
        return key_of(self.data, self.folds, self.grid, self.name)

    def archive(self) -> State:
        """All that a checkpoint holds of the run."""
        return prefixed("cells", self.cells.archive()) | prefixed("run", self.state())

    def carry_on(self, state: State) -> None:
        """Go to where `state` was archived; instead of `begin`."""
        self.prepare()
        where = below("run", state)
        check_like(where, self.state(), ("in_round", "rest", "decided_by"))
        self.cells.check(below("cells", state), self.data.q)
        self._check_round(where)
        self.cells.fill(below("cells", state))
        self.restore(where)

    def _check_round(self, where: State) -> None:
        within(where, "rest", 0, self.folds.k - 1)
        within(where, "effort", 0, np.iinfo(np.int64).max)
        if where["in_round"].size and where["in_round"].shape != self.cells.final.shape:
            raise CorruptStore("its array in_round is not of the grid's shape")
        counts_of(where["decided_by"])

    def state(self) -> dict[str, NDArray[Any]]:
        """Where the run stands, beside the cells."""
        wanted = self.in_round if self.in_round is not None else np.zeros((0, 0, 0), dtype=bool)
        return {
            "nodes": np.array(self.nodes),
            "effort": np.array(self.effort),
            "passed": self.passed,
            "in_round": wanted,
            "rest": np.array(self.rest, dtype=np.int64),
            "decided_by": np.array(json.dumps(self.decided_by)),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go to where `state` was taken."""
        self.nodes, self.effort = int(state["nodes"]), int(state["effort"])
        self.passed[:] = state["passed"]
        self.in_round = state["in_round"] if state["in_round"].size else None
        self.rest = state["rest"].tolist()
        self.decided_by = counts_of(state["decided_by"])

    def prepare(self) -> None:
        """What a resumed run computes again."""
        self.begin()

    def _safe(self) -> None:
        if self.at_safe_point is not None and not self.clock.expired():
            self.at_safe_point()

    def begin(self) -> None:
        """Best subsets on all rows, for every gamma: first supports for the folds and the training-loss bound."""
        self.all_rows = row_moments(self.data, slice(0, self.data.n))
        problem = self.all_rows.problem(self.data, 1.0)
        starts: list[NDArray[np.int64]] = []
        found: dict[int, PathResult] = {}

        def first_pass_over() -> bool:
            return self.clock.share_spent(FULL_SHARE)

        for g in np.argsort(-self.grid.gammas, kind="stable").tolist():
            if found and self.clock.expired():
                break
            here = problem.with_gamma(float(self.grid.gammas[g]))
            found[g] = solve_path(
                here, self.grid.taus.tolist(), starts=starts, effort=self.effort, expired=first_pass_over
            )
            starts = [cell.support for cell in found[g].cells.values()]
            self.nodes += found[g].nodes
        self.full = for_every_gamma(found, len(self.grid.gammas))
        self.show_first_answers()

    def all_folds(self) -> None:
        """Decide what one tree can decide for all folds at once; the rest is left to the rounds."""
        assert self.all_rows is not None
        if self.engine is Engine.PER_FOLD:
            return
        for g in self.oracles.gamma_order(self.grid.gammas):
            if self.clock.expired():
                break
            if self.passed[g]:
                continue
            nodes, decided = solve_all_folds(self.leave_out, g, self.engine)
            self.nodes += nodes
            for name, count in decided.items():
                self.decided_by[name] = self.decided_by.get(name, 0) + count
            self.passed[g] = True
            self._report()
            self._safe()

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """Best subset on all rows at a pair, solved on where the first pass left it open."""
        cell = self.full[g].cells[tau]
        if cell.complete or self.clock.expired() or self.all_rows is None:
            return cell
        problem = self.all_rows.problem(self.data, float(self.grid.gammas[g]))
        again = solve_path(
            problem, [tau], starts=[cell.support], effort=self.effort, expired=self.clock.expired
        )
        self.nodes += again.nodes
        return again.cells[tau]

    @property
    def leave_out(self) -> LeaveOut:
        """Supports of all rows, scored in every fold."""
        if self._leave_out is None:
            all_rows = self.best_by_gamma
            all_rows._moments = self.all_rows
            self._leave_out = LeaveOut(self.context, all_rows, self.cells, self.oracles.named_in_any_fold)
        return self._leave_out

    def root(self, g: int) -> RootNode | None:
        """The fit on all rows that trees for all folds start from; None where they are no use."""
        if g not in self.roots:
            self.roots[g] = root_node(self.leave_out, g, self.engine)
        return self.roots[g]

    def bounds(self) -> PairBounds:
        """Return the sums over folds."""
        return pair_bounds(self.cells, self.grid.gammas, self.grid.taus)

    def wanted(self) -> NDArray[np.bool_]:
        """(G, T, K): the cells worth more work."""
        open_cells = ~self.cells.final
        if self.gap > 0.0:
            now = self.bounds()
            if np.isfinite(now.ceiling):
                hopeless = now.lower >= now.ceiling * (1.0 - self.gap)
                hopeless[now.best] = False
                open_cells &= ~hopeless[:, :, None]
        return open_cells

    def engines(self) -> str:
        """Which engine decided how many cells, in words."""
        alone = int(self.cells.decided.sum()) - sum(self.decided_by.values())
        parts = [f"{name} {count}" for name, count in self.decided_by.items()]
        return ", ".join(parts + [f"per-fold {alone}"]) if parts else "per-fold"

    def solved_by_branching(self) -> int:
        """Cells (gamma, tau, fold) that a tree decided."""
        return int((self.cells.decided & self.cells.branched).sum())

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, or nothing is left to do."""
        if self.rest and not self.clock.expired():
            return False
        if self.gap > 0.0 and self.bounds().proved(self.gap):
            return True
        return self.clock.expired() or not self.wanted().any()

    def to_end(self) -> None:
        """From what `begin` or `carry_on` left to the end."""
        self.all_folds()
        while not self.finished:
            self.step()
        self.decide_rest()
        self.show_estimates()

    def show_first_answers(self) -> None:
        """Where trees are dear, a support of every cell before anything is proved: an estimate, and a start."""
        if self.data.q > SMALL:
            self.searched = True
            show_own_supports(self, lambda: self.clock.share_spent(FIRST_ANSWERS_SHARE))

    def show_estimates(self) -> None:
        """Have the folds with open cells search for supports by themselves, unless they did before."""
        until = time.monotonic() + GRACE

        def over() -> bool:
            return self.clock.expired() and time.monotonic() > until

        if not self.searched:
            self.searched = True
            show_own_supports(self, over)

    @property
    def exhausted(self) -> bool:
        """Whether no more work may be done."""
        return self.clock.expired()

    @property
    def open(self) -> NDArray[np.bool_]:
        """(G, T, K): cells that more work could decide."""
        return ~self.cells.final

    def decide_rest(self) -> None:
        """What a proved answer leaves open and is asked for all the same: a gap of 0, the one-standard-error rule."""
        while not self.exhausted:
            if self.gap == 0.0:
                pairs = np.asarray(self.open.any(axis=2))
            elif self.one_se:
                pairs = self.rule_needs()
            else:
                return
            if not pairs.any():
                return
            self.work_on(pairs)

    def rule_needs(self) -> NDArray[np.bool_]:
        """(G, T): the pairs to be decided next for the one-standard-error rule to be sure."""
        now = self.bounds()
        rule = one_se.apply(now, now.best, self.grid.gammas, self.grid.taus, self.folds.sizes, self.data.y_unit**2)
        return one_se.next_to_decide(rule.missing & self.open.any(axis=2), now)

    def work_on(self, pairs: NDArray[np.bool_]) -> None:
        """A portion of work on the open cells of some pairs (G, T)."""
        self.in_round = self.open & pairs[:, :, None]
        self.rest = np.flatnonzero(self.in_round.any(axis=(0, 1))).tolist()
        self.round()

    def step(self) -> None:
        """One round."""
        self.round()

    def round(self) -> None:
        """Give every cell that is worth it the effort of this round, folds on threads."""
        if self.in_round is None:
            self.in_round = self.wanted()
            self.rest = np.flatnonzero(self.in_round.any(axis=(0, 1))).tolist()
        wanted = self.in_round
        solver = FoldSolver(self.context, self.cells, self.best_by_gamma, self.oracles)
        while self.rest:
            # moments are made per visit: parts only where somebody stores the state between them
            size = max(8 * self.threads, self.folds.k // 16) if self.at_safe_point is not None else len(self.rest)
            which = self.rest[:size]
            for nodes in run_folds(
                self.oracles.training_moments(which),
                lambda fold, moments: solver.run(fold, moments, wanted[:, :, fold], self.effort),
                min(self.threads, len(which)),
            ):
                self.nodes += nodes
                self._report()
                if self.clock.expired():
                    break
            if self.clock.expired():  # which folds were worked on is not known: the next round asks for what is open
                self.rest = []
                break
            del self.rest[:size]
            if self.rest:
                self._safe()
        self.in_round = None
        self.effort *= EFFORT_GROWTH
        self._safe()

    def head(self) -> dict[str, Any]:
        """The first line of a trace."""
        return head_of(self)

    def moment(self) -> dict[str, Any]:
        """A line of a trace."""
        return moment_of(self)

    @property
    def per_row(self) -> float:
        """Factor from sums of h_j in standard units to CV errors per row in units of the file."""
        return self.data.y_unit**2 / max(int(self.folds.starts[-1]), 1)

    def progress_now(self) -> Progress:
        """How far the run is. O(G T K)."""
        return progress_of(self)

    def _report(self) -> None:
        if self.watch is not None:
            self.watch()
        many = self.cells.final.size > MANY_CELLS
        if self.progress is None or (many and time.monotonic() < self._reported + REPORT_SECONDS):
            return
        self._reported = time.monotonic()
        self.progress(self.progress_now())


def for_every_gamma(found: dict[int, PathResult], gammas: int) -> list[PathResult]:
    """Results on all rows by gamma; one that a limit left out gets the supports of another, of which nothing is known.

    Empty where there is none at all.
    """
    if not found:
        return []
    near = {g: min(found, key=lambda other: abs(other - g)) for g in range(gammas)}
    return [found[g] if g in found else _supports_alone(found[near[g]]) for g in range(gammas)]


def _supports_alone(result: PathResult) -> PathResult:
    cells = {
        tau: PathCell(tau, cell.support, 0.0, np.inf, (), (), 0.0, complete=False, branched=False)
        for tau, cell in result.cells.items()
    }
    return PathResult(cells, 0, False)
