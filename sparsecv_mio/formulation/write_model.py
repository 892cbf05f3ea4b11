"""Write the perspective model of one problem to a file that other solvers read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from sparsecv_mio.errors import BackendUnavailable, BadInput
from sparsecv_mio.files import replacing
from sparsecv_mio.formulation.before_solving import feasible_start
from sparsecv_mio.formulation.outcome import KnownBounds
from sparsecv_mio.formulation.task import model_task
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.problem import SparseProblem

BY_PYOMO = {".mps": "mps", ".lp": "lp", ".nl": "nl"}
BY_MOSEK = (".cbf", ".ptf")


def export_model(
    problem: SparseProblem,
    tau: int,
    path: str,
    *,
    labels: Sequence[str] | None = None,
    constraints: SideConstraints = FREE,
) -> tuple[float, float]:
    """Write the perspective MISOCP to a file.

    Parameters
    ----------
    problem : SparseProblem
        In standard coordinates.
    tau : int
        Largest support size.
    path : str
        Ends with .mps, .lp, .nl (quadratic, by Pyomo) or .cbf, .ptf (conic, by Mosek, no licence needed).
    labels : sequence of str, optional
        Names of the columns; they appear in the names of the variables where the format has names.
    constraints : SideConstraints, optional
        Side constraints.

    Returns
    -------
    offset, factor : float
        `f = offset + factor * (objective of the file)`, `f` in standard coordinates.

    Raises
    ------
    BadInput
        For an unknown ending, a file that cannot be written, or side constraints that exclude every support.
    BackendUnavailable
        When pyomo, or mosek for a conic format, is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in BY_PYOMO and suffix not in BY_MOSEK:
        raise BadInput(f"--to: unknown ending {suffix!r}, use {', '.join([*BY_PYOMO, *BY_MOSEK])}")
    start = feasible_start(problem, tau, constraints)
    if start is None:
        raise BadInput(f"no support of at most {tau} features meets the side constraints")
    task = model_task(problem, tau, constraints, start, KnownBounds())
    try:
        from sparsecv_mio.formulation.models import FactorModel, PerspectiveModel, lower_model
    except ImportError as error:
        raise BackendUnavailable(f"export needs pyomo: pip install pyomo ({error})") from error
    with replacing(path, "model") as temporary:
        if suffix in BY_PYOMO:
            logging.getLogger("pyomo").setLevel(logging.ERROR)
            model = PerspectiveModel(task, labels)
            model.pyomo.write(
                str(temporary), format=BY_PYOMO[suffix], io_options={"symbolic_solver_labels": labels is not None}
            )
        else:
            _write_conic(str(temporary), lower_model(FactorModel(task)))
    return problem.yy, task.scaled.unit**2


def _write_conic(path: str, arrays: object) -> None:
    try:
        import mosek
    except ImportError as error:
        raise BackendUnavailable("a conic file is written by mosek (no licence needed): pip install mosek") from error
    from sparsecv_mio.formulation.backends.mosek import build

    with mosek.Env() as env, build(env, arrays) as solver:  # type: ignore[arg-type]
        try:
            solver.writedata(path)
        except mosek.Error as error:
            raise BadInput(f"cannot write {path}: {error.msg or error.errno}") from None
