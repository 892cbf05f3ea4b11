"""The course of a run as JSON lines: how the interval of every pair closes.

The first line names the run: `{"schema", "method", "gap", "gammas", "taus", "total"}`. Every other one is a moment:
`{"seconds", "nodes", "mios", "done", "lower", "upper", "proved", "estimates", "pairs": [[lower, upper], ...]}`, pairs
gamma by gamma, each with its taus; CV errors per row in squared units of the target, null where an upper bound is not
known. `estimates` are of every tau, at its best gamma, null where there is none.
`proved` is `[tau, gamma]`: the best pair is proved among the taus up to `tau` and the gammas from `gamma` on, either
may be null; null where it is proved nowhere.

A descent has no grid of gammas: its first line says `"gammas": null`, its moments name their `gamma` and the number of
`steps` before, the pairs are the taus at that gamma, `upper` is the best so far and `estimate` the CV error that goes
with it.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from sparsecv_mio.errors import BadInput, CorruptStore, SparseCVError
from sparsecv_mio.files import check_readable, check_writable, reason
from sparsecv_mio.search.state.region import proved_ends

if TYPE_CHECKING:
    from sparsecv_mio.search.observers.watched import Watched
    from sparsecv_mio.search.state.context import Context
    from sparsecv_mio.search.state.state import SearchState

SCHEMA = "sparsecv-trace/1"
DESCENT = "descent"
EVERY = 0.02  # seconds between two lines
MOST_BYTES = 1 << 30  # of a trace that is read back


def known(values: Iterable[float]) -> list[float | None]:
    """Numbers for JSON: null for infinity."""
    return [value if math.isfinite(value) else None for value in values]


def head_of(context: Context, method: str) -> dict[str, Any]:
    """Return the first line of a trace; a descent has no grid of gammas."""
    grid, descent = context.grid, method.startswith(DESCENT)
    gammas = 1 if descent else len(grid.gammas)
    return {
        "schema": SCHEMA,
        "method": DESCENT if descent else method,
        "gap": context.gap,
        "gammas": None if descent else grid.gammas.tolist(),
        "taus": grid.taus.tolist(),
        "total": gammas * len(grid.taus) * context.folds.k,
    }


def trace_line_of(state: SearchState, mios: int) -> dict[str, Any]:
    """Return the line of the trace that says where a run over a grid stands, after so many `mios`."""
    now, unit = state.bounds(), state.context.per_row
    lower, upper = (now.lower * unit).ravel().tolist(), known((now.upper * unit).ravel().tolist())
    return {
        "seconds": state.context.deadline.seconds,
        "nodes": state.counts.nodes,
        "mios": mios,
        "done": int(state.cells.final.sum()),
        "lower": now.floor * unit,
        "upper": known([now.ceiling * unit])[0],
        "proved": proved_ends(now, state.context.gap, state.context.grid.gammas, state.context.grid.taus),
        "estimates": known((now.shown.min(axis=0) * unit).tolist()),
        "pairs": [list(ends) for ends in zip(lower, upper, strict=True)],
    }


class Trace:
    """Writes the trace of one run; every line is flushed, so that a killed run leaves what it wrote.

    Parameters
    ----------
    path : path
        A regular file, or a pipe or device that is written to as it is.

    Attributes
    ----------
    failure : SparseCVError or None
        Why the trace ends early (a full disk, say): it costs the trace, never the run.

    Raises
    ------
    BadInput
        The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_writable(path, "trace", through=True)
        try:
            self.stream: IO[str] = open(path, "w", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise BadInput(f"cannot write trace {path}: {reason(error)}") from None
        self.path = path
        self.failure: SparseCVError | None = None
        self.named = False
        self.due = -math.inf

    def visit(self, run: Watched) -> None:
        """Write a line if it is time to."""
        if time.monotonic() >= self.due:
            self.write(run)

    def write(self, run: Watched) -> None:
        """Write a line; nothing any more once one could not be written."""
        if self.failure is not None:
            return
        try:
            if not self.named:
                self._line(head_of(run.context, run.name))
                self.named = True
            self._line(run.trace_line())
        except OSError as error:
            self.failure = BadInput(f"cannot write trace {self.path}: {reason(error)}")
        self.due = time.monotonic() + EVERY

    def close(self, run: Watched) -> None:
        """Write the last line."""
        self.write(run)
        with suppress(OSError):  # what is left in the buffer has been reported
            self.stream.close()

    def _line(self, entries: Mapping[str, Any]) -> None:
        self.stream.write(json.dumps(entries) + "\n")
        self.stream.flush()


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Whether a file that can be read begins as a trace does."""
    if not os.path.isfile(path):
        return False
    with suppress(OSError), open(path, "rb") as stream:
        return SCHEMA.encode() in stream.read(200)
    return False


def read_trace(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the first line and the moments of a trace; a last line that was cut off is left out.

    Raises
    ------
    CorruptStore
        The file cannot be read or is no trace.
    """
    check_readable(path, "trace", CorruptStore, MOST_BYTES)
    try:
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().split("\n")
        entries = [json.loads(line) for line in lines[:-1]]
        if entries[0]["schema"] != SCHEMA:
            raise ValueError
        moments = entries[1:]
        gammas = entries[0]["gammas"]
        pairs = (1 if gammas is None else len(gammas)) * len(entries[0]["taus"])
        if not moments or any(len(moment["pairs"]) != pairs for moment in moments):
            raise ValueError
    except OSError as error:
        raise CorruptStore(f"cannot read trace {path}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise CorruptStore(f"{path} is not a trace of `sparsecv solve --trace`") from None
    return entries[0], moments
