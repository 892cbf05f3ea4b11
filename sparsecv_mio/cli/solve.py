"""The command `sparsecv solve`: certified cross-validation, or the best subset that all folds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio import declared_options as options
from sparsecv_mio import model_space
from sparsecv_mio.cli import Began, ending, parse, session
from sparsecv_mio.cli.command_options import REFERENCE, DataFile, Given, option, with_declared_options
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.errors import BackendFailed, BadInput, SparseCVError
from sparsecv_mio.targets import Loss
from sparsecv_mio.words import Criterion, Method

if TYPE_CHECKING:
    from sparsecv_mio.certificate.accuracy import ClassQuality, CountQuality, FitQuality
    from sparsecv_mio.certificate.records import Record
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.fold_plan import FoldPlan
    from sparsecv_mio.model_space import GammaInterval
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


def solve_common(
    data: str, given: tuple[float, ...] | None, tau: str | None, asked: Given, forced: Given,
    read: Callable[..., tuple[Dataset, FoldPlan]], *, json: str | None, quiet: bool, full: bool,
) -> int:  # fmt: skip
    """Find the best common subset, print it, write its record, return the exit code.

    Parameters
    ----------
    data : str
        Path of the file.
    given : tuple of float or None
        Value of `--gamma`.
    tau : str or None
        Value of `--tau`.
    asked, forced : dict
        Given fields of `CommonOptions` and of its restrictions.
    read : callable
        Function that reads the data and builds the folds from the options, whose loss determines the type of the
        target.
    """
    session.check_outputs({"--json": json}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.fits.fit_options import CommonOptions

        how = CommonOptions.of(**asked, restrictions=parse.restrictions(**forced))
        dataset, plan = session.run_preparation(partial(read, how), stop, how)
        from sparsecv_mio.cli.live import compilation_lines, counting_bar
        from sparsecv_mio.near.common_subset import common_search
        from sparsecv_mio.report.record_tables import print_common

        with counting_bar(quiet, "steps (evaluate each gamma, then list it)") as progress:
            with compilation_lines(quiet):
                search = common_search(dataset, plan, given, tau, how, stop, Began.moment)
            search.progress = progress
            record = search.run()
    return ending.deliver(
        session.EXIT_CODE[record.status], lambda screen: print_common(screen, record, quiet, full, dataset),
        json=json, record=record.pieces, warnings=() if quiet else record.warnings,
    )  # fmt: skip


EXAMPLES = """\b
Examples:
  sparsecv solve diabetes.csv --target y --folds loo --gamma 0.01,0.1,1 --one-se
  sparsecv solve big.csv --target y --time-limit none --checkpoint run.ck --json answer.json
  sparsecv solve big.csv --target y --resume run.ck --json answer.json
  sparsecv solve diabetes.csv --target y --method descent --gamma 1e-3:10:5
  sparsecv solve genes.csv --target y --tau log --time-limit 300
  sparsecv solve servo.csv --target class --method algorithm1 --trace run.jsonl

"""
SOLVE_TERMS = (
    "Terms: a pair is a model size tau with a ridge weight gamma. A subproblem is the best subset of one pair with one "
    "fold held out; a fold is solved when its best subset is certified. A mixed-integer optimisation (MIO) problem is "
    "a "
    "subproblem that needs branch and bound. A pair is excluded when another pair is certified to be at least as good, "
    "up to the gap. ~ marks an estimate, ? an unknown bound; lower and upper are certified bounds.\n\n"
)

SOLVE_CODES = (
    EXAMPLES + SOLVE_TERMS + "Exit codes: 0 certified within --gap, 2 bad input, 3 limit reached (answer printed, "
    "bounds valid), 4 backend unavailable, 130 interrupted (answer and record written)."
)


@with_declared_options(
    table=options.TABLE,
    rows=options.DEALING,
    restrictions=options.RESTRICTING,
    units=options.UNITS,
    search=options.SEARCHING | {"time_limit": options.COMMAND_SECONDS},
    stored=options.STORING,
    used=options.ACCELERATING,
)
def solve(
    data: DataFile,
    *,
    table: Given,
    id: str | None = option(None, "COLUMN", "Column that names the rows. It is not a feature; it is written next to "
                                            "each row "
                            "of an output. [none]"),
    rows: Given,
    gamma: str | None = None,
    tau: str | None = None,
    restrictions: Given,
    units: Given,
    criterion: str = option("folds", "|".join(Criterion), "CV error that is minimised. folds: the best subset is "
                            "selected in every fold from its training rows; common: one subset is used in all folds "
                            "(Takano and Miyashiro).", Criterion),
    nested: int | None = option(None, "K", "Also estimate the error of the whole procedure by nested CV: repeat it "
                                           "with "
                                "each of K outer folds held out, and score the resulting model there. Groups stay "
                                "together. Takes about K times as long. [none]"),
    search: Given,
    stored: Given,
    used: Given,
    save_held_out: str | None = option(None, "FILE", "Write target, fold and held-out prediction of each row to this "
                                       "CSV file. The predictions are those of the reported pair, also with --model "
                                       "average: the column is then called pair_prediction or pair_probability. "
                                       "[none]"),
    scheduler: str | None = None,
    proof: str | None = None,
    json: str | None = None,
    progress_json: str | None = None,
    reference: str | None = REFERENCE,
    full: bool = option(False, "", "Print every coefficient and size, the plan and methods of the search, and their "
                                   "costs."),
    quiet: bool = False,
) -> int:  # fmt: skip
    """Find the pair (tau, gamma) with the minimum cross-validation error, and certify it.

    tau is the number of features, gamma the weight of the ridge penalty. In every fold the best subset of tau features
    is found exactly. The best pair is printed with certified bounds on its error and refitted on all rows.
    """
    every, grid = _gammas(gamma, nested)
    chosen = session.on_cores(units | search | used)
    if criterion == Criterion.COMMON:
        common = {name: chosen.pop(name) for name in (*units, *options.EFFORT, *options.LOSSES)}
        forced = {name: restrictions.pop(name) for name in options.LISTING}
        refuse_with_common({
            "gamma LO..HI": every, "nested": nested, **chosen, **stored, "save_held_out": save_held_out, "proof": proof,
            "progress_json": progress_json, "reference": reference, **restrictions,
        })  # fmt: skip
        read = partial(session.read_with_folds, data, table, rows, quiet, id)
        return solve_common(data, grid, tau, common, forced, read, json=json, quiet=quiet, full=full)
    checkpoint, resume, trace = stored.values()
    store = ("--checkpoint", checkpoint) if checkpoint is not None else ("--resume", resume)
    outputs = dict([("--json", json), store, ("--trace", trace), ("--save-held-out", save_held_out)])
    outputs |= {"--proof": proof, "--progress-json": progress_json}
    session.check_outputs(outputs, [data])

    with session.interruptible() as stop:
        from sparsecv_mio.search.options import NESTED, Hooks, SearchOptions

        how = SearchOptions.of(**chosen, restrictions=parse.restrictions(**restrictions))
        shown_against = parse.reference(reference, how)
        _check_together(how, every, Hooks(**stored, scheduler=scheduler), quiet)
        refuse_early(
            proof, how.restrictions, rows["weights"], how.loss, how.class_weight, _find_unproved_feature(every, how)
        )

        def ready() -> tuple[Dataset, FoldPlan, SearchOptions]:
            draws_outer = nested is not None or how.stability == NESTED
            dataset, plan = session.read_with_folds(data, table, rows, quiet or draws_outer, id, how)
            how.check_data(dataset, plan)
            if restrictions["count"] is not None:
                return dataset, plan, how
            from sparsecv_mio.search.question import Question, with_factors_together

            chosen, note = with_factors_together(Question(dataset, plan, every or grid, tau, how))
            if note and not quiet:
                ending.tell(f"note: {note}")
            return dataset, plan, chosen

        from sparsecv_mio.cli import live

        with live.reading_lines(quiet):
            dataset, plan, how = session.run_preparation(ready, stop, how)
        from sparsecv_mio.certificate.factor_levels import reference_levels
        from sparsecv_mio.report.reference_levels import make_printer, with_reference

        levels = reference_levels(shown_against, dataset, how.restrictions)
        from sparsecv_mio.report.record_tables import print_answer  # after a limit there is no time to load it
        from sparsecv_mio.search.api import cross_validate, nested_cross_validate
        from sparsecv_mio.search.observers import check_place, refuse_unfinished_checkpoint

        if store[1] is not None:
            check_place(store[1], store[0])
        if checkpoint is not None and (resume is None or Path(checkpoint).resolve() != Path(resume).resolve()):
            refuse_unfinished_checkpoint(checkpoint)
        lost: list[SparseCVError] = []
        warned: list[str] = []  # errors after which the run continued

        def note(error: SparseCVError) -> None:
            if isinstance(error, BackendFailed):
                warned.append(str(error))
            else:
                lost.append(error)

        snapshots: list[Snapshot] = []  # states of the finished searches
        steps = None if progress_json is None else live.Steps(progress_json, "solve")
        with live.progress_view(quiet, stop, steps, _limit_note(how.time_limit)) as progress:
            keep = None if proof is None else snapshots.append
            hooks = Hooks(progress, stop, note, Began.moment, store[1], resume, trace, scheduler, keep)
            answer = cross_validate if nested is None else partial(nested_cross_validate, count=nested)
            record = answer(dataset, plan, gammas=every or grid, taus=tau, options=how, hooks=hooks)
            record = with_reference(record, levels)

    status = "interrupted" if stop.is_set() else record.status
    if steps is not None:
        steps.end(status, record)
        lost += filter(None, [steps.lines.failure])
    _note_data(dataset, how.loss, quiet)
    last = snapshots[-1] if snapshots else None
    quality, files = None, proof_files(record, dataset, proof, plan, last, data=data, json=json, quiet=quiet)
    if save_held_out is not None:
        quality, write = _held_out_file(record, dataset, plan, save_held_out, id)
        files.append(write)
    return ending.deliver(
        session.EXIT_CODE[status],
        make_printer(lambda screen, one: print_answer(screen, one, quiet, quality, full, dataset), record),
        json=json, record=record.pieces, files=files, warnings=() if quiet else (*record.warnings, *warned), lost=lost,
    )  # fmt: skip


def _limit_note(seconds: float | None) -> str:
    """Return a note on the time limit if it is the default limit of the command."""
    if seconds != options.COMMAND_SECONDS:
        return ""
    return (
        f"the search stops after {seconds:g} s with valid bounds; --time-limit none runs until the choice is certified"
    )


def _gammas(gamma: str | None, nested: int | None) -> tuple[GammaInterval | None, tuple[float, ...] | None]:
    """Return the requested interval of gammas, or else the requested gammas; None and None by default."""
    every = None if gamma is None else model_space.interval(gamma)
    if nested is not None and every is not None:
        raise BadInput(f"--nested: requires a grid of gammas LO:HI:COUNT, not the interval {every}")
    return every, None if gamma is None or every is not None else model_space.gammas(gamma)


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
