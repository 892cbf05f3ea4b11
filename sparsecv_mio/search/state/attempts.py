"""The attempts of a search for each subproblem, pair, gamma and fold, stored so that no work is repeated.

The field of each array of :class:`Attempts` has metadata: the axes, the initial value and the largest value of the
array. The archive of a checkpoint stores and checks all arrays by these metadata. To store the attempts of a new source
of bounds, add one field to :class:`Attempts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.state.cells import Archive

DONE = 127  # instead of a number of tries: more work cannot state more
LAST_TRY = DONE - 1  # number of earlier tries of a tree without a limit, which solves its target
NOT_A_TRY = -1  # instead of a number of earlier tries: a short tree that does not count as a try
ROOT_NODES = 32  # nodes that a tree costs in addition to its own: moments, eigenvalues, the root of a fold
NOT_LISTED, BOUNDED, RAISED, SOLVED = range(4)  # what near-optimal supports of the full data have done for a pair
LARGEST = {"f": np.finfo(float).max, "i": np.iinfo(np.int64).max}  # by kind of number


def _array(
    axes: str, fill: Any = 0, dtype: Any = np.int64, largest: float | None = None, is_stored: bool = True
) -> Any:
    """Return a field: axes of (g)amma, (t)au, (k) fold and (2) kinds of work, first value and largest value."""
    return field(
        metadata={"axes": axes, "fill": fill, "dtype": np.dtype(dtype), "largest": largest, "is_stored": is_stored}
    )


@dataclass(frozen=True, eq=False)
class Attempts:
    """Numbers of tries and marks of finished work; a number of tries is `DONE` if more work cannot state more.

    Attributes
    ----------
    tree_tries : (G, T, K) int array
        Number of trees of each subproblem.
    fitted : (G, T, K) int array
        Numbers of the supports that were fitted with bounds on their objectives; -1 for none.
    is_searched : (G, T, K) bool array
        Subproblems with their own local search.
    weighted_tries : (G, T, K) int array
        Number of held-out-weighted trees that raised a subproblem less than requested.
    is_enclosed, is_weighted : (K,) bool arrays
        Folds that were enclosed by their ridge balls; folds with held-out-weighted relaxations.
    is_looked_at : (G, T) bool array
        Pairs at which the full data had a few nodes before their first round.
    spent : (2,) int array
        Nodes of first trees of targets, and of later ones.
    tree_seconds : (G, T) array
        CPU seconds of trees of the folds of a pair; they affect the choice of steps only under a limit.
    first_work : (T,) array
        Nodes of the first trees at each size, of the full data and of folds, including `ROOT_NODES` a tree.
    first_seconds : 0-d array
        CPU seconds of these trees.
    full_nodes : (G,) int array
        Nodes of the first full-data trees.
    is_relaxed : (G,) bool array
        Gammas at which the full data was relaxed.
    is_offered : (G, T) bool array
        Pairs whose full-data support was fitted in every fold.
    full_tries, list_tries : (G, T) int arrays
        Numbers of full-data trees and of lists of each pair.
    list_stage : (G, T) int array
        What near-optimal supports of the full data have done for the folds of a pair: nothing, bounded them without a
        complete list, raised the pair, solved it.
    lowest_tries : (G, T) int array
        Smallest number of trees of an open subproblem of a pair; `DONE` if none is open.
    is_pair_searched : (G, T) bool array
        Pairs whose open folds all had their own local search.
    fold_passes : 0-d int array
        Number of finished passes of a search in all folds; `DONE` if another pass finds nothing.
    n_orders_done : 0-d int array
        Number of orders of the plan before the last one that have ended.
    is_fold_relaxed, has_root : (G, K) bool arrays
        Folds that were relaxed at a gamma; folds whose trees have their first nodes there.
    n_mios : 0-d int array
        Number of mixed-integer problems: subproblems with their own tree, and bounds of the full data by a backend.
    round : 0-d int array
        Largest number of earlier tries of a target that was tried: other targets go on from there.
    """

    tree_tries: NDArray[np.int8] = _array("gtk", 0, np.int8, DONE)
    fitted: NDArray[np.int32] = _array("gtk", -1, np.int32)
    is_searched: BoolArray = _array("gtk", False, bool)
    weighted_tries: NDArray[np.int8] = _array("gtk", 0, np.int8, DONE)
    is_enclosed: BoolArray = _array("k", False, bool)
    is_weighted: BoolArray = _array("k", False, bool)
    is_looked_at: BoolArray = _array("gt", False, bool)
    spent: IntArray = _array("2")
    tree_seconds: FloatArray = _array("gt", 0.0, float)
    first_work: FloatArray = _array("t", 0.0, float)
    first_seconds: FloatArray = _array("", 0.0, float)
    full_nodes: IntArray = _array("g")
    is_relaxed: BoolArray = _array("g", False, bool)
    is_offered: BoolArray = _array("gt", False, bool)
    full_tries: IntArray = _array("gt", largest=DONE)
    list_tries: IntArray = _array("gt", largest=DONE)
    list_stage: IntArray = _array("gt", NOT_LISTED, largest=SOLVED)
    lowest_tries: IntArray = _array("gt", is_stored=False)
    is_pair_searched: BoolArray = _array("gt", False, bool)
    fold_passes: IntArray = _array("", largest=DONE)
    n_orders_done: IntArray = _array("", largest=DONE)
    is_fold_relaxed: BoolArray = _array("gk", False, bool)
    has_root: BoolArray = _array("gk", False, bool)
    n_mios: IntArray = _array("")
    round: IntArray = _array("", largest=DONE)

    @classmethod
    def make_empty(cls, shape: tuple[int, int, int], stores_fits: bool) -> Attempts:
        """Return the attempts before any work.

        Parameters
        ----------
        shape : (int, int, int)
            Numbers of gammas, sizes and folds.
        stores_fits : bool
            True if `fitted` is stored.
        """
        lengths = {"g": shape[0], "t": shape[1], "k": shape[2], "2": 2}
        arrays: dict[str, Any] = {}
        for attribute in fields(cls):
            axes, fill, dtype = attribute.metadata["axes"], attribute.metadata["fill"], attribute.metadata["dtype"]
            is_stored = stores_fits or attribute.name != "fitted"
            lengths_of_axes = [lengths[axis] for axis in axes]
            arrays[attribute.name] = (
                np.full(lengths_of_axes, fill, dtype) if is_stored else np.broadcast_to(dtype.type(fill), shape)
            )
        return cls(**arrays)

    def count_first_trees(self, taus: tuple[int, ...], n_trees: int, n_nodes: int, cpu_seconds: float) -> None:
        """Count the work of the first trees at some sizes, by index."""
        self.first_work[list(taus)] += (n_nodes + ROOT_NODES * n_trees) / len(taus)
        self.first_seconds[...] += cpu_seconds

    # -- a checkpoint -------------------------------------------------------------------------------------------------

    def pack(self) -> Archive:
        """Return all stored arrays."""
        return {attribute.name: np.array(getattr(self, attribute.name)) for attribute in _stored_fields()}

    def check(self, archive: Mapping[str, NDArray[Any]], n_supports: int) -> None:
        """Raise `CorruptStore` if an array of an archive is out of range.

        Parameters
        ----------
        archive : mapping of str to array
            Arrays with the types and shapes of `pack`.
        n_supports : int
            Number of supports in the pool.
        """
        for attribute in _stored_fields():
            array, dtype = archive[attribute.name], attribute.metadata["dtype"]
            largest = n_supports - 1 if attribute.name == "fitted" else attribute.metadata["largest"]
            largest = LARGEST.get(dtype.kind, 1) if largest is None else largest
            if not bool(((array >= min(attribute.metadata["fill"], 0)) & (array <= largest)).all()):
                raise CorruptStore(f"its array `{attribute.name}` has numbers that are out of range")

    def restore(self, archive: Mapping[str, NDArray[Any]]) -> None:
        """Take over an archive that was checked."""
        for attribute in _stored_fields():
            array = getattr(self, attribute.name)
            if array.flags.writeable:
                array[...] = archive[attribute.name]


def _stored_fields() -> list[Field[Any]]:
    return [attribute for attribute in fields(Attempts) if attribute.metadata["is_stored"]]
