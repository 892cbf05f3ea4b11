"""What must hold for the bounds of any data."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.standard import standardize

GAMMAS = st.sampled_from([1e-3, 0.1, 1.0, 100.0])


def bounds(X, y, labels, gamma, taus, scale="length"):
    data = Dataset.from_arrays(X, y)
    return compute_bounds(standardize(data, scale), folds_from_labels(labels), [gamma], taus)


def draw(seed, n=18, p=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    return X, X @ rng.standard_normal(p) + rng.standard_normal(n), np.arange(n) % 3


def overlap(a, b, g, t, factor=1.0):
    """Both intervals hold the same number, so they must meet."""
    one, two = a.cv_interval(g, t), b.cv_interval(g, t)
    assert one.lower * factor <= two.upper * (1 + 1e-9) and two.lower <= one.upper * factor * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), GAMMAS, st.sampled_from([2.0**20, 2.0**-30, 3.7, -5.0]))
def test_scaling_the_target_scales_by_its_square(seed, gamma, c):
    X, y, labels = draw(seed)
    one, two = bounds(X, y, labels, gamma, [1, 2, 4]), bounds(X, c * y, labels, gamma, [1, 2, 4])
    for t in range(3):
        overlap(one, two, 0, t, c * c)
        if abs(c) in (2.0**20, 2.0**-30):
            assert np.isclose(two.cv_interval(0, t).upper, c * c * one.cv_interval(0, t).upper, rtol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), GAMMAS)
def test_order_signs_and_scales_of_columns_do_not_matter(seed, gamma):
    X, y, labels = draw(seed)
    rng = np.random.default_rng(seed + 1)
    other = (X * rng.choice([-1.0, 1.0], 5) * 10.0 ** rng.integers(-6, 7, 5))[:, rng.permutation(5)]
    one, two = bounds(X, y, labels, gamma, [1, 3]), bounds(other, y, labels, gamma, [1, 3])
    for t in range(2):
        overlap(one, two, 0, t)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), GAMMAS)
def test_more_columns_never_raise_the_objective(seed, gamma):
    X, y, labels = draw(seed)
    table = bounds(X, y, labels, gamma, range(6))
    assert np.all(np.diff(table.objective_upper[0], axis=0) <= 1e-6 * table.objective_upper[0, :-1])
    assert np.all(table.objective_lower <= table.objective_upper * (1 + 1e-12))
    assert np.all(table.lower <= table.upper)
    assert np.all(table.left >= 0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), GAMMAS)
def test_a_copied_row_of_columns_changes_no_interval_wrongly(seed, gamma):
    """With a copy of a column two supports predict alike: still one interval that holds both."""
    X, y, labels = draw(seed)
    doubled = np.column_stack([X, -X[:, 0]])
    one, two = bounds(X, y, labels, gamma, [1]), bounds(doubled, y, labels, gamma, [1])
    overlap(one, two, 0, 0)
