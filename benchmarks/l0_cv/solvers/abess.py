import numpy as np
from abess import LinearRegression
from benchmark_utils import PathSolver


class Solver(PathSolver):
    """Adaptive best-subset selection (splicing), every size by itself."""

    name = "abess"
    requirements = ["pip::abess"]

    @staticmethod
    def supports_of(X, y, most):
        """The supports of all sizes."""
        found = [()]
        for size in range(1, most + 1):
            model = LinearRegression(support_size=size, fit_intercept=False, thread=1)
            found.append(tuple(np.flatnonzero(model.fit(X, y).coef_)))
        return found
