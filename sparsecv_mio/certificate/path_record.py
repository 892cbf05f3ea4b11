"""The record of the best subsets on all rows: schema `sparsecv-path/1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sparsecv_mio.certificate.codec import Bound, Coefficients, Count, Gamma, Number
from sparsecv_mio.certificate.parts import DataInfo, Request, Stored, Work

PATH_SCHEMA = "sparsecv-path/1"


@dataclass(frozen=True)
class PathRow:
    """Best subset of one (gamma, tau) on all rows: `lower <= min f <= upper`, `objective = f(support)`."""

    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    coefficients: Coefficients
    intercept: Number
    objective: Number
    lower: Number
    upper: Bound
    proved: bool


@dataclass(frozen=True)
class PathRecord(Stored):
    """Best subsets on all rows for every (gamma, tau), schema `sparsecv-path/1`."""

    schema_name: ClassVar[str] = PATH_SCHEMA

    schema: str
    status: str
    path: tuple[PathRow, ...]
    work: Work
    data: DataInfo
    request: Request
    warnings: tuple[str, ...]
    versions: Mapping[str, str]
