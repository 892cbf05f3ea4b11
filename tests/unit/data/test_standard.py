"""Means and lengths of columns against exact arithmetic, and the powers of two they are scaled by."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.data import standard
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import column_moments, nearest_exponent, standardize
from sparsecv_mio.errors import BadInput


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


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_copies(intercept: str) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((30, 9))
    X[:, 2] = X[:, 0]
    X[:, 3] = -X[:, 1]
    X[:, 4] = 3.7 * X[:, 0]
    X[:, 5] = X[:, 1] + 5.0
    X[:, 6] = -X[:, 2]
    X[:, 7] = X[:, 8] * (1 + 1e-9 * rng.standard_normal(30))
    data = Dataset.from_arrays(X, rng.standard_normal(30))
    shifted = 1 if intercept != "none" else -1
    assert standardize(data, "length", intercept).copy_of.tolist() == [-1, -1, 0, 1, 0, shifted, 0, -1, -1]
    unscaled = standardize(data, "none", intercept)
    assert unscaled.copy_of.tolist() == [-1, -1, 0, 1, -1, shifted, 0, -1, -1], "3.7 x pays another penalty than x"
    assert "'x3' duplicates 'x1'" in unscaled.warnings[0] and len(unscaled.warnings) == 1


def test_copies_of_indicators_and_of_uncorrelated_columns() -> None:
    side = np.tile([0.0, 1.0], 20)
    other = np.repeat([0.0, 1.0], 20)
    X = np.column_stack([side, 1 - side, other, 2 * other - 1, side * other])
    std = standardize(Dataset.from_arrays(X, np.arange(40.0)))
    assert std.copy_of.tolist() == [-1, 0, -1, 2, -1]


def test_copies_in_many_columns_need_no_comparison_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((30, 4000))
    X[:, 1000:1100] = -2.0 * X[:, :100]
    calls: list[int] = []
    same = standard._are_duplicate_columns
    monkeypatch.setattr(standard, "_are_duplicate_columns", lambda *a: calls.append(1) or same(*a))
    copy_of = standardize(Dataset.from_arrays(X, rng.standard_normal(30))).copy_of
    assert np.array_equal(np.flatnonzero(copy_of >= 0), np.arange(1000, 1100))
    assert np.array_equal(copy_of[1000:1100], np.arange(100))
    assert len(calls) < 200


MODES = list(product(["length", "variance", "none"], ["fold", "global", "none"]))


def example(n: int = 40, p: int = 5, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-3, 4, p) + rng.standard_normal(p)
    return Dataset.from_arrays(X, 3.0 + X @ rng.standard_normal(p) + rng.standard_normal(n))


@pytest.mark.parametrize(("scale", "intercept"), MODES)
def test_definition(scale: str, intercept: str) -> None:
    data = example()
    std = standardize(data, scale, intercept)
    centre = data.X.mean(axis=0) if intercept != "none" else np.zeros(data.p)
    length = np.linalg.norm(data.X - data.X.mean(axis=0), axis=0)
    divisor = {"length": length, "variance": length / np.sqrt(data.n), "none": std.divisor}[scale]
    V, r = std.rows(slice(0, data.n))
    np.testing.assert_allclose(V, (data.X - centre) / divisor, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(std.divisor, divisor, rtol=1e-14)
    y_center = data.y.mean() if intercept != "none" else 0.0
    np.testing.assert_allclose(r, (data.y - y_center) / std.y_unit, rtol=1e-12, atol=1e-14)
    assert np.frexp(std.y_unit)[0] == 0.5 and 0.7 < np.sqrt(np.mean(r**2)) < 1.42
    if scale == "none":
        assert np.all(np.frexp(std.divisor)[0] == 0.5)
        np.testing.assert_array_equal(std.weight, std.divisor**-2.0)
        assert np.all(np.abs(np.log2(length / std.divisor)) <= 0.5 + 1e-12)
    else:
        assert np.all(std.weight == 1.0)
    assert np.all(std.copy_of == -1) and std.warnings == () and std.q == data.p


@pytest.mark.parametrize(("scale", "intercept"), MODES)
def test_objective_and_coefficients_return_to_the_units_of_the_file(scale: str, intercept: str) -> None:
    data, lam = example(), 0.3
    std = standardize(data, scale, intercept)
    rng = np.random.default_rng(5)
    support, beta = np.array([3, 0, 4]), rng.standard_normal(3)
    V, r = std.rows(slice(0, data.n))
    training = np.arange(30)
    v_mean = V[training].mean(axis=0) if intercept == "fold" else np.zeros(std.q)
    r_mean = float(r[training].mean()) if intercept == "fold" else 0.0
    b0 = r_mean - v_mean[support] @ beta
    here = np.sum((r - b0 - V[:, support] @ beta) ** 2) + lam * np.sum(std.weight[support] * beta**2)

    coefficients, constant = std.coefficients(support, beta, v_mean, r_mean)
    assert list(coefficients) == ["x0", "x3", "x4"], "file order"
    b = np.array([coefficients.get(name, 0.0) for name in data.names])
    length = np.linalg.norm(data.X - data.X.mean(axis=0), axis=0)
    unit = {"length": length, "variance": length / np.sqrt(data.n), "none": np.ones(data.p)}[scale]
    there = np.sum((data.y - constant - data.X @ b) ** 2) + lam * np.sum((unit * b) ** 2)
    assert there == pytest.approx(here * std.y_unit**2, rel=1e-11)
    if intercept == "none":
        assert constant == 0.0


def test_rows_by_slice_and_by_index_with_and_without_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 4))
    X[:, 2] = 7.0
    data = Dataset.from_arrays(X, rng.standard_normal(20))
    cached = standardize(data)
    V, r = cached.rows(slice(0, 20))
    assert V.shape == (20, 3) and not V.flags.writeable
    monkeypatch.setattr(standard, "STORE_BYTES", 0)
    direct = standardize(data)
    for index in (slice(3, 9), np.array([5, 1, 19]), np.array([], dtype=np.int64)):
        for std in (cached, direct):
            block, response = std.rows(index)
            assert np.array_equal(block, V[index]) and np.array_equal(response, r[index])
    assert np.array_equal(direct.column(2), V[:, 2])


@pytest.mark.parametrize(("scale", "intercept"), MODES)
@pytest.mark.parametrize("power", [-498, 498])
def test_powers_of_two_change_no_bit(scale: str, intercept: str, power: int) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((25, 3)) + 1.0, rng.standard_normal(25)
    plain = standardize(Dataset.from_arrays(X, y), scale, intercept)
    scaled = standardize(Dataset.from_arrays(np.ldexp(X, power), np.ldexp(y, -power)), scale, intercept)
    for a, b in zip(plain.rows(slice(0, 25)), scaled.rows(slice(0, 25)), strict=True):
        assert np.array_equal(a, b)
    assert scaled.y_unit == np.ldexp(plain.y_unit, -power)
    if scale == "none":
        assert np.array_equal(scaled.weight, np.ldexp(plain.weight, -2 * power))


@pytest.mark.parametrize("factor", [1e-150, 1e150])
@pytest.mark.parametrize(("scale", "intercept"), MODES)
def test_extreme_columns_and_targets(scale: str, intercept: str, factor: float) -> None:
    data = example()
    std = standardize(data, scale, intercept)
    for X, y in ((data.X * factor, data.y), (data.X, data.y * factor), (data.X * factor, data.y * factor)):
        with np.errstate(all="raise", under="ignore"):
            other = standardize(Dataset.from_arrays(X, y), scale, intercept)
            V, r = other.rows(slice(0, data.n))
            values, constant = other.coefficients(np.arange(5), np.ones(5), np.zeros(5), 0.0)
        assert np.isfinite(V).all() and np.isfinite(r).all() and np.isfinite(other.weight).all()
        assert (other.weight > 0).all() and np.isfinite(list(values.values())).all() and np.isfinite(constant)
        assert 0 < other.y_unit * other.y_unit < np.inf
        if scale != "none":
            np.testing.assert_allclose(V, std.rows(slice(0, data.n))[0], rtol=1e-9, atol=1e-12)


def test_constant_columns_are_named_and_left_out() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((12, 6))
    X[:, 1] = 0.1
    X[:, 3] = 0.0
    X[:, 4] = np.where(np.arange(12) % 2, 0.1 + 0.2, 0.3)
    std = standardize(Dataset.from_arrays(X, X[:, 0] + rng.standard_normal(12)))
    assert std.columns.tolist() == [0, 2, 5] and std.names == ("x0", "x2", "x5")
    assert std.warnings == (
        "columns 'x1', 'x3' are constant: their coefficients are zero, but they count in tau",
        "column 'x4' varies only by rounding errors: its coefficient is zero, but it counts in tau",
    )
    values, _ = std.coefficients([1], np.ones(1), np.zeros(3), 0.0)
    assert list(values) == ["x2"]


def test_a_small_spread_on_a_large_mean_is_no_constant() -> None:
    X = np.array([[1e8 + 1e-6], [1e8], [1e8 - 1e-6], [1e8]])
    assert standardize(Dataset.from_arrays(X, [1.0, 2.0, 3.0, 5.0])).q == 1


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([[1.0], [2.0]], [3.0, 3.0], {}, "target 'y' is constant"),
        ([[1.0], [2.0], [4.0]], [0.3, 0.1 + 0.2, 0.3], {}, "target 'y' is constant"),
        ([[1.0], [1.0]], [3.0, 4.0], {}, "every feature is constant"),
        ([[1.0], [2.0]], [3.0, 4.0], {"scale": "unit"}, "scale: unknown word 'unit'; use length, variance, none"),
        ([[1.0], [2.0]], [3.0, 4.0], {"intercept": "yes"}, "intercept: unknown word 'yes'; use fold, global, none"),
        ([[1e300], [2.0]], [3.0, 4.0], {}, r"column 'x0' has values outside 2\^-900 .. 2\^900"),
        ([[1.7e308], [-1.7e308]], [3.0, 4.0], {}, r"column 'x0' has values outside 2\^-900 .. 2\^900"),
        ([[1e-300], [0.0]], [3.0, 4.0], {}, r"column 'x0' has values outside 2\^-900 .. 2\^900"),
        ([[1.0], [2.0]], [1e200, 0.0], {}, "target 'y' is too large or too small"),
        ([[1.0], [2.0]], [1.7e308, -1.7e308], {}, "target 'y' is too large or too small"),
        ([[1.0], [2.0]], [1e-200, 0.0], {}, "target 'y' is too large or too small"),
    ],
)
def test_refusals(X: list[list[float]], y: list[float], options: dict[str, str], message: str) -> None:
    with np.errstate(all="raise", under="ignore"), pytest.raises(BadInput, match=message) as caught:
        standardize(Dataset.from_arrays(X, y), **options)
    assert "\n" not in str(caught.value)


def test_a_coefficient_beyond_the_floats_is_refused() -> None:
    std = standardize(Dataset.from_arrays([[0.0], [1e-200], [0.0]], [1e120, 0.0, 0.0]))
    with pytest.raises(BadInput, match="coefficient of 'x0' is too large"):
        std.coefficients([0], np.array([1.0]), np.zeros(1), 0.0)


def test_a_text_column_of_one_value_is_named_with_its_remedy(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("x,a device,flat,y\n" + "".join(f"{k * k % 7},A7,5,{k * 5 % 11}\n" for k in range(12)))
    warned = standardize(read_dataset(path, "y", encode="onehot")).warnings
    assert warned[-2:] == (
        "column 'a device' holds one text value in all rows: its coefficient is zero, but it counts in tau; "
        "--drop 'a device' leaves it out",
        "column 'flat' is constant: its coefficient is zero, but it counts in tau",
    )


def test_integers_that_float64_rounds_to_one_number_are_explained() -> None:
    X = np.column_stack([np.arange(4.0), np.arange(4) + 2**60])
    (said,) = standardize(Dataset.from_arrays(X, [0.0, 1.0, 0.0, 2.0])).warnings
    assert said.startswith("column 'x1' is constant (float64 numbers round integers above 2^53): its coefficient")
