"""The perspective relaxation with intervals of the coefficients and clusters of columns (theory section 4).

In normal form, `M = G + I` with G positive semidefinite. Let some columns form disjoint sets, the *clusters*. The
supports S have k columns, with at least one column of each cluster. The coefficients satisfy `lo_j <= b_j <= hi_j`,
where `lo_j <= 0 <= hi_j`. For any point b0 and `g = c - G b0`

    f(S) >= D = yy - b0'G b0 - max { sum_S h_j },      h_j = -min { b^2 - 2 g_j b : lo_j <= b <= hi_j } >= 0,

with the maximum over these supports S. The maximum is the sum of the largest h_j of every cluster and of the largest
other h_j, k in total. Other disjoint sets of columns may have a limit on the number of their columns in a support. The
maximum then uses at most as many h_j of such a set as its limit, the largest ones. As a function of g_j, h_j is `g_j^2`
as long as the interval does not bind, and linear beyond.

The point b0 is found by accelerated proximal gradient steps. Let v be the point after a gradient step, and s the length
of the proximal step. With a number r for all columns, the weight of column j is `|v_j| / r - s`. If the interval of
column j binds, with u its bound on the side of v_j, the weight is `|v_j| / u - s (r^2 + u^2) / (2 u^2)`. Weights are
clipped to [0, 1]. In a cluster, r is replaced by the number for which the weights of the columns of the cluster sum to
1, if this number is smaller. In a set with a limit, r is replaced by the number for which the weights of the columns of
the set sum to the limit, if this number is larger.

A *term* is a column, or several columns that enter together. The h of a term is the sum of the h_j of its columns. All
columns of a term have the same weight: in the formulas for the weight, `|v_j|` is replaced by the Euclidean norm of v
on the columns of the term. All statements above then hold for terms, with k and clusters counted in terms. For a term
of several columns, the formula for the weight uses the bounds on the coefficients that are 0, and ignores all other
bounds. D stays valid, because every point b0 gives a valid D.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import copy_vector
from sparsecv_mio.kernels.jit import NO_INDEX, njit
from sparsecv_mio.kernels.k_support import largest_places
from sparsecv_mio.kernels.nodes import DROPPED, INSIDE

LOOK = 5  # steps between two evaluations of the dual value
WEIGHT_ACCURACY = 1e-10  # relative accuracy of the sum of the weights
DIVERGED = 4.0  # value, in units of yy, that shows that the step is too long for the curvature
NO_CLUSTER = -1
NO_MOST = np.zeros(0, dtype=np.int64)
NO_TERM = np.zeros(0, dtype=np.int64)  # every column is a separate term
LEAST_SCALE = 1e-150


class BoxEnds(NamedTuple):
    """Bounds on the coefficients: `lo <= 0 <= hi`, (q,) each, infinite if unknown."""

    lo: np.ndarray
    hi: np.ndarray


class ClusterChoice(NamedTuple):
    """Supports of at most k columns with at least one of every cluster, and limited numbers of other sets.

    Attributes
    ----------
    cluster : (q,) int64 array
        Number of a column's cluster, `asked` and more for the sets with a maximum, or NO_CLUSTER.
    asked : int
        Number of clusters, none of them empty.
    k : int
        Maximum number of columns, `asked <= k <= q`.
    most : int64 array
        Maximum number of columns of each further set.
    term : (q,) int64 array
        Index of a column's term, to which `cluster`, `k` and `most` then refer; NO_TERM if every column is a term.
    """

    cluster: np.ndarray
    asked: int
    k: int
    most: np.ndarray
    term: np.ndarray


class BestChoice(NamedTuple):
    """A largest sum over the supports of a choice.

    Attributes
    ----------
    total : float
        The sum.
    first, second : (asked,) arrays
        Chosen column of every cluster, and the next best value there (-inf for a single column).
    taken : (q,) bool array
        Other chosen columns.
    least, beyond : float
        Smallest value of the other chosen columns (inf if there may be none, 0 if more may be chosen), and the largest
        value that is not chosen; -inf if there is none.
    """

    total: float
    first: np.ndarray
    second: np.ndarray
    taken: np.ndarray
    least: float
    beyond: float


@njit(cache=True, nogil=True)
def product(G, b, out):
    """Fill `out = G b` by the rows of the nonzero entries; return `b'G b`. O(q nnz(b)).

    Parameters
    ----------
    G : (q, q) array
        Matrix.
    b, out : (q,) arrays
        Vector, and array to fill.
    """
    q = b.shape[0]
    for i in range(q):
        out[i] = 0.0
    for j in range(q):
        x = b[j]
        if x != 0.0:
            row = G[j]
            for i in range(q):
                out[i] += row[i] * x
    s = 0.0
    for j in range(q):
        s += b[j] * out[j]
    return s


@njit(cache=True, nogil=True)
def scores(g, box, h):
    """Fill the `h_j` defined in the module. O(q).

    Parameters
    ----------
    g : (q,) array
        Slopes.
    box : BoxEnds
        Bounds on the coefficients.
    h : (q,) array
        Array to fill.
    """
    for j in range(g.shape[0]):
        x = g[j]
        end = min(max(x, box.lo[j]), box.hi[j])
        h[j] = 2.0 * x * end - end * end


@njit(cache=True, nogil=True)
def sum_by_term(h, choice, total):
    """Fill `total` with the sum of h over the columns of each term. O(q).

    Parameters
    ----------
    h : (q,) array
        Scores of columns.
    choice : ClusterChoice
        Supports.
    total : (terms,) array
        Array to fill.
    """
    if choice.term.shape[0] == 0:
        copy_vector(h, total)
        return
    for t in range(total.shape[0]):
        total[t] = 0.0
    for j in range(h.shape[0]):
        total[choice.term[j]] += h[j]


@njit(cache=True, nogil=True)
def best_choice(h, choice):
    """Maximise the sum of h over the supports of a choice. O(q + k moves); with sets that have a maximum O(q log q).

    The sets do not overlap, so taking columns in the order of falling h is optimal (a truncated partition matroid).

    Parameters
    ----------
    h : (q,) array
        Scores of columns.
    choice : ClusterChoice
        Supports.
    """
    q, count, k = h.shape[0], choice.asked, choice.k
    first = np.full(count, -1, dtype=np.int64)
    second = np.full(count, -np.inf)
    total = 0.0
    for j in range(q):
        i = choice.cluster[j]
        if 0 <= i < count:
            if first[i] < 0 or h[j] > h[first[i]]:
                if first[i] >= 0:
                    second[i] = h[first[i]]
                first[i] = j
            elif h[j] > second[i]:
                second[i] = h[j]
    rest, places, held = np.empty(q), np.empty(q, dtype=np.int64), 0
    for j in range(q):
        i = choice.cluster[j]
        if i < 0 or i >= count or first[i] != j:
            rest[held], places[held] = h[j], j
            held += 1
    for i in range(count):
        total += h[first[i]]
    slots, sets = k - count, choice.most.shape[0]
    look = held if sets > 0 else min(slots + 1, held)
    order, left, taken = np.empty(look, dtype=np.int64), choice.most.copy(), np.zeros(q, dtype=np.bool_)
    largest_places(rest, held, look, order)
    least, beyond = np.inf if slots == 0 else 0.0, 0.0 if sets > 0 else -np.inf
    for a in range(look):
        j = places[order[a]]
        i = choice.cluster[j] - count
        if slots > 0 and (i < 0 or left[i] > 0):
            slots -= 1
            if i >= 0:
                left[i] -= 1
            taken[j] = True
            total += h[j]
            if slots == 0:
                least = h[j]
        else:
            beyond = max(beyond, h[j])
    return BestChoice(total, first, second, taken, least, beyond)


@njit(cache=True, nogil=True)
def weight(a, end, r, step):
    """Return the weight z of a column in the proximal map: falling in r, clipped to [0, 1].

    Parameters
    ----------
    a : float
        `|v|`.
    end : float
        Bound of the interval on its side.
    r, step : float
        Numbers r and s of the module.
    """
    if a <= 0.0 or end <= 0.0:
        return 0.0
    if r <= 0.0:
        return 1.0
    z = a / r - step if r <= end else a / end - 0.5 * step * (r * r / (end * end) + 1.0)
    return min(max(z, 0.0), 1.0)


class ColumnLists(NamedTuple):
    """Columns by set: those of set i are `columns[start[i]:start[i + 1]]`, the last ones are in no set.

    `most` is the maximum number of columns of each set, -1 for a cluster.
    """

    columns: np.ndarray
    start: np.ndarray
    most: np.ndarray


@njit(cache=True, nogil=True)
def group_by_cluster(choice):
    """Return the columns of every cluster as lists. O(q).

    Parameters
    ----------
    choice : ClusterChoice
        Supports.
    """
    q, count = choice.cluster.shape[0], choice.asked + choice.most.shape[0]
    most = np.full(count, -1, dtype=np.int64)
    copy_vector(choice.most, most[choice.asked :])
    start = np.zeros(count + 2, dtype=np.int64)
    for j in range(q):
        i = choice.cluster[j]
        start[(i if i >= 0 else count) + 1] += 1
    for i in range(count + 1):
        start[i + 1] += start[i]
    place = start.copy()
    columns = np.empty(q, dtype=np.int64)
    for j in range(q):
        i = choice.cluster[j]
        i = i if i >= 0 else count
        columns[place[i]] = j
        place[i] += 1
    return ColumnLists(columns, start, most)


@njit(cache=True, nogil=True)
def _sum_weights(a, end, columns, r, step):
    """Return the sum of the weights of some columns, and its rate of fall in r."""
    total, slope = 0.0, 0.0
    for x in range(columns.shape[0]):
        j = columns[x]
        if a[j] <= 0.0 or end[j] <= 0.0:
            continue
        if r <= end[j]:
            z = a[j] / r - step
            fall = a[j] / (r * r)
        else:
            z = a[j] / end[j] - 0.5 * step * (r * r / (end[j] * end[j]) + 1.0)
            fall = step * r / (end[j] * end[j])
        if z >= 1.0:
            total += 1.0
        elif z > 0.0:
            total += z
            slope += fall
    return total, slope


@njit(cache=True, nogil=True)
def _sum_all(a, end, lists, caps, r, step):
    """Return both for all columns, with the r of a set limited by its cap, at which its weights sum to their limit."""
    count = caps.shape[0] - 1
    total, slope = _sum_weights(a, end, lists.columns[lists.start[count] : lists.start[count + 1]], r, step)
    for i in range(count):
        if lists.most[i] < 0 and r >= caps[i]:
            total += 1.0
        elif lists.most[i] >= 0 and r <= caps[i]:
            total += lists.most[i]
        else:
            more, fall = _sum_weights(a, end, lists.columns[lists.start[i] : lists.start[i + 1]], r, step)
            total += more
            slope += fall
    return total, slope


@njit(cache=True, nogil=True)
def _level(a, end, lists, caps, which, goal, step, guess):
    """Return the r at which the weights sum to `goal`: of cluster `which`, or of all columns if negative; 0 if none."""
    top = 0.0
    usable = 0
    low, high = 0, lists.columns.shape[0]
    if which >= 0:
        low, high = lists.start[which], lists.start[which + 1]
    for x in range(low, high):
        j = lists.columns[x]
        if a[j] > 0.0 and end[j] > 0.0:
            usable += 1
            top = max(top, a[j])
    capped = which < 0 and lists.most.shape[0] > 0 and lists.most[-1] >= 0
    if usable <= goal or (capped and _sum_all(a, end, lists, caps, LEAST_SCALE, step)[0] <= goal):
        return 0.0
    lo, hi = 0.0, top / step
    if goal <= 0.0:
        return hi
    r = guess if lo < guess < hi else 0.5 * hi
    for _ in range(200):
        if which >= 0:
            total, slope = _sum_weights(a, end, lists.columns[low:high], r, step)
        else:
            total, slope = _sum_all(a, end, lists, caps, r, step)
        if abs(total - goal) <= WEIGHT_ACCURACY * goal:
            return r
        if total > goal:
            lo = r
        else:
            hi = r
        new = r + (total - goal) / slope if slope > 0.0 else lo
        if not (new > lo and new < hi):
            new = 0.5 * (lo + hi)
        if new == r:
            return r
        r = new
    return r


@njit(cache=True, nogil=True)
def proximal_map(v, step, box, choice, lists, caps, b, z):
    """Fill b and z with the proximal map of the penalty at v, and `caps` with the r of the sets and of all columns.

    Parameters
    ----------
    v : (q,) array
        Point.
    step : float
        Step s.
    box : BoxEnds
        Bounds on the coefficients.
    choice : ClusterChoice
        Supports.
    lists : ColumnLists
        Columns of the sets.
    caps : (sets + 1,) array
        Guesses, overwritten.
    b, z : (q,) arrays
        Arrays to fill.
    """
    q, count, terms = v.shape[0], lists.most.shape[0], choice.cluster.shape[0]
    a, end, weights = np.zeros(terms), np.full(terms, np.inf), np.zeros(terms)
    alone = choice.term.shape[0] == 0
    for j in range(q):
        side = box.hi[j] if v[j] > 0.0 else -box.lo[j]
        t = j if alone else choice.term[j]
        if alone or terms == q:
            a[t], end[t] = abs(v[j]), side
        elif side > 0.0:
            a[t] = np.hypot(a[t], v[j])
    for i in range(count):
        caps[i] = _level(a, end, lists, caps, i, float(abs(lists.most[i])), step, caps[i])
    r = caps[count] = _level(a, end, lists, caps, NO_INDEX, float(choice.k), step, caps[count])
    for t in range(terms):
        i = choice.cluster[t]
        x = r if i < 0 else min(r, caps[i]) if i < choice.asked else max(r, caps[i])
        if 0 <= i < choice.asked and lists.start[i + 1] - lists.start[i] == 1:
            weights[t] = 1.0
        else:
            weights[t] = weight(a[t], end[t], x, step)
    for j in range(q):
        z[j] = weights[j if alone else choice.term[j]]
        side = box.hi[j] if v[j] > 0.0 else -box.lo[j]
        size = min(abs(v[j]) * z[j] / (z[j] + step), side * z[j]) if z[j] > 0.0 else 0.0
        b[j] = size if v[j] > 0.0 else -size


@njit(cache=True, nogil=True)
def primal_value(form, quad, b, z):
    """Return the value of the relaxation at b and z.

    Parameters
    ----------
    form : Form
        Problem.
    quad : float
        `b'G b`.
    b, z : (q,) arrays
        Point and weights.
    """
    s = form.yy + quad
    for j in range(b.shape[0]):
        if b[j] != 0.0:
            s += b[j] * b[j] / z[j] - 2.0 * form.c[j] * b[j]
    return s


@njit(cache=True, nogil=True)
def descend(form, box, choice, stop, b, best_b, best_z):
    """Maximise the dual of a choice by accelerated proximal gradient until it reaches the cutoff or cannot reach it.

    Parameters
    ----------
    form : Form
        Problem. `lipschitz` need not be a bound: steps that are too long for the curvature are halved.
    box : BoxEnds
        Bounds on the coefficients.
    choice : ClusterChoice
        Supports.
    stop : Stop
        Stopping rule.
    b : (q,) array
        Point to start from.
    best_b, best_z : (q,) arrays
        Arrays to fill with the point and the weights of the best dual value.

    Returns
    -------
    dual : float
        Lower bound for every support of the choice, without allowance for rounding.
    primal : float
        Smallest value of the relaxation seen.
    steps : int
        Number of steps.
    """
    G, c, yy = form.G, form.c, form.yy
    q = c.shape[0]
    lists = group_by_cluster(choice)
    caps = np.zeros(lists.most.shape[0] + 1)
    theta, step = 1.0, 1.0 / form.lipschitz
    old, new, z = b.copy(), np.empty(q), np.zeros(q)
    Gb, Gnew, v, g, h = np.empty(q), np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    total = np.empty(choice.cluster.shape[0])
    product(G, b, Gb)
    Gold = Gb.copy()
    dual, primal = -np.inf, np.inf
    copy_vector(b, best_b)
    copy_vector(z, best_z)
    steps = 0
    while True:
        if steps % LOOK == 0:
            quad = 0.0
            for j in range(q):
                quad += b[j] * Gb[j]
                g[j] = c[j] - Gb[j]
            scores(g, box, h)
            sum_by_term(h, choice, total)
            d = yy - quad - best_choice(total, choice).total
            if d > dual:
                dual = d
                copy_vector(b, best_b)
                copy_vector(z, best_z)
            if steps > 0:
                value = primal_value(form, quad, b, z)
                if not value <= DIVERGED * yy:
                    step *= 0.5
                    theta = 1.0
                    copy_vector(best_b, b)
                    copy_vector(best_b, old)
                    product(G, b, Gb)
                    copy_vector(Gb, Gold)
                elif value < primal:
                    primal = value
            if dual >= stop.bar or steps >= stop.steps or primal - dual <= stop.near * max(stop.bar - dual, 0.0):
                break
        steps += 1
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * theta * theta))
        w = (theta - 1.0) / following
        for j in range(q):
            v[j] = b[j] + w * (b[j] - old[j]) + step * (c[j] - Gb[j] - w * (Gb[j] - Gold[j]))
        proximal_map(v, step, box, choice, lists, caps, new, z)
        product(G, new, Gnew)
        turn = 0.0
        for j in range(q):
            turn += (b[j] + w * (b[j] - old[j]) - new[j]) * (new[j] - b[j])
        theta = 1.0 if turn > 0.0 else following
        copy_vector(b, old)
        copy_vector(new, b)
        copy_vector(Gb, Gold)
        copy_vector(Gnew, Gb)
    return dual, primal, steps


@njit(cache=True, nogil=True)
def screen_choice(h, choice, room, status):
    """Fix the columns that the largest sum determines, by writing DROPPED or INSIDE to `status`; return their number.

    A support within `room` of the dual value loses at most `room` of the largest sum. Including column j costs the
    smallest value that it may replace, minus h_j. Dropping a chosen column costs its h_j minus the largest value that
    may replace it. O(q).

    Parameters
    ----------
    h : (q,) array
        Scores at the point of the dual value.
    choice : ClusterChoice
        Supports.
    room : float
        Distance of the cutoff from the dual value.
    status : (q,) int8 array
        Status of columns, changed in place.
    """
    best = best_choice(h, choice)
    fixed = 0
    for j in range(h.shape[0]):
        i = choice.cluster[j]
        chosen = 0 <= i < choice.asked and best.first[i] == j
        if chosen or best.taken[j]:
            instead = best.beyond
            if chosen:
                if best.second[i] == -np.inf:
                    continue  # it is the only column of its cluster
                if best.second[i] < best.least:
                    instead = best.second[i]
            if h[j] - instead > room:
                status[j] = INSIDE
                fixed += 1
        else:
            leaves = best.least if i < 0 or i >= choice.asked else min(best.least, h[best.first[i]])
            if leaves - h[j] > room:
                status[j] = DROPPED
                fixed += 1
    return fixed
