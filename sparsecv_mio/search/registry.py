"""Methods by the word that names them, and the one that is taken where none is named."""

from __future__ import annotations

from sparsecv_mio.search.methods.algorithm1 import Algorithm1, OneByOne
from sparsecv_mio.search.methods.bounds_only import BoundsOnly
from sparsecv_mio.search.methods.grid import GridSearch
from sparsecv_mio.search.methods.joint import JointSearch
from sparsecv_mio.search.shared_tree.near_optimal import MOST_COLUMNS

BY_MIO: dict[str, type[OneByOne]] = {"joint": JointSearch, "algorithm1": Algorithm1, "grid": GridSearch}
METHODS: dict[str, type[OneByOne]] = {**BY_MIO, "bounds": BoundsOnly}
AUTO, ROUNDS = "auto", "rounds"
MANY_FOLDS = 10_000  # beyond, what `joint` keeps of every gamma takes too much memory


def method_for(gammas: int, columns: int, folds: int, gap: float, one_se: bool, backend: str, engine: str) -> str:
    """What `auto` means: `joint` for several gammas or another solver, `rounds` where all cells are asked for.

    A gap of 0 decides every cell, the one-standard-error rule looks at every pair, an engine is a choice within
    `rounds`; beyond `MOST_COLUMNS` columns lists on all rows help little, and beyond `MANY_FOLDS` folds what is kept of
    every gamma is too much.

    Examples
    --------
    >>> method_for(7, 25, 10, 1e-4, False, "native", "auto"), method_for(1, 25, 10, 1e-4, False, "native", "auto")
    ('joint', 'rounds')
    """
    if backend != "native":
        return "joint"
    lists = gammas > 1 and columns <= MOST_COLUMNS and folds <= MANY_FOLDS
    return "joint" if lists and gap > 0.0 and not one_se and engine == AUTO else ROUNDS
