"""A backend of another package: the cutting-plane master, solved again and again by `scipy.optimize.milp`."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any, ClassVar, cast

import numpy as np
import scipy
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.backends.contract import (
    EVERY_KIND,
    Answer,
    Availability,
    Backend,
    Capabilities,
    OptionValue,
    failed,
    gap_target,
)
from sparsecv_mio.formulation.models import CutMaster, LoweredProblem, lower_model
from sparsecv_mio.formulation.outcome import Limits, Stop
from sparsecv_mio.formulation.task import ModelTask

OPTIONS: dict[str, type] = {"presolve": bool}  # of scipy.optimize.milp, beside limits and gaps


class MilpBackend(Backend):
    """Each round solves the master over the cuts so far, and cuts at the support that it finds."""

    name: ClassVar[str] = "milp"
    capabilities: ClassVar[Capabilities] = Capabilities(
        formulations={"benders": EVERY_KIND - {"sign", "box"}},
        limits=frozenset({"seconds", "nodes", "gap", "options"}),
        warm_start=False,
    )

    def available(self) -> Availability:
        """Say that it can be used: SciPy brings its solver."""
        return Availability(True, version=f"SciPy {scipy.__version__}", licence="BSD, no limits")

    def _blank(self) -> dict[str, OptionValue]:
        return {}

    def _set(self, solver: dict[str, OptionValue], name: str, value: OptionValue) -> OptionValue:
        if not isinstance(value, OPTIONS[name]):
            raise ValueError(f"{name} is true or false")
        solver[name] = value
        return value

    def _run(self, task: ModelTask, formulation: str, limits: Limits) -> Answer:
        options, began = self._blank(), perf_counter()
        self.set_options(options, limits.options)
        model = CutMaster(task)
        arrays = lower_model(model)
        z, eta = arrays.columns(model.z), int(arrays.columns([model.pyomo.eta])[0])
        A = csr_array(arrays.rows)
        A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)  # SciPy 1.14's milp takes no others
        rows = [LinearConstraint(A, arrays.row_lower, arrays.row_upper)]
        bound, upper, supports, nodes = -math.inf, math.inf, dict[tuple[int, ...], None](), 0
        while True:
            left = limits.seconds - (perf_counter() - began)
            stop = _limit(limits, left, nodes)
            found = None if stop is not None else _solve(arrays, rows, options, left, limits.nodes - nodes)
            if found is not None:
                nodes += int(found.mip_node_count or 0)
                bound = max(bound, float(found.mip_dual_bound) + arrays.constant)
                stop = None if found.x is not None else Stop.TIME
            if found is None or found.x is None:
                assert stop is not None
                break
            chosen = np.round(found.x[z])
            supports[tuple(np.flatnonzero(chosen).tolist())] = None
            u = task.scaled.fractional_fit(chosen)
            upper = min(upper, float(u @ (task.scaled.G @ u) + task.scaled.w @ u**2 - 2.0 * task.scaled.g @ u))
            if upper - bound <= gap_target(task, limits):
                stop = Stop.OPTIMAL
                break
            rows.append(_cut(task, u, z, eta, arrays.size))
        seconds = perf_counter() - began
        return Answer(stop, bound, tuple(supports), nodes, len(rows) - 1, raw_status=str(stop), seconds=seconds)


def _limit(limits: Limits, left: float, nodes: int) -> Stop | None:
    if limits.is_cancelled:
        return Stop.INTERRUPTED
    return Stop.TIME if left <= 0.0 else Stop.NODES if nodes >= limits.nodes else None


def _solve(
    arrays: LoweredProblem, rows: list[LinearConstraint], options: dict[str, OptionValue], left: float, nodes: float
) -> OptimizeResult:
    how: dict[str, Any] = options | {"mip_rel_gap": 0.0}
    how |= {"time_limit": left} if math.isfinite(left) else {}
    how |= {"node_limit": int(nodes)} if math.isfinite(nodes) else {}
    found = milp(
        arrays.cost, integrality=arrays.binary.astype(int), bounds=Bounds(arrays.lower, arrays.upper), constraints=rows,
        options=cast(Any, how),
    )  # fmt: skip
    if found.status not in (0, 1):  # solved, or a limit of time or nodes
        raise failed("milp", found.message)
    return found


def _cut(task: ModelTask, u: FloatArray, z: IntArray, eta: int, size: int) -> LinearConstraint:
    """Return `eta + s'z >= a`, which holds at every support and with equality at that of u."""
    a, s = task.scaled.clipped_cut(u, task.floor)
    row = np.zeros(size)
    row[z], row[eta] = s, 1.0
    return LinearConstraint(row, a, np.inf)
