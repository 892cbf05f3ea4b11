"""Properties of the data room on random inputs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import COPY_RTOL, standardize
from sparsecv_mio.errors import BadInput

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(hnp.arrays(float, st.tuples(st.integers(1, 8), st.integers(2, 4)), elements=NUMBERS))
@settings(max_examples=100, deadline=None)
def test_csv_and_parquet_return_every_float(values: np.ndarray) -> None:
    frame = pd.DataFrame(values, columns=[f"c{j}" for j in range(values.shape[1])])
    expected = Dataset.from_frame(frame, "c0")
    with tempfile.TemporaryDirectory() as folder:
        table, store = Path(folder) / "d.csv", Path(folder) / "d.parquet"
        frame.to_csv(table, index=False)
        frame.to_parquet(store)
        assert read_dataset(table, "c0").fingerprint == expected.fingerprint
        assert read_dataset(store, "c0").fingerprint == expected.fingerprint


@given(st.integers(4, 60), st.integers(0, 2**32), st.data())
@settings(max_examples=200, deadline=None)
def test_folds_partition_the_rows(n: int, seed: int, draw: st.DataObject) -> None:
    k = draw.draw(st.integers(2, n))
    share = draw.draw(st.floats(0.01, 0.99))
    data = Dataset.from_arrays(np.zeros((n, 1)), np.zeros(n))
    for spec in (str(k), "loo", f"blocks:{k // 2}", f"holdout:{share}"):
        try:
            plan = make_folds(spec, data, seed)
        except BadInput:
            assert spec.startswith("blocks:") or n - int(share * n + 0.5) < 2
            continue
        held = np.concatenate([plan.scored_rows(j) for j in range(plan.k)])
        assert len(set(held.tolist())) == held.size == np.sum(plan.labels >= 0)
        assert spec.startswith("holdout") or held.size == n
        assert np.ptp(plan.sizes) <= 1 or spec.startswith("blocks:")
        assert folds_from_labels(plan.labels, spec).digest == plan.digest == make_folds(spec, data, seed).digest


@given(st.integers(0, 10**6), st.integers(-480, 480), st.integers(-480, 480))
@settings(max_examples=100, deadline=None)
def test_units_of_columns_and_target_do_not_matter(seed: int, a: int, b: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 12)), int(rng.integers(1, 5))
    X, y = rng.standard_normal((n, p)) + rng.standard_normal(p), rng.standard_normal(n)
    plain = standardize(Dataset.from_arrays(X, y))
    scaled = standardize(Dataset.from_arrays(np.ldexp(X, a), np.ldexp(y, b)))
    for u, v in zip(plain.rows(slice(0, n)), scaled.rows(slice(0, n)), strict=True):
        assert np.array_equal(u, v)
    beta = rng.standard_normal(p)
    one, one_constant = plain.coefficients(np.arange(p), beta, np.zeros(p), 0.0)
    two, two_constant = scaled.coefficients(np.arange(p), beta, np.zeros(p), 0.0)
    assert [float(np.ldexp(v, b - a)) for v in one.values()] == list(two.values())
    assert float(np.ldexp(one_constant, b)) == two_constant


@given(st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_copies_are_exactly_the_pairs_a_full_comparison_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 9)), int(rng.integers(2, 10))
    X = rng.integers(-1, 2, (n, p)).astype(float)
    y = rng.standard_normal(n)
    assume(np.ptp(X, axis=0).any())
    scale = str(rng.choice(["length", "none"]))
    intercept = str(rng.choice(["fold", "none"]))
    std = standardize(Dataset.from_arrays(X, y), scale, intercept)
    V, _ = std.rows(slice(0, n))
    for j in range(std.q):
        expected = -1
        for i in range(j):
            gap = min(np.linalg.norm(V[:, i] - V[:, j]), np.linalg.norm(V[:, i] + V[:, j]))
            if gap <= COPY_RTOL * np.linalg.norm(V[:, i]) and std.weight[i] == std.weight[j]:
                expected = i
                break
        assert std.copy_of[j] == expected
