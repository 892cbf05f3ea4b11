"""Records of models that are best, or near the best, by a number of their own: near-optimal lists, common subsets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sparsecv_mio.certificate.codec import Bound, Coefficients, Count, Gamma, Number
from sparsecv_mio.certificate.model import LinearModel
from sparsecv_mio.certificate.parts import DataInfo, Request, Stored, Work, frame_of
from sparsecv_mio.certificate.record import FoldInfo

if TYPE_CHECKING:
    import pandas as pd

NEAR_SCHEMA = "sparsecv-near/1"
COMMON_SCHEMA = "sparsecv-common/1"


@dataclass(frozen=True)
class NearModel:
    """A support of `tau` features and its `value`: training objective or CV error, as `NearRecord.by` says."""

    tau: Count
    support: tuple[str, ...]
    value: Number


@dataclass(frozen=True)
class Replacement:
    """`pairs` of listed supports differ by having one of two features in the place of the other."""

    feature: str
    other: str
    pairs: Count


@dataclass(frozen=True)
class NearSize:
    """What is certain of the supports of `tau` features.

    `lower <= least value <= best`. A support belongs to the list if its value is at most `threshold`, which is
    `(1 + within) best`; every one whose value is below `complete_to` is listed. `complete_to` is `threshold` unless the
    number of models or a limit cuts the list. `always`, `never`: features in every, or in no, support whose value is
    below `complete_to`; both empty where no support is known to be. `models` counts those listed.
    """

    tau: Count
    best: Bound
    lower: Number
    threshold: Bound
    complete_to: Number
    models: Count
    always: tuple[str, ...]
    never: tuple[str, ...]
    replacements: tuple[Replacement, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing that belongs to the list is missing."""
        return self.complete_to >= self.threshold


@dataclass(frozen=True)
class NearRecord(Stored):
    """Every support near the best of its size at one gamma, schema `sparsecv-near/1`.

    `by` is `objective`, `||y - Xb||^2 + (gamma / 2) ||b||^2` on all rows, or `cv`, the CV error of the support, the
    same in every fold. `models` are sorted by size, then by value. `most` is the largest number of models a size that
    was asked for. `proved`: no limit cut a list. `chosen`: gamma, and tau where one is listed that was not asked for,
    are the choice of a cross-validation, and this is its status; null where both were given.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio import Dataset, near_optimal
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3] * 3.0, [3.0, 2.9, 0.5, 0.0, -0.5, 0.0])
    >>> record = near_optimal(data, gamma=0.1, taus=1, within=0.2, by="objective")
    >>> [model.support for model in record.models]
    [('x0',), ('x1',)]
    >>> record.sizes[0].never
    ('x2',)
    >>> NearRecord.from_json(record.to_json()) == record
    True
    """

    schema_name: ClassVar[str] = NEAR_SCHEMA

    schema: str
    status: str
    by: str
    within: Number
    most: Count | None
    gamma: Gamma
    chosen: str | None
    sizes: tuple[NearSize, ...]
    models: tuple[NearModel, ...]
    work: Work
    data: DataInfo
    folds: FoldInfo | None
    request: Request
    warnings: tuple[str, ...]
    versions: Mapping[str, str]

    def __repr__(self) -> str:
        taus = [size.tau for size in self.sizes]
        sizes = f"tau={taus[0]}" if len(taus) == 1 else f"tau {taus[0]} to {taus[-1]}"
        return f"NearRecord({self.status}: {len(self.models)} models within {self.within:.3g} of the best, {sizes})"

    def to_frame(self) -> pd.DataFrame:
        """Return the models as a pandas frame, a column for every field of `NearModel`."""
        return frame_of(self.models)


@dataclass(frozen=True)
class CommonRow:
    """Of one (gamma, tau) the best support known that all folds share, and bounds on the least CV error of one.

    `lower <= least CV error <= cv_error`, up to rounding. A search goes no further than to exclude the pair: `lower`
    is then that of the whole record, whatever the distance to `cv_error`.
    """

    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    cv_error: Bound
    lower: Number


@dataclass(frozen=True)
class CommonRecord(Stored, LinearModel):
    """The subset with the least CV error when all folds share it, schema `sparsecv-common/1`.

    `cv_error` is that of `support` at `gamma`, the mean of squared held-out residuals; `lower` bounds the least one
    over all gammas of the grid and all supports of the sizes `taus`, `upper` is `cv_error` rounded up. `coefficients`
    and `intercept` are of the fit on all rows. `proved`: `upper - lower <= gap * upper` for the requested gap, up to
    rounding; the field `gap` is the relative gap reached.
    """

    schema_name: ClassVar[str] = COMMON_SCHEMA

    schema: str
    status: str
    gamma: Gamma
    tau: Count
    cv_error: Bound
    lower: Number
    upper: Bound
    gap: Bound
    support: tuple[str, ...]
    coefficients: Coefficients
    intercept: Number
    table: tuple[CommonRow, ...]
    work: Work
    data: DataInfo
    folds: FoldInfo
    request: Request
    warnings: tuple[str, ...]
    versions: Mapping[str, str]

    def __repr__(self) -> str:
        ends = f"[{self.lower:.6g}, {self.upper:.6g}]"
        return (
            f"CommonRecord({self.status}: tau={self.tau}, gamma={self.gamma:.6g}, "
            f"CV error {self.cv_error:.6g} in {ends})"
        )

    @property
    def rmse(self) -> float:
        """Root of the mean squared error of held-out rows, in units of the target."""
        return math.sqrt(self.cv_error)

    def to_frame(self) -> pd.DataFrame:
        """Return the table of all pairs (gamma, tau) as a pandas frame, a column for every field of `CommonRow`."""
        return frame_of(self.table)
