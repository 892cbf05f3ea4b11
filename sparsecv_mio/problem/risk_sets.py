"""Risk sets of survival times, in a form in which sums over all of them cost one pass over the rows.

The risk set of an event at time t contains the rows of its stratum with `entry < t <= time`. The sum of a quantity over
a risk set is computed along a forest: the sum of a node is the sum of its parent plus the quantities of the rows that
enter at the node. Without delayed entry, the nodes are the distinct event times in descending order, so the sums are
cumulative sums. With delayed entry, rows also leave risk sets, and differences of cumulative sums would lose digits.
The nodes then form a binary tree over the event times, in which every row enters at most two nodes of each level. In
both cases only numbers of equal sign are added, so rounding errors have relative bounds.

Tied events (of the same stratum and time) form a *block*. The sum at the node of a block does not contain the
quantities of its events; each term of the block adds these quantities, multiplied by a share. With Efron's method, a
block of m events has the terms 0, ..., m - 1, and term i has the share `1 - i / m`. With Breslow's method, a block has
one term, with share 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray


class RiskSets(NamedTuple):
    """The risk sets of some rows.

    Attributes
    ----------
    parent : (V,) int array
        Parent of each node, which comes before the node; -1 if it has none.
    start, rows : (V + 1,), (R,) int arrays
        Rows that enter at node v: `rows[start[v]:start[v + 1]]`.
    node : (B,) int array
        Node of the risk set of each block, which does not contain the events of the block.
    block_start, block_rows : (B + 1,), (E,) int arrays
        Events of each block.
    n_terms : (B,) int array
        Number of terms of each block: that of its events for Efron's method, 1 for Breslow's.
    omega : (B,) array
        Weight of each term of a block.
    weight, event_weight : (n,) arrays
        Weights of the rows, 0 for rows in no risk set, and the same for events only.
    stratum : (n,) int array
        Stratum of each row, from 0.
    depth : int
        Largest number of rows and nodes along a path, which bounds the number of additions of a sum.
    """

    parent: IntArray
    start: IntArray
    rows: IntArray
    node: IntArray
    block_start: IntArray
    block_rows: IntArray
    n_terms: IntArray
    omega: FloatArray
    weight: FloatArray
    event_weight: FloatArray
    stratum: IntArray
    depth: int

    @property
    def total(self) -> float:
        """Total weight of the events."""
        return float(self.event_weight.sum())


def make_risk_sets(
    time: FloatArray,
    is_event: NDArray[np.bool_],
    entry: FloatArray | None = None,
    stratum: IntArray | None = None,
    weights: FloatArray | None = None,
    chosen: IntArray | None = None,
    efron: bool = True,
) -> RiskSets:
    """Return the risk sets of some rows.

    Parameters
    ----------
    time : (n,) array
        Times of events or of censoring.
    is_event : (n,) bool array
        True for events.
    entry : (n,) array, optional
        Times after which rows are at risk.
    stratum : (n,) int array, optional
        Strata, numbered from 0.
    weights : (n,) array, optional
        Row weights; 1 by default.
    chosen : int array, optional
        Rows to use, all by default. Results are arrays over all n rows.
    efron : bool
        True for Efron's method for tied events, False for Breslow's.

    Examples
    --------
    >>> sets = make_risk_sets(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]))
    >>> sets.node.tolist(), sets.rows.tolist(), sets.block_rows.tolist()
    ([0, 1], [1, 2], [2, 0])
    """
    n = len(time)
    rows = np.arange(n) if chosen is None else np.unique(chosen)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    strata = np.zeros(n, dtype=np.int64) if stratum is None else np.asarray(stratum, dtype=np.int64)
    times, rank = np.unique(time[rows], return_inverse=True)
    base, events = len(times) + 1, is_event[rows]
    key = strata[rows] * base + (len(times) - rank)  # ascending: by stratum, then by descending time
    groups, block_of = np.unique(key[events], return_inverse=True)
    n_groups = len(groups)
    first = np.searchsorted(groups, key, side="left")  # first group in which the row is at risk
    last = np.searchsorted(groups, (strata[rows] + 1) * base, side="left") - 1
    leaves = np.zeros(len(rows), dtype=bool)
    if entry is not None:
        until = np.searchsorted(times, entry[rows], side="right")
        stay = np.searchsorted(groups, strata[rows] * base + (len(times) - until), side="right") - 1
        leaves, last = stay < last, np.minimum(stay, last)
    first = first + events  # an event joins the risk sets after its own block
    inside = first <= last
    at_risk = inside | events
    if np.any(leaves & inside):
        parent, start, entered, node, depth = _interval_tree(first, last, inside, n_groups)
    else:
        order = np.argsort(first[inside], kind="stable")
        entered = np.flatnonzero(inside)[order]
        start = np.searchsorted(first[entered], np.arange(n_groups + 1))
        node, depth = np.arange(n_groups), n_groups + len(rows)
        parent = np.where(np.diff(groups // base, prepend=-1) == 0, node - 1, -1)
    order = np.argsort(block_of, kind="stable")
    of_events = rows[events][order]
    block_start = np.searchsorted(block_of[order], np.arange(n_groups + 1))
    size = np.diff(block_start)
    total = np.add.reduceat(w[of_events], block_start[:-1]) if n_groups else np.zeros(0)
    omega = total / size if efron else total
    weight, event_weight = np.zeros(n), np.zeros(n)
    weight[rows[at_risk]] = w[rows[at_risk]]
    event_weight[of_events] = w[of_events]
    whole = [np.ascontiguousarray(part, dtype=np.int64) for part in (
        parent, start, rows[entered], node, block_start, of_events, size if efron else np.ones_like(size))]  # fmt: skip
    return RiskSets(
        whole[0], whole[1], whole[2], whole[3], whole[4], whole[5], whole[6], omega, weight, event_weight, strata,
        int(depth),
    )  # fmt: skip


def _interval_tree(
    first: IntArray, last: IntArray, inside: NDArray[np.bool_], n_groups: int
) -> tuple[IntArray, IntArray, IntArray, IntArray, int]:
    """Return parents, starts, rows, the leaf of each group and the depth of a binary tree over all groups."""
    width = 1 << max(int(n_groups - 1).bit_length(), 0)
    left, right = first[inside] + width, last[inside] + 1 + width
    row, nodes, rows = np.flatnonzero(inside), list[IntArray](), list[IntArray]()
    while len(row):
        odd = left % 2 == 1
        nodes.append(left[odd])
        rows.append(row[odd])
        left = left + odd
        odd = (right % 2 == 1) & (left < right)
        nodes.append(right[odd] - 1)
        rows.append(row[odd])
        right = right - odd
        left, right = left // 2, right // 2
        open_rows = left < right
        left, right, row = left[open_rows], right[open_rows], row[open_rows]
    node, entered = np.concatenate(nodes) - 1, np.concatenate(rows)
    order = np.argsort(node, kind="stable")
    parent = np.arange(1, 2 * width) // 2 - 1
    start = np.searchsorted(node[order], np.arange(2 * width))
    depth = len(first) + width.bit_length()
    return parent, start, entered[order], width - 1 + np.arange(n_groups), depth


def sum_paths(sets: RiskSets, values: NDArray[Any]) -> NDArray[Any]:
    """Return the sums over all risk sets without their blocks, by node, of quantities of rows.

    Parameters
    ----------
    sets : RiskSets
        Risk sets.
    values : (n,) or (n, k) array
        Quantities.
    """
    total = np.zeros((len(sets.parent), *values.shape[1:]), dtype=values.dtype)
    filled = np.flatnonzero(np.diff(sets.start))
    if len(filled):
        total[filled] = np.add.reduceat(values[sets.rows], sets.start[filled], axis=0)
    ahead = sets.parent.copy()
    while np.any(has := ahead >= 0):
        total[has] += total[ahead[has]]
        ahead[has] = ahead[ahead[has]]
    return total


def find_varying(sets: RiskSets, values: FloatArray) -> NDArray[np.bool_]:
    """Return (p,) True for columns (p, n) that take several values in some risk set; the others have no effect.

    Parameters
    ----------
    sets : RiskSets
        Risk sets.
    values : (p, n) array
        Columns.

    Examples
    --------
    >>> sets = make_risk_sets(np.arange(3.0), np.ones(3, dtype=bool), stratum=np.array([0, 0, 1]))
    >>> find_varying(sets, np.array([[1.0, 1.0, 2.0], [1.0, 2.0, 2.0]])).tolist()
    [False, True]
    """
    varies = np.zeros(len(values), dtype=np.bool_)
    filled, entered = np.flatnonzero(np.diff(sets.start)), sets.start[np.flatnonzero(np.diff(sets.start))]
    for j in range(len(values) if len(sets.node) else 0):
        spread = np.zeros(len(sets.node))
        for sign in (1.0, -1.0):
            column, most = sign * values[j], np.full(len(sets.parent), -np.inf)
            if len(filled):
                most[filled] = np.maximum.reduceat(column[sets.rows], entered)
            ahead = sets.parent.copy()
            while np.any(has := ahead >= 0):
                most[has] = np.maximum(most[has], most[ahead[has]])
                ahead[has] = ahead[ahead[has]]
            own = np.maximum.reduceat(column[sets.block_rows], sets.block_start[:-1])
            spread += np.maximum(most[sets.node], own)
        varies[j] = spread.max() > 0.0
    return varies


def sum_blocks(sets: RiskSets, values: NDArray[Any]) -> NDArray[Any]:
    """Return the sums over the events of each block of quantities of rows."""
    if not len(sets.block_rows):
        return np.zeros((0, *values.shape[1:]), dtype=values.dtype)
    return np.asarray(np.add.reduceat(values[sets.block_rows], sets.block_start[:-1], axis=0))
