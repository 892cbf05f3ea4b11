"""The command `sparsecv solve`: certified cross-validation, or the best subset that all folds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sparsecv_mio import declared_options as options
from sparsecv_mio import model_space
from sparsecv_mio.cli import Began, ending, parse, session
from sparsecv_mio.cli.command_options import REFERENCE, DataFile, Given, group, option, with_declared_options
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.errors import BackendFailed, BadInput, SparseCVError
from sparsecv_mio.targets import Loss
from sparsecv_mio.words import Criterion, Method

if TYPE_CHECKING:
    from sparsecv_mio.certificate.accuracy import ClassQuality, CountQuality, FitQuality
    from sparsecv_mio.certificate.records import Record
    from sparsecv_mio.certificate.restrictions import References
    from sparsecv_mio.cli.live import Steps
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.fold_plan import FoldPlan
    from sparsecv_mio.model_space import GammaInterval
    from sparsecv_mio.search.deadline import StopSignal
    from sparsecv_mio.search.options import Hooks, SearchOptions
    from sparsecv_mio.search.state.context import Snapshot


def refuse_with_common(given: Mapping[str, Any]) -> None:
    """Raise `BadInput` for options that criterion `common` does not support.

    Parameters
    ----------
    given : mapping of str to object
        Given options by name.
    """
    for name, value in given.items():
        if value is not None and value != (options.OPTIONS[name].default if name in options.OPTIONS else None):
            raise BadInput(f"--{options.option_name(name)}: not supported with --criterion common; omit one of the two")


EXAMPLES = """\b
Examples:
  sparsecv solve diabetes.csv --target y --folds loo --gamma 0.01,0.1,1 --one-se
  sparsecv solve big.csv --target y --time-limit none --checkpoint run.ck --json answer.json
  sparsecv solve big.csv --target y --resume run.ck --json answer.json
  sparsecv solve diabetes.csv --target y --method descent --gamma 1e-3:10:5
  sparsecv solve genes.csv --target y --tau log --time-limit 300
  sparsecv solve servo.csv --target class --method algorithm1 --trace run.jsonl
  sparsecv solve patients.csv --target outcome --loss logistic --encode onehot --na mean
  sparsecv solve diabetes.csv --target y --nested 5

"""
SOLVE_TERMS = (
    "Terms: a pair is a model size tau with a ridge weight gamma. A subproblem is the best subset of one pair with one "
    "fold held out; a fold of a pair is solved when its best subset is certified. A mixed-integer optimisation (MIO) "
    "problem is a subproblem that needs branch and bound. A pair is excluded when another pair is certified to be at "
    "least as good, up to the gap. The record is the complete answer as data, for `verify`, `predict` and "
    "`report`. ~ marks an estimate, ? an unknown bound; lower and upper are certified bounds.\n\n"
)

SOLVE_CODES = (
    EXAMPLES + SOLVE_TERMS + "Exit codes: 0 certified within --gap, 2 bad input, 3 limit reached (answer printed, "
    "bounds valid), 4 backend unavailable, 130 interrupted (answer and record written)."
)


@dataclass(frozen=True)
class SolveRequest:
    """The options of the command `solve`, in the order of its help."""

    table: Given = group(options.TABLE)
    id: str | None = option(
        None, "COLUMN",
        "Column of row labels, such as names or identifiers. It is not a feature; --save-held-out writes it next to "
        "each row. [none]",
    )  # fmt: skip
    rows: Given = group(options.DEALING)
    gamma: str | None = None
    tau: str | None = None
    restrictions: Given = group(options.RESTRICTING)
    units: Given = group(options.UNITS)
    criterion: str = option(
        "folds", "|".join(Criterion),
        "CV error that is minimised. folds: the best subset is selected in every fold from its training rows; common: "
        "one subset is used in all folds (Takano and Miyashiro).",
        Criterion,
    )  # fmt: skip
    nested: int | None = option(
        None, "K",
        "Also estimate the error of the whole procedure by nested CV: repeat it with each of K outer folds held out, "
        "and score the resulting model there. Groups of rows stay together. The run takes about K times as long. "
        "[none]",
    )  # fmt: skip
    search: Given = group(options.SEARCHING | {"time_limit": options.COMMAND_SECONDS})
    stored: Given = group(options.STORING)
    used: Given = group(options.ACCELERATING)
    save_held_out: str | None = option(
        None, "FILE",
        "Write target, fold and held-out prediction of each row to this CSV file. The predictions always come from "
        "the reported pair; with --model average, the column is called pair_prediction or pair_probability. [none]",
    )  # fmt: skip
    scheduler: str | None = None
    proof: str | None = None
    json: str | None = None
    progress_json: str | None = None
    reference: str | None = REFERENCE
    full: bool = option(
        False, "", "Print every coefficient and every size, and the plan, the methods and the costs of the search."
    )  # fmt: skip
    quiet: bool = False

    @property
    def search_options(self) -> Given:
        """Fields of `SearchOptions` except the restrictions, by name; all cores by default."""
        return session.on_cores(self.units | self.search | self.used)

    @property
    def checkpoint_file(self) -> tuple[str, str | None]:
        """Option that names the checkpoint of the run, and its path, if there is one."""
        if self.stored["checkpoint"] is not None:
            return "--checkpoint", self.stored["checkpoint"]
        return "--resume", self.stored["resume"]

    @cached_property
    def gammas(self) -> tuple[GammaInterval | None, tuple[float, ...] | None]:
        """The requested interval of gammas, or else the requested gammas; None and None by default."""
        every = None if self.gamma is None else model_space.interval(self.gamma)
        if self.nested is not None and every is not None:
            raise BadInput(f"--nested: requires a grid of gammas LO:HI:COUNT, not the interval {every}")
        return every, None if self.gamma is None or every is not None else model_space.gammas(self.gamma)

    def check_outputs(self, data: str) -> None:
        """Raise an error before the work begins if an output file cannot be written.

        Parameters
        ----------
        data : str
            Path of the data.
        """
        places = {"--json": self.json, **dict([self.checkpoint_file]), "--trace": self.stored["trace"]}
        places |= {"--save-held-out": self.save_held_out, "--proof": self.proof, "--progress-json": self.progress_json}
        session.check_outputs(places, [data])

    def check_checkpoint(self) -> None:
        """Raise an error if the run cannot be stored, or would replace another run that is not finished."""
        from sparsecv_mio.search.observers import check_place, refuse_unfinished_checkpoint

        name, path = self.checkpoint_file
        checkpoint, resume = self.stored["checkpoint"], self.stored["resume"]
        if path is not None:
            check_place(path, name)
        if checkpoint is not None and (resume is None or Path(checkpoint).resolve() != Path(resume).resolve()):
            refuse_unfinished_checkpoint(checkpoint)


def solve_common(data: str, request: SolveRequest) -> int:
    """Find the best common subset, print it, write its record, return the exit code.

    Parameters
    ----------
    data : str
        Path of the data.
    request : SolveRequest
        Options of the command.
    """
    every, grid = request.gammas
    chosen, restrictions = request.search_options, dict(request.restrictions)
    common = {name: chosen.pop(name) for name in (*request.units, *options.EFFORT, *options.LOSSES)}
    forced = {name: restrictions.pop(name) for name in options.LISTING}
    refuse_with_common({
        "gamma LO..HI": every, "nested": request.nested, **chosen, **request.stored,
        "save_held_out": request.save_held_out, "proof": request.proof, "progress_json": request.progress_json,
        "reference": request.reference, **restrictions,
    })  # fmt: skip
    session.check_outputs({"--json": request.json}, [data])
    quiet = request.quiet
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.fits.fit_options import CommonOptions

        how = CommonOptions.of(**common, restrictions=parse.restrictions(**forced))
        read = partial(session.read_with_folds, data, request.table, request.rows, quiet, request.id, how)
        dataset, plan = session.run_preparation(read, stop, how)
        from sparsecv_mio.cli.live import compilation_lines, counting_bar
        from sparsecv_mio.near.common_subset import common_search
        from sparsecv_mio.report.record_tables import print_common

        with counting_bar(quiet, "steps (evaluate each gamma, then list its models)") as progress:
            with compilation_lines(quiet):
                search = common_search(dataset, plan, grid, request.tau, how, stop, Began.moment)
            search.progress = progress
            record = search.run()
    return ending.deliver(
        session.EXIT_CODE[record.status],
        lambda screen: print_common(screen, record, quiet, request.full, dataset),
        json=request.json, record=record.pieces, warnings=ending.warnings_to_print(record.warnings, quiet),
    )  # fmt: skip


class _Prepared(NamedTuple):
    """The data of a search, with its folds and checked options."""

    dataset: Dataset
    plan: FoldPlan
    how: SearchOptions


@dataclass(eq=False)
class _SearchRun:
    """The result of a search, and its errors after which it continued.

    Attributes
    ----------
    steps : Steps or None
        Writer of the progress to a file.
    record : Record
        Record of the search.
    snapshots : list
        States of the finished searches, if a proof is requested.
    failures : list of SparseCVError
        Files that could not be written.
    warnings : list of str
        Messages on a failed solver.
    """

    steps: Steps | None
    record: Record = field(init=False)
    snapshots: list[Snapshot] = field(default_factory=list)
    failures: list[SparseCVError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note(self, error: SparseCVError) -> None:
        """Store an error after which the search continues."""
        if isinstance(error, BackendFailed):
            self.warnings.append(str(error))
        else:
            self.failures.append(error)


@with_declared_options(request=SolveRequest)
def solve(data: DataFile, *, request: SolveRequest) -> int:
    """Find the pair (tau, gamma) with the minimum cross-validation error, and certify it.

    tau is the number of features, gamma the weight of the ridge penalty. In every fold the best subset of tau features
    is found exactly. The best pair is printed with certified bounds on its error and refitted on all rows.
    """
    _ = request.gammas  # raises an error before the work begins
    if request.criterion == Criterion.COMMON:
        return solve_common(data, request)
    request.check_outputs(data)
    with session.stop_on_interrupt() as stop:
        prepared, levels = _prepare(data, request, stop)
        with parse.advice_with_reference(levels):
            run = _run_search(request, prepared, levels, stop)
    return _deliver(data, request, prepared, run, "interrupted" if stop.is_set() else run.record.status)


def _prepare(data: str, request: SolveRequest, stop: StopSignal) -> tuple[_Prepared, References]:
    """Check the options, read the data, and return both, and the reference level of each factor."""
    from sparsecv_mio.search.options import Hooks, SearchOptions

    every, _ = request.gammas
    how = SearchOptions.of(**request.search_options, restrictions=parse.restrictions(**request.restrictions))
    shown_against = parse.reference(request.reference, how)
    _check_together(how, every, Hooks(**request.stored, scheduler=request.scheduler), request.quiet)
    refuse_early(
        request.proof, how.restrictions, request.rows["weights"], how.loss, how.class_weight,
        _find_unproved_feature(every, how),
    )  # fmt: skip
    from sparsecv_mio.cli import live

    with live.reading_lines(request.quiet):
        prepared = session.run_preparation(partial(_read, data, request, how), stop, how)
    from sparsecv_mio.certificate.restrictions import reference_levels

    return prepared, reference_levels(shown_against, prepared.dataset, prepared.how.restrictions)


def _read(data: str, request: SolveRequest, how: SearchOptions) -> _Prepared:
    """Return the data and folds; the restrictions count the levels of a factor together if that is the default."""
    from sparsecv_mio.search.options import NESTED
    from sparsecv_mio.search.question import Question

    draws_outer = request.nested is not None or how.stability == NESTED
    dataset, plan = session.read_with_folds(
        data, request.table, request.rows, request.quiet or draws_outer, request.id, how
    )
    how.check_data(dataset, plan)
    if request.restrictions["count"] is not None:
        return _Prepared(dataset, plan, how)
    every, grid = request.gammas
    question = Question(dataset, plan, every or grid, request.tau, how)
    return _Prepared(dataset, plan, session.count_factors_together(question, request.quiet))


def _run_search(request: SolveRequest, prepared: _Prepared, levels: References, stop: StopSignal) -> _SearchRun:
    """Search with progress on the screen, and return the record and what else is to be delivered."""
    from sparsecv_mio.cli import live
    from sparsecv_mio.report.coefficients import with_reference
    from sparsecv_mio.search.api import cross_validate, nested_cross_validate
    from sparsecv_mio.search.options import Hooks

    import_module("sparsecv_mio.report.record_tables")  # after a limit there is no time to load it
    request.check_checkpoint()
    run = _SearchRun(None if request.progress_json is None else live.Steps(request.progress_json, "solve"))
    every, grid = request.gammas
    with live.progress_view(request.quiet, stop, run.steps, _limit_note(prepared.how.time_limit)) as progress:
        store_snapshot = None if request.proof is None else run.snapshots.append
        hooks = Hooks(
            progress, stop, run.note, Began.moment, **request.stored, scheduler=request.scheduler, found=store_snapshot
        )  # fmt: skip
        answer = cross_validate if request.nested is None else partial(nested_cross_validate, count=request.nested)
        record = answer(
            prepared.dataset, prepared.plan, gammas=every or grid, taus=request.tau, options=prepared.how, hooks=hooks
        )
        run.record = with_reference(record, levels)
    return run


def _deliver(data: str, request: SolveRequest, prepared: _Prepared, run: _SearchRun, status: str) -> int:
    """Print the answer, write the files and return the exit code."""
    from sparsecv_mio.report.coefficients import make_printer
    from sparsecv_mio.report.record_tables import print_answer

    dataset, plan, how = prepared
    record, quiet, full = run.record, request.quiet, request.full
    if run.steps is not None:
        run.steps.end(status, record)
        run.failures += filter(None, [run.steps.lines.failure])
    _note_data(dataset, how.loss, quiet)
    snapshot = run.snapshots[-1] if run.snapshots else None
    files = proof_files(
        record, dataset, request.proof, plan, snapshot, data=data, json=request.json, quiet=quiet
    )  # fmt: skip
    quality = None
    if request.save_held_out is not None:
        quality, write = _held_out_file(record, dataset, plan, request.save_held_out, request.id)
        files.append(write)
    return ending.deliver(
        session.EXIT_CODE[status],
        make_printer(lambda screen, one: print_answer(screen, one, quiet, quality, full, dataset), record),
        json=request.json, record=record.pieces, files=files,
        warnings=ending.warnings_to_print((*record.warnings, *run.warnings), quiet), lost=run.failures,
    )  # fmt: skip


def _limit_note(seconds: float | None) -> str:
    """Return a note on the time limit if it is the default limit of the command."""
    if seconds != options.COMMAND_SECONDS:
        return ""
    return (
        f"the search stops after {seconds:g} s with valid bounds; --time-limit none runs until the choice is certified"
    )


def _find_unproved_feature(every: GammaInterval | None, how: SearchOptions) -> str | None:
    """Return the name of a requested feature, other than the loss, that proofs do not support, or None."""
    if how.method is Method.DESCENT:
        return "--method descent"
    if how.by_folds and not how.loss.is_quadratic:
        return f"--{options.option_name(how.by_folds[0])} folds with --loss {how.loss}"
    return None if every is None else "every gamma of an interval (--gamma LO..HI)"


def _check_together(how: SearchOptions, every: GammaInterval | None, hooks: Hooks, quiet: bool) -> None:
    """Raise an error for options that cannot be combined, with the one to remove."""
    from sparsecv_mio.search.options import describe_deprecated_options

    if every is not None:
        from sparsecv_mio.search.question import check_interval

        check_interval(every, how, hooks)
    for words in () if quiet else describe_deprecated_options(how):
        ending.tell(f"warning: --{words}")


def _note_data(dataset: Dataset, loss: Loss, quiet: bool) -> None:
    from sparsecv_mio.data.table_facts import describe_collinearity, describe_target

    for line in (
        () if quiet else (describe_target(dataset) if loss.is_quadratic else "", describe_collinearity(dataset))
    ):
        if line:
            ending.tell(f"note: {line}")


def _held_out_file(
    record: Record, dataset: Dataset, plan: FoldPlan, place: str, id: str | None
) -> tuple[FitQuality | ClassQuality | CountQuality, Callable[[], None]]:  # fmt: skip
    """Return the quality of the held-out predictions, and the function that writes them."""
    from sparsecv_mio.certificate.accuracy import accuracy, class_quality, count_quality
    from sparsecv_mio.files import write_text
    from sparsecv_mio.search.answer.fold_models import mean_predictions, predictions_by_fold

    scored, predicted = predictions_by_fold(record, dataset, plan)
    means, times = mean_predictions(scored, predicted, dataset.n)
    scored_rows, weights = times > 0, dataset.row_weights
    once = plan.has_distinct_scored_rows
    numbers, kind = (plan.scoring_folds + 1, "fold") if once else (times, "times scored")  # folds count from 1
    name = "prediction" if record.classes is None else "probability"
    classes = None if record.classes is None else (record.classes.negative, record.classes.positive)
    columns = {
        "target": dataset.y.tolist() if classes is None else [classes[int(y > 0.0)] for y in dataset.y.tolist()],
        kind: [number if scored else None for number, scored in zip(numbers.tolist(), scored_rows, strict=True)],
        name if record.average is None else f"pair_{name}": means.tolist(),
    }  # fmt: skip
    if weights is not None:
        columns["weight"] = weights.tolist()
    lines = session.csv_of_rows(dataset.places.tolist(), {} if id is None else {id: dataset.aux[id].tolist()}, columns)
    if record.counts is not None:
        exposure = None if dataset.row_exposure is None else dataset.row_exposure[scored_rows]
        return count_quality(dataset.y[scored_rows], means[scored_rows], exposure), lambda: write_text(
            place, lines, "predictions"
        )
    quality = accuracy if record.classes is None else class_quality
    held_out_quality = quality(
        dataset.y[scored_rows], means[scored_rows], None if weights is None else weights[scored_rows]
    )
    return held_out_quality, lambda: write_text(place, lines, "predictions")
