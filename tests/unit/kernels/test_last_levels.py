"""Gains of one and of two columns beside those of a node, against the values of the supports themselves."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.forms import Node
from sparsecv_mio.kernels.last_levels import eliminate, new_rest, next_completion

from .plain import KINDS, Small, small


def scanned(problem: Small, inside: list[int], k: int, bar: float) -> list[tuple[int, ...]]:
    """Supports that a scan names, in its order."""
    q, size = problem.q, len(inside)
    free = np.setdiff1d(np.arange(q), inside)
    node = Node(np.array([*inside, 0, 0]), size, free, len(free), k)
    rest = new_rest(q, size + k)
    assert eliminate(problem.form, node, np.empty((q, q)), np.empty(q), rest)
    assert rest.value[0] == pytest.approx(problem.value(inside), rel=1e-9)
    found, at = [], (0, 0)
    while True:
        first, second = next_completion(problem.form, node, rest, bar, at)
        if first == len(free):
            return found
        found.append(tuple(sorted([*inside, *free[[first, second][:k]].tolist()])))
        at = (first + 1, 0) if k == 1 else (first, second + 1)


@pytest.mark.parametrize("seed", range(3 * len(KINDS)))
@pytest.mark.parametrize("k", [1, 2])
def test_a_scan_names_every_support_within_the_bar_once(seed: int, k: int) -> None:
    problem = small(seed)
    for size in range(min(3, problem.q - k)):
        inside = np.random.default_rng(seed).permutation(problem.q)[:size].tolist()
        rest = np.setdiff1d(np.arange(problem.q), inside)
        values = {tuple(sorted([*inside, *K])): problem.value([*inside, *K]) for K in combinations(rest.tolist(), k)}
        for bar in np.quantile(list(values.values()), [0.0, 0.3, 1.0]) * (1.0 + 1e-9):
            found = scanned(problem, inside, k, float(bar))
            assert len(set(found)) == len(found)
            assert {S for S, value in values.items() if value <= bar * (1.0 - 1e-12)} <= set(found)
            assert all(values[S] <= bar * (1.0 + 1e-9) for S in found)


def test_columns_inside_that_are_no_basis_are_refused() -> None:
    problem = small(0)
    node = Node(np.array([0, 1]), 2, np.array([2]), 1, 1)
    form = problem.form._replace(G=np.full((problem.q, problem.q), -2.0))
    assert not eliminate(form, node, np.empty((2, 2)), np.empty(2), new_rest(problem.q, 3))
