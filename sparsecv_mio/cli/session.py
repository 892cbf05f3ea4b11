"""What the long-running commands share: reading the data, Ctrl-C, where output goes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.cli import parse
from sparsecv_mio.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.certificate.fit_record import FitRecord
    from sparsecv_mio.certificate.record import PathRecord, Record
    from sparsecv_mio.data.dataset import Dataset

EXIT_CODE = {"proved": 0, "limit": 3, "interrupted": 130}
OWN_TARGET = (".npz", ".svm", ".svmlight", ".libsvm")
READ_BY_ARROW = (".csv", ".tsv", ".parquet")
PIPE_WIDTH = 200  # a file or a pipe has no width: wide enough that no table is cut


def read_data(path: str, target: str | None, features: str | None, drop: str | None, aux: Iterable[str]) -> Dataset:
    """The data set that the options describe; `BadInput` says which option is wrong."""
    if features is not None and drop is not None:
        raise BadInput("--features and --drop exclude each other: give one of them")
    kept, dropped = parse.names(features, "--features"), parse.names(drop, "--drop")
    if target is None:
        if Path(path).suffix.lower() not in OWN_TARGET:
            raise BadInput("--target is missing: name the column to predict")
        target = "y"
    if Path(path).suffix.lower() in READ_BY_ARROW:
        import pyarrow

        pyarrow.enable_signal_handlers(False)  # they lose a Ctrl-C that comes near the end of a read
    from sparsecv_mio.data.readers import read_dataset

    return read_dataset(path, target, features=kept, drop=dropped, aux=tuple(aux))


def check_output(json: str | None, option: str = "--json") -> None:
    """Refuse a place that cannot be written before the work, not after it."""
    if json is None or json == "-":
        return
    path = Path(json)
    if path.is_dir():
        raise BadInput(f"{option}: {json} is a folder, name a file in it")
    if not path.resolve().parent.is_dir():
        raise BadInput(f"{option}: folder {path.parent} does not exist")
    if not os.access(path if path.exists() else path.resolve().parent, os.W_OK):
        raise BadInput(f"{option}: {json} cannot be written")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def console(json: str | None) -> Console:
    """Where the answer is shown: standard output, or standard error when that carries the record."""
    from rich.console import Console

    stream = sys.stderr if json == "-" else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH, highlight=False, soft_wrap=False)


def deliver(record: Record | PathRecord | FitRecord, json: str | None, quiet: bool) -> None:
    """Write the record first, then the warnings: whatever happens to the screen, the answer is kept."""
    if json == "-":
        sys.stdout.write(record.to_json())
        sys.stdout.flush()
    elif json is not None:
        record.write_record(json)
    if not quiet:
        for warning in record.warnings:
            print(f"sparsecv: warning: {warning}", file=sys.stderr)


class Stop(threading.Event):
    """Set by Ctrl-C; `announced` while something on the screen says so itself."""

    announced = False


@contextmanager
def interruptible() -> Iterator[Stop]:
    """The first Ctrl-C sets the event, on which the engine returns its best answer; the second one quits.

    It is in force from the start of a command: libraries swallow a KeyboardInterrupt that falls into an import.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(_signal: int, _frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        if not stop.announced:
            # os.write: the handler may interrupt a print to the same stream
            os.write(2, b"sparsecv: stopping (Ctrl-C again quits at once)\n")

    previous = signal.signal(signal.SIGINT, note)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)


def before_the_engine(stop: threading.Event) -> None:
    """End a command that was interrupted while it read its data."""
    if stop.is_set():
        raise KeyboardInterrupt
