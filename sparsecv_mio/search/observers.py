"""Output of a running search: signals, progress, the trace and the checkpoint.

A trace is a file of JSON lines that shows how the interval of every pair (tau, gamma) becomes narrower. The first line
describes the run by the fields `{"schema", "method", "gap", "gammas", "taus", "total"}`. Every other line describes the
state of the search at one moment by the fields `{"seconds", "nodes", "mios", "done", "lower", "upper", "proved",
"estimates", "pairs", "stage", "begun"}`. The entries of `pairs` are `[lower, upper]`. Pairs are sorted by gamma, then
by tau. CV errors are per row, in squared units of the target; an unknown upper bound is null. `estimates` contains, for
every tau, the smallest estimate of the CV error over gamma, or null if it is unknown. `proved` is `[tau, gamma]`: the
best pair is certified among the pairs of size at most `tau` or of gamma at least `gamma`. Each of the two numbers may
be null, and the list may be null too. `stage` describes the last step that began. `begun` lists all steps that began
since the previous line, each with its order, its description, and its smallest and largest gamma.

Every line describes all pairs. A line is written only after the results of some steps are stored. The time between two
lines is at least 0.02 s, and long enough that writing takes at most 5% of the time. One line may therefore describe
several steps.

A search by descent has no grid of gammas. The first line of the trace of a descent has `"gammas": null`. Each other
line has the `gamma` of the next step and the number of earlier `steps`. The list `pairs` has the pairs with this gamma,
sorted by tau. `upper` is the smallest upper bound found so far, and `estimate` is the estimated CV error of the pair
with this upper bound.

A checkpoint is a NumPy archive, and its file is always complete. A checkpoint stores the table of subproblems and the
progress of the method. A resumed search computes the cheap parts again (moments, the full-data fit). The checkpoint has
a key, computed from data, folds, grid and method. Only a search with the same key can be resumed from the checkpoint;
gap, limits and number of threads may differ.
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
from typing import Any, NamedTuple

import numpy as np

from sparsecv_mio.certificate.read_back import RECORD_BYTES
from sparsecv_mio.errors import BadInput, CorruptStore, MissingFile, SparseCVError
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


class BegunStep(NamedTuple):
    """A step that begins: its order, description, smallest and largest gamma, and maximum number of nodes of a tree."""

    order: str
    step: str
    gammas: tuple[float, float]
    node_limit: int


class Signals:
    """The signals of a running search to its listeners: a step that begins, and the end of a turn.

    At the end of a turn no subproblem is half-written, so the state may be stored.

    Attributes
    ----------
    stage : str
        Description of the present step, for example `full-data trees: tau 3`; empty before the first step.
    """

    def __init__(self) -> None:
        self.stage = ""
        self._on_step: list[Callable[[BegunStep], None]] = []
        self._on_turn: list[Callable[[], None]] = []

    def listen(self, step: Callable[[BegunStep], None] | None = None, turn: Callable[[], None] | None = None) -> None:
        """Add a function that is called with each step that begins, or one that is called after each turn."""
        self._on_step += [] if step is None else [step]
        self._on_turn += [] if turn is None else [turn]

    def begin_step(self, begun: BegunStep) -> None:
        """Send a step that begins."""
        self.stage = begun.step
        for listener in self._on_step:
            listener(begun)

    def end_turn(self) -> None:
        """Send the signal that a turn has ended."""
        for listener in self._on_turn:
            listener()


TRACE_EVERY, CHECKPOINT_EVERY = 0.02, 0.5  # minimum seconds between two lines of a trace, and between two checkpoints
RESUMED = "resumed"
COMPILING = "compiling kernels, once for each kind of problem"


@dataclass(frozen=True)
class TauProgress:
    """The progress of one tau over all gammas.

    Attributes
    ----------
    tau : int
        Size.
    final, pruned, total : int
        Numbers of subproblems: final, excluded by the bound of their pair, and in all.
    lower, upper : float
        Bounds on the smallest CV error of the tau.
    cv_error : float
        Smallest CV error found; inf if none is known.
    estimate : bool
        True if some fold of the pair with this CV error is not solved.
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
    """The progress of a run.

    Attributes
    ----------
    done, total : int
        Numbers of subproblems: final, and in all.
    nodes : int
        Number of nodes of trees.
    lower, upper : float
        Bounds on the minimum CV error, per row, in the units of the file.
    seconds : float
        Seconds since the start.
    mios : int
        Number of mixed-integer problems solved.
    pruned : int
        Number of subproblems that are excluded by the bound of their pair.
    best : tuple of (float, int), optional
        Pair (gamma, tau) that would be reported now.
    taus : tuple of TauProgress
        Progress by tau.
    stage : str
        Description of the present step.
    proved : tuple, optional
        Largest tau up to which, and smallest gamma from which, the best pair is certified; each may be None.
    cv_error : float
        CV error of the best pair; inf if it is unknown.
    estimate : bool
        True if some fold of the best pair is not solved.
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
    pruned = (~cells.final & now.excluded(context.gap)[:, :, None]).sum(axis=(0, 2))
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
    """Reports the progress of a search; the more seldom, the longer a report takes to build.

    Parameters
    ----------
    progress : callable
        Function that receives a :class:`Progress`.
    make : callable
        Function that builds the progress of the search.
    """

    def __init__(self, progress: Callable[[Progress], None], make: Callable[[], Progress]) -> None:
        self.progress, self.make = progress, make
        self.last: Progress | None = None
        self._due, self._reported = -np.inf, 0.0

    def visit(self) -> None:
        """Report, unless reports would take more than a share `1 / REPORT_SHARE` of the time."""
        if time.monotonic() >= self._due:
            self.report()

    def report(self) -> None:
        """Report at once, however recent the last report is."""
        begin = time.monotonic()
        self.last = self.make()
        self.progress(self.last)
        now = self._reported = time.monotonic()
        self._due = now + REPORT_SHARE * (now - begin)

    def say(self, begun: BegunStep) -> None:
        """Report that a step begins, and repeat the numbers of the last report, which costs nothing."""
        if self.last is None:
            self.report()
            return
        seconds = self.last.seconds + time.monotonic() - self._reported
        self.progress(replace(self.last, stage=begun.step, seconds=seconds))


def make_stage_reporter(report: Callable[[Progress], None] | None, stage: str) -> Callable[[Progress], None] | None:
    """Return a reporter that adds the name of a part of a larger run to each report.

    Parameters
    ----------
    report : callable or None
        Function that receives the reports.
    stage : str
        Name of the part.
    """
    if report is None:
        return None
    return lambda state: report(replace(state, stage=f"{stage}, {state.stage}" if state.stage else stage))


class Watched(ABC):
    """A search that proceeds step by step, and can be observed, stored and resumed.

    Attributes
    ----------
    name : str
        Name of the method in checkpoints and traces.
    context : Context
        Data, grid, folds and deadline of the search.
    carried_on : bool
        True if the search was resumed from a checkpoint.
    """

    name: str
    context: Context
    carried_on = False

    @property
    @abstractmethod
    def is_finished(self) -> bool:
        """True if the goal is reached, no work is left, or the time is over."""

    @abstractmethod
    def take_turn(self) -> None:
        """Do one portion of the work."""

    def run_to_end(self) -> None:
        """Take turns until the search is finished."""
        while not self.is_finished:
            self.take_turn()

    @abstractmethod
    def score_reported_pair(self) -> None:
        """Score the pair to report in every fold if the limit ended the search before."""

    @abstractmethod
    def snapshot(self, over: bool = False) -> Snapshot | None:
        """Return a copy of the present results, which any thread may read; None before the first result.

        Parameters
        ----------
        over : bool
            True if nothing will be written any more; subproblems are then not copied.
        """

    @abstractmethod
    def progress(self) -> Progress:
        """Return the progress of the search."""

    @abstractmethod
    def trace_line(self) -> dict[str, Any]:
        """Return a line of a trace."""

    @abstractmethod
    def checkpoint(self) -> Archive:
        """Return the content of a checkpoint."""

    @abstractmethod
    def resume(self, stored: Archive) -> None:
        """Restore the state of a checkpoint, before the first step.

        Raises
        ------
        CorruptStore
            If `stored` belongs to another search; the state is then unchanged.
        """


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
        File of the trace, see :class:`~sparsecv_mio.files.JsonLines`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.lines = JsonLines(path, "trace")
        self.named = False
        self.due = -math.inf
        self.begun: list[BegunStep] = []  # since the last line

    @property
    def failure(self) -> SparseCVError | None:
        """Error that ended the trace; None if there was none."""
        return self.lines.failure

    def visit(self, run: Watched) -> None:
        """Write a line if the next one is due."""
        if time.monotonic() >= self.due:
            self.write(run)

    def write(self, run: Watched) -> None:
        """Write a line, unless the record is built already: the trace then ends before work that the record lacks."""
        if self.failure is not None or (self.named and run.context.deadline.abandoned.is_set()):
            return
        begin = time.monotonic()
        if not self.named:
            self.lines.write(make_trace_header(run.context, run.name))
            self.named = True
        self.lines.write(run.trace_line() | {"begun": [begun._asdict() for begun in self.begun]})
        self.begun.clear()
        now = time.monotonic()
        self.due = now + max(TRACE_EVERY, REPORT_SHARE * (now - begin))

    def close(self, run: Watched) -> None:
        """Write the last line."""
        self.write(run)
        self.lines.close()


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Return True if a file can be read and begins like a trace."""
    if not os.path.isfile(path):
        return False
    with suppress(OSError), open(path, "rb") as stream:
        return TRACE_SCHEMA.encode() in stream.read(200)
    return False


def read_trace(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the first line and the moments of a trace, without a last line that is incomplete.

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
    """Raise `BadInput` if a checkpoint cannot be written to a path, or if the path is a file of another kind."""
    check_writable(path, option)
    if os.path.exists(path) and os.path.getsize(path) > 0:
        with open(path, "rb") as stream:
            start = stream.read(65)
        if not re.fullmatch(rb"[0-9a-f]{64}\n", start):
            raise BadInput(
                f"{option}: {path} is an existing file that is not a checkpoint, or is damaged; it is not overwritten; "
                f"{'omit --resume to start again' if option == '--resume' else 'name a new file'}"
            )


def refuse_unfinished_checkpoint(path: str | os.PathLike[str]) -> None:
    """Raise `BadInput` if a file contains the checkpoint of an unfinished run, which a new run would overwrite.

    A damaged checkpoint, or one of another version, may be overwritten because no run can resume it.
    """
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return
    try:
        key, _ = read_checkpoint(path)
    except CorruptStore:
        return
    if not key.get("ended"):
        raise BadInput(
            f"checkpoint: {path} contains an unfinished run; continue it with --resume {shlex.quote(str(path))}, or "
            "name a new file"
        )


class Checkpoint:
    """Writes the state of a run at intervals.

    Parameters
    ----------
    path : path
        File of the checkpoint.

    Attributes
    ----------
    failure : SparseCVError or None
        Error of the last write, which does not end the run; None if the write succeeded.
    has_ended : bool
        True if the search has ended, so that no run needs to resume it.

    Raises
    ------
    BadInput
        If the folder does not exist, or the path is not a regular file.
    """

    has_ended = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_place(path, "checkpoint")
        self.path = Path(path)
        self.due = time.monotonic()
        self.failure: SparseCVError | None = None

    def visit(self, run: Watched) -> None:
        """Write if the next checkpoint is due, unless the limit has expired: a last one is written with the answer."""
        if time.monotonic() >= self.due and not run.context.deadline.has_expired():
            self.write(run)

    def write(self, run: Watched) -> None:
        """Write the checkpoint of a search; the file is complete at every moment."""
        begin = time.monotonic()
        state: Archive = dict(run.checkpoint())
        about = {"schema": CHECKPOINT_SCHEMA} | make_search_key(run.context, run.name)
        about |= {"ended": True} if self.has_ended else {}
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
    """Return the table of subproblems of a checkpoint; None if it has no table or belongs to another question.

    Parameters
    ----------
    context : Context
        Data, grid and folds of the question.
    stored : mapping and Archive
        Key and arrays, as `read_checkpoint` returns them.
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
    if not os.path.exists(path):
        raise MissingFile(f"checkpoint {path}: does not exist; give an existing file, or omit --resume to start again")
    check_readable(path, "checkpoint", CorruptStore, RECORD_BYTES)
    try:
        digest, _, payload = Path(path).read_bytes().partition(b"\n")
    except OSError as error:
        raise CorruptStore(
            f"cannot read checkpoint {path}: {error.strerror}; give an existing file, or omit --resume"
        ) from None
    if hashlib.sha256(payload).hexdigest().encode() != digest:
        raise CorruptStore(f"checkpoint {path}: damaged, or not a checkpoint; omit --resume to start again")
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
            check_unpacked_size(path, sum(member.file_size for member in archive.zip.infolist()), CorruptStore)
            state = {name: archive[name] for name in archive.files}
        key = json.loads(str(state.pop("key")))
    except UNREADABLE:
        raise CorruptStore(f"checkpoint {path}: damaged, or not a checkpoint; omit --resume to start again") from None
    if not isinstance(key, dict) or key.pop("schema", None) != CHECKPOINT_SCHEMA:
        raise CorruptStore(
            f"checkpoint {path}: not a {CHECKPOINT_SCHEMA} file; if another version of sparsecv-mio wrote it, "
            "continue with that version, or start again without --resume"
        )
    return key, state


def _difference(key: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Return a description of the first difference of two keys; empty if there is none."""
    for name, value in own.items():
        if name == "weights" and key.get("data") == own["data"]:
            continue  # the fingerprint of the data includes the weights
        if key.get(name) != value:
            difference = f"{name} differ" if name in ("data", "folds", "restrictions", "weights") else f"{name} differs"
            if isinstance(value, str | None) and name != "data" and name != "folds":
                difference += f" ({key.get(name) or 'none'} in the checkpoint, {value or 'none'} in this run)"
            return difference
    return ""


def check_same(path: str | os.PathLike[str], key: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise `BadInput` if the key of a checkpoint differs from the key `own` of a search; the message names how."""
    if difference := _difference(key, own):
        raise BadInput(
            f"--resume: checkpoint {path} belongs to another run: its {difference}; give the options of that run, or "
            "another file"
        )


def resume(run: Watched, path: str | os.PathLike[str], stored: Stored | None = None) -> None:
    """Restore the state of a search from a checkpoint.

    Parameters
    ----------
    run : Watched
        Search to resume.
    path : path
        File of the checkpoint.
    stored : mapping and Archive, optional
        Key and arrays of the checkpoint; read from the file by default.

    Raises
    ------
    BadInput
        If the checkpoint belongs to another search; the message names the difference.
    CorruptStore
        If the checkpoint cannot be read, see `read_checkpoint`.
    """
    key, state = stored or read_checkpoint(path)
    check_same(path, key, make_search_key(run.context, run.name))
    try:
        run.resume(state)
    except CorruptStore as error:
        raise CorruptStore(f"checkpoint {path}: {error}") from None
    run.carried_on = True
