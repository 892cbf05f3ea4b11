"""Functions that run several MIO backends on the same problems, check the answers, and tabulate the running times."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from sparsecv_mio.certificate.parts import versions
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.loss_targets import check_training
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.declared_options import check_whole
from sparsecv_mio.digits import format_number
from sparsecv_mio.errors import BackendFailed, BackendUnavailable, BadInput
from sparsecv_mio.files import with_inert_words, write_text
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.outcome import Limits, Outcome, Solver
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import row_moments, training_moments
from sparsecv_mio.report import layout
from sparsecv_mio.search.options import check_formulation, check_limits
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import DEFAULT_LOSS, Loss
from sparsecv_mio.trees.glm_subsets import make_glm_problem
from sparsecv_mio.trees.without_ridge import check_independent
from sparsecv_mio.units import TIE_RTOL


@dataclass(frozen=True)
class CompareRow:
    """The result of one backend on one MIO; `f` in the scaled columns, squared units of the target.

    Attributes
    ----------
    data : str
        Name of the data set.
    fold, tau, gamma : int, int, float
        The MIO; fold -1 means all rows.
    backend, formulation : str
        Label of the backend, and its formulation.
    status : str
        Reason why it stopped, or why it could not solve the MIO.
    seconds, setup_seconds : float
        Medians over the repeats: inside the solver; start, scaling, model and refits.
    nodes, cuts : int
        Medians over the repeats.
    objective, lower : float
        Objective of an exact refit of its support, and its certified bound.
    gap : float
        Relative gap `(objective - lower) / objective`.
    allowance : float
        Numerical error that is subtracted from the bound of the solver.
    true_gap : float
        Relative excess `(objective - best) / best`, with the best objective of all backends.
    same_support : bool
        True if its support is the best one, or tied with it.
    support : tuple of str
        Names of the features chosen.
    environment : dict
        Machine, threads and versions.
    """

    data: str
    fold: int
    tau: int
    gamma: float
    backend: str
    formulation: str
    status: str
    seconds: float = np.nan
    setup_seconds: float = np.nan
    nodes: int = 0
    cuts: int = 0
    objective: float = np.nan
    lower: float = np.nan
    gap: float = np.nan
    allowance: float = np.nan
    true_gap: float = np.nan
    same_support: bool = False
    support: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Contender:
    """A backend and its formulation; `label` is `name` or `name:formulation`."""

    label: str
    backend: Solver
    formulation: str

    @classmethod
    def of(cls, label: str, loss: Loss = DEFAULT_LOSS) -> Contender:
        """Return the contender for `name` or `name:formulation`; raise `BadInput` if it does not support the loss."""
        name, _, formulation = label.partition(":")
        backend = get_backend(name)
        form = check_formulation(name, formulation or None, loss)
        return cls(label, backend, form or next(iter(backend.capabilities.of(loss))))


@dataclass(frozen=True)
class Cell:
    """One MIO, ready to solve: the training rows of a fold (-1: all rows) at one tau and gamma."""

    data: str
    fold: int
    tau: int
    gamma: float
    problem: SparseProblem | GlmProblem
    names: tuple[str, ...]
    unit: float


def cells_of(
    name: str,
    dataset: Dataset,
    folds: FoldPlan | None,
    *,
    taus: Sequence[int],
    gammas: Sequence[float],
    scale: str = "length",
    intercept: str = "fold",
    loss: Loss = DEFAULT_LOSS,
) -> Iterator[Cell]:
    """Yield every MIO of a data set, ascending in gamma and tau.

    Parameters
    ----------
    name : str
        Name of the data in the rows.
    dataset : Dataset
        Rows, target and names.
    folds : FoldPlan or None
        Folds whose training rows are used; None for all rows at once.
    taus, gammas : sequences
        Support sizes, 0 to p; ridge weights, positive, or 0 if the columns of every model are linearly independent.
    scale : {"length", "variance", "none"}
        Units in which the penalty measures columns.
    intercept : {"fold", "global", "none"}
        Type of the intercept.
    loss : Loss
        Loss of the fits; `logistic` for data with two classes.

    Yields
    ------
    Cell
        One MIO.

    Raises
    ------
    BadInput
        If a keyword is unknown or a number is out of range.
    """
    grid = Grid.of(gammas, taus, dataset.p)
    if not (loss.is_quadratic or loss.target.has_classes):
        raise BadInput(f"compare: loss {loss} is not supported; use loss squared or logistic")
    data = standardize(dataset, scale, intercept, loss=loss)
    problems: Iterator[tuple[int, Callable[[float], SparseProblem | GlmProblem]]]
    if loss.target.has_classes:
        if folds is not None:
            check_training(data.dataset, folds, data.intercept, data.loss)
        rows = [(-1, np.arange(data.n))] if folds is None else [(j, folds.train_rows(j)) for j in range(folds.k)]
        problems = ((fold, make_glm_problem(data, training).with_gamma) for fold, training in rows)
    else:
        check_independent(data, grid.gammas.tolist(), min(int(grid.taus.max()), data.q), folds)
        whole = iter([(-1, row_moments(data, slice(0, data.n)))])
        moments = whole if folds is None else training_moments(data, folds)
        problems = ((fold, partial(sums.problem, data)) for fold, sums in moments)
    for fold, problem_at in problems:
        for gamma in grid.gammas.tolist():
            problem = problem_at(gamma)
            for tau in grid.taus.tolist():
                yield Cell(name, fold, tau, gamma, problem, data.names, data.loss_unit)


def compare(
    cells: Sequence[Cell],
    contenders: Sequence[Contender],
    *,
    repeats: int = 3,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[CompareRow]:
    """Return the results of every contender on every MIO.

    Parameters
    ----------
    cells : sequence of Cell
        The MIOs.
    contenders : sequence of Contender
        Backends to compare.
    repeats : int
        Number of runs of each backend; backends take turns within each repeat, so that the load of the machine affects
        all of them.
    limits : Limits, optional
        Limits of each run.
    progress : callable, optional
        Function that is called with (finished runs, number of runs).

    Returns
    -------
    list of CompareRow
        Rows in the order of cells, then contenders. If a contender cannot solve a cell, its row has the reason.

    Raises
    ------
    BadInput
        If limits or the number of repeats are out of range.

    Notes
    -----
    Compilation and licence start-up happen on a toy problem before the first clock starts.
    """
    limits = limits or Limits()
    check_limits(limits)
    check_whole("repeats", repeats, 1)
    for contender in contenders:
        _warm_backend(contender, limits, any(isinstance(cell.problem, GlmProblem) for cell in cells))
    environment = _machine_and_solvers(limits)
    rows: list[CompareRow] = []
    done, total = 0, len(cells) * len(contenders) * repeats
    for cell in cells:
        runs = _Runs(cell, contenders)
        for _ in range(repeats):
            for contender in contenders:
                done += 1
                if runs.solve(contender, limits) and progress is not None:
                    progress(done, total)
        rows += [runs.row(contender, environment) for contender in contenders]
    return rows


MEDIANS = ("seconds", "setup_seconds", "nodes", "cuts")


class _Runs:
    """The runs of one cell, by contender."""

    def __init__(self, cell: Cell, contenders: Sequence[Contender]) -> None:
        self.cell = cell
        self.outcomes: dict[str, list[Outcome]] = {contender.label: [] for contender in contenders}
        self.trouble: dict[str, str] = {}

    def solve(self, contender: Contender, limits: Limits) -> bool:
        """Run a contender once; return True if it was tried."""
        if contender.label in self.trouble or limits.is_cancelled:
            return False
        problem, tau = self.cell.problem, min(self.cell.tau, len(self.cell.names))
        try:
            outcome = contender.backend.solve(problem, tau, limits=limits, formulation=contender.formulation)
        except BackendUnavailable as error:
            self.trouble[contender.label] = f"unavailable: {error}"
        except BackendFailed as error:
            self.trouble[contender.label] = f"failed: {error}"
        else:
            self.outcomes[contender.label].append(outcome)
        return True

    def row(self, contender: Contender, environment: dict[str, str]) -> CompareRow:
        """Return the row of a contender: its worst answer against the best of all, and median time and work."""
        cell, runs = self.cell, self.outcomes[contender.label]
        version = {"backend_version": contender.backend.available().version}
        blank = CompareRow(
            cell.data, cell.fold, cell.tau, cell.gamma, contender.label, contender.formulation,
            self.trouble.get(contender.label, "not run"), environment=environment | version,
        )  # fmt: skip
        if not runs:
            return blank
        solved = [run.upper for runs_of in self.outcomes.values() for run in runs_of if run.incumbent is not None]
        best = min(solved, default=np.nan)
        worst = max(runs, key=lambda outcome: outcome.upper - outcome.lower)
        median = {name: statistics.median(getattr(run, name) for run in runs) for name in MEDIANS}
        return replace(
            blank, status=str(worst.stop), seconds=median["seconds"], setup_seconds=median["setup_seconds"],
            nodes=int(median["nodes"]), cuts=int(median["cuts"]), objective=worst.upper * cell.unit,
            lower=worst.lower * cell.unit, gap=worst.gap, allowance=worst.allowance * cell.unit,
            true_gap=(worst.upper - best) / best if best > 0 else 0.0,
            same_support=worst.upper <= best * (1 + TIE_RTOL),
            support=tuple(cell.names[j] for j in worst.incumbent or ()),
        )  # fmt: skip


def _warm_backend(contender: Contender, limits: Limits, classes: bool) -> None:
    q = 5
    gram = np.full((q, q), 0.3) + 0.7 * np.eye(q)
    toy: SparseProblem | GlmProblem
    toy = SparseProblem(gram, np.linspace(1.0, 2.0, q), 12.0, np.ones(q), 0.05, 20, np.zeros(q), 0.0)
    if classes:
        labels = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
        toy = GlmProblem(gram, labels, np.ones(q), np.ones(q), 0.1)
    quick = replace(limits, seconds=10.0, log=None)
    try:
        contender.backend.solve(toy, 2, limits=quick, formulation=contender.formulation)
    except (BackendUnavailable, BackendFailed):
        return  # each cell reports the failure in its row


def _machine_and_solvers(limits: Limits) -> dict[str, str]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": str(cores),
        "threads": str(limits.threads),
        **versions(),
    }


def write_csv(rows: Sequence[CompareRow], path: Path) -> None:
    """Write one line for each row, with the environment in every line."""
    import pandas as pd

    places = sorted({key for row in rows for key in row.environment})
    lines = [asdict(row) | {"support": " ".join(row.support)} | row.environment for row in rows]
    plain = [f.name for f in fields(CompareRow) if f.name not in ("support", "environment")]
    table = pd.DataFrame(lines, columns=[*plain, "support", *places])
    write_text(path, [with_inert_words(table).to_csv(index=False, lineterminator="\n")])


COLUMNS = (
    "data", "fold", "tau", "gamma", "backend", "formulation", "status", "seconds", "setup", "nodes", "cuts",
    "objective", "lower", "gap", "true gap", "agrees",
)  # fmt: skip


def _describe_row(row: CompareRow, digits: int) -> dict[str, object]:
    """Return the cells of a row by column; a backend without an objective neither agrees nor disagrees."""
    numbers = {
        "seconds": (row.seconds, 3), "setup": (row.setup_seconds, 3), "objective": (row.objective, digits),
        "lower": (row.lower, digits), "gap": (row.gap, 2), "true gap": (row.true_gap, 2),
    }  # fmt: skip
    return {
        **asdict(row), **{name: format_number(*number) for name, number in numbers.items()},
        "fold": "all" if row.fold < 0 else row.fold, "agrees": row.same_support if np.isfinite(row.objective) else "",
    }  # fmt: skip


def print_compare(console: Console, rows: Sequence[CompareRow]) -> None:
    """Print every row, then a summary of each backend."""
    heads = [name for name in COLUMNS if name not in ("formulation", "setup")]
    described = [_describe_row(row, 9) | {"status": row.status.partition(":")[0]} for row in rows]
    lines = [[texts[name] for name in heads] for texts in described]
    layout.print_table(console, heads, lines, text=("data", "backend", "status"))
    _print_comparison_summary(console, rows)
    for text in dict.fromkeys(row.status for row in rows if ":" in row.status):
        layout.say(console, text)


def _print_comparison_summary(console: Console, rows: Sequence[CompareRow]) -> None:
    lines: list[tuple[object, ...]] = []
    for name in dict.fromkeys(row.backend for row in rows):
        mine = [row for row in rows if row.backend == name]
        ran = [row for row in mine if np.isfinite(row.seconds)]
        if not ran:
            lines.append((name, 0, len(mine), "", "", "", ""))
            continue
        seconds = [row.seconds for row in ran]
        counts = sum(row.status == "optimal" for row in ran), len(mine)
        times = format_number(float(np.median(seconds)), 3), format_number(float(np.sum(seconds)), 3)
        agree = f"{sum(row.same_support for row in ran)}/{len(ran)}"
        lines.append((name, *counts, *times, format_number(max(row.true_gap for row in ran), 2), agree))
    names = ("backend", "solved", "of", "median s", "total s", "largest true gap", "supports agree")
    layout.print_table(console, names, lines, text=("backend",))
    words = "status optimal: the bounds differ by at most the requested gap plus the allowance for solver tolerances"
    layout.say(console, f"{words}; status gap: the solver ended by its own criterion with a larger gap", style="dim")


def format_comparison(rows: Sequence[CompareRow], command: str) -> str:
    """Return the comparison as a Markdown page, with the command that produced it."""
    lines = ["# Backend comparison", "", f"`{command}`", ""]
    environment = rows[0].environment if rows else {}
    keep = ("machine", "cores", "threads", "python", "numpy", "sparsecv_mio")
    lines += [", ".join(f"{key} {environment[key]}" for key in keep if key in environment) + "; " + ", ".join(
        dict.fromkeys(f"{row.backend.partition(':')[0]} {row.environment.get('backend_version', '')}" for row in rows)
    ), ""]  # fmt: skip
    lines += [f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
    for texts in (_describe_row(row, 10) for row in rows):
        lines.append(f"| {' | '.join(layout.cell(texts[name]) for name in COLUMNS)} |")
    return "\n".join(lines) + "\n"
