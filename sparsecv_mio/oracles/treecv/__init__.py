"""TreeCV (Joulani, Gyorgy, Szepesvari 2015): k-fold cross-validation of incremental learners in O(log k) passes.

Its results are estimates, never certificates. If the order of rows has no effect on a learner, they equal standard
cross-validation (docs/oracles/treecv.md).
"""

# ruff: noqa: F403  # a module says itself what is public of it
from sparsecv_mio.oracles.treecv import learners, recursion
from sparsecv_mio.oracles.treecv.learners import *
from sparsecv_mio.oracles.treecv.recursion import *

__all__ = [*learners.__all__, *recursion.__all__]
