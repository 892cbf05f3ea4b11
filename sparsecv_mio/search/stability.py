"""The stability of the answer as the record states it: of its model, and of a choice by weighted instability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.stability import InstabilityRow, Stability, WeighedChoice, WeighedModel
from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.search.instability import QUICK_COST, Instabilities, Known, StabilityTable, cost, stability_table
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.pairs import PairBounds

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Choice:
    """The pair that the first weight chooses, as the record states it.

    Attributes
    ----------
    pair : gamma, tau
    stated : WeighedChoice
    pairs : tuple of (weight, pair, proved)
        What every weight chooses, where there are several.
    """

    pair: Pair
    stated: WeighedChoice
    pairs: tuple[tuple[float, Pair, bool], ...] = ()

    def with_models(self, supports: Sequence[tuple[str, ...]], gammas: FloatArray, taus: IntArray) -> Choice:
        """Return the choice with the models of all weights.

        Parameters
        ----------
        supports : sequence of tuple of str
            Best subsets of all rows, by weight.
        gammas, taus : arrays
            The grid.
        """
        models = tuple(
            WeighedModel(weight, float(gammas[g]), int(taus[t]), support, proved)
            for (weight, (g, t), proved), support in zip(self.pairs, supports, strict=True)
        )
        return replace(self, stated=replace(self.stated, models=models))


def choose_by_weight(
    context: Context, cells: CellTable, now: PairBounds, best: Sequence[PathResult], known: Known
) -> Choice | None:
    """Choose the pair with the least `h + weight * instability`; None without a weight, time or a pair.

    Parameters
    ----------
    context : Context
    cells : CellTable
    now : PairBounds
    best : sequence of PathResult
        By gamma, the best subsets of all rows.
    known : dict
        Instabilities that were computed already.
    """
    if not context.stability or not best or context.deadline.abandoned.is_set():
        return None
    # past the limit a part of a second is left
    most = QUICK_COST if context.deadline.expired() else float("inf")
    spent = 0.0

    def expired() -> bool:
        nonlocal spent
        spent += cost(context, int(context.grid.taus[-1]))
        return spent > most

    table = stability_table(Instabilities(context, cells, known), now, best, context.stability, expired)
    grid, several = context.grid, len(context.stability) > 1
    every = [table.choose(weight, context.gap, grid.gammas, grid.taus) for weight in context.stability]
    found = every[0]
    if not np.isfinite(found.nominal) or not np.isfinite(now.nominal[found.pair]):  # no models to report
        return None
    stated = WeighedChoice(
        context.stability[0], found.lower, found.upper, found.allowance, found.proved, _rows(table)
    )
    pairs = [(weight, one.pair, one.proved) for weight, one in zip(context.stability, every, strict=True)]
    return Choice(found.pair, stated, tuple(pairs) if several else ())


def _rows(table: StabilityTable) -> tuple[InstabilityRow, ...]:
    pairs = zip(table.lower.ravel().tolist(), table.upper.ravel().tolist(), strict=True)
    return tuple(InstabilityRow(low, high) for low, high in pairs)


def stability_of_model(
    context: Context, cells: CellTable, pair: Pair, cell: PathCell, choice: Choice | None, known: Known
) -> Stability | None:
    """Return how stable the model of a pair is; None where it would take long, or some fold has no support yet.

    Parameters
    ----------
    context : Context
    cells : CellTable
    pair : gamma, tau
        Indices.
    cell : PathCell
        The best subset of all rows there.
    choice : Choice or None
        Where it was chosen by a weight.
    known : dict
        Instabilities that were computed already.
    """
    quick = cost(context, cell.tau) <= QUICK_COST
    if choice is None and (context.deadline.abandoned.is_set() or not quick):
        return None
    instabilities = Instabilities(context, cells, known)
    found, unit = instabilities.at(*pair, cell), instabilities.per_row
    if not found.nominal < float("inf"):
        return None
    return Stability(
        instability=unit * min(max(found.nominal, found.lower), found.upper),
        instability_lower=unit * found.lower,
        instability_upper=unit * found.upper,
        fold=found.fold,
        estimate=not found.known,
        chosen=None if choice is None else choice.stated,
    )
