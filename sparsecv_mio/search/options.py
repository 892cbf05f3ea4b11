"""What is asked of a search: the grid and the options, checked once for every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.problem import FloatArray


@dataclass(frozen=True, eq=False)
class Grid:
    """What was asked: gammas and taus in the order of the request, without repeats."""

    gammas: FloatArray
    taus: NDArray[np.int64]

    @classmethod
    def of(cls, gammas: Sequence[float], taus: Sequence[int], p: int) -> Grid:
        """Check and freeze the grid.

        Raises
        ------
        BadInput
            For an empty grid, a gamma outside 1e-300 .. 1e300, or a tau outside 0..p.
        """
        if len(gammas) == 0 or len(taus) == 0:
            raise BadInput("the grid is empty: give at least one gamma and one tau")
        for gamma in gammas:
            if not 1e-300 <= gamma <= 1e300:
                raise BadInput(f"gamma {gamma:g} is out of range: it must be positive and finite (1e-300 to 1e300)")
        for tau in taus:
            if not 0 <= tau <= p:
                raise BadInput(f"tau {tau} is out of range: use 0 to {p}, the number of features")
        unique = sorted(set(float(g) for g in gammas)), sorted(set(int(t) for t in taus))
        return cls(np.array(unique[0]), np.array(unique[1], dtype=np.int64))


Word = TypeVar("Word", bound=StrEnum)


def word_of(kind: type[Word], value: str, option: str) -> Word:
    """A word of an enumeration; raises `BadInput` for another one."""
    try:
        return kind(value)
    except ValueError:
        raise BadInput(f"{option} {value!r} is unknown: use one of {', '.join(kind)}") from None


def check_method(
    method: str, backend: str, mio_budget: int | None, tau_step: str, formulation: str | None = None
) -> None:
    """Raise `BadInput` for a method or backend that is unknown, or options that do not go together."""
    from sparsecv_mio.formulation.backends import BACKENDS, get_backend
    from sparsecv_mio.search.registry import BY_MIO, METHODS

    words = ("auto", "rounds", *METHODS, "descent")
    if method not in words:
        raise BadInput(f"method {method!r} is unknown: use one of {', '.join(words)}")
    if backend not in BACKENDS:
        raise BadInput(f"backend {backend!r} is unknown: use one of {', '.join(BACKENDS)}")
    if method not in (*BY_MIO, "auto") and backend != "native":
        raise BadInput(f"backend {backend}: method {method} is the native engine's; use {', '.join(BY_MIO)}")
    if formulation is not None:
        known = tuple(get_backend(backend).capabilities.formulations)
        if backend == "native" or formulation not in known:
            raise BadInput(f"formulation {formulation!r}: give a backend that has it; {backend} has {', '.join(known)}")
    if mio_budget is not None and (method not in BY_MIO or mio_budget < 0):
        raise BadInput("an MIO budget is at least 0 and for the methods that count MIOs: " + ", ".join(BY_MIO))
    if method != "descent" and tau_step != "auto":
        raise BadInput(f"tau step {tau_step}: only the method descent has tau steps")


def check_options(
    dataset: Dataset,
    folds: FoldPlan | None,
    gap: float,
    one_se: bool,
    time_limit: float | None,
    threads: int | None,
) -> None:
    """Raise `BadInput` for an option out of range."""
    if not 0.0 <= gap < 1.0:
        raise BadInput(f"gap {gap:g} is out of range: use 0 <= gap < 1")
    if time_limit is not None and not time_limit > 0.0:
        raise BadInput(f"time limit {time_limit:g} is out of range: give seconds above 0")
    if threads is not None and threads < 1:
        raise BadInput(f"threads {threads} is out of range: use at least 1")
    if folds is not None:
        if folds.n != dataset.n:
            raise BadInput(f"the fold plan is for {folds.n} rows, the data have {dataset.n}")
        if one_se and folds.k < 2:
            raise BadInput("the one-standard-error rule needs at least two scored folds")
