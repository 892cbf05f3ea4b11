"""The record of one MIO on all rows: schema `sparsecv-fit/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsecv_mio.certificate.codec import Count, Gamma, Seconds
from sparsecv_mio.certificate.record import Bound, DataInfo, _from_json, _Stored

FIT_SCHEMA = "sparsecv-fit/1"


@dataclass(frozen=True)
class FitRecord(_Stored):
    """Best subset of one (tau, gamma) on all rows, by one backend.

    `objective` is `||y - Xb||^2 + (gamma / 2) ||b||^2` of the support in the scaled columns, `lower <= optimum <=
    upper`. `proved` means `upper - lower <= gap * upper + allowance` for the requested gap: `allowance` is what the
    solver's dual bound is not trusted for, in the same units (docs/backends.md). The field `gap` is the relative gap
    reached. `seconds` is the time inside the solver, `setup_seconds` all the rest but reading the data.
    """

    schema: str
    backend: str
    formulation: str
    status: str
    tau: Count
    gamma: Gamma
    support: tuple[str, ...]
    coefficients: Mapping[str, float]
    intercept: float
    objective: float
    lower: float
    upper: Bound
    gap: Bound
    requested_gap: float
    allowance: float
    nodes: Count
    cuts: Count
    seconds: Seconds
    setup_seconds: Seconds
    stop: str
    raw_status: str
    data: DataInfo
    warnings: tuple[str, ...]
    versions: Mapping[str, str]

    @classmethod
    def from_json(cls, text: str) -> FitRecord:
        """Read a record back; raises `CorruptStore` when it is not one."""
        record: FitRecord = _from_json(cls, text, FIT_SCHEMA)
        return record
