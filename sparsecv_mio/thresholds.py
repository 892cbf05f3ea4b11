"""Numbers of columns, folds or bytes above which a computation uses another algorithm, and limits on work.

Each number was chosen from measured running times. The algorithms below and above a threshold give the same answer.
"""

from __future__ import annotations

import math
from typing import Protocol

# folds
FEW_FOLDS = 50  # folds, up to which every fold is searched thoroughly before any proof
FOLDS_ONE_BY_ONE = 1_000  # folds, up to which each fold is scored separately, with bounds, or refitted for other errors
LARGEST_FOLD = 64  # rows; larger folds have leverages near 1/2 unless n is huge, and only their sum is bounded
MANY_FOLDS = 10_000  # folds, beyond which a pass over all folds at once takes too much memory for each gamma
FEWEST_FOLDS = 24  # folds, below which trees of single folds take less time than a shared tree
MANY_FOLDS_BY_ROWS = 200  # folds, beyond which working sets are too small and too slow

# columns of one fold
SMALL = 36  # columns, up to which the path tree of all tau nearly always finishes at once
MANY = 400  # columns, beyond which the root is solved to the end first, and no column is eliminated from all
PATH_TREE_COLUMNS = 128  # columns, beyond which path trees and blocks rarely close without the perspective relaxation
RELAXED_COLUMNS = 300  # columns; beyond, relaxing costs more than a round of trees, and diagonals more than GLRU saves
CUBIC_COLUMNS = 1_500  # columns, beyond which eigenvalues and the ridge ball cost more time than they save

SMOOTH_COLUMNS = 200  # columns with logistic or Poisson loss, beyond which fits of all of them use LAPACK

# columns of all rows
VENDOR_RELAXED_COLUMNS = 500  # columns, beyond which relaxing by moments for a vendor's solver loses time

# by rows, without a matrix of columns by columns
PRODUCT_BYTES = 1 << 29  # bytes of q x q matrices alive at once: log2(k) of the tree over folds, a few of trees
TREE_MATRICES = 4
VERY_WIDE_RATIO = 8  # columns per row from which the O(q^3) of one fold exceeds the O(n^2 q) of every pair
EXACT_COLUMNS = 1_200  # remaining columns, up to which a separate matrix is formed at once

LARGEST_BYTES = 1 << 31  # bytes of the moments of all folds, on this machine or on a cluster

# work
QUICK_WORK = 5e7  # multiplications (some 0.01 s) between two looks at the clock
MAX_DRAWS = 100_000  # maximum number of draws of the rows in a run; a record lists the model of each draw
SUPPORTS_TRIED = 8  # supports of one gamma and size, found in other folds, that are tried in every fold


class Shaped(Protocol):
    """Data of n rows and q columns."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def q(self) -> int:
        """Number of columns."""


def has_large_matrices(data: Shaped, folds: int) -> bool:
    """Return True if q x q matrices are too large for these data: beyond 2,000 to 3,000 columns."""
    matrices = math.log2(max(folds, 2)) + TREE_MATRICES
    return data.q > data.n and 8.0 * data.q**2 * matrices > PRODUCT_BYTES


def is_very_wide(data: Shaped) -> bool:
    """Return True if row-based relaxations of all pairs take less time than a column-by-column matrix of one fold."""
    return data.q > CUBIC_COLUMNS and data.q >= VERY_WIDE_RATIO * data.n
