"""Gurobi backend: the perspective model (MISOCP), and Benders decomposition in one tree with lazy cuts."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.formulation.backends import contract
from sparsecv_mio.formulation.outcome import Limits, Stop
from sparsecv_mio.formulation.task import ModelTask, require_finite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sparsecv_mio.formulation.models import Cuts, LoweredProblem, SparseModel, Tangents


GRAM_COLUMNS = 100  # with more columns, the model on the factor is smaller than the quadratic form on the Gram matrix
GUROBI_CUT_TOLERANCE = 1e-9  # violation of a loss row above which a cut is added: Gurobi's own tolerance for a row
_ENV = threading.local()  # one environment for each thread: two threads must not use one at the same time


class GurobiBackend(contract.Backend):
    """Gurobi through gurobipy, with the model compiled from Pyomo."""

    name: ClassVar[str] = "gurobi"
    capabilities: ClassVar[contract.Capabilities] = contract.Capabilities(
        formulations={"perspective": contract.EVERY_KIND, "benders": contract.ON_SUPPORTS},
        logistic={"outer": contract.ON_SUPPORTS},
    )

    def available(self) -> contract.Availability:
        """Return whether gurobipy and a licence are available; the size-limited licence of pip counts as one."""
        return contract.probe("gurobipy", _describe)

    def _run(self, task: ModelTask, formulation: str, limits: Limits) -> contract.Answer:
        import gurobipy as gp

        from sparsecv_mio.formulation.models import (
            CutMaster,
            FactorModel,
            OuterApproximation,
            PerspectiveModel,
            Tangents,
            lower_model,
        )

        require_finite(task.lo, task.hi, "gurobi")
        perspective = PerspectiveModel if task.q <= GRAM_COLUMNS else FactorModel
        kinds: dict[str, type[SparseModel]] = {"benders": CutMaster, "outer": OuterApproximation}
        model = kinds.get(formulation, perspective)(task)
        arrays = lower_model(model)
        z = arrays.columns(model.z)
        try:
            with gp.Model(env=_gurobi_environment()) as solver:
                variables = _load(solver, arrays, arrays.vector(model.point(task, task.start_u, task.start_z)))
                self.set_options(solver, limits.options)
                _options(solver, task, limits)
                watch = _Watch(limits)
                if formulation == "benders":
                    solver.Params.LazyConstraints = 1
                    watch = _Benders(limits, task, variables, z, int(arrays.columns([model.pyomo.eta])[0]))
                elif isinstance(model, OuterApproximation):
                    solver.Params.LazyConstraints = 1
                    watch = _Outer(limits, variables, Tangents(task, model, arrays, GUROBI_CUT_TOLERANCE))
                    watch.begin(solver)
                begin = time.perf_counter()
                solver.optimize(watch.callback)
                seconds = time.perf_counter() - begin
                watch.raise_stored_error()
                return _gurobi_answer(solver, variables, z, watch, limits, seconds)
        except gp.GurobiError as error:
            raise _translate(error, task, formulation, limits) from error

    def _blank(self) -> Any:
        import gurobipy as gp

        return gp.Model(env=_gurobi_environment())

    def _set(self, solver: Any, name: str, value: contract.OptionValue) -> contract.OptionValue:
        solver.setParam(name, value)
        taken: contract.OptionValue = solver.getParamInfo(name)[2]
        return taken


def _gurobi_answer(
    solver: Any, variables: Any, z: IntArray, watch: _Watch, limits: Limits, seconds: float
) -> contract.Answer:
    from gurobipy import GRB

    stops = {
        GRB.OPTIMAL: Stop.OPTIMAL,
        GRB.TIME_LIMIT: Stop.TIME,
        GRB.NODE_LIMIT: Stop.NODES,
        GRB.INTERRUPTED: Stop.INTERRUPTED,
        GRB.SUBOPTIMAL: Stop.GAP,
    }
    names = {getattr(GRB, k): k for k in dir(GRB.Status) if k.isupper() and isinstance(getattr(GRB, k, None), int)}
    raw = names.get(solver.Status, str(solver.Status))
    if solver.Status not in stops:
        raise contract.failed("gurobi", raw, limits)
    supports = []
    if solver.SolCount:
        chosen = np.flatnonzero(variables.X[z] > 0.5)
        supports.append(tuple(int(j) for j in chosen))
    bound = float(solver.ObjBound) if abs(solver.ObjBound) < 1e100 else -math.inf
    return contract.Answer(
        stop=stops[solver.Status],
        bound=bound,
        supports=tuple([*supports, *watch.supports]),
        nodes=int(solver.NodeCount),
        cuts=watch.added,
        raw_status=raw,
        seconds=seconds,
    )


def _load(solver: Any, arrays: LoweredProblem, start: FloatArray) -> Any:
    """Pass the arrays to a new model, which keeps nothing of an earlier solve and costs little."""
    kinds = np.where(arrays.binary, "B", "C")
    x = solver.addMVar(arrays.size, lb=arrays.lower, ub=arrays.upper, vtype=kinds, name="x")
    is_equal, is_above = arrays.row_lower == arrays.row_upper, np.isfinite(arrays.row_lower)
    sense = np.where(is_equal, "=", np.where(is_above, ">", "<"))
    bound = np.where(sense == ">", arrays.row_lower, arrays.row_upper)
    solver.addMConstr(csr_matrix(arrays.rows), x, sense, bound)
    for cone in arrays.cones:
        row = np.zeros(arrays.size)
        row[cone.index] = cone.linear
        solver.addMQConstr(arrays.matrix(cone.terms), row, "<", cone.upper, xQ_L=x, xQ_R=x, xc=x)
    quadratic = arrays.matrix(arrays.terms) if len(arrays.terms[0]) else None
    solver.setMObjective(quadratic, arrays.cost, arrays.constant, xQ_L=x, xQ_R=x, xc=x)
    x.Start = start
    return x


def _options(solver: Any, task: ModelTask, limits: Limits) -> None:
    solver.Params.MIPGap = 0.0
    solver.Params.MIPGapAbs = contract.gap_target(task, limits)
    # by default z may differ from 0 or 1 by 1e-5, which lets a coefficient violate its link without a cost
    solver.Params.IntFeasTol = 1e-9
    solver.Params.FeasibilityTol = 1e-9
    solver.Params.OptimalityTol = 1e-9
    solver.Params.Threads = limits.threads
    if math.isfinite(limits.seconds):
        solver.Params.TimeLimit = limits.seconds
    if math.isfinite(limits.nodes):
        solver.Params.NodeLimit = limits.nodes
    if limits.log is not None:
        solver.Params.LogFile = limits.log


class _Watch(contract.Poll):
    """Callback that checks the cancel event and stores exceptions, which gurobipy would drop.

    `added` is the number of cuts made at the integer points of `supports`.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.added = 0
        self.supports: dict[tuple[int, ...], None] = {}
        self.restore_handler = _make_handler_guard()

    def callback(self, solver: Any, where: int) -> None:
        """Handle one callback of gurobipy; no exception leaves here."""
        self.restore_handler()
        if not self():
            try:
                return self.add_cuts(solver, where)
            except BaseException as error:
                self.error = error
        solver.terminate()

    def add_cuts(self, solver: Any, where: int) -> None:
        """Add no cut."""


def _make_handler_guard() -> Callable[[], object]:
    """Return a function that restores the present handler of Ctrl-C.

    During a long solve, Gurobi installs a handler that prints on standard output and does not inform this program.
    Python can set handlers only in its main thread, so the C function is called.
    """
    sigaction = getattr(ctypes.CDLL(None), "sigaction", None) if os.name == "posix" else None
    if sigaction is None:
        return lambda: None
    action = ctypes.create_string_buffer(1024)  # at least the size of a `struct sigaction`
    sigaction(signal.SIGINT, None, action)
    return lambda: sigaction(signal.SIGINT, action, None)


class _Benders(_Watch):
    """Lazy cuts `eta >= a - s'z` at every integer point, and at the root's fractional points (theory section 1)."""

    def __init__(self, limits: Limits, task: ModelTask, variables: Any, z: IntArray, eta: int) -> None:
        super().__init__(limits)
        self.task, self.x, self.z, self.eta = task, variables, z, eta
        self.rounds = 0

    def add_cuts(self, solver: Any, where: int) -> None:
        """Cut off an integer point whose eta is not optimal, or a fractional point of the root."""
        from gurobipy import GRB

        if where == GRB.Callback.MIPSOL:
            x = solver.cbGetSolution(self.x)
            z = np.round(x[self.z])
            self.supports.setdefault(tuple(int(j) for j in np.flatnonzero(z)))
            self._separate_point(solver, z, float(x[self.eta]), 1e-10)
        elif where == GRB.Callback.MIPNODE and solver.cbGet(GRB.Callback.MIPNODE_STATUS) == GRB.OPTIMAL:
            depth = solver.cbGet(GRB.Callback.MIPNODE_NODCNT)
            if depth == 0 and self.rounds < contract.ROOT_ROUNDS:
                self.rounds += 1
                x = solver.cbGetNodeRel(self.x)
                self._separate_point(solver, np.clip(x[self.z], 0.0, 1.0), float(x[self.eta]), 1e-5)

    def _separate_point(self, solver: Any, z: FloatArray, eta: float, tolerance: float) -> None:
        u = self.task.scaled.fractional_fit(z)
        a, s = self.task.scaled.clipped_cut(u, self.task.floor)
        if eta < a - s @ z - tolerance:
            row = np.zeros(self.x.shape[0])
            row[self.z], row[self.eta] = s, 1.0
            solver.cbLazy(row @ self.x >= a)
            self.added += 1


class _Outer(_Watch):
    """Lazy tangents at every integer point and at the fit of its support, and at the root's fractional points."""

    def __init__(self, limits: Limits, variables: Any, tangents: Tangents) -> None:
        super().__init__(limits)
        self.x, self.tangents = variables, tangents
        self.rounds = 0

    def begin(self, solver: Any) -> None:
        """Add the tangents at the fit of all columns; further rows would count towards the size limit of a licence."""
        scaled = self.tangents.task.scaled
        u = scaled.ridge
        for row in self._rows(self.tangents.touching(scaled.factor @ u, u, np.ones(scaled.q))):
            solver.addConstr(row)

    def add_cuts(self, solver: Any, where: int) -> None:
        """Cut off an integer point whose losses are not optimal, or a fractional point of the root."""
        from gurobipy import GRB

        at, task = self.tangents.at, self.tangents.task
        if where == GRB.Callback.MIPSOL:
            x = solver.cbGetSolution(self.x)
            z = np.round(np.clip(x[at.z], 0.0, 1.0))
            self._lazy(solver, self.tangents.violated_tangents(x))
            support = tuple(np.flatnonzero(z).tolist())
            if support not in self.supports:
                self.supports[support] = None
                u, _ = task.scaled.fit_support(z)
                self._lazy(solver, self.tangents.touching(task.scaled.factor @ u, u, np.maximum(z, 1e-12)))
        elif where == GRB.Callback.MIPNODE and solver.cbGet(GRB.Callback.MIPNODE_STATUS) == GRB.OPTIMAL:
            root = solver.cbGet(GRB.Callback.MIPNODE_NODCNT) == 0
            self.rounds += root
            if root and self.rounds <= contract.ROOT_ROUNDS:
                self._lazy(solver, self.tangents.violated_tangents(solver.cbGetNodeRel(self.x)))

    def _lazy(self, solver: Any, cuts: Iterator[Cuts]) -> None:
        for row in self._rows(cuts):
            solver.cbLazy(row)
            self.added += 1

    def _rows(self, cuts: Iterator[Cuts]) -> Iterator[Any]:
        import gurobipy as gp

        x = self.x.tolist()
        for lower, places, values in cuts:
            for k, low in enumerate(lower.tolist()):
                yield gp.LinExpr([float(v[k]) for v in values], [x[int(p[k])] for p in places]) >= low


def _gurobi_environment() -> Any:
    import gurobipy as gp

    env = getattr(_ENV, "env", None)
    if env is None:
        env = gp.Env(empty=True)
        env.setParam("OutputFlag", 1)
        env.setParam("LogToConsole", 0)
        env.start()
        _ENV.env = env
    return env


def _describe(gp: Any) -> contract.Availability:
    version = ".".join(str(number) for number in gp.gurobi.version())
    try:
        with gp.Model(env=_gurobi_environment()) as trial:
            trial.addVars(2001)
            trial.optimize()
        licence = "full"
    except gp.GurobiError as error:
        if error.errno != gp.GRB.Error.SIZE_LIMIT_EXCEEDED:
            why = f"no licence ({error})"
            hint = "set GRB_LICENSE_FILE, or unset it to use the pip licence"
            return contract.Availability(False, why, version, hint=hint)
        licence = "size-limited (pip): 200 variables in quadratic models, 2,000 variables and rows in linear ones"
    return contract.Availability(True, "", version, licence)


def _translate(error: Any, task: ModelTask, formulation: str, limits: Limits) -> Exception:
    from gurobipy import GRB

    if error.errno == GRB.Error.SIZE_LIMIT_EXCEEDED:
        advice = (
            "; --formulation benders needs only p + 1 variables in a linear model"
            if formulation == "perspective"
            else ""
        )
        return BackendUnavailable(
            f"backend gurobi: {formulation} with {task.q} columns exceeds the size limit of this licence{advice}"
        )
    if error.errno in (GRB.Error.NO_LICENSE, GRB.Error.JOB_REJECTED, GRB.Error.NETWORK):
        with contextlib.suppress(AttributeError):
            del _ENV.env
        return BackendUnavailable(f"backend gurobi has no licence: {error}")
    return contract.failed("gurobi", f"error {error.errno}: {error}", limits)
