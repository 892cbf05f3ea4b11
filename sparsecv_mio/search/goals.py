"""Goals of a search, such as a certified choice: a goal determines the pairs to be solved and the end of the search."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import OneSeChoice, Pair, next_to_decide, one_se_rule
from sparsecv_mio.units import TIE_RTOL


class SearchGoal(Protocol):
    """The protocol of a goal of a search, which reads the state.

    Attributes
    ----------
    needs_full_data : bool
        True if the goal needs the best subsets of the full data of its pairs.
    """

    needs_full_data: ClassVar[bool]

    def is_settled(self, state: GridState) -> bool:
        """Return True once nothing is left to do for the goal."""

    def pairs(self, state: GridState) -> BoolArray:
        """(G, T): pairs to solve next, whatever their bounds; none if orders choose pairs by their bounds."""


class CertifiedChoice:
    """The pair with the smallest CV error, certified within the gap.

    A pair that is not certified may have a better estimate than the certified pair. The order `together` then solves
    the pair with the better estimate. The order `winner_first` yields no step once the choice is certified, and the
    loop ends without a settled goal.
    """

    needs_full_data: ClassVar[bool] = False

    def is_settled(self, state: GridState) -> bool:
        """Return True if the choice is certified and no other pair has a better estimate, or all is final."""
        return (state.is_certified() and not self.pairs(state).any()) or bool(state.cells.final.all())

    def pairs(self, state: GridState) -> BoolArray:
        """(G, T): the pair with the best estimate, once another pair certifies the choice within the gap.

        Until then no pair: orders choose pairs by their bounds.
        """
        now, mask = state.bounds(), np.zeros(state.context.shape[:2], dtype=bool)
        winner = now.winner
        if now.is_certified(state.context.gap) and state.tried.lowest_tries[winner] < DONE:
            mask[winner] = now.clipped_estimates[winner] < now.ceiling * (1.0 - TIE_RTOL)
        return mask


class AllPairs:
    """All pairs, solved with gap 0."""

    needs_full_data: ClassVar[bool] = False

    def is_settled(self, state: GridState) -> bool:
        """Return True if no pair is left to solve."""
        return not self.pairs(state).any()

    def pairs(self, state: GridState) -> BoolArray:
        """(G, T): pairs with open subproblems that more tries may solve."""
        return state.tried.lowest_tries < DONE


class OneStandardError:
    """The simplest pair within one standard error of the smallest CV error."""

    needs_full_data: ClassVar[bool] = False

    def is_settled(self, state: GridState) -> bool:
        """Return True if no pair is left to solve."""
        return not self.pairs(state).any()

    def pairs(self, state: GridState) -> BoolArray:
        """(G, T): open pairs to solve next so that the choice of the rule is certified."""
        now = state.bounds()
        rule = one_standard_error_choice(state, now.best)
        return next_to_decide(rule.missing & (state.tried.lowest_tries < DONE), now)


class Estimates:
    """Estimates of the CV error of every pair, by supports from the training rows of each fold."""

    needs_full_data: ClassVar[bool] = False

    def is_settled(self, state: GridState) -> bool:
        """Return True if all folds were searched, or every pair is solved."""
        return int(state.tried.fold_passes) == DONE or not self.pairs(state).any()

    def pairs(self, state: GridState) -> BoolArray:
        """(G, T): pairs with folds that are not solved."""
        return ~np.asarray(state.cells.decided.all(axis=2))


class FullDataModel:
    """The best subset of the full data at the pair to report.

    Parameters
    ----------
    context : Context
        Context with the request, whose rule chooses the pair.
    """

    needs_full_data: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        self.context = context

    def is_settled(self, state: GridState) -> bool:
        """Return True if that subset is certified optimal, or more nodes cannot improve its bounds."""
        return not (is_scored(state) and state.needs_full_tree()[pair_to_report(state, self.context)])

    def pairs(self, state: GridState) -> BoolArray:
        """(G, T): the pair to report."""
        mask = np.zeros(state.context.shape[:2], dtype=bool)
        mask[pair_to_report(state, self.context)] = True
        return mask


def pair_to_report(state: GridState, context: Context) -> Pair:
    """Return the pair with the minimum CV error, or the pair that the one-standard-error rule chooses at present.

    Parameters
    ----------
    state : GridState
        State of the search.
    context : Context
        Context with the request.
    """
    best = state.reported_pair()
    return one_standard_error_choice(state, best).pair if context.request.one_se else best


def one_standard_error_choice(state: GridState, best: Pair) -> OneSeChoice:
    """Return the choice of the one-standard-error rule at present, given the pair with the minimum CV error."""
    context, now = state.context, state.bounds()
    return one_se_rule(
        now, best, context.grid.gammas, context.grid.taus, context.scored_weights, context.data.y_unit**2
    )  # fmt: skip


def is_scored(state: GridState) -> bool:
    """Return True if some pair shows a held-out loss in every fold."""
    return bool(state.has_supports.any() and state.cells.scored_pairs().any())
