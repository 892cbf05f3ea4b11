"""The results of a batch as one tidy table: a row for every task, pair or fold, with where its numbers come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.batch.folder import BatchFolder, Outcome
from sparsecv_mio.batch.plan import Task
from sparsecv_mio.batch.run import rows_of
from sparsecv_mio.batch.sources import source_of
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.errors import BadInput, SparseCVError
from sparsecv_mio.files import replacing
from sparsecv_mio.words import one_of

if TYPE_CHECKING:
    import pandas as pd

LEVELS = ("tasks", "pairs", "folds")
FORMATS = (".parquet", ".csv")
GRID = {"gamma": "gammas", "tau": "taus"}  # what was asked for, beside the gamma and tau of the answer


def collect(
    folder: BatchFolder, level: str = "tasks", check: bool = True, progress: Callable[[Outcome], None] | None = None
) -> pd.DataFrame:
    """Make a table of the results.

    Parameters
    ----------
    folder : BatchFolder
    level : {"tasks", "pairs", "folds"}
        What a row is.
    check : bool
        Whether every record is verified against its data; `verified` is None where there is nothing to verify.
    progress : callable, optional
        Told of every outcome.

    Returns
    -------
    pandas.DataFrame
        Settings, numbers and provenance in columns.

    Raises
    ------
    BadInput
        The folder has no results, or the level is unknown.
    """
    import pandas as pd

    word = one_of(level, LEVELS, "--level")
    rows: list[dict[str, Any]] = []
    for outcome in folder.outcomes():
        rows += _rows(outcome, word, check)
        if progress is not None:
            progress(outcome)
    if not rows:
        raise BadInput(f"folder {str(folder.path)!r} has no {word}: run the batch first")
    frame = pd.DataFrame(rows)
    return frame.astype({name: "Int64" for name in frame if _whole([row.get(str(name)) for row in rows])})


def _whole(values: list[Any]) -> bool:
    """Whether a column holds whole numbers, and some row has none: pandas would make it one of floats."""
    known = [value for value in values if value is not None]
    return 0 < len(known) < len(values) and all(type(value) is int for value in known)


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table as Parquet or CSV, as its suffix says, completely or not at all.

    Parameters
    ----------
    frame : pandas.DataFrame
    path : str or Path

    Raises
    ------
    BadInput
        The suffix is another one, or the file cannot be written.
    """
    place = Path(path)
    if place.suffix.lower() not in FORMATS:
        raise BadInput(f"--out: {str(place)!r} must end with {' or '.join(FORMATS)}")
    with replacing(place) as temporary:
        if place.suffix.lower() == ".csv":
            frame.to_csv(temporary, index=False)
        else:
            frame.to_parquet(temporary, index=False)


def _rows(outcome: Outcome, level: str, check: bool) -> Iterable[dict[str, Any]]:
    settings = {
        GRID.get(name, name): str(value) if isinstance(value, list | tuple) else value
        for name, value in outcome.task["settings"].items()
    }
    first = {"data": outcome.task["data"], **settings, "state": outcome.state, "address": outcome.address}
    record = None if outcome.record is None else Record.from_json(outcome.record)
    verified, failure = (None, "") if record is None or not check else _verified(outcome, record)
    provenance = {} if record is None else {
        "fingerprint": record.data.fingerprint, "folds_digest": record.folds.digest,
        **{f"version_{name}": value for name, value in record.versions.items()},
    }  # fmt: skip
    if level == "tasks":
        numbers = {"seconds": outcome.seconds, "attempt": outcome.attempt, **outcome.numbers}
        return [{**first, **numbers, "reason": outcome.reason or failure, "verified": verified, **provenance}]
    if record is None:
        return []
    found: list[dict[str, Any]]
    if level == "pairs":
        found = [asdict(row) for row in record.table]
    else:
        found = [{"fold": one.fold, "support": ",".join(one.support), "error": one.error, "decided": one.decided}
                 for one in record.chosen_folds]  # fmt: skip
    return [{**first, **row, "verified": verified} for row in found]


def _verified(outcome: Outcome, record: Record) -> tuple[bool, str]:
    """Check a record against its data, read again."""
    from sparsecv_mio.certificate.verify import verify

    try:
        report = verify(record, rows_of(task_of(outcome)).train)
    except SparseCVError as error:
        return False, f"not verified: {error}"
    return report.ok, "" if report.ok else f"not verified: {report.failures[0].field}"


def task_of(outcome: Outcome) -> Task:
    """Return the task of an outcome."""
    return Task(source_of(outcome.task["data"], outcome.task["source"]), outcome.task["settings"])
