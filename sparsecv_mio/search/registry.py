"""The class behind every method that solves cells one by one, and the method that is taken where none is named."""

from __future__ import annotations

from sparsecv_mio.search.methods.algorithm1 import Algorithm1, OneByOne
from sparsecv_mio.search.methods.bounds_only import BoundsOnly
from sparsecv_mio.search.methods.grid import GridSearch
from sparsecv_mio.search.methods.joint import JointSearch
from sparsecv_mio.search.options import NATIVE, SearchOptions
from sparsecv_mio.search.shared_tree.near_optimal import MOST_COLUMNS
from sparsecv_mio.words import Engine, Method

METHODS: dict[Method, type[OneByOne]] = {
    Method.JOINT: JointSearch,
    Method.ALGORITHM1: Algorithm1,
    Method.GRID: GridSearch,
    Method.BOUNDS: BoundsOnly,
}
MANY_FOLDS = 10_000  # beyond, what `joint` keeps of every gamma takes too much memory


def method_for(options: SearchOptions, gammas: int, columns: int, folds: int) -> Method:
    """Return the method that is asked for, or what `auto` means.

    `auto` is `joint` for several gammas or another solver than the native one, `rounds` where all cells are asked for:
    a gap of 0 decides every cell, the one-standard-error rule looks at every pair, an engine is a choice within
    `rounds`; beyond `MOST_COLUMNS` columns lists on all rows help little, and beyond `MANY_FOLDS` folds what is kept of
    every gamma is too much.

    Parameters
    ----------
    options : SearchOptions
        What is asked for.
    gammas, columns, folds : int
        How many there are; columns that vary.

    Returns
    -------
    Method
        Any but `auto`.

    Examples
    --------
    >>> str(method_for(SearchOptions(), 7, 25, 10)), str(method_for(SearchOptions(), 1, 25, 10))
    ('joint', 'rounds')
    """
    if options.method is not Method.AUTO:
        return options.method
    if options.backend != NATIVE:
        return Method.JOINT
    lists = gammas > 1 and columns <= MOST_COLUMNS and folds <= MANY_FOLDS
    few_cells = options.gap > 0.0 and not options.one_se and options.engine is Engine.AUTO
    return Method.JOINT if lists and few_cells else Method.ROUNDS
