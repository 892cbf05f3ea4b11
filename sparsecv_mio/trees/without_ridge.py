"""Checks for fits without a ridge penalty: whether gamma 0 is allowed, and whether adjustment columns are independent.

Without a ridge penalty, the fit of a model on some rows is unique if its columns, and the intercept, are linearly
independent on these rows. Gamma 0 is accepted if the columns of every subset of the largest model size are independent
on the training rows of every fold. Then every fold compares the same subsets. Otherwise an error message names the fold
and a dependent subset. Larger sets of columns may be dependent, for example if there are more columns than rows, or
indicators of all levels of a factor.

The package does not skip dependent subsets, because the compared models would then depend on the fold. It does not use
fits of minimum norm, because the choice among models that fit equally well would then depend on the units of the
columns.

**Dependent to working precision.** Columns are scaled to length 1. They count as dependent if the smallest singular
value of their matrix is at most `SINGULAR` times the largest one. For independent columns, fits are computed from the
rows, by QR with refinement in long precision, or in fractions.

**Proposition.** Let the columns of a support, of length 1 on some rows, have a Gram matrix `Q >= c I`, and let f and
f_0 be its objectives at `NO_RIDGE` and at 0. Then `f_0(S) <= f(S) <= f_0(S) + lam w y'y / c`, with lam = NO_RIDGE / 2
and w the largest penalty weight of the columns. The coefficients of the two fits differ by at most
`lam w |y| / c^{3/2}`.

*Proof.* f is f_0 plus a penalty, which at the solution b_0 of f_0 is at most `lam w b_0'b_0 <= lam w b_0'Q b_0 / c`,
and `b_0'Q b_0 <= y'y`. With W the diagonal of penalty weights, the solutions differ by `(Q + lam W)^{-1} lam W b_0`. []

The check requires `c >= SINGULAR^2` and `w <= LARGEST_RIDGE`. Then `f - f_0 < 1e-160 y'y`. This difference is less than
the rounding error of f_0, unless f_0 is 0. If a fit is perfect (f_0 = 0), the bound on the rounding error of
its objective therefore includes the penalty. A bound proved at `NO_RIDGE` then holds at gamma 0, up to the outward
rounding of bounds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import comb
from typing import Protocol

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from sparsecv_mio.arrays import FloatArray, IntArray, row_chunks
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.reading_options import ABSENT
from sparsecv_mio.data.standard import StandardData, find_constant_columns, standardize
from sparsecv_mio.digits import abbreviate_list, plural
from sparsecv_mio.errors import BadInput, UnusableColumns
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.problem.glm_refit import check_optimum_exists
from sparsecv_mio.problem.training_moments import (
    CentredRows,
    TrainingMoments,
    moments_of_training,
    row_moments,
    training_moments,
)
from sparsecv_mio.targets import Loss
from sparsecv_mio.thresholds import has_large_matrices
from sparsecv_mio.units import ROUNDING, TINY
from sparsecv_mio.words import Intercept, Scale

CONSTANT = "is constant"
DEPENDENT = "are linearly dependent"
LEAST_EIGENVALUE = 1e-12  # smallest eigenvalue of the Gram matrix at unit length below which the rows are factored
CLEAR = 1e-9  # bound on the same eigenvalue above which rounding cannot hide a dependency
SINGULAR = 1e-12  # ratio of smallest to largest singular value up to which a subset counts as singular
IN_NULL_SPACE = 1e-12  # length of the part of a column in the null space up to which it is in no dependency
IN_DEPENDENCY = 1e-2  # length of the same part above which rounding cannot have put the column into a dependency
SAFE_LEVERAGE = 0.99  # sum over held-out rows up to which singular values of a subset shrink at most tenfold
MAX_CHECKED_SUBSETS = 200_000_000  # subsets tried over all training sets: about a second
MAX_FORCED_OUT = 4  # columns that a message proposes to force out
MAX_ADVICE_WORK = 2e9  # multiplications for the checks that look for the fewest columns to force out: about a second
MAX_SUSPECTS = 1 << 14  # subsets of one size that may be singular by their moments, checked by their rows
LARGEST_RIDGE = 1e100  # maximum penalty weight: columns have a length of at least 1e-50
CLEAR_RIDGE = 1e-9  # penalty, as a share of the largest squared length of a column, that makes every fit regular
NAMED = 1e-6  # coefficient in a dependency, as a share of the largest one, above which a message names a column


class FitKeywords(Protocol):
    """The options that determine the standard coordinates of a data set."""

    @property
    def scale(self) -> Scale:
        """Unit in which the penalty measures columns."""

    @property
    def intercept(self) -> Intercept:
        """Type of the intercept."""

    @property
    def restrictions(self) -> Restrictions:
        """Restrictions by names of the data."""

    @property
    def loss(self) -> Loss:
        """Loss of the fits."""


def standardize_and_check(
    dataset: Dataset, options: FitKeywords, gammas: Sequence[float], taus: Iterable[int], folds: FoldPlan | None = None
) -> StandardData:  # fmt: skip
    """Return the data in standard coordinates, checked by :func:`check_independent` for models of some sizes.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    options : FitKeywords
        Scale, intercept, restrictions and loss.
    gammas : sequence of float
        Ridge weights.
    taus : iterable of int
        Maximum numbers of features of the models.
    folds : FoldPlan, optional
        Folds; None checks all rows alone.

    Raises
    ------
    BadInput
        If the data cannot be standardized, or if columns are dependent.
    """
    data = standardize(dataset, options.scale, options.intercept, options.restrictions, options.loss)
    check_independent(data, gammas, most_columns(data, max(taus)), folds)
    return data


def check_independent(
    data: StandardData, gammas: Iterable[float], most: int, folds: FoldPlan | None = None
) -> None:  # fmt: skip
    """Raise `BadInput` if columns without a penalty are linearly dependent on the training rows of a fold.

    With gamma 0 these are the columns of any model, otherwise the adjustment columns.

    Parameters
    ----------
    data : StandardData
        Data set.
    gammas : iterable of float
        Ridge weights; only the presence of 0 matters.
    most : int
        Maximum number of columns of a model.
    folds : FoldPlan, optional
        Folds; None checks all rows alone.

    Raises
    ------
    BadInput
        If columns are dependent; the message names the fold, counted from 1, and the columns.

    Notes
    -----
    O(n q^2), and O(m q^2 + q^3) for each fold of m rows that leverages do not settle. By the trace of the block of the
    hat matrix, `Q_N >= (1 - sum of leverages of N) Q` for the training rows of fold N; also if Q is singular. If all
    columns together are dependent, the subsets of columns that a dependency links are tried one by one.

    Examples
    --------
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.standard import standardize
    >>> X = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [2.0, 1.0, 3.0], [0.0, 0.0, 0.0], [5.0, 0.0, 5.0]])
    >>> data = standardize(Dataset.from_arrays(X, [1.0, 2.0, 3.0, 4.0, 6.0]))
    >>> check_independent(data, [0.0], 2)
    >>> check_independent(data, [0.0], 3)
    Traceback (most recent call last):
        ...
    sparsecv_mio.errors.UnusableColumns: gamma 0: on all rows, columns 'x0', 'x1', 'x2' are linearly dependent; ...
    """
    if len(data.adjusting):
        _check_adjusting(data.only(data.adjusting), folds)
        if data.loss.target.has_times:
            from sparsecv_mio.problem.cox import check_cox_optimum_exists  # other losses do not need this import

            check_cox_optimum_exists(data, folds)
        elif not data.loss.is_quadratic:
            check_optimum_exists(data, folds)
    if 0.0 not in gammas or not most:
        return
    short = np.flatnonzero(data.weight > LARGEST_RIDGE)
    if len(short):
        raise BadInput(
            f"gamma 0: column {data.names[short[0]]!r} has a length below 1e-50; rescale it, or do not use scale none"
        )
    _SubsetCheck(data, most, folds).check_subsets()


def most_columns(data: StandardData, tau: int) -> int:
    """Return the maximum number of columns of a model of `tau` features, with the adjustment columns.

    Parameters
    ----------
    data : StandardData
        Data set.
    tau : int
        Number of features.
    """
    if not data.terms:
        return min(tau, data.q)
    return data.choice.n_columns(sum(_widest_terms(data)[:tau]))


def _widest_terms(data: StandardData) -> list[int]:
    """Return the numbers of columns of the terms that tau counts, the largest first."""
    return sorted((len(term.columns) for term in data.terms if term.count), reverse=True)


def _largest_tau(data: StandardData, most: int) -> int:
    """Return the largest tau, without adjustment columns, whose models have at most `most` columns."""
    columns = data.choice.tau_of(most)
    return sum(total <= columns for total in accumulate(_widest_terms(data))) if data.terms else columns


def _check_adjusting(data: StandardData, folds: FoldPlan | None) -> None:
    """Raise `BadInput` if the adjustment columns are dependent on a training set."""
    cure, free = "leave one out", data.intercept is Intercept.FOLD
    least_rows = data.n if folds is None else folds.least_training
    if least_rows < data.q + free:
        raise BadInput(f"adjust: {_too_few_rows(data, folds, data.q)}; {cure}")
    for where, rows in _doubtful(data, folds):
        _, columns, kind = _least_eigenvalue(data, moments_of_training(data, rows))
        rare = kind == CONSTANT and where != ON_ALL_ROWS
        cure = "leave it out, or merge a rare level with another" if rare else cure
        raise BadInput(f"adjust: on {where}, {_describe_columns(data, columns, kind)}; {cure}")


ON_ALL_ROWS = "all rows"


def _too_few_rows(data: StandardData, folds: FoldPlan | None, columns: int) -> str:
    """Return a sentence: the smallest training set has too few rows for this number of columns."""
    free = data.intercept is Intercept.FOLD
    who, rows = "there are", data.n
    if folds is not None and data.n >= columns + free:
        fold = int(np.argmax(folds.left_sizes))
        who, rows = f"fold {fold + 1} of {folds.k} trains on", folds.least_training
    why = (
        "fit the target exactly if they are linearly independent"
        if rows == columns + free
        else "are linearly dependent"
    )
    return f"{who} {rows} rows, on which any {columns} columns{' with an intercept' if free else ''} {why}"


def _training_rows(fold: int, folds: FoldPlan) -> str:
    """Return the name of a training set."""
    return f"the training rows of fold {fold + 1} of {folds.k}"


def _doubtful(data: StandardData, folds: FoldPlan | None) -> Iterator[tuple[str, IntArray]]:
    """Yield the training sets, with their names, on which all columns together may be dependent."""
    needed = data.q + (data.intercept is Intercept.FOLD)
    whole = row_moments(data, slice(0, data.n)) if data.n >= needed else None
    least = 0.0 if whole is None else _least_eigenvalue(data, whole)[0]
    if not least > LEAST_EIGENVALUE:
        yield ON_ALL_ROWS, np.arange(data.n)
    if folds is None:
        return
    leverage = _leverages(data, whole) if whole is not None and least > CLEAR else np.ones(data.n)
    doubtful = [
        fold for fold in range(folds.k)
        if not least * (1.0 - float(leverage[folds.left_out(fold)].sum())) > CLEAR
    ]  # fmt: skip
    few = [fold for fold in doubtful if data.n - int(folds.left_sizes[fold]) < needed]
    for fold in few:
        yield _training_rows(fold, folds), folds.train_rows(fold)
    others = sorted(set(doubtful) - set(few))
    for fold, moments in training_moments(data, folds, others) if others else ():
        if not _least_eigenvalue(data, moments)[0] > LEAST_EIGENVALUE:
            yield _training_rows(fold, folds), folds.train_rows(fold)


class _SubsetCheck:
    """A search for singular subsets of columns on every training set.

    Parameters
    ----------
    data : StandardData
        Data set.
    most : int
        Maximum number of columns of a model.
    folds : FoldPlan or None
        Folds.
    """

    def __init__(self, data: StandardData, most: int, folds: FoldPlan | None) -> None:
        self.data, self.folds = data, folds
        self.most = most  # maximum number of columns without a fault; every fault lowers it
        self.faults: list[tuple[str, IntArray]] = []  # each with the columns that take part in it; none with few rows
        self.rank = data.q  # smallest rank of the columns on the training sets that were decomposed
        self.budget = MAX_CHECKED_SUBSETS // (1 if folds is None else 1 + folds.k)

    def check_subsets(self) -> None:
        """Raise `BadInput` if a subset is singular, or if there are too many subsets to be tried."""
        size = self.most
        self._find_faults()
        if self.faults:
            advice = [
                *self._advise_forcing_out(size),
                *self._advise_tau(),
                f"give a gamma of at least {self._clear_gamma():g}",
            ]
            advice[1:] = [*advice[1:-1], f"or {advice[-1]}"] if len(advice) > 1 else []
            raise UnusableColumns(f"gamma 0: {self.faults[0][0]}; {', '.join(advice)}")

    def _advise_tau(self) -> Iterator[str]:
        """Yield advice on the tau up to which there is no fault; with factors that count once, also in columns."""
        tau, columns = _largest_tau(self.data, self.most), self.data.choice.tau_of(self.most)
        if tau > 0:
            yield f"give tau at most {tau}"
        if columns > tau:
            yield f'give count="columns" and tau at most {columns}'

    def _advise_forcing_out(self, asked: int) -> Iterator[str]:
        """Yield advice on the fewest columns whose removal leaves no fault in models of `asked` columns."""
        if self.rank < min(asked, self.data.q - MAX_FORCED_OUT):  # without these columns, the others are dependent too
            return
        tau, checks = _largest_tau(self.data, asked), 1 + (0 if self.folds is None else self.folds.k)
        budget = int(MAX_ADVICE_WORK // (checks * self.data.n * self.data.q**2))
        for most in range(1, MAX_FORCED_OUT + 1):
            out, budget = self._force_out(tau, most, max(budget, 1))
            if out:
                yield f"give force_out={json.dumps(out)}{', which removes every dependency' * (len(out) > 1)}"
            if out or not budget:
                return

    def _force_out(self, tau: int, most: int, budget: int) -> tuple[list[str], int]:
        """Return at most `most` columns whose removal leaves no fault, or none, and the number of checks that are left.

        A column of every dependency has to go: the columns of one dependency are tried in turn, the last one first, and
        levels of missing values, which are no reference, at the end.
        """
        columns = next((columns.tolist() for _, columns in self.faults if len(columns)), list[int]())
        if self.data.q - self.data.choice.n_adjusted == 1:  # some feature has to be left
            return [], budget
        free = sorted(set(columns).difference(self.data.forced), reverse=True)
        for column in sorted(free, key=lambda column: self.data.names[column].endswith(f"={ABSENT}")):
            if not budget:
                break
            name, budget = self.data.names[column], budget - 1
            other_columns = self.data.only(np.delete(np.arange(self.data.q), column))
            check = _SubsetCheck(other_columns, most_columns(other_columns, tau), self.folds)
            check._find_faults()
            if not check.faults:
                return [name], budget
            if most > 1:
                out, budget = check._force_out(tau, most - 1, budget)
                if out:
                    return [name, *out], budget
        return [], budget

    def _find_faults(self) -> None:
        """Record the faults."""
        data, folds = self.data, self.folds
        free = data.intercept is Intercept.FOLD
        spare_rows = (data.n if folds is None else folds.least_training) - free - self.most
        if spare_rows < (self.most < data.q):  # no row to spare: every subset of this size would fit exactly
            self._lower(spare_rows + self.most - 1, _too_few_rows(data, folds, self.most))
        leverage = next((self._check(where, rows) for where, rows in _doubtful(data, None)), None)
        if leverage is None:  # all columns together are independent on all rows
            for where, rows in _doubtful(data, folds):
                self._check(where, rows)
        elif folds is not None:
            for fold in range(folds.k):
                if self.most > 0 and leverage[folds.left_out(fold)].sum() > SAFE_LEVERAGE:
                    self._check(_training_rows(fold, folds), folds.train_rows(fold))

    def _lower(self, most: int, fault: str, columns: Sequence[int] | IntArray = ()) -> None:
        """Record a fault and its columns, and the maximum number of columns without a fault."""
        self.most = max(min(most, self.most), 0)
        self.faults.append((fault, np.asarray(columns, dtype=np.int64)))

    def _clear_gamma(self) -> float:
        """Return a power of ten whose penalty makes every fit regular."""
        squares, paid = np.square(self.data.rows(slice(0, self.data.n))[0]).sum(axis=0), self.data.weight > 0.0
        penalty = CLEAR_RIDGE * float(np.max(squares[paid] / self.data.weight[paid], initial=TINY))
        return float(10.0 ** math.ceil(math.log10(2.0 * penalty)))

    def _check(self, where: str, rows: IntArray) -> FloatArray:
        """Check one training set; return bounds on the leverages of its rows in least squares on all columns."""
        data, free = self.data, self.data.intercept is Intercept.FOLD
        training = CentredRows.from_data(data.about_own_centres(rows) if free else data, rows)
        V, r = training.V, training.r
        length = np.linalg.norm(V, axis=0)
        constant = find_constant_columns(data, rows, np.arange(data.q)) if free else np.flatnonzero(length == 0.0)
        if len(constant) and self.most > 0:
            self._lower(0, f"on {where}, {_describe_columns(data, constant[:1], CONSTANT)}", constant[:1])
        if self.most > 1 and has_large_matrices(data, 1):
            self._lower(1, f"too many subsets of {self.most} columns to check for linear dependence")
        if self.most == 0 or has_large_matrices(data, 1):
            return np.ones(len(rows))
        V /= length
        left_vectors, values, basis = np.linalg.svd(V, full_matrices=len(V) < data.q)
        rank = int(np.count_nonzero(values > SINGULAR * values[0]))
        self.rank = min(self.rank, rank)
        root = data.root_of(rows) if free else np.zeros(len(rows))
        share = 1.0 / len(rows) if root is None else root**2 / max(float(root @ root), TINY)
        leverage = np.square(left_vectors[:, :rank]).sum(axis=1) + share
        if self.most == 1:
            return np.asarray(leverage)
        self._limit_by_dependent_columns(where, V, basis[rank:], SINGULAR * values[0])
        residual = r - left_vectors[:, :rank] @ (left_vectors[:, :rank].T @ r)
        if rank == self.most < data.q and np.linalg.norm(residual) <= SINGULAR * np.linalg.norm(r):
            self._lower(rank - 1, f"on {where}, any {rank} independent columns fit the target exactly")
        return np.asarray(leverage)

    def _limit_by_dependent_columns(self, where: str, V: FloatArray, null: FloatArray, tolerance: float) -> None:
        """Limit the sizes by each set of linearly dependent columns.

        Parameters
        ----------
        where : str
            Name of the training set, for messages.
        V : (n, q) array
            Centred columns of length 1.
        null : (r, q) array
            Orthonormal rows that span the null space of V.
        tolerance : float
            Largest singular value that counts as 0.
        """
        from scipy.sparse.csgraph import connected_components  # rarely needed

        linked = _columns_of_dependencies(V, null, tolerance)
        near = np.abs(null[:, linked].T @ null[:, linked]) > IN_NULL_SPACE
        _, labels = connected_components(near)
        for label in np.unique(labels):
            columns = linked[labels == label]
            nullity = _nullity(V, columns, tolerance)
            # any `largest` columns of the part are dependent
            largest = len(columns) - nullity + 1
            # with a single dependency, a model that contains it also contains all other adjustment columns
            others = len(np.setdiff1d(self.data.adjusting, columns)) if nullity == 1 else 0
            if largest + others <= self.most:
                some = columns[:largest] if nullity == 1 else _minimal_dependency(V, columns[:largest], tolerance)
                dependent = _describe_columns(self.data, some, DEPENDENT)
                self._lower(len(some) + others - 1, f"on {where}, {dependent}", some)
            if nullity > 1:
                self._try_all(where, V, columns)

    def _try_all(self, where: str, V: FloatArray, columns: IntArray) -> None:
        """Check every subset of some columns by enumeration."""
        # rarely needed, and loads numba
        from sparsecv_mio.kernels.every_support import ScannedProblem, new_kept_supports, scan_supports

        m, M = len(columns), V[:, columns].T @ V[:, columns]
        counts = accumulate(comb(m, size) for size in range(1, min(self.most, m) + 1))
        few = max((size for size, count in enumerate(counts, 1) if count <= self.budget), default=0)
        if few < min(self.most, m):
            self._lower(few, f"too many subsets of {self.most} columns to check for linear dependence")
        # f is 1 for every support, and stays above a level of 0.5 unless rounding hides it
        problem = ScannedProblem(M, np.zeros(m), 1.0, 1.0, 0.0, 0.0, 50.0 * ROUNDING)
        for size in range(2, min(self.most, m) + 1):
            suspects = new_kept_supports(size, MAX_SUSPECTS, 0.5)
            if not all(scan_supports(problem, size, first, suspects) for first in range(m - size + 1)):
                self._lower(size - 1, f"too many subsets of {size} columns are nearly dependent")
                return
            for support in suspects.supports[: int(suspects.filled[0])]:
                singular = np.linalg.svd(V[:, columns[support]], compute_uv=False)
                if not singular[-1] > SINGULAR * singular[0]:
                    some = columns[support]
                    self._lower(size - 1, f"on {where}, {_describe_columns(self.data, some, DEPENDENT)}", some)
                    return


def _nullity(V: FloatArray, columns: IntArray, tolerance: float) -> int:
    """Return the number of columns minus their rank."""
    return len(columns) - int(np.linalg.matrix_rank(V[:, columns], tol=tolerance)) if len(columns) else 0


def _columns_of_dependencies(V: FloatArray, null: FloatArray, tolerance: float) -> IntArray:
    """Return the columns that take part in a dependency: without such a column the nullity is smaller.

    Rounding turns the computed null space towards columns that are nearly dependent, by up to the rounding error over
    their smallest singular value. Columns with a small part in it are therefore left out one by one.

    Parameters
    ----------
    V : (n, q) array
        Centred columns of length 1.
    null : (r, q) array
        Orthonormal rows that span the null space of V.
    tolerance : float
        Largest singular value that counts as 0.
    """
    size = np.linalg.norm(null, axis=0)
    columns = np.flatnonzero(size > IN_NULL_SPACE).astype(np.int64)
    suspects = columns[size[columns] <= IN_DEPENDENCY]
    if not len(suspects):
        return columns
    R = np.asarray(np.linalg.qr(V, mode="r"))
    nullity = _nullity(R, columns, tolerance)
    for suspect in suspects[np.argsort(size[suspects])]:
        others = columns[columns != suspect]
        if _nullity(R, others, tolerance) == nullity:
            columns = others
    return columns


def _minimal_dependency(V: FloatArray, columns: IntArray, tolerance: float) -> IntArray:
    """Return dependent columns, among some dependent ones, that are independent without any of them; the first ones."""
    for column in columns[::-1]:
        others = columns[columns != column]
        if _nullity(V, others, tolerance):
            columns = others
    return columns


def _least_eigenvalue(data: StandardData, moments: TrainingMoments) -> tuple[float, IntArray, str]:
    """Return the approximate smallest eigenvalue of the Gram matrix of columns of length 1, and the columns at fault.

    If the eigenvalue is 0 up to rounding, the result names dependent columns and the kind of fault. O(q^3).
    """
    scatter = moments.scatter[: data.q, : data.q]
    squares = np.diag(scatter)
    constant = np.flatnonzero(~(squares > 0.0)).astype(np.int64)
    if len(constant):
        return 0.0, constant[:1], CONSTANT
    unit = 1.0 / np.sqrt(squares)
    correlation = scatter * unit[:, None] * unit
    least = float(np.linalg.eigvalsh(correlation)[0])
    if least > LEAST_EIGENVALUE:
        return least, constant, ""
    return least, _dependent(correlation, np.arange(data.q)), DEPENDENT


def _dependent(correlation: FloatArray, columns: IntArray) -> IntArray:
    """Return the first columns of which one is a combination of the others, up to rounding."""
    low, high = 1, len(correlation)
    while low < high:  # leading blocks: the least eigenvalue falls as they grow
        middle = (low + high) // 2
        dependent = not float(np.linalg.eigvalsh(correlation[:middle, :middle])[0]) > LEAST_EIGENVALUE
        low, high = (low, middle) if dependent else (middle + 1, high)
    share = np.abs(np.linalg.eigh(correlation[:low, :low])[1][:, 0])
    return np.asarray(columns[np.flatnonzero(share > NAMED * share.max())], dtype=np.int64)


def _describe_columns(data: StandardData, columns: IntArray, what: str) -> str:
    """Return a statement about some columns that names them."""
    names = [repr(data.names[j]) for j in columns.tolist()]
    return f"{plural(len(names), 'column')} {abbreviate_list(names)} {what}"


def _leverages(data: StandardData, whole: TrainingMoments) -> FloatArray:
    """Return leverages (n,) of rows in least squares on all columns and the intercept. O(n q^2)."""
    scatter, mean = whole.scatter[: data.q, : data.q], whole.mean[: data.q]
    unit = 1.0 / np.sqrt(np.diag(scatter))
    factor = cholesky(scatter * unit[:, None] * unit, lower=True, check_finite=False)
    leverage = np.zeros(data.n)
    for rows in row_chunks(data.n, data.q):
        V, _ = data.about(rows, mean, 0.0)
        turned = solve_triangular(factor, unit[:, None] * V.T, lower=True, check_finite=False)
        leverage[rows] = np.einsum("ji,ji->i", turned, turned)
        if data.intercept is Intercept.FOLD:
            root = data.root_of(rows)
            leverage[rows] += (1.0 if root is None else root**2) / whole.total
    return leverage
