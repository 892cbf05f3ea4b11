"""What is asked of a search over an interval of gamma, checked. Loads no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.backends import NATIVE
from sparsecv_mio.grids import GammaInterval
from sparsecv_mio.restrictions import RESTRICTIONS
from sparsecv_mio.search.checks import shown
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.words import Method

OF_GRIDS = ("checkpoint", "resume", "trace", "scheduler")
UNASKED = ("one_se", "stability", "refine", "mio_budget", "formulation", "oracles")


@dataclass(frozen=True, eq=False)
class Interval:
    """What is searched.

    Attributes
    ----------
    dataset : Dataset
    folds : FoldPlan
    gammas : GammaInterval
    taus : sequence of int
    options : SearchOptions
    hooks : Hooks
    """

    dataset: Dataset
    folds: FoldPlan
    gammas: GammaInterval
    taus: Sequence[int]
    options: SearchOptions
    hooks: Hooks


def check_interval(gammas: GammaInterval, options: SearchOptions, hooks: Hooks) -> None:
    """Refuse options that an interval of gamma does not go with; nothing of the data is needed.

    Parameters
    ----------
    gammas : GammaInterval
    options : SearchOptions
    hooks : Hooks

    Raises
    ------
    BadInput
        The message names the option.
    """
    what = f"gamma {gammas}"
    given = [name for name in UNASKED if getattr(options, name)]
    given += [name for name in RESTRICTIONS if getattr(options.restrictions, name)]
    given += ["method"] if options.method not in (Method.AUTO, Method.ROUNDS) else []
    given += ["backend"] if options.backend != NATIVE else []
    given += [name for name in OF_GRIDS if getattr(hooks, name) is not None]
    for name in given[:1]:
        raise BadInput(f"{what}: {shown(name)} goes with a grid LO:HI:COUNT, not with an interval")
    if not options.gap > 0.0:
        raise BadInput(f"{what}: gap must be positive, an interval has no last digit to prove")
