"""Ridge fits in integer arithmetic, without rounding, for data on which twice the precision of floats is not enough.

A float is an integer divided by a power of two, so moments about means are integers over one common divisor. The normal
equations are solved by fraction-free elimination (Bareiss). If the exponents of the data differ much, the integers have
many digits. The method is therefore for few rows and columns; `problem.objective.fit` decides when to use it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray

Whole = list[int]

EXACT_WORK = 20_000  # rows times squared columns, up to which a fit is made in fractions: about 5 ms


@dataclass(frozen=True, eq=False)
class ExactFit:
    """The minimiser behind f(S) in fractions: prediction = y_center + (x - x_center)' beta.

    Attributes
    ----------
    columns : tuple of int
        Columns of X.
    x_center : tuple of Fraction
        Centres of the columns.
    y_center : Fraction
        Centre of the target.
    beta : tuple of Fraction
        Coefficients.
    objective : Fraction
        Training objective.
    """

    columns: tuple[int, ...]
    x_center: tuple[Fraction, ...]
    y_center: Fraction
    beta: tuple[Fraction, ...]
    objective: Fraction

    def residuals(self, X: FloatArray, y: FloatArray, index: IntArray) -> FloatArray:
        """Return (m,) `y - prediction` of some rows, each rounded once.

        Parameters
        ----------
        X : (n, p) array
            Features.
        y : (n,) array
            Target.
        index : (m,) int array
            The rows.
        """
        residuals = []
        for row, target in zip(X[index][:, list(self.columns)].tolist(), y[index].tolist(), strict=True):
            moved = (b * (Fraction(v) - c) for b, v, c in zip(self.beta, row, self.x_center, strict=True))
            residuals.append(float(Fraction(target) - self.y_center - sum(moved, Fraction(0))))
        return np.array(residuals)


def fit_exactly(
    X: FloatArray,
    y: FloatArray,
    columns: Sequence[int],
    penalty: Sequence[Fraction],
    train: IntArray,
    about: IntArray | None,
    weights: FloatArray | None = None,
) -> ExactFit | None:
    """Return the fit of a support without rounding; None if unpenalised columns are linearly dependent.

    Parameters
    ----------
    X : (n, p) array
        Features.
    y : (n,) array
        Target.
    columns : sequence of s int
        Columns of the support.
    penalty : sequence of s Fraction
        Factors of the squared coefficients.
    train : (m,) int array
        Training rows.
    about : int array or None
        Rows whose means are subtracted; None: no centring.
    weights : (n,) array, optional
        Weights of all rows; 1 by default.

    Examples
    --------
    >>> X, y, rows = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0]), np.arange(3)
    >>> fit_exactly(X, y, [0], [Fraction(4)], rows, rows).beta
    (Fraction(1, 3),)
    """
    heft, unit = _convert_to_integers(np.ones(len(y)) if weights is None else weights)
    s, values = len(columns), [_convert_to_integers(column) for column in (*X.T[list(columns)], y)]
    centred = [_centre_numbers(column, heft, about) for column, _ in values]
    scale = [total * divisor for (_, total, _), (_, divisor) in zip(centred, values, strict=True)]
    own = [unit * size**2 for size in scale]
    cross = _products([moved for moved, _, _ in centred], heft, train.tolist())
    bottom = math.lcm(*(p.denominator for p in penalty))
    system = [[product * bottom for product in row[:s]] for row in cross[:s]]
    for j, p in enumerate(penalty):
        system[j][j] += p.numerator * (bottom // p.denominator) * own[j]
    solved = _solve_exactly(system, [row[s] * bottom for row in cross[:s]])
    if solved is None:
        return None
    beta = tuple(Fraction(b * scale[j], scale[s]) for j, b in enumerate(solved))
    gain = sum((b * cross[j][s] for j, b in enumerate(solved)), Fraction(0))
    objective = (Fraction(cross[s][s]) - gain) / own[s]
    *centers, y_center = (Fraction(far, size) for (_, _, far), size in zip(centred, scale, strict=True))
    return ExactFit(tuple(columns), tuple(centers), y_center, beta, objective)


def _centre_numbers(values: Whole, heft: Whole, about: IntArray | None) -> tuple[Whole, int, int]:
    """Return numbers minus their mean over some rows, times the weight of these rows; this weight, and their sum."""
    if about is None:
        return values, 1, 0
    rows = about.tolist()
    total, far = sum(heft[i] for i in rows), sum(heft[i] * values[i] for i in rows)
    return [total * value - far for value in values], total, far


def _products(columns: list[Whole], heft: Whole, rows: list[int]) -> list[Whole]:
    """Return the weighted inner products of all pairs of columns on some rows."""
    here = [[column[i] for i in rows] for column in columns]
    weighed = [[heft[i] * value for i, value in zip(rows, column, strict=True)] for column in here]
    return [[sum(map(int.__mul__, a, b)) for b in here] for a in weighed]


def _convert_to_integers(values: FloatArray) -> tuple[Whole, int]:
    """Return floats as integers over one power of two."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    divisor = max((below for _, below in ratios), default=1)
    return [above * (divisor // below) for above, below in ratios], divisor


def _solve_exactly(system: list[Whole], right: Whole) -> list[Fraction] | None:
    """Return the solution of a positive definite system of integers; None if it is singular."""
    rows, last, size = [[*row, value] for row, value in zip(system, right, strict=True)], 1, len(right)
    for k in range(size):
        if rows[k][k] == 0:
            return None
        for i in range(k + 1, size):
            rows[i] = [(rows[k][k] * rows[i][j] - rows[i][k] * rows[k][j]) // last for j in range(size + 1)]
        last = rows[k][k]
    solution = [Fraction(0)] * size
    for i in reversed(range(size)):
        later = sum((rows[i][j] * solution[j] for j in range(i + 1, size)), Fraction(0))
        solution[i] = (rows[i][size] - later) / rows[i][i]
    return solution
