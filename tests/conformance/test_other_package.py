"""Backends of other packages: docs/milp_backend by its entry point, and the file that docs/backends.md adds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from conformance_suite import brute_force, random_constraints, random_problem
from repository import DOCS, INSTANCES

from sparsecv_mio.cli import run as main
from sparsecv_mio.errors import BackendUnavailable, BadInput
from sparsecv_mio.formulation import backends
from sparsecv_mio.formulation.outcome import Limits, Stop

PACKAGE = DOCS / "milp_backend"
ASK = [str(INSTANCES / "prostate.csv"), "--target", "lpsa", "--gamma", "0.1", "-q"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package installed in it, as pip does."""
    there = tmp_path_factory.mktemp("site")
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "sparsecv_milp.py"):
        (copy / name).write_text((PACKAGE / name).read_text())
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(there), str(copy)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    return there


@pytest.fixture
def installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package as this process sees it."""
    monkeypatch.syspath_prepend(str(place))
    backends.find_package_backends.cache_clear()
    backends.get_backend.cache_clear()
    yield place
    backends.find_package_backends.cache_clear()
    backends.get_backend.cache_clear()


def test_it_answers_as_enumeration_does(installed: Path) -> None:
    backend, rng = backends.get_backend(backends.backend_name("MILP")), np.random.default_rng(0)
    assert backend is backends.get_backend("milp") and backend.available().usable
    optimal = 0
    for _ in range(40):
        problem = random_problem(rng, q=5)
        constraints = random_constraints(rng, 5, frozenset({"together", "at_most"}))
        outcome = backend.solve(problem, 2, constraints=constraints)
        truth = brute_force(problem, 2, constraints)
        if not np.isfinite(truth):
            assert outcome.stop is Stop.INFEASIBLE
            continue
        optimal += outcome.stop is Stop.OPTIMAL
        assert outcome.lower <= truth * (1.0 + 1e-9) and truth <= outcome.upper * (1.0 + 1e-9)
        assert outcome.stop is not Stop.OPTIMAL or outcome.upper == pytest.approx(truth, rel=1e-3)
    assert optimal >= 30
    problem = random_problem(rng, q=8)
    for limits in (Limits(nodes=1), Limits(seconds=1e-9)):
        stopped = backend.solve(problem, 4, limits=limits)
        truth = brute_force(problem, 4)
        assert stopped.lower <= truth * (1.0 + 1e-9) and truth <= stopped.upper * (1.0 + 1e-9)


def test_its_options(installed: Path) -> None:
    backend = backends.get_backend("milp")
    backend.check_options(("presolve=false",))
    for option, message in (
        ("presolve=2", "true or false"),
        ("nope=1", "milp rejects this option: nope"),
        ("gap=1", "set by the package"),
    ):
        with pytest.raises(BadInput, match=f"^solver.option .*{message}"):
            backend.check_options((option,))


def test_every_command_knows_it(installed: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["backends"]) == 0
    listed = capfd.readouterr().out
    assert "milp" in listed and "SciPy" in listed
    assert main(["fit", *ASK, "--tau", "3", "--backend", "milp"]) == 0
    assert "certified best subset: tau = 3" in capfd.readouterr().out
    out, asked = tmp_path / "answer.json", ["--tau", "2", "--folds", "2", "--threads", "1"]
    assert (
        main(["solve", *ASK, *asked, "--backend", "milp", "--solver-option", "presolve=false", "--json", str(out)]) == 0
    )
    record = json.loads(out.read_text())
    assert record["work"]["engine"] == "joint on milp" and record["request"]["solver_option"] == ["presolve=false"]
    assert main(["solve", *ASK, *asked, "--json", str(tmp_path / "ours.json")]) == 0
    ours = json.loads((tmp_path / "ours.json").read_text())
    assert record["support"] == ours["support"] and record["cv_error"] == pytest.approx(ours["cv_error"], rel=1e-9)
    assert main(["fit", *ASK, "--tau", "3", "--backend", "milpp"]) == 2
    assert "did you mean" in capfd.readouterr().err


def test_a_package_that_is_broken_is_named(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {name: EntryPoint(name, value, backends.ENTRY_POINTS) for name, value in (
        ("gone", "no_such_module:Backend"), ("other", "sparsecv_milp:MilpBackend"), ("none", "builtins:dict"),
    )}  # fmt: skip
    monkeypatch.setattr(backends, "find_package_backends", cache(lambda: broken))
    for name, words in (
        ("gone", "cannot be loaded"),
        ("other", "does not define a Backend with this name"),
        ("none", "does not define a Backend"),
    ):
        with pytest.raises(BackendUnavailable, match=f"^backend {name}: .*{words}"):
            backends.get_backend(name)


PAGE = DOCS / "backends.md"


def test_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    source = next(block for block in blocks if "class EnumerationBackend" in block)
    line = next(text for text in PAGE.read_text().splitlines() if text.strip().startswith('"enumeration":'))
    name, target = re.findall(r'"([^"]+)"', line)
    module = ModuleType(target.partition(":")[0])
    exec(compile(source, "docs/backends.md", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(backends.BACKENDS, name, target)
    backend = backends.get_backend(name)
    rng = np.random.default_rng(0)
    for _ in range(20):
        problem = random_problem(rng, q=5)
        constraints = random_constraints(rng, 5, frozenset({"together"}))
        outcome = backend.solve(problem, 2, constraints=constraints)
        truth = brute_force(problem, 2, constraints)
        assert outcome.stop is (Stop.OPTIMAL if np.isfinite(truth) else Stop.INFEASIBLE)
        assert outcome.upper == pytest.approx(truth) or truth == np.inf
    problem = random_problem(rng, q=8)
    stopped = backend.solve(problem, 4, limits=Limits(nodes=3))
    assert stopped.lower <= brute_force(problem, 4) <= stopped.upper
