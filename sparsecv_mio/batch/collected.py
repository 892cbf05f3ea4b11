"""Functions that verify the records of a batch and collect the outcomes of the batch in one table.

`collect` verifies each result only once on each machine. It recognises a verified result by a digest of the result
file, the data, the folds and the source code of the package. These digests are stored in the cache folder of the user,
not in the folder of the batch. Results that were copied from another machine are therefore verified again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.batch.batch_plan import TRAINING, Task
from sparsecv_mio.batch.one_task import collect_numbers, summarise_record, task_folds, task_rows
from sparsecv_mio.batch.oracle_tasks import ORACLES
from sparsecv_mio.batch.sources import data_source
from sparsecv_mio.batch.task_folder import BatchFolder, TaskOutcome
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.errors import BadInput, SparseCVError, match_keyword
from sparsecv_mio.targets import DEFAULT_LOSS
from sparsecv_mio.units import ACCURATE_RTOL

if TYPE_CHECKING:
    import pandas as pd

LEVELS = ("tasks", "pairs", "folds", "sources")
# columns of requested values, in addition to gamma, tau and gap of the answer, and of the number of folds
ASKED = {"gamma": "gammas", "tau": "taus", "gap": "gap_asked"}
# columns of pairs and of sources, in addition to the requested folds and to the nodes of the whole search
RENAMED = {("pairs", "folds"): "folds_of_pair", ("sources", "nodes"): "nodes_of_source"}


MAX_DIGESTS = 100_000  # stored digests, 6.5 MB; a longer file loses the older half


@cache
def _digest_of_sources() -> bytes:
    """Return the digest of all modules, because a changed check verifies again."""
    digest = hashlib.sha256()
    for place in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(place.read_bytes())
    return digest.digest()


def digest_of_result(outcome: TaskOutcome, data: Dataset, folds: FoldPlan) -> str:
    """Return the digest of a result, its data and its folds.

    Parameters
    ----------
    outcome : TaskOutcome
        Outcome of a task.
    data : Dataset
        Training rows, read again.
    folds : FoldPlan
        Folds of these rows, made again.
    """
    digest = hashlib.sha256(_digest_of_sources())
    parts = [asdict(outcome), data.fingerprint, folds.digest]
    digest.update(json.dumps(parts, sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class VerifiedResults:
    """The results that were verified on this machine before.

    Examples
    --------
    >>> "0" * 64 in VerifiedResults()
    False
    """

    def __init__(self) -> None:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._path, self._known = folder / "sparsecv-mio" / "verified.txt", dict[str, None]()
        with suppress(OSError, ValueError):
            self._known = dict.fromkeys(self._path.read_text(encoding="ascii").split())

    def __contains__(self, digest: str) -> bool:
        return digest in self._known

    def add(self, digest: str) -> None:
        """Store a digest; without a writable cache folder it is known to this object only."""
        self._known[digest] = None
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if len(self._known) > MAX_DIGESTS:
                self._known = dict.fromkeys(list(self._known)[len(self._known) // 2 :])
                self._path.write_text("".join(f"{stored}\n" for stored in self._known), encoding="ascii")
            else:
                with self._path.open("a", encoding="ascii") as stream:
                    stream.write(f"{digest}\n")


def collect(
    folder: BatchFolder,
    level: str = "tasks",
    check: bool = True,
    progress: Callable[[TaskOutcome], None] | None = None,
    every: bool = False,
) -> pd.DataFrame:
    """Return the results of a batch as a table.

    Parameters
    ----------
    level : {"tasks", "pairs", "folds", "sources"}
        Unit of a row.
    check : bool
        True to verify every record against its data; `verified` is None if there is nothing to verify. A record that
        was verified on this machine before is not verified again, unless its result, data or folds have changed.
    progress : callable, optional
        Function that is called with every outcome.
    every : bool
        True to include results that the present plan of the folder does not request.

    Returns
    -------
    pandas.DataFrame
        Table with columns for settings, numbers and provenance.

    Raises
    ------
    BadInput
        If the folder has no results, or the level is unknown.
    """
    import pandas as pd

    word = match_keyword(level, LEVELS, "--level")
    rows: list[dict[str, Any]] = []
    verified_before = VerifiedResults() if check else None
    for outcome in folder.outcomes(every):
        rows += _rows_of_outcome(outcome, word, verified_before)
        if progress is not None:
            progress(outcome)
    if not rows:
        has_results = next(iter(folder.outcomes(every)), None) is not None
        remedy = f"collect the results with --level {LEVELS[0]}" if has_results else "run the batch first"
        raise BadInput(f"folder {str(folder.path)!r} has no {word}; {remedy}")
    fits = [row for row in rows if row.get("estimator") not in ORACLES]
    if any("loss" in row for row in fits):
        for row in fits:
            row.setdefault("loss", DEFAULT_LOSS.value)  # peers with squared-error loss name none
    settings = dict.fromkeys(name for row in rows for name in itertools.takewhile(lambda name: name != "state", row))
    names = settings | dict.fromkeys(name for row in rows for name in row)
    return pd.DataFrame({name: _make_column([row.get(name) for row in rows]) for name in names})


def _make_column(values: list[Any]) -> Any:
    """Return a column that file formats store: numbers next to text become text, and integers stay integers."""
    import pandas as pd

    filled = [value for value in values if value is not None]
    if len({isinstance(value, str) for value in filled}) > 1:
        return [None if value is None else str(value) for value in values]
    return pd.array(values, "Int64") if 0 < len(filled) < len(values) and {*map(type, filled)} == {int} else values


def _rows_of_outcome(
    outcome: TaskOutcome, level: str, verified_before: VerifiedResults | None
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the rows of an outcome; its record is verified unless `verified_before` is None or has it."""
    settings = {
        ASKED.get(name, name): ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        for name, value in outcome.task["settings"].items()
    }
    spec = outcome.task["source"]
    design = {f"design_{name}": value for name, value in spec.items() if "design" in spec and name != "design"}
    first = {"data": outcome.task["data"], **design, **settings, "state": outcome.state, "address": outcome.address}
    record, verified, failure = None if outcome.record is None else Record.from_json(outcome.record), None, ""
    if record is not None and verified_before is not None:
        failure = _find_fault(outcome, record, verified_before)
        verified = not failure
    last = {"verified": verified, **outcome.provenance}
    if level == "tasks":
        numbers = {"seconds": outcome.seconds, "attempt": outcome.attempt, **outcome.numbers}
        numbers |= {} if record is None else {"estimate": record.estimate}
        return [{**first, **numbers, "reason": outcome.reason or (failure and f"not verified: {failure}"), **last}]
    if record is None:
        return []
    work = {"mios": record.work.mios, "nodes": record.work.nodes}
    return [{**first, **row, **work, **last} for row in _expand_record(record, level)]


def _expand_record(record: Record, level: str) -> list[dict[str, Any]]:
    """Return the pairs, the sources of bounds or the folds of the pair of a record, as names and values."""
    if level != "folds":
        parts = record.table if level == "pairs" else record.work.sources
        return [{RENAMED.get((level, name), name): value for name, value in asdict(part).items()} for part in parts]
    pair = {"gamma": record.gamma, "tau": record.tau}
    return [{**pair, "fold": chosen.fold, "support": ",".join(chosen.support), "error": chosen.error,
             "decided": chosen.decided} for chosen in record.chosen_folds]  # fmt: skip


def _find_fault(outcome: TaskOutcome, record: Record, verified_before: VerifiedResults) -> str:
    """Verify a record against its data, read again, and the outcome of the task against the record."""
    from sparsecv_mio.certificate.verify import verify

    try:
        task = restore_task(outcome)
        rows = task_rows(task)
        folds = task_folds(task, rows.train)
        if record.folds.digest != folds.digest:
            return "the folds of the record differ from those of its task"
        digest = digest_of_result(outcome, rows.train, folds)
        if digest in verified_before:
            return ""
        report = verify(record, rows.train)
        held_out = folds if task.settings.get("refit") == TRAINING else None
        again = collect_numbers(task, rows, summarise_record(record, rows.train, outcome.seconds, held_out))
    except SparseCVError as error:
        return str(error)
    except KeyError as error:
        return f"column {error} of the record is not in the data of the record"
    if not report.ok:
        return report.failures[0].field
    wrong = [name for name, value in again.items() if not _is_same_value(outcome.numbers.get(name), value)]
    if wrong:
        return f"{wrong[0]} differs from the value of the record"
    verified_before.add(digest)
    return ""


def _is_same_value(stored: Any, computed: Any) -> bool:
    if isinstance(stored, int | float) and isinstance(computed, int | float):
        close = math.isclose(stored, computed, rel_tol=ACCURATE_RTOL, abs_tol=ACCURATE_RTOL)
        return close or (math.isnan(stored) and math.isnan(computed))
    return bool(stored == computed)


def restore_task(outcome: TaskOutcome) -> Task:
    """Return the task of an outcome."""
    return Task(data_source(outcome.task["data"], outcome.task["source"]), outcome.task["settings"])
