"""Mosek backend: the perspective model (MISOCP) as affine conic constraints, built from the compiled Pyomo model.

Without a licence the model can be built, written (.ptf, .cbf, .task) and evaluated at given points; only `optimize`
needs a licence. The function `getpviolacc` of Mosek is not used, because it aborts the process.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BackendUnavailable, BadInput
from sparsecv_mio.formulation.backends import contract
from sparsecv_mio.formulation.outcome import Limits, Stop
from sparsecv_mio.formulation.task import ModelTask

if TYPE_CHECKING:
    from sparsecv_mio.formulation.models import LoweredProblem, QuadraticRow


class MosekBackend(contract.Backend):
    """Mosek through its own Python interface."""

    name: ClassVar[str] = "mosek"
    capabilities: ClassVar[contract.Capabilities] = contract.Capabilities(
        formulations={"perspective": contract.EVERY_KIND},
        logistic={"exponential": contract.ON_SUPPORTS},
        licence_free=False,
    )

    def available(self) -> contract.Availability:
        """Return whether mosek is installed and a licence can be checked out."""
        return contract.probe("mosek", _describe)

    def _blank(self) -> Any:
        import mosek

        return mosek.Env().Task()

    def _set(self, solver: Any, name: str, value: contract.OptionValue) -> contract.OptionValue:
        solver.putparam(name, str(value))
        return value

    def _run(self, task: ModelTask, formulation: str, limits: Limits) -> contract.Answer:
        import mosek

        from sparsecv_mio.formulation.models import FactorModel, lower_model

        model = FactorModel(task)
        arrays = lower_model(model)
        z = arrays.columns(model.z)
        try:
            with mosek.Env() as env, build(env, arrays) as solver:
                start = arrays.vector(model.point(task, task.start_u, task.start_z))
                self.set_options(solver, limits.options)
                return _optimise(solver, task, z, whole_point(arrays, start), limits)
        except mosek.Error as error:
            if str(error.errno).startswith(("rescode.err_license", "rescode.err_missing_lic")):
                raise BackendUnavailable(f"backend mosek has no licence ({error.errno})") from error
            raise contract.failed("mosek", f"{error.errno}: {error.msg}", limits) from error


def build(env: Any, arrays: LoweredProblem) -> Any:
    """Return a Mosek task for compiled arrays; needs no licence.

    Raises
    ------
    ValueError
        If a quadratic row is not a single square below a product or a variable.
    """
    import mosek

    solver = env.Task()
    size, count = arrays.size, arrays.rows.shape[0]
    solver.appendvars(size)
    solver.appendcons(count)
    kinds, low, high = _bounds(arrays.lower, arrays.upper)
    solver.putvarboundslice(0, size, kinds, low, high)
    solver.putvartypelist(
        np.flatnonzero(arrays.binary).tolist(), [mosek.variabletype.type_int] * int(arrays.binary.sum())
    )
    solver.putclist(list(range(size)), arrays.cost.tolist())
    solver.putcfix(arrays.constant)
    entries = arrays.rows.tocoo()
    solver.putaijlist(entries.row.tolist(), entries.col.tolist(), entries.data.tolist())
    kinds, low, high = _bounds(arrays.row_lower, arrays.row_upper)
    solver.putconboundslice(0, count, kinds, low, high)
    domain = solver.appendrquadraticconedomain(3)
    for cone in arrays.cones:
        _append_cone(solver, domain, cone)
    if arrays.losses:
        _append_losses(solver, arrays)
    solver.putobjsense(mosek.objsense.minimize)
    return solver


def _append_cone(solver: Any, domain: int, cone: QuadraticRow) -> None:
    """Add `x^2 <= a b` as (a, b / 2, x), or `x^2 <= c a` as (a, c / 2, x), in the rotated quadratic cone."""
    i, j, value = cone.terms
    square, product = np.flatnonzero(i == j), np.flatnonzero(i != j)
    if len(square) != 1 or value[square[0]] != 1.0 or cone.upper != 0.0:
        raise ValueError("a quadratic constraint does not have the form x^2 <= a b or x^2 <= c a")
    first = solver.getnumafe()
    solver.appendafes(3)
    if len(product) == 1 and not len(cone.index):
        solver.putafefentry(first, int(i[product[0]]), 1.0)
        solver.putafefentry(first + 1, int(j[product[0]]), -0.5 * float(value[product[0]]))
    elif not len(product) and len(cone.index) == 1:
        solver.putafefentry(first, int(cone.index[0]), 1.0)
        solver.putafeg(first + 1, -0.5 * float(cone.linear[0]))
    else:
        raise ValueError("a quadratic constraint does not have the form x^2 <= a b or x^2 <= c a")
    solver.putafefentry(first + 2, int(i[square[0]]), 1.0)
    solver.appendacc(domain, [first, first + 1, first + 2], None)


def _append_losses(solver: Any, arrays: LoweredProblem) -> None:
    """Add `exp(-s) + exp(-r - s) <= 1` for every row: two variables above the exponentials, in exponential cones."""
    import mosek

    count, size, rows = len(arrays.losses), arrays.size, arrays.rows.shape[0]
    solver.appendvars(2 * count)
    solver.putvarboundsliceconst(size, size + 2 * count, mosek.boundkey.lo, 0.0, 0.0)
    solver.appendcons(count)
    solver.putconboundsliceconst(rows, rows + count, mosek.boundkey.up, 0.0, 1.0)
    domain, constant = solver.appendprimalexpconedomain(), solver.getnumafe()
    solver.appendafes(1)
    solver.putafeg(constant, 1.0)
    for i, (r, s) in enumerate(arrays.losses):
        above = (size + 2 * i, size + 2 * i + 1)
        solver.putarow(rows + i, list(above), [1.0, 1.0])
        for variable, inside in zip(above, ((s,), (r, s)), strict=True):
            first = solver.getnumafe()
            solver.appendafes(2)
            solver.putafefentry(first, variable, 1.0)
            for place in inside:
                solver.putafefentry(first + 1, place, -1.0)
            solver.appendacc(domain, [first, constant, first + 1], None)


def whole_point(arrays: LoweredProblem, x: FloatArray) -> FloatArray:
    """Return a point extended by the exponentials of its rows of losses, as `build` adds them.

    Parameters
    ----------
    arrays : LoweredProblem
        Compiled arrays.
    x : (m,) array
        Point.
    """
    if not arrays.losses:
        return x
    r, s = x[np.array(arrays.losses).T]
    return np.concatenate([x, np.exp(np.stack([-s, -r - s], axis=1)).ravel()])


def _bounds(lower: FloatArray, upper: FloatArray) -> tuple[list[Any], list[float], list[float]]:
    from mosek import boundkey

    words = (boundkey.fr, boundkey.lo, boundkey.up, boundkey.ra)
    sides = (np.isfinite(lower) + 2 * np.isfinite(upper)).tolist()
    kinds = [boundkey.fx if fixed else words[side] for side, fixed in zip(sides, lower == upper, strict=True)]
    clean = [np.where(np.isfinite(side), side, 0.0).tolist() for side in (lower, upper)]
    return kinds, clean[0], clean[1]


def _optimise(solver: Any, task: ModelTask, z: IntArray, start: FloatArray, limits: Limits) -> contract.Answer:
    import mosek

    parameters, kind = mosek.dparam, mosek.soltype.itg
    solver.putdouparam(parameters.mio_tol_rel_gap, 0.0)
    solver.putdouparam(parameters.mio_tol_abs_gap, contract.gap_target(task, limits))
    solver.putdouparam(parameters.mio_tol_feas, 1e-9)
    solver.putdouparam(parameters.mio_tol_abs_relax_int, 1e-9)
    solver.putintparam(mosek.iparam.num_threads, limits.threads)
    if math.isfinite(limits.seconds):
        solver.putdouparam(parameters.mio_max_time, limits.seconds)
    if math.isfinite(limits.nodes):
        solver.putintparam(mosek.iparam.mio_max_num_branches, int(limits.nodes))
    if limits.log is not None:
        solver.linkfiletostream(mosek.streamtype.log, limits.log, 0)
    solver.putxxslice(kind, 0, len(start), start.tolist())
    poll = contract.Poll(limits)
    if limits.cancel is not None:
        solver.set_Progress(lambda _code: int(poll()))
    begin = time.perf_counter()
    reason = solver.optimize()
    seconds = time.perf_counter() - begin
    solver.set_Progress(None)
    poll.raise_stored_error()
    return read_answer(solver, reason, z, seconds, limits)


def read_answer(solver: Any, reason: Any, z: IntArray, seconds: float, limits: Limits) -> contract.Answer:
    """Return the result of a Mosek task after `optimize`; needs no licence.

    Parameters
    ----------
    solver : mosek.Task
        Task after `optimize`.
    reason : mosek.rescode
        Return value of `optimize`.
    z : (q,) int array
        Positions of the indicators among the variables.
    seconds : float
        Time inside the solver.
    limits : Limits
        Limits with the name of the log, whose end explains a failure.

    Returns
    -------
    Answer
        Result before any check.

    Raises
    ------
    BackendFailed
        If the task is in an unexpected state.
    """
    import mosek

    kind = mosek.soltype.itg
    codes, states = mosek.rescode, mosek.solsta
    stops = {
        codes.ok: Stop.OPTIMAL,
        codes.trm_max_time: Stop.TIME,
        codes.trm_mio_num_branches: Stop.NODES,
        codes.trm_mio_num_relaxs: Stop.NODES,
        codes.trm_user_callback: Stop.INTERRUPTED,
    }
    state = solver.getsolsta(kind)
    if reason not in stops or state not in (states.integer_optimal, states.prim_feas, states.unknown):
        raise contract.failed("mosek", f"{reason} / {state}", limits)
    supports = []
    if state in (states.integer_optimal, states.prim_feas):
        values = np.asarray(solver.getxx(kind))[z]
        supports.append(tuple(int(j) for j in np.flatnonzero(values > 0.5)))
    bound = float(solver.getdouinf(mosek.dinfitem.mio_obj_bound))
    has_bound = solver.getintinf(mosek.iinfitem.mio_obj_bound_defined)
    return contract.Answer(
        stop=stops[reason],
        bound=bound if has_bound else -math.inf,
        supports=tuple(supports),
        nodes=int(solver.getintinf(mosek.iinfitem.mio_num_branch)),
        raw_status=f"{reason} / {state}",
        seconds=seconds,
    )


def _describe(mosek: Any) -> contract.Availability:
    version = ".".join(str(number) for number in mosek.Env.getversion())
    hint = "put a licence file at the path in MOSEKLM_LICENSE_FILE; "
    hint += "`sparsecv export DATA --target COLUMN --tau N --gamma G --to model.ptf` needs no licence"
    try:
        with mosek.Env() as env:
            env.checkoutlicense(mosek.feature.pton)
    except mosek.Error as error:
        why = f"no licence ({str(error.errno).removeprefix('rescode.')})"
        return contract.Availability(False, why, version, hint=hint)
    return contract.Availability(True, "", version, "full")


def write_conic(path: str, arrays: LoweredProblem) -> None:
    """Write compiled arrays to a file; needs no licence."""
    try:
        import mosek
    except ImportError as error:
        raise BackendUnavailable(
            "a conic file needs the package mosek, but no licence; run `pip install mosek`"
        ) from error
    with mosek.Env() as env, build(env, arrays) as solver:
        try:
            solver.writedata(path)
        except mosek.Error as error:
            raise BadInput(f"cannot write {path}: {error.msg or error.errno}") from None
