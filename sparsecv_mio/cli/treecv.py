"""`sparsecv treecv`: cross-validation of incremental learners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecv_mio.cli import options, oracles, parse, session
from sparsecv_mio.cli.reading import reads_tables
from sparsecv_mio.data.reading import ReadingWords
from sparsecv_mio.units import MOST_THREADS

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.oracles.treecv import CvResult

LEARNERS = ("pegasos", "lsqsgd", "ridge", "naive-bayes", "bernoulli-nb")
CLASSIFIERS = ("pegasos", "naive-bayes", "bernoulli-nb")

CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted."


@reads_tables
def treecv(
    data: options.DataFile,
    target: options.Target = None,
    features: options.Features = None,
    drop: options.Drop = None,
    reading: ReadingWords | None = None,
    learner: Annotated[
        str,
        typer.Option(
            "--learner",
            metavar="WORD",
            callback=parse.word(LEARNERS, "--learner"),
            help="pegasos (linear SVM), lsqsgd (averaged least-squares SGD in the unit ball), ridge (exact), "
            "naive-bayes (Gaussian) or bernoulli-nb (indicators x > 0).",
        ),
    ] = "ridge",
    folds: options.Folds = "10",
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Seed of the folds and of --randomized. [0]")
    ] = None,
    lam: Annotated[
        float | None, typer.Option("--lam", metavar="X", help="lam of pegasos [1e-6] or ridge, lam * ||b||^2 [1].")
    ] = None,
    step: Annotated[float | None, typer.Option("--step", metavar="A", help="Step of lsqsgd. [n^-1/2]")] = None,
    randomized: Annotated[
        bool, typer.Option("--randomized", help="Feed the rows of every update in a random order.")
    ] = False,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy", metavar="WORD", callback=parse.word(("copy", "revert"), "--strategy"),
            help="copy models at branches, or revert their updates.",
        ),
    ] = "copy",
    standard: Annotated[
        bool, typer.Option("--standard", help="Run standard cross-validation too, one training per fold.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="Threads.")] = 1,
    scale: options.Scale = "none",
    intercept: options.Intercept = "none",
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> int:
    """Cross-validate an incremental learner in log2(k) passes over the data.

    TreeCV (Joulani, Gyorgy, Szepesvari 2015), for up to k = n folds. Columns are used as they are in the file and no
    intercept is added, unless --scale and --intercept ask for it; classifiers map the target's two values to -1 and
    +1. The estimate is the mean of the folds' mean losses: squared error, or the share of wrong classes.
    """
    parse.count(jobs, "--jobs", most=MOST_THREADS)
    parse.positive(lam, "--lam", zero=True)
    parse.positive(step, "--step")
    session.check_outputs({"--json": json}, [data])
    from sparsecv_mio.data.folds import fold_columns
    from sparsecv_mio.oracles.treecv import make_task, standard_cv, tree_cv

    dataset = session.read_data(
        data, target, features, drop, fold_columns(folds), reading=reading, two_words=learner in CLASSIFIERS
    )
    plan = session.make_plan(folds, dataset, seed, quiet or randomized)
    shuffle_seed = (seed or 0) if randomized else None
    task = make_task(dataset, learner, lam=lam, step=step, scale=scale, intercept=intercept)
    with oracles.counting_bar(quiet, "folds") as progress:
        tree = tree_cv(
            task.learner, task.X, task.y, plan,
            shuffle_seed=shuffle_seed, strategy=strategy, jobs=jobs, progress=progress,
        )  # fmt: skip
    plain = None
    if standard:
        with oracles.counting_bar(quiet, "trainings") as progress:
            plain = standard_cv(task.learner, task.X, task.y, plan, shuffle_seed=shuffle_seed, progress=progress)
    chosen = {
        "learner": learner, "lam": lam, "step": step, "folds": folds, "k": plan.k, "folds_digest": plan.digest,
        "seed": seed or 0, "randomized": randomized, "strategy": strategy, "jobs": jobs, "scale": scale,
        "intercept": intercept,
    }  # fmt: skip
    found = {"loss": task.loss, **_numbers(tree), **({} if plain is None else {"standard": _numbers(plain)})}
    return oracles.deliver("treecv", dataset, chosen, found, _print, quiet=quiet, json=json)


def _numbers(found: CvResult) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("estimate", "pooled", "updates", "seconds")}


def _print(screen: Console, found: dict[str, Any], quiet: bool) -> None:
    """Print the estimates; when quiet, that of the tree alone."""
    if quiet:
        screen.print(f"{found['estimate']:.10g}")
        return
    raw, k, n = oracles.as_given(found["options"]), found["options"]["k"], found["data"]["n"]
    if raw:
        screen.print(f"model     {raw}")
    for name, numbers in (("TreeCV", found), ("standard", found.get("standard"))):
        if numbers is not None:
            screen.print(
                f"{name:<9} {found['loss']}  {numbers['estimate']:.8g}  (k = {k}; {numbers['updates']} rows learned, "
                f"{numbers['updates'] / n:.4g} n; {numbers['seconds']:.3g} s)"
            )
