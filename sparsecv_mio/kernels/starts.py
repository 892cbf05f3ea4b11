"""Initial supports for every size of one problem, by backward elimination, forward selection and exchanges."""

import numpy as np

from sparsecv_mio.kernels.dense import invert, support_value
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.local_search import PenalisedMoments, add, best_to_add, clear, exchange, load, new_tableau


@njit(cache=True, nogil=True)
def backward_elimination(V, beta, value, best, supports):
    """Drop the cheapest column repeatedly; keep each support that is better than `best`.

    Parameters
    ----------
    V, beta : (q, q), (q,)
        Inverse of M and ridge solution on all columns; both are overwritten.
    value : float
        f of all columns.
    best : (q + 1,)
        Best value known by size, improved in place.
    supports : (q + 1, q) bool
        Their supports, improved in place.

    Notes
    -----
    O(q^3 / 3). Dropping j costs `beta_j^2 / V_jj` exactly (theory section 4). Stops if rounding leaves no V_jj > 0.
    """
    q = beta.shape[0]
    active = np.empty(q, dtype=np.int64)
    for j in range(q):
        active[j] = j
    size = q
    if value < best[size]:
        best[size] = value
        supports[size, :] = True
    while size > 1:
        low = np.inf
        drop = 0
        for a in range(size):
            j = active[a]
            if not V[j, j] > 0.0:  # M is singular to rounding
                continue
            cost = beta[j] * beta[j] / V[j, j]
            if cost < low:
                low = cost
                drop = a
        if low == np.inf:
            return
        j = active[drop]
        value += low
        size -= 1
        active[drop] = active[size]
        scale = 1.0 / V[j, j]
        bj = beta[j] * scale
        for a in range(size):
            i = active[a]
            vij = V[i, j]
            beta[i] -= vij * bj
            vij *= scale
            for b in range(size):
                V[i, active[b]] -= vij * V[j, active[b]]
        if value < best[size]:
            best[size] = value
            supports[size, :] = False
            for a in range(size):
                supports[size, active[a]] = True


@njit(cache=True, nogil=True)
def add_one_by_one(t, moments, path):
    """Add the column with the largest gain repeatedly; row s of `path` (top, q) becomes s + 1 columns.

    Parameters
    ----------
    t : Tableau
        Tableau.
    moments : PenalisedMoments
        Moments and penalty.
    path : (top, q) bool array
        Supports, False on entry; rows stay False if no column has anything left to add.
    """
    clear(t, moments)
    for step in range(path.shape[0]):
        pick = best_to_add(t)
        if pick < 0:
            return
        add(t, moments, pick)
        for a in range(step + 1):
            path[step, t.members[a]] = True


def forward_selection(M, c, yy, top, best, supports):
    """Add the column with the largest gain until `top` columns are in; keep each support that is better than `best`.

    O(q top^2), since a tableau is swept once for each step.

    Parameters
    ----------
    M, c, yy : (q, q), (q,), float
        Problem.
    top : int
        Number of columns.
    best, supports : (q + 1,), (q + 1, q) bool
        Incumbents by size, improved in place.
    """
    q = c.shape[0]
    moments, path = PenalisedMoments(M, np.zeros(q), c, yy), np.zeros((top, q), dtype=np.bool_)
    add_one_by_one(new_tableau(q, top), moments, path)
    try_supports(M, c, yy, path, best, supports)


@njit(cache=True, nogil=True)
def _columns(mask, index):
    """Fill `index` with the columns of a mask; return their number."""
    size = 0
    for j in range(mask.shape[0]):
        if mask[j]:
            index[size] = j
            size += 1
    return size


def improve_by_swaps(M, c, yy, size, best, supports, rounds):
    """Swap one column out and the best one in while that lowers f of the size's support.

    O(size^2 q) to begin with, O(size q) for each swap.

    Parameters
    ----------
    M, c, yy : (q, q), (q,), float
        Problem.
    size : int
        Size.
    best, supports : (q + 1,), (q + 1, q) bool
        Incumbents by size, improved in place.
    rounds : int
        Maximum number of swaps.
    """
    q = c.shape[0]
    if size <= 0 or size >= q or not np.isfinite(best[size]):
        return
    moments, t = PenalisedMoments(M, np.zeros(q), c, yy), new_tableau(q, size)
    if load(t, moments, np.flatnonzero(supports[size]), size):
        exchange(t, moments, rounds)
        found = np.zeros((1, q), dtype=np.bool_)
        found[0, t.members] = True
        try_supports(M, c, yy, found, best, supports)


def try_supports(M, c, yy, masks, best, supports):
    """Evaluate given supports (m, q) bool and keep each that is better than `best`. O(m size^3 / 3).

    Parameters
    ----------
    M, c, yy : (q, q), (q,), float
        Problem.
    masks : (m, q) bool array
        Supports.
    best, supports : (q + 1,), (q + 1, q) bool
        Incumbents by size, improved in place.
    """
    masks = np.ascontiguousarray(masks)  # the only layout for which the kernel is compiled
    sizes, values = masks.sum(axis=1), np.empty(len(masks))
    support_values(M, c, yy, masks, values)
    for r in np.flatnonzero((values < best[sizes]) & (sizes > 0)):
        if values[r] < best[sizes[r]]:
            best[sizes[r]], supports[sizes[r]] = values[r], masks[r]


@njit(cache=True, nogil=True)
def support_values(M, c, yy, masks, values):
    """Fill `values` with f of given supports (m, q) bool, inf if `M_S` is not positive. O(m size^3 / 3).

    Parameters
    ----------
    M, c, yy : (q, q), (q,), float
        Problem.
    masks : (m, q) bool array
        Supports.
    values : (m,) array
        Array to fill.
    """
    q = c.shape[0]
    work = np.empty((q, q))
    x = np.empty(q)
    index = np.empty(q, dtype=np.int64)
    for r in range(masks.shape[0]):
        size = _columns(masks[r], index)
        values[r] = support_value(M, 0.0, c, yy, index, size, work, x)


@njit(cache=True, nogil=True)
def unit_form(Q, penalty, c, mean, constant):
    """Return the problem with columns scaled to `M_jj = Q_jj + penalty_j = 1`.

    Parameters
    ----------
    Q, penalty, c : (q, q), (q,), (q,)
        Problem.
    mean : (q,) array
        Means of the columns over the training rows.
    constant : float
        Share of the squared mean up to which a squared length shows a constant column.

    Returns
    -------
    M : (q, q) array
        Scaled matrix.
    c, scale : (q,) arrays
        `c_j scale_j` and `scale_j = 1 / sqrt(M_jj)`.
    dead : (q,) bool array
        Columns with `Q_jj <= constant mean_j^2`: their row of Q and their c are set to zero.
    longest : float
        Largest `|mean_j| scale_j`.

    Notes
    -----
    O(q^2).
    """
    q = c.shape[0]
    dead = np.zeros(q, dtype=np.bool_)
    scale = np.empty(q)
    for j in range(q):
        dead[j] = Q[j, j] <= constant * mean[j] * mean[j]
        scale[j] = 1.0 / np.sqrt(penalty[j] if dead[j] else Q[j, j] + penalty[j])
    M = np.empty((q, q))
    out = np.empty(q)
    for i in range(q):
        for j in range(q):
            M[i, j] = 0.0 if dead[i] or dead[j] else Q[i, j] * scale[i] * scale[j]
        M[i, i] = 1.0
        out[i] = 0.0 if dead[i] else c[i] * scale[i]
    longest = 0.0
    for j in range(q):
        longest = max(longest, abs(mean[j]) * scale[j])
    return M, out, scale, dead, longest


def eliminate(M, c, yy, best, supports):
    """Eliminate columns backward from all columns; the values of the path are computed directly, as updates drift.

    `best, supports` are improved in place. Returns False if M is singular to rounding. O(q^4 / 12): q factorisations.

    Parameters
    ----------
    M, c, yy : (q, q), (q,), float
        Problem.
    best, supports : (q + 1,), (q + 1, q) bool
        Incumbents by size.
    """
    q = c.shape[0]
    V, ok = invert(M)
    if not ok:
        return False
    beta = np.dot(V, c)
    path_best = np.full(q + 1, np.inf)
    path = np.zeros((q + 1, q), dtype=np.bool_)
    backward_elimination(V, beta, yy - np.dot(c, beta), path_best, path)
    try_supports(M, c, yy, path[1:], best, supports)
    return True
