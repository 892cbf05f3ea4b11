import numpy as np
from abess import LinearRegression, LogisticRegression
from benchmark_utils import PathSolver


class Solver(PathSolver):
    """Adaptive best-subset selection (splicing), every size by itself."""

    name = "abess"
    requirements = ["pip::abess"]

    @staticmethod
    def supports_of(X, y, most):
        """The supports of all sizes."""
        return supports(LinearRegression, X, y, most, fit_intercept=False)

    @staticmethod
    def of_classes(X, y, most):
        """The supports of all sizes."""
        return supports(LogisticRegression, X, y, most)


def supports(kind, X, y, most, **how):
    """The supports of all sizes, each fitted by itself."""
    found = [()]
    for size in range(1, most + 1):
        model = kind(support_size=size, thread=1, **how).fit(X, y)
        found.append(tuple(np.flatnonzero(model.coef_)))
    return found
