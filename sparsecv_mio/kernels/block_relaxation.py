"""Bounds of a node from a block-diagonal part of the matrix M, for columns in nearly collinear groups.

Let M be the Gram matrix plus the penalty, W a block-diagonal matrix with `G = M - W` positive semidefinite, b any
vector and `g = c - G b`. Then, for every support S of the node (docs/theory/bounds.md, section 9),

    f(S)  >=  D(b) = yy - b'G b - max over the node's S of  (sum over blocks B of  g_A' (W_AA)^{-1} g_A,  A = S in B).

The maximum is the solution of a knapsack problem, which chooses the number of columns of each block. A block with k
columns adds the largest value of any k of its columns. If every block has one column, D(b) is the bound of
:mod:`sparsecv_mio.kernels.node_relaxation`.

The vector b with the largest D comes from the primal problem. Let `H_S` be the matrix with `(W_{S in B})^{-1}` on the
columns of S in each block B, and 0 elsewhere. The function

    phi(lambda) = yy - c' (H^{-1} + G)^{-1} c,        H = sum over S of lambda_S H_S,   lambda >= 0, sum lambda = 1

has its minimum where D has its maximum, at `b = H g`. When the knapsack problem has a new solution S, the matrix `H_S`
is added to the sum H. Newton steps update the shares lambda_S. The steps may be inexact, because every b gives a valid
D.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, dot
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE

MOST_SUPPORTS = 24  # maximum number of supports in a mixture
MAX_BLOCK_STEPS = 20  # maximum number of Newton steps at a node
ORDERING_GAP_RTOL = 0.5  # accuracy of a bound below the cutoff, as a share of its distance: it only orders nodes
GONE = 1e-9  # minimum share of a support that stays in the mixture
DEPENDENT = 1e-13  # share of a diagonal entry of H left by other columns up to which the column counts as dependent


class Blocks(NamedTuple):
    """Blocks of at most s columns, and the inverses of W on each of their subsets.

    A subset is a mask. With j its highest column and A the others, `v(A + j) = v(A) + pivot (g_j - factor'g_A)^2`.

    Attributes
    ----------
    G : (q, q) array
        Matrix `M - W`.
    member : (blocks, s) int array
        Columns of each block; -1 beyond its size.
    block, place : (q,) int arrays
        Block of each column, and its position there.
    factor : (blocks, 2^s, s) array
        Factors of the formula.
    pivot : (blocks, 2^s) array
        Pivots of the formula.
    length : (q,) array
        Square roots of the diagonal of M.
    unit, prior, blur : float
        Rounding by which D is lowered: `unit (prior + sum_j length_j |b_j|)^2 + blur (largest sum)`.
    """

    G: np.ndarray
    member: np.ndarray
    block: np.ndarray
    place: np.ndarray
    factor: np.ndarray
    pivot: np.ndarray
    length: np.ndarray
    unit: float
    prior: float
    blur: float


class Mixture(NamedTuple):
    """Supports, given by the masks of their blocks (MOST_SUPPORTS, blocks), and their shares."""

    masks: np.ndarray
    share: np.ndarray


class BlockWork(NamedTuple):
    """Work arrays of a node: included and excluded masks, mask sizes, subset values, the knapsack, H, small systems.

    The last two are the slope g of the last point, and its D without the largest sum.
    """

    needed: np.ndarray
    barred: np.ndarray
    length: np.ndarray
    value: np.ndarray
    best: np.ndarray
    best_mask: np.ndarray
    sums: np.ndarray
    taken: np.ndarray
    choice: np.ndarray
    H: np.ndarray
    L: np.ndarray
    columns: np.ndarray
    first: np.ndarray
    last: np.ndarray
    K: np.ndarray
    GL: np.ndarray
    U: np.ndarray
    R: np.ndarray
    A: np.ndarray
    system: np.ndarray
    slope: np.ndarray
    base: np.ndarray


def new_block_work(q, tau, blocks):
    """Return work arrays for nodes of supports of tau of q columns."""
    count, s = blocks.member.shape
    most = MOST_SUPPORTS
    return BlockWork(
        np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64),
        np.array([mask.bit_count() for mask in range(1 << s)], dtype=np.int64), np.zeros((count, 1 << s)),
        np.zeros((count, s + 1)), np.zeros((count, s + 1), dtype=np.int64), np.zeros((count + 1, tau + 1)),
        np.zeros((count, tau + 1), dtype=np.int64), np.zeros(count, dtype=np.int64), np.zeros((count, s, s)),
        np.zeros((q, q)), np.zeros(q, dtype=np.int64), np.zeros(q, dtype=np.int64), np.zeros(q, dtype=np.int64),
        np.zeros((q, q)), np.zeros((q, q)), np.zeros((most, q)), np.zeros((q, most)), np.zeros((most, most)),
        np.zeros((most, most)), np.zeros(q), np.zeros(1),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def fill_tables(W, size, factor, pivot):
    """Fill the tables of one block; return the smallest share of a column next to others, 0 if W is not positive.

    O(2^s s^3 / 3).

    Parameters
    ----------
    W : (s, s) array
        Block of W.
    size : int
        Number of columns of the block.
    factor, pivot : (2^s, s), (2^s,) arrays
        Tables to fill.
    """
    work, x = np.empty((size, size)), np.empty(size)
    least = 1.0
    for mask in range(1, 1 << size):
        top = size - 1
        while not (mask >> top) & 1:
            top -= 1
        count = 0
        for i in range(top):
            if (mask >> i) & 1:
                x[count] = W[top, i]
                e = 0
                for k in range(i + 1):
                    if (mask >> k) & 1:
                        work[count, e] = W[i, k]
                        e += 1
                count += 1
        rest = W[top, top]
        if count > 0:
            if not cholesky_in_place(work, count):
                return 0.0
            cholesky_solve(work, x, count)
        count = 0
        for i in range(size):
            factor[mask, i] = 0.0
        for i in range(top):
            if (mask >> i) & 1:
                factor[mask, i] = x[count]
                rest -= x[count] * W[top, i]
                count += 1
        if not rest > 0.0:
            return 0.0
        least = min(least, rest / W[top, top])
        pivot[mask] = 1.0 / rest
    return least


@njit(cache=True, nogil=True)
def largest_sum(g, blocks, tau, work):
    """Return the largest sum over the node's supports of at most tau columns; leave its masks in `choice`.

    The cost is O(blocks 2^s s).

    Parameters
    ----------
    g : (q,) array
        Slopes.
    blocks : Blocks
        Blocks.
    tau : int
        Maximum number of columns.
    work : BlockWork
        Work arrays with the required and excluded masks.
    """
    best, best_mask, sums, taken, choice = work.best, work.best_mask, work.sums, work.taken, work.choice
    count, s = blocks.member.shape
    for x in range(tau + 1):
        sums[0, x] = -np.inf
    sums[0, 0] = 0.0
    here = np.zeros(s)
    for b in range(count):
        member, value = blocks.member[b], work.value[b]
        needed, barred = work.needed[b], work.barred[b]
        size = 0
        while size < s and member[size] >= 0:
            here[size] = g[member[size]]
            size += 1
        for x in range(s + 1):
            best[b, x] = -np.inf
        if needed == 0:
            best[b, 0] = 0.0
            best_mask[b, 0] = 0
        for top in range(size):
            own = 1 << top
            if barred & own:
                continue
            below, some = (own - 1) & ~(barred | needed), 0
            while True:  # over all subsets of the allowed columns, each with the required ones
                low = needed & (own - 1) | some
                mask = own | low
                k = work.length[mask]
                r = here[top] - dot(blocks.factor[b, mask], here, top)
                x = value[low] + r * r * blocks.pivot[b, mask]
                value[mask] = x
                if (mask & needed) == needed and x > best[b, k]:
                    best[b, k] = x
                    best_mask[b, k] = mask
                some = (some - below) & below
                if some == 0:
                    break
        for x in range(tau + 1):
            most = -np.inf
            for k in range(min(size, x) + 1):
                y = sums[b, x - k] + best[b, k]
                if y > most:
                    most = y
                    taken[b, x] = k
            sums[b + 1, x] = most
    last = 0
    for x in range(tau + 1):
        if sums[count, x] > sums[count, last]:
            last = x
    total = sums[count, last]
    for b in range(count - 1, -1, -1):
        choice[b] = best_mask[b, taken[b, last]]
        last -= taken[b, last]
    return total


@njit(cache=True, nogil=True)
def _inverse_times(masks, g, blocks, u):
    """Fill `u = H_S g` for the support given by masks."""
    u[:] = 0.0
    for b in range(masks.shape[0]):
        mask = masks[b]
        for top in range(blocks.member.shape[1]):
            if (mask >> top) & 1:
                here = mask & ((2 << top) - 1)
                row = blocks.factor[b, here]
                r = g[blocks.member[b, top]]
                for i in range(top):
                    r -= row[i] * g[blocks.member[b, i]]
                r *= blocks.pivot[b, here]
                u[blocks.member[b, top]] += r
                for i in range(top):
                    if row[i] != 0.0:
                        u[blocks.member[b, i]] -= row[i] * r


@njit(cache=True, nogil=True)
def _factor_mixture(mixture, held, blocks, work):
    """Fill `columns` with those of the mixture and L with a Cholesky factor of H on them; return their number.

    Columns of a block are consecutive: row p of L is zero before `first[p]`, column p from `last[p]` on.
    """
    H, L, columns, first, last = work.H, work.L, work.columns, work.first, work.last
    count, s = blocks.member.shape
    H[:, :, :] = 0.0
    for a in range(held):
        for b in range(count):
            mask = mixture.masks[a, b]
            for top in range(s):
                if (mask >> top) & 1:
                    here = mask & ((2 << top) - 1)
                    row = blocks.factor[b, here]
                    w = mixture.share[a] * blocks.pivot[b, here]
                    for i in range(top):
                        if row[i] != 0.0:
                            H[b, top, i] -= w * row[i]
                            for k in range(i + 1):
                                H[b, i, k] += w * row[i] * row[k]
                    H[b, top, top] += w
    p = 0
    for b in range(count):
        start = p
        for i in range(s):
            if H[b, i, i] > 0.0:
                columns[p] = blocks.member[b, i]
                first[p] = start
                for e in range(start, p + 1):
                    x = H[b, i, blocks.place[columns[e]]]
                    for f in range(start, e):
                        x -= L[p, f] * L[e, f]
                    if e < p:
                        L[p, e] = x / L[e, e] if L[e, e] > 0.0 else 0.0
                    else:
                        L[p, p] = np.sqrt(x) if x > DEPENDENT * H[b, i, i] else 0.0
                p += 1
        for e in range(start, p):
            last[e] = p
    return p


@njit(cache=True, nogil=True)
def _solve_columns(L, R, size, count):
    """Overwrite the first `count` columns of R by the solutions of `L X = R`. O(size^2 count / 2)."""
    for i in range(size):
        row = R[i]
        for k in range(i):
            w, before = L[i, k], R[k]
            for a in range(count):
                row[a] -= w * before[a]
        w = 1.0 / L[i, i]
        for a in range(count):
            row[a] *= w


@njit(cache=True, nogil=True)
def _move_shares(A, slope, share, held, system, to):
    """Minimise `slope'd + d'A d / 2` over shares `share + d` on the simplex, by active sets; fill `to`.

    Parameters
    ----------
    A : (held, held) array or larger
        Curvature.
    slope, share : arrays
        Slopes and present shares.
    held : int
        Number of supports.
    system : (held, held) array or larger
        Work array.
    to : array
        Array to fill with the new shares.
    """
    free = np.empty(held, dtype=np.bool_)
    which = np.empty(held, dtype=np.int64)
    r = np.empty(held)
    x = np.empty(held)
    ones = np.empty(held)
    trace = 0.0
    for i in range(held):
        to[i] = share[i]
        free[i] = share[i] > 1e-12
        trace += A[i, i]
        r[i] = -slope[i]
        for k in range(held):
            r[i] += A[i, k] * share[k]
    for _ in range(4 * held + 8):
        n = 0
        for i in range(held):
            if free[i]:
                which[n] = i
                n += 1
        for i in range(n):
            for k in range(i + 1):
                system[i, k] = A[which[i], which[k]]
            system[i, i] += 1e-10 * trace / held + 1e-300
            x[i] = r[which[i]]
            ones[i] = 1.0
        if n == 0 or not cholesky_in_place(system, n):
            return
        cholesky_solve(system, x, n)
        cholesky_solve(system, ones, n)
        up, down = -1.0, 0.0
        for i in range(n):
            up += x[i]
            down += ones[i]
        level = up / down
        step, blocked = 1.0, False
        for i in range(n):
            x[i] -= level * ones[i]
            if x[i] < -1e-12:
                blocked = True
                step = min(step, to[which[i]] / (to[which[i]] - x[i]))
        for i in range(n):
            k = which[i]
            to[k] = max(to[k] + step * (x[i] - to[k]), 0.0)
            if blocked and to[k] < 1e-12:
                to[k] = 0.0
                free[k] = False
        if blocked:
            continue
        worst, who = -1e-9 * abs(level) - 1e-300, -1
        for i in range(held):
            if not free[i]:
                push = level - r[i]
                for k in range(held):
                    push += A[i, k] * to[k]
                if push < worst:
                    worst = push
                    who = i
        if who < 0:
            break
        free[who] = True
    total = 0.0
    for i in range(held):
        total += to[i]
    for i in range(held):
        to[i] /= total


@njit(cache=True, nogil=True)
def fitting(status, blocks, work, mixture):
    """Set the masks of a node and remove the supports of a mixture that are not in the node; return the number left.

    Parameters
    ----------
    status : (q,) int8 array
        Status of the columns at the node.
    blocks : Blocks
        Blocks.
    work : BlockWork
        Work arrays.
    mixture : Mixture
        Mixture, changed in place.
    """
    needed, barred = work.needed, work.barred
    needed[:] = 0
    barred[:] = 0
    for j in range(status.shape[0]):
        if status[j] == INSIDE:
            needed[blocks.block[j]] |= 1 << blocks.place[j]
        elif status[j] == DROPPED:
            barred[blocks.block[j]] |= 1 << blocks.place[j]
    held, total = 0, 0.0
    for a in range(MOST_SUPPORTS):
        fits = mixture.share[a] > 0.0
        for b in range(needed.shape[0]):
            mask = mixture.masks[a, b]
            if (mask & needed[b]) != needed[b] or (mask & barred[b]) != 0:
                fits = False
        if fits:
            for b in range(needed.shape[0]):
                mixture.masks[held, b] = mixture.masks[a, b]
            mixture.share[held] = mixture.share[a]
            total += mixture.share[a]
            held += 1
    for a in range(MOST_SUPPORTS):
        mixture.share[a] = mixture.share[a] / total if a < held else 0.0
    return held


@njit(cache=True, nogil=True)
def bound_node(form, blocks, status, ends, mixture, work, b, z):
    """Return a lower bound for every support of at most tau columns of a node, as accurate as needed.

    Parameters
    ----------
    form : Form
        Problem, of which c and yy are used.
    blocks : Blocks
        Blocks.
    status : (q,) int8 array
        Status of the columns; some support of tau columns is in the node.
    ends : (float, float)
        Stopping rule: the bound reaches the first value, or no bound can reach the second and this one is near the
        best.
    mixture : Mixture
        Start; the last mixture on return.
    work : BlockWork
        Work arrays for this tau.
    b, z : (q,) arrays
        Arrays to fill with the last point and its weights.

    Returns
    -------
    dual, primal : float
        Lower bound minus rounding, and an upper bound on all such bounds, up to accuracy.
    steps : int
        Number of steps.

    Notes
    -----
    A step costs O(blocks 2^s s + p^3 / 6 + p^2 (s + held) + p q + held tau q), p the columns of the mixture.
    """
    G, c, yy = blocks.G, form.c, form.yy
    tau = work.sums.shape[1] - 1
    bar, hope = ends
    L, K, GL, U, R, A = work.L, work.K, work.GL, work.U, work.R, work.A
    columns, first, last = work.columns, work.first, work.last
    q = c.shape[0]
    g, x, to = work.slope, np.empty(q), np.empty(MOST_SUPPORTS)
    slope = np.empty(MOST_SUPPORTS)
    Gu = np.empty(q)
    count = blocks.member.shape[0]
    held = fitting(status, blocks, work, mixture)
    if held == 0:
        largest_sum(c, blocks, tau, work)
        for i in range(count):
            mixture.masks[0, i] = work.choice[i]
        mixture.share[0] = 1.0
        held = 1
    dual, primal, steps = -np.inf, np.inf, 0
    work.base[0] = -np.inf
    p = 0
    while True:
        steps += 1
        p = _factor_mixture(mixture, held, blocks, work)
        # K = I + L'G L, b = L K^{-1} L'c
        for i in range(p):
            row = G[columns[i]]
            for e in range(last[i]):
                s = 0.0
                for f in range(e, last[e]):
                    s += row[columns[f]] * L[f, e]
                GL[i, e] = s
        for i in range(p):
            own = K[i]
            for e in range(i + 1):
                own[e] = 0.0
            s = 0.0
            for f in range(i, last[i]):
                w, row = L[f, i], GL[f]
                for e in range(i + 1):
                    own[e] += w * row[e]
                s += w * c[columns[f]]
            own[i] += 1.0
            x[i] = s
        if not cholesky_in_place(K, p):
            break
        cholesky_solve(K, x, p)
        load = blocks.prior
        for j in range(q):
            b[j] = 0.0
            g[j] = c[j]
        for i in range(p):
            s = 0.0
            for e in range(first[i], i + 1):
                s += L[i, e] * x[e]
            j = columns[i]
            b[j] = s
            load += blocks.length[j] * abs(s)
            row = G[j]
            for k in range(q):
                g[k] -= row[k] * s
        quad, phi = 0.0, yy
        for i in range(p):
            j = columns[i]
            quad += b[j] * (c[j] - g[j])
            phi -= c[j] * b[j]
        primal = min(primal, phi)
        total = largest_sum(g, blocks, tau, work)
        work.base[0] = yy - quad - blocks.unit * load * load
        dual = max(dual, work.base[0] - total * (1.0 + blocks.blur))
        hopeless = phi < hope and primal - dual <= ORDERING_GAP_RTOL * (bar - dual)
        if dual >= bar or hopeless or steps >= MAX_BLOCK_STEPS or primal - dual <= 1e-9 * yy:
            break
        kept = 0
        known = False
        for a in range(held):
            if mixture.share[a] > GONE:
                same = True
                for i in range(count):
                    mixture.masks[kept, i] = mixture.masks[a, i]
                    same = same and mixture.masks[a, i] == work.choice[i]
                known = known or same
                mixture.share[kept] = mixture.share[a]
                kept += 1
        held = kept
        if not known and held < MOST_SUPPORTS:
            for i in range(count):
                mixture.masks[held, i] = work.choice[i]
            mixture.share[held] = 0.0
            held += 1
        # slope -g'H_S g and curvature 2 u'P u, P = G - G L K^{-1} L'G, u = H_S g
        for a in range(held):
            _inverse_times(mixture.masks[a], g, blocks, U[a])
            s = 0.0
            for j in range(q):
                s -= g[j] * U[a, j]
                Gu[j] = 0.0
            slope[a] = s
            for j in range(q):
                if U[a, j] != 0.0:
                    row, s = G[j], U[a, j]
                    for k in range(q):
                        Gu[k] += row[k] * s
            for e in range(a + 1):
                A[a, e] = 2.0 * dot(U[e], Gu, q)
            for i in range(p):
                s = 0.0
                for f in range(i, last[i]):
                    s += L[f, i] * Gu[columns[f]]
                R[i, a] = s
        _solve_columns(K, R, p, held)
        for i in range(p):
            row = R[i]
            for a in range(held):
                s = 2.0 * row[a]
                for e in range(a + 1):
                    A[a, e] -= s * row[e]
        for a in range(held):
            for e in range(a):
                A[e, a] = A[a, e]
        _move_shares(A, slope, mixture.share, held, work.system, to)
        gain = 0.0
        for a in range(held):
            gain -= slope[a] * (to[a] - mixture.share[a])
        if not gain > 1e-12 * yy and known:
            break
        for a in range(held):
            mixture.share[a] = to[a]
    for j in range(q):
        z[j] = 0.0
    for a in range(held):
        for i in range(count):
            mask = mixture.masks[a, i]
            for k in range(blocks.member.shape[1]):
                if (mask >> k) & 1:
                    z[blocks.member[i, k]] += mixture.share[a]
    for a in range(held, MOST_SUPPORTS):
        mixture.share[a] = 0.0
    return dual, primal, steps


@njit(cache=True, nogil=True)
def fix_columns(blocks, bar, work, status):
    """Fix the free columns that all supports of a node below a cutoff contain, or none does; return the number.

    The last point bounds the supports with a column, and those without it, by the largest sum of each kind.

    Parameters
    ----------
    blocks : Blocks
        Blocks.
    bar : float
        Cutoff.
    work : BlockWork
        Work arrays as `bound_node` left them.
    status : (q,) int8 array
        Status of the columns at the node, changed in place.

    Notes
    -----
    O(blocks (2^s s + tau^2)).
    """
    best, sums = work.best, work.sums
    count, s = blocks.member.shape
    tau = sums.shape[1] - 1
    most = (work.base[0] - bar) / (1.0 + blocks.blur)  # a largest sum up to this value gives a bound above the cutoff
    if not most > -np.inf:
        return 0
    after, level, longer = np.full(tau + 1, -np.inf), np.empty(tau + 1), np.empty(tau + 1)
    after[0] = 0.0
    having, lacking = np.empty(s), np.empty(s)
    fixed = 0
    for b in range(count - 1, -1, -1):
        member = blocks.member[b]
        needed, barred = work.needed[b], work.barred[b]
        size = 0
        while size < s and member[size] >= 0:
            size += 1
        for x in range(tau + 1):  # x: maximum number of columns in all other blocks
            level[x] = -np.inf
            for y in range(x + 1):
                level[x] = max(level[x], sums[b, y] + after[x - y])
            if x > 0:
                level[x] = max(level[x], level[x - 1])
        for i in range(size):
            having[i] = -np.inf
            lacking[i] = -np.inf
        open_columns, some = ((1 << size) - 1) & ~(barred | needed), 0
        while True:
            mask = needed | some
            if work.length[mask] <= tau:
                x = work.value[b, mask] + level[tau - work.length[mask]]
                for i in range(size):
                    if (mask >> i) & 1:
                        having[i] = max(having[i], x)
                    else:
                        lacking[i] = max(lacking[i], x)
            some = (some - open_columns) & open_columns
            if some == 0:
                break
        for i in range(size):
            if status[member[i]] == FREE and having[i] <= most:
                status[member[i]] = DROPPED
                fixed += 1
            elif status[member[i]] == FREE and lacking[i] <= most:
                status[member[i]] = INSIDE
                fixed += 1
        for x in range(tau + 1):
            longer[x] = -np.inf
            for held in range(min(size, x) + 1):
                longer[x] = max(longer[x], after[x - held] + best[b, held])
        for x in range(tau + 1):
            after[x] = longer[x]
    return fixed
