"""What a figure or a report adds to a record where the data are at hand."""

from __future__ import annotations

from sparsecv_mio.certificate.reading import AnyRecord
from sparsecv_mio.certificate.record import PathRecord, Record
from sparsecv_mio.certificate.source import weighted_again
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.restrictions import NONE


def rows_of(record: AnyRecord, data: Dataset) -> Dataset:
    """Return the data of a record as they were fitted, with the weights of their rows.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
    data : Dataset

    Raises
    ------
    BadInput
        If these are not the data of the record.
    """
    data = weighted_again(record.data, data)
    if data.fingerprint != record.data.fingerprint:
        raise BadInput("these are not the data of the record: their fingerprints differ")
    return data


def path_at(record: Record, data: Dataset, seconds: float) -> PathRecord:
    """Return the best subsets on all rows, at the gamma of the record's model, of the sizes that it tried.

    Parameters
    ----------
    record : Record
    data : Dataset
        From `rows_of`.
    seconds : float
        Time limit.
    """
    from sparsecv_mio.fits.best_subsets import best_subsets
    from sparsecv_mio.fits.options import PathOptions

    request, about = record.request, record.data
    options = PathOptions(restrictions=request.restrictions or NONE)
    return best_subsets(
        data, gammas=[record.refit.gamma], taus=request.taus, options=options, time_limit=seconds, scale=about.scale,
        intercept=about.intercept, threads=request.threads,
    )  # fmt: skip
