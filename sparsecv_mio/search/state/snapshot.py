"""A snapshot of a search: all that its record is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sparsecv_mio.certificate.parts import OracleWork
from sparsecv_mio.certificate.record import DescentStep
from sparsecv_mio.formulation.backends.native.cell import PathResult
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import Context


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

    @property
    def scored(self) -> bool:
        """Whether some pair is scored in every fold, and something is known of all rows."""
        return bool(self.best) and bool(np.isfinite(self.cells.nominal).all(axis=2).any())
