"""The folder of a batch: one file for every task that is done, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sparsecv_mio.certificate.reading import MOST_BYTES
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.files import check_readable, sweep, write_text

SCHEMA = "sparsecv-task/1"
PLAN_SCHEMA = "sparsecv-plan/1"
PLAN = "plan.json"
STATES = ("done", "limit", "failed")


@dataclass(frozen=True)
class Outcome:
    """What came of a task.

    Attributes
    ----------
    address : str
        Of the task.
    task : dict
        Data and settings, as `Task.to_dict`.
    state : {"done", "limit", "failed"}
        `limit`: there is an answer, which a limit left unproved.
    reason : str
        Why it failed, in one line.
    seconds : float
        Of the fit alone.
    numbers : dict
        Errors, sizes, chosen hyperparameters.
    record : str, optional
        JSON text of the record of our search.
    attempt : int
        From 1 on; larger after `--retry`.
    provenance : dict
        Digests of the rows and of the folds, versions of the packages.
    traceback : str
        Of a failure that nobody foresaw: a bug, of a peer or our own.
    """

    address: str
    task: Mapping[str, Any]
    state: str
    reason: str = ""
    seconds: float = 0.0
    numbers: Mapping[str, Any] = field(default_factory=dict)
    record: str | None = None
    attempt: int = 1
    provenance: Mapping[str, str] = field(default_factory=dict)
    traceback: str = ""


def file_of(folder: str | Path, address: str) -> Path:
    """Return where the result of a task stands in a folder, which need not be there."""
    return Path(folder) / "tasks" / f"{address}.json"


class BatchFolder:
    """The results of a batch.

    Parameters
    ----------
    path : str or Path
        Made if it is not there.

    Raises
    ------
    BadInput
        It is no folder, or cannot be made.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            (self.path / "tasks").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"--out: folder {str(self.path)!r} cannot be made: {error.strerror}") from None

    def place(self, address: str) -> Path:
        """Return the file of a task."""
        return file_of(self.path, address)

    def store(self, outcome: Outcome) -> None:
        """Write what came of a task; a file that was there is replaced when the new one is complete."""
        text = json.dumps({"schema": SCHEMA, **asdict(outcome)}, allow_nan=True, ensure_ascii=False)
        write_text(self.place(outcome.address), [text, "\n"], "task")

    def read(self, address: str) -> Outcome | None:
        """Return what came of a task, None if nothing did yet.

        Raises
        ------
        CorruptStore
            The file is no outcome of this task.
        """
        place = self.place(address)
        if not place.exists():
            return None
        try:
            check_readable(place, "task file", CorruptStore, MOST_BYTES)
            found = json.loads(place.read_text(encoding="utf-8"))
            if found.pop("schema") != SCHEMA or found["address"] != address or found["state"] not in STATES:
                raise ValueError("another schema")
            return Outcome(**found)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptStore(f"task file {str(place)!r} is damaged ({error}): remove it") from None

    def sweep(self) -> None:
        """Remove what batches that were killed in the middle of a write left behind."""
        for folder in (self.path, self.path / "tasks"):
            sweep(folder)

    def has(self, address: str) -> bool:
        """Whether anything came of a task, be it a failure."""
        return self.place(address).exists()

    def store_plan(self, addresses: Iterable[str]) -> None:
        """Note the tasks of the present plan: results of others, of an earlier plan or version, are put aside."""
        text = json.dumps({"schema": PLAN_SCHEMA, "tasks": sorted(addresses)})
        write_text(self.path / PLAN, [text, "\n"], "plan of the folder")

    def asked(self) -> frozenset[str] | None:
        """Return the tasks of the present plan; None where no plan is noted, as in folders of a study.

        Raises
        ------
        CorruptStore
            The note is damaged.
        """
        place = self.path / PLAN
        if not place.exists():
            return None
        try:
            check_readable(place, "plan of the folder", CorruptStore, MOST_BYTES)
            found = json.loads(place.read_text(encoding="utf-8"))
            if found["schema"] != PLAN_SCHEMA or not all(isinstance(name, str) for name in found["tasks"]):
                raise ValueError("another schema")
            return frozenset(found["tasks"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptStore(f"file {str(place)!r} is damaged ({error}): run the batch again") from None

    def outcomes(self, every: bool = False) -> Iterator[Outcome]:
        """Yield what came of tasks, in the order of their names.

        Parameters
        ----------
        every : bool
            Those of earlier plans too.
        """
        asked = None if every else self.asked()
        for address in self._addresses():
            found = self.read(address) if asked is None or address in asked else None
            if found is not None:
                yield found

    def stale(self) -> list[Path]:
        """Return the files of tasks that the present plan does not ask for."""
        asked = self.asked()
        return [] if asked is None else [self.place(name) for name in self._addresses() if name not in asked]

    def _addresses(self) -> list[str]:
        return sorted(place.stem for place in (self.path / "tasks").glob("*.json"))
