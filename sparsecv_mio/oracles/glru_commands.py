"""The commands `sparsecv glru loocv` and `sparsecv glru stepwise`: certified bounds without a fit for each row."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from sparsecv_mio.cli import parse, session
from sparsecv_mio.cli.command_options import DataFile, Given, option, with_declared_options
from sparsecv_mio.cli.ending import tell
from sparsecv_mio.declared_options import TABLE
from sparsecv_mio.digits import abbreviate_list
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles import RAW_UNITS
from sparsecv_mio.oracles.iacv_treecv_commands import deliver_numbers, raw_data_note

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.arrays import FloatArray
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.oracles.glru import LoocvResult, Problem, StepwiseResult

glru_app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)
GLRU_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted (partial results are written)."

LOSSES = ("logistic", "squared_hinge", "smoothed_hinge", "huber", "squared")
PENALTIES = ("ridge", "elastic_net", "l1")


@dataclass(frozen=True)
class Classifier:
    """Options of the classifier and of the accuracy of its trainings."""

    lam: float = option(..., "X", "Weight lam of the penalty, positive.")
    loss: str = option(
        "logistic", "WORD", "Loss on labels -1 and +1: logistic, squared_hinge, smoothed_hinge, huber or squared.",
        read=parse.model_word(LOSSES, "--loss"),
    )  # fmt: skip
    width: float | None = option(None, "X", "Width of smoothed_hinge and huber. [1]")
    penalty: str = option(
        "ridge", "WORD", "ridge (or l2): (lam/2) ||w||^2; elastic_net: (lam/2) ||w||^2 + l1 ||w||_1; l1: lam ||w||_1.",
        read=parse.model_word(PENALTIES, "--penalty"), also="--reg",
    )  # fmt: skip
    l1: float | None = option(None, "X", "Weight of ||w||_1 in elastic_net.")
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
    approx: bool = option(False, "", "Replace each training by one Newton step: an estimate."),
    units: Given,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Count the leave-one-out errors of a linear classifier.

    A bound from one fit decides most signs; the others take a certified Newton step or a training that stops as soon as
    its sign is certain. The objective is the paper's (1/n) sum_i loss_i + (lam/2) ||w||^2; the target's two values
    become the labels -1 (the smaller) and +1. Columns are used as they are in the file and no intercept is added,
    unless --scale and --intercept ask for it.
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
    direction: str = option("backward", "WORD", "backward (remove columns) or forward (add them).",
                            ("backward", "forward")),
    validation: str | None = option(None, "FILE", "File of validation rows with the same columns. [rows held out by "
                                                  "--holdout]"),
    holdout: float = option(0.1, "F", "Share of the rows held out for validation."),
    seed: int | None = None,
    steps: int | None = option(None, "K", "Maximum number of steps. [no limit]", least=1),
    ties: str = option("any", "WORD", "Equal errors: any (found first) or first (in column order).", ("any", "first")),
    units: Given,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Remove or add columns one at a time while the validation errors fall.

    Candidates are trained in the order of a certified lower bound on their errors, until no bound is better than the
    best found. The objective is the paper's (1/n) sum_i loss_i + (lam/2) ||w||^2; the target's two values become the
    labels -1 (the smaller) and +1. Columns are used as they are in the file and no intercept is added, unless --scale
    and --intercept ask for it (scales and centres are those of all rows of DATA).
    """
    parse.tolerance(model.tol)
    session.check_outputs({"--json": json}, [data, *([validation] if validation else [])])
    parse.count(seed, "--seed", least=0)
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
        raise BadInput(f"--validation: {rows.doubt or f'{path} has no target {dataset.target!r} in some row'}")
    return rows.data


def _print_loocv(screen: Console, found: dict[str, Any], quiet: bool) -> None:
    if quiet:
        screen.print(str(found["errors"]))
        return
    n, (low, high) = found["n"], found["errors_before_training"]
    unknown = "" if not found["unknown"] else f", {found['unknown']} rows unknown"
    _print_model(screen, found, 20)
    screen.print(f"leave-one-out errors  {found['errors']} of {n} ({100 * found['error_rate']:.2f}%{unknown})")
    screen.print(f"from one fit alone    between {low} and {high}; {found['open']} rows open")
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
