"""Oracles: what a model predicts for rows that are left out, without training it again for each of them.

| kind | answer | may prune | oracles |
|---|---|---|---|
| certified | :class:`Bracket`, proved to contain the prediction | yes | GLRU |
| estimate | :class:`Estimate`, near the prediction | no, it may only order the work | IACV, TreeCV |

The two answers are of different types: code that prunes takes a `Bracket`, and an `Estimate` cannot become one.
All oracles fit the arrays made here: the columns of a data set, scaled and centred where asked, and labels -1 / +1.

What `solve --oracles` switches in the search are not these objects but accelerators that use the same results; see
:mod:`sparsecv_mio.search.accelerators` and the notation page.
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
from sparsecv_mio.errors import BadInput, Contradiction, word_of
from sparsecv_mio.words import Intercept, Scale

ProgressHook = Callable[[int, int], None]
"""Called with (units of work done, units of work in total) from time to time."""


class Guarantee(StrEnum):
    """Whether an oracle's numbers are proved."""

    CERTIFIED = "certified"
    ESTIMATE = "estimate"


@dataclass(frozen=True, eq=False)
class Bracket:
    """Intervals proved to contain each left-out prediction.

    Parameters
    ----------
    lower, upper : (m,) arrays
        `lower <= x_i' w^(-N) <= upper` for the m left-out rows; -inf / +inf where nothing is known.

    Raises
    ------
    Contradiction
        If an end is NaN or a lower end exceeds its upper end.

    Examples
    --------
    >>> Bracket(np.array([0.5, -1.0]), np.array([2.0, 1.0])).sign().tolist()
    [1.0, nan]
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        if not np.all(self.lower <= self.upper):
            raise Contradiction("a certified interval is empty: its lower end exceeds its upper end")

    def sign(self) -> FloatArray:
        """(m,) sign of each prediction: -1, 0 or 1 where the interval decides it, NaN elsewhere."""
        zero = (self.lower == 0.0) & (self.upper == 0.0)
        return np.select([self.lower > 0.0, self.upper < 0.0, zero], [1.0, -1.0, 0.0], default=np.nan)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Numbers near each left-out prediction, without a proof.

    Parameters
    ----------
    value : (m,) array
        For the m left-out rows.
    """

    value: FloatArray


def binary_labels(dataset: Dataset) -> tuple[FloatArray, tuple[float, float]]:
    """Map the two values of the target to -1 (the smaller) and +1 (the larger).

    Returns
    -------
    labels : (n,) array
        -1.0 and 1.0.
    values : (float, float)
        The values of the target that became -1 and +1.

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
        raise BadInput(f"target {dataset.target!r} takes {values.size} values: a classification needs exactly two")
    return np.where(dataset.y == values[1], 1.0, -1.0), (float(values[0]), float(values[1]))


def design_matrix(dataset: Dataset, scale: str = "none", intercept: str = "none") -> FloatArray:
    """Return the columns divided by their scale and, for `intercept="global"`, centred once on all rows.

    Parameters
    ----------
    dataset : Dataset
        Its columns.
    scale : {"none", "length", "variance"}
        `length` divides by the centred l2 norm, `variance` by that over sqrt(n) (theory section 0); constant columns
        keep their values.
    intercept : {"none", "global", "fold"}
        `fold` changes nothing here: the fit itself then carries an unpenalised intercept.

    Returns
    -------
    (n, p) array
        C-contiguous; the data set's own array where nothing changes.

    Raises
    ------
    BadInput
        If a word is unknown.

    Examples
    --------
    >>> design_matrix(Dataset.from_arrays([[1.0], [3.0]], [0.0, 1.0]), "variance", "global").ravel().tolist()
    [-1.0, 1.0]
    """
    scale, intercept = word_of(Scale, scale, "scale"), word_of(Intercept, intercept, "intercept")
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
    """Return the rows to train on and the rows held out, by the fold plan `holdout:share`.

    Parameters
    ----------
    dataset : Dataset
        Its rows are dealt.
    share : float
        Share of the rows held out.
    seed : int
        Seed of the shuffle.

    Returns
    -------
    train, test : int arrays
        Positions of rows.

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
    """Return the rows of a second data set, scaled, centred and labelled as those of the first.

    Parameters
    ----------
    dataset : Dataset
        The first: it gives scales, centres and the two values of the target.
    extra : Dataset
        The second.
    scale : {"none", "length", "variance"}
        As for :func:`design_matrix`.
    intercept : {"none", "global", "fold"}
        As for :func:`design_matrix`.

    Returns
    -------
    X : (m, p) array
        Rows of the second data set.
    labels : (m,) array
        -1.0 and 1.0.

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
    if not np.isin(extra.y, values).all():
        raise BadInput(f"target {extra.target!r} of the validation data takes a value that the training data does not")
    center, divisor = _center_and_divisor(dataset, scale, intercept)
    return np.ascontiguousarray((extra.X - center) / divisor), np.where(extra.y == values[1], 1.0, -1.0)
