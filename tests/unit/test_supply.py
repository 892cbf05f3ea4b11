"""Nothing that a file holds is executed, no shell is started, and what is read has a size that it may have."""

from __future__ import annotations

import ast
import gzip
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from repository import ROOT, syntax

from sparsecv_mio import files
from sparsecv_mio.batch import task_folder
from sparsecv_mio.batch.batch_plan import read_plan
from sparsecv_mio.batch.run_tables import read_table
from sparsecv_mio.batch.task_folder import BatchFolder
from sparsecv_mio.certificate import read_back
from sparsecv_mio.check import proof_file as check_reading
from sparsecv_mio.cli import run
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.search.observers import read_checkpoint

MODULES = ("pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "subprocess", "pty", "ctypes")
CALLS = ("eval", "exec", "compile", "__import__", "os.system", "os.popen", "pd.read_pickle", "pandas.read_pickle")
LOADERS = ("np", "numpy", "joblib")
ALLOWED = {  # and why
    ("arrays.py", "ctypes"): "malloc_trim of the C library that runs already; nothing of a file",
    ("formulation/backends/gurobi.py", "ctypes"): "sigaction of the C library that runs already; nothing of a file",
    ("parallel.py", "pickle"): "slices of work between our own processes on a dask cluster, never a file",
    ("kernels/numba_internals.py", "pickle"): "compiled kernels, from folders into which nobody else can write",
    ("data/readers.py", "load"): "numpy's, with allow_pickle=False",
    ("search/observers.py", "load"): "numpy's, with allow_pickle=False",
}


def used(tree: ast.AST) -> Iterator[str]:
    """Yield names of modules and functions that could run what a file holds, and keywords that let others do so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (name.partition(".")[0] for name in names if name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.Call):
            name, given = ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords}
            if name in CALLS or name.startswith(("os.exec", "os.spawn")):
                yield name
            if name in [f"{one}.load" for one in LOADERS]:
                yield "load" if given.get("allow_pickle") == "False" else f"{name} without allow_pickle=False"
            yield from (f"{word}=True" for word in ("shell", "allow_pickle") if given.get(word, "False") != "False")


def test_no_module_can_run_what_a_file_holds() -> None:
    package = ROOT / "sparsecv_mio"
    found = {
        (str(path.relative_to(package)), name)
        for path in package.rglob("*.py")
        for name in used(syntax(path.read_text(encoding="utf-8")))
    }
    assert found == set(ALLOWED)


class Opened:
    """Makes a folder when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


def test_pickled_objects_in_files_are_not_run(tmp_path: Path) -> None:
    trap = np.array([Opened(tmp_path / "ran")], dtype=object)
    np.savez(tmp_path / "a.npz", X=trap, y=np.zeros(1))
    with pytest.raises(BadInput, match="cannot be read as NPZ"):
        read_dataset(tmp_path / "a.npz", "y")
    buffer = io.BytesIO()
    np.savez(buffer, key=trap)
    digest = hashlib.sha256(buffer.getvalue()).hexdigest().encode()
    (tmp_path / "run.ck").write_bytes(digest + b"\n" + buffer.getvalue())
    with pytest.raises(CorruptStore, match="damaged, or not a checkpoint"):
        read_checkpoint(tmp_path / "run.ck")
    assert not (tmp_path / "ran").exists()


def test_files_that_stand_for_more_than_memory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"a": np.zeros(50_000), "y": np.ones(50_000)}).to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.svm").write_text("1 100000:2\n2 1:3\n")
    (tmp_path / "a.csv").write_text("a,y\n" + "0,1\n" * 50_000)
    results = pd.DataFrame({"data": ["a"] * 50_000, "state": ["done"] * 50_000})
    results.to_parquet(tmp_path / "runs.parquet")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, key=np.array(json.dumps({})), zeros=np.zeros(100_000))
    digest = hashlib.sha256(buffer.getvalue()).hexdigest().encode()
    (tmp_path / "run.ck").write_bytes(digest + b"\n" + buffer.getvalue())
    monkeypatch.setattr(files, "all_memory", lambda: 300_000)
    for name in ("a.parquet", "a.svm", "a.csv"):
        with pytest.raises(BadInput, match="which do not fit in the 300,000 bytes of memory"):
            read_dataset(tmp_path / name, "y")
    with pytest.raises(BadInput, match="do not fit in the 300,000 bytes"):
        read_table(tmp_path / "runs.parquet")
    with pytest.raises(CorruptStore, match="unpacks to more than the 300,000 bytes"):
        read_checkpoint(tmp_path / "run.ck")


def test_records_and_tasks_of_a_size_that_none_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_back, "RECORD_BYTES", 1000)
    monkeypatch.setattr(task_folder, "RECORD_BYTES", 1000)
    record = tmp_path / "record.json"
    record.write_text("x" * 1001)
    with pytest.raises(CorruptStore, match="its 1,001 bytes exceed the limit of 1,000 bytes"):
        read_back.read_record(record)
    place = BatchFolder(tmp_path / "out")
    place.make()
    place.place("a").write_text("x" * 1001)
    with pytest.raises(CorruptStore, match="task file .* its 1,001 bytes exceed the limit of 1,000 bytes"):
        place.read("a")
    (place.path / "plan.json").write_text("x" * 1001)
    with pytest.raises(CorruptStore, match="plan.json.* its 1,001 bytes exceed the limit of 1,000 bytes"):
        place.read_planned_tasks()
    place.place("b").write_text("[" * 900)
    with pytest.raises(CorruptStore, match="is damaged"):
        place.read("b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a" + ".a" * 60 + " = 1", "more than 50 parts"),
        ("a" + " . 'a' " * 60 + " = 1", "more than 50 parts"),
        ("a = " + "[" * 5000, "lists that are nested too deeply"),
        ("[[data]]\ndesign = 'toeplitz'\nn = 1000000000\np = 1000000\n", "exceed the memory"),
    ],
)
def test_plans_that_would_take_all_memory(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        read_plan(tmp_path / "plan.toml")
    assert "\n" not in str(caught.value)


def test_proofs_and_their_data_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_reading, "LONGEST_LINE", 1000)
    monkeypatch.setattr(check_reading, "DATA_NUMBERS", 1000)
    (tmp_path / "long.proof").write_bytes(gzip.compress(b"[" + b"0," * 5000 + b"0]\n"))
    with pytest.raises(check_reading.Unreadable, match="the proof is cut off, or exceeds the size limit"):
        list(check_reading.lines_of_proof(str(tmp_path / "long.proof")))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,y\n" + b"0,1\n" * 5000))
    with pytest.raises(check_reading.Unreadable, match="more than 1,000 numbers"):
        check_reading.table(str(tmp_path / "a.csv.gz"), ["a"], "y")
    assert run(["check", str(tmp_path / "long.proof"), str(tmp_path / "a.csv.gz")]) == 2


def pins(name: str) -> dict[str, tuple[str, list[str]]]:
    """Return version and hashes of every package in a lock, whose lines are nothing else."""
    found: dict[str, tuple[str, list[str]]] = {}
    text = re.sub(r"^ *#.*\n", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        release, *hashes = re.split(r" +(?=--hash=)", line.rstrip())
        package, version = release.partition(" ;")[0].split("==")  # a marker says on which systems it is needed
        assert hashes and all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", one) for one in hashes), line
        found[package] = version, hashes
    return found


def test_every_release_of_the_locks_has_hashes_and_no_host_is_named() -> None:
    ours, peers = pins("requirements.lock"), pins("requirements-peers.lock")
    assert len(ours) > 90 and {"numpy", "numba", "setuptools"} <= set(ours) and {"abess", "skglm"} <= set(peers)
    assert all(ours[name] == peers[name] for name in ours.keys() & peers.keys())
    for lock in ("requirements.lock", "requirements-peers.lock"):
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert not re.search(r"://|@|--(extra-)?index|--find-links|--trusted", text)
    assert len(ours["numpy"][1]) > 20  # of all systems and processors, not of those of one machine
