"""`sparsecv export`: the model of one MIO as a file."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecv_mio.cli import ending, options, parse, session
from sparsecv_mio.cli import side as extra
from sparsecv_mio.cli.reading import reads_tables
from sparsecv_mio.data.reading import ReadingWords


@reads_tables
def export(
    data: options.DataFile,
    tau: Annotated[int, typer.Option("--tau", metavar="K", help="Largest number of features.")],
    gamma: Annotated[str, typer.Option("--gamma", metavar="G", help="Ridge weight.")],
    to: Annotated[
        str, typer.Option("--to", metavar="FILE", help="Ends with .mps, .lp, .nl (quadratic), .cbf or .ptf (conic).")
    ],
    target: options.Target = None,
    features: options.Features = None,
    drop: options.Drop = None,
    reading: ReadingWords | None = None,
    scale: options.Scale = "length",
    intercept: options.Intercept = "fold",
    force_in: options.ForceIn = None,
    force_out: options.ForceOut = None,
    together: extra.Together = None,
    at_most: extra.AtMost = None,
    box: extra.Box = None,
    hierarchy: options.Hierarchy = None,
    nonnegative: options.Nonnegative = None,
    nonpositive: options.Nonpositive = None,
) -> int:
    """Write the perspective model of one MIO on all rows to a file that other solvers read."""
    weight = extra.one_gamma(gamma)
    parse.count(tau, "--tau", least=0)
    session.check_outputs({"--to": to}, [data])
    side = extra.side_options(
        force_in, force_out, together, at_most, box, hierarchy=hierarchy,
        signs=parse.restrictions(nonnegative=nonnegative, nonpositive=nonpositive),
    )  # fmt: skip
    dataset = session.read_data(data, target, features, drop, (), reading=reading)

    from sparsecv_mio.fits.one import export_one

    offset, factor = export_one(dataset, to, tau=tau, gamma=weight, scale=scale, intercept=intercept, side=side)
    meaning = f"{to}: ||y - Xb||^2 + (gamma/2) ||b||^2 in the scaled columns = {offset!r} + {factor!r} * objective"
    return ending.deliver(0, lambda screen: screen.print(meaning, markup=False, soft_wrap=True))
