"""The choice of the problem class for a loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sparsecv_mio.search.problems.protocol import Problems
from sparsecv_mio.search.state.context import BestOnAllRows, Context
from sparsecv_mio.thresholds import has_large_matrices, is_very_wide
from sparsecv_mio.words import NATIVE, Method

if TYPE_CHECKING:
    from sparsecv_mio.formulation.near_ties import MioSettings
    from sparsecv_mio.search.problems.squared import SquaredProblem

MIO_METHODS = Method.ALGORITHM1, Method.GRID, Method.BOUNDS, Method.JOINT


def is_solved_by_rows(context: Context) -> bool:
    """Return True if there are too many columns to form a matrix of them.

    Parameters
    ----------
    context : Context
        Data, grid, folds and request of the search.
    """
    data = context.data
    is_default = context.request.method_used == Method.ROUNDS
    is_wide = has_large_matrices(data, context.folds.k) or (is_default and is_very_wide(data))
    return is_wide and not data.restrictions.side_constraints


def make_problems(context: Context, full_data: BestOnAllRows) -> Problems:
    """Return the problems of a question.

    Parameters
    ----------
    context : Context
        Data, grid, folds and request of the search.
    full_data : BestOnAllRows
        Moments of the full data, for squared-error loss.
    """
    if context.data.loss.is_quadratic and is_solved_by_rows(context):
        from sparsecv_mio.search.problems.many_columns import make_row_based_problems

        return make_row_based_problems(context)
    if context.data.loss.is_quadratic:
        return _make_squared_problems(context, full_data)
    if not context.data.loss.target.is_sum_over_rows:
        from sparsecv_mio.search.problems.cox_folds import CoxProblems

        return CoxProblems(context.data, context.folds, context.grid, context.threads, context.hands)
    from sparsecv_mio.search.problems.smooth import SmoothProblems  # loads kernels that other losses do not need

    return SmoothProblems(context.data, context.folds, context.grid, context.threads, context.hands)


def _make_squared_problems(context: Context, full_data: BestOnAllRows) -> Problems:
    """Return problems with squared-error loss: restricted problems, those of a backend, or plain ones."""
    from sparsecv_mio.search.problems.squared import SquaredProblem, SquaredProblems

    request, restricted = context.request, bool(context.data.restrictions.side_constraints)
    method, backend = request.method_used, request.backend or NATIVE
    if method not in MIO_METHODS and not restricted:
        return SquaredProblems(context, full_data)
    if method not in MIO_METHODS:  # the only restrictions are bounds on coefficients
        from sparsecv_mio.search.problems.restricted import make_bounded_problems

        return make_bounded_problems(context, full_data)
    name = f"{'restricted ' * restricted}{'algorithm 1' if method == Method.ALGORITHM1 else method}"
    engine = f"{name} on {backend}" + (f", {request.formulation}" if request.formulation else "")
    make: Callable[..., SquaredProblem] = SquaredProblem
    if restricted or backend != NATIVE:
        from sparsecv_mio.formulation.backends import get_backend
        from sparsecv_mio.formulation.near_ties import MioSettings

        get_backend(backend).check_available()
        mio = MioSettings(backend, request.formulation, request.mio_budget, request.solver_option or ())
        make = _make_of_backend(context, mio)
    return SquaredProblems(context, full_data, make, name, engine)


def _make_of_backend(context: Context, mio: MioSettings) -> Callable[..., SquaredProblem]:
    """Return the class of restricted problems, or of the problems of a backend, with its settings."""
    if context.data.restrictions.side_constraints:
        from sparsecv_mio.search.problems.restricted import RestrictedProblem, check_side_constraints

        return partial(RestrictedProblem, constraints=check_side_constraints(context, mio), mio=mio)
    from sparsecv_mio.search.problems.restricted import VendorProblem

    return partial(VendorProblem, mio=mio)
