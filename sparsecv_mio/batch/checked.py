"""What tasks ask of their data is checked before one has begun, so that a wrong plan fails at once and as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sparsecv_mio.batch.estimators import check_plan
from sparsecv_mio.batch.oracles import ORACLES, check_rows
from sparsecv_mio.batch.ours import OURS, options_of
from sparsecv_mio.batch.plan import Task
from sparsecv_mio.batch.run import folds_of, rows_of
from sparsecv_mio.batch.settings import SEEDS, with_keys
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.errors import BadInput


def check_with_data(tasks: Iterable[Task]) -> None:
    """Refuse tasks that cannot be done on their data: every data set is read, once.

    Parameters
    ----------
    tasks : iterable of Task
        Of those that differ by seeds alone the first is looked at.

    Raises
    ------
    BadInput
        The message names the data set, and the setting or the column.
    """
    found: dict[tuple[str, tuple[str, ...]], dict[str, Task]] = {}
    for task in tasks:
        alike = found.setdefault((task.source.shape_digest, task.columns_of_folds), {})
        alike.setdefault(task.settings_without(SEEDS), task)
    for some in found.values():
        _check_on_one(list(some.values()))


def _check_on_one(tasks: list[Task]) -> None:
    """Check tasks on one data set."""
    plans: dict[tuple[Any, str], tuple[Dataset, FoldPlan]] = {}
    for task in tasks:
        try:
            key = task.settings.get("test"), str(task.settings["folds"])
            if key not in plans:
                rows = rows_of(task).train
                plans[key] = rows, folds_of(task, rows)
            _check_task(task, *plans[key])
        except BadInput as error:
            raise BadInput(f"data {task.source.name!r}: {with_keys(str(error), task.settings)}") from None


def _check_task(task: Task, rows: Dataset, plan: FoldPlan) -> None:
    from sparsecv_mio.search.api import asked_of  # loads much of the search

    if task.estimator in ORACLES:
        check_rows(task.settings, rows, plan)
    check_plan(task.estimator, plan, str(task.settings.get("refit", "all")))
    if task.estimator == OURS:
        options = options_of(task.settings)
        options.check_data(rows, plan)
        asked_of(rows, plan, task.settings.get("gamma"), task.settings.get("tau"), options)
