"""How a caller observes, stops and stores a search."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from sparsecv_mio.errors import SparseCVError
from sparsecv_mio.search.checks import GRID, with_keywords
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.options import OptionKeywords, SearchOptions
from sparsecv_mio.search.state.state import Snapshot

File = str | os.PathLike[str]


class HookKeywords(TypedDict, total=False):
    """The fields of `Hooks`."""

    progress: Callable[[Progress], None] | None
    stop: threading.Event | None
    lost: Callable[[SparseCVError], None] | None
    began: float | None
    checkpoint: File | None
    resume: File | None
    trace: File | None
    scheduler: str | None
    found: Callable[[Snapshot], None] | None


class Keywords(OptionKeywords, HookKeywords, total=False):
    """Everything about a search that may be given by keyword: the fields of `SearchOptions` and of `Hooks`."""


@dataclass(frozen=True)
class Hooks:
    """How a caller watches a search, ends it and stores it; none of it changes the answer that is proved.

    Attributes
    ----------
    progress : callable, optional
        Called with a :class:`~sparsecv_mio.search.observers.progress.Progress` after each fold.
    stop : threading.Event, optional
        Set it to end the run with what it holds.
    lost : callable, optional
        Called with what went wrong when the checkpoint or the trace could not be written (a full disk, say); the run
        goes on to its answer. Without it there is a warning.
    began : float, optional
        Moment of `time.monotonic` from which the limit counts; the call by default.
    checkpoint, resume : path, optional
        Store the run there now and then; carry on a run that was stored
        (:mod:`sparsecv_mio.search.observers.checkpoint`).
    trace : path, optional
        Write the course of the bounds there (:mod:`sparsecv_mio.search.observers.trace`).
    scheduler : str, optional
        Address of the scheduler of a dask cluster, which grows the trees of single folds.
    found : callable, optional
        Called with what the search knew at its end, where it came to its end.
    """

    progress: Callable[[Progress], None] | None = None
    stop: threading.Event | None = None
    lost: Callable[[SparseCVError], None] | None = None
    began: float | None = None
    checkpoint: File | None = None
    resume: File | None = None
    trace: File | None = None
    scheduler: str | None = None
    found: Callable[[Snapshot], None] | None = None


def merged(
    options: SearchOptions | None, hooks: Hooks | None, keywords: Mapping[str, Any], function: str,
    near: Iterable[str] = (),
) -> tuple[SearchOptions, Hooks]:
    """Return options and hooks with the fields that were given by keyword.

    Parameters
    ----------
    options, hooks : optional
        What the keywords change; the defaults where there is none.
    keywords : mapping
        Fields of either, by name.
    function : str
        Who was called, for the error.
    near : iterable of str
        Its other keywords, which may have been meant.

    Returns
    -------
    options : SearchOptions
    hooks : Hooks

    Raises
    ------
    TypeError
        For a keyword that is no field of either.
    BadInput
        See `SearchOptions`.
    """
    ours = {field.name for field in fields(Hooks)}
    of_hooks = {name: value for name, value in keywords.items() if name in ours}
    others = {name: value for name, value in keywords.items() if name not in ours}
    chosen = with_keywords(options or SearchOptions(), others, function, (*GRID, *ours, *near))
    return chosen, with_keywords(hooks or Hooks(), of_hooks, function)
