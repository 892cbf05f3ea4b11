"""A run on disk: what is known of every cell, written so that the file is complete at every moment.

A checkpoint is a NumPy archive. It holds the table of cells and where the method stands; what is cheap or decides
nothing (moments, the fit on all rows) is computed again. It carries a key of the data, folds, grid and method: only the
same question is resumed, with any gap, limits and threads.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.errors import BadInput, CorruptStore

if TYPE_CHECKING:
    from sparsecv_mio.search.run import CrossValidation

SCHEMA = "sparsecv-checkpoint/1"
EVERY = 0.5  # seconds between two writes, or more where a write takes long
SHARE = 20.0  # a write may take one part in so many of the time
TABLE = ("lower", "upper", "nominal", "tie", "rounding", "decided", "final", "branched", "support")

State = dict[str, NDArray[Any]]


def key_of(run: CrossValidation) -> dict[str, Any]:
    """What must be the same for a run to be carried on."""
    data, grid = run.data, run.grid
    return {
        "data": data.dataset.fingerprint,
        "folds": run.folds.digest,
        "scale": str(data.scale),
        "intercept": str(data.intercept),
        "gamma": grid.gammas.tolist(),
        "tau": grid.taus.tolist(),
        "method": run.name,
    }


class Checkpoint:
    """Writes the state of a run now and then.

    Parameters
    ----------
    path : path
    every : float
        Least seconds between two writes.

    Raises
    ------
    BadInput
        The file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], every: float = EVERY) -> None:
        self.path, self.every = Path(path), every
        self.due = time.monotonic()

    def visit(self, run: CrossValidation) -> None:
        """Write if it is time to."""
        if time.monotonic() >= self.due:
            self.write(run)

    def write(self, run: CrossValidation) -> None:
        """Write: temporary file, fsync, rename."""
        begin = time.monotonic()
        supports = run.cells.pool.supports
        state: State = {f"cells.{name}": getattr(run.cells, name) for name in TABLE}
        state["pool.size"] = np.array([len(s) for s in supports], dtype=np.int64)
        state["pool.columns"] = np.concatenate(supports).astype(np.int64)
        state |= {f"run.{name}": value for name, value in run.state().items()}
        buffer = io.BytesIO()
        state["key"] = np.array(json.dumps({"schema": SCHEMA} | key_of(run)))
        np.savez(buffer, allow_pickle=False, **state)
        payload = buffer.getvalue()
        digest = hashlib.sha256(payload).hexdigest().encode()
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        try:
            with open(temporary, "xb") as stream:
                stream.write(digest + b"\n" + payload)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise BadInput(f"cannot write checkpoint {self.path}: {error.strerror}") from None
        now = time.monotonic()
        self.due = now + max(self.every, SHARE * (now - begin))


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[Mapping[str, Any], State]:
    """The key and the arrays of a checkpoint.

    Raises
    ------
    CorruptStore
        The file cannot be read, is damaged or is no checkpoint.
    """
    try:
        digest, _, payload = Path(path).read_bytes().partition(b"\n")
    except OSError as error:
        raise CorruptStore(f"cannot read checkpoint {path}: {error.strerror}") from None
    if hashlib.sha256(payload).hexdigest().encode() != digest:
        raise CorruptStore(f"checkpoint {path}: damaged, or not a checkpoint")
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
            state = {name: archive[name] for name in archive.files}
        key = json.loads(str(state.pop("key")))
    except (ValueError, KeyError, zipfile.BadZipFile):
        raise CorruptStore(f"checkpoint {path}: damaged, or not a checkpoint") from None
    if key.pop("schema", None) != SCHEMA:
        raise CorruptStore(f"checkpoint {path}: not a {SCHEMA} file")
    return key, state


def resume(run: CrossValidation, path: str | os.PathLike[str]) -> None:
    """Put a run where a checkpoint of the same question left off; instead of `begin`.

    Raises
    ------
    BadInput
        The checkpoint is of another question; the message says what differs.
    CorruptStore
        See `read_checkpoint`.
    """
    key, state = read_checkpoint(path)
    for name, value in key_of(run).items():
        if key.get(name) != value:
            raise BadInput(f"--resume: checkpoint {path} is of another run, its {name} differs")
    run.prepare()
    for name in TABLE:
        getattr(run.cells, name)[...] = state[f"cells.{name}"]
    ends = np.cumsum(state["pool.size"])
    for support in np.split(state["pool.columns"], ends[:-1]):
        run.cells.pool.number(support)
    prefix = "run."
    run.restore({name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)})
