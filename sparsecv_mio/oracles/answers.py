"""Input and answers of the oracles GLRU, IACV and TreeCV, which predict held-out rows with few fits.

| kind | answer | may exclude models | oracles |
|---|---|---|---|
| certified | :class:`Bracket`, proved to contain the prediction | yes | GLRU |
| estimate | :class:`Estimate`, near the prediction | no, only determines which work comes first | IACV, TreeCV |

The two kinds of answer have different types: code that excludes models takes a `Bracket`, and an `Estimate` cannot be
converted to a `Bracket`. All oracles use the arrays that this module makes: the columns of a data set, scaled and
centred if requested, and labels -1 and +1.

`solve` does not use the classes of this module. The bounds of `solve` rely on the same mathematical results; see
:mod:`sparsecv_mio.search.sources` and docs/notation.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import column_moments
from sparsecv_mio.errors import BadInput, Contradiction, parse_keyword
from sparsecv_mio.words import Intercept, Scale

ProgressHook = Callable[[int, int], None]
"""Called with (units of work done, units of work in total) from time to time."""


class Guarantee(StrEnum):
    """Kind of an oracle's numbers: proved or estimated."""

    CERTIFIED = "certified"
    ESTIMATE = "estimate"


@dataclass(frozen=True, eq=False)
class Bracket:
    """Intervals proved to contain each held-out prediction.

    Parameters
    ----------
    lower, upper : (m,) arrays
        Bounds `lower <= x_i' w^(-N) <= upper` for the m held-out rows; -inf / +inf if unknown.

    Raises
    ------
    Contradiction
        If a bound is NaN or a lower bound exceeds its upper bound.

    Examples
    --------
    >>> Bracket(np.array([0.5, -1.0]), np.array([2.0, 1.0])).sign().tolist()
    [1.0, nan]
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        if not np.all(self.lower <= self.upper):
            raise Contradiction("a certified interval is empty: its lower bound exceeds its upper bound")

    def sign(self, margin: FloatArray | float = 0.0) -> FloatArray:
        """Return the (m,) signs of the predictions: -1, 0 or 1 if the interval determines the sign, else NaN.

        Parameters
        ----------
        margin : (m,) array or float
            Rounding error of the bounds: a bound this near zero determines no sign, unless both are exactly zero.
        """
        zero = (self.lower == 0.0) & (self.upper == 0.0)
        return np.select([self.lower > margin, self.upper < -margin, zero], [1.0, -1.0, 0.0], default=np.nan)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimates of each held-out prediction, without a proof.

    Parameters
    ----------
    value : (m,) array
        Estimates for the m held-out rows.
    """

    value: FloatArray


def binary_labels(dataset: Dataset) -> tuple[FloatArray, tuple[float, float]]:
    """Return the target as labels -1 (for the smaller value) and +1 (for the larger), and the two values.

    Returns
    -------
    labels : (n,) array
        Labels -1.0 and 1.0.
    values : (float, float)
        Values of the target that became -1 and +1.

    Raises
    ------
    BadInput
        If the target does not take exactly two values.

    Examples
    --------
    >>> labels, values = binary_labels(Dataset.from_arrays([[0.0], [1.0], [2.0]], [3.0, 7.0, 3.0]))
    >>> labels.tolist(), values
    ([-1.0, 1.0, -1.0], (3.0, 7.0))
    """
    values = np.unique(dataset.y)
    if values.size != 2:
        raise BadInput(
            f"target {dataset.target!r} has {values.size} different values, but classification needs exactly two; name "
            "another target"
        )
    return np.where(dataset.y == values[1], 1.0, -1.0), (float(values[0]), float(values[1]))


def design_matrix(dataset: Dataset, scale: str = "none", intercept: str = "none") -> FloatArray:
    """Return the columns divided by their scale and, for `intercept="global"`, centred once on all rows.

    Parameters
    ----------
    dataset : Dataset
        Data set with the columns.
    scale : {"none", "length", "variance"}
        Scale of columns: `length` divides by the centred l2 norm, `variance` by that over sqrt(n) (theory section 0);
        constant columns keep their values.
    intercept : {"none", "global", "fold"}
        Intercept; `fold` changes nothing here, because the fit itself then has an unpenalised intercept.

    Returns
    -------
    (n, p) array
        C-contiguous columns; the data set's own array if nothing changes.

    Raises
    ------
    BadInput
        If a keyword is unknown.

    Examples
    --------
    >>> design_matrix(Dataset.from_arrays([[1.0], [3.0]], [0.0, 1.0]), "variance", "global").ravel().tolist()
    [-1.0, 1.0]
    """
    scale, intercept = parse_keyword(Scale, scale, "scale"), parse_keyword(Intercept, intercept, "intercept")
    if scale == Scale.NONE and intercept != Intercept.GLOBAL:
        return dataset.X
    center, divisor = _center_and_divisor(dataset, scale, intercept)
    return np.ascontiguousarray((dataset.X - center) / divisor)


def _center_and_divisor(dataset: Dataset, scale: str, intercept: str) -> tuple[FloatArray, FloatArray]:
    moments = column_moments(dataset.X)
    divisor = np.ones(dataset.p)
    if scale != Scale.NONE:
        rows = dataset.n if scale == Scale.VARIANCE else 1
        divisor = np.where(moments.constant, 1.0, moments.norm / np.sqrt(rows))
    return (moments.mean if intercept == Intercept.GLOBAL else np.zeros(dataset.p)), divisor


def holdout_split(dataset: Dataset, share: float, seed: int = 0) -> tuple[IntArray, IntArray]:
    """Return training and held-out rows, by the fold plan `holdout:share`.

    Parameters
    ----------
    dataset : Dataset
        Data set whose rows are split.
    share : float
        Share of held-out rows.
    seed : int
        Seed of the shuffle.

    Returns
    -------
    train, test : int arrays
        Row indices.

    Raises
    ------
    BadInput
        If the share is not between 0 and 1 or leaves fewer than two rows to train on.

    Examples
    --------
    >>> train, test = holdout_split(Dataset.from_arrays([[0.0]] * 10, [0.0, 1.0] * 5), 0.2)
    >>> len(train), len(test)
    (8, 2)
    """
    plan = make_folds(f"holdout:{share!r}", dataset, seed)
    return plan.train_rows(0), plan.scored_rows(0)


def validation_rows(
    dataset: Dataset, extra: Dataset, scale: str = "none", intercept: str = "none"
) -> tuple[FloatArray, FloatArray]:
    """Return the rows of a second data set, scaled, centred and labelled like those of the first.

    Parameters
    ----------
    dataset : Dataset
        First data set, which gives scales, centres and the two values of the target.
    extra : Dataset
        Second data set.
    scale : {"none", "length", "variance"}
        Scale of columns, as for :func:`design_matrix`.
    intercept : {"none", "global", "fold"}
        Intercept, as for :func:`design_matrix`.

    Returns
    -------
    X : (m, p) array
        Rows of the second data set.
    labels : (m,) array
        Labels -1.0 and 1.0.

    Raises
    ------
    BadInput
        If the second data set has other columns or a target value that the first one does not have.

    Examples
    --------
    >>> one = Dataset.from_arrays([[1.0], [3.0]], [5.0, 6.0])
    >>> X, labels = validation_rows(one, Dataset.from_arrays([[5.0]], [6.0]), "variance", "global")
    >>> X.tolist(), labels.tolist()
    ([[3.0]], [1.0])
    """
    if extra.names != dataset.names:
        raise BadInput("the validation data must have the columns of the training data, in their order")
    _, values = binary_labels(dataset)
    unknown = extra.y[~np.isin(extra.y, values)]
    if len(unknown):
        raise BadInput(
            f"target {extra.target!r} of the validation data has the value {unknown[0]:g}; the training data have only "
            f"{values[0]:g} and {values[1]:g}; remove the row"
        )
    center, divisor = _center_and_divisor(dataset, scale, intercept)
    return np.ascontiguousarray((extra.X - center) / divisor), np.where(extra.y == values[1], 1.0, -1.0)
