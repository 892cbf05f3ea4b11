"""Local search over supports of every size: add, drop and exchange columns on a swept Gram matrix.

The tableau of a support S of s columns holds what the sweep operator leaves of `M = Q + diag(penalty)`:

    T = V M_S.     (s, q), V = M_S^{-1}; columns of S itself are unit vectors
    g = c - M_.S beta          what each column is still correlated with the residual (0 on S)
    d_j = M_jj - M_jS V M_Sj   what S does not explain of column j (0 on S)

so that adding j lowers f by `g_j^2 / d_j`, dropping i raises it by `beta_i^2 / V_ii`, and exchanging i for j changes it
by `beta_i^2 / V_ii - (g_j + T_ij beta_i / V_ii)^2 / (d_j + T_ij^2 / V_ii)`. Every change of S costs O(s q), looking at
every exchange as much. Columns need no case of their own: those of S stay unit vectors with g = d = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

FLAT = 1e-12  # share of a column's own length below which nothing of it is left to add
BETTER = 1e-9  # relative; less is rounding
MOST_EXCHANGES = 60  # of one support


class Moments(NamedTuple):
    """Training moments and penalty: `M = Q + diag(penalty)`, `f(S) = yy - c_S' M_S^{-1} c_S`."""

    Q: np.ndarray
    penalty: np.ndarray
    c: np.ndarray
    yy: float


class Tableau(NamedTuple):
    """Scratch of one search.

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
    """Room for supports of up to `top` of q columns."""
    return Tableau(
        np.zeros((top, q)), np.zeros((top, top)), np.zeros(top), np.zeros(q), np.zeros(q), np.zeros(q), np.zeros(q),
        np.zeros(top, dtype=np.int64), np.zeros(1), np.zeros(1, dtype=np.int64), np.zeros(1),
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def clear(t, moments):
    """Empty support. O(q)."""
    Q, penalty, c = moments.Q, moments.penalty, moments.c
    t.size[0] = 0
    t.now[0] = moments.yy
    for j in range(c.shape[0]):
        t.g[j] = c[j]
        t.d[j] = Q[j, j] + penalty[j]
        t.floor[j] = FLAT * t.d[j] if t.d[j] > 0.0 else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def add(t, moments, j):
    """Put column j in. O(s q).

    Parameters
    ----------
    t : Tableau
    moments : Moments
    j : int
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
    for a in range(s):  # by the columns of T before they change
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
    """Take the column in place a out. O(s q)."""
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
    if a != s:  # the last one takes the empty place
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
    """Build the tableau of a support; False if its columns are dependent to rounding. O(s^2 q).

    Parameters
    ----------
    t : Tableau
    moments : Moments
    columns : int array
    size : int
        How many entries of it count.
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
    """Column whose addition lowers f most, -1 if there is none. O(q)."""
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
    """Place of the column whose removal raises f least. O(s)."""
    least = np.inf
    pick = 0
    for a in range(t.size[0]):
        cost = t.beta[a] * t.beta[a] / t.V[a, a]
        if cost < least:
            least = cost
            pick = a
    return pick


@njit(cache=True, nogil=True, error_model="numpy")
def exchange(t, moments):
    """Exchange one column at a time, the best pair first, until none lowers f. O(s q) a look."""
    q = t.g.shape[0]
    g, d, row, floor = t.g, t.d, t.row, t.floor
    for _ in range(MOST_EXCHANGES):
        s = t.size[0]
        t.work[0] += 3.0 * s * q
        most = BETTER * abs(t.now[0])
        out = np.int64(-1)  # a literal would compile `drop` and `add` a second time
        into = np.int64(-1)
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
