"""`sparsecv iacv`: left-out fits along the path of a first-order method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecv_mio.cli import options, oracles, parse, session
from sparsecv_mio.cli.ending import tell
from sparsecv_mio.cli.reading import reads_tables
from sparsecv_mio.data.reading import ReadingWords

if TYPE_CHECKING:
    from rich.console import Console

MOST_STEPS = 10**9
LOSSES, PENALTIES, SOLVERS = ("logistic", "squared", "poisson"), ("ridge", "l1"), ("gd", "sgd", "proxgd")

CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted (what was found until then is written)."


@reads_tables
def iacv(
    data: options.DataFile,
    lam: Annotated[float, typer.Option("--lam", metavar="X", help="Weight lam of the penalty.", show_default=False)],
    iterations: Annotated[int, typer.Option("--iterations", metavar="N", help="Steps.", show_default=False)],
    target: options.Target = None,
    features: options.Features = None,
    drop: options.Drop = None,
    reading: ReadingWords | None = None,
    loss: Annotated[
        str,
        typer.Option(
            "--loss",
            metavar="WORD",
            callback=parse.word(LOSSES, "--loss"),
            help="logistic (the target's two values become -1 and +1), squared (y - x'b)^2, or poisson.",
        ),
    ] = "logistic",
    penalty: Annotated[
        str,
        typer.Option(
            "--penalty", "--reg", metavar="WORD", callback=parse.model_word(PENALTIES, "--penalty"),
            help="ridge (or l2), sum b_j^2, or l1, sum |b_j| (proxgd only).",
        ),
    ] = "ridge",
    solver: Annotated[
        str,
        typer.Option(
            "--solver",
            metavar="WORD",
            callback=parse.word(SOLVERS, "--solver"),
            help="gd, sgd or proxgd. A step of sgd takes its batch's losses and the whole penalty, as in the paper.",
        ),
    ] = "gd",
    batch: Annotated[
        int | None, typer.Option("--batch", metavar="B", help="Rows per step of sgd. [100, or all rows if fewer]")
    ] = None,
    step: Annotated[
        float | None, typer.Option("--step", metavar="A", help="Step length. [one over the Lipschitz constant]")
    ] = None,
    doubling: Annotated[
        int | None,
        typer.Option("--doubling", metavar="N", help="N steps, then 2 N of half the length, and so on. [fixed]"),
    ] = None,
    scale_penalty: Annotated[
        bool, typer.Option("--scale-penalty", help="Weigh the penalty of an sgd step by B / n.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Run the exact left-out fits too and report the errors.")
    ] = False,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Newton step, infinitesimal jackknife and the full fit too.")
    ] = False,
    early_stop: Annotated[
        int | None,
        typer.Option("--early-stop", metavar="N", help="Stop when the approximated loss has not fallen in N steps."),
    ] = None,
    scale: options.Scale = "none",
    intercept: options.Intercept = "none",
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of the batches of sgd. [0]")] = None,
    json: options.Json = None,
    plot: options.Plot = None,
    quiet: options.Quiet = False,
) -> int:
    """Approximate the leave-one-out loss along the iterations of a solver.

    Iterative approximate cross-validation (Luo, Ren, Barber 2023). The objective is the paper's sum, not divided by the
    number of rows: sum_i loss_i + lam * penalty. Columns are used as they are in the file and no intercept is added,
    unless --scale and --intercept ask for it. The numbers are estimates, not certificates.
    """
    counts = {"--iterations": iterations, "--batch": batch, "--doubling": doubling, "--early-stop": early_stop}
    for option, value in counts.items():
        parse.count(value, option, most=MOST_STEPS)
    parse.count(seed, "--seed", least=0)
    if seed is not None and solver != "sgd" and not quiet:
        tell(f"note: --seed {seed} changes nothing: only --solver sgd draws batches")
    session.check_outputs({"--json": json, "--plot": plot}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.oracles.iacv import METHODS, EarlyStop, make_erm, make_solver, run
        from sparsecv_mio.report.oracle_plots import plot_report

        dataset = session.read_data(data, target, features, drop, (), reading=reading, two_words=loss == "logistic")
        erm = make_erm(dataset, loss, penalty, lam, scale=scale, intercept=intercept)
        method = make_solver(
            erm, solver, iterations=iterations, step=step, batch=batch, doubling=doubling, seed=seed or 0,
            scale_penalty=scale_penalty,
        )  # fmt: skip
        session.raise_if_interrupted(stop)
        with oracles.counting_bar(quiet, "steps") as progress:
            report = run(
                erm, method, iterations, methods=(*(METHODS if baselines else ()), *(("exact",) if exact else ())),
                early_stop=None if early_stop is None else EarlyStop(early_stop), progress=progress, stop=stop,
            )  # fmt: skip
        interrupted = stop.is_set()
    chosen = {
        "loss": loss, "penalty": penalty, "lam": lam, "solver": solver, "iterations": iterations,
        "step": method.schedule(1), "batch": method.batch, "doubling": doubling, "scale_penalty": scale_penalty,
        "scale": scale, "intercept": intercept, "seed": seed or 0,
    }  # fmt: skip
    title = f"{loss} loss, {penalty} penalty, {solver}, n = {erm.n}, p = {erm.p}"
    return oracles.deliver(
        "iacv", dataset, chosen, report.summary(), _print, quiet=quiet, json=json, code=130 if interrupted else 0,
        files=[] if plot is None else [lambda: plot_report(report, plot, title)],
    )  # fmt: skip


def _print(screen: Console, found: dict[str, Any], quiet: bool) -> None:
    """Print the answer in a few lines; when quiet, the estimate alone."""
    if quiet:
        screen.print(f"{found['cv']:.10g}")
        return
    why = "best, stopped early" if found["stopped_early"] else "last"
    screen.print(f"leave-one-out loss  {found['cv']:.8g}  (approximated; iteration {found['iteration']}, {why})")
    raw = oracles.as_given(found["options"])
    if raw:
        screen.print(f"model               {raw}")
    if found["best_iteration"] != found["iteration"]:
        screen.print(f"smallest on the way {found['best_cv']:.8g}  (iteration {found['best_iteration']})")
    if found["cv_exact"] is not None:
        screen.print(f"exact               {found['cv_exact']:.8g}  (relative error {found['rel_err_cv']:.2e})")
        screen.print(f"mean distance of the left-out fits from the exact ones: {found['err_approx']:.3e}")
    for name, word in (("ns", "Newton step"), ("ij", "jackknife"), ("baseline", "full fit")):
        if name in found:
            distance = found[name]["err_approx"]
            screen.print(f"{word:<20}{found[name]['cv']:.8g}" + (f"  (distance {distance:.3e})" if distance else ""))
    exact = "" if found["seconds_exact"] is None else f", exact {found['seconds_exact']:.3g} s"
    screen.print(f"time                {found['seconds']:.3g} s{exact}")
