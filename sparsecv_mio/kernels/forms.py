"""What kernels are given: problems and their normal form, nodes, level sets, and what rounding is allowed for.

Normal form: columns scaled so that `M = G + I`, G positive semidefinite. A support S has `f(S) = yy - c_S' M_S^{-1}
c_S`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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


class Stop(NamedTuple):
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


class Candidates(NamedTuple):
    """Points that bounds are to cover: at most k nonzero entries and f at most `ubar`; about the least F is `zeta`."""

    k: int
    ubar: float
    zeta: float


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


class Effort(NamedTuple):
    """Relaxations that a bound may take, and steps of each."""

    rounds: int
    steps: int


class Incumbents(NamedTuple):
    """Best supports known, by size: `best` (q + 1,) and `supports` (q + 1, q) bool; improved in place."""

    best: np.ndarray
    supports: np.ndarray
