"""A run on disk: what is known of every cell, written so that the file is complete at every moment.

A checkpoint is a NumPy archive. It holds the table of cells and where the method stands; what is cheap or decides
nothing (moments, the fit on all rows) is computed again. It carries a key of the data, folds, grid and method: only a
search of the same ones is resumed, with any gap, limits and threads.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import time
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from sparsecv_mio.errors import BadInput, CorruptStore, SparseCVError
from sparsecv_mio.files import check_readable, check_unpacked, check_writable, write_bytes
from sparsecv_mio.search.observers.watched import Watched
from sparsecv_mio.search.state.cells import Archive

SCHEMA = "sparsecv-checkpoint/7"
EVERY = 0.5  # seconds between two writes, or more where a write takes long
SHARE = 20.0  # a write may take one part in so many of the time
UNREADABLE = (
    ValueError, TypeError, KeyError, EOFError, OverflowError, MemoryError, RecursionError, AttributeError,
    NotImplementedError, OSError, SyntaxError, TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
MOST_BYTES = 1 << 36  # of the file


def key_of(run: Watched) -> dict[str, Any]:
    """Return what tells searches apart: data, folds, grid and method; only a search of the same ones is resumed."""
    context, asked = run.context, run.context.data.restrictions
    return {
        "data": context.data.dataset.fingerprint,
        "folds": context.folds.digest,
        "scale": str(context.data.scale),
        "intercept": str(context.data.intercept),
        "gamma": context.grid.gammas.tolist(),
        "tau": context.grid.taus.tolist(),
        "method": run.name,
        "restrictions": json.loads(json.dumps(asdict(asked))) if asked else None,  # lists, as they are read back
    }


def check_place(path: str | os.PathLike[str], option: str) -> None:
    """Raise `BadInput` for a place that cannot hold a checkpoint: there is no writing, or another file stands there."""
    check_writable(path, option)
    if os.path.exists(path) and os.path.getsize(path) > 0:
        with open(path, "rb") as stream:
            start = stream.read(65)
        if not re.fullmatch(rb"[0-9a-f]{64}\n", start):
            raise BadInput(f"{option}: {path} is no checkpoint and is not written over, name a new file")


class Checkpoint:
    """Writes the state of a run now and then.

    Parameters
    ----------
    path : path
    every : float
        Least seconds between two writes.

    Attributes
    ----------
    failure : SparseCVError or None
        Why the last write failed: it costs the file, never the run.

    Raises
    ------
    BadInput
        There is no folder for the file, or what stands there is no regular file.
    """

    def __init__(self, path: str | os.PathLike[str], every: float = EVERY) -> None:
        check_place(path, "checkpoint")
        self.path, self.every = Path(path), every
        self.due = time.monotonic()
        self.failure: SparseCVError | None = None

    def visit(self, run: Watched) -> None:
        """Write if it is time to."""
        if time.monotonic() >= self.due:
            self.write(run)

    def write(self, run: Watched, begun: bool = True) -> None:
        """Write; the file is complete at every moment.

        Parameters
        ----------
        run : Watched
        begun : bool
            False for a run of which nothing is known yet: one that resumes there begins anew.
        """
        begin = time.monotonic()
        state: Archive = dict(run.archive()) if begun else {}
        state["key"] = np.array(json.dumps({"schema": SCHEMA} | key_of(run)))
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **state)
        payload = buffer.getvalue()
        digest = hashlib.sha256(payload).hexdigest().encode()
        try:
            write_bytes(self.path, (digest, b"\n", payload), "checkpoint")
            self.failure = None
        except BadInput as error:
            self.failure = error
        now = time.monotonic()
        self.due = now + max(self.every, SHARE * (now - begin))


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[Mapping[str, Any], Archive]:
    """Return the key and the arrays of a checkpoint.

    Raises
    ------
    CorruptStore
        The file cannot be read, is damaged or is no checkpoint.
    """
    check_readable(path, "checkpoint", CorruptStore, MOST_BYTES)
    try:
        digest, _, payload = Path(path).read_bytes().partition(b"\n")
    except OSError as error:
        raise CorruptStore(f"cannot read checkpoint {path}: {error.strerror}") from None
    if hashlib.sha256(payload).hexdigest().encode() != digest:
        raise CorruptStore(f"checkpoint {path}: damaged, or not a checkpoint")
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
            check_unpacked(path, sum(member.file_size for member in archive.zip.infolist()), CorruptStore)
            state = {name: archive[name] for name in archive.files}
        key = json.loads(str(state.pop("key")))
    except UNREADABLE:
        raise CorruptStore(f"checkpoint {path}: damaged, or not a checkpoint") from None
    if not isinstance(key, dict) or key.pop("schema", None) != SCHEMA:
        raise CorruptStore(f"checkpoint {path}: not a {SCHEMA} file")
    return key, state


def resume(run: Watched, path: str | os.PathLike[str]) -> bool:
    """Put a run where a checkpoint of the same search left off; False where that had not begun and knew nothing.

    Raises
    ------
    BadInput
        The checkpoint is of another search; the message says what differs.
    CorruptStore
        See `read_checkpoint`.
    """
    key, state = read_checkpoint(path)
    for name, value in key_of(run).items():
        if key.get(name) != value:
            raise BadInput(f"--resume: checkpoint {path} is of another run, its {name} differs")
    if not state:
        return False
    try:
        run.resume(state)
    except CorruptStore as error:
        raise CorruptStore(f"checkpoint {path}: {error}") from None
    return True
