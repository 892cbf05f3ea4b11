"""One tree over supports of all sizes, within bounds on coefficients (theory section 10).

A node includes the columns I and may drop the columns F; its fit uses all columns A = I + F. Let `M` be positive
definite, and b the fit of A within the bounds. Let O be the columns whose coefficients are not at a bound, and
`g = c - M b`, which is 0 on O.

Let coefficient j move from `b_j` to `b_j + s d`, with s from 0 to 1, and minimise over the columns O. The objective
then rises by `2 s |g_j d| + s^2 k`, with `k = d^2 / (M_OO^{-1})_jj`, or `d^2` times the Schur complement of j if j is
at a bound. This rise is a lower bound for every fit on columns of A as long as g does not change its sign at any other
bound. Let t be the largest s up to which this condition holds. The objective is convex in s, and `M - w I` is positive
semidefinite. Dropping column j therefore raises the objective by at least
`2 |g_j d| + k (2 t - t^2) + w d^2 (1 - t)^2`, the cost of the column. A support that drops m columns or more raises the
objective by at least the m-th smallest cost, and by at least the sum of the m smallest `2 |g_j b_j| + w b_j^2`.

Dropping a column whose coefficient is 0 at a bound costs nothing, because the fit on the other columns is the same. As
long as a column is free, its interval [lo, hi] is extended to contain 0. After the column is included, [lo, hi] holds.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import copy_vector
from sparsecv_mio.kernels.jit import FIRST_INDEX, NO_INDEX, njit
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE

NEGLIGIBLE = 1e-17  # decrease of the objective, as a share of yy, below which a coefficient stays at its bound


class NodeLevels(NamedTuple):
    """The nodes from the root to the present one; the first axis is the level.

    Attributes
    ----------
    table : (levels, m, m) array
        M after sweeping the columns off their bounds.
    is_off : (levels, m) bool array
        True for the columns off their bounds.
    b, g, cost : (levels, m) arrays
        Coefficients, half of the negative gradient, and costs of dropping free columns.
    status : (levels, m) int8 array
        FREE, INSIDE or DROPPED.
    value : (levels,) array
        Objective.
    """

    table: np.ndarray
    is_off: np.ndarray
    b: np.ndarray
    g: np.ndarray
    cost: np.ndarray
    status: np.ndarray
    value: np.ndarray


class QuadraticInBox(NamedTuple):
    """The problem `yy + b'M b - 2 c'b` with `lo <= b <= hi` for chosen columns, and `M - w I` semidefinite.

    Attributes
    ----------
    M, c, yy, w
        Arrays and numbers of the formula.
    lo, hi : (m,) arrays
        Bounds on the coefficients, infinite if open.
    is_forced : (m,) bool array
        True for the columns of every support.
    """

    M: np.ndarray
    c: np.ndarray
    yy: float
    lo: np.ndarray
    hi: np.ndarray
    w: float
    is_forced: np.ndarray


class FoundSupports(NamedTuple):
    """The best values by size, and the supports within the cutoffs.

    Attributes
    ----------
    best, goal : (m + 1,) arrays
        Best objective of at most k columns, and the cutoff from which no support is needed; -inf for other sizes.
    keep, slack : float
        Margin: supports up to `best (1 + keep) + slack` are kept.
    mask : (room, m) bool array
        Columns of the kept supports that are not 0 at a bound.
    value : (room,) array
        Objectives.
    n_kept : (1,) int array
        Number of kept supports.
    """

    best: np.ndarray
    goal: np.ndarray
    keep: float
    slack: float
    mask: np.ndarray
    value: np.ndarray
    n_kept: np.ndarray


@njit(cache=True, nogil=True)
def _largest_kept(found, k):
    """Return the value up to which supports of a size are kept."""
    return found.best[k] * (1.0 + found.keep) + found.slack if found.goal[k] > -np.inf else -np.inf


@njit(cache=True, nogil=True)
def _cutoff(found, k):
    """Return the value up to which supports of a size are needed."""
    return min(_largest_kept(found, k), found.goal[k])


@njit(cache=True, nogil=True)
def _ends(problem, status, j):
    """Return the interval of a column, extended to 0 if the column is free."""
    if status == FREE:
        return min(problem.lo[j], 0.0), max(problem.hi[j], 0.0)
    return problem.lo[j], problem.hi[j]


@njit(cache=True, nogil=True)
def _add_multiple(row, factor, target):
    for k in range(row.shape[0]):
        target[k] += factor * row[k]


@njit(cache=True, nogil=True)
def _sweep(T, at, p, sign):
    """Sweep column p of a symmetric table, or undo this with sign -1; the swept block becomes minus an inverse."""
    t, pivot = T[p, p], T[p]
    for x in range(at.shape[0]):
        i = at[x]
        ratio = pivot[i] / t
        if i != p and ratio != 0.0:
            _add_multiple(pivot, -ratio, T[i])  # also entries of dropped columns, which are not used
    for x in range(at.shape[0]):
        pivot[at[x]] *= sign / t
        T[at[x], p] = pivot[at[x]]
    T[p, p] = -1.0 / t


@njit(cache=True, nogil=True)
def _step(problem, levels, d, at, j, delta):
    """Move a coefficient by delta while O follows, until a column of O meets its bound and leaves O; return the share.

    The column j is not in O.
    """
    T, b, g, is_off = levels.table[d], levels.b[d], levels.g[d], levels.is_off[d]
    share, stop, end = 1.0, NO_INDEX, 0.0
    for x in range(at.shape[0]):
        i = at[x]
        if is_off[i]:
            move = -T[j, i] * delta
            lo, hi = _ends(problem, levels.status[d, i], i)
            bound = hi if move > 0.0 else lo
            if move != 0.0 and abs(bound - b[i]) < share * abs(move):
                share, stop, end = abs(bound - b[i]) / abs(move), i, bound
    for x in range(at.shape[0]):
        i = at[x]
        if is_off[i]:
            b[i] -= T[j, i] * delta * share
        else:
            g[i] -= T[j, i] * delta * share
    b[j] += delta * share
    if stop != NO_INDEX:
        b[stop], g[stop], is_off[stop] = end, 0.0, False
        _sweep(T, at, stop, -1.0)
    return share


@njit(cache=True, nogil=True)
def _move_to(problem, levels, d, j, target):
    """Move a coefficient to a value while O follows, and take it out of O."""
    at = np.flatnonzero(levels.status[d] != DROPPED)
    if levels.is_off[d, j]:
        levels.is_off[d, j], levels.g[d, j] = False, 0.0
        _sweep(levels.table[d], at, j, -1.0)
    share, left = 0.0, target - levels.b[d, j]
    while share < 1.0 and left != 0.0:
        share = _step(problem, levels, d, at, j, left)
        left *= 1.0 - share
    levels.b[d, j] = target


@njit(cache=True, nogil=True)
def _refit(problem, levels, d):
    """Fit the columns of a node within their bounds, from coefficients within them; False if rounding prevents this."""
    T, b, g, is_off, status = levels.table[d], levels.b[d], levels.g[d], levels.is_off[d], levels.status[d]
    at = np.flatnonzero(status != DROPPED)
    levels.value[d] = problem.yy
    for _ in range(8 * at.shape[0] + 16):
        best, enter = NEGLIGIBLE * problem.yy, NO_INDEX
        for x in range(at.shape[0]):
            j = at[x]
            lo, hi = _ends(problem, status[j], j)
            if not is_off[j] and ((g[j] > 0.0 and b[j] < hi) or (g[j] < 0.0 and b[j] > lo) or lo < b[j] < hi):
                if not T[j, j] > 0.0:
                    return False
                gain = np.inf if lo < b[j] < hi else g[j] * g[j] / T[j, j]
                if gain > best:
                    best, enter = gain, j
        if enter == NO_INDEX:
            break
        lo, hi = _ends(problem, status[enter], enter)
        share = 0.0
        while share < 1.0:
            target = min(max(b[enter] + g[enter] / T[enter, enter], lo), hi)
            share = _step(problem, levels, d, at, enter, target - b[enter])
        b[enter] = target
        if lo < target < hi:
            is_off[enter] = True
            _sweep(T, at, enter, 1.0)
    copy_vector(problem.c, g)
    for x in range(at.shape[0]):
        _add_multiple(problem.M[at[x]], -b[at[x]], g)
    change = np.zeros(b.shape[0])  # one step of refinement removes the rounding of the sweeps
    for x in range(at.shape[0]):
        j = at[x]
        levels.value[d] -= (problem.c[j] + g[j]) * b[j]
        if is_off[j]:
            _add_multiple(T[j], -g[j], change)
    for x in range(at.shape[0]):
        j = at[x]
        if is_off[j]:
            lo, hi = _ends(problem, status[j], j)
            b[j] = min(max(b[j] + change[j], lo), hi)
    for x in range(at.shape[0]):
        if is_off[at[x]]:
            g[at[x]] = 0.0
    return enter == NO_INDEX


@njit(cache=True, nogil=True)
def _dropping_costs(problem, levels, d):
    """Fill the costs of dropping the free columns of a node: 0 for coefficients that are 0."""
    T, b, g, is_off, status = levels.table[d], levels.b[d], levels.g[d], levels.is_off[d], levels.status[d]
    at, m, n = np.empty(b.shape[0], dtype=np.int64), b.shape[0], 0
    for i in range(m):  # columns whose g must keep its sign: positive at an upper bound, negative at a lower one
        lo, hi = _ends(problem, status[i], i)
        if status[i] != DROPPED and not is_off[i] and lo < hi:
            at[n] = i
            n += 1
    for j in range(m):
        levels.cost[d, j] = 0.0
        if status[j] != FREE or b[j] == 0.0:
            continue
        rate = -b[j] / T[j, j] if is_off[j] else b[j]  # of the other g, for each unit of the table
        curve = -b[j] * b[j] / T[j, j] if is_off[j] else b[j] * b[j] * T[j, j]
        t = 1.0
        for x in range(n):
            i = at[x]
            change = rate * T[j, i]
            opposes = change > 0.0 if b[i] <= _ends(problem, status[i], i)[0] else change < 0.0
            if i != j and opposes and abs(change) * t > abs(g[i]):
                t = abs(g[i] / change)
        linear = 0.0 if is_off[j] else 2.0 * abs(g[j] * b[j])
        levels.cost[d, j] = linear + curve * t * (2.0 - t) + problem.w * (b[j] * (1.0 - t)) ** 2


@njit(cache=True, nogil=True)
def _offer(problem, levels, d, found):
    """Offer the fit of a node as that of a support; False if there is no room."""
    b, status, m = levels.b[d], levels.status[d], problem.c.shape[0]
    mask, size = np.zeros(m, dtype=np.bool_), 0
    for j in range(m):
        size += problem.is_forced[j]
        if b[j] != 0.0 or (status[j] == INSIDE and problem.lo[j] < 0.0 < problem.hi[j]):
            if not problem.lo[j] <= b[j] <= problem.hi[j]:
                return True
            mask[j] = True
            size += not problem.is_forced[j]
    value, is_kept = levels.value[d], False
    for k in range(size, m + 1):
        if value <= _largest_kept(found, k):
            is_kept = True
            found.best[k] = min(found.best[k], value)
    if not is_kept:
        return True
    room = found.value.shape[0]
    if found.n_kept[0] == room:
        n = 0
        for r in range(room):
            is_kept = False
            for k in range((found.mask[r] | problem.is_forced).sum(), m + 1):
                is_kept |= found.value[r] <= _largest_kept(found, k)
            if is_kept:
                copy_vector(found.mask[r], found.mask[n])
                found.value[n] = found.value[r]
                n += 1
        found.n_kept[0] = n
    r = found.n_kept[0]
    if r == room:
        return False
    copy_vector(mask, found.mask[r])
    found.value[r] = value
    found.n_kept[0] += 1
    return True


@njit(cache=True, nogil=True)
def _size_bounds(problem, levels, d, lower):
    """Fill `lower` with bounds on the objectives of the supports of a node that are not offered, by size; inf if none.

    Returns the free column with the largest cost, else a free column whose coefficient is not in its interval, else -1.
    """
    m, status = problem.c.shape[0], levels.status[d]
    costs, parts, n, n_inside, j, apart = np.empty(m), np.empty(m), 0, 0, NO_INDEX, NO_INDEX
    for i in range(m):
        if status[i] == INSIDE:
            n_inside += 1
        elif status[i] == FREE:
            if not problem.lo[i] <= levels.b[d, i] <= problem.hi[i]:
                apart = i
            if levels.cost[d, i] > 0.0:
                b = levels.b[d, i]
                costs[n], parts[n] = levels.cost[d, i], 2.0 * abs(levels.g[d, i] * b) + problem.w * b * b
                n += 1
                if j < 0 or costs[n - 1] > levels.cost[d, j]:
                    j = i
    costs, parts = np.sort(costs[:n]), np.cumsum(np.sort(parts[:n]))
    for k in range(m + 1):
        drops = n_inside + n - k
        if k < n_inside or (drops <= 0 and apart < 0 and n == 0):
            lower[k] = np.inf
        elif drops <= 0:
            lower[k] = levels.value[d] + (0.0 if apart >= 0 else costs[0])
        else:
            lower[k] = levels.value[d] + max(costs[drops - 1], parts[drops - 1])
    return j if j >= 0 else apart


@njit(cache=True, nogil=True)
def bound_open_supports(problem, levels, depth):
    """Return (m + 1,) lower bounds on the objectives of the supports that are not offered, by size; inf if none.

    Parameters
    ----------
    problem : QuadraticInBox
        Problem.
    levels : NodeLevels
        Nodes.
    depth : int
        Level of the present node; negative if there is none.
    """
    lower, of_level = np.full(problem.c.shape[0] + 1, np.inf), np.empty(problem.c.shape[0] + 1)
    for d in range(depth + 1):
        _size_bounds(problem, levels, d, of_level)
        for k in range(lower.shape[0]):
            lower[k] = min(lower[k], of_level[k])
    return lower


@njit(cache=True, nogil=True)
def _drop(problem, levels, d, j, found):
    """Make the node below level d without column j; False if rounding prevents its fit, or there is no room."""
    for i in range(problem.c.shape[0]):
        copy_vector(levels.table[d, i], levels.table[d + 1, i])
        levels.is_off[d + 1, i], levels.status[d + 1, i] = levels.is_off[d, i], levels.status[d, i]
    copy_vector(levels.b[d], levels.b[d + 1])
    copy_vector(levels.g[d], levels.g[d + 1])
    _move_to(problem, levels, d + 1, j, 0.0)
    levels.status[d + 1, j] = DROPPED
    return _fit_node(problem, levels, d + 1, found)


@njit(cache=True, nogil=True)
def _fit_node(problem, levels, d, found):
    if not _refit(problem, levels, d):
        return False
    _dropping_costs(problem, levels, d)
    return _offer(problem, levels, d, found)


@njit(cache=True, nogil=True)
def _fit_columns(problem, levels, d, found):
    """Fit a node whose status is given; False as in `_fit_node`."""
    m = problem.c.shape[0]
    for j in range(m):
        copy_vector(problem.M[j], levels.table[d, j])
        levels.b[d, j], levels.g[d, j], levels.is_off[d, j] = 0.0, problem.c[j], False
    for j in range(m):
        lo, hi = _ends(problem, levels.status[d, j], j)
        if levels.status[d, j] != DROPPED and not lo <= 0.0 <= hi:
            _move_to(problem, levels, d, j, lo if lo > 0.0 else hi)
    return _fit_node(problem, levels, d, found)


@njit(cache=True, nogil=True)
def start(problem, levels, found, supports):
    """Fit the root, at level 0, and offer supports, also by backward elimination; False if rounding prevents this.

    Parameters
    ----------
    problem : QuadraticInBox
        Problem.
    levels : NodeLevels
        Nodes; the status of the root is given.
    found : FoundSupports
        Best values and supports, changed in place.
    supports : (k, m) bool array
        Supports to offer.
    """
    m, root = problem.c.shape[0], levels.status[0]
    if not _fit_columns(problem, levels, FIRST_INDEX, found):
        return False
    for r in range(supports.shape[0]):
        for j in range(m):
            is_chosen = root[j] == INSIDE or (root[j] == FREE and supports[r, j])
            levels.status[1, j] = INSIDE if is_chosen else DROPPED
            levels.b[1, j] = 0.0
        if not _fit_columns(problem, levels, FIRST_INDEX + 1, found):
            return False
    for d in range(m):
        least = NO_INDEX
        for j in range(m):
            if levels.status[d, j] == FREE and (least < 0 or levels.cost[d, j] < levels.cost[d, least]):
                least = j
        if least < 0:
            return True
        if not _drop(problem, levels, d, least, found):
            return False
    return True


@njit(cache=True, nogil=True)
def advance(problem, levels, found, depth, n_nodes):
    """Process nodes, depth first; return the level of the next node, -1 at the end, -2 if rounding prevents the end.

    Parameters
    ----------
    problem : QuadraticInBox
        Problem.
    levels : NodeLevels
        Nodes.
    found : FoundSupports
        Best values and supports, changed in place.
    depth : int
        Level of the present node.
    n_nodes : (2,) int array
        Number of nodes so far, and the number at which to pause.
    """
    m = problem.c.shape[0]
    lower = np.empty(m + 1)
    while depth >= 0 and n_nodes[0] < n_nodes[1]:
        j = _size_bounds(problem, levels, depth, lower)
        status, cutoff = levels.status[depth], -np.inf
        for k in range(m + 1):
            if lower[k] <= _cutoff(found, k):
                cutoff = max(cutoff, _cutoff(found, k))
        if cutoff == -np.inf or j < 0:
            depth -= 1
            continue
        opens_child = levels.value[depth] + levels.cost[depth, j] <= cutoff
        if opens_child:
            n_nodes[0] += 1
            if not _drop(problem, levels, depth, j, found):
                return -2
        is_apart = False
        for i in range(m):
            if status[i] == FREE and (i == j or levels.value[depth] + levels.cost[depth, i] > cutoff):
                status[i] = INSIDE
                if problem.lo[i] > 0.0 or problem.hi[i] < 0.0:
                    is_apart = True
                    _move_to(problem, levels, depth, i, min(max(levels.b[depth, i], problem.lo[i]), problem.hi[i]))
        if is_apart:
            n_nodes[0] += 1
            if not _fit_node(problem, levels, depth, found):
                return -2
        depth += opens_child
    return depth
