"""The commands `sparsecv fit` and `export`: one mixed-integer problem with side constraints, solved or written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sparsecv_mio import model_space
from sparsecv_mio.cli import ending, parse, session
from sparsecv_mio.cli.command_options import REFERENCE, DataFile, Given, group, option, with_declared_options
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.declared_options import LOSSES, RESTRICTING, STOPPING, TABLE, UNITS
from sparsecv_mio.errors import BadInput, parse_keyword
from sparsecv_mio.parallel import call_in_thread
from sparsecv_mio.targets import Loss

if TYPE_CHECKING:
    from sparsecv_mio.fits.fit_options import FitOptions, SideOptions
    from sparsecv_mio.formulation.outcome import StopRequest


TOGETHER = option(None, "A,B", "Select all of these features or none. May be repeated. [none]")
BOX = option(
    None,
    "A:LO:HI",
    "Bounds on the coefficient of feature A, in units of the file; a bound may be empty (A:0: forces a sign). May be "
    "repeated. [none]",
)


def one_gamma(text: str) -> float:
    """Return a single ridge weight."""
    gammas = model_space.gammas(text)
    if len(gammas) != 1:
        raise BadInput(f"--gamma: {text!r}: one MIO needs exactly one gamma; give one value")
    return gammas[0]


def side_options(restrictions: Given, together: Sequence[str] | None, box: Sequence[str] | None) -> SideOptions:
    """Return the side constraints that the options describe.

    Parameters
    ----------
    restrictions : dict
        Options of `RESTRICTING`, by name.
    together : sequence of str, optional
        Groups of features that enter together.
    box : sequence of str, optional
        Boxes `FEATURE:LO:HI`.

    Returns
    -------
    SideOptions
        The side constraints.

    Raises
    ------
    BadInput
        If a text cannot be parsed; the message names its option.
    """
    from sparsecv_mio.fits.fit_options import SideOptions

    return SideOptions(
        **vars(parse.restrictions(**restrictions)),
        together=tuple(tuple(parse.names(text, "--together") or ()) for text in together or ()),
        box=dict(_parse_box(text) for text in box or ()),
    )


def _parse_box(text: str) -> tuple[str, tuple[float, float]]:
    # split from the right, since a name may contain a colon
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise BadInput(f"--box: {text!r} is not of the form FEATURE:LO:HI; write for example age:0:5")
    low = model_space.finite_number(parts[1], "--box") if parts[1].strip() else -math.inf
    high = model_space.finite_number(parts[2], "--box") if parts[2].strip() else math.inf
    if low > high:
        raise BadInput(f"--box: {text!r} is reversed; give the smaller bound first")
    return model_space.unquoted_name(parts[0]), (low, high)


FIT_CODES = (
    "Exit codes: 0 proved within --gap, 2 bad input or no support meets the side constraints, 3 limit "
    "reached (answer printed, bounds valid), 4 backend unavailable, 130 interrupted."
)


@dataclass(frozen=True)
class FitRequest:
    """The options of the command `fit`, in the order of its help."""

    tau: int = option(..., "K", "Maximum number of features.", least=0)
    gamma: str = option(..., "G", "Ridge weight, such as 0.1.")
    table: Given = group(TABLE)
    losses: Given = group(LOSSES)
    weights: str | None = None
    backend: str = option("native", "B", "Solver; `sparsecv backends` lists them.")
    formulation: str | None = option(None, "F", "MIO formulation. [the first one of the backend]")
    solver_option: list[str] | None = None
    units: Given = group(UNITS)
    stopping: Given = group(STOPPING | {"gap": 1e-7})
    threads: int | None = None
    start: str | None = option(None, "A,B", "Initial support: features to start from. [none]")
    restrictions: Given = group(RESTRICTING)
    together: list[str] | None = TOGETHER
    box: list[str] | None = BOX
    assume_box: float | None = option(
        None, "M",
        "Assume that coefficients are in [-M, M]; the proof then covers only such models. [no assumption]",
    )  # fmt: skip
    reference: str | None = REFERENCE
    log: str | None = option(None, "FILE", "Write the log of the solver to this file. [none]")
    proof: str | None = None
    json: str | None = None
    quiet: bool = False

    def make_options(self, side: SideOptions, cancel: StopRequest) -> FitOptions:
        """Return the checked options of the fit; raise `BadInput` for options that the backend does not support.

        Parameters
        ----------
        side : SideOptions
            Side constraints.
        cancel : StopRequest
            Signal that ends the solver.
        """
        from sparsecv_mio.fits.fit_options import FitOptions
        from sparsecv_mio.formulation.backends import get_backend
        from sparsecv_mio.search.options import limits_of_mio

        how = FitOptions.of(
            backend=self.backend, formulation=self.formulation, solver_option=self.solver_option, **self.units,
            **self.losses, side=side, start=parse.names(self.start, "--start"), assume_box=self.assume_box,
        )  # fmt: skip
        honoured = get_backend(how.backend).capabilities.limits
        if self.log is not None and "log" not in honoured:
            raise BadInput(f"--log: backend {how.backend} does not write a log; leave this option out")
        threads = session.cores() if "threads" in honoured else 1
        if self.threads is not None:
            threads = self.threads
        return replace(how, limits=limits_of_mio(self.stopping, threads=threads, log=self.log, cancel=cancel))


@with_declared_options(request=FitRequest)
def fit(data: DataFile, *, request: FitRequest) -> int:
    """Find the best subset of at most K features on all rows, by one solver.

    The objective of the answer is an exact refit; the bound is the solver's, less what it is not trusted for.
    """
    weights, quiet, json, proof = request.weights, request.quiet, request.json, request.proof
    ridge = one_gamma(request.gamma)
    session.check_outputs({"--json": json, "--log": request.log, "--proof": proof}, [data])
    side = side_options(request.restrictions, request.together, request.box)

    with session.stop_on_interrupt() as stop:
        how = request.make_options(side, stop)
        obstacle = None if request.assume_box is None else "--assume-box"
        refuse_early(proof, side, weights, how.loss, how.class_weight, obstacle)
        dataset = session.read_weighted(data, request.table, weights, how.loss, how.exposure)
        from sparsecv_mio.certificate.factor_levels import reference_levels
        from sparsecv_mio.fits.one import fit_one
        from sparsecv_mio.report.reference_levels import make_printer, with_reference

        levels = reference_levels(parse.names(request.reference, "--reference") or (), dataset, side)
        session.raise_if_interrupted(stop)
        record = call_in_thread(lambda: fit_one(dataset, tau=request.tau, gamma=ridge, options=how))
        record = with_reference(record, levels)

    from sparsecv_mio.report.backend_tables import print_fit

    return ending.deliver(
        session.EXIT_CODE[record.status],
        make_printer(lambda screen, one: print_fit(screen, one, quiet, dataset), record),
        json=json, record=record.pieces,
        files=proof_files(record, dataset, proof, data=data, json=json, quiet=quiet),
        warnings=() if quiet else record.warnings,
    )  # fmt: skip


@with_declared_options(table=TABLE, losses=LOSSES, units=UNITS, restrictions=RESTRICTING)
def export(
    data: DataFile,
    *,
    tau: int = option(..., "K", "Maximum number of features.", least=0),
    gamma: str = option(..., "G", "Ridge weight, such as 0.1 (for columns of length 1)."),
    to: str = option(..., "FILE", "Output file: .mps, .lp, .nl (quadratic), .cbf or .ptf (conic)."),
    table: Given,
    losses: Given,
    weights: str | None = None,
    units: Given,
    restrictions: Given,
    together: list[str] | None = TOGETHER,
    box: list[str] | None = BOX,
    piecewise: int | None = option(None, "N", "Write a linear model instead of the quadratic one, as for HiGHS: N "
                                   "tangents for each square, and big-M rows. Only for .mps and .lp. "
                                   "[quadratic]"),
) -> int:  # fmt: skip
    """Write the perspective formulation of one full-data MIO problem to a file that other solvers read.

    Gurobi reads .mps and .lp, SCIP .mps and .nl, Mosek .cbf and .ptf, HiGHS .mps and .lp with --piecewise. Of --loss
    logistic there are .nl, .cbf and .ptf, and .mps and .lp with --piecewise.
    """
    ridge = one_gamma(gamma)
    session.check_outputs({"--to": to}, [data])
    side = side_options(restrictions, together, box)
    loss = parse_keyword(Loss, losses["loss"], "loss")
    dataset = session.read_weighted(data, table, weights, loss)

    from sparsecv_mio.fits.one import describe_export, export_one

    options = {**units, **losses, "side": side, "piecewise": piecewise}
    offset, factor, missed = export_one(dataset, to, tau=tau, gamma=ridge, **options)
    total = loss.target.total
    total += ", rows by their weights," if weights is not None else ""
    meaning = f"{to}: {total} + (gamma/2) ||b||^2 in the scaled columns = {offset!r} + {factor!r} * objective"
    lines = f"{meaning}\n{describe_export(to, piecewise, missed, loss)}"
    return ending.deliver(0, lambda screen: screen.print(lines, markup=False, soft_wrap=True))
