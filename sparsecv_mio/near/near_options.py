"""What is asked of near-optimal lists and of common subsets, checked once for the command line and Python alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from sparsecv_mio.declared_options import check_whole, shown
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.words import By

WITHIN, MOST = 0.01, 1000


@dataclass(frozen=True)
class CommonOptions(PathOptions):
    """How the best common subset is found; checked when made, and never changed.

    The fields are those of `PathOptions`; restrictions may force features in or out, and nothing else.

    Raises
    ------
    BadInput
        For a value out of range, an unknown word, or restrictions of another kind.
    """

    gap: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_forcing(self.restrictions, "criterion common")


@dataclass(frozen=True)
class NearOptions(PathOptions):
    """Which models are near the best, and how they are found; checked when made, and never changed.

    The other fields are those of `PathOptions`; the gap is that of the cross-validation that chooses a pair, and
    restrictions may force features in or out, and nothing else.

    Attributes
    ----------
    within : float
        By how much a value may exceed the best of its size, relative: 0.01 is one per cent.
    most : int, optional
        Models of a size to list, the best ones; None for all.
    by : {"cv", "objective"}
        Which value: the CV error of the support, the same in every fold, or the training objective on all rows.

    Raises
    ------
    BadInput
        For a value out of range, an unknown word, or restrictions of another kind.

    Examples
    --------
    >>> NearOptions.of(by="objective", within=0.05).most
    1000
    """

    gap: float = 1e-4
    within: float = WITHIN
    most: int | None = MOST
    by: By = By.CV

    def __post_init__(self) -> None:
        if not isinstance(self.within, Real):
            raise BadInput(f"within: {str(self.within)[:30]!r} is no number, give 0.01 for 1%")
        if not 0.0 <= self.within < math.inf:
            raise BadInput(f"within: {self.within:g} is out of range, give 1% or another share of at least 0")
        check_whole("most", self.most, 1)
        super().__post_init__()
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
