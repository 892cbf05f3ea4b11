"""The fit of all columns on all rows, the folds' incumbents, and more supports beside them."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.search.shared_tree.root_node import Candidates, RootNode

from .enumerated import Enumerated


def test_the_fit_of_all_columns() -> None:
    case = Enumerated()
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    assert abs(root.value - case.f[tuple(range(case.p))]) <= 1e-12 * root.problem.yy and root.lower <= root.value
    assert root.form is case.all_rows.normal_form(0) and root.V is case.all_rows.solved(0)[0]  # factorised once
    assert root.inner.tolist() == [True] * 3 and len(root.incumbents) == len(root.supports) == len(root.tau_index)


def test_cutoffs_are_above_an_incumbent_of_every_fold() -> None:
    case = Enumerated(4)
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    k = case.folds.k
    cutoffs, scores = root.cutoffs(0, k), root.scores(0, k)
    assert root.scores(0, k) is scores
    for t, size in enumerate(case.taus.tolist()):
        for fold in range(k):
            support = tuple(np.sort(root.supports[scores.which[t, fold]]).tolist())
            least = case.inside[case.best(size)[fold]][fold]
            assert least * (1.0 - 1e-12) <= case.inside[support][fold] <= cutoffs[t, fold]


def test_rows_of_tau_that_are_not_wanted_have_no_incumbent() -> None:
    case = Enumerated()
    root = RootNode(case.leave_out, 0, [1])
    assert set(root.tau_index) == {1}
    assert np.isinf(root.cutoffs(0, case.folds.k)[[0, 2]]).all()


def test_candidates_come_after_the_incumbents() -> None:
    case = Enumerated(5)
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    before = root.scores(0, case.folds.k).copy()
    more = case.supports(2)
    candidates = Candidates(root, more, [1] * len(more))
    scores = candidates.scores(0, case.folds.k)
    assert len(candidates.numbers) == len(root.supports) + len(more)
    for fold, s in enumerate(case.best(2)):
        number = candidates.numbers[scores.which[1, fold]]
        assert tuple(case.cells.pool.supports[number].tolist()) == s
    kept = root.scores(0, case.folds.k)
    assert np.array_equal(kept.value, before.value) and np.array_equal(kept.which, before.which)  # not written to
    assert np.array_equal(scores.value[0], before.value[0]) and np.all(scores.value <= before.value)
