"""Logistic searches at every moment, in few and in many folds, against fits of all supports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import problems
import pytest
from glm_cases import many_folds_case, two_class_case
from glm_claims import of_search
from glm_referee import Unsure
from runs import change_plan, new_run, through_earlier_orders
from scipy.special import expit
from slow import slow
from stops import limit_after

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes, check_training
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.search.api import cross_validate, solve
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.initial_supports import SupportsInFolds
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import Step
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees import glm_left_out, glm_tree
from sparsecv_mio.trees.glm_fits import GlmFits

ROUNDING = 1e-7  # of a held-out loss


@pytest.mark.parametrize("seed", [3, *slow(range(100, 220))])
def test_every_moment_of_a_search_holds_the_truth(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first steps, and after every portion of trees that are cut into the smallest pieces."""
    for name in ("FEW_SUPPORTS", "LEAPS_WORK", "BROAD"):
        monkeypatch.setattr(glm_tree, name, 1)
    change_plan(monkeypatch, first_node_limit=1, relaxed_stride=1, initial_share=-1.0 if seed % 2 else 0.05)
    try:
        case = two_class_case(seed)
        run = case.new_run(600.0, gap=case.how["gap"], threads=1 + seed % 2)
        check_training(case.data, case.folds, case.how["intercept"], Loss.LOGISTIC)
    except BadInput as error:
        assert "one class" in str(error) or "are all of class" in str(error)
        return
    pairs = [(g, t) for g in range(len(case.gammas)) for t, tau in enumerate(case.taus) if case.data.p <= 5 or tau <= 3]
    try:
        ends = {(g, t): case.truth.h(case.gammas[g], case.taus[t]) for g, t in pairs}
    except Unsure:
        return
    per_row = run.context.cv_error_factor

    def check() -> None:
        now = run.state.bounds()
        for pair, (low, high) in ends.items():
            assert now.lower[pair] * per_row <= high * (1.0 + ROUNDING), (seed, pair)
            assert now.upper[pair] * per_row >= low * (1.0 - ROUNDING), (seed, pair)

    check()
    while not run.is_finished:
        run.take_turn()
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


@pytest.mark.parametrize("seed", [6081, 6285, 6293, *slow([5222])])
def test_columns_far_from_0_without_an_intercept(seed: int) -> None:
    """Normal equations lose the digits of what such columns have apart: their fits are taken from the rows."""
    case = two_class_case(seed)
    record = case.solved()
    found = verify(record, case.data)
    assert found.ok, found.failures[:2]
    assert record.status == "proved"


def judged(seed: int, **how: float) -> str:
    """Check every interval of a record, and the record; returns its status, nothing where the case is refused."""
    try:
        case = many_folds_case(seed)
        record = case.solved(**how | {"time_limit": 30.0})
    except BadInput as error:
        assert "one class" in str(error) or "are all of class" in str(error), str(error)
        return ""
    with suppress(Unsure):
        assert [*of_search(case.truth, record)] == [], seed
    found = verify(record, case.data)
    assert found.ok, (seed, found.failures[:2])
    return str(record.status)


@pytest.mark.parametrize("first", [0, *slow(range(3, 60, 3))])
def test_every_interval_holds_the_truth(first: int) -> None:
    statuses = [judged(seed) for seed in range(first, first + 3)]
    assert statuses.count("proved") >= len([status for status in statuses if status]) - 1


@pytest.mark.parametrize("seed", [0, *slow(range(1, 60))])
def test_blocks_of_folds_hold_the_truth_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glm_left_out, "FEW", 1 + seed % 2 * (1 << 26))
    monkeypatch.setattr(glm_left_out, "FOLDS_AT_ONCE", (7, 1 << 14)[seed % 4 // 2])
    judged(seed, gap=(1e-4, 1e-3, 3e-2)[seed % 3])


READINGS = (40, 80, 100, 200, 225)
QUICK = {7: (80, 225), 10: (200,)}


@pytest.mark.parametrize(
    ("seed", "limits"),
    [*QUICK.items(), *slow((seed, READINGS) for seed in (5, 7, 10, 17, *range(20, 60)))],
)
def test_records_that_a_limit_cuts_short_are_verified(seed: int, limits: tuple[int, ...]) -> None:
    """Of one in twenty the standard error was left out though the folds of the pair were there."""
    try:
        case = many_folds_case(seed)
    except BadInput:
        return
    for readings in limits:
        with limit_after(readings) as seconds:
            record = case.solved(time_limit=seconds)
        found = verify(record, case.data)
        assert found.ok, (readings, found.failures[:2])


@pytest.mark.parametrize("seed", [0, *slow(range(1, 30))])
def test_steps_late_in_a_limit_hold_the_truth_and_end_in_a_proof(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    change_plan(monkeypatch, choice_share=-1.0)
    monkeypatch.setattr(glm_left_out, "FOLDS_AT_ONCE", 11)
    assert judged(seed) in ("", "proved")


def test_averages_of_pairs_with_open_folds_are_verified() -> None:
    case = many_folds_case(100136, 2)
    record = case.solved(model="average", gap=1e-3)
    found = verify(record, case.data)
    assert found.ok, found.failures[:2]


def test_folds_are_decided_by_a_tree_on_all_rows() -> None:
    record = many_folds_case(0).solved()
    by_source = {work.source: work for work in record.work.sources}
    assert by_source["held-out lists"].decided > 0.5 * len(record.chosen_folds.error)
    assert by_source["held-out lists"].nodes > 0
    assert np.all(record.chosen_folds.error > 0.0)


def test_all_columns_give_every_error_an_upper_end_before_any_tree() -> None:
    case = many_folds_case(0)
    run = through_earlier_orders(case.new_run())
    bounds, per_row = run.state.bounds(), run.context.cv_error_factor
    for g, gamma in enumerate(case.gammas):
        low, high = case.truth.h(gamma, case.taus[-1])
        assert bounds.upper[g, -1] * per_row >= low * (1.0 - ROUNDING)
        assert bounds.lower[g, -1] * per_row <= high * (1.0 + ROUNDING)
        assert bounds.upper[g, -1] < np.inf and bounds.lower[g, -1] > 0.0


@pytest.mark.parametrize("seed", [0, *slow(range(1, 40))])
def test_under_a_limit_the_winner_has_an_interval_before_any_tree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        case = many_folds_case(seed)
    except BadInput:
        return
    change_plan(monkeypatch, initial_share=-1.0, single_sizes=())
    run = through_earlier_orders(case.new_run(600.0))
    bounds, per_row = run.state.bounds(), run.context.cv_error_factor
    for g, t in np.ndindex(bounds.lower.shape):
        low, high = case.truth.h(case.gammas[g], case.taus[t])
        assert bounds.lower[g, t] * per_row <= high * (1.0 + ROUNDING), (seed, g, t)
        assert bounds.upper[g, t] * per_row >= low * (1.0 - ROUNDING), (seed, g, t)


def test_under_a_limit_an_easy_winner_has_two_ends_before_any_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    change_plan(monkeypatch, initial_share=-1.0)
    data = problems.classes(1, 300, 4, {0: 1.0, 1: -1.0})
    columns = standardize(as_two_classes(data), loss=Loss.LOGISTIC)
    run = new_run(
        columns, make_folds("loo", data), Grid.of([0.01, 0.1], [1, 2, 3], 4), 600.0, loss="logistic", method="auto"
    )
    through_earlier_orders(run)
    now = run.state.bounds()
    pair = now.winner
    folds_bounded = np.isfinite(run.state.cells.upper[pair])
    assert folds_bounded.mean() > 0.9
    assert 0.0 < now.lower[pair] < now.nominal[pair]
    assert run.state.cells.upper[pair][folds_bounded].sum() < 2.0 * now.nominal[pair]


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_a_size_with_one_support_has_an_upper_end_before_others_are_shown(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that is over soon leaves an interval, however many rows there are."""
    rng, bounded = np.random.default_rng(0), list[bool]()
    X = rng.standard_normal((60, 4))
    y = rng.poisson(np.exp(0.5 * X[:, 0])) if loss == "poisson" else X[:, 0] + rng.logistic(size=60) > 0
    propose = SupportsInFolds.steps

    def proposed(source: SupportsInFolds, state: GridState, plan: Plan, wanted: np.ndarray) -> Iterator[Step]:
        for step in propose(source, state, plan, wanted):
            bounded.append(state.is_bounded((step.gamma, -1)))
            yield step

    monkeypatch.setattr(SupportsInFolds, "steps", proposed)
    data = Dataset.from_arrays(X, np.asarray(y, dtype=float))
    record = solve(data, folds="loo", loss=loss, gammas=[0.1, 1.0, 10.0])
    assert bounded and all(bounded) and record.status == "proved"


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_a_fold_of_which_nothing_is_known_leaves_the_others_as_they_are(seed: int) -> None:
    """Counts with a fill value, whose fold had no objective: what others have at least was no number."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 1))
    X[4, 0] = -3.6e8
    y = rng.poisson(1.5, 24) + (np.arange(24) < 2)
    data = Dataset.from_arrays(X, y)
    how: dict[str, Any] = {"gammas": [4.88e-5], "scale": "none", "loss": "poisson", "gap": 0.0, "threads": 1}
    record = cross_validate(data, make_folds("loo", data), taus=[0, 1], **how)
    assert record.tau == 0 and verify(record, data).ok


def drawn(n: int, p: int, seed: int, intercept: bool = True) -> GlmProblem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return GlmProblem(X, y, rng.uniform(0.5, 2.0, size=n), np.ones(p), 0.5, intercept)


def least(moments: tuple[np.ndarray, np.ndarray], support: list[int]) -> float:
    """The least value of a quadratic on some columns, the first of which are those of no choice; up to a constant."""
    H, c = moments[0][np.ix_(support, support)], moments[1][support]
    return -float(c @ np.linalg.solve(H, c)) / 2.0 if support else 0.0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_what_a_column_is_worth_to_the_quadratic_about_a_fit(size: int, intercept: bool) -> None:
    fits = GlmFits.from_problem(drawn(50, 7, size, intercept), np.array([6]) if size == 3 else None)
    problem, rows, first = fits.problem, fits.rows, fits.problem.first_coefficient
    forced = list(fits.forced)
    support = [*forced, *range(size)]
    point = fits.fit(support)[0]
    margins = problem.y * (point @ rows.W)
    share, pull = expit(-margins), problem.y * problem.v * expit(-margins)
    weight = problem.v * share * (1.0 - share)
    inner, chosen = np.array([*range(first), *(j + first for j in forced)]), np.arange(size)
    worth = glm_tree._worth(fits, weight, pull, inner.astype(int), chosen, point)
    H = (rows.W * weight) @ rows.W.T + np.diag(2.0 * rows.penalty)
    quadratic = H, rows.W @ (pull + weight * (point @ rows.W))
    inside = [*range(first), *(j + first for j in support)]
    now = least(quadratic, inside)
    for j in set(range(7)) - set(support):
        others = [[*inside, j + first]]
        others += [[*(i for i in inside if i != out + first), j + first] for out in chosen.tolist()]
        assert worth[j] / 2.0 == pytest.approx(now - min(least(quadratic, other) for other in others), rel=1e-6)


def test_few_of_many_columns_do_as_well_as_all(monkeypatch: pytest.MonkeyPatch) -> None:
    fits, found = GlmFits.from_problem(drawn(80, 200, 3), None), {}
    for seen in (40, 1_000):
        monkeypatch.setattr(glm_tree, "MAX_QUADRATIC_COLUMNS", seen)
        support, _, upper = glm_tree.exchange_columns(
            fits, frozenset(), 4, lambda: False, partial(glm_tree.make_quadratic, fits)
        )
        assert len(support) == 4
        found[seen] = upper
    assert found[40] <= found[1_000] * 1.02


def test_estimates_of_many_columns_are_by_supports_that_do_not_know_the_rows_left_out() -> None:
    """Of noise alone nothing predicts; supports of all rows would seem to."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 80)), rng.integers(0, 2, size=60).astype(float)
    data = as_two_classes(Dataset.from_arrays(X, y))
    plan, grid = make_folds("5", data), Grid.of((0.01, 0.1), tuple(range(1, 11)), 80)
    search = new_run(standardize(data, loss=Loss.LOGISTIC), plan, grid, gap=1e-4, loss="logistic", method="auto")
    through_earlier_orders(search)
    estimates = search.state.cells.nominal.sum(axis=2) / 60.0
    assert search.plan.searches_folds_first and np.isfinite(estimates).sum() >= 8
    assert estimates.min() > 0.64
    known = search.problems.full(0).hold_out(search.state.all_rows.best[0].by_size[8].support, lambda: False)[1]
    assert known.sum() / 60.0 < 0.58
