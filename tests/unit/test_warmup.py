"""Compilation ahead: what `sparsecv warmup` covers, and that no kernel is compiled for two types."""

from __future__ import annotations

import ast
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from repository import syntax

from sparsecv_mio import kernels
from sparsecv_mio.batch import one_task
from sparsecv_mio.search import first_use
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.warmup import STEPS, declared_kernels

VERSIONS = """
import sys
from importlib import import_module
from pkgutil import iter_modules
from numba.core.dispatcher import Dispatcher
from sparsecv_mio import kernels
from sparsecv_mio.warmup import warm_up
warm_up()
for name in (f"sparsecv_mio.kernels.{module.name}" for module in iter_modules(kernels.__path__)):
    for function in vars(import_module(name)).values():
        if isinstance(function, Dispatcher) and function.py_func.__module__ == name:
            if function.targetoptions.get("inline") == "always":  # compiled where it is called
                continue
            print(len(function.signatures), f"{name}.{function.py_func.__name__}", *function.signatures)
"""
USED = """
import contextlib, io, json, sys
import numpy as np
from importlib import import_module
from types import ModuleType
from sparsecv_mio.kernels.kernel_cache import KernelCache
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.warmup import declared_kernels

def callees(name):
    "The kernels that a kernel calls by the words in its code, and those that they call."
    module, _, own = name.partition(".")
    function = getattr(import_module(f"sparsecv_mio.kernels.{module}"), own).py_func
    words = function.__code__.co_names
    values = [function.__globals__.get(word) for word in words]
    values += [getattr(value, word, None) for value in values if isinstance(value, ModuleType) for word in words]
    direct = {
        f"{value.py_func.__module__.rpartition('.')[2]}.{value.py_func.__qualname__}"
        for value in values if hasattr(value, "py_func") and hasattr(value, "_cache")
    }
    return direct.union(*(callees(value) for value in direct if value != name))

loaded, kept = set(), []
load, save = KernelCache.load_overload, KernelCache.save_overload

def noted(self, sig, target_context):
    loaded.add(f"{self.module}.{self.kernel}")
    return load(self, sig, target_context)

def saving(self, sig, data):
    kept.append(self.kernel)
    save(self, sig, data)

KernelCache.load_overload, KernelCache.save_overload = noted, saving
told = io.StringIO()
with contextlib.redirect_stderr(told):
    code = run(["warmup"])
declared = declared_kernels()
reached = {one for name in loaded & declared.keys() for one in callees(name) | {name}}
of_warmup, n_kept = sorted(loaded), len(kept)
rng = np.random.default_rng(1)
for n, p in ((25, 4), (30, 14), (10, 16)):
    data = Dataset.from_arrays(rng.standard_normal((n, p)), rng.standard_normal(n))
    for spec in ("loo", "4"):
        for method in ("rounds", "joint", "algorithm1", "bounds"):
            cross_validate(data, make_folds(spec, data), gammas=(0.1, 2.0), taus=(1, 3), method=method)
shown = told.getvalue().splitlines()
print(json.dumps([sorted(declared), sorted(declared.keys() - reached), of_warmup, n_kept, len(kept), code, shown]))
"""
# Compiled for several types: one line for numbers and masks; rows that lie apart; the constant 0 as a size; arrays
# that are only read; indices of 32 bits. Each further one makes the first run of a machine longer.
SEVERAL_TYPES = {
    "dense.put", "dense.dot", "dense.cholesky_in_place", "dense.solve_lower", "dense.solve_upper",
    "dense.cholesky_solve", "nodes.keep_support", "k_support.largest_places", "restricted_node.signed_fit",
    "leave_out._add_by_fold", "glru_descent.descend",
}  # fmt: skip


def test_every_declared_kernel_is_compiled_ahead_and_nothing_later() -> None:
    for _ in range(2):  # where something was compiled, what it calls was asked for too: only then Python asks alone
        done = subprocess.run([sys.executable, "-c", USED], check=True, capture_output=True, text=True)
        declared, missing, loaded, n_compiled, n_compiled_later, code, told = json.loads(done.stdout)
        if not n_compiled:
            break
    assert code == n_compiled == n_compiled_later == 0
    steps = [line for line in told if f" of {len(STEPS)}: " in line]  # between them, a first use may warn
    assert len(steps) == len(STEPS) and all(line.startswith("sparsecv: ") for line in (*steps, told[-1]))
    assert len(declared) > 150 and missing == []
    called = called_from_python() & set(declared)
    assert len(called) > 50 and called <= set(loaded), called - set(loaded)


def test_a_batch_loads_the_kernels_of_its_searches_once_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = list[str]()
    monkeypatch.setattr(first_use, "answer_tiny_questions", lambda kind, *_: kinds.append(kind.name))
    monkeypatch.setattr(one_task, "_loaded", set())
    for method, p in (("rounds", 3), ("rounds", 4), ("grid", 3), ("rounds", 30)):
        one_task._load_kernels(SearchOptions.of(method=method), first_use.make_tiny_data(9, p))
    assert kinds == ["few_columns", "few_columns", "many_columns"]


def called_from_python() -> set[str]:
    """Return the kernels, as `MODULE.KERNEL`, that modules name which are none: each needs machine code of its own."""
    package, found = Path(kernels.__file__).parents[1], set[str]()
    for path in package.rglob("*.py"):
        if path.parent.name == "kernels":
            continue
        tree, modules, names = syntax(path.read_text(encoding="utf-8")), dict[str, str](), dict[str, str]()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == kernels.__name__:
                modules |= {one.asname or one.name: one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{kernels.__name__}."):
                where = str(node.module).rpartition(".")[2]
                names |= {one.asname or one.name: f"{where}.{one.name}" for one in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in names:
                found.add(names[node.id])
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                found.add(f"{modules[node.value.id]}.{node.attr}")
    return found


def test_a_wheel_is_held_against_the_declared_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    place = Path(__file__).resolve().parents[2] / "scripts" / "ship_kernels.py"
    exec(runpy.run_path(str(place))["MANIFEST"], {})
    assert set(json.loads(capsys.readouterr().out)["kernels"]) == set(declared_kernels())


@pytest.mark.slow
def test_few_kernels_are_compiled_for_several_types(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", VERSIONS], check=True, capture_output=True, text=True, env=environment)
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert len(rows) > 90
    several = {row[1].removeprefix(f"{kernels.__name__}.") for row in rows if int(row[0]) > 1}
    assert several <= SEVERAL_TYPES, several - SEVERAL_TYPES
