"""Best-first branch-and-bound for one tau by the perspective relaxation (theory sections 1, 2 and 4).

A node is pruned if the dual value of its relaxation exceeds the cutoff. The same dual point also screens the free
columns (theory section 2). It proves that some columns are in every support better than the incumbent, and that other
columns are in no such support. The node branches on the column whose z is most fractional.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.block_relaxation import MOST_SUPPORTS, Mixture, bound_node, fix_columns
from sparsecv_mio.kernels.dense import copy_vector
from sparsecv_mio.kernels.jit import int_constant, njit
from sparsecv_mio.kernels.node_pool import (
    MAX_SCANNED_COLUMNS,
    REUSED,
    STEPS,
    TAKEN,
    branch,
    ends_here,
    new_scratch,
    take_node,
    try_largest,
)
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import DROPPED, FREE, OPEN_NODE_GAP_RTOL, Accuracy, Node, list_columns, screen

NODE_STEPS = int_constant(80)
FEW_STEPS, MORE_STEPS = (
    int_constant(2),
    int_constant(8),
)  # steps of a relaxation before a scan: it may close or shrink a node


@njit(cache=True, nogil=True)
def _branch_column(b, g, free, nf):
    """Return the column with z = b / g nearest 3/4 (better than 1/2 in long trees, measured), else the largest z."""
    pick = free[0]
    most = -1.0
    for a in range(nf):
        j = free[a]
        z = 0.0
        if g[j] != 0.0:
            z = min(max(b[j] / g[j], 0.0), 1.0)
        x = min(z, 3.0 * (1.0 - z))
        if x < 1e-6:
            x = 1e-7 * z
        x += 1e-12 * abs(g[j])
        if x > most:
            most = x
            pick = j
    return pick


@njit(cache=True, nogil=True)
def process_nodes(s, form, tau, copies, margin, max_nodes):
    """Process at most `max_nodes` nodes of the tree.

    Parameters
    ----------
    s : NodePool
        Pool.
    form : Form
        Problem.
    tau : int
        Size, 1 <= tau < q.
    copies : Copies
        Duplicate columns.
    margin : Margin
        Margin within which supports are kept.
    max_nodes : int
        Maximum number of nodes.

    Returns
    -------
    int
        Last code of `take_node`.

    Notes
    -----
    A node costs a few relaxation steps of O(|A| nnz + s^3) each.
    """
    q = form.c.shape[0]
    scratch = new_scratch(q, tau)
    inside, free, status, x = scratch.inside, scratch.free, scratch.status, scratch.x
    b, best_b, best_g = scratch.b, scratch.best_b, scratch.best_g
    left = max_nodes
    while True:
        code, dual, row = take_node(s, status, left)
        if code != TAKEN:
            return code
        copy_vector(s.point[row], b)
        left -= 1
        closed = False
        for sweep in range(3):
            ni, nf = list_columns(status, inside, free)
            k = tau - ni
            if k <= 0 or nf <= k:
                break
            for j in range(q):
                if status[j] == DROPPED:
                    b[j] = 0.0
            node = Node(inside, ni, free, nf, k)
            few = (
                NODE_STEPS
                if k > 3
                else FEW_STEPS
                if nf <= MAX_SCANNED_COLUMNS
                else MORE_STEPS
                if k <= 2
                else NODE_STEPS
            )
            d, _, steps = relax(form, node, Accuracy(s.best[1], OPEN_NODE_GAP_RTOL, few), b, scratch.g, best_b, best_g)
            s.ctrl[STEPS] += steps
            dual = max(dual, d)
            if dual >= s.best[1]:
                if steps == 0:  # the parent's dual point was enough
                    s.ctrl[REUSED] += 1
                closed = True
                break
            for a in range(nf):
                x[a] = abs(best_g[free[a]])
            try_largest(s, form, node, scratch, margin)
            for a in range(nf):
                x[a] = best_g[free[a]] * best_g[free[a]]
            fixed = screen(x, nf, free, k, s.best[1] - d, status)
            for j in range(q):
                b[j] = best_b[j] if status[j] != DROPPED else 0.0
            # with few columns fixed, another relaxation gains little, unless one support is left
            if fixed == 0 or (10 * fixed < nf and nf - fixed > 8):
                break
        if closed:
            continue
        ni, nf = list_columns(status, inside, free)
        if ends_here(s, form, Node(inside, ni, free, nf, tau - ni), scratch, copies, margin):
            continue
        branch(s, dual, _branch_column(best_b, best_g, free, nf), scratch, copies)


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
def _branch_column_of_blocks(status, z, b):
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
def process_nodes_in_blocks(s, mixtures, form, blocks, copies, margin, work, max_nodes):
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
        rows = branch(s, dual, _branch_column_of_blocks(status, z, b), scratch, copies)
        for new in rows:
            if new >= 0:
                copy_vector(mixture.share, mixtures.share[new])
                for a in range(MOST_SUPPORTS):
                    copy_vector(mixture.masks[a], mixtures.masks[new, a])
