"""A checkpoint with a valid digest whose arrays are missing, misshapen or out of range is refused in one line."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import problems
import pytest
from numpy.typing import NDArray

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.search import observers
from sparsecv_mio.search.api import cross_validate

Arrays = dict[str, NDArray[Any]]
METHODS = ("rounds", "joint", "algorithm1", "descent")


def small() -> Dataset:
    return problems.linear(0, 24, 4, {0: 1.0})


def solve(method: str, **more: Any) -> Any:
    data = small()
    grid = {"gammas": [0.1, 1.0], "taus": [1, 2]}
    return cross_validate(data, make_folds("3", data), method=method, threads=1, gap=0.0, **grid, **more)


@cache
def good_checkpoint(method: str) -> Arrays:
    """Return the arrays that a method stores."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "good.ck"
        solve(method, checkpoint=path)
        with np.load(io.BytesIO(path.read_bytes().partition(b"\n")[2])) as archive:
            return dict(archive)


def store(path: Path, arrays: Arrays) -> Path:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    payload = buffer.getvalue()
    path.write_bytes(hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
    return path


def more_of(array: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([array.reshape(-1), array.reshape(-1)[:1], array.reshape(-1)[:1]])


CHANGES: dict[str, Callable[[NDArray[Any]], NDArray[Any] | None]] = {
    "missing": lambda array: None,
    "longer": more_of,
    "deeper": lambda array: np.stack([array, array]),
    "text": lambda array: np.full(array.shape, "x"),
    "complex": lambda array: np.zeros(array.shape, dtype=complex),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", METHODS)
def test_every_array_is_checked(method: str, change: str, tmp_path: Path) -> None:
    good = dict(good_checkpoint(method))
    assert len(good) >= 12
    for name, array in good.items():
        altered = CHANGES[change](array)
        if altered is not None and altered.shape == array.shape and altered.dtype == array.dtype:
            continue  # text that is text already is another test's
        forged = {key: value for key, value in good.items() if key != name}
        if altered is not None:
            forged[name] = altered
        try:
            solve(method, resume=store(tmp_path / "forged.ck", forged))
        except (CorruptStore, BadInput) as error:
            assert "checkpoint" in str(error) and "\n" not in str(error)
        else:  # a longer list that means the same, or accounts, which checkpoints of before have not
            same = change == "longer" and name.endswith(("ties", "tie_width"))
            assert same or (change == "missing" and name.endswith("accounts")), name


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        ("cells.lower", lambda a: np.full_like(a, np.nan), "lower"),
        ("cells.lower", lambda a: a - 1e9, "lower"),
        ("cells.lower", lambda a: a + 1e9, "lower"),
        ("cells.nominal", lambda a: np.full_like(a, np.nan), "nominal"),
        ("cells.nominal", lambda a: a * 1.001, "nominal"),
        ("cells.nominal", lambda a: a * 0, "nominal"),
        ("cells.support", lambda a: a + 1000, "support"),
        ("cells.support", lambda a: a - 1000, "support"),
        ("cells.pool_columns", lambda a: a + 7, "pool_columns"),
        ("cells.pool_columns", lambda a: a - 7, "pool_columns"),
        ("cells.pool_sizes", lambda a: a * 0, "pool_sizes"),
        ("cells.pool_sizes", lambda a: a - 1, "pool_sizes"),
        ("cells.pool_sizes", lambda a: a[:0], "support"),
        ("cells.ties", lambda a: np.array([[9, 0, 0]]), "ties"),
        ("run.round", lambda a: np.array(-1), "round"),
        ("run.n_mios", lambda a: np.array(-1), "n_mios"),
    ],
)
def test_numbers_out_of_range_are_named(
    name: str, change: Callable[[NDArray[Any]], NDArray[Any]], named: str, tmp_path: Path
) -> None:
    arrays = dict(good_checkpoint("rounds"))
    arrays[name] = change(arrays[name])
    with pytest.raises(CorruptStore, match=named):
        solve("rounds", resume=store(tmp_path / "forged.ck", arrays))


@pytest.mark.parametrize("journal", ["", "[]", "{}", "null", "[" * 5000, '{"steps": [{}]}', '{"steps": 7}'])
def test_a_journal_that_is_none(journal: str, tmp_path: Path) -> None:
    arrays = dict(good_checkpoint("descent")) | {"journal": np.array(journal)}
    with pytest.raises(CorruptStore, match="journal|JSON"):
        solve("descent", resume=store(tmp_path / "forged.ck", arrays))


@pytest.mark.parametrize("trial", [None, ["line", [0.1], [1], False], ["gamma", [0.1], [1, 2], False]])
def test_a_journal_of_moves_from_nowhere(trial: Any, tmp_path: Path) -> None:
    arrays = dict(good_checkpoint("descent"))
    journal = json.loads(str(arrays["journal"])) | {"trial": trial, "over": False}
    del journal["here"]
    arrays["journal"] = np.array(json.dumps(journal))
    with pytest.raises(CorruptStore, match="journal"):
        solve("descent", resume=store(tmp_path / "forged.ck", arrays))


def test_a_declared_shape_without_its_numbers(tmp_path: Path) -> None:
    """The header of an array says 10^15 numbers; nothing of that size is made."""
    import zipfile

    solve("rounds", checkpoint=tmp_path / "good.ck")
    payload = (tmp_path / "good.ck").read_bytes().partition(b"\n")[2]
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(buffer, "w") as new:
        for member in old.infolist():
            text = old.read(member)
            if member.filename == "cells.lower.npy":
                head = io.BytesIO()
                np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
                text = head.getvalue()
            new.writestr(member.filename, text)
    forged = buffer.getvalue()
    file = tmp_path / "forged.ck"
    file.write_bytes(hashlib.sha256(forged).hexdigest().encode() + b"\n" + forged)
    with pytest.raises(CorruptStore, match="damaged"):
        observers.read_checkpoint(file)


@pytest.mark.parametrize("place", ["/dev/zero", "/"])
def test_only_files_are_resumed(place: str) -> None:
    with pytest.raises((CorruptStore, BadInput), match="it is a|is a folder"):
        observers.read_checkpoint(place)
