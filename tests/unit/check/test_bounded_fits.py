"""Every bound on a fit holds against the solution in fractions, whatever was rounded; on harmless data it is sharp."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.check import statements
from sparsecv_mio.check.bounded_fits import ScaledDesign, fits, leverage_bounds, residual_bounds
from sparsecv_mio.check.proof_file import Arithmetic, Floats, Fractions, Refused

Row = list[Fraction]


def dot(x: Any, z: Any) -> Fraction:
    return sum((Fraction(p) * Fraction(q) for p, q in zip(x, z, strict=True)), Fraction(0))


def inverse(M: list[Row]) -> list[Row]:
    """By elimination, in fractions."""
    a = len(M)
    table = [[*row, *(Fraction(int(i == k)) for k in range(a))] for i, row in enumerate(M)]
    for i in range(a):
        table[i] = [entry / table[i][i] for entry in table[i]]
        for k in range(a):
            if k != i:
                table[k] = [x - table[k][i] * z for x, z in zip(table[k], table[i], strict=True)]
    return [row[a:] for row in table]


class Problem:
    """Data with near copies, offsets, columns of other sizes, a tiny gamma; and the truth by definition."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([18, seed])
        n, q, wide = int(rng.integers(4, 12)), int(rng.integers(1, 6)), seed % 5
        self.X = rng.normal(size=(n, q)) * 10.0 ** rng.integers(-wide, wide + 1, size=q) + rng.integers(-9, 9, size=q)
        if seed % 3 == 0:
            self.X[:, -1] = self.X[:, 0] + 10.0 ** -rng.integers(1, 9) * rng.normal(size=n)
        self.y = self.X @ rng.normal(size=q) / np.abs(self.X).max() + rng.normal(size=n) * rng.choice([1e-6, 0.1, 3.0])
        self.scale, self.intercept = (
            ("length", "variance", "none")[seed % 3],
            ("fold", "global", "none")[seed // 3 % 3],
        )
        self.gamma = float(10.0 ** rng.integers(-4, 2))
        self.left = rng.choice(n, size=int(rng.integers(0, 3)), replace=False).tolist()
        size = int(rng.integers(0, q + 1))
        self.sets = np.array([np.sort(rng.permutation(q)[:size]) for _ in range(2)], dtype=np.int64).reshape(2, size)

    def truth(self, design: ScaledDesign) -> tuple[list[Row], list[Row], Row]:
        """Centred rows, the target last, the training rows of these, and the penalty, in the design's units."""
        unit = Fraction(float(design.y_unit))
        units = [unit * Fraction(2) ** int(e) for e in design.exponent.tolist()] + [unit]
        columns = [
            [Fraction(v) / one for v in z] for z, one in zip([*self.X.T.tolist(), self.y.tolist()], units, strict=True)
        ]
        n, kept = len(self.y), [i for i in range(len(self.y)) if i not in self.left]
        about = {"fold": kept, "global": range(n), "none": []}[self.intercept]
        center = [sum((z[i] for i in about), Fraction(0)) / max(len(about), 1) for z in columns]
        spread = [sum(v * v for v in z) - sum(z) ** 2 / n for z in columns[:-1]]
        over = {"length": 1, "variance": n}.get(self.scale, 0)
        scales = [s / over for s in spread] if over else [1 / one**2 for one in units[:-1]]
        rows = [[z[i] - m for z, m in zip(columns, center, strict=True)] for i in range(n)]
        return rows, [rows[i] for i in kept], [Fraction(self.gamma) / 2 * s for s in scales]


def compare(problem: Problem, kind: Arithmetic) -> float | None:
    """Check all bounds; return the width of the interval of f over f, or None where the arithmetic refuses the data."""
    try:
        design = ScaledDesign(problem.X, problem.y, problem.scale, problem.intercept, kind)
        m, width = design.exclude_rows(problem.left), 0.0
        found = fits([m], design.penalty(problem.gamma), problem.sets, kind)
        Z, off = design.Z - m.center, m.center_error + 2 * kind.u
        X, y = Z[:, :-1][:, problem.sets], Z[:, -1]
        low, high = leverage_bounds(found, X, off, kind)
        reach = (kind.root_upper_bounds(high), kind.inner(abs(X), found.norm) + off * found.norm.sum(-1))
        bounds = [residual_bounds(found.beta, found.excess, one, (X, y, off), kind) for one in reach]
    except (Refused, ValueError) as refused:
        assert kind.u or "Singular" in str(refused)  # fractions, too, begin with an inverse in floats
        return None
    rows, kept, pi = problem.truth(design)
    for i, at in enumerate(problem.sets.tolist()):
        M = [[dot((r[j] for r in kept), (r[k] for r in kept)) + (pi[j] if j == k else 0) for k in at] for j in at]
        c, yy = [dot((r[j] for r in kept), (r[-1] for r in kept)) for j in at], sum(r[-1] ** 2 for r in kept)
        inv = inverse(M)
        beta = [dot(row, c) for row in inv]
        f = yy - dot(c, beta)
        assert found.lower[i] <= f <= found.upper[i]
        share = (Fraction(found.upper[i]) - Fraction(found.lower[i])) / f if f else Fraction(0)
        width = max(width, float(min(share, Fraction(10) ** 9)))  # beyond that it says nothing
        for j in range(len(at)):
            off_by = abs(Fraction(found.beta[i, j]) - beta[j])
            assert off_by <= Fraction(found.norm[i, j]) * Fraction(found.excess[i])
            assert Fraction(found.norm[i, j]) ** 2 >= inv[j][j]
        for k, row in enumerate(rows):
            x = [row[j] for j in at]
            assert all(least[k, i] <= abs(row[-1] - dot(x, beta)) <= most[k, i] for least, most in bounds)
            assert low[k, i] <= dot(x, [dot(z, x) for z in inv]) <= high[k, i]
    return width


@pytest.mark.parametrize("kind", [Floats(), Fractions()])
@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 50))])
def test_bounds_hold(kind: Arithmetic, block: int) -> None:
    widths = [compare(Problem(seed), kind) for seed in range(20 * block, 20 * block + 20)]
    known = [width for width in widths if width is not None]
    assert len(known) > 10 and np.median(known) < (1e-9 if kind.u else 1e-25)


def without_ridge(seed: int) -> Problem:
    """A problem whose penalty bounds nothing; of rows enough for its columns to be independent."""
    problem = Problem(seed)
    n, q = problem.X.shape
    problem.gamma, problem.left = 1e-300, problem.left[: max(n - q - 2, 0)]
    return problem


@pytest.mark.parametrize("kind", [Floats(), Fractions()])
@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 25))])
def test_bounds_hold_where_the_penalty_says_nothing(kind: Arithmetic, block: int) -> None:
    problems = [without_ridge(seed) for seed in range(40 * block, 40 * block + 40)]
    widths = [compare(problem, kind) for problem in problems if len(problem.X) > problem.X.shape[1] + 1]
    known = [width for width in widths if width is not None]
    assert len(known) > 10 and np.median(known) < (1e-9 if kind.u else 1e-25)


def test_a_false_moment_would_be_seen() -> None:
    """The truth is that of the data: a bound without its rounding is off it."""
    problem = Problem(4)
    design = ScaledDesign(problem.X, problem.y, problem.scale, problem.intercept, Floats())
    design.gram[0, 0] *= 1.0 + 1e-9
    problem.sets = np.array([[0], [0]])
    m = design.exclude_rows(problem.left)
    found = fits([m], design.penalty(problem.gamma), problem.sets, Floats())
    rows, kept, pi = problem.truth(design)
    M = dot((r[0] for r in kept), (r[0] for r in kept)) + pi[0]
    f = sum(r[-1] ** 2 for r in kept) - dot((r[0] for r in kept), (r[-1] for r in kept)) ** 2 / M
    assert not found.lower[0] <= f <= found.upper[0]


@np.errstate(invalid="ignore")
def leaf_bounds(seed: int, kind: Arithmetic) -> int:
    """Bounds of a random leaf at its ridge fit and at a random point are at most every f of its supports."""
    problem = Problem(seed)
    try:
        design = ScaledDesign(problem.X, problem.y, problem.scale, problem.intercept, kind)
        m, penalty, rng = design.exclude_rows(problem.left), design.penalty(problem.gamma), np.random.default_rng(seed)
        q = len(m.c)
        every, sizes = rng.random((1, q)) < 0.8, np.arange(q + 1)
        inside = every & (rng.random((1, q)) < 0.3)
        own = statements._own_fits(m, penalty, (inside, every), sizes, kind)[0]
    except (Refused, ValueError):
        assert kind.u
        return 0
    point = kind.from_floats(rng.normal(size=(1, q)) * rng.choice([0.0, 0.1, 2.0]))
    base, slopes = statements._bound_at_points(m, penalty, point, kind)
    dual = statements._dual(base, slopes, (inside, every), sizes, kind)[0]
    _, kept, pi = problem.truth(design)
    forced, free = np.flatnonzero(inside[0]).tolist(), np.flatnonzero(every[0] & ~inside[0]).tolist()
    for more in (one for size in range(len(free) + 1) for one in combinations(free, size)):
        at = sorted([*forced, *more])
        M = [[dot((r[j] for r in kept), (r[k] for r in kept)) + (pi[j] if j == k else 0) for k in at] for j in at]
        c = [dot((r[j] for r in kept), (r[-1] for r in kept)) for j in at]
        f = sum(r[-1] ** 2 for r in kept) - dot(c, [dot(row, c) for row in inverse(M)])
        assert own[len(at)] <= f and dual[len(at)] <= f
    return 1


@pytest.mark.parametrize("kind", [Floats(), Fractions()])
@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 50))])
def test_bounds_of_leaves_hold(kind: Arithmetic, block: int) -> None:
    assert sum(leaf_bounds(seed, kind) for seed in range(20 * block, 20 * block + 20)) > 10


def test_rows_of_several_folds_have_the_largest_error_of_their_centres() -> None:
    folds = SimpleNamespace(
        moments=lambda fold: SimpleNamespace(center_error=[1.0, 3.0, 2.0][fold]),
        about=lambda fold, rows: np.zeros((len(rows), 2)), design=SimpleNamespace(kind=Floats),
    )  # fmt: skip
    Z, _, off = statements.Folds._rows(folds, [(fold, [0]) for fold in range(3)], np.array([[0]]))
    assert Z.shape == (3, 1, 1) and off == 3.0 + 2.0 * Floats.u
