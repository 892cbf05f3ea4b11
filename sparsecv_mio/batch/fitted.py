"""What an estimator of a batch returns, and what an oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.record import Record


class Model(NamedTuple):
    """Coefficients (p,) and intercept, in units of the file."""

    coefficients: FloatArray
    intercept: float


@dataclass(frozen=True)
class Fitted:
    """A model that an estimator chose.

    Attributes
    ----------
    coefficients : (p,) array
        In units of the file.
    intercept : float
    seconds : float
        Of the fit alone, on the clock.
    numbers : dict
        What else is known: the CV error, the chosen hyperparameters, bounds.
    record : Record, optional
        Of our search.
    others : dict
        Models by other rules, by name: `one_se`.
    """

    coefficients: FloatArray
    intercept: float
    seconds: float
    numbers: Mapping[str, Any]
    record: Record | None = None
    others: Mapping[str, Model] = field(default_factory=dict)


@dataclass(frozen=True)
class Scored:
    """What is known of one setting, of which there is no model.

    Attributes
    ----------
    seconds : float
        Of the scoring alone, on the clock.
    numbers : dict
        The CV error, counts, errors of approximations.
    record : None
        Nothing certifies it as a record of our search does.
    """

    seconds: float
    numbers: Mapping[str, Any]
    record: None = None
