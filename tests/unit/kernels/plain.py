"""What the kernels compute, in plain numpy from docs/theory, and small problems with every edge a kernel may meet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.kernels.nodes import Copies, Fold, Form, Node

Floats = NDArray[np.float64]

KINDS = ("tall", "correlated", "wide", "one column", "copies", "zero column", "tied", "orthogonal")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, read-only: kernels have machine code of their own for those that the program passes so."""
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Small:
    """`||y - X b||^2 + ||b||^2` and its moments: the normal form `M = G + I` of the kernels."""

    X: Floats
    y: Floats

    @property
    def q(self) -> int:
        return self.X.shape[1]

    @property
    def G(self) -> Floats:
        return np.ascontiguousarray(self.X.T @ self.X)

    @property
    def M(self) -> Floats:
        return self.G + np.eye(self.q)

    @property
    def c(self) -> Floats:
        return self.X.T @ self.y

    @property
    def yy(self) -> float:
        return float(self.y @ self.y)

    @property
    def lipschitz(self) -> float:
        return float(np.linalg.norm(self.X, 2) ** 2) * (1.0 + 1e-12) + 1e-12

    @property
    def form(self) -> Form:
        return Form(self.G, self.c, self.yy, self.lipschitz)

    def value(self, support) -> float:
        """f(S) as a sum of squares, never a difference."""
        support = list(support)
        A = np.vstack([self.X[:, support], np.eye(len(support))])
        target = np.concatenate([self.y, np.zeros(len(support))])
        beta = np.linalg.lstsq(A, target, rcond=None)[0] if support else np.zeros(0)
        return float(np.sum((target - A @ beta) ** 2))

    def beta(self, support) -> Floats:
        """(q,) ridge fit of a support."""
        support = list(support)
        out = np.zeros(self.q)
        if support:
            out[support] = np.linalg.solve(self.M[np.ix_(support, support)], self.c[support])
        return out

    def best(self, size: int) -> tuple[float, tuple[int, ...]]:
        """The optimum over all supports of a size."""
        return min((self.value(s), s) for s in combinations(range(self.q), size))

    def without(self, rows) -> Small:
        keep = np.setdiff1d(np.arange(len(self.y)), rows)
        return Small(self.X[keep], self.y[keep])


def small(seed: int, kind: str | None = None) -> Small:
    """A problem of one of KINDS, taken in turn unless named."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)] if kind is None else kind
    n, q = {"wide": (4, 8), "one column": (5, 1)}.get(kind, (14, 7))
    X = rng.standard_normal((n, q)) * rng.choice([0.3, 1.0, 3.0])
    if kind == "correlated":
        X = 0.3 * X + 2.0 * rng.standard_normal((n, 1))
    elif kind == "copies":
        X[:, 3], X[:, 5] = X[:, 1], -X[:, 2]
    elif kind == "zero column":
        X[:, 2] = 0.0
    elif kind in ("tied", "orthogonal"):
        X = np.eye(n, q) * (1.0 if kind == "tied" else rng.uniform(0.1, 3.0, q))
    y = X @ (rng.standard_normal(q) * (rng.random(q) < 0.6)) + 0.5 * rng.standard_normal(n)
    if kind == "tied":
        y = np.ones(n)
    return Small(X, y)


def largest(values: Floats, k: int) -> float:
    """Sum of the k largest."""
    return float(np.sort(values)[::-1][:k].sum()) if k > 0 else 0.0


def support_norm(b: Floats, k: int) -> float:
    """Squared k-support norm, `min sum b_j^2 / z_j` over z in [0, 1] with sum k: z_j = min(1, t |b_j|)."""
    b = np.abs(b[b != 0.0])
    if len(b) <= k:
        return float(b @ b)
    if k <= 0:
        return np.inf
    low, high = 0.0, 1.0 / b.min()
    for _ in range(200):
        t = 0.5 * (low + high)
        low, high = (t, high) if np.minimum(1.0, t * b).sum() < k else (low, t)
    return float(np.sum(b**2 / np.minimum(1.0, high * b)))


def fold_of(problem: Small, X: Floats, u: Floats) -> Fold:
    """A problem with some rows held out, w = 1."""
    return Fold(problem.M, problem.c, problem.yy, np.ones(problem.q), X, u)


def node_of(inside, free, k: int) -> Node:
    """Supports with `inside` and k of `free`."""
    return Node(inside, len(inside), free, len(free), k)


def all_free(q: int, k: int) -> Node:
    """Supports of k of q columns."""
    return Node(np.arange(q), 0, np.arange(q), q, k)


def dual(problem: Small, inside, free, k: int, b: Floats, c: Floats | None = None) -> float:
    """D(b) of a node, at most f of every support of it."""
    g = (problem.c if c is None else c) - problem.G @ b
    return problem.yy - b @ problem.G @ b - float(np.sum(g[inside] ** 2)) - largest(g[free] ** 2, k)


def primal(problem: Small, inside, free, k: int, b: Floats, c: Floats | None = None) -> float:
    """The relaxation of a node at b (zero outside of it)."""
    linear = 2.0 * (problem.c if c is None else c) @ b
    return problem.yy - linear + b @ problem.G @ b + float(np.sum(b[inside] ** 2)) + support_norm(b[free], k)


def proximal(v: Floats, k: int, step: float) -> tuple[Floats, Floats]:
    """`argmin ||b - v||^2 / (2 step) + support_norm(b, k) / 2` and its z = clip(|v| t - step, 0, 1), sum z = k.

    In b the factor is z / (z + step). With fewer nonzero entries than k, z is 1 on all of them.
    """
    size = np.abs(v)
    if np.count_nonzero(size) <= k:
        z = (size > 0.0).astype(float)
    else:
        low, high = 0.0, (1.0 + step) / size[size > 0.0].min()
        for _ in range(300):
            t = 0.5 * (low + high)
            low, high = (t, high) if np.clip(size * t - step, 0.0, 1.0).sum() < k else (low, t)
        z = np.clip(size * high - step, 0.0, 1.0)
    return v * z / (z + step), z


def no_copies(q: int) -> Copies:
    """Copies of each column: none."""
    return Copies(np.full(q, -1, dtype=np.int64), np.full(q, -1, dtype=np.int64))


def copies_of(X: Floats) -> Copies:
    """Equal or negated columns."""
    before, after = found = no_copies(X.shape[1])
    for j in range(X.shape[1]):
        for i in range(j):
            if np.array_equal(X[:, i], X[:, j]) or np.array_equal(X[:, i], -X[:, j]):
                before[j] = i
        if before[j] >= 0:
            after[before[j]] = j
    return found


def candidates(problem: Small, k: int, ubar: float, rng: np.random.Generator, each: int = 8) -> list[Floats]:
    """k-sparse points with f at most ubar: the fit of every good enough support, and points on its level set."""
    found = []
    for support in combinations(range(problem.q), k):
        room, held = ubar - problem.value(support), list(support)
        if room < 0.0:
            continue
        middle = problem.beta(support)
        found.append(middle)
        root = np.linalg.cholesky(problem.M[np.ix_(held, held)])
        for _ in range(each):
            step = rng.standard_normal(k)
            b = middle.copy()
            b[held] += np.linalg.solve(root.T, step / np.linalg.norm(step)) * np.sqrt(room)
            found.append(b)
    return found


def drawn(seed: int, q: int) -> Small:
    """Forty rows more than it has columns, which are correlated; six of them have an effect, below the noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(q + 40, q)) + 0.7 * rng.normal(size=(q + 40, 1))
    return Small(X, X[:, :6] @ np.linspace(1.0, 0.2, 6) + 2.0 * rng.normal(size=q + 40))
