"""The question that a record answers, built again from the record and its data."""

from __future__ import annotations

from typing import Any

from sparsecv_mio.certificate.read_back import rows_and_folds_of_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.folds import AnyFolds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.options import NESTED, RECORDED, Hooks, SearchOptions
from sparsecv_mio.search.question import Question


def question_of_record(
    record: Record,
    data: Any,
    what: str,
    folds: AnyFolds | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    hooks: Hooks | None = None,
) -> Question:
    """Return the question that a record answers.

    Parameters
    ----------
    record : Record
        Record of `solve`.
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record.
    what : str
        Option or function that needs the question, for messages.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds as given to `solve`, if the record does not describe them.
    time_limit : float, optional
        Time limit in seconds of the new run; none by default.
    threads : int, optional
        Number of threads; all cores by default.
    hooks : Hooks, optional
        Progress and stop of the new run.

    Raises
    ------
    BadInput
        If the record is of another command or of an interval of gamma, or the data or folds differ from its own.
    """
    if not isinstance(record, Record):
        raise BadInput(f"{what}: {type(record).__name__} is not a record of `solve`; give the result of `solve`")
    if record.continuous is not None:
        raise BadInput(f"{what}: requires a grid of gammas, not an interval; give values or LO:HI:COUNT to `solve`")
    rows, plan = rows_and_folds_of_record(record, data, folds)
    if (rows.names, rows.fingerprint) != (record.data.names, record.data.fingerprint):
        raise BadInput(f"{what}: these are not the data of the record; give the data from which it was made")
    if plan.digest != record.folds.digest:
        raise BadInput(f"{what}: these are not the folds of the record; give those from which it was made")
    request, stable = record.request, record.stability
    given = {name: getattr(request, name) for name in RECORDED - {"positive", "time_limit", "threads"}}
    if stable is not None and stable.chosen is not None and stable.chosen.outer is not None:
        given["stability"] = NESTED
    options = SearchOptions.of(
        **{name: value for name, value in given.items() if value is not None},
        scale=record.data.scale, intercept=record.data.intercept, time_limit=time_limit, threads=threads,
    )  # fmt: skip
    return Question(rows, plan, request.gammas, request.taus, options, hooks or Hooks())
