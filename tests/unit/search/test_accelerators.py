"""What the accelerators of a search spare, and that no answer depends on them."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.bounds.fold import TIE, FoldBounds, points_of, reuse
from sparsecv_mio.bounds.relaxation import unit_diagonal
from sparsecv_mio.certificate.read_back import read_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.kernels.nodes import DROPPED, INSIDE
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import full_problem, training_moments
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.words import Oracle

TAUS = range(1, 7)


ASK = {"gammas": [0.05, 1.0], "taus": range(1, 7), "threads": 1}


def drawn(n: int = 40, p: int = 6, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 2] += 0.8 * X[:, 0]
    return Dataset.from_arrays(X, X @ [3.0, 0, -2.0, 0.4, 0, 0.2][:p] + rng.normal(size=n))


@pytest.fixture(scope="module")
def plain() -> tuple[Dataset, FoldPlan]:
    data = drawn()
    return data, make_folds("8", data)


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rounds", "joint", "algorithm1", "grid", "descent"])
def test_every_method_takes_them(method: str, plain: tuple[Dataset, FoldPlan]) -> None:
    data, folds = plain
    off = cross_validate(data, folds, method=method, oracles="none", **ASK)  # type: ignore[arg-type]
    on = cross_validate(data, folds, method=method, oracles="glru,iacv,treecv", **ASK)  # type: ignore[arg-type]
    assert (on.status, on.gamma, on.tau, on.support) == (off.status, off.gamma, off.tau, off.support)
    assert on.cv_error == pytest.approx(off.cv_error, rel=1e-10)
    known = () if method in ("rounds", "descent") else tuple(Oracle)  # the one loop has no code behind these options
    assert off.work.oracles == () and tuple(one.oracle for one in on.work.oracles) == known


# -- the record -------------------------------------------------------------------------------------------------------


def test_old_records_still_read(plain: tuple[Dataset, FoldPlan], tmp_path: Path) -> None:
    data, folds = plain
    record = cross_validate(data, folds, oracles="glru,treecv", **ASK)  # type: ignore[arg-type]
    assert Record.from_json(record.to_json()) == record
    entries = json.loads(record.to_json())
    del entries["work"]["oracles"]
    file = tmp_path / "old.json"
    file.write_text(json.dumps(entries))
    old = read_record(file)
    assert isinstance(old, Record) and old.work.oracles == () and old.table == record.table


def test_what_is_saved_is_told() -> None:
    data = drawn(n=64)
    folds = make_folds("16", data)
    ask = {"gammas": [5.0], "taus": [1, 2, 3], "threads": 1, "gap": 0.0, "method": "grid"}
    record = cross_validate(data, folds, oracles="glru,treecv", **ask)  # type: ignore[arg-type]
    glru, tree = record.work.oracles
    off = cross_validate(data, folds, oracles="none", **ask)  # type: ignore[arg-type]
    assert glru.asked >= 3 * 16 and 0 < glru.mios <= glru.asked and glru.seconds > 0.0
    assert record.work.nodes < off.work.nodes
    read = tree.asked * 60 - tree.rows
    assert tree.asked == 16 and 0 < read <= 64 * math.ceil(math.log2(16))


# -- treecv -----------------------------------------------------------------------------------------------------------


# -- glru -------------------------------------------------------------------------------------------------------------


def values(problem: SparseProblem, size: int) -> dict[tuple[int, ...], float]:
    """f of every support of a size."""
    return {s: ridge(problem, np.array(s))[1] for s in combinations(range(problem.q), size)}


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("gamma", [0.02, 1.0, 30.0])
def test_reused_duals_are_below_every_support(gamma: float, intercept: str) -> None:
    dataset = drawn(n=25, seed=3)
    data = standardize(dataset, "length", intercept)
    points = points_of(unit_diagonal(full_problem(data, gamma)), range(7))
    decided = 0
    for spec in ("loo", "blocks:5"):
        folds = make_folds(spec, dataset)
        for fold, moments in training_moments(data, folds):
            problem = moments.problem(data, gamma)
            here = FoldBounds(problem, *data.rows(folds.scored_rows(fold)), points.diagonal if points else None)
            here.search(range(1, 6))
            tested = reuse(here, points, range(1, 6), TIE, exact=True)
            assert tested is not None and tested.sizes.tolist() == [1, 2, 3, 4, 5]
            for t, size in enumerate(tested.sizes.tolist()):
                f = values(problem, size)
                best = min(f.values())
                assert tested.dual[t] <= best * (1.0 + 1e-12)
                near = [s for s, value in f.items() if value <= best * (1.0 + 1e-9)]
                assert not any(tested.status[t, j] == DROPPED for s in near for j in s)
                assert all(set(np.flatnonzero(tested.status[t] == INSIDE)) <= set(s) for s in near)
                if tested.decided[t]:
                    decided += 1
                    assert len(near) == 1 and set(near[0]) == set(np.flatnonzero(here.supports[size]))
                    exact = here.cells([size])[0]
                    lower, upper = tested.numbers[t, 2:4]
                    assert lower <= exact.upper * (1.0 + 1e-9) and upper >= exact.lower * (1.0 - 1e-9)
    assert decided > 0 or gamma < 1.0


def plain_duals(fold: FoldBounds, beta: np.ndarray, sizes: list[int]) -> np.ndarray:
    """The kernel in numpy: D at each point, in the units of the problem."""
    form = fold.form
    assert form is not None
    b = beta / form.scale
    G = form.M - np.diag(form.w)
    d = np.sort((form.c - b @ G) ** 2 / form.w, axis=1)[:, ::-1]
    top = np.array([row[:size].sum() for row, size in zip(d, sizes, strict=True)])
    return np.asarray(form.yy - np.einsum("ti,ij,tj->t", b, G, b) - top)


def test_kernel_against_numpy() -> None:
    dataset = drawn(n=30, seed=9)
    data, sizes = standardize(dataset), [1, 2, 3, 4, 5]
    points = points_of(unit_diagonal(full_problem(data, 0.5)), sizes)
    assert points is not None
    folds = make_folds("6", dataset)
    for fold, moments in training_moments(data, folds):
        here = FoldBounds(moments.problem(data, 0.5), *data.rows(folds.scored_rows(fold)), points.diagonal)
        here.search(sizes)
        tested = reuse(here, points, sizes, TIE)
        assert tested is not None
        np.testing.assert_allclose(tested.dual, plain_duals(here, points.beta, sizes), rtol=1e-10)
