"""Draws of rows: multiplicities, strata, groups, and complementary halves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.errors import BadInput
from sparsecv_mio.inference.draws import bootstrap_draws, find_units, half_draws


def make_data(n: int = 30, classes: bool = False, **aux: object) -> Dataset:
    rng = np.random.default_rng(0)
    y = (np.arange(n) % 3 == 0).astype(float) if classes else rng.normal(size=n)
    data = Dataset.from_arrays(rng.normal(size=(n, 2)), y, aux=aux)  # type: ignore[arg-type]
    return as_two_classes(data) if classes else data


def test_a_bootstrap_draw_has_as_many_rows_as_the_data() -> None:
    data = make_data()
    folds = make_folds("5", data)
    draws = list(bootstrap_draws(data, folds, 50, 3))
    assert all(draw.weights.sum() == data.n and draw.weights.min() >= 1 for draw in draws)
    assert all(np.all(np.diff(draw.rows) > 0) for draw in draws)
    copies = sum(np.bincount(draw.rows, draw.weights, data.n) for draw in draws)
    assert np.abs(copies / 50.0 - 1.0).max() < 0.7  # five standard deviations
    shorter = list(bootstrap_draws(data, folds, 2, 3))
    assert all(np.array_equal(one.weights, other.weights) for one, other in zip(shorter, draws, strict=False))
    assert not np.array_equal(draws[0].rows, next(bootstrap_draws(data, folds, 1, 4)).rows)


def test_copies_multiply_the_weights_of_rows() -> None:
    from sparsecv_mio.data.weights import weighted_rows

    data = weighted_rows(make_data(6), [0.5, 1.0, 2.0, 1.0, 3.0, 1.0], "w")
    (draw,) = bootstrap_draws(data, make_folds("2", data), 1, 0)
    assert data.row_weights is not None
    taken = draw.select_rows(data)
    assert taken.row_weights is not None and np.allclose(taken.row_weights, data.row_weights[draw.rows] * draw.weights)


def test_classes_are_drawn_separately() -> None:
    data = make_data(classes=True)
    for draw in bootstrap_draws(data, make_folds("5", data), 20, 0):
        assert np.bincount(data.y[draw.rows].astype(int), draw.weights).tolist() == [20.0, 10.0]
    for draw in half_draws(data, make_folds("5", data), 4, 0):
        assert np.bincount(data.y[draw.rows].astype(int)).tolist() == [10, 5]


@pytest.mark.parametrize("spec", ["groups:who", "groups:who:3"])
def test_groups_are_drawn_as_a_whole(spec: str) -> None:
    who = np.arange(30) // 4
    data = make_data(who=who)
    units = find_units(data, make_folds(spec, data))
    assert units.name == "groups of who" and len(units.stratum) == 8
    for draw in bootstrap_draws(data, make_folds(spec, data), 20, 0):
        copies = np.bincount(draw.rows, draw.weights, data.n)
        assert all(len(set(copies[who == group])) == 1 for group in range(8))
    halves = list(half_draws(data, make_folds(spec, data), 4, 0))
    assert all(len(set(who[draw.rows])) == 4 for draw in halves)


def test_groups_of_one_class_are_drawn_by_class() -> None:
    data = make_data(12, True, who=np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]))
    assert find_units(data, make_folds("groups:who", data)).is_stratified
    mixed = make_data(12, True, who=np.arange(12) // 3)
    assert not find_units(mixed, make_folds("groups:who", mixed)).is_stratified


def test_halves_of_a_pair_are_disjoint_and_uniform() -> None:
    data = make_data(11)
    draws = list(half_draws(data, make_folds("5", data), 200, 1))
    for first, second in zip(draws[::2], draws[1::2], strict=True):
        assert len(first.rows) == len(second.rows) == 5 and not set(first.rows) & set(second.rows)
    share = sum(np.bincount(draw.rows, minlength=11) for draw in draws) / 200
    assert np.abs(share - 5 / 11).max() < 0.15


def test_labels_of_rows_are_groups_and_splitters_are_not() -> None:
    from sklearn.model_selection import GroupKFold, KFold

    data = make_data(12)
    assert find_units(data, make_folds(np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, -1, -1, -1]), data)).of_row.tolist() == [
        0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 5,
    ]  # fmt: skip
    assert find_units(data, make_folds(KFold(3), data)).name == "rows"
    assert (
        find_units(data, make_folds(GroupKFold(3), data, groups=np.arange(12) // 2)).name == "folds splitter:GroupKFold"
    )
    assert find_units(data, make_folds("loo", data)).name == "rows"


def test_folds_in_time_order_and_blocks_are_refused() -> None:
    data = make_data(12)
    with pytest.raises(BadInput, match="would divide the blocks of neighbouring rows; give groups:COLUMN"):
        find_units(data, make_folds("2xblocks:3", data))
    with pytest.raises(BadInput, match="order of time"):
        find_units(data, make_folds("forward:3", data))


@pytest.mark.parametrize("na", ["mean", "median"])
def test_missing_cells_are_imputed_from_the_rows_of_a_draw(na: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.exponential(size=(20, 2)), columns=["a", "b"]).mask(rng.random((20, 2)) < 0.3)
    data = Dataset.from_frame(frame.assign(y=rng.normal(size=20)), "y", na=na)
    folds = make_folds("4", data)
    for draw in [*bootstrap_draws(data, folds, 3, 0), *half_draws(data, folds, 2, 0)]:
        copied = frame.iloc[draw.rows.repeat(draw.weights)]
        expected = copied.fillna(copied.agg(na)).to_numpy()
        assert draw.select_rows(data).X.repeat(draw.weights, axis=0) == pytest.approx(expected, rel=1e-12)
