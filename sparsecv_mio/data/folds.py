"""Functions that construct folds from a specification such as `10`, from labels or from a splitter.

Nested cross-validation has outer folds and, within each outer training set, inner folds. All rows of a group are in one
outer fold. If folds are given by labels, all rows with the same label are in one outer fold. If the inner folds are in
time order or stratified, so are the outer folds. Otherwise the outer folds are random.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data import fold_plan
from sparsecv_mio.data.dataset import Dataset, require_dataset
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.model_space import MAX_COUNT, describe_repeats, finite_number

OF_GROUPS = " of whole groups"  # part of the spec of outer folds whose groups stay together
SPECS = (
    "K, RxK (R repeats), loo, stratified:K, forward:K or forward:K:GAP, blocks:B, holdout:F, groups:COLUMN or "
    "groups:COLUMN:K, column:COLUMN or file:F"
)


def _draws(count: int, seed: int, repeat: int) -> NDArray[np.uint64]:
    """Return raw random numbers; repeat r uses the r-th part of the stream."""
    # numpy guarantees the raw stream of PCG64 across versions, but not the result of Generator.permutation. A record
    # must be able to rebuild its folds years later.
    bits = np.random.PCG64(seed)
    if repeat:
        bits.advance(repeat * count)
    return np.asarray(bits.random_raw(count))


def _dealt_labels(labels: IntArray, seed: int, repeat: int) -> IntArray:
    """Assign labels to rows in a shuffled order."""
    order = np.argsort(_draws(len(labels), seed, repeat), kind="stable")
    dealt = np.empty(len(labels), dtype=np.int64)
    dealt[order] = labels
    return dealt


def whole_number(text: str, spec: str) -> int:
    """Return the integer in a part of a spec, or raise `BadInput`."""
    if not (text.isascii() and text.isdigit()):
        near = did_you_mean(text, ("loo",)) if ":" not in spec else ""
        raise BadInput(f"folds {spec!r} are unknown{near}; use {SPECS}")
    return int(text) if len(text) <= 18 else 10**18  # larger than any number of rows


def equal_folds(text: str, n: int, seed: int, repeat: int = 0) -> IntArray:
    """Return labels of `K` shuffled folds whose sizes differ by at most 1.

    Parameters
    ----------
    text : str
        Text of `K`.
    n : int
        Number of rows.

    Raises
    ------
    BadInput
        If the number does not define folds of n rows.
    """
    k = _fold_count(text, text, n)
    return _dealt_labels(np.repeat(np.arange(k), [n // k + (j < n % k) for j in range(k)]), seed, repeat)


def _fold_count(text: str, spec: str, n: int | None = None) -> int:
    """Return the number of folds in a part of a spec; n rows are needed by folds that are drawn at random."""
    k = whole_number(text, spec)
    if k < 2:
        advice = "" if n is None else ", or holdout:F to hold out rows once"
        raise BadInput(f"folds {spec!r} make fewer than two folds; give 2 or more{advice}")
    if n is not None and k > n:
        raise BadInput(f"folds {spec!r} need {k} rows but the data have {n}; give fewer folds")
    return k


def stratified_folds(text: str, y: FloatArray, seed: int, repeat: int = 0) -> IntArray:
    """Return labels of `stratified:K`: K folds with the same share of every quantile of the target.

    The rows are sorted by the target, with ties in random order. Each run of K sorted rows is assigned to the K folds
    in a random order.

    Parameters
    ----------
    text : str
        Text of `K`.
    y : (n,) array
        Target.

    Raises
    ------
    BadInput
        If the number does not define folds of n rows.

    Examples
    --------
    >>> labels = stratified_folds("2", np.array([5.0, 1.0, 4.0, 2.0, 3.0]), 0)
    >>> sorted(labels[[1, 3]].tolist()), sorted(labels[[2, 4]].tolist())
    ([0, 1], [0, 1])
    """
    n = len(y)
    k, draws = _fold_count(text, f"stratified:{text}", n), _draws(2 * n, seed, repeat)
    by_target, place = np.lexsort((draws[:n], y)), np.arange(n)
    labels = np.empty(n, dtype=np.int64)
    labels[by_target[np.lexsort((draws[n:], place // k))]] = place % k
    return labels


def forward(text: str, n: int) -> tuple[fold_plan.RowLists, fold_plan.RowLists]:
    """Return the scored and the held-out rows of the folds of `forward:K`, as scikit-learn's TimeSeriesSplit.

    Parameters
    ----------
    text : str
        Text `K`, or `K:GAP` to exclude also GAP rows between the training rows and the scored rows of each fold.
    n : int
        Number of rows, in time order.

    Raises
    ------
    BadInput
        If the number does not define folds of n rows.

    Examples
    --------
    >>> scored, left = forward("2", 6)
    >>> scored.fold_rows(0).tolist(), left.fold_rows(0).tolist()
    ([2, 3], [2, 3, 4, 5])
    """
    spec, (count, colon, between) = f"forward:{text}", text.partition(":")
    k, gap = _fold_count(count, spec), whole_number(between, spec) if colon else 0
    if k >= n:
        raise BadInput(f"folds {spec!r} need more than {k} rows but the data have {n}; give fewer folds")
    if k * n > fold_plan.MOST_ROWS:
        raise BadInput(
            f"folds {spec!r}: the training rows of all folds of {n} rows are too many to store; give fewer folds"
        )
    size = n // (k + 1)
    begins = range(n - k * size, n, size)
    if gap and begins[0] - gap < 2:
        raise BadInput(
            f"folds {spec!r}: with a gap of {gap}, the first fold has {max(begins[0] - gap, 0)} training rows, because "
            f"only {begins[0]} rows come before its scored rows; give a smaller gap or fewer folds"
        )
    return fold_plan.row_lists([np.arange(at, at + size) for at in begins]), fold_plan.row_lists(
        [np.arange(at - gap, n) for at in begins]
    )


OUTER_GROUPS = re.compile(rf"([0-9]+){OF_GROUPS} \((.+)\)")  # spec of outer folds of a record
GROUPS_IN_FOLDS = re.compile(r"(.+):([0-9]+)")  # text after `groups:` if whole groups are assigned to K folds


def group_folds(count: str, groups: IntArray, spec: str, seed: int) -> IntArray:
    """Return labels of `groups:COLUMN:K`: in a shuffled order, each group joins the fold with the fewest rows.

    Parameters
    ----------
    count : str
        Text of `K`.
    groups : (n,) int array
        The group of each row, 0 and up.
    spec : str
        Whole spec, for messages.
    seed : int
        Seed of the shuffle.

    Raises
    ------
    BadInput
        `K` is below 2, or there are fewer groups than folds.

    Examples
    --------
    >>> group_folds("2", np.array([0, 0, 1, 2, 2, 1]), "groups:g:2", 0).tolist()
    [0, 0, 1, 0, 0, 1]
    """
    k, sizes = _fold_count(count, spec), np.bincount(groups)
    if k > len(sizes):
        raise BadInput(f"folds {spec!r}: {k} folds need {k} groups but the column has {len(sizes)}; give fewer folds")
    rows, fold_of_group = np.zeros(k, dtype=np.int64), np.zeros(len(sizes), dtype=np.int64)
    for group in np.argsort(_draws(len(sizes), seed, 0), kind="stable").tolist():
        fold_of_group[group] = np.argmin(rows)
        rows[fold_of_group[group]] += sizes[group]
    return fold_of_group[groups]


def blocks(text: str, n: int, seed: int, repeat: int = 0) -> IntArray:
    """Return labels of `blocks:B`: floor(n / B) blocks; each remaining row is added to a different block in turn.

    Parameters
    ----------
    text : str
        Text of `B`.
    n : int
        Number of rows.

    Raises
    ------
    BadInput
        If the number does not define folds of n rows.
    """
    spec = f"blocks:{text}"
    size = whole_number(text, spec)
    if size < 1:
        raise BadInput(f"folds {spec!r} have empty blocks; give at least one row per block")
    k = n // size
    if k < 2:
        raise BadInput(
            f"folds {spec!r} divide the {n} rows of the data into fewer than two blocks; give smaller blocks"
        )
    return _dealt_labels(np.concatenate((np.repeat(np.arange(k), size), np.arange(n - k * size) % k)), seed, repeat)


def holdout_labels(text: str, n: int, seed: int, repeat: int = 0) -> IntArray:
    """Return labels of `holdout:F`: 0 for F n rows, rounded and at least one, and -1 for the others.

    Parameters
    ----------
    text : str
        Text of `F`.
    n : int
        Number of rows.

    Raises
    ------
    BadInput
        If the number does not define folds of n rows.
    """
    spec = f"holdout:{text}"
    try:
        share = finite_number(text, spec)
    except BadInput:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise BadInput(f"folds {spec!r}: the share of held-out rows must be between 0 and 1, as in holdout:0.2")
    scored = max(1, int(share * n + 0.5))
    return _dealt_labels(np.repeat([0, -1], [scored, n - scored]), seed, repeat)


KINDS = ("loo", "stratified", "forward", "blocks", "holdout", "groups", "column", "file")
PLAIN_COUNT = re.compile(r"(\d+x)?(\d+)")  # K, or RxK
REPEATED = re.compile(r"([0-9]+)x(.*)")  # `5x10`, `20xholdout:0.2`


@runtime_checkable
class Splitter(Protocol):
    """Any scikit-learn splitter."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield (train, test) row numbers."""
        ...


AnyFolds = fold_plan.FoldPlan | str | int | Splitter | Iterable[Any]


def canonical(spec: str) -> str:
    """Return a spec with its keyword in lower case; the text after the colon is unchanged.

    Examples
    --------
    >>> canonical(" LOO "), canonical("Groups:Patient")
    ('loo', 'groups:Patient')
    """
    kind, colon, value = str(spec).strip().partition(":")
    return f"{kind.strip().lower()}{colon}{value}"


def fold_columns(spec: str) -> tuple[str, ...]:
    """Return the columns that a spec needs in addition to the features and the target.

    Examples
    --------
    >>> fold_columns("groups:patient:10"), fold_columns("3xgroups:patient:10"), fold_columns("10")
    (('patient',), ('patient',), ())
    """
    text = canonical(spec)
    again = REPEATED.fullmatch(text)
    kind, _, value = (again[2] if again else text).partition(":")
    if kind == "groups" and (in_folds := GROUPS_IN_FOLDS.fullmatch(value)):
        value = in_folds[1]
    return (value,) if kind in ("groups", "column") and value else ()


def _folds_from_text(spec: str, dataset: Dataset, seed: int) -> fold_plan.FoldPlan:
    """Return the folds that a text describes; `make_folds` documents it."""
    # the form of the spec in a record; without weights, the end of the name of a column or file
    names_rows = canonical(spec).startswith(("groups:", "column:", "file:"))
    if spec.endswith(fold_plan.WEIGHTED) and (dataset.weights is not None or not names_rows):
        if dataset.weights is None:
            raise BadInput(
                f"folds {spec!r}: these are folds of data with row weights; give a file or frame with the weights, or "
                "Dataset.from_arrays(..., aux={record.data.weights: w})"
            )
        return replace(_folds_from_text(spec.removesuffix(fold_plan.WEIGHTED), dataset, seed), spec=spec)
    text, n = canonical(spec), dataset.n
    if dataset.has_stratified_folds and PLAIN_COUNT.fullmatch(text):
        text = PLAIN_COUNT.sub(r"\1stratified:\2", text)
    plan = _make_fixed_plan(text, dataset, seed)
    if plan is not None:
        return plan
    again = REPEATED.fullmatch(text)
    single = again is not None or text.startswith("holdout:")
    labels = _draw_fold_labels(again[2] if again else text, dataset, seed, _repeats(text, again, n))
    return fold_plan.repeated_plan([fold_plan.plan_of_labels(some, text, seed, single=single) for some in labels])


def _make_fixed_plan(text: str, dataset: Dataset, seed: int) -> fold_plan.FoldPlan | None:
    """Return the plan of a spec that assigns no single rows at random; None for any other spec."""
    (kind, colon, value), n = text.partition(":"), dataset.n
    if kind == "loo" and not colon:
        return fold_plan.plan_of_labels(np.arange(n, dtype=np.int64), text)
    if kind == "forward" and colon:
        return fold_plan.plan_of_rows(*forward(value, n), n, text)
    if kind in ("groups", "column"):
        in_folds = GROUPS_IN_FOLDS.fullmatch(value) if kind == "groups" and value not in dataset.aux else None
        column = in_folds[1] if in_folds else value
        if column not in dataset.aux:
            raise BadInput(f"folds {text!r}: the data have no column {column!r}; check its name")
        if in_folds:
            groups = fold_plan.group_labels(dataset.aux[column], f"column {column!r}", dataset.places)
            return fold_plan.plan_of_labels(group_folds(in_folds[2], groups, text, seed), text, seed)
        make = fold_plan.group_labels if kind == "groups" else fold_plan.fold_labels
        labels = make(dataset.aux[value], f"column {value!r}", dataset.places)
        return fold_plan.plan_of_labels(labels, text, single=bool(np.any(labels < 0)))
    if kind == "file" and value:
        return _plan_of_columns(fold_plan.read_fold_file(Path(value), n), text)
    return None


def fold_name(spec: str, dataset: Dataset, fold: int) -> str:
    """Return the id that the user gave to a fold, or the row of a fold of one row; empty if neither is known.

    Parameters
    ----------
    spec : str
        Specification of the folds.
    dataset : Dataset
        Data of the folds.
    fold : int
        Index of the fold.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0]] * 4, [0.0] * 4, aux={"who": ["a", "b", "b", "c"]})
    >>> fold_name("groups:who", data, 1), fold_name("loo", data, 3), fold_name("2", data, 0)
    ("who 'b'", 'row 4', '')
    """
    dataset = dataset.split_into_cases()[0]
    kind, _, value = canonical(spec.removesuffix(fold_plan.WEIGHTED)).partition(":")
    if kind == "loo":
        return f"row {int(dataset.places[fold]) + 1}"
    if kind in ("groups", "column") and value in dataset.aux:
        ids, column = dataset.aux[value], value
    elif kind == "file" and value and Path(value).is_file():
        try:
            columns = fold_plan.read_fold_file(Path(value), dataset.n)
        except BadInput:  # the file also has lines of rows of weight 0, or was changed
            return ""
        if columns.shape[1] > 1:
            return ""
        ids, column = columns[:, 0], "id"
    else:
        return ""
    make = fold_plan.group_labels if kind == "groups" else fold_plan.fold_labels
    first = int(np.flatnonzero(make(ids, f"column {value!r}") == fold)[0])
    return f"{column} {str(ids[first])!r}"


def _check_seed(seed: object) -> None:
    if not isinstance(seed, Integral):
        raise BadInput(f"seed: {str(seed)[:30]!r} is not a whole number; give a number such as 0")
    if seed < 0:
        raise BadInput(f"seed {seed} is negative; use 0 or a positive whole number")


def _repeats(text: str, again: re.Match[str] | None, n: int) -> int:
    if again and not again[2]:
        raise BadInput(
            f"folds {text!r} do not state what to repeat; for example, {again[1]}x10 repeats 10 folds {again[1]} times"
        )
    count = whole_number(again[1], text) if again else 1
    if not 1 <= count <= MAX_COUNT:
        raise BadInput(f"folds {text!r}: the number of repeats is out of range; give 1 to {MAX_COUNT:,} repeats")
    if count * n > max(fold_plan.MOST_ROWS, n):
        raise BadInput(
            f"folds {text!r}: {count} repeats of {n} rows have more than {fold_plan.MOST_ROWS:.0e} rows; give fewer "
            "repeats"
        )
    return count


def _draw_fold_labels(text: str, dataset: Dataset, seed: int, repeats: int) -> Iterator[IntArray]:
    """Yield the labels of every repeat of a spec that assigns rows at random."""
    kind, colon, value = text.partition(":")
    for repeat in range(repeats):
        if not colon and kind != "loo":
            yield equal_folds(kind, dataset.n, seed, repeat)
        elif kind == "stratified":
            yield stratified_folds(value, dataset.stratifying_target, seed, repeat)
        elif kind == "blocks":
            yield blocks(value, dataset.n, seed, repeat)
        elif kind == "holdout":
            yield holdout_labels(value, dataset.n, seed, repeat)
        elif kind in KINDS and repeats > 1:
            raise BadInput(
                f"folds: {kind!r} cannot be repeated; repeat K, stratified:K, blocks:B or holdout:F, or leave out the "
                "number of repeats"
            )
        else:
            raise BadInput(f"folds {text!r} are unknown{did_you_mean(kind, KINDS)}; use {SPECS}")


def _plan_of_columns(columns: NDArray[Any], spec: str) -> fold_plan.FoldPlan:
    """Return the plan of (n, R) fold ids, with one column for each repeat."""
    repeats = columns.shape[1]
    sources = [
        spec.replace("file:", "fold file ") + (f", column {r + 1}" if repeats > 1 else "") for r in range(repeats)
    ]
    labels = [fold_plan.fold_labels(ids, name) for ids, name in zip(columns.T, sources, strict=True)]
    return fold_plan.repeated_plan([fold_plan.plan_of_labels(some, spec, single=repeats > 1) for some in labels])


def folds_from_labels(labels: ArrayLike, spec: str = "labels") -> fold_plan.FoldPlan:
    """Return the folds of a label for each row, or of one column of labels for each repeat.

    Labels are 0..k-1, -1 for rows that are never held out, or texts, one text for each fold.

    Raises
    ------
    BadInput
        As for :func:`make_folds`; a single fold is accepted if `spec` starts with `holdout:`.

    Examples
    --------
    >>> folds_from_labels([0, 1, 2, 0]).sizes.tolist()
    [2, 1, 1]
    """
    label_array = np.asarray(labels)
    if label_array.dtype.kind == "M":
        label_array = label_array.astype(str)  # a date is a text label
    if label_array.ndim == 1 and label_array.size and label_array.dtype.kind in "OUS":
        label_array = fold_plan.fold_labels(label_array, "folds: the list of labels")
    if label_array.ndim not in (1, 2) or label_array.size == 0 or label_array.dtype.kind not in "iu":
        raise BadInput(
            "folds: labels must be one whole number per row (0..k-1, or -1 for rows never held out) or one text per row"
        )
    columns = label_array.reshape(len(label_array), -1).T.astype(np.int64)
    single = len(columns) > 1 or spec.startswith("holdout:")
    return fold_plan.repeated_plan([fold_plan.plan_of_labels(labels, spec, single=single) for labels in columns])


def folds_from_splitter(
    splitter: Splitter | Iterable[tuple[Any, Any]], dataset: Dataset, groups: ArrayLike | None = None
) -> fold_plan.FoldPlan:
    """Return the folds of a scikit-learn splitter or of pairs (train, test).

    Parameters
    ----------
    splitter : object with `split(X, y, groups)`, or iterable of (train, test)
        Splitter, or pairs of row positions.
    dataset : Dataset
        Data set.
    groups : (n,) array_like, optional
        Groups of the rows.

    Raises
    ------
    BadInput
        If a fold scores no row, scores a row that it trains on, or names a row twice or a missing row; if a training
        set has fewer than two rows.

    Examples
    --------
    >>> from sklearn.model_selection import KFold, TimeSeriesSplit
    >>> data = Dataset.from_arrays([[0.0]] * 5, [0.0] * 5)
    >>> folds_from_splitter(KFold(2), data).labels.tolist()
    [0, 0, 0, 1, 1]
    >>> folds_from_splitter(TimeSeriesSplit(2), data).is_partition
    False
    """
    if hasattr(splitter, "split"):
        name = type(splitter).__name__
        pairs: Iterable[tuple[Any, Any]] = splitter.split(dataset.X, dataset.y, groups)
    else:
        name, pairs = "pairs", splitter
    scored, left_out = [], []
    try:
        for j, (train, test) in enumerate(pairs):
            scores, out = _rows_of_pair(train, test, dataset.n, f"splitter {name}, fold {j}")
            scored.append(scores)
            left_out.append(scores if len(out) == len(scores) else out)
    except BadInput:
        raise
    except (ValueError, TypeError) as error:
        if groups is None and "groups" in str(error):
            raise BadInput(
                f'folds: {name} needs the group of each row; give "groups:COLUMN" or "groups:COLUMN:K" (estimators: '
                f"groups=... of `fit`; or list({name}(...).split(X, y, groups)))"
            ) from error
        fault = f"splitter {name} cannot split the data: {error}".splitlines()[0].rstrip(".")
        raise BadInput(f"{fault}; give other folds") from error
    if not scored:
        raise BadInput(f"splitter {name} makes no fold; give at least one pair (training rows, scored rows)")
    whole = all(rows is unseen for rows, unseen in zip(scored, left_out, strict=True))
    return fold_plan.plan_of_rows(
        fold_plan.row_lists(scored), None if whole else fold_plan.row_lists(left_out), dataset.n, f"splitter:{name}"
    )


def _rows_of_pair(train: Any, test: Any, n: int, who: str) -> tuple[IntArray, IntArray]:
    """Return the rows that a fold scores and the rows that it does not train on, ascending."""
    trained, scored = _mask(train, n, f"{who}: training rows"), _mask(test, n, f"{who}: scored rows")
    if not scored.any():
        raise BadInput(f"{who} scores no row; give every fold at least one")
    shared = np.flatnonzero(trained & scored)
    if shared.size:
        raise BadInput(
            f"{who} scores position {shared[0]} (counted from 0), which is also a training row; remove it from one "
            "of the two"
        )
    return np.flatnonzero(scored), np.flatnonzero(~trained)


def _mask(rows: Any, n: int, who: str) -> BoolArray:
    """Return an (n,) mask of rows that are given by their positions or by a mask."""
    numbers = np.asarray(rows)
    if numbers.dtype == bool and numbers.shape == (n,):
        return numbers
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise BadInput(f"{who} must be row numbers from 0, or one True or False per row")
    numbers = numbers.astype(np.int64)
    if len(wrong := numbers[(numbers < 0) | (numbers >= n)]):
        raise BadInput(f"{who}: position {wrong[0]} is not one of the positions 0 to {n - 1}; correct it")
    mask = np.zeros(n, dtype=bool)
    mask[numbers] = True
    if np.count_nonzero(mask) != numbers.size:
        twice = int(np.flatnonzero(np.bincount(numbers) > 1)[0])
        raise BadInput(f"{who}: position {twice} (counted from 0) is listed twice; list each row once")
    return mask


def make_folds(spec: AnyFolds, dataset: Dataset, seed: int = 0, groups: ArrayLike | None = None) -> fold_plan.FoldPlan:
    """Return the folds that a text, a splitter, labels or pairs describe, as `folds` of `solve`.

    Parameters
    ----------
    spec : str, int, splitter, labels, pairs or FoldPlan
        Specification of the folds.

        A text or a number: `K`: K shuffled folds whose sizes differ by at most one; with a two-class target, that is if
        `dataset.classes` is not None, the same as `stratified:K`. `loo`: every row is a fold. `stratified:K`: like `K`,
        but of every K rows that are neighbours in the order of the target, each fold gets one. `blocks:B`: floor(n / B)
        blocks of B rows after a shuffle; the remaining rows are added one to a block. `holdout:F`: one scored fold with
        the fraction F of the rows, rounded. `RxSPEC`, where SPEC is one of the above except `loo`: R repeats with
        independent shuffles (`5x10`). `forward:K`: K folds of floor(n / (K + 1)) rows at the end of the data; the model
        of each fold is fitted to all rows before the fold. `forward:K:GAP` excludes GAP rows between training and
        scored rows. `groups:COLUMN`: every group is a fold. `groups:COLUMN:K`: K folds of whole groups.
        `column:COLUMN`, `file:F`: a fold id for each row, -1 for rows that are never held out. With such rows a single
        fold is allowed. A file may have one column for each repeat. `SPEC weighted`: the form in which a record of
        weighted rows states its folds; `dataset` must have weights. `K of whole groups (SPEC)`: the form in which a
        record states the outer folds of a nested cross-validation.

        A scikit-learn splitter, or its pairs (training rows, scored rows): see :func:`folds_from_splitter`. Labels,
        one for each row, or an (n, R) array with one column for each repeat: see :func:`folds_from_labels`. A
        `FoldPlan` is returned unchanged.

        If the target has trials, the rows of the specification are cases, and the outcomes of a case are in one fold.
    dataset : Dataset
        Data with the columns of `fold_columns(spec)` in `aux`.
    seed : int
        Seed of the shuffle, which orders the rows by n raw draws of PCG64, and of outer folds of any kind.
    groups : (n,) array_like, optional
        Groups of the rows, for a splitter that needs them.

    Raises
    ------
    BadInput
        If the spec is unknown or out of range. If there are fewer rows than folds, a single fold (other than holdout)
        or an empty fold. If a training set has fewer than two rows, or groups are given but not needed.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0]] * 7, [0.0] * 7)
    >>> make_folds("3", data).sizes.tolist()
    [3, 2, 2]
    >>> make_folds([0, 1, 1, 0, 2, 2, 0], data)
    FoldPlan('labels', k=3, n=7)
    >>> twice = make_folds("2x3", data)
    >>> twice.sizes.tolist(), twice.repeats
    ([3, 2, 2, 3, 2, 2], 2)
    >>> ahead = make_folds("forward:2", data)
    >>> [(ahead.train_rows(j).tolist(), ahead.scored_rows(j).tolist()) for j in range(2)]
    [([0, 1, 2], [3, 4]), ([0, 1, 2, 3, 4], [5, 6])]
    """
    require_dataset(dataset, "make_folds")
    if isinstance(spec, type):
        raise BadInput(f"folds {spec.__name__}: this is a class; give an object, such as {spec.__name__}()")
    _check_seed(seed)
    if isinstance(spec, str) and (outer := OUTER_GROUPS.fullmatch(spec)):
        return outer_folds(int(outer[1]), make_folds(outer[2], dataset, seed), dataset)
    cases, counts = dataset.split_into_cases()
    if isinstance(spec, fold_plan.FoldPlan) and groups is None and (spec.n == dataset.n or spec.n != cases.n):
        return spec
    plan = _make_folds_of_cases(spec, cases, seed, groups)
    if not isinstance(spec, fold_plan.FoldPlan):
        plan = replace(plan, given_seed=seed)
    return plan if cases is dataset else fold_plan.repeated_folds(plan, counts)


def _make_folds_of_cases(spec: AnyFolds, dataset: Dataset, seed: int, groups: ArrayLike | None) -> fold_plan.FoldPlan:
    """Return the folds of data without trials; :func:`make_folds` documents them."""
    if isinstance(spec, Splitter) and not isinstance(spec, str | bytes):
        return folds_from_splitter(spec, dataset, groups)
    if groups is not None:
        raise BadInput("groups: require a splitter that uses them, such as GroupKFold")
    if isinstance(spec, fold_plan.FoldPlan):  # of the cases
        return spec
    if isinstance(spec, str | Integral):
        return _folds_from_text(str(spec), dataset, seed)
    if not isinstance(spec, Iterable):
        raise BadInput(
            f"folds {str(spec)[:60]} are unknown; give a number, a text, labels, a splitter or pairs (train, test)"
        )
    listed: Any = np.asarray(spec) if hasattr(spec, "__array__") else list(spec)
    if len(listed) == 0 and iter(spec) is spec:
        raise BadInput("folds: the generator is exhausted; give a list of its pairs, or the splitter itself")
    if isinstance(listed, np.ndarray) or len(listed) == 0 or _is_label(listed[0]):
        if len(listed) != dataset.n:
            raise BadInput(f"folds: {len(listed)} labels for {dataset.n} rows; give one label per row")
        return folds_from_labels(listed)
    return folds_from_splitter(listed, dataset)


def check_label_order(folds: object, data: object) -> None:
    """Raise `BadInput` if labels are a pandas Series with the index of the data in another order.

    Parameters
    ----------
    folds : object
        Folds as for :func:`make_folds`.
    data : object
        Data as for :func:`~sparsecv_mio.search.api.solve`.
    """
    theirs, ours = getattr(folds, "index", None), getattr(data, "index", None)
    if theirs is None or ours is None or not hasattr(theirs, "equals") or not hasattr(ours, "equals"):
        return
    if theirs.equals(ours):
        return
    if len(theirs) == len(ours) and theirs.is_unique and ours.is_unique and theirs.isin(ours).all():
        raise BadInput(
            "folds: the labels have the same index as the data in another order; give labels.loc[data.index] to match "
            "by index, or labels.to_numpy() if they are in row order"
        )


def is_by_row(folds: AnyFolds, dataset: Dataset) -> bool:
    """Return True if folds are given row by row, with an entry for rows of weight 0 too.

    Parameters
    ----------
    folds : str, int, splitter, labels, pairs or FoldPlan
        Folds as for :func:`make_folds`.
    dataset : Dataset
        All rows, those of weight 0 included.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0]] * 4, [0.0] * 4)
    >>> is_by_row([0, 0, 1, 1], data), is_by_row("2", data)
    (True, False)
    """
    if isinstance(folds, fold_plan.FoldPlan):
        return folds.n in (dataset.n, dataset.split_into_cases()[0].n)
    if isinstance(folds, str):
        return canonical(folds).startswith("file:")
    if type(folds).__name__ == "PredefinedSplit" or isinstance(getattr(folds, "cv", None), list):  # or from `check_cv`
        return True
    return not isinstance(folds, Integral | Splitter)


def _is_label(item: object) -> bool:
    """Return True if the first item of a list is the label of a row, not a pair of lists of rows."""
    return isinstance(item, str | bytes) or not hasattr(item, "__len__")


DEALT = ("blocks", "holdout")  # kinds of random folds in addition to numbers and `loo`
LIKE_INNER = ("forward", "stratified")  # kinds of inner folds whose outer folds are of the same kind


def outer_folds(
    count: int, plan: fold_plan.FoldPlan, dataset: Dataset, option: str = "nested", by_fold: bool = False
) -> fold_plan.FoldPlan:
    """Return the outer folds of a nested cross-validation, drawn with the seed of the plan.

    Parameters
    ----------
    count : int
        Number of outer folds.
    plan : FoldPlan
        Folds by which a model is chosen.
    dataset : Dataset
        Rows of the plan.
    option : str
        Option that requests them, for messages; with `nested` the message gives the number as its value.
    by_fold : bool
        True to keep the folds of `groups:COLUMN:K` together, as older records do, instead of the groups.

    Raises
    ------
    BadInput
        If there are too few rows or groups, or the plan's folds overlap and were stated row by row.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0]] * 6, [0.0] * 6)
    >>> outer_folds(3, make_folds("loo", data), data)
    FoldPlan('3', k=3, n=6)
    >>> outer_folds(2, folds_from_labels([0, 0, 1, 1, 2, 2]), data).labels.tolist()
    [1, 1, 0, 0, 0, 0]
    """
    if not isinstance(count, Integral):
        advice = describe_repeats(str(count), "nested") or "; give a number of outer folds such as 5"
        raise BadInput(f"nested: {str(count)[:30]!r} is not a whole number{advice}")
    if count < 2:
        raise BadInput(f"nested: {count} is out of range; give at least 2 outer folds")
    if count > dataset.n:
        most = f"give at most {dataset.n}" if option == "nested" else f"give at least {count} rows"
        raise BadInput(f"{option}: {count} outer folds are too many for {dataset.n} rows; {most}")
    kind, seed = _kind_of_folds(plan), plan.given_seed if plan.seed is None else plan.seed
    if kind in LIKE_INNER:
        _, colon, gap = plan.spec.removesuffix(fold_plan.WEIGHTED).partition(":")[2].partition(":")
        return make_folds(f"{kind}:{count}{colon}{gap}", dataset, seed)
    if is_dealt(plan):
        return make_folds(str(count), dataset, seed)
    if not plan.is_partition:
        raise BadInput(
            f"{option}: the folds overlap and were given row by row, so outer folds cannot be made from them; give "
            'a specification of the folds, such as folds="10", instead of rows'
        )
    ids = None if by_fold else ids_of_groups(plan, dataset)
    labels = plan.labels if ids is None else fold_plan.group_labels(ids, f"folds {plan.spec!r}")
    together = np.where(labels < 0, plan.k, labels)  # rows that are never held out stay together as well
    groups = int(together.max()) + 1
    if groups <= count:
        most = "; outer folds need at least three groups"
        if groups > 2:
            most = f", so at most {groups - 1} outer folds are possible; give at most {groups - 1}"
        if option != "nested":
            most = (
                f"; the {count} outer folds need at least {count + 1} groups; give more folds, or a weight instead of "
                "nested"
            )
        raise BadInput(f"{option}: the rows form {groups} groups (each stays in one fold){most}")
    outer_plan = folds_from_labels(equal_folds(str(count), groups, seed)[together], f"{count}{OF_GROUPS} ({plan.spec})")
    return replace(outer_plan, seed=seed)


def inner_folds(plan: fold_plan.FoldPlan, rows: IntArray, training: Dataset) -> fold_plan.FoldPlan:
    """Return the folds that choose a model within an outer training set.

    Parameters
    ----------
    plan : FoldPlan
        Folds of all rows.
    rows : int array
        Outer training rows, ascending.
    training : Dataset
        Data of these rows.

    Raises
    ------
    BadInput
        If there are too few rows.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0]] * 3, [0.0] * 3)
    >>> inner_folds(folds_from_labels([0, 0, 1, 1, 2]), np.array([0, 3, 4]), data).labels.tolist()
    [0, 1, 2]
    """
    spec = plan.spec.removesuffix(fold_plan.WEIGHTED)
    if is_dealt(plan) or _kind_of_folds(plan) in LIKE_INNER:
        return replace(make_folds(spec, training, plan.seed or 0), given_seed=plan.given_seed)
    if (ids := ids_of_groups(plan, training)) is not None:
        count = min(plan.k, len(np.unique(fold_plan.as_ids(ids, f"folds {spec!r}"))))
        return make_folds(f"{spec.rpartition(':')[0]}:{count}", training, plan.seed or 0)
    inner = folds_from_labels(fold_plan.renumber_folds(plan.labels[rows]), spec)
    return replace(inner, given_seed=plan.given_seed)


def ids_of_groups(plan: fold_plan.FoldPlan, dataset: Dataset) -> NDArray[Any] | None:
    """Return the ids of the groups of `groups:COLUMN:K`; None for other folds and without the column.

    Parameters
    ----------
    plan : FoldPlan
        Folds.
    dataset : Dataset
        Data of the folds.
    """
    kind, _, value = canonical(plan.spec.removesuffix(fold_plan.WEIGHTED)).partition(":")
    in_folds = GROUPS_IN_FOLDS.fullmatch(value) if kind == "groups" and plan.seed is not None else None
    return None if in_folds is None else dataset.aux.get(in_folds[1])


def is_dealt(plan: fold_plan.FoldPlan) -> bool:
    """Return True if the folds can be drawn again for other rows: they are neither given row by row nor groups."""
    kind = _kind_of_folds(plan)
    return kind == "loo" or (plan.seed is not None and (kind[:1].isdigit() or kind in DEALT))


def _kind_of_folds(plan: fold_plan.FoldPlan) -> str:
    return canonical(plan.spec.removesuffix(fold_plan.WEIGHTED)).partition(":")[0]
