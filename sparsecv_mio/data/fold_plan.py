"""The class `FoldPlan`: the rows on which each fold trains and the rows that it scores, from labels or row indices."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import CHUNK_ELEMENTS, BoolArray, IntArray, is_missing_cell
from sparsecv_mio.digits import several
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_readable

FOLD_FILE_BYTES, MOST_BYTES_A_ROW = 1 << 20, 1 << 12  # size limits of a fold file
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?")


def as_ids(values: NDArray[Any], what: str, places: IntArray | None = None) -> NDArray[Any]:
    """Return ids as int64 where all are whole numbers, else as floats or text.

    Text that spells whole numbers counts as numbers, so a CSV and a Parquet file give the same folds.

    Raises
    ------
    BadInput
        If an id is missing; `what` names the column or file, and `places` the rows if rows were left out.

    Examples
    --------
    >>> as_ids(np.array(["10", " 2"]), "column 'g'").tolist()
    [10, 2]
    """
    if values.dtype.kind in "biu":
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        _check_ids(np.isfinite(values), what, places)
        whole = np.all((values == np.rint(values)) & (np.abs(values) < 2.0**53))
        return values.astype(np.int64) if whole else values
    texts = ["" if is_missing_cell(value) else str(value).strip() for value in values.tolist()]
    _check_ids(np.array([text != "" for text in texts], dtype=bool), what, places)
    if all(WHOLE_NUMBER.fullmatch(text) for text in texts):
        return np.array([int(text.partition(".")[0]) for text in texts], dtype=np.int64)
    return np.array(texts)


def _check_ids(are_present: BoolArray, what: str, places: IntArray | None) -> None:
    """Raise `BadInput` that names the first row without an id, by its position in the input if it is known."""
    missing = np.flatnonzero(~are_present)
    if missing.size:
        row = missing[0] if places is None else places[missing[0]]
        raise BadInput(f"{what} has no id in row {row + 1}; give every row an id, or remove the row")


def group_labels(values: NDArray[Any], what: str, places: IntArray | None = None) -> IntArray:
    """Return 0..k-1, one label per distinct id in sorted order."""
    ids = as_ids(values, what, places)
    return np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)


def fold_labels(values: NDArray[Any], what: str, places: IntArray | None = None) -> IntArray:
    """Return labels of ids that number the folds: -1 (or any whole number below 0) means never held out.

    Integers must be consecutive: a missing number would be an empty fold. Text labels are used unchanged.

    Examples
    --------
    >>> fold_labels(np.array([3, 1, 2, -1]), "column 'f'").tolist()
    [2, 0, 1, -1]
    """
    ids = as_ids(values, what, places)
    if ids.dtype.kind != "i":
        return group_labels(ids, what)
    distinct = np.unique(ids[ids >= 0])
    gaps = np.flatnonzero(np.diff(distinct) > 1)
    if gaps.size:
        lost = int(distinct[gaps[0]]) + 1
        raise BadInput(
            f"{what} has no row with fold id {lost} although ids run from {distinct[0]} to {distinct[-1]}; number "
            "the folds without gaps, or use groups:COLUMN for ids that are names"
        )
    return renumber_folds(ids)


def renumber_folds(labels: IntArray) -> IntArray:
    """Return labels of the same folds without gaps in their numbers; -1 for any label below 0.

    Examples
    --------
    >>> renumber_folds(np.array([4, -2, 1, 4])).tolist()
    [1, -1, 0, 1]
    """
    return np.where(labels >= 0, np.searchsorted(np.unique(labels[labels >= 0]), labels), -1).astype(np.int64)


def read_lines(path: Path, n: int, kind: str, item: str) -> list[list[str]]:
    """Return the cells of a CSV file with one line for each row of the data, and an optional header line.

    Parameters
    ----------
    n : int
        Number of rows of the data.
    kind, item : str
        Names of the file and of an entry in messages.

    Returns
    -------
    list of n or, with a header, n + 1 lists of str, all of one length
        Cells of every line.

    Raises
    ------
    BadInput
        If the file cannot be read, has lines of several lengths, or does not hold n lines.
    """
    source = f"{kind} {str(path)!r}"
    lines: list[list[str]] = []
    try:
        if not path.exists():
            raise BadInput(f"{source} does not exist; check the path in folds 'file:PATH'")
        check_readable(path, kind, most=FOLD_FILE_BYTES + MOST_BYTES_A_ROW * n)
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle)
            for row in reader:
                if lines and row and len(row) != len(lines[0]):
                    repeated = f" or, for repeated folds, one {item} per repeat" if kind == "fold file" else ""
                    raise BadInput(
                        f"{source}: line {reader.line_num} has {len(row)} columns, the first line has {len(lines[0])}; "
                        f"give every line one {item}{repeated}"
                    )
                if row:
                    lines.append([cell.strip() for cell in row])
    except BadInput:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise BadInput(f"{source} cannot be read as CSV: {str(error).splitlines()[0]}") from error
    if len(lines) not in (n, n + 1):
        raise BadInput(
            f"{source} has {len(lines)} lines but the data have {n} rows; give one {item} per row, header optional"
        )
    return lines


def read_fold_file(path: Path, n: int) -> NDArray[Any]:
    """Return the fold ids of a CSV file with one column for each repeat; an extra first line is a header.

    Returns
    -------
    (n, R) array of text
        Fold ids.

    Raises
    ------
    BadInput
        If the file cannot be read, has lines of several lengths, or does not hold n lines.
    """
    source = f"fold file {str(path)!r}"
    ids = read_lines(path, n, "fold file", "fold id")
    if len(ids) == n + 1:
        return np.array(ids[1:])
    names = [column for column in np.array(ids).T if n > 1 and as_ids(column, source).dtype.kind != "i"]
    if any(as_ids(column[1:], source).dtype.kind == "i" for column in names):
        raise BadInput(f"{source} has {n - 1} ids below its header but the data have {n} rows; give one id per row")
    return np.array(ids)


WEIGHTED = " weighted"  # suffix of the spec of weighted folds
MOST_ROWS = 100_000_000  # maximum number of rows listed by all folds together: 0.8 GB


class RowLists(NamedTuple):
    """Rows of all folds, one fold after the other: fold j has `rows[starts[j]:starts[j + 1]]`, ascending."""

    rows: IntArray
    starts: IntArray

    def fold_rows(self, j: int) -> IntArray:
        """Return the rows of fold j."""
        return self.rows[self.starts[j] : self.starts[j + 1]]

    def concatenate_folds(self, folds: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows of several folds, one fold after the other, and their number for each fold.

        Examples
        --------
        >>> rows, sizes = RowLists(np.array([4, 5, 0, 2]), np.array([0, 1, 2, 4])).concatenate_folds(np.array([2, 0]))
        >>> rows.tolist(), sizes.tolist()
        ([0, 2, 4], [2, 1])
        """
        sizes = self.starts[folds + 1] - self.starts[folds]
        first = self.starts[folds] - (np.cumsum(sizes) - sizes)
        return self.rows[np.repeat(first, sizes) + np.arange(sizes.sum())], sizes


@dataclass(frozen=True, eq=False, repr=False)
class FoldPlan:
    """The folds of a cross-validation: for each the rows it trains on and the rows it scores. The arrays are read-only.

    Attributes
    ----------
    spec : str
        Specification given by the user.
    seed : int or None
        Seed of the shuffle; None without a shuffle.
    n : int
        Number of rows.
    k : int
        Number of scored folds.
    order : (m,) int array
        Scored rows, fold by fold and ascending within a fold, followed by the rows that are never scored.
    starts : (k + 1,) int array
        Fold j scores `order[starts[j]:starts[j + 1]]`.
    left : RowLists or None
        Rows that each fold does not train on, if some fold scores only a part of them. Otherwise None: every fold
        trains on all rows except those that it scores.
    repeats : int
        Number of times that the rows were split into folds.
    stands_for : (n,) int array, optional
        Row of the data behind each row of an expanded table (:mod:`.rows_of_folds`).
    given_seed : int
        Seed given by the user, also if these folds need none: outer folds are drawn with it.

    Examples
    --------
    >>> plan = plan_of_labels(np.array([1, 0, 1, 0, -1]), "labels")
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
    stands_for: IntArray | None = None
    given_seed: int = 0

    @property
    def sizes(self) -> IntArray:
        """(k,) number of rows that each fold scores."""
        return np.diff(self.starts)

    @property
    def scored(self) -> int:
        """Number of scored rows, counted as often as a fold scores them."""
        return int(self.starts[-1])

    @cached_property
    def all_scored(self) -> IntArray:
        """(scored,) ascending scored rows of all folds, repeated as often as a fold scores them."""
        rows = self.order[: self.scored]
        return rows if np.all(rows[:-1] <= rows[1:]) else np.sort(rows)

    @property
    def left_sizes(self) -> IntArray:
        """(k,) number of rows that each fold does not train on."""
        return self.sizes if self.left is None else np.diff(self.left.starts)

    @property
    def least_training(self) -> int:
        """Number of rows of the smallest training set."""
        return self.n - int(self.left_sizes.max())

    @cached_property
    def scores_all_left_out(self) -> BoolArray:
        """(k,) True for each fold that scores every row that it does not train on."""
        return np.asarray(self.sizes == self.left_sizes)

    @cached_property
    def has_distinct_scored_rows(self) -> bool:
        """True if no row is scored by two folds."""
        return bool(np.all(np.diff(self.all_scored) > 0))

    @cached_property
    def is_partition(self) -> bool:
        """True if no row is scored twice and every fold trains on all rows except those it scores."""
        return self.left is None and self.has_distinct_scored_rows

    @cached_property
    def labels(self) -> IntArray:
        """(n,) index of the fold that scores each row of a partition; -1 for rows that are never scored.

        Raises
        ------
        BadInput
            If the folds are not a partition.
        """
        self.check_partition("labels")
        return self.scoring_folds

    @cached_property
    def scoring_folds(self) -> IntArray:
        """(n,) index of the last fold that scores each row; -1 for rows that are never scored."""
        labels = np.full(self.n, -1, dtype=np.int64)
        for lo in range(0, self.k, CHUNK_ELEMENTS):
            starts = self.starts[lo : lo + CHUNK_ELEMENTS + 1]
            folds = np.arange(lo, lo + len(starts) - 1)
            labels[self.order[starts[0] : starts[-1]]] = np.repeat(folds, np.diff(starts))
        labels.setflags(write=False)
        return labels

    def check_partition(self, who: str) -> None:
        """Raise `BadInput` unless the folds are a partition; `who` names the feature that needs one."""
        if not self.is_partition:
            raise BadInput(
                f"{who}: requires folds that score each row at most once and train on all other rows, but folds "
                f"{self.spec!r} do not; give K folds, for example 10"
            )

    @property
    def has_standard_error(self) -> bool:
        """True if more than one fold is needed to score every row once, so a standard error exists."""
        return self.k > self.times_scored * (1.0 + 1e-9)

    @cached_property
    def times_scored(self) -> float:
        """Average number of times that a scored row is scored: 1 for a partition."""
        distinct = len(self.distinct_scored)
        return self.scored / distinct if distinct else 1.0

    @property
    def distinct_scored(self) -> IntArray:
        """Ascending scored rows without repetition; among copies of a row of the data, the first."""
        rows = np.unique(self.all_scored)
        if self.stands_for is None:
            return rows
        return rows[np.unique(self.stands_for[rows], return_index=True)[1]]

    def __repr__(self) -> str:
        return f"FoldPlan({self.spec!r}, k={self.k}, n={self.n})"

    @cached_property
    def digest(self) -> str:
        """`"sha256:<hex>"` of the folds, with all numbers as little-endian int64.

        For a partition the digest is of the labels. Otherwise it is of n, k, the start of the scored rows of each fold
        and these rows. If folds score only a part of the rows that they hold out, the starts of the held-out rows and
        these rows follow.
        """
        if self.is_partition:
            parts = [self.labels]
        else:
            parts = [np.array([self.n, self.k]), self.starts, self.order[: self.scored], *(self.left or ())]
        digest = hashlib.sha256()
        for array in parts:
            digest.update(np.ascontiguousarray(array, dtype="<i8").data)
        return f"sha256:{digest.hexdigest()}"

    def scored_rows(self, j: int) -> IntArray:
        """Return the rows that fold j scores, ascending."""
        return self.order[self.starts[j] : self.starts[j + 1]]

    def left_out(self, j: int) -> IntArray:
        """Return the rows that fold j does not train on, ascending; they include the rows that it scores."""
        return self.scored_rows(j) if self.left is None else self.left.fold_rows(j)

    def train_rows(self, j: int) -> IntArray:
        """Return the rows that fold j trains on, ascending."""
        train = np.ones(self.n, dtype=bool)
        train[self.left_out(j)] = False
        return np.flatnonzero(train).astype(np.int64, copy=False)

    def count_left_out(self, marked: BoolArray) -> IntArray:
        """Return (k,) the number of marked rows that each fold does not train on; O(n + held-out rows).

        Parameters
        ----------
        marked : (n,) bool array
            Mask of rows.

        Examples
        --------
        >>> plan = plan_of_labels(np.array([1, 0, 1, 0, -1]), "labels")
        >>> plan.count_left_out(np.array([True, False, True, True, True])).tolist()
        [1, 2]
        """
        rows, starts = self.left or (self.order, self.starts)
        total = np.concatenate(([0], np.cumsum(marked[rows])))
        return np.asarray(total[starts[1:]] - total[starts[:-1]])

    def with_all_rows(self) -> FoldPlan:
        """Return the folds with an additional last fold that trains on all rows and scores none.

        Examples
        --------
        >>> both = plan_of_labels(np.array([1, 0, 1, 0, -1]), "labels").with_all_rows()
        >>> both.k, both.scored_rows(2).tolist(), both.train_rows(2).tolist()
        (3, [], [0, 1, 2, 3, 4])
        """
        left_out = self.left and RowLists(self.left.rows, np.append(self.left.starts, self.left.starts[-1]))
        return replace(self, k=self.k + 1, starts=np.append(self.starts, self.starts[-1]), left=left_out)

    @cached_property
    def pieces(self) -> tuple[tuple[int, int, bool], ...]:
        """Runs of consecutive folds that can share their sums over rows, as `(first, end, nested)`.

        In a run that is not nested, no two folds hold out the same row. In a nested run, every fold trains on all
        training rows of the fold before it, and perhaps on more.
        """
        if self.is_partition:
            return ((0, self.k, False),)
        runs: list[tuple[int, int, bool]] = []
        taken = np.zeros(self.n, dtype=bool)  # rows held out by the run; in a nested run, by its last fold
        for j in range(self.k):
            rows = self.left_out(j)
            first, end, nested = runs[-1] if runs else (0, 0, False)
            overlap = int(np.count_nonzero(taken[rows]))
            if runs and overlap == 0 and not nested:
                runs[-1] = first, j + 1, False
            elif runs and overlap == len(rows) and (nested or end - first == 1):
                runs[-1] = first, j + 1, True
                taken[:] = False
            else:
                runs.append((j, j + 1, False))
                taken[:] = False
            taken[rows] = True
        return tuple(runs)


def plan_of_labels(labels: IntArray, spec: str, seed: int | None = None, single: bool = False) -> FoldPlan:
    """Return the plan in which the label of each row is the fold that scores it.

    Parameters
    ----------
    labels : (n,) int array
        Labels 0..k-1, or -1 for rows that are never held out.
    single : bool
        True if a single fold is allowed.

    Raises
    ------
    BadInput
        If a label is invalid, a fold is empty, there is a single fold, or a training set has fewer than two rows.
    """
    n = labels.shape[0]
    k = int(labels.max(initial=-1)) + 1
    if k == 0 or (n and int(labels.min()) < -1):
        raise BadInput(f"folds {spec!r}: labels must be 0..k-1, or -1 for rows never held out, with at least one fold")
    if k > n:
        raise BadInput(f"folds {spec!r} need {k} folds but the data have {n} rows; give fewer folds")
    if k == 1 and not single:
        raise BadInput(f"folds {spec!r} make a single fold; give at least two, or holdout:F to hold out rows once")
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    if not sizes.all():
        raise BadInput(f"folds {spec!r}: no row has the label {int(np.argmin(sizes))}; every fold must hold out a row")
    order, starts = np.argsort(np.where(labels < 0, k, labels), kind="stable").astype(np.int64), _starts(sizes)
    if np.array_equal(order, starts[:n]):  # every row is a fold, in order: both arrays can share their numbers
        order = starts[:n]
    return _check_plan(FoldPlan(spec, seed, n, k, order, starts))


def repeated_plan(repeats: Sequence[FoldPlan]) -> FoldPlan:
    """Return one plan with the folds of several plans of the same rows; spec and seed are those of the first.

    Examples
    --------
    >>> one, other = (plan_of_labels(np.array(x), "2x2") for x in ([0, 0, 1, 1], [0, 1, 0, 1]))
    >>> both = repeated_plan([one, other])
    >>> both.k, both.repeats, both.scored_rows(2).tolist(), both.is_partition
    (4, 2, [0, 2], False)
    """
    first = repeats[0]
    if len(repeats) == 1:
        return first
    rows = RowLists(
        np.concatenate([plan.order[: plan.scored] for plan in repeats]),
        _starts(np.concatenate([plan.sizes for plan in repeats])),
    )
    return plan_of_rows(rows, None, first.n, first.spec, first.seed, len(repeats))


def plan_of_rows(
    scored: RowLists, left: RowLists | None, n: int, spec: str, seed: int | None = None, repeats: int = 1
) -> FoldPlan:
    """Return the plan with the given scored and held-out rows of each fold.

    Parameters
    ----------
    scored, left : RowLists
        Ascending rows that each fold scores, and rows that it does not train on, which include them; None if both are
        the same.
    n : int
        Number of rows of the data.

    Raises
    ------
    BadInput
        If a training set has fewer than two rows, or all folds together list more than `MOST_ROWS` rows.
    """
    left_out = None if left is not None and np.array_equal(left.starts, scored.starts) else left
    listed = len(scored.rows) + (0 if left_out is None else len(left_out.rows))
    if listed > MOST_ROWS:
        raise BadInput(f"folds {spec!r} contain {listed:.1e} rows in all, more than {MOST_ROWS:.0e}; give fewer folds")
    never = np.ones(n, dtype=bool)
    never[scored.rows] = False
    order = np.concatenate([scored.rows, np.flatnonzero(never)]).astype(np.int64, copy=False)
    return _check_plan(FoldPlan(spec, seed, n, len(scored.starts) - 1, order, scored.starts, left_out, repeats))


def repeated_folds(folds: FoldPlan, counts: IntArray) -> FoldPlan:
    """Return the folds of data in which each row is repeated by its count; folds without rows are dropped.

    Examples
    --------
    >>> repeated_folds(plan_of_labels(np.array([0, 1, 2, 1]), "labels"), np.array([2, 0, 1, 3])).labels.tolist()
    [0, 0, 2, 1, 1, 1]
    """
    if folds.is_partition:
        labels = renumber_folds(np.repeat(folds.labels, counts))
        plan = plan_of_labels(labels, folds.spec, folds.seed, single=folds.k == 1)
        return replace(plan, given_seed=folds.given_seed)
    first = np.cumsum(counts) - counts  # start of the copies of each row

    def copies(rows: IntArray) -> IntArray:
        many = counts[rows]
        return np.repeat(first[rows] - (np.cumsum(many) - many), many) + np.arange(many.sum())

    scoring = [j for j in range(folds.k) if counts[folds.scored_rows(j)].any()]
    if not scoring:
        raise BadInput(f"folds {folds.spec!r} score only rows of weight 0; give some scored rows a positive weight")
    scored, left_out = (row_lists([copies(rows(j)) for j in scoring]) for rows in (folds.scored_rows, folds.left_out))
    plan = plan_of_rows(scored, left_out, int(counts.sum()), folds.spec, folds.seed, folds.repeats)
    return replace(plan, given_seed=folds.given_seed)


def row_lists(rows: Sequence[IntArray]) -> RowLists:
    """Return the rows of every fold as one array; each must be ascending."""
    return RowLists(np.concatenate(rows).astype(np.int64, copy=False), _starts(np.array([len(some) for some in rows])))


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _check_plan(plan: FoldPlan) -> FoldPlan:
    if plan.least_training < 2:
        raise BadInput(
            f"folds {plan.spec!r}: fold {int(np.argmax(plan.left_sizes)) + 1} has only "
            f"{several(plan.least_training, 'training row')}; give every fold at least two"
        )
    for array in (plan.order, plan.starts, *(plan.left or ())):
        array.setflags(write=False)
    return plan
