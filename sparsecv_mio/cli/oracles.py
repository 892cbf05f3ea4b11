"""What `glru`, `iacv`, `treecv` and `bounds` share: a counting progress bar and a JSON file of plain numbers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sparsecv_mio.cli import ending

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.oracles.base import ProgressHook

Show = Callable[["Console", dict[str, Any], bool], None]
"""Prints the numbers of the JSON file on a screen, few of them when quiet."""

DRAWS = 200  # the bar moves at most this often: a step may take less time than drawing it


def text_of(numbers: Mapping[str, Any]) -> Callable[[], list[str]]:
    """Return a function that makes the JSON text of the numbers."""
    return lambda: [json.dumps(numbers, indent=2, allow_nan=False), "\n"]


def as_given(options: Mapping[str, Any]) -> str:
    """Say in words that columns are not scaled and no intercept is added, as far as these defaults are in force."""
    raw = {"columns as in the file, not scaled (--scale)": "scale", "no intercept (--intercept)": "intercept"}
    return ", ".join(text for text, name in raw.items() if options[name] == "none")


def describe(dataset: Dataset) -> dict[str, Any]:
    """Size, target and fingerprint of the data, for the JSON file."""
    read = {} if dataset.reading is None else {"reading": list(dataset.reading.notes)}
    return {"n": dataset.n, "p": dataset.p, "target": dataset.target, "fingerprint": dataset.fingerprint, **read}


def notes(dataset: Dataset, quiet: bool) -> tuple[str, ...]:
    """Return what a user should know of how the file was read."""
    return () if quiet or dataset.reading is None else dataset.reading.notes


def deliver(
    command: str, dataset: Dataset, options: Mapping[str, Any], found: Mapping[str, Any], show: Show, *,
    quiet: bool, json: str | None, code: int = 0, files: Sequence[Callable[[], None]] = (),
) -> int:
    """Print what was found and write its JSON file and figures; return the exit code.

    Parameters
    ----------
    command : str
        As it is called.
    dataset : Dataset
        What was fitted.
    options, found : mapping
        What was asked for, and the numbers of the answer.
    show : callable
        Prints them.
    quiet : bool
        Print the one number that counts.
    json : str or None
        File of the numbers.
    code : int
        Exit code where everything is written.
    files : sequence of callable
        Each writes a figure.
    """
    numbers = {"command": command, "data": describe(dataset), "options": options, **found}
    return ending.deliver(
        code, lambda screen: show(screen, numbers, quiet),
        json=json, record=text_of(numbers), warnings=notes(dataset, quiet), files=files,
    )  # fmt: skip


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
