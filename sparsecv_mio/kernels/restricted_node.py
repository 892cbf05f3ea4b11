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

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, gershgorin, invert_lower
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import prox_scale
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE

BISECTIONS = 45
EVERY = 4  # proximal steps between two evaluations of the dual
WORTH = 1e-3  # share of what a bound lacks to close the node that so many steps must gain to go on


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


class _Choice(NamedTuple):
    """The same for the columns at hand, and which of these are free."""

    free: np.ndarray
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
def _allowed_slopes(G, c, sign, u, size, slope, score):
    """Fill the slopes `c - G u` and the squares of the parts that the signs allow; return `u'G u`. O(size^2)."""
    total = 0.0
    for a in range(size):
        s = 0.0
        for k in range(size):
            s += G[a, k] * u[k]
        total += u[a] * s
        slope[a] = c[a] - s
        part = slope[a]
        if sign[a] * part < 0.0:
            part = 0.0
        score[a] = part * part
    return total


@njit(cache=True, nogil=True)
def _greedy(order, score, choice, used, chosen):
    """Largest sum of scores over at most `room` free columns, at most `cap` of each group.

    Groups do not overlap, so that taking the columns by falling score is optimal (a truncated partition matroid).

    Parameters
    ----------
    order : (size,) int array
        Columns by falling score.
    score : (size,) array
    choice : _Choice
    used : (groups,) int array
        Work.
    chosen : (size,) bool array
        Filled.

    Returns
    -------
    total, last, next : float
        The sum; the least score chosen where room ran out, else 0; the largest free score that was not chosen.
    """
    free, group, cap, room = choice
    used[:] = 0
    chosen[:] = False
    total, last, following, taken = 0.0, 0.0, 0.0, 0
    for a in order:
        if not free[a]:
            continue
        g = group[a]
        if taken < room and (g < 0 or used[g] < cap[g]):
            chosen[a] = True
            total += score[a]
            last = score[a]
            taken += 1
            if g >= 0:
                used[g] += 1
        elif score[a] > following:
            following = score[a]
    return total, (last if taken == room else 0.0), following


@njit(cache=True, nogil=True)
def _level_for(level, choice, wanted, step, room):
    """Return the mu >= 0 with `sum clip(level_a / mu - 2 step, 0, 1) <= room` over free columns of a group.

    Parameters
    ----------
    level : (size,) array
        Not negative.
    choice : _Choice
    wanted : int
        Which group; -2 for all free columns.
    step : float
    room : int
    """
    size, free, group = level.shape[0], choice.free, choice.group
    held, count = np.empty(size), 0
    for a in range(size):
        if free[a] and (wanted == -2 or group[a] == wanted) and level[a] > 0.0:
            held[count] = level[a]
            count += 1
    return 1.0 / prox_scale(held, count, room, 2.0 * step) if count > room else 0.0


@njit(cache=True, nogil=True)
def _proximal(v, sign, choice, step, b, z):
    """Proximal map of the perspective penalty under room, caps and signs: `b = v z / (z + 2 step)`.

    Parameters
    ----------
    v, sign : (size,) arrays
    choice : _Choice
    step : float
    b, z : (size,) arrays
        Filled.
    """
    free, group, cap, room = choice
    size = v.shape[0]
    level = np.empty(size)
    for a in range(size):
        level[a] = 0.0 if sign[a] * v[a] < 0.0 else abs(v[a])
    own = np.zeros(cap.shape[0])
    for g in range(cap.shape[0]):
        own[g] = _level_for(level, choice, g, step, cap[g])
    low, high = 0.0, _level_for(level, choice, -2, step, room)
    # the caps take some of the room that the common level gave: it falls until the room is filled again
    for _ in range(BISECTIONS if cap.shape[0] > 0 and high > 0.0 else 0):
        mid = 0.5 * (low + high)
        total = 0.0
        for a in range(size):
            if free[a]:
                mu = mid if group[a] < 0 else max(mid, own[group[a]])
                if level[a] > 0.0:
                    total += min(max(level[a] / mu - 2.0 * step, 0.0), 1.0) if mu > 0.0 else 1.0
        if total > room:
            low = mid
        else:
            high = mid
    for a in range(size):
        z[a] = 1.0
        if free[a]:
            mu = high if group[a] < 0 else max(high, own[group[a]])
            if mu > 0.0:
                z[a] = min(max(level[a] / mu - 2.0 * step, 0.0), 1.0)
        b[a] = 0.0
        if level[a] > 0.0 and z[a] > 0.0:
            b[a] = v[a] * z[a] / (z[a] + 2.0 * step)


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
    G = np.empty((size, size))
    M = np.empty((size, size))
    c, b, u = np.empty(size), np.empty(size), np.empty(size)
    sign, group = np.empty(size, dtype=np.int8), np.empty(size, dtype=np.int64)
    free = np.empty(size, dtype=np.bool_)
    inside = 0
    for a in range(size):
        i = at[a]
        for k in range(size):
            G[a, k] = form.G[i, at[k]]
            M[a, k] = G[a, k]
        M[a, a] += w
        c[a], b[a], u[a] = form.c[i], point.b[i], point.u[i]
        sign[a], group[a], free[a] = rules.sign[i], rules.group[i], status[i] == FREE
        inside += not free[a]
    choice = _Choice(free, group, rules.cap, rules.room)
    slope, score = np.empty(size), np.empty(size)
    used, chosen = np.empty(rules.cap.shape[0], dtype=np.int64), np.empty(size, dtype=np.bool_)
    bound, value = -np.inf, -np.inf
    if signed_fit(M, c, sign, b, size):
        value = form.yy
        for a in range(size):
            value -= c[a] * b[a]
        bound = value
        _inverse_costs(M, b, free, size, at, point.cost)
        bound += _least_cost(point.cost, at, choice, size)
        for a in range(size):
            point.b[at[a]] = b[a]
            point.z[at[a]] = 1.0 if b[a] != 0.0 else 0.0
            if free[a] and value + point.cost[at[a]] > bar:
                status[at[a]] = INSIDE
    if w == 0.0 or bound > bar:
        return bound, value
    dual = form.yy - _allowed_slopes(G, c, sign, b, size, slope, score)
    dual, _, _ = _dual_value(dual, score, choice, used, chosen)
    bound = max(bound, dual)
    if bound > bar or size - inside <= rules.room:
        return bound, value
    step = 0.5 / gershgorin(G)
    if not np.any(u != 0.0):
        u[:] = b
    best, moved, old, z = u.copy(), u.copy(), u.copy(), np.ones(size)
    base = form.yy - _allowed_slopes(G, c, sign, u, size, slope, score)
    top, _, _ = _dual_value(base, score, choice, used, chosen)
    seen, momentum, v = top, 1.0, np.empty(size)
    for k in range(steps):
        _allowed_slopes(G, c, sign, moved, size, slope, score)
        for a in range(size):
            v[a] = moved[a] + 2.0 * step * slope[a]
            old[a] = u[a]
        _proximal(v, sign, choice, step, u, z)
        turn = 0.0
        for a in range(size):
            turn += (moved[a] - u[a]) * (u[a] - old[a])
        if turn > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        share = (momentum - 1.0) / following
        momentum = following
        for a in range(size):
            moved[a] = u[a] + share * (u[a] - old[a])
        if k % EVERY == EVERY - 1:
            base = form.yy - _allowed_slopes(G, c, sign, u, size, slope, score)
            now, _, _ = _dual_value(base, score, choice, used, chosen)
            if now > top:
                top = now
                best[:] = u
            if top > bar or (k >= 3 * EVERY and top - seen < WORTH * (bar - top)):
                break
            seen = top
    base = form.yy - _allowed_slopes(G, c, sign, best, size, slope, score)
    top, last, following = _dual_value(base, score, choice, used, chosen)
    bound = max(bound, top)
    for a in range(size):
        point.u[at[a]] = best[a]
        point.z[at[a]] = z[a]
        if not free[a]:
            continue
        if chosen[a]:
            if top + score[a] - following > bar:
                status[at[a]] = INSIDE
        elif top + last - score[a] > bar and status[at[a]] == FREE:
            status[at[a]] = DROPPED
    return bound, value


@njit(cache=True, nogil=True)
def _inverse_costs(M, b, free, size, at, cost):
    """Fill `cost[at[a]] = b_a^2 / (M^{-1})_aa` of the free columns. O(size^3)."""
    L = M.copy()
    if not cholesky_in_place(L, size):
        return
    inverse = np.zeros((size, size))
    invert_lower(L, inverse, size)
    for a in range(size):
        if free[a] and b[a] != 0.0:
            s = 0.0
            for k in range(a, size):
                s += inverse[k, a] * inverse[k, a]
            cost[at[a]] = b[a] * b[a] / s


@njit(cache=True, nogil=True)
def _least_cost(cost, at, choice, size):
    """Return the least cost of dropping as many columns as the room and each cap demand: the largest m-th smallest."""
    free, group, cap, room = choice
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


@njit(cache=True, nogil=True)
def _dual_value(base, score, choice, used, chosen):
    """Return `base` less the scores of the included columns and the largest sum over free ones; see `_greedy`."""
    for a in range(score.shape[0]):
        if not choice.free[a]:
            base -= score[a]
    total, last, following = _greedy(np.argsort(-score), score, choice, used, chosen)
    return base - total, last, following
