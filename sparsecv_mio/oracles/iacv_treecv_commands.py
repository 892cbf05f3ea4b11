"""The commands `sparsecv iacv` and `sparsecv treecv`, and the output of all oracle commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sparsecv_mio.cli import ending, parse, session
from sparsecv_mio.cli.command_options import DataFile, Given, option, with_declared_options
from sparsecv_mio.cli.ending import tell
from sparsecv_mio.declared_options import TABLE
from sparsecv_mio.digits import format_number
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles import CLASSIFIERS, LEARNERS, RAW_UNITS, SOLVERS
from sparsecv_mio.units import MOST_THREADS

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.oracles.treecv import CvResult


Show = Callable[["Console", dict[str, Any], bool], None]
"""Prints the numbers of the JSON file on a screen, few of them when quiet."""


def raw_data_note(options: Mapping[str, Any]) -> str:
    """Return a note that columns are not scaled and no intercept is added, if these defaults apply."""
    raw = {"columns as in the file, not scaled (--scale)": "scale", "no intercept (--intercept)": "intercept"}
    return ", ".join(text for text, name in raw.items() if options[name] == "none")


def deliver_numbers(
    command: str,
    dataset: Dataset,
    options: Mapping[str, Any],
    found: Mapping[str, Any],
    show: Show,
    *,
    quiet: bool,
    json: str | None,
    code: int = 0,
) -> int:  # fmt: skip
    """Print the results and write their JSON file; return the exit code.

    Parameters
    ----------
    command : str
        Name of the command.
    dataset : Dataset
        Data of the fit.
    options, found : mapping
        Options of the command, and the resulting numbers.
    show : callable
        Function that prints the numbers.
    quiet : bool
        True to print only the main number.
    json : str or None
        File for the numbers.
    code : int
        Exit code if everything is written.
    """
    numbers = {"command": command, "data": session.describe_data(dataset), "options": options, **found}
    return ending.deliver(
        code, lambda screen: show(screen, numbers, quiet),
        json=json, record=ending.make_json_writer(numbers), warnings=session.reading_notes(dataset, quiet),
    )  # fmt: skip


MOST_ITERATIONS = 10**9
LOSSES, PENALTIES = ("logistic", "squared", "poisson"), ("ridge", "l1")

IACV_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted (what was found until then is written)."


@with_declared_options(table=TABLE, units=RAW_UNITS)
def iacv(
    data: DataFile,
    *,
    lam: float = option(..., "X", "Weight lam of the penalty."),
    iterations: int = option(..., "N", "Number of steps.", least=1, most=MOST_ITERATIONS),
    table: Given,
    loss: str = option("logistic", "WORD", "Loss: logistic (the two values of the target become -1 and +1), squared "
                       "(y - x'b)^2, or poisson.", LOSSES),
    penalty: str = option("ridge", "WORD", "Penalty: ridge (or l2), sum b_j^2, or l1, sum |b_j| (proxgd only).",
                          read=parse.model_word(PENALTIES, "--penalty"), also="--reg"),
    solver: str = option("gd", "WORD", "gd, sgd or proxgd. A step of sgd uses the losses of its batch and the full "
                         "penalty, as in the paper.", SOLVERS),
    batch: int | None = option(None, "B", "Rows per step of sgd. [100, or all rows if fewer]", least=1,
                                 most=MOST_ITERATIONS),
    step: float | None = option(None, "A", "Step length. [one over the Lipschitz constant]"),
    doubling: int | None = option(None, "N", "Halve the step length after N steps, then after 2 N more, and so on. "
                                             "[fixed length]", least=1,
                                 most=MOST_ITERATIONS),
    scale_penalty: bool = option(False, "", "Multiply the penalty of an sgd step by B / n."),
    exact: bool = option(False, "", "Also run the exact leave-one-out fits and report the approximation errors."),
    baselines: bool = option(False, "", "Also compute the Newton step, the infinitesimal jackknife and the full-data "
                                        "fit."),
    early_stop: int | None = option(None, "N", "Stop after N steps without a lower approximate loss. [never]", least=1,
                                   most=MOST_ITERATIONS),
    units: Given,
    seed: int | None = option(None, "N", "Seed of the batches of sgd. [0]", least=0),
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Approximate the leave-one-out loss along the iterations of a solver.

    Iterative approximate cross-validation (Luo, Ren, Barber 2023). The objective is the paper's sum, not divided by the
    number of rows: sum_i loss_i + lam * penalty. Columns are used as they are in the file and no intercept is added,
    unless --scale and --intercept ask for it. The numbers are estimates, not certificates.
    """
    if seed is not None and solver != "sgd" and not quiet:
        tell(f"note: --seed {seed} has no effect, because only --solver sgd draws batches")
    session.check_outputs({"--json": json}, [data])
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.cli.live import counting_bar
        from sparsecv_mio.oracles.iacv import METHODS, EarlyStop, make_erm, make_solver, run

        dataset = session.read_data(data, table, two_words=loss == "logistic")
        erm = make_erm(dataset, loss, penalty, lam, **units)
        method = make_solver(
            erm, solver, iterations=iterations, step=step, batch=batch, doubling=doubling, seed=seed or 0,
            scale_penalty=scale_penalty,
        )  # fmt: skip
        session.raise_if_interrupted(stop)
        with counting_bar(quiet, "steps") as progress:
            report = run(
                erm, method, iterations, methods=(*(METHODS if baselines else ()), *(("exact",) if exact else ())),
                early_stop=None if early_stop is None else EarlyStop(early_stop), progress=progress, stop=stop,
            )  # fmt: skip
        interrupted = stop.is_set()
    chosen = {
        "loss": loss, "penalty": penalty, "lam": lam, "solver": solver, "iterations": iterations,
        "step": method.alpha, "batch": method.batch, "doubling": doubling, "scale_penalty": scale_penalty,
        **units, "seed": seed or 0,
    }  # fmt: skip
    return deliver_numbers(
        "iacv", dataset, chosen, report.summary(), _print, quiet=quiet, json=json, code=130 if interrupted else 0,
    )  # fmt: skip


def _print(screen: Console, found: dict[str, Any], quiet: bool) -> None:
    """Print the answer in a few lines; with `quiet`, only the estimate."""
    if quiet:
        screen.print(f"{found['cv']:.10g}")
        return
    why = "best, stopped early" if found["stopped_early"] else "last"
    screen.print(
        f"leave-one-out loss  {format_number(found['cv'], 8)}  (approximated; iteration {found['iteration']}, {why})"
    )
    raw = raw_data_note(found["options"])
    if raw:
        screen.print(f"model               {raw}")
    if found["best_iteration"] != found["iteration"]:
        screen.print(f"smallest iterate  {format_number(found['best_cv'], 8)}  (iteration {found['best_iteration']})")
    if found["cv_exact"] is not None:
        screen.print(
            f"exact               {format_number(found['cv_exact'], 8)}  (relative error {found['rel_err_cv']:.2e})"
        )
        screen.print(f"mean distance of the leave-one-out fits from the exact fits: {found['err_approx']:.3e}")
    for name, word in (("ns", "Newton step"), ("ij", "jackknife"), ("baseline", "full fit")):
        if name in found:
            distance = found[name]["err_approx"]
            beside = f"  (distance {distance:.3e})" if distance else ""
            screen.print(f"{word:<20}{format_number(found[name]['cv'], 8)}{beside}")
    exact = "" if found["seconds_exact"] is None else f", exact {found['seconds_exact']:.3g} s"
    screen.print(f"time                {found['seconds']:.3g} s{exact}")


def compile_kernels() -> None:
    """Compile the kernels of the oracles on tiny data, for `sparsecv warmup`."""
    import numpy as np
    from scipy.sparse import csr_array

    from sparsecv_mio.data.folds import make_folds
    from sparsecv_mio.oracles.glru import Logistic, Regularizer, make_problem, train
    from sparsecv_mio.oracles.penalties import KSupport
    from sparsecv_mio.oracles.treecv import LeastSquaresSgd, tree_cv
    from sparsecv_mio.search.first_use import make_tiny_data

    data = make_tiny_data(30, 5)
    labels = np.where(data.y > 0.0, 1.0, -1.0)
    for X in (data.X, csr_array(data.X)):
        train(make_problem(X, labels, Logistic(), Regularizer(0.01, 0.01)))
    for shuffle_seed in (None, 0):
        tree_cv(LeastSquaresSgd(data.p, 0.1), data.X, data.y, make_folds("3", data), shuffle_seed=shuffle_seed)
    penalty = KSupport(2)  # penalty of IACV
    penalty.prox(data.X, penalty.value(data.y))


TREECV_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted."


@with_declared_options(table=TABLE, units=RAW_UNITS)
def treecv(
    data: DataFile,
    *,
    table: Given,
    learner: str = option("ridge", "WORD", "pegasos (linear SVM), lsqsgd (averaged least-squares SGD in the unit "
                          "ball), ridge (exact), naive-bayes (Gaussian) or bernoulli-nb (indicators x > 0).", LEARNERS),
    folds: str = "10",
    seed: int | None = option(None, "N", "Seed of the folds and of --randomized. [0]"),
    lam: float | None = option(None, "X", "Penalty weight lam of pegasos or ridge (lam * ||b||^2). [1e-6 for pegasos, "
                                          "1 for ridge]"),
    step: float | None = option(None, "A", "Step length of lsqsgd. [n^-1/2]"),
    randomized: bool = option(False, "", "Process the rows of every update in random order."),
    standard: bool = option(False, "", "Also run standard cross-validation, with one training per fold."),
    jobs: int = option(1, "N", "Number of threads.", least=1, most=MOST_THREADS),
    units: Given,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Cross-validate an incremental learner in log2(k) passes over the data.

    TreeCV (Joulani, Gyorgy, Szepesvari 2015), for up to k = n folds. Columns are used as they are in the file and no
    intercept is added, unless --scale and --intercept ask for it; classifiers map the target's two values to -1 and
    +1. The estimate is the mean of the folds' mean losses: squared error, or the share of wrong classes.
    """
    parse.positive(lam, "--lam", zero=True)
    parse.positive(step, "--step")
    session.check_outputs({"--json": json}, [data])
    from sparsecv_mio.cli.live import counting_bar
    from sparsecv_mio.data.folds import make_folds
    from sparsecv_mio.data.read_and_split import requested_columns
    from sparsecv_mio.oracles.treecv import make_task, standard_cv, tree_cv

    parse.count(seed, "--seed", least=0)
    try:
        dataset = session.read_data(data, table, requested_columns(folds), two_words=learner in CLASSIFIERS)
    except BadInput as error:  # the advice for searches names an option that this command does not have
        raise BadInput(str(error).replace('loss="logistic"', "--learner pegasos")) from error
    plan = make_folds(folds, dataset, seed or 0)
    session.note_unused_seed(plan, seed, quiet or randomized)
    shuffle_seed = (seed or 0) if randomized else None
    task = make_task(dataset, learner, lam=lam, step=step, **units)
    with counting_bar(quiet, "folds") as progress:
        tree = tree_cv(
            task.learner, task.X, task.y, plan,
            shuffle_seed=shuffle_seed, jobs=jobs, progress=progress,
        )  # fmt: skip
    plain = None
    if standard:
        with counting_bar(quiet, "trainings") as progress:
            plain = standard_cv(task.learner, task.X, task.y, plan, shuffle_seed=shuffle_seed, progress=progress)
    chosen = {
        "learner": learner, "lam": lam, "step": step, "folds": folds, "k": plan.k, "folds_digest": plan.digest,
        "seed": seed or 0, "randomized": randomized, "jobs": jobs, **units,
    }  # fmt: skip
    answer = {
        "loss": task.loss,
        **_result_numbers(tree),
        **({} if plain is None else {"standard": _result_numbers(plain)}),
    }
    return deliver_numbers("treecv", dataset, chosen, answer, _treecv_print, quiet=quiet, json=json)


def _result_numbers(found: CvResult) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("estimate", "pooled", "updates", "seconds")}


def _treecv_print(screen: Console, found: dict[str, Any], quiet: bool) -> None:
    """Print the estimates; with `quiet`, only that of the tree."""
    if quiet:
        screen.print(f"{found['estimate']:.10g}")
        return
    raw, k, n = raw_data_note(found["options"]), found["options"]["k"], found["data"]["n"]
    if raw:
        screen.print(f"model     {raw}")
    for name, numbers in (("TreeCV", found), ("standard", found.get("standard"))):
        if numbers is not None:
            screen.print(
                f"{name:<9} {found['loss']}  {format_number(numbers['estimate'], 8)}  (k = {k}; "
                f"{numbers['updates']} rows learned, {numbers['updates'] / n:.4g} n; {numbers['seconds']:.3g} s)"
            )
