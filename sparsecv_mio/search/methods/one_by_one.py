"""Methods that hand cells to branch-and-bound one by one.

What tells them apart is the order (:mod:`sparsecv_mio.search.methods.orders`), and for the joint search what is done
before the next cells (:mod:`sparsecv_mio.search.methods.joint`).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.formulation.backends.native.cell import UNLIMITED, PathCell
from sparsecv_mio.search.methods.orders import Order
from sparsecv_mio.search.methods.parts.all_rows import best_on_all_rows
from sparsecv_mio.search.methods.parts.beyond_proof import decide_beyond_proof
from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell, bracket, check_available
from sparsecv_mio.search.methods.parts.estimates import OpenCellEstimates
from sparsecv_mio.search.methods.parts.reported_pair import score_reported_pair
from sparsecv_mio.search.methods.parts.run import Stored
from sparsecv_mio.search.shared_tree.engines import SharedTrees


class Aid(Stored, Protocol):
    """What is done beside solving cells, so that fewer need it."""

    def bound_every_cell(self) -> None:
        """Give every cell a support of its fold, and first bounds."""

    def step(self) -> bool:
        """Do something before the next cells are solved; returns whether there was anything to do."""

    def mios(self) -> int:
        """Return the number of mixed-integer problems it solved."""


class OneByOne:
    """Hands cells to branch-and-bound in some order.

    Parameters
    ----------
    by_cell : CellByCell
    trees : SharedTrees
    order : Order
    aid : Aid, optional
    """

    def __init__(self, by_cell: CellByCell, trees: SharedTrees, order: Order, aid: Aid | None = None) -> None:
        self.run, self.context, self.name = by_cell.run, by_cell.run.context, order.name
        self.by_cell, self.trees, self.order, self.aid = by_cell, trees, order, aid
        self.estimates = OpenCellEstimates(self.run, trees)
        self.parts: tuple[Stored, ...] = (by_cell,) if aid is None else (by_cell, aid)

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that are not decided and were not handed to branch-and-bound."""
        return self.by_cell.open

    @property
    def exhausted(self) -> bool:
        """Whether the time or the budget of MIOs is spent."""
        return self.by_cell.exhausted(self.mios())

    def begin(self) -> None:
        """Find supports on all rows and in every fold, and bound every cell as far as the order asks for it."""
        check_available(self.by_cell.mio.backend)
        self.estimates.before_all()
        self.by_cell.prepare()
        self.estimates.before_proof()
        if self.aid is None:
            self.by_cell.bound_every_cell(range(len(self.context.grid.gammas)))
        else:
            self.aid.bound_every_cell()
        self.by_cell.end_first_steps()
        if self.order.brackets:
            bracket(self.by_cell, np.arange(len(self.context.grid.gammas)), np.arange(len(self.context.grid.taus)))
            self.by_cell.end_first_steps()

    def step(self) -> None:
        """Do what may help before the next cells are solved, else solve these."""
        if self.aid is None or not self.aid.step():
            self.by_cell.solve(self.order.pick(self.by_cell), self.mios())

    @property
    def finished(self) -> bool:
        """Whether the order has come to its end, or the time or the budget is spent."""
        return self.exhausted or not self.order.pick(self.by_cell)

    def work_on(self, pairs: BoolArray) -> None:
        """Solve the next open cells of one of some pairs (G, T)."""
        self.by_cell.solve(self.by_cell.next_of(pairs), self.mios())

    def finish(self) -> None:
        """Decide what is asked for beyond the proof, and estimate what stays open."""
        if self.order.goes_beyond_proof:
            decide_beyond_proof(self, self.context.one_se)
        self.estimates.at_end()

    def score_reported_pair(self) -> None:
        """See to it that the pair to report is scored in every fold."""
        score_reported_pair(self.run, self.trees)

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """Return the best subset on all rows at a pair, solved while there is time."""
        return best_on_all_rows(self.run, g, tau, UNLIMITED)

    # -- what is known now -------------------------------------------------------------------------------------------

    def mios(self) -> int:
        """Return the number of cells handed to branch-and-bound, and of other mixed-integer problems solved."""
        return self.by_cell.mios + (0 if self.aid is None else self.aid.mios())

    def engine(self) -> str:
        """Return the method and its solver, in words."""
        return self.by_cell.words(self.name)

    def recompute(self) -> None:
        """Find supports on all rows again; what the folds found first is among the cells."""
        self.estimates.resume()
        self.by_cell.prepare()
