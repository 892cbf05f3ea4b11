"""Bounds on the predictions of the held-out rows of a fold, by the conic bound of docs/theory/bounds.md, section 4.

Let x be a held-out row, and F, D and the normal form be those of :mod:`sparsecv_mio.kernels.level_sets`. For every t >
0 and every b

    x'b*  <=  (ubar - D(b; c + t x / 2, yy, G)) / t        for every k-sparse b* with f(b*) <= ubar.

At the best b and t, b minimises `F - t x'b` and `F(b) = ubar`. F is piecewise quadratic. In each piece, some columns
have z = 1, some z = 0 and some a fractional z, and one factorisation of the matrix K of the piece solves both
equations: `b = K^{-1} c + t K^{-1} x / 2`, `F(b) = yy - c'K^{-1} c + t^2 x'K^{-1} x / 4`.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, copy_vector
from sparsecv_mio.kernels.jit import NO_ITEMS, njit
from sparsecv_mio.kernels.k_support import largest, support_norm
from sparsecv_mio.kernels.node_relaxation import (
    KindsOfColumns,
    gradient,
    new_partition,
    partition_matrix,
    propose_partition,
    relax,
)
from sparsecv_mio.kernels.nodes import NODE_GAP_RTOL, Form, Node, absolute, allowance, positive_gap

JOINT_RTOL = 0.03  # accepted relative error of F(b) - min F, whose effect on the bound is of second order
JOINT_STEPS = 12  # maximum number of joint Newton steps
SHRINK, LEAST_STEP = 0.2, 0.03  # factor on, and minimum of, the proximal step that proposes a partition


class PredictedRows(NamedTuple):
    """Predictions to be bounded.

    Attributes
    ----------
    X, shift : (N, f), (N,) arrays
        Predictions `shift_i + x_i'b`, rows in the units of the normal form.
    u : (N,) array
        Targets: the bounds serve `||u - X b||^2`, so a bound that does not matter for it is left loose. NaN: none.
    free : (f,) int array
        Positions of the columns in `moved`.
    moved : (N, 2, q) array
        Moves from the centre divided by t at the previous size, by row and side, in units that are the same at every
        size; NaN if there is none. Filled for the next size.
    """

    X: np.ndarray
    shift: np.ndarray
    u: np.ndarray
    free: np.ndarray
    moved: np.ndarray


class Goal(NamedTuple):
    """Data of one bound of a prediction.

    Attributes
    ----------
    x : (f,) array
        Direction.
    low : float
        Value `x'b` at the centre.
    inside, enough : float
        Stopping rule: the bound is at most `enough` and a point with F at most ubar reaches `inside`.
    most : float
        `||x||` times a bound on `||b*||`.
    """

    x: np.ndarray
    low: float
    inside: float
    enough: float
    most: float


class RowWork(NamedTuple):
    """Work arrays for f columns and k of them."""

    partition: KindsOfColumns
    work: np.ndarray
    columns: np.ndarray
    v: np.ndarray
    d: np.ndarray
    g: np.ndarray
    buffer: np.ndarray
    heap: np.ndarray
    last_b: np.ndarray
    last_g: np.ndarray


@njit(cache=True, nogil=True)
def new_scratch(f, k):
    """Return work arrays for f columns and k of them."""
    return RowWork(
        new_partition(f), np.empty((f, f)), np.empty(f, dtype=np.int64), np.empty(f), np.empty(f), np.empty(f),
        np.empty(f), np.empty(max(k, 1)), np.empty(f), np.empty(f),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def centre_factor(form, node, b, factor, columns):
    """Factor K at the centre b, fill `factor` and `columns`; return the number of columns, 0 if K is singular.

    O(f^2 + s^3 / 3).

    Parameters
    ----------
    form, node : Form, Node
        Problem, and the node of all columns.
    b : (f,) array
        Centre.
    factor : (f, f) array
        Array to fill with the factor.
    columns : (f,) int array
        Array to fill with the columns of K.
    """
    f = form.c.shape[0]
    g = np.empty(f)
    partition = new_partition(f)
    gradient(form.G, form.c, node.free, b, g)
    kappa = propose_partition(b, g, node, 1.0, partition, np.empty(f))
    size = partition_matrix(form.G, node.free, partition, kappa, factor, columns)
    return size if size > 0 and cholesky_in_place(factor, size) else 0


@njit(cache=True, nogil=True)
def value_along(form, node, x, t, b, scratch):
    """Return `F(b) - t x'b - yy`. O(f nnz(b) + f k).

    Parameters
    ----------
    form, node : Form, Node
        Problem, and the node of all columns.
    x, t : (f,) array, float
        Linear form and its multiplier.
    b : (f,) array
        Point.
    scratch : RowWork
        Work arrays.
    """
    c, buffer = form.c, scratch.buffer
    f = c.shape[0]
    s = gradient(form.G, c, node.free, b, scratch.g)
    for j in range(f):
        s -= b[j] * (2.0 * c[j] + t * x[j])
        buffer[j] = abs(b[j])
    return s + support_norm(buffer, f, node.k, scratch.heap)


@njit(cache=True, nogil=True)
def joint_newton(form, node, candidates, goal, t, rounding, scratch, points):
    """Take Newton steps on b and t together, each iterate of which gives a bound.

    Parameters
    ----------
    form, node : Form, Node
        Problem, and the node with all columns free.
    candidates : Candidates
        Level set that contains the candidates.
    goal : Goal
        Requested bound.
    t : float
        Initial multiplier.
    rounding : Rounding
        Rounding allowance; the bound gains that of D against f divided by t, and that of `x'b`.
    scratch : RowWork
        Work arrays.
    points : pair of (f,) arrays
        Start, overwritten; on return the point of the bound.

    Returns
    -------
    bound, t : float
        Upper bound of `x'b*` and its multiplier.
    done : bool
        True if no further gain is possible.

    Notes
    -----
    At most JOINT_STEPS steps of O(f^2 + s^3 / 3). A step that gives no better bound is undone, and the next partition
    is proposed by a shorter proximal step.
    """
    G, c, yy = form.G, form.c, form.yy
    x, ubar = goal.x, candidates.ubar
    partition, work, index, v, d, g, buffer, heap, last_b, last_g = scratch
    b, best_b = points
    f = c.shape[0]
    gap = positive_gap(candidates, yy)
    bound = np.inf
    best_t = last_t = t
    least = np.inf
    shrink = 1.0
    for step in range(JOINT_STEPS):
        quad = gradient(G, c, node.free, b, g)
        reach = 0.0
        error = goal.most
        primal = yy + quad
        for j in range(f):
            g[j] += 0.5 * t * x[j]
            reach += x[j] * b[j]
            error += abs(x[j] * b[j])
            primal -= 2.0 * c[j] * b[j]
            buffer[j] = abs(b[j])
        primal += support_norm(buffer, f, node.k, heap)
        for j in range(f):
            buffer[j] = g[j] * g[j]
        dual = yy - quad - largest(buffer, f, node.k, heap)
        value = (ubar - dual + allowance(rounding, b)) / t + rounding.unit * error
        better = value < bound
        if better:
            bound = value
            best_t = t
            copy_vector(b, best_b)
        if bound <= goal.enough:
            # F is convex, so at this share of the way from the centre it is below ubar
            share = min(1.0, gap / max(primal - ubar + gap, 1e-300))
            if goal.low + share * (reach - goal.low) >= goal.inside:
                return bound, best_t, True
        apart = primal - t * reach - dual
        if apart <= NODE_GAP_RTOL * gap and abs(primal - ubar) <= JOINT_RTOL * gap:
            return bound, best_t, True
        if better or apart < least:
            least = apart
            last_t = t
            copy_vector(b, last_b)
            copy_vector(g, last_g)
        else:
            shrink *= SHRINK
            if shrink < LEAST_STEP:
                break
        if step == JOINT_STEPS - 1:
            break
        kappa = propose_partition(last_b, last_g, node, shrink, partition, buffer)
        size = partition_matrix(G, node.free, partition, kappa, work, index)
        if size <= 0 or not cholesky_in_place(work, size):
            break
        for a in range(size):
            v[a] = c[index[a]]
            d[a] = 0.5 * x[index[a]]
        cholesky_solve(work, v, size)
        cholesky_solve(work, d, size)
        room = ubar - yy
        bend = 0.0
        for a in range(size):
            room += c[index[a]] * v[a]
            bend += 0.5 * x[index[a]] * d[a]
        if not (room > 0.0 and bend > 0.0):
            break
        t = min(max(np.sqrt(room / bend), 0.1 * last_t), 10.0 * last_t)
        b[:] = 0.0
        for a in range(size):
            b[index[a]] = v[a] + t * d[a]
    return bound, best_t, False


@njit(cache=True, nogil=True)
def bound_rows(form, candidates, rows, b, effort, rounding, ends):
    """Fill the bounds of `shift_i + x_i'b*` for every row, over all candidates b*.

    Parameters
    ----------
    form : Form
        Problem on the free columns.
    candidates : Candidates
        Level set that contains the candidates.
    rows : PredictedRows
        Predictions.
    b : (f,) array
        Point near the minimiser of F.
    effort : Effort
        Limits of one bound.
    rounding : Rounding
        Rounding allowance.
    ends : (N, 2) array
        Array to fill.

    Notes
    -----
    The first t and b come from the centre's partition, one factorisation for all rows, or from the move of the same row
    and side at the previous size if that is nearer. If joint Newton steps stall, a relaxation at fixed t helps.
    O(s^3 / 3), then for every row and side some steps of `joint_newton` and up to `rounds` relaxations.
    """
    G, c, yy = form.G, form.c, form.yy
    X, shift, u, free, moved = rows
    level, root, k = candidates.ubar, rounding.length, candidates.k
    f = c.shape[0]
    N = X.shape[0]
    gap = positive_gap(candidates, yy)
    stop = absolute(yy, NODE_GAP_RTOL * gap, effort.steps)
    every = np.arange(f)
    node = Node(every, NO_ITEMS, every, f, k)
    direction, shifted, start, trial, x = np.empty(f), np.empty(f), np.empty(f), np.empty(f), np.empty(f)
    scratch = new_scratch(f, k)
    factor, columns = np.empty((f, f)), np.empty(f, dtype=np.int64)
    size = centre_factor(form, node, b, factor, columns)
    for e in range(N):
        bend = 0.0
        square = 0.0
        centre = 0.0
        for j in range(f):
            square += X[e, j] * X[e, j]
            centre += X[e, j] * b[j]
        for a in range(size):
            x[a] = 0.5 * X[e, columns[a]]
        cholesky_solve(factor, x, size)
        for a in range(size):
            bend += 0.5 * x[a] * X[e, columns[a]]
        if not bend > 1e-6 * square:
            bend = 0.25 * square
            x[:] = 0.0
        first = np.sqrt(gap / max(bend, 1e-300))
        most = np.sqrt(square) * rounding.norm
        far = 1 if u[e] < centre else 0
        distance = np.inf
        for turn in range(2):
            side = far if turn == 0 else 1 - far
            sign = 1.0 if side == 1 else -1.0
            # the bound farther from u bounds the error from above; the other one matters if as far, or if it excludes u
            inside, enough = np.inf, -np.inf
            if turn == 1 and not np.isnan(u[e]):
                inside, enough = sign * u[e], sign * u[e] + distance
            for j in range(f):
                direction[j] = sign * X[e, j]
                start[j] = b[j]
            for a in range(size):
                start[columns[a]] += sign * first * x[a]
            if not np.isnan(moved[e, side, 0]):
                for j in range(f):
                    trial[j] = b[j] + first * moved[e, side, free[j]] / root[j]
                near = value_along(form, node, direction, first, start, scratch)
                if value_along(form, node, direction, first, trial, scratch) < near:
                    copy_vector(trial, start)
            goal = Goal(direction, sign * centre, inside, enough, most)
            bound = np.inf
            t = first
            ratio = 1.0
            for attempt in range(effort.rounds):
                copy_vector(start, trial)
                value, new, done = joint_newton(form, node, candidates, goal, t, rounding, scratch, (trial, start))
                bound = min(bound, value)
                stuck = attempt > 0 and new == t
                t = new
                if done or attempt == effort.rounds - 1:
                    break
                if stuck:
                    # F - min F is approximately quadratic along the ray from the centre
                    scale = np.sqrt(min(ratio, 100.0))
                    if abs(scale - 1.0) < 0.5 * JOINT_RTOL:
                        break
                    t *= scale
                    for j in range(f):
                        start[j] = b[j] + scale * (start[j] - b[j])
                for j in range(f):
                    shifted[j] = c[j] + 0.5 * t * direction[j]
                copy_vector(start, trial)
                along = Form(G, shifted, yy, form.lipschitz)
                _, primal, _ = relax(along, node, stop, trial, scratch.g, start, scratch.buffer)
                for j in range(f):
                    primal += t * direction[j] * start[j]
                ratio = gap / max(primal - level + gap, 1e-4 * gap)
            moved[e, side, :] = 0.0
            for j in range(f):
                moved[e, side, free[j]] = (start[j] - b[j]) / t * root[j]
            distance = bound - sign * u[e]
            ends[e, side] = shift[e] + sign * (bound + rounding.unit * (abs(shift[e]) + 0.1 * rounding.prior))
