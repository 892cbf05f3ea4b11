"""Odds ratios of logistic models, rate ratios of Poisson models, and the dispersion of counts about a Poisson model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sparsecv_mio.certificate import records
from sparsecv_mio.certificate.accuracy import Scatter
from sparsecv_mio.digits import format_number, quoted_name
from sparsecv_mio.targets import Loss
from sparsecv_mio.words import Intercept

if TYPE_CHECKING:
    from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
    from sparsecv_mio.data.dataset import Dataset

PEARSON = "Pearson chi-square / (n - features - 1)"


def ratio(coefficient: float, step: float = 1.0) -> str:
    """Return the factor on odds or rates for a step of a feature as text, with enough digits to differ from 1.

    Examples
    --------
    >>> ratio(0.5), ratio(-0.5, 2.0), ratio(900.0), ratio(0.00031), ratio(0.0)
    ('1.649', '0.3679', 'e^900', '1.00031', '1')
    """
    exponent = coefficient * step
    if abs(exponent) > 600.0:
        return f"e^{format_number(exponent, 4)}"
    finer = 2 - math.floor(math.log10(abs(exponent))) if exponent else 4  # two digits of the difference from 1
    return format_number(math.exp(exponent), min(max(4, finer), 12))


def spreads(data: Dataset, names: Sequence[str]) -> dict[str, float]:
    """Return the standard deviations of columns, by name.

    Parameters
    ----------
    data : Dataset
        Data set.
    names : sequence of str
        Names.
    """
    return {name: float(data.X[:, data.names.index(name)].std()) for name in names}


def ratio_columns(
    loss: Loss, coefficients: Mapping[str, float], data: Dataset | None
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the odds or rate ratios of a model: the column headers, and the cells by feature.

    Parameters
    ----------
    loss : Loss
        Loss of the model; squared-error loss has no ratios.
    coefficients : mapping of str to float
        Coefficients by feature.
    data : Dataset, optional
        Data for ratios per standard deviation; without data, ratios are per unit only.
    """
    if not (word := loss.target.ratio):
        return [], {}
    units = None if data is None else spreads(data, list(coefficients))
    heads = [f"{word} per unit", *([f"{word} per standard deviation"] if units is not None else [])]
    cells = {name: [ratio(value), *([ratio(value, units[name])] if units is not None else [])]
             for name, value in coefficients.items()}  # fmt: skip
    return heads, cells


def model_of_ratios(loss: Loss, row: records.PathRow, data: Dataset | None, adjusted: Sequence[str]) -> list[str]:
    """Return a text for each column of `ratio_columns`: the ratios of a model, adjusted features last."""
    heads, cells = ratio_columns(loss, row.coefficients, data)
    names = sorted(cells, key=lambda name: name in adjusted)
    return ["  ".join(f"{cells[name][at]} {quoted_name(name)}" for name in names) for at in range(len(heads))]


def scatter_lines(
    record: records.Record | FitRecord | PathRecord, model: records.Record | FitRecord | records.PathRow,
    data: Dataset | None,
) -> list[str]:  # fmt: skip
    """Return lines on the fit of a logistic or Poisson model to all rows, and on overdispersion.

    Parameters
    ----------
    record : Record, FitRecord or PathRecord
        Record of the model.
    model : Record, FitRecord or PathRow
        Part of the record with the model.
    data : Dataset, optional
        Data of the record; without data, and with squared-error loss, there are no lines.
    """
    if data is None or record.loss.is_quadratic:
        return []
    from sparsecv_mio.fits.criteria import glm_criteria  # squared-error loss does not need this import

    (fit,) = glm_criteria([model], data, record.data.intercept != Intercept.NONE, record)
    line = f"on all rows: deviance {format_number(fit.deviance)}"
    line += "" if math.isnan(fit.mcfadden) else f", share of the deviance explained {fit.mcfadden:.4f}"
    if fit.scatter is None or math.isnan(fit.scatter.ratio):
        return [line]
    return [f"{line}, {PEARSON} {format_number(fit.scatter.ratio, 4)}", *overdispersion_note(fit.scatter)]


def overdispersion_note(scatter: Scatter) -> list[str]:
    """Return a note on counts with a dispersion well above that of the Poisson distribution, or nothing.

    Examples
    --------
    >>> overdispersion_note(Scatter(1.04, 0.1)), overdispersion_note(Scatter(2.25, 0.1))[0][:79]
    ([], 'the counts are overdispersed (a Poisson model has 1): the certified half devian')
    """
    if not scatter.is_wide:
        return []
    return [
        "the counts are overdispersed (a Poisson model has 1): the certified half deviance remains valid, but "
        f"standard errors of the Poisson model are {scatter.ratio**0.5:.2f} times too small, and AIC and BIC choose "
        "too many features"
    ]
