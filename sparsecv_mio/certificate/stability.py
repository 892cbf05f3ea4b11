"""The part of a record that says how stable its model is, and how that took part in the choice."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecv_mio.certificate.codec import Bound, Count, Gamma, Number
from sparsecv_mio.certificate.parts import FoldInfo


@dataclass(frozen=True)
class InstabilityRow:
    """The certified interval of the instability of one pair of the table, `0 ..` unknown where it cannot matter."""

    lower: Number
    upper: Bound


@dataclass(frozen=True)
class OuterModel:
    """The model that a weight chose without an outer fold, and its mean squared `error` there."""

    fold: Count
    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    error: Number


@dataclass(frozen=True)
class TriedWeight:
    """A weight that was tried by nested cross-validation: its mean squared `error` over the rows of the outer folds."""

    weight: Number
    error: Number
    folds: tuple[OuterModel, ...]


@dataclass(frozen=True)
class WeighedModel:
    """The model of all rows at the pair that a weight chooses; `proved` as in `WeighedChoice`."""

    weight: Number
    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    proved: bool


@dataclass(frozen=True)
class WeighedChoice:
    """What is proved of the pair with the least `h + weight * instability`.

    `lower` bounds the criterion over the whole grid from below, `upper` that of the pair from above. `proved`:
    `upper - lower <= gap * upper + allowance`, where `allowance` is the width of the interval of the pair with the
    least lower end where its best models are all known (ties and rounding), else 0. `intervals`: of the instability,
    by row of the table. `models`: of every weight, where several were given. With a weight from nested
    cross-validation, `outer` says which outer folds and `tried` which weights, each with its error; null and empty for
    a weight that was given.
    """

    weight: Number
    lower: Number
    upper: Bound
    allowance: Number
    proved: bool
    intervals: tuple[InstabilityRow, ...]
    models: tuple[WeighedModel, ...] = ()
    outer: FoldInfo | None = None
    tried: tuple[TriedWeight, ...] = ()


@dataclass(frozen=True)
class Stability:
    """How much the model changes where a fold is left out of its training.

    Of the reported pair, `instability` is the largest change that leaving out one fold makes to the squared errors of
    all rows, per row,

        max over folds j of  (1/n) sum_i |(y_i - x_i' b^(-N_j))^2 - (y_i - x_i' b)^2|,

    at the supports of the record, `fold` the fold that makes it; `instability_lower` and `instability_upper` hold it
    for every optimum, ties and open folds included. `estimate`: some best model, of a fold or of all rows, is not
    known; `instability` is then moved to the nearer end of its interval where it lies outside. `chosen`: what is proved
    of the choice where a weight was asked for, else null.
    """

    instability: Number
    instability_lower: Number
    instability_upper: Bound
    fold: Count
    estimate: bool
    chosen: WeighedChoice | None = None
