"""Ridge fits in whole numbers, without any rounding: for the few whose digits twice the precision of floats loses too.

A float is a whole number over a power of two, so moments about means are whole numbers over one common divisor, and the
normal equations are solved by elimination without fractions (Bareiss). Numbers grow with the spread of the data's
exponents, so this is for few rows and columns; `problem.objective.fit` says when.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray

Whole = list[int]

EXACT_WORK = 20_000  # rows times squared columns up to which a fit is made so, some 5 ms


@dataclass(frozen=True, eq=False)
class ExactFit:
    """The minimiser behind f(S) in fractions: prediction = y_center + (x - x_center)' beta.

    Attributes
    ----------
    columns : tuple of int
        Of X.
    x_center : tuple of Fraction
    y_center : Fraction
    beta : tuple of Fraction
    objective : Fraction
    """

    columns: tuple[int, ...]
    x_center: tuple[Fraction, ...]
    y_center: Fraction
    beta: tuple[Fraction, ...]
    objective: Fraction

    def residuals(self, X: FloatArray, y: FloatArray, index: IntArray) -> FloatArray:
        """Return (m,) `y - prediction` of some rows, rounded once.

        Parameters
        ----------
        X : (n, p) array
        y : (n,) array
        index : (m,) int array
            The rows.
        """
        left = []
        for row, target in zip(X[index][:, list(self.columns)].tolist(), y[index].tolist(), strict=True):
            moved = (b * (Fraction(v) - c) for b, v, c in zip(self.beta, row, self.x_center, strict=True))
            left.append(float(Fraction(target) - self.y_center - sum(moved, Fraction(0))))
        return np.array(left)


def fit_exactly(
    X: FloatArray,
    y: FloatArray,
    columns: Sequence[int],
    penalty: Sequence[Fraction],
    train: IntArray,
    about: IntArray | None,
    weights: FloatArray | None = None,
) -> ExactFit | None:
    """Fit a support without rounding; None where columns of no penalty are dependent.

    Parameters
    ----------
    X : (n, p) array
    y : (n,) array
    columns : sequence of s int
    penalty : sequence of s Fraction
        What the squares of the coefficients are times.
    train : (m,) int array
        Training rows.
    about : int array or None
        Rows whose means are taken off; None: nothing is.
    weights : (n,) array, optional
        Of all rows; 1 by default.

    Examples
    --------
    >>> X, y, rows = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0]), np.arange(3)
    >>> fit_exactly(X, y, [0], [Fraction(4)], rows, rows).beta
    (Fraction(1, 3),)
    """
    heft, unit = _whole(np.ones(len(y)) if weights is None else weights)
    parts = [_whole(values) for values in (*X.T[list(columns)], y)]
    total = 1 if about is None else sum(heft[i] for i in about.tolist())
    sums = [0 if about is None else sum(heft[i] * values[i] for i in about.tolist()) for values, _ in parts]
    rows = train.tolist()
    moved = [[total * values[i] - far for i in rows] for (values, _), far in zip(parts, sums, strict=True)]
    times = [heft[i] for i in rows]
    scale, sized = [total * divisor for _, divisor in parts], len(columns)  # moved[j] over scale[j] is of the file
    own = [unit * size**2 for size in scale]
    weighed = [[w * value for w, value in zip(times, column, strict=True)] for column in moved]
    cross = [[sum(map(int.__mul__, a, b)) for b in moved] for a in weighed]
    bottom = math.lcm(*(p.denominator for p in penalty))
    system = [[cross[a][b] * bottom for b in range(sized)] for a in range(sized)]
    for j, p in enumerate(penalty):
        system[j][j] += p.numerator * (bottom // p.denominator) * own[j]
    solved = _solved(system, [cross[a][sized] * bottom for a in range(sized)])
    if solved is None:
        return None
    beta = tuple(Fraction(b * scale[j], scale[sized]) for j, b in enumerate(solved))
    gain = sum((b * cross[j][sized] for j, b in enumerate(solved)), Fraction(0))
    objective = (Fraction(cross[sized][sized]) - gain) / own[sized]
    centers = [Fraction(far, size) for far, size in zip(sums, scale, strict=True)]
    return ExactFit(tuple(columns), tuple(centers[:-1]), centers[-1], beta, objective)


def _whole(values: FloatArray) -> tuple[Whole, int]:
    """Return floats as whole numbers over one power of two."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    divisor = max((below for _, below in ratios), default=1)
    return [above * (divisor // below) for above, below in ratios], divisor


def _solved(system: list[Whole], right: Whole) -> list[Fraction] | None:
    """Solve a positive definite system of whole numbers; None if it is singular."""
    rows, last, size = [[*row, value] for row, value in zip(system, right, strict=True)], 1, len(right)
    for k in range(size):
        if rows[k][k] == 0:
            return None
        for i in range(k + 1, size):
            rows[i] = [(rows[k][k] * rows[i][j] - rows[i][k] * rows[k][j]) // last for j in range(size + 1)]
        last = rows[k][k]
    found = [Fraction(0)] * size
    for i in reversed(range(size)):
        rest = sum((rows[i][j] * found[j] for j in range(i + 1, size)), Fraction(0))
        found[i] = (rows[i][size] - rest) / rows[i][i]
    return found
