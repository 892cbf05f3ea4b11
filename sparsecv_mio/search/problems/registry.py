"""Which problem class a loss has: the only place of the search that asks for the loss."""

from __future__ import annotations

from sparsecv_mio.search.context import BestOnAllRows, Context
from sparsecv_mio.search.problems.protocol import Problems
from sparsecv_mio.words import Loss


def make_problems(context: Context, full_data: BestOnAllRows) -> Problems:
    """Return the problems of a question.

    Parameters
    ----------
    context : Context
    full_data : BestOnAllRows
        Moments of the full data, of squared loss.
    """
    if context.data.loss is Loss.SQUARED:
        from sparsecv_mio.search.problems.squared import SquaredProblems

        return SquaredProblems(context, full_data)
    from sparsecv_mio.search.problems.smooth import SmoothProblems  # loads kernels that other losses do not need

    return SmoothProblems(context.data, context.folds, context.grid, context.threads)
