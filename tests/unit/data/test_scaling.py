"""Means and lengths of columns against exact arithmetic, and the powers of two they are scaled by."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.scaling import column_moments, nearest_exponent


def test_moments_against_exact_arithmetic() -> None:
    from fractions import Fraction

    rng = np.random.default_rng(4)
    X = 1e8 + rng.standard_normal((2000, 1))
    exact = [Fraction(v) for v in X[:, 0].tolist()]
    mean = sum(exact) / len(exact)
    square = sum((v - mean) ** 2 for v in exact)
    moments = column_moments(X)
    assert abs(Fraction(float(moments.mean[0])) - mean) <= Fraction(2e-16) * mean
    assert float(moments.norm[0]) == pytest.approx(float(square) ** 0.5, rel=1e-14)


def test_nearest_exponent_is_nearest_in_ratio() -> None:
    values = np.array([1.0, 1.41, 1.42, 2.0, 1e-300, 1e300])
    assert nearest_exponent(values).tolist() == np.rint(np.log2(values)).astype(int).tolist()
