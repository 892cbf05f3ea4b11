"""The outcome of a task, and the folder that stores the outcomes and the plan of a batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from sparsecv_mio.batch.batch_plan import Task
from sparsecv_mio.certificate.read_back import RECORD_BYTES
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.files import check_readable, remove_stale_folders, write_text

T = TypeVar("T")
SCHEMA = "sparsecv-task/1"
PLAN_SCHEMA = "sparsecv-plan/1"


@dataclass(frozen=True)
class TaskOutcome:
    """The outcome of a task.

    Attributes
    ----------
    address : str
        Address of the task.
    task : dict
        Data and settings, from `Task.to_dict`.
    state : {"done", "limit", "failed"}
        State; `limit` means that a limit left the answer without a proof.
    reason : str
        Reason of a failure, in one line.
    seconds : float
        Duration of the fit.
    numbers : dict
        Errors, sizes, chosen hyperparameters.
    record : str, optional
        JSON text of the record of a search.
    attempt : int
        Number of the attempt from 1; larger after `--retry`.
    provenance : dict
        Digests of the rows and of the folds, versions of the packages.
    traceback : str
        Traceback of an unexpected failure: a bug in a peer or in this package.
    """

    address: str
    task: Mapping[str, Any]
    state: Literal["done", "limit", "failed"]
    reason: str = ""
    seconds: float = 0.0
    numbers: Mapping[str, Any] = field(default_factory=dict)
    record: str | None = None
    attempt: int = 1
    provenance: Mapping[str, str] = field(default_factory=dict)
    traceback: str = ""


class BatchFolder:
    """The results of a batch; the folder is made when the first one is stored.

    Parameters
    ----------
    path : str or Path
        Path of the folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._tasks, self._plan = self.path / "tasks", self.path / "plan.json"

    def make(self) -> None:
        """Make the folder; raise `BadInput` if the path is not a folder, or cannot be created."""
        try:
            self._tasks.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"--out: folder {str(self.path)!r} cannot be made: {error.strerror}; name another folder"
            ) from None

    @property
    def exists(self) -> bool:
        """True if a batch has begun to write its results."""
        return self._tasks.is_dir()

    def place(self, address: str) -> Path:
        """Return the file of a task."""
        return self._tasks / f"{address}.json"

    def store(self, outcome: TaskOutcome) -> None:
        """Write the outcome of a task; an existing file is replaced when the new one is complete."""
        self.make()
        text = json.dumps({"schema": SCHEMA, **asdict(outcome)}, allow_nan=True, ensure_ascii=False)
        write_text(self.place(outcome.address), [text, "\n"], "task")

    def read(self, address: str) -> TaskOutcome | None:
        """Return the outcome of a task; None if there is none yet.

        Raises
        ------
        CorruptStore
            If the file is not an outcome of this task.
        """

        def outcome(stored: dict[str, Any]) -> TaskOutcome:
            if stored["address"] != address:
                raise ValueError("another task")
            return msgspec.convert(stored, TaskOutcome)

        return _read_json_file(self.place(address), "task file", SCHEMA, outcome, "remove it")

    def sweep(self) -> None:
        """Remove temporary files of batches that were killed while writing."""
        for folder in (self.path, self._tasks):
            remove_stale_folders(folder)

    def read_outcomes(self, tasks: Iterable[Task]) -> list[TaskOutcome]:
        """Return the outcomes of tasks, without tasks that have none yet."""
        return [outcome for task in tasks if (outcome := self.read(task.address)) is not None]

    def store_plan(self, addresses: Iterable[str]) -> None:
        """Store the tasks of the present plan; results of other plans or versions are ignored."""
        self.make()
        text = json.dumps({"schema": PLAN_SCHEMA, "tasks": sorted(addresses)})
        write_text(self._plan, [text, "\n"], "plan of the folder")

    def read_planned_tasks(self) -> list[str] | None:
        """Return the tasks of the present plan; None if no plan is stored, as in folders of a study.

        Raises
        ------
        CorruptStore
            If the stored plan is damaged.
        """

        def addresses(stored: dict[str, Any]) -> list[str]:
            return msgspec.convert(stored["tasks"], list[str])

        return _read_json_file(self._plan, "file", PLAN_SCHEMA, addresses, "run the batch again")

    def outcomes(self, every: bool = False) -> Iterator[TaskOutcome]:
        """Yield the outcomes of tasks, in the order of their names.

        Parameters
        ----------
        every : bool
            True to include tasks of earlier plans.
        """
        stale = set() if every else set(self.stale())
        for place in sorted(self._tasks.glob("*.json")):
            if place not in stale and (outcome := self.read(place.stem)) is not None:
                yield outcome

    def stale(self) -> list[Path]:
        """Return the files of tasks that the present plan does not request."""
        planned = self.read_planned_tasks()
        wanted = None if planned is None else set(planned)
        return [place for place in self._tasks.glob("*.json") if wanted is not None and place.stem not in wanted]


def _read_json_file(place: Path, what: str, schema: str, make: Callable[[dict[str, Any]], T], cure: str) -> T | None:
    """Return the content of a file with a schema, None without a file; `CorruptStore` names the remedy."""
    if not place.exists():
        return None
    try:
        check_readable(place, what, CorruptStore, RECORD_BYTES)
        stored = json.loads(place.read_text(encoding="utf-8"))
        if stored.pop("schema") != schema:
            raise ValueError("another schema")
        return make(stored)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, msgspec.MsgspecError) as error:
        raise CorruptStore(f"{what} {str(place)!r} is damaged ({error}): {cure}") from None
