"""The kernels of TreeCV against the same steps in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import pegasos as kernel
from sparsecv_mio.kernels.pegasos import shuffled_range, splitmix

from .plain import read_only
from .shuffle import plain_shuffle, plain_splitmix

Floats = np.ndarray


def data(seed: int, n: int = 24, p: int = 3) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[0] = 0.0
    y = X @ rng.standard_normal(p) + 0.4 * rng.standard_normal(n)
    return X, 2.0 * y, np.where(y > 0, 1.0, -1.0)


def learned(kind: int, rows, X: Floats, y: Floats, a: float) -> tuple[Floats, int]:
    """(coefficients used to predict, rows learned) by the definitions."""
    w, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, i in enumerate(rows, start=1):
        if kind == kernel.PEGASOS:
            eta = 1.0 / (a * t)
            w = (1.0 - eta * a) * w + (eta * y[i] * X[i] if y[i] * (w @ X[i]) < 1.0 else 0.0)
        else:
            w = w - 2.0 * a * (w @ X[i] - y[i]) * X[i]
            w = w / max(1.0, float(np.linalg.norm(w)))
            total = total + w
    t = len(rows)
    return (w if kind == kernel.PEGASOS else total / max(t, 1)), t


def score(kind: int, w: Floats, X: Floats, y: Floats) -> float:
    if kind == kernel.PEGASOS:
        return float(np.mean((X @ w >= 0.0) != (y > 0.0)))
    return float(np.mean((X @ w - y) ** 2))


def new_model(kind: int, p: int) -> Floats:
    return np.zeros(p + 1 if kind == kernel.PEGASOS else 2 * p + 1)


def coefficients(kind: int, model: Floats, p: int, a: float) -> Floats:
    t = max(model[-1], 1.0)
    return model[:p] / (a * t) if kind == kernel.PEGASOS else model[p : 2 * p] / t


CASES = [(kernel.PEGASOS, 0.01), (kernel.PEGASOS, 1.0), (kernel.LEAST_SQUARES, 0.02), (kernel.LEAST_SQUARES, 0.3)]


@pytest.mark.parametrize("kind, a", CASES)
@pytest.mark.parametrize("p", [1, 3])
def test_rows_one_by_one_and_together(kind: int, a: float, p: int) -> None:
    X, y, sign = data(1, p=p)
    target = sign if kind == kernel.PEGASOS else y
    one, all_rows = new_model(kind, p), new_model(kind, p)
    for i in range(len(X)):
        kernel.learn_row(kind, one, X[i], target[i], a)
        w, t = learned(kind, range(i + 1), X, target, a)
        assert one[-1] == t and coefficients(kind, one, p, a) == pytest.approx(w, rel=1e-8, abs=1e-12)
    kernel.learn_rows(kind, all_rows, X, target, a)
    assert np.array_equal(one, all_rows)
    kernel.learn_rows(kind, all_rows, X[:0], target[:0], a)
    assert np.array_equal(one, all_rows)
    got = kernel.score_rows(kind, one, X, target, 3, 11)
    assert got == pytest.approx(score(kind, w, X[3:11], target[3:11]), rel=1e-9)
    untrained = kernel.score_rows(kind, new_model(kind, p), X, target, 3, 11)
    assert untrained == pytest.approx(score(kind, np.zeros(p), X[3:11], target[3:11]), rel=1e-12)


@pytest.mark.parametrize("kind, a", CASES)
def test_ranges_in_order_and_shuffled(kind: int, a: float) -> None:
    X, y, sign = data(2)
    target, p = (sign if kind == kernel.PEGASOS else y), X.shape[1]
    order = np.empty(len(X), dtype=np.int64)
    for randomized in (False, True):
        model = new_model(kind, p)
        kernel.learn_range(kernel.Sgd(kind, a, randomized, 9), model, X, target, 4, 15, order)
        rows = plain_shuffle(4, 15, 9) if randomized else range(4, 15)
        assert coefficients(kind, model, p, a) == pytest.approx(learned(kind, rows, X, target, a)[0], rel=1e-8)


@pytest.mark.parametrize("kind, a", CASES)
@pytest.mark.parametrize("randomized", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 24])
def test_tree_is_the_recursion(kind: int, a: float, randomized: bool, k: int) -> None:
    X, y, sign = data(3)
    target, p = (sign if kind == kernel.PEGASOS else y), X.shape[1]
    starts = read_only(np.round(np.linspace(0, len(X), k + 1)).astype(np.int64))
    scores, count = np.full(k, np.nan), [0]
    expected = np.full(k, np.nan)

    def rows_of(first: int, last: int) -> list[int]:
        lo, hi = int(starts[first]), int(starts[last])
        count[0] += hi - lo
        return plain_shuffle(lo, hi, 17) if randomized else list(range(lo, hi))

    def recurse(first: int, last: int, seen: list[int]) -> None:
        if last - first == 1:
            part = slice(starts[first], starts[last])
            expected[first] = score(kind, learned(kind, seen, X, target, a)[0], X[part], target[part])
            return
        middle = first + (last - first + 1) // 2
        recurse(first, middle, seen + rows_of(middle, last))
        recurse(middle, last, seen + rows_of(first, middle))

    recurse(0, k, [])
    sgd = kernel.Sgd(kind, a, randomized, 17)
    learned_rows = kernel.tree(sgd, new_model(kind, p), X, target, starts, 0, k, scores)
    assert learned_rows == count[0] and scores == pytest.approx(expected, rel=1e-8)


def test_generator() -> None:
    assert int(splitmix(np.uint64(0))) == plain_splitmix(0) == 0xE220A8397B1DCDAF
    for x in (1, 2**63, 2**64 - 1):
        assert int(splitmix(np.uint64(x))) == plain_splitmix(x)


@pytest.mark.parametrize("first, last, seed", [(0, 1, 0), (4, 4, 1), (3, 20, 5), (100, 400, 2**40)])
def test_order(first: int, last: int, seed: int) -> None:
    out = np.full(last - first + 1, -7, dtype=np.int64)
    shuffled_range(first, last, seed, out)
    assert out[-1] == -7 and out[:-1].tolist() == plain_shuffle(first, last, seed)
    assert sorted(out[:-1].tolist()) == list(range(first, last))


def test_orders_are_even() -> None:
    counts = np.zeros((4, 4))
    out = np.empty(4, dtype=np.int64)
    for seed in range(8000):
        shuffled_range(0, 4, seed, out)
        counts[np.arange(4), out] += 1
    assert np.abs(counts - 2000).max() < 200
