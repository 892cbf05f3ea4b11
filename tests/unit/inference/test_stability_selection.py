"""Stability selection: its bound, its frequencies over complete pairs, and its error control by simulation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.inference_checks import bound_false_selections
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report.optional_parts import summarise_draws


def make_data(n: int = 40, p: int = 6, seed: int = 0, signals: int = 1) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return Dataset.from_arrays(X, X[:, :signals].sum(axis=1) * 1.5 + rng.normal(size=n))


def solve(data: Dataset, taus: tuple[int, ...] = (1, 2), **options: object) -> Record:
    return sc.cross_validate(data, "4", gammas=[0.1], taus=taus, threads=1, **options)  # type: ignore[arg-type]


def test_frequencies_bound_and_selection_come_from_the_halves() -> None:
    data = make_data()
    made = sc.stability_selection(solve(data), data, pairs=6, threshold=0.8, threads=1)
    found = made.stability_selection
    assert found is not None and found.pairs == 6 and found.plan.requested == 12 and found.certified == 12
    counts = Counter(name for model in found.chosen for name in model.support)
    assert {one.feature: one.draws for one in found.features} == counts
    assert found.selected == tuple(name for name in data.names if counts[name] >= 0.8 * 12)
    q = sum(len(model.support) for model in found.chosen) / 12
    assert found.mean_size == q and found.n_features == 6
    assert found.bound == pytest.approx(q**2 / (0.6 * 6)) == bound_false_selections(q, 6, 0.8)
    assert Record.from_json(made.to_json()) == made and sc.verify(made, data).ok
    for altered in (replace(found, bound=0.1), replace(found, selected=()), replace(found, n_features=60)):
        assert not sc.verify(replace(made, stability_selection=altered), data).ok


def test_columns_in_every_model_are_not_selected() -> None:
    data = make_data()
    made = sc.stability_selection(solve(data, (2,), force_in="x1", force_out="x5"), data, pairs=3, threads=1)
    found = made.stability_selection
    assert found is not None and "x1" not in found.selected
    assert found.n_features == 4 and found.mean_size == 1.0 and sc.verify(made, data).ok


def test_a_factor_counts_as_one_feature() -> None:
    rng = np.random.default_rng(3)
    level, X = rng.integers(3, size=60), rng.normal(size=(60, 3))
    names = ["f=u", "f=v", "f=w", "a", "b", "c"]
    data = Dataset.from_arrays(np.column_stack([np.eye(3)[level], X]), 3.0 * (level == 1) + rng.normal(size=60), names)
    made = sc.stability_selection(solve(data, (2,), count="factors"), data, pairs=4, threshold=0.8, threads=1)
    found = made.stability_selection
    assert found is not None and found.selected[0] == "f" and set(found.selected) <= {"f", "a", "b", "c"}
    assert (found.mean_size, found.n_features) == (2.0, 4)
    assert found.bound == pytest.approx(2.0**2 / (0.6 * 4)) and sc.verify(made, data).ok
    (summary,) = summarise_draws(made)
    assert f"at most {found.bound:.2f} of the selected terms are expected to be false selections" in str(summary)
    assert "with a probability of at most 2 / 4, as by chance" in str(summary)
    assert [row[0] for row in summary.tables[0].rows].count("f") == 1
    columns = ("f=u", "f=v", "f=w", *found.selected[1:])
    old = replace(found, mean_size=4.0, n_features=6, bound=4.0**2 / (0.6 * 6), selected=columns)
    assert sc.verify(replace(made, stability_selection=old), data).ok  # as in records of development versions
    assert not sc.verify(replace(made, stability_selection=replace(old, bound=0.1)), data).ok


def test_wrong_values_are_refused_in_one_line() -> None:
    data = make_data()
    with pytest.raises(BadInput, match="threshold 0.5 is out of range"):
        sc.stability_selection(solve(data), data, threshold=0.5)
    with pytest.raises(BadInput, match="stability_selection: 0 is out of range"):
        sc.stability_selection(solve(data), data, pairs=0)


@pytest.mark.slow
def test_noise_features_are_selected_less_often_than_the_bound() -> None:
    """Without any signal the features are exchangeable, so the bound holds for the number of selected features."""
    selected, bounds, seeds = list[int](), list[float](), 100
    for seed in range(seeds):
        data = make_data(60, 10, seed, signals=0)
        made = sc.stability_selection(solve(data, (1,)), data, pairs=25, threshold=0.6, threads=1).stability_selection
        assert made is not None
        selected.append(len(made.selected))
        bounds.append(made.bound)
    spread = float(np.std(selected)) / np.sqrt(seeds)
    print(f"selected {np.mean(selected):.3f} +- {spread:.3f}, bound {np.mean(bounds):.3f}")
    assert np.mean(selected) <= np.mean(bounds) + 2.0 * spread
