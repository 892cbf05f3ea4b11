"""The best-first branch-and-bound tree of one size whose nodes are bounded by blocks of columns.

The tree continues from the open nodes of a :mod:`sparsecv_mio.kernels.perspective_tree`. A node is closed by the bound
of :mod:`sparsecv_mio.kernels.block_relaxation`, which is a mixture of supports. Its children start from those supports
of the mixture that they contain. The last levels are scanned (:mod:`sparsecv_mio.kernels.last_levels`).
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.block_relaxation import MOST_SUPPORTS, Mixture, bound_node, fix_columns
from sparsecv_mio.kernels.dense import copy_vector
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.node_pool import STEPS, TAKEN, branch, ends_here, new_scratch, take_node, try_largest
from sparsecv_mio.kernels.nodes import FREE, Node, list_columns

SWEEPS = 3  # maximum number of bounds of a node: each is sharper by the columns that the last one fixed
MANY_FIXED = 10  # another bound is computed if at least 1 in 10 of the free columns was fixed


class Mixtures(NamedTuple):
    """The mixture from which each row of a pool starts: (capacity, MOST_SUPPORTS, blocks) masks, and shares."""

    masks: np.ndarray
    share: np.ndarray


def new_mixtures(capacity, blocks):
    """Return empty mixtures for a number of rows."""
    count = blocks.member.shape[0]
    return Mixtures(
        np.zeros((capacity, MOST_SUPPORTS, count), dtype=np.int16), np.zeros((capacity, MOST_SUPPORTS), np.float32)
    )


def grow_mixtures(mixtures):
    """Return the mixtures with capacity for twice as many rows."""
    return Mixtures(*(np.concatenate((array, np.zeros_like(array))) for array in mixtures))


@njit(cache=True, nogil=True)
def _branch_column(status, z, b):
    """Return the free column with the largest `z (1 - z) b^2` (|b| gives trees a third larger), else the largest z."""
    most, pick = -1.0, 0
    for j in range(status.shape[0]):
        if status[j] == FREE:
            x = z[j] * (1.0 - z[j]) * b[j] * b[j] + 1e-12 * z[j]
            if x > most:
                most = x
                pick = j
    return pick


@njit(cache=True, nogil=True)
def process_nodes(s, mixtures, form, blocks, copies, margin, work, max_nodes):
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
        What `take_node` said at last.
    """
    q, tau = form.c.shape[0], work.sums.shape[1] - 1
    scratch = new_scratch(q, tau)
    inside, free, status, x = scratch.inside, scratch.free, scratch.status, scratch.x
    b, z = scratch.b, np.empty(q)
    count = blocks.member.shape[0]
    mixture = Mixture(np.zeros((MOST_SUPPORTS, count), dtype=np.int64), np.zeros(MOST_SUPPORTS))
    left = max_nodes
    while True:
        code, dual, row = take_node(s, status, left)
        if code != TAKEN:
            return code
        copy_vector(mixtures.share[row], mixture.share)
        for a in range(MOST_SUPPORTS):
            copy_vector(mixtures.masks[row, a], mixture.masks[a])
        left -= 1
        sweeps, closed = SWEEPS, False
        while True:
            ni, nf = list_columns(status, inside, free)
            node = Node(inside, ni, free, nf, tau - ni)
            closed = ends_here(s, form, node, scratch, copies, margin)
            if closed or sweeps == 0:
                break
            d, _, steps = bound_node(form, blocks, status, (s.best[1], s.best[1]), mixture, work, b, z)
            s.ctrl[STEPS] += steps
            dual = max(dual, d)
            closed = dual >= s.best[1]
            if closed:
                break
            for a in range(nf):
                x[a] = z[free[a]]
            try_largest(s, form, node, scratch, margin)
            fixed = fix_columns(blocks, s.best[1], work, status)
            if fixed == 0:
                break
            sweeps = sweeps - 1 if MANY_FIXED * fixed >= nf else 0
        if closed:
            continue
        rows = branch(s, dual, _branch_column(status, z, b), scratch, copies)
        for new in rows:
            if new >= 0:
                copy_vector(mixture.share, mixtures.share[new])
                for a in range(MOST_SUPPORTS):
                    copy_vector(mixture.masks[a], mixtures.masks[new, a])
