"""Bounds of one node of a tree over supports with limits on groups of columns and bounds on coefficients.

In normal form, `M = G + w I` with G positive semidefinite and w = 1 or 0. A node includes the terms I and may choose
from the terms F; A is the union of I and F. A term is a column, or several columns that enter together. At most `room`
terms of F may be chosen, and at most `cap` of each group. A coefficient is between `lo` and `hi`; for a column of F,
the interval is extended to 0. Three statements hold for every support S of the node, with f(S) the minimum of the
objective within these bounds (theory section 10):

* Let b be the fit of A within the bounds, and `V = M_A^{-1}`. Dropping a term T raises the objective by at least
  `b_T' V_TT^{-1} b_T`, the cost of T. If S drops m terms or more, then `f(S) >= f(A) + m-th smallest cost`;
* for any u, `f(S) >= yy - u'Gu - sum_I s_j - (largest sum of s_j over terms of F that room and caps allow)`, where
  `s_j = -min { b^2 - 2 g_j b : lo_j <= b <= hi_j }` and `g_j = c_j - (G u)_j`;
* the second bound, computed with a term included or with the term excluded, screens that term.

If T has several columns, the computed V_TT has a rounding error, which its inverse enlarges. A number larger than this
error is therefore added to the diagonal of V_TT before the inversion, so that the computed cost is never too large.
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
from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, copy_vector, gather, gershgorin, invert
from sparsecv_mio.kernels.held_out_sums import MOST_LOST
from sparsecv_mio.kernels.jit import NO_ITEMS, njit
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, OPEN_NODE_GAP_RTOL, Accuracy, Form


class Rules(NamedTuple):
    """Restrictions at a node, in the columns of a normal form.

    Attributes
    ----------
    lo, hi : (m,) arrays
        Bounds on the coefficients of chosen columns; infinite if open.
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

    lo: np.ndarray
    hi: np.ndarray
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
        Coefficients of the fit of all columns of the node within the bounds; on entry a start.
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
def bounded_fit(M, c, lo, hi, b, size):
    """Minimise `b'M b - 2 c'b` over `lo <= b <= hi`, by active sets from a start; False if rounding stopped it.

    Parameters
    ----------
    M, c : (size, size), (size,) arrays
        Positive definite matrix and vector.
    lo, hi : (size,) arrays
        Bounds, infinite if open.
    b : (size,) array
        Start, then solution.
    size : int
        Number of columns.

    Notes
    -----
    Lawson and Hanson's method: each step solves for the coefficients that are not at their bounds and goes as far as
    the bounds allow, so the objective falls from one active set to the next. O(size^3) for each step.
    """
    on = np.empty(size, dtype=np.bool_)
    for a in range(size):
        b[a] = min(max(b[a], lo[a]), hi[a])
        on[a] = lo[a] < b[a] < hi[a]
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
                for a in range(size):
                    if not on[a] and b[a] != 0.0:
                        x[i] -= M[place[i], a] * b[a]
            if not cholesky_in_place(L, n):
                return False
            cholesky_solve(L, x, n)
            step = 1.0
            last = -1
            for i in range(n):
                a = place[i]
                if x[i] <= lo[a] or x[i] >= hi[a]:
                    now = abs(b[a] - (lo[a] if x[i] <= lo[a] else hi[a]))
                    blocked[a] |= now == 0.0
                    far = now / abs(x[i] - b[a]) if now > 0.0 else 0.0
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
                if b[a] <= lo[a] or (i == last and x[i] <= lo[a]):
                    on[a] = False
                    b[a] = lo[a]
                elif b[a] >= hi[a] or (i == last and x[i] >= hi[a]):
                    on[a] = False
                    b[a] = hi[a]
        best = 0.0
        enter = -1
        for a in range(size):
            if not on[a] and not blocked[a] and lo[a] < hi[a]:
                g = c[a]
                load = abs(c[a])
                for k in range(size):
                    term = M[a, k] * b[k]
                    g -= term
                    load += abs(term)
                if b[a] >= hi[a]:
                    g = -g
                if g > 1e-14 * load and g * g / M[a, a] > best:
                    best = g * g / M[a, a]
                    enter = a
        if enter < 0:
            return True
        on[enter] = True
    return False


@njit(cache=True, nogil=True)
def refit_in_bounds(Q, c, yy, penalty, ends, listed, unit, fits):
    """Replace fits that may cross a bound by fits within bounds, with their rounding errors. O(size^3) a support.

    Parameters
    ----------
    Q, c, yy, penalty : (q, q), (q,), float, (q,)
        Moments of the training rows, and penalty.
    ends : BoxEnds
        Bounds on the coefficients.
    listed : SupportRows
        Supports.
    unit : float
        Relative error of the moments and of the bounds (a few ulp).
    fits : RidgeFits
        Fits without the bounds, where the active sets start.

    Notes
    -----
    Let r be the part of the gradient that a step within the bounds can follow, plus the rounding `load` of the
    gradient. The coefficients b are the exact minimiser after a change of c by at most |r|, so `||b - b*||_M` is at
    most `||r||_{M^-1}`, and f(b) exceeds its minimum by at most the square. The rounding of M and c is treated as in
    `refit_supports`.
    """
    for row in range(listed.sizes.shape[0]):
        n, at = listed.sizes[row], listed.columns[row]
        beta, spread = fits.beta[row], fits.spread[row]
        crosses = False
        for a in range(n):
            crosses |= beta[a] - spread[a] < ends.lo[at[a]] or beta[a] + spread[a] > ends.hi[at[a]]
        if not crosses:
            continue
        M, scale, h, r = np.empty((n, n)), np.empty(n), np.empty(n), np.empty(n)
        lo, hi, b = np.empty(n), np.empty(n), np.empty(n)
        for a in range(n):
            square = Q[at[a], at[a]] + penalty[at[a]]
            scale[a] = 1.0 / np.sqrt(square) if square > 0.0 else 1.0
        for a in range(n):
            for k in range(n):
                M[a, k] = Q[at[a], at[k]] * scale[a] * scale[k]
            M[a, a] += penalty[at[a]] * scale[a] * scale[a]
            lo[a], hi[a], h[a] = ends.lo[at[a]] / scale[a], ends.hi[at[a]] / scale[a], c[at[a]] * scale[a]
            b[a] = min(max(beta[a] / scale[a], lo[a]), hi[a])
            beta[a], spread[a] = min(max(0.0, lo[a]), hi[a]) * scale[a], np.inf
        fits.value[row], fits.value_error[row] = np.inf, np.inf
        V, ok = invert(M)
        loss = 0.0
        for a in range(n):
            loss += n * unit * V[a, a]
        if not (ok and 0.0 <= loss <= MOST_LOST and bounded_fit(M, h, lo, hi, b, n)):
            continue
        off = np.flatnonzero((lo < b) & (b < hi))
        L = np.empty((off.shape[0], off.shape[0]))
        gather(M, off, off.shape[0], L)
        for a in range(off.shape[0]):
            r[a] = h[off[a]]
            for k in range(n):
                r[a] -= M[off[a], k] * b[k]
        if cholesky_in_place(L, off.shape[0]):
            cholesky_solve(L, r, off.shape[0])
            for a in range(off.shape[0]):
                b[off[a]] = min(max(b[off[a]] + r[a], lo[off[a]]), hi[off[a]])
        value, reach, excess = yy, np.sqrt(yy), 0.0
        for a in range(n):
            reach += abs(b[a])  # the diagonal of M is 1
        for a in range(n):
            slope, load = h[a], unit * reach
            for k in range(n):
                slope -= M[a, k] * b[k]
            value -= (h[a] + slope) * b[a]
            is_kept = (b[a] <= lo[a] and slope <= 0.0) or (b[a] >= hi[a] and slope >= 0.0)
            r[a] = load if is_kept else load + abs(slope)
        for a in range(n):
            for k in range(n):
                excess += r[a] * abs(V[a, k]) * r[k] / (1.0 - loss)
        for a in range(n):
            beta[a], spread[a] = b[a] * scale[a], np.sqrt(V[a, a] * excess / (1.0 - loss)) * scale[a]
        fits.value[row], fits.value_error[row] = value, unit * reach * reach + excess


@njit(cache=True, nogil=True)
def bounded_value(M, c, yy, lo, hi, b, size):
    """Return `yy + b'M b - 2 c'b` at the solution of `bounded_fit`, whose gradient is zero off the bounds. O(size^2).

    Parameters
    ----------
    M, c, lo, hi, b, size
        Arguments of `bounded_fit`.
    yy : float
        Constant.
    """
    value = yy
    for a in range(size):
        value -= c[a] * b[a]
    for a in range(size):
        if b[a] != 0.0 and not lo[a] < b[a] < hi[a]:
            g = c[a]
            for k in range(size):
                g -= M[a, k] * b[k]
            value -= b[a] * g
    return value


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
    term = np.empty(size, dtype=np.int64)
    box, hull = BoxEnds(np.empty(size), np.empty(size)), BoxEnds(np.empty(size), np.empty(size))
    number, terms = np.full(m, -1, dtype=np.int64), 0
    for a in range(size):
        i = at[a]
        for k in range(size):
            G[a, k] = form.G[i, at[k]]
            M[a, k] = G[a, k]
        M[a, a] += w
        c[a], b[a], u[a] = form.c[i], point.b[i], point.u[i]
        hull.lo[a], hull.hi[a] = min(rules.lo[i], 0.0), max(rules.hi[i], 0.0)
        is_free = status[i] == FREE
        box.lo[a], box.hi[a] = hull.lo[a] if is_free else rules.lo[i], hull.hi[a] if is_free else rules.hi[i]
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
    if bounded_fit(M, c, box.lo, box.hi, b, size):
        value = bounded_value(M, c, form.yy, box.lo, box.hi, b, size)
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
    descend(Form(G, c, form.yy, gershgorin(G)), hull, choice, Accuracy(bar, OPEN_NODE_GAP_RTOL, steps), u, best, z)
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
