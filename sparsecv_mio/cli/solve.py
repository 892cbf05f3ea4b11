"""The command `sparsecv solve`: certified cross-validation, or the best subset that all folds share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio import declared_options as options
from sparsecv_mio import model_space
from sparsecv_mio.cli import Began, ending, parse, session
from sparsecv_mio.cli.command_options import ID, REFERENCE, DataFile, Given, group, option, with_declared_options
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.errors import BackendFailed, BadInput, SparseCVError
from sparsecv_mio.files import write_text
from sparsecv_mio.thresholds import MAX_DRAWS
from sparsecv_mio.units import BASELINES_SHARE
from sparsecv_mio.words import Criterion, Method

if TYPE_CHECKING:
    from sparsecv_mio.certificate.accuracy import Quality
    from sparsecv_mio.certificate.records import Record
    from sparsecv_mio.certificate.restrictions import References
    from sparsecv_mio.cli.live import Steps
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.fold_plan import FoldPlan
    from sparsecv_mio.inference.choices import DrawOptions
    from sparsecv_mio.inference.repetitions import Repetition
    from sparsecv_mio.model_space import GammaInterval
    from sparsecv_mio.search.deadline import StopSignal
    from sparsecv_mio.search.options import SearchOptions
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
  sparsecv solve diabetes.csv --target y --bootstrap 200

"""
SOLVE_TERMS = (
    "Terms: a pair is a model size tau with a ridge weight gamma. A subproblem is the search for the best subset of "
    "one pair with one fold held out; a fold of a pair is solved when its best subset is certified. A mixed-integer "
    "optimisation (MIO) problem is a subproblem that needs branch and bound. A pair is excluded when another pair is "
    "certified to be at least as good, up to the gap. The record is the complete answer as a file, for `verify`, "
    "`predict` and `report`. ~ marks an estimate, ? an unknown bound; lower and upper are certified bounds.\n\n"
)

SOLVE_CODES = (
    EXAMPLES + SOLVE_TERMS + "Exit codes: 0 certified within --gap, 2 bad input, 3 limit reached (answer printed, "
    "bounds valid), 4 backend unavailable, 130 interrupted (answer and record written)."
)


@dataclass(frozen=True)
class SolveRequest:
    """The options of the command `solve`, in the order of its help."""

    table: Given = group(options.TABLE)
    id: str | None = ID
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
        "and score the resulting model on this fold. Groups of rows stay together. The values that --na imputes "
        "come from all rows; with --na-within folds, from the rows outside the outer fold. The run takes about K times "
        "as long. [none]",
    )  # fmt: skip
    bootstrap: int | None = option(
        None, "B",
        "Also repeat the whole procedure on B bootstrap draws of the rows, and report how often it chooses each "
        "feature, size and model, with percentile intervals of coefficients. Groups of rows that no fold splits are "
        "drawn as a whole. The draws use the part of --time-limit that the search does not use. [none]",
        least=1, most=MAX_DRAWS,
    )  # fmt: skip
    stability_selection: str | None = option(
        None, "PAIRS[:T]",
        "Also repeat the whole procedure on PAIRS complementary pairs of halves of the rows. Select the features with "
        "a frequency of at least T (0.75 by default), and bound the number of falsely selected features. Give for "
        "example 50 or 50:0.9. [none]",
    )  # fmt: skip
    infer: str | None = option(
        None, "splits:B",
        "Also give p-values and intervals of features. In each of B random splits, one half of the rows chooses a "
        "model by the whole procedure, and the other half tests its features. Requires the extra `inference`. [none]",
    )  # fmt: skip
    draw_gap: float | None = option(
        None, "G",
        "Relative gap of the search on each draw of --bootstrap, --stability-selection and --infer. [--gap]",
    )  # fmt: skip
    draw_file: str | None = option(
        None, "FILE",
        "Store every finished draw of --bootstrap, --stability-selection and --infer in this file. If the file has "
        "draws of the same data and options, only the missing draws are computed. [none]",
    )  # fmt: skip
    baselines: str | None = option(
        None, "LIST",
        "Also fit baselines on the same folds: any of lasso, ridge, elasticnet, abess. Each chooses its penalty or "
        "size by its CV error (with --one-se also by the one-standard-error rule), and is compared with the reported "
        "pair. A fifth of the time limit is reserved for the baselines. [none]",
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
    def given_draws(self) -> Given:
        """Values of the options that request draws of the rows, by name."""
        return {name: getattr(self, name) for name in ("bootstrap", "stability_selection", "infer")}

    @cached_property
    def draws(self) -> tuple[Sequence[Repetition], DrawOptions] | None:
        """The requested repetitions on draws of the rows and their options, after a check; None by default."""
        given = {name: value for name, value in self.given_draws.items() if value is not None}
        for name in () if given else ("draw_gap", "draw_file"):
            if getattr(self, name) is not None:
                words = "requires draws of the rows; give --bootstrap, --stability-selection or --infer"
                raise BadInput(f"{name}: {words}")
        if not given:
            return None
        if self.draw_gap is not None:
            replace(options.OPTIONS["gap"], name="draw_gap").validate(self.draw_gap)
        from sparsecv_mio.inference.choices import DrawOptions
        from sparsecv_mio.inference.repetitions import REQUESTS

        how = DrawOptions(self.rows["seed"] or 0, self.draw_gap, store=self.draw_file)
        return [REQUESTS[name](value) for name, value in given.items()], how

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
            raise BadInput(f"--nested: requires a grid of gammas, not the interval {every}; give values or LO:HI:COUNT")
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
        places |= {"--draw-file": self.draw_file}
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
        **request.given_draws, "baselines": request.baselines,
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
    return session.deliver_record(
        record, lambda screen: print_common(screen, record, quiet, request.full, dataset), request.json, quiet,
        warnings=session.describe_separated_rows(dataset, plan, request.id),
    )  # fmt: skip


@dataclass(eq=False)
class _SearchRun:
    """A search: its data, its writer of progress, its record, and the errors after which it continued.

    Attributes
    ----------
    dataset : Dataset
        Data.
    plan : FoldPlan
        Folds.
    how : SearchOptions
        Checked options.
    methods : tuple of str
        Names of baselines.
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

    dataset: Dataset
    plan: FoldPlan
    how: SearchOptions
    methods: tuple[str, ...] = ()
    steps: Steps | None = None
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
        run, levels = _prepare(data, request, stop)
        with parse.advice_with_reference(levels):
            _run_search(request, run, levels, stop)
    return _deliver(data, request, run, "interrupted" if stop.is_set() else run.record.status)


def _prepare(data: str, request: SolveRequest, stop: StopSignal) -> tuple[_SearchRun, References]:
    """Check the options, read the data, and return both, and the reference level of each factor."""
    from sparsecv_mio.cli import live
    from sparsecv_mio.search.options import Hooks, SearchOptions, describe_deprecated_options
    from sparsecv_mio.search.question import check_interval

    every, _ = request.gammas
    _ = request.draws  # raises an error before the data are read
    how = SearchOptions.of(**request.search_options, restrictions=parse.restrictions(**request.restrictions))
    shown_against = parse.reference(request.reference, how)
    if every is not None and shown_against:
        raise BadInput(f"reference: requires a grid of gammas, not the interval {every}; give values or LO:HI:COUNT")
    if every is not None:
        check_interval(every, how, Hooks(**request.stored, scheduler=request.scheduler))
    for words in () if request.quiet else describe_deprecated_options(how):
        ending.tell(f"warning: --{words}")
    weights, unproved = request.rows["weights"], _find_unproved_feature(every, how)
    refuse_early(request.proof, how.restrictions, weights, how, unproved)
    with live.reading_lines(request.quiet):
        run = session.run_preparation(partial(_read, data, request, how), stop, how)
    run.how, levels = session.find_reference_levels(
        shown_against, run.dataset, run.how, request.gammas[1], request.quiet
    )
    n_training = run.dataset.n - int(run.plan.left_sizes.max())
    has_gamma_0 = 0.0 in (request.gammas[1] or ())
    if request.proof is not None and has_gamma_0 and not how.restrictions and run.dataset.p > n_training:
        obstacle = f"gamma 0 for {run.dataset.p} columns and {n_training} training rows"
        refuse_early(request.proof, None, None, how, obstacle)
    return run, levels


def _read(data: str, request: SolveRequest, how: SearchOptions) -> _SearchRun:
    """Return the data and folds; the restrictions count the levels of a factor together if that is the default."""
    from sparsecv_mio.search.options import NESTED
    from sparsecv_mio.search.question import Question

    has_draws = any(value is not None for value in request.given_draws.values())
    quiet = request.quiet or has_draws or request.nested is not None or how.stability == NESTED  # no note on the seed
    dataset, plan = session.read_with_folds(data, request.table, request.rows, quiet, request.id, how)
    how.check_data(dataset, plan)
    every, grid = request.gammas
    question = Question(dataset, plan, every or grid, request.tau, how)
    methods: tuple[str, ...] = ()
    if request.baselines is not None:
        from sparsecv_mio.inference.baselines import parse_baselines

        methods = parse_baselines(request.baselines, dataset, how.restrictions)
    if request.restrictions["count"] is None:
        how = session.count_factors_together(question, request.quiet)
    if request.draws is not None:
        requested, how_drawn = request.draws
        for repetition in requested:
            repetition.check_question(replace(question, options=how), how_drawn)
            for words in [] if request.quiet else repetition.describe_low_power(question):
                ending.tell(f"warning: {words}")
    return _SearchRun(dataset, plan, how, methods)


def _run_search(request: SolveRequest, run: _SearchRun, levels: References, stop: StopSignal) -> None:
    """Search with progress on the screen, and store the record and what else is to be delivered."""
    from sparsecv_mio.cli import live
    from sparsecv_mio.report.coefficients import with_reference
    from sparsecv_mio.search.api import add_or_warn, cross_validate, nested_cross_validate, start_question_clock
    from sparsecv_mio.search.options import Hooks
    from sparsecv_mio.search.question import Question

    if run.methods:
        from sparsecv_mio.inference.baselines import add_baselines
    if request.draws is not None:
        from sparsecv_mio.inference.repetitions import add_repetitions

    import_module("sparsecv_mio.report.record_tables")  # after a limit there is no time to load it
    request.check_checkpoint()
    if request.progress_json is not None:
        run.steps = live.Steps(request.progress_json, "solve")
    every, grid = request.gammas
    note = ""
    if run.how.time_limit == options.COMMAND_SECONDS:
        note = f"the search stops after {options.COMMAND_SECONDS:g} s with valid bounds; --time-limit none runs until "
        note += "the choice is certified"
    with live.progress_view(request.quiet, stop, run.steps, note) as progress:
        store_snapshot = None if request.proof is None else run.snapshots.append
        hooks = Hooks(
            progress, stop, run.note, Began.moment, **request.stored, scheduler=request.scheduler, found=store_snapshot
        )  # fmt: skip
        question = Question(run.dataset, run.plan, every or grid, request.tau, run.how, hooks)
        if request.draws is not None or run.methods:  # the limit is for the search and all later work together
            deadline = start_question_clock(question)
            hooks = replace(hooks, began=deadline.began)
        answer = cross_validate if request.nested is None else partial(nested_cross_validate, count=request.nested)
        how = run.how
        if run.methods and how.time_limit is not None:
            how = replace(how, time_limit=(1.0 - BASELINES_SHARE) * how.time_limit)
        record = answer(run.dataset, run.plan, gammas=every or grid, taus=request.tau, options=how, hooks=hooks)
        if run.methods:
            whole_limit = replace(record.request, time_limit=run.how.time_limit)  # that of the search is a part of it
            record = replace(record, request=whole_limit)
            record = add_or_warn(
                record,
                "baselines",
                lambda record: add_baselines(record, run.dataset, run.plan, run.methods, deadline),
            )
        if request.draws is not None:
            _hint_at_edges(record, request.quiet)
            record = add_repetitions(record, question, *request.draws, deadline)
        notes = session.describe_separated_rows(run.dataset, run.plan, request.id)
        run.record = with_reference(replace(record, warnings=(*record.warnings, *notes)), levels)


def _hint_at_edges(record: Record, quiet: bool) -> None:
    """Print the hints on edges of the grid before draws, which take long and use the same grid."""
    from sparsecv_mio.report.record_words import edge_hints

    for hint in [] if quiet else edge_hints(record):
        ending.tell(f"hint for the draws, which use the same grid: {hint}")


def _deliver(data: str, request: SolveRequest, run: _SearchRun, status: str) -> int:
    """Print the answer, write the files and return the exit code."""
    from sparsecv_mio.data.table_facts import describe_collinearity, describe_target
    from sparsecv_mio.report.coefficients import make_printer
    from sparsecv_mio.report.record_tables import print_answer

    record, dataset, quiet, quality = run.record, run.dataset, request.quiet, None
    if run.steps is not None:
        run.steps.end(status, record)
        run.failures += filter(None, [run.steps.lines.failure])
    if not quiet:
        notes = describe_target(dataset) if run.how.loss.is_quadratic else "", describe_collinearity(dataset)
        for note in filter(None, notes):
            ending.tell(f"note: {note}")
    snapshot = run.snapshots[-1] if run.snapshots else None
    files = proof_files(
        record, dataset, request.proof, run.plan, snapshot, data=data, json=request.json, quiet=quiet
    )  # fmt: skip
    if request.save_held_out is not None:
        quality, lines = _held_out_predictions(record, dataset, run.plan, request.id)
        files.append(partial(write_text, request.save_held_out, lines, "predictions"))
    printer = make_printer(
        lambda screen, shown: print_answer(screen, shown, quiet, quality, request.full, dataset), record
    )
    return session.deliver_record(
        record, printer, request.json, quiet, status=status, files=files, warnings=run.warnings, lost=run.failures
    )


def _find_unproved_feature(every: GammaInterval | None, how: SearchOptions) -> str | None:
    """Return the name of a requested feature, other than the loss, that proofs do not support, or None."""
    if how.method is Method.DESCENT:
        return "--method descent"
    if how.by_folds and not how.loss.is_quadratic:
        return f"--{options.option_name(how.by_folds[0])} folds with --loss {how.loss}"
    return None if every is None else "every gamma of an interval (--gamma LO..HI)"


def _held_out_predictions(
    record: Record, dataset: Dataset, plan: FoldPlan, id: str | None
) -> tuple[Quality, Iterator[str]]:
    """Return the quality of the held-out predictions, and the lines of their file."""
    import numpy as np

    from sparsecv_mio.certificate.accuracy import assess_predictions
    from sparsecv_mio.report.time_pictures import HeldOutTimes
    from sparsecv_mio.search.answer.fold_models import mean_predictions, predictions_by_fold

    held_out = None
    if record.loss.target.has_times:
        held_out = HeldOutTimes.from_record(record, dataset, plan)
        predictions = held_out.source, held_out.predicted
    else:
        predictions = predictions_by_fold(record, dataset, plan)
    means, times = mean_predictions(*predictions, dataset.n)
    scored, weights = times > 0, dataset.row_weights
    once = plan.has_distinct_scored_rows
    numbers, kind = (plan.scoring_folds + 1, "fold") if once else (times, "times scored")  # folds count from 1
    targets, name = dataset.y.tolist(), "prediction"
    if record.classes is not None:
        name, classes = "probability", (record.classes.negative, record.classes.positive)
        targets = [classes[int(y > 0.0)] for y in targets]
    columns = {
        "target": targets,
        kind: [number if is_scored else None for number, is_scored in zip(numbers.tolist(), scored, strict=True)],
        name if record.average is None else f"pair_{name}": means.tolist(),
    }
    if weights is not None:
        columns["weight"] = weights.tolist()
    lines = session.csv_of_rows(dataset.places.tolist(), {} if id is None else {id: dataset.aux[id].tolist()}, columns)
    if held_out is not None:  # models of different folds have different baselines
        return held_out.concordance, lines
    rows = dataset if scored.all() else dataset.take(np.flatnonzero(scored))
    return assess_predictions(record.loss, rows, means[scored], rows.row_weights), lines
