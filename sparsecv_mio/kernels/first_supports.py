"""First supports of one fold for all sizes and gammas: walks over the sizes, exchanges, columns kept out in turn.

What is known is held by gamma and size: `value` (G, top + 1) the least f found, `columns` (G, top + 1, top) where it
was found (-1 beyond the size), `settled` (G, top + 1) whether exchanges were seen to help no more.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.exchange import (
    BETTER,
    FLAT,
    add,
    best_to_add,
    cheapest_to_drop,
    clear,
    drop,
    exchange,
    load,
)

START, UP, DOWN = 0, 1, 2  # what a walk does next
MOST_WALKS = 8  # up and down, of one gamma
LARGEST_PENALTY = 1e290  # one beyond leaves no coefficient either way


@njit(cache=True, nogil=True, error_model="numpy")
def _keep(t, value, columns, settled):
    """Remember the support if it is the best of its size; True if it is."""
    s = t.size[0]
    if value[s] < np.inf and not t.now[0] < value[s] - BETTER * abs(value[s]):
        return False
    value[s] = t.now[0]
    for a in range(s):
        columns[s, a] = t.members[a]
    settled[s] = True
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(t, Q, penalty, c, yy, value, columns, settled):
    """Improve the present support, then go on with the best known one of its size; True if one is new."""
    exchange(t, Q, penalty)
    s = t.size[0]
    if _keep(t, value, columns, settled):
        return True
    if t.now[0] > value[s] + BETTER * abs(value[s]):
        if not load(t, Q, penalty, c, yy, columns[s], s):
            value[s] = np.inf
            return False
        if not settled[s]:
            exchange(t, Q, penalty)
            if _keep(t, value, columns, settled):
                return True
    settled[s] = True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def _all_settled(settled):
    """Whether every size above 0 is."""
    for s in range(1, settled.shape[0]):
        if not settled[s]:
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(t, Q, penalty, c, yy, value, columns, settled, phase, work):
    """Walk up and down the sizes until nothing improves (True) or the work is done (False: call again)."""
    top = value.shape[0] - 1
    while True:
        if phase[1] == START:
            clear(t, Q, penalty, c, yy)
            phase[1] = UP
            phase[2] = 0  # something improved
            phase[4] = 0  # steps
        j = np.int64(-1)
        if phase[1] == UP and t.size[0] < top and phase[4] < 4 * top:
            j = best_to_add(t)
        if j >= 0:
            add(t, Q, penalty, j)
        else:
            phase[1] = DOWN
            if t.size[0] <= 1 or phase[4] >= 8 * top:
                phase[1] = START
                phase[3] += 1
                if phase[2] == 0 or phase[3] >= MOST_WALKS:
                    return True
                continue
            drop(t, cheapest_to_drop(t))
        phase[4] += 1
        if _turn(t, Q, penalty, c, yy, value, columns, settled):
            phase[2] = 1
        if t.work[0] > work:
            return False


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(t, Q, weight, c, yy, lams, value, columns, settled, order, phase, work):
    """Walk at every gamma of `order` in turn, each from what the one before found.

    Parameters
    ----------
    t : Tableau
    Q, weight, c, yy : (q, q), (q,), (q,), float
        Training moments and penalty weights of one fold.
    lams : (G,)
    value, columns, settled : (G, top + 1), (G, top + 1, top), (G, top + 1)
        Improved in place.
    order : (m,) int
        Gammas to visit.
    phase : (5,) int
        Zeros at first; where the sweep stands.
    work : float
        Multiplications after which it stops.

    Returns
    -------
    bool
        True at the end of `order`, False where the work is done: call again with the same `t` and `phase`.
    """
    t.work[0] = 0.0
    q = c.shape[0]
    penalty = np.empty(q)
    while phase[0] < order.shape[0]:
        g = order[phase[0]]
        for j in range(q):
            penalty[j] = min(lams[g] * weight[j], LARGEST_PENALTY)
        if phase[1] == START and phase[3] == 0 and phase[0] > 0:
            before = order[phase[0] - 1]
            _try(Q, penalty, c, yy, columns[before], value[g], columns[g], settled[g])
        if (phase[1] != START or phase[3] > 0 or not _all_settled(settled[g])) and not _walk(
            t, Q, penalty, c, yy, value[g], columns[g], settled[g], phase, work
        ):
            return False
        phase[0] += 1
        phase[1] = START
        phase[3] = 0
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def keep_out(t, saved, Q, penalty, c, yy, value, columns, settled, size, worst):
    """Force each column of the best support of a size out, exchange without it, then with it; True if that helped.

    Replacements that leave f above `worst` times the best are not followed: strong columns come back.
    """
    if size < 1 or not value[size] < np.inf:
        return False
    found = False
    a = np.int64(0)
    fresh = True
    while a < size:
        if fresh:
            if not load(saved, Q, penalty, c, yy, columns[size], size):
                return found
            fresh = False
        _copy(saved, t)
        j = t.members[a]
        a += 1
        drop(t, a - 1)
        floor = t.floor[j]
        t.floor[j] = np.inf
        k = best_to_add(t)
        if k >= 0:
            add(t, Q, penalty, k)
            if t.now[0] <= worst * value[size]:
                exchange(t, Q, penalty)
                t.floor[j] = floor
                exchange(t, Q, penalty)
                if t.size[0] == size and _keep(t, value, columns, settled):
                    found = True
                    fresh = True
                    a = 0
        t.floor[j] = floor
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _copy(source, target):
    """Copy a tableau. O(s q)."""
    s = source.size[0]
    for a in range(s):
        for k in range(source.g.shape[0]):
            target.T[a, k] = source.T[a, k]
        for b in range(s):
            target.V[a, b] = source.V[a, b]
        target.beta[a] = source.beta[a]
        target.members[a] = source.members[a]
    for k in range(source.g.shape[0]):
        target.g[k] = source.g[k]
        target.d[k] = source.d[k]
        target.floor[k] = source.floor[k]
    target.now[0] = source.now[0]
    target.size[0] = s


@njit(cache=True, nogil=True, error_model="numpy")
def support_fit(Q, penalty, c, columns, size, L, x):
    """Ridge fit of one support by Cholesky: x[:size] becomes its coefficients. Returns the drop in f. O(s^3 / 6).

    A column that depends on those before it to rounding gets coefficient 0.
    """
    total = 0.0
    for a in range(size):
        i = columns[a]
        length = Q[i, i] + penalty[i]
        least = FLAT * length
        u = c[i]
        for b in range(a):
            h = Q[i, columns[b]]
            for e in range(b):
                h -= L[a, e] * L[b, e]
            h *= L[b, b]  # the inverse of the root
            L[a, b] = h
            length -= h * h
            u -= h * x[b]
        if length > least:
            L[a, a] = 1.0 / np.sqrt(length)
            x[a] = u * L[a, a]
            total += x[a] * x[a]
        else:
            L[a, a] = 0.0
            x[a] = 0.0
    for a in range(size - 1, -1, -1):
        h = x[a]
        for b in range(a + 1, size):
            h -= L[b, a] * x[b]
        x[a] = h * L[a, a]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _size_of(columns):
    """Length of a support, -1 beyond it."""
    for a in range(columns.shape[0]):
        if columns[a] < 0:
            return a
    return columns.shape[0]


@njit(cache=True, nogil=True, error_model="numpy")
def _try(Q, penalty, c, yy, seeds, value, columns, settled):
    """Evaluate supports `seeds` (m, top), -1 beyond their size, and keep each that beats the best of its size."""
    top = value.shape[0] - 1
    L = np.empty((top, top))
    x = np.empty(top)
    for r in range(seeds.shape[0]):
        size = _size_of(seeds[r])
        if size == 0:
            continue
        f = yy - support_fit(Q, penalty, c, seeds[r], size, L, x)
        if value[size] == np.inf or f < value[size] - BETTER * abs(value[size]):
            value[size] = f
            for a in range(size):
                columns[size, a] = seeds[r, a]
            settled[size] = False


@njit(cache=True, nogil=True, error_model="numpy")
def try_supports_at(Q, weight, c, yy, lams, at, seeds, value, columns, settled):
    """Evaluate each of `seeds` (m, top) at the gamma `at[m]`, at every gamma where that is -1. O(m s^3 / 6)."""
    q = c.shape[0]
    penalty = np.empty(q)
    for g in range(lams.shape[0]):
        for j in range(q):
            penalty[j] = min(lams[g] * weight[j], LARGEST_PENALTY)
        for r in range(seeds.shape[0]):
            if at[r] == g or at[r] < 0:
                _try(Q, penalty, c, yy, seeds[r : r + 1], value[g], columns[g], settled[g])


@njit(cache=True, nogil=True, error_model="numpy")
def score(Q, weight, c, yy, lams, columns, taus, V, r, objective, held_out):
    """Fill f (G, T) and the sums of squares of held-out rows `V` (m, q), `r` (m,), both less the training means."""
    top = columns.shape[2]
    q = c.shape[0]
    penalty = np.empty(q)
    L = np.empty((top, top))
    x = np.empty(top)
    for g in range(lams.shape[0]):
        for j in range(q):
            penalty[j] = min(lams[g] * weight[j], LARGEST_PENALTY)
        for k in range(taus.shape[0]):
            S = columns[g, k]
            size = min(taus[k], top)
            objective[g, k] = max(yy - support_fit(Q, penalty, c, S, size, L, x), 0.0)
            total = 0.0
            for i in range(r.shape[0]):
                e = r[i]
                for a in range(size):
                    e -= V[i, S[a]] * x[a]
                total += e * e
            held_out[g, k] = total
