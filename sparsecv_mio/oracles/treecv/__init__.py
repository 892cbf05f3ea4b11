"""TreeCV (Joulani, Gyorgy, Szepesvari 2015): k-fold cross-validation of incremental learners in O(log k) passes.

Estimates, never certificates; for learners on which the order of rows has no effect they equal those of standard
cross-validation (theory section 8).
"""

from sparsecv_mio.oracles.treecv.learners import (
    BernoulliNaiveBayes,
    GaussianNaiveBayes,
    LearnerTask,
    LeastSquaresSgd,
    PartialFitLearner,
    PegasosLearner,
    RidgeLearner,
    make_task,
)
from sparsecv_mio.oracles.treecv.recursion import (
    CvResult,
    Learner,
    Recursive,
    Revertible,
    RowsByFold,
    standard_cv,
    tree_cv,
)

__all__ = [
    "BernoulliNaiveBayes", "CvResult", "RowsByFold", "GaussianNaiveBayes", "LeastSquaresSgd",
    "Learner", "PartialFitLearner", "PegasosLearner", "Recursive", "Revertible", "RidgeLearner",
    "LearnerTask", "make_task", "standard_cv", "tree_cv",
]  # fmt: skip
