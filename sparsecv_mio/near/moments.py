"""All rows as one problem, and the folds as a record has them."""

from __future__ import annotations

from sparsecv_mio.certificate.record import FoldInfo
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.methods.by_rows import by_rows


def all_rows(data: StandardData, who: str) -> SparseProblem:
    """Return all rows as a problem, at a gamma of 1.

    Parameters
    ----------
    data : StandardData
    who : str
        What needs it.

    Raises
    ------
    BadInput
        For so many features that their products are never formed.
    """
    if by_rows(data, 1):
        raise BadInput(f"{who} is not for {data.q} features, whose products are never formed: keep fewer columns")
    return row_moments(data, slice(0, data.n)).problem(data, 1.0)


def fold_info(plan: FoldPlan) -> FoldInfo:
    """Describe folds for a record."""
    return FoldInfo(plan.spec, plan.seed, plan.k, plan.digest, plan.repeats)
