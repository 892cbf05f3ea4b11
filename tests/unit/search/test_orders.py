"""Orders of squared-error loss end with the answer of enumeration; the plan has every number that decides."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from engines import ALWAYS_WEAKEST, ENGINES, Place, by_size, patch_all, planned
from judge import wrong
from repository import ROOT, syntax
from runs import new_run, through_earlier_orders
from slow import slow
from stops import SetWhenAsked
from zoo import RandomProblem, random_problem

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search import plan
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.orders.winner_first import _aim, _find_easier_pair, winner_first
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss

from .judged import check_state, do, random_search

EXPENSIVE = planned(bounds_before_trees=True, cheap_nodes=0)
LOOKING = {"bounds_before_trees": True, "cheap_nodes": 0, "looks_first": True, "look_nodes": 2}
LOOKS = planned(**LOOKING)
ORDERS: dict[str, list[Place]] = {
    "together": [],
    "together, exclusion first": [EXPENSIVE],
    "together, exclusion first, left-out folds": [(plan, "FEWEST_FOLDS", 0), EXPENSIVE],
    "together, looks first": [LOOKS],
    "together, looks first, left-out folds": [(plan, "FEWEST_FOLDS", 0), LOOKS],
    "together, the weakest first": [planned(**LOOKING, grows_weighted_trees=True), *ALWAYS_WEAKEST],
    "together, few nodes": [planned(first_full_nodes=2, first_node_limit=1)],
    "first supports, together": [planned(orders=("first_supports", "together"), searches_folds_first=True)],
    "by size": by_size(1),
    "by size, columns counted as many": [(plan, "SMALL", 0)],
    "by size, more nodes": by_size(64),
    "by size, the weakest first": [*by_size(1), *ALWAYS_WEAKEST],
    **{f"together, {name}": places for name, places in ENGINES.items()},
}
KINDS = pytest.mark.parametrize("order", ORDERS)


REACHED = {  # orders, and a source with a count of work that shows that the order takes the path of its name
    "together, exclusion first": ("support fits", "problems"),
    "together, exclusion first, left-out folds": ("left-out trees", "problems"),
    "by size": ("enclosures", "problems"),
    "by size, the weakest first": ("weighted trees", "nodes"),
    "together, the weakest first": ("weighted trees", "nodes"),
}


def case_of(seed: int) -> RandomProblem:
    return random_problem(seed, rows=24, columns=8)


@KINDS
@pytest.mark.parametrize("turn", [0, *slow((1, 2))])
def test_the_answer_is_that_of_enumeration(order: str, turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three problems, each with a gap of its own; the slow suite takes every gap with every problem."""
    patch_all(monkeypatch, ORDERS[order])
    (source, count), done = REACHED.get(order, ("", "")), 0
    for seed in range(3):
        case, gap = case_of(100 + seed), (0.0, 1e-4, 0.05)[(seed + turn) % 3]
        found: list[object] = []
        record = case.solve(method="rounds", gap=gap, found=found.append)
        assert record.status == "proved", seed
        assert [*wrong(case, record, found[0])] == [], seed
        done += sum(getattr(work, count) for work in record.work.sources if work.source == source)
    assert done > 0 or order not in REACHED


@pytest.mark.parametrize("order", [name for name in ORDERS if "left-out folds" not in name])  # of a loss that is tiny
# beside those of other folds, left-out fits know fewer digits than the judge asks for
def test_stopped_at_random_turns_its_bounds_hold(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that ends the search at its n-th reading, in the middle of steps too."""
    patch_all(monkeypatch, ORDERS[order])
    rng, n_open = np.random.default_rng(len(order)), 0
    for seed in range(6):
        case, found = case_of(200 + seed), list[object]()
        stop = SetWhenAsked(int(2.0 ** rng.uniform(0, 9)))
        record = case.solve(method="rounds", gap=0.0, found=found.append, stop=stop)
        n_open += record.status == "interrupted"
        assert [*wrong(case, record, found[0] if found else None)] == [], seed
    assert n_open > 0


@KINDS
def test_late_in_a_limit_the_search_still_ends_with_a_proof(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine tenths of a long limit have passed as it begins: shares of it are over, the search is not."""
    patch_all(monkeypatch, ORDERS[order])
    for seed in range(2):
        case, search = random_search(300 + seed, seconds=1e6)
        search.context.deadline.began -= 9e6
        for _ in search.turns():
            pass
        assert search.state.is_certified(), seed
        check_state(case, search)


@KINDS
@pytest.mark.parametrize("share", [0.4, *slow([0.0, 0.7])])
def test_it_goes_on_from_a_checkpoint_of_any_turn(order: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_all(monkeypatch, ORDERS[order])
    case, whole = random_search(410)
    n_turns = sum(1 for _ in whole.turns())
    first, again = case.new_run(gap=1e-4), case.new_run(gap=1e-4)
    for _, _ in zip(range(int(share * n_turns) + 1), first.turns(), strict=False):
        pass
    stored = first.checkpoint()
    again.resume(stored)
    for name, array in again.checkpoint().items():
        numbers = array.dtype.kind == "f"
        assert name.endswith("accounts") or np.array_equal(array, stored[name], equal_nan=numbers), name
    for _ in again.turns():
        pass
    assert again.state.is_certified() and again.state.reported_pair() == whole.state.reported_pair()
    check_state(case, again)


@KINDS
def test_two_runs_take_the_same_steps(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_all(monkeypatch, ORDERS[order])
    case = case_of(105)
    runs = list[list[tuple[object, ...]]]()
    for _ in range(2):
        search, steps = case.new_run(gap=1e-4), list[tuple[object, ...]]()
        submit = search.executor.submit
        search.executor.submit = lambda step, steps=steps, submit=submit: (  # type: ignore[method-assign]
            steps.append((step.source, step.gamma, step.taus, step.folds, step.node_limit)), submit(step)
        )  # fmt: skip
        for _ in search.turns():
            pass
        runs.append(steps)
    assert runs[0] == runs[1] and runs[0]


def begun(monkeypatch: pytest.MonkeyPatch, seed: int, **settings: object) -> tuple[RandomProblem, GridSearch]:
    patch_all(monkeypatch, by_size(1, **settings))
    case = replace(case_of(seed), gammas=[0.01, 0.1, 1.0], taus=[1, 2, 3, 4, 5])
    case = replace(case, taus=[tau for tau in case.taus if tau <= case.data.p])
    return case, through_earlier_orders(case.new_run(gap=1e-4))


def test_the_search_goes_on_where_the_full_data_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """By size, a phase that has nothing left to do leaves the turn to the next one."""
    for seed in range(8):
        with monkeypatch.context() as patch:
            case, search = begun(patch, 500 + seed)
            pairs = np.ndindex(len(case.gammas), len(case.taus))
            do(search, [FullDataTrees().step(search.state, pair) for pair in pairs])
            assert search.state.all_rows.solved_pairs().all()
            for _ in search.turns():
                pass
            assert search.state.bounds().is_certified(1e-4), seed


SEARCH = ROOT / "sparsecv_mio" / "search"
ONE_SEARCH = [
    *(SEARCH / f"{name}.py" for name in ("goals", "steps", "writer")),
    *SEARCH.glob("grid_*.py"),
    *(SEARCH / "orders").glob("*.py"),
    *(SEARCH / "sources").glob("*.py"),
]
SIZE = re.compile(r"\b(n|q|p|k|m|data\.n|data\.q|folds\.k|plan\.k)$")


SIDES: list[tuple[str, dict[str, Any], dict[str, Any], tuple[Any, Any]]] = [  # a threshold, its two sides, two values
    ("searches_folds_first", {"q": 36}, {"q": 37}, (False, True)),
    ("orders", {"q": 36}, {"q": 37}, (("together",), ("first_supports", "by_size"))),
    ("searches_all_folds", {"n": 50, "k": 50}, {"n": 51, "k": 51}, (True, False)),
    ("samples_folds", {"n": 50, "k": 50}, {"n": 51, "k": 51}, (False, True)),
    ("encloses_folds", {"q": 400}, {"q": 401}, (True, False)),
    ("grows_weighted_trees", {"q": 400}, {"q": 401}, (True, False)),
    ("leaves_folds_out", {"n": 48, "k": 23}, {"n": 48, "k": 24}, (False, True)),
    ("leaves_folds_out", {"n": 60, "k": 30, "q": 128}, {"n": 60, "k": 30, "q": 129}, (True, False)),
    ("searches_folds_first", {"q": 36, "loss": Loss.LOGISTIC}, {"q": 37, "loss": Loss.LOGISTIC}, (False, True)),
    (
        "searches_folds_first",
        {"n": 410, "q": 37, "loss": Loss.LOGISTIC},
        {"n": 412, "q": 37, "loss": Loss.LOGISTIC},
        (True, False),
    ),
    ("weighs_held_out", {"k": 50, "loss": Loss.LOGISTIC}, {"k": 51, "loss": Loss.LOGISTIC}, (True, False)),
    ("lists_held_out", {"k": 23, "loss": Loss.LOGISTIC}, {"k": 24, "loss": Loss.LOGISTIC}, (False, True)),
    ("leaves_folds_out", {"n": 64 * 24, "k": 24}, {"n": 65 * 24, "k": 24}, (True, False)),
    ("relaxes_full_data", {"q": 200, "loss": Loss.LOGISTIC}, {"q": 201, "loss": Loss.LOGISTIC}, (True, False)),
]


def drawn_search(n: int, q: int, k: int, loss: Loss, sizes: list[int]) -> GridSearch:
    """Return the search of the default question about n rows, q columns and k folds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, q))
    y = rng.normal(size=n) if loss.is_quadratic else np.where(X[:, 0] + rng.normal(size=n) > 0.0, 1.0, -1.0)
    data = standardize(Dataset.from_arrays(X, y), loss=loss)
    grid = Grid.of([0.1, 1.0], sizes, q)
    search: GridSearch = new_run(data, make_folds(str(k), data.dataset), grid, method="auto", gap=1e-4, loss=loss)
    return search


def test_winner_first_solves_the_best_estimate_and_then_excludes_other_pairs_by_the_full_data() -> None:
    search, steps = drawn_search(90, 6, 5, Loss.LOGISTIC, [1, 2, 3, 4, 5]), list[tuple[str, tuple[int, int]]]()
    through_earlier_orders(search)
    winner, submit = search.state.bounds().winner, search.executor.submit
    search.executor.submit = lambda step: (steps.append((step.source, (step.gamma, step.taus[-1]))), submit(step))  # type: ignore
    for _ in search.turns():
        pass
    assert search.state.is_certified() and search.state.bounds().best == winner
    assert dict.fromkeys(steps[:3]) == dict.fromkeys([("fold supports", winner), ("subproblem trees", winner)])
    full_data = [at for at, (source, _) in enumerate(steps) if source == "full-data trees"]
    others = [at for at, step in enumerate(steps) if step[0] == "subproblem trees" and step[1] != winner]
    assert full_data and others and full_data[0] < others[0]


def test_while_the_best_estimate_is_open_the_pair_with_the_closest_bounds_near_it_is_next() -> None:
    search = through_earlier_orders(drawn_search(90, 12, 5, Loss.LOGISTIC, [1, 2, 3, 4, 5]))
    state, now = search.state, search.state.bounds()
    waits = np.ones(now.lower.shape, dtype=bool)
    waits[now.winner] = False
    widths = state.all_rows.upper() - state.all_rows.lower()
    estimates, best = now.nominal, now.nominal[now.winner]
    assert now.ceiling == np.inf
    for ratio in (1.03, 1.1, 1.5):
        near = waits & (estimates <= ratio * best) & (widths < widths[now.winner])
        chosen = _aim(now, state, replace(search.plan, near_estimates=ratio), waits, is_late=False)
        assert near.any() and chosen is not None and chosen.solves_pair
        assert widths[chosen.pair] == widths[near].min() and near[chosen.pair]
    for other in (replace(search.plan, near_estimates=1.0), replace(search.plan, lists_held_out=True)):
        lowest = _aim(now, state, other, waits, is_late=False)
        assert lowest is not None and now.lower[lowest.pair] == now.lower[waits].min()


def test_without_an_upper_bound_near_the_best_estimate_an_easier_pair_is_first() -> None:
    search = through_earlier_orders(drawn_search(90, 12, 5, Loss.LOGISTIC, [1, 2, 3, 4, 5]))
    state, now = search.state, search.state.bounds()
    widths = state.all_rows.upper() - state.all_rows.lower()
    assert now.ceiling == np.inf
    n_found = 0
    for share, ratio in product((0.5, 0.9, 1.0), (1.02, 1.1, 1.5)):
        plan = replace(search.plan, easier_share=share, near_estimates=ratio)
        easier = (now.nominal <= ratio * now.nominal[now.winner]) & (widths < share * widths[now.winner])
        pair = _find_easier_pair(now, state, plan, [])
        assert (pair is not None) == easier.any()
        assert pair is None or (easier[pair] and now.nominal[pair] == now.nominal[easier].min())
        n_found += pair is not None
        first = next(winner_first(None, state, plan, [], 0.9))  # type: ignore[arg-type]
        assert pair is None or (first.gamma, first.taus) == (pair[0], (pair[1],))
        bounded = replace(now, upper=np.full(now.upper.shape, now.nominal[now.winner]))
        assert _find_easier_pair(bounded, state, plan, []) is None
    assert n_found


def plan_of(n: int = 60, q: int = 5, k: int = 10, loss: Loss = Loss.SQUARED) -> Plan:
    """Return the plan for the default question about n rows, q columns and k folds."""
    return drawn_search(n, q, k, loss, [1, 2]).plan


@pytest.mark.parametrize(("setting", "at_most", "beyond", "values"), SIDES)
def test_a_plan_takes_the_right_side_of_a_threshold(
    setting: str, at_most: dict[str, Any], beyond: dict[str, Any], values: tuple[Any, Any]
) -> None:
    assert (getattr(plan_of(**at_most), setting), getattr(plan_of(**beyond), setting)) == values


@pytest.mark.parametrize("path", ONE_SEARCH, ids=lambda path: path.name)
def test_no_other_file_compares_a_size_with_a_number(path: object) -> None:
    """A threshold on rows, columns or folds is a setting of the plan, with its reason."""
    tree = syntax(path.read_text(encoding="utf-8"))  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            sizes = [side for side in sides if SIZE.search(ast.unparse(side))]
            numbers = [side for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, int | float)]
            names = [side for side in sides if ast.unparse(side).isupper()]
            assert not (sizes and (numbers or names)), ast.unparse(node)


@pytest.mark.parametrize("path", ONE_SEARCH, ids=lambda path: path.name)
def test_no_other_file_asks_for_the_loss(path: object) -> None:
    assert "Loss." not in path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
