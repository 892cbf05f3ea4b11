"""Standard coordinates of a data set: centred and scaled columns, computed without overflow or underflow."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from math import fsum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray, exact_product, row_chunks
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput, parse_keyword
from sparsecv_mio.model_space import NONE, Restrictions, Term
from sparsecv_mio.targets import DEFAULT_LOSS, Loss
from sparsecv_mio.units import WRITTEN
from sparsecv_mio.words import Intercept, Scale

Count = TypeVar("Count", int, IntArray)


@dataclass(frozen=True, eq=False)
class ForcedColumns:
    """Columns in every support, and columns that may be chosen, both ascending.

    A column in every support is forced in or adjusted for. Tau never includes adjustment columns.

    Attributes
    ----------
    forced, others : int arrays
        Columns in every support; all other columns.
    n_adjusted : int
        Number of columns in `forced` that are adjusted for.

    Examples
    --------
    >>> choice = ForcedColumns.from_positions(5, np.array([1, 3]), n_adjusted=1)
    >>> choice.inside(np.array([0, 1, 3, 4])).tolist(), choice.make_support(np.array([0, 2])).tolist()
    ([0, 2], [0, 1, 3, 4])
    >>> choice.n_columns(3), choice.size(3), choice.tau_of(4)
    (4, 2, 3)
    """

    forced: IntArray
    others: IntArray
    n_adjusted: int = 0

    @classmethod
    def from_positions(cls, q: int, forced: IntArray, n_adjusted: int = 0) -> ForcedColumns:
        """Split q columns.

        Parameters
        ----------
        q : int
            Number of columns.
        forced : int array
            Columns in every support, ascending.
        n_adjusted : int
            Number of columns in `forced` that are adjusted for.
        """
        others = np.ones(q, dtype=np.bool_)
        others[forced] = False
        return cls(forced, np.flatnonzero(others).astype(np.int64), n_adjusted)

    @classmethod
    def from_penalty_weights(cls, forced: IntArray, weight: FloatArray) -> ForcedColumns:
        """Split columns by their penalty weights (q,), which are 0 for adjustment columns alone."""
        return cls.from_positions(len(weight), forced, int(np.count_nonzero(weight[forced] == 0.0)))

    @cached_property
    def _place(self) -> IntArray:
        """(q,) place of each column among the others, -1 of one in every support."""
        place = np.full(len(self.forced) + len(self.others), -1, dtype=np.int64)
        place[self.others] = np.arange(len(self.others))
        return place

    @property
    def max_tau(self) -> int:
        """Tau of the support of all columns."""
        return self.tau_of(len(self.forced) + len(self.others))

    def tau_of(self, n_columns: int) -> int:
        """Return the number of features of a support of `n_columns` columns, without the adjusted ones."""
        return max(n_columns - self.n_adjusted, 0)

    def n_columns(self, tau: Count) -> Count:
        """Return the number of columns of a support of `tau` features, with the adjustment columns."""
        return tau + self.n_adjusted

    def size(self, tau: int) -> int:
        """Return the number of columns of a support of `tau` features that are chosen among the others."""
        return max(self.n_columns(tau) - len(self.forced), 0)

    def sizes(self, taus: Iterable[int]) -> list[int]:
        """Return `size` of several taus."""
        return [self.size(tau) for tau in taus]

    def has_one_support(self, tau: int) -> bool:
        """Return True if `tau` leaves one support: that of all columns, or of the columns in every support."""
        return not 0 < self.size(tau) < len(self.others)

    def inside(self, support: NDArray[np.integer]) -> IntArray:
        """Return a support without the columns in every support, by places in `others`."""
        if not len(self.forced):
            return np.asarray(support, dtype=np.int64)
        places = self._place[np.asarray(support, dtype=np.int64)]
        places = places[places >= 0]
        places.sort()
        return places

    def make_support(self, chosen: NDArray[np.integer]) -> IntArray:
        """Return places in `others` as columns, ascending, with the columns in every support."""
        if not len(self.forced):
            return np.asarray(chosen, dtype=np.int64)
        columns = np.concatenate((self.forced, self.others[chosen]))
        columns.sort()
        return columns


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """Range, mean and norms of every column of an (n, p) array.

    Attributes
    ----------
    largest : (p,) array
        Largest absolute value.
    constant : (p,) bool array
        True if all values are equal up to `4 eps` of the largest, which may be rounding in the file.
    mean : (p,) array
        Column means, weighted.
    norm : (p,) array
        Centred l2 norms, `sqrt(sum_i w_i (x_ij - mean_j)^2)`.
    raw_norm : (p,) array
        l2 norms about zero, weighted.
    """

    largest: FloatArray
    constant: BoolArray
    mean: FloatArray
    norm: FloatArray
    raw_norm: FloatArray


def column_moments(X: FloatArray, weights: FloatArray | None = None) -> ColumnMoments:
    """Return the moments of all columns, from two passes in O(np) time and one 8 MB block of memory.

    Each column is multiplied, without rounding, by the power of two that brings its largest value into [1/2, 1). The
    squares therefore stay in range for values up to 2^1000 in size. The second pass corrects the mean of the first
    pass, which makes both moments accurate to a few ulps for any number of rows.

    Parameters
    ----------
    X : (n, p) array
        The columns.
    weights : (n,) array, optional
        Positive row weights; 1 by default.

    Examples
    --------
    >>> m = column_moments(np.array([[1e150], [3e150]]))
    >>> float(m.mean[0]), float(m.norm[0] / 1e150)
    (2e+150, 1.4142135623730951)
    """
    n, p = X.shape
    low, high = X.min(axis=0), X.max(axis=0)
    largest = np.maximum(np.abs(low), np.abs(high))
    exponent = np.clip(np.frexp(largest)[1], -1000, 1000)
    factor = np.ldexp(1.0, -exponent)
    total = n if weights is None else float(weights.sum())

    def sum_block(block: FloatArray, rows: slice) -> FloatArray:
        return np.asarray(block.sum(axis=0) if weights is None else weights[rows] @ block)

    def sum_squares(block: FloatArray, rows: slice) -> FloatArray:
        if weights is None:
            return np.asarray(np.einsum("ij,ij->j", block, block))
        return np.asarray(np.einsum("i,ij,ij->j", weights[rows], block, block))

    mean = np.zeros(p)
    for rows in row_chunks(n, p):
        mean += sum_block(X[rows] * factor, rows) / total
    drift, squares, raw = np.zeros(p), np.zeros(p), np.zeros(p)
    for rows in row_chunks(n, p):
        block = X[rows] * factor
        raw += sum_squares(block, rows)
        block -= mean
        drift += sum_block(block, rows)
        squares += sum_squares(block, rows)
        del block  # frees the memory before the next block is computed
    squares = np.maximum(squares - drift * (drift / total), 0.0)
    constant = high * factor - low * factor <= WRITTEN * (largest * factor)
    with np.errstate(over="ignore"):  # a norm that overflows is infinite, and the caller rejects it
        norm, raw_norm = np.ldexp(np.sqrt(squares), exponent), np.ldexp(np.sqrt(raw), exponent)
    return ColumnMoments(largest, constant, np.ldexp(mean + drift / total, exponent), norm, raw_norm)


def mean_difference(values: FloatArray, center: float, weights: FloatArray | None = None) -> float:
    """Return the difference between the mean of some numbers and a float near it, with one rounding.

    Two nearly equal columns that share one huge value differ by less than the rounding of their means.

    Parameters
    ----------
    values : (n,) array
        The numbers.
    center : float
        A float near their mean.
    weights : (n,) array, optional
        Weights of the numbers; 1 by default.

    Examples
    --------
    >>> round(mean_difference(np.array([1e20, 3.0, 4.0]), 33333333333333333333.0), 9)
    1367.666666667
    """
    if weights is None:
        return fsum(chain(values.tolist(), repeat(-center, len(values)))) / len(values)
    parts = chain(*(product.tolist() for factor in (values, -center) for product in exact_product(weights, factor)))
    return fsum(parts) / float(weights.sum())


def nearest_exponent(values: FloatArray) -> IntArray:
    """Return e such that 2^e is nearest in ratio to each positive value.

    Examples
    --------
    >>> nearest_exponent(np.array([1.0, 3.0, 0.3])).tolist()
    [0, 2, -2]
    """
    mantissa, exponent = np.frexp(values)
    return np.where(mantissa < np.sqrt(0.5), exponent - 1, exponent).astype(np.int64)


def subtract_means(
    V: FloatArray, r: FloatArray, root: FloatArray | None, v_mean: FloatArray, r_mean: float
) -> tuple[FloatArray, FloatArray]:
    """Return rows minus the means; each mean is multiplied by the square root of the row weight.

    Parameters
    ----------
    V, r : (m, q), (m,) arrays
        Rows and targets, multiplied by the square roots of their weights.
    root : (m,) array or None
        Square roots of the weights; None if each row counts once.
    v_mean, r_mean : (q,) array, float
        Unscaled means.

    Examples
    --------
    >>> subtract_means(np.array([[6.0]]), np.array([4.0]), np.array([2.0]), np.array([1.0]), 0.5)
    (array([[4.]]), array([3.]))
    """
    if root is None:
        return V - v_mean, r - r_mean
    return V - root[:, None] * v_mean, r - root * r_mean


COPY_RTOL = 1e-13


def find_copies(
    project: Callable[[FloatArray], FloatArray],
    column: Callable[[int], FloatArray],
    norm: FloatArray,
    weight: FloatArray,
    n: int,
) -> IntArray:
    """Return for each column the earliest earlier column that equals it or its negative, else -1.

    Parameters
    ----------
    project : callable
        Function `g -> V' g` for a vector g of n numbers.
    column : callable
        Function `j -> V[:, j]`.
    norm : (q,) array
        l2 norms of the columns of V.
    weight : (q,) array
        Penalty weights; only columns of equal weight can be copies.
    n : int
        Number of rows.

    Returns
    -------
    (q,) int array
        Positions of the earlier columns, or -1.

    Notes
    -----
    `v` and `w` are copies when `||v - w||` or `||v + w||` is at most `1e-13 ||w||`. Equal columns have equal
    projections on any vector, so only neighbours in the sorted |projection on one fixed Gaussian vector| are compared:
    O(nq + q log q), plus O(n) for each such neighbour.
    """
    probe = np.random.Generator(np.random.PCG64(20240229)).standard_normal(n)
    key = np.abs(project(probe)) / norm
    order = np.argsort(key, kind="stable")
    window = 4 * COPY_RTOL * float(np.linalg.norm(probe))
    cuts = np.flatnonzero(np.diff(key[order]) > window) + 1
    copy_of = np.full(key.shape[0], -1, dtype=np.int64)
    for run in np.split(order, cuts):
        if run.size > 1:
            _link(np.sort(run), column, norm, weight, copy_of)
    return copy_of


def _link(
    run: IntArray, column: Callable[[int], FloatArray], norm: FloatArray, weight: FloatArray, copy_of: IntArray
) -> None:
    originals: list[tuple[int, FloatArray]] = []
    for j in run.tolist():
        v = column(j)
        for i, w in originals:
            if weight[i] == weight[j] and _are_duplicate_columns(v, w, COPY_RTOL * float(norm[i])):
                copy_of[j] = i
                break
        else:
            originals.append((j, v))


def _are_duplicate_columns(v: FloatArray, w: FloatArray, atol: float) -> bool:
    signed = w if v @ w >= 0 else -w
    return float(np.linalg.norm(v - signed)) <= atol


def _bound_distances_of_copies(data: StandardData, copy_of: IntArray, norm: FloatArray) -> FloatArray:
    """Return (q,) bounds on the distance of columns from the columns that they duplicate; O(n) for each duplicate."""
    off, X = np.zeros(data.q), data.dataset.X
    for j in np.flatnonzero(copy_of >= 0).tolist():
        i = int(copy_of[j])
        ratio = float(data.divisor[i] / data.divisor[j])
        if np.frexp(ratio)[0] == 0.5:  # a power of two: columns that are equal in the file are equal here
            v, w = X[:, data.columns[i]], X[:, data.columns[j]] * ratio
            if np.array_equal(v, w) or np.array_equal(v, -w):
                continue
        v, w = data.column(i), data.column(j)
        apart = min(float(np.linalg.norm(v - w)), float(np.linalg.norm(v + w)))
        off[j] = apart + WRITTEN * float(norm[j])
    return off


COLUMN_EXPONENT = 900  # beyond 2^900 a sum of squares over the rows could leave the range of float64
TARGET_EXPONENTS = (-505, 508)  # the CV error is in squared units of the target and must stay in range too
FEW_PART = 4  # columns are gathered one by one if fewer than a fourth of them is needed
WEIGHT_EXPONENTS = (-1020, 1000)  # leave room for lam; clipping changes no objective by a representable amount


@dataclass(frozen=True, eq=False)
class StandardData:
    """Rows in standard coordinates: `v_ij = (x_ij - center_j) / divisor_j`, `r_i = (y_i - y_center) / y_unit`.

    The training objective is `sum_i (r_i - b0 - v_i' beta)^2 + lam sum_j weight_j beta_j^2` with `lam = gamma / 2`; it
    equals the user's objective divided by `loss_unit` (theory section 0).

    If rows have weights w, every returned row is multiplied by `root_i = sqrt(w_i)`, and so is the constant 1 of the
    intercept. Sums of squares of scaled rows are therefore weighted sums of squares. Rows are centred along `root`, by
    means `sum w_i v_i / sum w_i`. Means are never scaled.

    Attributes
    ----------
    dataset : Dataset
        Data set.
    scale : Scale
        Unit in which the penalty measures columns.
    intercept : Intercept
        Type of the intercept.
    columns : (q,) int array
        Positions in `dataset.names` of the columns that vary and are not forced out.
    center : (q,) array
        Means over all rows for `fold` and `global`, zero for `none`; units of the file. All means, norms and lengths
        here are weighted.
    divisor : (q,) array
        `length`: centred l2 norm; `variance`: this norm divided by sqrt(n), where n is the total weight if rows have
        weights; `none`: the power of two nearest the centred norm.
    weight : (q,) array
        1 for `length` and `variance`; `divisor ** -2` for `none`. If the data set has scales by group of rows, these
        are the weights of fits to all rows, with the scales of group 0 as `divisor`; see `weight_of`.
    y_center : float
        Mean of the target for `fold` and `global`, zero for `none`.
    y_unit : float
        The power of two nearest the rms of `root (y - y_center)`.
    copy_of : (q,) int array
        The earliest earlier column that equals this one or its negative in these coordinates with the same weight, up
        to `COPY_RTOL`, else -1.
    copy_off : (q,) array
        Upper bounds on the distance from that column, by length; 0 if the file has equal columns, up to a power of two.
    copy_length : (q,) array
        Lengths of the duplicate columns, else 0.
    warnings : tuple of str
        Messages for the user on constant and duplicate columns.
    rest, r_rest : (q,) array, float
        Means of the rows and of the targets after `center` and `y_center` are subtracted. With the intercept `global`,
        these means are subtracted too. They matter if the spread of a column is much smaller than its centre, which is
        rounded.
    restrictions : Restrictions
        Restrictions on the models, by names of the data.
    root : (n,) array, optional
        Square roots of the row weights; None if each row counts once.
    keeps_rows : bool
        True if all rows are computed once and stored.
    loss : Loss
        Loss of the fits; a two-class target stays 0 and 1, with `y_center` 0 and `y_unit` 1.
    """

    dataset: Dataset
    scale: Scale
    intercept: Intercept
    columns: IntArray
    center: FloatArray
    divisor: FloatArray
    weight: FloatArray
    y_center: float
    y_unit: float
    copy_of: IntArray
    copy_off: FloatArray
    copy_length: FloatArray
    warnings: tuple[str, ...]
    rest: FloatArray
    r_rest: float = 0.0
    restrictions: Restrictions = NONE
    root: FloatArray | None = None
    keeps_rows: bool = True
    loss: Loss = DEFAULT_LOSS

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.dataset.n

    @property
    def q(self) -> int:
        """Number of columns that vary."""
        return int(self.columns.shape[0])

    @property
    def loss_unit(self) -> float:
        """Loss or objective in units of the file that equals 1 here; 1 for two classes."""
        return self.y_unit**2

    def standard_bounds(self, restrictions: Restrictions) -> tuple[FloatArray, FloatArray]:
        """Return (q,) lower and upper bounds on coefficients in standard coordinates, infinite if there are none."""
        low, high = self.ends_in_file(restrictions) * (self.divisor / self.y_unit)
        return low, high

    def ends_in_file(self, restrictions: Restrictions) -> FloatArray:
        """Return (2, q) lower and upper bounds on coefficients in the units of the file."""
        ends = restrictions.bounds
        return np.array([ends.get(name, (-np.inf, np.inf)) for name in self.names]).reshape(self.q, 2).T

    @cached_property
    def coefficient_bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """Bounds on coefficients in standard coordinates; None if there are none, or signs alone and squared errors."""
        has_bounds = self.restrictions.has_bounds if self.loss.is_quadratic else bool(self.restrictions.bounds)
        return self.standard_bounds(self.restrictions) if has_bounds else None

    def support_bounds(self, support: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return (s,) bounds on the coefficients of a support in standard coordinates."""
        low, high = self.coefficient_bounds or self.standard_bounds(self.restrictions)
        return low[support], high[support]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the q columns."""
        return tuple(self.dataset.names[j] for j in self.columns.tolist())

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms of models of the q columns, by positions; empty if every column is a term."""
        place = {name: j for j, name in enumerate(self.names)}
        return (
            tuple(term.convert_to_positions(place) for term in self.restrictions.terms(self.names))
            if self.restrictions
            else ()
        )

    @cached_property
    def forced(self) -> IntArray:
        """Ascending positions, among the q columns, of forced and adjustment columns."""
        return np.array(sorted(j for term in self.terms if term.always for j in term.columns), dtype=np.int64)

    @cached_property
    def adjusting(self) -> IntArray:
        """Ascending positions, among the q columns, of adjustment columns (unpenalised, not counted in tau)."""
        return np.array(sorted(j for term in self.terms if not term.count for j in term.columns), dtype=np.int64)

    @cached_property
    def choice(self) -> ForcedColumns:
        """The columns in every support and the others, by which tau becomes a number of columns."""
        return ForcedColumns.from_positions(self.q, self.forced, len(self.adjusting))

    def features_of(self, support: IntArray) -> tuple[str, ...]:
        """Return the features of a support as a record states them, in the order of the file.

        Parameters
        ----------
        support : int array
            Positions among the q columns, with the adjustment columns.
        """
        features = np.setdiff1d(support, self.adjusting)
        return tuple(self.dataset.names[j] for j in np.sort(self.columns[features]).tolist())

    def support_of(self, features: Iterable[str]) -> IntArray:
        """Return the support of the features that a record states: positions among the q columns, ascending.

        Parameters
        ----------
        features : iterable of str
            Names without adjustment columns, which are added.
        """
        place = {name: j for j, name in enumerate(self.names)}
        return np.union1d([place[name] for name in features], self.adjusting).astype(np.int64)

    @property
    def free(self) -> tuple[int, ...]:
        """Positions in the data set of the unpenalised columns."""
        return tuple(self.columns[self.adjusting].tolist())

    @cached_property
    def _all_rows(self) -> tuple[FloatArray, FloatArray] | None:
        if not self.keeps_rows or self.n * self.q * 8 > STORE_BYTES:
            return None
        V, r = self._compute(slice(0, self.n))
        V.setflags(write=False)
        r.setflags(write=False)
        return V, r

    def rows(self, index: slice | IntArray | NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return `(V, r)` for some rows, multiplied by the square roots of their weights.

        Parameters
        ----------
        index : slice or (m,) int array
            Rows.

        Returns
        -------
        V : (m, q) array
            Columns.
        r : (m,) array
            Targets.

        Notes
        -----
        O(mq). All rows are computed once and stored if they take at most 256 MB; a slice is then a read-only view.
        """
        cached = self._all_rows
        if cached is None:
            return self._compute(index)
        return cached[0][index], cached[1][index]

    def targets(self, index: slice | IntArray | NDArray[np.intp]) -> FloatArray:
        """Return `r` of some rows, multiplied by the square roots of their weights."""
        r: FloatArray = (self.dataset.y[index] - self.y_center) / self.y_unit - self.r_rest
        return r if self.root is None else r * self.root[index]

    def root_of(self, index: slice | IntArray) -> FloatArray | None:
        """Return the square roots of the weights of some rows; None without weights."""
        return None if self.root is None else self.root[index]

    def about(self, index: slice | IntArray, v_mean: FloatArray, r_mean: float) -> tuple[FloatArray, FloatArray]:
        """Return `(V, r)` for some rows about given means, multiplied by the square roots of the weights.

        Parameters
        ----------
        index : slice or (m,) int array
            Rows.
        v_mean, r_mean : (q,) array, float
            Means of the columns and of the response.

        Returns
        -------
        V : (m, q) array
            Columns.
        r : (m,) array
            Targets.
        """
        V, r = self.rows(index)
        return subtract_means(V, r, self.root_of(index), v_mean, r_mean)

    def _compute(self, index: slice | IntArray | NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        X, whole = self.dataset.X, self.q == self.dataset.p
        V = (X[index] if whole else take_submatrix(X, index, self.columns)) - self.center
        V /= self.divisor
        if self.intercept is Intercept.GLOBAL:
            V -= self.rest
        if self.root is not None:
            V *= self.root[index][:, None]
        return V, self.targets(index)

    def about_own_centres(self, rows: IntArray) -> StandardData:
        """Return data with the same scales, centred at the means of some rows to keep their digits.

        This is valid only for a free intercept, under which any centre gives the same fit.

        Parameters
        ----------
        rows : (m,) int array
            The rows.
        """
        X, y = take_submatrix(self.dataset.X, rows, self.columns), self.dataset.y[rows]
        weights = None if self.dataset.row_weights is None else self.dataset.row_weights[rows]
        center, target = column_moments(X, weights).mean, column_moments(y[:, None], weights).mean
        return replace(self, center=center, y_center=float(target[0]), keeps_rows=False)

    def weight_of(self, rows: slice | IntArray) -> FloatArray:
        """Return the (q,) penalty weights of a fit to some rows: `weight`, unless scales differ between folds."""
        if self.dataset.scales is None:
            return self.weight
        return self.weight * (self.dataset.scales.of_rows(rows)[self.columns] / self.divisor) ** 2

    @property
    def has_intercept(self) -> bool:
        """True if every training set fits a separate intercept."""
        return self.intercept is Intercept.FOLD

    def of_columns(self, index: slice | IntArray, columns: IntArray) -> FloatArray:
        """Return `V` of some rows and columns, not multiplied by roots of weights; O(m s)."""
        columns_read = take_submatrix(self.dataset.X, index, self.columns[columns])
        return (columns_read - self.center[columns]) / self.divisor[columns] - self.rest[columns]

    def column(self, j: int) -> FloatArray:
        """Return `V[:, j]`, one column for all rows."""
        values = (self.dataset.X[:, self.columns[j]] - self.center[j]) / self.divisor[j] - self.rest[j]
        return values if self.root is None else values * self.root

    def only(self, columns: IntArray) -> StandardData:
        """Return the same rows and coordinates with some of the q columns, in ascending order."""
        return replace(
            self,
            columns=self.columns[columns],
            center=self.center[columns],
            divisor=self.divisor[columns],
            weight=self.weight[columns],
            copy_of=np.full(len(columns), -1, dtype=np.int64),
            copy_off=np.zeros(len(columns)),
            copy_length=np.zeros(len(columns)),
            rest=self.rest[columns],
        )

    def coefficients(
        self, support: Sequence[int] | IntArray, beta: FloatArray, v_mean: FloatArray, r_mean: float
    ) -> tuple[dict[str, float], float]:
        """Return the coefficients and the intercept of a fit in units of the file.

        Parameters
        ----------
        support : (s,) int sequence
            Columns of the fit, in 0..q-1.
        beta : (s,) array
            Coefficients in standard coordinates, in the order of `support`.
        v_mean : (q,) array
            Means of the training rows, zero unless the intercept is `fold`.
        r_mean : float
            Mean of the training targets, zero unless the intercept is `fold`.

        Returns
        -------
        coefficients : dict of str to float
            `b_j = beta_j y_unit / divisor_j` on the support, in file order.
        intercept : float
            `y_center + y_unit (r_rest + r_mean - sum_j (rest_j + v_mean_j + center_j / divisor_j) beta_j)`.

        Raises
        ------
        BadInput
            If a coefficient is too large for a float.
        """
        chosen = np.asarray(support, dtype=np.int64)
        position = np.argsort(chosen, kind="stable")
        chosen, values = chosen[position], np.asarray(beta, dtype=np.float64)[position]
        shift = v_mean[chosen] + self.rest[chosen] + self.center[chosen] / self.divisor[chosen]
        intercept = self.y_center + self.y_unit * (self.r_rest + r_mean - float(shift @ values))
        with np.errstate(over="ignore"):
            in_units = values * self.y_unit / self.divisor[chosen]
        names = [self.dataset.names[j] for j in self.columns[chosen].tolist()]
        if self.coefficient_bounds is not None:  # rounding must not cross a bound
            in_units = np.clip(in_units, *self.ends_in_file(self.restrictions)[:, chosen])
        for name, value in zip(names, in_units.tolist(), strict=True):
            if not np.isfinite(value):
                raise BadInput(f"the coefficient of {name!r} is too large for double precision; rescale that column")
        return dict(zip(names, in_units.tolist(), strict=True)), float(intercept)


def take_submatrix(X: FloatArray, index: slice | IntArray | NDArray[np.intp], columns: IntArray) -> FloatArray:
    """Return some rows of some columns of a matrix; if the columns are few, the others are not read.

    Parameters
    ----------
    index : slice or int array
        Selected rows.

    Examples
    --------
    >>> take_submatrix(np.arange(12.0).reshape(2, 6), np.array([1]), np.array([4])).tolist()
    [[10.0]]
    """
    if isinstance(index, slice) or FEW_PART * len(columns) > X.shape[1]:
        return np.asarray(np.take(X[index], columns, axis=1))
    return np.asarray(X[np.ix_(index, columns)])


def find_constant_columns(data: StandardData, rows: IntArray, places: IntArray) -> IntArray:
    """Return the columns, or the target at position q, that are constant in some rows of the file."""
    X, y = data.dataset.X, data.dataset.y
    values = ((y if j == data.q else X[:, data.columns[j]])[rows] for j in places.tolist())
    return places[[bool((column == column[0]).all()) for column in values]]


def standardize(
    dataset: Dataset, scale: str = "length", intercept: str = "fold", restrictions: Restrictions = NONE,
    loss: Loss = DEFAULT_LOSS,
) -> StandardData:  # fmt: skip
    """Return the data in standard coordinates, with scales from all rows, about the mean (theory section 0).

    Parameters
    ----------
    dataset : Dataset
        Data set.
    scale : {"length", "variance", "none"}
        Unit in which the penalty measures columns.
    intercept : {"fold", "global", "none"}
        Type of the intercept.
    restrictions : Restrictions, optional
        Restrictions by names of the data. Columns that are forced out are dropped; the other columns are the same as
        without restrictions.
    loss : Loss
        Loss of the fits; with `logistic` the target has the classes 0 and 1 (:mod:`sparsecv_mio.data.loss_targets`).

    Returns
    -------
    StandardData
        Data in standard coordinates.

    Raises
    ------
    BadInput
        If a keyword is unknown, the target is constant, no feature varies, a forced feature is constant, or a magnitude
        is out of range.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0, 5.0], [3.0, 5.0], [6.0, 5.0]], [1.0, 2.0, 4.0])
    >>> std = standardize(data)
    >>> std.names, std.warnings
    (('x0',), ("column 'x1' is constant: its coefficient is zero, but it counts in tau",))
    >>> V, r = std.rows(slice(0, 3))
    >>> bool(np.isclose(np.linalg.norm(V), 1.0))
    True
    """
    how, where = parse_keyword(Scale, scale, "scale"), parse_keyword(Intercept, intercept, "intercept")
    centred = where is not Intercept.NONE
    y_center, y_unit = _target_unit(dataset, centred) if loss.is_quadratic else (0.0, 1.0)
    moments = column_moments(dataset.X, dataset.row_weights)
    total = dataset.row_weight_of(slice(0, dataset.n))
    columns = np.flatnonzero(~moments.constant & ~np.isin(dataset.names, restrictions.force_out)).astype(np.int64)
    restrictions.check_vary({dataset.names[j] for j in np.flatnonzero(moments.constant)})
    if columns.size == 0:
        raise BadInput("every feature is constant; keep at least one column that varies")
    norm = moments.norm[columns]
    _check_magnitudes(dataset, columns, moments.largest[columns], norm)
    weight = np.ones(columns.size)
    if how is Scale.NONE:
        exponent = nearest_exponent(norm)
        divisor = np.ldexp(1.0, exponent)
        weight = np.ldexp(1.0, np.clip(-2 * exponent, *WEIGHT_EXPONENTS))
    else:
        divisor = norm / np.sqrt(total) if how is Scale.VARIANCE else norm
    if dataset.scales is not None:
        divisor, weight = dataset.scales.scales[0, columns], np.ones(columns.size)
    weight *= restrictions.penalties([dataset.names[j] for j in columns])
    bare = StandardData(
        dataset=dataset,
        scale=how,
        intercept=where,
        columns=columns,
        center=moments.mean[columns] if centred else np.zeros(columns.size),
        divisor=divisor,
        weight=weight,
        y_center=y_center,
        y_unit=y_unit,
        copy_of=np.full(columns.size, -1, dtype=np.int64),
        copy_off=np.zeros(columns.size),
        copy_length=np.zeros(columns.size),
        warnings=(),
        rest=np.zeros(columns.size),
        restrictions=restrictions,
        root=None if dataset.row_weights is None else np.sqrt(dataset.row_weights),
        loss=loss,
    )
    if where is Intercept.GLOBAL:
        off = [
            mean_difference(dataset.X[:, j], c, dataset.row_weights) for j, c in zip(columns, bare.center, strict=True)
        ]
        r_rest = mean_difference(dataset.y, y_center, dataset.row_weights) / y_unit
        bare = replace(bare, rest=np.array(off) / divisor, r_rest=r_rest)
    length = (norm if centred else moments.raw_norm[columns]) / divisor
    copy_of = find_copies(lambda g: _project(bare, g), bare.column, length, weight, dataset.n)
    read = () if dataset.reading is None else dataset.reading.notes
    doubts = stand_in_notes(dataset.X, dataset.y, dataset.names, dataset.target)
    notes = read + _constant_warning(dataset, moments.constant) + doubts + _copy_warning(bare.names, copy_of)
    apart, of_copies = _bound_distances_of_copies(bare, copy_of, length), np.where(copy_of >= 0, length, 0.0)
    return replace(bare, copy_of=copy_of, copy_off=apart, copy_length=of_copies, warnings=notes)


def _target_unit(dataset: Dataset, centred: bool) -> tuple[float, float]:
    moments = column_moments(dataset.y[:, None], dataset.row_weights)
    if moments.constant[0]:
        raise BadInput(f"target {dataset.target!r} is constant, so there is nothing to predict; choose another target")
    rms = (moments.norm if centred else moments.raw_norm) / np.sqrt(dataset.n)
    exponent = int(nearest_exponent(rms)[0]) if 0 < rms[0] < np.inf else 2000
    if not TARGET_EXPONENTS[0] <= exponent <= TARGET_EXPONENTS[1]:
        raise BadInput(f"target {dataset.target!r} is too large or too small for double precision; rescale it")
    return (float(moments.mean[0]) if centred else 0.0), float(np.ldexp(1.0, exponent))


def _check_magnitudes(dataset: Dataset, columns: IntArray, largest: FloatArray, norm: FloatArray) -> None:
    limit = 2.0**COLUMN_EXPONENT
    bad = np.flatnonzero((largest > limit) | (norm < 1.0 / limit))
    if bad.size:
        name = dataset.names[int(columns[bad[0]])]
        raise BadInput(
            f"column {name!r} has values outside 2^-900 .. 2^900, whose squares overflow or underflow; rescale it"
        )


def _project(data: StandardData, probe: FloatArray) -> FloatArray:
    out = np.zeros(data.q)
    for rows in row_chunks(data.n, 8 * data.q):  # blocks of one megabyte, which fit into caches
        out += probe[rows] @ data._compute(rows)[0]
    return out


def _constant_warning(dataset: Dataset, constant: BoolArray) -> tuple[str, ...]:
    """Return a warning on columns that are constant, or vary only in the last digits; their coefficient is 0."""
    levels = {} if dataset.reading is None else dataset.reading.levels
    text_columns = {f"{column}={word}": column for column, words in levels.items() for word in words}
    columns = {dataset.names[j]: dataset.X[:, j] for j in np.flatnonzero(constant).tolist()}
    single = [text_columns[name] for name in columns if name in text_columns and len(levels[text_columns[name]]) == 1]
    notes = [
        f"column {name!r} holds one text value in all rows: its coefficient is zero, but it counts in tau; "
        f"--drop {shlex.quote(name)} leaves it out"
        for name in single
    ]
    others = {name: column for name, column in columns.items() if text_columns.get(name) not in single}
    for moves, extent, verbs in ((False, "constant", "is are"), (True, "only by rounding errors", "varies vary")):
        alike = {name: column for name, column in others.items() if bool(np.ptp(column)) is moves}
        notes += _describe_constants(alike, extent, verbs, text_columns)
    return tuple(notes)


def _describe_constants(
    columns: Mapping[str, FloatArray], extent: str, verbs: str, text_columns: Mapping[str, str]
) -> list[str]:
    """Return the warning on several constant columns; levels of text columns need not count in tau."""
    if not columns:
        return []
    if max(abs(column[0]) for column in columns.values()) >= 2.0**53:
        extent += " (float64 numbers round integers above 2^53)"
    words = ("column", "its coefficient is", "it counts"), ("columns", "their coefficients are", "they count")
    several = len(columns) > 1
    noun, theirs, count = words[several]
    note = f"{noun} {', '.join(map(repr, columns))} {verbs.split()[several]} {extent}: {theirs} zero"
    return [note if text_columns.keys() & columns.keys() else f"{note}, but {count} in tau"]


def _copy_warning(names: tuple[str, ...], copy_of: IntArray) -> tuple[str, ...]:
    pairs = [f"{names[j]!r} duplicates {names[copy_of[j]]!r}" for j in np.flatnonzero(copy_of >= 0).tolist()]
    if not pairs:
        return ()
    return (f"duplicate columns (equal up to sign and scale, so each may replace the other): {', '.join(pairs)}",)


CODES = frozenset({  # numbers that may be missing-value codes
    *(sign * nines for nines in (99.0, 999.0, 9999.0, 99999.0, 999999.0, 88.0, 888.0, 9.0) for sign in (-1.0, 1.0)),
    -8.0, -7.0, -1.0, 9.9, 99.9, 999.9, 9.99, 99.99, 999.99,
})  # fmt: skip


def find_code(numbers: FloatArray) -> float | None:
    """Return a number, such as -999 or 99.9, that may be a missing-value code, because all others are far from it.

    The distance must exceed the range of the other numbers. For 99, which occurs more often as a normal value, it must
    exceed three times the range. For codes between -10 and 10, such as 9 and -1, it must also be at least 3. These
    numbers are only named, never read as missing without a request.

    Parameters
    ----------
    numbers : (n,) array
        Finite numbers.

    Examples
    --------
    >>> find_code(np.array([3.0, 5.0, -999.0, 4.0])), find_code(np.array([3.0, 99.0, 50.0, 12.0]))
    (-999.0, None)
    >>> find_code(np.array([1.0, 5.0, 9.0, 3.0])), find_code(np.array([-1.0, 0.0, 1.0, 1.0]))
    (9.0, None)
    >>> find_code(np.array([6.0, 7.0, 9.0, 6.0])), find_code(np.array([1.0, 1.0, 2.0, -1.0, 2.0]))
    (None, None)
    """
    for value in (numbers.min(), numbers.max()) if numbers.size else ():
        if float(value) in CODES:
            others = numbers[numbers != value]
            width = float(np.ptp(others)) if others.size > 2 else 0.0
            least = width * (3.0 if abs(value) == 99.0 else 1.0)
            distance = float(np.abs(others - value).min(initial=np.inf))
            is_far = distance > least or (distance == least and 9.0 <= abs(value) < 99.0)
            if width > 0.0 and is_far and (distance >= 3.0 or abs(value) >= 10.0):
                return float(value)
    return None


def code_of_column(name: str, value: float) -> str:
    """Return a missing-value code of one column as the command line takes it; of all columns if the name has a comma.

    Examples
    --------
    >>> code_of_column("bmi", -9.0), code_of_column("a b", 99.9), code_of_column("a,b", 9.0)
    ('bmi=-9', "'a b=99.9'", '9')
    """
    return f"{value:g}" if "," in name else shlex.quote(f"{name}={value:g}")


def stand_in_notes(X: FloatArray, y: FloatArray, names: Sequence[str], target: str) -> tuple[str, ...]:
    """Return a sentence for every column that contains such a number."""
    suspected = np.isin(np.array([X.min(axis=0), X.max(axis=0)]), tuple(CODES)).any(axis=0)
    columns = {names[j]: X[:, j] for j in np.flatnonzero(suspected).tolist()} | {target: y}
    return tuple(
        f"column {name!r} holds {value:g}, far from all its other values; if it is a missing-value code, "
        f"give --na-values {code_of_column(name, value)} (na_values in Python)"
        for name, value in ((name, find_code(cells)) for name, cells in columns.items())
        if value is not None
    )
