"""Data types that kernels share: problems, nodes, duplicate columns, rounding allowances and stored supports.

In normal form, columns are scaled so that `M = G + I` with G positive semidefinite. A support S has the objective `f(S)
= yy - c_S' M_S^{-1} c_S`.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest, top_sum

FREE, INSIDE, DROPPED = range(3)
NODE_GAP_RTOL = 0.01  # accuracy of a relaxation, as a share of the gap
OPEN_NODE_GAP_RTOL = (
    0.05  # the same for a relaxation that does not close its node, as a share of the distance from the cutoff
)
FAR = 1e6  # cutoff, in units of the scale, that makes an accuracy absolute
LEAST_GAP = 1e-14  # minimum gap, as a share of yy


@njit(cache=True, nogil=True)
def list_columns(status, inside, free):
    """Fill `inside` and `free` with the columns of each kind, ascending; return both counts. O(q).

    Parameters
    ----------
    status : (q,) int8 array
        Status of columns.
    inside, free : (q,) int arrays
        Arrays to fill.
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


@njit(cache=True, nogil=True)
def screen(d, count, columns, k, room, status):
    """Fix the open columns that are in every support within a cutoff, or in none; return their number. O(count k).

    Parameters
    ----------
    d : array
        `g_j^2 / w_j` of the open columns, of which the first `count` entries are used.
    count : int
        Number of open columns.
    columns : int array
        Their positions in `status`.
    k : int
        Number of columns to choose, 0 < k < count.
    room : float
        Distance: supports with f at most D + room are kept.
    status : (q,) int8 array
        Status, in which DROPPED or INSIDE is written for a fixed column.

    Notes
    -----
    Safe screening (theory sections 1 and 2). The dual point may be that of this problem or of another problem. Let g be
    its correlations with the columns, w the diagonal of the relaxation, and D the dual value at this point. A support S
    of k columns has

        f(S)  >=  D + (sum of the k largest d) - (sum of d over S).

    With d_(1) >= d_(2) >= ... the sorted d, a support without column i has `f >= D + d_i - d_(k+1)`, and one with
    column i `f >= D + d_(k) - d_i`. The result is valid for this k only, because the optimum of one size may not
    contain the optimum of a smaller size. The caller adds the rounding errors of D and f to `room`.
    """
    heap = np.empty(k + 1)
    largest(d, count, k + 1, heap)
    inner, outer = heap[k - 1], heap[k]
    fixed = 0
    for a in range(count):
        if inner - d[a] > room:
            status[columns[a]] = DROPPED
            fixed += 1
        elif d[a] - outer > room:
            status[columns[a]] = INSIDE
            fixed += 1
    return fixed


class Form(NamedTuple):
    """A problem in normal form.

    Attributes
    ----------
    G : (q, q) array
        Matrix `M - I`.
    c : (q,) array
        Products of columns and target.
    yy : float
        Squared length of the target.
    lipschitz : float
        Upper bound on the largest eigenvalue of G.
    """

    G: np.ndarray
    c: np.ndarray
    yy: float
    lipschitz: float


class Node(NamedTuple):
    """Supports that contain given columns and k of some others.

    Attributes
    ----------
    inside, free : int arrays
        Included and free columns: the first `count_inside` and `count_free` entries.
    k : int
        Number of free columns to choose, 0 < k < count_free.
    """

    inside: np.ndarray
    count_inside: int
    free: np.ndarray
    count_free: int
    k: int


class Accuracy(NamedTuple):
    """Stopping rule of a relaxation.

    Attributes
    ----------
    bar : float
        Cutoff: stop once the dual value reaches it, since the node is then closed.
    near : float
        Accuracy: stop once `primal - dual <= near max(bar - dual, 0)`, since the node will not close.
    steps : int
        Maximum number of steps.
    """

    bar: float
    near: float
    steps: int


@njit(cache=True, nogil=True)
def absolute(yy, accuracy, steps):
    """Return a rule that makes `relax` solve to an absolute accuracy, by a cutoff far beyond.

    Parameters
    ----------
    yy : float
        Scale of the problem.
    accuracy : float
        Absolute accuracy.
    steps : int
        Maximum number of steps.
    """
    far = FAR * max(yy, 1e-300)
    return Accuracy(far, accuracy / far, steps)


class Fold(NamedTuple):
    """A problem with a valid diagonal, and its held-out rows.

    Attributes
    ----------
    M, c, yy : (q, q), (q,), float
        Moments and penalty of the training rows.
    w : (q,) array
        Diagonal with `M - diag(w)` positive semidefinite, w > 0.
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
    """Candidates that bounds cover: at most k nonzero entries and f at most `ubar`; `zeta` is near the minimum of F."""

    k: int
    ubar: float
    zeta: float


@njit(cache=True, nogil=True)
def positive_gap(candidates, yy):
    """Return `ubar - min F`, at least LEAST_GAP of yy, as a divisor."""
    return max(candidates.ubar - candidates.zeta, LEAST_GAP * yy)


class Rounding(NamedTuple):
    """Numbers of the rounding allowance (docs/theory/bounds.md, section 7).

    Attributes
    ----------
    unit : float
        Relative rounding.
    prior : float
        Upper bound on `||y|| + sum_S length_j |b*_j|` for every candidate b*.
    norm : float
        Upper bound on `||b*||` for every candidate.
    length : (f,) array
        `sqrt(M_jj)` in the units of b.
    """

    unit: float
    prior: float
    norm: float
    length: np.ndarray


@njit(cache=True, nogil=True)
def size_of_candidates(yy, reach, k):
    """Return at least `||y|| + 2 sum_S |b*_j|`, columns of unit curvature, for every candidate of k columns.

    `b*'diag(w) b* <= b*'M b* = yy - f <= yy`, hence `sum_S |b*_j| <= ||y|| sqrt(sum of the k largest 1 / w_j)`.

    Parameters
    ----------
    yy : float
        Squared length of the target.
    reach : (q,) array
        `1 / w_j` in those units.
    k : int
        Number of columns.
    """
    return np.sqrt(yy) * (1.0 + 2.0 * np.sqrt(top_sum(reach, k)))


@njit(cache=True, nogil=True)
def allowance(rounding, b):
    """Return the rounding allowance of a comparison of D at b with f of any candidate. O(f).

    `unit (prior + sum_j length_j |b_j|)^2`: a relative error `unit` of the moments moves f and D by no more
    (docs/theory/bounds.md, section 7).
    """
    s = rounding.prior
    for j in range(b.shape[0]):
        s += rounding.length[j] * abs(b[j])
    return rounding.unit * s * s


class Effort(NamedTuple):
    """Maximum numbers of relaxations for a bound, and of steps of each."""

    rounds: int
    steps: int


class Incumbents(NamedTuple):
    """Best supports known, by size: `best` (q + 1,) and `supports` (q + 1, q) bool; improved in place."""

    best: np.ndarray
    supports: np.ndarray


class Copies(NamedTuple):
    """Neighbouring duplicates of each column.

    Attributes
    ----------
    before, after : (q,) int arrays
        Previous and next copy, -1 for none.
    """

    before: np.ndarray
    after: np.ndarray


@njit(cache=True, nogil=True, inline="always")
def later_copy_inside(j, after, status):
    """Return True if a later copy of j is included: then the supports without j are those of another node.

    Parameters
    ----------
    j : int
        Column.
    after : (q,) int array
        Next copies, as in `Copies`.
    status : (q,) int8 array
        Status of columns.
    """
    found = False
    later = after[j]
    while later >= 0:
        if status[later] == INSIDE:
            found = True
        later = after[later]
    return found


@njit(cache=True, nogil=True)
def uses_copies_in_order(copies, status):
    """Return True if the support of the columns not dropped uses copies in index order. O(q)."""
    for k in range(status.shape[0]):
        if status[k] == DROPPED:
            later = copies.after[k]
            if later >= 0 and status[later] != DROPPED:
                return False
    return True


class KeptSupports(NamedTuple):
    """Stored supports.

    Attributes
    ----------
    mask : (capacity, q) bool array
        Supports.
    row : (capacity,) int array
        Index of the cutoff of each support.
    value : (capacity,) array
        Objectives f.
    """

    mask: np.ndarray
    row: np.ndarray
    value: np.ndarray


class Margin(NamedTuple):
    """Margin above the best value within which supports stay: `best (1 + keep) + slack`, for the tree's rounding."""

    keep: float
    slack: float


def new_kept_supports(capacity, q):
    """Return arrays for `capacity` supports of q columns."""
    return KeptSupports(np.zeros((capacity, q), dtype=np.bool_), np.zeros(capacity, dtype=np.int64), np.zeros(capacity))


@njit(cache=True, nogil=True)
def keep_support(s, count, status, row, value, bars):
    """Add the support of the columns not dropped to `count` others; if full, drop supports above their cutoff.

    Returns the number stored, -1 if there is no space. O(q), and O(capacity q) if full.

    Parameters
    ----------
    s : KeptSupports
        Stored supports.
    count : int
        Number of supports stored so far.
    status : (q,) int8 array
        Status of columns.
    row : int
        Index of its cutoff.
    value : float
        Its f.
    bars : array
        Cutoffs.
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
