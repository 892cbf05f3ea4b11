"""Functions that read a file or frame into a data set and construct folds, for `solve` and the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.arrays import ArrowTable
from sparsecv_mio.data.column_choice import Wanted
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import WEIGHTED, FoldPlan
from sparsecv_mio.data.folds import AnyFolds, fold_columns, is_by_row, make_folds
from sparsecv_mio.data.frames import is_arrow_table
from sparsecv_mio.data.loss_targets import exposure_columns
from sparsecv_mio.data.readers import read_dataset, resolve_target
from sparsecv_mio.data.weights import weight_columns, weighted, weights_of
from sparsecv_mio.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd


def requested_columns(
    folds: AnyFolds = "", weights: str | None = None, id: str | None = None, exposure: str | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the columns that options need in addition to the features and the target, by the name of the option.

    Examples
    --------
    >>> requested_columns("groups:patient", weights="w")
    {'folds': ('patient',), 'weights': ('w',), 'id': (), 'exposure': ()}
    """
    return {
        "folds": fold_columns(folds) if isinstance(folds, str) else (),
        "weights": weight_columns(weights),
        "id": () if id is None else (id,),
        "exposure": exposure_columns(exposure),
    }


def read_rows(
    data: str | Path | pd.DataFrame | ArrowTable | Dataset, target: str | int | None, reading: Mapping[str, Any],
    columns: Mapping[str, Sequence[str]], *, two_words: bool = False,
) -> Dataset:  # fmt: skip
    """Return the data set of a file, a frame or a table; a data set is returned unchanged.

    Parameters
    ----------
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        The rows.
    target : str or int, optional
        Column to predict, by name or position; formats that store the target need none.
    reading : mapping
        Options of :func:`~sparsecv_mio.data.readers.read_dataset`, by name.
    columns : mapping
        Further columns to keep, from :func:`requested_columns`.
    two_words : bool
        True if the target may have two text values, for classification.

    Raises
    ------
    BadInput
        If an option, column or row is wrong; the message names it.
    """
    if isinstance(data, Dataset):
        for name in reading:
            raise BadInput(
                f"{name}: applies to a file or a frame, and these data have been read already; leave this option out"
            )
        if target not in (None, data.target):
            raise BadInput(
                f"target: {target!r} is given, but the data already have the target {data.target!r}; leave this "
                "option out"
            )
        return data
    if target is not None and not isinstance(target, str | Integral):
        raise BadInput(
            "target: must be the name or position of a column; for arrays use solve(Dataset.from_arrays(X, y)) or use "
            "BestSubsetRidgeCV().fit(X, y)"
        )
    aux = tuple(chain.from_iterable(columns.values()))
    with _name_option_of_column(columns):
        if isinstance(data, str | Path):
            return read_dataset(data, resolve_target(data, target), aux=aux, two_words=two_words, **reading)
        if target is None and (hasattr(data, "columns") or is_arrow_table(data)):
            raise BadInput("target: no column is given; name the column to predict")
        return Dataset.from_frame(data, "" if target is None else target, aux=aux, two_words=two_words, **reading)


@contextmanager
def _name_option_of_column(columns: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Name the option that requests a missing column, instead of all options that may request columns."""
    try:
        yield
    except BadInput as error:
        for option, names in columns.items():
            for name in names:
                begin = f"{Wanted.role} {name!r} "
                if str(error).startswith(begin):
                    raise BadInput(f"{option}: column {name!r} {str(error).removeprefix(begin)}") from None
        raise


def split_rows(
    dataset: Dataset, folds: AnyFolds = "10", seed: int = 0, weights: str | None = None
) -> tuple[Dataset, FoldPlan]:
    """Return the data with row weights, without rows of weight 0, and the folds of the remaining rows.

    Parameters
    ----------
    dataset : Dataset
        Data from :func:`read_rows`, in the form of their loss.
    folds : FoldPlan, str, int, splitter, labels or pairs
        Definition of the folds, as for :func:`~sparsecv_mio.data.folds.make_folds`.
    seed : int
        Seed of the shuffle.
    weights : str, optional
        Column of the row weights in `aux`, or `file:F`.

    Raises
    ------
    BadInput
        If the folds or the weights are wrong.
    """
    if weights is None:
        plan = make_folds(folds, dataset, seed)
        is_marked = dataset.weights is None or plan.spec.endswith(WEIGHTED)
        return dataset, plan if is_marked else replace(plan, spec=plan.spec + WEIGHTED)
    if dataset.weights is not None:
        raise BadInput(
            f"weights: {weights!r} is given, but the data already have the weights {dataset.weights!r}; leave this "
            "option out"
        )
    for column in weight_columns(weights):
        if column not in dataset.aux:
            raise BadInput(f"weights: {column!r} is not stored with these data; read the data with aux=({column!r},)")
    row_weights, by_row = weights_of(dataset, weights), is_by_row(folds, dataset)
    return weighted(dataset, row_weights, lambda rows: make_folds(folds, rows, seed), name=weights, by_row=by_row)
