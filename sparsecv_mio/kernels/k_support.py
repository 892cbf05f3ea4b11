"""The squared k-support norm, its proximal map, and sums of the k largest entries (theory section 1).

Omega_k(b) = min { sum_j b_j^2 / z_j : z in [0, 1], sum z <= k },        Omega_k*(2 g) = sum of the k largest g_j^2

Omega_k is the penalty of the perspective relaxation with k columns, and the sum of the k largest squares is the penalty
of the dual problem. The proximal map of a vector v with step s is `b_j = v_j z_j / (z_j + s)`, where
`z_j = clip(|v_j| t - s, 0, 1)` with the number t for which `sum z = k`.
"""

import numpy as np

from sparsecv_mio.kernels.jit import njit


@njit(cache=True, nogil=True)
def largest(values, count, k, heap):
    """Fill `heap[:k]` with the k largest of `values[:count]`, falling; return their sum. O(count + k * moves).

    Parameters
    ----------
    values : array
        Values, of which the first `count` are used.
    count, k : int
        Number of values, and number of the largest ones.
    heap : (k,) array or larger
        Array to fill.
    """
    if k <= 0:
        return 0.0
    held = 0
    for a in range(count):
        x = values[a]
        if held < k:
            i = held
            held += 1
        elif x > heap[k - 1]:
            i = k - 1
        else:
            continue
        while i > 0 and heap[i - 1] < x:
            heap[i] = heap[i - 1]
            i -= 1
        heap[i] = x
    s = 0.0
    for i in range(held):
        s += heap[i]
    return s


@njit(cache=True, nogil=True)
def largest_places(values, count, k, places):
    """Fill `places[:k]` with the positions of the k largest of `values[:count]`, falling. O(count + k * moves).

    Parameters
    ----------
    values : array
        Values, of which the first `count` are used.
    count, k : int
        Number of values, and number of the largest ones, at most `count`.
    places : int array
        Array to fill.
    """
    held = 0
    for a in range(count):
        x = values[a]
        if held < k:
            i = held
            held += 1
        elif held > 0 and x > values[places[held - 1]]:
            i = held - 1
        else:
            continue
        while i > 0 and values[places[i - 1]] < x:
            places[i] = places[i - 1]
            i -= 1
        places[i] = a


@njit(cache=True, nogil=True)
def top_sum(values, k):
    """Return the sum of the k largest entries. O(q + k * moves)."""
    k = min(k, values.shape[0])
    return largest(values, values.shape[0], k, np.empty(k))


@njit(cache=True, nogil=True)
def support_norm(values, count, k, heap):
    """Return the squared k-support norm of nonnegative `values[:count]` (theory section 1). O(count k).

    Parameters
    ----------
    values : array
        Values, of which the first `count` are used.
    count, k : int
        Number of values, and k of the norm.
    heap : (k,) array or larger
        Work array.
    """
    total = 0.0
    nonzero = 0
    for a in range(count):
        total += values[a]
        if values[a] > 0.0:
            nonzero += 1
    if nonzero <= k:
        s = 0.0
        for a in range(count):
            s += values[a] * values[a]
        return s
    if k <= 0:
        return np.inf
    largest(values, count, k, heap)
    # r entries of the head join the tail, with the smallest r such that head[k-r-2] > tail / (r + 1) >= head[k-r-1]
    tail = total
    for i in range(k):
        tail -= heap[i]
    s = 0.0
    for r in range(k):
        tail += heap[k - 1 - r]
        mean = tail / (r + 1)
        if r == k - 1 or heap[k - 2 - r] > mean:
            for i in range(k - 1 - r):
                s += heap[i] * heap[i]
            return s + tail * mean
    return s


@njit(cache=True, nogil=True)
def prox_scale(v, count, k, step):
    """Return t with `sum clip(v_j t - step, 0, 1) = k` for nonnegative v, 0 < k < count. O(count) for each Newton step.

    Parameters
    ----------
    v : array
        Values, of which the first `count` are used.
    count, k : int
        Number of values, and their required sum.
    step : float
        Step of the proximal map.
    """
    top = 0.0
    for a in range(count):
        top = max(top, v[a])
    if top <= 0.0:
        return np.inf
    lo = step / top
    hi = np.inf
    t = (step + 1.0) / top
    for _ in range(100):
        s = 0.0
        slope = 0.0
        least = np.inf
        for a in range(count):
            z = v[a] * t - step
            if z >= 1.0:
                s += 1.0
            elif z > 0.0:
                s += z
                slope += v[a]
            elif v[a] > 0.0:
                least = min(least, step / v[a])
        if abs(s - k) <= 1e-12 * k:
            return t
        if s < k:
            lo = t
        else:
            hi = t
        if slope > 0.0:
            new = t + (k - s) / slope
        elif s < k:
            if least == np.inf:
                return t
            new = least * (1.0 + 1e-12) + 1e-300
            if new <= t:
                new = t * (1.0 + 1e-9)
        else:
            new = 0.5 * (lo + hi)
        if not (new > lo and new < hi):
            new = 0.5 * (lo + hi) if hi < np.inf else 2.0 * t
        if new == t:
            return t
        t = new
    return t
