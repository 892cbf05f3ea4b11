"""What kernels are given and keep: problems, states of columns at a node, copies of columns, supports.

Normal form: columns scaled so that `M = G + I`, G positive semidefinite. A support S has `f(S) = yy - c_S' M_S^{-1}
c_S`.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import top_sum

FREE, INSIDE, DROPPED = 0, 1, 2
NEAR = 0.01  # accuracy of a relaxation, of the gap
FAR = 1e6
LEAST_GAP = 1e-14  # of yy


@njit(cache=True, nogil=True)
def list_columns(status, inside, free):
    """Fill `inside` and `free` with the columns of each kind, ascending; return both counts. O(q).

    Parameters
    ----------
    status : (q,) int8 array
    inside, free : (q,) int arrays
    """
    count_inside = 0
    count_free = 0
    for j in range(status.shape[0]):
        if status[j] == INSIDE:
            inside[count_inside] = j
            count_inside += 1
        elif status[j] == FREE:
            free[count_free] = j
            count_free += 1
    return count_inside, count_free


class Form(NamedTuple):
    """A problem in normal form.

    Attributes
    ----------
    G : (q, q) array
    c : (q,) array
    yy : float
    lipschitz : float
        At least the largest eigenvalue of G.
    """

    G: np.ndarray
    c: np.ndarray
    yy: float
    lipschitz: float


class Node(NamedTuple):
    """Supports that hold some columns and choose k of some others.

    Attributes
    ----------
    inside, free : int arrays
        Columns; the first `count_inside` and `count_free` entries count.
    k : int
        0 < k < count_free.
    """

    inside: np.ndarray
    count_inside: int
    free: np.ndarray
    count_free: int
    k: int


class Accuracy(NamedTuple):
    """When a relaxation is solved well enough.

    Attributes
    ----------
    bar : float
        Stop once the dual value reaches it: the node is closed.
    near : float
        Stop once `primal - dual <= near max(bar - dual, 0)`: the node will not close.
    steps : int
        Most steps.
    """

    bar: float
    near: float
    steps: int


@njit(cache=True, nogil=True)
def absolute(yy, accuracy, steps):
    """Make `relax` solve to an absolute accuracy: against a bar far beyond.

    Parameters
    ----------
    yy : float
        Scale of the problem.
    accuracy : float
        Absolute.
    steps : int
        Most steps.
    """
    far = FAR * max(yy, 1e-300)
    return Accuracy(far, accuracy / far, steps)


class Fold(NamedTuple):
    """A problem with a valid diagonal, and the rows that are held out of it.

    Attributes
    ----------
    M, c, yy : (q, q), (q,), float
        Moments and penalty of the training rows.
    w : (q,) array
        `M - diag(w)` is positive semidefinite, w > 0.
    X, u : (N, q), (N,) arrays
        Held-out rows about the training means: the residual of b is `u - X b`.
    """

    M: np.ndarray
    c: np.ndarray
    yy: float
    w: np.ndarray
    X: np.ndarray
    u: np.ndarray


class LevelSet(NamedTuple):
    """Points that bounds are to cover: at most k nonzero entries and f at most `ubar`; about the least F is `zeta`."""

    k: int
    ubar: float
    zeta: float


@njit(cache=True, nogil=True)
def gap_of(candidates, yy):
    """`ubar - min F`, at least LEAST_GAP of yy: what is divided by."""
    return max(candidates.ubar - candidates.zeta, LEAST_GAP * yy)


class Rounding(NamedTuple):
    """What rounding is allowed for (docs/theory/bounds.md 7).

    Attributes
    ----------
    unit : float
        Relative.
    prior : float
        At least `||y|| + sum_S length_j |b*_j|` for every candidate b*.
    norm : float
        At least `||b*||` for every candidate.
    length : (f,) array
        `sqrt(M_jj)` in the units of b.
    """

    unit: float
    prior: float
    norm: float
    length: np.ndarray


@njit(cache=True, nogil=True)
def size_of_candidates(yy, reach, k):
    """At least `||y|| + 2 sum_S |b*_j|`, columns of unit curvature, for every candidate of k columns.

    `b*'diag(w) b* <= b*'M b* = yy - f <= yy`, hence `sum_S |b*_j| <= ||y|| sqrt(sum of the k largest 1 / w_j)`.

    Parameters
    ----------
    yy : float
    reach : (q,) array
        `1 / w_j` in those units.
    k : int
    """
    return np.sqrt(yy) * (1.0 + 2.0 * np.sqrt(top_sum(reach, k)))


@njit(cache=True, nogil=True)
def allowance(rounding, b):
    """Return the rounding allowance of a comparison of D at b with f of any candidate (docs/theory/bounds.md 7). O(f).

    `unit (prior + sum_j length_j |b_j|)^2`: a relative error `unit` of the moments moves f and D by no more.
    """
    s = rounding.prior
    for j in range(b.shape[0]):
        s += rounding.length[j] * abs(b[j])
    return rounding.unit * s * s


class Effort(NamedTuple):
    """Relaxations that a bound may take, and steps of each."""

    rounds: int
    steps: int


class Incumbents(NamedTuple):
    """Best supports known, by size: `best` (q + 1,) and `supports` (q + 1, q) bool; improved in place."""

    best: np.ndarray
    supports: np.ndarray


class Copies(NamedTuple):
    """Neighbouring copies of each column.

    Attributes
    ----------
    before, after : (q,) int arrays
        The previous and the next copy, -1 for none.
    """

    before: np.ndarray
    after: np.ndarray


@njit(cache=True, nogil=True, inline="always")
def later_copy_inside(j, after, status):
    """Whether a later copy of j is inside: then a support without j is the same support twice.

    Parameters
    ----------
    j : int
    after : (q,) int array
        As in `Copies`.
    status : (q,) int8 array
    """
    found = False
    later = after[j]
    while later >= 0:
        if status[later] == INSIDE:
            found = True
        later = after[later]
    return found


@njit(cache=True, nogil=True)
def in_order(copies, status):
    """Whether the support of the columns not dropped uses copies in index order. O(q)."""
    for k in range(status.shape[0]):
        if status[k] == DROPPED:
            later = copies.after[k]
            if later >= 0 and status[later] != DROPPED:
                return False
    return True


class KeptSupports(NamedTuple):
    """Kept supports.

    Attributes
    ----------
    mask : (capacity, q) bool array
    row : (capacity,) int array
        Which of the tree's bars each answers to.
    value : (capacity,) array
    """

    mask: np.ndarray
    row: np.ndarray
    value: np.ndarray


class Margin(NamedTuple):
    """How far above the best a support is kept: within `best (1 + keep) + slack`, the rounding of the tree's values."""

    keep: float
    slack: float


def new_kept(capacity, q):
    """Room for so many supports of q columns."""
    return KeptSupports(np.zeros((capacity, q), dtype=np.bool_), np.zeros(capacity, dtype=np.int64), np.zeros(capacity))


@njit(cache=True, nogil=True)
def keep_support(s, count, status, row, value, bars):
    """Add the support of the columns not dropped to `count` others; those above their bar give way where it is full.

    Returns the number kept, -1 where there is no room. O(q), and O(capacity q) where it is full.

    Parameters
    ----------
    s : KeptSupports
    count : int
        Supports kept so far.
    status : (q,) int8 array
    row : int
        Which of the bars it answers to.
    value : float
        Its f.
    bars : array
    """
    q = status.shape[0]
    capacity = s.value.shape[0]
    if count == capacity:
        count = 0
        for r in range(capacity):
            if s.value[r] <= bars[s.row[r]]:
                if count < r:
                    for j in range(q):
                        s.mask[count, j] = s.mask[r, j]
                    s.row[count] = s.row[r]
                    s.value[count] = s.value[r]
                count += 1
        if count == capacity:
            return -1
    for j in range(q):
        s.mask[count, j] = status[j] != DROPPED
    s.row[count] = row
    s.value[count] = value
    return count + 1
