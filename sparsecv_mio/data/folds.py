"""`FoldPlan`: which fold holds each row out. Built once, digested, passed down; nothing else splits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.dealing import SPECS, blocks, equal_folds, holdout
from sparsecv_mio.data.ids import fold_labels, group_labels, read_fold_file
from sparsecv_mio.errors import BadInput, did_you_mean

KINDS = ("loo", "blocks", "holdout", "groups", "column", "file")


@dataclass(frozen=True, eq=False, repr=False)
class FoldPlan:
    """The folds of a cross-validation; the arrays are read-only.

    Attributes
    ----------
    spec : str
        What the user asked for.
    seed : int or None
        Seed of the shuffle, None where nothing is shuffled.
    labels : (n,) int array
        Fold that holds each row out, -1 for rows that are never held out.
    k : int
        Number of scored folds.
    order : (n,) int array
        Rows sorted by fold, stable; rows never held out come last.
    starts : (k + 1,) int array
        Fold j is `order[starts[j]:starts[j + 1]]`.

    Examples
    --------
    >>> plan = folds_from_labels([1, 0, 1, 0, -1])
    >>> plan.k, plan.test_rows(1).tolist(), plan.train_rows(1).tolist()
    (2, [0, 2], [1, 3, 4])
    """

    spec: str
    seed: int | None
    labels: IntArray
    k: int
    order: IntArray
    starts: IntArray

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.labels.shape[0])

    @property
    def sizes(self) -> IntArray:
        """(k,) numbers of held-out rows."""
        return np.diff(self.starts)

    @property
    def least_training(self) -> int:
        """Rows of the smallest training set."""
        return self.n - int(self.sizes.max())

    def __repr__(self) -> str:
        return f"FoldPlan({self.spec!r}, k={self.k}, n={self.n})"

    @cached_property
    def digest(self) -> str:
        """`"sha256:<hex>"` of the labels as little-endian int64."""
        return f"sha256:{hashlib.sha256(self.labels.astype('<i8', copy=False).tobytes()).hexdigest()}"

    def test_rows(self, j: int) -> IntArray:
        """Return the rows fold j holds out, ascending."""
        return self.order[self.starts[j] : self.starts[j + 1]]

    def train_rows(self, j: int) -> IntArray:
        """Return all other rows, ascending."""
        return np.flatnonzero(self.labels != j).astype(np.int64)


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
    labels = labels.copy()
    for array in (labels, order, starts):
        array.setflags(write=False)
    return FoldPlan(spec, seed, labels, k, order, starts)
