"""Projected Newton steps for the perspective relaxation as a smooth problem in z (docs/theory/bounds.md, section 2).

phi(z) = yy - c' Z^1/2 (I + Z^1/2 G Z^1/2)^{-1} Z^1/2 c,     z in [0, 1], sum z = k, z = 1 on the included columns.

Here Z = diag(z). Let b be the ridge fit for this z and `g = c - G b`. Then `b = Z g`, the gradient of phi is `-g_j^2`,
and its Hessian is `2 diag(g) P diag(g)` with `P = G - G Z^1/2 (I + Z^1/2 G Z^1/2)^{-1} Z^1/2 G`. All terms remain
finite as z tends to 0. From any initial point, a step lowers phi.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import (
    cholesky_in_place,
    cholesky_solve,
    solve_lower,
    solve_lower_rows,
    solve_upper,
    subtract_multiples,
)
from sparsecv_mio.kernels.jit import NO_ITEMS, njit
from sparsecv_mio.kernels.k_support import prox_scale

ENTER = 10  # maximum number of columns at z = 0 that join a step
ZERO = 1e-12


class Factor(NamedTuple):
    """A symmetric system on some columns.

    Attributes
    ----------
    work : (cap, cap) array
        Its matrix, then the Cholesky factor.
    x : (q,) array
        Right side, then solution.
    columns : (q,) int array
        Columns.
    root : (cap,) array
        Their `sqrt(z)`.
    """

    work: np.ndarray
    x: np.ndarray
    columns: np.ndarray
    root: np.ndarray


@njit(cache=True, nogil=True)
def new_factor(q, cap):
    """Return arrays for a system of up to `cap` of q columns."""
    return Factor(np.empty((cap, cap)), np.empty(q), np.empty(q, dtype=np.int64), np.empty(cap))


class System(NamedTuple):
    """Arrays of a Newton direction on m columns: Hessian (m, m), its factor (m, m), direction (m,), and (m,) numbers.

    The lower triangle of the Hessian is used.
    """

    H: np.ndarray
    L: np.ndarray
    d: np.ndarray
    ones: np.ndarray


@njit(cache=True, nogil=True)
def spread_evenly(v, size, total, low):
    """Fill `low[:size]` with the projection of `v[:size]` on `[0, 1]^size, sum = total`. O(40 size).

    Parameters
    ----------
    v : array
        Vector.
    size : int
        Number of entries used.
    total : float
        Required sum.
    low : array
        Array to fill.
    """
    lo = np.inf
    hi = -np.inf
    for a in range(size):
        lo = min(lo, v[a] - 1.0)
        hi = max(hi, v[a])
    for _ in range(40):
        mid = 0.5 * (lo + hi)
        s = 0.0
        for a in range(size):
            s += min(max(v[a] - mid, 0.0), 1.0)
        if s > total:
            lo = mid
        else:
            hi = mid
    for a in range(size):
        x = v[a] - hi
        low[a] = 0.0 if x < ZERO else min(x, 1.0)


@njit(cache=True, nogil=True)
def fill_weights(b, g, node, z, buffer):
    """Fill z with the weights of b: `clip(|b_j| t, 0, 1)` with sum k; too few entries are completed by the largest |g|.

    Parameters
    ----------
    b, g : (q,) arrays
        Point and slope.
    node : Node
        Node.
    z : (q,) array
        Array to fill on the free columns.
    buffer : array
        Work array for them.
    """
    free, count_free, k = node.free, node.count_free, node.k
    held = 0
    for a in range(count_free):
        buffer[a] = abs(b[free[a]])
        if buffer[a] > 0.0:
            held += 1
    if held > k:
        t = prox_scale(buffer, count_free, k, 0.0)
        for a in range(count_free):
            x = min(buffer[a] * t, 1.0)
            z[free[a]] = x if x > ZERO else 0.0
        return
    for a in range(count_free):
        z[free[a]] = 1.0 if buffer[a] > 0.0 else 0.0
    while held < k:
        best = -1.0
        pick = -1
        for a in range(count_free):
            j = free[a]
            if z[j] == 0.0 and abs(g[j]) > best:
                best = abs(g[j])
                pick = j
        z[pick] = 1.0
        held += 1


@njit(cache=True, nogil=True)
def fit(form, z, members, factor):
    """Return phi(z); leave its columns in `columns`, `sqrt(z)` in `root`, the factor in `work`, `L^{-1} Z^1/2 c` in x.

    Returns phi and the size of the support; inf if the capacity is too small. O(s^3 / 3).

    Parameters
    ----------
    form : Form
        Problem.
    z : (q,) array
        Weights.
    members : int array
        Columns that may have z > 0.
    factor : Factor
        System to fill.
    """
    G, c = form.G, form.c
    work, x, index, root = factor.work, factor.x, factor.columns, factor.root
    s = NO_ITEMS
    for a in range(members.shape[0]):
        j = members[a]
        if z[j] > 0.0:
            if s == work.shape[0]:
                return np.inf, 0
            index[s] = j
            root[s] = np.sqrt(z[j])
            s += 1
    for a in range(s):
        i = index[a]
        x[a] = root[a] * c[i]
        for e in range(a + 1):
            work[a, e] = G[i, index[e]] * root[a] * root[e]
        work[a, a] += 1.0
    if not cholesky_in_place(work, s):
        return np.inf, 0
    solve_lower(work, x, s)
    phi = form.yy
    for a in range(s):
        phi -= x[a] * x[a]
    return phi, s


@njit(cache=True, nogil=True)
def fill_point(factor, s, members, b):
    """Fill b(z) from the results of `fit`.

    Parameters
    ----------
    factor : Factor
        System as `fit` left it.
    s : int
        Size of the support.
    members : int array
        Columns of the node.
    b : (q,) array
        Array to fill on the members.
    """
    x, index, root = factor.x, factor.columns, factor.root
    for a in range(members.shape[0]):
        b[members[a]] = 0.0
    solve_upper(factor.work, x, s)
    for a in range(s):
        b[index[a]] = root[a] * x[a]


@njit(cache=True, nogil=True)
def moving(z, g, node, chosen, enter):
    """Fill the columns that a step may move: fractional ones, falling ones at 1, and the best ENTER columns at 0.

    Returns their number. O(count (1 + ENTER)).

    Parameters
    ----------
    z, g : (q,) arrays
        Weights and slope.
    node : Node
        Node.
    chosen, enter : int arrays
        Array to fill, for the free columns, and work array for ENTER columns.
    """
    free, count_free = node.free, node.count_free
    level = 0.0
    fractional = 0
    least_in = np.inf
    most_out = 0.0
    for a in range(count_free):
        j = free[a]
        d = g[j] * g[j]
        if z[j] >= 1.0:
            least_in = min(least_in, d)
        elif z[j] > 0.0:
            level += d
            fractional += 1
        else:
            most_out = max(most_out, d)
    if fractional > 0:
        level /= fractional
    else:
        level = 0.5 * (least_in + most_out)
    count = 0
    entering = 0
    for a in range(count_free):
        j = free[a]
        d = g[j] * g[j]
        if z[j] >= 1.0:
            if d < level:
                chosen[count] = j
                count += 1
        elif z[j] > 0.0:
            chosen[count] = j
            count += 1
        elif d > level:
            i = entering
            if entering == ENTER:
                i = ENTER - 1
                if d <= g[enter[i]] * g[enter[i]]:
                    continue
            else:
                entering += 1
            while i > 0 and g[enter[i - 1]] * g[enter[i - 1]] < d:
                enter[i] = enter[i - 1]
                i -= 1
            enter[i] = j
    for a in range(entering):
        chosen[count] = enter[a]
        count += 1
    return count


@njit(cache=True, nogil=True)
def fill_hessian(G, g, factor, s, chosen, H):
    """Fill the lower triangle of H with the second derivatives of phi on the chosen columns. O(s^2 m + s m^2).

    Parameters
    ----------
    G, g : (q, q), (q,)
        Matrix and slope.
    factor : Factor
        System as `fit` left it.
    s : int
        Size of its support.
    chosen : (m,) int array
        Columns.
    H : (m, m) array
        Array to fill.
    """
    work, index, root, m = factor.work, factor.columns, factor.root, H.shape[0]
    A = np.empty((s, m))
    for a in range(s):
        row, share = G[index[a]], root[a]
        for f in range(m):
            A[a, f] = row[chosen[f]] * share
    solve_lower_rows(work, A, s)
    for f in range(m):
        j, row = chosen[f], H[f, : f + 1]
        for h in range(f + 1):
            row[h] = G[j, chosen[h]]
        subtract_multiples(A[:, f], A, s, row)
        for h in range(f + 1):
            row[h] *= 2.0 * g[j] * g[chosen[h]]


@njit(cache=True, nogil=True)
def direction(g, chosen, count, system):
    """Fill d with the Newton direction of phi on some columns with sum 0; return False if singular. O(count^3 / 3).

    Parameters
    ----------
    g : (q,) array
        Slope.
    chosen : int array
        Columns.
    count : int
        Number of columns used.
    system : System
        Hessian on these columns, and work arrays; d is the direction.
    """
    H, L, d, ones = system.H, system.L, system.d, system.ones
    trace = 0.0
    for f in range(count):
        trace += H[f, f]
    for f in range(count):
        for h in range(f + 1):
            L[f, h] = H[f, h]
        L[f, f] += 1e-10 * trace / count + 1e-300
        d[f] = g[chosen[f]] * g[chosen[f]]
        ones[f] = 1.0
    if not cholesky_in_place(L, count):
        return False
    cholesky_solve(L, d, count)
    cholesky_solve(L, ones, count)
    up = 0.0
    down = 0.0
    for f in range(count):
        up += d[f]
        down += ones[f]
    if down == 0.0:
        return False
    for f in range(count):
        d[f] -= up / down * ones[f]
    return True


@njit(cache=True, nogil=True)
def newton_step(form, node, members, factor, at, z, g, b):
    """Take one projected Newton step from z, given the results of `fit` in the factor; update z, the factor and b.

    Parameters
    ----------
    form, node : Form, Node
        Problem and node.
    members : int array
        Columns of the node.
    factor : Factor
        System as `fit` left it.
    at : (float, int)
        Return values of `fit`.
    z, g, b : (q,) arrays
        Weights, slope and point, updated.

    Returns
    -------
    phi : float
        The new value, or the old one if no step lowers it (z is then unchanged).
    s : int
        Size of the new support, 0 if there was no step.
    """
    phi, s = at
    chosen = np.empty(node.count_free, dtype=np.int64)
    enter = np.empty(ENTER, dtype=np.int64)
    moved = moving(z, g, node, chosen, enter)
    if moved < 2 or moved > factor.work.shape[0]:
        return phi, 0
    system = System(np.empty((moved, moved)), np.empty((moved, moved)), np.empty(moved), np.empty(moved))
    H, d, ones = system.H, system.d, system.ones
    old = np.empty(moved)
    new = np.empty(moved)
    places = np.empty(moved, dtype=np.int64)
    fill_hessian(form.G, g, factor, s, chosen, H)
    # columns at a bound that the direction would push outside are removed, so that short steps stay valid and lower phi
    while True:
        if moved < 2 or not direction(g, chosen, moved, system):
            return phi, 0
        kept = 0
        for f in range(moved):
            x_f = z[chosen[f]]
            if not ((x_f <= 0.0 and d[f] < 0.0) or (x_f >= 1.0 and d[f] > 0.0)):
                chosen[kept], places[kept] = chosen[f], f
                for e in range(kept + 1):
                    H[kept, e] = H[f, places[e]]
                kept += 1
        if kept == moved:
            break
        moved = kept
    total = 0.0
    for f in range(moved):
        old[f] = z[chosen[f]]
        total += old[f]
    # up to the first bound no projection is needed: this is the last step to try, and it fixes one column
    limit = 1.0
    for f in range(moved):
        if d[f] < 0.0:
            limit = min(limit, -old[f] / d[f])
        elif d[f] > 0.0:
            limit = min(limit, (1.0 - old[f]) / d[f])
    size = 1.0
    while True:
        last = size <= limit
        if last:
            size = limit
        for f in range(moved):
            ones[f] = old[f] + size * d[f]
        if last:
            for f in range(moved):
                new[f] = 0.0 if ones[f] < ZERO else min(ones[f], 1.0)
        else:
            spread_evenly(ones, moved, total, new)
        slope = 0.0
        for f in range(moved):
            j = chosen[f]
            slope += g[j] * g[j] * (new[f] - old[f])
            z[j] = new[f]
        value, s_new = fit(form, z, members, factor)
        if value <= phi - 1e-4 * slope and (value < phi or last):
            fill_point(factor, s_new, members, b)
            return value, s_new
        if last:
            limit *= 0.25
            if limit < 1e-12:
                break
        size = 0.4 * size if 0.4 * size > limit else limit
    for f in range(moved):
        z[chosen[f]] = old[f]
    return phi, 0
