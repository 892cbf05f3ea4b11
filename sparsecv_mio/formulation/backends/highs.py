"""HiGHS backend: outer approximation by tangents, with one mixed-integer linear program in each round.

HiGHS supports neither cones nor lazy cuts, so every parabola of the model is replaced by tangents. Tangents are first
added to the linear relaxation, until its value agrees with that of the perspective relaxation. Then tangents are added
to mixed-integer programs, until the gap is closed. Tangents are never above the parabola, so the dual bound of every
round is valid for the original problem.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.formulation.backends import contract
from sparsecv_mio.formulation.outcome import Limits, Stop
from sparsecv_mio.formulation.task import ModelTask, require_finite

if TYPE_CHECKING:
    from sparsecv_mio.formulation.models import Cuts, LoweredProblem, ModelColumns, Tangents


CUT_TOLERANCE = 1e-10
ROW_TOLERANCE = 1e-9  # absolute feasibility tolerance of HiGHS, in scaled units
POINT_TOLERANCE = math.sqrt(
    ROW_TOLERANCE
)  # distance within which a tangent is exact to ROW_TOLERANCE, so that another one adds nothing
MIN_RISE = 1e-3  # share of the target gap by which a bound must rise for a round to count as progress
EARLY = 0.03
STDOUT = 1  # file descriptor
REFUSED_VERSIONS = ("1.14.0",)  # the same list as in pyproject.toml
RESIDUAL_SEEDS, SLOPE_SEEDS = 16, 4  # measured on autompg: four times fewer seconds than without


class HighsBackend(contract.Backend):
    """HiGHS through highspy, with the model compiled from Pyomo."""

    name: ClassVar[str] = "highs"
    capabilities: ClassVar[contract.Capabilities] = contract.Capabilities(
        formulations={"outer": contract.EVERY_KIND}, logistic={"outer": contract.ON_SUPPORTS}
    )

    def available(self) -> contract.Availability:
        """Return whether highspy is installed and starts."""
        return contract.probe("highspy", _describe)

    def _run(self, task: ModelTask, formulation: str, limits: Limits) -> contract.Answer:
        from sparsecv_mio.formulation.models import OuterApproximation, Tangents, lower_model

        require_finite(task.lo, task.hi, "highs")
        model = OuterApproximation(task)
        arrays = lower_model(model)
        poll = contract.Poll(limits)
        cuts = Tangents(task, model, arrays, CUT_TOLERANCE)
        run = _OuterApproximation(task, limits, _load(arrays, limits, poll), cuts, poll)
        self.set_options(run.solver, limits.options)
        run.start = arrays.vector(model.point(task, task.start_u, task.start_z))
        with _fresh_scheduler():
            run.clock = time.perf_counter()
            return run.solve()

    def _blank(self) -> Any:
        import highspy

        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        return solver

    def _set(self, solver: Any, name: str, value: contract.OptionValue) -> contract.OptionValue:
        import highspy

        if solver.getOptionValue(name)[0] != highspy.HighsStatus.kOk:
            raise ValueError(f"unknown option {name!r}")
        if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise ValueError(f"{value!r} is not a value of {name!r}")
        taken: contract.OptionValue = solver.getOptionValue(name)[1]
        return taken


@contextmanager
def _fresh_scheduler() -> Iterator[None]:
    """Give the calling thread a new scheduler for the duration of a block.

    Each thread has one scheduler, which keeps the number of threads of its first solve and refuses any other number.
    That solve may belong to another caller, before or after this one, so the scheduler is reset at both ends.
    """
    import highspy

    reset = getattr(highspy.Highs, "resetThreadScheduler", highspy.Highs.resetGlobalScheduler)  # named so from 1.16 on
    reset(True)
    try:
        yield
    finally:
        reset(True)


@dataclass
class _OuterApproximation:
    """State of one outer approximation: a linear phase, then an integer phase.

    `progress` stores the lower and the upper bound at the last change of either, `points` the points found since.
    """

    task: ModelTask
    limits: Limits
    solver: Any
    tangents: Tangents
    poll: contract.Poll
    start: FloatArray = field(default_factory=lambda: np.zeros(0))
    clock: float = 0.0
    bound: float = -math.inf
    nodes: int = 0
    cuts: int = 0
    supports: dict[tuple[int, ...], None] = field(default_factory=dict)
    upper: float = math.inf
    rounds: int = 0
    raw: str = "not started"
    progress: tuple[float, float] = (-math.inf, math.inf)
    points: list[FloatArray] = field(default_factory=list)

    @property
    def positions(self) -> ModelColumns:
        """Positions of the variables."""
        return self.tangents.at

    def solve(self) -> contract.Answer:
        """Add cuts to the linear relaxation, then to integer programs, until the gap closes or a limit is reached."""
        self.upper = self.task.scaled.value(self.task.start.objective)
        self._add_tangents(self.start[self.positions.r], self.start[self.positions.u], np.ones(self.task.q))
        for u in self.task.points:
            self._add_tangents(self.task.scaled.factor @ u, u, np.ones(self.task.q))
        self._seed()
        stop = self._linear_phase()
        if stop is None:
            stop = self._integer_phase()
        return contract.Answer(
            stop=stop,
            bound=self.bound,
            supports=tuple(self.supports),
            nodes=self.nodes,
            cuts=self.cuts,
            raw_status=f"{self.raw} in round {self.rounds}",
            seconds=time.perf_counter() - self.clock,
        )

    def _seed(self) -> None:
        """Add tangents over the whole level set, which contains the optimum: rows cost less than integer rounds."""
        q = self.task.q
        for r in np.linspace(*self.task.scaled.row_ranges(self.upper), RESIDUAL_SEEDS):
            self._add_tangents(r, np.zeros(q), np.ones(q))
        for k in range(1, SLOPE_SEEDS + 1):
            for side in (self.task.lo, self.task.hi):
                self._add_tangents(np.zeros(0), side * (k / SLOPE_SEEDS), np.ones(q))

    def _remaining(self) -> float:
        return self.limits.seconds - (time.perf_counter() - self.clock)

    def _stop_reason(self) -> Stop | None:
        if self.limits.is_cancelled:
            return Stop.INTERRUPTED
        if self._remaining() <= 0.01:
            return Stop.TIME
        return Stop.NODES if self.nodes >= self.limits.nodes else None

    def _optimise(self) -> FloatArray | None:
        """Run HiGHS once within the time that is left; return its point, None if it has none."""
        remaining = self._remaining()
        self.solver.setOptionValue("time_limit", max(remaining, 0.0) if math.isfinite(remaining) else 1e30)
        self.solver.run()
        self.poll.raise_stored_error()
        self.rounds += 1
        self.raw = self.solver.modelStatusToString(self.solver.getModelStatus())
        solution = self.solver.getSolution()
        if not solution.value_valid:
            return None
        return np.asarray(solution.col_value, dtype=np.float64)

    def _linear_phase(self) -> Stop | None:
        import highspy

        self.solver.setOptionValue("solve_relaxation", True)
        for _ in range(contract.ROOT_ROUNDS):
            stop = self._stop_reason()
            if stop is not None:
                return stop
            x = self._optimise()
            status = self.solver.getModelStatus()
            if status != highspy.HighsModelStatus.kOptimal or x is None:
                return self._interpret_status(status)
            value = float(self.solver.getInfo().objective_function_value)
            gained = value - self.bound
            self.bound = max(self.bound, value)
            if not self._separate_point(x) or gained < 1e-6 * self.task.scaled.span:
                break
        return None

    def _integer_phase(self) -> Stop:
        import highspy

        status = highspy.HighsModelStatus
        target = contract.gap_target(self.task, self.limits)
        self.solver.setOptionValue("solve_relaxation", False)
        precise = False
        while True:
            stop = self._stop_reason()
            if stop is not None:
                return stop
            # an early round need not find the optimum, only cuts: a small part of the remaining gap is enough
            wanted = max(EARLY * (self.upper - self.bound), 0.5 * target)
            if precise or not math.isfinite(self.bound):
                wanted = 0.5 * target
            self.solver.setOptionValue("mip_abs_gap", wanted)
            if math.isfinite(self.limits.nodes):
                self.solver.setOptionValue("mip_max_nodes", int(max(self.limits.nodes - self.nodes, 1)))
            solution = highspy.HighsSolution()
            solution.col_value = self.start.tolist()
            self.solver.setSolution(solution)
            x = self._optimise()
            info = self.solver.getInfo()
            self.nodes += max(int(info.mip_node_count), 0)
            ended = self.solver.getModelStatus()
            unfinished = (
                self._interpret_status(ended) if ended != status.kOptimal else None
            )  # a breakdown's bound is invalid
            if math.isfinite(info.mip_dual_bound):
                self.bound = max(self.bound, float(info.mip_dual_bound))
            added = 0 if x is None else self._separate_point(x) + self._refit(x)
            if self.upper - self.bound <= target:
                return Stop.OPTIMAL
            if unfinished is not None:
                return unfinished
            if x is not None and added and self._has_moved(x, MIN_RISE * target):
                continue
            if wanted <= 0.5 * target:
                # without new cuts, the point satisfies every parabola up to the tolerance of the cuts
                return Stop.STALLED if added else Stop.OPTIMAL
            precise = True

    def _has_moved(self, x: FloatArray, rise: float) -> bool:
        """Return True if a round moved the bound, the best support or the point; tolerances may prevent all three."""
        bound, upper = self.progress
        if self.bound > bound + rise or self.upper < upper:
            self.progress, self.points = (self.bound, self.upper), []
        is_new = all(np.abs(x - point).max() > POINT_TOLERANCE for point in self.points)
        if is_new:
            self.points.append(x)
        return is_new

    def _interpret_status(self, status: Any) -> Stop:
        import highspy

        kinds = highspy.HighsModelStatus
        stops = {kinds.kTimeLimit: Stop.TIME, kinds.kIterationLimit: Stop.NODES, kinds.kSolutionLimit: Stop.NODES}
        stops[kinds.kInterrupt] = Stop.INTERRUPTED
        if status in stops:
            return stops[status]
        raise contract.failed("highs", self.solver.modelStatusToString(status), self.limits)

    def _refit(self, x: FloatArray) -> int:
        """Add a cut at the exact minimiser of the support of an integer point; keep it if it is the best so far."""
        scaled = self.task.scaled
        z = np.asarray(np.round(np.clip(x[self.positions.z], 0.0, 1.0)), dtype=np.float64)
        support = tuple(int(j) for j in np.flatnonzero(z))
        if support in self.supports:
            return 0
        self.supports[support] = None
        if self.task.constraints.has_coefficient_bounds:
            return 0  # the unconstrained minimiser may lie outside of the boxes
        u, value = scaled.fit_support(z)
        residual = self.task.scaled.factor @ u
        if value < self.upper:
            self.upper = value
            self.start[self.positions.z], self.start[self.positions.u], self.start[self.positions.t] = (
                z,
                u,
                u[: self.task.q] ** 2,
            )
            self.start[self.positions.r], self.start[self.positions.s] = residual, scaled.losses_and_slopes(residual)[0]
        return self._add_tangents(residual, u, np.maximum(z, 1e-12))

    def _separate_point(self, x: FloatArray) -> int:
        """Add the tangents that a point violates; return their number."""
        return sum(map(self._rows, self.tangents.violated_tangents(x)))

    def _add_tangents(self, r: FloatArray, u: FloatArray, z: FloatArray) -> int:
        return sum(map(self._rows, self.tangents.touching(r, u, z)))

    def _rows(self, cuts: Cuts) -> int:
        """Add rows; return their number."""
        lower, places, values = cuts
        count, width = len(lower), len(places)
        if count:
            index = np.stack(places, axis=1).ravel().astype(np.int32)
            begins = np.arange(0, count * width, width, dtype=np.int32)
            entries = np.stack(values, axis=1).ravel()
            self.solver.addRows(count, lower, np.full(count, math.inf), len(index), begins, index, entries)
            self.cuts += count
        return count


def _load(arrays: LoweredProblem, limits: Limits, poll: contract.Poll) -> Any:
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", limits.log is not None)
    solver.setOptionValue("log_to_console", False)
    if limits.log is not None:
        solver.setOptionValue("log_file", limits.log)
    solver.setOptionValue("threads", limits.threads)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_feasibility_tolerance", ROW_TOLERANCE)
    solver.setOptionValue("primal_feasibility_tolerance", ROW_TOLERANCE)
    solver.setOptionValue("dual_feasibility_tolerance", ROW_TOLERANCE)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = arrays.size, arrays.rows.shape[0]
    lp.col_cost_, lp.offset_ = arrays.cost, arrays.constant
    lp.col_lower_, lp.col_upper_ = arrays.lower, arrays.upper
    lp.row_lower_, lp.row_upper_ = arrays.row_lower, arrays.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = arrays.rows.indptr
    lp.a_matrix_.index_ = arrays.rows.indices
    lp.a_matrix_.value_ = arrays.rows.data
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger if b else kinds.kContinuous for b in arrays.binary]
    if solver.passModel(lp) == highspy.HighsStatus.kError:
        raise contract.failed("highs", "the model was refused", limits)
    if limits.cancel is not None:
        _include_cancel(solver, poll)
    return solver


def _include_cancel(solver: Any, poll: contract.Poll) -> None:
    """Check the cancel event from inside the branch-and-bound and the simplex."""

    def ask(event: Any) -> None:
        if poll():
            event.interrupt(True)

    solver.cbMipInterrupt.subscribe(ask)
    solver.cbSimplexInterrupt.subscribe(ask)


def _describe(highspy: Any) -> contract.Availability:
    with contract.discard_output(
        STDOUT
    ):  # from 1.16 on, the first solver of a process prints a banner before it has options
        version = highspy.Highs().version()
    if version in REFUSED_VERSIONS:
        why = f"its version {version} returns wrong optima, because its presolve has a bug"
        return contract.Availability(False, why, version, hint="pip install --upgrade highspy")
    return contract.Availability(True, "", version, "MIT, no limits")
