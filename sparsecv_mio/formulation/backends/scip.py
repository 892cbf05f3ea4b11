"""SCIP backend: the perspective model (MISOCP) with big-M constraints and a quadratic form split into single parabolas.

SCIP satisfies cone constraints only up to a tolerance. The coefficient u_j of a column that is not selected (z_j = 0)
can therefore reach about 3e-5. The constraints `lo_j z_j <= u_j <= hi_j z_j`, with the bounds lo_j and hi_j on u_j,
prevent this. SCIP drops cuts that are violated by less than 1e-4. Without these cuts, SCIP would branch on the
coefficients without end. The model therefore multiplies coefficients by ten and the scale of the objective by 100.
Relative to this scale, a violation of 1e-4 is negligible.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.backends import contract
from sparsecv_mio.formulation.outcome import Limits, Stop
from sparsecv_mio.formulation.task import ModelTask, require_finite
from sparsecv_mio.problem.glm import GlmProblem

if TYPE_CHECKING:
    from sparsecv_mio.formulation.models import LoweredProblem


STDERR = 2  # file descriptor
MAGNIFIED = 10.0
LOSSES_MAGNIFIED = 1e3  # the same for losses: a tolerance holds for the loss of each row, and there are hundreds
STOPS = {
    "optimal": Stop.OPTIMAL,
    "gaplimit": Stop.OPTIMAL,
    "timelimit": Stop.TIME,
    "nodelimit": Stop.NODES,
    "totalnodelimit": Stop.NODES,
    "userinterrupt": Stop.INTERRUPTED,
}


class ScipBackend(contract.Backend):
    """SCIP through pyscipopt, with the model compiled from Pyomo."""

    name: ClassVar[str] = "scip"
    capabilities: ClassVar[contract.Capabilities] = contract.Capabilities(
        formulations={"perspective": contract.EVERY_KIND},
        logistic={"exponential": contract.ON_SUPPORTS},
        limits=frozenset({"seconds", "nodes", "gap", "log", "options"}),
        concurrent=False,  # solves on several threads ended the process with a segmentation fault
    )

    def available(self) -> contract.Availability:
        """Return whether pyscipopt is installed and starts."""
        return contract.probe("pyscipopt", _describe)

    def _run(self, task: ModelTask, formulation: str, limits: Limits) -> contract.Answer:
        from sparsecv_mio.formulation.models import FactorModel, lower_model

        require_finite(task.lo, task.hi, "scip")
        classes = isinstance(task.problem, GlmProblem)
        factor = 1.0 if classes else MAGNIFIED
        big = task if classes else task.magnify(factor)
        model = FactorModel(big)
        arrays = lower_model(model)
        start = arrays.vector(model.point(big, big.start_u, big.start_z))
        solver, x = _load(arrays, start)
        self.set_options(solver, limits.options)
        _set_scip_options(solver, contract.gap_target(task, limits) * factor**2, limits)
        poll = contract.Poll(limits)
        if limits.cancel is not None:
            _include_cancel(solver, poll)
        begin = time.perf_counter()
        try:
            solver.optimizeNogil()
        except Exception as error:  # pyscipopt raises bare exceptions with SCIP's return code
            raise contract.failed("scip", str(error), limits) from error
        seconds = time.perf_counter() - begin
        poll.raise_stored_error()
        return _scip_answer(solver, x, arrays.columns(model.z), (limits, seconds, factor))

    def _blank(self) -> Any:
        import pyscipopt

        solver = pyscipopt.Model()
        solver.hideOutput()
        return solver

    def _set(self, solver: Any, name: str, value: contract.OptionValue) -> contract.OptionValue:
        with contract.discard_output(STDERR):  # SCIP writes there about a value that it refuses
            solver.setParam(name, value)
        taken: contract.OptionValue = solver.getParam(name)
        return taken


def _scip_answer(solver: Any, x: list[Any], z: IntArray, how: tuple[Limits, float, float]) -> contract.Answer:
    """Return the result; `how` has the limits, the seconds, and the factor by which u was multiplied."""
    limits, seconds, factor = how
    raw = solver.getStatus()
    if raw not in STOPS:
        raise contract.failed("scip", raw, limits)
    supports = []
    for solution in solver.getSols()[:5]:
        values = [solver.getSolVal(solution, x[k]) for k in z]
        supports.append(tuple(j for j, value in enumerate(values) if value > 0.5))
    bound = float(solver.getDualbound())
    return contract.Answer(
        stop=STOPS[raw],
        bound=bound / factor**2 if abs(bound) < solver.infinity() else -math.inf,
        supports=tuple(supports),
        nodes=int(solver.getNTotalNodes()),
        raw_status=raw,
        seconds=seconds,
    )


def _load(arrays: LoweredProblem, start: FloatArray) -> tuple[Any, list[Any]]:
    import pyscipopt

    solver = pyscipopt.Model()
    solver.hideOutput()
    x = [
        solver.addVar(
            f"x{k}",
            vtype="B" if binary else "C",
            lb=float(low) if np.isfinite(low) else None,
            ub=float(high) if np.isfinite(high) else None,
        )
        for k, (binary, low, high) in enumerate(zip(arrays.binary, arrays.lower, arrays.upper, strict=True))
    ]
    rows = arrays.rows
    for k in range(rows.shape[0]):
        cut = slice(rows.indptr[k], rows.indptr[k + 1])
        expression = pyscipopt.quicksum(float(a) * x[j] for a, j in zip(rows.data[cut], rows.indices[cut], strict=True))
        low, high = float(arrays.row_lower[k]), float(arrays.row_upper[k])
        if low == high:
            solver.addCons(expression == low)
        else:
            if np.isfinite(low):
                solver.addCons(expression >= low)
            if np.isfinite(high):
                solver.addCons(expression <= high)
    for cone in arrays.cones:
        terms = zip(*cone.terms, strict=True)
        quadratic = pyscipopt.quicksum(float(v) * x[i] * x[j] for i, j, v in terms)
        linear = pyscipopt.quicksum(float(a) * x[j] for a, j in zip(cone.linear, cone.index, strict=True))
        solver.addCons(quadratic + linear <= cone.upper)
    for r, s in arrays.losses:
        chances = pyscipopt.exp(-x[s]) + pyscipopt.exp(-x[r] - x[s])
        solver.addCons(LOSSES_MAGNIFIED * chances <= LOSSES_MAGNIFIED)
    cost = pyscipopt.quicksum(float(a) * x[j] for j, a in enumerate(arrays.cost) if a != 0.0)
    solver.setObjective(cost + arrays.constant, "minimize")
    solution = solver.createSol()
    for variable, value in zip(x, start.tolist(), strict=True):
        solver.setSolVal(solution, variable, value)
    solver.addSol(solution)
    return solver, x


def _set_scip_options(solver: Any, target: float, limits: Limits) -> None:
    solver.setParam("limits/gap", 0.0)
    solver.setParam("limits/absgap", target)
    # in magnified units this is 1e-8 of the objective; with a smaller value SoPlex writes complaints to stderr
    solver.setParam("numerics/feastol", 1e-6)
    solver.setParam("numerics/dualfeastol", 1e-7)
    # in small problems aggregation leaves a few continuous variables, on which SCIP branches without end or cuts
    solver.setParam("presolving/donotaggr", True)
    solver.setParam("presolving/donotmultaggr", True)
    solver.setParam("misc/catchctrlc", limits.cancel is None)
    if math.isfinite(limits.seconds):
        solver.setParam("limits/time", float(limits.seconds))
    if math.isfinite(limits.nodes):
        solver.setParam("limits/totalnodes", int(limits.nodes))
    if limits.log is not None:
        solver.hideOutput(False)
        solver.setLogfile(limits.log)
        solver.hideOutput()


def _include_cancel(solver: Any, poll: contract.Poll) -> None:
    """Check the cancel event at every node and every linear program."""
    import pyscipopt

    moments = pyscipopt.SCIP_EVENTTYPE.NODESOLVED | pyscipopt.SCIP_EVENTTYPE.LPSOLVED

    class CancelEvent(pyscipopt.Eventhdlr):
        def eventinit(self) -> None:
            self.model.catchEvent(moments, self)

        def eventexit(self) -> None:
            self.model.dropEvent(moments, self)

        def eventexec(self, event: Any) -> dict[str, Any]:
            if poll():
                self.model.interruptSolve()
            return {}

    solver.includeEventhdlr(CancelEvent(), "cancel", "asks the caller whether to go on")


def _describe(pyscipopt: Any) -> contract.Availability:
    version = f"{pyscipopt.__version__} (SCIP {pyscipopt.Model().version()})"
    return contract.Availability(True, "", version, "Apache 2.0, no limits")
