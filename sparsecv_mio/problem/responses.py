"""The row loss for a keyword such as `logistic`, and the targets and weights of rows in the form that it requires."""

from __future__ import annotations

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.row_losses import LOG_LOSS, PoissonLoss, RowLoss, SquaredError
from sparsecv_mio.targets import Loss

ROW_LOSSES = {loss.name: loss for loss in (SquaredError(), LOG_LOSS, PoissonLoss())}


def row_loss(loss: Loss) -> RowLoss:
    """Return the loss of one row for a keyword.

    Parameters
    ----------
    loss : Loss
        Loss of the fits.
    """
    return ROW_LOSSES[loss]


def encode_row_targets(data: StandardData, rows: IntArray | slice) -> tuple[FloatArray, FloatArray]:
    """Return the targets and weights of some rows in the form of their loss.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    rows : int array or slice
        Rows.
    """
    return encode_dataset_targets(row_loss(data.loss), data.dataset, rows)


def encode_dataset_targets(loss: RowLoss, dataset: Dataset, rows: IntArray | slice) -> tuple[FloatArray, FloatArray]:
    """Return the targets and weights of some rows of the data in the form of a loss."""
    weights, exposures = (
        None if of_rows is None else of_rows[rows] for of_rows in (dataset.row_weights, dataset.row_exposure)
    )
    return loss.encode_targets(dataset.y[rows], weights, exposures)
