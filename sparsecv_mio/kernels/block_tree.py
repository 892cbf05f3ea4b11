"""The tree of one size, best bound first, where the bound of a node sees blocks of columns together.

It goes on with the open nodes of a :mod:`sparsecv_mio.kernels.perspective_tree`: a node is closed by
:mod:`sparsecv_mio.kernels.block_relaxation`, its children begin with the supports of its mixture that fit them, and the
last levels are scanned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.block_relaxation import MOST_SUPPORTS, Mixture, bound_node
from sparsecv_mio.kernels.dense import support_value
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest_places
from sparsecv_mio.kernels.nodes import FREE, Node, list_columns
from sparsecv_mio.kernels.perspective_tree import (
    BUDGET,
    FINISHED,
    FULL,
    NODES,
    OPEN,
    SHORT,
    SPARE,
    STEPS,
    NodeWork,
    branch,
    close,
    improve,
    new_scratch,
    pop,
    scan_all,
)


class Mixtures(NamedTuple):
    """The mixture that each row of a pool begins with: (capacity, MOST_SUPPORTS, blocks) masks, their shares."""

    masks: np.ndarray
    share: np.ndarray


def new_mixtures(capacity, blocks):
    """None yet, for each of some rows."""
    count = blocks.member.shape[0]
    return Mixtures(
        np.zeros((capacity, MOST_SUPPORTS, count), dtype=np.int16), np.zeros((capacity, MOST_SUPPORTS), np.float32)
    )


def grown(mixtures):
    """Room for twice as many rows."""
    return Mixtures(*(np.concatenate((array, np.zeros_like(array))) for array in mixtures))


@njit(cache=True, nogil=True)
def _round(s, form, node, scratch, z, margin):
    """Try the columns inside and the k largest weights as a support."""
    support, x = scratch.inside, scratch.x
    for a in range(node.count_free):
        x[a] = z[node.free[a]]
    chosen = support[node.count_inside :]
    largest_places(x, node.count_free, node.k, chosen)
    for a in range(node.k):
        chosen[a] = node.free[chosen[a]]
    size = node.count_inside + node.k
    value = support_value(form.G, 1.0, form.c, form.yy, support, size, scratch.factor, x)
    improve(s, support, size, value, margin)


@njit(cache=True, nogil=True)
def _branch_column(status, z, b):
    """Free column with the largest `min(z, 1 - z) |b|`, else the largest z."""
    most, pick = -1.0, 0
    for j in range(status.shape[0]):
        if status[j] == FREE:
            x = min(z[j], 1.0 - z[j]) * abs(b[j]) + 1e-12 * z[j]
            if x > most:
                most = x
                pick = j
    return pick


@njit(cache=True, nogil=True)
def run(s, mixtures, form, blocks, copies, margin, work, max_nodes):
    """Work on the tree for at most `max_nodes` nodes.

    Parameters
    ----------
    s : NodePool
    mixtures : Mixtures
        Of its rows.
    form : Form
    blocks : Blocks
        Of the matrix of the form.
    copies : Copies
    margin : Margin
    work : BlockWork
        Of the size of the supports, tau, 1 <= tau < q.
    max_nodes : int

    Returns
    -------
    int
        FINISHED, BUDGET (nodes used up) or FULL (the pool must grow).
    """
    q, tau = form.c.shape[0], work.sums.shape[1] - 1
    scratch = new_scratch(q, tau)
    inside, free, status, x = scratch.inside, scratch.free, scratch.status, scratch.x
    b, z = scratch.b, np.empty(q)
    trial = NodeWork(
        inside, free, np.empty(q, dtype=np.int8), b, scratch.g, scratch.best_b, scratch.best_g, x, scratch.factor,
        scratch.rest,
    )  # fmt: skip
    count = blocks.member.shape[0]
    mixture = Mixture(np.zeros((MOST_SUPPORTS, count), dtype=np.int64), np.zeros(MOST_SUPPORTS))
    left = max_nodes
    while s.ctrl[OPEN] > 0:
        if s.bound[0] >= s.best[1]:
            s.ctrl[OPEN] = 0
            break
        if left <= 0:
            return BUDGET
        if s.ctrl[SPARE] < 2:
            return FULL
        bound, row = pop(s)
        for j in range(q):
            status[j] = s.status[row, j]
        for a in range(MOST_SUPPORTS):
            mixture.share[a] = mixtures.share[row, a]
            for i in range(count):
                mixture.masks[a, i] = mixtures.masks[row, a, i]
        s.spare[s.ctrl[SPARE]] = row
        s.ctrl[SPARE] += 1
        s.ctrl[NODES] += 1
        left -= 1
        ni, nf = list_columns(status, inside, free)
        k = tau - ni
        if k < 0 or nf < k:
            continue
        if k == 0 or nf == k:
            close(s, form, tau, ni, scratch, copies, margin)
            continue
        node = Node(inside, ni, free, nf, k)
        if k <= 2 or (k == 3 and nf <= SHORT):
            scan_all(s, form, tau, node, scratch, trial, copies, margin)
            continue
        d, _, steps = bound_node(form, blocks, status, (s.best[1], s.best[1]), mixture, work, b, z)
        s.ctrl[STEPS] += steps
        dual = max(bound, d)
        if dual >= s.best[1]:
            continue
        _round(s, form, node, scratch, z, margin)
        rows = branch(s, dual, _branch_column(status, z, b), scratch, copies)
        for new in rows:
            if new >= 0:
                for a in range(MOST_SUPPORTS):
                    mixtures.share[new, a] = mixture.share[a]
                    for i in range(count):
                        mixtures.masks[new, a, i] = mixture.masks[a, i]
    return FINISHED
