"""The perspective relaxation on the rows themselves, for many more columns than rows (docs/theory/bounds.md 2).

Only a working set of columns is solved for, by the Gram kernel; the dual value is taken over *all* columns, so it is a
bound whatever the working set. Columns whose `|g_j|` is large join it until primal and dual meet.

Columns come divided by the root of their penalty: `f(b) = ||y - X b||^2 + ||b||^2`. Shift s adds `-2 s'b`.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import gershgorin, put, times
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest_places, top_sum
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import Accuracy, Form, Node, allowance, gap_of
from sparsecv_mio.kernels.perspective_newton import NONE


class Wide(NamedTuple):
    """Training rows, columns as rows.

    Attributes
    ----------
    Xt, y : (q, n), (n,) arrays
    lipschitz : float
        At least the largest eigenvalue of X'X.
    """

    Xt: np.ndarray
    y: np.ndarray
    lipschitz: float


class WorkingSet(NamedTuple):
    """Columns that are solved for, kept between calls.

    Attributes
    ----------
    chosen : (cap,) int array
    inside : (q,) bool array
    held : (1,) int array
        How many.
    gram : (cap, cap) array
        Their Gram matrix.
    """

    chosen: np.ndarray
    inside: np.ndarray
    held: np.ndarray
    gram: np.ndarray


@njit(cache=True, nogil=True)
def extend_gram(Xt, chosen, start, count, gram):
    """Rows and columns start..count-1 of `X_W'X_W`. O((count - start) count n).

    Parameters
    ----------
    Xt : (q, n) array
    chosen : int array
        The columns.
    start, count : int
    gram : array
        At least (count, count).
    """
    n = Xt.shape[1]
    for a in range(start, count):
        u = Xt[chosen[a]]
        for e in range(a + 1):
            v = Xt[chosen[e]]
            s = 0.0
            for i in range(n):
                s += u[i] * v[i]
            gram[a, e] = s
            gram[e, a] = s


@njit(cache=True, nogil=True)
def _add_columns(Xt, near, found, fresh):
    """Put columns into a working set that has room for them. O(fresh held n).

    Parameters
    ----------
    Xt : (q, n) array
    near : WorkingSet
        Changed in place.
    found : int array
        The columns; none of them is in the set.
    fresh : int
        How many of its entries count.
    """
    held = near.held[0]
    for a in range(fresh):
        near.chosen[held + a] = found[a]
        near.inside[found[a]] = True
    extend_gram(Xt, near.chosen, held, held + fresh, near.gram)
    near.held[0] = held + fresh


@njit(cache=True, nogil=True)
def slope_of(Xt, residual, shift, g):
    """Fill `g = X' residual + shift`. O(q n).

    Parameters
    ----------
    Xt : (q, n) array
    residual, shift : (n,), (q,) arrays
    g : (q,) array
    """
    product = np.dot(Xt, residual)
    for j in range(g.shape[0]):
        g[j] = product[j] + shift[j]


@njit(cache=True, nogil=True)
def largest_outside(g, inside, count, take, found):
    """Fill `found` with up to `take` columns outside of the working set with the largest |g|. O(q + take * moves).

    Parameters
    ----------
    g, inside : (q,), (q,) bool
    count, take : int
        Columns of the working set, and how many are asked for.
    found : int array
    """
    q = g.shape[0]
    size = np.empty(q)
    for j in range(q):
        size[j] = 0.0 if inside[j] else abs(g[j])
    take = min(take, q - count)
    if take <= 0:
        return 0
    largest_places(size, q, take, found)
    return take


@njit(cache=True, nogil=True)
def relax_rows(wide, shift, k, accuracy, max_steps, near, b, g):
    """Solve to `primal - dual <= accuracy`, as far as it goes.

    Parameters
    ----------
    wide : Wide
    shift : (q,) array
    k : int
        0 < k < q.
    accuracy : float
        Absolute.
    max_steps : int
    near : WorkingSet
    b, g : (q,) arrays
        Start; on return the point of the best dual value and its `g = X'(y - X b) + s`.

    Returns
    -------
    dual, primal : float

    Notes
    -----
    A round costs a relaxation on the working set and O(n q) for g.
    """
    Xt, y = wide.Xt, wide.y
    chosen, inside, ctrl, gram = near
    q, n = Xt.shape
    cap = gram.shape[0]
    yy = 0.0
    for i in range(n):
        yy += y[i] * y[i]
    found = np.empty(q, dtype=np.int64)
    c = np.empty(cap)
    point = np.empty(cap)
    best_point = np.empty(cap)
    slope = np.empty(cap)
    best_slope = np.empty(cap)
    residual = np.empty(n)
    trial = np.empty(q)
    best_b = np.empty(q)
    put(b, best_b)
    for j in range(q):
        if best_b[j] != 0.0 and not inside[j]:
            if ctrl[0] < cap:
                found[0] = j
                _add_columns(Xt, near, found, np.int64(1))  # a literal would compile it a second time
            else:
                best_b[j] = 0.0
    dual = -np.inf
    primal = np.inf
    far = 1e6 * max(yy, 1e-300)
    if ctrl[0] < min(2 * k + 20, q):
        slope_of(Xt, y, shift, trial)
        fresh = largest_outside(trial, inside, ctrl[0], min(2 * k + 40, cap - ctrl[0]), found)
        _add_columns(Xt, near, found, fresh)
    for _ in range(60):
        count = ctrl[0]
        for a in range(count):
            j = chosen[a]
            s = shift[j]
            for i in range(n):
                s += Xt[j, i] * y[i]
            c[a] = s
            point[a] = best_b[j]
        free = np.arange(count)
        lipschitz = min(gershgorin(gram[:count, :count]), wide.lipschitz)
        form, stop = Form(gram, c[:count], yy, lipschitz), Accuracy(far, 0.3 * accuracy / far, max_steps)
        node = Node(free, NONE, free, count, k)
        _, p, _ = relax(form, node, stop, point[:count], slope[:count], best_point[:count], best_slope[:count])
        primal = min(primal, p)
        put(y, residual)
        for a in range(count):
            if best_point[a] != 0.0:
                for i in range(n):
                    residual[i] -= Xt[chosen[a], i] * best_point[a]
        slope_of(Xt, residual, shift, trial)
        quad = 0.0
        for i in range(n):
            quad += (y[i] - residual[i]) ** 2
        d = yy - quad - top_sum(times(trial, trial), k)
        for a in range(count):
            best_b[chosen[a]] = best_point[a]
        if d > dual:
            dual = d
            put(best_b, b)
            put(trial, g)
        if primal - dual <= accuracy or count == q:
            break
        # only columns that would enter the largest change the dual value
        fresh = largest_outside(trial, inside, count, min(10 + k, cap), found)
        if fresh == 0:
            break
        if count + fresh > cap:
            kept = NONE
            for a in range(count):
                j = chosen[a]
                if best_b[j] != 0.0 and kept + fresh < cap:
                    chosen[kept] = j
                    kept += 1
                else:
                    inside[j] = False
                    best_b[j] = 0.0
            extend_gram(Xt, chosen, NONE, kept, gram)
            ctrl[0] = kept
        _add_columns(Xt, near, found, fresh)
    return dual, primal


@njit(cache=True, nogil=True)
def farthest_rows(wide, x, candidates, centre, t, effort, rounding, near):
    """Upper bound of `x'b*` and its t: the conic spread of :mod:`sparsecv_mio.kernels.fold_rows` on rows.

    Parameters
    ----------
    wide : Wide
    x : (q,) array
    candidates : Candidates
    centre : (q,) array
        About the minimiser of F.
    t : float
        Start; it moves by the root of `(ubar - zeta) / (F(b_t) - zeta)`.
    effort : Effort
    rounding : Rounding
        `length_j = sqrt(M_jj)`.
    near : WorkingSet

    Notes
    -----
    O(rounds) relaxations.
    """
    ubar, zeta = candidates.ubar, candidates.zeta
    q = x.shape[0]
    b = np.empty(q)
    put(centre, b)
    g = np.empty(q)
    gap = gap_of(candidates, ubar)
    most = np.sqrt(np.dot(x, x)) * rounding.norm
    bound = np.inf
    best_t = t
    for _ in range(effort.rounds):
        d, p = relax_rows(wide, 0.5 * t * x, candidates.k, 0.01 * gap, effort.steps, near, b, g)
        reach = 0.0
        error = most
        for j in range(q):
            if b[j] != 0.0:
                reach += x[j] * b[j]
                error += abs(x[j] * b[j])
        value = (ubar - d + allowance(rounding, b)) / t + rounding.unit * error
        if value < bound:
            bound = value
            best_t = t
        ratio = gap / max(p + t * reach - zeta, 1e-4 * gap)
        if abs(ratio - 1.0) < 0.2:
            break
        t *= np.sqrt(min(ratio, 100.0))
    return bound, best_t


@njit(cache=True, nogil=True)
def slope_from_products(products, c, b, count, g):
    """Fill `g = c - G b` for a point on the first columns of a working set. O(q nnz(b)).

    Parameters
    ----------
    products : (cap, q) array
        Row a holds the products of all columns with the a-th of the working set.
    c : (q,) array
    b : (count,) array
    count : int
    g : (q,) array
    """
    q = c.shape[0]
    for j in range(q):
        g[j] = c[j]
    for a in range(count):
        x = b[a]
        if x != 0.0:
            row = products[a]
            for j in range(q):
                g[j] -= row[j] * x
