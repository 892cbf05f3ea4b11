"""The same MIOs through several backends: who is how fast, and whether all are right."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sparsecv_mio.certificate.parts import versions
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BackendFailed, BackendUnavailable
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.base import Backend
from sparsecv_mio.formulation.outcome import Limits, Outcome, Start
from sparsecv_mio.problem.accumulate import Moments, row_moments, training_moments
from sparsecv_mio.problem.problem import SparseProblem

TIED = 1e-9  # supports whose objectives agree to this are tied, not in disagreement


@dataclass(frozen=True)
class CompareRow:
    """One MIO by one backend; `f` in the scaled columns, units of the target squared.

    Attributes
    ----------
    data, fold, tau, gamma : str, int, int, float
        The MIO; fold -1 is all rows.
    seconds, setup_seconds : float
        Medians over the repeats: inside the solver; start, scaling, model and refits.
    objective, lower : float
        Exact refit of its support; its certified bound.
    gap : float
        `(objective - lower) / objective`.
    true_gap : float
        `(objective - best) / best`, best over all backends.
    same_support : bool
        Its support is the best one, or tied with it.
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
    """A backend and the formulation it is to use; `label` is `name` or `name:formulation`."""

    label: str
    backend: Backend
    formulation: str

    @classmethod
    def of(cls, label: str) -> Contender:
        """Read `name` or `name:formulation`; `BadInput` for an unknown name."""
        name, _, formulation = label.partition(":")
        backend = get_backend(name)
        return cls(label, backend, formulation or next(iter(backend.capabilities.formulations)))


@dataclass(frozen=True)
class Cell:
    """One MIO, ready to solve."""

    data: str
    fold: int
    tau: int
    gamma: float
    problem: SparseProblem
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
) -> Iterator[Cell]:
    """Yield every MIO of a data set: all rows, or the training rows of every fold."""
    data = standardize(dataset, scale, intercept)
    moments: Iterator[tuple[int, Moments]]
    moments = iter([(-1, row_moments(data, slice(0, data.n)))]) if folds is None else training_moments(data, folds)
    for fold, sums in moments:
        for gamma in gammas:
            problem = sums.problem(data, gamma)
            for tau in taus:
                yield Cell(name, fold, tau, gamma, problem, data.names, data.y_unit**2)


def compare(
    cells: Sequence[Cell],
    contenders: Sequence[Contender],
    *,
    repeats: int = 3,
    limits: Limits | None = None,
    warm: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[CompareRow]:
    """Solve every cell by every contender.

    Parameters
    ----------
    cells : sequence of Cell
    contenders : sequence of Contender
    repeats : int
        Runs of each; the backends take turns within each repeat, so that a busy machine hits all of them.
    limits : Limits, optional
    warm : bool
        Give everybody the best support known of a previous repeat. Off: everybody starts from its own.
    progress : callable, optional
        Called with (runs done, runs in all).

    Returns
    -------
    list of CompareRow
        In the order of cells, then contenders. A contender that cannot solve a cell has a row that says why.

    Notes
    -----
    Compilation and licence start-up happen on a toy problem before the first clock starts.
    """
    limits = limits or Limits()
    for contender in contenders:
        _warm_up(contender, limits)
    environment = _environment(limits)
    rows: list[CompareRow] = []
    done, total = 0, len(cells) * len(contenders) * repeats
    for cell in cells:
        outcomes: dict[str, list[Outcome]] = {c.label: [] for c in contenders}
        trouble: dict[str, str] = {}
        start: Start | None = None
        for _ in range(repeats):
            for contender in contenders:
                done += 1
                if contender.label in trouble or limits.cancelled:
                    continue
                try:
                    outcome = contender.backend.solve(
                        cell.problem,
                        min(cell.tau, cell.problem.q),
                        limits=limits,
                        formulation=contender.formulation,
                        start=start,
                    )
                except BackendUnavailable as error:
                    trouble[contender.label] = f"unavailable: {error}"
                except BackendFailed as error:
                    trouble[contender.label] = f"failed: {error}"
                else:
                    outcomes[contender.label].append(outcome)
                if progress is not None:
                    progress(done, total)
            if warm:
                start = _best_start(outcomes)
        rows += _judge(cell, contenders, outcomes, trouble, environment)
    return rows


def _best_start(outcomes: dict[str, list[Outcome]]) -> Start | None:
    found = [o for runs in outcomes.values() for o in runs if o.incumbent is not None]
    if not found:
        return None
    best = min(found, key=lambda outcome: outcome.upper)
    return Start(best.incumbent or (), "previous repeat")


def _judge(
    cell: Cell,
    contenders: Sequence[Contender],
    outcomes: dict[str, list[Outcome]],
    trouble: dict[str, str],
    environment: dict[str, str],
) -> list[CompareRow]:
    """Score the answers against the best of all of them."""
    held = [o for runs in outcomes.values() for o in runs if o.incumbent is not None]
    best = min((o.upper for o in held), default=np.nan)
    rows = []
    for contender in contenders:
        blank = CompareRow(
            cell.data, cell.fold, cell.tau, cell.gamma, contender.label, contender.formulation,
            trouble.get(contender.label, "not run"), environment=environment | _version(contender),
        )  # fmt: skip
        runs = outcomes[contender.label]
        if not runs:
            rows.append(blank)
            continue
        worst = max(runs, key=lambda outcome: (outcome.upper - outcome.lower))
        rows.append(
            replace(
                blank,
                status=str(worst.stop),
                seconds=statistics.median(o.seconds for o in runs),
                setup_seconds=statistics.median(o.setup_seconds for o in runs),
                nodes=int(statistics.median(o.nodes for o in runs)),
                cuts=int(statistics.median(o.cuts for o in runs)),
                objective=worst.upper * cell.unit,
                lower=worst.lower * cell.unit,
                gap=worst.gap,
                allowance=worst.allowance * cell.unit,
                true_gap=(worst.upper - best) / best if best > 0 else 0.0,
                same_support=worst.upper <= best * (1 + TIED),
                support=tuple(cell.names[j] for j in worst.incumbent or ()),
            )
        )
    return rows


def _version(contender: Contender) -> dict[str, str]:
    return {"backend_version": contender.backend.available().version}


def _warm_up(contender: Contender, limits: Limits) -> None:
    q = 5
    gram = np.full((q, q), 0.3) + 0.7 * np.eye(q)
    toy = SparseProblem(gram, np.linspace(1.0, 2.0, q), 12.0, np.ones(q), 0.05, 20, np.zeros(q), 0.0)
    quick = replace(limits, seconds=10.0, log=None)
    try:
        contender.backend.solve(toy, 2, limits=quick, formulation=contender.formulation)
    except (BackendUnavailable, BackendFailed):
        return  # the cells will say so, one row each


def _environment(limits: Limits) -> dict[str, str]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": str(cores),
        "threads": str(limits.threads),
        **versions(),
    }
