"""A missing package of Pyomo is one line with exit code 4, and threads import Pyomo once."""

from __future__ import annotations

import subprocess
import sys

import pytest

LATE_PYOMO = """
import sys
sys.modules["packaging"] = None
import gurobipy
from sparsecv_mio.cli import run
print(*(run([*sys.argv[1:], "--backend", backend]) for backend in ("gurobi", "highs")))
"""
IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor
from sparsecv_mio.formulation.backends import contract

def ready(name):
    contract.import_pyomo()
    from sparsecv_mio.formulation.models import ModelColumns
    return ModelColumns

with ThreadPoolExecutor(8) as pool:
    print(len(set(pool.map(ready, range(8)))))
"""
ONLY_PYOMO = """
import sys
sys.modules["packaging"] = None
from sparsecv_mio.formulation.backends import get_backend
print(get_backend("gurobi").available().usable)
"""


def run_python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *words], capture_output=True, text=True, timeout=300
    )


def test_a_missing_package_of_pyomo_is_one_line(tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("gurobipy", reason="Gurobi is not installed")
    pytest.importorskip("highspy", reason="HiGHS is not installed")
    data = tmp_path_factory.mktemp("data") / "d.csv"
    data.write_text("a,b,y\n" + "".join(f"{k % 5},{k * k % 7},{k * 3 % 11}\n" for k in range(12)))
    words = ["solve", str(data), "--target", "y", "--method", "grid", "--gamma", "0.1", "-q"]
    done = run_python(LATE_PYOMO, *words)
    lines = done.stderr.splitlines()
    assert done.stdout.split() == ["4", "4"] and len(lines) == 2, done.stderr
    for backend, line in zip(("gurobi", "highs"), lines, strict=True):
        assert f"backend {backend}" in line and "pip install packaging" in line


def test_pyomo_is_imported_before_gurobi() -> None:
    pytest.importorskip("gurobipy", reason="Gurobi is not installed")
    assert run_python(ONLY_PYOMO).stdout.strip() == "True"


def test_threads_import_pyomo_once() -> None:
    pytest.importorskip("pyomo", reason="Pyomo is not installed")
    done = run_python(IN_THREADS)
    assert done.stdout.strip() == "1", done.stderr
