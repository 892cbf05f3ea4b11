"""Which problem class a loss has: the only place of the search that asks for the loss."""

from __future__ import annotations

from sparsecv_mio.search.context import Context
from sparsecv_mio.search.problems.protocol import Problems
from sparsecv_mio.words import Loss

SMOOTH_LOSSES = (Loss.LOGISTIC, Loss.POISSON)


def has_problem_class(loss: Loss) -> bool:
    """Return True if a loss has a problem class."""
    return loss in SMOOTH_LOSSES


def make_problems(context: Context) -> Problems:
    """Return the problems of a question.

    Parameters
    ----------
    context : Context
    """
    from sparsecv_mio.search.problems.smooth import SmoothProblems  # loads kernels that other losses do not need

    return SmoothProblems(context.data, context.folds, context.grid, context.threads)
