"""Held-out errors bounded from rows: every support up to the level is inside, few columns or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from exact import check_allowance

from sparsecv_mio.bounds import wide, wide_rows
from sparsecv_mio.bounds.cv_error import compute_bounds, printed_bounds
from sparsecv_mio.bounds.fold import Origin
from sparsecv_mio.bounds.relaxation import centring_loss, held_out_loss
from sparsecv_mio.bounds.wide import WideFold, bound_all_columns, point_error
from sparsecv_mio.bounds.wide_rows import WideRelaxation, WideRows, is_wide
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import Contradiction
from sparsecv_mio.kernels.nodes import LevelSet

from .drawn import HardFold

TAU = 2


def drawn(seed: int, held_out: int) -> tuple[WideRows, list[tuple[float, float]]]:
    """A fold, and f and the held-out error of every support."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8 + held_out, 12))
    y = X[:, 0] - X[:, 5] + 0.5 * rng.standard_normal(len(X))
    rows = WideRows(X[held_out:], y[held_out:], X[:held_out], y[:held_out])
    found = []
    for s in combinations(range(12), TAU):
        support, b = np.array(s), np.zeros(12)
        b[support] = np.linalg.solve(rows.matrix(support), rows.c[support])
        found.append((float(rows.yy - rows.c @ b), point_error(rows, b)))
    return rows, found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("held_out", [1, 3])
def test_over_all_columns(seed: int, held_out: int) -> None:
    rows, every = drawn(seed, held_out)
    relaxation = WideRelaxation(rows)
    dual, primal = relaxation.solve(TAU, 1e-6)
    before, level = relaxation.b.copy(), min(every)[0] * 1.05
    ends = bound_all_columns(relaxation, LevelSet(TAU, level, primal), dual, lambda: False)
    for value, error in every:
        if value <= level:
            assert ends.lower <= error * (1 + 1e-9) and error <= ends.upper * (1 + 1e-9)
    assert np.array_equal(relaxation.b, before)
    assert ends.high_origin is Origin.CONIC


def test_no_time_leaves_the_trivial_bounds() -> None:
    rows, every = drawn(0, 3)
    relaxation = WideRelaxation(rows)
    dual, primal = relaxation.solve(TAU, 1e-6)
    ends = bound_all_columns(relaxation, LevelSet(TAU, min(every)[0], primal), dual, lambda: True)
    assert (ends.lower, ends.upper) == (0.0, np.inf)


def planted(q: int = 2000, n: int = 60) -> WideFold:
    """Return six equal coefficients on orthogonal columns, about."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, q)) / np.sqrt(n)
    y = 10.0 * X[:, :6].sum(axis=1) + 0.1 * rng.normal(size=n)
    return WideFold(WideRows(2.0 * X, y, X[:0], y[:0]))


@pytest.mark.parametrize("tau", [1, 3, 6])
def test_the_optimum_of_many_columns(tau: int) -> None:
    fold = planted()
    fold.search([tau])
    root = fold.survivors(tau)
    seen, nodes = fold.branch(tau)
    assert seen.upper == pytest.approx(fold.upper(tau), rel=1e-6)
    assert seen.lower == pytest.approx(fold.upper(tau), rel=1e-6) and len(seen.columns) == tau
    assert tau != 3 or (nodes > 5 and len(root.columns) > 100 and root.lower < 0.99 * seen.lower)


def test_more_ties_than_are_listed_leave_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "MOST_REFITTED", 3)
    X = np.vstack([np.eye(5), np.zeros((1, 5))])
    fold = WideFold(WideRows(X, X.sum(axis=1), X[:0], np.zeros(0)))
    fold.search([2])
    seen, _ = fold.branch(2)
    assert len(seen.columns) == 5 and seen.lower <= fold.upper(2) <= seen.upper


def test_a_planted_support_is_found_without_branching() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 1000))
    data = standardize(Dataset.from_arrays(X, 3.0 * X[:, [5, 700, 900]].sum(1) + 0.2 * rng.standard_normal(60)))
    assert is_wide(data)
    table = compute_bounds(data, make_folds("4", data.dataset), [0.5], [1, 3])
    ends = table.cv_interval(0, 1)
    assert table.decided(0, 1) == 4 and ends.upper - ends.lower < 1e-6 * ends.upper
    printed = printed_bounds(data, make_folds("4", data.dataset), [0.5], [1, 3])
    assert np.isfinite(printed.upper).all()


@pytest.mark.parametrize("few", [0, wide.RELAXED_COLUMNS])
def test_bounds_by_rows_are_on_the_right_side_of_exact_numbers(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `few = 0`, screening leaves too many columns for a matrix."""

    def excesses(seed: int) -> Iterator[Fraction]:
        hard = HardFold.draw(seed)
        longest = float((np.abs(hard.v_mean) / np.sqrt(1.0 + (hard.A**2).sum(axis=0))).max())
        loss = centring_loss(len(hard.y), longest, hard.r_mean, float(hard.y @ hard.y))
        loss *= held_out_loss(np.array([hard.root]), len(hard.y))
        X, u = hard.V_test - hard.root * hard.v_mean, hard.r_test - hard.root * hard.r_mean
        flat_length = 0.0 if hard.y.any() else np.sqrt(len(hard.y)) * abs(hard.r_mean)
        fold = WideFold(WideRows(hard.A, hard.y, X, u, loss, flat_length=flat_length))
        try:
            yield from hard.excesses(fold.cells(range(3)))
            for tau in (1, 2):
                seen, least = (
                    fold.branch(tau)[0],
                    min(hard.exact.of_support(2.0, s)[0] for s in combinations(range(3), tau)),
                )
                yield from (Fraction(seen.lower) - least, least - Fraction(seen.upper))
        except Contradiction:
            yield Fraction(1)

    monkeypatch.setattr(wide, "RELAXED_COLUMNS", few)
    zeroed = (wide_rows, "ROUNDING"), (wide, "OUTWARD")
    check_allowance(excesses, range(40), zeroed, monkeypatch)
