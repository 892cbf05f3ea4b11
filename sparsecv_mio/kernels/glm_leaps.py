"""Leaps and bounds for a smooth convex loss: branch-and-bound that drops columns from fits, as the path tree does.

A node has the columns A; the first columns of A are in every support of the node. Any point theta bounds the objective
F_S of each support S of the node from below, by tangents of the losses l (docs/theory/glm.md, section 13). Let v_i be
the weight of row i, m_i its margin at theta, `s = -l'(m)`, `G_j = sum_i v_i s_i sign_i z_ij` for column z_j, and
`c_j = G_j^2 / (4 ridge_j)`. Then

    F_S >= sum_i v_i (l(m_i) + s_i m_i) - sum over columns without ridge (G_j a_j) - sum_{j in S} c_j.

The columns without ridge include the intercept. The coefficients a_j of these columns lie in a known range at all fits
whose objective is at most the cutoff. If theta is the fit of A and S = A, the bound equals F_A. Newton's method for the
fit of A therefore continues until the lower bound exceeds the cutoff, or F at the current point is at most the cutoff.

A free column is dropped in all children if the objectives of all supports with this column exceed the cutoff. The other
free columns are sorted by the cost of dropping them in Newton's quadratic, the largest cost first. The t-th child
includes the first t of these columns and drops the next one. With very many columns, the relaxation of a node starts at
the point theta of the node, and no Hessian is factorised.

**Bounds on coefficients.** The coefficient of a free column is in the interval of its bounds extended to 0, and c_j is
the maximum of `G_j b - ridge_j b^2` over this interval. A node is closed if a point near its fit is the fit of one of
its supports: bounds of 0 hold all but `most` coefficients at 0. All optimal supports of the node then have nearly the
same fit. If intervals exclude 0, such a node is closed only after their columns are included or dropped.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import (
    EPS,
    add_multiple,
    cholesky_in_place,
    cholesky_solve,
    copy_vector,
    dot,
    gram_of_lower,
    invert_lower,
    solve_lower,
    solve_upper,
)
from sparsecv_mio.kernels.glm_newton import (
    Columns,
    clip_to_ends,
    evaluate,
    find_bounded_target,
    gram,
    hessian,
    pulls,
    take_columns,
)
from sparsecv_mio.kernels.jit import int_constant, njit
from sparsecv_mio.kernels.k_support import largest
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import Accuracy, Form, Node
from sparsecv_mio.kernels.smooth_losses import curvatures, fill, multiply_by_signs, new_state, roundings

MAX_NODE_NEWTON_STEPS = 40  # maximum number of Newton steps at a node, after which the node is split
SPLIT_DECREMENT = 0.05  # squared decrement up to which the fit of an open node is accurate enough for splitting
MODEL_GAP_RTOL = 0.2  # accuracy of the relaxation of a model, as a share of the distance to the level
SLOW = 0.1  # ratio of squared decrements above which the Hessian is computed again
MODEL_STEPS = int_constant(20)  # maximum steps of the relaxation of a quadratic model
MAX_MODEL_POINTS = 5  # maximum number of points of the relaxation of a node
MIN_GAP_SHARE = 0.1  # minimum share of the gap, and of the nodes, that such points close to be used at every node
NODES_BETWEEN_TRIES = 10  # otherwise they are used at one node in 10
NODE_FIT_RTOL = 1e-13  # squared decrement, as a share of F, at which a point counts as the fit of a node
POLISHES = 4  # maximum number of steps of the columns without ridge alone


class FitRanges(NamedTuple):
    """Ranges that contain the fits of interest.

    Attributes
    ----------
    ends : (2, n) array
        Bounds of their margins.
    free : (f,) int array
        Positions of the coefficients without ridge: the intercept, and columns in every support.
    middle, half : (f,) arrays
        Midpoints and half widths of the ranges of these coefficients.
    size : (first + p,) array
        Largest absolute entry of each column.
    """

    ends: np.ndarray
    free: np.ndarray
    middle: np.ndarray
    half: np.ndarray
    size: np.ndarray


class Nodes(NamedTuple):
    """A stack of nodes.

    Attributes
    ----------
    columns : (capacity, c) int array
        Positions of the included columns with ridge, then of the free columns.
    width, inside, depth : (capacity,) int arrays
        Numbers of columns, of included columns, and of nodes above.
    point : (capacity, first + p) array
        Points where fits begin.
    bound : (capacity,) array
        Lower bounds on F of their supports.
    """

    columns: np.ndarray
    width: np.ndarray
    inside: np.ndarray
    depth: np.ndarray
    point: np.ndarray
    bound: np.ndarray


class NodeFit(NamedTuple):
    """The fit of a node's columns, and the numbers computed from it.

    Attributes
    ----------
    Z : Columns
        Columns of the node; the intervals of free columns are extended to 0.
    inside : int
        Number of included columns with ridge; they follow the columns without ridge.
    penalty, size : (k,) arrays
        Ridge, and largest absolute entries.
    theta : (k,) array
        Point, written.
    costs : (k - f,) array
        Amounts that each column with ridge can subtract from the best bound, written.
    curved, H : (k, k) arrays
        A nearby Hessian and its factor, written.
    """

    Z: Columns
    inside: int
    penalty: np.ndarray
    size: np.ndarray
    theta: np.ndarray
    costs: np.ndarray
    curved: np.ndarray
    H: np.ndarray


class SizesWanted(NamedTuple):
    """Sizes and level of the wanted supports.

    Attributes
    ----------
    least, most : int
        Minimum and maximum number of columns with ridge.
    level : float
        Upper bound on F.
    falls : bool
        True if the level falls to the values found.
    factored : bool
        True if Hessians are factored, which takes too long with very many columns.
    """

    least: int
    most: int
    level: float
    falls: bool
    factored: bool


def one_node(columns, inside, most, most_fits, point, bound):
    """Return a stack of one node, deep enough for all nodes below it.

    Parameters
    ----------
    columns : (c,) int array
        Positions of the columns, included ones first.
    inside, most, most_fits : int
        Number of included columns, and maximum numbers of columns of a support and of nodes.
    point : (first + p,) array
        Point where fits begin.
    bound : float
        Lower bound on F.
    """
    c = len(columns)
    capacity = min(c, most_fits) * (most - inside + 1) + 2
    nodes = Nodes(
        np.zeros((capacity, c), dtype=np.int64), np.zeros(capacity, dtype=np.int64), np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64), np.zeros((capacity, len(point))), np.zeros(capacity),
    )  # fmt: skip
    nodes.columns[0], nodes.point[0], nodes.width[0], nodes.inside[0], nodes.bound[0] = columns, point, c, inside, bound
    return nodes


@njit(cache=True, nogil=True, error_model="numpy")
def _balance(Z, response, theta, state, first):
    """Move coefficients without ridge to where the slopes of the losses sum to about zero, and update the state."""
    free, H, d = Columns(Z.W, Z.places[:first], Z.ends[:, :0].copy()), np.empty((first, first)), np.empty(first)
    for _ in range(POLISHES):
        settled = 1e-8 * pulls(free, response, state, d)
        curvatures(response, state, state.work)
        gram(free, state.work, H)
        if np.sqrt(dot(d, d, first)) <= settled or not cholesky_in_place(H, first):
            break
        cholesky_solve(H, d, first)
        length = max(1.0, np.sqrt(dot(d, d, first)))
        for a in range(first):
            move, column = d[a] / length, Z.W[Z.places[a]]
            theta[a] += move
            for i in range(Z.W.shape[1]):
                state.work[i] = move * column[i]
            multiply_by_signs(response, state.work)
            add_multiple(1.0, state.work, state.margins)
        fill(response, state.margins, state)


@njit(cache=True, nogil=True, error_model="numpy")
def worth(response, state, g, total, region):
    """Return the part of a tangent bound that all supports share, and a bound on the rounding of each entry of g.

    Parameters
    ----------
    response : Response
        Weights, targets and loss.
    state : State
        State at the margins of a point.
    g : (k,) array
        Result of `pulls`; the first entries belong to the columns without ridge.
    total : float
        `sum_i v_i |s_i|`.
    region : FitRanges
        Ranges of the fits of interest.

    Notes
    -----
    Tangents at the computed margins are below the losses, whatever the point. The rounding of a slope is multiplied by
    the distance of the fits of interest from the point.
    """
    n = state.margins.shape[0]
    off = np.zeros(n)
    loose = roundings(response, state, off, state.work)
    base, size = 0.0, 0.0
    for i in range(n):
        m, s = state.margins[i], response.v[i] * state.falls[i]
        base += response.v[i] * state.losses[i] + s * m
        size += response.v[i] * state.losses[i] + abs(s * m)
        loose += state.work[i] * max(abs(region.ends[0, i] - m), abs(region.ends[1, i] - m))
    share = (n + 24) * EPS * total
    base -= 1.01 * loose + (n + 24) * EPS * size
    for a in range(region.free.shape[0]):
        middle, half = region.middle[a], region.half[a]
        base -= g[a] * middle + abs(g[a]) * half + share * region.size[region.free[a]] * (abs(middle) + half)
    return base, share


@njit(cache=True, nogil=True, error_model="numpy")
def _cost_up_to(pull, ridge, low, high):
    """Return an upper bound on `pull b - ridge b^2` for b in an interval."""
    b = min(max(pull / (2.0 * ridge), low), high)
    if not abs(b) < np.inf:  # a ridge of nearly 0
        return np.inf
    return b * (pull - ridge * b) + 8.0 * EPS * (abs(b * pull) + ridge * b * b)


@njit(cache=True, nogil=True, error_model="numpy")
def _costs(g, penalty, size, share, ends, costs):
    """Fill the amounts that each column can subtract from a tangent bound."""
    first = g.shape[0] - costs.shape[0]
    for a in range(costs.shape[0]):
        off, ridge = share * size[first + a], penalty[first + a]
        most = abs(g[first + a]) + off
        costs[a] = most * most / (4.0 * ridge) * (1.0 + 8.0 * EPS)
        if ends.shape[1]:
            low, high = ends[0, first + a], ends[1, first + a]
            costs[a] = 0.0 if low <= 0.0 <= high else -np.inf
            if high > 0.0:
                costs[a] = max(costs[a], _cost_up_to(g[first + a] + off, ridge, max(low, 0.0), high))
            if low < 0.0:
                costs[a] = max(costs[a], _cost_up_to(g[first + a] - off, ridge, low, min(high, 0.0)))


@njit(cache=True, nogil=True, error_model="numpy")
def bound_supports(base, costs, inside, most, buffer, heap):
    """Return the bound of supports that have the first `inside` columns and up to `most` columns in all."""
    taken, total, rest = 0.0, 0.0, costs.shape[0] - inside
    for a in range(inside):
        taken += costs[a]
        total += abs(costs[a])  # an interval that excludes 0 may have a negative cost
    for a in range(rest):
        buffer[a] = costs[inside + a]
    more = largest(buffer, rest, min(most - inside, rest), heap)
    taken, total = taken + more, total + more
    return base - taken - (costs.shape[0] + 8) * EPS * (abs(base) + total)


@njit(cache=True, nogil=True, error_model="numpy")
def _factor(fit):
    """Factor the Hessian of a node; return False if it is not positive definite."""
    fit.H[:, :] = fit.curved
    return cholesky_in_place(fit.H, fit.penalty.shape[0])


@njit(cache=True, nogil=True, error_model="numpy")
def _may_close(fit, most):
    """Return True if bounds of 0 hold coefficients at 0 such that at most `most` columns with ridge are not at 0."""
    ends, first = fit.Z.ends, fit.theta.shape[0] - fit.costs.shape[0]
    count = 0
    for a in range(first + fit.inside, ends.shape[1]):
        count += int(fit.theta[a] == 0.0 and (ends[0, a] == 0.0 or ends[1, a] == 0.0))
    return 0 < count and fit.costs.shape[0] - count <= most


@njit(cache=True, nogil=True, error_model="numpy")
def settle(fit, response, region, wanted, level, known):
    """Fit a node until its bound is above a level, or its fit is not; return `(bound, F at the point, base)`.

    Parameters
    ----------
    fit : NodeFit
        Node, written.
    response : Response
        Weights, targets and loss.
    region : FitRanges
        Ranges of the fits of interest.
    wanted : SizesWanted
        Sizes.
    level : float
        Present level, instead of that of `wanted`.
    known : bool
        True if the Hessian is that of the parent.
    """
    Z, inside, penalty, size, theta, costs, curved, H = fit
    first, k, n = region.free.shape[0], Z.places.shape[0], Z.W.shape[1]
    state, g, d, ahead = new_state(n), np.empty(k), np.empty(k), np.empty(k)
    buffer, heap, now = np.empty(k), np.empty(k + 1), np.empty(k - first)
    bound, best_base, before, f, value = -np.inf, -np.inf, np.inf, np.inf, np.inf
    is_bounded, target = Z.ends.shape[1] > 0, np.empty(k)
    made, fresh = known and wanted.factored and (is_bounded or _factor(fit)), False
    clip_to_ends(Z.ends, theta)
    for step in range(MAX_NODE_NEWTON_STEPS):
        f = evaluate(Z, response, penalty, theta, state)
        if made and not f <= value + 1e-9 * abs(value):
            made = fresh  # otherwise the Hessian is too old, and the step need not be shorter
            for a in range(k):
                d[a] *= 0.4 if fresh else 0.0
                theta[a] = ahead[a] + d[a]
            clip_to_ends(Z.ends, theta)
            continue
        value = f
        total = pulls(Z, response, state, g)
        for attempt in range(2):
            base, share = worth(response, state, g, total, region)
            _costs(g, penalty, size, share, Z.ends, now)
            b = bound_supports(base, now, inside, wanted.most, buffer, heap)
            if b > bound:
                bound, best_base = b, base
                copy_vector(now, costs)
            lost = (np.abs(g[:first]) * (2.0 * region.half + np.abs(region.middle))).sum()
            if attempt == 1 or b > level or not b + lost > level:
                break
            _balance(Z, response, theta, state, first)
            value = f = evaluate(Z, response, penalty, theta, state)
            total = pulls(Z, response, state, g)
        if bound > level:
            break
        for again in range(2):
            if not made:
                hessian(Z, response, penalty, state, curved)
                if not (wanted.factored and (is_bounded or _factor(fit))):
                    return bound, f, best_base
                made, fresh = True, True
            else:
                fresh = again == 1
            for a in range(k):
                d[a] = g[a] - 2.0 * penalty[a] * theta[a]
            if is_bounded:
                if not find_bounded_target(curved, d.copy(), theta, Z.ends, NODE_FIT_RTOL * abs(f), H, target):
                    return bound, f, best_base
                decrement = dot(d, target - theta, k)
            else:
                solve_lower(H, d, k)
                decrement = dot(d, d, k)
            if fresh or decrement <= SLOW * before:
                break
            made = False
        before = decrement
        is_fit = decrement <= NODE_FIT_RTOL * abs(f)
        if is_fit or (f <= level and decrement <= SPLIT_DECREMENT and not _may_close(fit, wanted.most)):
            break
        if is_bounded:
            copy_vector(target - theta, d)
        else:
            solve_upper(H, d, k)
        length = 1.0 if decrement < 1.0 else 1.0 / (1.0 + 0.3 * np.sqrt(decrement))
        for a in range(k):
            d[a] *= length
            ahead[a] = theta[a]
            theta[a] = target[a] if is_bounded and length == 1.0 else theta[a] + d[a]
        clip_to_ends(Z.ends, theta)
    return bound, f, best_base


@njit(cache=True, nogil=True, error_model="numpy")
def tighten(fit, response, region, wanted, level, bounds):
    """Raise the bound of a node by points of the perspective relaxation; return `(bound, base)`.

    A step is a Newton step: it relaxes the quadratic model about the last point (`node_relaxation`).

    Parameters
    ----------
    fit : NodeFit
        Node as `settle` leaves it.
    response : Response
        Weights, targets and loss.
    region : FitRanges
        Ranges of the fits of interest.
    wanted : SizesWanted
        Sizes.
    level : float
        Level.
    bounds : (float, float)
        Present bound and base.
    """
    Z, inside, penalty, size, theta, costs, H, _ = fit
    bound, base = bounds
    first, k, n = region.free.shape[0], Z.places.shape[0], Z.W.shape[1]
    c, room = k - first, wanted.most - inside
    if not 0 < room < c - inside:
        return bound, base
    state, g, at, ahead, d = new_state(n), np.empty(k), theta.copy(), np.empty(k), np.empty(k)
    buffer, heap, now = np.empty(k), np.empty(k + 1), np.empty(c)
    F, U, beside = np.empty((first, first)), np.empty((c, first)), np.empty(first)
    b, slopes, point, best_slopes = np.empty(c), np.zeros(c), np.zeros(c), np.zeros(c)
    G, linear, root = np.empty((c, c)), np.empty(c), 1.0 / np.sqrt(penalty[first:])
    node = Node(np.arange(inside), inside, np.arange(inside, c), c - inside, room)
    evaluate(Z, response, penalty, at, state)
    pulls(Z, response, state, g)
    here, no_ridge = bound, np.zeros(k)
    for attempt in range(MAX_MODEL_POINTS):
        if attempt > 0:
            hessian(Z, response, penalty, state, H)
        losses, trace, yy = dot(response.v, state.losses, n), 0.0, 0.0
        F[:, :], U[:, :], beside[:] = H[:first, :first], H[first:, :first], g[:first]
        if not cholesky_in_place(F, first):
            break
        solve_lower(F, beside, first)
        losses -= 0.5 * dot(beside, beside, first)
        for a in range(c):
            h = 0.5 * root[a]
            solve_lower(F, U[a], first)
            for e in range(a + 1):
                x = H[first + a, first + e] - dot(U[a], U[e], first)
                if e == a:
                    x -= 2.0 * penalty[first + a]
                G[a, e] = x * h * root[e]
                G[e, a] = G[a, e]
            linear[a] = h * (g[first + a] - dot(U[a], beside, first))
            b[a] = at[first + a] / root[a]
            trace += G[a, a]
        losses += 2.0 * dot(linear, b, c)
        for a in range(c):
            x = dot(G[a], b, c)
            losses += x * b[a]
            linear[a] += x
            yy += linear[a] * linear[a]
        if not 0.0 < trace + 1e-12 < np.inf:
            break
        form = Form(G, linear, 2.0 * yy + 1e-300, trace + 1e-12)
        bar = form.yy + level - losses
        _, upper, _ = relax(form, node, Accuracy(bar, MODEL_GAP_RTOL, MODEL_STEPS), b, slopes, point, best_slopes)
        below = upper < bar
        for a in range(c):
            d[first + a] = point[a] * root[a] - at[first + a]
            for e in range(first):
                beside[e] -= U[a, e] * d[first + a]
        solve_upper(F, beside, first)
        copy_vector(beside, d)
        length = 1.0
        for _ in range(3):
            for a in range(k):
                ahead[a] = at[a] + length * d[a]
            evaluate(Z, response, no_ridge, ahead, state)
            _balance(Z, response, ahead, state, first)
            total = pulls(Z, response, state, g)
            part, share = worth(response, state, g, total, region)
            _costs(g, penalty, size, share, Z.ends, now)
            there = bound_supports(part, now, inside, wanted.most, buffer, heap)
            if there > here:
                break
            length *= 0.4
        if not there > here:
            break
        small = there - here < MIN_GAP_SHARE * (level - there)
        here = there
        copy_vector(ahead, at)
        if here > bound:
            bound, base = here, part
            copy_vector(now, costs)
        if bound > level or small or below:
            break
    if not wanted.factored:
        copy_vector(at, theta)
    return bound, base


@njit(cache=True, nogil=True, error_model="numpy")
def process_nodes(rows, region, wanted, nodes, most_fits, found):
    """Process a stack of nodes, the last one first; return `(nodes left, supports found, level)`.

    Every support of the closed nodes with a wanted size and F at most the level is among those found.

    Parameters
    ----------
    rows : Rows
        Rows, with the ridge of all copies of a column together.
    region : FitRanges
        Ranges of the fits with F at most the level.
    wanted : SizesWanted
        Sizes and level.
    nodes : Nodes
        Stack with one node.
    most_fits : int
        Maximum number of fits.
    found : (L, first + p) bool array
        Array to fill with the supports.
    """
    least, most, level, top = wanted.least, wanted.most, wanted.level, 1
    first, count, fits, asked, closed = region.free.shape[0], 0, 0, 0, 0
    all_in = first + nodes.width[0]
    above, place = np.empty((min(nodes.width[0] + 1, most_fits), all_in, all_in)), np.zeros(rows.W.shape[0], np.int64)
    place[region.free], place[nodes.columns[0, : nodes.width[0]]] = np.arange(first), np.arange(first, all_in)
    while top > 0 and fits < most_fits and count < found.shape[0]:
        top -= 1
        c, inside, depth = nodes.width[top], nodes.inside[top], nodes.depth[top]
        if nodes.bound[top] > level:
            continue
        k = first + c
        own = np.concatenate((region.free, nodes.columns[top, :c]))
        theta, ridge, size = nodes.point[top][own], rows.penalty[own], region.size[own]
        costs, curved, H = np.zeros(c), np.empty((k, k)), np.empty((k, k))
        for a in range(k if depth > 0 else 0):
            for e in range(k):
                curved[a, e] = above[depth - 1, place[own[a]], place[own[e]]]
        fits += 1
        Z, n_apart = take_columns(rows, own), 0
        for a in range(first + inside, Z.ends.shape[1]):
            n_apart += int(not Z.ends[0, a] <= 0.0 <= Z.ends[1, a])
            Z.ends[0, a], Z.ends[1, a] = min(Z.ends[0, a], 0.0), max(Z.ends[1, a], 0.0)
        fit = NodeFit(Z, inside, ridge, size, theta, costs, curved, H)
        bound, f, base = settle(fit, rows.response, region, wanted, level, depth > 0)
        if max(bound, nodes.bound[top]) > level:
            continue
        if closed >= MIN_GAP_SHARE * (asked - NODES_BETWEEN_TRIES) or fits % NODES_BETWEEN_TRIES == 0:
            asked += 1
            bound, base = tighten(fit, rows.response, region, wanted, level, (bound, base))
            if bound > level:
                closed += 1
                continue
        bound = max(bound, nodes.bound[top])
        closes = Z.ends.shape[1] > 0 and n_apart == 0 and (c <= most or (wanted.factored and _may_close(fit, most)))
        if closes and c > most:
            f = evaluate(Z, rows.response, ridge, theta, new_state(Z.W.shape[1]))
        if closes or (n_apart == 0 and least <= c <= most):
            found[count] = False
            found[count][own] = True
            count += 1
            if wanted.falls and f < np.inf:
                level = min(level, f * (1.0 + 1e-9))
        if c > max(least, inside) and not closes:
            for a in range(k if fits < most_fits else 0):
                for e in range(k):
                    above[depth, place[own[a]], place[own[e]]] = curved[a, e]
            top = _split(rows, nodes, top, fit, wanted, (base, bound), level)
    return top, count, level


@njit(cache=True, nogil=True, error_model="numpy")
def _split(rows, nodes, top, fit, wanted, bounds, level):
    """Push the children of a node whose supports may have F up to a level; return the new top.

    If all columns may be included, only those whose intervals exclude 0 are.
    """
    own, inside, theta, costs, H = fit.Z.places, fit.inside, fit.theta, fit.costs, fit.H
    (base, bound), depth = bounds, nodes.depth[top]
    least, most, factored, k, c = wanted.least, wanted.most, wanted.factored, own.shape[0], costs.shape[0]
    first = k - c
    inverse, V = np.zeros((k, k)), np.empty((k, k))
    cost, whole = np.empty(c - inside), factored
    for a in range(k):
        whole = whole and H[a, a] > 0.0  # otherwise there is no factor
    if whole:
        invert_lower(H, inverse, k)
        gram_of_lower(inverse, V)
    for a in range(c - inside):
        at = first + inside + a
        if whole:
            cost[a] = -theta[at] * theta[at] / V[at, at]
            whole = cost[a] > -np.inf
    if not whole:
        cost[:] = -costs[inside:]
    buffer, heap, kept = np.empty(k), np.empty(k + 1), np.empty(k)
    beside = bound_supports(base, costs, inside, most - 1, buffer, heap)
    order, free = np.argsort(cost, kind="mergesort"), 0
    for a in order:
        if not beside - costs[inside + a] * (1.0 + 8.0 * EPS) > level:  # else every support with it is above the level
            order[free] = a
            free += 1
    n_dropped, last = free, min(free if free < c - inside else free - 1, most - inside)
    if rows.ends.shape[1] and c <= most:
        n_dropped = 0
        for a in range(free):
            j, e = own[first + inside + order[a]], order[a]
            if not rows.ends[0, j] <= 0.0 <= rows.ends[1, j]:
                for b in range(a, n_dropped, -1):
                    order[b] = order[b - 1]
                order[n_dropped] = e
                n_dropped += 1
        last = n_dropped
    for t in range(last, -1, -1):
        at, number = first + inside + order[t] if t < n_dropped else -1, inside
        copy_vector(costs[:inside], kept)
        chosen = inside + t
        for a in range(free if chosen < most else t):
            if a != t or at < 0:
                nodes.columns[top, number] = own[first + inside + order[a]]
                kept[number] = costs[inside + order[a]]
                number += 1
        if number < least:
            continue
        copy_vector(own[first : first + inside], nodes.columns[top])
        below = max(bound, bound_supports(base, kept[:number], chosen, most, buffer, heap))
        if below > level:
            continue
        nodes.point[top] = 0.0
        for a in range(k if whole or not factored else 0):
            nodes.point[top, own[a]] = theta[a]
            if chosen < most and at >= 0 and whole:
                nodes.point[top, own[a]] -= V[a, at] * theta[at] / V[at, at]
        if at >= 0:
            nodes.point[top, own[at]] = 0.0
        nodes.width[top], nodes.inside[top], nodes.bound[top] = number, chosen, below
        nodes.depth[top] = depth + 1
        top += 1
    return top
