"""From a file, a frame or arrays to a record, with the defaults of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import AnyFolds, fold_columns, folds_of
from sparsecv_mio.data.readers import read_dataset, target_of
from sparsecv_mio.data.reading import TableWords
from sparsecv_mio.errors import BadInput
from sparsecv_mio.grids import GammaInterval, interval
from sparsecv_mio.search.api import cross_validate, kept
from sparsecv_mio.search.hooks import Keywords, merged
from sparsecv_mio.search.nested import Procedure, nested_cross_validate

if TYPE_CHECKING:
    import pandas as pd


class SolveKeywords(Keywords, TableWords, total=False):
    """Everything that :func:`solve` takes by keyword alone."""


OF_TABLES = tuple(TableWords.__annotations__)


def solve(
    data: str | Path | pd.DataFrame | Dataset,
    target: str | int | None = None,
    *,
    folds: AnyFolds = "10",
    seed: int = 0,
    gammas: str | float | Iterable[float] | GammaInterval | None = None,
    taus: str | int | Iterable[int] | None = None,
    nested: int | None = None,
    **keywords: Unpack[SolveKeywords],
) -> Record:
    """Find the best (tau, gamma) and prove it, with the defaults of `sparsecv solve`.

    Parameters
    ----------
    data : path, pandas.DataFrame or Dataset
        What :func:`~sparsecv_mio.data.readers.read_dataset` reads, or what it returns.
    target : str or int, optional
        The column to predict, by name or position; a `Dataset`, NPZ and svmlight files have their own.
    folds : str, int, splitter, labels, pairs or FoldPlan
        See :func:`~sparsecv_mio.data.folds.folds_of`.
    seed : int
        Seed of the shuffle, where folds are dealt at random.
    gammas : float, sequence of float, str or GammaInterval, optional
        Ridge weights, or a text as for `--gamma`; a `GammaInterval` or `LO..HI` for every gamma of an interval; by
        default 15 from 0.001 to 10, of p >= n_train 9 from 0.05 to 10.
    taus : int, sequence of int or str, optional
        Support sizes, or a text as for `--tau`; by default 1 to p, of p > 30 to
        n_train / 8, but at least 10 and at most 50.
    nested : int, optional
        Outer folds: the whole procedure is repeated without each of them and scored there, an honest estimate of its
        error (`record.nested`).
    **keywords
        How a file or frame is read, as in :func:`~sparsecv_mio.data.readers.read_dataset`: `drop`, `features`, `na`,
        `encode`, `decimal`, `thousands`, and of files `sep`, `comment`, `encoding`, `header`, `index_col`. Further
        options of :func:`~sparsecv_mio.search.api.cross_validate`: `gap`, `time_limit`, `one_se`, ...

    Returns
    -------
    Record
        Answer and certificate.

    Raises
    ------
    BadInput
        If a file, a column, the folds, the grid or an option is wrong.
    TypeError
        For a keyword that is no option.

    Examples
    --------
    >>> record = solve("instances/prostate.csv", target="lpsa", gammas="0.01,0.1,1")
    >>> record.status, record.tau, record.gamma
    ('proved', 7, 0.01)
    """
    given: dict[str, Any] = dict(keywords)
    reading = {name: given.pop(name) for name in OF_TABLES if name in given}
    options, hooks = merged(None, None, given, "solve", OF_TABLES)
    dataset = _dataset(data, target, fold_columns(folds) if isinstance(folds, str) else (), reading)
    plan = folds_of(folds, dataset, seed)
    if nested is not None:
        if isinstance(gammas, GammaInterval) or (isinstance(gammas, str) and interval(gammas)):
            raise BadInput(f"nested: goes with a grid of gammas, not with the interval {gammas}")
        return nested_cross_validate(Procedure(dataset, plan, kept(gammas), kept(taus), options, hooks), nested)
    return cross_validate(dataset, plan, gammas=gammas, taus=taus, options=options, hooks=hooks)


def _dataset(
    data: str | Path | pd.DataFrame | Dataset, target: str | int | None, aux: tuple[str, ...],
    reading: Mapping[str, Any],
) -> Dataset:  # fmt: skip
    if isinstance(data, Dataset):
        for name in reading:
            raise BadInput(f"{name}: goes with a file or a frame, and these data are read already: leave it out")
        if target not in (None, data.target):
            raise BadInput(f"target {target!r}: these data have the target {data.target!r} already")
        return data
    if target is not None and not isinstance(target, str | Integral):
        raise BadInput(
            "target must be the name or position of a column; for arrays give solve(Dataset.from_arrays(X, y)), or use "
            "BestSubsetRidgeCV().fit(X, y)"
        )
    if isinstance(data, str | Path):
        return read_dataset(data, target_of(data, target), aux=aux, **reading)
    if not hasattr(data, "iloc"):
        raise BadInput(f"data are {type(data).__name__}: give a file, a pandas frame or Dataset.from_arrays(X, y)")
    if target is None:
        raise BadInput("target is missing: name the column to predict")
    return Dataset.from_frame(data, target, aux=aux, **reading)
