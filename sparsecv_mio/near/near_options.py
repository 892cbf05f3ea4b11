"""What is asked of near-optimal lists and of common subsets, checked once for the command line and Python alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sparsecv_mio.declared_options import check_whole, settle, shown
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import NONE, Restrictions
from sparsecv_mio.search.options import with_keywords
from sparsecv_mio.words import By, Intercept, Scale

WITHIN, MOST = 0.01, 1000


@dataclass(frozen=True)
class CommonOptions:
    """How the best common subset is found; checked when made, and never changed.

    Attributes
    ----------
    scale : {"length", "variance", "none"}
        What the penalty measures.
    intercept : {"fold", "global", "none"}
        Where the intercept lives.
    gap : float
        Relative gap at which the answer counts as proved.
    time_limit : float, optional
        Seconds; what is known by then is returned with valid bounds.
    threads : int, optional
        Stored in the record; one is used.
    restrictions : Restrictions
        Features that are forced in or out.

    Raises
    ------
    BadInput
        For a value out of range, an unknown word, or restrictions of another kind.
    """

    scale: Scale = Scale.LENGTH
    intercept: Intercept = Intercept.FOLD
    gap: float = 1e-4
    time_limit: float | None = None
    threads: int | None = None
    restrictions: Restrictions = NONE

    @classmethod
    def of(cls, **words: Any) -> CommonOptions:
        """Make options of words as text."""
        return with_keywords(cls(), words, "of")

    def __post_init__(self) -> None:
        settle(self)
        check_forcing(self.restrictions, "criterion common")


@dataclass(frozen=True)
class NearOptions:
    """Which models are near the best, and how they are found; checked when made, and never changed.

    Attributes
    ----------
    within : float
        By how much a value may exceed the best of its size, relative: 0.01 is one per cent.
    most : int, optional
        Models of a size to list, the best ones; None for all.
    by : {"cv", "objective"}
        Which value: the CV error of the support, the same in every fold, or the training objective on all rows.
    scale, intercept, gap, time_limit, threads, restrictions
        As for `CommonOptions`; the gap is that of the cross-validation that chooses a pair.

    Raises
    ------
    BadInput
        For a value out of range, an unknown word, or restrictions of another kind.

    Examples
    --------
    >>> NearOptions.of(by="objective", within=0.05).most
    1000
    """

    within: float = WITHIN
    most: int | None = MOST
    by: By = By.CV
    scale: Scale = Scale.LENGTH
    intercept: Intercept = Intercept.FOLD
    gap: float = 1e-4
    time_limit: float | None = None
    threads: int | None = None
    restrictions: Restrictions = NONE

    @classmethod
    def of(cls, **words: Any) -> NearOptions:
        """Make options of words as text."""
        return with_keywords(cls(), words, "of")

    def __post_init__(self) -> None:
        if not 0.0 <= self.within < math.inf:
            raise BadInput(f"within: {self.within:g} is out of range, give 1% or another share of at least 0")
        check_whole("most", self.most, 1)
        settle(self)
        check_forcing(self.restrictions, "near-optimal lists")


def check_forcing(restrictions: Restrictions, who: str) -> None:
    """Raise `BadInput` for restrictions that say more than which features are forced in or out.

    Parameters
    ----------
    restrictions : Restrictions
    who : str
        What cannot be done under them.
    """
    for kind in restrictions.beyond_forcing[:1]:
        raise BadInput(f"{shown(kind)}: is not for {who}, which know force-in and force-out only")
