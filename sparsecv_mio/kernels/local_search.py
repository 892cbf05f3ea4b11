"""Initial supports of one fold for all sizes and gammas, by local search with the sweep operator.

The search first adds and drops single columns until it has passed through all sizes. Then the search exchanges columns.
Finally it drops each column of a support in turn and exchanges columns, first with the dropped column excluded, then
with this column allowed. The best supports are stored by gamma and size. Let S be a support of s columns, Q the Gram
matrix, c the products of the columns with the target, and `M = Q + diag(penalty)`. The sweep operator on M gives

    T = V M_S.     (s, q), V = M_S^{-1}; columns of S itself are unit vectors
    g = c - M_.S beta          correlation of each column with the residual (0 on S)
    d_j = M_jj - M_jS V M_Sj   part of column j that S does not explain (0 on S)

with beta the fit of S. Adding j lowers f by `g_j^2 / d_j`, and dropping i raises f by `beta_i^2 / V_ii`. If j replaces
i in S, f changes by `beta_i^2 / V_ii - (g_j + T_ij beta_i / V_ii)^2 / (d_j + T_ij^2 / V_ii)`. Every change of S takes
O(s q) operations, as does the evaluation of all exchanges. The columns of S need no special treatment, because their
columns of T are unit vectors, and their g and d are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import copy_vector
from sparsecv_mio.kernels.jit import FIRST_INDEX, NO_INDEX, int_constant, njit

MIN_LENGTH_LEFT = 1e-12  # share of a column's length left by a support, below which the column is not added
BETTER = 1e-9  # minimum relative improvement; less is rounding
MOST_EXCHANGES = int_constant(60)  # maximum number of exchanges of one support


class PenalisedMoments(NamedTuple):
    """Training moments and penalty: `M = Q + diag(penalty)`, `f(S) = yy - c_S' M_S^{-1} c_S`."""

    Q: np.ndarray
    penalty: np.ndarray
    c: np.ndarray
    yy: float


class Tableau(NamedTuple):
    """Work arrays of one search.

    `members[:s]` are the columns of S, `now` is (f(S),), `size` is (s,), `work` counts multiplications.
    """

    T: np.ndarray
    V: np.ndarray
    beta: np.ndarray
    g: np.ndarray
    d: np.ndarray
    floor: np.ndarray
    row: np.ndarray
    members: np.ndarray
    now: np.ndarray
    size: np.ndarray
    work: np.ndarray


def new_tableau(q: int, top: int) -> Tableau:
    """Return a tableau for supports of up to `top` of q columns."""
    return Tableau(
        np.zeros((top, q)), np.zeros((top, top)), np.zeros(top), np.zeros(q), np.zeros(q), np.zeros(q), np.zeros(q),
        np.zeros(top, dtype=np.int64), np.zeros(1), np.zeros(1, dtype=np.int64), np.zeros(1),
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def clear(t, moments):
    """Make the support empty. O(q)."""
    Q, penalty, c = moments.Q, moments.penalty, moments.c
    t.size[0] = 0
    t.now[0] = moments.yy
    for j in range(c.shape[0]):
        t.g[j] = c[j]
        t.d[j] = Q[j, j] + penalty[j]
        t.floor[j] = MIN_LENGTH_LEFT * t.d[j] if t.d[j] > 0.0 else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def add(t, moments, j):
    """Add column j. O(s q).

    Parameters
    ----------
    t : Tableau
        Tableau.
    moments : PenalisedMoments
        Moments and penalty.
    j : int
        Column.
    """
    Q, penalty = moments.Q, moments.penalty
    s = t.size[0]
    q = t.g.shape[0]
    T, g, d, row = t.T, t.g, t.d, t.row
    for k in range(q):
        row[k] = Q[j, k]
    row[j] += penalty[j]
    for a in range(s):
        m = Q[j, t.members[a]]
        for k in range(q):
            row[k] -= m * T[a, k]
    t.work[0] += 2.0 * (s + 1) * q
    w = 1.0 / d[j]
    b = g[j] * w
    t.now[0] -= b * g[j]
    for a in range(s):  # uses the columns of T before they change
        h = T[a, j]
        t.beta[a] -= h * b
        for e in range(s):
            t.V[a, e] += h * w * T[e, j]
        t.V[a, s] = -h * w
        t.V[s, a] = -h * w
    t.V[s, s] = w
    t.beta[s] = b
    for k in range(q):
        g[k] -= b * row[k]
        d[k] -= w * row[k] * row[k]
        row[k] *= w
    for a in range(s):
        h = T[a, j]
        for k in range(q):
            T[a, k] -= h * row[k]
    for k in range(q):
        T[s, k] = row[k]
    for a in range(s):
        T[a, j] = 0.0
    T[s, j] = 1.0
    g[j] = 0.0
    d[j] = 0.0
    t.members[s] = j
    t.size[0] = s + 1


@njit(cache=True, nogil=True, error_model="numpy")
def drop(t, a):
    """Drop the column at position a. O(s q)."""
    s = t.size[0] - 1
    q = t.g.shape[0]
    T, V = t.T, t.V
    t.work[0] += (s + 1.0) * q
    w = 1.0 / V[a, a]
    b = t.beta[a] * w
    t.now[0] += t.beta[a] * b
    for k in range(q):
        h = T[a, k]
        t.g[k] += h * b
        t.d[k] += h * h * w
    for e in range(s + 1):
        if e != a:
            h = V[e, a] * w
            t.beta[e] -= V[e, a] * b
            for k in range(q):
                T[e, k] -= h * T[a, k]
    for e in range(s + 1):
        if e != a:
            h = V[e, a] * w
            for f in range(s + 1):
                if f != a:
                    V[e, f] -= h * V[a, f]
    if a != s:  # the last column takes the empty position
        for k in range(q):
            T[a, k] = T[s, k]
        for e in range(s):
            V[a, e] = V[s, e]
        for e in range(s):
            V[e, a] = V[e, s]
        V[a, a] = V[s, s]
        t.beta[a] = t.beta[s]
        t.members[a] = t.members[s]
    t.size[0] = s


@njit(cache=True, nogil=True, error_model="numpy")
def load(t, moments, columns, size):
    """Build the tableau of a support; return False if its columns are dependent to rounding. O(s^2 q).

    Parameters
    ----------
    t : Tableau
        Tableau.
    moments : PenalisedMoments
        Moments and penalty.
    columns : int array
        Support.
    size : int
        Number of columns used.
    """
    clear(t, moments)
    for a in range(size):
        j = columns[a]
        if not t.d[j] > t.floor[j]:
            return False
        add(t, moments, j)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def best_to_add(t):
    """Return the column whose addition lowers f most, -1 if there is none. O(q)."""
    most = -1.0
    pick = -1
    for j in range(t.g.shape[0]):
        if t.d[j] > t.floor[j]:
            gain = t.g[j] * t.g[j] / t.d[j]
            if gain > most:
                most = gain
                pick = j
    return pick


@njit(cache=True, nogil=True, error_model="numpy")
def cheapest_to_drop(t):
    """Return the position of the column whose removal raises f least. O(s)."""
    least = np.inf
    pick = 0
    for a in range(t.size[0]):
        cost = t.beta[a] * t.beta[a] / t.V[a, a]
        if cost < least:
            least = cost
            pick = a
    return pick


@njit(cache=True, nogil=True, error_model="numpy")
def exchange(t, moments, rounds):
    """Exchange single columns, the best pair first, until none lowers f, at most `rounds` times. O(s q) a round."""
    q = t.g.shape[0]
    g, d, row, floor = t.g, t.d, t.row, t.floor
    for _ in range(rounds):
        s = t.size[0]
        t.work[0] += 3.0 * s * q
        most = BETTER * abs(t.now[0])
        out, into = NO_INDEX, NO_INDEX
        for a in range(s):
            w = 1.0 / t.V[a, a]
            b = t.beta[a] * w
            least = b * t.beta[a] + most
            for k in range(q):
                h = t.T[a, k]
                u = g[k] + h * b
                v = d[k] + h * h * w
                row[k] = u * u / v if v > floor[k] else 0.0
            for k in range(q):
                if row[k] > least:
                    least = row[k]
                    out = a
                    into = k
            most = max(most, least - b * t.beta[a])
        if out < 0 or into == t.members[out]:
            return
        back = t.members[out]
        drop(t, out)
        if not d[into] > floor[into]:
            add(t, moments, back)
            return
        add(t, moments, into)


NEW_WALK, UP, DOWN = range(3)  # next direction of a walk
MOST_WALKS = 8  # maximum number of walks up and down at one gamma
LARGEST_PENALTY = 1e290  # maximum penalty: this one makes every coefficient zero already


class BestKnown(NamedTuple):
    """The best supports known, by size, or by gamma and size.

    Attributes
    ----------
    value : (top + 1,) or (G, top + 1) array
        Smallest f found.
    columns : (top + 1, top) or (G, top + 1, top) int array
        Supports; -1 beyond the size.
    settled : (top + 1,) or (G, top + 1) bool array
        True if exchanges no longer helped.
    """

    value: np.ndarray
    columns: np.ndarray
    settled: np.ndarray


@njit(cache=True, nogil=True)
def supports_at_gamma(found, g):
    """Return the best supports at one gamma."""
    return BestKnown(found.value[g], found.columns[g], found.settled[g])


@njit(cache=True, nogil=True, error_model="numpy")
def penalise_moments(moments, lam):
    """Return the moments with `lam` times the penalty, at most LARGEST_PENALTY. O(q)."""
    penalty = np.empty(moments.penalty.shape[0])
    for j in range(penalty.shape[0]):
        penalty[j] = min(lam * moments.penalty[j], LARGEST_PENALTY)
    return PenalisedMoments(moments.Q, penalty, moments.c, moments.yy)


@njit(cache=True, nogil=True, error_model="numpy")
def _keep(t, found):
    """Store the support if it is the best of its size; return True if it is."""
    s = t.size[0]
    if found.value[s] < np.inf and not t.now[0] < found.value[s] - BETTER * abs(found.value[s]):
        return False
    found.value[s] = t.now[0]
    for a in range(s):
        found.columns[s, a] = t.members[a]
    found.settled[s] = True
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(t, moments, found):
    """Improve the present support, then continue with the best known one of its size; return True if one is new."""
    exchange(t, moments, MOST_EXCHANGES)
    s = t.size[0]
    if _keep(t, found):
        return True
    if t.now[0] > found.value[s] + BETTER * abs(found.value[s]):
        if not load(t, moments, found.columns[s], s):
            found.value[s] = np.inf
            return False
        if not found.settled[s]:
            exchange(t, moments, MOST_EXCHANGES)
            if _keep(t, found):
                return True
    found.settled[s] = True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def _are_all_settled(settled):
    """Return True if every size above 0 is settled."""
    for s in range(1, settled.shape[0]):
        if not settled[s]:
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(t, moments, found, phase, work):
    """Walk up and down the sizes until nothing improves (True) or the work limit is reached (False: call again)."""
    top = found.value.shape[0] - 1
    while True:
        if phase[1] == NEW_WALK:
            clear(t, moments)
            phase[1] = UP
            phase[2] = 0  # something improved
            phase[4] = 0  # steps
        j = NO_INDEX
        if phase[1] == UP and t.size[0] < top and phase[4] < 4 * top:
            j = best_to_add(t)
        if j >= 0:
            add(t, moments, j)
        else:
            phase[1] = DOWN
            if t.size[0] <= 1 or phase[4] >= 8 * top:
                phase[1] = NEW_WALK
                phase[3] += 1
                if phase[2] == 0 or phase[3] >= MOST_WALKS:
                    return True
                continue
            drop(t, cheapest_to_drop(t))
        phase[4] += 1
        if _turn(t, moments, found):
            phase[2] = 1
        if t.work[0] > work:
            return False


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(t, moments, lams, found, order, phase, work):
    """Walk at every gamma of `order` in turn, each starting from the results of the previous one.

    Parameters
    ----------
    t : Tableau
        Tableau.
    moments : PenalisedMoments
        Moments of one fold, with the penalty weights of the columns.
    lams : (G,) array
        Ridge weights.
    found : BestKnown
        Best supports by gamma and size; improved in place.
    order : (m,) int
        Gammas to visit.
    phase : (5,) int
        State of the sweep, zeros at first.
    work : float
        Number of multiplications after which it stops.

    Returns
    -------
    bool
        True at the end of `order`, False if the work limit is reached: call again with the same `t` and `phase`.
    """
    t.work[0] = 0.0
    while phase[0] < order.shape[0]:
        g = order[phase[0]]
        priced, here = penalise_moments(moments, lams[g]), supports_at_gamma(found, g)
        if phase[1] == NEW_WALK and phase[3] == 0 and phase[0] > 0:
            _try(priced, found.columns[order[phase[0] - 1]], here)
        if (phase[1] != NEW_WALK or phase[3] > 0 or not _are_all_settled(here.settled)) and not _walk(
            t, priced, here, phase, work
        ):
            return False
        phase[0] += 1
        phase[1] = NEW_WALK
        phase[3] = 0
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def keep_out(t, saved, moments, found, size, worst):
    """Drop each column of the best support of a size, exchange without it, then with it; return True if that helped.

    Replacements that leave f above `worst` times the best are not followed, because strong columns would come back.

    Parameters
    ----------
    t, saved : Tableau
        Work tableaus.
    moments : PenalisedMoments
        Moments and penalty at the gamma in question.
    found : BestKnown
        Best supports at that gamma; improved in place.
    size : int
        Size.
    worst : float
        Maximum ratio of f to the best one.
    """
    if size < 1 or not found.value[size] < np.inf:
        return False
    better = False
    a = FIRST_INDEX
    fresh = True
    while a < size:
        if fresh:
            if not load(saved, moments, found.columns[size], size):
                return better
            fresh = False
        _copy(saved, t)
        j = t.members[a]
        a += 1
        drop(t, a - 1)
        floor = t.floor[j]
        t.floor[j] = np.inf
        k = best_to_add(t)
        if k >= 0:
            add(t, moments, k)
            if t.now[0] <= worst * found.value[size]:
                exchange(t, moments, MOST_EXCHANGES)
                t.floor[j] = floor
                exchange(t, moments, MOST_EXCHANGES)
                if t.size[0] == size and _keep(t, found):
                    better = True
                    fresh = True
                    a = 0
        t.floor[j] = floor
    return better


@njit(cache=True, nogil=True, error_model="numpy")
def _copy(source, target):
    """Copy a tableau. O(s q)."""
    for a in range(source.size[0]):
        copy_vector(source.T[a], target.T[a])
        copy_vector(source.V[a], target.V[a])
    copy_vector(source.beta, target.beta)
    copy_vector(source.members, target.members)
    copy_vector(source.g, target.g)
    copy_vector(source.d, target.d)
    copy_vector(source.floor, target.floor)
    copy_vector(source.now, target.now)
    copy_vector(source.size, target.size)


@njit(cache=True, nogil=True, error_model="numpy")
def support_fit(moments, columns, size, L, x):
    """Fill x[:size] with the ridge fit of one support by Cholesky; return the decrease of f. O(s^3 / 6).

    A column that depends on those before it to rounding gets the coefficient 0.

    Parameters
    ----------
    moments : PenalisedMoments
        Moments and penalty.
    columns : int array
        Support.
    size : int
        Number of columns used.
    L, x : (size, size), (size,) arrays or larger
        Work array, and array to fill.
    """
    Q, penalty, c = moments.Q, moments.penalty, moments.c
    total = 0.0
    for a in range(size):
        i = columns[a]
        length = Q[i, i] + penalty[i]
        least = MIN_LENGTH_LEFT * length
        u = c[i]
        for b in range(a):
            h = Q[i, columns[b]]
            for e in range(b):
                h -= L[a, e] * L[b, e]
            h *= L[b, b]  # L[b, b] is the inverse of the square root
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
def _support_size(columns):
    """Return the length of a support, which has -1 beyond it."""
    for a in range(columns.shape[0]):
        if columns[a] < 0:
            return a
    return columns.shape[0]


@njit(cache=True, nogil=True, error_model="numpy")
def _try(moments, seeds, found):
    """Evaluate supports `seeds` (m, top), -1 beyond their size, and keep each that beats the best of its size."""
    value, columns, settled = found
    top = value.shape[0] - 1
    L = np.empty((top, top))
    x = np.empty(top)
    for r in range(seeds.shape[0]):
        size = _support_size(seeds[r])
        if size == 0:
            continue
        f = moments.yy - support_fit(moments, seeds[r], size, L, x)
        if value[size] == np.inf or f < value[size] - BETTER * abs(value[size]):
            value[size] = f
            for a in range(size):
                columns[size, a] = seeds[r, a]
            settled[size] = False


@njit(cache=True, nogil=True, error_model="numpy")
def try_seed_supports(moments, lams, at, seeds, found):
    """Evaluate supports and keep each that is better than the best of its size.

    Parameters
    ----------
    moments, lams, found
        Moments, ridge weights and best supports, as for `sweep`.
    at : (m,) int array
        Index of the gamma at which each is evaluated, -1 for every gamma.
    seeds : (m, top) int array
        Supports; -1 beyond the size.

    Notes
    -----
    O(m s^3 / 6) for each gamma.
    """
    for g in range(lams.shape[0]):
        priced, here = penalise_moments(moments, lams[g]), supports_at_gamma(found, g)
        for r in range(seeds.shape[0]):
            if at[r] == g or at[r] < 0:
                _try(priced, seeds[r : r + 1], here)


@njit(cache=True, nogil=True, error_model="numpy")
def score(moments, lams, columns, taus, V, r, objective, held_out):
    """Fit supports and evaluate them on held-out rows.

    Parameters
    ----------
    moments, lams
        Moments and ridge weights, as for `sweep`.
    columns : (G, T, top) int array
        Supports.
    taus : (T,) int array
        Sizes, at most `top`.
    V, r : (m, q), (m,) arrays
        Held-out rows minus the training means.
    objective, held_out : (G, T) arrays
        Arrays to fill with f and the sums of squares.
    """
    top = columns.shape[2]
    L = np.empty((top, top))
    x = np.empty(top)
    for g in range(lams.shape[0]):
        priced = penalise_moments(moments, lams[g])
        for k in range(taus.shape[0]):
            S = columns[g, k]
            size = min(taus[k], top)
            objective[g, k] = max(moments.yy - support_fit(priced, S, size, L, x), 0.0)
            total = 0.0
            for i in range(r.shape[0]):
                e = r[i]
                for a in range(size):
                    e -= V[i, S[a]] * x[a]
                total += e * e
            held_out[g, k] = total
