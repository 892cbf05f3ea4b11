"""What `glru`, `iacv`, `treecv` and `bounds` share: a counting progress bar and a JSON file of plain numbers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.oracles.base import ProgressHook

DRAWS = 200  # the bar moves at most this often: a step may take less time than drawing it


def text_of(numbers: Mapping[str, Any]) -> Callable[[], list[str]]:
    """Return a function that makes the JSON text of the numbers."""
    return lambda: [json.dumps(numbers, indent=2, allow_nan=False), "\n"]


def as_given(scale: str, intercept: str) -> str:
    """Say in words that columns are not scaled and no intercept is added, as far as these defaults are in force."""
    raw = {"columns as in the file, not scaled (--scale)": scale, "no intercept (--intercept)": intercept}
    return ", ".join(text for text, word in raw.items() if word == "none")


def describe(dataset: Dataset) -> dict[str, Any]:
    """Size, target and fingerprint of the data, for the JSON file."""
    read = {} if dataset.reading is None else {"reading": list(dataset.reading.notes)}
    return {"n": dataset.n, "p": dataset.p, "target": dataset.target, "fingerprint": dataset.fingerprint, **read}


def notes(dataset: Dataset, quiet: bool) -> tuple[str, ...]:
    """Return what a user should know of how the file was read."""
    return () if quiet or dataset.reading is None else dataset.reading.notes


def _lines(unit: str) -> ProgressHook:
    """Return a hook that prints a line every `LINE_SECONDS`."""
    from sparsecv_mio.cli.live import LINE_SECONDS

    due = time.monotonic() + LINE_SECONDS

    def tell(done: int, total: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + LINE_SECONDS
            print(f"{done} of {total} {unit}", file=sys.stderr, flush=True)

    return tell


@contextmanager
def counting_bar(quiet: bool, unit: str) -> Iterator[ProgressHook | None]:
    """Yield a hook (done, total) that draws a bar on standard error, or now and then a line; None if quiet."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _lines(unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=None)

        def draw(done: int, total: int) -> None:
            if done == total or done % max(1, total // DRAWS) == 0:
                bar.update(task, completed=done, total=total)

        yield draw
