"""Moments and ridge fits of many supports, with bounds on their rounding errors (0 in exact arithmetic).

Each fit is solved approximately, and the error of the approximate solution is bounded. Let Q be the Gram matrix of the
columns of a support, c their products with the target and yy the sum of squares of the target. Let
`M = Q + diag(weight)`, where `weight` are the penalties. All bounds use the norm `|x|^2 = x'M^{-1}x`. Let `r = x - M z`
be the residual of any approximate solution z of `M z = x`. Then:

* `|x|^2 = x'z + x'M^{-1}r` differs from `x'z` by at most `|x||r|`, so `|x| <= sqrt(x'z) + |r|`.
* `|r| <= sum of |r_i||e_i|` for the unit vectors e_i, and `|e_i|^2 <= 1 / weight_i`. If the penalty is nearly zero, a
  matrix near the inverse of M gives a smaller bound on `|e_i|` (`_bound_inverse_diagonal`).
* Let b be the approximate fit, that is z for `x = c`. The objective of the support is then `F - |r|^2` with
  `F = yy - b'(c + r)`. Let beta be the exact fit. For any vector x, `x'beta` differs from `x'b` by at most `|x||r|`.
* Dropping column j raises the objective by `beta_j^2 / |e_j|^2`.
"""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .proof_file import Arithmetic, Array, Fractions, Refused, need


class BoundedMoments(NamedTuple):
    """Moments `Q = X'X`, `c = X'y`, `yy = y'y` of centred training rows; every entry has an error of at most `error`.

    `center` (q + 1,) is the amount that `ScaledDesign.centre_rows` subtracts from each column and the target, with an
    error of at most `center_error`. `scale` (q,) are squared scales from these rows, if there are any.
    """

    Q: Array
    c: Array
    yy: Any
    error: Any
    center: Any
    center_error: Any
    scale: Any = None


class ScaledDesign:
    """The data in scaled units: columns and target divided by powers of two, so that no sum of squares exceeds 1.

    Attributes
    ----------
    Z : (n, q + 1) array
        Columns and target about a number near their mean (0 without an intercept).
    scale : (q,) array
        Squared scale of every column, the factor of `gamma / 2` times `b_j^2`.
    y_unit : Fraction or float
        Unit of the target: squares of the target are multiplied by its square in units of the file.
    """

    within: Any = None  # fold-specific preprocessing

    def __init__(self, X: Array, y: Array, scale: str, intercept: str, kind: Arithmetic) -> None:
        self.kind, self.intercept, self.u1, (self.n, self.q) = kind, intercept, 8 * kind.u, X.shape
        need(self.n < 1 << 24, f"the data have {self.n} rows, too many for the checker")
        table = np.column_stack([X, y])
        self.Z, exponent = _scaled_columns(table, bool(kind.u), kind)
        self.gram, unit = self._products(self.Z), exponent
        squares = self.gram.diagonal()[:-2]
        spread = squares - self.gram[:-2, -1] ** 2 / self.n
        need(
            all((spread * 2 > squares).tolist()) or not kind.u,
            "the mean of a column is too large, compared with its spread, for fast mode; use --mode exact",
        )
        if intercept == "none":
            self.Z, exponent = _scaled_columns(table, False, kind)
            self.gram = self._products(self.Z)
        self.scale = spread * kind.from_floats(np.ldexp(1.0, 2 * (unit - exponent)[:-1]))
        self.scale, self.scale_error = self.scale / (self.n if scale == "variance" else 1), 8 * self.u1
        if scale == "none":
            self.scale, self.scale_error = kind.from_floats(np.ldexp(1.0, -2 * exponent[:-1])), 0 * kind.u
        # units of columns, and of coefficients relative to the file
        self.powers = exponent
        self.exponent = exponent[:-1] - exponent[-1]
        self.y_unit = kind.from_floats(np.ldexp(1.0, exponent[-1:]))[0]

    def _products(self, Z: Array) -> Array:
        return self.kind.gram(np.concatenate([Z, self.kind.from_floats(np.ones((len(Z), 1)))], axis=1))

    def penalty(self, gamma: float, m: BoundedMoments | None = None) -> tuple[Array, Any]:
        """Return the factor of `b_j^2` in scaled units, `(gamma / 2) scale_j` (q,), and its relative error."""
        scale = self.scale if m is None or m.scale is None else m.scale
        return scale * self.kind.from_floats(np.array([gamma]))[0] / 2, self.scale_error + 4 * self.kind.u

    def exclude_rows(self, left: list[int]) -> BoundedMoments:
        """Return the moments of all rows except the held-out ones; docs/proof-format.md derives the error bounds."""
        n, u, count, gram = self.n, self.kind.u, self.n - len(left), self.gram
        need(count >= 1, "the training set is empty")
        if left:
            gram = gram - self._products(self.Z[left])
        sums, stretch = gram[:-1, -1], math.isqrt(4 * n // count) + 1  # stretch: at least 2 sqrt(n / count)
        center = {"fold": sums / count, "global": self.gram[:-1, -1] / n}.get(self.intercept, 0 * sums)
        C = gram[:-1, :-1] - np.outer(sums, center) - np.outer(center, sums) + count * np.outer(center, center)
        error, off = self.u1 * (1 + 2 * stretch) + 16 * u, self.u1 * stretch + 2 * u
        return BoundedMoments(C[:-1, :-1], C[:-1, -1], C[-1, -1], error, center, off)

    def centre_rows(self, m: BoundedMoments, rows: list[int]) -> Array:
        """Return some rows about the centre of moments, the target last."""
        return self.Z[rows] - m.center

    @property
    def shares(self) -> Array:
        """Return the (n,) part of the intercept in the leverages of the full-data fit."""
        return (
            self.kind.from_floats(np.ones(self.n)) / self.n
            if self.intercept == "fold"
            else self.kind.from_floats(np.zeros(self.n))
        )


def _scaled_columns(table: Array, about_mean: bool, kind: Arithmetic) -> tuple[Array, Array]:
    """Return the columns about a float near their mean, or about 0, over powers of two: norms in [1/4, 1/2]."""
    middle = table.mean(0) if about_mean else np.zeros(table.shape[1])
    exponent = np.frexp(np.abs(table - middle).max(0))[1].astype(np.int64)
    exponent += 1 + np.frexp(np.linalg.norm(np.ldexp(table - middle, -exponent), axis=0) * (1.0 + 2.0**-20))[1]
    moved = np.ldexp(table - middle, -exponent)
    sound = np.isfinite(moved).all(0) & (np.abs(exponent) < 511) & (np.abs(moved).max(0) > 0.0)
    if not sound.all():
        which = f"column {int(sound.argmin()) + 1} of the proof" if not sound[:-1].all() else "the target"
        raise Refused(f"{which} is constant, or has values that are too large or too small for the checker")
    return moved if kind.u else kind.from_floats(table) * kind.from_floats(np.ldexp(1.0, -exponent)), exponent


Penalty = tuple[Array, Any]


class BoundedFits(NamedTuple):
    """Fits of L supports of a columns each, with objectives within `[lower, upper]` (L,).

    `beta` (L, a) differs from the solution by a vector `M^{-1}r` with `|r| <= excess` (L,). `norm` (L, a) bounds
    `|e_j|`, and `V` (L, a, a) is near the inverse of `M`. For `weight` (L, a) and the errors `off` see `fits`.
    """

    lower: Array
    upper: Array
    beta: Array
    excess: Array
    norm: Array
    V: Array
    M: Array
    weight: Array
    off: tuple[Any, Any]


def worth(found: BoundedFits, x: Array, z: Array, kind: Arithmetic) -> tuple[Array, Array, Array]:
    """Return `v = z'(x + r)`, a bound on its error, and a bound on |r|, with `|x|^2 = v + |r|^2`; all (L, K).

    Parameters
    ----------
    found : BoundedFits
        Fits.
    x, z : (L, K, a) arrays
        Vectors, and approximations of `M^{-1} x`.
    kind : Floats or Fractions
        Arithmetic.
    """
    (k, j), u, s, r = found.off, kind.u, 1 + abs(z).sum(2), x - kind.product(z, found.M)
    weight, norm = found.weight[:, None], found.norm[:, None]
    wrong = kind.inner(abs(r) + k * s[:, :, None] + j * weight * abs(z), norm)
    return (
        kind.inner(z, x + r),
        k * s**2 + j * kind.inner(weight, z**2),
        kind.round_upwards(wrong * (1 + (x.shape[2] + 24) * u)),
    )


def fits(several: list[BoundedMoments], penalty: Penalty, sets: Array, kind: Arithmetic) -> BoundedFits:
    """Return the fits of supports `sets` (L, a) on the rows of each of K moments: K L fits.

    Parameters
    ----------
    several : list of BoundedMoments
        Moments.
    penalty : (q,) or (K, q) array, number
        Factor of `b_j^2`, and its relative error.
    sets : (L, a) array
        Supports.
    kind : Floats or Fractions
        Arithmetic.

    Notes
    -----
    No entry of Q, c and yy exceeds 1/2, and no entry of rows 1. So entry i of `x - M z` has an error of at most
    `k (1 + s) + j weight_i |z_i|`, s the sum of |z|, and `z'(x + r)` one of at most `k (1 + s)^2 + j z'diag(weight)z`.
    """
    u, a = kind.u, sets.shape[1]
    k, j = max(m.error for m in several) + 2 * (a + 8) * u, penalty[1] + 2 * (a + 8) * u
    M = np.concatenate([m.Q[sets[:, :, None], sets[:, None, :]] for m in several])
    c, yy = np.concatenate([m.c[sets] for m in several]), np.repeat([m.yy for m in several], len(sets))
    weight = np.concatenate([own[sets] for own in np.broadcast_to(penalty[0], (len(several), penalty[0].shape[-1]))])
    diagonal = slice(None), range(a), range(a)
    M[diagonal] = M[diagonal] + weight
    inverse = np.linalg.inv(np.asarray(M, dtype=np.float64))
    right = np.concatenate([kind.from_floats(np.eye(a)) + 0 * M, c[:, :, None]], axis=2)
    Z, R = 0 * right, right
    for _ in range(2):
        Z = Z + kind.from_floats(inverse @ np.asarray(R, dtype=np.float64))
        R = right - kind.product(M, Z)
    V, beta, size, large = Z[:, :, :a], Z[:, :, a], abs(Z[:, :, :a]).sum(1) + 1, abs(R[:, :, :a])

    norm, own = 1 / (weight * (1 - penalty[1])) * (1 + 4 * u), np.maximum(V[diagonal], 0 * c)
    off = size * (a * k + j * weight.max(1, initial=0)[:, None])
    norm = kind.root_upper_bounds(_bound_inverse_diagonal(norm, V, large.sum(1) + off, u))
    own = kind.root_upper_bounds(own)
    for _ in range(3):  # each time from the previous bounds
        off = size * (k * norm.sum(1) + j * (weight * norm).max(1, initial=0))[:, None]
        correction = kind.round_upwards((kind.product(norm[:, None, :], large)[:, 0] + off) * (1 + (2 * a + 24) * u))
        norm = np.minimum(norm, (own + correction) * (1 + 4 * u))
    bounded = BoundedFits(yy, yy, beta, yy, norm, V, M, weight, (k, j))
    value, room, excess = (each[:, 0] for each in worth(bounded, c[:, None], beta[:, None], kind))
    lower = -kind.round_upwards(value + room + excess**2 * (1 + 8 * u) - yy)
    upper = kind.round_upwards(yy - value + room)
    return bounded._replace(lower=lower, upper=upper, excess=excess)


def _bound_inverse_diagonal(known: Array, V: Array, sums: Array, u: Any) -> Array:
    """Return bounds on the diagonal of `M^{-1}` (L, a) by V near it, for any penalty, where these are below `known`.

    With `M V = I - R` and s < 1 the largest column sum of |R|, `M^{-1} = V (I - R)^{-1}`, and no column sum of the
    second factor exceeds `1 / (1 - s)`. So no entry of row i of the inverse exceeds `max_l |V_il| / (1 - s)`.
    """
    most = (sums * (1 + (2 * V.shape[-1] + 24) * u)).max(1, initial=0)[:, None]
    sure = (most < 1).astype(bool)
    bound = abs(V).max(2, initial=0) / np.where(sure, 1 - most, 1) * (1 + 8 * u)
    return np.where(sure, np.minimum(known, bound), known)


def residual_bounds(
    beta: Array, excess: Array, reach: Array, rows: tuple[Array, Array, Any], kind: Arithmetic
) -> tuple[Array, Array]:
    """Return bounds on |y - x'b*| (K, L), with b* the solutions.

    Parameters
    ----------
    beta, excess : arrays
        Coefficients and excesses of L fits, or of L fits for each row.
    reach : (K, L) array
        Bounds on |x|.
    rows : (K, L, a), (K,) arrays, number
        X, y, and a bound on the errors of their entries.
    kind : Floats or Fractions
        Arithmetic.
    """
    (X, y, off), u, a = rows, kind.u, beta.shape[-1]
    error = (off + (a + 8) * u) * (1 + abs(beta).sum(-1)) + reach * excess * (1 + (a + 16) * u)
    residuals = abs(y[:, None] - kind.inner(X, beta))
    return np.maximum(-kind.round_upwards(error - residuals), 0 * residuals), kind.round_upwards(error + residuals)


def leverage_bounds(found: BoundedFits, X: Array, off: Any, kind: Arithmetic) -> tuple[Array, Array]:
    """Return bounds on `x'M^{-1}x` (K, L) of rows whose entries have an error of at most `off`.

    Parameters
    ----------
    found : BoundedFits
        Fits.
    X : (K, L, a) array
        Rows.
    off : number
        Bound on the errors of their entries.
    kind : Floats or Fractions
        Arithmetic.
    """
    u, x = kind.u, np.moveaxis(X, 0, 1)
    z = kind.from_floats(np.asarray(x, dtype=np.float64) @ np.asarray(found.V, dtype=np.float64))
    (value, room, excess), moved = worth(found, x, z, kind), off * found.norm.sum(1)[:, None]
    most = kind.root_upper_bounds(np.maximum(value + room + excess**2, 0 * value)) * (1 + 4 * u) + moved * (
        1 + X.shape[2] * u
    )
    return -kind.round_upwards(room + 2 * most * moved * (1 + 16 * u) - value).T, kind.round_upwards(
        most**2 * (1 + 8 * u)
    ).T


MOST_BLOCK_COLUMNS = 8  # maximum columns of a block, all subsets of which are evaluated
NOT_POSITIVE = "part of a tree: a block of the block-diagonal matrix W is not positive definite"


class ProvedBlocks(NamedTuple):
    """A block-diagonal matrix W with `M - W` proved to be positive semidefinite.

    Attributes
    ----------
    G, off : (q, q) arrays
        Matrix `M - W`, and bounds on the errors of its entries.
    blocks : list of (s,) arrays
        Columns of each block.
    W : list of (s, s) arrays
        Blocks of W.
    inverse : list of (2^s, s, s) float arrays
        Approximate inverses of W on every subset, indexed by a mask of bits; 0 elsewhere.
    least : (q,) array
        Numbers with `x'W^{-1}x <= sum of x_i^2 / least_i`, on every subset.
    """

    G: Array
    off: Array
    blocks: list[Array]
    W: list[Array]
    inverse: list[Array]
    least: Array


def need_semidefinite(A: Array, off: Array, kind: Arithmetic, what: str) -> None:
    """Refuse unless every symmetric matrix whose entries are within `off` of A is positive semidefinite.

    Let R be a Cholesky factor of about `A - t I`, in floats, so that `A - R R'` is about `t I`. In exact terms, each
    diagonal entry of `A - R R'` must be at least the sum of the absolute values of the other entries of its row.
    """
    u, q = kind.u, len(A)
    diagonal = np.asarray(A.diagonal(), dtype=np.float64)
    need(all((diagonal > 0.0).tolist()), what)
    unit = kind.from_floats(np.ldexp(1.0, -(np.frexp(diagonal)[1] // 2)))
    A, off = A * unit[:, None] * unit, off * unit[:, None] * unit
    near = np.asarray(A, dtype=np.float64)
    try:
        R = kind.from_floats(np.linalg.cholesky(near - 0.5 * np.linalg.eigvalsh(near)[0] * np.eye(q)))
    except np.linalg.LinAlgError:
        raise Refused(what) from None
    difference = A - kind.product(R, R.T)
    off = off + u * ((q + 8) * kind.product(abs(R), abs(R).T) + 2 * abs(A))
    beside = abs(difference) + off
    own = difference.diagonal() - off.diagonal()
    others = beside.sum(1) - beside.diagonal()
    need(all((own * (1 - 4 * u) >= others * (1 + (2 * q + 8) * u)).tolist()), what)


def proved_block_part(
    blocks: list[Array], W: list[Array], m: BoundedMoments, penalty: Penalty, kind: Arithmetic
) -> ProvedBlocks:
    """Return the blocks, after proving each block definite and M minus the blocks semidefinite; or refuse.

    Parameters
    ----------
    blocks : list of (s,) arrays
        Blocks, with every column in one of them.
    W : list of (s, s) arrays
        Symmetric matrices.
    m, penalty : BoundedMoments, Penalty
        Moments and penalty.
    kind : Floats or Fractions
        Arithmetic.
    """
    u = kind.u
    pi, in_blocks = np.diag(penalty[0] + 0 * m.c), 0 * m.Q
    for some, own in zip(blocks, W, strict=True):
        in_blocks[np.ix_(some, some)] = own
    G = m.Q + pi - in_blocks
    off = m.error + 4 * u * (abs(m.Q) + abs(in_blocks)) + (penalty[1] + 4 * u) * pi
    need_semidefinite(G, off, kind, "M minus the blocks W is not positive semidefinite")
    least, inverse = 0 * m.c, list[Array]()
    for some, own in zip(blocks, W, strict=True):
        size = len(some)
        need(all((np.asarray(own.diagonal(), dtype=np.float64) > 0.0).tolist()), NOT_POSITIVE)
        unit = np.ldexp(1.0, -(np.frexp(np.asarray(own.diagonal(), dtype=np.float64))[1] // 2))
        near = np.asarray(own, dtype=np.float64) * unit[:, None] * unit
        lowest = 0.5 * float(np.linalg.eigvalsh(near)[0])
        need(lowest > 0.0, NOT_POSITIVE)
        least[some] = kind.from_floats(lowest / unit**2)
        remainder = own - np.diag(least[some])
        need_semidefinite(remainder, 4 * u * abs(own), kind, NOT_POSITIVE)
        inside = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1
        pairs = inside[:, :, None] * inside[:, None, :]
        inverse_of = np.linalg.inv(near * pairs + np.eye(size) * (1 - inside)[:, None, :])
        inverse.append(inverse_of * pairs * unit[:, None] * unit)
    return ProvedBlocks(G, off, blocks, W, inverse, least * (1 - 4 * u))


def block_values(m: BoundedMoments, part: ProvedBlocks, b: Array, kind: Arithmetic) -> tuple[Array, list[Array]]:
    """Return, for points b (P, q), lower bounds of `yy - b'G b` and upper bounds of the values of blocks (P, 2^s).

    The value of a subset A is `g_A'(W_AA)^{-1}g_A`. An approximate z gives `x'W^{-1}x = z'(x + r) + r'W^{-1}r`,
    `r = x - W z`; the error of g has at most the length that `least` gives.
    """
    u, q = kind.u, len(m.c)
    Gb, size = kind.product(b, part.G.T), abs(b)
    wrong = (kind.product(size, (part.off + (q + 8) * u * abs(part.G)).T) + m.error + 8 * u) * (1 + (2 * q + 16) * u)
    room = (2 * kind.inner(size, wrong) + m.error + 8 * u) * (1 + (q + 8) * u)
    g, values = m.c - Gb, list[Array]()
    for some, W, inverse in zip(part.blocks, part.W, part.inverse, strict=True):
        s, masks = len(some), inverse.shape[0]
        inside = (np.arange(masks)[:, None] >> np.arange(s)) & 1  # (2^s, s)
        x, weight = g[:, some][:, None] * inside, 1 / part.least[some]
        z = kind.from_floats(np.einsum("mij,pmj->pmi", inverse, np.asarray(x, dtype=np.float64)))
        r = (x - kind.product(z, W)) * inside
        slip = (s + 6) * u * (abs(x) + kind.product(abs(z), abs(W)))
        value = kind.inner(z, x + r) + kind.inner((abs(r) + slip) ** 2, weight * inside)
        value = value + kind.inner(abs(z), (s + 8) * u * (abs(x) + abs(r)) + slip)
        value = np.maximum(value * (1 + (2 * s + 16) * u), 0 * value)
        if u:
            moved = kind.inner(wrong[:, some][:, None] ** 2, weight * inside) * (1 + (s + 8) * u)
            value = (kind.root_upper_bounds(value) + kind.root_upper_bounds(moved)) ** 2 * (1 + 8 * u)
        values.append(kind.round_upwards(value))
    return m.yy - kind.inner(b, Gb) - room, values


class AdjustedDesign(ScaledDesign):
    """The data in the units of `ScaledDesign`, with the unpenalised columns eliminated from the training rows.

    The elimination uses fractions in either mode. In fast mode the remainders are rounded to floats once each: entries
    of moments and of rows have an error of at most `u`, because none exceeds 1.

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Columns that are chosen from, and target.
    scale, intercept : str
        Scale and intercept of the proof.
    kind : Floats or Fractions
        Arithmetic.
    Z : (n, k) array
        Adjustment columns.
    """

    def __init__(self, X: Array, y: Array, scale: str, intercept: str, kind: Arithmetic, Z: Array) -> None:
        super().__init__(X, y, scale, intercept, kind)
        self.whole = Fractions()
        beside, rows = self.whole.from_floats(Z), self.whole.from_floats(np.column_stack([X, y]))
        rows = rows * self.whole.from_floats(np.ldexp(1.0, -self.powers))
        if intercept == "global":
            beside, rows = (table - table.sum(0) / self.n for table in (beside, rows))
        elif intercept == "fold":
            beside = np.concatenate([self.whole.from_floats(np.ones((self.n, 1))), beside], axis=1)
        self.rows, self.beside = rows, beside
        self.products = self.whole.gram(np.concatenate([beside, rows], axis=1))

    def exclude_rows(self, left: list[int]) -> BoundedMoments:
        """Return the moments of all rows except the held-out ones, of the remainders of columns and target.

        `center` holds the coefficients of each unpenalised column, by which these columns are subtracted in all rows.
        """
        need(self.n > len(left), "the training set is empty")
        products = self.products
        if left:
            products = products - self.whole.gram(np.concatenate([self.beside[left], self.rows[left]], axis=1))
        return self._eliminate_adjustment(products, self.beside, self.rows)

    def _eliminate_adjustment(self, products: Array, beside: Array, rows: Array) -> BoundedMoments:
        share, Q = _eliminate_columns(products, beside.shape[1])
        own, u = self._round_values(Q), self.kind.u
        need(
            not u or np.abs(own).max() <= 0.5,
            "the values of a column in the training rows are too large for fast mode; use --mode exact",
        )
        return BoundedMoments(own[:-1, :-1], own[:-1, -1], own[-1, -1], u, (share, beside, rows), 0 * u)

    def centre_rows(self, m: BoundedMoments, rows: list[int]) -> Array:
        """Return the remainders of some rows, the target last; in fast mode, refuse rows with too large remainders."""
        share, beside, every = m.center
        out = self._round_values(every[rows] - self.whole.product(beside[rows], share))
        sound = not self.kind.u or np.abs(out).max(initial=0.0) <= 1.0
        need(sound, "a held-out row is too far from the training rows for fast mode; use --mode exact")
        return out

    @cached_property
    def shares(self) -> Array:
        """Return the (n,) part of the eliminated columns in the leverages of the full-data fit."""
        k = self.beside.shape[1]
        stacked = np.concatenate([self.products[:k, :k], self.whole.from_floats(np.eye(k))], axis=1)
        inverse, _ = _eliminate_columns(np.concatenate([stacked, stacked[:0]]), k)
        return self._round_values(self.whole.inner(self.whole.product(self.beside, inverse), self.beside))

    def _round_values(self, values: Array) -> Array:
        return np.asarray(values, dtype=np.float64) if self.kind.u else values


class DesignOfFolds(AdjustedDesign):
    """Data with fold-specific preprocessing: the training rows of each fold fill missing values or give the scales.

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Columns that are chosen from, with NaN for missing values, and target.
    scale, intercept : str
        Scale and intercept of the proof.
    kind : Floats or Fractions
        Arithmetic.
    Z : (n, k) array
        Adjustment columns, with NaN for missing values.
    within : dict
        `na`, the rule that fills missing values, and `scale`, True if training rows give the scales.
    """

    def __init__(
        self, X: Array, y: Array, scale: str, intercept: str, kind: Arithmetic, Z: Array, within: dict[str, Any]
    ) -> None:
        near = [np.where(np.isnan(table), np.nanmean(table, axis=0), table) for table in (X, Z)]
        super().__init__(near[0], y, scale, intercept, kind, near[1])
        cells = np.column_stack([Z, X, y])
        self.within, self.how = within, scale
        self.holes, self.there = np.isnan(cells), self.whole.from_floats(np.nan_to_num(cells))
        self.scale_error = 2 * kind.u
        every = list(range(self.n))
        self.spread = self._spread(self._fill_columns(every)[1], every)

    def _fill_columns(self, training: list[int]) -> tuple[Array, Array]:
        """Return the unpenalised columns and the others, in all rows, as training rows fill them."""
        table, holes = self.there.copy(), self.holes
        for j in np.flatnonzero(holes.any(axis=0)).tolist():
            there = sorted(table[i, j] for i in training if not holes[i, j])
            need(there, "a column has no value in the training rows")
            middle = there[(len(there) - 1) // 2] + there[len(there) // 2]
            table[holes[:, j], j] = middle / 2 if self.within["na"] == "median" else sum(there) / len(there)
        k = holes.shape[1] - len(self.powers)
        beside, rows = table[:, :k], table[:, k:] * self.whole.from_floats(np.ldexp(1.0, -self.powers))
        if self.intercept == "fold":
            beside = np.concatenate([self.whole.from_floats(np.ones((self.n, 1))), beside], axis=1)
        return beside, rows

    def _spread(self, rows: Array, training: list[int]) -> Array:
        """Return the (q,) squared scales of columns on some rows; 0 for a column that is constant there."""
        own = rows[training][:, :-1]
        squares = (own**2).sum(0) - own.sum(0) ** 2 / len(training)
        return np.asarray(squares / (len(training) if self.how == "variance" else 1))

    def exclude_rows(self, left: list[int]) -> BoundedMoments:
        """Return the moments of all rows except the held-out ones, as these rows fill them, and their scales."""
        training = sorted({*range(self.n)} - {*left})
        need(training, "the training set is empty")
        beside, rows = self._fill_columns(training)
        m = self._eliminate_adjustment(self.whole.gram(np.concatenate([beside, rows], axis=1)[training]), beside, rows)
        if self.how == "none":
            return m._replace(scale=self.scale)
        own = self._spread(rows, training) if self.within["scale"] else self.spread
        return m._replace(scale=self._round_values(np.where(own > 0, own, self.spread)))


def _eliminate_columns(A: Array, k: int) -> tuple[Array, Array]:
    """Return `B = A_11^{-1} A_12` and `A_22 - A_21 B` for symmetric A in fractions, or refuse.

    The block A_11 (k, k) must be definite.
    """
    A = A.copy()
    for j in range(k):
        need(A[j, j] > 0, "in the training rows, the adjustment columns are linearly dependent")
        A[j] = A[j] / A[j, j]
        others = np.arange(len(A)) != j
        A[others] = A[others] - np.outer(A[others, j], A[j])
    return A[:k, k:], A[k:, k:]
