"""A whole weight is so many rows: every method says of weighted rows what it says of the repeated ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engines import ENGINES, patch_all
from judge import wrong
from slow import slow
from zoo import RandomProblem

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import repeated_folds
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.weights import repeated, weighted

METHODS = ("auto", "joint", "rounds", "grid", "algorithm1", "bounds", "descent", *ENGINES)


def drawn(seed: int) -> tuple[RandomProblem, np.ndarray]:
    """A problem, and a whole weight of each row; two rows that count in each of two folds."""
    rng = np.random.default_rng(seed)
    n, p, k = int(rng.integers(8, 14)), int(rng.integers(2, 5)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    data = Dataset.from_arrays(X, X @ rng.normal(size=p) + rng.normal(size=n))
    counts, labels = rng.choice([0, 1, 1, 2, 3], size=n), np.arange(n)
    counts[:4] = np.maximum(counts[:4], 1)
    if seed % 3:
        labels = rng.permutation(labels % k)
        labels[:4] = np.arange(4) % 2
        if seed % 5 == 0:
            labels[4] = -1
    plan = folds_from_labels(np.unique(labels, return_inverse=True)[1] - int((labels < 0).any()))
    scale, intercept = ("length", "variance", "none")[seed // 3 % 3], ("fold", "global", "none")[seed // 9 % 3]
    return RandomProblem(data, plan, [0.05, 1.0], list(range(p + 1)), scale, intercept), counts


def solved(case: RandomProblem, method: str, one_se: bool) -> Record:
    with pytest.MonkeyPatch.context() as patch:
        patch_all(patch, ENGINES.get(method, []))
        return case.solve(gap=0.0, one_se=one_se, method="rounds" if method in ENGINES else method)


@pytest.mark.parametrize("seed", [*range(10), *slow(range(10, 300))])
def test_whole_weights_are_so_many_rows(seed: int) -> None:
    (case, counts), method = drawn(seed), METHODS[seed % len(METHODS)]
    plain, plan = case.data, case.folds
    data, folds = weighted(plain, counts.astype(float), lambda _: plan, name="w", by_row=True)
    copies, many = repeated(plain, counts), repeated_folds(plan, counts)
    one_se = method != "bounds" and many.has_standard_error
    cases = replace(case, data=data, folds=folds), replace(case, data=copies, folds=many)
    one, two = (solved(problem, method, one_se) for problem in cases)
    if method != "descent":  # which leaves the grid
        assert [message for pair in zip(cases, (one, two), strict=True) for message in wrong(*pair)] == [], seed
    assert (one.tau, one.support, one.status) == (two.tau, two.support, two.status), seed
    assert one.gamma == pytest.approx(two.gamma, rel=1e-6), seed
    if method == "bounds":  # what a relaxation leaves depends on where it stops
        return
    names = ("cv_error", "lower", "upper", "r_squared", "intercept")
    mine, other = ([getattr(record, name) for name in names] for record in (one, two))
    assert mine == pytest.approx(other, rel=1e-7, abs=1e-8), (seed, method)
    assert one.coefficients == pytest.approx(two.coefficients, rel=1e-7, abs=1e-8), (seed, method)
    if one.one_se is not None and two.one_se is not None:
        assert one.one_se.standard_error == pytest.approx(two.one_se.standard_error, rel=1e-8), seed
    assert sc.verify(one, data, folds).ok and sc.verify(two, copies, many).ok, (seed, method)
    # a record of the past is of the rows so repeated, and says so by having no total weight
    old = replace(two, data=replace(two.data, weights="w"), folds=replace(two.folds, spec=f"{two.folds.spec} weighted"))
    assert sc.verify(old, Dataset.from_arrays(plain.X, plain.y, aux={"w": counts}), plan).ok, seed
