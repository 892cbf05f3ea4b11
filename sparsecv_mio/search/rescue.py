"""How far a search has come, for the thread that waits for it: what it holds can be made an answer at any moment.

No kernel is imported or called here: kernels may just be being compiled.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from sparsecv_mio.certificate.parts import OracleWork
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.search.heuristics.plain import PlainAnswer, plain_answer
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.options import Grid, SearchOptions
from sparsecv_mio.search.state.cells import CellTable, PairBounds, pair_bounds
from sparsecv_mio.search.state.deadline import Deadline

if TYPE_CHECKING:
    from sparsecv_mio.search.methods.descent import Descent
    from sparsecv_mio.search.methods.rounds import CrossValidation


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
    clock, question
        What was asked, and by when.
    record : callable
        Turns a run into its record.
    data : StandardData, optional
        Once the data are in standard coordinates.
    run : CrossValidation or Descent, optional
        Once there is one.
    plain : PlainAnswer, optional
        Made by `prepare` where no pair is scored in every fold when the time runs out.
    """

    clock: Deadline
    question: Question
    record: Callable[[CrossValidation], Record]
    data: StandardData | None = None
    run: CrossValidation | Descent | None = None
    plain: PlainAnswer | None = None

    def begin(self) -> None:
        """Bring the data to standard coordinates."""
        dataset, options = self.question.dataset, self.question.options
        self.data = standardize(dataset, options.scale, options.intercept)
        _ = dataset.fingerprint  # of the record: after the limit there is no time for it

    def prepare(self, until: float) -> None:
        """See to it that there will be an answer; see :func:`sparsecv_mio.search.supervise.attended`."""
        if self.data is not None and not scored(self._row(self.data)):
            self._score(self.data, until)

    def _score(self, data: StandardData, until: float) -> None:
        self.plain = plain_answer(data, self.question.folds, self._row(data).grid, until)

    def answer(self) -> Record:
        """The record of the state the search is in now.

        Raises
        ------
        OutOfTime
            If the data are not even in standard coordinates.
        """
        if self.data is None:
            raise OutOfTime("no answer yet: the data were still being prepared; give more time")
        row, descent = self._row(self.data), self.run
        if not scored(row) and (self.plain is None or self.plain.gamma not in row.grid.gammas):
            self._score(self.data, self.clock.began)
        still = frozen(row, self.plain)
        record = self.record(still)
        return descent.told(record, still) if descent is not None and hasattr(descent, "told") else record

    def _row(self, data: StandardData) -> CrossValidation:
        """The run whose cells are the answer; one that knows nothing where there is none yet."""
        run = self.run
        row = run.standing() if run is not None and hasattr(run, "standing") else run
        asked = self.question
        nobody = NotBegun(data, asked.folds, asked.grid, asked.options.gap, self.clock)
        return cast("CrossValidation", row if row is not None else nobody)


@dataclass(eq=False)
class NotBegun:
    """What a record needs of a run, where there is no run yet."""

    data: StandardData
    folds: FoldPlan
    grid: Grid
    gap: float
    clock: Deadline
    cells: CellTable = field(init=False)
    full: list[PathResult] = field(default_factory=list)
    all_rows: None = None
    nodes: int = 0
    effort: int = 0
    decided_by: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cells = CellTable.empty(len(self.grid.gammas), len(self.grid.taus), self.folds.k)
        self.oracles = self

    def bounds(self) -> PairBounds:
        """The sums over folds."""
        return pair_bounds(self.cells, self.grid.gammas, self.grid.taus)

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """What is known of all rows."""
        return self.full[g].cells[tau]

    def engines(self) -> str:
        """Who did it."""
        return "forward selection"

    def solved_by_branching(self) -> int:
        """MIOs solved."""
        return 0

    def work(self) -> tuple[OracleWork, ...]:
        """What oracles did."""
        return ()


def scored(run: CrossValidation) -> bool:
    """Whether some pair is scored in every fold."""
    return len(run.full) > 0 and bool(np.isfinite(run.cells.nominal).all(axis=2).any())


def frozen(run: CrossValidation, plain: PlainAnswer | None) -> CrossValidation:
    """A run as it is now, which nobody writes any more; what it has no support for is filled in from `plain`."""
    still = copy.copy(run)
    still.cells = run.cells.copy()
    still.all_rows = None  # with moments at hand a kernel would be called
    still.decided_by = dict(run.decided_by)
    still.full = list(run.full)
    if plain is None:
        return still
    place = np.flatnonzero(run.grid.gammas == plain.gamma)
    if len(place) and not np.isfinite(still.cells.nominal).all(axis=2).any():
        numbers: dict[int, int] = {}  # sizes share supports: the same array then
        for t, supports in enumerate(plain.supports):
            for support in supports:
                if id(support) not in numbers:
                    numbers[id(support)] = still.cells.pool.number(support)
            named = np.array([numbers[id(support)] for support in supports], dtype=np.int32)
            still.cells.offer((int(place[0]), t), named, plain.nominal[t], plain.value[t])
    cells = {
        tau: PathCell(tau, support, 0.0, float(value), (), (), 0.0, complete=False, branched=False)
        for tau, support, value in zip(run.grid.taus.tolist(), plain.on_all_rows, plain.value_on_all_rows, strict=True)
    }
    while len(still.full) < len(run.grid.gammas):
        still.full.append(PathResult(cells, 0, False))
    return still
