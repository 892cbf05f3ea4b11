"""The interfaces of a running search for its observers: signals, progress, the trace and the checkpoint.

A trace is a file of JSON lines that shows how the interval of every pair closes. The first line names the run:
`{"schema", "method", "gap", "gammas", "taus", "total"}`. Every other line describes a moment: `{"seconds", "nodes",
"mios", "done", "lower", "upper", "proved", "estimates", "pairs": [[lower, upper], ...]}`. Pairs are listed gamma by
gamma, each gamma with all taus. CV errors are per row, in squared units of the target; an unknown upper bound is null.
`estimates` contains a CV error for every tau at its best gamma, or null. `proved` is `[tau, gamma]`: the best pair is
proved among the taus up to `tau` and the gammas from `gamma` on. Each of the two may be null, and so may the list.
A descent has no grid of gammas. Its first line has `"gammas": null`, and its moments name their `gamma` and the number
of `steps` before. Its pairs are the taus at that gamma, `upper` is the best upper bound so far, and `estimate` is the
CV error of the same pair.

A checkpoint is a NumPy archive that is complete at every moment. It stores the table of subproblems and the position of
the method. Quantities that are cheap or decide nothing (moments, the fit on all rows) are computed again. A key of
data,
folds, grid and method allows only the same search to resume, with any gap, limits and number of threads.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import shlex
import time
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.certificate.read_back import RECORD_BYTES
from sparsecv_mio.errors import BadInput, CorruptStore, SparseCVError
from sparsecv_mio.files import (
    JsonLines,
    check_readable,
    check_unpacked_size,
    check_writable,
    null_if_infinite,
    write_bytes,
)
from sparsecv_mio.search.deadline import REPORT_SHARE
from sparsecv_mio.search.state.cells import Archive, CellTable, select_by_prefix
from sparsecv_mio.search.state.context import Context, SearchState, Snapshot
from sparsecv_mio.search.state.pairs import proved_ends

if TYPE_CHECKING:
    pass


Listener = Callable[[], None]


class Signals:
    """Moments of a search that others may want to see.

    `doing` says in words what comes next; `progressed` follows a portion of work; `safe_point` says that no cell is
    half-written: the state may be stored now.

    Attributes
    ----------
    phase : str
        What the search is doing, as in `trees: tau 3, fold 4 of 10`; empty before it said.
    """

    def __init__(self) -> None:
        self.phase = ""
        self._on_phase: list[Callable[[str], None]] = []
        self._on_progress: list[Listener] = []
        self._on_safe_point: list[Listener] = []

    def listen(
        self,
        progressed: Listener | None = None,
        safe_point: Listener | None = None,
        doing: Callable[[str], None] | None = None,
    ) -> None:
        """Call listeners at these moments from now on.

        Parameters
        ----------
        progressed, safe_point : callable, optional
        doing : callable, optional
            Called with what is being done, in words.
        """
        if doing is not None:
            self._on_phase.append(doing)
        if progressed is not None:
            self._on_progress.append(progressed)
        if safe_point is not None:
            self._on_safe_point.append(safe_point)

    def doing(self, phase: str, done: int = 0, of: int = 0) -> None:
        """Say what is being done now, and how much of it is done where that is counted.

        Parameters
        ----------
        phase : str
            As `trees: tau 3`.
        done, of : int, optional
            Counted from the first; `of` 0 leaves both out.
        """
        self.phase = f"{phase} {done:,} of {of:,}" if of else phase
        for listener in self._on_phase:
            listener(self.phase)

    def notify_progress(self) -> None:
        """Say that a portion of work is done."""
        for listener in self._on_progress:
            listener()

    def safe_point(self) -> None:
        """Say that the state may be stored."""
        for listener in self._on_safe_point:
            listener()


TRACE_EVERY, CHECKPOINT_EVERY = 0.02, 0.5  # seconds between lines and writes at least: long runs keep files small
RESUMED = "resumed"
COMPILING = "compiling kernels for this machine, once"


@dataclass(frozen=True)
class TauProgress:
    """One tau, all gammas: cells that are final, that need no work any more, and all; the interval of its best h.

    `cv_error` is the least CV error found, inf where there is none yet; an `estimate` where not every fold is decided.
    """

    tau: int
    final: int
    pruned: int
    total: int
    lower: float
    upper: float
    cv_error: float = np.inf
    estimate: bool = True


@dataclass(frozen=True)
class Progress:
    """How far a run is: final cells of all, nodes, bounds of the best CV error (per row, file units), seconds.

    `best` is the pair (gamma, tau) that would be reported now, with its `cv_error` (an `estimate` where not every fold
    of it is decided); `pruned` counts the cells that a certified bound of their pair has made needless, `taus` says it
    tau by tau, `stage` says in words what is being done. `proved`: the largest tau up to which, and the least gamma
    from which on, the best pair is proved; None where it is nowhere.
    """

    done: int
    total: int
    nodes: int
    lower: float
    upper: float
    seconds: float
    mios: int = 0
    pruned: int = 0
    best: tuple[float, int] | None = None
    taus: tuple[TauProgress, ...] = ()
    stage: str = ""
    proved: tuple[int | None, float | None] | None = None
    cv_error: float = np.inf
    estimate: bool = True


def measure_progress(state: SearchState, mios: int, stage: str = "") -> Progress:
    """Return the progress of a search over a grid. O(G T K).

    Parameters
    ----------
    state : SearchState
        State of the search.
    mios : int
        Number of MIOs solved so far.
    stage : str
        Description of the present work in words.
    """
    now, cells, context = state.bounds(), state.cells, state.context
    grid, unit = context.grid, context.cv_error_factor
    final = cells.final.sum(axis=(0, 2))
    pruned = np.zeros_like(final)
    if np.isfinite(now.ceiling):
        out = now.lower >= now.ceiling * (1.0 - context.gap)
        out[now.best] = False
        pruned = (~cells.final & out[:, :, None]).sum(axis=(0, 2))
    lower, upper = now.lower.min(axis=0) * unit, now.upper.min(axis=0) * unit
    each = len(grid.gammas) * context.folds.k
    errors_found, open_pairs = now.complete_estimates * unit, now.n_solved_folds < context.folds.k
    at, columns = errors_found.argmin(axis=0), np.arange(len(grid.taus))
    errors, estimates = errors_found[at, columns].tolist(), open_pairs[at, columns].tolist()
    numbers = zip(lower.tolist(), upper.tolist(), errors, estimates, strict=True)
    rows = zip(context.grid.taus.tolist(), final.tolist(), pruned.tolist(), numbers, strict=True)
    g, t = now.reported_pair(context.gap, grid.gammas, grid.taus)
    return Progress(
        done=int(final.sum()),
        total=int(cells.final.size),
        nodes=state.counts.nodes,
        lower=now.floor * unit,
        upper=now.ceiling * unit,
        seconds=context.deadline.seconds,
        mios=mios,
        pruned=int(pruned.sum()),
        best=(float(grid.gammas[g]), int(context.grid.taus[t])),
        taus=tuple(TauProgress(tau, done, out, each, *numbers) for tau, done, out, numbers in rows),
        stage=stage,
        proved=proved_ends(now, context.gap, grid.gammas, context.grid.taus),
        cv_error=float(errors_found[g, t]),
        estimate=bool(open_pairs[g, t]),
    )


class Reporter:
    """Hands reports of a method on; where one takes long to make, less often.

    Parameters
    ----------
    progress : callable
        Called with a :class:`Progress`.
    make : callable
        Returns the progress of the method.
    """

    def __init__(self, progress: Callable[[Progress], None], make: Callable[[], Progress]) -> None:
        self.progress, self.make = progress, make
        self.last: Progress | None = None
        self._due, self._reported = -np.inf, 0.0

    def visit(self) -> None:
        """Report, unless reports would take more than one part in `REPORT_SHARE` of the time."""
        if time.monotonic() >= self._due:
            self.report()

    def report(self) -> None:
        """Report, whenever the last one was."""
        begin = time.monotonic()
        self.last = self.make()
        self.progress(self.last)
        now = self._reported = time.monotonic()
        self._due = now + REPORT_SHARE * (now - begin)

    def say(self, phase: str) -> None:
        """Report the present activity together with the last numbers, without any cost."""
        if self.last is None:
            self.report()
            return
        seconds = self.last.seconds + time.monotonic() - self._reported
        self.progress(replace(self.last, stage=phase, seconds=seconds))


def make_stage_reporter(report: Callable[[Progress], None] | None, stage: str) -> Callable[[Progress], None] | None:
    """Return a reporter that adds to each report the part of a larger run that it belongs to.

    Parameters
    ----------
    report : callable or None
        Function that receives the reports.
    stage : str
        Name of that part in words.
    """
    if report is None:
        return None
    return lambda state: report(replace(state, stage=f"{stage}, {state.stage}" if state.stage else stage))


class Watched(ABC):
    """A search that proceeds step by step, and can be observed, stored and resumed."""

    name: str  # the word by which checkpoints and traces know the method
    context: Context  # what is searched, in which data, and by when
    carried_on = False  # whether it knows all that a checkpoint held
    is_always_valid = False  # True if a checkpoint may be stored before `begin` has ended

    @abstractmethod
    def begin(self) -> None:
        """Take the first steps: supports on all rows, and what they say of every cell."""

    @property
    @abstractmethod
    def is_finished(self) -> bool:
        """True if the certificate is closed, no work is left, or the time is over."""

    @abstractmethod
    def step(self) -> None:
        """Do a portion of work."""

    @abstractmethod
    def snapshot(self) -> Snapshot | None:
        """Return what is known now, for any thread; None before anything is."""

    @abstractmethod
    def progress(self) -> Progress:
        """Return how far the search is."""

    @abstractmethod
    def trace_line(self) -> dict[str, Any]:
        """Return a line of a trace."""

    @abstractmethod
    def checkpoint(self) -> Archive:
        """Return all that a checkpoint holds."""

    @abstractmethod
    def resume(self, stored: Archive) -> None:
        """Go to where `stored` was archived; instead of `begin`.

        Raises
        ------
        CorruptStore
            Where `stored` is not of the same search; nothing is changed then.
        """


def finish_search(search: Watched) -> None:
    """Step until a search is finished."""
    while not search.is_finished:
        search.step()


TRACE_SCHEMA = "sparsecv-trace/1"
DESCENT = "descent"


def make_trace_header(context: Context, method: str) -> dict[str, Any]:
    """Return the first line of a trace; a descent has no grid of gammas."""
    grid, descent = context.grid, method == DESCENT
    gammas = 1 if descent else len(grid.gammas)
    return {
        "schema": TRACE_SCHEMA,
        "method": method,
        "gap": context.gap,
        "gammas": None if descent else grid.gammas.tolist(),
        "taus": context.grid.taus.tolist(),
        "total": gammas * len(grid.taus) * context.folds.k,
    }


def make_trace_line(state: SearchState, mios: int) -> dict[str, Any]:
    """Return the line of the trace that describes the present state of a run over a grid, after `mios` MIOs."""
    now, unit = state.bounds(), state.context.cv_error_factor
    lower, upper = (now.lower * unit).ravel().tolist(), null_if_infinite((now.upper * unit).ravel().tolist())
    return {
        "seconds": state.context.deadline.seconds,
        "nodes": state.counts.nodes,
        "mios": mios,
        "done": int(state.cells.final.sum()),
        "lower": now.floor * unit,
        "upper": null_if_infinite([now.ceiling * unit])[0],
        "proved": proved_ends(now, state.context.gap, state.context.grid.gammas, state.context.grid.taus),
        "estimates": null_if_infinite((now.clipped_estimates.min(axis=0) * unit).tolist()),
        "pairs": [list(ends) for ends in zip(lower, upper, strict=True)],
    }


class Trace:
    """Writes the trace of one run.

    Parameters
    ----------
    path : path
        As of :class:`~sparsecv_mio.files.JsonLines`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.lines = JsonLines(path, "trace")
        self.named = False
        self.due = -math.inf

    @property
    def failure(self) -> SparseCVError | None:
        """Error for which the trace ends early."""
        return self.lines.failure

    def visit(self, run: Watched) -> None:
        """Write a line if it is time to."""
        if time.monotonic() >= self.due:
            self.write(run)

    def write(self, run: Watched) -> None:
        """Write a line."""
        if self.failure is not None:
            return
        begin = time.monotonic()
        if not self.named:
            self.lines.write(make_trace_header(run.context, run.name))
            self.named = True
        self.lines.write(run.trace_line())
        now = time.monotonic()
        self.due = now + max(TRACE_EVERY, REPORT_SHARE * (now - begin))

    def close(self, run: Watched) -> None:
        """Write the last line."""
        self.write(run)
        self.lines.close()


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Return True if a readable file begins as a trace does."""
    if not os.path.isfile(path):
        return False
    with suppress(OSError), open(path, "rb") as stream:
        return TRACE_SCHEMA.encode() in stream.read(200)
    return False


def read_trace(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the first line and the moments of a trace; a last line that was cut off is left out.

    Raises
    ------
    CorruptStore
        If the file cannot be read or is not a trace.
    """
    check_readable(path, "trace", CorruptStore, RECORD_BYTES)
    try:
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().split("\n")
        entries = [json.loads(line) for line in lines[:-1]]
        if entries[0]["schema"] != TRACE_SCHEMA:
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


CHECKPOINT_SCHEMA = "sparsecv-checkpoint/8"
UNREADABLE = (
    ValueError, TypeError, KeyError, EOFError, OverflowError, MemoryError, RecursionError, AttributeError,
    NotImplementedError, OSError, SyntaxError, TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def make_search_key(context: Context, method: str) -> dict[str, Any]:
    """Return the key of a search: data, folds, grid and method; only a search with the same key is resumed."""
    limits = context.data.restrictions
    return {
        "class-weight": context.data.dataset.class_weight,
        "weights": context.data.dataset.weights,
        "data": context.data.dataset.fingerprint,
        "folds": context.folds.digest,
        "scale": str(context.data.scale),
        "intercept": str(context.data.intercept),
        "gamma": context.grid.gammas.tolist(),
        "tau": context.grid.taus.tolist(),
        "method": method,
        "restrictions": json.loads(json.dumps(asdict(limits)))
        if limits
        else None,  # lists, the form in which they are read
    }


def check_place(path: str | os.PathLike[str], option: str) -> None:
    """Raise `BadInput` for a place that cannot hold a checkpoint: it cannot be written, or contains another file."""
    check_writable(path, option)
    if os.path.exists(path) and os.path.getsize(path) > 0:
        with open(path, "rb") as stream:
            start = stream.read(65)
        if not re.fullmatch(rb"[0-9a-f]{64}\n", start):
            raise BadInput(
                f"{option}: {path} is an existing file that is not a checkpoint; it is not overwritten; name a new file"
            )


def refuse_unfinished_checkpoint(path: str | os.PathLike[str]) -> None:
    """Raise `BadInput` where a run is stored that has not ended: a new one would be written over it.

    What is damaged or of another version is written over: nothing carries it on.
    """
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return
    try:
        key, state = read_checkpoint(path)
    except CorruptStore:
        return
    if state and not key.get("ended"):
        raise BadInput(
            f"checkpoint: {path} contains an unfinished run; continue it with --resume {shlex.quote(str(path))}, or "
            "name a new file"
        )


class Checkpoint:
    """Writes the state of a run now and then.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    failure : SparseCVError or None
        Why the last write failed: it costs the file, never the run.

    Raises
    ------
    BadInput
        If the folder does not exist, or the path is not a regular file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_place(path, "checkpoint")
        self.path = Path(path)
        self.due = time.monotonic()
        self.failure: SparseCVError | None = None

    def visit(self, run: Watched) -> None:
        """Write if it is time to."""
        if time.monotonic() >= self.due:
            self.write(run)

    def write(self, run: Watched, begun: bool = True, ended: bool = False) -> None:
        """Write; the file is complete at every moment.

        Parameters
        ----------
        run : Watched
        begun : bool
            False for a run without any results yet; a run that resumes there starts from the beginning.
        ended : bool
            Whether the search came to its end: there is nothing to carry on.
        """
        begin = time.monotonic()
        state: Archive = dict(run.checkpoint()) if begun else {}
        about = (
            {"schema": CHECKPOINT_SCHEMA} | make_search_key(run.context, run.name) | ({"ended": True} if ended else {})
        )
        state["key"] = np.array(json.dumps(about))
        buffer = io.BytesIO()
        arrays: dict[str, Any] = dict(state)  # numpy before 2.2 would store `allow_pickle` among them
        np.savez(buffer, **arrays)
        payload = buffer.getvalue()
        digest = hashlib.sha256(payload).hexdigest().encode()
        try:
            write_bytes(self.path, (digest, b"\n", payload), "checkpoint")
            self.failure = None
        except BadInput as error:
            self.failure = error
        now = time.monotonic()
        self.due = now + max(CHECKPOINT_EVERY, REPORT_SHARE * (now - begin))


Stored = tuple[Mapping[str, Any], Archive]


def stored_cells(context: Context, stored: Stored) -> CellTable | None:
    """Return the cells of a checkpoint of the same question; None where it holds none, or is of another.

    Parameters
    ----------
    context : Context
    stored : mapping and Archive
        As `read_checkpoint` returns them.
    """
    key, state = stored
    cells, table = select_by_prefix("cells", state), SearchState.from_context(context).cells
    if not cells or _difference(key, make_search_key(context, key.get("method", ""))):
        return None
    table.check(cells, context.data.q)
    table.fill(cells)
    return table


def read_checkpoint(path: str | os.PathLike[str]) -> Stored:
    """Return the key and the arrays of a checkpoint.

    Raises
    ------
    CorruptStore
        If the file cannot be read, is damaged or is not a checkpoint.
    """
    check_readable(path, "checkpoint", CorruptStore, RECORD_BYTES)
    try:
        digest, _, payload = Path(path).read_bytes().partition(b"\n")
    except OSError as error:
        raise CorruptStore(f"cannot read checkpoint {path}: {error.strerror}") from None
    if hashlib.sha256(payload).hexdigest().encode() != digest:
        raise CorruptStore(f"checkpoint {path}: damaged, or not a checkpoint")
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
            check_unpacked_size(path, sum(member.file_size for member in archive.zip.infolist()), CorruptStore)
            state = {name: archive[name] for name in archive.files}
        key = json.loads(str(state.pop("key")))
    except UNREADABLE:
        raise CorruptStore(f"checkpoint {path}: damaged, or not a checkpoint") from None
    if not isinstance(key, dict) or key.pop("schema", None) != CHECKPOINT_SCHEMA:
        raise CorruptStore(
            f"checkpoint {path}: not a {CHECKPOINT_SCHEMA} file; if another version of sparsecv-mio wrote it, "
            "continue with that version, or start again without --resume"
        )
    return key, state


def _difference(key: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Say what a stored run differs in from another one; empty where it is the same."""
    for name, value in own.items():
        if name == "weights" and key.get("data") == own["data"]:
            continue  # the same numbers, wherever they stand
        if key.get(name) != value:
            said = f"{name} differ" if name in ("data", "folds", "restrictions", "weights") else f"{name} differs"
            if isinstance(value, str | None) and name != "data" and name != "folds":
                said += f" ({key.get(name) or 'none'} in the checkpoint, {value or 'none'} in this run)"
            return said
    return ""


def check_same(path: str | os.PathLike[str], key: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise `BadInput` where a checkpoint is of another search than one with the key `own`; it says what differs."""
    if said := _difference(key, own):
        raise BadInput(
            f"--resume: checkpoint {path} belongs to another run, its {said}; give the options of that run, or another "
            "file"
        )


def resume(run: Watched, path: str | os.PathLike[str], stored: Stored | None = None) -> bool:
    """Put a run where a checkpoint of the same search left off; False where that had not begun and knew nothing.

    Parameters
    ----------
    run : Watched
    path : path
    stored : mapping and Archive, optional
        What it holds, where that is read already.

    Raises
    ------
    BadInput
        The checkpoint is of another search; the message says what differs.
    CorruptStore
        See `read_checkpoint`.
    """
    key, state = stored or read_checkpoint(path)
    check_same(path, key, make_search_key(run.context, run.name))
    if not state:
        return False
    try:
        run.resume(state)
    except CorruptStore as error:
        raise CorruptStore(f"checkpoint {path}: {error}") from None
    run.carried_on = True
    return True
