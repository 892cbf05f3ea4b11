"""Models that are chosen without the rows of an outer fold and scored on these rows, for nested cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.predicting import INVERSE_LINKS
from sparsecv_mio.certificate.records import PathRow, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.glm_objective import fit_of_data, weighted_losses
from sparsecv_mio.problem.objective import fit, held_out_error, ridge_weights
from sparsecv_mio.problem.row_losses import encode_dataset_targets, row_loss
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.targets import Loss
from sparsecv_mio.units import CROSSING_RTOL


class ScoredOutside(NamedTuple):
    """The mean loss of rows that a model has not seen, an interval that is certain to hold it, and their predictions.

    Of squared loss, whose rounding `verify` bounds, the interval is the error itself.
    """

    error: float
    lower: float
    upper: float
    predicted: FloatArray


def scored_outside(
    training: Dataset, test: Dataset, support: Sequence[str], gamma: float, options: SearchOptions
) -> ScoredOutside:
    """Fit a support on training rows, in units of these, and score other rows.

    Parameters
    ----------
    training, test : Dataset
    support : sequence of str
    gamma : float
    options : SearchOptions
        Loss, scale, intercept.

    Returns
    -------
    ScoredOutside
        With logistic loss the predictions are probabilities.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    >>> data = Dataset.from_arrays(X, y)
    >>> options = SearchOptions(loss="logistic", scale="none")
    >>> scored = scored_outside(data.take(np.arange(4)), data.take(np.array([4])), ["x0"], 1.0, options)
    >>> round(scored.error, 6), bool(scored.upper - scored.lower < 1e-12)
    (0.411608, True)
    """
    options = options.within(training)
    adjusted = options.restrictions.adjust
    if options.loss.is_quadratic:
        rows, columns = np.arange(test.n), [training.names.index(name) for name in (*adjusted, *support)]
        ridge = ridge_weights(columns, columns[: len(adjusted)], gamma)
        model = fit(
            training.X, training.y, columns, ridge, scale=options.scale, intercept=options.intercept,
            weights=training.row_weights,
        )  # fmt: skip
        error = held_out_error(model, test.X, test.y, rows, test.row_weights) / test.weight_of(rows)
        return ScoredOutside(error, error, error, model.intercept + test.X[:, columns] @ model.beta)
    return _outside_by_rows(training, test, [*adjusted, *support], gamma, options)


def score_model(model: Record | PathRow, test: Dataset, loss: Loss) -> ScoredOutside:
    """Score rows by the coefficients of a model.

    Parameters
    ----------
    model : Record or PathRow
    test : Dataset
    loss : Loss

    Examples
    --------
    >>> data = Dataset.from_arrays([[1.0], [3.0]], [1.0, 4.0])
    >>> score_model(PathRow(1.0, 1, ("x0",), {"x0": 1.0}, 0.0, 1.0, 1.0, 1.0, True), data, Loss.SQUARED).error
    0.5
    """
    columns = [test.names.index(name) for name in model.coefficients]
    predictors = test.X[:, columns] @ np.array(list(model.coefficients.values())) + model.intercept
    error = float(weighted_losses(test, loss, predictors).sum()) / test.weight_of(slice(0, test.n))
    return ScoredOutside(error, error, error, INVERSE_LINKS[loss.target.link](predictors))


def _outside_by_rows(
    training: Dataset, test: Dataset, support: Sequence[str], gamma: float, options: SearchOptions
) -> ScoredOutside:
    """Of :func:`scored_outside`; where rounding leaves much open, the error is that of a fit by the definition."""
    from sparsecv_mio.trees.smooth_rows import make_subsets  # loads kernels

    data = standardize(training, options.scale, options.intercept, options.restrictions, options.loss)
    columns, places = data.columns, [data.names.index(name) for name in support]
    subsets = make_subsets(data, np.arange(data.n)).with_gamma(gamma)
    loss, X = row_loss(options.loss), np.ascontiguousarray(test.X[:, columns])
    y, v = encode_dataset_targets(loss, test, slice(0, test.n))
    fits, lower, upper = subsets.score_supports([np.array(places, dtype=np.int64)], X, y, v)
    predictors = X @ fits.coefficients[0] + fits.intercept[0]
    low, high = max(float(lower[0]), 0.0), float(upper[0]) if upper[0] < np.inf else np.inf
    if not high - low <= CROSSING_RTOL * low:
        own = columns[places].tolist()
        ridge = ridge_weights(own, data.free, gamma)
        how = {"scale": options.scale, "intercept": options.intercept}
        predictors = fit_of_data(training, options.loss, own, ridge, **how).predictors(test.X)
    total, error = test.weight_of(slice(0, test.n)), float(weighted_losses(test, options.loss, predictors).sum())
    predicted = INVERSE_LINKS[options.loss.target.link](predictors)
    return ScoredOutside(float(np.clip(error, low, high)) / total, low / total, high / total, predicted)
