"""The backend that docs/backends.md adds with one file and one line, run as it stands there."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import numpy as np
import pytest
from conformance_suite import brute_force, random_constraints, random_problem
from repository import DOCS

from sparsecv_mio.formulation import backends
from sparsecv_mio.formulation.outcome import Limits, Stop

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
