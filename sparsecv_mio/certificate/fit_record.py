"""The record of one MIO on all rows: schema `sparsecv-fit/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sparsecv_mio.certificate.codec import Bound, Coefficients, Count, Gamma, Number, Seconds
from sparsecv_mio.certificate.parts import DataInfo, Stored

FIT_SCHEMA = "sparsecv-fit/1"


@dataclass(frozen=True)
class FitRecord(Stored):
    """Best subset of one (tau, gamma) on all rows, by one backend.

    `objective` is `||y - Xb||^2 + (gamma / 2) ||b||^2` of the support in the scaled columns, `lower <= optimum <=
    upper`. `proved` means `upper - lower <= gap * upper + allowance` for the requested gap: `allowance` is what the
    solver's dual bound is not trusted for, in the same units (docs/backends.md). The field `gap` is the relative gap
    reached. `seconds` is the time inside the solver, `setup_seconds` all the rest but reading the data.
    """

    schema_name: ClassVar[str] = FIT_SCHEMA

    schema: str
    backend: str
    formulation: str
    status: str
    tau: Count
    gamma: Gamma
    support: tuple[str, ...]
    coefficients: Coefficients
    intercept: Number
    objective: Number
    lower: Number
    upper: Bound
    gap: Bound
    requested_gap: Number
    allowance: Number
    nodes: Count
    cuts: Count
    seconds: Seconds
    setup_seconds: Seconds
    stop: str
    raw_status: str
    data: DataInfo
    warnings: tuple[str, ...]
    versions: Mapping[str, str]
