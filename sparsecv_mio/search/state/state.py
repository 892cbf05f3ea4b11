"""The state of a search (its context, what is known of every cell and of all rows, the work done), and copies of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.certificate.parts import OracleWork
from sparsecv_mio.certificate.record import DescentStep
from sparsecv_mio.formulation.backends.native.cell import PathResult
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import AllRows, Context
from sparsecv_mio.search.state.pairs import PairBounds, pair_bounds


@dataclass
class Counts:
    """Work done so far.

    Attributes
    ----------
    nodes : int
        Nodes of all branch-and-bound trees.
    by_engine : dict of str to int
        Cells decided for all folds at once, by the engine that did it.
    reached : dict of int to float
        By tau, the seconds after which every pair up to it was proved, where the search looked.
    """

    nodes: int = 0
    by_engine: dict[str, int] = field(default_factory=dict)
    reached: dict[int, float] = field(default_factory=dict)

    def add(self, nodes: int, decided: Mapping[str, int] | None = None) -> None:
        """Add nodes, and cells decided by engine."""
        self.nodes += nodes
        for name, count in (decided or {}).items():
            self.by_engine[name] = self.by_engine.get(name, 0) + count


@dataclass(frozen=True, eq=False)
class SearchState:
    """What a search knows. Every moment of it is a valid certificate.

    Attributes
    ----------
    context : Context
        What is searched, in which data, and by when.
    cells : CellTable
        The interval of every (gamma, tau, fold).
    all_rows : AllRows
        Moments, normal forms and best supports of all rows.
    counts : Counts
    changes : dict
        Instabilities of pairs that were computed (:mod:`sparsecv_mio.search.instability`), for who asks again.
    """

    context: Context
    cells: CellTable
    all_rows: AllRows
    counts: Counts
    changes: dict[tuple[int, int], tuple[bytes, Any]] = field(default_factory=dict)

    @classmethod
    def new(cls, context: Context) -> SearchState:
        """Return the state in which nothing is known."""
        return cls(context, CellTable.empty(*context.shape, values=bool(context.stability)), AllRows(context), Counts())

    def bounds(self) -> PairBounds:
        """Sum the cells over folds. O(G T K)."""
        return pair_bounds(self.cells, self.context.grid.gammas, self.context.grid.taus)

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that more work could decide."""
        return ~self.cells.final

    def worth_work(self) -> BoolArray:
        """(G, T, K): open cells, but for pairs whose lower bound exceeds the best upper bound by the gap.

        With a gap of 0 all open cells.
        """
        found = self.open
        gap = self.context.gap
        if gap > 0.0:
            now = self.bounds()
            if np.isfinite(now.ceiling):
                hopeless = now.lower >= now.ceiling * (1.0 - gap)
                hopeless[now.best] = False
                found &= ~hopeless[:, :, None]
        return found

    def proved(self) -> bool:
        """Whether the certificate is closed to the gap."""
        return self.bounds().proved(self.context.gap)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that the record of a run is made of at one moment, in copies that the search does not write.

    Attributes
    ----------
    context : Context
    cells : CellTable
    best : tuple of PathResult
        By gamma, what is known of all rows; empty before anything is.
    mios, nodes : int
    engine : str
        Who solved the cells, in words.
    oracles : tuple of OracleWork
    complete : bool
        False where something beside these cells may hold a better pair.
    steps : tuple of DescentStep
        Moves of a descent.
    notes : tuple of str
        Warnings for the record.
    reached : mapping of int to float
        By tau, the seconds after which every pair up to it was proved, where that is known.
    changes : dict
        As in `SearchState`, the same one.
    """

    context: Context
    cells: CellTable
    best: tuple[PathResult, ...] = ()
    mios: int = 0
    nodes: int = 0
    engine: str = "forward selection"
    oracles: tuple[OracleWork, ...] = ()
    complete: bool = True
    steps: tuple[DescentStep, ...] = ()
    notes: tuple[str, ...] = ()
    reached: Mapping[int, float] = field(default_factory=dict)
    changes: dict[tuple[int, int], tuple[bytes, Any]] = field(default_factory=dict)

    @property
    def scored(self) -> bool:
        """Whether some pair is scored in every fold, and something is known of all rows."""
        return bool(self.best) and bool(np.isfinite(self.cells.nominal).all(axis=2).any())
