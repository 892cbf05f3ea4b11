"""`sparsecv solve --criterion common`: the best subset that all folds share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sparsecv_mio.cli import Began, ending, parse, session
from sparsecv_mio.errors import BadInput

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.folds import FoldPlan


def refuse(options: Mapping[str, Any]) -> None:
    """Raise `BadInput` for options of `solve` that this criterion has no use for.

    Parameters
    ----------
    options : mapping of str to object
        By name; None, False and "auto" are options that were not given.
    """
    for name, value in options.items():
        if value not in (None, False, "auto"):
            raise BadInput(f"{name} does not go with --criterion common: leave out one or the other")


def solve_common(
    data: str, given: tuple[float, ...] | None, tau: str | None, *, reading: Mapping[str, Any],
    dealt: Mapping[str, Any], options: Mapping[str, Any], restrictions: Mapping[str, str | None],
    json: str | None, quiet: bool, full: bool,
) -> int:  # fmt: skip
    """Find the best common subset, print it, write its record, return the exit code.

    Parameters
    ----------
    data : str
        The file.
    given : tuple of float or None
        `--gamma`.
    tau : str or None
        `--tau`, as given.
    reading : mapping
        Arguments of `session.read_dealt` by position: target, features, drop.
    dealt : mapping
        Its keywords.
    options : mapping
        Fields of `CommonOptions` as given.
    restrictions : mapping
        `--force-in` and the like, as given.
    json : str or None
    quiet, full : bool
    """
    session.check_outputs({"--json": json}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.near.options import CommonOptions

        how = CommonOptions.of(**options, restrictions=parse.restrictions(**restrictions))

        def ready() -> tuple[Dataset, FoldPlan]:
            return session.read_dealt(data, *reading.values(), quiet=quiet, **dealt)

        dataset, plan = session.in_time(ready, stop, how.time_limit)
        from sparsecv_mio.near.common import best_common_subset
        from sparsecv_mio.report.near_tables import print_common  # after a limit there is no time to load it

        record = best_common_subset(
            dataset, plan, gammas=given, taus=tau, options=how, stop=stop, began=Began.moment
        )
    return ending.deliver(
        session.EXIT_CODE[record.status], lambda screen: print_common(screen, record, brief=quiet, full=full),
        json=json, record=record.pieces, warnings=() if quiet else record.warnings,
    )  # fmt: skip
