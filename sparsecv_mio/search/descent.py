"""Cyclic coordinate descent: gamma by the gamma step, tau by a certified search of its row, until neither improves.

A move is accepted only if the certified upper bound of the CV error falls, the supports of all folds solved anew. The
paper iterates until it meets a point for the second time; here no point can come twice, so descent itself is the
detection of cycles.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from sparsecv_mio.certificate.record import DescentStep, Record, Refined
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.search.clock import Clock
from sparsecv_mio.search.gamma import LEAST, MOST, GammaCurve, GammaPoint
from sparsecv_mio.search.progress import Progress
from sparsecv_mio.search.request import Grid, check_options
from sparsecv_mio.search.run import CrossValidation

PROGRESS = 1e-9  # relative fall of the CV error below which a move is no improvement
MOST_MOVES = 100


class Descent:
    """State of a descent: the row of taus solved at the current gamma, and the steps so far.

    Parameters
    ----------
    data, folds : StandardData, FoldPlan
    taus : sequence of int
    interval : pair of float
        Gammas to stay between.
    gap, clock, threads, progress
        As for `CrossValidation`.
    """

    def __init__(
        self,
        data: StandardData,
        folds: FoldPlan,
        taus: Sequence[int],
        interval: tuple[float, float],
        gap: float,
        clock: Clock,
        threads: int,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.data, self.folds, self.taus, self.interval, self.gap = data, folds, tuple(taus), interval, gap
        self.clock, self.threads, self.progress = clock, threads, progress
        self.nodes = self.mios = 0
        self.steps: list[DescentStep] = []
        self.row: CrossValidation | None = None

    def solve(self, gamma: float, taus: Sequence[int]) -> CrossValidation:
        """Search some taus at one gamma."""
        grid = Grid.of([gamma], taus, self.data.dataset.p)
        run = CrossValidation(self.data, self.folds, grid, self.gap, self.clock, self.threads, self.progress)
        run.begin()
        run.all_folds()
        while not run.finished:
            run.step()
        self.nodes += run.nodes
        self.mios += run.solved_by_branching()
        return run

    def start(self, gamma: float) -> None:
        """The first tau step."""
        self.take(self.solve(gamma, self.taus), "start")

    def take(self, row: CrossValidation, move: str) -> None:
        """Stand at the best tau of a solved row."""
        self.row = row
        now = row.bounds()
        per_row = self.data.y_unit**2 / int(self.folds.starts[-1])
        tau = int(row.grid.taus[now.best[1]])
        self.steps.append(DescentStep(move, float(row.grid.gammas[0]), tau, now.ceiling * per_row))

    def proposals(self, run: CrossValidation, t: int) -> list[GammaPoint]:
        """Gammas that lower h at the supports of a solved pair, best first."""
        supports = [run.cells.pool.supports[number] for number in run.cells.support[0, t].tolist()]
        curve, gamma = GammaCurve(self.data, self.folds, supports), float(run.grid.gammas[0])
        bar = curve.at(gamma)[0] * (1.0 - PROGRESS)
        return [point for point in curve.minima(gamma, *self.interval) if point.total < bar]

    def step(self) -> bool:
        """One gamma step and the tau step after it; False when nothing improves."""
        assert self.row is not None
        now = self.row.bounds()
        bar = now.ceiling * (1.0 - PROGRESS)
        for point in self.proposals(self.row, now.best[1]):
            if self.clock.expired():
                return False
            row = self.solve(point.gamma, self.taus)
            if row.bounds().ceiling < bar:
                before = self.steps[-1].tau
                self.take(row, "gamma" if int(row.grid.taus[row.bounds().best[1]]) == before else "gamma, tau")
                return True
        return False


def descend(
    dataset: Dataset,
    folds: FoldPlan,
    *,
    gammas: Sequence[float],
    taus: Sequence[int],
    scale: str = "length",
    intercept: str = "fold",
    gap: float = 1e-4,
    one_se: bool = False,
    time_limit: float | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> Record:
    """Descend from the middle of `gammas`, staying between the least and the largest of them.

    With a single gamma the descent starts there and stays in [1e-3, 10], widened to hold it. The record is that of the
    last gamma: its certificate is for all `taus` there; `descent` lists the steps. Parameters and errors as for
    :func:`sparsecv_mio.search.driver.cross_validate`.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.folds import make_folds
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> data = Dataset.from_arrays(X, 2 * X[:, 1] - X[:, 3] + rng.normal(size=40))
    >>> record = descend(data, make_folds("5", data), gammas=[1.0], taus=range(1, 6))
    >>> record.status, record.tau, record.descent[0].move
    ('proved', 2, 'start')
    """
    from sparsecv_mio.search.answer import build_record
    from sparsecv_mio.search.last_answer import score_one_pair

    check_options(dataset, folds, gap, one_se, time_limit, threads)
    asked = Grid.of(gammas, taus, dataset.p)
    first = float(asked.gammas[len(asked.gammas) // 2])
    wide = (min(LEAST, first), max(MOST, first))
    interval = (float(asked.gammas[0]), float(asked.gammas[-1])) if len(asked.gammas) > 1 else wide
    clock = Clock(time_limit, stop)
    data = standardize(dataset, scale, intercept)
    workers = threads or os.cpu_count() or 1
    run = Descent(data, folds, asked.taus.tolist(), interval, gap, clock, workers, progress)
    run.start(first)
    moved = True
    while moved and len(run.steps) < MOST_MOVES and not clock.expired():
        moved = run.step()
    assert run.row is not None
    score_one_pair(run.row)
    record = build_record(run.row, one_se=one_se, time_limit=time_limit, threads=threads)
    work = replace(record.work, mios=run.mios, nodes=run.nodes, seconds=clock.seconds, engine="descent")
    cut = moved and record.status == "proved"  # the row is proved, the descent was not over
    status = ("interrupted" if clock.stop.is_set() else "limit") if cut or clock.expired() else record.status
    return replace(record, work=work, status=status, descent=tuple(run.steps))


def refined(record: Record, run: CrossValidation) -> Refined:
    """Improve gamma around the reported pair at its tau; each gamma's folds are solved anew.

    Parameters
    ----------
    record : Record
    run : CrossValidation
        The run behind it.
    """
    descent = Descent(run.data, run.folds, [record.tau], _span(record), run.gap, run.clock, run.threads, None)
    g, t = run.bounds().best
    per_row = run.data.y_unit**2 / int(run.folds.starts[-1])
    supports = [run.cells.pool.supports[number] for number in run.cells.support[g, t].tolist()]
    lower = float(run.cells.lower[g, t].sum()) * per_row
    here = Refined(record.gamma, record.tau, record.cv_error, lower, record.upper)
    curve = GammaCurve(run.data, run.folds, supports)
    bar = curve.at(here.gamma)[0] * (1.0 - PROGRESS)
    points = [point for point in curve.minima(here.gamma, *descent.interval) if point.total < bar]
    while points and not run.clock.expired():
        point = points.pop(0)
        at = descent.solve(point.gamma, [record.tau])
        now = at.bounds()
        if now.ceiling * per_row < here.upper * (1.0 - PROGRESS):
            h = float(now.nominal[now.best]) * per_row
            here = Refined(point.gamma, record.tau, h, now.floor * per_row, now.ceiling * per_row)
            points = descent.proposals(at, now.best[1])
    return here


def _span(record: Record) -> tuple[float, float]:
    """The interval of the gamma step, widened to the gammas of the request."""
    return min(LEAST, *record.request.gammas, record.gamma), max(MOST, *record.request.gammas, record.gamma)
