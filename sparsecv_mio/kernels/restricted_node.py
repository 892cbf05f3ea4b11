"""Bounds of one node of a tree over supports with limits on groups of columns and signs of coefficients.

In normal form, `M = G + w I` with G positive semidefinite and w = 1 or 0. A node includes the terms I and may choose
from the terms F; A = I + F. A term is a column, or several columns that enter together. At most `room` terms of F may
be chosen, and at most `cap` of each group. A coefficient may be constrained to be >= 0 (sign 1) or <= 0 (sign -1), or
be free (0). Three statements hold for every support S of the node, with f(S) the minimum of the objective with these
signs (theory section 10):

* Let b be the sign-constrained fit of A, and `V = M_A^{-1}`. Dropping a term T costs at least `b_T' V_TT^{-1} b_T`. If
  S drops m terms or more, then `f(S) >= f(A) + m-th smallest cost`;
* for any u, `f(S) >= yy - u'Gu - sum_I s_j - (largest sum of s_j over terms of F that room and caps allow)`, where
  `s_j` is the square of the part of `g_j = c_j - (G u)_j` that the sign allows;
* the second bound, computed with a term included or with the term excluded, screens that term.

If T has several columns, V_TT has a rounding error. A number larger than this error is therefore added to the diagonal
of V_TT before the inversion, so that the computed cost is never too large.
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
    sum_by_term,
)
from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, copy_vector, gershgorin, invert
from sparsecv_mio.kernels.jit import NO_ITEMS, njit
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, OPEN_NODE_GAP_RTOL, Accuracy, Form


class Rules(NamedTuple):
    """Restrictions at a node, in the columns of a normal form.

    Attributes
    ----------
    sign : (m,) int8 array
        Signs 1, -1 or 0.
    group : (m,) int array
        Number of the group of a column, -1 for none; the same for all columns of a term.
    cap : (groups,) int array
        Number of terms of each group that may still be chosen.
    room : int
        Number of free terms that may be chosen.
    term : (m,) int array
        Number of a column's term, below m.
    rounding : float
        Relative rounding of an inverse of M.
    """

    sign: np.ndarray
    group: np.ndarray
    cap: np.ndarray
    room: int
    term: np.ndarray
    rounding: float


class NodePoint(NamedTuple):
    """Start and results of a node: (m,) arrays.

    Attributes
    ----------
    b : array
        Coefficients of the sign-constrained fit of all columns of the node; on entry a feasible start.
    u : array
        Point of the best dual bound; on entry a start.
    cost : array
        Lower bounds on the cost of dropping a free column's term from the fit.
    z : array
        Relaxed indicators.
    """

    b: np.ndarray
    u: np.ndarray
    cost: np.ndarray
    z: np.ndarray


@njit(cache=True, nogil=True)
def signed_fit(M, c, sign, b, size):
    """Minimise `b'M b - 2 c'b` under the signs, by active sets from a feasible start; False if rounding stopped it.

    Parameters
    ----------
    M, c, sign : (size, size), (size,), (size,) arrays
        Positive definite matrix, vector and signs.
    b : (size,) array
        Feasible start, then solution.
    size : int
        Number of columns.

    Notes
    -----
    Lawson and Hanson's method: each step solves for the coefficients that are not at their bounds and goes as far as
    the signs allow, so the objective falls from one active set to the next. O(size^3) for each step.
    """
    on = np.empty(size, dtype=np.bool_)
    for a in range(size):
        on[a] = sign[a] == 0 or b[a] * sign[a] > 0.0
        if not on[a]:
            b[a] = 0.0
    blocked = np.zeros(size, dtype=np.bool_)  # coefficients that entered and were removed at once by rounding
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
    """Bound every support of a node, and fix the columns that no support within the cutoff can drop or contain.

    Parameters
    ----------
    form : Form
        Problem.
    w : float
        1, or 0 if the penalty is too small for a bound.
    rules : Rules
        Restrictions.
    status : (m,) int8 array
        FREE, INSIDE or DROPPED; fixed columns are written.
    bar : float
        Cutoff: supports above it are not needed.
    steps : int
        Maximum number of proximal steps of the relaxation.
    point : NodePoint
        Start, then results.

    Returns
    -------
    bound : float
        Lower bound for every support of the node.
    value : float
        f of all columns of the node; minus infinity if the fit failed.
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
    sign, term = np.empty(size, dtype=np.int8), np.empty(size, dtype=np.int64)
    box = BoxEnds(np.full(size, -np.inf), np.full(size, np.inf))
    number, terms = np.full(m, -1, dtype=np.int64), 0
    for a in range(size):
        i = at[a]
        for k in range(size):
            G[a, k] = form.G[i, at[k]]
            M[a, k] = G[a, k]
        M[a, a] += w
        c[a], b[a], u[a] = form.c[i], point.b[i], point.u[i]
        sign[a] = rules.sign[i]
        if sign[a] > 0:
            box.lo[a] = 0.0
        elif sign[a] < 0:
            box.hi[a] = 0.0
        if number[rules.term[i]] < 0:
            number[rules.term[i]] = terms
            terms += 1
        term[a] = number[rules.term[i]]
    group, free, inside = np.empty(terms, dtype=np.int64), np.empty(terms, dtype=np.bool_), NO_ITEMS
    for a in range(size):
        group[term[a]], free[term[a]] = rules.group[at[a]], status[at[a]] == FREE
    for t in range(terms):
        inside += not free[t]
    value = -np.inf
    bound = value
    if signed_fit(M, c, sign, b, size):
        value = form.yy
        for a in range(size):
            value -= c[a] * b[a]
        cost = np.zeros(terms)
        V, ok = invert(M)
        if ok:
            _dropping_costs(b, V, term, rules.rounding, cost)
        bound = value + _least_cost(cost, free, group, rules)
        for a in range(size):
            point.b[at[a]] = b[a]
            point.z[at[a]] = 1.0 if b[a] != 0.0 else 0.0
            if free[term[a]]:
                point.cost[at[a]] = cost[term[a]]
                if value + cost[term[a]] > bar:
                    status[at[a]] = INSIDE
    if w == 0.0 or bound > bar:
        return bound, value
    # an included term is a separate cluster
    cluster, held = np.empty(terms, dtype=np.int64), 0
    for t in range(terms):
        cluster[t] = held if not free[t] else inside + group[t] if group[t] >= 0 else NO_CLUSTER
        held += not free[t]
    choice = ClusterChoice(cluster, inside, inside + min(rules.room, terms - inside), rules.cap, term)
    total = np.empty(terms)
    bound = max(bound, _dual_value(G, c, form.yy, b, box, choice, total))
    if bound > bar or terms - inside <= rules.room:
        return bound, value
    if not np.any(u != 0.0):
        copy_vector(b, u)
    best, z = np.empty(size), np.empty(size)
    descend(Form(G, c, form.yy, gershgorin(G)), box, choice, Accuracy(bar, OPEN_NODE_GAP_RTOL, steps), u, best, z)
    top = _dual_value(G, c, form.yy, best, box, choice, total)
    bound = max(bound, top)
    fixed = np.zeros(terms, dtype=np.int8)
    screen_choice(total, choice, bar - top, fixed)
    for a in range(size):
        point.u[at[a]] = best[a]
        point.z[at[a]] = z[a]
        if free[term[a]] and fixed[term[a]] != FREE and status[at[a]] == FREE:
            status[at[a]] = fixed[term[a]]
    return bound, value


@njit(cache=True, nogil=True)
def _dual_value(G, c, yy, b, box, choice, total):
    """Return the dual value of a point, and fill `total` with the contribution that each term may add. O(size^2)."""
    slope, h = np.empty(c.shape[0]), np.empty(c.shape[0])
    quad = product(G, b, slope)
    for a in range(c.shape[0]):
        slope[a] = c[a] - slope[a]
    scores(slope, box, h)
    sum_by_term(h, choice, total)
    return yy - quad - best_choice(total, choice).total


@njit(cache=True, nogil=True)
def _dropping_costs(b, V, term, rounding, cost):
    """Fill `cost`, zeros on entry, with lower bounds on the cost of dropping each term: 0 if rounding is too large."""
    size, terms = b.shape[0], cost.shape[0]
    start, members = np.zeros(terms + 1, dtype=np.int64), np.empty(size, dtype=np.int64)
    trace = 0.0
    for a in range(size):
        start[term[a] + 1] += 1
        trace += V[a, a]
    for t in range(terms):
        start[t + 1] += start[t]
    ahead = start.copy()
    for a in range(size):
        members[ahead[term[a]]] = a
        ahead[term[a]] += 1
    for t in range(terms):
        mine = members[start[t] : start[t + 1]]
        n = mine.shape[0]
        if n == 1:
            a = mine[0]
            cost[t] = b[a] * b[a] / V[a, a] if b[a] != 0.0 else 0.0
            continue
        L, x = np.empty((n, n)), np.empty(n)
        for i in range(n):
            for k in range(i + 1):
                L[i, k] = V[mine[i], mine[k]]
            L[i, i] += rounding * trace
            x[i] = b[mine[i]]
        if cholesky_in_place(L, n):
            cholesky_solve(L, x, n)
            for i in range(n):
                cost[t] += x[i] * b[mine[i]]


@njit(cache=True, nogil=True)
def _least_cost(cost, free, group, rules):
    """Return the cost that dropping to `room` and each cap reaches at least: the largest m-th smallest cost."""
    cap, room = rules.cap, rules.room
    worst = 0.0
    for g in range(-1, cap.shape[0]):
        here = np.empty(cost.shape[0])
        count = 0
        for t in range(cost.shape[0]):
            if free[t] and (g < 0 or group[t] == g):
                here[count] = cost[t]
                count += 1
        drop = count - (room if g < 0 else min(cap[g], room))
        if drop > 0:
            here = np.sort(here[:count])
            worst = max(worst, here[drop - 1])
    return worst
