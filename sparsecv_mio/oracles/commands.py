"""The commands `sparsecv iacv`, `treecv`, `glru loocv` and `glru stepwise`, and their output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from sparsecv_mio.cli import ending, parse, session
from sparsecv_mio.cli.command_options import DataFile, Given, option, with_declared_options
from sparsecv_mio.cli.ending import tell
from sparsecv_mio.declared_options import TABLE, check_whole
from sparsecv_mio.digits import abbreviate_list, format_number
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles import CLASSIFIERS, LEARNERS, RAW_UNITS, SOLVERS
from sparsecv_mio.units import MOST_THREADS

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.arrays import FloatArray
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.oracles.glru import LoocvResult, Problem, StepwiseResult
    from sparsecv_mio.oracles.treecv import CvResult


Show = Callable[["Console", dict[str, Any], bool], None]
"""Prints the numbers of the JSON file on a screen, few of them when quiet."""

glru_app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)
GLRU_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted (partial results are written)."

GLRU_LOSSES = ("logistic", "squared_hinge", "smoothed_hinge", "huber", "squared")
GLRU_PENALTIES = ("ridge", "elastic_net", "l1")
MOST_ITERATIONS = 10**9
IACV_LOSSES, IACV_PENALTIES = ("logistic", "squared", "poisson"), ("ridge", "l1")
IACV_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted (partial results are written)."
TREECV_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted."


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


@with_declared_options(table=TABLE, units=RAW_UNITS)
def iacv(
    data: DataFile,
    *,
    lam: float = option(..., "X", "Weight lam of the penalty."),
    iterations: int = option(..., "N", "Number of steps.", least=1, most=MOST_ITERATIONS),
    table: Given,
    loss: str = option("logistic", "WORD", "Loss: logistic (the two values of the target become -1 and +1), squared "
                       "(y - x'b)^2, or poisson.", IACV_LOSSES),
    penalty: str = option("ridge", "WORD", "Penalty: ridge (or l2), sum b_j^2, or l1, sum |b_j| (proxgd only).",
                          read=parse.model_word(IACV_PENALTIES, "--penalty"), also="--reg"),
    solver: str = option("gd", "WORD", "Solver: gd, sgd or proxgd. A step of sgd uses the losses of its batch and the "
                                       "full "
                         "penalty, as in the paper.", SOLVERS),
    batch: int | None = option(None, "B", "Rows per step of sgd. [100, or all rows if fewer]", least=1,
                                 most=MOST_ITERATIONS),
    step: float | None = option(None, "A", "Step length. [one over the Lipschitz constant]"),
    doubling: int | None = option(None, "N", "Halve the step length after N steps, again after 2 N more steps, and so "
                                             "on. [fixed length]", least=1,
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

    The method is iterative approximate cross-validation (Luo, Ren and Barber 2023). The objective is that of the paper,
    which is not divided by the number of rows: sum_i loss_i + lam * penalty. By default, columns are not scaled and
    there is no intercept; --scale and --intercept change this. The numbers are estimates; they are not certified.
    """
    if seed is not None and solver != "sgd" and not quiet:
        tell(f"note: --seed {seed} has no effect, because only --solver sgd draws random batches")
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


@with_declared_options(table=TABLE, units=RAW_UNITS)
def treecv(
    data: DataFile,
    *,
    table: Given,
    learner: str = option("ridge", "WORD", "Learner: pegasos (linear SVM), lsqsgd (averaged least-squares SGD in the "
                                           "unit "
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

    The method is TreeCV (Joulani, Gyorgy and Szepesvari 2015), for up to k = n folds. By default, columns are not
    scaled and there is no intercept; --scale and --intercept change this. Classifiers map the two values of the target
    to -1 and +1. The estimate is the mean over the folds of the mean loss: the squared error, or the share of wrong
    classes.
    """
    parse.positive(lam, "--lam", zero=True)
    parse.positive(step, "--step")
    session.check_outputs({"--json": json}, [data])
    from sparsecv_mio.cli.live import counting_bar
    from sparsecv_mio.data.folds import make_folds
    from sparsecv_mio.data.read_and_split import requested_columns
    from sparsecv_mio.oracles.treecv import make_task, standard_cv, tree_cv

    check_whole("--seed", seed, 0)
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


@dataclass(frozen=True)
class Classifier:
    """Options of the classifier and of the accuracy of its trainings."""

    lam: float = option(..., "X", "Weight lam of the penalty, positive.")
    loss: str = option(
        "logistic", "WORD", "Loss for the labels -1 and +1: logistic, squared_hinge, smoothed_hinge, huber or squared.",
        read=parse.model_word(GLRU_LOSSES, "--loss"),
    )  # fmt: skip
    width: float | None = option(None, "X", "Width of the losses smoothed_hinge and huber. [1]")
    penalty: str = option(
        "ridge", "WORD", "Penalty. ridge (or l2): (lam/2) ||w||^2; elastic_net: (lam/2) ||w||^2 + l1 ||w||_1; l1: lam "
                         "||w||_1.",
        read=parse.model_word(GLRU_PENALTIES, "--penalty"), also="--reg",
    )  # fmt: skip
    l1: float | None = option(None, "X", "Weight of the l1 norm in the penalty elastic_net.")
    naive: bool = option(False, "", "Train every model without bounds, for comparison.")
    tol: float = option(1e-6, "G", "Relative duality gap of every training.")

    def problem(self, X: FloatArray, y: FloatArray, intercept: str) -> Problem:
        """Return the problem for these rows."""
        from sparsecv_mio.oracles.glru import make_loss, make_problem, make_regularizer

        regularizer = make_regularizer(self.penalty, self.lam, self.l1, intercept == "fold")
        return make_problem(X, y, make_loss(self.loss, self.width), regularizer)


@glru_app.callback()
def _group() -> None:
    """Generalized low-rank update: leave-one-out and stepwise selection with certified bounds instead of trainings.

    Hanada, Hashimoto, Taji, Takeuchi 2023. The objective is (1/n) sum_i loss_i + (lam/2) ||w||^2.
    """


@glru_app.command(epilog=GLRU_CODES)
@with_declared_options(model=Classifier, table=TABLE, units=RAW_UNITS)
def loocv(
    data: DataFile,
    *,
    model: Classifier,
    table: Given,
    approx: bool = option(False, "", "Replace each training by one Newton step; the result is an estimate."),
    units: Given,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Count the leave-one-out errors of a linear classifier.

    Bounds from one fit determine the predicted sign of most held-out rows. The other rows take a certified Newton step,
    or a training that stops when the sign is certain. The objective is that of the paper,
    (1/n) sum_i loss_i + (lam/2) ||w||^2. The two values of the target become the labels -1 (the smaller value) and +1.
    By default, columns are not scaled and there is no intercept; --scale and --intercept change this.
    """
    parse.tolerance(model.tol)
    session.check_outputs({"--json": json}, [data])
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.cli.live import counting_bar
        from sparsecv_mio.oracles.glru import loocv as count

        dataset = session.read_data(data, table, two_words=True)
        X, y, values = _inputs(dataset, units)
        problem = model.problem(X, y, units["intercept"])
        session.raise_if_interrupted(stop)
        with counting_bar(quiet, "rows") as progress:
            answer = count(
                problem, tol=model.tol, bounds=not model.naive, approximate=approx, progress=progress, stop=stop
            )  # fmt: skip
    chosen = {**asdict(model), "approx": approx, **units}
    return deliver_numbers(
        "glru loocv", dataset, chosen, {"labels": values, **_loocv_numbers(answer, dataset.n)}, _print_loocv,
        quiet=quiet, json=json, code=130 if answer.unknown else 0,
    )  # fmt: skip


@glru_app.command(epilog=GLRU_CODES)
@with_declared_options(model=Classifier, table=TABLE, units=RAW_UNITS)
def stepwise(
    data: DataFile,
    *,
    model: Classifier,
    table: Given,
    direction: str = option("backward", "WORD", "Direction: backward (remove columns) or forward (add columns).",
                            ("backward", "forward")),
    validation: str | None = option(None, "FILE", "File of validation rows with the same columns. [rows held out by "
                                                  "--holdout]"),
    holdout: float = option(0.1, "F", "Share of the rows held out for validation."),
    seed: int | None = None,
    steps: int | None = option(None, "K", "Maximum number of steps. [no limit]", least=1),
    ties: str = option("any", "WORD", "Choice among candidates with equal errors: any (the one found first) or first "
                                      "(the first in column order).", ("any", "first")),
    units: Given,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Remove or add columns one at a time while the number of validation errors falls.

    Candidates are trained in the order of certified lower bounds on their errors, until no bound is below the best
    number of errors found. The objective is that of the paper, (1/n) sum_i loss_i + (lam/2) ||w||^2. The two values of
    the target become the labels -1 (the smaller value) and +1. By default, columns are not scaled and there is no
    intercept; --scale and --intercept change this (scales and centres are computed from all rows of DATA).
    """
    parse.tolerance(model.tol)
    session.check_outputs({"--json": json}, [data, *([validation] if validation else [])])
    check_whole("--seed", seed, 0)
    if seed is not None and validation is not None and not quiet:
        tell(f"note: --seed {seed} has no effect, because --validation names the validation rows")
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.cli.live import counting_bar
        from sparsecv_mio.oracles.glru import StepwiseOptions
        from sparsecv_mio.oracles.glru import stepwise as select

        dataset = session.read_data(data, table, two_words=True)
        extra = None if validation is None else _validation(validation, dataset)
        X, y, V, v, values = _split_rows(dataset, extra, holdout, seed or 0, units)
        problem = model.problem(X, y, units["intercept"])
        session.raise_if_interrupted(stop)
        with counting_bar(quiet, "candidates") as progress:
            options = StepwiseOptions(direction, model.tol, not model.naive, ties, steps)  # type: ignore[arg-type]
            selected = select(problem, V, v, options, progress=progress, stop=stop)
        interrupted = stop.is_set()
    chosen = {
        **asdict(model), "direction": direction, "validation": validation, "holdout": holdout, "seed": seed or 0,
        "steps": steps, "ties": ties, **units,
    }  # fmt: skip
    numbers = {"labels": values, **_stepwise_numbers(selected, dataset, len(y), len(v))}
    return deliver_numbers(
        "glru stepwise", dataset, chosen, numbers, _print_stepwise,
        quiet=quiet, json=json, code=130 if interrupted else 0,
    )  # fmt: skip


def _inputs(dataset: Dataset, units: Given) -> tuple[FloatArray, FloatArray, list[float]]:
    from sparsecv_mio.oracles.answers import binary_labels, design_matrix

    y, values = binary_labels(dataset)
    return design_matrix(dataset, **units), y, list(values)


def _split_rows(
    dataset: Dataset, extra: Dataset | None, holdout: float, seed: int, units: Given
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, list[float]]:
    """Return training rows and labels, validation rows and labels, and the values of the target."""
    from sparsecv_mio.oracles.answers import holdout_split, validation_rows

    X, y, values = _inputs(dataset, units)
    if extra is not None:
        return X, y, *validation_rows(dataset, extra, **units), values
    train, test = holdout_split(dataset, holdout, seed)
    return X[train], y[train], X[test], y[test], values


def _loocv_numbers(found: LoocvResult, n: int) -> dict[str, Any]:
    return {
        "errors": found.errors,
        "unknown": found.unknown,
        "error_rate": found.errors / n,
        "errors_before_training": list(found.bracket),
        "open": int(found.open.sum()),
        "trainings": found.trainings,
        "certain": int(found.certain.sum()),
        "guarantee": str(found.guarantee),
        "n": n,
        "seconds": found.seconds["total"],
        "stages": found.seconds,
    }


def _print_model(screen: Console, found: dict[str, Any], width: int) -> None:
    raw = raw_data_note(found["options"])
    if raw:
        screen.print(f"{'model':<{width}}  {raw}")


def _validation(path: str, dataset: Dataset) -> Dataset:
    """Return the rows of --validation, read with the preprocessing of the data."""
    from sparsecv_mio.data.readers import read_rows

    rows = read_rows(path, dataset.names, dataset.target, dataset.reading)
    if not rows.has_target.all():
        raise BadInput(
            f"--validation: {rows.doubt or f'a row of {path} has no target {dataset.target!r}; remove the row'}"
        )
    return rows.data


def _print_loocv(screen: Console, found: dict[str, Any], quiet: bool) -> None:
    if quiet:
        screen.print(str(found["errors"]))
        return
    n, (low, high) = found["n"], found["errors_before_training"]
    unknown = "" if not found["unknown"] else f", {found['unknown']} rows unknown"
    _print_model(screen, found, 20)
    screen.print(f"leave-one-out errors  {found['errors']} of {n} ({100 * found['error_rate']:.2f}%{unknown})")
    screen.print(f"bounds of one fit      between {low} and {high}; {found['open']} rows not decided")
    screen.print(f"trainings             {found['trainings']} of {n}; {found['certain']} signs certified")
    stages = ", ".join(f"{name} {found['stages'][name]:.3g} s" for name in ("prepare", "bounds", "train"))
    screen.print(f"time                  {found['seconds']:.3g} s ({stages})")


def _stepwise_numbers(found: StepwiseResult, dataset: Dataset, n: int, m: int) -> dict[str, Any]:
    name = dataset.names
    path = [
        {
            "column": None if step.column is None else name[step.column],
            "errors": step.errors,
            "candidates": int(step.candidates.size),
            "trainings": step.trainings,
        }
        for step in found.steps
    ]
    d = dataset.p
    return {
        "selected": [name[j] for j in found.selected.tolist()],
        "coefficients": {name[j]: float(found.w[j]) for j in found.selected.tolist()},
        "intercept": float(found.w[d]) if found.w.size > d else 0.0,
        "errors": found.errors,
        "errors_at_start": found.start_errors,
        "path": path,
        "trainings": found.trainings,
        "candidates": found.candidates,
        "n": n,
        "n_validation": m,
        "seconds": found.seconds,
    }


def _print_stepwise(screen: Console, found: dict[str, Any], quiet: bool) -> None:
    if quiet:
        screen.print(str(found["errors"]))
        return
    _print_model(screen, found, 9)
    for step in found["path"]:
        column = "nothing better" if step["column"] is None else step["column"]
        screen.print(
            f"{column:<20} {step['errors']} errors  ({step['trainings']} trainings of {step['candidates']} candidates)"
        )
    screen.print(f"selected   {len(found['selected'])} columns: {abbreviate_list(found['selected'])}")
    screen.print(f"errors     {found['errors']} of {found['n_validation']} (at the start {found['errors_at_start']})")
    screen.print(f"trainings  {found['trainings']} of {found['candidates']}")
    screen.print(f"time       {found['seconds']:.3g} s")
