"""Parts of a record on the uncertainty of the chosen model: the models that the whole procedure chose from draws."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecv_mio.certificate.json_text import Bound, Coefficients, Count, Gamma, Number
from sparsecv_mio.certificate.parts import Status


@dataclass(frozen=True)
class ChosenModel:
    """The model that the whole procedure chose from one draw of the rows; `draw` is the number of the draw.

    `status` and `gap` are those of the search over the draw. With the one-standard-error rule or weights of the
    instability, `proved` also means that the choice by this rule is certified. `cv_error` is the CV error on the draw.
    """

    draw: Count
    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    coefficients: Coefficients
    intercept: Number
    status: Status
    gap: Bound
    cv_error: Bound


@dataclass(frozen=True)
class FailedDraw:
    """A draw from which the procedure could choose no model, for example because a fold has rows of one class only."""

    draw: Count
    reason: str
