"""The keywords that options accept.

This module imports nothing numerical, so the command line can be parsed without numpy.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Scale(StrEnum):
    """What a unit of penalty means: one weight per column, from all rows, about the mean (theory section 0)."""

    LENGTH = "length"
    VARIANCE = "variance"
    NONE = "none"


class Intercept(StrEnum):
    """Where the unpenalised intercept lives: in every training set, in one global centring, or nowhere."""

    FOLD = "fold"
    GLOBAL = "global"
    NONE = "none"


class Loss(StrEnum):
    """What a fit minimises over its rows: squares of residuals, log losses of two classes, half deviances of counts."""

    SQUARED = "squared"
    LOGISTIC = "logistic"
    POISSON = "poisson"


class LossWords(NamedTuple):
    """How a loss is named: the CV error, the losses of rows and what a fit minimises, beside the penalty, as a sum.

    `link` is what coefficients are in, and `ratio` what their exponentials are; empty where they are in units of the
    target.
    """

    cv_error: str
    losses: str
    total: str
    link: str = ""
    ratio: str = ""


LOSS_WORDS = {
    Loss.SQUARED: LossWords("mean squared error", "squared errors", "||y - Xb||^2"),
    Loss.LOGISTIC: LossWords("mean log loss", "log losses", "sum of log losses", "log odds", "odds ratio"),
    Loss.POISSON: LossWords("mean half deviance", "half deviances", "sum of half deviances", "log rates", "rate ratio"),
}


class ClassWeight(StrEnum):
    """How much rows of each of two classes count: balanced, both classes the same together."""

    BALANCED = "balanced"


class Method(StrEnum):
    """How the grid is searched (docs/guide/methods.md); `auto` is `rounds`, or `joint` by a vendor's solver."""

    AUTO = "auto"
    ROUNDS = "rounds"
    JOINT = "joint"
    ALGORITHM1 = "algorithm1"
    GRID = "grid"
    BOUNDS = "bounds"
    DESCENT = "descent"


class Model(StrEnum):
    """Which model predicts: that of one pair, or the average of the near-best pairs on a best subset."""

    PAIR = "pair"
    AVERAGE = "average"


class Oracle(StrEnum):
    """The oracles whose answers a search can use (deprecated)."""

    GLRU = "glru"
    IACV = "iacv"
    TREECV = "treecv"


LEARNERS = ("pegasos", "lsqsgd", "ridge", "naive-bayes", "bernoulli-nb")  # of TreeCV
CLASSIFIERS = ("pegasos", "naive-bayes", "bernoulli-nb")  # those of them that take two classes
SOLVERS = ("gd", "sgd", "proxgd")  # whose iterations IACV follows


class Criterion(StrEnum):
    """Which error is least: that of the best subset of each fold (h), or that of one subset all folds share."""

    FOLDS = "folds"
    COMMON = "common"


class By(StrEnum):
    """What makes a model near the best: its CV error, the same support in every fold, or its training objective."""

    CV = "cv"
    OBJECTIVE = "objective"


class Missing(StrEnum):
    """What is done with empty cells: refused, their rows left out, or filled with a mean or median."""

    ERROR = "error"
    DROP = "drop"
    MEAN = "mean"
    MEDIAN = "median"

    @property
    def fills(self) -> bool:
        """Whether empty cells are filled."""
        return self in (Missing.MEAN, Missing.MEDIAN)


class Within(StrEnum):
    """Of which rows something is computed that a fold is fitted with: of all of them, or of its own training rows."""

    ALL = "all"
    FOLDS = "folds"


class Encode(StrEnum):
    """How text values are treated: refused, a column of zeros and ones for each, or their rank in a declared order."""

    ERROR = "error"
    ONEHOT = "onehot"
    ORDINAL = "ordinal"
