"""Supports fitted on all rows, and when two of their objectives cannot be tied."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.search.shared_tree.listed_supports import (
    ListedSupports,
    Scores,
    clear_of_ties,
    clear_of_ties_refitted,
)

from .enumerated import Enumerated


def test_fits_are_those_of_the_definition() -> None:
    case = Enumerated()
    supports = [support for size in (3, 1, 2) for support in case.supports(size)]
    listing = ListedSupports.of(case.all_rows.problem(0), supports, [len(s) - 1 for s in supports])
    expected = np.array([case.f[tuple(s)] for s in supports])
    assert len(listing) == len(supports) and listing.sizes.tolist() == [len(s) for s in supports]
    assert np.all(np.abs(listing.value - expected) <= listing.value_error + 1e-13)
    last = listing.after(4)
    assert len(last) == len(supports) - 4 and np.array_equal(last.beta, listing.beta[4:])
    assert last.beta.base is not None  # a view
    error = listing.left_out_error(4)
    worst = [listing.value_error[listing.tau_index == t].max() for t in range(3)]
    assert error[3] == 0.0 and np.all(error[:3] >= worst)


def test_scores_know_nothing_at_first() -> None:
    scores = Scores.empty(2, 3)
    copy = scores.copy()
    copy.value[0, 0] = 1.0
    assert np.isinf(scores.value).all() and (scores.which == -1).all() and not scores.error.any()


def test_near_ties_are_not_clear() -> None:
    best = np.ones(4)
    second = 1.0 + np.array([0.0, 1e-10, 1e-6, 1.0])
    assert clear_of_ties_refitted(best, second, 1e-12).tolist() == [False, False, True, True]
    assert clear_of_ties_refitted(best, second, 1e-3).tolist() == [False, False, False, True]
    form = Enumerated().all_rows.normal_form(0)
    assert clear_of_ties(best, np.append(second[:3], np.inf), form).tolist()[0] is False
    assert bool(clear_of_ties(np.ones(1), np.array([np.inf]), form)[0])
