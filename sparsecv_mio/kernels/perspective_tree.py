"""Best-first branch-and-bound for one tau by the perspective relaxation (theory sections 1, 2 and 4).

A node is closed by the dual value of its relaxation. By the safe screening of section 2, the same dual point shows
which free columns are in every support, or in none, that is better than the incumbent. The node branches on the column
whose z is most fractional.
"""

from sparsecv_mio.kernels.dense import copy_vector
from sparsecv_mio.kernels.jit import int_constant, njit
from sparsecv_mio.kernels.node_bounds import bound_of_size
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
from sparsecv_mio.kernels.nodes import DROPPED, OPEN_NODE_GAP_RTOL, Accuracy, Node, list_columns
from sparsecv_mio.kernels.screening import screen

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
            d, _, steps = bound_of_size(
                form, node, Accuracy(s.best[1], OPEN_NODE_GAP_RTOL, few), b, scratch.g, best_b, best_g
            )
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
