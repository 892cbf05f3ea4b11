"""The keywords that options accept.

This module imports no numerical library, so the command line can be parsed without numpy.
"""

from __future__ import annotations

from enum import StrEnum

NATIVE = "native"  # the trees of this package; every other backend is a solver of a vendor


class Scale(StrEnum):
    """The unit of the penalty: one weight for each column, from all rows, about the mean (theory section 0)."""

    LENGTH = "length"
    VARIANCE = "variance"
    NONE = "none"


class Intercept(StrEnum):
    """The treatment of the unpenalised intercept: one for each training set, one global centring, or none."""

    FOLD = "fold"
    GLOBAL = "global"
    NONE = "none"


class ClassWeight(StrEnum):
    """Weights of the rows of two classes; `balanced` gives both classes the same total weight."""

    BALANCED = "balanced"


class Method(StrEnum):
    """The search method (docs/guide/methods.md); `auto` chooses by loss, restrictions and backend."""

    AUTO = "auto"
    ROUNDS = "rounds"
    JOINT = "joint"
    ALGORITHM1 = "algorithm1"
    GRID = "grid"
    BOUNDS = "bounds"
    DESCENT = "descent"


class Model(StrEnum):
    """The model that predicts: that of one pair, or a best subset that approximates an average over pairs."""

    PAIR = "pair"
    AVERAGE = "average"


class Oracle(StrEnum):
    """The oracles whose results a search can use (deprecated)."""

    GLRU = "glru"
    IACV = "iacv"
    TREECV = "treecv"


class Criterion(StrEnum):
    """The CV error that is minimised: with the best subset of each fold (h), or with one subset for all folds."""

    FOLDS = "folds"
    COMMON = "common"


class By(StrEnum):
    """The criterion of near-optimal models: the CV error of one support in every fold, or the training objective."""

    CV = "cv"
    OBJECTIVE = "objective"


class Missing(StrEnum):
    """Treatment of empty cells: an error, dropping their rows, or imputation by the mean or median."""

    ERROR = "error"
    DROP = "drop"
    MEAN = "mean"
    MEDIAN = "median"

    @property
    def uses_imputation(self) -> bool:
        """True if empty cells are imputed."""
        return self in (Missing.MEAN, Missing.MEDIAN)


class InvalidRows(StrEnum):
    """Treatment of new rows with a value that the model cannot use."""

    ERROR = "error"
    NA = "na"


class Within(StrEnum):
    """The rows from which preprocessing is computed: all rows, or the training rows of each fold."""

    ALL = "all"
    FOLDS = "folds"


class Encode(StrEnum):
    """Treatment of text values: an error, one 0/1 column for each level, or the rank in a declared order."""

    ERROR = "error"
    ONEHOT = "onehot"
    ORDINAL = "ordinal"
