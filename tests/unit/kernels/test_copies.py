"""Copies in index order."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sparsecv_mio.kernels.copies import in_order, later_copy_inside
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE

from .plain import copies_of, small


def test_supports_in_order_and_later_copies() -> None:
    X = small(3, "copies").X.copy()
    X[:, 6] = X[:, 1]  # columns 1, 3 and 6 are copies, and so are 2 and 5
    q, copies = X.shape[1], copies_of(X)
    for size in range(q + 1):
        for support in combinations(range(q), size):
            status = np.full(q, DROPPED, dtype=np.int8)
            status[list(support)] = FREE
            assert in_order(copies, status) == all(copies.before[j] < 0 or copies.before[j] in support for j in support)
            status[list(support)] = INSIDE
            for j in range(q):
                later = [i for i in support if i > j and np.array_equal(np.abs(X[:, i]), np.abs(X[:, j]))]
                assert later_copy_inside(j, copies.after, status) == bool(later)
