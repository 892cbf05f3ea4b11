"""Logistic searches at every moment against fits of all supports; tests/campaign has those that have ended."""

from __future__ import annotations

import numpy as np
import pytest
from glm_cases import two_class_case
from glm_referee import Unsure
from runs import change_plan, new_run, through_earlier_orders

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.two_classes import as_two_classes, check_training_classes
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees import glm_tree

ROUNDING = 1e-7  # of a held-out loss


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 220))])
def test_every_moment_of_a_search_holds_the_truth(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first steps, and after every portion of trees that are cut into the smallest pieces."""
    for name in ("FEW_SUPPORTS", "LEAPS_WORK", "BROAD"):
        monkeypatch.setattr(glm_tree, name, 1)
    change_plan(monkeypatch, first_node_limit=1, relaxed_stride=1, initial_share=-1.0 if seed % 2 else 0.05)
    try:
        case = two_class_case(seed)
        data = standardize(case.data, case.how["scale"], case.how["intercept"], loss=Loss.LOGISTIC)
        check_training_classes(case.data, case.folds, case.how["intercept"])
    except BadInput as error:
        assert "one class" in str(error) or "are all of class" in str(error)
        return
    pairs = [(g, t) for g in range(len(case.gammas)) for t, tau in enumerate(case.taus) if case.data.p <= 5 or tau <= 3]
    try:
        ends = {(g, t): case.truth.h(case.gammas[g], case.taus[t]) for g, t in pairs}
    except Unsure:
        return
    grid, asked = Grid.of(case.gammas, case.taus, case.data.p), {"loss": "logistic", "method": "auto"}
    run = new_run(data, case.folds, grid, 600.0, gap=case.how["gap"], threads=1 + seed % 2, **asked)
    per_row = run.context.cv_error_factor

    def check() -> None:
        now = run.state.bounds()
        for pair, (low, high) in ends.items():
            assert now.lower[pair] * per_row <= high * (1.0 + ROUNDING), (seed, pair)
            assert now.upper[pair] * per_row >= low * (1.0 - ROUNDING), (seed, pair)

    check()
    while not run.is_finished:
        run.step()
        check()


def test_before_any_tree_every_pair_has_a_lower_end_and_the_best_one_an_upper_end() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 8))
    data = Dataset.from_arrays(X, (X[:, :4].sum(axis=1) + rng.logistic(size=200) > 0.0).astype(float))
    columns = standardize(as_two_classes(data), loss=Loss.LOGISTIC)
    grid = Grid.of([0.1, 1.0], list(range(3, 9)), 8)
    run = new_run(columns, make_folds("10", data), grid, 600.0, loss="logistic", method="auto")
    through_earlier_orders(run)
    now = run.state.bounds()
    assert now.lower.min() > 0.5 * now.ceiling
    assert now.ceiling < 1.3 * now.nominal.min()


@pytest.mark.parametrize("seed", [6081, 6285, 6293, pytest.param(5222, marks=pytest.mark.slow)])
def test_columns_far_from_0_without_an_intercept(seed: int) -> None:
    """Normal equations lose the digits of what such columns have apart: their fits are taken from the rows."""
    case = two_class_case(seed)
    record = case.solved()
    found = verify(record, case.data)
    assert found.ok, found.failures[:2]
    assert record.status == "proved"
