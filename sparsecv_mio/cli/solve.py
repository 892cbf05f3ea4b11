"""`sparsecv solve`: certified cross-validation, and the best subset that all folds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain, repeat
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecv_mio import model_space
from sparsecv_mio.cli import Began, ending, options, parse, session
from sparsecv_mio.cli.options import reads_tables
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.data.reading_options import ReadingWords
from sparsecv_mio.errors import BadInput, SparseCVError
from sparsecv_mio.words import Criterion, Engine, Method, TauStep

if TYPE_CHECKING:
    from sparsecv_mio.certificate.records import FitQuality, Record
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.fold_plan import FoldPlan
    from sparsecv_mio.search.context import Snapshot


def refuse_with_common(options: Mapping[str, Any]) -> None:
    """Raise `BadInput` for options of `solve` that this criterion has no use for.

    Parameters
    ----------
    options : mapping of str to object
        By name; None, False and "auto" are options that were not given.
    """
    for name, value in options.items():
        if value not in (None, False, "auto"):
            raise BadInput(f"{name} does not go with --criterion common: leave out one or the other")


def solve_common(
    data: str, given: tuple[float, ...] | None, tau: str | None, *, reading: Mapping[str, Any],
    dealt: Mapping[str, Any], options: Mapping[str, Any], restrictions: Mapping[str, str | None],
    json: str | None, quiet: bool, full: bool,
) -> int:  # fmt: skip
    """Find the best common subset, print it, write its record, return the exit code.

    Parameters
    ----------
    data : str
        The file.
    given : tuple of float or None
        `--gamma`.
    tau : str or None
        `--tau`, as given.
    reading : mapping
        Arguments of `session.read_dealt` by position: target, features, drop.
    dealt : mapping
        Its keywords.
    options : mapping
        Fields of `CommonOptions` as given.
    restrictions : mapping
        `--force-in` and the like, as given.
    json : str or None
    quiet, full : bool
    """
    session.check_outputs({"--json": json}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.near.near_options import CommonOptions

        how = CommonOptions.of(**options, restrictions=parse.restrictions(**restrictions))

        def ready() -> tuple[Dataset, FoldPlan]:
            return session.read_dealt(data, *reading.values(), quiet=quiet, **dealt)

        dataset, plan = session.in_time(ready, stop, how.time_limit)
        from sparsecv_mio.near.common_subset import best_common_subset
        from sparsecv_mio.report.record_tables import print_common  # after a limit there is no time to load it

        record = best_common_subset(dataset, plan, gammas=given, taus=tau, options=how, stop=stop, began=Began.moment)
    return ending.deliver(
        session.EXIT_CODE[record.status], lambda screen: print_common(screen, record, brief=quiet, full=full),
        json=json, record=record.pieces, warnings=() if quiet else record.warnings,
    )  # fmt: skip


EXAMPLES = """\b
Examples:
  sparsecv solve diabetes.csv --target y --folds loo --gamma 0.01,0.1,1 --one-se
  sparsecv solve big.csv --target y --checkpoint run.ck --json answer.json
  sparsecv solve big.csv --target y --resume run.ck --json answer.json
  sparsecv solve diabetes.csv --target y --method descent --gamma 1e-3:10:5
  sparsecv solve genes.csv --target y --method descent --tau log
  sparsecv solve servo.csv --target class --method algorithm1 --trace run.jsonl

"""
SOLVE_WORDS = (
    "Words: a cell is a pair (tau, gamma) with one fold left out; an MIO is a best-subset problem that needed "
    "branch-and-bound (one tree may solve many), nodes are the subproblems of trees; a fold is decided once its best "
    "subset is proved, a pair is excluded once another one is proved at least as good, up to the gap; ~ stands before "
    "an estimate, ? for a bound that is not known; lower and upper are certified.\n\n"
)

SOLVE_CODES = (
    EXAMPLES + SOLVE_WORDS + "Exit codes: 0 proved within --gap, 2 bad input, 3 limit reached (answer printed, bounds "
    "valid), 4 backend unavailable, 130 interrupted (answer and record written)."
)


@reads_tables
def solve(
    data: options.DataFile,
    target: options.Target = None,
    features: options.Features = None,
    drop: options.Drop = None,
    reading: ReadingWords | None = None,
    weights: options.Weights = None,
    folds: options.Folds = "10",
    seed: options.Seed = None,
    gamma: options.Gamma = None,
    tau: Annotated[
        str | None,
        typer.Option(
            "--tau",
            metavar="LIST",
            help="Support sizes: K, LO:HI (inclusive) or a list; 0 is the intercept alone; log: all with "
            "tau log tau <= min(p, n_train). [1:p; if p > 30, 1 to n_train / 8, but to 10 at least and 50 at most]",
        ),
    ] = None,
    force_in: options.ForceIn = None,
    force_out: options.ForceOut = None,
    at_most: options.AtMost = None,
    hierarchy: options.Hierarchy = None,
    nonnegative: options.Nonnegative = None,
    nonpositive: options.Nonpositive = None,
    scale: options.Scale = "length",
    intercept: options.Intercept = "fold",
    criterion: Annotated[
        str,
        typer.Option(
            "--criterion",
            metavar="|".join(Criterion),
            callback=parse.word(Criterion, "--criterion"),
            help="Whose CV error is least. folds: of the best subset of every fold's own training rows; common: of one "
            "subset for all folds, of any support (Takano and Miyashiro).",
        ),
    ] = "folds",
    nested: Annotated[
        int | None,
        typer.Option(
            "--nested",
            metavar="K",
            help="Also estimate the error of the whole procedure: repeat it without each of K outer folds, and score "
            "the model that it chooses there. Groups stay together. Takes about K times as long. [none]",
        ),
    ] = None,
    one_se: Annotated[
        bool, typer.Option("--one-se", help="Report and refit the one-standard-error pair too: the smallest tau.")
    ] = False,
    stability: Annotated[
        str | None,
        typer.Option(
            "--stability",
            metavar="WEIGHT|nested",
            help="Fit the model at the pair with the least CV error + WEIGHT x instability, where the instability is "
            "the largest change that leaving out a fold makes to the squared errors of all rows. nested: the weight "
            "by nested CV, about six times as long. [none]",
        ),
    ] = None,
    gap: options.Gap = 1e-4,
    time_limit: options.TimeLimit = None,
    threads: options.Threads = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="|".join(Engine),
            help="How folds share work; the answer is the same. enumerate: one listing by thresholds; shared: one "
            "tree for all folds of leave-one-out; per-fold: a tree each. [auto]",
            show_default=False,
        ),
    ] = "auto",
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="|".join(Method),
            help="rounds: every cell in rounds of growing effort, work shared between taus and folds; joint: "
            "best-first over all pairs, one MIO at a time, the likely best one solved, the others raised above it; "
            "algorithm1: bounds, then one MIO at a time (the paper's); grid: every cell an MIO (the baseline); bounds: "
            "certified bounds alone, no branching (exit code 3 unless they prove the pair); descent: gamma and tau in "
            "turn, gamma free between the least and the largest one given; proved then means that no single change of "
            "gamma or tau improves the pair. [auto: rounds, the fastest; joint with another --backend than native]",
            show_default=False,
        ),
    ] = "auto",
    backend: Annotated[
        str,
        typer.Option(
            "--backend",
            metavar="B",
            help="The solver of each MIO of joint, algorithm1 and grid; see `sparsecv backends`. Any but native "
            "without --method means joint. [native]",
            show_default=False,
        ),
    ] = "native",
    formulation: Annotated[
        str | None,
        typer.Option("--formulation", metavar="F", help="Which of the backend's models: benders of gurobi, say."),
    ] = None,
    mio_budget: Annotated[
        int | None,
        typer.Option("--mio-budget", metavar="R", help="Stop joint, algorithm1 or grid after R MIOs. [none]"),
    ] = None,
    refine: Annotated[
        bool,
        typer.Option("--refine", help="Improve gamma around the answer too; stored separately, as `refined`."),
    ] = False,
    tau_step: Annotated[
        str,
        typer.Option(
            "--tau-step",
            metavar="|".join(TauStep),
            help="Of --method descent: mio certifies every tau at every gamma tried; saddle estimates them by the "
            "saddle-point problem, no MIO, for many columns (never proved). [auto: saddle beyond 500 columns]",
            show_default=False,
        ),
    ] = "auto",
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="FILE", help="Store the run here now and then; --resume carries it on."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="FILE", help="Carry on a stored run, and go on storing it there."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE", help="Write the course of the bounds here, for `sparsecv plot`."),
    ] = None,
    oracles: Annotated[
        str | None,
        typer.Option(
            "--oracles",
            metavar="LIST|none",
            help="Accelerators of the search, some of glru,iacv,treecv, each named after the oracle (the command of "
            "that name) whose idea it uses; the answer is the same. glru: dual points of all rows tested in every fold "
            "first; iacv: supports proposed by the relaxations of all folds run at once; treecv: moments of the folds "
            "along a tree. [treecv, and glru before MIOs of --backend]",
            show_default=False,
        ),
    ] = None,
    save_held_out: Annotated[
        str | None,
        typer.Option(
            "--save-held-out",
            metavar="FILE",
            help="Write each row's target, fold and prediction by the model that was fitted without it here, as CSV.",
        ),
    ] = None,
    scheduler: options.Scheduler = None,
    proof: options.Proof = None,
    json: options.Json = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print every coefficient and every tau, where they are more than a screen.")
    ] = False,
    quiet: options.Quiet = False,
) -> int:
    """Find the best (tau, gamma) and prove it.

    For every gamma, tau and fold the best subset of tau features is found exactly; the pair with the least
    cross-validation error comes with certified bounds and is refitted on all rows.
    """
    every = None if gamma is None else model_space.interval(gamma)
    given = None if gamma is None or every is not None else model_space.gammas(gamma)
    if nested is not None and every is not None:
        raise BadInput(f"--nested: goes with a grid of gammas LO:HI:COUNT, not with the interval {every}")
    if criterion == Criterion.COMMON:
        refuse_with_common({
            "--gamma LO..HI": every,
            "--nested": nested, "--one-se": one_se, "--stability": stability, "--engine": engine, "--method": method,
            "--backend": None if backend == "native" else backend, "--formulation": formulation,
            "--mio-budget": mio_budget, "--refine": refine, "--tau-step": tau_step, "--checkpoint": checkpoint,
            "--resume": resume, "--trace": trace, "--oracles": oracles, "--save-held-out": save_held_out,
            "--proof": proof, "--at-most": at_most, "--hierarchy": hierarchy, "--nonnegative": nonnegative,
            "--nonpositive": nonpositive,
        })  # fmt: skip
        return solve_common(
            data, given, tau, reading={"target": target, "features": features, "drop": drop},
            dealt={"weights": weights, "folds": folds, "seed": seed, "reading": reading},
            options={
                "scale": scale, "intercept": intercept, "gap": gap, "time_limit": time_limit,
                "threads": session.cores() if threads is None else threads,
            },
            restrictions={"force_in": force_in, "force_out": force_out}, json=json, quiet=quiet, full=full,
        )  # fmt: skip
    store = ("--checkpoint", checkpoint) if checkpoint is not None else ("--resume", resume)
    outputs = dict([("--json", json), store, ("--trace", trace), ("--save-held-out", save_held_out)])
    outputs["--proof"] = proof
    session.check_outputs(outputs, [data])

    with session.interruptible() as stop:
        from sparsecv_mio.search.options import SearchOptions

        how = SearchOptions.of(
            scale=scale, intercept=intercept, gap=gap, one_se=one_se, stability=stability, time_limit=time_limit,
            threads=session.cores() if threads is None else threads, method=method, backend=backend,
            formulation=formulation, engine=engine, mio_budget=mio_budget, refine=refine, tau_step=tau_step,
            oracles=oracles,
            restrictions=parse.restrictions(
                force_in=force_in, force_out=force_out, at_most=at_most, hierarchy=hierarchy, nonnegative=nonnegative,
                nonpositive=nonpositive,
            ),
        )  # fmt: skip

        if every is not None:
            from sparsecv_mio.search.gamma_partition import check_interval
            from sparsecv_mio.search.options import Hooks

            check_interval(every, how, Hooks(checkpoint=checkpoint, resume=resume, trace=trace, scheduler=scheduler))
        other = "every gamma of an interval (--gamma LO..HI)" if every is not None else None
        other = "--method descent" if how.method is Method.DESCENT else other
        refuse_early(proof, how.restrictions, weights, other)

        def ready() -> tuple[Dataset, FoldPlan]:
            from sparsecv_mio.data.weights import least_rows

            dataset, plan = session.read_dealt(
                data, target, features, drop, weights=weights, folds=folds, seed=seed, quiet=quiet, reading=reading
            )
            how.check_data(dataset, plan)
            within = how.restrictions.within(dataset.names)
            shape = within.left(dataset.p), least_rows(dataset, plan)
            model_space.taus_of(tau, *shape, "--tau", within)  # the option is named where it is wrong
            return dataset, plan

        dataset, plan = session.in_time(ready, stop, how.time_limit)

        from sparsecv_mio.cli import live
        from sparsecv_mio.data.table_facts import about_target
        from sparsecv_mio.report.record_tables import print_answer  # after a limit there is no time to load it
        from sparsecv_mio.search.api import cross_validate, nested_cross_validate
        from sparsecv_mio.search.observers import check_place
        from sparsecv_mio.search.options import Hooks

        if store[1] is not None:
            check_place(store[1], store[0])
        lost: list[SparseCVError] = []
        known: list[Snapshot] = []  # by the searches that came to their end
        with live.progress_view(quiet, stop) as progress:
            keep = None if proof is None else known.append
            hooks = Hooks(progress, stop, lost.append, Began.moment, store[1], resume, trace, scheduler, keep)
            if nested is None:
                record = cross_validate(dataset, plan, gammas=every or given, taus=tau, options=how, hooks=hooks)
            else:
                record = nested_cross_validate(dataset, plan, nested, given, tau, how, hooks)

    if not quiet and (line := about_target(dataset)):
        ending.tell(f"note: {line}")
    known_at_end = known[-1] if known else None
    found, files = None, proof_files(record, dataset, proof, plan, known_at_end, data=data, json=json, quiet=quiet)
    if save_held_out is not None:
        found, write = _held_out(record, dataset, plan, save_held_out)
        files.append(write)
    return ending.deliver(
        session.EXIT_CODE["interrupted" if stop.is_set() else record.status],
        lambda screen: print_answer(screen, record, brief=quiet, held_out=found, full=full),
        json=json, record=record.pieces, files=files, warnings=() if quiet else record.warnings, lost=lost,
    )  # fmt: skip


def _held_out(record: Record, dataset: Dataset, plan: FoldPlan, place: str) -> tuple[FitQuality, Callable[[], None]]:
    """Return how good the held-out predictions are, and what writes them."""
    from sparsecv_mio.certificate.records import accuracy
    from sparsecv_mio.files import write_text
    from sparsecv_mio.search.api import mean_predictions, predictions_by_fold

    scored, predicted = predictions_by_fold(record, dataset, plan)
    means, times = mean_predictions(scored, predicted, dataset.n)
    said, missing = (plan.labels, -1) if plan.is_partition else (times, 0)
    weights, ends = dataset.row_weights, repeat("")
    if weights is not None:
        ends = (f",{weight!r}" for weight in weights.tolist())  # type: ignore[assignment]
    rows = zip(dataset.y.tolist(), said.tolist(), means.tolist(), ends, strict=False)
    lines = (
        f"{y!r},{number},{value!r}{end}\n" if number != missing else f"{y!r},,{end}\n" for y, number, value, end in rows
    )
    named = f"target,{'fold' if plan.is_partition else 'times scored'},prediction"
    head = f"{named}{'' if weights is None else ',weight'}\n"
    held = times > 0
    found = accuracy(dataset.y[held], means[held], None if weights is None else weights[held])
    return found, lambda: write_text(place, chain([head], lines), "predictions")
