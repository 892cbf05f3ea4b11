"""Bounds of one node of a tree over supports with limits on groups of columns and signs of coefficients.

In normal form, `M = G + w I` with G positive semidefinite and w = 1 or 0. A node is (included I, free F), A = I + F; at
most `room` free columns may be chosen, of each group at most its `cap`; the coefficient of a column may be held at or
above zero (sign 1), at or below (-1), or be free (0). Three statements hold for every support S of the node, f(S) the
least objective with the signs held (docs/theory.md, "Restrictions"):

* with b the fit of all of A, signs held, and `V = M_A^{-1}`: dropping j costs at least `b_j^2 / V_jj`, so that S, which
  drops m columns or more, has `f(S) >= f(A) + m-th smallest cost`;
* for any u, `f(S) >= yy - u'Gu - sum_I s_j - (largest sum of s_j over columns of F that room and caps allow)`, where
  `s_j` is the square of the part of `g_j = c_j - (G u)_j` that the sign allows;
* the same with a column forced in, or left out, screens that column.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.cluster_relaxation import (
    NO_CLUSTER,
    BoxEnds,
    ClusterChoice,
    best_choice,
    descend,
    product,
    scores,
    screen_choice,
)
from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, gershgorin, invert, put
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Accuracy, Form

NEAR = 0.05  # accuracy of a relaxation that will not close its node, of what is left to the bar


class Rules(NamedTuple):
    """What may be chosen at a node, in the columns of a normal form.

    Attributes
    ----------
    sign : (m,) int8 array
        1, -1 or 0.
    group : (m,) int array
        Number of the group of a column, -1 for none.
    cap : (groups,) int array
        What the included columns leave of each group.
    room : int
        Free columns that may be chosen.
    """

    sign: np.ndarray
    group: np.ndarray
    cap: np.ndarray
    room: int


class NodePoint(NamedTuple):
    """Where a node starts and what it found: (m,) arrays.

    Attributes
    ----------
    b : array
        Coefficients of the fit of all columns of the node, signs held; on entry feasible ones to start from.
    u : array
        Point of the best dual bound; on entry where to start.
    cost : array
        At least what dropping a free column adds to the objective of the fit.
    z : array
        Relaxed indicators.
    """

    b: np.ndarray
    u: np.ndarray
    cost: np.ndarray
    z: np.ndarray


@njit(cache=True, nogil=True)
def signed_fit(M, c, sign, b, size):
    """Minimise `b'M b - 2 c'b`, signs held, by active sets from a feasible start; False where rounding stopped it.

    Parameters
    ----------
    M, c, sign : (size, size), (size,), (size,) arrays
        M positive definite.
    b : (size,) array
        Feasible on entry; overwritten.
    size : int

    Notes
    -----
    Lawson and Hanson's method: each step solves for the coefficients off their bounds and goes as far as the signs
    allow, so that the objective falls from one active set to the next. O(size^3) a step.
    """
    on = np.empty(size, dtype=np.bool_)
    for a in range(size):
        on[a] = sign[a] == 0 or b[a] * sign[a] > 0.0
        if not on[a]:
            b[a] = 0.0
    blocked = np.zeros(size, dtype=np.bool_)  # entered, and pushed out at once by rounding
    L = np.empty((size, size))
    x = np.empty(size)
    place = np.empty(size, dtype=np.int64)
    for _ in range(8 * size + 16):
        while True:
            n = 0
            for a in range(size):
                if on[a]:
                    place[n] = a
                    n += 1
            for i in range(n):
                for k in range(i + 1):
                    L[i, k] = M[place[i], place[k]]
                x[i] = c[place[i]]
            if not cholesky_in_place(L, n):
                return False
            cholesky_solve(L, x, n)
            step = 1.0
            last = -1
            for i in range(n):
                a = place[i]
                if sign[a] != 0 and x[i] * sign[a] <= 0.0:
                    now = abs(b[a])
                    blocked[a] |= now == 0.0
                    far = now / (now + abs(x[i])) if now > 0.0 else 0.0
                    if far < step:
                        step = far
                        last = i
                    elif last < 0:
                        last = i
            for i in range(n):
                b[place[i]] += step * (x[i] - b[place[i]])
            if last < 0:
                break
            for i in range(n):
                a = place[i]
                if sign[a] != 0 and (i == last or b[a] * sign[a] <= 0.0):
                    on[a] = False
                    b[a] = 0.0
        best = 0.0
        enter = -1
        for a in range(size):
            if not on[a] and not blocked[a]:
                g = c[a]
                load = abs(c[a])
                for k in range(n):
                    term = M[a, place[k]] * b[place[k]]
                    g -= term
                    load += abs(term)
                g *= sign[a]
                if g > 1e-14 * load and g * g / M[a, a] > best:
                    best = g * g / M[a, a]
                    enter = a
        if enter < 0:
            return True
        on[enter] = True
    return False


@njit(cache=True, nogil=True)
def node_bound(form, w, rules, status, bar, steps, point):
    """Bound every support of a node, and fix the columns that no support within the bar can leave out or hold.

    Parameters
    ----------
    form : Form
    w : float
        1, or 0 where the penalty is too small to bound anything by.
    rules : Rules
    status : (m,) int8 array
        FREE, INSIDE or DROPPED; columns that are fixed are written.
    bar : float
        Supports above it are of no interest.
    steps : int
        Most proximal steps of the relaxation.
    point : NodePoint

    Returns
    -------
    bound : float
        Of every support of the node.
    value : float
        f of all columns of the node; minus infinity where the fit failed.
    """
    m = status.shape[0]
    at = np.empty(m, dtype=np.int64)
    size = 0
    for j in range(m):
        point.cost[j] = 0.0
        point.z[j] = 0.0
        if status[j] != DROPPED:
            at[size] = j
            size += 1
        else:
            point.b[j] = 0.0
            point.u[j] = 0.0
    if size == 0:
        return form.yy, form.yy
    G, M = np.empty((size, size)), np.empty((size, size))
    c, b, u = np.empty(size), np.empty(size), np.empty(size)
    sign, free = np.empty(size, dtype=np.int8), np.empty(size, dtype=np.bool_)
    box = BoxEnds(np.full(size, -np.inf), np.full(size, np.inf))
    group, inside = np.empty(size, dtype=np.int64), np.int64(0)
    for a in range(size):
        i = at[a]
        for k in range(size):
            G[a, k] = form.G[i, at[k]]
            M[a, k] = G[a, k]
        M[a, a] += w
        c[a], b[a], u[a] = form.c[i], point.b[i], point.u[i]
        sign[a], group[a], free[a] = rules.sign[i], rules.group[i], status[i] == FREE
        if sign[a] > 0:
            box.lo[a] = 0.0
        elif sign[a] < 0:
            box.hi[a] = 0.0
        inside += not free[a]
    value = -np.inf
    bound = value
    if signed_fit(M, c, sign, b, size):
        value = form.yy
        for a in range(size):
            value -= c[a] * b[a]
        V, ok = invert(M)
        for a in range(size):
            if ok and free[a] and b[a] != 0.0:
                point.cost[at[a]] = b[a] * b[a] / V[a, a]
        bound = value + _least_cost(point.cost, at, free, group, rules, size)
        for a in range(size):
            point.b[at[a]] = b[a]
            point.z[at[a]] = 1.0 if b[a] != 0.0 else 0.0
            if free[a] and value + point.cost[at[a]] > bar:
                status[at[a]] = INSIDE
    if w == 0.0 or bound > bar:
        return bound, value
    # an included column is a cluster of its own
    cluster, held = np.empty(size, dtype=np.int64), 0
    for a in range(size):
        cluster[a] = held if not free[a] else inside + group[a] if group[a] >= 0 else NO_CLUSTER
        held += not free[a]
    choice = ClusterChoice(cluster, inside, inside + min(rules.room, size - inside), rules.cap)
    h = np.empty(size)
    bound = max(bound, _dual_value(G, c, form.yy, b, box, choice, h))
    if bound > bar or size - inside <= rules.room:
        return bound, value
    if not np.any(u != 0.0):
        put(b, u)
    best, z = np.empty(size), np.empty(size)
    descend(Form(G, c, form.yy, gershgorin(G)), box, choice, Accuracy(bar, NEAR, steps), u, best, z)
    top = _dual_value(G, c, form.yy, best, box, choice, h)
    bound = max(bound, top)
    fixed = np.zeros(size, dtype=np.int8)
    screen_choice(h, choice, bar - top, fixed)
    for a in range(size):
        point.u[at[a]] = best[a]
        point.z[at[a]] = z[a]
        if free[a] and fixed[a] != FREE and status[at[a]] == FREE:
            status[at[a]] = fixed[a]
    return bound, value


@njit(cache=True, nogil=True)
def _dual_value(G, c, yy, b, box, choice, h):
    """Return the dual value of a point, and fill h with what each column may add. O(size^2)."""
    slope = np.empty(c.shape[0])
    quad = product(G, b, slope)
    for a in range(c.shape[0]):
        slope[a] = c[a] - slope[a]
    scores(slope, box, h)
    return yy - quad - best_choice(h, choice).total


@njit(cache=True, nogil=True)
def _least_cost(cost, at, free, group, rules, size):
    """Return the least cost of dropping as many columns as the room and each cap demand: the largest m-th smallest."""
    cap, room = rules.cap, rules.room
    worst = 0.0
    for g in range(-1, cap.shape[0]):
        here = np.empty(size)
        count = 0
        for a in range(size):
            if free[a] and (g < 0 or group[a] == g):
                here[count] = cost[at[a]]
                count += 1
        drop = count - (room if g < 0 else min(cap[g], room))
        if drop > 0:
            here = np.sort(here[:count])
            worst = max(worst, here[drop - 1])
    return worst
