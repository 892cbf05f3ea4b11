"""Numbers of columns, folds and bytes at which the search changes its algorithm.

Each threshold was found by timing the two algorithms on either side of it. Both algorithms give the same answer.
"""

from __future__ import annotations

import math
from typing import Protocol

# folds
FEW_FOLDS = 50  # up to which every fold searches thoroughly before any proof
FOLDS_ONE_BY_ONE = 1_000  # up to which folds are scored one by one, with bounds, or fitted again for other errors
LARGEST_FOLD = 64  # rows; a larger fold has leverages near one half unless n is huge, and only its sum is bounded
MANY_FOLDS = 10_000  # beyond, what a pass over all folds at once keeps of every gamma takes too much memory
FEWEST_FOLDS = 24  # below, trees of single folds take less time than one tree for all of them
MANY_FOLDS_BY_ROWS = 200  # beyond, working sets would be too small, and take too long

# columns of one fold
SMALL = 36  # up to which the path tree of all tau nearly always finishes at once
MANY = 400  # beyond, a root is solved to the end and all else is done on what it leaves; none is eliminated from all
PATH_TREE_COLUMNS = 128  # beyond, the path tree rarely closes without the perspective relaxation; blocks neither
RELAXED_COLUMNS = 300  # beyond, relaxations of a fold cost more than a round of its trees, diagonals than GLRU saves
CUBIC_COLUMNS = 1_500  # beyond, eigenvalues and the ridge ball's factorisation cost more than they are worth

# columns of all rows
VENDOR_RELAXED_COLUMNS = 500  # beyond, a relaxation for a vendor's solver costs more from moments than it is worth

# by rows, without a matrix of columns by columns
PRODUCT_BYTES = 1 << 29  # of q x q matrices alive at once: log2(k) of the tree over the folds, and a few of the trees
TREE_MATRICES = 4
VERY_WIDE_RATIO = 8  # columns per row from which the O(q^3) of one fold exceeds the O(n^2 q) of every pair
EXACT_COLUMNS = 1_200  # columns left that are worth a matrix of their own at once
PART_COLUMNS = 3_000  # columns left of all rows whose products are formed, once

LARGEST_BYTES = 1 << 31  # of the moments of all folds at once, here or in the memory of a cluster

# work
QUICK_WORK = 5e7  # multiplications: some hundredths of a second, after which a clock is looked at
SUPPORTS_TRIED = 8  # of one gamma and size, found by others, that are tried in every fold


class Shaped(Protocol):
    """Data of n rows and q columns."""

    @property
    def n(self) -> int:
        """Rows."""

    @property
    def q(self) -> int:
        """Columns."""


def by_rows(data: Shaped, folds: int) -> bool:
    """Whether matrices of columns by columns are too large for these data: beyond 2,000 to 3,000 columns."""
    matrices = math.log2(max(folds, 2)) + TREE_MATRICES
    return data.q > data.n and 8.0 * data.q**2 * matrices > PRODUCT_BYTES


def is_very_wide(data: Shaped) -> bool:
    """Return True if row-based relaxations of all pairs take less time than a column-by-column matrix of one fold."""
    return data.q > CUBIC_COLUMNS and data.q >= VERY_WIDE_RATIO * data.n
