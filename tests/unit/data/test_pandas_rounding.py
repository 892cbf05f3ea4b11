"""Numbers as pandas 2 reads them: against its parser where there is one, and records of such numbers."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.pandas_rounding import as_pandas_2, read_by_pandas_2


def drawn(n: int) -> np.ndarray:
    rng = np.random.default_rng(4)
    return rng.normal(size=n) * 10.0 ** rng.integers(-12, 12, size=n)


@pytest.mark.skipif(not pd.__version__.startswith("2."), reason="pandas 3 reads numbers exactly")
def test_numbers_are_those_of_its_parser() -> None:
    numbers = np.concatenate([drawn(20_000), [0.0, -1e-300, 1e300, 123456789012345680.0, 1e22, 0.1]])
    text = "x\n" + "".join(f"{value!r}\n" for value in numbers.tolist())
    found = pd.read_csv(io.StringIO(text))["x"].to_numpy()
    assert np.array_equal(found, as_pandas_2(numbers)) and (found != numbers).any()


def test_whole_and_short_numbers_stay_and_others_are_near() -> None:
    short = np.array([0.0, -3.0, 0.25, 1e14, 12.5])
    assert np.array_equal(as_pandas_2(short), short)
    assert np.allclose(as_pandas_2(drawn(2_000)), drawn(2_000), rtol=1e-12, atol=0.0)


def test_a_record_of_such_numbers_is_verified_with_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    exact = Dataset.from_arrays(X, X[:, 0] + 0.1 * rng.normal(size=30))
    read = Dataset.from_arrays(as_pandas_2(exact.X), as_pandas_2(exact.y))
    assert read.fingerprint != exact.fingerprint and read_by_pandas_2(exact, exact.fingerprint) is None
    record = sc.solve(read, folds="5", gammas=[0.1, 1.0])
    report = sc.verify(record, exact)
    assert report.ok and "as pandas 2 reads them" in report.verified[0] and "round_trip" in report.verified[0]
    moved = Dataset.from_arrays(exact.X * (1.0 + 1e-15), exact.y)
    assert sc.verify(record, moved).failures[0].field == "data.fingerprint"
