"""`FoldPlan`: the rows that each fold trains on and scores. Built once, digested, passed down; nothing else splits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.dealing import SPECS, blocks, equal_folds, holdout
from sparsecv_mio.data.ids import fold_labels, group_labels, read_fold_file
from sparsecv_mio.errors import BadInput, did_you_mean

KINDS = ("loo", "blocks", "holdout", "groups", "column", "file")


class RowLists(NamedTuple):
    """Rows of every fold, one fold after the other: those of fold j are `rows[starts[j]:starts[j + 1]]`, ascending."""

    rows: IntArray
    starts: IntArray

    def of(self, j: int) -> IntArray:
        """Return the rows of fold j."""
        return self.rows[self.starts[j] : self.starts[j + 1]]


@dataclass(frozen=True, eq=False, repr=False)
class FoldPlan:
    """The folds of a cross-validation: for each the rows it trains on and the rows it scores. The arrays are read-only.

    Attributes
    ----------
    spec : str
        What the user asked for.
    seed : int or None
        Seed of the shuffle, None where nothing is shuffled.
    n : int
        Number of rows.
    k : int
        Number of scored folds.
    order : (m,) int array
        Scored rows, fold after fold, ascending in each. In a partition the rows that are never scored follow.
    starts : (k + 1,) int array
        Fold j scores `order[starts[j]:starts[j + 1]]`.
    left : RowLists or None
        Rows that each fold does not train on, where some fold scores only a part of them; None where every fold trains
        on all rows but those it scores.
    repeats : int
        How often the rows were dealt to folds.

    Examples
    --------
    >>> plan = folds_from_labels([1, 0, 1, 0, -1])
    >>> plan.k, plan.scored_rows(1).tolist(), plan.train_rows(1).tolist()
    (2, [0, 2], [1, 3, 4])
    """

    spec: str
    seed: int | None
    n: int
    k: int
    order: IntArray
    starts: IntArray
    left: RowLists | None = None
    repeats: int = 1

    @property
    def sizes(self) -> IntArray:
        """(k,) numbers of scored rows."""
        return np.diff(self.starts)

    @property
    def scored(self) -> int:
        """Number of scored rows, each as often as a fold scores it."""
        return int(self.starts[-1])

    @cached_property
    def all_scored(self) -> IntArray:
        """(scored,) scored rows of all folds, ascending, each as often as a fold scores it."""
        return np.sort(self.order[: self.scored])

    @property
    def left_sizes(self) -> IntArray:
        """(k,) numbers of rows that a fold does not train on."""
        return self.sizes if self.left is None else np.diff(self.left.starts)

    @property
    def least_training(self) -> int:
        """Rows of the smallest training set."""
        return self.n - int(self.left_sizes.max())

    @cached_property
    def scores_all_left_out(self) -> BoolArray:
        """(k,) whether a fold scores every row that it does not train on."""
        return np.asarray(self.sizes == self.left_sizes)

    @cached_property
    def is_partition(self) -> bool:
        """Whether no row is scored twice and every fold trains on all rows but those it scores."""
        return self.left is None and bool(np.all(np.diff(self.all_scored) > 0))

    @cached_property
    def labels(self) -> IntArray:
        """(n,) fold that scores each row of a partition, -1 for rows that are never scored.

        Raises
        ------
        BadInput
            The folds are no partition.
        """
        if not self.is_partition:
            raise BadInput(
                f"folds {self.spec!r} overlap or leave rows out of both parts: this needs folds that score each row "
                "at most once and train on all others"
            )
        labels = np.full(self.n, -1, dtype=np.int64)
        labels[self.order[: self.scored]] = np.repeat(np.arange(self.k), self.sizes)
        labels.setflags(write=False)
        return labels

    @property
    def has_standard_error(self) -> bool:
        """Whether the CV error has a standard error over folds: more than one is needed to score every row once."""
        return self.k > self.times_scored * (1.0 + 1e-9)

    @cached_property
    def times_scored(self) -> float:
        """How often a row that is scored at all is scored, on average: 1 for a partition."""
        distinct = 1 + int(np.count_nonzero(np.diff(self.all_scored))) if self.scored else 0
        return self.scored / distinct if distinct else 1.0

    def __repr__(self) -> str:
        return f"FoldPlan({self.spec!r}, k={self.k}, n={self.n})"

    @cached_property
    def digest(self) -> str:
        """`"sha256:<hex>"`, all numbers as little-endian int64.

        Of the labels of a partition; else of n, k, where the scored rows of each fold start, these rows, and, where
        folds score only a part of what they leave out, the same of the rows left out.
        """
        if self.is_partition:
            parts = [self.labels]
        else:
            parts = [np.array([self.n, self.k]), self.starts, self.order[: self.scored], *(self.left or ())]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part.astype("<i8", copy=False).tobytes())
        return f"sha256:{digest.hexdigest()}"

    def scored_rows(self, j: int) -> IntArray:
        """Return the rows fold j scores, ascending."""
        return self.order[self.starts[j] : self.starts[j + 1]]

    def left_out(self, j: int) -> IntArray:
        """Return the rows fold j does not train on, ascending: those it scores and perhaps others."""
        return self.scored_rows(j) if self.left is None else self.left.of(j)

    def train_rows(self, j: int) -> IntArray:
        """Return the rows fold j trains on, ascending."""
        train = np.ones(self.n, dtype=bool)
        train[self.left_out(j)] = False
        return np.flatnonzero(train).astype(np.int64, copy=False)

    def with_all_rows(self) -> FoldPlan:
        """Return the same folds and one more, the last, that trains on all rows and scores none.

        Examples
        --------
        >>> both = folds_from_labels([1, 0, 1, 0, -1]).with_all_rows()
        >>> both.k, both.scored_rows(2).tolist(), both.train_rows(2).tolist()
        (3, [], [0, 1, 2, 3, 4])
        """
        left = self.left and RowLists(self.left.rows, np.append(self.left.starts, self.left.starts[-1]))
        return replace(self, k=self.k + 1, starts=np.append(self.starts, self.starts[-1]), left=left)

    def without_folds(self) -> FoldPlan:
        """Return a plan of the same rows and no fold."""
        order = self.order if self.is_partition else np.arange(self.n)
        return replace(self, k=0, order=order, starts=np.zeros(1, dtype=np.int64), left=None)

    @cached_property
    def pieces(self) -> tuple[tuple[int, int, bool], ...]:
        """Consecutive folds that can share their sums over rows: `(first, end, nested)` of each piece.

        Either no row is left out by two folds of a piece; or, in a nested one, every fold trains on all rows that the
        fold before it trains on, and perhaps more.
        """
        if self.is_partition:
            return ((0, self.k, False),)
        found: list[tuple[int, int, bool]] = []
        taken = np.zeros(self.n, dtype=bool)  # rows left out by the piece; of a nested one, by its last fold
        for j in range(self.k):
            left = self.left_out(j)
            first, end, nested = found[-1] if found else (0, 0, False)
            overlap = int(np.count_nonzero(taken[left]))
            if found and overlap == 0 and not nested:
                found[-1] = first, j + 1, False
            elif found and overlap == len(left) and (nested or end - first == 1):
                found[-1] = first, j + 1, True
                taken[:] = False
            else:
                found.append((j, j + 1, False))
                taken[:] = False
            taken[left] = True
        return tuple(found)


@runtime_checkable
class Splitter(Protocol):
    """Any scikit-learn splitter."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield (train, test) row numbers.

        Parameters
        ----------
        X : (n, p) array
        y : (n,) array, optional
        groups : (n,) array, optional
        """
        ...


AnyFolds = FoldPlan | str | int | Splitter | Iterable[Any]


def canonical(spec: str) -> str:
    """Return a spec whose word is in small letters; what follows its colon is as it was.

    Examples
    --------
    >>> canonical(" LOO "), canonical("Groups:Patient")
    ('loo', 'groups:Patient')
    """
    kind, colon, value = str(spec).strip().partition(":")
    return f"{kind.strip().lower()}{colon}{value}"


def fold_columns(spec: str) -> tuple[str, ...]:
    """Return the columns of the data that a spec needs beside features and target.

    Examples
    --------
    >>> fold_columns("groups:patient"), fold_columns("10")
    (('patient',), ())
    """
    kind, _, value = canonical(spec).partition(":")
    return (value,) if kind in ("groups", "column") and value else ()


def make_folds(spec: str, dataset: Dataset, seed: int = 0) -> FoldPlan:
    """Build the folds a spec describes.

    Parameters
    ----------
    spec : str
        `K`: shuffled, sizes differ by at most one. `loo`: every row a fold. `blocks:B`: floor(n / B) blocks of B rows
        after a shuffle, the rows left over dealt out one to a block. `holdout:F`: one scored fold of the share F of
        the rows, rounded. `groups:COLUMN`: leave one group out. `column:COLUMN`, `file:F`: a fold id per row.
    dataset : Dataset
        Holds the columns of `fold_columns(spec)` in `aux`.
    seed : int
        Seed of the shuffle: the order of n raw draws of PCG64.

    Raises
    ------
    BadInput
        If the spec is unknown or out of range, there are fewer rows than folds, a single fold (other than holdout), an
        empty fold, or a training set below two rows.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0]] * 7, [0.0] * 7)
    >>> make_folds("3", data).sizes.tolist()
    [3, 2, 2]
    >>> make_folds("blocks:3", data).sizes.tolist()
    [4, 3]
    """
    text, n = canonical(spec), dataset.n
    kind, colon, value = text.partition(":")
    if seed < 0:
        raise BadInput(f"seed {seed} is negative: use 0 or a positive whole number")
    if not colon:
        if kind == "loo":
            return _plan(np.arange(n, dtype=np.int64), text, None)
        return _plan(equal_folds(kind, n, seed), text, seed)
    if kind == "blocks":
        return _plan(blocks(value, n, seed), text, seed)
    if kind == "holdout":
        return _plan(holdout(value, n, seed), text, seed, single=True)
    if kind in ("groups", "column"):
        if value not in dataset.aux:
            raise BadInput(f"folds {text!r} need the column {value!r}, which the data does not hold: check its name")
        make = group_labels if kind == "groups" else fold_labels
        return _plan(make(dataset.aux[value], f"column {value!r}"), text, None)
    if kind == "file" and value:
        return _plan(fold_labels(read_fold_file(Path(value), n), f"fold file {value!r}"), text, None)
    raise BadInput(f"folds {text!r} are unknown{did_you_mean(kind, KINDS)}: use {SPECS}")


def folds_from_labels(labels: ArrayLike, spec: str = "labels") -> FoldPlan:
    """Build the folds from a label per row: 0..k-1, or -1 for rows never held out.

    Raises
    ------
    BadInput
        As :func:`make_folds`; a single fold is accepted where `spec` starts with `holdout:`.

    Examples
    --------
    >>> folds_from_labels([0, 1, 2, 0]).sizes.tolist()
    [2, 1, 1]
    """
    given = np.asarray(labels)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise BadInput("fold labels must be one whole number per row: 0..k-1, or -1 for rows never held out")
    return _plan(given.astype(np.int64), spec, None, single=spec.startswith("holdout:"))


def folds_from_splitter(
    splitter: Splitter | Iterable[tuple[Any, Any]], dataset: Dataset, groups: ArrayLike | None = None
) -> FoldPlan:
    """Build the folds from a scikit-learn splitter or from pairs (train, test).

    Parameters
    ----------
    splitter : object with `split(X, y, groups)`, or iterable of (train, test)
    dataset : Dataset
    groups : (n,) array_like, optional

    Raises
    ------
    BadInput
        If a row is held out twice, or a training set is not exactly the rows its fold does not hold out: the folds
        share their work, which needs both.

    Examples
    --------
    >>> from sklearn.model_selection import KFold
    >>> data = Dataset.from_arrays([[0.0]] * 5, [0.0] * 5)
    >>> folds_from_splitter(KFold(2), data).labels.tolist()
    [0, 0, 0, 1, 1]
    """
    if hasattr(splitter, "split"):
        name = type(splitter).__name__
        try:
            pairs = list(splitter.split(dataset.X, dataset.y, groups))
        except ValueError as error:
            raise BadInput(f"splitter {name} cannot split the data: {error}".splitlines()[0]) from error
    else:
        name, pairs = "pairs", list(splitter)
    labels = np.full(dataset.n, -1, dtype=np.int64)
    for j, (train, test) in enumerate(pairs):
        held = np.asarray(test, dtype=np.int64)
        if held.size and not 0 <= held.min() <= held.max() < dataset.n:
            raise BadInput(f"splitter {name} gives fold {j} row numbers outside 0..{dataset.n - 1}: check its rows")
        rest = np.ones(dataset.n, dtype=bool)
        rest[held] = False
        if held.size == 0:
            raise BadInput(f"splitter {name} gives fold {j} no row: every fold must hold out at least one")
        if np.any(labels[held] >= 0) or int(np.sum(~rest)) != held.size:
            raise BadInput(f"splitter {name} holds a row out twice (fold {j}): use one that holds each out once")
        if not np.array_equal(np.sort(np.asarray(train, dtype=np.int64)), np.flatnonzero(rest)):
            raise BadInput(f"splitter {name} leaves rows out of both parts of fold {j}: train on all rows not held out")
        labels[held] = j
    return _plan(labels, f"splitter:{name}", None)


def folds_of(given: AnyFolds, dataset: Dataset, seed: int = 0, groups: ArrayLike | None = None) -> FoldPlan:
    """Return the folds that a plan, a spec, a splitter, labels or pairs of row numbers stand for.

    Parameters
    ----------
    given : FoldPlan, str, int, splitter, (n,) int array, or iterable of (train, test)
        A text or a number as for :func:`make_folds`; a splitter or pairs as for :func:`folds_from_splitter`; labels as
        for :func:`folds_from_labels`.
    dataset : Dataset
    seed : int
        Of the shuffle, where `given` is a text or a number.
    groups : (n,) array_like, optional
        For a splitter that needs them.

    Raises
    ------
    BadInput
        See the functions above; also for groups that nothing asks for.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0]] * 4, [0.0] * 4)
    >>> folds_of("loo", data), folds_of(2, data), folds_of([0, 1, 1, 0], data)
    (FoldPlan('loo', k=4, n=4), FoldPlan('2', k=2, n=4), FoldPlan('labels', k=2, n=4))
    """
    if isinstance(given, Splitter) and not isinstance(given, str):
        return folds_from_splitter(given, dataset, groups)
    if groups is not None:
        raise BadInput("groups go with a splitter that uses them: GroupKFold, for one")
    if isinstance(given, FoldPlan):
        return given
    if isinstance(given, str | Integral):
        return make_folds(str(given), dataset, seed)
    if not isinstance(given, Iterable):
        raise BadInput(f"folds {given!r}: give a number, a text, labels, a splitter or pairs (train, test)")
    listed: Any = given if isinstance(given, np.ndarray) else list(given)
    if len(listed) == 0 or np.isscalar(listed[0]):
        if len(listed) != dataset.n:
            raise BadInput(f"folds: {len(listed)} labels for {dataset.n} rows: give one label per row")
        return folds_from_labels(listed)
    return folds_from_splitter(listed, dataset)


def _plan(labels: IntArray, spec: str, seed: int | None, single: bool = False) -> FoldPlan:
    n = labels.shape[0]
    k = int(labels.max(initial=-1)) + 1
    if k == 0 or (n and int(labels.min()) < -1):
        raise BadInput(f"folds {spec!r}: labels must be 0..k-1, or -1 for rows never held out, with at least one fold")
    if k > n:
        raise BadInput(f"folds {spec!r} need {k} folds but the data has {n} rows: ask for fewer folds")
    if k == 1 and not single:
        raise BadInput(f"folds {spec!r} make a single fold: ask for at least two, or holdout:F for one scored fold")
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    if not sizes.all():
        raise BadInput(f"folds {spec!r}: fold {int(np.argmin(sizes))} is empty: every fold must hold out a row")
    if n - int(sizes.max()) < 2:
        raise BadInput(
            f"folds {spec!r} leave fold {int(np.argmax(sizes))} only {n - int(sizes.max())} training rows: at least "
            "two are needed"
        )
    order = np.argsort(np.where(labels < 0, k, labels), kind="stable").astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    for array in (order, starts):
        array.setflags(write=False)
    return FoldPlan(spec, seed, n, k, order, starts)
