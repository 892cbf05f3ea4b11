"""How far a search has come, for the thread that waits for it: what it holds can be made an answer at any moment.

No kernel is imported or called here: kernels may just be being compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.search.heuristics.plain import PlainAnswer, plain_answer
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.options import Grid, SearchOptions
from sparsecv_mio.search.result import build_record
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.standing import HasStanding, Standing


@dataclass(frozen=True, eq=False)
class Question:
    """What `cross_validate` was asked."""

    dataset: Dataset
    folds: FoldPlan
    grid: Grid
    options: SearchOptions
    hooks: Hooks


@dataclass(eq=False)
class Course:
    """Filled in by the thread that searches as it goes, read by the one that waits.

    Attributes
    ----------
    deadline, question
        What was asked, and by when.
    data : StandardData, optional
        Once the data are in standard coordinates.
    method : HasStanding, optional
        The method that searches, once there is one.
    plain : PlainAnswer, optional
        Made by `prepare` where no pair is scored in every fold when the time runs out.
    """

    deadline: Deadline
    question: Question
    data: StandardData | None = None
    method: HasStanding | None = None
    plain: PlainAnswer | None = None

    def begin(self) -> StandardData:
        """Bring the data to standard coordinates."""
        dataset, options = self.question.dataset, self.question.options
        self.data = standardize(dataset, options.scale, options.intercept)
        _ = dataset.fingerprint  # of the record: after the limit there is no time for it
        return self.data

    def prepare(self, until: float) -> None:
        """See to it that there will be an answer; see :func:`sparsecv_mio.search.supervise.attended`."""
        if self.data is not None:
            standing = self._standing(self.data)
            if not standing.scored:
                self._score(standing.context, until)

    def _score(self, asked: Context, until: float) -> None:
        self.plain = plain_answer(asked.data, asked.folds, asked.grid, until)

    def answer(self) -> Record:
        """Return the record of the state the search is in now.

        Raises
        ------
        OutOfTime
            If the data are not even in standard coordinates.
        """
        if self.data is None:
            raise OutOfTime("no answer yet: the data were still being prepared; give more time")
        standing = self._standing(self.data)
        grid = standing.context.grid
        if not standing.scored and (self.plain is None or self.plain.gamma not in grid.gammas):
            self._score(standing.context, self.deadline.began)
        return build_record(filled(standing, self.plain), self.question.options)

    def _standing(self, data: StandardData) -> Standing:
        """Where the method stands; where there is none yet, nothing is known."""
        standing = self.method.standing() if self.method is not None else None
        if standing is not None:
            return standing
        asked, options = self.question, self.question.options
        context = Context(data, asked.folds, asked.grid, options.gap, self.deadline, options.workers, options.one_se)
        return Standing(context, CellTable.empty(*context.shape))


def filled(standing: Standing, plain: PlainAnswer | None) -> Standing:
    """Return where a run stands, with what it has no support for filled in from `plain`."""
    if plain is None:
        return standing
    cells, grid = standing.cells, standing.context.grid
    place = np.flatnonzero(grid.gammas == plain.gamma)
    if len(place) and not np.isfinite(cells.nominal).all(axis=2).any():
        numbers: dict[int, int] = {}  # sizes share supports: the same array then
        for t, supports in enumerate(plain.supports):
            for support in supports:
                if id(support) not in numbers:
                    numbers[id(support)] = cells.pool.number(support)
            named = np.array([numbers[id(support)] for support in supports], dtype=np.int32)
            cells.offer((int(place[0]), t), named, plain.nominal[t], plain.value[t])
    found = {
        tau: PathCell(tau, support, 0.0, float(value), (), (), 0.0, complete=False, branched=False)
        for tau, support, value in zip(grid.taus.tolist(), plain.on_all_rows, plain.value_on_all_rows, strict=True)
    }
    missing = len(grid.gammas) - len(standing.best)
    return replace(standing, best=(*standing.best, *[PathResult(found, 0, False)] * missing))
