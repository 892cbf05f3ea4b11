"""`compute_bounds`: the CV error bracketed at every (gamma, tau) without a single MIO (the paper's Algorithm 2)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, overload

import numpy as np

from sparsecv_mio.bounds.all_folds import PRINTED, AllFolds, BoundsHooks, Known
from sparsecv_mio.bounds.fold import Which
from sparsecv_mio.bounds.table import BoundsTable, PrintedTable
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput

Certified = Literal["safe", "conic", "aggregated"]
NOTHING_KNOWN, NO_HOOKS = Known(), BoundsHooks()


@overload
def compute_bounds(
    data: StandardData,
    folds: FoldPlan,
    gammas: Sequence[float],
    taus: Sequence[int],
    which: Certified = "safe",
    *,
    threads: int | None = 1,
    known: Known = NOTHING_KNOWN,
    hooks: BoundsHooks = NO_HOOKS,
) -> BoundsTable: ...


@overload
def compute_bounds(
    data: StandardData,
    folds: FoldPlan,
    gammas: Sequence[float],
    taus: Sequence[int],
    which: Literal["as-printed"],
    *,
    threads: int | None = 1,
    known: Known = NOTHING_KNOWN,
    hooks: BoundsHooks = NO_HOOKS,
) -> PrintedTable: ...


def compute_bounds(
    data: StandardData,
    folds: FoldPlan,
    gammas: Sequence[float],
    taus: Sequence[int],
    which: str = "safe",
    *,
    threads: int | None = 1,
    known: Known = NOTHING_KNOWN,
    hooks: BoundsHooks = NO_HOOKS,
) -> BoundsTable | PrintedTable:
    """Bound every h_j(gamma, tau) by convex relaxations.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    gammas, taus : sequences
        The grid.
    which : {"safe", "conic", "aggregated", "as-printed"}
        `safe`: everything that is valid, screened columns minimised out. `conic`: predictions row by row on all
        columns. `aggregated`: the held-out rows of a fold together, on all columns. `as-printed`: the paper's
        Corollary 2.7, not valid: a table of estimates.
    threads : int or None
        Folds are spread over this many; None takes all cores.
    known : Known, optional
        What a search knows already and which cells it asks for.
    hooks : BoundsHooks, optional
        Who is told of the course, and what ends it early.

    Returns
    -------
    BoundsTable, or PrintedTable for `as-printed`

    Raises
    ------
    BadInput
        For an empty grid, a gamma that is not positive and finite, a tau outside 0..p or an unknown word.

    Notes
    -----
    Incumbents: backward elimination, forward selection and swaps on all rows; those supports and backward elimination
    in every fold; rounding of every relaxation. A fold's relaxations start from each other over tau, its diagonal from
    that of all rows. docs/theory/bounds.md.

    Examples
    --------
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.folds import make_folds
    >>> from sparsecv_mio.data.standard import standardize
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((30, 4))
    >>> dataset = Dataset.from_arrays(X, X @ [3.0, 0, 0, 1] + rng.standard_normal(30))
    >>> table = compute_bounds(standardize(dataset), make_folds("5", dataset), [1.0], [1, 2])
    >>> table.cv_interval(0, 1).lower <= table.cv_estimate(0, 1) * 1.5
    True
    """
    _check(data, gammas, taus, which)
    job = AllFolds(data, folds, (tuple(map(float, gammas)), tuple(map(int, taus))), which, known, hooks)
    return job.run(os.cpu_count() or 1 if threads is None else threads)


def _check(data: StandardData, gammas: Sequence[float], taus: Sequence[int], which: str) -> None:
    if len(gammas) == 0 or len(taus) == 0:
        raise BadInput("the grid is empty: give at least one gamma and one tau")
    for gamma in gammas:
        if not (gamma > 0.0 and np.isfinite(gamma)):
            raise BadInput(f"gamma {gamma} is out of range: a gamma is a positive number")
    for tau in taus:
        if not 0 <= tau <= data.dataset.p:
            raise BadInput(f"tau {tau} is out of range: the data have {data.dataset.p} features")
    words = [*Which, PRINTED]
    if which not in words:
        raise BadInput(f"bounds {which!r} are unknown: use one of {', '.join(words)}")
