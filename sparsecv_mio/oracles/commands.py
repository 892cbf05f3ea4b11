"""The commands `sparsecv iacv`, `treecv`, `glru loocv` and `glru stepwise`, and their output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from sparsecv_mio.cli import ending, parse, session
from sparsecv_mio.cli.command_options import DataFile, Given, option, with_declared_options
from sparsecv_mio.cli.ending import tell
from sparsecv_mio.declared_options import check_whole
from sparsecv_mio.digits import abbreviate_list, format_number
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles import CLASSIFIERS, LEARNERS, RAW_UNITS, SOLVERS
from sparsecv_mio.units import MOST_THREADS

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.arrays import FloatArray
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.oracles.glru import Problem, StepwiseResult
    from sparsecv_mio.oracles.treecv import CvResult


GLRU_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted (partial results are written)."

GLRU_LOSSES = ("logistic", "squared_hinge", "smoothed_hinge", "huber", "squared")
GLRU_PENALTIES = ("ridge", "elastic_net", "l1")
MOST_ITERATIONS = 10**9
IACV_LOSSES, IACV_PENALTIES = ("logistic", "squared", "poisson"), ("ridge", "l1")
IACV_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted (partial results are written)."
TREECV_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted."


def deliver_report(
    command: str,
    dataset: Dataset,
    options: Mapping[str, Any],
    numbers: Mapping[str, Any],
    headline: str,
    lines: Sequence[tuple[str, str]],
    *,
    quiet: bool,
    json: str | None,
    code: int = 0,
) -> int:
    """Print the results of a study and write their JSON file; return the exit code.

    Parameters
    ----------
    command : str
        Name of the command.
    dataset : Dataset
        Data of the fit.
    options, numbers : mapping
        Options of the command, and the resulting numbers, for the file.
    headline : str
        Main number, which is printed alone if `quiet` is set.
    lines : sequence of (str, str)
        Label and text of each line; a line `model` is added unless the columns are scaled and have an intercept.
    quiet : bool
        True to print only the headline.
    json : str or None
        File for the numbers.
    code : int
        Exit code if everything is written.
    """
    width = max(len(label) for label, _ in lines)

    def show(screen: Console) -> None:
        for text in [headline] if quiet else (f"{label:<{width}}  {text}" if label else text for label, text in lines):
            screen.print(text)

    content = {"command": command, "data": session.describe_data(dataset), "options": options, **numbers}
    return ending.deliver(
        code, show, json=json, record=ending.make_json_writer(content), warnings=session.reading_notes(dataset, quiet),
    )  # fmt: skip


def describe_model(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a line on columns that are not scaled and a missing intercept, if these defaults apply."""
    raw = {"columns as in the file, not scaled (--scale)": "scale", "no intercept (--intercept)": "intercept"}
    words = [text for text, name in raw.items() if options[name] == "none"]
    return [("model", ", ".join(words))] if words else []


@with_declared_options(units=RAW_UNITS)
def iacv(
    data: DataFile,
    *,
    lam: float = option(..., "X", "Weight lam of the penalty."),
    iterations: int = option(..., "N", "Number of steps.", least=1, most=MOST_ITERATIONS),
    table: Given,
    loss: str = option("logistic", "WORD", "Loss: logistic (the two values of the target become -1 and +1), squared "
                       "(y - x'b)^2, or poisson.", IACV_LOSSES),
    penalty: str = option("ridge", "WORD", "Penalty: ridge or l2 (sum b_j^2), or l1 (sum |b_j|; only --solver proxgd).",
                          read=parse.model_word(IACV_PENALTIES, "--penalty"), also="--reg"),
    solver: str = option("gd", "WORD", "Solver: gd, sgd or proxgd. A step of sgd uses the losses of its batch and the "
                                       "full "
                         "penalty, as in the paper.", SOLVERS),
    batch: int | None = option(None, "B", "Rows per step of sgd. [100, or all rows if fewer]", least=1,
                                 most=MOST_ITERATIONS),
    step: float | None = option(None, "A", "Step length. [one over the Lipschitz constant]"),
    doubling: int | None = option(None, "N", "Halve the step length after N steps, again after 2N more steps, after "
                                             "4N more steps, and so on. [fixed length]", least=1,
                                 most=MOST_ITERATIONS),
    scale_penalty: bool = option(False, "", "Multiply the penalty of an sgd step by B / n, with n rows in all."),
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
    numbers = report.summary()
    return deliver_report(
        "iacv", dataset, chosen, numbers, f"{numbers['cv']:.10g}", _describe_iacv(numbers, chosen),
        quiet=quiet, json=json, code=130 if interrupted else 0,
    )  # fmt: skip


def _describe_iacv(found: Mapping[str, Any], options: Mapping[str, Any]) -> list[tuple[str, str]]:
    why = "best, stopped early" if found["stopped_early"] else "last"
    about = f"(approximated; iteration {found['iteration']}, {why})"
    lines = [("leave-one-out loss", f"{format_number(found['cv'], 8)}  {about}"), *describe_model(options)]
    if found["best_iteration"] != found["iteration"]:
        smallest = f"{format_number(found['best_cv'], 8)}  (iteration {found['best_iteration']})"
        lines.append(("", f"smallest iterate  {smallest}"))
    if found["cv_exact"] is not None:
        error = f"(relative error {found['rel_err_cv']:.2e})"
        lines.append(("exact", f"{format_number(found['cv_exact'], 8)}  {error}"))
        distance = f"{found['err_approx']:.3e}"
        lines.append(("", f"mean distance of the leave-one-out fits from the exact fits: {distance}"))
    for name, word in (("ns", "Newton step"), ("ij", "jackknife"), ("baseline", "full fit")):
        if name in found:
            distance = found[name]["err_approx"]
            beside = f"  (distance {distance:.3e})" if distance else ""
            lines.append((word, f"{format_number(found[name]['cv'], 8)}{beside}"))
    exact = "" if found["seconds_exact"] is None else f", exact {found['seconds_exact']:.3g} s"
    return [*lines, ("time", f"{found['seconds']:.3g} s{exact}")]


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


@with_declared_options(units=RAW_UNITS)
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
    from sparsecv_mio.data.readers import requested_columns
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
    results = {"TreeCV": tree, "standard": plain}
    lines = [*describe_model(chosen), *_describe_treecv(task.loss, plan.k, dataset.n, results)]
    return deliver_report(
        "treecv", dataset, chosen, answer, f"{tree.estimate:.10g}", lines, quiet=quiet, json=json
    )  # fmt: skip


def _describe_treecv(loss: str, k: int, n: int, results: Mapping[str, CvResult | None]) -> list[tuple[str, str]]:
    return [
        (
            f"{name:<8}",
            f"{loss}  {format_number(result.estimate, 8)}  (k = {k}; {result.updates} rows learned, "
            f"{result.updates / n:.4g} n; {result.seconds:.3g} s)",
        )
        for name, result in results.items() if result is not None
    ]  # fmt: skip


def _result_numbers(found: CvResult) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("estimate", "pooled", "updates", "seconds")}


@dataclass(frozen=True)
class Classifier:
    """Options of the classifier and of the accuracy of its trainings."""

    lam: float = option(..., "X", "Weight lam of the penalty, positive.")
    loss: str = option(
        "logistic", "WORD", "Loss for the labels -1 and +1: logistic, squared_hinge, smoothed_hinge, huber or squared.",
        read=parse.model_word(GLRU_LOSSES, "--loss"),
    )  # fmt: skip
    width: float | None = option(None, "X", "Width of the smoothed part of the losses smoothed_hinge and huber. [1]")
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


@with_declared_options(model=Classifier, units=RAW_UNITS)
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

    Bounds from one fit determine the predicted sign of most held-out rows. For the other rows, the command takes a
    certified Newton step, or trains a model until the sign is certain. The objective is that of the paper,
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
    chosen, n = {**asdict(model), "approx": approx, **units}, dataset.n
    numbers = {
        "labels": values, "errors": answer.errors, "unknown": answer.unknown, "error_rate": answer.errors / n,
        "errors_before_training": list(answer.bracket), "open": int(answer.open.sum()), "trainings": answer.trainings,
        "certain": int(answer.certain.sum()), "guarantee": str(answer.guarantee), "n": n,
        "seconds": answer.seconds["total"], "stages": answer.seconds,
    }  # fmt: skip
    (low, high), stages = answer.bracket, ("prepare", "bounds", "train")
    unknown = f", {answer.unknown} rows unknown" if answer.unknown else ""
    times = ", ".join(f"{name} {answer.seconds[name]:.3g} s" for name in stages)
    lines = [
        *describe_model(chosen),
        ("leave-one-out errors", f"{answer.errors} of {n} ({100 * (answer.errors / n):.2f}%{unknown})"),
        ("errors by one fit", f"from {low} to {high}, by bounds; {numbers['open']} rows without a certified sign"),
        ("trainings", f"{answer.trainings} of {n} rows; {numbers['certain']} rows with a certified sign"),
        ("time", f"{numbers['seconds']:.3g} s ({times})"),
    ]
    return deliver_report(
        "glru loocv", dataset, chosen, numbers, str(answer.errors), lines,
        quiet=quiet, json=json, code=130 if answer.unknown else 0,
    )  # fmt: skip


@with_declared_options(model=Classifier, units=RAW_UNITS)
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
    numbers = {"labels": values, **_stepwise_numbers(selected, dataset), "n": len(y), "n_validation": len(v),
               "seconds": selected.seconds}  # fmt: skip
    names = numbers["selected"]
    lines = [*describe_model(chosen)] + [
        ("", f"{step['column'] or 'nothing better':<20} {step['errors']} errors  ({step['trainings']} trainings of "
             f"{step['candidates']} candidates)")
        for step in numbers["path"]
    ] + [
        ("selected", f"{len(names)} columns: {abbreviate_list(names)}"),
        ("errors", f"{selected.errors} of {len(v)} (at the start {selected.start_errors})"),
        ("trainings", f"{selected.trainings} of {selected.candidates}"), ("time", f"{selected.seconds:.3g} s"),
    ]  # fmt: skip
    return deliver_report(
        "glru stepwise", dataset, chosen, numbers, str(selected.errors), lines,
        quiet=quiet, json=json, code=130 if interrupted else 0,
    )  # fmt: skip


glru_app = click.Group(
    "glru",
    no_args_is_help=False,
    commands=[loocv, stepwise],
    help="Generalized low-rank update: leave-one-out and stepwise selection with certified bounds instead of trainings."
         "\n\nHanada, Hashimoto, Taji, Takeuchi 2023. The objective is (1/n) sum_i loss_i + (lam/2) ||w||^2.",
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


def _validation(path: str, dataset: Dataset) -> Dataset:
    """Return the rows of --validation, read with the preprocessing of the data."""
    from sparsecv_mio.data.dataset import check_dataset
    from sparsecv_mio.data.readers import read_new_rows

    rows = read_new_rows(path, dataset.names, dataset.target, dataset.reading)
    if not rows.has_target.all():
        raise BadInput(
            f"--validation: {rows.doubt or f'a row of {path} has no target {dataset.target!r}; remove the row'}"
        )
    return check_dataset(rows.data)


def _stepwise_numbers(result: StepwiseResult, dataset: Dataset) -> dict[str, Any]:
    name, d, selected = dataset.names, dataset.p, result.selected.tolist()
    path = [
        {
            "column": None if step.column is None else name[step.column], "errors": step.errors,
            "candidates": int(step.candidates.size), "trainings": step.trainings,
        }
        for step in result.steps
    ]  # fmt: skip
    return {
        "selected": [name[j] for j in selected],
        "coefficients": {name[j]: float(result.w[j]) for j in selected},
        "intercept": float(result.w[d]) if result.w.size > d else 0.0,
        "errors": result.errors,
        "errors_at_start": result.start_errors,
        "path": path,
        "trainings": result.trainings,
        "candidates": result.candidates,
    }
