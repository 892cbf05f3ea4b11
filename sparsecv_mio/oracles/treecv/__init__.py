"""TreeCV (Joulani, Gyorgy, Szepesvari 2015): k-fold cross-validation of incremental learners in O(log k) passes.

Estimates, never certificates; for learners on which the order of rows has no effect they equal those of standard
cross-validation (theory section 8).
"""

from sparsecv_mio.oracles.treecv.learners.linear import LeastSquaresSgd, PegasosLearner
from sparsecv_mio.oracles.treecv.learners.naive_bayes import BernoulliNaiveBayes, GaussianNaiveBayes
from sparsecv_mio.oracles.treecv.learners.partial_fit import PartialFitLearner
from sparsecv_mio.oracles.treecv.learners.ridge import RidgeLearner
from sparsecv_mio.oracles.treecv.oracle import TreeCvOracle, held_out_predictions
from sparsecv_mio.oracles.treecv.protocol import CvResult, FoldRows, Learner, Recursive, Revertible
from sparsecv_mio.oracles.treecv.setup import Task, make_task
from sparsecv_mio.oracles.treecv.standard import standard_cv
from sparsecv_mio.oracles.treecv.tree import tree_cv

__all__ = [
    "BernoulliNaiveBayes",
    "CvResult",
    "FoldRows",
    "GaussianNaiveBayes",
    "LeastSquaresSgd",
    "Learner",
    "PartialFitLearner",
    "PegasosLearner",
    "Recursive",
    "Revertible",
    "RidgeLearner",
    "Task",
    "TreeCvOracle",
    "held_out_predictions",
    "make_task",
    "standard_cv",
    "tree_cv",
]
